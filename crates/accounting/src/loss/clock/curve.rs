//! The price of what is known by its Rényi divergences, on a clock of noise.
//!
//! # Theorem (T53 k)
//! Let `D_α` bound the divergences of a step in both directions, and let noise of `μ² = t` be left after it. With `h_t` the profile of that
//! noise, for every threshold `x ≥ 0` and every `λ > 0`
//!
//! ```text
//! H_{A⊗G_t}(x) ≤ h_t(x) + C·e^{−λx},    C = (e^{λ·D_{λ+1}} − 1)/(λ(λ+1)) · e^{tλ(λ+1)/2}/√(2πt),
//! ```
//!
//! and for `x ≤ t/2` also `H_{A⊗G_t}(x) ≤ h_t(x) + D·e^{−(x−t/2)²/2t}/√(2πt)` with `D` a bound on both Kullback–Leibler divergences.
//!
//! *Proof.* In `y = e^{−L}`, which has the mean 1 under `P`, `h_t(x − L)` is a convex function of `y`. Of a convex function what lies above its
//! tangent at 1 is `∫_1^y (y − s)·f″(s) ds`. So where `f″ ≤ C·λ(λ+1)·s^{−λ−2}`, it lies above its tangent by at most `C·(y^{−λ} − 1 +
//! λ(y − 1))`, the mean of which is `C·(E[e^{λL}] − 1)`. Here `f″(s) = s^{−2}·e^{−(ln s + x − t/2)²/2t}/√(2πt)`, and `C` is its largest ratio to the
//! power. For `0 ≤ x ≤ t/2` and `a = 1/2 − x/t` it is at most `f″(1)·((1−a)·s^{−2} + a·s^{−1})`: these belong to the two Kullback–Leibler
//! divergences. ∎
//!
//! A payment `b` adds `h_{t+b}(x) − h_t(x) = ½∫_t^{t+b} e^{−(x−τ/2)²/2τ}/√(2πτ) dτ`, from below in cells: times `e^{λx}` the integrand is
//! log-concave in `x`, and has one top in `τ`, so that it is least at a corner of a cell.
//!
//! # Tightness
//! For a step that is small beside what is left the price is that of Gaussian noise with the same divergences, in first order.

use super::price::Allowance;
use crate::mechanism::Single;
use crate::params::{Divergence, Order};
use paygo_numeric::elementary::{exp, exp_m1_up, ln};
use paygo_numeric::rounding::mul_up;
use std::f64::consts::PI;

/// Thresholds in each spread of what is left.
const FINENESS: f64 = 10.0;
/// Most intervals of thresholds.
const MOST_INTERVALS: f64 = 4096.0;
/// By how much the payment's part may change from one cell to the next, as a logarithm.
const CELL: f64 = 0.01;
const MOST_CELLS: f64 = 64.0;
/// Moments from one to the next that are looked at.
const NEAR: usize = 100;
/// Payments that are tried.
const TRIES: usize = 60;
/// Far more than the roundings of what is exponentiated here, for each unit of its exponents.
const SURE: f64 = 1e-13;

/// What is known of a mechanism: `E[e^{λL}] − 1` at some λ, in both directions, and the Kullback–Leibler divergence; rounded up.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    moments: Vec<Moment>,
    mean: f64,
}

/// A bound on `E[e^{λL}]`.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// λ.
    tilt: f64,
    /// About the logarithm of `(E[e^{λL}] − 1)/(λ(λ+1))`, that of a number that is at least as much.
    log: f64,
}

impl Curve {
    /// Of a mechanism that has no pair of laws of its own; `None` where nothing finite is known.
    pub(super) fn of(single: &Single) -> Option<Self> {
        let family = single.family();
        if family.pair().is_some() {
            return None;
        }
        // Orders from 1.001 on, in steps of 3 %, or those of an explicit curve.
        let usual = || (0..480).filter_map(|i| Order::new(1.0 + 1e-3 * exp(f64::from(i) * 0.03)).ok()).collect();
        let own = family.own_orders();
        let orders: Vec<Order> = if own.is_empty() { usual() } else { own.to_vec() };
        let divergences = family.renyi_at(&orders);
        let mean = divergences.iter().map(|d| d.get()).fold(f64::INFINITY, f64::min);
        // ROUNDING: λ·D up.
        let log = |(order, divergence): (&Order, Divergence)| {
            let tilt = order.get() - 1.0;
            (tilt, mul_up(tilt, divergence.get()))
        };
        let logs: Vec<(f64, f64)> =
            orders.iter().zip(divergences).map(log).filter(|(tilt, log)| (tilt * log).is_finite()).collect();
        let moment = |(tilt, log): (f64, f64)| {
            let log = ln(exp_m1_up(log) / (tilt * (tilt + 1.0)));
            Moment { tilt, log: log + SURE * (1.0 + log.abs()) }
        };
        let moments = with_chords(&logs).into_iter().map(moment);
        let moments: Vec<Moment> = moments.filter(|moment| moment.log.is_finite()).collect();
        (mean.is_finite() && !moments.is_empty()).then_some(Self { moments, mean })
    }

    /// A payment that is enough where noise `t` is left after it, from `least` to `most`; +∞ where none was found.
    pub(super) fn price(&self, t: f64, allowance: Allowance, (least, most): (f64, f64)) -> f64 {
        let mut b = least.max(2.0 * self.mean);
        let mut found = f64::INFINITY;
        for _ in 0..TRIES {
            if !(b > 0.0 && b <= most) {
                break;
            }
            let short = self.shortfall(t, b, allowance.of(b));
            if short <= 1.0 {
                found = found.min(b);
                if b <= least || short > 1.0 - 1e-3 {
                    break;
                }
            }
            // What is given grows with the payment, more than in proportion.
            b = if short.is_finite() { (b * (short * (1.0 + 2e-4)).min(2.0)).max(least) } else { 2.0 * b };
            if b >= found {
                break;
            }
        }
        found
    }

    /// A bound on how far a payment is from enough: at most 1 where it is.
    fn shortfall(&self, t: f64, b: f64, eta: f64) -> f64 {
        let Some(end) = self.end(t, eta) else { return f64::INFINITY };
        let width = t.sqrt() / FINENESS;
        let count = (end / width).ceil();
        if count.is_nan() || count >= MOST_INTERVALS {
            return f64::INFINITY;
        }
        let (mut worst, mut x, mut near) = (0.0f64, 0.0, 0);
        while x < end {
            near = self.suits(t, x + 0.5 * width, near);
            worst = worst.max(self.short_between(t, b, eta, &self.moments[near], (x, x + width)));
            if worst.is_nan() || worst == f64::INFINITY {
                return f64::INFINITY;
            }
            x += width;
        }
        worst
    }

    /// From which threshold on the step costs no more than what goes with it.
    fn end(&self, t: f64, eta: f64) -> Option<f64> {
        let log_eta = ln(eta);
        let end = |moment: &Moment| {
            let end = (moment.log_factor(t) - log_eta) / moment.tilt;
            end + SURE * (1.0 + end.abs() + log_eta.abs() / moment.tilt + t * (moment.tilt + 1.0))
        };
        self.moments.iter().map(end).filter(|end| !end.is_nan()).min_by(f64::total_cmp).map(|end| end.max(0.0))
    }

    /// The moment by which the least is asked at a threshold, from one that suits those before it; part of no bound.
    fn suits(&self, t: f64, x: f64, near: usize) -> usize {
        let asked = |at: &usize| {
            let Moment { tilt, log } = self.moments[*at];
            log + 0.5 * t * tilt * (tilt + 1.0) - tilt * x
        };
        let some = near..(near + NEAR).min(self.moments.len());
        some.min_by(|a, b| asked(a).total_cmp(&asked(b))).unwrap_or(near)
    }

    /// Between two thresholds, by a moment or, below `t/2`, by the mean.
    fn short_between(&self, t: f64, b: f64, eta: f64, moment: &Moment, (left, right): (f64, f64)) -> f64 {
        let best = ratio(moment.log_factor(t), moment.tilt, t, b, eta, (left, right));
        if right > 0.5 * t {
            return best;
        }
        // The density rises up to t/2.
        let asked = ln(self.mean) - (right - 0.5 * t) * (right - 0.5 * t) / (2.0 * t) - 0.5 * ln(2.0 * PI * t);
        best.min(ratio(asked, 0.0, t, b, eta, (left, right)))
    }
}

/// More points on the chords: `λ·D_{λ+1}` is convex in λ, and 0 at 0.
fn with_chords(logs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut all = Vec::with_capacity(logs.len());
    let mut before = (0.0, 0.0);
    for &(tilt, log) in logs {
        let parts = if before.0 > 0.0 { (ln(tilt / before.0) / 0.03).ceil() } else { 64.0 }.min(64.0);
        let mut i = 1.0;
        while i < parts {
            let along = i / parts;
            all.push((before.0 + along * (tilt - before.0), (before.1 + along * (log - before.1)) * (1.0 + 1e-14)));
            i += 1.0;
        }
        all.push((tilt, log));
        before = (tilt, log);
    }
    all
}

impl Moment {
    /// `ln C`.
    fn log_factor(&self, t: f64) -> f64 {
        self.log + 0.5 * t * self.tilt * (self.tilt + 1.0) - 0.5 * ln(2.0 * PI * t)
    }
}

/// What is asked, `e^{asked − λx}`, over what is given between two thresholds, rounded up.
///
/// ROUNDING: all as logarithms beside what is asked; [`SURE`] for each unit of an exponent.
fn ratio(asked: f64, tilt: f64, t: f64, b: f64, eta: f64, (left, right): (f64, f64)) -> f64 {
    let density = |x: f64, tau: f64| {
        let line = tilt * x - asked;
        let bell = (x - 0.5 * tau) * (x - 0.5 * tau) / (2.0 * tau);
        let units = 64.0 + (tilt * x).abs() + asked.abs() + bell + 0.5 * t * tilt * (tilt + 1.0);
        exp(line - bell) * (1.0 - SURE * units) / (2.0 * PI * tau).sqrt()
    };
    let change = b * (tilt * (tilt + 1.0) + 1.0 + 1.0 / t);
    let cells = (change / CELL).ceil().clamp(1.0, MOST_CELLS);
    let part = b / cells;
    let edge = |tau: f64| density(left, tau).min(density(right, tau));
    let (mut given, mut before, mut i) = (0.0, edge(t), 1.0);
    while i <= cells {
        let next = edge(t + i * part);
        given += 0.5 * part * before.min(next);
        (before, i) = (next, i + 1.0);
    }
    let with = eta * exp(tilt * left - asked) * (1.0 - SURE * (64.0 + (tilt * left).abs() + asked.abs()));
    let all = (given + with) * (1.0 - 1e-12);
    if all > 0.0 { 1.0 / all } else { f64::INFINITY }
}
