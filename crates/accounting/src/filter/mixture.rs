//! The mixture filter over Rényi orders: the default.

use super::{Budget, BudgetError, Meter, Rule};
use crate::account::{Question, rows};
use crate::charge::Currency;
use crate::convert::Conversion;
use crate::cost::Cost;
use crate::params::{Delta, Epsilon, Order};
use crate::prior::{Mixed, Prior};
use paygo_numeric::Amount;
use std::sync::Arc;

/// Admits while a mixture of all orders certifies (ε, δ).
///
/// # Theorem
/// With weights `w_α` that sum to at most 1, fixed in advance, and `S(α)` the sum of the Rényi divergences of everything
/// admitted, the request included: if `(1 − e^{ε−u})₊ ≤ δ′·Σ_α w_α·e^{(α−1)(u−S(α))}` for every `u`, then the view is
/// (ε, δ′)-DP, however requests were chosen and wherever one stops (T16c). And if order ∞ is kept and `S(∞) ≤ ε`, the loss
/// never passes ε, at no δ at all, so either will do. Steps with a δ of their own are allowed up to the slack (Part 2.3).
///
/// # Preconditions
/// Each cost bounds the mechanism's divergence in both directions, given everything before; carried by [`Cost`].
///
/// # Soundness
/// Sums are exact, the supremum behind the inequality is certified ([`crate::prior`]); rounding only refuses.
///
/// # Tightness
/// Never worse than [`super::Union`] with CKS budgets and the same weights. With uniform weights the price of not knowing
/// the order is at most `ln(orders)/(α−1)` in ε; with [`Mixture::for_plan`] a plan that is followed costs about
/// `0.11/(α−1)` more than it would if it had been fixed in advance.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    budget: Budget,
    prior: Prior,
    currency: Arc<Currency>,
    mixed: Mixed,
    /// For each order, sums that it alone would certify: a cheap sufficient test.
    alone: Vec<Option<Amount>>,
}

impl Mixture {
    /// Over log-spaced orders from 1.5 to 1025 with equal weights.
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        Self::over(budget, Prior::log_spaced())
    }

    /// Weights concentrated on the order at which a plan is priced best. Whatever is requested, the filter stays sound;
    /// if the plan is followed, almost all of the budget serves it.
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn for_plan(budget: Budget, plan: &Cost) -> Result<Self, BudgetError> {
        let prior = match plan_order(budget, plan) {
            Some(order) => Prior::around(order, Prior::log_spaced().orders().clone())?,
            None => Prior::log_spaced(),
        };
        Self::over(budget, prior)
    }

    /// Over given orders and weights.
    ///
    /// # Errors
    /// [`BudgetError`] when not even a release that costs nothing could be admitted.
    pub fn over(budget: Budget, prior: Prior) -> Result<Self, BudgetError> {
        let (epsilon, delta) = (budget.epsilon(), budget.loss_delta());
        let mixed = Mixed::new(&prior, delta);
        let orders = prior.orders().as_slice().iter().take(prior.weights().len()).enumerate();
        let alone = orders
            .map(|(i, &order)| Amount::from_f64_down(Conversion::Cks.budget(order, epsilon, prior.share(i, delta))))
            .collect();
        let currency = Arc::new(Currency::Renyi(prior.orders().clone()));
        let rule = Self { budget, prior, currency, mixed, alone };
        let least = rule.mixed.least_epsilon(&vec![Amount::ZERO; rule.alone.len()]);
        if delta == Delta::ZERO || least > budget.epsilon().get() {
            return Err(BudgetError::Unservable { epsilon: budget.epsilon(), delta, least });
        }
        Ok(rule)
    }

    /// The budget.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The orders and their weights.
    #[must_use]
    pub const fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The least ε that these sums are within, at the budget's δ and with these weights; rounded up.
    #[must_use]
    pub fn least_epsilon(&self, lanes: &[Amount]) -> Epsilon {
        Epsilon::from_upper_bound(self.mixed.least_epsilon(lanes).min(self.prior.pure_sum(lanes).to_f64_up()))
    }
}

/// The order at which CKS's conversion prices a plan best.
fn plan_order(budget: Budget, plan: &Cost) -> Option<Order> {
    let rows = rows(plan, Question::EpsilonAt(budget.loss_delta()));
    let best = rows.iter().find(|row| row.method == "renyi-cks")?;
    best.order.filter(|order| order.get() < f64::INFINITY)
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
        let spent = Amount::from_f64_up(self.least_epsilon(lanes).get());
        vec![Meter { name: "epsilon", spent, budget: self.budget.limit() }]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        self.budget.promise(delta)
    }
}
