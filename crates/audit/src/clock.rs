//! The clock's game, played out: the true δ of the best adversary with a few two-point mechanisms, by dynamic programming over the loss and
//! what is left of the clock.
//!
//! The printed and planted forms of its condition are priced here by plain sums, at the clock as it stands.

use crate::filters::TwoPoint;
use paygo_accounting::charge::Charge;
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::filter::{Clock, Filter, Rule as _};
use paygo_accounting::mechanism::{Mechanism, RandomizedResponse, Renyi, Single};
use paygo_accounting::params::{Epsilon, Neighbors};
use paygo_numeric::Amount;
use paygo_numeric::elementary::{exp, exp_m1};
use paygo_numeric::normal::erfc;
use std::collections::HashMap;

/// Losses are multiples of it.
const UNIT: f64 = 0.05;
/// What is left of a clock that is priced here is kept in this many parts, rounded down.
const PARTS: u32 = 400;

/// A mechanism with two outcomes: a loss of so many units, or minus so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Units up.
    pub up: i32,
    /// Units down.
    pub down: i32,
}

impl Move {
    /// Its losses with their probabilities in the first world.
    fn outcomes(self) -> [(i32, f64); 2] {
        let (up, down) = (f64::from(self.up) * UNIT, -f64::from(self.down) * UNIT);
        // q·e^up + (1 − q)·e^down = 1.
        let q = -exp_m1(down) / (exp(up) - exp(down));
        let p = q * exp(up);
        [(self.up, p), (-self.down, 1.0 - p)]
    }

    /// The same with the worlds changed.
    const fn mirrored(self) -> Self {
        Self { up: self.down, down: self.up }
    }

    /// Randomized response where it is that, else what its Rényi curve says of it.
    fn cost(self) -> Option<Cost> {
        let single = if self.up == self.down {
            let epsilon = Epsilon::new(f64::from(self.up) * UNIT).ok()?;
            Single::RandomizedResponse(RandomizedResponse { epsilon })
        } else {
            let [(up, p), _] = self.outcomes();
            let pair = TwoPoint { p, q: p * exp(-f64::from(up) * UNIT) };
            let orders: Vec<f64> = (-6..=12).map(|k| 1.0 + 1.5f64.powi(k)).collect();
            let values = orders.iter().map(|&order| pair.renyi(order)).collect();
            Single::Renyi(Renyi { curve: RenyiCurve::new(Orders::from_f64(&orders).ok()?, values).ok()? })
        };
        Cost::of(&Mechanism::Single(single), Neighbors::AddRemove).ok()
    }
}

/// How moves are paid for.
pub trait Prices {
    /// What is left of the clock at first.
    type Left: Clone + Eq + std::hash::Hash;
    /// Where the clock starts.
    fn start(&self) -> Self::Left;
    /// What is left after a move; `None` when it is refused.
    fn after(&mut self, left: Self::Left, step: Move) -> Option<Self::Left>;
}

/// The shipped filter.
pub struct Shipped {
    filter: Filter<Clock>,
    charges: HashMap<Move, Charge>,
}

impl Shipped {
    /// A filter that has admitted nothing yet.
    #[must_use]
    pub fn new(rule: Clock) -> Self {
        Self { filter: Filter::new(rule, Neighbors::AddRemove), charges: HashMap::new() }
    }
}

impl Prices for Shipped {
    /// The sums: of the clock, and of what may admit beside it.
    type Left = Vec<Amount>;

    fn start(&self) -> Vec<Amount> {
        vec![Amount::ZERO; self.filter.rule().currency().lanes()]
    }

    fn after(&mut self, spent: Vec<Amount>, step: Move) -> Option<Vec<Amount>> {
        if !self.charges.contains_key(&step) {
            let charge = self.filter.price(&step.cost()?).ok()?;
            self.charges.insert(step, charge);
        }
        let (rule, neighbors) = (self.filter.rule().clone(), self.filter.neighbors());
        let mut filter = Filter::resume(rule, neighbors, spent, Amount::ZERO)?;
        let admitted = filter.admit(self.charges.get(&step)?).is_admitted();
        admitted.then(|| filter.sums().lanes().to_vec())
    }
}

/// A clock whose condition is asked at some thresholds only, or in some directions, and may leave its allowance out of δ.
#[derive(Clone, Debug)]
pub struct Planted {
    /// Its name: what it is, and that it is unsound.
    pub name: &'static str,
    /// Where the clock starts.
    pub clock: f64,
    /// The allowance of a payment of 1.
    pub rate: f64,
    /// Where the condition is asked.
    pub thresholds: Vec<f64>,
    /// Whether it is asked in the other direction too.
    pub both: bool,
    known: HashMap<(u32, Move), Option<u32>>,
}

impl Planted {
    /// None asked yet.
    #[must_use]
    pub fn new(name: &'static str, clock: f64, rate: f64, thresholds: Vec<f64>, both: bool) -> Self {
        Self { name, clock, rate, thresholds, both, known: HashMap::new() }
    }

    /// Whether the move may take the clock from one reading to another.
    fn holds(&self, step: Move, left: f64, after: f64) -> bool {
        let allowance = self.rate * (left - after);
        let ways = if self.both { vec![step, step.mirrored()] } else { vec![step] };
        ways.iter().all(|way| {
            self.thresholds.iter().all(|&x| {
                let with: f64 = way.outcomes().iter().map(|&(l, p)| p * profile(after, x - f64::from(l) * UNIT)).sum();
                with <= profile(left, x) + allowance
            })
        })
    }
}

impl Prices for Planted {
    /// In parts.
    type Left = u32;

    fn start(&self) -> u32 {
        PARTS
    }

    fn after(&mut self, left: u32, step: Move) -> Option<u32> {
        if let Some(known) = self.known.get(&(left, step)) {
            return *known;
        }
        let time = |parts: u32| self.clock * f64::from(parts) / f64::from(PARTS);
        // The largest that is still allowed; asked from the top, since a planted condition need not be monotone.
        let found = (0..left).rev().find(|&after| self.holds(step, time(left), time(after)));
        self.known.insert((left, step), found);
        found
    }
}

/// The same moves for everybody: small and large responses, or rare large losses of either sign.
#[must_use]
pub fn menus() -> [(&'static str, Vec<Move>); 2] {
    let moves = |pairs: &[(i32, i32)]| pairs.iter().map(|&(up, down)| Move { up, down }).collect();
    let responses = moves(&[(4, 4), (6, 6), (8, 8), (12, 12), (16, 16)]);
    let lopsided = moves(&[(4, 4), (8, 8), (20, 2), (2, 20), (30, 2), (2, 30), (40, 4), (4, 40)]);
    [("responses", responses), ("lopsided moves", lopsided)]
}

/// A plan of some of the moves.
#[must_use]
pub fn plan() -> Vec<(Cost, u64)> {
    let moves = [(Move { up: 4, down: 4 }, 12), (Move { up: 8, down: 8 }, 3)];
    moves.into_iter().filter_map(|(step, count)| Some((step.cost()?, count))).collect()
}

/// Forms of the clock's condition that look like it, for a budget whose own clock starts at `clock`.
#[must_use]
pub fn planted(epsilon: f64, delta: f64, clock: f64, without_allowance: f64) -> [Planted; 4] {
    let every: Vec<f64> = (-20..=60).map(|k| 0.1 * f64::from(k)).collect();
    let above: Vec<f64> = every.iter().copied().filter(|x| *x >= 0.0).collect();
    let rate = 0.1 * delta / clock;
    [
        // Whether what was spent so far still keeps the promise: the natural filter (E4).
        Planted::new("clock_at_the_promised_epsilon_only_unsound", clock, rate, vec![epsilon], true),
        Planted::new("clock_at_few_thresholds_unsound", clock, rate, vec![0.0, epsilon, 2.0 * epsilon], true),
        Planted::new("clock_in_one_direction_unsound", clock, rate, above, false),
        Planted::new("clock_with_a_forgotten_allowance_unsound", without_allowance, 5.0 * rate, every, true),
    ]
}

/// The profile of Gaussian noise with `μ² = t`, in plain doubles.
fn profile(t: f64, x: f64) -> f64 {
    if t <= 0.0 {
        return -exp_m1(x.min(0.0));
    }
    let (s, r) = (t.sqrt(), std::f64::consts::SQRT_2);
    0.5 * erfc((x / s - 0.5 * s) / r) - exp(x) * 0.5 * erfc((x / s + 0.5 * s) / r)
}

/// The largest true δ at ε that an adversary with these moves can reach, in one direction.
pub fn game<P: Prices>(prices: &mut P, epsilon: f64, menu: &[Move], mirrored: bool) -> f64 {
    struct Game<'a, P: Prices> {
        prices: &'a mut P,
        epsilon: f64,
        menu: &'a [Move],
        mirrored: bool,
        known: HashMap<(i32, P::Left), f64>,
    }
    impl<P: Prices> Game<'_, P> {
        fn value(&mut self, loss: i32, left: P::Left) -> f64 {
            if let Some(known) = self.known.get(&(loss, left.clone())) {
                return *known;
            }
            let mut best = -exp_m1(-(f64::from(loss) * UNIT - self.epsilon).max(0.0));
            for &step in self.menu {
                let Some(after) = self.prices.after(left.clone(), step) else { continue };
                let seen = if self.mirrored { step.mirrored() } else { step };
                let value = seen.outcomes().iter().map(|&(l, p)| p * self.value(loss + l, after.clone())).sum();
                best = best.max(value);
            }
            self.known.insert((loss, left), best);
            best
        }
    }
    let start = prices.start();
    Game { prices, epsilon, menu, mirrored, known: HashMap::new() }.value(0, start)
}
