//! (ε, δ)-DP and its pointwise cousin, `P(loss > ε) ≤ δ` (T36).
//!
//! Pointwise DP implies DP with the same numbers, and is not closed under post-processing. The way back costs.

use crate::params::{Delta, Epsilon};
use paygo_numeric::Interval;

/// The δ′ with `P(loss > ε′) ≤ δ′` that (ε, δ)-DP implies, for `ε′ > ε`; rounded up, 1 for `ε′ ≤ ε`.
///
/// # Theorem
/// With `B = {loss > ε′}`: `P(B) ≤ e^ε·Q(B) + δ ≤ e^{ε−ε′}·P(B) + δ`, so `P(B) ≤ δ/(1 − e^{ε−ε′})` (T36). Tight.
/// One-sided; each direction on its own.
#[must_use]
pub fn dp_to_pointwise(epsilon: Epsilon, delta: Delta, wider: Epsilon) -> Delta {
    if delta == Delta::ZERO && wider >= epsilon {
        return Delta::ZERO;
    }
    if wider <= epsilon {
        return Delta::ONE;
    }
    let kept = -((Interval::point(epsilon.get()) - wider.get()).exp_m1());
    Delta::from_upper_bound((Interval::point(delta.get()) / kept).hi())
}

/// Pointwise (ε, δ) implies (ε, δ)-DP: `P(S) ≤ P(S, loss ≤ ε) + P(loss > ε) ≤ e^ε·Q(S) + δ`.
#[must_use]
pub const fn pointwise_to_dp(epsilon: Epsilon, delta: Delta) -> (Epsilon, Delta) {
    (epsilon, delta)
}
