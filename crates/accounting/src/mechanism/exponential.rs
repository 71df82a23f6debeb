//! The exponential mechanism.

use super::Family;
use super::one_number::one_number;
use super::pure::pure_renyi;
use super::zcdp::zcdp_renyi;
use crate::loss::Pair;
use crate::params::{Delta, Divergence, Epsilon, Neighbors, Order, Rho};
use paygo_numeric::Interval;

one_number! {
    /// The exponential mechanism with parameter ε: ε-DP, and of range ε.
    Exponential, ExponentialFields, epsilon: Epsilon
}

impl Exponential {
    /// Its range is at most ε, hence it is ε²/8-zCDP (E17), rounded up.
    ///
    /// Source: Cesar and Rogers, *Bounding, Concentrating, and Truncating*, arXiv:2004.07223, Lemma 3.2, for the bounded
    /// range of Durfee and Rogers, arXiv:1905.04273.
    fn bounded_range_rho(&self) -> Rho {
        Rho::from_upper_bound((Interval::point(self.epsilon.get()).square() / 8.0).hi())
    }
}

impl Family for Exponential {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    fn renyi(&self, order: Order) -> Divergence {
        pure_renyi(self.epsilon, order).least(zcdp_renyi(self.bounded_range_rho(), order))
    }

    fn rho(&self) -> Option<Rho> {
        Some(self.bounded_range_rho())
    }

    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        Some((self.epsilon, Delta::ZERO))
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::BoundedRange { epsilon: self.epsilon.get() })
    }

    fn bounded_range(&self) -> Option<Epsilon> {
        Some(self.epsilon)
    }

    fn is_null(&self) -> bool {
        self.epsilon == Epsilon::ZERO
    }
}
