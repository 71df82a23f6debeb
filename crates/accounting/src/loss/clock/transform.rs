//! Transforms of loss laws along lines in the complex plane, each less 1, with bounds on their errors.

use super::law::Law;
use crate::loss::spectrum::U;
use paygo_numeric::elementary::{exp, exp_m1, ln_1p};
use paygo_numeric::fft::{Complex, TURN_LIMIT, angle, turn};

/// Frequencies after which rotations start afresh.
const FRESH: usize = 16;
/// Slack for the few roundings of bounds that are far from tight.
pub(super) const SURE: f64 = 1.0 + 1e-9;

/// Where transforms are taken: on the line `λ + iw`, `w = j·dw`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frequencies {
    pub(super) tilt: f64,
    pub(super) dw: f64,
    pub(super) count: usize,
}

impl Frequencies {
    /// `j·dw`.
    #[expect(clippy::cast_precision_loss, reason = "small")]
    pub(super) fn at(self, j: usize) -> f64 {
        j as f64 * self.dw
    }

    pub(super) fn all(self) -> impl Iterator<Item = f64> {
        (0..self.count).map(move |j| self.at(j))
    }
}

/// Values along a line, each with a bound on its error.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) values: Vec<Complex>,
    pub(super) errors: Vec<f64>,
}

/// The modulus.
pub(super) fn size(value: Complex) -> f64 {
    (value.re * value.re + value.im * value.im).sqrt()
}

impl Values {
    pub(super) fn at(&self, j: usize) -> (Complex, f64) {
        (self.values[j], self.errors[j])
    }

    /// From each value's number.
    pub(super) fn from(count: usize, of: impl Fn(usize) -> (Complex, f64)) -> Self {
        let (values, errors) = (0..count).map(of).unzip();
        Self { values, errors }
    }

    /// `a·self + b·other`.
    pub(super) fn mixed(&self, a: f64, other: &Self, b: f64) -> Self {
        Self::from(self.values.len(), |j| {
            let ((x, ex), (y, ey)) = (self.at(j), other.at(j));
            let value = Complex { re: a * x.re + b * y.re, im: a * x.im + b * y.im };
            (value, a * ex + b * ey + 4.0 * U * (a * size(x) + b * size(y)))
        })
    }

    /// `(1 + self)·(1 + other) − 1`.
    pub(super) fn composed(&self, other: &Self) -> Self {
        Self::from(self.values.len(), |j| {
            let ((x, ex), (y, ey)) = (self.at(j), other.at(j));
            let product = x.times(y);
            let value = Complex { re: x.re + y.re + product.re, im: x.im + y.im + product.im };
            let error =
                ex * (1.0 + size(y) + ey) + ey * (1.0 + size(x)) + 8.0 * U * (size(x) + size(y) + size(product));
            (value, error)
        })
    }

    /// `(1 + self)^n − 1`.
    ///
    /// With `1 + v = e^{r + iφ}` it is `e^{n(r + iφ)} − 1`, for whole `n`.
    pub(super) fn power(&self, n: f64) -> Self {
        Self::from(self.values.len(), |j| {
            let (v, error) = self.at(j);
            let (log, phi, doubt) = logarithm(v, error);
            let (value, growth) = less_one(n * log, n * phi);
            let doubt = n * doubt;
            (value, growth * doubt * (1.0 + doubt) + 8.0 * U * (size(value) + growth * n * (log.abs() + phi.abs())))
        })
    }
}

/// `ln|1 + v|` and the angle of `1 + v`, and a bound on the error of either: a relative one of `1 + v`.
pub(super) fn logarithm(v: Complex, error: f64) -> (f64, f64, f64) {
    let square = v.re * (2.0 + v.re) + v.im * v.im;
    let (log, phi) = (0.5 * ln_1p(square), angle(v.im, 1.0 + v.re));
    let terms = v.re.abs() * (2.0 + v.re.abs()) + v.im * v.im;
    let rounding = 8.0 * U * (terms / (1.0 + square) + phi.abs());
    // The logarithm of 1 + x, |x| ≤ 1/20, is at most 1.05·|x|; anything larger is no use.
    let relative = error / (1.0 + square).max(0.0).sqrt();
    (log, phi, if relative < 0.05 { 1.05 * relative + rounding } else { f64::INFINITY })
}

/// `e^{r + iφ} − 1`, and `e^r`.
pub(super) fn less_one(r: f64, angle: f64) -> (Complex, f64) {
    let growth = exp(r);
    let half = turn(0.5 * angle);
    let value = Complex { re: exp_m1(r) - growth * 2.0 * half.im * half.im, im: growth * 2.0 * half.im * half.re };
    (value, growth)
}

/// `E[e^{zL}] − 1` of noise.
pub(super) fn noise_transform(b: f64, line: Frequencies) -> Values {
    let tilt = line.tilt;
    Values::from(line.count, |j| {
        let w = line.at(j);
        let (square, along) = (0.5 * b * (tilt * tilt + tilt - w * w), 0.5 * b * w * (2.0 * tilt + 1.0));
        let (value, growth) = less_one(square, along);
        let scale = 0.5 * b * (tilt * tilt + tilt.abs() + w * w) + along.abs();
        (value, U * (24.0 * scale * growth.max(1.0) + 8.0 * size(value)))
    })
}

/// `E[e^{zL}] − 1` of a law; `None` where the tilt leaves the doubles.
///
/// `Σ a·(e^{λl} − 1) + (Σ a − 1) + Σ c·(cos wl − 1 + i·sin wl)` with `c = a·e^{λl}`; the sine and the cosine by way of half
/// the angle.
///
/// ROUNDING: a rotation started afresh and carried on [`FRESH`] times keeps the sine of a small angle good to so many units of the angle.
pub(super) fn transform(law: &Law, line: Frequencies) -> Option<Values> {
    let tilt = line.tilt;
    let weights = law.weights(tilt);
    if !(weights.iter().sum::<f64>().is_finite() && law.farthest() * line.at(line.count) <= TURN_LIMIT) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let atoms = law.losses.len() as f64;
    let (mut constant, mut constant_error) = (law.over.middle(), law.over.hi() - law.over.lo());
    let (mut first, mut second, mut whole) = (0.0, 0.0, 0.0);
    for ((&l, &mass), &weight) in law.losses.iter().zip(&law.masses).zip(&weights) {
        let term = mass * exp_m1(tilt * l);
        constant += term;
        constant_error += term.abs() * (8.0 + law.doubt + atoms + 2.0 * (tilt * l).abs()) * U;
        whole += weight;
        first += weight * l.abs();
        second += weight * l.abs() * (6.0 + (tilt * l).abs());
    }
    constant_error += 2.0 * U * constant.abs();
    let mut blocks = Block::all(&law.losses, &weights, line.dw);
    let (mut values, mut errors) = (Vec::with_capacity(line.count), Vec::with_capacity(line.count));
    for (j, w) in line.all().enumerate() {
        if j % FRESH == 0 {
            blocks.iter_mut().for_each(|block| block.refresh(w));
        }
        let (mut across, mut along) = ([0.0; LANES], [0.0; LANES]);
        for block in &mut blocks {
            block.add(&mut across, &mut along);
        }
        let (across, along): (f64, f64) = (across.iter().sum(), along.iter().sum());
        // Half angles are at most w|l|/2, and so are their sines; nothing is off by more than it is large, nearly.
        let turned = (400.0 * 0.5 * w * first).min(400.0 * whole) + 8.0 * w * first + w * second;
        let error = constant_error + U * (turned + (atoms / 8.0 + 20.0 + law.doubt) * w * first);
        values.push(Complex { re: constant - 2.0 * across, im: 2.0 * along });
        errors.push(error * SURE);
    }
    Some(Values { values, errors })
}

/// Atoms side by side.
const LANES: usize = 8;

/// Some atoms: weights, losses, the sine and cosine of half the angle, and those by which it grows with each frequency.
struct Block {
    weight: [f64; LANES],
    loss: [f64; LANES],
    re: [f64; LANES],
    im: [f64; LANES],
    by_re: [f64; LANES],
    by_im: [f64; LANES],
}

impl Block {
    /// All atoms of a law; the last block filled up with nothing.
    fn all(losses: &[f64], weights: &[f64], dw: f64) -> Vec<Self> {
        let filled = |part: &[f64]| std::array::from_fn(|i| part.get(i).copied().unwrap_or(0.0));
        let block = |(loss, weight): (&[f64], &[f64])| {
            let loss: [f64; LANES] = filled(loss);
            let by = loss.map(|l| turn(0.5 * dw * l));
            let (by_re, by_im) = (by.map(|by| by.re), by.map(|by| by.im));
            Self { weight: filled(weight), loss, re: [1.0; LANES], im: [0.0; LANES], by_re, by_im }
        };
        losses.chunks(LANES).zip(weights.chunks(LANES)).map(block).collect()
    }

    fn refresh(&mut self, w: f64) {
        let turned = self.loss.map(|l| turn(0.5 * w * l));
        (self.re, self.im) = (turned.map(|turned| turned.re), turned.map(|turned| turned.im));
    }

    /// Adds `weight·sin²` and `weight·sin·cos`, and goes on to the next frequency.
    fn add(&mut self, across: &mut [f64; LANES], along: &mut [f64; LANES]) {
        for i in 0..LANES {
            let (x, y) = (self.re[i], self.im[i]);
            let weighed = self.weight[i] * y;
            across[i] += weighed * y;
            along[i] += weighed * x;
            self.re[i] = x * self.by_re[i] - y * self.by_im[i];
            self.im[i] = x * self.by_im[i] + y * self.by_re[i];
        }
    }
}
