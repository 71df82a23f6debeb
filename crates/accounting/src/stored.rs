//! Filters as they are stored: versioned, plain, and the same bytes after a round trip.
//!
//! What is stored is the rule's parameters (ε, δ, orders, weights), never numbers derived from them, and the exact sums. A
//! filter whose stored sums pass its budget loads and refuses everything.

use crate::cost::{Cost, CostError};
use crate::curve::Orders;
use crate::filter::{AnyRule, Budget, BudgetError, Filter, Rule};
use crate::loss::{LossLaw, NoLaw};
use crate::mechanism::Mechanism as Checked;
use crate::params::{Delta, Epsilon, Neighbors as Relation, OutOfDomain};
use crate::prior::Prior;
use crate::wire::{Mechanism, Neighbors, Number};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};

pub use crate::filter::StoredRule;

/// The format that is written.
pub const VERSION: u32 = 1;

/// A filter as it is stored.
///
/// ```
/// use paygo_accounting::{filter::{AnyRule, Filter, Zcdp}, params::Neighbors, stored::StoredFilter};
/// use paygo_numeric::Amount;
/// let rule = AnyRule::from(Zcdp::with_limit(Amount::ONE, Amount::ZERO)?);
/// let filter = Filter::new(rule, Neighbors::AddRemove);
/// let text = serde_json::to_string(&StoredFilter::from(&filter))?;
/// assert_eq!(Filter::try_from(serde_json::from_str::<StoredFilter>(&text)?)?, filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFilter {
    /// The format's version.
    pub version: u32,
    /// Which datasets are neighbors.
    pub neighbors: Neighbors,
    /// The rule.
    pub rule: StoredRule,
    /// The sum in each lane.
    pub spent: Vec<Decimal>,
    /// The sum of the steps' own δ.
    pub slack_spent: Decimal,
}

/// A budget as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredBudget {
    /// ε, the double that conversions use.
    pub epsilon: f64,
    /// ε, the exact limit of sums of pure ε.
    pub epsilon_limit: Decimal,
    /// δ, all of it.
    pub delta: f64,
    /// The part of δ for the steps' own δ.
    pub slack: Decimal,
}

/// An exact amount, as decimal text of at most 18 places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decimal(String);

impl From<Amount> for Decimal {
    fn from(amount: Amount) -> Self {
        Self(amount.to_string())
    }
}

impl Decimal {
    /// The amount.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the text is not a decimal number, negative, or finer than 18 places.
    pub fn amount(&self, field: &'static str) -> Result<Amount, OutOfDomain> {
        let amount = Amount::from_decimal_down(&self.0).filter(|down| Amount::from_decimal_up(&self.0) == Some(*down));
        amount.ok_or_else(|| OutOfDomain::new(field, &self.0, "a decimal number of at most 18 places"))
    }
}

/// A stored filter that cannot be loaded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// Written by a later paygo.
    #[error("version {given} of a stored filter is not known here; expected {VERSION}")]
    Version {
        /// What was found.
        given: u32,
    },
    /// A parameter outside its domain, or a budget that serves nothing.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The sums are not the rule's.
    #[error("{given} sums were stored; expected {expected}")]
    Sums {
        /// How many were found.
        given: usize,
        /// How many the rule keeps.
        expected: usize,
    },
}

impl From<OutOfDomain> for LoadError {
    fn from(error: OutOfDomain) -> Self {
        Self::Budget(error.into())
    }
}

impl From<&Budget> for StoredBudget {
    fn from(budget: &Budget) -> Self {
        Self {
            epsilon: budget.epsilon().get(),
            epsilon_limit: budget.limit().into(),
            delta: budget.delta().get(),
            slack: budget.slack().into(),
        }
    }
}

impl TryFrom<&StoredBudget> for Budget {
    type Error = OutOfDomain;
    fn try_from(stored: &StoredBudget) -> Result<Self, OutOfDomain> {
        Self::new(Epsilon::new(stored.epsilon)?, Delta::new(stored.delta)?)?
            .with_limit(stored.epsilon_limit.amount("epsilon_limit")?)?
            .with_slack(stored.slack.amount("slack")?)
    }
}

/// Orders and weights, to be stored.
pub(crate) fn stored_prior(prior: &Prior) -> (Vec<Number>, Vec<Decimal>) {
    let orders = prior.orders().as_slice().iter().map(|&order| Number::double(order.get())).collect();
    (orders, prior.weights().iter().map(|&weight| weight.into()).collect())
}

/// Orders and weights that were stored.
pub(crate) fn prior_of(orders: &[Number], weights: &[Decimal]) -> Result<Prior, OutOfDomain> {
    let orders = orders.iter().map(|order| order.nearest("orders")).collect::<Result<Vec<_>, _>>()?;
    let weights = weights.iter().map(|weight| weight.amount("weights")).collect::<Result<_, _>>()?;
    Prior::new(Orders::from_f64(&orders)?, weights)
}

impl From<&Filter<AnyRule>> for StoredFilter {
    fn from(filter: &Filter<AnyRule>) -> Self {
        Self {
            version: VERSION,
            neighbors: filter.neighbors().into(),
            rule: filter.rule().into(),
            spent: filter.sums().lanes().iter().map(|&sum| sum.into()).collect(),
            slack_spent: filter.sums().slack().into(),
        }
    }
}

/// A law of the privacy loss as it is stored: its steps, never numbers that were made from them. A parameter that is a short decimal comes
/// back as that decimal, read to the side on which the law is not smaller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredLossLaw {
    /// Which datasets are neighbors.
    pub neighbors: Neighbors,
    /// All steps together.
    pub steps: Mechanism,
}

impl From<&LossLaw> for StoredLossLaw {
    fn from(law: &LossLaw) -> Self {
        let cost = law.cost();
        Self { neighbors: cost.neighbors().into(), steps: Mechanism::from(&cost.mechanism()) }
    }
}

impl TryFrom<&StoredLossLaw> for LossLaw {
    type Error = NoLaw;
    fn try_from(stored: &StoredLossLaw) -> Result<Self, NoLaw> {
        let steps = Checked::try_from(&stored.steps).map_err(CostError::from)?;
        Self::of(&Cost::of(&steps, stored.neighbors.into())?)
    }
}

impl TryFrom<StoredFilter> for Filter<AnyRule> {
    type Error = LoadError;
    fn try_from(stored: StoredFilter) -> Result<Self, LoadError> {
        if stored.version != VERSION {
            return Err(LoadError::Version { given: stored.version });
        }
        let rule = AnyRule::try_from(&stored.rule)?;
        let lanes = stored.spent.iter().map(|sum| sum.amount("spent")).collect::<Result<Vec<_>, _>>()?;
        let (given, expected) = (lanes.len(), rule.currency().lanes());
        let slack = stored.slack_spent.amount("slack_spent")?;
        Self::resume(rule, Relation::from(stored.neighbors), lanes, slack).ok_or(LoadError::Sums { given, expected })
    }
}
