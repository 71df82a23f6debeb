//! Binary randomized response.

use super::Family;
use super::pure::{pure_renyi, pure_rho};
use crate::params::{Delta, Epsilon, Order, OutOfDomain, Rho};
use crate::privacy_loss::Pair;
use crate::wire::Number;
use serde::{Deserialize, Serialize};

/// Binary randomized response with parameter ε: the worst of all ε-DP mechanisms, so every bound on them is exact for it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct RandomizedResponse {
    /// ε.
    pub epsilon: Epsilon,
}

impl RandomizedResponse {
    /// The true answer with probability `e^ε/(1 + e^ε)`, else the other.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ε is negative or NaN.
    pub fn new(epsilon: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { epsilon: Epsilon::new(epsilon)? })
    }
}

impl Family for RandomizedResponse {
    /// Exact (T7).
    fn renyi(&self, order: Order) -> f64 {
        pure_renyi(self.epsilon, order)
    }

    fn rho(&self) -> Option<Rho> {
        Some(pure_rho(self.epsilon))
    }

    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        Some((self.epsilon, Delta::ZERO))
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::Response { epsilon: self.epsilon.get(), delta: 0.0 })
    }

    fn is_null(&self) -> bool {
        self.epsilon == Epsilon::ZERO
    }
}

/// An ε.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RandomizedResponseFields {
    /// ε.
    pub epsilon: Number,
}

impl TryFrom<&RandomizedResponseFields> for RandomizedResponse {
    type Error = OutOfDomain;
    fn try_from(fields: &RandomizedResponseFields) -> Result<Self, OutOfDomain> {
        Ok(Self { epsilon: fields.epsilon.charged("epsilon", Epsilon::new, Epsilon::from_decimal)? })
    }
}

impl From<&RandomizedResponse> for RandomizedResponseFields {
    fn from(response: &RandomizedResponse) -> Self {
        Self { epsilon: Number::charge(response.epsilon.get(), response.epsilon.exact()) }
    }
}
