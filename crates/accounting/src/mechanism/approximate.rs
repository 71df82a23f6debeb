//! Anything (ε, δ)-DP.

use super::Family;
use super::pure::{pure_renyi, pure_rho};
use crate::loss::Pair;
use crate::params::{Delta, Divergence, Epsilon, Neighbors, Order, OutOfDomain, Rho};
use crate::wire::Number;
use serde::{Deserialize, Serialize};

/// Anything (ε, δ)-DP: "with probability δ reveal everything, else randomized response with ε" is the worst of them (Part 2.3).
/// So outside an event of probability δ it costs what an ε-DP mechanism costs.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Approximate {
    /// ε.
    pub epsilon: Epsilon,
    /// δ.
    pub delta: Delta,
}

impl Approximate {
    /// Anything (ε, δ)-DP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ε is negative or NaN, or δ is not between 0 and 1.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? })
    }
}

impl Family for Approximate {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    fn renyi(&self, order: Order) -> Divergence {
        pure_renyi(self.epsilon, order)
    }

    fn rho(&self) -> Option<Rho> {
        Some(pure_rho(self.epsilon))
    }

    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        Some((self.epsilon, self.delta))
    }

    fn attains_its_pair(&self) -> bool {
        true
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::Response { epsilon: self.epsilon.get(), delta: self.delta.get() })
    }

    fn is_null(&self) -> bool {
        self.epsilon == Epsilon::ZERO
    }
}

/// An ε and a δ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApproximateFields {
    /// ε.
    pub epsilon: Number,
    /// δ.
    pub delta: Number,
}

impl TryFrom<&ApproximateFields> for Approximate {
    type Error = OutOfDomain;
    fn try_from(fields: &ApproximateFields) -> Result<Self, OutOfDomain> {
        Ok(Self {
            epsilon: fields.epsilon.charged("epsilon", Epsilon::new, Epsilon::from_decimal)?,
            delta: fields.delta.charged("delta", Delta::new, Delta::from_decimal)?,
        })
    }
}

impl From<&Approximate> for ApproximateFields {
    fn from(approximate: &Approximate) -> Self {
        let Approximate { epsilon, delta } = approximate;
        Self {
            epsilon: Number::charge(epsilon.get(), epsilon.exact()),
            delta: Number::charge(delta.get(), delta.exact()),
        }
    }
}
