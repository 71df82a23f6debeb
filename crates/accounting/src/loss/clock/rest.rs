//! What is left of a reference after a step, and what is paid for the step: noise, and steps of laws.

use super::law::Law;
use super::transform::{Frequencies, SURE, Values, logarithm, transform};
use crate::loss::spectrum::U;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, ln, ln_1p};
use paygo_numeric::fft::{Complex, TURN_LIMIT, turn};
use paygo_numeric::rounding::add_up;
use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

/// Noise of this `μ²`, and steps of laws, so many of each.
#[derive(Clone, Debug)]
pub(super) struct Rest<'a> {
    pub(super) noise: f64,
    pub(super) steps: Vec<(&'a Law, f64)>,
    /// Kernels of it that were made before.
    pub(super) known: Option<&'a Kernels>,
}

/// Kernels of one rest, with the transform of the law in which it is paid, by tilt and distance of frequencies.
pub(super) type Kernels = Mutex<HashMap<(u64, u64), Arc<(Kernel, Option<Values>)>>>;

/// About the mean and the variance of a tilted loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl<'a> Rest<'a> {
    pub(super) const fn noise(noise: f64) -> Self {
        Self { noise, steps: Vec::new(), known: None }
    }

    /// And more of it.
    pub(super) fn and(&self, noise: f64, steps: Option<(&'a Law, f64)>) -> Self {
        Self { noise: self.noise + noise, steps: self.steps.iter().copied().chain(steps).collect(), known: None }
    }

    /// `ln E[e^{θL}]`, rounded up.
    pub(super) fn log_moment(&self, theta: f64) -> f64 {
        let noise = 0.5 * self.noise * theta * (theta + 1.0);
        let noise = noise + 4.0 * U * self.noise * theta.abs() * (theta.abs() + 1.0);
        let steps = self.steps.iter().map(|(law, n)| n * law.log_moment(theta));
        steps.fold(noise, |sum, more| add_up(sum, more + 2.0 * U * more.abs()))
    }

    pub(super) fn shape(&self, tilt: f64) -> Shape {
        let start = Shape { mean: self.noise * (tilt + 0.5), variance: self.noise };
        self.steps.iter().fold(start, |sum, (law, n)| {
            let one = law.shape(tilt);
            Shape { mean: sum.mean + n * one.mean, variance: sum.variance + n * one.variance }
        })
    }

    /// All masses less 1, and all masses under `Q` less 1.
    pub(super) fn over(&self) -> [Interval; 2] {
        let of = |part: fn(&Law) -> Interval| {
            let log = self.steps.iter().map(|(law, n)| part(law).ln_1p() * *n);
            log.fold(Interval::ZERO, |sum, log| sum + log).exp_m1()
        };
        [of(|law| law.over), of(|law| law.over_q)]
    }

    /// A bound on the probability of an infinite loss.
    pub(super) fn lost(&self) -> f64 {
        self.steps.iter().fold(0.0, |sum, (law, n)| add_up(sum, n * law.lost * SURE))
    }
}

/// What is left, as a factor along a line: `E[e^{zL}]/(z(z+1))` over `e^{κ}`, seen from its middle.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) line: Frequencies,
    pub(super) values: Vec<Complex>,
    /// Relative.
    pub(super) errors: Vec<f64>,
    /// The middle is `noise·(λ+½)` and this; κ is `noise·λ(λ+1)/2` and that.
    pub(super) middle: f64,
    pub(super) log: f64,
    /// A bound on the moduli at all higher frequencies, summed, times `dw/π`.
    pub(super) left_out: f64,
}

/// What is left out of a kernel may be so much of it.
const LITTLE: f64 = 1e-17;
/// Frequencies go up to where the noise in what is left has fallen to `e^{−CUT}`.
const CUT: f64 = 38.0;
/// Most frequencies of a line.
const MOST_FREQUENCIES: f64 = 8192.0;
/// Most kernels that are kept of one rest.
const MOST_KERNELS: usize = 24;

impl Kernel {
    /// Along multiples of `dw`, as many as matter, with the transform of what it is paid in; `None` where they are too many.
    pub(super) fn of(rest: &Rest<'_>, tilt: f64, dw: f64, paid: Option<&Law>) -> Option<Arc<(Self, Option<Values>)>> {
        let key = (tilt.to_bits(), dw.to_bits());
        let known = rest.known.map(|known| || known.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(kernel) = known.as_ref().and_then(|known| known().get(&key).cloned()) {
            return Some(kernel);
        }
        let (kernel, transforms) = Self::new(rest, tilt, dw)?;
        // Often some of what is paid is also left.
        let one = paid.map(|paid| {
            let same = rest.steps.iter().zip(transforms).find(|((law, _), _)| std::ptr::eq(*law, paid));
            same.map_or_else(|| transform(paid, kernel.line), |(_, same)| Some(same))
        });
        let one = match one {
            Some(one) => Some(one?),
            None => None,
        };
        let kernel = Arc::new((kernel, one));
        if let Some(known) = known {
            let mut known = known();
            if known.len() >= MOST_KERNELS {
                known.clear();
            }
            known.insert(key, Arc::clone(&kernel));
        }
        Some(kernel)
    }

    fn new(rest: &Rest<'_>, tilt: f64, dw: f64) -> Option<(Self, Vec<Values>)> {
        let (last, left_out) = last_of(rest, tilt, dw);
        if (last / dw).is_nan() || last / dw >= MOST_FREQUENCIES {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        let line = Frequencies { tilt, dw, count: (last / dw) as usize + 1 };
        let transforms: Vec<Values> = rest.steps.iter().map(|(law, _)| transform(law, line)).collect::<Option<_>>()?;
        let shapes: f64 = rest.steps.iter().map(|(law, n)| n * law.shape(tilt).mean).sum();
        let log: f64 = rest.steps.iter().zip(&transforms).map(|((_, n), of)| n * ln_1p(of.values[0].re)).sum();
        let one = |w: f64, j: usize| {
            let below = Complex { re: tilt, im: w }.times(Complex { re: tilt + 1.0, im: w });
            let (mut exponent, mut angle) = (-0.5 * rest.noise * w * w - log, -w * shapes);
            // Units: those of the exponent, the angle and the quotient; and what the transforms' errors make of it.
            let mut error = U * (24.0 + 4.0 * rest.noise * w * w + 4.0 * log.abs() + 4.0 * angle.abs());
            for ((_, n), of) in rest.steps.iter().zip(&transforms) {
                let (v, doubt) = of.at(j);
                let (r, phi, doubt) = logarithm(v, doubt);
                exponent += n * r;
                angle += n * phi;
                error += n * (doubt + 4.0 * U * (r.abs() + phi.abs()));
            }
            error += 4.0 * U * angle.abs();
            let scale = exp(exponent) / (below.re * below.re + below.im * below.im);
            let value = turn(angle).times(Complex { re: below.re * scale, im: -below.im * scale });
            // e^x − 1 is at most x·(1 + x) up to 1.
            let known = error <= 1.0 && angle.abs() <= TURN_LIMIT;
            (value, if known { error * (1.0 + error) } else { f64::INFINITY })
        };
        let (values, errors) = line.all().enumerate().map(|(j, w)| one(w, j)).unzip();
        Some((Self { line, values, errors, middle: shapes, log, left_out }, transforms))
    }
}

/// The highest frequency that matters, and a bound on the sum over multiples of `dw` above it of what is at most the kernel's modulus, times
/// `dw/π`.
///
/// # Theorem
/// `|z(z+1)| ≥ w²`, and a tilted law's transform `φ` is at most 1 and changes by no more than `E|L − m|` for each unit of frequency, with any
/// `m` (its phase is of no matter). So between `a` and `b` it is at most what it is in the middle and `E|L − m|·(b − a)/2`.
fn last_of(rest: &Rest<'_>, tilt: f64, dw: f64) -> (f64, f64) {
    let farthest = rest.steps.iter().fold(0.0f64, |most, (law, _)| most.max(law.farthest()));
    let mut laws: Vec<Tilted> = rest.steps.iter().map(|&(law, n)| Tilted::new(law, n, tilt)).collect();
    let end = (2.0 * CUT / rest.noise).sqrt() + 2.0 * dw;
    let beyond = |w: f64| exp(-0.5 * rest.noise * (w - dw) * (w - dw)) / (PI * (w - dw)) * SURE;
    let enough = LITTLE * dw / (tilt * (tilt + 1.0)).abs();
    // Blocks from what seems enough up to where noise is.
    let variance = rest.shape(tilt).variance;
    let first = ((2.0 * CUT / variance).sqrt() + 2.0 * dw).min(end);
    let widest = laws.iter().fold(0.0f64, |most, law| most.max(law.deviation));
    let block = (0.25 / widest).min(end - first);
    laws.iter_mut().for_each(|law| law.start(first, block));
    let mut blocks = Vec::new();
    let mut at = first;
    while at < end && blocks.len() < MOST_BLOCKS && 2.0 * farthest * (at + block) <= TURN_LIMIT {
        let log = laws.iter_mut().fold(-0.5 * rest.noise * at * at, |log, law| log + law.n * law.most(block));
        // Frequencies in a block are one more than its width, at most.
        blocks.push((at, exp(log) * (block + dw) / (PI * at * at) * SURE));
        at += block;
    }
    // Where blocks do not reach the end nothing is known of what lies between.
    if at < end {
        return (end, beyond(end) * SURE);
    }
    let mut left_out = beyond(at);
    let mut last = at;
    for (at, more) in blocks.into_iter().rev() {
        if left_out + more > enough {
            break;
        }
        (last, left_out) = (at, left_out + more);
    }
    (last, left_out * SURE)
}

/// Most blocks of frequencies that are bounded.
const MOST_BLOCKS: usize = 2048;

/// A law, tilted: weights that sum to 1, turned by frequencies that lie evenly.
struct Tilted {
    n: f64,
    weights: Vec<f64>,
    /// From the mean.
    losses: Vec<f64>,
    /// `E|L − mean|`, rounded up.
    deviation: f64,
    now: Vec<Complex>,
    by: Vec<Complex>,
}

impl Tilted {
    fn new(law: &Law, n: f64, tilt: f64) -> Self {
        let largest = law.losses.iter().fold(f64::NEG_INFINITY, |most, l| most.max(tilt * l));
        let weights: Vec<f64> = law.losses.iter().zip(&law.masses).map(|(l, p)| p * exp(tilt * l - largest)).collect();
        let sum: f64 = weights.iter().sum();
        // Atoms of next to no weight are as good as none.
        let (mean, some) = (law.shape(tilt).mean, 1e-12 * sum);
        let kept = law.losses.iter().zip(weights).filter(|(_, weight)| *weight > some);
        let (losses, weights): (Vec<f64>, Vec<f64>) = kept.map(|(l, weight)| (l - mean, weight / sum)).unzip();
        let deviation: f64 = losses.iter().zip(&weights).map(|(l, p)| p * l.abs()).sum();
        Self { n, weights, losses, deviation: deviation * SURE + 1e-9, now: Vec::new(), by: Vec::new() }
    }

    /// In the middle of the first block.
    fn start(&mut self, first: f64, block: f64) {
        self.now = self.losses.iter().map(|l| turn((first + 0.5 * block) * l)).collect();
        self.by = self.losses.iter().map(|l| turn(block * l)).collect();
    }

    /// A bound on the logarithm of the modulus in a block of frequencies, at most 0; goes on to the next.
    ///
    /// ROUNDING: what was left out weighs less than 10⁻⁸, with however many atoms, and thousands of rotations are off by less.
    fn most(&mut self, block: f64) -> f64 {
        let (mut re, mut im) = (0.0, 0.0);
        for ((weight, now), by) in self.weights.iter().zip(&mut self.now).zip(&self.by) {
            re += weight * now.re;
            im += weight * now.im;
            *now = now.times(*by);
        }
        let most = (re * re + im * im).sqrt() + 0.5 * block * self.deviation + 3e-8;
        if most < 1.0 { ln(most) } else { 0.0 }
    }
}
