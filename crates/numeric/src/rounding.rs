//! Arithmetic rounded to a chosen side, without touching the processor's rounding mode.
//!
//! Each `…_up` returns the least double at or above the real result, each `…_down` the greatest at or below it
//! (one unit further out where the exact error itself underflows). Exact results stay exact, so `add_up(0.5, 0.25)`
//! is `0.75`. NaN stays NaN; callers turn doubt into +∞ at the edge.
//!
//! Method: the rounding error of a sum, product, quotient or square root is itself computable (Knuth's two-sum, and
//! fused multiply-add residuals); its sign says whether the nearest double lies on the wrong side.

/// Below this magnitude the residual of a product may itself be rounded, so the result is moved without asking.
const RESIDUAL_SAFE: f64 = 1e-290;

/// The least double at or above `a + b`.
#[must_use]
pub fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // ROUNDING: up. On overflow the error is NaN and the sum, +inf or -inf, is handled by `settle_up`.
    if two_sum_error(a, b, sum) > 0.0 { sum.next_up() } else { settle_up(sum, a.is_finite() && b.is_finite()) }
}

/// The greatest double at or below `a + b`.
#[must_use]
pub fn add_down(a: f64, b: f64) -> f64 {
    -add_up(-a, -b)
}

/// The least double at or above `a - b`.
#[must_use]
pub fn sub_up(a: f64, b: f64) -> f64 {
    add_up(a, -b)
}

/// The greatest double at or below `a - b`.
#[must_use]
pub fn sub_down(a: f64, b: f64) -> f64 {
    -add_up(-a, b)
}

/// The least double at or above `a · b`. `0 · ∞` is 0: every infinity here stands for "some larger real number".
#[must_use]
pub fn mul_up(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        return 0.0;
    }
    let product = a * b;
    if product.abs() < RESIDUAL_SAFE {
        return product.next_up();
    }
    // ROUNDING: up. The fused residual is the exact error of the product.
    if a.mul_add(b, -product) > 0.0 { product.next_up() } else { settle_up(product, a.is_finite() && b.is_finite()) }
}

/// The greatest double at or below `a · b`.
#[must_use]
pub fn mul_down(a: f64, b: f64) -> f64 {
    -mul_up(-a, b)
}

/// The least double at or above `a / b`, for `b ≠ 0`.
#[must_use]
pub fn div_up(a: f64, b: f64) -> f64 {
    if a == 0.0 || b.is_infinite() {
        // Over "some larger real number": between 0 and the smallest double of its sign, or anything of that sign.
        let most = if a.is_infinite() { f64::INFINITY } else { f64::from_bits(1) };
        return if a == 0.0 || (a > 0.0) != (b > 0.0) { 0.0 } else { most };
    }
    let quotient = a / b;
    if quotient.abs() < RESIDUAL_SAFE || a.abs() < RESIDUAL_SAFE {
        return quotient.next_up();
    }
    // ROUNDING: up. `a - quotient·b` has the sign of the error times the sign of `b`.
    let residual = (-quotient).mul_add(b, a);
    let below = if b > 0.0 { residual > 0.0 } else { residual < 0.0 };
    if below { quotient.next_up() } else { settle_up(quotient, a.is_finite()) }
}

/// The greatest double at or below `a / b`, for `b ≠ 0`.
#[must_use]
pub fn div_down(a: f64, b: f64) -> f64 {
    -div_up(-a, b)
}

/// The least double at or above `√x`, for `x ≥ 0`.
#[must_use]
pub fn sqrt_up(x: f64) -> f64 {
    let root = x.sqrt();
    if x < RESIDUAL_SAFE && x > 0.0 {
        return root.next_up();
    }
    // ROUNDING: up. `x - root²` is exact.
    if (-root).mul_add(root, x) > 0.0 { root.next_up() } else { root }
}

/// The greatest double at or below `√x`, for `x ≥ 0`.
#[must_use]
pub fn sqrt_down(x: f64) -> f64 {
    let root = x.sqrt();
    if x < RESIDUAL_SAFE && x > 0.0 {
        return root.next_down();
    }
    // ROUNDING: down. `x - root²` is exact.
    if (-root).mul_add(root, x) < 0.0 { root.next_down() } else { root }
}

/// `x` moved up by `units` neighboring doubles.
#[must_use]
pub(crate) fn nudge_up(x: f64, units: u32) -> f64 {
    (0..units).fold(x, |value, _| value.next_up())
}

/// `x` moved down by `units` neighboring doubles.
#[must_use]
pub(crate) fn nudge_down(x: f64, units: u32) -> f64 {
    (0..units).fold(x, |value, _| value.next_down())
}

/// Knuth: `a + b = sum + error` exactly, unless `sum` overflowed (then NaN).
fn two_sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let b_seen = sum - a;
    (a - (sum - b_seen)) + (b - b_seen)
}

/// A finite computation that overflowed downward is at least `-f64::MAX`; an upward overflow stays +∞.
fn settle_up(value: f64, finite_operands: bool) -> f64 {
    if value == f64::NEG_INFINITY && finite_operands { f64::MIN } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big;
    use proptest::prelude::*;

    fn wide() -> impl Strategy<Value = f64> {
        (any::<bool>(), -300i32..300, 1.0f64..10.0)
            .prop_map(|(negative, e, m)| m * 10f64.powi(e) * if negative { -1.0 } else { 1.0 })
    }

    #[track_caller]
    fn check(down: f64, up: f64, exact: &big::Big) {
        assert!(big::from_f64(down) <= *exact && *exact <= big::from_f64(up), "{down:e} {up:e}");
        assert!(up == down || up == down.next_up(), "not adjacent: {down:e} {up:e}");
    }

    proptest! {
        #[test]
        fn results_are_the_neighbors_of_the_exact_value(a in wide(), b in wide()) {
            let (x, y) = (big::from_f64(a), big::from_f64(b));
            check(add_down(a, b), add_up(a, b), &(&x + &y));
            check(sub_down(a, b), sub_up(a, b), &(&x - &y));
            let product = a * b;
            if product.is_finite() && product.abs() > 1e-280 {
                check(mul_down(a, b), mul_up(a, b), &(&x * &y));
            }
            let quotient = a / b;
            if quotient.is_finite() && quotient.abs() > 1e-280 && a.abs() > 1e-280 {
                check(div_down(a, b), div_up(a, b), &(&x / &y));
            }
            if a.abs() > 1e-280 {
                check(sqrt_down(a.abs()), sqrt_up(a.abs()), &big::sqrt(&big::from_f64(a.abs())));
            }
        }
    }

    #[test]
    fn exact_results_stay_exact_and_edges_stay_on_their_side() {
        assert_eq!(add_up(0.5, 0.25), 0.75);
        assert_eq!(mul_up(3.0, 0.5), 1.5);
        assert_eq!(div_down(1.0, 4.0), 0.25);
        assert_eq!(sqrt_up(4.0), 2.0);
        assert_eq!(add_up(f64::MAX, f64::MAX), f64::INFINITY);
        assert_eq!(add_down(f64::MAX, f64::MAX), f64::MAX);
        assert_eq!(mul_up(1e-200, 1e-200), f64::from_bits(1));
        assert_eq!(mul_down(1e-200, 1e-200), -f64::from_bits(1), "one unit too far is allowed, too near is not");
        assert_eq!(mul_up(0.0, f64::INFINITY), 0.0);
        assert!(add_up(f64::NAN, 1.0).is_nan());
        assert_eq!(div_up(1.0, f64::INFINITY), f64::from_bits(1));
        assert_eq!(div_down(1.0, f64::INFINITY), 0.0);
        assert_eq!(div_up(f64::INFINITY, f64::INFINITY), f64::INFINITY);
        assert_eq!(div_down(f64::INFINITY, f64::INFINITY), 0.0);
    }
}
