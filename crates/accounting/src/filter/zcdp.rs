//! The zCDP filter, also for steps that are zCDP only up to a δ.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::Currency;
use crate::convert::{Conversion, zcdp};
use crate::params::{Delta, Epsilon, OutOfDomain, Rho};
use crate::stored::{Decimal, LoadError};
use crate::wire::{FilterError, FilterWords};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Admits while the sum of the ρ is within a budget, and the sum of the steps' own δ within the slack.
///
/// # Theorem
/// If `Σρ ≤ ρ` with every admitted request included, the view is ρ-zCDP under full adaptivity: the rule does not depend
/// on an order, so it is a fixed-order filter at every order at once. Source: Feldman and Zrnic, Remark 4.4 (T8). Steps
/// that are δ-approximately zCDP, among them every (ε, δ)-DP step with `ρ = ε·tanh(ε/2)` (T7, Part 2.3), are allowed up
/// to `Σδ ≤ δ″`; the view is then (ε, δ″ + δ(ε; ρ))-DP (T46; Whitehouse, Ramdas, Rogers, Wu 2023).
///
/// # Preconditions
/// Every mechanism has a ρ: noise without sampling, or sampling whose amplification is given up (T27).
///
/// # Soundness
/// Sums are exact; a budget made from (ε, δ) is rounded down.
///
/// # Tightness
/// For Gaussian noise [`super::Gdp`] admits more at the same (ε, δ).
#[derive(Clone, Debug, PartialEq)]
pub struct Zcdp {
    limit: Amount,
    slack: Amount,
    currency: Arc<Currency>,
}

impl Zcdp {
    /// The largest ρ that gives (ε, δ′)-DP by the exact conversion.
    ///
    /// # Errors
    /// [`BudgetError`] when no ρ above 0 does.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        Self::by(Conversion::Exact, budget)
    }

    /// The same by a given conversion.
    ///
    /// # Errors
    /// [`BudgetError`] when no ρ above 0 does.
    pub fn by(conversion: Conversion, budget: Budget) -> Result<Self, BudgetError> {
        let (epsilon, delta) = (budget.epsilon(), budget.loss_delta());
        let limit = Amount::from_f64_down(zcdp::budget(conversion, epsilon, delta).get()).unwrap_or(Amount::ZERO);
        if limit == Amount::ZERO {
            let least = zcdp::epsilon(conversion, Rho::from_upper_bound(Amount::UNIT.to_f64_up()), delta).0.get();
            return Err(BudgetError::Unservable { epsilon, delta, least });
        }
        Self::with_limit(limit, budget.slack())
    }

    /// A given ρ, and a given sum of the steps' own δ.
    ///
    /// # Errors
    /// [`BudgetError`] when ρ is infinite or the slack is more than 1.
    pub fn with_limit(limit: Amount, slack: Amount) -> Result<Self, BudgetError> {
        if limit.is_infinite() {
            return Err(OutOfDomain::new("rho", limit, "0 <= rho < inf").into());
        }
        if slack > Amount::ONE {
            return Err(OutOfDomain::new("slack", slack, "0 <= slack <= 1").into());
        }
        Ok(Self { limit, slack, currency: Arc::new(Currency::Rho) })
    }

    /// The budget.
    #[must_use]
    pub const fn limit(&self) -> Amount {
        self.limit
    }
}

impl Rule for Zcdp {
    fn word(&self) -> &'static str {
        "zcdp"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        self.slack
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        lanes[0] <= self.limit
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        vec![Meter { name: "rho", spent: lanes[0], budget: self.limit }]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        let rho = Rho::from_upper_bound(self.limit.to_f64_up());
        let rest = delta.less(self.slack.to_f64_up());
        rest.map_or(Epsilon::INFINITE, |rest| zcdp::epsilon(Conversion::Exact, rho, rest).0)
    }
}

impl Kind for Zcdp {
    const TAKES: &'static [&'static str] = &["slack", "rho"];
    type Stored = StoredZcdp;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        match &words.rho {
            Some(rho) => Ok(Self::with_limit(rho.amount_down("rho")?, words.slack(Amount::ZERO)?)?),
            None => Ok(Self::new(words.budget(|_| Amount::ZERO)?)?),
        }
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        match &words.rho {
            Some(rho) => Ok(Self::with_limit(rho.amount_down("rho")?, self.slack)?),
            None => Ok(Self::new(words.changed_budget(self.slack)?)?),
        }
    }

    fn to_stored(&self) -> StoredZcdp {
        StoredZcdp { limit: self.limit.into(), slack: self.slack.into() }
    }

    fn from_stored(stored: &StoredZcdp) -> Result<Self, LoadError> {
        Ok(Self::with_limit(stored.limit.amount("limit")?, stored.slack.amount("slack")?)?)
    }
}

/// A ρ as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredZcdp {
    /// ρ.
    pub limit: Decimal,
    /// For the steps' own δ.
    pub slack: Decimal,
}
