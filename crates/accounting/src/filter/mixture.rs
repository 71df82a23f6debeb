//! The mixture filter over Rényi orders.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::Currency;
use crate::convert::Conversion;
use crate::cost::Cost;
use crate::params::{Delta, Divergence, Epsilon};
use crate::prior::{Mixed, Prior};
use crate::stored::{Decimal, LoadError, StoredBudget, prior_of, stored_prior};
use crate::wire::{FilterError, FilterWords, Number};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Below this `(α−1)·B` an order is *light*: the exact conversion gains much on the one that a mixture can use.
const LIGHT: f64 = 2.0;

/// Admits while a mixture of Rényi orders certifies (ε, δ).
///
/// # Theorem
/// Let weights `w_α` sum to at most 1, fixed in advance, and `S(α)` be the sum of the Rényi divergences of everything
/// admitted, the request included.
/// - *Mixture* (T16c): if `(1 − e^{ε−x})₊ ≤ δ′·Σ_α w_α·e^{(α−1)(x−S(α))}` for every `x`, then the view is (ε, δ′)-DP, however
///   requests were chosen and wherever one stops.
/// - *Light orders* (T16b): of an order that costs little over its whole budget, `e^{(α−1)S}` is close to 1, and all that matters
///   is its excess over 1, which T16c does not see. Such orders stand outside the mixture; each is a fixed-order filter with
///   the exact budget for its share `w_α·δ′` (T11).
/// - *Order ∞*, if it is kept: where `S(∞) ≤ ε`, the loss never passes ε.
///
/// Any of the three will do at the end (T16d): each is an event on which at most its own share of δ′ is lost. Which orders are light
/// depends on the budget alone. Steps with a δ of their own are allowed up to the slack (Part 2.3).
///
/// # Preconditions
/// Each cost bounds the mechanism's divergence in both directions, given everything before; carried by [`Cost`].
///
/// # Soundness
/// Sums are exact, budgets rounded down, the supremum behind the inequality is certified ([`crate::prior`]); rounding only
/// refuses.
///
/// # Tightness
/// At least [`super::Union`] with CKS budgets and the same weights, and within a few percent of it with exact ones. The price
/// of not knowing the order is at most `ln(1/w_α)/(α−1)` in ε, a third for the order that suits the budget; with
/// [`Mixture::for_plan`] a plan that is followed costs about `0.11/(α−1)` more than if it had been fixed in advance.
/// `docs/filters.md` has numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    budget: Budget,
    prior: Prior,
    currency: Arc<Currency>,
    /// The orders that are not light.
    mixed: Mixed,
    /// Whether light orders stand beside the mixture, and which they are.
    has_light: bool,
    light: Vec<bool>,
    /// For each order, sums that it alone certifies; for orders in the mixture a cheap sufficient test.
    alone: Vec<Option<Amount>>,
}

impl Mixture {
    /// Over the orders that suit the budget, [`Prior::for_budget`].
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        Self::over(budget, Prior::for_budget(budget.epsilon(), budget.loss_delta()))
    }

    /// Weights concentrated on the order at which a plan is priced best. Whatever is requested, the filter stays sound;
    /// if the plan is followed, almost all of the budget serves it.
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn for_plan(budget: Budget, plan: &Cost) -> Result<Self, BudgetError> {
        Self::over(budget, Prior::for_plan(plan, budget.loss_delta()))
    }

    /// Over given orders and weights.
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn over(budget: Budget, prior: Prior) -> Result<Self, BudgetError> {
        Self::with_light_below(LIGHT, budget, prior)
    }

    /// Over given orders and weights, all of them in the mixture: T16c as it stands, for comparison.
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn without_light_orders(budget: Budget, prior: Prior) -> Result<Self, BudgetError> {
        Self::with_light_below(f64::NEG_INFINITY, budget, prior)
    }

    fn with_light_below(threshold: f64, budget: Budget, prior: Prior) -> Result<Self, BudgetError> {
        let (epsilon, delta) = (budget.epsilon(), budget.loss_delta());
        let orders = &prior.orders().as_slice()[..prior.weights().len()];
        let (mut light, mut alone) = (Vec::new(), Vec::new());
        for (i, &order) in orders.iter().enumerate() {
            let exact = Conversion::Exact.budget(order, epsilon, prior.share(i, delta));
            let is_light = exact.map_or(f64::NEG_INFINITY, |exact| (order.get() - 1.0) * exact.get()) < threshold;
            let cks = || Conversion::Cks.budget(order, epsilon, prior.share(i, delta));
            alone.push(if is_light { exact } else { cks() }.and_then(Divergence::limit));
            light.push(is_light);
        }
        let mixed = Mixed::new(&prior, delta, |lane| !light[lane]);
        let currency = Arc::new(Currency::Renyi(prior.orders().clone()));
        let has_light = threshold > 0.0;
        let rule = Self { budget, prior, currency, mixed, has_light, light, alone };
        let least = rule.mixed.least_epsilon(&vec![Amount::ZERO; rule.alone.len()]);
        let served = least <= epsilon.get() || rule.alone.iter().any(|alone| alone.is_some_and(|a| a > Amount::ZERO));
        if delta == Delta::ZERO || !served {
            return Err(BudgetError::Unservable { epsilon, delta, least });
        }
        Ok(rule)
    }

    /// With or without light orders beside the mixture.
    fn with(has_light: bool, budget: Budget, prior: Prior) -> Result<Self, BudgetError> {
        let make = if has_light { Self::over } else { Self::without_light_orders };
        make(budget, prior)
    }

    /// The least ε that these sums are within, at the budget's δ and with these weights; rounded up.
    #[must_use]
    pub fn least_epsilon(&self, lanes: &[Amount]) -> Epsilon {
        self.least_epsilon_by(Conversion::Exact, lanes)
    }

    fn least_epsilon_by(&self, conversion: Conversion, lanes: &[Amount]) -> Epsilon {
        let mixed = self.mixed.least_epsilon(lanes).min(self.prior.pure_sum(lanes).to_f64_up());
        let light = self.prior.orders().as_slice().iter().zip(&self.light).enumerate();
        let each = light.filter(|(_, (_, light))| **light).map(|(i, (&order, _))| {
            conversion
                .epsilon(order, Divergence::from_sum(lanes[i]), self.prior.share(i, self.budget.loss_delta()))
                .get()
        });
        Epsilon::from_upper_bound(each.fold(mixed, f64::min))
    }
}

impl Rule for Mixture {
    fn word(&self) -> &'static str {
        "mixture"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        self.budget.slack()
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        // Far from the edge one order, or the pure sum, is proof enough.
        let cheap = self.alone.iter().zip(lanes).any(|(alone, sum)| alone.is_some_and(|alone| *sum <= alone));
        cheap
            || self.prior.pure_sum(lanes) <= self.budget.limit()
            || self.mixed.least_epsilon(lanes) <= self.budget.epsilon().get()
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        // The closed form is quick and hardly larger than the exact one; where it is, what is allowed is within the budget.
        let quick = Amount::from_f64_up(self.least_epsilon_by(Conversion::Lemma1, lanes).get());
        let limit = self.budget.limit();
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

impl Kind for Mixture {
    const TAKES: &'static [&'static str] = &["slack", "orders", "weights", "plan"];
    type Stored = StoredMixture;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        let budget = words.budget(|_| Amount::ZERO)?;
        let usual = || Prior::for_budget(budget.epsilon(), budget.loss_delta());
        Ok(Self::over(budget, words.order_words().prior(budget.loss_delta(), usual)?)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        Ok(Self::with(self.has_light, words.changed_budget(self.slack())?, self.prior.clone())?)
    }

    fn to_stored(&self) -> StoredMixture {
        let (orders, weights) = stored_prior(&self.prior);
        StoredMixture { budget: (&self.budget).into(), orders, weights, light_orders: self.has_light }
    }

    fn from_stored(stored: &StoredMixture) -> Result<Self, LoadError> {
        let prior = prior_of(&stored.orders, &stored.weights)?;
        Ok(Self::with(stored.light_orders, (&stored.budget).try_into()?, prior)?)
    }
}

/// A mixture as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredMixture {
    /// ε and δ.
    pub budget: StoredBudget,
    /// Strictly increasing; may end in `"inf"`.
    pub orders: Vec<Number>,
    /// One for each finite order.
    pub weights: Vec<Decimal>,
    /// Whether light orders stand beside the mixture.
    pub light_orders: bool,
}
