//! Binary randomized response.

use super::one_number::one_number;
use super::{Family, Pure};
use crate::loss::Pair;
use crate::params::{Delta, Divergence, Epsilon, Neighbors, Order, Rho};

one_number! {
    /// Binary randomized response with parameter ε: the worst of all ε-DP mechanisms, so every bound on them is exact for it.
    RandomizedResponse, RandomizedResponseFields, epsilon: Epsilon
}

impl RandomizedResponse {
    const fn as_pure(self) -> Pure {
        Pure { epsilon: self.epsilon }
    }
}

/// What bounds everything ε-DP is exact for it (T7).
impl Family for RandomizedResponse {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    fn renyi(&self, order: Order) -> Divergence {
        self.as_pure().renyi(order)
    }

    fn rho(&self) -> Option<Rho> {
        self.as_pure().rho()
    }

    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        self.as_pure().approximate()
    }

    fn attains_its_pair(&self) -> bool {
        true
    }

    fn pair(&self) -> Option<Pair> {
        self.as_pure().pair()
    }

    fn is_null(&self) -> bool {
        self.as_pure().is_null()
    }
}
