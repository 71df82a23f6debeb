//! The exponential mechanism.

use super::Family;
use super::pure::pure_renyi;
use super::zcdp::zcdp_renyi;
use crate::params::{Delta, Epsilon, Order, OutOfDomain, Rho};
use crate::privacy_loss::Pair;
use crate::wire::Number;
use paygo_numeric::Interval;
use serde::{Deserialize, Serialize};

/// The exponential mechanism with parameter ε: ε-DP, and of range ε.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Exponential {
    /// ε.
    pub epsilon: Epsilon,
}

impl Exponential {
    /// An option with probability proportional to `e^{ε·score/2}`, scores of sensitivity 1.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ε is negative or NaN.
    pub fn new(epsilon: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { epsilon: Epsilon::new(epsilon)? })
    }
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
    fn renyi(&self, order: Order) -> f64 {
        pure_renyi(self.epsilon, order).min(zcdp_renyi(self.bounded_range_rho(), order))
    }

    fn rho(&self) -> Option<Rho> {
        Some(self.bounded_range_rho())
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
pub struct ExponentialFields {
    /// ε.
    pub epsilon: Number,
}

impl TryFrom<&ExponentialFields> for Exponential {
    type Error = OutOfDomain;
    fn try_from(fields: &ExponentialFields) -> Result<Self, OutOfDomain> {
        Ok(Self { epsilon: fields.epsilon.charged("epsilon", Epsilon::new, Epsilon::from_decimal)? })
    }
}

impl From<&Exponential> for ExponentialFields {
    fn from(exponential: &Exponential) -> Self {
        Self { epsilon: Number::charge(exponential.epsilon.get(), exponential.epsilon.exact()) }
    }
}
