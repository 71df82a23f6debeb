//! What is the true δ of an adversary that a filter admits?

use crate::Trial;
use crate::adversary::{Step, uniform};
use crate::literal_unsound::CurveFilter;
use paygo_accounting::charge::Currency;
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::filter::{AnyRule, Filter, Rule as _};
use paygo_accounting::mechanism::{Approximate, Mechanism, RandomizedResponse, Renyi, Single};
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_numeric::elementary::{exp, exp_m1, ln, ln_1p};
use paygo_numeric::search::minimize;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rayon::prelude::*;

/// A filter under audit: a shipped one, or one that is printed somewhere.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A shipped filter.
    Shipped(Box<Filter<AnyRule>>),
    /// A printed one.
    Literal(Box<CurveFilter>),
}

impl Subject {
    /// A shipped filter that has admitted nothing yet.
    #[must_use]
    pub fn shipped(rule: impl Into<AnyRule>) -> Self {
        Self::Shipped(Box::new(Filter::new(rule.into(), Neighbors::AddRemove)))
    }

    /// A printed filter that has admitted nothing yet.
    #[must_use]
    pub fn literal(filter: CurveFilter) -> Self {
        Self::Literal(Box::new(filter))
    }

    /// Whether a cost is admitted; if so, it is spent.
    fn admits(&mut self, cost: &Cost) -> bool {
        match self {
            // Asked first whether there is room: most requests here are refused, and why is not wanted.
            Self::Shipped(filter) => filter
                .price(cost)
                .is_ok_and(|charge| filter.room_for(&charge, 1) == 1 && filter.admit(&charge).is_admitted()),
            Self::Literal(filter) => filter.would_admit(cost),
        }
    }

    /// The finite orders at which it adds up.
    fn orders(&self) -> Vec<f64> {
        let orders = match self {
            Self::Shipped(filter) => match &**filter.rule().currency() {
                Currency::Renyi(orders) => orders.as_slice(),
                Currency::Rho | Currency::MuSquared | Currency::Pure | Currency::Pointwise | Currency::Clock(..) => &[],
            },
            Self::Literal(filter) => filter.orders().as_slice(),
        };
        orders.iter().map(|order| order.get()).filter(|order| *order < f64::INFINITY).collect()
    }

    /// Whether it ships.
    #[must_use]
    pub const fn is_shipped(&self) -> bool {
        matches!(self, Self::Shipped(_))
    }
}

/// A mechanism with two outcomes, its first of probability `p` in one world and `q` in the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPoint {
    /// In the first world.
    pub p: f64,
    /// In the second world.
    pub q: f64,
}

impl TwoPoint {
    /// `D_α`, the larger of both directions, with a hair for rounding.
    #[must_use]
    pub fn renyi(&self, order: f64) -> f64 {
        let one = |p: f64, q: f64| {
            let a = order * ln(p) + (1.0 - order) * ln(q);
            let b = order * ln_1p(-p) + (1.0 - order) * ln_1p(-q);
            let (small, large) = if a < b { (a, b) } else { (b, a) };
            (large + ln_1p(exp(small - large))) / (order - 1.0)
        };
        one(self.p, self.q).max(one(self.q, self.p)) * (1.0 + 1e-12) + 1e-15
    }

    /// As a cost at some orders.
    fn cost(&self, orders: &[f64]) -> Option<Cost> {
        let values = orders.iter().map(|&order| self.renyi(order)).collect();
        let curve = RenyiCurve::new(Orders::from_f64(orders).ok()?, values).ok()?;
        Cost::of(&Mechanism::from(Renyi { curve }), Neighbors::AddRemove).ok()
    }

    /// `(P − e^t·Q)₊` summed over both outcomes.
    fn hockey_stick(&self, t: f64) -> f64 {
        let part = |p: f64, q: f64| (p - exp(t) * q).max(0.0);
        part(self.p, self.q) + part(1.0 - self.p, 1.0 - self.q)
    }
}

/// The adversary of E4: a first step with two outcomes, then on each outcome the worst two-point mechanism that is still
/// admitted. The true δ at ε, by enumeration of the four outcomes.
#[must_use]
pub fn order_switch(subject: &Subject, epsilon: f64, first: TwoPoint) -> f64 {
    let orders = subject.orders();
    let without = worst_second(subject, epsilon, &orders);
    let mut after = subject.clone();
    if !first.cost(&orders).is_some_and(|cost| after.admits(&cost)) {
        return without;
    }
    let outcomes = [(first.p, first.q), (1.0 - first.p, 1.0 - first.q)];
    let with: f64 = outcomes.iter().map(|(p, q)| p * worst_second(&after, epsilon - ln(p / q), &orders)).sum();
    with.max(without)
}

/// The largest `δ(t)` of a two-point mechanism that is admitted now, or of stopping.
fn worst_second(subject: &Subject, t: f64, orders: &[f64]) -> f64 {
    let stopped = (-exp_m1(t)).max(0.0);
    // For each p, the smallest q that is admitted; D rises as q falls.
    let at = |log_p: f64| {
        let p = exp(log_p);
        let admitted = |log_q: f64| {
            let pair = TwoPoint { p, q: exp(log_q) };
            pair.cost(orders).is_some_and(|cost| subject.clone().admits(&cost))
        };
        let (mut bad, mut good) = (log_p - 60.0, log_p - 1e-9);
        if !admitted(good) {
            return 0.0;
        }
        for _ in 0..50 {
            let middle = 0.5 * (bad + good);
            if admitted(middle) { good = middle } else { bad = middle }
        }
        TwoPoint { p, q: exp(good) }.hockey_stick(t)
    };
    let grid: Vec<f64> = (0..40).map(|k| -16.0 + 0.41 * f64::from(k)).take_while(|&x| x < -1e-3).collect();
    let best = grid.iter().copied().map(|x| (x, at(x))).fold((grid[0], 0.0), |a, b| if b.1 > a.1 { b } else { a });
    let (_, refined) = minimize(best.0 - 0.45, (best.0 + 0.45).min(-1e-6), 1e-4, |x| -at(x));
    best.1.max(-refined).max(stopped)
}

/// [`order_switch`] with the first steps around a given one; the worst of them.
#[must_use]
pub fn order_switch_trial(name: &str, subject: &Subject, epsilon: f64, delta: f64, first: (f64, f64)) -> Trial {
    let firsts: Vec<TwoPoint> = [0.2, 0.5, 1.0, 2.0, 5.0]
        .iter()
        .flat_map(|share| [0.7, 0.9, 1.0, 1.2].map(|stretch| (first.0 * share, first.1 * stretch)))
        .map(|(p, loss)| TwoPoint { p, q: p * exp(-loss) })
        .collect();
    let found = firsts.par_iter().map(|first| order_switch(subject, epsilon, *first)).reduce(|| 0.0, f64::max);
    Trial::exact(name, subject.is_shipped(), "order-switch", delta, found)
}

/// A step of a tree of randomized responses that reveal everything with probability `delta`.
fn response(epsilon: f64, delta: f64) -> Option<Cost> {
    let epsilon = Epsilon::new(epsilon).ok()?;
    let single = if delta > 0.0 {
        Single::Approximate(Approximate { epsilon, delta: Delta::new(delta).ok()? })
    } else {
        Single::RandomizedResponse(RandomizedResponse { epsilon })
    };
    Cost::of(&Mechanism::Single(single), Neighbors::AddRemove).ok()
}

/// Adaptive randomized responses, each as large as the way to ε and the filter allow, to a given depth. The true δ at ε, by
/// enumeration of every outcome.
#[must_use]
pub fn response_tree(subject: &Subject, epsilon: f64, own_delta: f64, shares: &[f64], depth: u32) -> f64 {
    let gap = |loss: f64| (epsilon - loss).max(0.0);
    let stop = |loss: f64| -exp_m1(-(loss - epsilon).max(0.0));
    fn walk(
        subject: &Subject,
        loss: f64,
        depth: u32,
        gap: &impl Fn(f64) -> f64,
        stop: &impl Fn(f64) -> f64,
        own_delta: f64,
        shares: &[f64],
    ) -> f64 {
        if depth == 0 {
            return stop(loss);
        }
        let mut best = stop(loss);
        for share in shares {
            let size = share * gap(loss).max(0.05);
            let mut after = subject.clone();
            if !response(size, own_delta).is_some_and(|cost| after.admits(&cost)) {
                continue;
            }
            let heads = 1.0 / (1.0 + exp(-size));
            let up = walk(&after, loss + size, depth - 1, gap, stop, own_delta, shares);
            let down = walk(&after, loss - size, depth - 1, gap, stop, own_delta, shares);
            best = best.max(own_delta + (1.0 - own_delta) * (heads * up + (1.0 - heads) * down));
        }
        best
    }
    walk(subject, 0.0, depth, &gap, &stop, own_delta, shares)
}

/// Gaussian steps that chase ε, halved while refused, then the end. The true δ at ε, as the mean of `(1 − e^{ε−L})₊`, drawn as
/// a coin so that binomial limits are exact.
#[must_use]
pub fn gaussian_chase(
    name: &str,
    subject: &Subject,
    (epsilon, delta): (f64, f64),
    share: f64,
    paths: u64,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Trial {
    const CHUNK: u64 = 64;
    let hits: u64 = (0..paths.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(chunk);
            let here = CHUNK.min(paths - chunk * CHUNK);
            let hits = (0..here).filter(|_| chase_once(subject.clone(), epsilon, share, &mut random)).count() as u64;
            progress(here);
            hits
        })
        .sum();
    let adversary = if share > 1.0 { "all-at-once" } else { "chase" };
    Trial::simulated(name, subject.is_shipped(), adversary, delta, hits, paths)
}

fn chase_once(mut subject: Subject, epsilon: f64, share: f64, random: &mut ChaCha8Rng) -> bool {
    let mut loss = 0.0;
    for _ in 0..60 {
        // An adversary that is past ε has won, and stops.
        let gap = epsilon - loss;
        if gap < -1.0 {
            break;
        }
        let mut variance = share * gap * gap + 1e-3;
        let admitted = (0..24).find_map(|_| {
            let step = Step::Gaussian { variance };
            variance *= 0.7;
            let cost = Cost::of(&step.mechanism()?, Neighbors::AddRemove).ok()?;
            subject.admits(&cost).then_some(step)
        });
        let Some(step) = admitted else { break };
        loss += step.draw(random);
    }
    uniform(random) < -exp_m1(-(loss - epsilon).max(0.0))
}
