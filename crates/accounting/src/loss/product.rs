//! Many steps, one after the other: the product of their transforms at low frequencies, to which more can be added.

use super::compose::Window;
use super::grid::GridLaw;
use super::spectrum::{Side, Tilted, U, modulus, sine_floor, weigh};
use crate::params::Count;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp, exp_m1, ln};
use paygo_numeric::fft::{Complex, ROOT_ERROR, root};
use paygo_numeric::rounding::{add_up, mul_up};

/// Frequencies that are summed one by one, for all laws together.
const MOST_TERMS: usize = 1 << 22;
/// Multiples of the tilt at which the far end is bounded, from below.
const FAR: [f64; 3] = [0.15, 0.5, 1.5];

/// Some steps, composed, from one side.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub(super) side: Side,
    pub(super) window: Window,
    /// `Φ` at the lowest frequencies, but for the phases of the centers, and a bound on the error of each.
    values: Vec<Complex>,
    errors: Vec<f64>,
    /// The sum of the centers, modulo the window's length.
    phase: i64,
    /// Blocks of frequencies from the top down, with bounds on `ln|Φ|`.
    blocks: Vec<Block>,
    /// `K`.
    pub(super) log_moment: Interval,
    /// The logarithm of the probability that no loss is infinite, and, from above, a bound on that of all masses.
    log_finite: Interval,
    log_mass: f64,
    /// From below: `ln E[e^{λL}]`, and the same at each λ + θ.
    far: (f64, [f64; 3]),
    /// About the mean and the variance of the tilted loss, and how many steps it is of.
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) steps: f64,
    /// How many laws.
    laws: f64,
}

/// Frequencies from `low` to below `end`.
#[derive(Clone, Copy, Debug)]
struct Block {
    low: usize,
    end: usize,
    log_most: f64,
}

impl Product {
    /// Some steps, each so many times; `None` where doubles do not suffice.
    pub(super) fn new(laws: &[(&GridLaw, Count)], window: Window, side: Side) -> Option<Self> {
        let mut all = Self {
            side,
            window,
            values: Vec::new(),
            errors: Vec::new(),
            phase: 0,
            blocks: blocks(window.length),
            log_moment: Interval::ZERO,
            log_finite: Interval::ZERO,
            log_mass: 0.0,
            far: (0.0, [0.0; 3]),
            mean: 0.0,
            variance: 0.0,
            steps: 0.0,
            laws: 0.0,
        };
        let tilted: Vec<Tilted> = laws.iter().map(|&(law, n)| all.measured(law, n)).collect::<Option<_>>()?;
        // How many frequencies are needed is known once all laws are.
        let (count, _) = all.enough(window.length / 2 + 1);
        if count * laws.len() > MOST_TERMS {
            return None;
        }
        (all.values, all.errors) = (vec![Complex::ONE; count], vec![0.0; count]);
        for (law, &(_, n)) in tilted.iter().zip(laws) {
            all.multiply(law, n)?;
        }
        Some(all)
    }

    /// And another step, so many times; `None` where doubles do not suffice.
    pub(super) fn and(&mut self, law: &GridLaw, n: Count) -> Option<()> {
        let tilted = self.measured(law, n)?;
        // With more steps fewer frequencies matter.
        let (count, _) = self.enough(self.values.len());
        self.values.truncate(count);
        self.errors.truncate(count);
        self.multiply(&tilted, n)
    }

    /// How many terms were computed, of all laws and of their product.
    #[expect(clippy::cast_precision_loss, reason = "lengths in memory")]
    pub(super) fn terms(&self) -> (f64, f64) {
        let terms = self.values.len() as f64;
        (terms * self.laws, terms)
    }

    /// Everything but the transform.
    fn measured(&mut self, law: &GridLaw, n: Count) -> Option<Tilted> {
        let Window { step, tilt, length, .. } = self.window;
        let tilted = Tilted::new(law, step, tilt, self.side)?;
        let count = n.to_f64();
        for block in &mut self.blocks {
            block.log_most += count * ln(tilted.most(frequency(block.low, length), frequency(block.end - 1, length)));
        }
        self.log_moment = self.log_moment + Interval::point(tilted.log_moment) * count;
        self.log_finite = self.log_finite + (-Interval::point(law.infinite)).ln_1p() * count;
        match self.side {
            Side::Above => {
                let mass = law.cells.iter().fold(law.infinite, |mass, &(_, more)| add_up(mass, more));
                self.log_mass += count * ln(mass.max(1.0));
            }
            Side::Below => {
                let log = |tilt: f64, side: Side| weigh(law, step, tilt, side).map_or(f64::INFINITY, |(_, log)| log);
                self.far.0 += count * log(tilt, Side::Below);
                for (far, share) in self.far.1.iter_mut().zip(FAR) {
                    *far += count * log(tilt + share * tilt, Side::Above);
                }
            }
        }
        self.mean += count * tilted.mean * step;
        self.variance += count * tilted.variance * step * step;
        self.steps += count;
        self.laws += 1.0;
        Some(tilted)
    }

    /// How many of so many frequencies are to be summed, and a bound on what the others could add to `S`.
    ///
    /// `|A(ω)| ≤ sinh(h/2)/(2·sin²(ω/2))`: of `|1 − r·e^{iω}|² = (1−r)² + 4r·sin²(ω/2)` the second part, for both factors of the kernel.
    #[expect(clippy::cast_precision_loss, reason = "lengths in memory")]
    fn enough(&self, known: usize) -> (usize, f64) {
        let Window { length, step, tolerance, .. } = self.window;
        let mut left_out = 0.0;
        // From the top down; what each block could add, until it is too much.
        for block in &self.blocks {
            let share = 2.0 * (block.end - block.low) as f64 / length as f64;
            let sine = sine_floor(0.5 * frequency(block.low, length));
            let kernel = exp_m1(step) / (4.0 * sine * sine);
            let more = left_out + 1.01 * share * kernel * exp(block.log_most);
            if block.low < known && (more.is_nan() || more > tolerance) {
                return (block.end.min(known), left_out);
            }
            left_out = more;
        }
        (1, left_out)
    }

    /// The transform of a law, so many times.
    ///
    /// ROUNDING: |φ̂ⁿ − φⁿ| ≤ n·e·aⁿ⁻¹ with a = |φ̂| + e; the power adds 3n units, the product 3.
    fn multiply(&mut self, law: &Tilted, n: Count) -> Option<()> {
        let length = i64::try_from(self.window.length).ok()?;
        let (transform, error) = law.transform(self.window.length, self.values.len());
        let count = n.to_f64();
        for ((value, total), own) in self.values.iter_mut().zip(&mut self.errors).zip(transform) {
            let a = (modulus(own) + error) * (1.0 + 4.0 * U);
            let (power, before) = match n {
                Count::ONE => (own, 1.0),
                _ => (own.power(n.get()), exp((count - 1.0) * ln(a)) * (1.0 + 1e-9)),
            };
            let power_error = count * before * (error + 3.1 * U * a) * (1.0 + 1e-9);
            let (x, y) = (modulus(*value), modulus(power));
            *total = (x * power_error + y * *total + power_error * *total + 3.1 * U * x * y) * (1.0 + 8.0 * U);
            *value = value.times(power);
        }
        let turns = i64::try_from(n.get() % u64::try_from(length).ok()?).ok()?;
        self.phase = (self.phase + law.center.rem_euclid(length) * turns) % length;
        Some(())
    }

    /// `Φ` at the frequencies that are summed, a bound on the error of each, and one on what the others could add to `S`.
    pub(super) fn summed(&self) -> (Vec<(Complex, f64)>, f64) {
        let (count, left_out) = self.enough(self.values.len());
        let turned = |(j, (value, error)): (i64, (&Complex, &f64))| {
            let size = modulus(*value);
            (value.times(root(self.phase * j, self.window.length)), error + (ROOT_ERROR + 4.0) * U * size)
        };
        ((0i64..).zip(self.values.iter().zip(&self.errors)).map(turned).take(count).collect(), left_out)
    }

    /// The probability that some step's loss is infinite; from above times what masses that were rounded up could make of it.
    pub(super) fn infinite(&self) -> f64 {
        let some = -self.log_finite.exp_m1();
        match self.side {
            Side::Above => mul_up(some.hi(), exp(self.log_mass * (1.0 + 1e-9)) * (1.0 + 1e-9)),
            Side::Below => some.lo().max(0.0),
        }
    }

    /// From below: for some θ, the logarithm of `E_t[e^{θ(L − n·h)}]/(1 − e^{−λnh})`. Times `e^{−θg}` it bounds what comes from a
    /// window or more above `g` (Chernoff).
    pub(super) fn too_much(&self) -> Vec<(f64, f64)> {
        if self.side == Side::Above {
            return Vec::new();
        }
        let (tilt, width) = (self.window.tilt, self.window.width());
        let (base, far) = self.far;
        let bound = |(share, moment): (f64, f64)| {
            let theta = share * tilt;
            let log = moment - base - theta * width - ln(-exp_m1(-tilt * width));
            (theta, log + 1e-9 * log.abs())
        };
        FAR.into_iter().zip(far).map(bound).collect()
    }
}

/// In radians a step.
#[expect(clippy::cast_precision_loss, reason = "a length in memory")]
fn frequency(j: usize, length: usize) -> f64 {
    2.0 * std::f64::consts::PI * j as f64 / length as f64
}

/// All frequencies but the lowest, in blocks that become shorter with them.
fn blocks(length: usize) -> Vec<Block> {
    let mut end = length / 2 + 1;
    let mut blocks = Vec::new();
    while end > 1 {
        let low = (end - end.div_ceil(8)).max(1);
        blocks.push(Block { low, end, log_most: 0.0 });
        end = low;
    }
    blocks
}
