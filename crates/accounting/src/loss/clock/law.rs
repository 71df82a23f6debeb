//! The losses of one step in one direction, as atoms whose profile is nowhere below its own.

use super::rest::Shape;
use crate::loss::grid;
use crate::loss::pair::{Pair, Sketched, Tails};
use crate::loss::spectrum::U;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, ln_up, power_of_two};
use paygo_numeric::rounding::{add_up, mul_up, sub_down, sub_up};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A cell's width, as a share of the loss there: what the cells add to a price is about a sixth of its square.
const WIDTH: f64 = 0.04;
/// Losses below this many spreads share one width.
const NEAR: f64 = 0.15;
/// Most atoms of one law.
const MOST_ATOMS: usize = 20_000;
/// By how much the losses of a mirrored law are larger.
const SHIFT: f64 = 16.0 * U;
/// Most tilts at which moments are remembered.
const MOST_TILTS: usize = 1024;

/// Atoms, and what was given up for them.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// Rising.
    pub(super) losses: Vec<f64>,
    /// Under `P`, each rounded up.
    pub(super) masses: Vec<f64>,
    /// What counts as infinite, without the step's own δ.
    pub(super) lost: f64,
    /// All masses less 1.
    pub(super) over: Interval,
    /// All masses under `Q` less 1.
    pub(super) over_q: Interval,
    /// About the root of the second moment.
    pub(super) spread: f64,
    /// Each mass is within so many units of what is meant.
    pub(super) doubt: f64,
    known: Arc<Mutex<Known>>,
}

/// What was computed of a law at some tilts: `ln E[e^{λL}]`, and the shape.
#[derive(Debug, Default)]
struct Known {
    moments: HashMap<u64, f64>,
    shapes: HashMap<u64, Shape>,
}

/// The tilt at or below a positive one, of six for each power of two: those are asked for again and again.
pub(super) fn on_grid(tilt: f64) -> f64 {
    const SIXTHS: [f64; 6] = [1.0, 1.1225, 1.26, 1.41, 1.5874, 1.7818];
    let base = power_of_two(tilt.log2());
    let part = SIXTHS.into_iter().rev().find(|part| part * base <= tilt);
    base * part.unwrap_or(1.0)
}

impl Law {
    /// Of two losses, `high` and `high − range`: the largest profile of all whose losses lie between.
    pub(super) fn of_two(high: f64, range: f64) -> Self {
        let (above, below) = (Interval::point(high), Interval::point(high) - range);
        let q = -below.exp_m1() / (above.exp() - below.exp());
        let p = q * above.exp();
        let masses = vec![(Interval::ONE - p).hi().max(0.0), p.hi().min(1.0)];
        let spread = (high * (range - high)).max(0.0).sqrt();
        Self::new((vec![below.hi(), high], masses), 0.0, spread)
    }

    /// Of a pair, in its direction or the other; what its own δ makes infinite is left to the slack. `negligible` is what may be lost, as a
    /// multiple of the second moment. `None` where doubles do not suffice.
    pub(super) fn of_pair(pair: &Pair, added: bool, negligible: f64) -> Option<Self> {
        // With its own δ taken apart the rest is (1 − δ) times randomized response; that is at most randomized response.
        let pair = match pair {
            Pair::Response { epsilon, .. } => &Pair::Response { epsilon: *epsilon, delta: 0.0 },
            Pair::Profile(atoms) => {
                let law = (atoms.losses.clone(), atoms.masses.clone());
                return Some(Self::new(law, atoms.infinite, atoms.spread));
            }
            Pair::Sampled { .. } | Pair::Replaced { .. } | Pair::Laplace { .. } | Pair::BoundedRange { .. } => pair,
        };
        let spread = spread(pair);
        let unit = power_of_two((NEAR * WIDTH * spread / 64.0).log2());
        if !(unit > 1e-290 && spread.is_finite()) {
            return None;
        }
        let sketch = pair.sketch((negligible * spread * spread).max(1e-300));
        let (first, last) = (sketch.first()?.loss, sketch.last()?.loss);
        let (low, high) = if added { (-last, -first) } else { (first, last) };
        let ends = ends(low, high, pair.atom(), spread, unit)?;
        let tails = |&end: &i64| {
            let loss = grid::loss_at(end, unit);
            if added { pair.tails(-loss).mirrored() } else { pair.tails(loss) }
        };
        let tails: Vec<Tails> = ends.iter().map(tails).collect();
        let losses: Vec<f64> = ends.iter().map(|&end| grid::loss_at(end, unit)).collect();
        let lost = tails.last()?.above[0].hi();
        let masses = chords(&losses, &tails);
        let atoms = losses.into_iter().zip(masses).filter(|(_, mass)| *mass > 0.0);
        Some(Self::new(atoms.unzip(), lost, spread))
    }

    pub(super) fn new((losses, masses): (Vec<f64>, Vec<f64>), lost: f64, spread: f64) -> Self {
        let over = sum(&masses, -1.0);
        // Under Q: less by `Σ a·(1 − e^{−l})`, of which each term is off by a few units.
        let changes: Vec<f64> = losses.iter().zip(&masses).map(|(&l, &mass)| mass * exp_m1(-l)).collect();
        let doubt = 8.0 * U * changes.iter().map(|change| change.abs()).sum::<f64>();
        let over_q = over + sum(&changes, 0.0) + Interval::new(-doubt, doubt);
        Self { losses, masses, lost, over, over_q, spread, doubt: 0.0, known: Arc::default() }
    }

    /// The other direction of the same pair, which dominates whatever the pair does there: minus the losses, under `Q`. What is missing of
    /// `Q` is infinite.
    ///
    /// # Soundness
    /// Of two pairs of laws the one whose profile is the larger at every threshold is so in both directions, since `H(−x) = 1 − e^{−x} +
    /// e^{−x}·H′(x)` with `H′` the other one's. What is meant are the masses `p·e^{−l}` as real numbers: products are within a few units of
    /// them, and all sums are those of the law this is made of.
    ///
    /// Of the masses `P`, `p` with rounding up, those at losses of at most −x weigh more than they should by no more than a few units of
    /// themselves; and at the threshold `x` of the other direction `H′` has `e^x` times as much less. Losses that are larger by
    /// [`SHIFT`] make up for it: they add `SHIFT·e^{x−l′}·p·e^{l′}` for each of these masses. What all of `P` weighs above 1 is infinite, too.
    pub(super) fn mirrored(&self) -> Self {
        let mirrored = |(&l, &mass): (&f64, &f64)| (add_up(SHIFT, -l), mass * exp(-l));
        let (losses, masses) = self.losses.iter().zip(&self.masses).map(mirrored).rev().unzip();
        let farthest = self.losses.iter().fold(0.0f64, |most, l| most.max(l.abs()));
        Self {
            losses,
            masses,
            lost: add_up((-self.over_q.lo()).max(0.0), (self.over + self.lost).hi().max(0.0)),
            over: self.over_q,
            over_q: self.over + Interval::new(-2.0 * SHIFT * (1.0 + farthest), 2.0 * U * (1.0 + farthest)),
            spread: self.spread,
            doubt: 4.0 + 2.0 * farthest,
            known: Arc::default(),
        }
    }

    /// The largest modulus of a loss.
    pub(super) fn farthest(&self) -> f64 {
        self.losses[0].abs().max(self.losses[self.losses.len() - 1].abs())
    }

    /// The masses times `e^{λl}`.
    pub(super) fn weights(&self, tilt: f64) -> Vec<f64> {
        self.losses.iter().zip(&self.masses).map(|(&l, &mass)| mass * exp(tilt * l)).collect()
    }

    /// About the mean and the variance of the loss, tilted.
    pub(super) fn shape(&self, tilt: f64) -> Shape {
        self.remembered(|known| &mut known.shapes, tilt, || self.shape_at(tilt))
    }

    /// `ln E[e^{λL}]` over the atoms, rounded up.
    pub(super) fn log_moment(&self, tilt: f64) -> f64 {
        self.remembered(|known| &mut known.moments, tilt, || self.log_moment_at(tilt))
    }

    fn remembered<T: Copy>(
        &self,
        of: impl Fn(&mut Known) -> &mut HashMap<u64, T>,
        tilt: f64,
        compute: impl FnOnce() -> T,
    ) -> T {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = of(&mut known()).get(&tilt.to_bits()) {
            return *value;
        }
        let value = compute();
        let mut known = known();
        let all = of(&mut known);
        if all.len() < MOST_TILTS {
            all.insert(tilt.to_bits(), value);
        }
        value
    }

    fn shape_at(&self, tilt: f64) -> Shape {
        let largest = self.losses.iter().fold(0.0f64, |most, l| most.max(tilt * l));
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for (l, mass) in self.losses.iter().zip(&self.masses) {
            let weight = mass * exp(tilt * l - largest);
            sum += weight;
            first += weight * l;
            second += weight * l * l;
        }
        let mean = first / sum;
        Shape { mean, variance: (second / sum - mean * mean).max(0.0) }
    }

    fn log_moment_at(&self, tilt: f64) -> f64 {
        let largest = (self.losses[self.losses.len() - 1] * tilt).max(self.losses[0] * tilt).max(0.0);
        let terms = self.losses.iter().zip(&self.masses).map(|(&l, &mass)| mass * exp(tilt * l - largest));
        let sum: f64 = terms.sum();
        // ROUNDING: up; each term is off by a few units and by those of its exponent, the sum by one for each term.
        #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
        let units = 8.0 + 3.0 * largest + self.losses.len() as f64;
        let sum = mul_up(sum, 1.0 + units * f64::EPSILON);
        add_up(ln_up(sum), largest)
    }
}

/// The lesser root of the second moments of the loss, with and without the record; about.
fn spread(pair: &Pair) -> f64 {
    let sketch = pair.sketch(0.0);
    let second = |weight: fn(&Sketched) -> f64| -> f64 {
        sketch.iter().map(|point| weight(point) * point.loss * point.loss).sum()
    };
    second(|point| point.p).min(second(|point| point.q)).sqrt()
}

/// The ends of cells that widen with the loss, in units, from below `low` to above `high`.
fn ends(low: f64, high: f64, atom: Option<f64>, spread: f64, unit: f64) -> Option<Vec<i64>> {
    // Multiples up to there are exact.
    const LARGEST: f64 = 4_503_599_627_370_496.0;
    if !(low / unit > -LARGEST && high / unit < LARGEST) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let index = |loss: f64| (loss / unit).floor() as i64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "far below 2^53")]
    let walk = |end: i64| -> Option<Vec<i64>> {
        let (mut at, mut ends) = (0i64, Vec::new());
        while at < end {
            at += (WIDTH * (at as f64).max(NEAR * spread / unit)).ceil() as i64;
            ends.push(at);
            if ends.len() > MOST_ATOMS {
                return None;
            }
        }
        Some(ends)
    };
    let (down, up) = (walk(-index(low))?, walk(index(high) + 1)?);
    let atoms = atom.into_iter().flat_map(|atom| [index(atom), index(atom) + 1, index(-atom), index(-atom) + 1]);
    let mut ends: Vec<i64> = down.into_iter().map(|end| -end).chain([0]).chain(up).chain(atoms).collect();
    ends.sort_unstable();
    ends.dedup();
    Some(ends)
}

/// The masses under `P` at the ends of cells: the chord between them, as [`grid::upper`] has it, but so rounded that they sum to 1 nearly
/// exactly, since a mass that is too much counts at every threshold.
///
/// # Soundness
/// At an end the profile is what `P` gives to the losses above, less `t` times what `Q` does: the first is rounded up, the second down, at
/// each end once, and a cell has the difference. A chord is at least the convex profile between. Of a weight that rounding takes out of `[0, p]`
/// the nearer end is enough: no law on the cell has a larger profile than all of `p` at its right end.
fn chords(losses: &[f64], tails: &[Tails]) -> Vec<f64> {
    let p = between(tails, sub_up, |tails| (tails.below[0].lo(), tails.above[0].hi()));
    let q = between(tails, sub_down, |tails| (tails.below[1].hi(), tails.above[1].lo()));
    let mut masses = vec![0.0; losses.len()];
    masses[0] = tails[0].below[0].hi();
    for i in 0..losses.len() - 1 {
        let width = -((Interval::point(losses[i]) - losses[i + 1]).exp_m1());
        let p = p[i].max(0.0);
        let weight = ((Interval::point(p) - Interval::point(losses[i]).exp() * q[i]) / width).hi().clamp(0.0, p);
        masses[i + 1] = add_up(masses[i + 1], weight);
        masses[i] = add_up(masses[i], sub_up(p, weight).max(0.0));
    }
    masses
}

/// What lies in each cell, by what lies below its ends where that is little, else by what lies above.
fn between(tails: &[Tails], less: fn(f64, f64) -> f64, of: impl Fn(&Tails) -> (f64, f64)) -> Vec<f64> {
    let cell = |pair: &[Tails]| {
        let ((below, above), (next_below, next_above)) = (of(&pair[0]), of(&pair[1]));
        if above < 0.5 {
            less(above, next_above)
        } else if next_below < 0.5 {
            less(next_below, below)
        } else {
            less(less(1.0, below), next_above)
        }
    };
    tails.windows(2).map(cell).collect()
}

/// The sum of numbers of size 1 at most, from a start on: each addition's error is kept.
fn sum(numbers: &[f64], start: f64) -> Interval {
    let (mut sum, mut rest) = (start, 0.0f64);
    for &number in numbers {
        let next = sum + number;
        let back = next - sum;
        rest += (sum - (next - back)) + (number - back);
        sum = next;
    }
    // The errors are at most a unit of 2 each, and their sum is off by as little of itself.
    #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
    let doubt = 1e-30 * (numbers.len() * numbers.len()) as f64;
    Interval::point(sum) + Interval::point(rest) + Interval::new(-doubt, doubt)
}

/// What is lost of an allowance, rounded down; `None` when nothing is left.
pub(super) fn left_of(allowance: f64, lost: f64) -> Option<f64> {
    let left = -sub_up(lost, allowance);
    (left > 0.0).then_some(left)
}
