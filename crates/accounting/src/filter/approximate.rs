//! The filter for (ε, δ)-DP steps.

use super::{Budget, BudgetError, Kind, Meter, Pure, Rule, StoredPure};
use crate::charge::Currency;
use crate::params::{Delta, Epsilon, OutOfDomain};
use crate::stored::LoadError;
use crate::wire::{FilterError, FilterWords};
use paygo_numeric::Amount;
use std::sync::Arc;

/// Admits (εₙ, δₙ)-DP steps while `Σδₙ ≤ δ″` and the εₙ are within what [`Pure`] would admit at (ε, δ′).
///
/// # Theorem
/// Every (εₙ, δₙ)-DP step is a post-processing of "with probability δₙ reveal everything, else randomized response with
/// εₙ", also conditionally on the past. So outside an event of probability at most `Σδₙ ≤ δ″` the steps are pure, and
/// (ε, δ′ + δ″)-DP follows from [`Pure`]'s theorem (Part 2.3; Whitehouse, Ramdas, Rogers, Wu, *Fully Adaptive Composition*,
/// Theorem 2, with a smaller cost and the exact conversion; T32).
///
/// # Preconditions
/// Steps need only be (εₙ, δₙ)-DP given everything before; not pointwise.
///
/// # Soundness
/// Sums are exact; `δ′ + δ″ ≤ δ` after rounding; equality admits (E9).
///
/// # Tightness
/// At least \[W\]'s filter, which has εₙ²/2 and the classic conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct Approximate(Pure);

impl Approximate {
    /// A filter for (ε, δ′ + δ″); the budget says how δ is split.
    ///
    /// # Errors
    /// [`BudgetError`] when nothing is set aside for the steps' own δ, or nothing could ever be admitted.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        if budget.slack() == Amount::ZERO {
            let allowed = "0 < slack: the part of delta for the steps' own delta; the pure filter needs none";
            return Err(OutOfDomain::new("slack", budget.slack(), allowed).into());
        }
        Ok(Self(Pure::with_slack(budget)?))
    }
}

impl Rule for Approximate {
    fn word(&self) -> &'static str {
        "approximate"
    }

    fn currency(&self) -> &Arc<Currency> {
        self.0.currency()
    }

    fn slack(&self) -> Amount {
        self.0.slack()
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        self.0.allows(lanes)
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        self.0.meters(lanes)
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        self.0.promise(delta)
    }

    fn budget(&self) -> Option<&Budget> {
        self.0.budget()
    }
}

impl Kind for Approximate {
    const TAKES: &'static [&'static str] = &["slack"];
    type Stored = StoredPure;

    /// Half of δ is set aside unless something else was asked for.
    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        Ok(Self::new(words.budget(|delta| delta.shared_by(2))?)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        Ok(Self::new(words.changed_budget(self.slack())?)?)
    }

    fn to_stored(&self) -> StoredPure {
        self.0.to_stored()
    }

    fn from_stored(stored: &StoredPure) -> Result<Self, LoadError> {
        Ok(Self::new((&stored.budget).try_into()?)?)
    }
}
