//! Gaussian noise for sums of gradients: fast, and careful where speed allows it.
//!
//! # What is drawn
//! Box and Muller's transform in double precision of random bits: 32 for the radius (and 64 more where it is above four deviations or
//! below 0.02), 32 for the angle. Values reach 11.5 standard deviations. So pairs of numbers lie on 2³² rings and as many rays: about
//! a hundred-millionth of the noise apart near the middle, a six-millionth at four deviations.
//!
//! # What is released
//! A sum plus noise, rounded to a public grid of about a thousandth of the noise: rounding is post-processing, and it costs a
//! ten-millionth of the variance. The last digits of floating-point numbers can betray what was added (Mironov 2012), and so would the
//! rings: a cell of the grid must be crossed by so many of them that its probability is that of a normal law. Thousands are. Unlike the
//! exact samplers of [`paygo_noise`], this noise is not exact; see `docs/training.md`.

use crate::vector::vectorized;
use paygo_noise::Source;
use paygo_numeric::elementary;
use rayon::prelude::*;

/// Numbers that have a source of their own, so that threads can draw at once.
const BLOCK: usize = 1 << 12;

/// Numbers that are worked on at a time: they stay in the nearest cache.
const PIECE: usize = 1 << 9;

/// Fills a slice with standard normal numbers.
pub fn standard_normals(source: &mut Source, normals: &mut [f64]) {
    let mut words = [0; PIECE / 2];
    for normals in normals.chunks_mut(PIECE) {
        let words = &mut words[..normals.len().div_ceil(2)];
        source.fill(words);
        // Each word gives one number to either half.
        let (cosines, sines) = normals.split_at_mut(words.len());
        let rare = vectorized(
            #[inline(always)]
            || box_muller(words, cosines, sines),
        );
        if rare {
            for (place, &word) in words.iter().enumerate().filter(|(_, word)| is_rare(**word)) {
                let (cosine, sine) = refined(word, source);
                cosines[place] = cosine;
                if let Some(number) = sines.get_mut(place) {
                    *number = sine;
                }
            }
        }
    }
}

/// A pair whose radius is among the largest or the smallest, drawn to 64 more bits.
#[cold]
fn refined(word: u64, source: &mut Source) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "rounded to 53 bits")]
    let more = (source.bits() as f64 + 0.5) / 2f64.powi(64);
    let x = integer(word >> 32);
    let logarithm = if x < 2f64.powi(31) {
        elementary::ln((x + more) / 2f64.powi(32))
    } else {
        // Near 1 the logarithm is that of what is missing to it.
        elementary::ln_1p(-((2f64.powi(32) - x) - more) / 2f64.powi(32))
    };
    let radius = (-2.0 * logarithm).sqrt();
    let (cosine, sine) = direction(word);
    (radius * cosine, radius * sine)
}

/// Divides, without noise: not private. `total` writes the numbers from a position on.
#[expect(clippy::cast_possible_truncation, reason = "single precision is what parameters are in")]
pub(crate) fn release_without_noise(total: impl Fn(usize, &mut [f64]) + Sync, divisor: f64, released: &mut [f32]) {
    let factor = 1.0 / divisor;
    released.par_chunks_mut(PIECE).with_min_len(BLOCK / PIECE).enumerate().for_each(|(piece, released)| {
        let mut sum = [0.0; PIECE];
        let sum = &mut sum[..released.len()];
        total(piece * PIECE, sum);
        vectorized(
            #[inline(always)]
            || {
                for (released, sum) in released.iter_mut().zip(sum) {
                    *released = (*sum * factor) as f32;
                }
            },
        );
    });
}

/// Adds noise to each number, rounds to the grid, and divides: what leaves the private side. `total` writes the numbers from a
/// position on.
///
/// # Panics
/// When the noise is not above 0.
pub(crate) fn release(
    total: impl Fn(usize, &mut [f64]) + Sync,
    noise_std: f64,
    divisor: f64,
    source: &mut Source,
    released: &mut [f32],
) {
    assert!(noise_std > 0.0, "noise of standard deviation {noise_std} hides nothing");
    let grid = grid(noise_std);
    let (finer, unit) = (1.0 / grid, grid / divisor);
    let sources: Vec<Source> = (0..released.len().div_ceil(BLOCK)).map(|_| source.child()).collect();
    released.par_chunks_mut(BLOCK).zip(sources).enumerate().for_each(|(block, (released, mut source))| {
        let (mut sum, mut noise) = ([0.0; PIECE], [0.0; PIECE]);
        for (piece, released) in released.chunks_mut(PIECE).enumerate() {
            let (sum, noise) = (&mut sum[..released.len()], &mut noise[..released.len()]);
            total(block * BLOCK + piece * PIECE, sum);
            standard_normals(&mut source, noise);
            vectorized(
                #[inline(always)]
                || {
                    for ((released, sum), noise) in released.iter_mut().zip(sum).zip(noise) {
                        // The grid is a power of two: multiplying by one over it is exact.
                        let steps = ((*sum + noise_std * *noise) * finer).round_ties_even();
                        #[expect(
                            clippy::cast_possible_truncation,
                            reason = "single precision is what parameters are in"
                        )]
                        let number = (steps * unit) as f32;
                        *released = number;
                    }
                },
            );
        }
    });
}

/// A power of two about a thousandth of the noise.
fn grid(noise_std: f64) -> f64 {
    // The exponent alone, 10 less.
    f64::from_bits((noise_std.to_bits() >> 52 << 52).saturating_sub(10 << 52)).clamp(2f64.powi(-1000), 2f64.powi(1000))
}

/// Two normals from each word, the last one for the cosine alone where there are fewer sines; and whether a word is rare.
///
/// Three short loops: of a long one the processor sees too little at a time to keep busy.
#[inline(always)]
fn box_muller(words: &[u64], cosines: &mut [f64], sines: &mut [f64]) -> bool {
    for (&word, radius) in words.iter().zip(&mut *cosines) {
        *radius = minus_two_ln(word).sqrt();
    }
    for ((&word, cosine), sine) in words.iter().zip(&mut *cosines).zip(&mut *sines) {
        let radius = *cosine;
        let (c, s) = direction(word);
        (*cosine, *sine) = (radius * c, radius * s);
    }
    for (&word, cosine) in words.iter().zip(cosines).skip(sines.len()) {
        *cosine *= direction(word).0;
    }
    words.iter().fold(false, |rare, &word| rare | is_rare(word))
}

/// Whether 32 bits are too few for its radius, at either end: one in 2,048.
#[inline(always)]
const fn is_rare(word: u64) -> bool {
    (word >> 52).wrapping_add(1) & 0xfff <= 1
}

/// An integer below 2⁵² as a float: put into the mantissa of 2⁵², which is then taken off.
#[inline(always)]
fn integer(bits: u64) -> f64 {
    f64::from_bits(0x4330_0000_0000_0000 | bits) - 4_503_599_627_370_496.0
}

/// `−2 ln u`, where u is the middle of one of 2³² equal parts of (0, 1), by the upper half of a word; without branches. Relative error
/// below 10⁻¹².
#[inline(always)]
fn minus_two_ln(word: u64) -> f64 {
    // 2³²·u = m·2^e with m in [√½, √2).
    let bits = (integer(word >> 32) + 0.5).to_bits();
    let shifted = bits.wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
    let mantissa = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_667f_3bcd);
    let exponent = integer(shifted >> 52) - (1023.0 + 32.0);
    // ln m = 2 artanh f.
    let f = (mantissa - 1.0) / (mantissa + 1.0);
    let series = polynomial(f * f, [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0].map(|odd| -4.0 / odd));
    fused(exponent, -2.0 * std::f64::consts::LN_2, f * series)
}

/// The cosine and sine of one of 2³² evenly spread angles, by the lower half of a word; without branches. Absolute error below 10⁻¹³.
///
/// 29 bits are an angle in the first eighth of the circle, and three mirror it into the others.
#[inline(always)]
fn direction(word: u64) -> (f64, f64) {
    const STEP: f64 = std::f64::consts::FRAC_PI_4 / 536_870_912.0;
    let x = fused(integer(word & 0x1fff_ffff), STEP, STEP / 2.0);
    let sine = [1.0, -6.0, 120.0, -5_040.0, 362_880.0, -39_916_800.0, 6_227_020_800.0, -1_307_674_368_000.0];
    let cosine = [1.0, -2.0, 24.0, -720.0, 40_320.0, -3_628_800.0, 479_001_600.0, -87_178_291_200.0];
    let sine = x * polynomial(x * x, sine.map(|factorial| 1.0 / factorial));
    let cosine = polynomial(x * x, cosine.map(|factorial| 1.0 / factorial));
    let bit = |place: u32| word << (63 - place) & 1 << 63;
    let (a, b) = if bit(29) == 0 { (cosine, sine) } else { (sine, cosine) };
    let flip = |number: f64, sign: u64| f64::from_bits(number.to_bits() ^ sign);
    (flip(a, bit(31)), flip(b, bit(30)))
}

/// A polynomial, lowest coefficient first; in pairs, and pairs of pairs, so that no operation waits long for another.
#[inline(always)]
fn polynomial(x: f64, [a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    let square = x * x;
    let low = fused(fused(d, x, c), square, fused(b, x, a));
    let high = fused(fused(h, x, g), square, fused(f, x, e));
    fused(high, square * square, low)
}

/// `a·b + c`, rounded once: one instruction where the machine has it.
#[inline(always)]
#[expect(clippy::disallowed_methods, reason = "nothing is proved of the last digit here")]
fn fused(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_numeric::normal::log_cdf;

    #[test]
    fn the_transform_agrees_with_the_library() {
        let mut source = Source::insecure_from_seed(5);
        let corners =
            [0, u64::MAX, 1 << 63, 0xffff_ffff, 0xffff_ffff << 32, 0x1fff_ffff, 0x2000_0000, 0x7fff_ffff << 32];
        for word in (0..20_000).map(|_| source.bits()).chain(corners) {
            #[expect(clippy::cast_precision_loss, reason = "32 bits")]
            let [x, turn] = [word >> 32, word & 0x1fff_ffff].map(|bits| bits as f64 + 0.5);
            let exact = -2.0 * elementary::ln(x / 2f64.powi(32));
            assert!(
                (minus_two_ln(word) - exact).abs() <= 1e-12 * exact.abs(),
                "{word:x} {} {exact}",
                minus_two_ln(word)
            );
            let (mut sine, mut cosine) = (std::f64::consts::FRAC_PI_4 * turn / 2f64.powi(29)).sin_cos();
            if word >> 29 & 1 == 1 {
                (sine, cosine) = (cosine, sine);
            }
            let sign = |place: u32| if word >> place & 1 == 1 { -1.0 } else { 1.0 };
            let ours = direction(word);
            let off = (ours.0 - sign(31) * cosine).abs().max((ours.1 - sign(30) * sine).abs());
            assert!(off < 1e-13, "{word:x} {ours:?}");
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a million draws")]
    /// Kolmogorov and Smirnov's distance of many draws, of both halves of a pair, and of sums of neighbors.
    #[test]
    fn draws_are_normal() {
        let mut source = Source::insecure_from_seed(6);
        let mut normals = vec![0.0; 1_000_003];
        standard_normals(&mut source, &mut normals);
        let distance = |mut sample: Vec<f64>| {
            sample.sort_by(f64::total_cmp);
            let n = sample.len() as f64;
            let off = |(i, &x): (usize, &f64)| {
                let cdf = elementary::exp(log_cdf(x));
                (cdf - i as f64 / n).abs().max((cdf - (i + 1) as f64 / n).abs())
            };
            sample.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt()
        };
        // The limit is passed with probability 2·e^{−2·2.2²} < 2·10⁻⁴.
        assert!(distance(normals.clone()) < 2.2);
        for apart in [1, 2, 8, 16] {
            let sums =
                normals.windows(apart + 1).step_by(2 * apart).map(|pair| (pair[0] + pair[apart]) * 0.5f64.sqrt());
            assert!(distance(sums.collect()) < 2.2, "{apart}");
        }
        let beyond = normals.iter().filter(|x| x.abs() > 4.0).count();
        assert!((30..100).contains(&beyond), "{beyond} beyond four deviations, where 63 are expected");
    }

    /// Beyond four deviations, where radii are refined: as many as there should be, and no two alike.
    #[test]
    fn tails_are_as_long_as_they_should_be() {
        let mut source = Source::insecure_from_seed(8);
        let mut normals = vec![0.0; 1 << 20];
        let mut far: Vec<f64> = Vec::new();
        for _ in 0..64 {
            standard_normals(&mut source, &mut normals);
            far.extend(normals.iter().map(|x| x.abs()).filter(|&x| x > 4.0));
        }
        // Of 2²⁶ draws, 4,251 beyond 4, 38.5 beyond 5 and 0.13 beyond 6 are expected.
        let beyond = |limit: f64| far.iter().filter(|&&x| x > limit).count();
        assert!((3_990..4_510).contains(&beyond(4.0)), "{}", beyond(4.0));
        assert!((14..70).contains(&beyond(5.0)), "{}", beyond(5.0));
        assert!(beyond(6.0) < 5);
        far.sort_by(f64::total_cmp);
        assert!(far.windows(2).all(|pair| pair[0] < pair[1]));
    }

    /// Radii below 0.02 are refined too: pairs near the middle are spread evenly over cells as fine as the finest grid, and no two have
    /// the same radius. On bare rings the cells at the origin would be empty, and others hold twice what they should.
    #[test]
    fn pairs_near_the_middle_are_spread_evenly() {
        let mut source = Source::insecure_from_seed(9);
        let mut normals = vec![0.0; 1 << 20];
        let (mut radii, mut cells) = (Vec::new(), [0u32; 16]);
        for _ in 0..32 {
            standard_normals(&mut source, &mut normals);
            for piece in normals.chunks_exact(PIECE) {
                let (cosines, sines) = piece.split_at(PIECE / 2);
                for (x, y) in cosines.iter().zip(sines) {
                    if x.abs() < 0.008 && y.abs() < 0.008 {
                        radii.push(x * x + y * y);
                        let cell = |x: f64| ((x + 0.008) / 0.004).floor().clamp(0.0, 3.0);
                        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 15")]
                        let at = (4.0 * cell(*y) + cell(*x)) as usize;
                        cells[at] += 1;
                    }
                }
            }
        }
        // Of 2²⁴ pairs 0.016²/2π = 684 are expected, 43 in each cell; the limit of χ² is passed once in ten thousand times.
        assert!((560..810).contains(&radii.len()), "{}", radii.len());
        #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
        let each = radii.len() as f64 / 16.0;
        let chi: f64 = cells.iter().map(|&count| (f64::from(count) - each).powi(2) / each).sum();
        assert!(chi < 44.3, "{chi} {cells:?}");
        // A radius is no multiple of 2⁻³² in its u.
        let on_rings = radii.iter().filter(|&&r| {
            let k = (-(elementary::exp_m1(-r / 2.0))) * 2f64.powi(32) - 0.5;
            (k - k.round()).abs() < 1e-3
        });
        assert!(on_rings.count() < radii.len() / 50);
        radii.sort_by(f64::total_cmp);
        assert!(radii.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn what_is_released_is_on_the_grid_and_has_the_noise_that_was_asked_for() {
        let total: Vec<f64> = (0..100_000).map(|i| f64::from(i % 7) / 3.0).collect();
        let mut released = vec![0.0; total.len()];
        let (noise_std, divisor) = (3.0, 4.0);
        let part = |start: usize, part: &mut [f64]| part.copy_from_slice(&total[start..][..part.len()]);
        release(part, noise_std, divisor, &mut Source::insecure_from_seed(7), &mut released);
        let grid = grid(noise_std);
        assert_eq!(grid, 2f64.powi(1 - 10));
        let off: Vec<f64> = released.iter().zip(&total).map(|(&r, t)| f64::from(r) * divisor - t).collect();
        let mean = off.iter().sum::<f64>() / 1e5;
        let variance = off.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.04 && (variance - 9.0).abs() < 0.2, "{mean} {variance}");
        assert!(released.iter().all(|&r| (f64::from(r) * divisor / grid).fract() == 0.0));
        // The same seed, the same noise; another, another.
        let mut again = vec![0.0; total.len()];
        release(part, noise_std, divisor, &mut Source::insecure_from_seed(7), &mut again);
        assert_eq!(released, again);
    }
}
