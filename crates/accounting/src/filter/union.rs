//! The union filter over Rényi orders: δ shared among the orders.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::Currency;
use crate::convert::Conversion;
use crate::params::{Delta, Divergence, Epsilon, OutOfDomain};
use crate::prior::Prior;
use crate::stored::{Decimal, LoadError, StoredBudget, prior_of, stored_prior};
use crate::wire::{FilterError, FilterWords, Number};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Admits while at least one order is within the budget that its share of δ gives it.
///
/// # Theorem
/// Let `B(α)` be a value such that `D_α ≤ B(α)` gives (ε, w_α·δ′)-DP, with weights that sum to at most 1, fixed in
/// advance. If after the last admitted request some order has `S(α) ≤ B(α)`, the view is (ε, δ′)-DP: an order that is
/// alive at the end was alive all along, the view up to its death is (α, B(α))-RDP (T15), and the events "alive at the
/// end" each lose at most w_α·δ′ (T16b). If order ∞ is kept and `S(∞) ≤ ε`, the loss never
/// passes ε, at no δ at all.
///
/// # Preconditions
/// Each cost bounds the mechanism's divergence in both directions, given everything before. The shares are essential:
/// without them the rule is the published one, whose true δ can be as many times larger as there are orders (E4).
///
/// # Soundness
/// Sums are exact and budgets rounded down. A negative budget is a dead order, never 0.
///
/// # Tightness
/// Looser than [`super::Mixture`] with the same weights, except for what the exact conversion (T11) gains on CKS's.
#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    budget: Budget,
    prior: Prior,
    conversion: Conversion,
    currency: Arc<Currency>,
    /// B(α) for each order, and `None` for a dead one; ε at order ∞.
    limits: Vec<Option<Amount>>,
}

impl Union {
    /// Over the orders that suit the budget, [`Prior::for_budget`], with the exact conversion.
    ///
    /// # Errors
    /// [`BudgetError`] when every order is dead from the start.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        let prior = Prior::for_budget(budget.epsilon(), budget.loss_delta());
        Self::over(budget, prior, Conversion::Exact)
    }

    /// Over given orders and weights, with a given conversion.
    ///
    /// # Errors
    /// [`BudgetError`] when every order is dead from the start.
    pub fn over(budget: Budget, prior: Prior, conversion: Conversion) -> Result<Self, BudgetError> {
        let mut rule = Self {
            budget,
            currency: Arc::new(Currency::Renyi(prior.orders().clone())),
            prior,
            conversion,
            limits: Vec::new(),
        };
        let epsilon = budget.epsilon();
        let orders = rule.prior.orders().as_slice().iter().take(rule.prior.weights().len()).enumerate();
        let limits = orders.map(|(i, &order)| {
            conversion.budget(order, epsilon, rule.prior.share(i, budget.loss_delta())).and_then(Divergence::limit)
        });
        rule.limits = limits.collect();
        if rule.limits.iter().all(Option::is_none) {
            let least = rule.least_finite(&vec![Amount::ZERO; rule.limits.len()]);
            return Err(BudgetError::Unservable { epsilon, delta: budget.loss_delta(), least });
        }
        rule.limits.push(Some(budget.limit()));
        Ok(rule)
    }

    /// The least ε by the closed form where budgets are exact: quick, and hardly larger.
    fn least_finite(&self, lanes: &[Amount]) -> f64 {
        let conversion = self.conversion.min(Conversion::Lemma1);
        let orders = self.prior.orders().as_slice().iter().zip(lanes).take(self.prior.weights().len()).enumerate();
        let each = orders.map(|(i, (&order, sum))| {
            conversion.epsilon(order, Divergence::from_sum(*sum), self.prior.share(i, self.budget.loss_delta())).get()
        });
        each.fold(f64::INFINITY, f64::min)
    }
}

impl Rule for Union {
    fn word(&self) -> &'static str {
        "union"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        self.budget.slack()
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        self.limits.iter().zip(lanes).any(|(limit, sum)| limit.is_some_and(|limit| *sum <= limit))
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        let pure = self.prior.pure_sum(lanes).to_f64_up();
        let (quick, limit) = (Amount::from_f64_up(self.least_finite(lanes).min(pure)), self.budget.limit());
        let spent = if quick > limit && self.allows(lanes) { limit } else { quick };
        vec![Meter { name: "epsilon", spent, budget: limit }]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        self.budget.promise(delta)
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn prior(&self) -> Prior {
        self.prior.clone()
    }
}

impl Kind for Union {
    const TAKES: &'static [&'static str] = &["slack", "orders", "weights", "plan"];
    type Stored = StoredUnion;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        let budget = words.budget(|_| Amount::ZERO)?;
        let usual = || Prior::for_budget(budget.epsilon(), budget.loss_delta());
        Ok(Self::over(budget, words.order_words().prior(budget.loss_delta(), usual)?, Conversion::Exact)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        Ok(Self::over(words.changed_budget(self.slack())?, self.prior.clone(), self.conversion)?)
    }

    fn to_stored(&self) -> StoredUnion {
        let (orders, weights) = stored_prior(&self.prior);
        let conversion = self.conversion.word().to_owned();
        StoredUnion { budget: (&self.budget).into(), orders, weights, conversion }
    }

    fn from_stored(stored: &StoredUnion) -> Result<Self, LoadError> {
        let known = Conversion::ALL.into_iter().find(|known| known.word() == stored.conversion);
        let known =
            known.ok_or_else(|| OutOfDomain::new("conversion", &stored.conversion, "classic, cks, lemma1 or exact"))?;
        Ok(Self::over((&stored.budget).try_into()?, prior_of(&stored.orders, &stored.weights)?, known)?)
    }
}

/// A union as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredUnion {
    /// ε and δ.
    pub budget: StoredBudget,
    /// Strictly increasing; may end in `"inf"`.
    pub orders: Vec<Number>,
    /// One for each finite order.
    pub weights: Vec<Decimal>,
    /// The conversion's word.
    pub conversion: String,
}
