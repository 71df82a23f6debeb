//! A condition at all thresholds of a stretch, by transforms along one line in the complex plane.
//!
//! # Theorem
//! For a loss law `C` with a density and `Re z = λ > 0`, `∫ H_C(x)·e^{zx} dx = E[e^{zL}]/(z·(z+1))`. For `−1 < λ < 0` the same holds of
//! `H_C` less its whole mass, `H_C(−∞)`; far below the mean that is what is small. So the difference
//! `F = H_{A⊗G_t} − H_{G_τ}`, `τ = t + b`, less `Σa − 1` where `λ < 0`, tilted, is
//!
//! ```text
//! e^{λx}·F(x) = (1/2π)·∫ e^{−iwx}·Φ(w) dw,    Φ(w) = e^{t·z(z+1)/2}·(E_A[e^{zL}] − e^{b·z(z+1)/2})/(z·(z+1)),    z = λ + iw.
//! ```
//!
//! Everything here is divided by `e^κ`, `κ = tλ(λ+1)/2`, and seen from `x = t(λ+½) + u`, which leaves the kernel
//! `e^{−tw²/2}/(z(z+1))`. Sums over multiples of `dw` take the place of the integral; what that may hide:
//!
//! - *Neighboring windows* (Poisson's summation formula): the sum is `Σ_m e^{λ(x+mP)}·F(x+mP)`, `P = 2π/dw`. Where F is above zero
//!   there it only looks worse. It is below zero by at most `H_{G_τ}` to the right; to the left, where `H(y) = 1 − e^y +
//!   e^y·H(−y)` for laws of whole mass, by at most what of `A`'s mass is missing, and `e^y·H_{G_τ}(−y)`. `H_{G_τ}` is at most a
//!   normal tail, hence `e^{−a²/2}`. Where `λ < 0`, what is missing is too much on the right, and under `Q` on the left.
//! - *Frequencies beyond the last*, `W`: at most `(E_A[e^{λL}] + e^{bλ(λ+1)/2})·e^{−tW²/2}/(πW)`.
//! - *Between two places* `Δ` apart the sum less the allowance, `ηe^{λx}`, is at most the larger of the two values, plus `Δ²/8` times
//!   a bound on the second derivative: the sum of the coefficients' moduli times `w²`, and `λ²` times the allowance.
//! - *Rounding*: bounded for each coefficient.

use super::law::{Law, left_of};
use crate::loss::spectrum::U;
use paygo_numeric::elementary::{exp, exp_m1, exp_up};
use paygo_numeric::fft::{Complex, TURN_ERROR, turn};
use paygo_numeric::rounding::{add_up, mul_down};
use std::f64::consts::PI;

/// Frequencies after which rotations start afresh.
const FRESH: usize = 16;
/// Frequencies go up to where the Gaussian part has fallen to `e^{−CUT}`.
const CUT: f64 = 38.0;
/// Most frequencies of a line, and most places.
const MOST_FREQUENCIES: f64 = 4096.0;
const MOST_PLACES: f64 = 16_384.0;
/// Slack for the few roundings of bounds that are far from tight.
const SURE: f64 = 1.0 + 1e-9;

/// What a line is to cover.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// What is left of the clock after the step.
    pub(super) time: f64,
    /// About the same with the payment.
    pub(super) paid: f64,
    /// λ.
    pub(super) tilt: f64,
    /// Thresholds.
    pub(super) from: f64,
    pub(super) to: f64,
    /// Places in each spread of the payment's law.
    pub(super) fineness: f64,
}

/// A stretch of thresholds, and the step's part of the condition there.
pub(super) struct Line {
    stretch: Stretch,
    /// Between frequencies, and how many above zero.
    dw: f64,
    kernel: Vec<Complex>,
    /// `Φ` of the step alone: with `E_A[e^{zL}] − 1`. And a bound on the error of each.
    step: Vec<Complex>,
    step_errors: Vec<f64>,
    /// The places, as differences from the middle; `cos` and `sin` of each place times each frequency.
    places: Vec<f64>,
    spacing: f64,
    turns: Vec<(Vec<f64>, Vec<f64>)>,
    /// The step's part at each place.
    asked: Vec<f64>,
    /// About `E_A[e^{λL}]`, rounded up.
    moment: f64,
    /// What mass that is missing or too much comes to in the other windows.
    deficit: f64,
    /// What of the allowance is used up from the start: the mass that is too much, below zero.
    used: f64,
}

impl Line {
    /// Covers a stretch, if doubles suffice.
    pub(super) fn new(law: &Law, stretch: Stretch) -> Option<Self> {
        let Stretch { time, paid, tilt, from, to, fineness } = stretch;
        let middle = time * (tilt + 0.5);
        let weights: Vec<f64> = law.losses.iter().zip(&law.masses).map(|(&l, &mass)| mass * exp(tilt * l)).collect();
        let moment = weights.iter().sum::<f64>() * SURE;
        if !(moment.is_finite() && tilt > -1.0 && tilt != 0.0 && time > 0.0) {
            return None;
        }
        // The windows: far beyond both tilted laws, and beyond the stretch.
        let (least, most) = bulk(law, &weights, moment);
        let spread = paid.sqrt();
        let reach = 8.0 * time.sqrt();
        let window = (16.0 * spread)
            .max(middle + most + reach - from)
            .max(to - (middle + least - reach))
            .max(to - paid * (tilt + 0.5) + 9.0 * spread)
            .max(paid * (tilt + 0.5) - from + 9.0 * spread)
            .max(to + 0.6 * paid);
        let dw = 2.0 * PI / window;
        let count = (2.0 * CUT / time).sqrt() / dw + 2.0;
        let (low, high) = (from - middle - 1e-9 * spread, to - middle + 1e-9 * spread);
        let intervals = ((high - low) * fineness / spread).ceil().max(2.0);
        if !(count < MOST_FREQUENCIES && intervals < MOST_PLACES) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        let (count, intervals) = (count as usize, intervals as usize);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let spacing = (high - low) / intervals as f64 * (1.0 + 1e-12);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let places: Vec<f64> = (0..=intervals).map(|k| low + spacing * k as f64).collect();
        let kernel: Vec<Complex> = (0..count).map(|j| kernel(tilt, time, frequency(j, dw))).collect();
        let (step, step_errors) = transform(law, &weights, stretch, dw, &kernel);
        let turns = turns(&places, dw, count);
        let mut line = Self {
            stretch,
            dw,
            kernel,
            step,
            step_errors,
            places,
            spacing,
            turns,
            asked: Vec::new(),
            moment,
            deficit: deficit(law, stretch, window),
            used: if tilt < 0.0 { law.over.hi().max(0.0) } else { 0.0 },
        };
        line.asked = line.values(&line.step);
        Some(line)
    }

    /// A bound on how far the payment `b` with the allowance is from enough, in the stretch: at most 1 when it is enough, about the factor by
    /// which it falls short otherwise.
    ///
    /// ROUNDING: the step's part and all errors up, the payment's part and the allowance down.
    pub(super) fn shortfall(&self, b: f64, allowance: f64) -> f64 {
        let Some(allowance) = left_of(allowance, self.used) else { return f64::INFINITY };
        let (pay, pay_errors) = self.payment(b);
        let paid = self.values(&pay);
        let doubt = self.doubt(b, &pay, &pay_errors);
        let bend = self.bend(&pay, &pay_errors);
        let bar = |place: f64| {
            // e^{λx − κ} = e^{λu + tλ²/2}.
            let exponent = self.stretch.tilt * (place + 0.5 * self.stretch.time * self.stretch.tilt);
            mul_down(allowance, exp(exponent) * (1.0 - (8.0 + 4.0 * exponent.abs()) * U))
        };
        // At the places the difference may be asked + doubt − paid − bar; between two of them, a little more.
        let tilt = self.stretch.tilt;
        let bars: Vec<f64> = self.places.iter().map(|&place| bar(place)).collect();
        let mut worst = 0.0f64;
        for k in 0..self.places.len() {
            let curve = bars[(k + 1).min(bars.len() - 1)] * tilt * tilt * SURE;
            let bend = (bend + curve) * self.spacing * self.spacing / 8.0;
            let (asked, given) = (self.asked[k] + doubt + bend, paid[k] + bars[k]);
            let ratio = if asked <= 0.0 && given >= 0.0 {
                0.0
            } else if given > 0.0 {
                asked / given
            } else {
                f64::INFINITY
            };
            worst = worst.max(if ratio.is_nan() { f64::INFINITY } else { ratio });
        }
        worst
    }

    /// How much of the shortfall comes from between the places.
    pub(super) fn is_coarse(&self, b: f64, allowance: f64) -> bool {
        let (pay, errors) = self.payment(b);
        let bend = self.bend(&pay, &errors) * self.spacing * self.spacing / 8.0;
        let paid = self.values(&pay);
        let bar = |k: usize| {
            allowance * exp(self.stretch.tilt * (self.places[k] + 0.5 * self.stretch.time * self.stretch.tilt))
        };
        (0..self.places.len()).any(|k| {
            let given = paid[k] + bar(k);
            self.asked[k] + bend > 0.99 * given && bend > 1e-3 * given
        })
    }

    /// The payment's `Φ`, and a bound on the error of each.
    fn payment(&self, b: f64) -> (Vec<Complex>, Vec<f64>) {
        let tilt = self.stretch.tilt;
        let one = |(j, kernel): (usize, &Complex)| {
            let w = frequency(j, self.dw);
            let (square, along) = (0.5 * b * (tilt * tilt + tilt - w * w), 0.5 * b * w * (2.0 * tilt + 1.0));
            let size = exp(square);
            let half = turn(0.5 * along);
            let value =
                Complex { re: exp_m1(square) - size * 2.0 * half.im * half.im, im: size * 2.0 * half.im * half.re };
            let scale = 0.5 * b * (tilt * tilt + tilt + w * w) + along;
            let modulus = kernel.re.hypot(kernel.im);
            let error = modulus * U * (24.0 * scale * size.max(1.0) + KERNEL_UNITS * value.re.hypot(value.im));
            (kernel.times(value), error * SURE)
        };
        self.kernel.iter().enumerate().map(one).unzip()
    }

    /// The sum at every place.
    fn values(&self, coefficients: &[Complex]) -> Vec<f64> {
        let mut sums = vec![0.0; self.places.len()];
        for (j, value) in coefficients.iter().enumerate() {
            let twice = if j == 0 { 1.0 } else { 2.0 };
            let (re, im) = (twice * value.re, twice * value.im);
            let (cos, sin) = &self.turns[j];
            for ((sum, cos), sin) in sums.iter_mut().zip(cos).zip(sin) {
                *sum += re * cos + im * sin;
            }
        }
        let scale = self.dw / (2.0 * PI);
        sums.iter().map(|sum| sum * scale).collect()
    }

    /// A bound on the second derivative of the whole sum.
    fn bend(&self, pay: &[Complex], pay_errors: &[f64]) -> f64 {
        let mut sum = 0.0;
        for j in 1..pay.len() {
            let w = frequency(j, self.dw);
            let (re, im) = (self.step[j].re - pay[j].re, self.step[j].im - pay[j].im);
            sum += (re.hypot(im) + self.step_errors[j] + pay_errors[j]) * w * w;
        }
        sum * self.dw / PI * SURE
    }

    /// A bound on everything that is wrong with the sum at a place.
    fn doubt(&self, b: f64, pay: &[Complex], pay_errors: &[f64]) -> f64 {
        let Stretch { time, tilt, from, to, .. } = self.stretch;
        let count = pay.len();
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let j = count as f64;
        let last = frequency(count - 1, self.dw);
        let farthest = self.places.iter().fold(0.0f64, |most, place| most.max(place.abs()));
        // Rotations one after the other, the angle's own rounding, and the sum's.
        let turning = (TURN_ERROR + 4.0) * j + 2.0 * last * farthest + j + 8.0;
        let mut sum = 0.0;
        for i in 0..count {
            let sizes = self.step[i].re.hypot(self.step[i].im) + pay[i].re.hypot(pay[i].im);
            sum += 2.0 * (self.step_errors[i] + pay_errors[i] + turning * U * sizes);
        }
        let rounding = sum * self.dw / (2.0 * PI) * SURE;
        let tau = time + b;
        let growth = exp_up(0.5 * b * tilt * (tilt + 1.0) * SURE);
        let cut = (self.moment + growth) * exp(-0.5 * time * last * last) / (PI * last) * SURE;
        // The neighboring windows.
        let (window, mean, spread) = (2.0 * PI / self.dw * (1.0 - 1e-12), tau * (tilt + 0.5), tau.sqrt());
        let (right, left) = (from + window - mean, mean - (to - window));
        if right.min(left) < 4.0 * spread || window < 4.0 * spread || to - window > -0.5 * tau {
            return f64::INFINITY;
        }
        let tail = |distance: f64| exp(-0.5 * distance * distance / tau * (1.0 - 1e-9));
        let beside = 1.01 * growth * (tail(right) + tail(left));
        rounding + cut + beside + self.deficit
    }
}

/// Units by which the kernel is off, with the product.
const KERNEL_UNITS: f64 = 256.0;

/// `j·dw`.
#[expect(clippy::cast_precision_loss, reason = "small")]
fn frequency(j: usize, dw: f64) -> f64 {
    j as f64 * dw
}

/// `e^{−tw²/2}/(z·(z+1))`.
fn kernel(tilt: f64, time: f64, w: f64) -> Complex {
    let below = Complex { re: tilt, im: w }.times(Complex { re: tilt + 1.0, im: w });
    let scale = exp(-0.5 * time * w * w) / (below.re * below.re + below.im * below.im);
    Complex { re: below.re * scale, im: -below.im * scale }
}

/// Where almost all of the tilted law is.
fn bulk(law: &Law, weights: &[f64], moment: f64) -> (f64, f64) {
    let some = |weight: &f64| *weight > 1e-12 * moment;
    let first = weights.iter().position(some).unwrap_or(0);
    let last = weights.iter().rposition(some).unwrap_or(weights.len() - 1);
    (law.losses[first].min(0.0), law.losses[last].max(0.0))
}

/// What mass that is missing or too much comes to in the other windows.
fn deficit(law: &Law, stretch: Stretch, window: f64) -> f64 {
    let Stretch { time, tilt, from, to, .. } = stretch;
    // e^{rate·at − κ} and every window further.
    let beside = |rate: f64, at: f64| {
        let exponent = rate * at - 0.5 * time * tilt * (tilt + 1.0);
        exp_up(exponent + 1e-9 * exponent.abs() + 1e-9) / -exp_m1(-rate.abs() * window) * SURE
    };
    let (missing, over) = ((-law.over.lo()).max(0.0), law.over.hi().max(0.0));
    let (left, right) = (to - window, from + window);
    let sum = if tilt > 0.0 {
        add_up(missing, law.over_q) * beside(tilt, left)
    } else {
        over * beside(tilt, right) + law.over_q * beside(tilt + 1.0, left)
    };
    sum * SURE
}

/// The step's `Φ`, `E_A[e^{zL}] − 1` times the kernel, and a bound on the error of each.
///
/// `E_A[e^{zL}] − 1 = Σ a·(e^{λl} − 1) + (Σ a − 1) + Σ c·(cos wl − 1 + i·sin wl)` with `c = a·e^{λl}`; the sine and the cosine by way of half
/// the angle.
///
/// ROUNDING: a rotation started afresh and carried on [`FRESH`] times keeps the sine of a small angle good to so many units of the angle.
fn transform(law: &Law, weights: &[f64], stretch: Stretch, dw: f64, kernel: &[Complex]) -> (Vec<Complex>, Vec<f64>) {
    let tilt = stretch.tilt;
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let atoms = law.losses.len() as f64;
    let (mut constant, mut constant_error) = (0.0, 0.0);
    let (mut first, mut second) = (0.0, 0.0);
    let mut whole = 0.0;
    for ((&l, &mass), &weight) in law.losses.iter().zip(&law.masses).zip(weights) {
        let term = mass * exp_m1(tilt * l);
        constant += term;
        constant_error += term.abs() * (8.0 + atoms + 2.0 * (tilt * l).abs()) * U;
        whole += weight;
        first += weight * l.abs();
        second += weight * l.abs() * (6.0 + (tilt * l).abs());
    }
    constant += law.over.middle();
    constant_error += law.over.hi() - law.over.lo() + 2.0 * U * constant.abs();
    let (mut re, mut im) = (vec![0.0; law.losses.len()], vec![0.0; law.losses.len()]);
    let bases: Vec<Complex> = law.losses.iter().map(|l| turn(0.5 * dw * l)).collect();
    let (mut values, mut errors) = (Vec::with_capacity(kernel.len()), Vec::with_capacity(kernel.len()));
    for (j, kernel) in kernel.iter().enumerate() {
        let w = frequency(j, dw);
        if j % FRESH == 0 {
            for (i, l) in law.losses.iter().enumerate() {
                let start = turn(0.5 * w * l);
                (re[i], im[i]) = (start.re, start.im);
            }
        }
        let (mut across, mut along) = ([0.0; 4], [0.0; 4]);
        for i in 0..weights.len() {
            across[i % 4] += weights[i] * im[i] * im[i];
            along[i % 4] += weights[i] * im[i] * re[i];
        }
        let value = Complex { re: constant - 2.0 * across.iter().sum::<f64>(), im: 2.0 * along.iter().sum::<f64>() };
        // Half angles are at most w|l|/2, and so are their sines; nothing is off by more than it is large, nearly.
        let turned = (400.0 * 0.5 * w * first).min(400.0 * whole) + 8.0 * w * first + w * second;
        let error = constant_error + U * (turned + (atoms / 4.0 + 16.0) * w * first);
        let modulus = kernel.re.hypot(kernel.im);
        values.push(kernel.times(value));
        errors.push(modulus * (error + KERNEL_UNITS * U * value.re.hypot(value.im)) * SURE);
        for i in 0..bases.len() {
            let (x, y) = (re[i], im[i]);
            re[i] = x * bases[i].re - y * bases[i].im;
            im[i] = x * bases[i].im + y * bases[i].re;
        }
    }
    (values, errors)
}

/// `cos(w·u)` and `sin(w·u)` of each place, frequency by frequency.
fn turns(places: &[f64], dw: f64, count: usize) -> Vec<(Vec<f64>, Vec<f64>)> {
    let bases: Vec<Complex> = places.iter().map(|place| turn(dw * place)).collect();
    let mut now: (Vec<f64>, Vec<f64>) = (vec![1.0; places.len()], vec![0.0; places.len()]);
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(now.clone());
        for (i, base) in bases.iter().enumerate() {
            let (x, y) = (now.0[i], now.1[i]);
            now.0[i] = x * base.re - y * base.im;
            now.1[i] = x * base.im + y * base.re;
        }
    }
    all
}
