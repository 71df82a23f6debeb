//! Anything μ-GDP.

use super::Family;
use super::gaussian::gdp_rho;
use super::one_number::one_number;
use super::zcdp::zcdp_renyi;
use crate::loss::Pair;
use crate::params::{Divergence, Mu, Neighbors, Order, Rho};
use paygo_numeric::Interval;

one_number! {
    /// Anything μ-GDP: no easier to tell apart than `N(0,1)` from `N(μ,1)`.
    Gdp, GdpFields, mu: Mu
}

impl Family for Gdp {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    fn renyi(&self, order: Order) -> Divergence {
        zcdp_renyi(gdp_rho(self.mu), order)
    }

    fn rho(&self) -> Option<Rho> {
        Some(gdp_rho(self.mu))
    }

    fn mu(&self) -> Option<Mu> {
        Some(self.mu)
    }

    /// `N(0,1)` against `N(μ,1)`. ROUNDING: the noise 1/μ down.
    fn pair(&self) -> Option<Pair> {
        (self.mu.get() > 0.0).then(|| Pair::Sampled { q: 1.0, s: (Interval::ONE / self.mu.get()).lo() })
    }

    fn is_null(&self) -> bool {
        self.mu.get() == 0.0
    }
}
