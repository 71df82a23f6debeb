//! Anything μ-GDP.

use super::Family;
use super::gaussian::gdp_rho;
use super::zcdp::zcdp_renyi;
use crate::params::{Mu, Order, OutOfDomain, Rho};
use crate::privacy_loss::Pair;
use crate::wire::Number;
use paygo_numeric::Interval;
use serde::{Deserialize, Serialize};

/// Anything μ-GDP: no easier to tell apart than `N(0,1)` from `N(μ,1)`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Gdp {
    /// μ.
    pub mu: Mu,
}

impl Gdp {
    /// Anything μ-GDP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when μ is negative or NaN.
    pub fn new(mu: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { mu: Mu::new(mu)? })
    }
}

impl Family for Gdp {
    fn renyi(&self, order: Order) -> f64 {
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

/// A μ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GdpFields {
    /// μ.
    pub mu: Number,
}

impl TryFrom<&GdpFields> for Gdp {
    type Error = OutOfDomain;
    fn try_from(fields: &GdpFields) -> Result<Self, OutOfDomain> {
        Ok(Self { mu: fields.mu.charged("mu", Mu::new, Mu::from_decimal)? })
    }
}

impl From<&Gdp> for GdpFields {
    fn from(gdp: &Gdp) -> Self {
        Self { mu: Number::charge(gdp.mu.get(), gdp.mu.exact()) }
    }
}
