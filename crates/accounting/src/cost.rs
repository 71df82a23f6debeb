//! What a mechanism costs: its price in every currency, under one neighbor relation.
//!
//! A cost is kept as a bag of single mechanisms with counts, flattened, merged and sorted. So splitting a `repeat`,
//! regrouping an `all_of` or changing its order changes nothing, not even the last bit of any price.

use crate::curve::{Orders, RenyiCurve};
use crate::mechanism::{Mechanism, Single};
use crate::params::{Count, Delta, Divergence, Epsilon, Mu, Neighbors, Order, OutOfDomain, Rho};
use paygo_numeric::rounding::{add_up, mul_up};
use paygo_numeric::sums::greatest_common_divisor;
use paygo_numeric::{Amount, Interval};
use std::cmp::Ordering;

/// A mechanism that cannot be priced as asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CostError {
    /// Its bounds are not proved under this neighbor relation.
    #[error("{mechanism} is not accounted under {given} neighbors; expected {allowed}")]
    Neighbors {
        /// The mechanism's word.
        mechanism: &'static str,
        /// The relation asked for.
        given: Neighbors,
        /// The relations under which it is proved.
        allowed: String,
    },
    /// Costs under different neighbor relations never add up.
    #[error("a cost under {0} neighbors does not add to a cost under {1} neighbors")]
    Mixed(Neighbors, Neighbors),
    /// An empty list of mechanisms.
    #[error("{0} is empty; expected at least one mechanism")]
    Empty(&'static str),
    /// A count beyond 2⁵³.
    #[error(transparent)]
    Count(#[from] OutOfDomain),
}

/// One mechanism of a bag.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Unit {
    Single(Single),
    /// One bag for each group of disjoint people.
    Parallel(Vec<Vec<Repeated>>),
}

/// A mechanism and how often it runs.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
struct Repeated {
    of: Unit,
    count: Count,
}

/// A step with an (ε, δ) of its own, and how often it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApproximateStep {
    /// ε of one run.
    pub epsilon: Epsilon,
    /// δ of one run.
    pub delta: Delta,
    /// How often.
    pub count: Count,
}

/// The price of a mechanism under one neighbor relation.
///
/// Every number is an upper bound. The Rényi curve and ρ hold outside an event of probability [`Cost::slack`], which is
/// zero unless an (ε, δ)-DP mechanism is among them (theory, Part 2.3); conversions take it off δ first.
///
/// ```
/// use paygo_accounting::{cost::Cost, mechanism::Mechanism, params::Neighbors};
/// let cost = Cost::of(&Mechanism::gaussian(20.0)?, Neighbors::AddRemove)?.repeat(1000)?;
/// assert!(cost.rho().unwrap().get() >= 1.25);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    neighbors: Neighbors,
    parts: Vec<Repeated>,
}

impl Cost {
    /// The cost of a mechanism under a neighbor relation.
    ///
    /// # Errors
    /// [`CostError`] when a mechanism is not proved under the relation, a list is empty, or a count passes 2⁵³.
    pub fn of(mechanism: &Mechanism, neighbors: Neighbors) -> Result<Self, CostError> {
        let mut parts = Vec::new();
        flatten(mechanism, neighbors, Count::ONE, &mut parts)?;
        Ok(Self { neighbors, parts: merge(parts)? })
    }

    /// This and the other, one after another.
    ///
    /// # Errors
    /// [`CostError`] when the neighbor relations differ or a count passes 2⁵³.
    pub fn and(&self, other: &Self) -> Result<Self, CostError> {
        self.and_all(std::slice::from_ref(other))
    }

    /// This and all the others, one after another.
    ///
    /// # Errors
    /// [`CostError`] when the neighbor relations differ or a count passes 2⁵³.
    pub fn and_all(&self, others: &[Self]) -> Result<Self, CostError> {
        if let Some(other) = others.iter().find(|other| other.neighbors != self.neighbors) {
            return Err(CostError::Mixed(self.neighbors, other.neighbors));
        }
        let parts = others.iter().fold(self.parts.clone(), |mut parts, other| {
            parts.extend_from_slice(&other.parts);
            parts
        });
        Ok(Self { neighbors: self.neighbors, parts: merge(parts)? })
    }

    /// This, `count` times.
    ///
    /// # Errors
    /// [`CostError`] when `count` is zero or a count passes 2⁵³.
    pub fn repeat(&self, count: u64) -> Result<Self, CostError> {
        let count = Count::new(count)?;
        let mut parts = self.parts.clone();
        for part in &mut parts {
            part.count = part.count.times(count)?;
        }
        Ok(Self { neighbors: self.neighbors, parts })
    }

    /// The neighbor relation under which every number here holds.
    #[must_use]
    pub const fn neighbors(&self) -> Neighbors {
        self.neighbors
    }

    /// An upper bound on the Rényi divergence at an order; +∞ where none is known.
    #[must_use]
    pub fn renyi(&self, order: Order) -> Divergence {
        let of = |single: &Single, count: Count| Some(single.family().renyi(order).times(count));
        total(&self.parts, &Divergence::ZERO, &of).unwrap_or(Divergence::INFINITE)
    }

    /// The Rényi curve on stored orders.
    #[must_use]
    pub fn curve(&self, orders: &Orders) -> RenyiCurve {
        let of = |single: &Single, count: Count| Some(single.family().renyi_at(orders.as_slice()).times(count));
        let none = vec![Divergence::ZERO; orders.as_slice().len()];
        RenyiCurve::from_bounds(orders.clone(), total(&self.parts, &none, &of).unwrap_or(none))
    }

    /// Whether the curve is a closed form at every real order, so that a search between stored orders pays.
    #[must_use]
    pub(crate) fn is_smooth(&self) -> bool {
        self.singles().is_some_and(|singles| singles.iter().all(|(single, _)| single.family().is_smooth()))
    }

    /// Orders that matter to this cost in particular: those of explicit curves, and ∞, where pure mechanisms are priced
    /// by their ε.
    pub(crate) fn stored_orders(&self) -> Vec<Order> {
        let mut orders = vec![Order::new(f64::INFINITY).expect("an order")];
        visit(&self.parts, &mut |single| orders.extend(single.family().own_orders()));
        orders
    }

    /// ρ in zCDP: the sum, rounded up; `None` when a mechanism has none.
    #[must_use]
    pub fn rho(&self) -> Option<Rho> {
        self.total_rho().map(|rho| Rho::from_upper_bound(rho.float))
    }

    /// μ in GDP: the root of the sum of squares, rounded up; `None` when a mechanism has none.
    #[must_use]
    pub fn mu(&self) -> Option<Mu> {
        self.total_mu_squared().map(|square| Mu::from_upper_bound(Interval::point(square.float).sqrt().hi()))
    }

    /// The steps as (ε, δ) pairs with counts; `None` when a mechanism has no (ε, δ) of its own. Several groups of disjoint people
    /// are one step: basic composition inside a group, the worst of each number over the groups.
    #[must_use]
    pub fn approximate_steps(&self) -> Option<Vec<ApproximateStep>> {
        let step = |part: &Repeated| {
            let once = [Repeated { of: part.of.clone(), count: Count::ONE }];
            let epsilon = Epsilon::from_upper_bound(total(&once, &Bound::ZERO, &epsilon_of)?.float);
            let delta = Delta::from_upper_bound(total(&once, &Bound::ZERO, &slack_of)?.float);
            Some(ApproximateStep { epsilon, delta, count: part.count })
        };
        self.parts.iter().map(step).collect()
    }

    /// The probability of the event outside which [`Cost::renyi`] and [`Cost::rho`] hold: the sum of δ, rounded up.
    #[must_use]
    pub fn slack(&self) -> Delta {
        Delta::from_upper_bound(self.total_slack().float)
    }

    /// The sum of the ρ; `None` when a mechanism has none.
    #[must_use]
    pub fn total_rho(&self) -> Option<Bound> {
        total(&self.parts, &Bound::ZERO, &|single: &Single, count| single.family().rho_of(count))
    }

    /// The sum of the μ²; `None` when a mechanism has no μ.
    #[must_use]
    pub fn total_mu_squared(&self) -> Option<Bound> {
        total(&self.parts, &Bound::ZERO, &|single: &Single, count| single.family().mu_squared_of(count))
    }

    /// The sum of the pure ε (basic composition, T2); `None` when a mechanism has no ε of its own.
    #[must_use]
    pub fn total_epsilon(&self) -> Option<Bound> {
        total(&self.parts, &Bound::ZERO, &epsilon_of)
    }

    /// The sum of the δ outside which the curve and ρ hold.
    #[must_use]
    pub fn total_slack(&self) -> Bound {
        total(&self.parts, &Bound::ZERO, &slack_of).unwrap_or(Bound::INFINITE)
    }

    /// The sum of the payments at each of so many levels; `None` when a mechanism has none.
    pub(crate) fn total_payments(
        &self,
        levels: usize,
        of: &impl Fn(&Single, Count) -> Option<Vec<Amount>>,
    ) -> Option<Vec<Amount>> {
        total(&self.parts, &vec![Amount::ZERO; levels], of)
    }

    /// Whether nothing depends on the data outside the slack: every parameter that carries loss was declared to be zero.
    #[must_use]
    pub fn is_null(&self) -> bool {
        let mut null = true;
        visit(&self.parts, &mut |single| null &= single.family().is_null());
        null
    }

    /// The word of a mechanism that does not satisfy `holds`, if there is one.
    pub(crate) fn word_without(&self, holds: impl Fn(&Single) -> bool) -> Option<&'static str> {
        let mut word = None;
        visit(&self.parts, &mut |single| word = word.or_else(|| (!holds(single)).then(|| single.word())));
        word
    }

    /// Each of its mechanisms once, and how often it is asked for; if they are more than so many, all as one.
    pub(crate) fn units(&self, most: usize) -> Vec<(Self, Count)> {
        if self.parts.len() > most {
            return vec![self.as_repeat()];
        }
        let unit = |part: &Repeated| {
            let once = Repeated { of: part.of.clone(), count: Count::ONE };
            (Self { neighbors: self.neighbors, parts: vec![once] }, part.count)
        };
        self.parts.iter().map(unit).collect()
    }

    /// This cost as a smaller one, repeated as often as possible.
    #[must_use]
    pub fn as_repeat(&self) -> (Self, Count) {
        let common = self.parts.iter().fold(0, |common, part| greatest_common_divisor(common, part.count.get())).max(1);
        let mut one = self.clone();
        for part in &mut one.parts {
            part.count = Count::new(part.count.get() / common).expect("a divisor of a count");
        }
        (one, Count::new(common).expect("at most a count"))
    }

    /// A mechanism with this cost: what is merged and sorted stays so.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        bag_mechanism(&self.parts)
    }

    /// The single mechanisms and their counts, when no group of people stands apart.
    pub(crate) fn singles(&self) -> Option<Vec<(&Single, Count)>> {
        self.parts
            .iter()
            .map(|part| match &part.of {
                Unit::Single(single) => Some((single, part.count)),
                Unit::Parallel(_) => None,
            })
            .collect()
    }
}

fn bag_mechanism(parts: &[Repeated]) -> Mechanism {
    let part = |part: &Repeated| {
        let of = match &part.of {
            Unit::Single(single) => Mechanism::Single(single.clone()),
            Unit::Parallel(groups) => Mechanism::Parallel(groups.iter().map(|group| bag_mechanism(group)).collect()),
        };
        if part.count == Count::ONE { of } else { Mechanism::Repeat { count: part.count, of: Box::new(of) } }
    };
    match parts {
        [one] => part(one),
        several => Mechanism::AllOf(several.iter().map(part).collect()),
    }
}

/// Adds `count` runs of a mechanism to the bag.
fn flatten(
    mechanism: &Mechanism,
    neighbors: Neighbors,
    count: Count,
    parts: &mut Vec<Repeated>,
) -> Result<(), CostError> {
    match mechanism {
        Mechanism::Single(single) => {
            check_neighbors(single.word(), single.family().neighbors(), neighbors)?;
            let single = single.family().simpler().unwrap_or_else(|| single.clone());
            parts.push(Repeated { of: Unit::Single(single), count });
        }
        Mechanism::Repeat { count: times, of } => flatten(of, neighbors, count.times(*times)?, parts)?,
        Mechanism::AllOf(all) if all.is_empty() => return Err(CostError::Empty("all_of")),
        Mechanism::AllOf(all) => {
            for each in all {
                flatten(each, neighbors, count, parts)?;
            }
        }
        Mechanism::Parallel(groups) if groups.is_empty() => return Err(CostError::Empty("parallel")),
        Mechanism::Parallel(groups) => {
            check_neighbors("parallel", &[Neighbors::AddRemove, Neighbors::ZeroOut], neighbors)?;
            let mut bags = Vec::new();
            for group in groups {
                let mut bag = Vec::new();
                flatten(group, neighbors, Count::ONE, &mut bag)?;
                bags.push(merge(bag)?);
            }
            bags.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            parts.push(Repeated { of: Unit::Parallel(bags), count });
        }
    }
    Ok(())
}

fn check_neighbors(mechanism: &'static str, allowed: &[Neighbors], given: Neighbors) -> Result<(), CostError> {
    if allowed.contains(&given) {
        return Ok(());
    }
    let allowed = allowed.iter().map(|relation| relation.word()).collect::<Vec<_>>().join(" or ");
    Err(CostError::Neighbors { mechanism, given, allowed })
}

/// The normal form: sorted, equal mechanisms counted together. Parameters are never NaN, so the order is total.
fn merge(mut parts: Vec<Repeated>) -> Result<Vec<Repeated>, CostError> {
    parts.sort_by(|a, b| a.of.partial_cmp(&b.of).unwrap_or(Ordering::Equal));
    let mut merged: Vec<Repeated> = Vec::with_capacity(parts.len());
    for part in parts {
        match merged.last_mut() {
            Some(last) if last.of == part.of => {
                last.count = Count::new(last.count.get() + part.count.get())?;
            }
            Some(_) | None => merged.push(part),
        }
    }
    Ok(merged)
}

/// Every single mechanism, those of groups of people too.
fn visit<'a>(parts: &'a [Repeated], see: &mut impl FnMut(&'a Single)) {
    for part in parts {
        match &part.of {
            Unit::Single(single) => see(single),
            Unit::Parallel(groups) => groups.iter().for_each(|group| visit(group, see)),
        }
    }
}

/// What mechanisms add up to. ROUNDING: up, in every sum and product.
pub(crate) trait Total: Clone {
    /// Both, one after another.
    fn plus(self, other: Self) -> Self;
    /// The worse of two groups of people.
    fn worse(self, other: Self) -> Self;
    /// So many of it.
    fn times(self, count: Count) -> Self;
}

/// The sum over a bag; of groups of disjoint people, the worst. `None` when a mechanism has no price.
fn total<T: Total>(parts: &[Repeated], zero: &T, of: &impl Fn(&Single, Count) -> Option<T>) -> Option<T> {
    parts.iter().try_fold(zero.clone(), |sum, part| {
        let price = match &part.of {
            Unit::Single(single) => of(single, part.count)?,
            Unit::Parallel(groups) => groups
                .iter()
                .try_fold(zero.clone(), |worst, group| Some(worst.worse(total(group, zero, of)?)))?
                .times(part.count),
        };
        Some(sum.plus(price))
    })
}

fn epsilon_of(single: &Single, count: Count) -> Option<Bound> {
    single.family().epsilon_of(count)
}

fn slack_of(single: &Single, count: Count) -> Option<Bound> {
    let slack = single.family().slack();
    Some(Bound::repeated(slack.get(), slack.amount(), count))
}

/// An upper bound in two notations: a double, fine near zero, and an exact amount, for sums that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// As a double, rounded up.
    pub float: f64,
    /// As an amount, rounded up.
    pub amount: Amount,
}

impl Bound {
    /// Nothing.
    pub const ZERO: Self = Self { float: 0.0, amount: Amount::ZERO };
    const INFINITE: Self = Self { float: f64::INFINITY, amount: Amount::INFINITE };

    /// `count` times a number: the amount exactly, or by the double rounded up once, whichever is less.
    #[must_use]
    pub fn repeated(float: f64, amount: Amount, count: Count) -> Self {
        Self::either(mul_up(float, count.to_f64()), amount.times(count.get()))
    }

    /// A double and an amount, which may be the double's where that is less.
    #[must_use]
    pub fn either(float: f64, amount: Amount) -> Self {
        Self { float, amount: amount.min(Amount::from_f64_up(float)) }
    }
}

impl Total for Bound {
    fn plus(self, other: Self) -> Self {
        Self { float: add_up(self.float, other.float), amount: self.amount.plus(other.amount) }
    }

    fn worse(self, other: Self) -> Self {
        Self { float: self.float.max(other.float), amount: self.amount.max(other.amount) }
    }

    fn times(self, count: Count) -> Self {
        Self { float: mul_up(self.float, count.to_f64()), amount: self.amount.times(count.get()) }
    }
}

impl Total for Divergence {
    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn worse(self, other: Self) -> Self {
        self.most(other)
    }

    fn times(self, count: Count) -> Self {
        Self::from_upper_bound(mul_up(self.get(), count.to_f64()))
    }
}

/// Payments at some levels.
impl Total for Vec<Amount> {
    fn plus(self, other: Self) -> Self {
        self.into_iter().zip(other).map(|(a, b)| a.plus(b)).collect()
    }

    fn worse(self, other: Self) -> Self {
        self.into_iter().zip(other).map(|(a, b)| a.max(b)).collect()
    }

    fn times(self, count: Count) -> Self {
        self.into_iter().map(|amount| amount.times(count.get())).collect()
    }
}

/// A curve: the divergence at each order.
impl Total for Vec<Divergence> {
    fn plus(self, other: Self) -> Self {
        self.into_iter().zip(other).map(|(a, b)| a.plus(b)).collect()
    }

    fn worse(self, other: Self) -> Self {
        self.into_iter().zip(other).map(|(a, b)| a.worse(b)).collect()
    }

    fn times(self, count: Count) -> Self {
        self.into_iter().map(|value| value.times(count)).collect()
    }
}
