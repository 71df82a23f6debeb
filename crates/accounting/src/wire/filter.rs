//! The words in which a filter is asked for: on the command line, in a file, or of a ledger.

use super::{Number, Plan, PlanError};
use crate::convert::{Conversion, zcdp};
use crate::curve::Orders;
use crate::filter::{AnyRule, Approximate, Budget, BudgetError, FixedOrder, Gdp, Mixture, Pure, Union, Zcdp};
use crate::params::{Order, OutOfDomain};
use crate::prior::Prior;
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};

/// A filter as it is asked for: a kind and its budget. What is left out is chosen by the budget alone, so that it is fixed in
/// advance.
///
/// ```
/// use paygo_accounting::{filter::Rule, wire::FilterWords};
/// let words: FilterWords = serde_json::from_str(r#"{"epsilon": "1", "delta": "1e-6"}"#)?;
/// assert_eq!(words.rule()?.word(), "mixture");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FilterWords {
    /// Which rule decides.
    #[serde(default)]
    pub kind: FilterKind,
    /// The budget's ε.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Number>,
    /// The budget's δ; the plan's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Number>,
    /// The part of δ for steps with a δ of their own: half of it for `approximate`, else none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slack: Option<Number>,
    /// For `zcdp`: the budget as ρ, instead of ε and δ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<Number>,
    /// For `gdp`: the budget as μ, instead of ε and δ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mu: Option<Number>,
    /// For `fixed-order`: the order; the best for Gaussian noise at the budget unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Number>,
    /// For `mixture` and `union`: the orders; those that suit the budget unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<Number>>,
    /// Those that suit the budget unless given; uniform with `orders`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// For `mixture` and `union`: concentrate the weights on the order that this plan would use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

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

/// The kinds of filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FilterKind {
    /// See [`Mixture`].
    #[default]
    Mixture,
    /// See [`Gdp`].
    Gdp,
    /// See [`Zcdp`].
    Zcdp,
    /// See [`Pure`].
    Pure,
    /// See [`Approximate`].
    Approximate,
    /// See [`FixedOrder`].
    FixedOrder,
    /// See [`Union`].
    Union,
}

/// Words that are not a filter.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FilterError {
    /// Something that goes with other kinds only.
    #[error("{field} does not go with this kind; expected kind {allowed}")]
    OtherKind {
        /// What was given.
        field: &'static str,
        /// Where it belongs.
        allowed: &'static str,
    },
    /// Two ways to say the same.
    #[error("{0}")]
    Twice(&'static str),
    /// Something is missing.
    #[error("{0} is missing; expected {1}")]
    Missing(&'static str, &'static str),
    /// A budget that serves nothing, or a parameter outside its domain.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The plan.
    #[error("plan: {0}")]
    Plan(#[from] PlanError),
}

impl From<OutOfDomain> for FilterError {
    fn from(error: OutOfDomain) -> Self {
        Self::Budget(error.into())
    }
}

impl FilterWords {
    /// The δ in the words: the budget's, or the plan's.
    #[must_use]
    pub fn delta(&self) -> Option<String> {
        let planned = || self.plan.as_ref().and_then(|plan| plan.delta.as_ref());
        self.delta.as_ref().or_else(planned).map(Number::text)
    }

    /// What it promises, with the numbers as they were written: `(1, 1e-6)-DP`, `0.5-zCDP`, `1-GDP`.
    #[must_use]
    pub fn promise(&self) -> String {
        let planned = || self.plan.as_ref().and_then(|plan| plan.epsilon.as_ref());
        let epsilon = || self.epsilon.as_ref().or_else(planned).map(Number::text).unwrap_or_default();
        match (&self.rho, &self.mu, self.delta()) {
            (Some(rho), _, _) => format!("{}-zCDP", rho.text()),
            (None, Some(mu), _) => format!("{}-GDP", mu.text()),
            (None, None, Some(delta)) => format!("({}, {delta})-DP", epsilon()),
            (None, None, None) => format!("{}-DP", epsilon()),
        }
    }

    /// The rule.
    ///
    /// # Errors
    /// [`FilterError`] naming the field, what was given and what is allowed.
    pub fn rule(&self) -> Result<AnyRule, FilterError> {
        self.check_kind()?;
        let slack = |default: Amount| self.slack.as_ref().map_or(Ok(default), |slack| slack.amount_down("slack"));
        match (&self.rho, &self.mu) {
            (Some(_), Some(_)) => return Err(FilterError::Twice("give rho or mu, not both")),
            (None, None) => {}
            (_, _) if self.delta.is_some() || self.epsilon.is_some() => {
                return Err(FilterError::Twice("give rho or mu, or epsilon and delta"));
            }
            (Some(rho), None) => {
                return Ok(Zcdp::with_limit(rho.amount_down("rho")?, slack(Amount::ZERO)?)?.into());
            }
            (None, Some(mu)) => return Ok(Gdp::with_limit(mu.amount_down("mu")?.square_down())?.into()),
        }
        let epsilon = self.epsilon.as_ref().ok_or(FilterError::Missing("epsilon", "epsilon and delta"))?.text();
        let delta = match (self.delta(), self.kind) {
            (Some(delta), _) => delta,
            (None, FilterKind::Pure) => "0".to_owned(),
            (None, _) => return Err(FilterError::Missing("delta", "a delta, or kind pure, which needs none")),
        };
        let half = Amount::from_decimal_down(&delta).unwrap_or(Amount::ZERO).shared_by(2);
        let usual = if self.kind == FilterKind::Approximate { half } else { Amount::ZERO };
        let budget = Budget::from_decimal(&epsilon, &delta)?.with_slack(slack(usual)?)?;
        Ok(match self.kind {
            FilterKind::Mixture => Mixture::over(budget, self.prior(&budget)?)?.into(),
            FilterKind::Union => Union::over(budget, self.prior(&budget)?, Conversion::Exact)?.into(),
            FilterKind::FixedOrder => FixedOrder::new(self.order(&budget)?, budget)?.into(),
            FilterKind::Zcdp => Zcdp::new(budget)?.into(),
            FilterKind::Gdp => Gdp::new(budget)?.into(),
            FilterKind::Pure => Pure::new(budget)?.into(),
            FilterKind::Approximate => Approximate::new(budget)?.into(),
        })
    }

    /// Whether everything that was given goes with the kind.
    fn check_kind(&self) -> Result<(), FilterError> {
        use FilterKind::{Approximate, FixedOrder, Gdp, Mixture, Pure, Union, Zcdp};
        let weighted = "mixture or union";
        let with_slack = "mixture, union, fixed-order, zcdp or approximate";
        let rules = [
            (self.rho.is_some(), "rho", "zcdp", self.kind == Zcdp),
            (self.mu.is_some(), "mu", "gdp", self.kind == Gdp),
            (self.order.is_some(), "order", "fixed-order", self.kind == FixedOrder),
            (self.plan.is_some(), "plan", weighted, matches!(self.kind, Mixture | Union)),
            (self.orders.is_some(), "orders", weighted, matches!(self.kind, Mixture | Union)),
            (self.weights.is_some(), "weights", weighted, matches!(self.kind, Mixture | Union)),
            (
                self.slack.is_some(),
                "slack",
                with_slack,
                match self.kind {
                    Mixture | Union | FixedOrder | Zcdp | Approximate => true,
                    Gdp | Pure => false,
                },
            ),
        ];
        match rules.into_iter().find(|(given, .., fits)| *given && !fits) {
            Some((_, field, allowed, _)) => Err(FilterError::OtherKind { field, allowed }),
            None if self.plan.is_some() && (self.orders.is_some() || self.weights.is_some()) => {
                Err(FilterError::Twice("give a plan, or orders and weights"))
            }
            None => Ok(()),
        }
    }

    fn prior(&self, budget: &Budget) -> Result<Prior, FilterError> {
        if let Some(plan) = &self.plan {
            return Ok(Prior::for_plan(&plan.cost()?, budget.loss_delta()));
        }
        let orders = match &self.orders {
            Some(orders) => {
                let orders = orders.iter().map(|order| chosen_order(order, "orders")).collect::<Result<Vec<_>, _>>()?;
                Some(Orders::from_f64(&orders)?)
            }
            None => None,
        };
        let usual = || Prior::log_spaced().orders().clone();
        Ok(match (&self.weights, orders) {
            (None, None) => Prior::for_budget(budget.epsilon(), budget.loss_delta()),
            (None, Some(orders)) => Prior::uniform(orders)?,
            (Some(Weights::Word(WeightWord::Uniform)), orders) => Prior::uniform(orders.unwrap_or_else(usual))?,
            (Some(Weights::Each(weights)), orders) => {
                let weights = weights.iter().map(|weight| weight.amount_down("weights")).collect::<Result<_, _>>()?;
                Prior::new(orders.unwrap_or_else(usual), weights)?
            }
        })
    }

    fn order(&self, budget: &Budget) -> Result<Order, FilterError> {
        match &self.order {
            Some(order) => Ok(Order::new(chosen_order(order, "order")?)?),
            None => {
                let best = zcdp::order_for_budget(budget.epsilon(), budget.loss_delta());
                best.ok_or(FilterError::Missing("order", "one; none suits this budget by itself"))
            }
        }
    }
}

/// An order as it is written, number or text, rounded down.
///
/// ROUNDING: a filter may choose any order, and prices, budget and promise are all made at the double it chose. Down, because an
/// explicit Rényi curve is read down too: its value at the order written is known at the double below, and not at the one above.
fn chosen_order(order: &Number, field: &'static str) -> Result<f64, OutOfDomain> {
    Number::Decimal(order.text()).down(field)
}
