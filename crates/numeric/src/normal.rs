//! The normal distribution and its tails, down to where doubles end and, as logarithms, beyond.
//!
//! `erfc` comes from the `libm` crate; the scaled and logarithmic forms are our own, because the former underflows past
//! 26.5. Relative errors: [`ERROR`] for [`erfc`], [`erfc_scaled`], [`mills`], [`log_erfc`] and [`log_cdf`]; the tests
//! measure them against big floats. `Φ` is the standard normal distribution function, `φ` its density.

use crate::elementary::{exp, ln, ln_1p};
use crate::interval::Interval;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// Stated relative error of the functions of this module.
pub const ERROR: f64 = 16.0 * f64::EPSILON;

const SQRT_PI: f64 = 1.772_453_850_905_516;
const SQRT_HALF_PI: f64 = 1.253_314_137_315_500_3;
/// `√(2π)` = 2.50662827463100050… enclosed.
const SQRT_TWO_PI: (f64, f64) = (2.506_628_274_631, 2.506_628_274_631_001);

/// `erfc(x)`, within [`ERROR`] wherever it is a normal double (`x < 26.5`).
#[must_use]
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// `e^{x²}·erfc(x)`, for `x ≥ −26`.
#[must_use]
pub fn erfc_scaled(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 * exp_of_square(x) - erfc_scaled(-x);
    }
    if x < 10.0 {
        return exp_of_square(x) * libm::erfc(x);
    }
    // 1/(x√π)·(1 − 1/(2x²)·(1 − 3/(2x²)·(1 − …))): from x = 10 on, 14 factors leave less than 1e-17.
    let t = 0.5 / (x * x);
    let mut tail = 1.0;
    for k in (0..14).rev() {
        tail = 1.0 - f64::from(2 * k + 1) * t * tail;
    }
    tail / (x * SQRT_PI)
}

/// `e^{x²}` without the rounding error of `x²`.
fn exp_of_square(x: f64) -> f64 {
    let square = x * x;
    let rest = x.mul_add(x, -square);
    exp(square) * (1.0 + rest)
}

/// `ln erfc(x)`.
#[must_use]
pub fn log_erfc(x: f64) -> f64 {
    if x < 0.5 {
        ln_1p(-libm::erf(x))
    } else if x < 10.0 {
        ln(libm::erfc(x))
    } else {
        ln(erfc_scaled(x)) - x * x
    }
}

/// `ln Φ(x)`.
#[must_use]
pub fn log_cdf(x: f64) -> f64 {
    if x > 0.0 { ln_1p(-0.5 * libm::erfc(x * FRAC_1_SQRT_2)) } else { log_erfc(-x * FRAC_1_SQRT_2) - LN_2 }
}

/// Mills' ratio `(1 − Φ(x))/φ(x)`, for `x ≥ −36`.
#[must_use]
pub fn mills(x: f64) -> f64 {
    SQRT_HALF_PI * erfc_scaled(x * FRAC_1_SQRT_2)
}

/// Mills' ratio enclosed, for `x ≥ 0`; it falls.
#[must_use]
pub fn mills_within(x: Interval) -> Interval {
    let (low, high) = (mills(x.hi().max(0.0)), mills(x.lo().max(0.0)));
    Interval::new(Interval::around(low, ERROR).lo(), Interval::around(high, ERROR).hi())
}

/// The density `φ(x)` enclosed.
#[must_use]
pub fn density_within(x: Interval) -> Interval {
    (x.square() * -0.5).exp() / Interval::new(SQRT_TWO_PI.0, SQRT_TWO_PI.1)
}

/// The upper tail `1 − Φ(x)` enclosed.
#[must_use]
pub fn tail_within(x: Interval) -> Interval {
    if let Some(narrow) = narrow_tail(x) {
        return narrow;
    }
    let at = |x: f64| {
        let x = Interval::point(x);
        if x.lo() >= 0.0 {
            density_within(x) * mills_within(x)
        } else {
            Interval::ONE - density_within(x) * mills_within(-x)
        }
    };
    Interval::new(at(x.hi()).lo().max(0.0), at(x.lo()).hi().min(1.0))
}

/// The same from one `erfc`, for an interval that is hardly more than a point.
///
/// ROUNDING: outward. The argument `m/√2` has two roundings, and `|d ln(1 − Φ(x))/dx| = 1/mills(x) ≤ x + 1` for `x ≥
/// 0`: the value at `m` is off by at most `ERROR + (m² + m)·2u` relatively, and by `(m + 1 + width)·width` anywhere
/// in the interval.
fn narrow_tail(x: Interval) -> Option<Interval> {
    const U: f64 = 0.5 * f64::EPSILON;
    let (width, middle) = (x.hi() - x.lo(), x.middle());
    let m = middle.abs();
    if !(width <= 1e-9 && m <= 36.0) {
        return None;
    }
    let error = ERROR + (4.0 * m * m + 8.0) * U + 1.01 * (m + 1.0 + width) * width;
    let tail = Interval::around(0.5 * libm::erfc(m * FRAC_1_SQRT_2), error);
    Some(if middle >= 0.0 { tail } else { Interval::ONE - tail })
}

/// The `p`-quantile: `Φ(quantile(p)) = p`, for `p` in `(0, 1)`; ∓∞ at the ends.
///
/// Newton's method on `ln Φ`, which is concave, from a start that is good to 5·10⁻⁴. Relative error below 10⁻¹³ of
/// `max(|z|, p)`; not used inside a bound.
#[must_use]
pub fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -quantile(1.0 - p); // `1 − p` is exact for p in [1/2, 1].
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let target = ln(p);
    let t = (-2.0 * target).sqrt();
    let start =
        t - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    let mut z = -start.max(0.0);
    for _ in 0..4 {
        z -= (log_cdf(z) - target) * mills(-z);
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big::{self, Big};
    use proptest::prelude::*;

    #[track_caller]
    fn check(ours: f64, exact: &Big, what: &str) {
        let padded = Interval::around(ours, ERROR);
        assert!(big::from_f64(padded.lo()) <= *exact && *exact <= big::from_f64(padded.hi()), "{what}: {ours:e}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn stated_errors_hold(x in -9.0f64..36.0, small in -1.0f64..1.0) {
            for x in [x, small, small * 1e-5] {
                let exact = big::erfc(x);
                let square = big::from_f64(x) * big::from_f64(x);
                if x < 26.0 {
                    check(erfc(x), &exact, &format!("erfc({x})"));
                }
                check(erfc_scaled(x), &(&exact * big::exp(&square)), &format!("erfc_scaled({x})"));
                check(log_erfc(x), &big::ln(&exact), &format!("log_erfc({x})"));
            }
        }

        #[test]
        fn normal_functions(x in -36.0f64..8.0) {
            // Φ(x) = erfc(−x/√2)/2 by the same series, at a big-float argument: allow the argument's own rounding.
            let z = -x * FRAC_1_SQRT_2;
            let phi = big::erfc(z) / big::from_f64(2.0);
            let exact = big::ln(&phi);
            let slack = Interval::around(log_cdf(x), ERROR + 4.0 * f64::EPSILON * z * z / log_cdf(x).abs().max(1e-300));
            assert!(big::from_f64(slack.lo()) <= exact && exact <= big::from_f64(slack.hi()), "log_cdf({x})");
        }

        #[test]
        fn tails_are_enclosed(x in -9.0f64..36.0, wide in -20i32..0) {
            // 1 − Φ(x) = erfc(x/√2)/2, at arguments whose quotient is a double: z = x/√2 rounded, and x = z·√2 enclosed.
            let z = x * FRAC_1_SQRT_2;
            let root = Interval::new(std::f64::consts::SQRT_2, std::f64::consts::SQRT_2.next_up());
            let narrow = Interval::point(z) * root;
            let more = 10f64.powi(wide);
            let wider = Interval::new(narrow.lo() - more, narrow.hi() + 0.3 * more);
            let exact = big::erfc(z) / big::from_f64(2.0);
            for tail in [tail_within(narrow), tail_within(wider)] {
                prop_assert!(big::from_f64(tail.lo()) <= exact && exact <= big::from_f64(tail.hi()), "{x} {tail:?}");
            }
            // No wider than the argument makes it.
            let tail = tail_within(narrow);
            prop_assert!(tail.hi() - tail.lo() <= tail.hi() * (1e-14 + 4e-15 * x * x), "{x} {tail:?}");
        }

        #[test]
        fn quantile_inverts(p in 1e-12f64..0.5, e in -300i32..0) {
            for p in [p, p * 10f64.powi(e).max(1e-290), 1.0 - p] {
                let z = quantile(p);
                let back = log_cdf(z);
                assert!((back - ln(p)).abs() <= 1e-12 * (1.0 + ln(p).abs() * z.abs().max(1.0)), "p = {p:e}, z = {z}");
            }
        }
    }

    #[test]
    fn enclosures_hold_known_values() {
        // Φ(−1) = 0.158655253931457051414767…, φ(1) = 0.241970724519143349797830…
        let tail = tail_within(Interval::ONE);
        assert!(tail.lo() <= 0.158_655_253_931_457_05 && 0.158_655_253_931_457_05 <= tail.hi());
        let density = density_within(Interval::ONE);
        assert!(density.lo() <= 0.241_970_724_519_143_37 && 0.241_970_724_519_143_33 <= density.hi());
        assert!(density.hi() - density.lo() < 1e-15);
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
        assert!(tail_within(Interval::point(60.0)).hi() > 0.0, "an underflow is not zero");
    }
}
