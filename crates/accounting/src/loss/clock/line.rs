//! A condition at all thresholds of a stretch, by transforms along one line in the complex plane.
//!
//! # Theorem
//! For a loss law `C` with a density and `Re z = λ > 0`, `∫ H_C(x)·e^{zx} dx = E[e^{zL}]/(z·(z+1))`. For `−1 < λ < 0` the same holds of
//! `H_C` less its whole mass, `H_C(−∞)`; far below the mean that is what is small. So the difference
//! `F = H_{A⊗R} − H_{B⊗R}`, less what it is at −∞ where `λ < 0`, tilted, is
//!
//! ```text
//! e^{λx}·F(x) = (1/2π)·∫ e^{−iwx}·Φ(w) dw,    Φ(w) = E_R[e^{zL}]·(E_A[e^{zL}] − E_B[e^{zL}])/(z·(z+1)),    z = λ + iw,
//! ```
//!
//! where `R` is what is left and `B` what is paid. Everything here is divided by `e^κ`, about `E_R[e^{λL}]`, and seen from the middle of the tilted
//! `R`; what is left of `E_R[e^{zL}]/(z(z+1))` is the [`Kernel`]. Sums over multiples of `dw` take the place of the integral; what that may hide:
//!
//! - *Neighboring windows* (Poisson's summation formula): the sum is `Σ_m e^{λ(x+mP)}·F(x+mP)`, `P = 2π/dw`. Where F is above zero
//!   there it only looks worse. It is below zero by at most `H_{B⊗R}` to the right; to the left, where `H(y) = mass − e^y·mass under Q +
//!   E[(e^{y−L} − 1)₊]`, by at most the last of these and what masses differ. Both are bounded by `e^{−θy}·E[e^{θL}]` (Chernoff), for
//!   θ > 0 and for θ ≤ −1.
//! - *Frequencies beyond the last*, `W`: with noise of `μ² = r` in R at most `(E_A[e^{λL}] + E_B[e^{λL}])·e^{−rW²/2}/(πW)`.
//! - *Between two places* `Δ` apart the sum less the allowance, `ηe^{λx}`, is at most the larger of the two values, plus `Δ²/8` times
//!   a bound on how steeply it bends: by the second differences beside them and a bound on the fourth derivative, or by the sum of the
//!   coefficients' moduli times `w²`; and `λ²` times the allowance.
//! - *Rounding*: bounded for each coefficient.

use super::law::{Law, left_of, on_grid};
use super::rest::{Kernel, Rest};
use super::transform::{Frequencies, SURE, Values, noise_transform, size, transform};
use crate::loss::spectrum::U;
use paygo_numeric::elementary::{exp, exp_m1, exp_up};
use paygo_numeric::fft::{TURN_ERROR, turn};
use paygo_numeric::rounding::{add_up, mul_down};
use std::f64::consts::PI;
use std::sync::Arc;

/// Other windows are so far that their logarithm is below minus this.
const FAR: f64 = 40.0;
/// Most places of a line.
const MOST_PLACES: f64 = 16_384.0;

/// Most places times frequencies of a line.
const MOST_TURNS: usize = 1 << 21;

/// What a line is to cover.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// λ.
    pub(super) tilt: f64,
    /// Thresholds.
    pub(super) from: f64,
    pub(super) to: f64,
    /// About the spread there of what is left and paid.
    pub(super) spread: f64,
    /// Places in each spread.
    pub(super) fineness: f64,
}

/// What is paid: noise of this `μ²`, or so many steps of a law.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coin<'a> {
    Noise,
    Steps(&'a Law),
}

/// A stretch of thresholds, and the step's part of the condition there.
pub(super) struct Line<'a> {
    stretch: Stretch,
    coin: Coin<'a>,
    /// Of what is left: noise, and the masses less 1.
    noise: f64,
    line: Frequencies,
    /// With `E[e^{zL}] − 1` of what it is paid in, if it is steps.
    kernel: Arc<(Kernel, Option<Values>)>,
    /// What the step asks for, and the step with one of what it is paid in.
    asked: Vec<Part>,
    law: &'a Law,
    /// The places, as differences from the middle, and one more at either end; `cos` and `sin` of each place times each frequency.
    places: Vec<f64>,
    spacing: f64,
    turns: Vec<(Vec<f64>, Vec<f64>)>,
    /// About `E_A[e^{λL}]`, rounded up.
    moment: f64,
    /// θ, and the logarithms of `E[e^{θL}]` of what is left and of one of what is paid.
    tails: Vec<(f64, f64, f64)>,
    /// Masses of what is left, under `P` and `Q`.
    masses: [f64; 2],
}

/// A part of the sum: times the kernel, and summed at every place.
#[derive(Clone, Debug)]
struct Part {
    weighed: Values,
    sums: Vec<f64>,
}

impl Part {
    /// So much of one and so much of the other.
    fn mixed(&self, a: f64, other: &Self, b: f64) -> Self {
        let sums = self.sums.iter().zip(&other.sums).map(|(x, y)| a * x + b * y).collect();
        Self { weighed: self.weighed.mixed(a, &other.weighed, b), sums }
    }
}

impl<'a> Line<'a> {
    /// Covers a stretch, if doubles suffice, for payments up to about `most`.
    pub(super) fn new(law: &'a Law, rest: &Rest<'a>, coin: Coin<'a>, most: f64, stretch: Stretch) -> Option<Self> {
        let Stretch { tilt, from, to, spread, fineness } = stretch;
        let weights = law.weights(tilt);
        let moment = weights.iter().sum::<f64>() * SURE;
        if !(moment.is_finite() && tilt > -1.0 && tilt != 0.0 && rest.noise > 0.0) {
            return None;
        }
        let shape = rest.shape(tilt);
        let thetas = [1.0, 2.0, 4.0, 8.0, 14.0, 20.0].map(|far| far / spread);
        let above = thetas.iter().map(|far| on_grid(tilt + far)).filter(|theta| *theta > tilt);
        let below = thetas.iter().map(|far| -1.0 - on_grid((far - tilt - 1.0).max(0.01 * far)));
        let thetas = above.chain(below);
        let one = |theta: f64| match coin {
            Coin::Noise => 0.5 * theta * (theta + 1.0),
            Coin::Steps(paid) => paid.log_moment(theta),
        };
        let tails: Vec<(f64, f64, f64)> = thetas.map(|theta| (theta, rest.log_moment(theta), one(theta))).collect();
        // The windows: far beyond both tilted laws, and beyond the stretch.
        let (least, largest) = bulk(law, &weights, moment);
        let (middle, reach) = (shape.mean, 9.0 * shape.variance.sqrt());
        let base = rest.log_moment(tilt);
        let coins = most + if matches!(coin, Coin::Noise) { 0.0 } else { 1.0 };
        let far = |&(theta, left, one): &(f64, f64, f64)| (left + coins * one - base + FAR) / (theta - tilt);
        let right = tails.iter().filter(|tail| tail.0 > tilt).map(far).fold(f64::INFINITY, f64::min);
        let left = tails.iter().filter(|tail| tail.0 < tilt).map(far).fold(f64::NEG_INFINITY, f64::max);
        let window = (16.0 * spread).max(middle + largest + reach - from).max(to - (middle + least - reach));
        let window = window.max(right - from).max(to - left).max(to * (1.0 + 1e-9));
        // Of few lengths, so that kernels can be used again.
        let dw = 2.0 * PI / (1.13 * on_grid(window));
        let width = to - from + 2e-9 * spread;
        let intervals = (width * fineness / spread).ceil().max(2.0);
        if intervals.is_nan() || intervals >= MOST_PLACES {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        let intervals = intervals as usize;
        let paid = match coin {
            Coin::Noise => None,
            Coin::Steps(paid) => Some(paid),
        };
        let kernel = Kernel::of(rest, tilt, dw, paid)?;
        let line = kernel.0.line;
        if intervals.saturating_mul(line.count) > MOST_TURNS {
            return None;
        }
        let low = from - (rest.noise * (tilt + 0.5) + kernel.0.middle) - 1e-9 * spread;
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let spacing = width / intervals as f64 * (1.0 + 1e-12);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let places: Vec<f64> = (0..=intervals + 2).map(|k| low + spacing * (k as f64 - 1.0)).collect();
        let masses = rest.over().map(|over| (1.0 + over.hi()) * SURE);
        let step = transform(law, line)?;
        let turns = turns(&places, line);
        let (noise, asked) = (rest.noise, Vec::new());
        let mut all =
            Self { stretch, coin, noise, line, kernel, asked, law, places, spacing, turns, moment, tails, masses };
        let with = all.kernel.1.as_ref().map(|one| step.composed(one));
        all.asked = [step].iter().chain(&with).map(|values| all.part(values)).collect();
        Some(all)
    }

    /// How many numbers are added up for one candidate, and were to draw the line.
    #[expect(clippy::cast_precision_loss, reason = "small")]
    pub(super) fn work(&self) -> (f64, f64) {
        let [places, atoms, count] = [self.places.len(), self.law.losses.len(), self.line.count].map(|n| n as f64);
        (places * count, (2.0 * places + atoms) * count)
    }

    /// A bound on how far the payment `b` with the allowance is from enough, in the stretch: at most 1 when it is enough, about the factor by
    /// which it falls short otherwise; and about the share in it of what lies between places.
    ///
    /// ROUNDING: the step's part and all errors up, the payment's part and the allowance down.
    pub(super) fn shortfall(&self, b: f64, allowance: f64) -> (f64, f64) {
        let each = self.conditions(b).into_iter().map(|condition| self.shortfall_of(&condition, b, allowance));
        each.fold((0.0, 0.0), |worst, one| if one.0 > worst.0 { one } else { worst })
    }

    /// What is asked and what is paid, in all that has to hold: between whole numbers of steps what is left is the one with the one
    /// probability and the other with the other (T53 i).
    fn conditions(&self, b: f64) -> Vec<(Part, Part)> {
        let (Some(one), [alone, with]) = (&self.kernel.1, &self.asked[..]) else {
            return vec![(self.asked[0].clone(), self.part(&noise_transform(b, self.line)))];
        };
        let share = b - b.floor();
        let whole = one.power(b.floor());
        let next = self.part(&whole.composed(one));
        let from_whole = (alone.clone(), self.part(&whole).mixed(1.0 - share, &next, share));
        vec![from_whole, (alone.mixed(share, with, 1.0 - share), next)]
    }

    fn shortfall_of(&self, (asked, paid): &(Part, Part), b: f64, allowance: f64) -> (f64, f64) {
        let Some(allowance) = left_of(allowance, self.used(b)) else { return (f64::INFINITY, 0.0) };
        let doubt = self.doubt(b, &asked.weighed, &paid.weighed);
        let bends = self.bends(asked, paid, doubt);
        let tilt = self.stretch.tilt;
        let bar = |place: f64| {
            // e^{λx − κ}, where x = r(λ+½) + middle + place and κ = rλ(λ+1)/2 + log.
            let exponent = tilt * (place + self.kernel.0.middle) + 0.5 * self.noise * tilt * tilt - self.kernel.0.log;
            let units = 16.0 + 8.0 * (exponent.abs() + (tilt * self.kernel.0.middle).abs() + self.kernel.0.log.abs());
            mul_down(allowance, exp(exponent) * (1.0 - units * U))
        };
        // At the places the difference may be asked + doubt − paid − bar; between two of them, a little more.
        let bars: Vec<f64> = self.places.iter().map(|&place| bar(place)).collect();
        let mut worst = (0.0, 0.0);
        for k in 1..self.places.len() - 1 {
            let curve = bars[k - 1].max(bars[k + 1]) * tilt * tilt * SURE;
            let bend = bends[k] + curve * self.spacing * self.spacing / 8.0;
            let (asked, given) = (asked.sums[k] + doubt + bend, paid.sums[k] + bars[k]);
            let ratio = if asked <= 0.0 && given >= 0.0 { 0.0 } else { asked / given };
            let ratio = if given > 0.0 && !ratio.is_nan() {
                ratio
            } else if asked <= 0.0 {
                0.0
            } else {
                f64::INFINITY
            };
            if ratio > worst.0 {
                worst = (ratio, bend / given);
            }
        }
        worst
    }

    /// Times the kernel, and summed.
    fn part(&self, values: &Values) -> Part {
        let weighed = Values::from(self.line.count, |j| {
            let (value, error) = values.at(j);
            let kernel = self.kernel.0.values[j];
            let error = error + (self.kernel.0.errors[j] + 8.0 * U) * (size(value) + error);
            (kernel.times(value), size(kernel) * error * SURE)
        });
        let sums = self.values(&weighed);
        Part { weighed, sums }
    }

    /// The sum at every place.
    fn values(&self, coefficients: &Values) -> Vec<f64> {
        let mut sums = vec![0.0; self.places.len()];
        for (j, value) in coefficients.values.iter().enumerate() {
            let twice = if j == 0 { 1.0 } else { 2.0 };
            let (re, im) = (twice * value.re, twice * value.im);
            let (cos, sin) = &self.turns[j];
            for ((sum, cos), sin) in sums.iter_mut().zip(cos).zip(sin) {
                *sum += re * cos + im * sin;
            }
        }
        let scale = self.line.dw / (2.0 * PI);
        sums.iter().map(|sum| sum * scale).collect()
    }

    /// A bound on how far the whole sum lies above its chords beside each place but the outermost.
    ///
    /// # Theorem
    /// Between two places `Δ` apart a function lies above its chord by at most `Δ²/8·max(−f″)₊`. With `|f⁗| ≤ M` the second difference at a place is
    /// `Δ²·f″` up to `Δ⁴·M/12`, and between places `−f″` is at most the larger of its two values and `Δ²·M/8`. Moduli of coefficients, times
    /// powers of their frequencies, bound both derivatives; either bound will do.
    fn bends(&self, asked: &Part, paid: &Part, doubt: f64) -> Vec<f64> {
        let all = asked.weighed.mixed(1.0, &paid.weighed, -1.0);
        let (mut second, mut fourth) = (0.0, 0.0);
        for (j, w) in self.line.all().enumerate().skip(1) {
            let square = w * w;
            let more = (size(all.values[j]) + asked.weighed.errors[j] + paid.weighed.errors[j]) * square;
            (second, fourth) = (second + more, fourth + more * square);
        }
        let (scale, square) = (self.line.dw / PI * SURE, self.spacing * self.spacing);
        let everywhere = second * scale * square / 8.0;
        let higher = fourth * scale * square * square * (1.0 / 12.0 + 1.0 / 8.0) / 8.0 * SURE;
        let sum = |k: usize| asked.sums[k] - paid.sums[k];
        // Four of the sums, each as wrong as all of them may be, make a second difference.
        let falls = |k: usize| (2.0 * sum(k) - sum(k - 1) - sum(k + 1) + 4.0 * doubt).max(0.0) / 8.0 * SURE;
        let last = self.places.len() - 1;
        let falls: Vec<f64> = (0..=last).map(|k| if (1..last).contains(&k) { falls(k) } else { 0.0 }).collect();
        let beside = |k: usize| falls[k.saturating_sub(1)..(k + 2).min(last + 1)].iter().fold(0.0f64, |a, b| a.max(*b));
        (0..=last).map(|k| (beside(k) + higher).min(everywhere)).collect()
    }

    /// A bound on everything that is wrong with the sum at a place.
    fn doubt(&self, b: f64, asked: &Values, paid: &Values) -> f64 {
        let (tilt, count) = (self.stretch.tilt, self.line.count);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let j = count as f64;
        let last = self.line.at(count - 1);
        let farthest = self.places.iter().fold(0.0f64, |most, place| most.max(place.abs()));
        // Rotations one after the other, the angle's own rounding, and the sum's.
        let turning = (TURN_ERROR + 4.0) * j + 2.0 * last * farthest + j + 8.0;
        let sum: f64 = (0..count)
            .map(|i| {
                let sizes = size(asked.values[i]) + size(paid.values[i]);
                2.0 * (asked.errors[i] + paid.errors[i] + turning * U * sizes)
            })
            .sum();
        let rounding = sum * self.line.dw / (2.0 * PI) * SURE;
        // E[e^{λL}] of the step, with one of what is paid if it is steps, and of the payment.
        let (paid, with) = match self.coin {
            Coin::Noise => (exp_up(0.5 * b * tilt * (tilt + 1.0) * SURE), 1.0),
            Coin::Steps(law) => {
                let log = law.log_moment(tilt);
                let most = (b.floor() * log).max((b.floor() + 1.0) * log);
                (exp_up(most + 1e-9 * (1.0 + most.abs())), exp_up(log.max(0.0) + 1e-9))
            }
        };
        rounding + (self.moment * with + paid) * self.kernel.0.left_out * SURE + self.beside(b)
    }

    /// How many of what is paid are in a payment at most.
    fn coins(&self, b: f64) -> f64 {
        match self.coin {
            Coin::Noise => b,
            Coin::Steps(_) => b.floor() + 1.0,
        }
    }

    /// What may be below zero in the other windows.
    fn beside(&self, b: f64) -> f64 {
        let Stretch { tilt, from, to, .. } = self.stretch;
        let window = 2.0 * PI / self.line.dw * (1.0 - 1e-12);
        let (right, left) = (from + window, to - window);
        let kappa = 0.5 * self.noise * tilt * (tilt + 1.0) + self.kernel.0.log;
        // e^{rate·at − κ + log}, in every window from there on, and a hair.
        let all = |rate: f64, at: f64, log: f64| {
            let exponent = rate * at - kappa + log;
            let hair = 1e-12 * ((rate * at).abs() + kappa.abs() + log.abs()) + 1e-9;
            exp_up(exponent + hair) / -exp_m1(-rate.abs() * window) * SURE
        };
        let coins = self.coins(b);
        let chernoff = |side: f64, at: f64| {
            let tails = self.tails.iter().filter(|(theta, ..)| (theta - tilt) * side > 0.0);
            tails.map(|&(theta, rest, one)| all(tilt - theta, at, rest + coins * one)).fold(f64::INFINITY, f64::min)
        };
        if left > 0.0 {
            return f64::INFINITY;
        }
        let (mass, mass_q) = self.differences(b);
        let masses = if tilt > 0.0 {
            all(tilt, left, 0.0) * add_up(mass.0, mass_q)
        } else {
            all(tilt, right, 0.0) * mass.1 + all(tilt + 1.0, left, 0.0) * mass_q
        };
        chernoff(1.0, right) + chernoff(-1.0, left) + if masses.is_nan() { 0.0 } else { masses }
    }

    /// How far the masses of the payment and of the step may be apart: too little and too much of the step's under `P`, too much under `Q`.
    fn differences(&self, b: f64) -> ((f64, f64), f64) {
        let (coins, [paid, paid_q]) = match self.coin {
            Coin::Noise => (0.0, [0.0; 2]),
            Coin::Steps(law) => (self.coins(b) + 1.0, [law.over, law.over_q].map(|over| over.hi().max(-over.lo()))),
        };
        let [mass, mass_q] = self.masses;
        let missing = (-self.law.over.lo()).max(0.0) + coins * paid;
        let over = self.law.over.hi().max(0.0) + coins * paid;
        let over_q = self.law.over_q.hi().max(0.0) + coins * paid_q;
        ((missing * mass * SURE, over * mass * SURE), over_q * mass_q * SURE)
    }

    /// What of the allowance is used up from the start: the mass that is too much, below zero.
    fn used(&self, b: f64) -> f64 {
        if self.stretch.tilt < 0.0 { self.differences(b).0.1 } else { 0.0 }
    }
}

/// Where almost all of the tilted law is.
fn bulk(law: &Law, weights: &[f64], moment: f64) -> (f64, f64) {
    let some = |weight: &f64| *weight > 1e-12 * moment;
    let first = weights.iter().position(some).unwrap_or(0);
    let last = weights.iter().rposition(some).unwrap_or(weights.len() - 1);
    (law.losses[first].min(0.0), law.losses[last].max(0.0))
}

/// `cos(w·u)` and `sin(w·u)` of each place, frequency by frequency.
fn turns(places: &[f64], line: Frequencies) -> Vec<(Vec<f64>, Vec<f64>)> {
    let bases: Vec<_> = places.iter().map(|place| turn(line.dw * place)).collect();
    let mut now: (Vec<f64>, Vec<f64>) = (vec![1.0; places.len()], vec![0.0; places.len()]);
    let mut all = Vec::with_capacity(line.count);
    for _ in 0..line.count {
        all.push(now.clone());
        for (i, base) in bases.iter().enumerate() {
            let (x, y) = (now.0[i], now.1[i]);
            now.0[i] = x * base.re - y * base.im;
            now.1[i] = x * base.im + y * base.re;
        }
    }
    all
}
