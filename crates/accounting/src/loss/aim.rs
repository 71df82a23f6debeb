//! Where to look: the tilt, the window and the cells, from sketches of the laws in plain doubles.
//!
//! Nothing here is part of a bound. A poor aim costs tightness or time, never soundness.

use super::compose::Window;
use super::grid::loss_at;
use super::pair::{Pair, Sketched};
use super::spectrum::Side;
use crate::account::Question;
use crate::params::Count;
use paygo_numeric::elementary::{exp, ln, power_of_two};
use paygo_numeric::search::root_within;
use std::f64::consts::PI;

/// Exponents at which what is left counts as nothing.
const NOTHING: f64 = 30.0;
/// What the lattice may add to the variance, relatively.
pub(super) const FINE: f64 = 1e-5;
/// The same where it is enough to see that something is far off.
pub(super) const COARSE: f64 = 1e-3;
/// Most cells of one law.
const MOST_CELLS: usize = 1 << 16;
/// The largest lattice index: multiples of a step of 21 bits are exact up to there.
pub(super) const LARGEST: f64 = 4_294_967_296.0;
/// The longest window; and where many answers are wanted.
pub(super) const LONGEST: f64 = 1_048_576.0;
pub(super) const LONG: f64 = 262_144.0;

/// The sketches of all steps, in one direction.
pub(super) struct Sketches {
    laws: Vec<(Vec<(f64, f64)>, f64)>,
}

/// `K(λ) = Σ n·ln E[e^{λL}]` and two derivatives.
#[derive(Clone, Copy)]
struct Cumulant {
    value: f64,
    slope: f64,
    curvature: f64,
}

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) tilt: f64,
    /// About the ε, and the δ, in question.
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    /// The tilted total's variance.
    pub(super) variance: f64,
    /// Below and above, almost nothing of the tilted total is left.
    bottom: f64,
    pub(super) top: f64,
}

impl Sketches {
    /// Of the steps in the direction of the pairs, or in the other; as if there were `growth` times as many.
    pub(super) fn new(pairs: &[(Pair, Count)], added: bool, negligible: f64, growth: f64) -> Self {
        let law = |(pair, count): &(Pair, Count)| {
            let points = pair.sketch(negligible).into_iter().map(|point| seen(point, added));
            (points.filter(|(_, log)| *log > -740.0).collect::<Vec<_>>(), growth * count.to_f64())
        };
        Self { laws: pairs.iter().map(law).collect() }
    }

    fn cumulant(&self, tilt: f64) -> Cumulant {
        let mut total = Cumulant { value: 0.0, slope: 0.0, curvature: 0.0 };
        for (points, count) in &self.laws {
            let largest = points.iter().map(|(loss, log)| log + tilt * loss).fold(f64::NEG_INFINITY, f64::max);
            let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
            for (loss, log) in points {
                let weight = exp(log + tilt * loss - largest);
                sum += weight;
                first += weight * loss;
                second += weight * loss * loss;
            }
            let mean = first / sum;
            total.value += count * (largest + ln(sum));
            total.slope += count * mean;
            total.curvature += count * (second / sum - mean * mean).max(0.0);
        }
        total
    }

    /// The saddle point: with `ε ≈ K′(λ)`, `δ ≈ e^{K − λK′}/(λ(λ+1)·√(2πK″))` (Alghamdi et al., arXiv:2208.09595).
    pub(super) fn aim(&self, question: Question, share: f64) -> Option<Aim> {
        let log_delta = |tilt: f64, k: &Cumulant| k.value - tilt * k.slope + ln(above_mean(tilt, k.curvature));
        let gap = |x: f64| {
            let tilt = exp(x);
            let k = self.cumulant(tilt);
            let value = match question {
                Question::DeltaAt(epsilon) => k.slope - epsilon.get(),
                Question::EpsilonAt(delta) => ln(delta.get()) - log_delta(tilt, &k),
            };
            if value.is_nan() { 1.0 } else { value }
        };
        let start = self.cumulant(0.0);
        let spread = start.curvature.sqrt().max(1e-12);
        // A normal law that gives δ to its tail has a tilt of a few to forty over its spread.
        let (least, most) = (ln(0.05 / spread), ln(1e3 / spread));
        let saddle = root_within(least, most, 1e-3, gap);
        // Where large losses are rare, the largest of them take over at some tilt, where E[e^{λ(L−μ)}] passes 1/δ² by far: stay well below.
        let reaches = |limit: f64| {
            let over = |x: f64| self.cumulant(exp(x)).value - exp(x) * start.slope - limit;
            root_within(least - 20.0, most, 1e-6, |x| if over(x).is_nan() { 1.0 } else { over(x) })
        };
        let limit = match question {
            Question::EpsilonAt(delta) => 5.0 - 2.0 * ln(delta.get()),
            Question::DeltaAt(_) => 700.0,
        };
        let tilt = share * exp(if saddle <= reaches(limit) { saddle } else { reaches(1.0) });
        let k = self.cumulant(tilt);
        let (epsilon, delta) = match question {
            Question::DeltaAt(epsilon) => (epsilon.get(), exp(log_delta(tilt, &k)).min(1.0)),
            Question::EpsilonAt(delta) => (k.slope.max(0.0), delta.get()),
        };
        let (bottom, top) = self.ends(tilt, &k);
        let aim = Aim { tilt, epsilon, delta: delta.max(1e-300), variance: k.curvature, bottom, top };
        (tilt.is_finite() && k.curvature > 0.0 && epsilon.is_finite() && top.is_finite() && bottom.is_finite())
            .then_some(aim)
    }

    /// Chernoff's bounds on the tilted total, at the best of a few θ.
    fn ends(&self, tilt: f64, at: &Cumulant) -> (f64, f64) {
        let scale = (2.0 * NOTHING / at.curvature.max(1e-300)).sqrt();
        let thetas = [0.1, 0.25, 0.5, 1.0, 2.0].map(|share| share * scale);
        let up = thetas.map(|theta| (self.cumulant(tilt + theta).value - at.value + NOTHING) / theta);
        let down = thetas.map(|theta| -(self.cumulant(tilt - theta).value - at.value + NOTHING) / theta);
        (down.into_iter().fold(f64::NEG_INFINITY, f64::max), up.into_iter().fold(f64::INFINITY, f64::min))
    }
}

/// The window for an aim: a lattice's step and how many of them. Where there is an atom, it is a multiple of the step, nearly.
pub(super) fn window(aim: &Aim, steps: f64, atom: Option<f64>, accuracy: f64, longest: f64) -> Option<Window> {
    let around = (aim.top - aim.epsilon).max(aim.epsilon - aim.bottom).max(0.0);
    let width = 1.05 * around.max((NOTHING - ln(aim.delta)) / aim.tilt);
    let fine = (6.0 * accuracy * aim.variance / steps).sqrt();
    if !(width > 0.0 && fine > 0.0 && width.is_finite()) {
        return None;
    }
    let mut length = 1024.0;
    while length * fine < width && length < longest {
        length *= 2.0;
    }
    // A step of few bits makes every lattice point an exact double.
    let raw = (width / length).max(fine.min(width / 1024.0));
    let raw = match atom {
        Some(atom) if atom > raw => atom / (atom / raw).floor(),
        Some(_) | None => raw,
    };
    let unit = power_of_two(raw.log2() - 20.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^24")]
    let (step, length) = ((raw / unit).ceil() * unit, length as usize);
    let tolerance = 1e-9 * above_mean(aim.tilt, aim.variance);
    Some(Window { step, length, tilt: aim.tilt, accuracy, tolerance })
}

/// About `E[e^{−λX}·(1 − e^{−X}); X > 0]` for a normal X of mean 0.
fn above_mean(tilt: f64, variance: f64) -> f64 {
    (1.0 / (tilt * (tilt + 1.0) * (2.0 * PI * variance).sqrt())).min(0.5)
}

/// Where the cells of one law end, in one direction: of the pair itself, or of its mirror image. Fine where the
/// tilted law is, and wider where little of it is.
pub(super) fn ends(pair: &Pair, window: Window, added: bool, negligible: f64, side: Side) -> Option<Vec<i64>> {
    let law = Weighed::new(pair, added, negligible, window.tilt);
    let (low, high) = law.range();
    if !(low / window.step > -LARGEST && high / window.step < LARGEST) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let index = |loss: f64| (loss / window.step).floor() as i64;
    let (first, last) = (index(low) - 2, index(high) + 3);
    // A law that is much wider than the lattice's step needs no finer cells than its own variance allows.
    let least = ((6.0 * window.accuracy).sqrt() * law.spread() / window.step).floor().max(1.0);
    let width = |at: i64, up: bool| -> i64 {
        let beyond = law.beyond(loss_at(at, window.step), up);
        // Wide cells add little to the variance: a cell's squared width times what lies beyond it stays below h²/64.
        // At the lower end, from below, a wide cell would cost a part of the whole mass: it has to be next to
        // nothing.
        let wide = if side == Side::Below && !up && beyond > 1e-6 { 1.0 } else { 0.125 / beyond.max(1e-30).sqrt() };
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let width = (least * wide.max(1.0)).clamp(1.0, LARGEST) as i64;
        width
    };
    // From the median outward, so that a cell is as narrow as its inner end wants it.
    let middle = index(law.median()).clamp(first, last);
    let walk = |sign: i64, end: i64| -> Option<Vec<i64>> {
        let (mut at, mut ends) = (middle, Vec::new());
        while at != end {
            at += sign * width(at, sign > 0).min((end - at).abs());
            ends.push(at);
            if ends.len() > MOST_CELLS {
                return None;
            }
        }
        Some(ends)
    };
    let (down, up) = (walk(-1, first)?, walk(1, last)?);
    Some(down.into_iter().rev().chain([middle]).chain(up).collect())
}

/// A sketch, tilted.
struct Weighed {
    /// Rising.
    losses: Vec<f64>,
    /// The weight up to each, of a whole of 1.
    below: Vec<f64>,
}

impl Weighed {
    fn new(pair: &Pair, added: bool, negligible: f64, tilt: f64) -> Self {
        let mut points: Vec<(f64, f64)> = pair.sketch(negligible).into_iter().map(|point| seen(point, added)).collect();
        if added {
            points.reverse();
        }
        let log = |&(loss, log): &(f64, f64)| log + tilt * loss;
        let largest = points.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let mut below: Vec<f64> = Vec::with_capacity(points.len());
        for point in &points {
            sum += exp(log(point) - largest);
            below.push(sum);
        }
        Self {
            losses: points.iter().map(|point| point.0).collect(),
            below: below.into_iter().map(|below| below / sum).collect(),
        }
    }

    fn range(&self) -> (f64, f64) {
        (self.losses[0], self.losses[self.losses.len() - 1])
    }

    fn median(&self) -> f64 {
        self.losses[self.below.partition_point(|below| *below < 0.5).min(self.losses.len() - 1)]
    }

    /// The weight above a loss, or below it.
    fn beyond(&self, loss: f64, up: bool) -> f64 {
        let right = self.losses.partition_point(|place| *place < loss);
        match (up, right) {
            (true, 0) => 1.0,
            (true, _) => 1.0 - self.below[right - 1],
            (false, _) => self.below[right.min(self.losses.len() - 1)],
        }
    }

    fn spread(&self) -> f64 {
        let mut before = 0.0;
        let (mut first, mut second) = (0.0, 0.0);
        for (&loss, &below) in self.losses.iter().zip(&self.below) {
            let weight = below - before;
            (first, second, before) = (first + weight * loss, second + weight * loss * loss, below);
        }
        (second - first * first).max(0.0).sqrt()
    }
}

/// A point of a sketch as it is seen in one direction: the loss, and the logarithm of its probability.
fn seen(point: Sketched, added: bool) -> (f64, f64) {
    if added { (-point.loss, ln(point.q)) } else { (point.loss, ln(point.p)) }
}
