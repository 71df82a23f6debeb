//! The clock: the privacy-loss distribution as a filter.

use super::{Budget, BudgetError, Kind, Meter, Rule};
use crate::charge::{Charge, Currency, Sums};
use crate::convert::gaussian;
use crate::loss::clock::Levels;
use crate::params::{Delta, Epsilon, Mu, OutOfDomain};
use crate::stored::{Decimal, LoadError, StoredBudget};
use crate::wire::{FilterError, FilterWords};
use paygo_numeric::rounding::{mul_down, mul_up};
use paygo_numeric::{Amount, Interval};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The share of δ that goes with the payments.
const SHARE: f64 = 0.1;

/// Admits while a Gaussian clock, which every step moves by its price, has not run out.
///
/// # Theorem
/// Start the clock at `t₀`. Each step is paid for with a `b` for which `A ⊗ G_t ≤ G_{t+b}` up to `η`, at every threshold and in both
/// directions, where `t` is what is left after it and `A` dominates the step given everything before. Let the `η` sum to at most `d`.
/// Then, however steps were chosen and wherever one stops, `δ(ε) ≤ H_{G_{t₀}}(ε) + d` for every ε at once (T53). For the profile of
/// what is left, taken at `ε` less the loss so far, is a supermartingale up to the `η`, and at the end it is at least the hockey stick.
///
/// - A Gaussian step moves the clock by μ², with `η = 0`: T40.
/// - `η = rate·b`, so that `d = rate·t₀` needs no sum of its own.
/// - *Order ∞*: where the sum of pure ε is at most ε nothing else need hold. Until the clock cannot pay it is the clock that holds; after
///   that every step was admitted because the loss cannot pass ε. Each is an event (T16d).
/// - Steps with a δ of their own are allowed up to the slack (Part 2.3).
///
/// # Order of arrival
/// The same step costs a little more later, when less is left. So the sums depend on the order in which steps came, but not on how a
/// repeated step was cut into requests.
///
/// # Soundness
/// Prices are rounded up, what is on the clock is rounded down, sums are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    budget: Budget,
    /// `t₀`.
    clock: Amount,
    levels: Levels,
    currency: Arc<Currency>,
}

impl Clock {
    /// The Gaussian clock of a budget: the largest `t₀` whose noise costs nine tenths of δ at ε; the rest goes with the payments.
    ///
    /// # Errors
    /// [`BudgetError`] when no noise would do.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        let (epsilon, whole) = (budget.epsilon(), budget.loss_delta());
        // ROUNDING: down, a unit of the amount below at most.
        let noise = Delta::from_upper_bound(mul_down(whole.get(), 1.0 - SHARE));
        let mu = gaussian::budget(epsilon, noise);
        let clock = Amount::from_f64_down(Interval::point(mu.get()).square().lo()).unwrap_or(Amount::ZERO);
        let rate = mul_down(whole.get(), SHARE * (1.0 - 1e-9)) / clock.to_f64_up() * (1.0 - 1e-9);
        if clock == Amount::ZERO || clock.is_infinite() || !(rate > 0.0 && rate.is_finite()) {
            let least = gaussian::epsilon(Mu::from_upper_bound(1e-9), whole).get();
            return Err(BudgetError::Unservable { epsilon, delta: whole, least });
        }
        Self::with(budget, clock, Levels::new(clock, rate)?)
    }

    /// A given clock and its levels.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the clock and what goes with its payments are more than the budget.
    fn with(budget: Budget, clock: Amount, levels: Levels) -> Result<Self, BudgetError> {
        let rule = Self { budget, clock, levels: levels.clone(), currency: Arc::new(Currency::Clock(levels)) };
        let spare = rule.spare(budget.delta());
        let holds = spare.is_some_and(|spare| gaussian::delta(rule.noise(), budget.epsilon()) <= spare);
        if holds { Ok(rule) } else { Err(OutOfDomain::new("clock", clock, "what epsilon and delta pay for").into()) }
    }

    /// What is on the clock at first.
    #[must_use]
    pub const fn clock(&self) -> Amount {
        self.clock
    }

    /// The μ of the noise whose clock this is; rounded up.
    fn noise(&self) -> Mu {
        Mu::from_upper_bound(Interval::point(self.clock.to_f64_up()).sqrt().hi())
    }

    /// What of a δ is left for the noise, without the slack and what goes with the payments; rounded down.
    fn spare(&self, delta: Delta) -> Option<Delta> {
        let payments = mul_up(self.levels.rate(), self.clock.to_f64_up());
        delta.less(self.budget.slack().to_f64_up())?.less(payments)
    }

    /// The ε of noise that is worth so much of the clock, at the budget's δ without what goes with the payments; rounded up.
    fn worth(&self, spent: Amount) -> f64 {
        if spent == Amount::ZERO {
            return 0.0;
        }
        let mu = Mu::from_upper_bound(Interval::point(spent.to_f64_up()).sqrt().hi());
        self.spare(self.budget.delta()).map_or(f64::INFINITY, |spare| gaussian::epsilon(mu, spare).get())
    }
}

/// Where the sums are.
const PAID: usize = 0;
const PURE: usize = 1;

impl Rule for Clock {
    fn word(&self) -> &'static str {
        "clock"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        self.budget.slack()
    }

    fn after(&self, sums: &Sums, charge: &Charge, times: u64) -> Sums {
        let (pure, prices) = charge.lanes().split_last().expect("a price at each level, and a pure sum");
        let count = charge.repeats().checked_mul(times);
        let left = self.clock.minus(sums.lanes()[PAID]);
        let left = count.and_then(|count| self.levels.walk(left, prices, count));
        let paid = if sums.lanes()[PAID] > self.clock { None } else { left.map(|left| self.clock.minus(left)) };
        let pure = sums.lanes()[PURE].plus(count.map_or(Amount::INFINITE, |count| pure.times(count)));
        sums.moved(vec![paid.unwrap_or(Amount::INFINITE), pure], charge, times)
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        lanes[PAID] <= self.clock || lanes[PURE] <= self.budget.limit()
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        let limit = self.budget.limit();
        let worth = Amount::from_f64_up(self.worth(lanes[PAID])).min(lanes[PURE]);
        // The whole clock is worth the whole of ε, up to rounding.
        let spent = if worth > limit && self.allows(lanes) { limit } else { worth };
        vec![
            Meter { name: "epsilon", spent, budget: limit },
            Meter { name: "clock", spent: lanes[PAID], budget: self.clock },
        ]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        let at_budget = self.budget.epsilon().get().max(self.budget.limit().to_f64_up());
        let epsilon = if delta >= self.budget.delta() {
            at_budget
        } else {
            // Every δ is bounded by the clock, and what went past it has no loss above ε.
            let spare = self.spare(delta);
            spare.map_or(f64::INFINITY, |spare| gaussian::epsilon(self.noise(), spare).get().max(at_budget))
        };
        Epsilon::from_upper_bound(epsilon)
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }
}

impl Kind for Clock {
    const TAKES: &'static [&'static str] = &["slack"];
    type Stored = StoredClock;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        Ok(Self::new(words.budget(|_| Amount::ZERO)?)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        // The levels stay, and with them every price: only where the clock starts is new.
        let budget = words.changed_budget(self.slack())?;
        let fits = |clock: Amount| Self::with(budget, clock, self.levels.clone()).is_ok();
        let mu = gaussian::budget(budget.epsilon(), budget.loss_delta());
        let most = Amount::from_f64_down(Interval::point(mu.get()).square().lo()).unwrap_or(Amount::ZERO);
        Ok(Self::with(budget, largest(most, fits), self.levels.clone())?)
    }

    fn to_stored(&self) -> StoredClock {
        StoredClock {
            budget: (&self.budget).into(),
            clock: self.clock.into(),
            levels: self.levels.as_slice().iter().map(|&level| level.into()).collect(),
            rate: self.levels.rate(),
        }
    }

    fn from_stored(stored: &StoredClock) -> Result<Self, LoadError> {
        let levels = stored.levels.iter().map(|level| level.amount("levels")).collect::<Result<Vec<_>, _>>()?;
        let levels = Levels::from_stored(levels, stored.rate)?;
        Ok(Self::with((&stored.budget).try_into()?, stored.clock.amount("clock")?, levels)?)
    }
}

/// The largest amount up to `most` that fits, if smaller ones do; to a billionth.
fn largest(most: Amount, fits: impl Fn(Amount) -> bool) -> Amount {
    let share = |part: u64| most.shared_by(1_000_000_000).times(part);
    paygo_numeric::search::last_true(0, 1_000_000_000, |part| part == 0 || fits(share(part)))
        .map_or(Amount::ZERO, share)
}

/// A clock as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredClock {
    /// ε and δ.
    pub budget: StoredBudget,
    /// `t₀`.
    pub clock: Decimal,
    /// What is left where prices are asked for, falling to 0.
    pub levels: Vec<Decimal>,
    /// How much of δ goes with a payment of 1.
    pub rate: f64,
}
