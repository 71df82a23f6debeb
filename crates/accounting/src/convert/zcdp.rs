//! ρ-zCDP, `D_α ≤ α·ρ` at every order, turned into (ε, δ) by the best real order (T13).
//!
//! Because the hypothesis holds at every order at once, the order may be chosen afterwards: these are guarantees of a
//! zCDP filter (T8), not only of a plan. The order is found with plain floats; the bound at that order is then rounded
//! to the safe side. Any order is sound; a poor search only costs tightness.

use super::renyi::Conversion;
use crate::params::{Delta, Divergence, Epsilon, Order, Rho};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, ln};
use paygo_numeric::search::minimize_over_grid;

/// An ε for which ρ-zCDP gives (ε, δ)-DP, rounded up, and the order used.
///
/// Classic: `ρ + 2√(ρ·ln(1/δ))`, at order `1 + √(ln(1/δ)/ρ)`. Source: Bun and Steinke, arXiv:1605.02065, Proposition 1.3.
#[must_use]
pub fn epsilon(conversion: Conversion, rho: Rho, delta: Delta) -> (Epsilon, Option<Order>) {
    if rho == Rho::ZERO || delta == Delta::ONE {
        return (Epsilon::ZERO, None);
    }
    if delta == Delta::ZERO || rho.get() == f64::INFINITY {
        return (Epsilon::INFINITE, None);
    }
    let (r, d) = (rho.get(), delta.get());
    let log_inverse = -ln(d);
    let classic_order = order_at(0.5 * (ln(log_inverse.max(1e-300)) - ln(r)));
    let (r_in, l_in) = (Interval::point(r), -Interval::point(d).ln());
    let classic = Epsilon::from_upper_bound((r_in + (r_in * l_in).sqrt() * 2.0).hi());
    if conversion == Conversion::Classic {
        return (classic, Some(classic_order));
    }
    let objective = |x: f64| conversion.epsilon_nearer(order_at(x), order_at(x).get() * r, delta);
    // A looser conversion's order is a good start, and keeps the conversions in their order.
    let start = epsilon(conversion.start(), rho, delta).1.unwrap_or(classic_order);
    let at = |order: Order| (conversion.epsilon(order, at_order(rho, order), delta), Some(order));
    least([at(best_order(start, objective)), at(start), (classic, Some(classic_order))])
}

/// A δ for which ρ-zCDP gives (ε, δ)-DP, rounded up, and the order used.
#[must_use]
pub fn delta(conversion: Conversion, rho: Rho, epsilon: Epsilon) -> (Delta, Option<Order>) {
    if rho == Rho::ZERO || epsilon == Epsilon::INFINITE {
        return (Delta::ZERO, None);
    }
    if rho.get() == f64::INFINITY {
        return (Delta::ONE, None);
    }
    let (r, e) = (rho.get(), epsilon.get());
    // Classic: (α−1)(αρ − ε) is least at α = (ε+ρ)/(2ρ), where it is −(ε−ρ)²/(4ρ); nothing for ε ≤ ρ.
    let classic_order = Order::new((e + r) / (2.0 * r)).unwrap_or_else(|_| order_at(0.0));
    let gap = Interval::point(e) - r;
    let classic = if gap.lo() > 0.0 {
        Delta::from_upper_bound((-(gap.square() / (Interval::point(r) * 4.0))).exp().hi())
    } else {
        Delta::ONE
    };
    if conversion == Conversion::Classic {
        return (classic, Some(classic_order));
    }
    let objective = |x: f64| conversion.log_delta_near(order_at(x), order_at(x).get() * r, epsilon);
    let start = delta(conversion.start(), rho, epsilon).1.unwrap_or(classic_order);
    let at = |order: Order| (conversion.delta(order, at_order(rho, order), epsilon), Some(order));
    least([at(best_order(start, objective)), at(start), (classic, Some(classic_order))])
}

/// The largest ρ known to give (ε, δ)-DP, rounded down: the budget of a zCDP filter.
///
/// Classic: `(ε/(√(l+ε) + √l))²` with `l = ln(1/δ)`, the form without a difference of roots. The others: the best
/// `budget(α)/α` over orders. That is the inverse of [`epsilon`]: `ε(α, αρ, δ) ≤ ε` at some order iff `αρ ≤ budget(α)` there.
#[must_use]
pub fn budget(conversion: Conversion, epsilon: Epsilon, delta: Delta) -> Rho {
    if delta == Delta::ZERO {
        return Rho::ZERO;
    }
    if delta == Delta::ONE || epsilon == Epsilon::INFINITE {
        return Rho::from_lower_bound(f64::INFINITY);
    }
    let (e, l) = (Interval::point(epsilon.get()), -Interval::point(delta.get()).ln());
    let classic = (e / ((l + e).sqrt() + l.sqrt())).square().lo();
    if conversion == Conversion::Classic {
        return Rho::from_lower_bound(classic);
    }
    let log_inverse = -ln(delta.get());
    let guess = order_at(0.5 * (ln(log_inverse.max(1e-300)) - ln(classic.max(1e-300))));
    let objective = |x: f64| -conversion.budget_near(order_at(x), epsilon, delta) / order_at(x).get();
    let looser = budget(conversion.start(), epsilon, delta).get();
    let order = best_order(guess, objective);
    let budget = conversion.budget(order, epsilon, delta).unwrap_or(Divergence::ZERO);
    Rho::from_lower_bound((Interval::point(budget.get()) / order.get()).lo().max(looser))
}

/// `D_α ≤ α·ρ`, rounded up.
pub(crate) fn at_order(rho: Rho, order: Order) -> Divergence {
    Divergence::from_upper_bound((Interval::point(rho.get()) * order.get()).hi())
}

/// The least of three bounds, with the order that gives it.
fn least<T: PartialOrd>(bounds: [(T, Option<Order>); 3]) -> (T, Option<Order>) {
    let [first, second, third] = bounds;
    let smaller = |a: (T, Option<Order>), b: (T, Option<Order>)| if b.0 < a.0 { b } else { a };
    smaller(smaller(first, second), third)
}

/// The order `1 + e^x`.
fn order_at(x: f64) -> Order {
    Order::new(1.0 + exp(x.clamp(-30.0, 40.0))).expect("above 1")
}

/// The order that minimises an objective of `x = ln(α−1)`: the best of a coarse grid that reaches from orders near 1 to well beyond
/// the guess, and then the minimum around it. For small ε and large δ the best order is far below the classic one.
fn best_order(guess: Order, objective: impl Fn(f64) -> f64) -> Order {
    let center = ln(guess.get() - 1.0).clamp(-24.0, 34.0);
    order_at(minimize_over_grid(center.min(0.0) - 15.0, center.max(0.0) + 4.0, 1.0, 1e-8, objective))
}

/// The order at which Gaussian noise that uses (ε, δ) up is converted best: a choice, not a bound.
#[must_use]
pub fn order_for_budget(target: Epsilon, delta: Delta) -> Option<Order> {
    epsilon(Conversion::Classic, budget(Conversion::Classic, target, delta), delta).1
}
