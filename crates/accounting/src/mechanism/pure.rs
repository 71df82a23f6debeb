//! Anything ε-DP, and the curve that bounds it.

use super::Family;
use super::one_number::one_number;
use crate::loss::Pair;
use crate::params::{Delta, Divergence, Epsilon, Neighbors, Order, Rho};
use paygo_numeric::Interval;

one_number! {
    /// Anything ε-DP: it costs what randomized response with the same ε costs, the worst of them.
    Pure, PureFields, epsilon: Epsilon
}

impl Family for Pure {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    /// An upper bound by data processing (T7).
    fn renyi(&self, order: Order) -> Divergence {
        pure_renyi(self.epsilon, order)
    }

    fn rho(&self) -> Option<Rho> {
        Some(pure_rho(self.epsilon))
    }

    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        Some((self.epsilon, Delta::ZERO))
    }

    fn attains_its_pair(&self) -> bool {
        true
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::Response { epsilon: self.epsilon.get(), delta: 0.0 })
    }

    fn is_null(&self) -> bool {
        self.epsilon == Epsilon::ZERO
    }
}

/// The Rényi curve of binary randomized response, the worst of all ε-DP pairs (T7), rounded up.
///
/// `D_α = ε + (log1p(e^{−(2α−1)ε}) − log1p(e^{−ε}))/(α−1)`. Source: Bun and Steinke, arXiv:1605.02065, Proposition 3.3.
/// Exact for randomized response; for other ε-DP mechanisms an upper bound by data processing.
pub(super) fn pure_renyi(epsilon: Epsilon, order: Order) -> Divergence {
    let (e, a) = (epsilon.get(), order.get());
    if e == 0.0 || e == f64::INFINITY || a == f64::INFINITY {
        return Divergence::from_upper_bound(e);
    }
    let (eps, b) = (Interval::point(e), Interval::point(a) - 1.0);
    let value = if e * a < 0.5 {
        // Small losses: (α−1)D = ln(cosh((α−½)ε)/cosh(ε/2)) = log1p(2·sinh(αε/2)·sinh((α−1)ε/2)/cosh(ε/2)).
        let half = eps * 0.5;
        (sinh(half * a) * sinh(half * b) * 2.0 / cosh(half)).ln_1p() / b
    } else {
        let two_a_minus_1 = b * 2.0 + 1.0;
        eps + ((-(two_a_minus_1 * eps)).exp().ln_1p() - (-eps).exp().ln_1p()) / b
    };
    Divergence::from_upper_bound(value.hi().min(e))
}

/// ε-DP implies `ε·tanh(ε/2)`-zCDP (T7), rounded up; at most `ε²/2` and at most `ε`.
pub(super) fn pure_rho(epsilon: Epsilon) -> Rho {
    let e = Interval::point(epsilon.get());
    if epsilon.get() == f64::INFINITY {
        return Rho::from_upper_bound(f64::INFINITY);
    }
    Rho::from_upper_bound((e * (e * 0.5).tanh()).hi())
}

/// `sinh x = expm1(x)·(1 + e^{−x})/2` for `x ≥ 0`: no cancellation.
fn sinh(x: Interval) -> Interval {
    x.exp_m1() * ((-x).exp() + 1.0) * 0.5
}

/// `cosh x`.
fn cosh(x: Interval) -> Interval {
    (x.exp() + (-x).exp()) * 0.5
}
