//! A fast Fourier transform with an error bound that is known beforehand.
//!
//! Radix two, decimation in time, every twiddle factor computed on its own: the algorithm of the theorem below, written
//! out because a library's mixed radices have no stated bound.
//!
//! # Theorem
//! For `n = 2^t` the computed transform `ŷ` of `x` satisfies `‖ŷ − y‖₂ ≤ t·η/(1 − t·η)·‖y‖₂` with
//! `η = μ + γ₄(√2 + μ)`, μ the error of the twiddle factors. Source: Higham, *Accuracy and Stability of Numerical
//! Algorithms*, 2nd edition, Theorem 24.2. With twiddles good to six units, η is below 16 units: [`relative_error`].

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// Zero.
    pub const ZERO: Self = Self { re: 0.0, im: 0.0 };
    /// One.
    pub const ONE: Self = Self { re: 1.0, im: 0.0 };

    /// The product, within three units of its modulus.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }

    /// The power, by squaring: within `3n` units of its modulus, to first order.
    #[must_use]
    pub fn power(self, mut n: u64) -> Self {
        let (mut square, mut product) = (self, Self::ONE);
        while n > 0 {
            if n & 1 == 1 {
                product = product.times(square);
            }
            square = square.times(square);
            n >>= 1;
        }
        product
    }
}

/// Stated error of [`root`]: so many unit roundoffs in each part, taken together.
pub const ROOT_ERROR: f64 = 8.0;

/// `e^{2πi·k/n}`, within [`ROOT_ERROR`] unit roundoffs of its modulus, and each part within as many of its own; `n`
/// at most 2⁵⁰.
#[must_use]
pub fn root(k: i64, n: usize) -> Complex {
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    // Exactly: which eighth of the circle, and how far into it, or from its end.
    let turn = 8 * k.rem_euclid(n);
    let (eighth, rest) = (turn / n, turn % n);
    let within = if eighth % 2 == 0 { rest } else { n - rest };
    // The quotient has one rounding, the product one more and that of π/4; sine and cosine add one each.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
    let (sine, cosine) = libm::sincos(std::f64::consts::FRAC_PI_4 * (within as f64 / n as f64));
    let (re, im) = match eighth {
        0 => (cosine, sine),
        1 => (sine, cosine),
        2 => (-sine, cosine),
        3 => (-cosine, sine),
        4 => (-cosine, -sine),
        5 => (-sine, -cosine),
        6 => (sine, -cosine),
        _ => (cosine, -sine),
    };
    Complex { re, im }
}

/// Stated error of [`turn`]: so many unit roundoffs.
pub const TURN_ERROR: f64 = 2.0;
/// The largest angle of [`turn`].
pub const TURN_LIMIT: f64 = 1e5;

/// `e^{i·angle}` of the double, within [`TURN_ERROR`] unit roundoffs; the angle is at most [`TURN_LIMIT`].
#[must_use]
pub fn turn(angle: f64) -> Complex {
    let (im, re) = libm::sincos(angle);
    Complex { re, im }
}

/// The angle of `x + iy`, in `(−π, π]`, within [`TURN_ERROR`] unit roundoffs of itself.
#[must_use]
pub fn angle(y: f64, x: f64) -> f64 {
    libm::atan2(y, x)
}

/// Bound on `‖ŷ − y‖₂/‖y‖₂` for a transform of length `n`.
#[must_use]
pub fn relative_error(n: usize) -> f64 {
    f64::from(n.max(2).ilog2()) * 16.0 * (f64::EPSILON / 2.0) * 1.001
}

/// The transform `y_k = Σ_j x_j e^{−2πi·jk/n}`, or with `inverse` its inverse, in place; the length is a power of two.
///
/// # Panics
/// When the length is not a power of two.
pub fn transform(data: &mut [Complex], inverse: bool) {
    let n = data.len();
    assert!(n.is_power_of_two(), "the length {n} is not a power of two");
    if n < 2 {
        return;
    }
    let shift = usize::BITS - n.ilog2();
    for i in 0..n {
        let j = i.reverse_bits() >> shift;
        if i < j {
            data.swap(i, j);
        }
    }
    let sign = if inverse { 1.0 } else { -1.0 };
    #[expect(clippy::cast_precision_loss, reason = "lengths in memory are far below 2^53")]
    let twiddles: Vec<Complex> = (0..n / 2)
        .map(|k| {
            // The angle, at most π, has two roundings: five units at most. Sine and cosine add one.
            let (im, re) = libm::sincos(2.0 * std::f64::consts::PI * (k as f64 / n as f64));
            Complex { re, im: sign * im }
        })
        .collect();
    let mut length = 2;
    while length <= n {
        let (half, stride) = (length / 2, n / length);
        for block in data.chunks_exact_mut(length) {
            let (left, right) = block.split_at_mut(half);
            for (k, (a, b)) in left.iter_mut().zip(right).enumerate() {
                let t = b.times(twiddles[k * stride]);
                let u = *a;
                *a = Complex { re: u.re + t.re, im: u.im + t.im };
                *b = Complex { re: u.re - t.re, im: u.im - t.im };
            }
        }
        length *= 2;
    }
    if inverse {
        #[expect(clippy::cast_precision_loss, reason = "a power of two")]
        let scale = 1.0 / n as f64;
        for value in data {
            value.re *= scale;
            value.im *= scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_stated_error_holds_against_the_definition(values in proptest::collection::vec(-1.0f64..1.0, 64)) {
            let mut data: Vec<Complex> = values.iter().map(|&re| Complex { re, im: 0.0 }).collect();
            transform(&mut data, false);
            // The definition in big floats: powers of e^{−2πi/64} from cos and sin of π/32 by half-angle roots.
            let two = big::from_f64(2.0);
            let mut cosine = big::from_f64(0.0); // cos(π/2)
            for _ in 0..4 {
                cosine = big::sqrt(&((big::from_f64(1.0) + &cosine) / &two));
            }
            let sine = big::sqrt(&(big::from_f64(1.0) - &cosine * &cosine));
            let mut roots = vec![(big::from_f64(1.0), big::from_f64(0.0))];
            for k in 0..63 {
                let (c, s) = roots[k].clone();
                roots.push((&c * &cosine - &s * &sine, &c * &sine + &s * &cosine));
            }
            let (mut error, mut norm) = (big::from_f64(0.0), big::from_f64(0.0));
            for (k, ours) in data.iter().enumerate() {
                let (mut re, mut im) = (big::from_f64(0.0), big::from_f64(0.0));
                for (j, &x) in values.iter().enumerate() {
                    let (c, s) = &roots[j * k % 64];
                    re += big::from_f64(x) * c;
                    im -= big::from_f64(x) * s;
                }
                let (a, b) = (big::from_f64(ours.re) - &re, big::from_f64(ours.im) - &im);
                error += &a * &a + &b * &b;
                norm += &re * &re + &im * &im;
            }
            let bound = big::from_f64(relative_error(64));
            prop_assert!(error <= &bound * &bound * norm);
        }
    }

    /// By the doubling formulas in big floats: cos and sin of 2π·k/2^m from half-angle roots.
    #[test]
    fn roots_are_within_their_stated_error() {
        let n = 1usize << 16;
        let two = big::from_f64(2.0);
        let mut halves = vec![(big::from_f64(-1.0), big::from_f64(0.0)), (big::from_f64(0.0), big::from_f64(1.0))];
        for level in 1..15 {
            let cosine = big::sqrt(&((big::from_f64(1.0) + &halves[level].0) / &two));
            let sine = big::sqrt(&(big::from_f64(1.0) - &cosine * &cosine));
            halves.push((cosine, sine));
        }
        for k in [1usize, 2, 3, 77, 12_345, 32_767, 32_768, 40_000, 65_535] {
            let (mut re, mut im) = (big::from_f64(1.0), big::from_f64(0.0));
            for (level, (c, s)) in halves.iter().enumerate() {
                // halves[level] is e^{iπ/2^level}: the bit of weight n/2^{level+1}.
                if k >> (15 - level) & 1 == 1 {
                    (re, im) = (&re * c - &im * s, &re * s + &im * c);
                }
            }
            let ours = root(i64::try_from(k).expect("small"), n);
            let (a, b) = (big::from_f64(ours.re) - &re, big::from_f64(ours.im) - &im);
            let bound = big::from_f64(ROOT_ERROR * f64::EPSILON / 2.0);
            assert!(&a * &a + &b * &b <= &bound * &bound, "k = {k}");
        }
        assert_eq!(root(-3, 8), root(5, 8));
    }

    /// Against the series of the sine and the cosine, on big floats.
    #[test]
    fn turns_are_within_their_stated_error() {
        for angle in [0.0, 1e-9, 0.3, -1.5, 3.25, 40.0, -700.5, 12_345.678] {
            // e^{ix} = (e^{ix/2^k})^(2^k), and the series of the small angle.
            let small = big::from_f64(angle) / big::from_f64(65_536.0);
            let (mut re, mut im) = (big::from_f64(0.0), big::from_f64(0.0));
            let mut term = (big::from_f64(1.0), big::from_f64(0.0));
            for k in 1..=60 {
                (re, im) = (re + &term.0, im + &term.1);
                let share = &small / big::from_f64(f64::from(k));
                term = (-(&term.1 * &share), &term.0 * &share);
            }
            for _ in 0..16 {
                (re, im) = (&re * &re - &im * &im, big::from_f64(2.0) * &re * &im);
            }
            let ours = turn(angle);
            let (a, b) = (big::from_f64(ours.re) - &re, big::from_f64(ours.im) - &im);
            let bound = big::from_f64(TURN_ERROR * f64::EPSILON / 2.0);
            assert!(&a * &a + &b * &b <= &bound * &bound, "angle {angle}");
        }
    }

    /// What an angle is of is turned by it.
    #[test]
    fn angles_are_within_their_stated_error() {
        for (x, y) in [(1.0, 1e-9), (1.0, -0.3), (0.999, 0.02), (-0.5, 0.7), (-1.0, -1e-3), (1e-3, 2.0)] {
            let ours = angle(y, x);
            // Of the turn by minus the angle, exactly: x·cos + y·sin and y·cos − x·sin; the latter is the error, times the modulus.
            let (mut re, mut im) = (big::from_f64(0.0), big::from_f64(0.0));
            let mut term = (big::from_f64(1.0), big::from_f64(0.0));
            for k in 1..=80 {
                (re, im) = (re + &term.0, im + &term.1);
                let share = big::from_f64(ours) / big::from_f64(f64::from(k));
                term = (-(&term.1 * &share), &term.0 * &share);
            }
            let off = big::from_f64(y) * &re - big::from_f64(x) * &im;
            let bound = big::from_f64(TURN_ERROR * f64::EPSILON / 2.0 * ours.abs() * x.hypot(y) * 1.01);
            assert!(&off * &off <= &bound * &bound, "{x} {y}");
        }
    }

    #[test]
    fn there_and_back_and_powers() {
        let start: Vec<Complex> = (0..1024).map(|i| Complex { re: f64::from(i % 7), im: f64::from(i % 5) }).collect();
        let mut data = start.clone();
        transform(&mut data, false);
        transform(&mut data, true);
        for (a, b) in data.iter().zip(&start) {
            assert!((a.re - b.re).abs() < 1e-12 && (a.im - b.im).abs() < 1e-12);
        }
        let eighth = Complex { re: std::f64::consts::FRAC_1_SQRT_2, im: std::f64::consts::FRAC_1_SQRT_2 };
        let whole = eighth.power(8);
        assert!((whole.re - 1.0).abs() < 1e-14 && whole.im.abs() < 1e-14);
        assert_eq!(eighth.power(0), Complex::ONE);
    }
}
