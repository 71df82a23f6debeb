//! The samplers have the laws they claim, and the tests that say so can say otherwise.
//!
//! Each test is a chi-square against exact probabilities with fixed seeds; each has planted wrong samplers that it must
//! convict, so that a pass means something.

use dashu::integer::IBig;
use dashu::rational::RBig;
use paygo_noise::coin::{below, heads_exp};
use paygo_noise::{DiscreteGaussian, DiscreteLaplace, FineGaussian, Ratio, Source};
use paygo_numeric::elementary::exp;

const DRAWS: u32 = 400_000;

fn ratio(numerator: u64, denominator: u64) -> Ratio {
    Ratio::new(numerator, denominator).expect("a ratio")
}

/// How many standard deviations the chi-square statistic lies above its mean.
fn surprise(mut draw: impl FnMut() -> i64, weight: impl Fn(i64) -> f64) -> f64 {
    // Cells around 0 that expect at least 50 draws; the rest together on each side.
    let total: f64 = (-4000..=4000).map(&weight).sum();
    let expected = |k: i64| f64::from(DRAWS) * weight(k) / total;
    let edge = (0..4000).take_while(|&k| expected(k) >= 50.0).last().expect("a cell");
    let cells = usize::try_from(2 * edge + 3).expect("a number of cells");
    let mut counts = vec![0.0; cells];
    for _ in 0..DRAWS {
        let cell = draw().clamp(-edge - 1, edge + 1) + edge + 1;
        counts[usize::try_from(cell).expect("a cell")] += 1.0;
    }
    let tail: f64 = (edge + 1..=4000).map(expected).sum();
    let (mut statistic, mut used) = (0.0, -1.0);
    for (count, k) in counts.iter().zip(-edge - 1..) {
        let mean = if k.abs() > edge { tail } else { expected(k) };
        if mean >= 5.0 {
            statistic += (count - mean) * (count - mean) / mean;
            used += 1.0;
        } else {
            assert!(*count < 60.0, "{count} draws where {mean} were expected");
        }
    }
    (statistic - used) / f64::sqrt(2.0 * used)
}

#[track_caller]
fn fits(surprise: f64) {
    assert!(surprise < 4.5, "{surprise} standard deviations from the law");
}

#[track_caller]
fn convicted(surprise: f64) {
    assert!(surprise > 8.0, "a wrong sampler passed: {surprise}");
}

fn gaussian_weight(variance: f64) -> impl Fn(i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "small integers")]
    move |k| exp(-((k * k) as f64) / (2.0 * variance))
}

fn laplace_weight(scale: f64) -> impl Fn(i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "small integers")]
    move |k| exp(-(k.abs() as f64) / scale)
}

#[test]
fn discrete_gaussians_fit_their_law() {
    for (seed, n, d) in [(1, 1, 4), (2, 1, 1), (3, 9, 2), (4, 100, 1), (5, 123_457, 1000), (6, 1 << 40, 1 << 30)] {
        let mut source = Source::insecure_from_seed(seed);
        let noise = DiscreteGaussian { variance: ratio(n, d) };
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        fits(surprise(|| noise.draw(&mut source), gaussian_weight(n as f64 / d as f64)));
    }
}

#[test]
fn fine_gaussians_fit_their_law() {
    for (seed, std) in [(1, 1), (2, 2), (3, 7), (4, 30)] {
        let mut source = Source::insecure_from_seed(seed);
        let noise = FineGaussian::new(std).expect("noise");
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let variance = (std * std) as f64;
        fits(surprise(|| noise.draw(&mut source), gaussian_weight(variance)));
        convicted(surprise(|| noise.draw(&mut source), gaussian_weight(1.05 * variance)));
    }
    // As wide as it goes: in units of the deviation it is a normal number.
    let mut source = Source::insecure_from_seed(5);
    let noise = FineGaussian::new(FineGaussian::MAX).expect("noise");
    #[expect(clippy::cast_precision_loss, reason = "a share of the deviation")]
    let draws: Vec<f64> = (0..20_000).map(|_| noise.draw(&mut source) as f64 / FineGaussian::MAX as f64).collect();
    let [mean, variance] = [1, 2].map(|power| draws.iter().map(|x| x.powi(power)).sum::<f64>() / 20_000.0);
    assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    assert!(FineGaussian::new(0).is_err() && FineGaussian::new(FineGaussian::MAX + 1).is_err());
    assert!(noise.mechanism(0).is_err() && noise.mechanism((1 << 60) + 1).is_err());
}

#[test]
fn discrete_laplaces_fit_their_law() {
    for (seed, n, d) in [(1, 1, 3), (2, 1, 1), (3, 7, 2), (4, 25, 1), (5, 12_345, 1000)] {
        let mut source = Source::insecure_from_seed(seed);
        let noise = DiscreteLaplace { scale: ratio(n, d) };
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        fits(surprise(|| noise.draw(&mut source), laplace_weight(n as f64 / d as f64)));
    }
}

/// The same test on samplers with a planted fault.
#[test]
fn wrong_samplers_are_convicted() {
    let mut source = Source::insecure_from_seed(9);
    // σ too small by two percent, and too large by two.
    for (n, d) in [(9604, 10_000), (10_404, 10_000)] {
        let noise = DiscreteGaussian { variance: ratio(100 * n, d) };
        convicted(surprise(|| noise.draw(&mut source), gaussian_weight(100.0)));
    }
    // Laplace noise for Gaussian noise of the same variance.
    let laplace = DiscreteLaplace { scale: ratio(707, 100) };
    convicted(surprise(|| laplace.draw(&mut source), gaussian_weight(100.0)));
    // Zero twice as likely: the sign drawn without rejecting −0.
    let scale = 3u128;
    let mut doubled_zero = || {
        let mut magnitude = 0;
        while heads_exp(1, scale, &mut source) {
            magnitude += 1;
        }
        if below(2, &mut source) == 0 { magnitude } else { -magnitude }
    };
    convicted(surprise(&mut doubled_zero, laplace_weight(3.0)));
    // A sign that is heads 51 times in 100.
    let noise = DiscreteGaussian { variance: ratio(100, 1) };
    let mut lopsided = || {
        let magnitude = noise.draw(&mut source).abs();
        if below(100, &mut source) < 51 { magnitude } else { -magnitude }
    };
    convicted(surprise(&mut lopsided, gaussian_weight(100.0)));
    // Rounded toward zero instead of floored at the proposal: a spike at 0.
    let mut spiked = || {
        let draw = noise.draw(&mut source);
        if draw.abs() == 1 && below(20, &mut source) == 0 { 0 } else { draw }
    };
    convicted(surprise(&mut spiked, gaussian_weight(100.0)));
    // The tail cut off at 2.5 σ.
    let mut cut = || noise.draw(&mut source).clamp(-25, 25);
    convicted(surprise(&mut cut, gaussian_weight(100.0)));
}

/// Uniform integers and exponential coins, with a biased and a truncated one convicted.
#[test]
fn coins_are_fair() {
    let mut source = Source::insecure_from_seed(11);
    let share = |hits: u32| f64::from(hits) / f64::from(DRAWS);
    let deviations = |hits: u32, p: f64| (share(hits) - p) / (p * (1.0 - p) / f64::from(DRAWS)).sqrt();
    for (n, d) in [(1u128, 1u128), (1, 3), (7, 2), (0, 1), (12, 1)] {
        let hits = (0..DRAWS).map(|_| u32::from(heads_exp(n, d, &mut source))).sum();
        #[expect(clippy::cast_precision_loss, reason = "small integers")]
        let p = exp(-(n as f64) / d as f64);
        assert!(p >= 1.0 && hits == DRAWS || deviations(hits, p).abs() < 4.5, "{n}/{d}");
    }
    // e^{−1} by its series up to 1/3!: 1/3 instead of 0.3679.
    let truncated: u32 = (0..DRAWS).map(|_| u32::from(below(3, &mut source) == 0)).sum();
    assert!(deviations(truncated, exp(-1.0)).abs() > 8.0);
    // Uniform on 0..n for an n just above a power of two, where a remainder would favor the small.
    let n = (1u128 << 70) + (1 << 69);
    let low: u32 = (0..DRAWS).map(|_| u32::from(below(n, &mut source) < n / 2)).sum();
    assert!(deviations(low, 0.5).abs() < 4.5);
    let biased: u32 = (0..DRAWS).map(|_| u32::from(below(1 << 71, &mut source) % n < n / 2)).sum();
    assert!(deviations(biased, 0.5).abs() > 8.0);
    assert_eq!((below(1, &mut source), below(0, &mut source)), (0, 0));
}

/// Beside an independent implementation: the two empirical laws agree, and a difference of six percent in σ would show.
#[test]
fn the_oracle_agrees() {
    const EACH: u32 = 60_000;
    let mut source = Source::insecure_from_seed(21);
    let oracle = |scale: &RBig| -> i64 {
        let draw: IBig = opendp::traits::samplers::sample_discrete_gaussian(scale.clone()).expect("a draw");
        i64::try_from(draw).expect("a small integer")
    };
    let two_sample = |mut ours: Box<dyn FnMut() -> i64 + '_>, theirs: &mut dyn FnMut() -> i64| {
        let mut counts = vec![[0.0f64; 2]; 33];
        for _ in 0..EACH {
            for (side, draw) in [ours(), theirs()].into_iter().enumerate() {
                let cell = usize::try_from(draw.clamp(-16, 16) + 16).expect("a cell");
                counts[cell][side] += 1.0;
            }
        }
        let terms = counts.iter().filter(|c| c[0] + c[1] >= 10.0).map(|c| (c[0] - c[1]).powi(2) / (c[0] + c[1]));
        let (statistic, used) = terms.fold((0.0, -1.0f64), |(sum, n), term| (sum + term, n + 1.0));
        (statistic - used) / (2.0 * used).sqrt()
    };
    let noise = DiscreteGaussian { variance: ratio(16, 1) };
    let four = RBig::from(4);
    let agreed = two_sample(Box::new(|| noise.draw(&mut source)), &mut || oracle(&four));
    // The oracle cannot be seeded: a limit that chance passes once in a million runs.
    assert!(agreed < 7.0, "{agreed}");
    let wrong = DiscreteGaussian { variance: ratio(18, 1) };
    let disagreed = two_sample(Box::new(|| wrong.draw(&mut source)), &mut || oracle(&four));
    assert!(disagreed > 10.0, "{disagreed}");
}

#[test]
fn sources_differ_and_seeded_ones_repeat() {
    let mut a = Source::from_operating_system().expect("a source");
    let mut b = Source::from_operating_system().expect("a source");
    assert_ne!([a.bits(), a.bits()], [b.bits(), b.bits()]);
    let (mut c, mut d) = (Source::insecure_from_seed(5), Source::insecure_from_seed(5));
    assert_eq!([c.bits(), c.bits()], [d.bits(), d.bits()]);
    assert_eq!(format!("{a:?}"), "Source(..)");
}

#[test]
fn ratios_are_checked() {
    assert!(Ratio::new(0, 1).is_err() && Ratio::new(1, 0).is_err() && Ratio::new(1 << 41, 1).is_err());
    assert_eq!(ratio(6, 4), ratio(3, 2));
    assert_eq!(Ratio::at_least(0.5).expect("a ratio"), ratio(1, 2));
    let third = Ratio::at_least(1.0 / 3.0).expect("a ratio");
    assert!(third.numerator() * 3 >= third.denominator());
    for bad in [0.0, -1.0, f64::NAN, 1e9, f64::INFINITY] {
        assert!(Ratio::at_least(bad).is_err());
    }
}
