//! Composition: the profile of many steps from the transforms of each.
//!
//! The composed law has masses `p_l = e^{K − λl}·t_l`, with `K` the sum of the `ln M` and `t` the law whose transform
//! is the product `Φ` of the steps'. So at a lattice point `g`, in steps of `h`,
//!
//! ```text
//! δ(g) = Σ_{l ≥ g} p_l·(1 − e^{g−l}) = e^{K − λg}·S(g),    S(g) = (1/n)·Σ_j Φ(ω_j)·A(ω_j)·e^{−iω_j·g},    ω_j = 2πj/n
//! ```
//!
//! with `A(ω) = Σ_{k≥0} (1 − e^{−kh})·e^{−(λh + iω)k}`. With finitely many frequencies the sum says a little more:
//! `Σ_m δ(g + m·n·h)·e^{λmnh}`, over all whole `m`. That is an upper bound as it stands; below, what is too much is
//! bounded and taken off.

use super::aim::LARGEST;
use super::grid::{GridLaw, loss_at};
use super::spectrum::{Side, Tilted, U, sine_floor, weigh};
use crate::params::Count;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, ln};
use paygo_numeric::fft::{Complex, ROOT_ERROR, root};
use paygo_numeric::rounding::{add_down, add_up, mul_up};
use paygo_numeric::search::first_true;

/// Where the window is, and how fine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The lattice's step.
    pub(super) step: f64,
    /// The window's length in steps: a power of two.
    pub(super) length: usize,
    /// λ.
    pub(super) tilt: f64,
    /// What the lattice may add to the variance, relatively: for the choice of cells.
    pub(super) accuracy: f64,
    /// How small, beside 1, what is left out of S should be.
    pub(super) tolerance: f64,
}

/// The profile of a composition at lattice points, from one side.
#[derive(Clone, Debug)]
pub(super) struct Composed {
    side: Side,
    window: Window,
    /// `K`, rounded to the side.
    log_moment: f64,
    /// `Φ(ω_j)·A(ω_j)/n`, twice where it stands for two frequencies.
    terms: Vec<Complex>,
    /// A bound on everything that is wrong with `S`, wherever it is asked.
    noise: f64,
    /// The probability of an infinite loss; from above, a bound on it.
    infinite: f64,
    /// Below: what may be too much in `S`, as the logarithm of `S·e^{θ·g}` for some θ.
    too_much: Vec<(f64, f64)>,
}

/// Frequencies that are summed one by one, for all laws together.
const MOST_TERMS: usize = 1 << 22;

impl Composed {
    /// Some steps, each so many times; `None` where doubles do not suffice.
    pub(super) fn new(laws: &[(&GridLaw, Count)], window: Window, side: Side) -> Option<Self> {
        let tilted: Vec<(Tilted, Count)> = laws
            .iter()
            .map(|&(law, count)| Some((Tilted::new(law, window.step, window.tilt, side)?, count)))
            .collect::<Option<_>>()?;
        let (count, left_out) = enough(&tilted, window)?;
        let (terms, noise) = terms(&tilted, window, count)?;
        let moments = tilted.iter().map(|(law, n)| Interval::point(law.log_moment) * n.to_f64());
        let log_moment = moments.fold(Interval::ZERO, |sum, log| sum + log);
        let log_moment = match side {
            Side::Above => log_moment.hi(),
            Side::Below => log_moment.lo(),
        };
        let too_much = match side {
            Side::Above => Vec::new(),
            Side::Below => chernoff(laws, window),
        };
        let noise = add_up(noise, left_out);
        let infinite = infinite(laws, side);
        noise.is_finite().then_some(Self { side, window, log_moment, terms, noise, infinite, too_much })
    }

    /// δ at a lattice point: a bound from this side.
    fn at(&self, point: i64) -> f64 {
        let modulus = i64::try_from(self.window.length).unwrap_or(i64::MAX);
        let place = point.rem_euclid(modulus);
        let mut sum = 0.0;
        for (j, term) in (0i64..).zip(&self.terms) {
            let turn = root(-(place * j % modulus), self.window.length);
            sum += term.re * turn.re - term.im * turn.im;
        }
        let loss = loss_at(point, self.window.step);
        let scale = (Interval::point(self.log_moment) - Interval::point(self.window.tilt) * loss).exp();
        match self.side {
            Side::Above => {
                let bound = add_up(mul_up(scale.hi(), add_up(sum, self.noise).max(0.0)), self.infinite);
                if bound.is_nan() { 1.0 } else { bound.min(1.0) }
            }
            Side::Below => {
                let above = self.too_much.iter().map(|&(theta, log)| exp(log - theta * loss)).fold(1.0, f64::min);
                let length = Interval::point(loss_at(modulus, self.window.step)) * self.window.tilt;
                let below = (Interval::ONE / length.exp_m1()).hi();
                let kept = (Interval::point(sum) - self.noise - above * (1.0 + 1e-9)).lo().max(0.0);
                let finite = add_down((Interval::point(kept) * scale.lo()).lo(), -below).max(0.0);
                let bound = add_down(finite, self.infinite);
                if bound.is_nan() { 0.0 } else { bound }
            }
        }
    }

    /// δ at any ε: between lattice points the profile of a law on the lattice is straight in `e^ε`.
    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        let step = self.window.step;
        let left = floor_index(epsilon, step);
        let along = (Interval::point(epsilon) - loss_at(left, step)).exp_m1() / Interval::point(step).exp_m1();
        let along = Interval::new(along.lo().clamp(0.0, 1.0), along.hi().clamp(0.0, 1.0));
        let value = (Interval::ONE - along) * self.at(left) + along * self.at(left + 1);
        match self.side {
            Side::Above => value.hi().min(1.0),
            Side::Below => value.lo().max(0.0),
        }
    }

    /// The least ε with this δ: from above, one that suffices; from below, one below which none does. Searched from a guess on.
    pub(super) fn epsilon(&self, delta: f64, guess: f64, most: f64) -> f64 {
        let step = self.window.step;
        let most = most.min(LARGEST * step);
        let index = |loss: f64| u64::try_from(floor_index(loss.min(most), step).max(0)).unwrap_or(0);
        let point = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let found = first_true(0, index(most) + 1, index(guess), |n| self.at(point(n)) <= delta);
        let Some(found) = found else {
            return match self.side {
                Side::Above => f64::INFINITY,
                Side::Below => loss_at(point(index(most)), step),
            };
        };
        if found == 0 {
            return 0.0;
        }
        // The line between the two, where it is δ.
        let (high, low) = (Interval::point(self.at(point(found - 1))), Interval::point(self.at(point(found))));
        let along = (high - delta) / (high - low);
        let along = Interval::new(along.lo().clamp(0.0, 1.0), along.hi().clamp(0.0, 1.0));
        let epsilon = (along * Interval::point(step).exp_m1()).ln_1p() + loss_at(point(found - 1), step);
        match self.side {
            Side::Above => epsilon.hi(),
            Side::Below => epsilon.lo().max(0.0),
        }
    }

    /// The part of the δ there that is doubt.
    pub(super) fn doubt(&self, epsilon: f64) -> f64 {
        exp(self.log_moment - self.window.tilt * epsilon) * self.noise
    }
}

/// The lattice point at or below a loss.
#[expect(clippy::cast_possible_truncation, reason = "callers keep losses within 10^15 steps")]
fn floor_index(loss: f64, step: f64) -> i64 {
    let near = (loss / step).floor() as i64;
    if loss_at(near, step) > loss { near - 1 } else { near }
}

fn modulus(value: Complex) -> f64 {
    value.re.hypot(value.im)
}

/// How many frequencies are to be summed, and a bound on what the others could add to `S`.
///
/// `|A(ω)| ≤ sinh(h/2)/(2·sin²(ω/2))`: of `|1 − r·e^{iω}|² = (1−r)² + 4r·sin²(ω/2)` the second part, for both factors below.
fn enough(laws: &[(Tilted, Count)], window: Window) -> Option<(usize, f64)> {
    let half = window.length / 2;
    #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
    let frequency = |j: usize| std::f64::consts::PI * 2.0 * j as f64 / window.length as f64;
    let log_most = |low: usize, high: usize| -> f64 {
        laws.iter().map(|(law, n)| n.to_f64() * ln(law.most(frequency(low), frequency(high)))).sum()
    };
    // Blocks of frequencies from the top down; what each could add, until it is too much.
    let (mut first, mut left_out) = (half + 1, 0.0);
    while first > 1 {
        let low = (first - first.div_ceil(8)).max(1);
        #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
        let share = 2.0 * (first - low) as f64 / window.length as f64;
        let sine = sine_floor(0.5 * frequency(low));
        let kernel = exp_m1(window.step) / (4.0 * sine * sine);
        let more = left_out + 1.01 * share * kernel * exp(log_most(low, (first - 1).max(low)));
        if more.is_nan() || more > window.tolerance {
            break;
        }
        (first, left_out) = (low, more);
    }
    (first * laws.len() <= MOST_TERMS).then_some((first, left_out))
}

/// `Φ·A/n` at each frequency, and a bound on what is wrong with a sum of them, turned by any lattice point.
#[expect(clippy::cast_precision_loss, reason = "lengths in memory")]
fn terms(laws: &[(Tilted, Count)], window: Window, count: usize) -> Option<(Vec<Complex>, f64)> {
    let (product, errors) = product(laws, window.length, count)?;
    let (mut terms, mut noise, mut size) = (Vec::with_capacity(count), 0.0, 0.0);
    for (j, (value, error)) in product.into_iter().zip(errors).enumerate() {
        let share = if j == 0 || j == window.length / 2 { 1.0 } else { 2.0 } / window.length as f64;
        let kernel = kernel(j, window);
        let term = value.times(Complex { re: kernel.re * share, im: kernel.im * share });
        // ROUNDING: the kernel is within 64 units, the product within 4, the turn at a lattice point within ROOT_ERROR and 4.
        noise += error * modulus(kernel) * share * 1.01 + (80.0 + ROOT_ERROR) * U * modulus(term);
        size += modulus(term);
        terms.push(term);
    }
    Some((terms, 1.01 * (noise + U * count as f64 * size)))
}

/// The product of the transforms' powers, with the phases of their centers, and a bound on the error of each.
fn product(laws: &[(Tilted, Count)], length: usize, count: usize) -> Option<(Vec<Complex>, Vec<f64>)> {
    let modulus_of = i64::try_from(length).ok()?;
    let (mut values, mut errors) = (vec![Complex::ONE; count], vec![0.0; count]);
    let mut phase = 0i64;
    for (law, n) in laws {
        let (transform, error) = law.transform(length, count);
        for ((value, total), own) in values.iter_mut().zip(&mut errors).zip(transform) {
            // ROUNDING: |φ̂ⁿ − φⁿ| ≤ n·e·aⁿ⁻¹ with a = |φ̂| + e; the power adds 3n units, the product 3.
            let a = (modulus(own) + error) * (1.0 + 4.0 * U);
            let before = exp((n.to_f64() - 1.0) * ln(a)) * (1.0 + 1e-9);
            let power = own.power(n.get());
            let power_error = n.to_f64() * before * (error + 3.1 * U * a) * (1.0 + 1e-9);
            let (x, y) = (modulus(*value), modulus(power));
            *total = (x * power_error + y * *total + power_error * *total + 3.1 * U * x * y) * (1.0 + 8.0 * U);
            *value = value.times(power);
        }
        let turns = i64::try_from(n.get() % u64::try_from(modulus_of).ok()?).ok()?;
        phase = (phase + law.center.rem_euclid(modulus_of) * turns) % modulus_of;
    }
    for (j, (value, error)) in (0i64..).zip(values.iter_mut().zip(&mut errors)) {
        let size = modulus(*value);
        *value = value.times(root(phase * j % modulus_of, length));
        *error += (ROOT_ERROR + 4.0) * U * size;
    }
    Some((values, errors))
}

/// `A(ω_j) = e^{−(λh+iω)}·(1 − e^{−h})/((1 − e^{−(λh+iω)})·(1 − e^{−((λ+1)h+iω)}))`, within 64 units.
fn kernel(j: usize, window: Window) -> Complex {
    let j = i64::try_from(j).unwrap_or(0);
    // e^{iω/2}: sin ω = 2·sin(ω/2)·cos(ω/2) and 1 − cos ω = 2·sin²(ω/2), without cancellation.
    let half = root(j, 2 * window.length);
    let (sine, rest) = (2.0 * half.im * half.re, 2.0 * half.im * half.im);
    let factor = |a: f64| {
        let r = exp(-a);
        Complex { re: -exp_m1(-a) + r * rest, im: r * sine }
    };
    let (first, second) = (factor(window.tilt * window.step), factor((window.tilt + 1.0) * window.step));
    let denominator = first.times(second);
    let turn = Complex { re: 1.0 - rest, im: -sine };
    let square = denominator.re * denominator.re + denominator.im * denominator.im;
    let scale = exp(-window.tilt * window.step) * -exp_m1(-window.step) / square;
    let over = turn.times(Complex { re: denominator.re, im: -denominator.im });
    Complex { re: over.re * scale, im: over.im * scale }
}

/// The probability that some step's loss is infinite; from above times what masses that were rounded up could make of it.
fn infinite(laws: &[(&GridLaw, Count)], side: Side) -> f64 {
    let log = |law: &GridLaw, n: Count| (-Interval::point(law.infinite)).ln_1p() * n.to_f64();
    let finite = laws.iter().fold(Interval::ZERO, |sum, &(law, n)| sum + log(law, n));
    match side {
        Side::Above => {
            let mass = |law: &GridLaw| law.cells.iter().fold(law.infinite, |mass, &(_, more)| add_up(mass, more));
            let log_mass: f64 = laws.iter().map(|(law, n)| n.to_f64() * ln(mass(law).max(1.0))).sum();
            mul_up((-finite.exp_m1()).hi(), exp(log_mass * (1.0 + 1e-9)) * (1.0 + 1e-9))
        }
        Side::Below => (-finite.exp_m1()).lo().max(0.0),
    }
}

/// For some θ, the logarithm of `E_t[e^{θ(L − n·h)}]/(1 − e^{−λnh})`: times `e^{−θg}` it bounds what comes from a
/// window or more above `g` (Chernoff).
fn chernoff(laws: &[(&GridLaw, Count)], window: Window) -> Vec<(f64, f64)> {
    #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
    let length = window.length as f64 * window.step;
    let moment = |tilt: f64, side: Side| -> f64 {
        laws.iter()
            .map(|(law, n)| weigh(law, window.step, tilt, side).map_or(f64::INFINITY, |(_, log)| log * n.to_f64()))
            .sum()
    };
    let base = moment(window.tilt, Side::Below);
    [0.15, 0.5, 1.5]
        .map(|share| share * window.tilt)
        .map(|theta| {
            let log =
                moment(window.tilt + theta, Side::Above) - base - theta * length - ln(-exp_m1(-window.tilt * length));
            (theta, log + 1e-9 * log.abs())
        })
        .to_vec()
}
