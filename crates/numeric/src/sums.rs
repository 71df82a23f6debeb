//! Sums and differences of exponentials, kept as logarithms, logarithms of binomial coefficients, and a common divisor.

use crate::elementary::{exp, exp_m1, ln, ln_1p};
use crate::interval::Interval;

/// `½·ln 2π`, within one unit in the last place.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// `ln Σ e^{xᵢ}`; −∞ for no terms. For searches: within `(terms + 4)` units of `max(1, |result|)`.
#[must_use]
pub fn log_sum_exp(terms: &[f64]) -> f64 {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + ln(terms.iter().map(|&x| exp(x - largest)).sum::<f64>())
}

/// `ln(e^a + e^b)` enclosed.
#[must_use]
pub fn log_add_exp(a: Interval, b: Interval) -> Interval {
    let of = |x: f64, y: f64| {
        let (small, large) = if x < y { (x, y) } else { (y, x) };
        if small == f64::NEG_INFINITY || large == f64::INFINITY {
            return Interval::point(large);
        }
        Interval::point(large) + (Interval::point(small) - large).exp().ln_1p()
    };
    Interval::new(of(a.lo(), b.lo()).lo(), of(a.hi(), b.hi()).hi())
}

/// `ln(e^a − e^b)` for `a ≥ b`; −∞ when they are equal. Within 4 units of the larger of 1, `|a|` and the result.
#[must_use]
pub fn log_diff_exp(a: f64, b: f64) -> f64 {
    if b == f64::NEG_INFINITY {
        return a;
    }
    let gap = b - a;
    // ln(1 − e^gap): `exp_m1` near zero, `ln_1p` far from it.
    a + if gap > -std::f64::consts::LN_2 { ln(-exp_m1(gap)) } else { ln_1p(-exp(gap)) }
}

/// `ln n!` enclosed, for `n ≤ 2⁵³`.
///
/// Below 257 the factorial is a product of directed roundings; above, Stirling's series with its remainder, which
/// alternates and is smaller than its first omitted term.
#[must_use]
pub fn ln_factorial(n: u64) -> Interval {
    #[expect(clippy::cast_precision_loss, reason = "n is at most 2^53")]
    let x = Interval::point(n as f64);
    if n <= 256 {
        // Split into factors so that no partial product overflows.
        let mut total = Interval::ZERO;
        let mut product = Interval::ONE;
        for k in 2..=n {
            #[expect(clippy::cast_precision_loss, reason = "k is at most 256")]
            let factor = k as f64;
            product = product * factor;
            if product.hi() > 1e280 {
                total = total + product.ln();
                product = Interval::ONE;
            }
        }
        return total + product.ln();
    }
    // ln n! = (n + ½)·ln n − n + ½·ln 2π + 1/(12n) − 1/(360n³) + 1/(1260n⁵) − …
    let half_ln_two_pi = Interval::new(HALF_LN_TWO_PI.next_down(), HALF_LN_TWO_PI.next_up());
    let cube = x * x * x;
    let main = (x + 0.5) * x.ln() - x + half_ln_two_pi + Interval::ONE / (x * 12.0) - Interval::ONE / (cube * 360.0);
    Interval::new(main.lo(), (main + Interval::ONE / (cube * x * x * 1260.0)).hi())
}

/// `ln C(n, k)` enclosed, for `k ≤ n ≤ 2⁵³`.
#[must_use]
pub fn ln_binomial(n: u64, k: u64) -> Interval {
    let k = k.min(n - k);
    if k <= 64 {
        // ln Π (n − i)/(i + 1), multiplied out: at most 64 factors of at most 2⁵³ each, in chunks that do not overflow.
        let mut total = Interval::ZERO;
        let mut product = Interval::ONE;
        for i in 0..k {
            #[expect(clippy::cast_precision_loss, reason = "n is at most 2^53")]
            let ratio = Interval::point((n - i) as f64) / Interval::point((i + 1) as f64);
            product = product * ratio;
            if product.hi() > 1e280 {
                total = total + product.ln();
                product = Interval::ONE;
            }
        }
        return total + product.ln();
    }
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// The greatest common divisor; of 0 and `n`, `n`.
#[must_use]
pub const fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big::{self, Big};
    use proptest::prelude::*;

    #[track_caller]
    fn near(ours: f64, exact: &Big, scale: f64) {
        let slack = big::from_f64(8.0 * f64::EPSILON * scale.max(1.0));
        let ours = big::from_f64(ours);
        assert!(&ours - &slack <= *exact && *exact <= &ours + &slack, "{ours}");
    }

    proptest! {
        #[test]
        fn log_sums_and_differences(a in -700.0f64..700.0, gap in 1e-12f64..60.0, third in -700.0f64..700.0) {
            let b = a - gap;
            let (p, q) = (big::exp(&big::from_f64(a)), big::exp(&big::from_f64(b)));
            let exact = big::ln(&(&p - &q));
            near(log_diff_exp(a, b), &exact, a.abs().max(1.0));
            near(log_sum_exp(&[a, b, third]), &big::ln(&(&p + &q + big::exp(&big::from_f64(third)))), a.abs().max(third.abs()));
            let sum = log_add_exp(Interval::point(a), Interval::point(b));
            let exact = big::ln(&(p + q));
            assert!(big::from_f64(sum.lo()) <= exact && exact <= big::from_f64(sum.hi()));
        }

        #[test]
        fn binomials_enclose(n in 0u64..3000, share in 0.0f64..1.0) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a test index")]
            let k = (share * n as f64) as u64;
            let exact = big::ln(&big::binomial(n, k));
            let ours = ln_binomial(n, k);
            assert!(big::from_f64(ours.lo()) <= exact && exact <= big::from_f64(ours.hi()), "C({n}, {k}) {ours:?}");
            assert!(ours.hi() - ours.lo() < 1e-10, "C({n}, {k}) {ours:?}");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY, 3.0]), 3.0);
        assert_eq!(log_diff_exp(3.0, 3.0), f64::NEG_INFINITY);
        assert_eq!(log_diff_exp(3.0, f64::NEG_INFINITY), 3.0);
        assert_eq!(ln_binomial(5, 0), Interval::ZERO);
        assert!(ln_factorial(1 << 53).hi().is_finite());
        assert_eq!((greatest_common_divisor(12, 18), greatest_common_divisor(0, 5)), (6, 5));
    }
}
