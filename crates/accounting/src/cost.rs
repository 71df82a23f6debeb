//! What a mechanism costs: its price in every currency, under one neighbor relation.
//!
//! A cost is kept as a bag of single mechanisms with counts, flattened, merged and sorted. So splitting a `repeat`,
//! regrouping an `all_of` or changing its order changes nothing, not even the last bit of any price.

use crate::curve::{Orders, RenyiCurve};
use crate::mechanism::{Gaussian, Mechanism, Single};
use crate::params::{Count, Delta, Epsilon, Mu, Neighbors, Order, OutOfDomain, Rho};
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
    Parallel(Vec<Vec<Part>>),
}

/// A mechanism and how often it runs.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
struct Part {
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
/// use paygo_accounting::{cost::Cost, mechanism::{Gaussian, Mechanism, Single}, params::{Neighbors, NoiseMultiplier}};
/// let noise_multiplier = NoiseMultiplier::new(20.0)?;
/// let gaussian = Mechanism::Single(Single::Gaussian(Gaussian { noise_multiplier }));
/// let cost = Cost::of(&gaussian, Neighbors::AddRemove)?.repeat(1000)?;
/// assert!(cost.rho().unwrap().get() >= 1.25);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    neighbors: Neighbors,
    parts: Vec<Part>,
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
    pub fn renyi(&self, order: Order) -> f64 {
        bag_renyi(&self.parts, order)
    }

    /// The Rényi curve on stored orders.
    #[must_use]
    pub fn curve(&self, orders: &Orders) -> RenyiCurve {
        RenyiCurve::from_upper_bounds(orders.clone(), bag_renyi_at(&self.parts, orders.as_slice()))
    }

    /// Whether the curve is a closed form at every real order, so that a search between stored orders pays.
    #[must_use]
    pub(crate) fn is_smooth(&self) -> bool {
        self.parts.iter().all(|part| match &part.of {
            Unit::Single(single) => single.is_smooth(),
            Unit::Parallel(_) => false,
        })
    }

    /// Orders that matter to this cost in particular: those of explicit curves, and ∞, where pure mechanisms are priced
    /// by their ε.
    pub(crate) fn stored_orders(&self) -> Vec<Order> {
        let mut orders = vec![Order::new(f64::INFINITY).expect("an order")];
        bag_orders(&self.parts, &mut orders);
        orders
    }

    /// ρ in zCDP: the sum, rounded up; `None` when a mechanism has none.
    #[must_use]
    pub fn rho(&self) -> Option<Rho> {
        bag_rho(&self.parts).map(Rho::from_upper_bound)
    }

    /// μ in GDP: the root of the sum of squares, rounded up; `None` when a mechanism has none.
    #[must_use]
    pub fn mu(&self) -> Option<Mu> {
        let square = bag_mu_squared(&self.parts)?;
        Some(Mu::from_upper_bound(Interval::point(square).sqrt().hi()))
    }

    /// The steps as (ε, δ) pairs with counts; `None` when a mechanism has no (ε, δ) of its own.
    #[must_use]
    pub fn approximate_steps(&self) -> Option<Vec<ApproximateStep>> {
        bag_steps(&self.parts)
    }

    /// The probability of the event outside which [`Cost::renyi`] and [`Cost::rho`] hold: the sum of δ, rounded up.
    #[must_use]
    pub fn slack(&self) -> Delta {
        Delta::from_upper_bound(bag_slack(&self.parts))
    }

    /// ρ in zCDP as an exact amount, rounded up once per mechanism; `None` when a mechanism has none.
    #[must_use]
    pub fn rho_amount(&self) -> Option<Amount> {
        bag_amount(&self.parts, &rho_amount)
    }

    /// μ² in GDP as an exact amount, rounded up once per mechanism; `None` when a mechanism has none.
    #[must_use]
    pub fn mu_squared_amount(&self) -> Option<Amount> {
        bag_amount(&self.parts, &|single, count| {
            let exact = if let Single::Gaussian(gaussian) = single {
                Amount::inverse_square_up(count.get(), 1, gaussian.noise_multiplier.get())
            } else {
                single.mu().map(|mu| mu.amount().square_up().times(count.get()))
            };
            let square = bag_mu_squared(&[Part { of: Unit::Single(single.clone()), count }])?;
            let bound = Amount::from_f64_up(square);
            Some(exact.map_or(bound, |exact| exact.min(bound)))
        })
    }

    /// The sum of the pure ε (basic composition, T2) as an exact amount; `None` when a mechanism has no ε of its own.
    #[must_use]
    pub fn epsilon_amount(&self) -> Option<Amount> {
        bag_amount(&self.parts, &|single, count| {
            if let Single::Laplace(laplace) = single
                && let Some(exact) = Amount::inverse_up(count.get(), laplace.scale.get())
            {
                return Some(exact);
            }
            single.approximate().map(|(epsilon, _)| repeated(epsilon.amount(), epsilon.get(), count))
        })
    }

    /// [`Cost::slack`] as an exact amount.
    #[must_use]
    pub fn slack_amount(&self) -> Amount {
        let slack = bag_amount(&self.parts, &|single, count| {
            Some(repeated(single.slack().amount(), single.slack().get(), count))
        });
        slack.unwrap_or(Amount::INFINITE)
    }

    /// Whether nothing depends on the data outside the slack: every parameter that carries loss was declared to be zero.
    #[must_use]
    pub fn is_null(&self) -> bool {
        bag_all(&self.parts, &Single::is_null)
    }

    /// The word of a mechanism that does not satisfy `holds`, if there is one.
    pub(crate) fn word_without(&self, holds: impl Fn(&Single) -> bool) -> Option<&'static str> {
        bag_find(&self.parts, &|single| !holds(single)).map(Single::word)
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

fn bag_mechanism(parts: &[Part]) -> Mechanism {
    let part = |part: &Part| {
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
fn flatten(mechanism: &Mechanism, neighbors: Neighbors, count: Count, parts: &mut Vec<Part>) -> Result<(), CostError> {
    match mechanism {
        Mechanism::Single(single) => {
            check_neighbors(single.word(), single.neighbors(), neighbors)?;
            // Everybody joins: no sampling at all, and an exact profile.
            let mut single = single.clone();
            if let Single::PoissonSampledGaussian(sampled) = &single
                && sampled.sampling_probability.get() >= 1.0
            {
                single = Single::Gaussian(Gaussian { noise_multiplier: sampled.noise_multiplier });
            }
            parts.push(Part { of: Unit::Single(single), count });
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
            parts.push(Part { of: Unit::Parallel(bags), count });
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
fn merge(mut parts: Vec<Part>) -> Result<Vec<Part>, CostError> {
    parts.sort_by(|a, b| a.of.partial_cmp(&b.of).unwrap_or(Ordering::Equal));
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
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

/// Whether every single mechanism satisfies `holds`.
fn bag_all(parts: &[Part], holds: &impl Fn(&Single) -> bool) -> bool {
    bag_find(parts, &|single| !holds(single)).is_none()
}

/// A single mechanism that satisfies `wanted`.
fn bag_find<'a>(parts: &'a [Part], wanted: &impl Fn(&Single) -> bool) -> Option<&'a Single> {
    parts.iter().find_map(|part| match &part.of {
        Unit::Single(single) => wanted(single).then_some(single),
        Unit::Parallel(groups) => groups.iter().find_map(|group| bag_find(group, wanted)),
    })
}

// ROUNDING: up, in every sum and product below.

/// `count` times an amount: exactly, or as a double rounded up once, whichever is less.
fn repeated(exact: Amount, one: f64, count: Count) -> Amount {
    exact.times(count.get()).min(Amount::from_f64_up(mul_up(one, count.to_f64())))
}

/// The ρ of `count` runs, rounded up once where it can be.
pub(crate) fn rho_amount(single: &Single, count: Count) -> Option<Amount> {
    if let Single::Gaussian(gaussian) = single {
        let exact = Amount::inverse_square_up(count.get(), 2, gaussian.noise_multiplier.get());
        return Some(exact.unwrap_or_else(|| Amount::from_f64_up(gaussian.rho_of(count).get())));
    }
    single.rho().map(|rho| repeated(rho.amount(), rho.get(), count))
}

/// The sum over a bag; of groups of disjoint people, the worst.
fn bag_amount(parts: &[Part], of: &impl Fn(&Single, Count) -> Option<Amount>) -> Option<Amount> {
    parts.iter().try_fold(Amount::ZERO, |sum, part| {
        let amount = match &part.of {
            Unit::Single(single) => of(single, part.count)?,
            Unit::Parallel(groups) => groups
                .iter()
                .try_fold(Amount::ZERO, |worst, group| Some(worst.max(bag_amount(group, of)?)))?
                .times(part.count.get()),
        };
        Some(sum.plus(amount))
    })
}

fn bag_renyi(parts: &[Part], order: Order) -> f64 {
    parts.iter().fold(0.0, |sum, part| {
        let one = match &part.of {
            Unit::Single(single) => single.renyi(order),
            Unit::Parallel(groups) => groups.iter().map(|group| bag_renyi(group, order)).fold(0.0, f64::max),
        };
        add_up(sum, mul_up(one, part.count.to_f64()))
    })
}

fn bag_renyi_at(parts: &[Part], orders: &[Order]) -> Vec<f64> {
    let mut total = vec![0.0; orders.len()];
    for part in parts {
        let values = match &part.of {
            Unit::Single(single) => single.renyi_at(orders),
            Unit::Parallel(groups) => groups
                .iter()
                .map(|group| bag_renyi_at(group, orders))
                .fold(vec![0.0; orders.len()], |worst: Vec<f64>, group| {
                    worst.iter().zip(group).map(|(a, b)| a.max(b)).collect()
                }),
        };
        for (sum, value) in total.iter_mut().zip(values) {
            *sum = add_up(*sum, mul_up(value, part.count.to_f64()));
        }
    }
    total
}

fn bag_orders(parts: &[Part], orders: &mut Vec<Order>) {
    for part in parts {
        match &part.of {
            Unit::Single(Single::Renyi(curve)) => orders.extend(curve.orders().as_slice()),
            Unit::Single(_) => {}
            Unit::Parallel(groups) => groups.iter().for_each(|group| bag_orders(group, orders)),
        }
    }
}

fn bag_rho(parts: &[Part]) -> Option<f64> {
    parts.iter().try_fold(0.0, |sum, part| {
        let one = match &part.of {
            // Rounded once, so that a hundred Gaussians of noise 10 are 1/2 and not a hair more.
            Unit::Single(Single::Gaussian(gaussian)) => return Some(add_up(sum, gaussian.rho_of(part.count).get())),
            Unit::Single(single) => single.rho()?.get(),
            Unit::Parallel(groups) => {
                groups.iter().try_fold(0.0, |worst: f64, group| Some(worst.max(bag_rho(group)?)))?
            }
        };
        Some(add_up(sum, mul_up(one, part.count.to_f64())))
    })
}

fn bag_mu_squared(parts: &[Part]) -> Option<f64> {
    parts.iter().try_fold(0.0, |sum, part| {
        let one = match &part.of {
            // n/s², rounded once.
            Unit::Single(Single::Gaussian(gaussian)) => {
                let variance = Interval::point(gaussian.noise_multiplier.get()).square();
                return Some(add_up(sum, (Interval::point(part.count.to_f64()) / variance).hi()));
            }
            Unit::Single(single) => Interval::point(single.mu()?.get()).square().hi(),
            Unit::Parallel(groups) => {
                groups.iter().try_fold(0.0, |worst: f64, group| Some(worst.max(bag_mu_squared(group)?)))?
            }
        };
        Some(add_up(sum, mul_up(one, part.count.to_f64())))
    })
}

fn bag_slack(parts: &[Part]) -> f64 {
    parts.iter().fold(0.0, |sum, part| {
        let one = match &part.of {
            Unit::Single(single) => single.slack().get(),
            Unit::Parallel(groups) => groups.iter().map(|group| bag_slack(group)).fold(0.0, f64::max),
        };
        add_up(sum, mul_up(one, part.count.to_f64()))
    })
}

fn bag_steps(parts: &[Part]) -> Option<Vec<ApproximateStep>> {
    parts
        .iter()
        .map(|part| {
            let (epsilon, delta) = match &part.of {
                Unit::Single(single) => single.approximate()?,
                Unit::Parallel(groups) => {
                    // Basic composition inside a group, the worst of each number over the groups.
                    let mut worst = (0.0_f64, 0.0_f64);
                    for group in groups {
                        let (mut epsilon, mut delta) = (0.0, 0.0);
                        for step in bag_steps(group)? {
                            epsilon = add_up(epsilon, mul_up(step.epsilon.get(), step.count.to_f64()));
                            delta = add_up(delta, mul_up(step.delta.get(), step.count.to_f64()));
                        }
                        worst = (worst.0.max(epsilon), worst.1.max(delta));
                    }
                    (Epsilon::from_upper_bound(worst.0), Delta::from_upper_bound(worst.1))
                }
            };
            Some(ApproximateStep { epsilon, delta, count: part.count })
        })
        .collect()
}
