//! The filter for pure-DP steps.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::Currency;
use crate::convert::{Conversion, zcdp};
use crate::params::{Delta, Epsilon, OutOfDomain};
use crate::stored::{LoadError, StoredBudget};
use crate::wire::{FilterError, FilterWords};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Admits pure-DP steps while their ε add up to at most ε, or their ρ to at most what gives (ε, δ).
///
/// # Theorem
/// A step that is εₙ-DP given everything before is `εₙ·tanh(εₙ/2)`-zCDP (T7), so `Σ εₙ·tanh(εₙ/2) ≤ ρ(ε, δ)` keeps the view
/// (ε, δ)-DP under full adaptivity (Feldman and Zrnic, Theorem 4.7, with a smaller cost; T21). And `Σεₙ ≤ ε` keeps the loss
/// at or below ε with certainty (T2). Either will do at the end, at no extra δ: where the second holds, nothing is lost.
///
/// # Preconditions
/// Every mechanism has a pure ε of its own. With δ = 0 only the second rule is left.
///
/// # Soundness
/// Sums are exact; ρ(ε, δ) is rounded down.
///
/// # Tightness
/// At least \[W\]'s filter with δₙ = 0 and \[FZ\]'s, which have εₙ²/2 and the classic conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct Pure {
    budget: Budget,
    rho: Amount,
    currency: Arc<Currency>,
}

impl Pure {
    /// A filter for (ε, δ); δ may be 0.
    ///
    /// # Errors
    /// [`BudgetError`] when part of δ is set aside (see [`super::Approximate`]), or nothing could ever be admitted.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        if budget.slack() > Amount::ZERO {
            let allowed = "0: pure steps have no delta of their own; the approximate filter takes steps that do";
            return Err(OutOfDomain::new("slack", budget.slack(), allowed).into());
        }
        Self::with_slack(budget)
    }

    /// The same with part of δ set aside for the steps' own δ.
    pub(super) fn with_slack(budget: Budget) -> Result<Self, BudgetError> {
        let rho = zcdp::budget(Conversion::Exact, budget.epsilon(), budget.loss_delta());
        let rho = Amount::from_f64_down(rho.get()).unwrap_or(Amount::ZERO);
        if budget.limit() == Amount::ZERO && rho == Amount::ZERO {
            let (epsilon, delta) = (budget.epsilon(), budget.loss_delta());
            return Err(BudgetError::Unservable { epsilon, delta, least: Amount::UNIT.to_f64_up() });
        }
        Ok(Self { budget, rho, currency: Arc::new(Currency::Pure) })
    }
}

impl Rule for Pure {
    fn word(&self) -> &'static str {
        "pure"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        self.budget.slack()
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        lanes[0] <= self.budget.limit() || lanes[1] <= self.rho
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        let mut meters = vec![Meter { name: "epsilon", spent: lanes[0], budget: self.budget.limit() }];
        if self.rho > Amount::ZERO {
            meters.push(Meter { name: "rho", spent: lanes[1], budget: self.rho });
        }
        meters
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        self.budget.promise(delta)
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }
}

impl Kind for Pure {
    const TAKES: &'static [&'static str] = &[];
    type Stored = StoredPure;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        let delta = words.delta().unwrap_or_else(|| "0".to_owned());
        Ok(Self::new(Budget::from_decimal(&words.epsilon()?, &delta)?)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        Self::from_words(words)
    }

    fn to_stored(&self) -> StoredPure {
        StoredPure { budget: (&self.budget).into() }
    }

    fn from_stored(stored: &StoredPure) -> Result<Self, LoadError> {
        Ok(Self::new((&stored.budget).try_into()?)?)
    }
}

/// A budget as it is stored, for pure and for approximate steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredPure {
    /// ε and δ.
    pub budget: StoredBudget,
}
