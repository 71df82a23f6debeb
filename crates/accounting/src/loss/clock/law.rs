//! The losses of one step in one direction, as atoms whose profile is nowhere below its own.

use crate::loss::grid;
use crate::loss::pair::{Pair, Sketched, Tails};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, exp_up, ln_up, power_of_two};
use paygo_numeric::rounding::{add_up, mul_up, sub_down, sub_up};

/// A cell's width, as a share of the loss there: what the cells add to a price is about a sixth of its square.
const WIDTH: f64 = 0.04;
/// Losses below this many spreads share one width.
const NEAR: f64 = 0.15;
/// Most atoms of one law.
const MOST_ATOMS: usize = 20_000;

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
    /// All masses under `Q` less 1, or 0, rounded up.
    pub(super) over_q: f64,
    /// About the root of the second moment.
    pub(super) spread: f64,
}

impl Law {
    /// Of a pair, in its direction or the other; what its own δ makes infinite is left to the slack. `negligible` is what may be lost, as a
    /// multiple of the second moment. `None` where doubles do not suffice.
    pub(super) fn of_pair(pair: Pair, added: bool, negligible: f64) -> Option<Self> {
        // With its own δ taken apart the rest is (1 − δ) times randomized response; that is at most randomized response.
        let pair = match pair {
            Pair::Response { epsilon, .. } => Pair::Response { epsilon, delta: 0.0 },
            Pair::Sampled { .. } | Pair::Replaced { .. } | Pair::Laplace { .. } => pair,
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

    /// Of whatever has at most this profile, in both directions: δ at ε, at or above zero.
    ///
    /// # Theorem
    /// A convex falling `h ≥ (1 − e^x)₊` of `t = e^x` is the profile of a pair of laws, with mass `t·(change of slope)` under `P` at each
    /// bend (T53 g). The lower hull of points above a convex function is above it. Below zero `H(−x) = 1 − e^{−x} + e^{−x}·H(x)`.
    pub(super) fn of_profile(profile: impl Fn(f64) -> f64, negligible: f64) -> Option<Self> {
        // A normal law of this spread has as much at 0.
        let spread = 2.5 * profile(0.0);
        let unit = power_of_two((NEAR * WIDTH * spread / 64.0).log2());
        if !(unit > 1e-290 && spread < 2.0) {
            return None;
        }
        let mut high = 4.0 * spread;
        while profile(high) > negligible * spread * spread {
            high *= 1.25;
            if high > 1e4 {
                return None;
            }
        }
        let ends = ends(-high, high, None, spread, unit)?;
        let points: Vec<(f64, f64)> = ends
            .iter()
            .map(|&end| {
                let x = grid::loss_at(end, unit);
                let there = Interval::point(profile(x.abs()));
                let back = (Interval::point(x)).exp();
                (x, if x < 0.0 { (there * back - Interval::point(x).exp_m1()).hi() } else { there.hi() }.min(1.0))
            })
            .collect();
        let hull = lower_hull(&points);
        let lost = hull.last()?.1;
        Some(Self::new(masses(&hull), lost, spread))
    }

    pub(super) fn new((losses, masses): (Vec<f64>, Vec<f64>), lost: f64, spread: f64) -> Self {
        let over = less_one(&masses);
        let q = losses.iter().zip(&masses).fold(-1.0, |sum, (&l, &mass)| add_up(sum, mul_up(mass, exp_up(-l))));
        Self { losses, masses, lost, over, over_q: q.max(0.0), spread }
    }

    /// `ln E[e^{λL}]` over the atoms, rounded up.
    pub(super) fn log_moment(&self, tilt: f64) -> f64 {
        let largest = self.losses[self.losses.len() - 1].max(0.0) * tilt;
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
fn spread(pair: Pair) -> f64 {
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
/// each end once, and a cell has the difference. A chord is at least the convex profile between. A weight that rounding takes out of `[0, p]`
/// is still at least the chord at both ends when it goes to the right whole, or `p` to the left.
fn chords(losses: &[f64], tails: &[Tails]) -> Vec<f64> {
    let p = between(tails, sub_up, |tails| (tails.below[0].lo(), tails.above[0].hi()));
    let q = between(tails, sub_down, |tails| (tails.below[1].hi(), tails.above[1].lo()));
    let mut masses = vec![0.0; losses.len()];
    masses[0] = tails[0].below[0].hi();
    for i in 0..losses.len() - 1 {
        let width = -((Interval::point(losses[i]) - losses[i + 1]).exp_m1());
        let p = p[i].max(0.0);
        let weight = ((Interval::point(p) - Interval::point(losses[i]).exp() * q[i]) / width).hi().max(0.0);
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

/// The sum less 1: each addition's error is kept.
fn less_one(masses: &[f64]) -> Interval {
    let (mut sum, mut rest) = (-1.0f64, 0.0f64);
    for &mass in masses {
        let next = sum + mass;
        let back = next - sum;
        rest += (sum - (next - back)) + (mass - back);
        sum = next;
    }
    // The errors are at most a unit of 2 each, and their sum is off by as little of itself.
    #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
    let doubt = 1e-30 * (masses.len() * masses.len()) as f64;
    Interval::point(sum) + Interval::point(rest) + Interval::new(-doubt, doubt)
}

/// The points `(x, v)` at the corners of the greatest convex function of `e^x` that passes none of them.
fn lower_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let slope = |a: &(f64, f64), b: &(f64, f64)| (b.1 - a.1) / (exp(a.0) * exp_m1(b.0 - a.0));
    let mut hull: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        while let [.., before, last] = hull.as_slice() {
            if slope(before, last) < slope(last, point) {
                break;
            }
            hull.pop();
        }
        hull.push(*point);
    }
    hull
}

/// The masses under `P` at the corners. ROUNDING: up.
fn masses(hull: &[(f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    let at = |x: f64| Interval::point(x).exp();
    // From 1 at t = 0, flat after the last.
    let first = (Interval::point(hull[0].1) - 1.0) / at(hull[0].0);
    let between = hull.windows(2).map(|pair| {
        let rise = Interval::point(pair[1].1) - pair[0].1;
        rise / (at(pair[0].0) * Interval::point(pair[1].0 - pair[0].0).exp_m1())
    });
    let slopes: Vec<Interval> = [first].into_iter().chain(between).chain([Interval::ZERO]).collect();
    let mass = |(point, pair): (&(f64, f64), &[Interval])| (point.0, (at(point.0) * (pair[1] - pair[0])).hi().max(0.0));
    hull.iter().zip(slopes.windows(2)).map(mass).filter(|(_, mass)| *mass > 0.0).unzip()
}

/// What is lost of an allowance, rounded down; `None` when nothing is left.
pub(super) fn left_of(allowance: f64, lost: f64) -> Option<f64> {
    let left = -sub_up(lost, allowance);
    (left > 0.0).then_some(left)
}
