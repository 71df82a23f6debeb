//! Two composed Poisson-sampled Gaussian steps: a slow reference, within 10⁻⁹ of the truth, relatively.

use paygo_accounting::convert::gaussian::{SampledDelta, sampled_delta};
use paygo_accounting::params::{Delta, Epsilon, NoiseMultiplier, SamplingProbability};
use paygo_numeric::Interval;
use paygo_numeric::elementary::power_of_two;
use paygo_numeric::normal::density_within;

/// δ(ε) of two composed Poisson-sampled Gaussian steps, in the two directions; rounded up (T31).
///
/// # Theorem
/// With `H(γ)` the hockey stick of one step at `γ = e^ε` and `u` the inverse likelihood ratio of the first, the two
/// together have `E_P[H(e^ε·u)]`. `H` is convex, so on a cell of outcomes it lies below its chord, and the mean of the
/// chord needs only the cell's two probabilities.
pub(super) fn sampled_delta_of_two(q: SamplingProbability, s: NoiseMultiplier, epsilon: Epsilon) -> SampledDelta {
    let step = Step { q, s };
    let factor = Interval::point(epsilon.get()).exp();
    // What lies outside of the cells weighs less than 10⁻³⁰.
    let (mut removed, mut added) = (Interval::point(1e-30), Interval::point(1e-30));
    let (mut x, end) = step.range();
    let mut left = step.border(x, factor);
    while x < end {
        let width = step.width(x);
        let right = step.border(x + width, factor);
        let (mixture, base) = step.cell(x + 0.5 * width, width);
        let span = right.ratio - left.ratio;
        // Mixture first: u = 1/ratio falls, H(e^ε·u) rises to the right. Weight of the left border in the chord:
        // (P·u − Q)/(u_left − u_right) at the right border's u = (P − Q·ratio)·ratio_left/span with signs turned.
        let weight = ((base * right.ratio - mixture) * left.ratio / span).max(0.0);
        let drop = (Interval::point(right.removed) - left.removed).max(0.0);
        removed = removed + Interval::point((mixture * right.removed - weight * drop).hi().max(0.0));
        // Base first: u = ratio rises, H falls to the right.
        let weight = ((mixture - base * left.ratio) / span).max(0.0);
        let drop = (Interval::point(left.added) - right.added).max(0.0);
        added = added + Interval::point((base * left.added - weight * drop).hi().max(0.0));
        left = right;
        x += width;
    }
    // No outcome of the base is more than 1/(1−q)² times as likely as under the mixture.
    let never = (factor * step.kept().square()).lo() >= 1.0;
    let bound = |sum: Interval| Delta::from_upper_bound(sum.hi());
    SampledDelta { removed: bound(removed), added: if never { Delta::ZERO } else { bound(added) } }
}

/// One step: base `N(0, s²)` against mixture `(1−q)·N(0, s²) + q·N(1, s²)`.
struct Step {
    q: SamplingProbability,
    s: NoiseMultiplier,
}

/// The border of a cell of outcomes: mixture over base, and what the second step adds in each direction.
struct Border {
    ratio: Interval,
    removed: f64,
    added: f64,
}

impl Step {
    /// `1 − q`
    fn kept(&self) -> Interval {
        Interval::ONE - self.q.get()
    }

    /// The one unit of all borders, of few bits, so that every border is exact.
    fn unit(&self) -> f64 {
        1.5 * power_of_two(self.s.get().log2() - 16.0)
    }

    /// Where cells begin and end.
    fn range(&self) -> (f64, f64) {
        let (s, unit) = (self.s.get(), self.unit());
        ((-12.0 * s / unit / 1024.0).floor() * unit * 1024.0, 1.0 + 12.0 * s)
    }

    /// How wide the cell at `x` is: wider where the density is low, for the chord's error goes with density·width³.
    fn width(&self, x: f64) -> f64 {
        let z = (x.min(0.0).abs()).max(x - 1.0).max(0.0) / self.s.get();
        self.unit() * power_of_two((z * z / 7.0).min(9.0))
    }

    fn border(&self, x: f64, factor: Interval) -> Border {
        let variance = Interval::point(self.s.get()).square();
        let ratio = self.kept() + Interval::point(self.q.get()) * ((Interval::point(x) - 0.5) / variance).exp();
        Border { ratio, removed: self.stick(factor / ratio, true), added: self.stick(factor * ratio, false) }
    }

    /// The hockey stick at the least γ > 0 of an interval, where it is largest; mixture against base when `removed`.
    fn stick(&self, gamma: Interval, removed: bool) -> f64 {
        let gamma = gamma.lo();
        let log = Interval::point(gamma).ln();
        let side = |log: f64, removed: bool| {
            let both = sampled_delta(self.q, self.s, Epsilon::from_upper_bound(log));
            if removed { both.removed.get() } else { both.added.get() }
        };
        if gamma >= 1.0 {
            side(log.lo(), removed)
        } else {
            // H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P).
            let other = Interval::point(side((-log).lo(), !removed));
            (Interval::ONE - gamma + other * gamma).hi()
        }
    }

    /// Probabilities of a cell, under the mixture and the base.
    fn cell(&self, middle: f64, width: f64) -> (Interval, Interval) {
        let base = self.mass(middle, width, 0.0);
        (self.kept() * base + Interval::point(self.q.get()) * self.mass(middle, width, 1.0), base)
    }

    /// Probability of a cell under `N(shift, s²)`, from the density in its middle: `∫ = φ·width·(1 + (z²−1)k²/24 + …)`.
    fn mass(&self, middle: f64, width: f64, shift: f64) -> Interval {
        let s = self.s.get();
        let z = (Interval::point(middle) - shift) / s;
        let k2 = (Interval::point(width) / s).square();
        let square = z.square();
        let rest = (k2.square() * (square.square() + square * 6.0 + 3.0) / 1700.0).hi();
        let shape = Interval::ONE + (square - 1.0) * k2 / 24.0 + Interval::new(-rest, rest);
        density_within(z) * width / s * shape.max(0.0)
    }
}
