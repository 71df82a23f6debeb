//! The GDP filter: exact for Gaussian noise.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::Currency;
use crate::convert::gaussian;
use crate::params::{Delta, Epsilon, Mu, OutOfDomain};
use crate::stored::{Decimal, LoadError};
use crate::wire::{FilterError, FilterWords};
use paygo_numeric::{Amount, Interval};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Admits while the sum of the μ² is within a budget.
///
/// # Theorem
/// If every step is μₙ-GDP given everything before and `Σμₙ² ≤ μ²`, the view is μ-GDP under full adaptivity. Source: Smith
/// and Thakurta, *Fully Adaptive Composition for Gaussian Differential Privacy*, arXiv:2210.17520 (T40). Hence (ε, δ(ε))-DP
/// for every ε at once, with the exact Gaussian profile (T14).
///
/// # Preconditions
/// Gaussian noise, or mechanisms proved μ-GDP. Not sampled noise: its GDP is a limit theorem, an estimate.
///
/// # Soundness
/// Sums are exact; a budget made from (ε, δ) is rounded down.
///
/// # Tightness
/// Exact: Gaussian noise that uses up the budget has exactly this profile, so no filter can admit more.
#[derive(Clone, Debug, PartialEq)]
pub struct Gdp {
    /// μ².
    limit: Amount,
    currency: Arc<Currency>,
}

impl Gdp {
    /// The largest μ that gives (ε, δ)-DP.
    ///
    /// # Errors
    /// [`BudgetError`] when no μ above 0 does, or part of δ is set aside: no step here has a δ of its own.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        if budget.slack() > Amount::ZERO {
            let allowed = "0: steps with a delta of their own have no mu";
            return Err(OutOfDomain::new("slack", budget.slack(), allowed).into());
        }
        let mu = gaussian::budget(budget.epsilon(), budget.delta());
        // ROUNDING: down.
        let limit = Amount::from_f64_down(Interval::point(mu.get()).square().lo()).unwrap_or(Amount::ZERO);
        if limit == Amount::ZERO {
            let (epsilon, delta) = (budget.epsilon(), budget.delta());
            let least = gaussian::epsilon(Mu::from_upper_bound(1e-9), delta).get();
            return Err(BudgetError::Unservable { epsilon, delta, least });
        }
        Self::with_limit(limit)
    }

    /// A given μ².
    ///
    /// # Errors
    /// [`BudgetError`] when it is infinite.
    pub fn with_limit(mu_squared: Amount) -> Result<Self, BudgetError> {
        if mu_squared.is_infinite() {
            return Err(OutOfDomain::new("mu squared", mu_squared, "a finite amount").into());
        }
        Ok(Self { limit: mu_squared, currency: Arc::new(Currency::MuSquared) })
    }

    /// The budget, μ².
    #[must_use]
    pub const fn limit(&self) -> Amount {
        self.limit
    }
}

impl Rule for Gdp {
    fn word(&self) -> &'static str {
        "gdp"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        Amount::ZERO
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        lanes[0] <= self.limit
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        vec![Meter { name: "mu_squared", spent: lanes[0], budget: self.limit }]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        let mu = Interval::point(self.limit.to_f64_up()).sqrt().hi();
        gaussian::epsilon(Mu::from_upper_bound(mu), delta)
    }
}

impl Kind for Gdp {
    const TAKES: &'static [&'static str] = &["mu"];
    type Stored = StoredGdp;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        match &words.mu {
            Some(mu) => Ok(Self::with_limit(mu.amount_down("mu")?.square_down())?),
            None => Ok(Self::new(words.budget(|_| Amount::ZERO)?)?),
        }
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        Self::from_words(words)
    }

    fn to_stored(&self) -> StoredGdp {
        StoredGdp { limit: self.limit.into() }
    }

    fn from_stored(stored: &StoredGdp) -> Result<Self, LoadError> {
        Ok(Self::with_limit(stored.limit.amount("limit")?)?)
    }
}

/// A μ as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredGdp {
    /// μ².
    pub limit: Decimal,
}
