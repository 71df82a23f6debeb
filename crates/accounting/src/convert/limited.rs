//! A curve known to be linear only up to some order (\[Y\] Theorem 3, T28).

use crate::params::{Delta, Epsilon, Order, Rho};
use paygo_numeric::Interval;

/// Which of the two branches of [`limited_order_epsilon`] was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The best order `1 + √(ln(1/δ)/ρ)` is within reach: `ρ + 2√(ρ·ln(1/δ))`.
    Inside,
    /// It is not: the largest known order is used, `ρ·u + ln(1/δ)/(u−1)`.
    Border,
}

/// An ε for (ε, δ)-DP from `D_α ≤ α·ρ` for `1 < α ≤ u`, both directions; rounded up.
///
/// # Theorem
/// Source: Yu et al., Theorem 3, by (23), which is right where (22) has a slip (E14). Guaranteed given its hypothesis; the
/// paper feeds it `ρ = q²/σ²`, for which the hypothesis is false (E11).
#[must_use]
pub fn limited_order_epsilon(rho: Rho, largest_order: Order, delta: Delta) -> (Epsilon, Branch) {
    let (r, u) = (Interval::point(rho.get()), Interval::point(largest_order.get()));
    let l = -Interval::point(delta.get()).ln();
    let inside = largest_order.get() == f64::INFINITY || l.hi() <= (r * (u - 1.0).square()).lo();
    let bound = if inside { r + (r * l).sqrt() * 2.0 } else { r * u + l / (u - 1.0) };
    (Epsilon::from_upper_bound(bound.hi()), if inside { Branch::Inside } else { Branch::Border })
}
