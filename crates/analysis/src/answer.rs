//! From noisy integers to answers with intervals: post-processing only.

use crate::layout::{Layout, Placed};
use crate::query::{Bins, ClipRange, Edges, Probability, Statistic};
use paygo_noise::Grid;
use paygo_numeric::normal;
use serde::Serialize;

/// What was released for one query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The name of the query.
    pub name: String,
    /// `count`, `sum`, …
    pub statistic: &'static str,
    /// The standard deviation of the noise, in the units of the statistic (for a mean: of the sum behind it).
    pub noise_std: f64,
    /// One for each number that was asked for.
    pub numbers: Vec<Number>,
}

/// A number and where the truth about those who took part lies, clipped as they were, with the confidence that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Which bin or fraction; empty where there is only one number.
    pub label: String,
    /// The noisy number.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How many standard deviations of Gaussian noise an interval reaches, for a confidence.
fn reach(confidence: Probability) -> f64 {
    normal::quantile(0.5 + confidence.get() / 2.0)
}

/// Noisy coordinates of one part, as numbers.
struct Noisy<'a> {
    values: &'a [i64],
    grid: Grid,
    noise_std: f64,
}

impl Noisy<'_> {
    fn value(&self, i: usize) -> f64 {
        self.grid.value(self.values[i])
    }

    /// Half an interval for the sum of `n` coordinates.
    ///
    /// In distribution, a discrete Gaussian lies within one step of a continuous one: the sum of `e^{−k²/2σ²}` over `k ≥ m` is at most
    /// the integral from `m − 1`, at least that from `m`, and over all integers it is `√(2π)·σ` up to `e^{−2π²σ²}`, which is nothing
    /// at 2¹⁹ steps. So the sum of `n` lies within `n` steps of a continuous one: these are added.
    fn half(&self, reach: f64, n: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a number of coordinates")]
        let n = n as f64;
        reach * self.noise_std * n.sqrt() + n * self.grid.step()
    }
}

pub(crate) fn answers(layout: &Layout, noisy: &[i64], confidence: Probability) -> Vec<Answer> {
    let mut answers: Vec<Answer> = layout.parts.iter().map(|part| answer(layout, part, noisy, confidence)).collect();
    if let Some((coordinate, _)) = layout.active {
        let field = &layout.fields[layout.field_of[coordinate]];
        let noise_std = field.noise_std;
        let noisy = Noisy { values: &noisy[coordinate..=coordinate], grid: field.grid, noise_std };
        let (value, half) = (noisy.value(0), noisy.half(reach(confidence), 1));
        let number = Number { label: String::new(), value, low: value - half, high: value + half };
        answers.push(Answer { name: "took part".into(), statistic: "active count", noise_std, numbers: vec![number] });
    }
    answers
}

fn answer(layout: &Layout, part: &Placed, noisy: &[i64], confidence: Probability) -> Answer {
    let noise_std = part.query.noise_std.get();
    let mine = Noisy { values: &noisy[part.coordinates.clone()], grid: part.grid, noise_std };
    let around = |label: String, i: usize| {
        let (value, half) = (mine.value(i), mine.half(reach(confidence), 1));
        Number { label, value, low: value - half, high: value + half }
    };
    let range = |edges: &Edges, i: usize| format!("{} to {}", edges.edge(i), edges.edge(i + 1));
    let numbers = match &part.query.statistic {
        Statistic::People | Statistic::Rows(_) | Statistic::Sum(..) => vec![around(String::new(), 0)],
        Statistic::Mean(_, clip) => {
            let people = &layout.fields[layout.field_of[part.coordinates.start + 1]];
            let people = Noisy { values: &mine.values[1..], grid: people.grid, noise_std: people.noise_std };
            vec![mean(&mine, &people, *clip, confidence)]
        }
        Statistic::Histogram(_, Bins::Categories(names), _) => {
            names.iter().enumerate().map(|(i, name)| around(name.clone(), i)).collect()
        }
        Statistic::Histogram(_, Bins::Edges(edges), _) => {
            (0..usize::from(edges.count())).map(|i| around(range(edges, i), i)).collect()
        }
        Statistic::Quantile(_, edges, _, probabilities) => {
            probabilities.iter().map(|&probability| quantile(&mine, edges, probability, confidence)).collect()
        }
    };
    Answer { name: part.query.name.clone(), statistic: part.query.statistic.word(), noise_std, numbers }
}

/// The ratio of a noisy sum and a noisy number of people. Each has half of what may go wrong; the interval is that of all ratios.
fn mean(sum: &Noisy<'_>, people: &Noisy<'_>, clip: ClipRange, confidence: Probability) -> Number {
    let half_each = normal::quantile(0.75 + confidence.get() / 4.0);
    let (s, n) = (sum.value(0), people.value(0));
    let (s_half, n_half) = (sum.half(half_each, 1), people.half(half_each, 1));
    let at = |s: f64, n: f64| (clip.middle() + s / n).clamp(clip.low(), clip.high());
    let label = String::new();
    if n - n_half <= 0.0 {
        // There may be nobody, and then the mean may be anything.
        let value = if n >= 1.0 { at(s, n) } else { clip.middle() };
        return Number { label, value, low: clip.low(), high: clip.high() };
    }
    let corners = [s - s_half, s + s_half].map(|s| [at(s, n - n_half), at(s, n + n_half)]);
    let [[a, b], [c, d]] = corners;
    Number { label, value: at(s, n), low: a.min(b), high: c.max(d) }
}

/// Where the noisy counts, added up, pass a fraction of their total. Bin k holds the true quantile if the true counts up to it
/// reach the fraction and those before it do not; the interval is of all bins for which neither is contradicted.
fn quantile(counts: &Noisy<'_>, edges: &Edges, probability: Probability, confidence: Probability) -> Number {
    let (bins, q) = (counts.values.len(), probability.get());
    let total: f64 = (0..bins).map(|i| counts.value(i)).sum();
    // G(k) = Σ_{i<k} − q·Σ_all has noise of variance σ²·(k·(1−q)² + (bins−k)·q²).
    let mut before = vec![-q * total];
    for i in 0..bins {
        before.push(before[i] + counts.value(i));
    }
    let half = |k: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a number of bins")]
        let (k, rest) = (k as f64, (bins - k) as f64);
        let spread = (k * (1.0 - q) * (1.0 - q) + rest * q * q).sqrt();
        reach(confidence) * counts.noise_std * spread + (k + rest) * counts.grid.step()
    };
    let found = (0..bins).find(|&k| before[k + 1] >= 0.0).unwrap_or(bins - 1);
    let inside = counts.value(found);
    let share = if inside > 0.0 { (-before[found] / inside).clamp(0.0, 1.0) } else { 0.5 };
    let value = edges.edge(found) * (1.0 - share) + edges.edge(found + 1) * share;
    let possible = |k: usize| before[k + 1] >= -half(k + 1) && before[k] <= half(k);
    let low = (0..bins).find(|&k| possible(k)).unwrap_or(found).min(found);
    let high = (0..bins).rfind(|&k| possible(k)).unwrap_or(found).max(found);
    Number { label: format!("{q}"), value, low: edges.edge(low), high: edges.edge(high + 1) }
}
