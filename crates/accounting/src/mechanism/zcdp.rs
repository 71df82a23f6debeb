//! Anything ρ-zCDP.

use super::Family;
use super::one_number::one_number;
use crate::params::{Divergence, Neighbors, Order, Rho};
use paygo_numeric::Interval;

one_number! {
    /// Anything ρ-zCDP: `D_α ≤ α·ρ` at every order (T8).
    Zcdp, ZcdpFields, rho: Rho
}

impl Family for Zcdp {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    fn renyi(&self, order: Order) -> Divergence {
        zcdp_renyi(self.rho, order)
    }

    fn rho(&self) -> Option<Rho> {
        Some(self.rho)
    }

    fn is_null(&self) -> bool {
        self.rho == Rho::ZERO
    }
}

/// `α·ρ`, rounded up.
pub(super) fn zcdp_renyi(rho: Rho, order: Order) -> Divergence {
    Divergence::from_upper_bound((Interval::point(rho.get()) * order.get()).hi())
}
