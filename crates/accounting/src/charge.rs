//! What a cost adds to the sums of a filter or an odometer: exact amounts in one currency.
//!
//! Pricing (a curve at some orders, say) is the slow part and depends on nothing that was asked before; a charge that is
//! known can be admitted millions of times a second.

use crate::convert::pointwise::dp_to_pointwise;
use crate::cost::Cost;
use crate::curve::Orders;
use crate::loss::clock::Reference;
use crate::mechanism::Single;
use crate::params::{Count, Delta, Divergence, Epsilon, Neighbors, Order};
use paygo_numeric::{Amount, Interval};
use std::sync::Arc;

/// A charge on a clock has so many parts at most: what is made of more mechanisms is paid for as one.
const MAX_PARTS: usize = 64;

/// The numbers in which a filter or an odometer keeps its sums.
#[derive(Clone, Debug, PartialEq)]
pub enum Currency {
    /// The Rényi divergence at each order.
    Renyi(Orders),
    /// ρ of zCDP.
    Rho,
    /// μ² of GDP.
    MuSquared,
    /// ε, and the ρ that it implies.
    Pure,
    /// For the boundaries of \[W\]: ρ, the drift of pointwise steps and the sum of their δ.
    Pointwise,
    /// What is paid on a clock, in each of its coins (T53), and beside it the Rényi divergence at each order, of which that at ∞ may admit. Charges have
    /// a price at each of its levels instead of what is paid.
    Clock(Reference, Orders),
}

impl Currency {
    /// Where ρ is among the numbers of [`Currency::Pointwise`].
    pub(crate) const POINTWISE_RHO: usize = 0;
    /// Where the sum of the steps' δ is among them.
    pub(crate) const POINTWISE_DELTA: usize = 2;

    /// What the numbers are called.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Renyi(_) => "Rényi curve",
            Self::Rho | Self::Pointwise => "rho",
            Self::MuSquared => "mu",
            Self::Pure => "pure epsilon",
            Self::Clock(..) => "price on the clock",
        }
    }

    /// How many sums there are.
    #[must_use]
    pub fn lanes(&self) -> usize {
        match self {
            Self::Renyi(orders) => orders.as_slice().len(),
            Self::Rho | Self::MuSquared => 1,
            Self::Pure => 2,
            Self::Pointwise => 3,
            Self::Clock(reference, orders) => reference.coins() + orders.as_slice().len(),
        }
    }

    /// How many numbers a charge has: on a clock a price at each level.
    #[must_use]
    pub fn price_lanes(&self) -> usize {
        match self {
            Self::Renyi(_) | Self::Rho | Self::MuSquared | Self::Pure | Self::Pointwise => self.lanes(),
            Self::Clock(reference, orders) => reference.lanes() + orders.as_slice().len(),
        }
    }

    /// The price of one mechanism, lane by lane; `None` when it has none.
    fn lanes_of(&self, cost: &Cost) -> Option<Vec<Amount>> {
        match self {
            Self::Renyi(orders) => Some(divergences(cost, orders)),
            Self::Rho => Some(vec![cost.total_rho()?.amount]),
            Self::MuSquared => Some(vec![cost.total_mu_squared()?.amount]),
            Self::Pure => Some(vec![cost.total_epsilon()?.amount, cost.total_rho()?.amount]),
            Self::Pointwise => pointwise(cost),
            Self::Clock(reference, orders) => {
                // What has no law there may still have a curve.
                let mut lanes = reference.prices(cost).unwrap_or_else(|| vec![Amount::INFINITE; reference.lanes()]);
                // Nothing that is lost in rounding is free: a unit is more than any double that became 0.
                let least = if cost.is_null() { Amount::ZERO } else { Amount::UNIT };
                lanes.extend(divergences(cost, orders).into_iter().map(|amount| amount.max(least)));
                Some(lanes)
            }
        }
    }

    /// Prices a cost.
    ///
    /// # Errors
    /// [`Unpriced`] when the neighbor relation differs, a mechanism has no price in this currency, or the price is
    /// infinite or zero by underflow.
    pub fn price(self: &Arc<Self>, cost: &Cost, neighbors: Neighbors) -> Result<Charge, Unpriced> {
        if cost.neighbors() != neighbors {
            return Err(Unpriced::Neighbors { given: cost.neighbors(), expected: neighbors });
        }
        // On a clock it matters how often: prices are those of one of each mechanism.
        let parts = match &**self {
            Self::Clock(..) => cost.units(MAX_PARTS),
            Self::Renyi(_) | Self::Rho | Self::MuSquared | Self::Pure | Self::Pointwise => {
                vec![(cost.clone(), Count::ONE)]
            }
        };
        let mut lanes = Vec::new();
        for (part, _) in &parts {
            lanes.extend(self.lanes_of(part).ok_or_else(|| self.no_price(part))?);
        }
        let is_clock = matches!(**self, Self::Clock(..));
        if lanes.chunks(self.price_lanes()).any(|part| part.iter().all(|amount| amount.is_infinite())) {
            return Err(Unpriced::Infinite { currency: self.word() });
        }
        if !cost.is_null() && lanes.contains(&Amount::ZERO) && !matches!(**self, Self::Pointwise) && !is_clock {
            return Err(Unpriced::Underflow { currency: self.word() });
        }
        let slack = if matches!(**self, Self::Pointwise) { Amount::ZERO } else { cost.total_slack().amount };
        let repeats = parts.iter().map(|(_, count)| count.get()).collect();
        let lanes = Lanes { amounts: lanes, repeats, slack };
        Ok(Charge { currency: Arc::clone(self), neighbors, cost: Arc::new(cost.clone()), lanes })
    }

    fn no_price(&self, cost: &Cost) -> Unpriced {
        let has = |single: &Single| match self {
            Self::Renyi(_) | Self::Clock(..) => true,
            Self::Rho | Self::Pointwise => single.family().rho().is_some(),
            Self::MuSquared => single.family().mu().is_some(),
            Self::Pure => single.family().approximate().is_some() && single.family().rho().is_some(),
        };
        let works = match self {
            Self::Renyi(_) | Self::Clock(..) => "any mechanism",
            Self::Rho | Self::Pointwise => "any mechanism but `renyi`; a mixture takes that too",
            Self::MuSquared => {
                "gaussian, gdp, partitioned_epoch and balls_and_bins_epoch; a mixture takes any mechanism"
            }
            Self::Pure => {
                "laplace, randomized_response, exponential, pure and approximate; zcdp and mixture take noise without \
                 an epsilon of its own"
            }
        };
        Unpriced::NoPrice {
            mechanism: cost.word_without(has).unwrap_or("this mechanism"),
            currency: self.word(),
            works,
        }
    }
}

/// The divergence at each order; at ∞ the sum of the pure ε, exact where they were given as decimals.
fn divergences(cost: &Cost, orders: &Orders) -> Vec<Amount> {
    let curve = cost.curve(orders);
    let lane = |(order, value): (Order, Divergence)| {
        let amount = Amount::from_f64_up(value.get());
        let exact = if order.get() == f64::INFINITY { cost.total_epsilon() } else { None };
        exact.map_or(amount, |exact| exact.amount.min(amount))
    };
    curve.points().map(lane).collect()
}

/// ρ, drift and δ of pointwise steps (Part 2.5), each (ε, δ)-DP step first made pointwise at 2ε (T36).
fn pointwise(cost: &Cost) -> Option<Vec<Amount>> {
    if cost.total_slack().amount == Amount::ZERO {
        return Some(vec![cost.total_rho()?.amount, Amount::ZERO, Amount::ZERO]);
    }
    let mut lanes = [Amount::ZERO; 3];
    for (single, count) in cost.singles()? {
        let Some((epsilon, delta)) = single.family().approximate().filter(|&(_, delta)| delta > Delta::ZERO) else {
            lanes[Currency::POINTWISE_RHO] = lanes[Currency::POINTWISE_RHO].plus(single.family().rho_of(count)?.amount);
            continue;
        };
        let wider = Epsilon::from_upper_bound(2.0 * epsilon.get());
        let delta = dp_to_pointwise(epsilon, delta, wider);
        // V = ε′², hence ρ = V/2; the drift is (1 + e^{−ε′})·δ′. ROUNDING: up.
        let e = Interval::point(wider.get());
        let rho = (e.square() * 0.5).hi();
        let drift = (((-e).exp() + 1.0) * delta.get()).hi();
        for (lane, one) in lanes.iter_mut().zip([rho, drift, delta.get()]) {
            *lane = lane.plus(Amount::from_f64_up(one).times(count.get()));
        }
    }
    Some(lanes.to_vec())
}

/// A cost that cannot be priced in a currency. Nothing was charged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unpriced {
    /// Its neighbor relation is not the one of the sums.
    #[error("a cost under {given} neighbors cannot be charged where neighbors are {expected}")]
    Neighbors {
        /// The cost's.
        given: Neighbors,
        /// The sums'.
        expected: Neighbors,
    },
    /// One of its mechanisms has no price in the currency.
    #[error("{mechanism} has no price here: it has no {currency}; what has one: {works}")]
    NoPrice {
        /// The mechanism's word.
        mechanism: &'static str,
        /// What is missing.
        currency: &'static str,
        /// What would work.
        works: &'static str,
    },
    /// A step with a δ of its own where the loss itself must be bounded.
    #[error(
        "a step with a delta of its own has no bound on its loss here; the linear, stitched and normal-mixture odometers take \
         such steps"
    )]
    OwnDelta,
    /// The price is infinite.
    #[error("the cost is infinite: expected a {currency} that is finite somewhere")]
    Infinite {
        /// The currency.
        currency: &'static str,
    },
    /// The price is zero although the mechanism depends on the data.
    #[error("the cost is zero by underflow: expected a {currency} above 0 for a mechanism that depends on the data")]
    Underflow {
        /// The currency.
        currency: &'static str,
    },
}

/// What a charge adds, without what it is for: one part, or on a clock one for each of its mechanisms, which is paid for as often as it repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// One part after the other.
    amounts: Vec<Amount>,
    repeats: Vec<u64>,
    slack: Amount,
}

impl Lanes {
    /// As they were stored; `None` when their number is not the currency's.
    #[must_use]
    pub fn from_stored(currency: &Currency, amounts: Vec<Amount>, repeats: Vec<u64>, slack: Amount) -> Option<Self> {
        let is_clock = matches!(currency, Currency::Clock(..));
        let fits = Some(amounts.len()) == currency.price_lanes().checked_mul(repeats.len());
        let repeated = !repeats.is_empty() && !repeats.contains(&0) && (is_clock || repeats == [1]);
        (fits && repeated).then_some(Self { amounts, repeats, slack })
    }

    /// The amounts in the lanes of each part, and how often they are to be counted.
    pub fn parts(&self) -> impl Iterator<Item = (&[Amount], u64)> {
        let lanes = self.amounts.len() / self.repeats.len();
        self.amounts.chunks(lanes).zip(self.repeats.iter().copied())
    }

    /// All amounts, one part after the other.
    #[must_use]
    pub fn amounts(&self) -> &[Amount] {
        &self.amounts
    }

    /// How often each part is to be counted: once, but on a clock.
    #[must_use]
    pub fn repeats(&self) -> &[u64] {
        &self.repeats
    }

    /// The sum in each lane.
    #[must_use]
    pub fn totals(&self) -> Vec<Amount> {
        let mut totals = vec![Amount::ZERO; self.amounts.len() / self.repeats.len()];
        for (amounts, repeats) in self.parts() {
            for (total, amount) in totals.iter_mut().zip(amounts) {
                *total = total.plus(amount.times(repeats));
            }
        }
        totals
    }

    /// The probability of the event outside which the amounts hold: of all of it.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.slack
    }
}

/// What is held for charges that may still be given back: the sum in each of the lanes that charges have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    amounts: Vec<Amount>,
    slack: Amount,
}

impl Held {
    /// All of a charge.
    #[must_use]
    pub fn of(charge: &Lanes) -> Self {
        Self::new(charge.totals(), charge.slack)
    }

    pub(crate) const fn new(amounts: Vec<Amount>, slack: Amount) -> Self {
        Self { amounts, slack }
    }

    /// Sums that were stored; `None` when their number is not the currency's.
    #[must_use]
    pub fn from_stored(currency: &Currency, amounts: Vec<Amount>, slack: Amount) -> Option<Self> {
        (amounts.len() == currency.price_lanes()).then_some(Self { amounts, slack })
    }

    /// The sum in each lane.
    #[must_use]
    pub fn amounts(&self) -> &[Amount] {
        &self.amounts
    }

    /// The sum of the slacks.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.slack
    }

    /// These without some that are among them; `None` where something infinite is, from which nothing can be taken.
    pub(crate) fn less(&self, other: &Self) -> Option<Self> {
        let known = |(all, some): (&Amount, &Amount)| !all.is_infinite() && !some.is_infinite() && some <= all;
        let less = || self.amounts.iter().zip(&other.amounts).map(|(all, some)| all.minus(*some)).collect();
        let all = self.amounts.iter().chain([&self.slack]).zip(other.amounts.iter().chain([&other.slack])).all(known);
        all.then(|| Self { amounts: less(), slack: self.slack.minus(other.slack) })
    }

    /// Whether it is nothing.
    pub(crate) fn is_nothing(&self) -> bool {
        self.slack == Amount::ZERO && self.amounts.iter().all(|amount| *amount == Amount::ZERO)
    }

    /// These and those.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let amounts = self.amounts.iter().zip(&other.amounts).map(|(a, b)| a.plus(*b)).collect();
        Self { amounts, slack: self.slack.plus(other.slack) }
    }
}

/// A cost in one currency, as exact amounts. Made by [`Currency::price`] alone.
#[derive(Clone, Debug)]
pub struct Charge {
    currency: Arc<Currency>,
    neighbors: Neighbors,
    cost: Arc<Cost>,
    lanes: Lanes,
}

impl Charge {
    /// What it adds.
    #[must_use]
    pub const fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// What is charged for.
    #[must_use]
    pub const fn cost(&self) -> &Arc<Cost> {
        &self.cost
    }

    /// Whether it was priced in this currency and under these neighbors.
    #[must_use]
    pub(crate) fn fits(&self, currency: &Arc<Currency>, neighbors: Neighbors) -> bool {
        self.neighbors == neighbors && (Arc::ptr_eq(&self.currency, currency) || self.currency == *currency)
    }
}

/// Exact sums of charges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    lanes: Vec<Amount>,
    slack: Amount,
}

impl Sums {
    /// Nothing yet.
    #[must_use]
    pub fn zero(currency: &Currency) -> Self {
        Self { lanes: vec![Amount::ZERO; currency.lanes()], slack: Amount::ZERO }
    }

    /// Sums as they were stored; `None` when their number is not the currency's.
    #[must_use]
    pub fn from_stored(currency: &Currency, lanes: Vec<Amount>, slack: Amount) -> Option<Self> {
        (lanes.len() == currency.lanes()).then_some(Self { lanes, slack })
    }

    /// These and a charge, `count` times; everything becomes infinite when their numbers differ, since they are in different currencies then.
    #[must_use]
    pub fn plus(&self, charge: &Lanes, count: u64) -> Self {
        let mut sums = self.clone();
        sums.add(charge, count);
        sums
    }

    /// Adds a charge, `count` times, as [`Sums::plus`] does.
    pub(crate) fn add(&mut self, charge: &Lanes, count: u64) {
        for (amounts, repeats) in charge.parts() {
            if self.lanes.len() != amounts.len() {
                self.lanes.fill(Amount::INFINITE);
            }
            for (sum, amount) in self.lanes.iter_mut().zip(amounts) {
                *sum = sum.plus(amount.times(repeats).times(count));
            }
        }
        self.slack = self.slack.plus(charge.slack.times(count));
    }

    /// These and what is held.
    #[must_use]
    pub fn and(&self, held: &Held) -> Self {
        let lanes = self.lanes.iter().zip(&held.amounts).map(|(sum, held)| sum.plus(*held)).collect();
        Self { lanes, slack: self.slack.plus(held.slack) }
    }

    /// Other sums in the lanes, and more slack.
    pub(crate) fn moved(&self, lanes: Vec<Amount>, slack: Amount) -> Self {
        Self { lanes, slack: self.slack.plus(slack) }
    }

    /// The sum in each lane.
    #[must_use]
    pub fn lanes(&self) -> &[Amount] {
        &self.lanes
    }

    /// The sum of the slacks.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.slack
    }
}
