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
use super::grid::loss_at;
use super::product::Product;
use super::spectrum::{Side, U, modulus};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1};
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

impl Window {
    /// The window's length, as a loss.
    #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
    pub(super) fn width(self) -> f64 {
        self.length as f64 * self.step
    }
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

impl Composed {
    /// From the product of the steps' transforms; `None` where doubles do not suffice.
    pub(super) fn of(product: &Product) -> Option<Self> {
        let (side, window) = (product.side, product.window);
        let (terms, noise) = terms(product);
        let log_moment = match side {
            Side::Above => product.log_moment.hi(),
            Side::Below => product.log_moment.lo(),
        };
        let (too_much, infinite) = (product.too_much(), product.infinite());
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

/// `Φ·A/n` at each frequency, and a bound on what is wrong with a sum of them, turned by any lattice point.
#[expect(clippy::cast_precision_loss, reason = "lengths in memory")]
fn terms(product: &Product) -> (Vec<Complex>, f64) {
    let (summed, left_out) = product.summed();
    let (window, count) = (product.window, summed.len() as f64);
    let (mut terms, mut noise, mut size) = (Vec::with_capacity(summed.len()), 0.0, 0.0);
    for (j, (value, error)) in summed.into_iter().enumerate() {
        let share = if j == 0 || j == window.length / 2 { 1.0 } else { 2.0 } / window.length as f64;
        let kernel = kernel(j, window);
        let term = value.times(Complex { re: kernel.re * share, im: kernel.im * share });
        // ROUNDING: the kernel is within 64 units, the product within 4, the turn at a lattice point within ROOT_ERROR and 4.
        noise += error * modulus(kernel) * share * 1.01 + (80.0 + ROOT_ERROR) * U * modulus(term);
        size += modulus(term);
        terms.push(term);
    }
    (terms, add_up(1.01 * (noise + U * count * size), left_out))
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
