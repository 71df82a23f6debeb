//! Privacy filters: decide, before a computation runs, whether the budget allows it.
//!
//! Every parameter of a request may depend on everything released so far, and one may stop at any moment. A refusal
//! changes nothing and costs nothing; a cheaper request may still be admitted.
//!
//! | filter | for | promises | theorem |
//! | --- | --- | --- | --- |
//! | [`Clock`] | any mechanisms, told a plan or not; the tightest, the default | (ε, δ)-DP for every δ down to a part of the budget's | T53 |
//! | [`Mixture`] | any mechanisms | (ε, δ)-DP | T16d |
//! | [`Gdp`] | Gaussian noise only; exact there | μ-GDP, hence (ε, δ(ε))-DP for every ε | T40 |
//! | [`Zcdp`] | anything with a ρ, and (ε, δ)-DP steps | (approximate) zCDP, hence (ε, δ)-DP for every δ | T8, T46 |
//! | [`Pure`] | pure-DP steps | (ε, δ)-DP, also for δ = 0 | T2, T7, T21 |
//! | [`Approximate`] | (ε, δ)-DP steps | (ε, δ)-DP | T32, Part 2.3 |
//! | [`FixedOrder`] | one Rényi order chosen in advance | a Rényi bound at that order | T15 |
//! | [`Union`] | any mechanisms; simpler and looser than the mixture | (ε, δ)-DP | T16b |
//!
//! Each is a [`Rule`]: pure data that says which sums are allowed. [`Filter`] holds the rule and the sums, and is the only
//! code that moves them. Sums are exact integers ([`Amount`]), so neither the order of arrival nor the machine changes a
//! decision.
//!
//! The rule "some order is still within the budget that it alone would have" is *not* here: it is published and unsound
//! (E4), because which order survives depends on the outputs.

mod approximate;
mod budget;
mod clock;
mod fixed_order;
mod gdp;
mod kinds;
mod mixture;
mod pure;
mod union;
mod zcdp;

pub use approximate::Approximate;
pub use budget::Budget;
pub use clock::{Clock, StoredClock};
pub use fixed_order::{FixedOrder, StoredFixedOrder};
pub use gdp::{Gdp, StoredGdp};
pub use kinds::{AnyRule, FilterKind, Kind, StoredRule};
pub(crate) use kinds::{listed, names as kind_names};
pub use mixture::{Mixture, StoredMixture};
pub use pure::{Pure, StoredPure};
pub use union::{StoredUnion, Union};
pub use zcdp::{StoredZcdp, Zcdp};

use crate::charge::{Charge, Currency, Held, Lanes, Sums, Unpriced};
use crate::cost::Cost;
use crate::guarantee::{Basis, Guarantee};
use crate::params::{Delta, Epsilon, Neighbors, OutOfDomain};
use crate::prior::Prior;
use paygo_numeric::Amount;
use paygo_numeric::decimal::spelled;
use paygo_numeric::search::last_true;
use std::sync::Arc;

/// Which sums a filter allows: a theorem as data.
///
/// # Contract
/// If every request was admitted only while [`Rule::allows`] held with the request included, and the sums of the slacks
/// stayed within [`Rule::slack`], then whatever was released is private as [`Rule::promise`] says, under full adaptivity.
/// Smaller sums are allowed wherever larger ones are, up to rounding.
pub trait Rule: Clone + PartialEq + std::fmt::Debug + Send + Sync {
    /// Its name on the command line.
    fn word(&self) -> &'static str;
    /// The numbers it adds up.
    fn currency(&self) -> &Arc<Currency>;
    /// The part of δ set aside for the steps' own δ.
    fn slack(&self) -> Amount;
    /// The sums after a charge, so many times, beside what is held.
    fn after(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes, times: u64) -> Sums {
        let _ = held;
        sums.plus(charge, times)
    }
    /// What has to be held for a charge that may still be given back, beside what is held already.
    fn to_hold(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes) -> Held {
        let _ = (sums, held);
        Held::of(charge)
    }
    /// The sums with what is held.
    fn with_held(&self, sums: &Sums, held: &Held) -> Sums {
        sums.and(held)
    }
    /// The sums after a charge for which `mine` was held, beside what else is held.
    fn after_held(&self, sums: &Sums, held: Option<&Held>, mine: &Held, charge: &Lanes) -> Sums {
        let _ = mine;
        self.after(sums, held, charge, 1)
    }
    /// Whether what was counted under `before`, in the same currency, counts under this rule.
    fn may_follow(&self, before: &Self) -> bool {
        let _ = before;
        true
    }
    /// Whether these sums are within the budget.
    fn allows(&self, lanes: &[Amount]) -> bool;
    /// What has been spent of what, for people: never an input to a decision.
    fn meters(&self, lanes: &[Amount]) -> Vec<Meter>;
    /// The ε that is promised at a δ, whatever is requested; +∞ when nothing is.
    fn promise(&self, delta: Delta) -> Epsilon;
    /// The (ε, δ) it was made for; `None` when it keeps something else.
    fn budget(&self) -> Option<&Budget> {
        None
    }
    /// Orders and weights for an odometer that reads the same sums.
    fn prior(&self) -> Prior {
        Prior::log_spaced()
    }
}

/// One rule for many filters.
impl<R: Rule> Rule for Arc<R> {
    fn word(&self) -> &'static str {
        (**self).word()
    }
    fn currency(&self) -> &Arc<Currency> {
        (**self).currency()
    }
    fn slack(&self) -> Amount {
        (**self).slack()
    }
    fn after(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes, times: u64) -> Sums {
        (**self).after(sums, held, charge, times)
    }
    fn to_hold(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes) -> Held {
        (**self).to_hold(sums, held, charge)
    }
    fn with_held(&self, sums: &Sums, held: &Held) -> Sums {
        (**self).with_held(sums, held)
    }
    fn after_held(&self, sums: &Sums, held: Option<&Held>, mine: &Held, charge: &Lanes) -> Sums {
        (**self).after_held(sums, held, mine, charge)
    }
    fn may_follow(&self, before: &Self) -> bool {
        (**self).may_follow(before)
    }
    fn allows(&self, lanes: &[Amount]) -> bool {
        (**self).allows(lanes)
    }
    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        (**self).meters(lanes)
    }
    fn promise(&self, delta: Delta) -> Epsilon {
        (**self).promise(delta)
    }
    fn budget(&self) -> Option<&Budget> {
        (**self).budget()
    }
    fn prior(&self) -> Prior {
        (**self).prior()
    }
}

/// One number that is being spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    /// What it measures.
    pub name: &'static str,
    /// How much of it, rounded up.
    pub spent: Amount,
    /// Out of how much, rounded down.
    pub budget: Amount,
}

impl Meter {
    /// What is left.
    #[must_use]
    pub const fn remaining(&self) -> Amount {
        self.budget.minus(self.spent)
    }
}

/// A budget that can never be used, or parameters that are not a budget.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BudgetError {
    /// A parameter outside its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// Not even a release that costs nothing would be admitted.
    #[error(
        "no order can serve epsilon = {} at delta = {}: at least epsilon = {} is needed; larger orders or a larger \
         delta would work, or the pure filter for pure steps",
        brief(.epsilon.get()),
        brief(.delta.get()),
        brief(*.least)
    )]
    Unservable {
        /// ε of the budget.
        epsilon: Epsilon,
        /// δ of the budget that is left for the loss.
        delta: Delta,
        /// The least ε that could be served.
        least: f64,
    },
}

/// Six digits, to read.
fn brief(x: f64) -> String {
    spelled(format!("{x:.5e}").parse().unwrap_or(x))
}

/// A rule and the exact sums of what it admitted.
///
/// A clone is for what-if. It is a second budget: what a clone admits, the original does not know. Whoever serves several
/// askers keeps one filter, or a ledger.
///
/// ```
/// use paygo_accounting::{cost::Cost, filter::{Budget, Decision, Filter, Mixture}, mechanism::Mechanism};
/// use paygo_accounting::params::{Delta, Epsilon, Neighbors};
/// let budget = Budget::new(Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
/// let mut filter = Filter::new(Mixture::new(budget)?, Neighbors::AddRemove);
/// let cost = Cost::of(&Mechanism::gaussian(20.0)?, Neighbors::AddRemove)?;
/// let charge = filter.price(&cost)?; // the slow part, once
/// let mut admitted = 0;
/// while let Decision::Admitted(_permit) = filter.admit(&charge) {
///     admitted += 1;
/// }
/// assert!(admitted > 15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter<R> {
    rule: R,
    neighbors: Neighbors,
    sums: Sums,
    /// What may still be given back, if there is some.
    held: Option<Held>,
}

impl<R: Rule> Filter<R> {
    /// A filter that has admitted nothing yet.
    #[must_use]
    pub fn new(rule: R, neighbors: Neighbors) -> Self {
        let sums = Sums::zero(rule.currency());
        Self { rule, neighbors, sums, held: None }
    }

    /// A filter that has admitted this much; `None` when the sums are not the rule's.
    #[must_use]
    pub fn resume(rule: R, neighbors: Neighbors, lanes: Vec<Amount>, slack: Amount) -> Option<Self> {
        let sums = Sums::from_stored(rule.currency(), lanes, slack)?;
        Some(Self { rule, neighbors, sums, held: None })
    }

    /// What a cost would add to the sums. The slow part of a decision, and independent of all requests so far.
    ///
    /// # Errors
    /// [`Unpriced`] when the neighbor relation differs, or a mechanism has no finite price in the filter's currency.
    pub fn price(&self, cost: &Cost) -> Result<Charge, Unpriced> {
        self.rule.currency().price(cost, self.neighbors)
    }

    /// Admits a charge if the budget allows it, and then counts it as spent.
    pub fn admit(&mut self, charge: &Charge) -> Decision {
        match self.after(charge) {
            Ok(sums) => {
                self.sums = sums;
                Decision::Admitted(Permit { cost: Arc::clone(charge.cost()) })
            }
            Err(reason) => Decision::Refused(self.refusal(reason, charge)),
        }
    }

    /// Why a charge would be refused now; `None` when it would be admitted. Changes nothing.
    #[must_use]
    pub fn objects_to(&self, charge: &Charge) -> Option<Reason> {
        self.after(charge).err()
    }

    /// The sums with a charge, if it is admitted.
    fn after(&self, charge: &Charge) -> Result<Sums, Reason> {
        if !charge.fits(self.rule.currency(), self.neighbors) {
            return Err(Reason::OtherCurrency);
        }
        let sums = self.rule.after(&self.sums, self.held.as_ref(), charge.lanes(), 1);
        self.objection(&sums, self.held.as_ref()).map_or(Ok(sums), Err)
    }

    /// Counts what was admitted before and stored: how a log is replayed. Refuses nothing and permits nothing.
    pub fn replay(&mut self, stored: &Lanes) {
        self.sums = self.rule.after(&self.sums, self.held.as_ref(), stored, 1);
    }

    /// What is to be held for a charge until it is known how much of it is used; counted from then on.
    ///
    /// # Theorem
    /// Until it is spent or given back, everything else is admitted as if it were spent, and it can be spent whatever else is admitted. So it
    /// does not matter when, or whether, it runs (T53 j).
    pub fn hold(&mut self, charge: &Lanes) -> Held {
        let more = self.rule.to_hold(&self.sums, self.held.as_ref(), charge);
        self.hold_again(&more);
        more
    }

    /// Holds what was held before and stored.
    pub fn hold_again(&mut self, more: &Held) {
        self.held = Some(self.held.as_ref().map_or_else(|| more.clone(), |held| held.and(more)));
    }

    /// Holds no longer what was held, and counts what of it was `used`, if anything was. Where what was held cannot be told apart from the rest,
    /// `others` are what is still held.
    pub fn release<'a>(&mut self, held: &Held, used: Option<&Lanes>, others: impl FnOnce() -> Vec<&'a Held>) {
        let less = self.held.as_ref().and_then(|all| all.less(held));
        self.held = less.or_else(|| others().into_iter().cloned().reduce(|all, more| all.and(&more)));
        self.held = self.held.take().filter(|held| !held.is_nothing());
        if let Some(used) = used {
            self.sums = self.rule.after_held(&self.sums, self.held.as_ref(), held, used);
        }
    }

    /// The same sums under another rule; `None` when it is in another currency, or they do not count there.
    #[must_use]
    pub fn under(&self, rule: R) -> Option<Self> {
        let (sums, held) = (self.sums.clone(), self.held.clone());
        let follows = rule.currency() == self.rule.currency() && rule.may_follow(&self.rule);
        follows.then(|| Self { rule, neighbors: self.neighbors, sums, held })
    }

    /// What a charge alone would spend, and what would be spent with it.
    #[must_use]
    pub fn would_spend(&self, charge: &Lanes) -> [Sums; 2] {
        let alone = self.rule.after(&Sums::zero(self.rule.currency()), None, charge, 1);
        let with = self.rule.after(&self.sums, self.held.as_ref(), charge, 1);
        [alone, self.held.as_ref().map_or_else(|| with.clone(), |held| self.rule.with_held(&with, held))]
    }

    /// Why a charge would not be held now; `None` when it would be.
    #[must_use]
    pub fn objects_to_holding(&self, charge: &Charge) -> Option<Reason> {
        if !charge.fits(self.rule.currency(), self.neighbors) {
            return Some(Reason::OtherCurrency);
        }
        let more = self.rule.to_hold(&self.sums, self.held.as_ref(), charge.lanes());
        let held = self.held.as_ref().map_or_else(|| more.clone(), |held| held.and(&more));
        self.objection(&self.sums, Some(&held))
    }

    /// Whether what was counted is within the budget: always, unless sums were stored that are not.
    #[must_use]
    pub fn is_within_budget(&self) -> bool {
        self.objection(&self.sums, self.held.as_ref()).is_none()
    }

    /// [`Filter::price`] and [`Filter::admit`] in one.
    ///
    /// # Errors
    /// [`Unpriced`], as [`Filter::price`]; nothing is charged.
    pub fn request(&mut self, cost: &Cost) -> Result<Decision, Unpriced> {
        let charge = self.price(cost)?;
        Ok(self.admit(&charge))
    }

    /// How many more of a charge would be admitted now, up to `most`.
    #[must_use]
    pub fn room_for(&self, charge: &Charge, most: u64) -> u64 {
        self.room_from(&self.sums, charge, most)
    }

    /// How many of these charges would be admitted now, one after another, each so often; none after the first that would be refused.
    #[must_use]
    pub fn room_in_turn<'a>(&self, charges: impl IntoIterator<Item = (&'a Charge, u64)>) -> u64 {
        let (mut sums, mut fit) = (self.sums.clone(), 0);
        for (charge, count) in charges {
            let room = self.room_from(&sums, charge, count);
            fit += room;
            if room < count {
                break;
            }
            sums = self.rule.after(&sums, self.held.as_ref(), charge.lanes(), room);
        }
        fit
    }

    fn room_from(&self, sums: &Sums, charge: &Charge, most: u64) -> u64 {
        let fits = charge.fits(self.rule.currency(), self.neighbors);
        let held = self.held.as_ref();
        let after = |n: u64| self.rule.after(sums, held, charge.lanes(), n);
        let allowed = |n: u64| n == 0 || (fits && self.objection(&after(n), held).is_none());
        last_true(0, most, allowed).unwrap_or(0)
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &R {
        &self.rule
    }

    /// The neighbor relation under which everything holds.
    #[must_use]
    pub const fn neighbors(&self) -> Neighbors {
        self.neighbors
    }

    /// The exact sums of what was admitted.
    #[must_use]
    pub const fn sums(&self) -> &Sums {
        &self.sums
    }

    /// The same with what is held.
    #[must_use]
    pub fn charged(&self) -> Sums {
        self.held.as_ref().map_or_else(|| self.sums.clone(), |held| self.rule.with_held(&self.sums, held))
    }

    /// What has been spent of what, or is held, for people.
    #[must_use]
    pub fn meters(&self) -> Vec<Meter> {
        let charged = self.charged();
        self.all_meters(charged.lanes(), charged.slack())
    }

    /// What sums alone would spend, for people.
    #[must_use]
    pub fn meters_of(&self, sums: &Sums) -> Vec<Meter> {
        self.all_meters(sums.lanes(), sums.slack())
    }

    /// What is promised at a δ, whatever is requested from now on.
    #[must_use]
    pub fn guarantee(&self, delta: Delta, privacy_unit: &str) -> Guarantee {
        Guarantee {
            epsilon: self.rule.promise(delta),
            delta,
            neighbors: self.neighbors,
            privacy_unit: privacy_unit.to_owned(),
            basis: Basis::FullyAdaptive,
        }
    }

    /// Why sums would not be allowed, with what is held.
    fn objection(&self, sums: &Sums, held: Option<&Held>) -> Option<Reason> {
        let charged = held.map(|held| self.rule.with_held(sums, held));
        let sums = charged.as_ref().unwrap_or(sums);
        if sums.slack() > self.rule.slack() {
            Some(if self.rule.slack() == Amount::ZERO { Reason::NoSlack } else { Reason::Slack })
        } else if self.rule.allows(sums.lanes()) {
            None
        } else {
            Some(Reason::Budget)
        }
    }

    fn all_meters(&self, lanes: &[Amount], slack: Amount) -> Vec<Meter> {
        let mut meters = self.rule.meters(lanes);
        if self.rule.slack() > Amount::ZERO || slack > Amount::ZERO {
            meters.push(Meter { name: "delta", spent: slack, budget: self.rule.slack() });
        }
        meters
    }

    #[cold]
    fn refusal(&self, reason: Reason, charge: &Charge) -> Refusal {
        if reason == Reason::OtherCurrency {
            return Refusal { reason, requested: Vec::new(), spent: self.meters(), largest_count: 0 };
        }
        let (one, count) = charge.cost().as_repeat();
        let largest_count = match (count.get(), self.price(&one)) {
            (1, _) | (_, Err(_)) => 0,
            (count, Ok(one)) => self.room_for(&one, count - 1),
        };
        let [alone, _] = self.would_spend(charge.lanes());
        let requested = self.meters_of(&alone);
        Refusal { reason, requested, spent: self.meters(), largest_count }
    }
}

/// The answer to a request.
#[derive(Debug)]
#[must_use = "an admitted charge is spent, whether or not its permit is used"]
pub enum Decision {
    /// Run it: it is counted as spent.
    Admitted(Permit),
    /// Do not run it: nothing was spent.
    Refused(Refusal),
}

impl Decision {
    /// Whether it was admitted. The permit, if any, is given up.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }
}

/// The right to run an admitted mechanism, once. Cannot be copied or made; drawing noise consumes it.
#[derive(Debug)]
#[must_use = "an admitted charge is spent, whether or not its permit is used"]
pub struct Permit {
    cost: Arc<Cost>,
}

impl Permit {
    /// What was admitted.
    #[must_use]
    pub fn cost(&self) -> &Cost {
        &self.cost
    }
}

/// Why, and how far one would have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// What the request alone would spend.
    pub requested: Vec<Meter>,
    /// What has been spent, and what remains.
    pub spent: Vec<Meter>,
    /// The request as a repeat of something smaller: how many of those would be admitted now.
    pub largest_count: u64,
}

/// `refused: the total would pass the budget; epsilon 0.9 spent of 1, 0.2 requested; 3 of the same would fit`
impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused: {}", self.reason.explanation())?;
        for (spent, requested) in self.spent.iter().zip(&self.requested) {
            write!(f, "; {} {} spent of {}, {} requested", spent.name, spent.spent, spent.budget, requested.spent)?;
        }
        write!(f, "; {} of the same would fit", self.largest_count)
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The sums would pass the budget.
    Budget,
    /// The steps' own δ would pass the part of δ set aside for them.
    Slack,
    /// A step has a δ of its own, and nothing is set aside for such steps.
    NoSlack,
    /// The charge was priced for another filter.
    OtherCurrency,
}

impl Reason {
    /// In one sentence.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Budget => "the total would pass the budget",
            Self::Slack => "the steps' own delta would pass the part of delta set aside for it (the slack)",
            Self::NoSlack => {
                "the step has a delta of its own, and this budget sets none aside for such steps; one made with a slack (--slack 1e-7) does"
            }
            Self::OtherCurrency => "the charge was priced for a filter with other sums",
        }
    }
}
