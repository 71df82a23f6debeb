//! The clock: at what price a step may be taken, so that the privacy-loss distribution may gate (T53).
//!
//! | read | for |
//! | --- | --- |
//! | `law` | the losses of a step, as atoms |
//! | `line` | the condition at all thresholds of a stretch |
//! | `price` | the least payment that meets it |
//!
//! Write `H_R(x) = E[(1 − e^{x−l})₊]` for the profile of a loss law at the threshold `x`, and `G_t` for that of Gaussian noise with
//! `μ² = t`. A payment `b` for a step with dominating pair `A` is enough, when `t` is left after it, where
//!
//! ```text
//! H_{A⊗G_t}(x) ≤ H_{G_{t+b}}(x) + rate·b    for every real x, in both directions.
//! ```
//!
//! Half of the thresholds are enough: `H_{(P,Q)}(−x) = 1 − e^{−x} + e^{−x}·H_{(Q,P)}(x)`, so that below zero one direction follows from
//! the other above it. And what is enough at `t` is enough at every larger one: compose both sides with what is more.

mod law;
mod line;
mod price;

use crate::account::known_profile;
use crate::cost::Cost;
use crate::mechanism::{Mechanism, Single};
use crate::params::{Count, Epsilon, OutOfDomain};
use law::Law;
use paygo_numeric::Amount;
use price::{Allowance, Direction};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A payment above it is none.
const MOST: f64 = 1e6;
/// A step is priced as if this share of its allowance were lost with the largest losses.
const LOST: f64 = 1e-3;

/// Where on a Gaussian clock prices are asked for, and how much of δ goes with a payment.
///
/// ```
/// use paygo_accounting::{loss::clock::Levels, mechanism::Mechanism};
/// use paygo_accounting::{cost::Cost, params::Neighbors};
/// use paygo_numeric::Amount;
/// let levels = Levels::new(Amount::ONE, 1e-9)?;
/// let cost = Cost::of(&Mechanism::laplace(10.0)?, Neighbors::AddRemove)?;
/// let prices = levels.prices(&cost);
/// // More is left after it, less is paid.
/// assert!(prices[0] < prices[20]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Levels {
    /// What is left of the clock, falling; the last is 0.
    at: Vec<Amount>,
    /// η for a payment of 1.
    rate: f64,
    /// Prices that were asked for, the latest first.
    known: Arc<Mutex<VecDeque<Known>>>,
}

/// A mechanism and its price at each level.
type Known = (Single, Arc<[Amount]>);

/// How many prices are kept.
const KEPT: usize = 256;

/// What is kept changes no price.
impl PartialEq for Levels {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.rate == other.rate
    }
}

impl Levels {
    /// How many there are above 0, and how each follows from the one before.
    const COUNT: usize = 32;
    const STEP: (u64, u64) = (5, 6);

    /// The usual ones of a clock with so much on it: each five sixths of the one before, and 0.
    ///
    /// # Errors
    /// [`OutOfDomain`] as [`Levels::from_stored`] has it.
    pub fn new(clock: Amount, rate: f64) -> Result<Self, OutOfDomain> {
        let (part, whole) = Self::STEP;
        let next = |level: &Amount| Some(level.shared_by(whole).times(part)).filter(|next| *next > Amount::ZERO);
        let levels = std::iter::successors(next(&clock), next).take(Self::COUNT);
        Self::from_stored(levels.chain([Amount::ZERO]).collect(), rate)
    }

    /// Levels that were stored.
    ///
    /// # Errors
    /// [`OutOfDomain`] when they do not fall to 0, or the rate is not a positive number.
    pub fn from_stored(at: Vec<Amount>, rate: f64) -> Result<Self, OutOfDomain> {
        let falls = at.windows(2).all(|pair| pair[0] > pair[1]);
        if !falls || at.last() != Some(&Amount::ZERO) || at[0].is_infinite() {
            return Err(OutOfDomain::new("levels", at.len(), "finite amounts that fall to 0"));
        }
        if !(rate > 0.0 && rate.is_finite()) {
            return Err(OutOfDomain::new("rate", rate, "0 < rate < inf"));
        }
        Ok(Self { at, rate, known: Arc::default() })
    }

    /// The levels, falling to 0.
    #[must_use]
    pub fn as_slice(&self) -> &[Amount] {
        &self.at
    }

    /// How much of δ goes with a payment of 1.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The price of a cost at each level, rising: valid while at least so much is left after it, infinite where it is more than the clock
    /// holds.
    #[must_use]
    pub fn prices(&self, cost: &Cost) -> Vec<Amount> {
        cost.total_payments(self.at.len(), &|single, count| self.of(single, count))
    }

    /// What is left after `count` steps with these prices; `None` when the clock cannot pay.
    ///
    /// As many as fit are paid for at the highest level that stays left after them, then at the next: as if they had come one by one.
    #[must_use]
    pub fn walk(&self, mut left: Amount, prices: &[Amount], mut count: u64) -> Option<Amount> {
        for (&level, &price) in self.at.iter().zip(prices) {
            if count == 0 {
                break;
            }
            if left >= level && !price.is_infinite() {
                let steps = price.fits_into(left.minus(level)).min(count);
                left = left.minus(price.times(steps));
                count -= steps;
            }
        }
        (count == 0).then_some(left)
    }

    fn of(&self, single: &Single, count: Count) -> Vec<Amount> {
        let family = single.family();
        // Gaussian noise moves its own clock exactly: no δ is needed, at any level (T53 b).
        if let Some(square) = family.mu_squared_of(count) {
            return vec![square.amount; self.at.len()];
        }
        if family.is_null() {
            return vec![Amount::ZERO; self.at.len()];
        }
        self.remembered(single).iter().map(|price| price.times(count.get())).collect()
    }

    fn remembered(&self, single: &Single) -> Arc<[Amount]> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prices)) = known().iter().find(|(other, _)| other == single) {
            return Arc::clone(prices);
        }
        let prices: Arc<[Amount]> = self.searched(single).into();
        let mut known = known();
        known.truncate(KEPT - 1);
        known.push_front((single.clone(), Arc::clone(&prices)));
        prices
    }

    /// From the highest level down: a price at one level is at least that at a higher one.
    fn searched(&self, single: &Single) -> Vec<Amount> {
        let bottom = self.at[self.at.len().saturating_sub(2)].to_f64_down();
        let top = self.at[0].to_f64_up();
        // Where doubles do not suffice it is too dear.
        let directions = directions(single, LOST * self.rate, (bottom, top));
        let mut least = if directions.is_some() { 0.0 } else { f64::INFINITY };
        let directions = directions.unwrap_or_default();
        let price = |&level: &Amount| {
            let time = level.to_f64_down();
            // So it is at all lower levels than one where it is.
            least = least_for(&directions, time, Allowance::Rate(self.rate), (least, 2.0 * top))
                .filter(|_| time > 0.0)
                .unwrap_or(f64::INFINITY);
            Amount::from_f64_up(least)
        };
        self.at.iter().map(price).collect()
    }
}

/// The payment for one step when so much is left of a Gaussian clock after it, and so much of δ goes with it; rounded up. +∞ where none was found.
#[must_use]
pub fn payment(single: &Single, remaining: f64, eta: f64) -> f64 {
    if let Some(square) = single.family().mu_squared_of(Count::ONE) {
        return square.float;
    }
    let price = directions(single, LOST * eta, (remaining, remaining))
        .and_then(|directions| least_for(&directions, remaining, Allowance::Fixed(eta), (0.0, MOST)));
    price.unwrap_or(f64::INFINITY)
}

/// The least payment from one on that is enough in every direction.
fn least_for(directions: &[Direction], time: f64, allowance: Allowance, (least, most): (f64, f64)) -> Option<f64> {
    directions.iter().try_fold(least, |least, direction| {
        if least > most {
            return None;
        }
        let spread = direction.spread();
        direction.price(time, allowance, (least.max(0.1 * spread * spread), most))
    })
}

/// The laws of a step in each direction, or one that is enough for both; clocks stand between these two.
fn directions(single: &Single, negligible: f64, (least, most): (f64, f64)) -> Option<Vec<Direction>> {
    let laws = match single.family().pair() {
        Some(pair) => {
            let ways: &[bool] = if pair.is_symmetric() { &[false] } else { &[false, true] };
            ways.iter().map(|&added| Law::of_pair(pair, added, negligible)).collect::<Option<Vec<_>>>()?
        }
        None => {
            let cost = Cost::of(&Mechanism::Single(single.clone()), *single.family().neighbors().first()?).ok()?;
            let known = known_profile(&cost);
            vec![Law::of_profile(|x| known(Epsilon::from_upper_bound(x)).get(), negligible)?]
        }
    };
    Some(laws.into_iter().map(|law| Direction::new(law, least, most)).collect())
}
