//! Orders and their weights, as they are asked for: what filters and odometers share.

use super::{FilterError, Number, Plan};
use crate::convert::zcdp;
use crate::curve::Orders;
use crate::params::{Delta, Epsilon, Order};
use crate::prior::Prior;
use serde::{Deserialize, Serialize};

/// How orders are weighed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "\"uniform\", or one weight for each finite order")]
pub enum Weights {
    /// By a word.
    Word(WeightWord),
    /// One for each finite order, together at most 1.
    Each(Vec<Number>),
}

/// A word for weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WeightWord {
    /// The same for every order.
    Uniform,
}

/// What was said about orders.
///
/// ROUNDING: down. A filter or an odometer may choose any order, and prices, budget and promise are all made at the double it chose.
/// Down, because an explicit Rényi curve is read down too: its value at the order written is known at the double below, and not at the
/// one above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderWords<'a> {
    pub(crate) order: Option<&'a Number>,
    pub(crate) orders: Option<&'a [Number]>,
    pub(crate) weights: Option<&'a Weights>,
    pub(crate) plan: Option<&'a Plan>,
}

impl OrderWords<'_> {
    /// Whether what was said goes together.
    pub(crate) fn check(&self) -> Result<(), FilterError> {
        if self.plan.is_some() && (self.orders.is_some() || self.weights.is_some()) {
            return Err(FilterError::Twice("give a plan, or orders and weights"));
        }
        Ok(())
    }

    /// The orders and weights: those that suit the plan, as asked for, or the usual ones.
    pub(crate) fn prior(&self, delta: Delta, usual: impl Fn() -> Prior) -> Result<Prior, FilterError> {
        if let Some(plan) = self.plan {
            return Ok(Prior::for_plan(&plan.cost()?, delta));
        }
        let some = || Ok::<_, FilterError>(self.orders()?.unwrap_or_else(|| Prior::log_spaced().orders().clone()));
        Ok(match (self.weights, self.orders) {
            (None, None) => usual(),
            (None | Some(Weights::Word(WeightWord::Uniform)), _) => Prior::uniform(some()?)?,
            (Some(Weights::Each(weights)), _) => {
                let weights = weights.iter().map(|weight| weight.amount_down("weights")).collect::<Result<_, _>>()?;
                Prior::new(some()?, weights)?
            }
        })
    }

    /// The orders asked for.
    pub(crate) fn orders(&self) -> Result<Option<Orders>, FilterError> {
        let Some(orders) = self.orders else { return Ok(None) };
        let orders = orders.iter().map(|order| order.down("orders")).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Orders::from_f64(&orders)?))
    }

    /// The order asked for, or the one at which Gaussian noise is converted best at a target.
    pub(crate) fn order(&self, epsilon: Epsilon, delta: Delta) -> Result<Order, FilterError> {
        match self.order {
            Some(order) => Ok(Order::new(order.down("order")?)?),
            None => zcdp::order_for_budget(epsilon, delta)
                .ok_or(FilterError::Missing("order", "one; none suits this target by itself")),
        }
    }
}
