//! The words in which a filter is asked for: on the command line, in a file, or of a ledger.

use super::{Number, OrderWords, Plan, PlanError, Weights};
use crate::filter::{AnyRule, Budget, BudgetError, FilterKind, kind_names};
use crate::params::OutOfDomain;
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};

/// A filter as it is asked for: a kind and its budget. What is left out is chosen by the budget alone, so that it is fixed in
/// advance.
///
/// ```
/// use paygo_accounting::{filter::Rule, wire::FilterWords};
/// let words: FilterWords = serde_json::from_str(r#"{"epsilon": "1", "delta": "1e-6"}"#)?;
/// assert_eq!(words.rule()?.word(), "clock");
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
    /// What will probably be asked. A `clock` then starts with these steps; `mixture` and `union` concentrate their weights on the order that suits
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// For `clock` with a plan: the share of the budget that is kept for what is not in the plan, at least. What the plan does not need is added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Number>,
}

/// Words that are not a filter or an odometer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FilterError {
    /// No such kind.
    #[error("{given} is no kind that is known; expected {known}")]
    UnknownKind {
        /// What was given.
        given: String,
        /// The kinds there are.
        known: String,
    },
    /// Something that goes with other kinds only.
    #[error("{field} does not go with this kind; expected kind {allowed}")]
    OtherKind {
        /// What was given.
        field: &'static str,
        /// Where it belongs.
        allowed: String,
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

    /// What it promises, with the numbers as they were written: `(1, 1e-6)-DP`, `0.5-zCDP`, `1e-7-approximate 0.5-zCDP`, `1-GDP`.
    #[must_use]
    pub fn promise(&self) -> String {
        let planned = || self.plan.as_ref().and_then(|plan| plan.epsilon.as_ref());
        let epsilon = || self.epsilon.as_ref().or_else(planned).map(Number::text).unwrap_or_default();
        match (&self.rho, &self.mu, self.delta()) {
            (Some(rho), _, _) => {
                let aside = self.slack.as_ref().filter(|slack| slack.amount_down("slack") != Ok(Amount::ZERO));
                let approximate = aside.map(|slack| format!("{}-approximate ", slack.text())).unwrap_or_default();
                format!("{approximate}{}-zCDP", rho.text())
            }
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
        self.check()?;
        self.kind.rule(self)
    }

    /// Whether everything that was given goes with the kind and with each other.
    ///
    /// # Errors
    /// [`FilterError`] naming the field, what was given and what is allowed.
    pub fn check(&self) -> Result<(), FilterError> {
        let given = [
            (self.rho.is_some(), "rho"),
            (self.mu.is_some(), "mu"),
            (self.order.is_some(), "order"),
            (self.plan.is_some(), "plan"),
            (self.orders.is_some(), "orders"),
            (self.weights.is_some(), "weights"),
            (self.slack.is_some(), "slack"),
            (self.reserve.is_some(), "reserve"),
        ];
        if let Some((_, field)) = given.into_iter().find(|(given, field)| *given && !self.kind.takes(field)) {
            return Err(FilterError::OtherKind { field, allowed: kind_names(|kind| kind.takes(field)) });
        }
        if (self.rho.is_some() || self.mu.is_some()) && (self.delta.is_some() || self.epsilon.is_some()) {
            return Err(FilterError::Twice("give rho or mu, or epsilon and delta"));
        }
        if self.reserve.is_some() && self.plan.is_none() {
            return Err(FilterError::Missing("plan", "a plan, beside which there can be a reserve"));
        }
        self.order_words().check()
    }

    /// ε and δ, and the part of δ that is set aside: as asked for, or the usual share of δ.
    pub(crate) fn budget(&self, usual_slack: impl Fn(Amount) -> Amount) -> Result<Budget, FilterError> {
        let epsilon = self.epsilon()?;
        let delta = self.delta().ok_or(FilterError::Missing("delta", "a delta, or kind pure, which needs none"))?;
        let whole = Amount::from_decimal_down(&delta).unwrap_or(Amount::ZERO);
        Ok(Budget::from_decimal(&epsilon, &delta)?.with_slack(self.slack(usual_slack(whole))?)?)
    }

    /// ε as it was written.
    pub(crate) fn epsilon(&self) -> Result<String, FilterError> {
        self.epsilon.as_ref().map(Number::text).ok_or(FilterError::Missing("epsilon", "epsilon and delta"))
    }

    /// The part of δ that is set aside: as asked for, or the usual.
    pub(crate) fn slack(&self, usual: Amount) -> Result<Amount, FilterError> {
        Ok(self.slack.as_ref().map_or(Ok(usual), |slack| slack.amount_down("slack"))?)
    }

    /// A changed budget: ε and δ as given, the same part of δ set aside, but never more than half of it.
    pub(crate) fn changed_budget(&self, slack: Amount) -> Result<Budget, FilterError> {
        let limited = |whole: Amount| if slack == Amount::ZERO { slack } else { slack.min(whole.shared_by(2)) };
        self.budget(limited)
    }

    /// What is said about orders.
    pub(crate) fn order_words(&self) -> OrderWords<'_> {
        OrderWords {
            order: self.order.as_ref(),
            orders: self.orders.as_deref(),
            weights: self.weights.as_ref(),
            plan: self.plan.as_ref(),
        }
    }
}
