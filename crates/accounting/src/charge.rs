//! What a cost adds to the sums of a filter or an odometer: exact amounts in one currency.
//!
//! Pricing (a curve at some orders, say) is the slow part and depends on nothing that was asked before; a charge that is
//! known can be admitted millions of times a second.

use crate::convert::pointwise::dp_to_pointwise;
use crate::cost::Cost;
use crate::curve::Orders;
use crate::loss::clock::Levels;
use crate::mechanism::Single;
use crate::params::{Count, Delta, Divergence, Epsilon, Neighbors, Order};
use paygo_numeric::{Amount, Interval};
use std::sync::Arc;

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
    /// A payment at each level of a clock, and ε (T53). Charges have a number for each level; of payments there is one sum.
    Clock(Levels),
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
            Self::Clock(_) => "price on the clock",
        }
    }

    /// How many sums there are.
    #[must_use]
    pub fn lanes(&self) -> usize {
        match self {
            Self::Renyi(orders) => orders.as_slice().len(),
            Self::Rho | Self::MuSquared => 1,
            Self::Pure | Self::Clock(_) => 2,
            Self::Pointwise => 3,
        }
    }

    /// The price of one mechanism, lane by lane; `None` when it has none.
    fn lanes_of(&self, cost: &Cost) -> Option<Vec<Amount>> {
        match self {
            Self::Renyi(orders) => {
                let curve = cost.curve(orders);
                let lane = |(order, value): (Order, Divergence)| {
                    let amount = Amount::from_f64_up(value.get());
                    // At order ∞ the sum of the pure ε is exact where they were given as decimals.
                    let exact = if order.get() == f64::INFINITY { cost.total_epsilon() } else { None };
                    exact.map_or(amount, |exact| exact.amount.min(amount))
                };
                Some(curve.points().map(lane).collect())
            }
            Self::Rho => Some(vec![cost.total_rho()?.amount]),
            Self::MuSquared => Some(vec![cost.total_mu_squared()?.amount]),
            Self::Pure => Some(vec![cost.total_epsilon()?.amount, cost.total_rho()?.amount]),
            Self::Pointwise => pointwise(cost),
            Self::Clock(levels) => {
                let mut lanes = levels.prices(cost);
                lanes.push(cost.total_epsilon().map_or(Amount::INFINITE, |sum| sum.amount));
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
        // On a clock it matters how often: prices are those of one.
        let (one, repeats) = match &**self {
            Self::Clock(_) => cost.as_repeat(),
            Self::Renyi(_) | Self::Rho | Self::MuSquared | Self::Pure | Self::Pointwise => (cost.clone(), Count::ONE),
        };
        let lanes = self.lanes_of(&one).ok_or_else(|| self.no_price(cost))?;
        // A Rényi curve may be unknown at some orders, a pure ε may be missing where ρ is finite; not at all.
        // On a clock a price that is infinite is more than the clock holds.
        if lanes.iter().all(|amount| amount.is_infinite()) && !matches!(**self, Self::Clock(_)) {
            return Err(Unpriced::Infinite { currency: self.word() });
        }
        if !cost.is_null() && lanes.contains(&Amount::ZERO) && !matches!(**self, Self::Pointwise) {
            return Err(Unpriced::Underflow { currency: self.word() });
        }
        let slack = if matches!(**self, Self::Pointwise) { Amount::ZERO } else { cost.total_slack().amount };
        let (currency, cost, repeats) = (Arc::clone(self), Arc::new(cost.clone()), repeats.get());
        Ok(Charge { currency, neighbors, cost, lanes, repeats, slack })
    }

    fn no_price(&self, cost: &Cost) -> Unpriced {
        let has = |single: &Single| match self {
            Self::Renyi(_) | Self::Clock(_) => true,
            Self::Rho | Self::Pointwise => single.family().rho().is_some(),
            Self::MuSquared => single.family().mu().is_some(),
            Self::Pure => single.family().approximate().is_some() && single.family().rho().is_some(),
        };
        let works = match self {
            Self::Renyi(_) | Self::Clock(_) => "any mechanism",
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

/// A cost in one currency, as exact amounts. Made by [`Currency::price`] alone.
#[derive(Clone, Debug)]
pub struct Charge {
    currency: Arc<Currency>,
    neighbors: Neighbors,
    cost: Arc<Cost>,
    /// Of one, where they are repeated.
    lanes: Vec<Amount>,
    repeats: u64,
    slack: Amount,
}

impl Charge {
    /// The amount in each lane: of all of it, but on a clock of one of [`Charge::repeats`].
    #[must_use]
    pub fn lanes(&self) -> &[Amount] {
        &self.lanes
    }

    /// How often the amounts are to be counted.
    #[must_use]
    pub const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The probability of the event outside which the amounts hold.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.slack
    }

    /// The amounts as sums, to be stored.
    #[must_use]
    pub fn to_sums(&self) -> Sums {
        Sums { lanes: self.lanes.clone(), slack: self.slack }
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

    /// These and a charge, `count` times.
    #[must_use]
    pub fn plus(&self, charge: &Charge, count: u64) -> Self {
        let lanes = self.lanes.iter().zip(&charge.lanes);
        Self {
            lanes: lanes.map(|(sum, amount)| sum.plus(amount.times(count))).collect(),
            slack: self.slack.plus(charge.slack.times(count)),
        }
    }

    /// Other sums in the lanes, and the slack of a charge `count` times.
    pub(crate) fn moved(&self, lanes: Vec<Amount>, charge: &Charge, count: u64) -> Self {
        Self { lanes, slack: self.slack.plus(charge.slack.times(count)) }
    }

    /// Adds those; everything becomes infinite when their numbers differ, since they are in different currencies then.
    pub fn add_stored(&mut self, other: &Self) {
        if self.lanes.len() != other.lanes.len() {
            self.lanes.fill(Amount::INFINITE);
        }
        for (sum, amount) in self.lanes.iter_mut().zip(&other.lanes) {
            *sum = sum.plus(*amount);
        }
        self.slack = self.slack.plus(other.slack);
    }

    /// Adds a charge.
    pub(crate) fn add(&mut self, charge: &Charge) {
        for (sum, amount) in self.lanes.iter_mut().zip(&charge.lanes) {
            *sum = sum.plus(*amount);
        }
        self.slack = self.slack.plus(charge.slack);
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
