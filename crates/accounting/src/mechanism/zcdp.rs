//! Anything ρ-zCDP.

use super::Family;
use crate::params::{Order, OutOfDomain, Rho};
use crate::wire::Number;
use paygo_numeric::Interval;
use serde::{Deserialize, Serialize};

/// Anything ρ-zCDP: `D_α ≤ α·ρ` at every order (T8).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Zcdp {
    /// ρ.
    pub rho: Rho,
}

impl Zcdp {
    /// Anything ρ-zCDP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ρ is negative or NaN.
    pub fn new(rho: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { rho: Rho::new(rho)? })
    }
}

impl Family for Zcdp {
    fn renyi(&self, order: Order) -> f64 {
        zcdp_renyi(self.rho, order)
    }

    fn rho(&self) -> Option<Rho> {
        Some(self.rho)
    }

    fn is_null(&self) -> bool {
        self.rho == Rho::ZERO
    }
}

/// A ρ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ZcdpFields {
    /// ρ.
    pub rho: Number,
}

impl TryFrom<&ZcdpFields> for Zcdp {
    type Error = OutOfDomain;
    fn try_from(fields: &ZcdpFields) -> Result<Self, OutOfDomain> {
        Ok(Self { rho: fields.rho.charged("rho", Rho::new, Rho::from_decimal)? })
    }
}

impl From<&Zcdp> for ZcdpFields {
    fn from(zcdp: &Zcdp) -> Self {
        Self { rho: Number::charge(zcdp.rho.get(), zcdp.rho.exact()) }
    }
}

/// `α·ρ`, rounded up.
pub(super) fn zcdp_renyi(rho: Rho, order: Order) -> f64 {
    (Interval::point(rho.get()) * order.get()).hi()
}
