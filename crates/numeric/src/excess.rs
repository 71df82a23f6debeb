//! How far a power lies above its tangent: `(1 + w)^a − 1 − a·w`.
//!
//! A Rényi moment minus one is the mean of such excesses, because the mean of `w` is zero. Computed as a difference it
//! loses every digit when the mechanism is mild; split into two terms that are never negative, it loses none:
//!
//! ```text
//! (1+w)^a − 1 − a·w  =  (1+w)·E(b·l) + b·K(w)      a > 1,  b = a − 1,  l = ln(1+w)
//! (1+w)^-c − 1 + c·w =  E(−c·l) + c·M(w)           c > 0
//! E(x) = e^x − 1 − x      K(w) = (1+w)·ln(1+w) − w      M(w) = w − ln(1+w)
//! ```
//!
//! [`exp_excess`], [`entropy_excess`] and [`log_excess`] are `E`, `K`, `M`, each within [`ERROR`] of the truth,
//! relative to the truth; the tests measure it against big floats.

use crate::elementary::{exp_m1, ln_1p};
use crate::interval::Interval;

/// Stated relative error of the three kernels.
pub const ERROR: f64 = 64.0 * f64::EPSILON;

/// `E(x) = e^x − 1 − x ≥ 0`.
#[must_use]
pub fn exp_excess(x: f64) -> f64 {
    if x.abs() < 0.5 {
        // x²·(1/2! + x·(1/3! + x·(…))): 15 terms leave less than 2⁻⁵⁸ for |x| < 1/2.
        let mut sum = 0.0;
        for coefficient in EXPONENTIAL.iter().rev() {
            sum = sum * x + coefficient;
        }
        sum * x * x
    } else {
        exp_m1(x) - x
    }
}

/// `K(w) = (1+w)·ln(1+w) − w ≥ 0`, for `w ≥ −1` (`K(−1) = 1`).
#[must_use]
pub fn entropy_excess(w: f64) -> f64 {
    if w.abs() < 0.25 {
        series(w, &ENTROPY)
    } else if w <= -1.0 {
        1.0
    } else {
        (1.0 + w) * ln_1p(w) - w
    }
}

/// `M(w) = w − ln(1+w) ≥ 0`, for `w > −1`.
#[must_use]
pub fn log_excess(w: f64) -> f64 {
    if w.abs() < 0.25 { series(w, &LOGARITHM) } else { w - ln_1p(w) }
}

/// `Σ_{k≥2} coefficient_k·(−w)^k`, for `|w| < 1/4`; 26 terms leave less than 2⁻⁵⁴.
fn series(w: f64, coefficients: &[f64; 26]) -> f64 {
    let v = -w;
    let mut sum = 0.0;
    for coefficient in coefficients.iter().rev() {
        sum = sum * v + coefficient;
    }
    sum * v * v
}

/// `1/k!` from k = 2 on.
#[expect(clippy::cast_precision_loss, reason = "small integers")]
const EXPONENTIAL: [f64; 16] = {
    let mut table = [0.0; 16];
    let (mut i, mut factorial) = (0, 2.0);
    while i < 16 {
        table[i] = 1.0 / factorial;
        i += 1;
        factorial *= (i + 2) as f64;
    }
    table
};

/// `1/(k(k−1))` from k = 2 on.
#[expect(clippy::cast_precision_loss, reason = "small integers")]
const ENTROPY: [f64; 26] = {
    let mut table = [0.0; 26];
    let mut i = 0;
    while i < 26 {
        table[i] = 1.0 / ((i + 2) * (i + 1)) as f64;
        i += 1;
    }
    table
};

/// `1/k` from k = 2 on.
#[expect(clippy::cast_precision_loss, reason = "small integers")]
const LOGARITHM: [f64; 26] = {
    let mut table = [0.0; 26];
    let mut i = 0;
    while i < 26 {
        table[i] = 1.0 / (i + 2) as f64;
        i += 1;
    }
    table
};

/// `E(x)` enclosed: it falls below zero and rises above it.
#[must_use]
pub fn exp_excess_within(x: Interval) -> Interval {
    valley(x, exp_excess)
}

/// `M(w)` enclosed, for `w > −1`: it falls below zero and rises above it.
#[must_use]
pub fn log_excess_within(w: Interval) -> Interval {
    valley(w, log_excess)
}

/// The range of a kernel that falls to 0 at 0 and rises after it, padded by the stated error.
fn valley(x: Interval, kernel: impl Fn(f64) -> f64) -> Interval {
    let (left, right) = (kernel(x.lo()), kernel(x.hi()));
    let least = if x.lo() <= 0.0 && x.hi() >= 0.0 { 0.0 } else { left.min(right) };
    Interval::new(Interval::around(least, ERROR).lo(), Interval::around(left.max(right), ERROR).hi())
}

/// `(1+w)^a − 1 − a·w` enclosed, for `a > 1` and an exact `w` known as an enclosure, all of it on one side of zero.
///
/// The function falls on `[−1, 0]` and rises on `[0, ∞)`, so its range over `w` is spanned by the two ends.
#[must_use]
pub fn power_excess(a: f64, w: Interval) -> Interval {
    let b = Interval::point(a) - 1.0;
    let at = |w: f64| {
        let one_plus = (Interval::ONE + w).max(0.0);
        let x = b * Interval::point(w).ln_1p();
        let e = exp_excess_within(x);
        // At w = −1 the first term is 0·∞ with limit 0.
        let first = if w <= -1.0 { Interval::ZERO } else { one_plus * e };
        first + b * Interval::around(entropy_excess(w), ERROR)
    };
    let (p, q) = (at(w.lo()), at(w.hi()));
    Interval::new(p.lo().min(q.lo()).max(0.0), p.hi().max(q.hi()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big::{self, Big};
    use proptest::prelude::*;

    #[track_caller]
    fn check(ours: f64, exact: &Big, context: &str) {
        let enclosure = Interval::around(ours, ERROR);
        let inside = big::from_f64(enclosure.lo()) <= *exact && *exact <= big::from_f64(enclosure.hi());
        assert!(inside, "{context}: {ours:e}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn kernels_keep_their_stated_error(x in -600.0f64..600.0, s in -1.0f64..1.0, e in -40i32..0, big_w in 0.0f64..1e9) {
            for v in [x, s, s * 10f64.powi(e)] {
                let p = big::from_f64(v);
                check(exp_excess(v), &(big::exp_m1(&p) - &p), &format!("E({v:e})"));
            }
            for w in [s, s * 10f64.powi(e), big_w] {
                let p = big::from_f64(w);
                let log = big::ln_1p(&p);
                check(entropy_excess(w), &((&p + big::from_f64(1.0)) * &log - &p), &format!("K({w:e})"));
                check(log_excess(w), &(&p - &log), &format!("M({w:e})"));
            }
        }

        #[test]
        fn power_excess_encloses(a in 1.0f64..40.0, tiny in -12i32..0, s in -0.999f64..20.0) {
            let a = 1.0 + (a - 1.0) * 10f64.powi(tiny);
            prop_assume!(a > 1.0);
            for w in [s, s * 1e-4, s * 1e-9] {
                let enclosure = power_excess(a, Interval::point(w));
                let (p, n) = (big::from_f64(w), big::from_f64(a));
                let one = big::from_f64(1.0);
                let exact = big::exp(&(&n * big::ln_1p(&p))) - one - &n * &p;
                assert!(big::from_f64(enclosure.lo()) <= exact && exact <= big::from_f64(enclosure.hi()), "{a} {w}");
                assert!(enclosure.hi() <= enclosure.lo() * (1.0 + 1e-11), "{a} {w} {enclosure:?}");
            }
        }
    }
}
