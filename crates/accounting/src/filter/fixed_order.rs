//! The Rényi filter at one order, fixed in advance.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::Currency;
use crate::convert::Conversion;
use crate::curve::Orders;
use crate::params::{Delta, Divergence, Epsilon, Order, OutOfDomain};
use crate::prior::Prior;
use crate::stored::{Decimal, LoadError};
use crate::wire::{FilterError, FilterWords, Number};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Admits while the sum of the Rényi divergences at one order is within a budget.
///
/// # Theorem
/// If `S(α) ≤ B` with every admitted request included, the view is (α, B)-RDP in both directions, however requests were
/// chosen, however many, wherever one stops; the neighboring pair may even change from request to request. Sources:
/// Feldman and Zrnic, Theorem 3.1; Lécuyer, Theorem 1 (T15). Hence (ε, δ)-DP for every pair that the exact conversion
/// allows (T11), and for the pair from which `B` was made.
///
/// # Preconditions
/// The order was fixed before the first output; each cost bounds the divergence in both directions, given everything before.
///
/// # Soundness
/// Sums are exact, the budget is rounded down and never clamped to 0.
///
/// # Tightness
/// The best there is for work that suits this order; a poor order wastes most of the budget. [`super::Mixture`] hedges.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedOrder {
    order: Order,
    limit: Amount,
    slack: Amount,
    currency: Arc<Currency>,
}

impl FixedOrder {
    /// The largest Rényi budget at `order` that gives (ε, δ′)-DP by the exact conversion.
    ///
    /// # Errors
    /// [`BudgetError`] when the order cannot serve the budget.
    pub fn new(order: Order, budget: Budget) -> Result<Self, BudgetError> {
        Self::by(Conversion::Exact, order, budget)
    }

    /// The same by a given conversion.
    ///
    /// # Errors
    /// [`BudgetError`] when the order cannot serve the budget.
    pub fn by(conversion: Conversion, order: Order, budget: Budget) -> Result<Self, BudgetError> {
        let (epsilon, delta) = (budget.epsilon(), budget.loss_delta());
        match conversion.budget(order, epsilon, delta).and_then(Divergence::limit) {
            Some(limit) => Self::with_limit(order, limit, budget.slack()),
            None => {
                let least = conversion.epsilon(order, Divergence::ZERO, delta).get();
                Err(BudgetError::Unservable { epsilon, delta, least })
            }
        }
    }

    /// A given Rényi budget, and a given sum of the steps' own δ.
    ///
    /// # Errors
    /// [`BudgetError`] when the budget is infinite or the slack is more than 1.
    pub fn with_limit(order: Order, limit: Amount, slack: Amount) -> Result<Self, BudgetError> {
        if limit.is_infinite() {
            return Err(OutOfDomain::new("budget", limit, "a finite amount").into());
        }
        if slack > Amount::ONE {
            return Err(OutOfDomain::new("slack", slack, "0 <= slack <= 1").into());
        }
        let currency = Arc::new(Currency::Renyi(Orders::new(vec![order])?));
        Ok(Self { order, limit, slack, currency })
    }

    /// The order.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// The Rényi budget.
    #[must_use]
    pub const fn limit(&self) -> Amount {
        self.limit
    }
}

impl Rule for FixedOrder {
    fn word(&self) -> &'static str {
        "fixed-order"
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
        vec![Meter { name: "renyi", spent: lanes[0], budget: self.limit }]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        let rest = delta.less(self.slack.to_f64_up());
        rest.map_or(Epsilon::INFINITE, |rest| {
            Conversion::Exact.epsilon(self.order, Divergence::from_sum(self.limit), rest)
        })
    }

    fn prior(&self) -> Prior {
        let alone = Orders::new(vec![self.order]).and_then(Prior::uniform);
        alone.unwrap_or_else(|_| Prior::log_spaced())
    }
}

impl Kind for FixedOrder {
    const TAKES: &'static [&'static str] = &["slack", "order"];
    type Stored = StoredFixedOrder;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        let budget = words.budget(|_| Amount::ZERO)?;
        Ok(Self::new(words.order_words().order(budget.epsilon(), budget.loss_delta())?, budget)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        Ok(Self::new(self.order, words.changed_budget(self.slack)?)?)
    }

    fn to_stored(&self) -> StoredFixedOrder {
        let (limit, slack) = (self.limit.into(), self.slack.into());
        StoredFixedOrder { order: Number::double(self.order.get()), limit, slack }
    }

    fn from_stored(stored: &StoredFixedOrder) -> Result<Self, LoadError> {
        let order = Order::new(stored.order.nearest("order")?)?;
        Ok(Self::with_limit(order, stored.limit.amount("limit")?, stored.slack.amount("slack")?)?)
    }
}

/// A fixed order as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFixedOrder {
    /// The order.
    pub order: Number,
    /// The Rényi budget.
    pub limit: Decimal,
    /// For the steps' own δ.
    pub slack: Decimal,
}
