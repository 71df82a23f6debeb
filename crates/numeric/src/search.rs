//! One-dimensional search, with certificates.
//!
//! A search may be sloppy; a bound may not. [`minimize`] finds a good place with plain floats. [`convex_floor`] then
//! proves, from three enclosures, how low a convex function can possibly go; [`first_true`] and [`last_true`] leave the
//! caller with two neighboring candidates, one of which was *seen* to pass and the other to fail.

use crate::interval::Interval;

/// A place where the unimodal `f` is close to its minimum on `[lo, hi]`, and its value there.
///
/// Golden-section search with parabolic steps (Brent), until the place is known to within `tolerance`. For searches only.
pub fn minimize(mut lo: f64, mut hi: f64, tolerance: f64, mut f: impl FnMut(f64) -> f64) -> (f64, f64) {
    const GOLDEN: f64 = 0.381_966_011_250_105;
    let mut x = lo + GOLDEN * (hi - lo);
    let mut fx = f(x);
    let (mut second, mut f_second) = (x, fx);
    let (mut third, mut f_third) = (x, fx);
    let (mut step, mut before_last) = (0.0_f64, 0.0_f64);
    for _ in 0..100 {
        let middle = 0.5 * (lo + hi);
        if (x - middle).abs() <= 2.0 * tolerance - 0.5 * (hi - lo) {
            break;
        }
        let mut golden = true;
        if before_last.abs() > tolerance {
            // The parabola through the three best points.
            let r = (x - second) * (fx - f_third);
            let q = (x - third) * (fx - f_second);
            let p = (x - third) * q - (x - second) * r;
            let q = 2.0 * (q - r);
            let (p, q) = if q > 0.0 { (-p, q) } else { (p, -q) };
            if p.abs() < (0.5 * q * before_last).abs() && p > q * (lo - x) && p < q * (hi - x) {
                before_last = step;
                step = p / q;
                golden = false;
            }
        }
        if golden {
            before_last = if x < middle { hi - x } else { lo - x };
            step = GOLDEN * before_last;
        }
        let next = x + if step.abs() >= tolerance { step } else { tolerance.copysign(step) };
        let f_next = f(next);
        if f_next <= fx {
            if next < x {
                hi = x
            } else {
                lo = x
            }
            (third, f_third) = (second, f_second);
            (second, f_second) = (x, fx);
            (x, fx) = (next, f_next);
        } else {
            if next < x {
                lo = next
            } else {
                hi = next
            }
            if f_next <= f_second || second == x {
                (third, f_third) = (second, f_second);
                (second, f_second) = (next, f_next);
            } else if f_next <= f_third || third == x || third == second {
                (third, f_third) = (next, f_next);
            }
        }
    }
    (x, fx)
}

/// [`minimize`] for a function that may have several valleys, of which the deepest is deepest on a grid of this `step` too: first the
/// best of the grid, then the minimum between its neighbors.
pub fn minimize_over_grid(lo: f64, hi: f64, step: f64, tolerance: f64, f: impl Fn(f64) -> f64) -> f64 {
    let mut best = (lo, f64::INFINITY);
    let mut x = lo;
    while x < hi + step {
        let value = f(x.min(hi));
        if value < best.1 {
            best = (x.min(hi), value);
        }
        x += step;
    }
    minimize((best.0 - step).max(lo), (best.0 + step).min(hi), tolerance, f).0
}

/// A proved lower bound on a convex function, given a guess `x` of its minimiser inside `(lo, hi)`.
///
/// # Theorem
/// Let `f` be convex and `l < x < r` with `f(l) ≥ f(x) ≤ f(r)`. Then the minimum lies in `[l, r]`, and by convexity
/// `f(y) ≥ f(x) − (f(r) − f(x))·(x−l)/(r−x)` on `[l, x]`, and the mirror image on `[x, r]`.
///
/// # Soundness
/// The premises are checked on enclosures; the spread of `l` and `r` grows until they hold. −∞ if they never do.
pub fn convex_floor(x: f64, lo: f64, hi: f64, f: impl Fn(f64) -> Interval) -> f64 {
    let center = f(x);
    let room = (x - lo).min(hi - x);
    let mut share = 2f64.powi(-24);
    while share < 0.9 {
        let (l, r) = (x - share * room, x + share * room);
        if l < x && x < r {
            let (left, right) = (f(l), f(r));
            if left.lo() >= center.hi() && right.lo() >= center.hi() {
                // ROUNDING: down, in interval arithmetic. `x`, `l`, `r` are doubles and therefore exact.
                let (x, l, r) = (Interval::point(x), Interval::point(l), Interval::point(r));
                let drop_left = (right - center) * (x - l) / (r - x);
                let drop_right = (left - center) * (r - x) / (x - l);
                return (center - drop_left).lo().min((center - drop_right).lo());
            }
        }
        share *= 8.0;
    }
    f64::NEG_INFINITY
}

/// The end of a search whose result must be proved: the number nearest to a guess that was *seen* to satisfy `holds`.
///
/// From the guess it goes towards `limit` by `2⁻⁴⁷·step`, eight times that, and so on, and from the first number that holds back
/// towards the last that did not, to within `2⁻⁴⁴·step`: a poor guess costs time, not tightness. `step` is signed. `limit` is
/// known to hold without being asked (±∞ promises nothing), and is returned when nothing before it holds.
pub fn certified(guess: f64, step: f64, limit: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    let beyond = |x: f64| x.is_nan() || if step > 0.0 { x >= limit } else { x <= limit };
    let mut failed = guess;
    let mut share = 2f64.powi(-47);
    while share < 16.0 {
        let candidate = guess + share * step;
        if beyond(candidate) || holds(candidate) {
            let mut good = if beyond(candidate) { limit } else { candidate };
            while good.is_finite() && (good - failed).abs() > 2f64.powi(-44) * step.abs() {
                let middle = failed + 0.5 * (good - failed);
                if middle == failed || middle == good {
                    break;
                }
                if holds(middle) { good = middle } else { failed = middle }
            }
            return good;
        }
        failed = candidate;
        share *= 8.0;
    }
    limit
}

/// The last index in `lo..=hi` at which `holds` is true, for a predicate that is true up to some index and false after;
/// `None` when it fails at `lo`. Both the returned index and its successor (when `≤ hi`) were evaluated.
pub fn last_true(lo: u64, hi: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    if !holds(lo) {
        return None;
    }
    // Gallop, then bisect: cheap when the answer is near `lo`, logarithmic when it is far.
    let (mut good, mut stride) = (lo, 1u64);
    let mut bad = loop {
        let next = good.saturating_add(stride).min(hi);
        if next == good {
            return Some(good);
        }
        if holds(next) {
            good = next;
            stride = stride.saturating_mul(2);
        } else {
            break next;
        }
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

/// The first index in `lo..=hi` at which `holds` is true, for a predicate that is false up to some index and true after,
/// searched outward from a `guess`; `None` when it fails at `hi`. The returned index was seen to pass and its
/// predecessor (when `≥ lo`) was seen to fail.
pub fn first_true(lo: u64, hi: u64, guess: u64, mut holds: impl FnMut(u64) -> bool) -> Option<u64> {
    let guess = guess.clamp(lo, hi);
    let (mut bad, mut good);
    let mut stride = 1u64;
    if holds(guess) {
        good = guess;
        bad = loop {
            if good == lo {
                return Some(lo);
            }
            let next = good.saturating_sub(stride).max(lo);
            if holds(next) {
                good = next;
                stride = stride.saturating_mul(4);
            } else {
                break next;
            }
        };
    } else {
        bad = guess;
        good = loop {
            if bad == hi {
                return None;
            }
            let next = bad.saturating_add(stride).min(hi);
            if holds(next) {
                break next;
            }
            bad = next;
            stride = stride.saturating_mul(4);
        };
    }
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

/// A root of the increasing function `f` on `[lo, hi]`, to about the last digit; for searches.
pub fn root(lo: f64, hi: f64, f: impl FnMut(f64) -> f64) -> f64 {
    root_within(lo, hi, 2.0 * f64::EPSILON, f)
}

/// A root of the increasing function `f` on `[lo, hi]` up to a relative tolerance; for searches.
///
/// Regula falsi with the Illinois correction, falling back to bisection. An end is returned when the root is outside.
pub fn root_within(mut lo: f64, mut hi: f64, tolerance: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let (mut f_lo, mut f_hi) = (f(lo), f(hi));
    if f_lo >= 0.0 {
        return lo;
    }
    if f_hi <= 0.0 {
        return hi;
    }
    let mut side = 0;
    for round in 0..120 {
        let width = hi - lo;
        if width <= tolerance * lo.abs().max(hi.abs()) {
            break;
        }
        let mut x = hi - f_hi * (width / (f_hi - f_lo));
        if !(lo < x && x < hi) || round % 8 == 7 {
            x = lo + 0.5 * width;
        }
        let value = f(x);
        if value == 0.0 {
            return x;
        }
        if value < 0.0 {
            (lo, f_lo) = (x, value);
            if side == -1 {
                f_hi *= 0.5;
            }
            side = -1;
        } else {
            (hi, f_hi) = (x, value);
            if side == 1 {
                f_lo *= 0.5;
            }
            side = 1;
        }
    }
    lo + 0.5 * (hi - lo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementary::exp;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn convex_floor_is_below_and_close(a in 0.01f64..10.0, c in -3.0f64..3.0, miss in -1e-7f64..1e-7) {
            // a·(e^{x−c} − (x−c)) has its minimum a at x = c.
            let f = |x: f64| {
                let y = Interval::point(x) - c;
                (y.exp() - y) * a
            };
            let (found, _) = minimize(c - 5.0, c + 4.0, 1e-9, |x| a * (exp(x - c) - (x - c)));
            prop_assert!((found - c).abs() < 1e-5);
            let floor = convex_floor(found + miss, c - 5.0, c + 4.0, f);
            prop_assert!(floor <= a && floor >= a * (1.0 - 1e-10), "{floor} {a}");
        }

        #[test]
        fn what_is_certified_holds_and_is_near_the_edge(edge in 0.1f64..10.0, off in -0.2f64..0.2, fine in -40i32..0) {
            let guess = edge * (1.0 + off * 2f64.powi(fine));
            let above = certified(guess, guess, f64::INFINITY, |x| x >= edge);
            let below = certified(guess, -guess, 0.0, |x| x <= edge);
            prop_assert!(edge <= above && above <= edge.max(guess) * (1.0 + 1e-12), "{above}");
            prop_assert!(edge >= below && below >= edge.min(guess) * (1.0 - 1e-12), "{below}");
            prop_assert_eq!(certified(guess, guess, f64::INFINITY, |_| false), f64::INFINITY);
            let near = certified(guess, guess, edge, |_| false);
            prop_assert!(near == edge);
        }

        #[test]
        fn the_deeper_of_two_valleys_is_found(c in -4.0f64..4.0, d in 2.0f64..5.0) {
            // On the grid the deeper valley reaches at least 0.25² − 0.1.
            let f = |x: f64| (x - c).powi(2).min((x - c - d).powi(2) - 0.1);
            prop_assert!((minimize_over_grid(-10.0, 12.0, 0.5, 1e-9, f) - c - d).abs() < 1e-6);
        }

        #[test]
        fn searches_end_between_false_and_true(edge in 0u64..5000, guess in 0u64..5000) {
            prop_assert_eq!(first_true(0, 5000, guess, |n| n >= edge), Some(edge));
            prop_assert_eq!(last_true(0, 5000, |n| n <= edge), Some(edge));
        }
    }

    #[test]
    fn a_certificate_that_cannot_be_had_is_minus_infinity() {
        // A straight line has no inner minimum: nothing may be claimed.
        assert_eq!(convex_floor(0.5, 0.0, 1.0, Interval::point), f64::NEG_INFINITY);
        assert_eq!(first_true(0, 10, 5, |_| false), None);
        assert_eq!(last_true(0, 10, |_| false), None);
        assert_eq!(last_true(0, 10, |_| true), Some(10));
        assert_eq!(first_true(0, u64::MAX, 1 << 40, |_| true), Some(0));
    }

    #[test]
    fn roots_are_found_to_the_last_digits() {
        let x = root(0.0, 3.0, |x| x * x - 2.0);
        assert!((x - std::f64::consts::SQRT_2).abs() < 1e-15);
        assert_eq!(root(2.0, 3.0, |x| x * x - 2.0), 2.0);
    }
}
