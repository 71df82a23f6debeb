//! What a clock counts, and what a step costs on it.

use super::curve::Curve;
use super::law::Law;
use super::line::Coin;
use super::price::{Allowance, Direction, MOST_WORK_OF_ALL, Task};
use super::profile::{least, profile};
use super::rest::{Kernels, Rest};
use super::{LOST, exact, law, laws};
use crate::cost::Cost;
use crate::mechanism::Single;
use crate::params::{Count, Epsilon, OutOfDomain};
use paygo_numeric::Amount;
use paygo_numeric::elementary::{ln, power_of_two};
use paygo_numeric::rounding::{add_up, mul_up};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Most kinds of steps in a plan.
pub const MAX_KINDS: usize = 256;
/// The noise that makes what was spent of a plan smooth, as a share of it.
const SMOOTH: f64 = 0.002;
/// A plan of more kinds has prices in steps of some of them only.
const MANY_KINDS: usize = 32;
/// How many prices are kept.
const KEPT: usize = 256;

/// The reference of a clock (T53): the steps of a plan that are left, and Gaussian noise.
///
/// What is left is a vector of [`Amount`]s: of each kind of step so many, and of noise so much μ². Of a part of a step is left
/// what a coin that everybody sees makes of it: the step with that probability, or nothing.
///
/// ```
/// use paygo_accounting::{loss::clock::{Reference, Terms}, mechanism::Mechanism};
/// use paygo_accounting::{cost::Cost, params::Neighbors};
/// use paygo_numeric::Amount;
/// let reference = Reference::new(Vec::new(), Terms::noise(Amount::ONE, 1e-9))?;
/// let cost = Cost::of(&Mechanism::laplace(10.0)?, Neighbors::AddRemove)?;
/// let prices = reference.prices(&cost).expect("it has a law");
/// // More is left after it, less is paid.
/// assert!(prices[0] < prices[20]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reference {
    kinds: Arc<[Kind]>,
    terms: Terms,
    levels: Arc<[Level]>,
    known: Arc<Mutex<Known>>,
    /// Of what is left at each level, in either direction.
    kernels: Arc<[[Kernels; 2]]>,
}

/// Everything of a reference but the steps: numbers that are fixed when it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The noise at first, as μ².
    pub noise: Amount,
    /// Below so much noise the plan pays for nothing but itself: it makes what is left of a plan smooth.
    pub base: Amount,
    /// How much noise is left where prices are asked for, falling to 0.
    pub noise_levels: Vec<Amount>,
    /// How many steps of the plan are left where prices are asked for, falling to 0; empty without a plan.
    pub step_levels: Vec<u64>,
    /// Whether prices in noise are asked for there, too: of no use where there is hardly more of it than the base.
    pub has_reserve: bool,
    /// How much of δ goes with a payment of 1 in noise.
    pub rate: f64,
    /// How much of δ goes with a payment in steps, for each unit of the second moment of their loss.
    pub step_rate: f64,
    /// How much of a step's loss may count as infinite, as a multiple of its second moment: part of what the laws of the plan are.
    pub negligible: f64,
}

/// Steps of one kind.
#[derive(Clone, Debug)]
struct Kind {
    single: Single,
    count: Count,
    /// With the record against without, and the other way around.
    laws: Arc<[Law; 2]>,
}

/// What is to be left at least after a payment, and what it is paid in: a kind of step, or noise, which comes last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    left: Vec<Amount>,
    coin: usize,
    turn: Turn,
    /// Where what is held in noise is paid for if others pay here: this level, or the highest in noise at which no more is left of anything.
    noise: Option<usize>,
}

/// When a level is asked: first the noise beside the plan, then the plan, then the rest of the noise. Within one of them a price at a level is at
/// least that at those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// In noise, while the plan is left.
    NoiseBesidePlan,
    /// In noise, whatever else is left.
    Noise,
    /// In steps of the plan.
    Steps,
    /// In noise below the base.
    LastNoise,
}

/// Prices and gauges that were asked for.
#[derive(Debug, Default)]
struct Known {
    prices: VecDeque<(Single, Arc<[Amount]>)>,
    worth: HashMap<(Vec<Amount>, u64), f64>,
}

/// With the same prices, however much noise there is at first.
impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        let alike = Terms { noise: other.terms.noise, ..self.terms.clone() };
        alike == other.terms && self.steps() == other.steps()
    }
}

impl Terms {
    /// How many levels of noise there are above 0, and how each follows from the one before.
    const COUNT: usize = 32;
    const STEP: (u64, u64) = (5, 6);
    /// How many levels of steps there are; they follow from each other in the same way.
    const STEP_COUNT: usize = 12;
    /// Beside a plan nothing is asked for where less noise is left than such a part of it: it would be too dear.
    const LITTLE: u64 = 20;

    /// Noise alone: so much of it, and so much of δ for a payment of 1.
    #[must_use]
    pub fn noise(noise: Amount, rate: f64) -> Self {
        let (part, whole) = Self::STEP;
        let next = |level: &Amount| Some(level.shared_by(whole).times(part)).filter(|next| *next > Amount::ZERO);
        let levels = std::iter::successors(next(&noise), next).take(Self::COUNT);
        Self {
            noise,
            base: Amount::ZERO,
            noise_levels: levels.chain([Amount::ZERO]).collect(),
            step_levels: Vec::new(),
            has_reserve: false,
            rate,
            step_rate: rate,
            negligible: LOST * rate,
        }
    }

    /// Beside steps in this order, which weigh as much as so much noise: levels at the end of each kind, and some between.
    #[must_use]
    pub fn beside(mut self, (base, weight): (Amount, Amount), step_rate: f64, negligible: f64, counts: &[u64]) -> Self {
        let (part, whole) = Self::STEP;
        let total: u64 = counts.iter().sum();
        let next = |level: &u64| Some(level / whole * part + level % whole * part / whole).filter(|next| *next > 0);
        let even = std::iter::successors(next(&total), next).take(Self::STEP_COUNT);
        // Of many kinds some pay for all.
        let ends = counts.iter().scan(total, |left, count| {
            *left -= count;
            Some(*left)
        });
        let ends = ends.skip(counts.len().div_ceil(MANY_KINDS) - 1).step_by(counts.len().div_ceil(MANY_KINDS));
        let mut levels: Vec<u64> = even.chain(ends).chain([0]).collect();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        levels.dedup();
        (self.base, self.step_rate, self.negligible, self.step_levels) = (base, step_rate, negligible, levels);
        self.has_reserve = self.noise > base.times(4);
        self.noise_levels.retain(|level| *level == Amount::ZERO || *level >= weight.shared_by(Self::LITTLE).max(base));
        self
    }

    fn check(&self, has_steps: bool) -> Result<(), OutOfDomain> {
        let falls = self.noise_levels.windows(2).all(|pair| pair[0] > pair[1]);
        if !falls || self.noise_levels.last() != Some(&Amount::ZERO) || self.noise_levels[0].is_infinite() {
            return Err(OutOfDomain::new("levels", self.noise_levels.len(), "finite amounts that fall to 0"));
        }
        let falls = self.step_levels.windows(2).all(|pair| pair[0] > pair[1]);
        if !falls || self.step_levels.last().is_some_and(|last| *last > 0) || self.step_levels.is_empty() == has_steps {
            return Err(OutOfDomain::new("step_levels", self.step_levels.len(), "numbers that fall to 0"));
        }
        if self.noise.is_infinite() || self.base > self.noise {
            return Err(OutOfDomain::new("base", self.base, "at most the noise, which is finite"));
        }
        for (name, rate) in [("rate", self.rate), ("step_rate", self.step_rate), ("negligible", self.negligible)] {
            if !(rate > 0.0 && rate.is_finite()) {
                return Err(OutOfDomain::new(name, rate, "0 < rate < inf"));
            }
        }
        Ok(())
    }
}

impl Reference {
    /// Steps in the order in which they will probably be taken, beside noise.
    ///
    /// # Errors
    /// [`OutOfDomain`] when levels do not fall to 0, a rate is not a positive number, or a kind of step has no law.
    pub fn new(steps: Vec<(Single, u64)>, terms: Terms) -> Result<Self, OutOfDomain> {
        if steps.len() > MAX_KINDS {
            return Err(OutOfDomain::new("kinds of steps", steps.len(), "at most 256"));
        }
        terms.check(!steps.is_empty())?;
        let kind = |(single, count): (Single, u64)| {
            let law = law(&single, false, terms.negligible)
                .ok_or_else(|| OutOfDomain::new("plan", single.word(), "mechanisms whose loss has a law"))?;
            let mirrored = law.mirrored();
            Ok(Kind { single, count: Count::new(count)?, laws: Arc::new([law, mirrored]) })
        };
        let kinds: Arc<[Kind]> = steps.into_iter().map(kind).collect::<Result<Vec<_>, OutOfDomain>>()?.into();
        Ok(Self::of_kinds(kinds, terms))
    }

    fn of_kinds(kinds: Arc<[Kind]>, terms: Terms) -> Self {
        let levels: Arc<[Level]> = levels(&kinds, &terms).into();
        let kernels = levels.iter().map(|_| Default::default()).collect();
        Self { kinds, terms, levels, known: Arc::default(), kernels }
    }

    /// The same steps, with the same laws, and other terms.
    ///
    /// # Errors
    /// [`OutOfDomain`], as [`Reference::new`].
    pub fn with(&self, terms: Terms) -> Result<Self, OutOfDomain> {
        let terms = Terms { negligible: self.terms.negligible, ..terms };
        terms.check(!self.kinds.is_empty())?;
        Ok(Self::of_kinds(Arc::clone(&self.kinds), terms))
    }

    /// The first steps, so many, with other terms.
    ///
    /// # Errors
    /// [`OutOfDomain`], as [`Reference::new`].
    pub(crate) fn first(
        &self,
        mut steps: u64,
        terms: impl FnOnce(&Self, &[u64]) -> Terms,
    ) -> Result<Self, OutOfDomain> {
        let first = |kind: &Kind| {
            let count = kind.count.get().min(steps);
            steps -= count;
            Some(Kind { count: Count::new(count).ok()?, ..kind.clone() })
        };
        let kinds: Arc<[Kind]> = self.kinds.iter().filter_map(first).collect();
        let counts: Vec<u64> = kinds.iter().map(|kind| kind.count.get()).collect();
        let (levels, known, kernels) = (Arc::default(), Arc::default(), Arc::default());
        let some = Self { kinds: Arc::clone(&kinds), terms: self.terms.clone(), levels, known, kernels };
        let terms = terms(&some, &counts);
        terms.check(!kinds.is_empty())?;
        Ok(Self::of_kinds(kinds, terms))
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> Vec<(Single, u64)> {
        self.kinds.iter().map(|kind| (kind.single.clone(), kind.count.get())).collect()
    }

    /// Everything else.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// How many numbers say what is left.
    #[must_use]
    pub fn coins(&self) -> usize {
        self.kinds.len() + 1
    }

    /// How many numbers a price has.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.kinds.len() + self.levels.len()
    }

    /// What is left at first.
    #[must_use]
    pub fn full(&self) -> Vec<Amount> {
        self.kinds.iter().map(|kind| Amount::ONE.times(kind.count.get())).chain([self.terms.noise]).collect()
    }

    /// About the second moment of the loss of what is in such a vector.
    #[must_use]
    pub fn weight(&self, coins: &[Amount]) -> f64 {
        let steps = self.kinds.iter().zip(coins).map(|(kind, n)| kind.weight() * n.to_f64_up());
        steps.sum::<f64>() + coins.last().map_or(0.0, |noise| noise.to_f64_up())
    }

    /// What goes with all payments together, of δ; rounded up.
    #[must_use]
    pub fn allowances(&self) -> f64 {
        let steps = self.kinds.iter().map(|kind| mul_up(self.rate_of(kind), kind.count.to_f64()));
        steps.fold(mul_up(self.terms.rate, self.terms.noise.to_f64_up()), add_up)
    }

    fn rate_of(&self, kind: &Kind) -> f64 {
        self.terms.step_rate * kind.weight()
    }

    /// A bound on δ at an ε for all that such a vector holds, in both directions; a part of a step counts whole.
    #[must_use]
    pub fn delta(&self, coins: &[Amount], epsilon: Epsilon, about: f64) -> f64 {
        let of = |way: usize| profile(&self.rest(coins, way), epsilon.get(), about);
        if self.kinds.is_empty() { of(0) } else { of(0).max(of(1)) }
    }

    /// The least ε with this δ for all that such a vector holds, rounded up: nearly the least, but for two digits of what it holds and a little
    /// noise.
    pub(crate) fn worth(&self, spent: &[Amount], delta: f64) -> f64 {
        let mut coins: Vec<Amount> = spent.iter().map(|&amount| rounded(amount)).collect();
        // Without some noise nothing but Chernoff's bound is known of steps.
        let little = Amount::from_f64_up(SMOOTH * self.weight(&coins));
        if let (false, Some(noise)) = (self.kinds.is_empty(), coins.last_mut()) {
            *noise = (*noise).max(little);
        }
        let key = (coins, delta.to_bits());
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&worth) = known().worth.get(&key) {
            return worth;
        }
        // What is worth μ² of noise is at most a little above μ²/2 + μ·√(2·ln(1/δ)); twice that, and more when that is not enough.
        let weight = self.weight(&key.0);
        let start = 0.5 * weight + (-2.0 * weight * ln(delta)).sqrt();
        let bound = |x: f64| self.delta(&key.0, Epsilon::from_upper_bound(x), delta);
        let worth = [1.5, 6.0, 100.0].iter().map(|more| least(bound, delta, more * start));
        let worth = worth.into_iter().find(|worth| worth.is_finite()).unwrap_or(f64::INFINITY);
        let mut known = known();
        if known.worth.len() >= 64 * KEPT {
            known.worth.clear();
        }
        known.worth.insert(key, worth);
        worth
    }

    fn rest(&self, coins: &[Amount], way: usize) -> Rest<'_> {
        let some = self.kinds.iter().zip(coins).filter(|(_, n)| **n > Amount::ZERO);
        let steps = some.map(|(kind, n)| (&kind.laws[way], n.to_f64_up().ceil())).collect();
        Rest { noise: coins.last().map_or(0.0, |noise| noise.to_f64_up()), steps, known: None }
    }

    /// How many of a price the steps of the plan pay for exactly, beside what is held.
    fn followed(&self, left: &[Amount], held: Option<&[Amount]>, price: &[Amount]) -> u64 {
        let held = |kind: usize| held.map_or(Amount::ZERO, |held| held[kind]);
        let steps = (0..self.kinds.len()).filter(|&kind| price[kind] > Amount::ZERO);
        steps.map(|kind| price[kind].fits_into(left[kind].minus(held(kind)))).min().unwrap_or(0)
    }

    /// Whether `count` of a price are steps of the plan that are left.
    pub(crate) fn has_steps(&self, left: &[Amount], held: Option<&[Amount]>, price: &[Amount], count: u64) -> bool {
        self.followed(left, held, price) >= count
    }

    /// What is to be left at least at a level, with what is held: steps of the plan, and noise.
    fn floor<'a>(&'a self, level: usize, held: Option<&'a [Amount]>) -> impl Iterator<Item = Amount> + 'a {
        let Level { left, noise, .. } = &self.levels[level];
        let kinds = self.kinds.len();
        left.iter().enumerate().map(move |(i, floor)| {
            let Some(held) = held else { return *floor };
            floor.plus(match noise {
                _ if i < kinds => held[i],
                Some(level) => held[kinds + level],
                None if held[kinds..].iter().all(|price| *price == Amount::ZERO) => Amount::ZERO,
                None => Amount::INFINITE,
            })
        })
    }

    /// What is left without what is held; `None` when that is more than there is.
    pub(crate) fn without(&self, mut left: Vec<Amount>, held: &[Amount]) -> Option<Vec<Amount>> {
        let (steps, prices) = held.split_at(self.kinds.len());
        if left.iter().zip(steps).any(|(left, steps)| left < steps) {
            return None;
        }
        for (left, steps) in left.iter_mut().zip(steps) {
            *left = left.minus(*steps);
        }
        if prices.iter().all(|price| *price == Amount::ZERO) {
            return Some(left);
        }
        let pays = |&level: &usize| {
            let Level { left: floor, coin, .. } = &self.levels[level];
            let price = |i: usize| if i == *coin { prices[level] } else { Amount::ZERO };
            let is_left = left.iter().zip(floor).enumerate().all(|(i, (left, floor))| *left >= floor.plus(price(i)));
            *coin == self.kinds.len() && is_left
        };
        let level = self.order(prices).into_iter().find(pays)?;
        let coin = self.levels[level].coin;
        left[coin] = left[coin].minus(prices[level]);
        Some(left)
    }

    /// What is left after `count` of a price, beside what is held; `None` when it cannot be paid.
    ///
    /// Steps of the plan are taken off it as they are, while there are enough. Else as many as fit are paid for at the cheapest level that stays
    /// left after them, then at the next: as if they had come one by one.
    #[must_use]
    pub fn walk(
        &self,
        mut left: Vec<Amount>,
        held: Option<&[Amount]>,
        price: &[Amount],
        count: u64,
    ) -> Option<Vec<Amount>> {
        let followed = self.followed(&left, held, price).min(count);
        left = self.follow(left, price, followed);
        self.pay(left, held, price, count - followed, |_| true)
    }

    /// The same, with nothing but noise.
    pub(crate) fn walk_in_noise(
        &self,
        left: Vec<Amount>,
        held: Option<&[Amount]>,
        price: &[Amount],
        count: u64,
    ) -> Option<Vec<Amount>> {
        self.pay(left, held, price, count, |coin| coin == self.kinds.len())
    }

    /// What is left after `count` of a price were taken as steps of the plan.
    pub(crate) fn follow(&self, mut left: Vec<Amount>, price: &[Amount], count: u64) -> Vec<Amount> {
        for (left, own) in left.iter_mut().zip(&price[..self.kinds.len()]) {
            *left = left.minus(own.times(count));
        }
        left
    }

    /// What is left after `count` of a price, in some coins.
    fn pay(
        &self,
        mut left: Vec<Amount>,
        held: Option<&[Amount]>,
        price: &[Amount],
        mut count: u64,
        coins: impl Fn(usize) -> bool,
    ) -> Option<Vec<Amount>> {
        let prices = &price[self.kinds.len()..];
        for level in self.order(prices) {
            if count == 0 {
                break;
            }
            let (coin, price) = (self.levels[level].coin, prices[level]);
            if price.is_infinite()
                || !coins(coin)
                || self.floor(level, held).zip(&left).any(|(floor, left)| *left < floor)
            {
                continue;
            }
            let floor = self.floor(level, held).nth(coin).unwrap_or(Amount::INFINITE);
            let paid = price.fits_into(left[coin].minus(floor)).min(count);
            left[coin] = left[coin].minus(price.times(paid));
            count -= paid;
        }
        (count == 0).then_some(left)
    }

    /// Levels in the order in which they are asked: in noise beside a plan the cheapest first.
    fn order(&self, prices: &[Amount]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.levels.len()).collect();
        if !self.kinds.is_empty() {
            let turn = |at: usize| self.levels[at].turn.max(Turn::Noise);
            order.sort_by(|&a, &b| {
                let cheaper = || if turn(a) == Turn::Noise { prices[a].cmp(&prices[b]) } else { a.cmp(&b) };
                turn(a).cmp(&turn(b)).then_with(cheaper)
            });
        }
        order
    }

    /// What a cost takes of each kind of step, if it is made of nothing else, else more than there is; and its price at each level: valid while at
    /// least so much is left after it, infinite where it is more than there is. `None` when the loss of a mechanism has no law here.
    #[must_use]
    pub fn prices(&self, cost: &Cost) -> Option<Vec<Amount>> {
        let own = self.own(cost).unwrap_or_else(|| vec![Amount::INFINITE; self.kinds.len()]);
        let prices = cost.total_payments(self.levels.len(), &|single, count| self.of(single, count))?;
        Some(own.into_iter().chain(prices).collect())
    }

    /// Whether a mechanism can be a step of a plan: what is no Gaussian noise, and has a pair of laws that is its own, not only one above it.
    pub(crate) fn counts(&self, single: &Single, negligible: f64) -> bool {
        let family = single.family();
        family.pair().is_some()
            && family.mu().is_none()
            && family.bounded_range().is_none()
            && !family.is_null()
            && law(single, false, negligible).is_some()
    }

    fn own(&self, cost: &Cost) -> Option<Vec<Amount>> {
        let mut own = vec![Amount::ZERO; self.kinds.len()];
        for (single, count) in cost.singles()? {
            let at = self.kinds.iter().position(|kind| kind.single == *single)?;
            own[at] = Amount::ONE.times(count.get());
        }
        Some(own)
    }

    fn of(&self, single: &Single, count: Count) -> Option<Vec<Amount>> {
        let family = single.family();
        if family.is_null() {
            return Some(vec![Amount::ZERO; self.levels.len()]);
        }
        // Gaussian noise moves its own clock exactly, and a step of the plan is worth one: no δ is needed, at any level (T53 b).
        let square = exact(single, count).map(|square| square.amount);
        let of_level = |level: &Level| match self.kinds.get(level.coin) {
            None => square,
            Some(kind) => (kind.single == *single).then(|| Amount::ONE.times(count.get())),
        };
        let exact: Vec<Option<Amount>> = self.levels.iter().map(of_level).collect();
        if exact.iter().all(Option::is_some) {
            return exact.into_iter().collect();
        }
        let searched = self.remembered(single)?;
        Some(
            exact.iter().zip(searched.iter()).map(|(exact, price)| exact.unwrap_or(price.times(count.get()))).collect(),
        )
    }

    fn remembered(&self, single: &Single) -> Option<Arc<[Amount]>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prices)) = known().prices.iter().find(|(other, _)| other == single) {
            return Some(Arc::clone(prices));
        }
        let prices: Arc<[Amount]> = self.searched(single)?.into();
        let mut known = known();
        known.prices.truncate(KEPT - 1);
        known.prices.push_front((single.clone(), Arc::clone(&prices)));
        Some(prices)
    }

    /// From the highest level down: a price at one level is at least that at a higher one.
    fn searched(&self, single: &Single) -> Option<Vec<Amount>> {
        let weights = self.levels.iter().map(|level| self.weight(&level.left)).filter(|weight| *weight > 0.0);
        let (bottom, top) = weights.fold((f64::INFINITY, 0.0f64), |(low, high), w| (low.min(w), high.max(w)));
        let negligible = LOST * self.terms.rate.min(self.terms.step_rate);
        let curve = Curve::of(single);
        let laws = laws(single, negligible, !self.kinds.is_empty());
        if laws.is_none() && curve.is_none() {
            return None;
        }
        let direction = |(way, law)| (way, Direction::new(law, bottom, top));
        let directions: Option<Vec<(usize, Direction)>> = laws.map(|laws| laws.into_iter().map(direction).collect());
        let (mut before, mut least, mut work) = (None, 0.0, MOST_WORK_OF_ALL);
        let own = self.kinds.iter().position(|kind| kind.single == *single);
        let price = |(level, kernels): (&Level, &[Kernels; 2])| {
            // Where steps of its own kind are left it is one of them. Of a plan of many kinds what is above it is paid for in noise alone.
            let is_noise = matches!(level.turn, Turn::Noise | Turn::LastNoise);
            if own.is_some_and(|own| level.left[own] > Amount::ZERO || (self.kinds.len() > MANY_KINDS && !is_noise)) {
                return Amount::INFINITE;
            }
            if before != Some((level.turn, level.coin)) {
                (before, least) = (Some((level.turn, level.coin)), 0.0);
            }
            // So it is at all lower levels than one where it is.
            let by_curve = curve.as_ref().map_or(f64::INFINITY, |curve| self.by_curve(curve, level, least, 2.0 * top));
            let mut by_law = || self.price_at(directions.as_deref()?, (level, kernels), (least, 2.0 * top), &mut work);
            least = if by_curve.is_finite() { by_curve } else { by_law().unwrap_or(f64::INFINITY) };
            Amount::from_f64_up(least)
        };
        Some(self.levels.iter().zip(&*self.kernels).map(price).collect())
    }

    /// In noise, where nothing else is left.
    fn by_curve(&self, curve: &Curve, level: &Level, least: f64, most: f64) -> f64 {
        let rest = self.rest(&level.left, 0);
        let is_noise = level.coin == self.kinds.len() && rest.steps.is_empty() && rest.noise > 0.0;
        if is_noise && least.is_finite() {
            curve.price(rest.noise, Allowance::Rate(self.terms.rate), (least, most))
        } else {
            f64::INFINITY
        }
    }

    /// In noise more than `most` is more than there is.
    fn price_at(
        &self,
        directions: &[(usize, Direction)],
        (level, kernels): (&Level, &[Kernels; 2]),
        (least, most): (f64, f64),
        work: &mut f64,
    ) -> Option<f64> {
        let mut least = least;
        for &(way, ref direction) in directions {
            let rest = Rest { known: Some(&kernels[way]), ..self.rest(&level.left, way) };
            if rest.noise <= 0.0 || least == f64::INFINITY {
                return None;
            }
            let (coin, rate, most) = match self.kinds.get(level.coin) {
                None => (Coin::Noise, self.terms.rate, most),
                Some(kind) => (Coin::Steps(&kind.laws[way]), self.rate_of(kind), kind.count.to_f64()),
            };
            let task = Task { rest, coin, allowance: Allowance::Rate(rate) };
            least = direction.price(&task, (least, most), work)?;
        }
        Some(least)
    }
}

impl Kind {
    /// About the second moment of the loss.
    fn weight(&self) -> f64 {
        self.laws[0].spread * self.laws[0].spread
    }
}

/// The last so many steps, and noise.
fn tail(kinds: &[Kind], steps: u64, noise: Amount) -> Vec<Amount> {
    let mut left = steps;
    let last = kinds.iter().rev().map(|kind| {
        let of = kind.count.get().min(left);
        left -= of;
        Amount::ONE.times(of)
    });
    let mut tail: Vec<Amount> = last.collect();
    tail.reverse();
    tail.push(noise);
    tail
}

/// All levels, in the order in which they are asked.
fn levels(kinds: &[Kind], terms: &Terms) -> Vec<Level> {
    let noise = kinds.len();
    let tail = |steps: u64, noise: Amount| tail(kinds, steps, noise);
    // Of which kind the step is that comes before the last so many.
    let coin = |steps: u64| {
        let (mut at, mut after) = (noise, 0);
        while at > 0 && after <= steps {
            at -= 1;
            after += kinds[at].count.get();
        }
        at
    };
    let total: u64 = kinds.iter().map(|kind| kind.count.get()).sum();
    let steps = || terms.step_levels.iter().copied();
    let mut all = Vec::new();
    if terms.has_reserve {
        let beside = steps().filter(|steps| *steps > 0);
        all.extend(beside.map(|steps| Level {
            left: tail(steps, terms.base),
            coin: noise,
            turn: Turn::NoiseBesidePlan,
            noise: None,
        }));
    }
    let (above, below): (Vec<Amount>, Vec<Amount>) = terms.noise_levels.iter().partition(|level| **level >= terms.base);
    all.extend(above.into_iter().map(|level| Level {
        left: tail(0, level),
        coin: noise,
        turn: Turn::Noise,
        noise: None,
    }));
    let pays = steps().filter(|steps| *steps < total);
    all.extend(pays.map(|steps| Level {
        left: tail(steps, terms.base),
        coin: coin(steps),
        turn: Turn::Steps,
        noise: None,
    }));
    all.extend(below.into_iter().map(|level| Level {
        left: tail(0, level),
        coin: noise,
        turn: Turn::LastNoise,
        noise: None,
    }));
    with_noise(all, noise)
}

/// Each with the level in noise at which what is held is paid for if others pay here.
fn with_noise(mut all: Vec<Level>, noise: usize) -> Vec<Level> {
    let below = |(index, at): (usize, &Level)| {
        let is_below = |other: &Level| other.left.iter().zip(&at.left).all(|(other, at)| other <= at);
        let those = all.iter().position(|other| other.coin == noise && is_below(other));
        if at.coin == noise { Some(index) } else { those }
    };
    let found: Vec<_> = all.iter().enumerate().map(below).collect();
    for (level, found) in all.iter_mut().zip(found) {
        level.noise = found;
    }
    all
}

/// An amount with seven bits, rounded up.
fn rounded(amount: Amount) -> Amount {
    let value = amount.to_f64_up();
    if value == 0.0 || !value.is_finite() {
        return amount;
    }
    let unit = power_of_two(ln(value) / std::f64::consts::LN_2 - 7.0);
    Amount::from_f64_up((value / unit).ceil() * unit)
}
