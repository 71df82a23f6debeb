//! An explicit Rényi curve.

use super::Family;
use crate::curve::{Orders, RenyiCurve};
use crate::params::{Divergence, Neighbors, Order, OutOfDomain};
use crate::wire::Number;
use serde::{Deserialize, Serialize};

/// Anything with this Rényi curve, both directions; chords between its orders (T4), +∞ above the last.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Renyi {
    /// The curve.
    pub curve: RenyiCurve,
}

impl Family for Renyi {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    fn renyi(&self, order: Order) -> Divergence {
        self.curve.at(order)
    }

    fn is_smooth(&self) -> bool {
        false
    }

    fn own_orders(&self) -> &[Order] {
        self.curve.orders().as_slice()
    }
}

/// Orders and values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RenyiFields {
    /// Strictly increasing.
    pub orders: Vec<Number>,
    /// One for each order.
    pub values: Vec<Number>,
}

impl TryFrom<&RenyiFields> for Renyi {
    type Error = OutOfDomain;
    /// ROUNDING: values up. Orders down: the divergence rises with the order, so a value stays a bound at a smaller one.
    fn try_from(fields: &RenyiFields) -> Result<Self, OutOfDomain> {
        let orders = fields.orders.iter().map(|n| n.down("orders")).collect::<Result<Vec<_>, _>>()?;
        let values = fields.values.iter().map(|n| n.up("values")).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { curve: RenyiCurve::new(Orders::from_f64(&orders)?, values)? })
    }
}

impl From<&Renyi> for RenyiFields {
    fn from(renyi: &Renyi) -> Self {
        let (orders, values) = renyi
            .curve
            .points()
            .map(|(order, value)| (Number::double(order.get()), Number::double(value.get())))
            .unzip();
        Self { orders, values }
    }
}
