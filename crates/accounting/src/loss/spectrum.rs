//! A law on a lattice, tilted, and its transform at low frequencies.
//!
//! With `t_l = p_l·e^{λl}/M`, `M = E[e^{λL}]`, the transform is `φ(ω) = Σ t_l·e^{iω(l−c)}`. Composition multiplies
//! transforms, and after a few steps they are far from zero at low frequencies only: those are summed up one by one
//! ([`Tilted::transform`]); at the others a bound on the modulus is all that is needed ([`Tilted::most`]).

use super::grid::{GridLaw, loss_at};
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp_down, exp_up, ln};
use paygo_numeric::fft::{Complex, ROOT_ERROR, relative_error, root, transform};
use paygo_numeric::rounding::{add_up, div_down, div_up, mul_down, mul_up};

/// Unit roundoff.
pub(super) const U: f64 = f64::EPSILON / 2.0;
/// Frequencies after which the powers of roots are computed afresh.
const FRESH: usize = 16;
/// Sums that run side by side.
const LANES: usize = 8;

/// From which side a law bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Never too little.
    Above,
    /// Never too much.
    Below,
}

/// A tilted law: weights that sum to about one.
pub(super) struct Tilted {
    cells: Vec<i64>,
    weights: Vec<f64>,
    /// A bound on their sum.
    pub(super) total: f64,
    /// About the mean and the variance, in steps.
    pub(super) mean: f64,
    pub(super) variance: f64,
    /// The lattice point next to the mean.
    pub(super) center: i64,
    /// `ln M`, rounded to the side.
    pub(super) log_moment: f64,
    /// Parts of the law around its heaviest place, the smallest first, the whole law last.
    cores: Vec<Core>,
    /// Bounds on the sum of `|t_l − t_{l−1}|` over the run of neighboring cells, and on what lies outside it.
    variation: f64,
    outside: f64,
}

/// What is known of a part of a law, in steps.
struct Core {
    /// Its weight, and a bound on the weight outside.
    weight: f64,
    outside: f64,
    /// Its variance, rounded down, and the mean fourth power of the difference of two, `2·m₄ + 6·v²`, rounded up.
    variance: f64,
    fourth: f64,
}

/// The masses times `e^{λl}`, as shares of a sum, and `ln M`; both rounded to the side. `None` for an empty law, and
/// where the tilt leaves the doubles.
pub(super) fn weigh(law: &GridLaw, step: f64, tilt: f64, side: Side) -> Option<(Vec<f64>, f64)> {
    let exponent = |cell: i64| Interval::point(tilt) * loss_at(cell, step);
    // Near the largest exponent, so that nothing overflows; any number would do.
    let largest = law.cells.iter().map(|&(cell, mass)| tilt * loss_at(cell, step) + ln(mass));
    let largest = largest.fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return None;
    }
    // ROUNDING: to the side, in the exponential, the product and the quotient; then `mass·e^{λl}` is on that side of
    // `weight·sum·e^largest`.
    let weight = |&(cell, mass): &(i64, f64)| match side {
        Side::Above => mul_up(mass, exp_up((exponent(cell) - largest).hi())),
        Side::Below => mul_down(mass, exp_down((exponent(cell) - largest).lo())),
    };
    let raw: Vec<f64> = law.cells.iter().map(weight).collect();
    let sum: f64 = raw.iter().sum();
    let share = |&weight: &f64| match side {
        Side::Above => div_up(weight, sum),
        Side::Below => div_down(weight, sum).max(0.0),
    };
    let log_moment = Interval::point(sum).ln() + largest;
    let log_moment = match side {
        Side::Above => log_moment.hi(),
        Side::Below => log_moment.lo(),
    };
    log_moment.is_finite().then(|| (raw.iter().map(share).collect(), log_moment))
}

impl Tilted {
    /// The law times `e^{λl}`, scaled.
    pub(super) fn new(law: &GridLaw, step: f64, tilt: f64, side: Side) -> Option<Self> {
        let (weights, log_moment) = weigh(law, step, tilt, side)?;
        let cells: Vec<i64> = law.cells.iter().map(|&(cell, _)| cell).collect();
        Some(Self::measured(cells, weights, log_moment))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "lattice indices are far below 2^53"
    )]
    fn measured(cells: Vec<i64>, weights: Vec<f64>, log_moment: f64) -> Self {
        let total = weights.iter().fold(0.0, |sum, &w| add_up(sum, w));
        let mean = cells.iter().zip(&weights).map(|(&cell, w)| cell as f64 * w).sum::<f64>() / total;
        let cores = cores(&cells, &weights, total);
        let (variation, outside) = variation(&cells, &weights);
        let variance = cores.last().map_or(0.0, |whole| whole.variance);
        let center = mean.round() as i64;
        Self { cells, weights, total, mean, variance, center, log_moment, cores, variation, outside }
    }

    /// `φ` at the frequencies `2πj/n`, `j = 0..count`, in steps, and a bound on the error of each. `n` is a power of two.
    pub(super) fn transform(&self, n: usize, count: usize) -> (Vec<Complex>, f64) {
        let levels = usize::try_from(n.ilog2()).unwrap_or(0);
        if self.cells.len() * count > 8 * n * levels { self.all(n, count) } else { self.some(n, count) }
    }

    /// By the fast transform.
    fn all(&self, n: usize, count: usize) -> (Vec<Complex>, f64) {
        let mut data = vec![Complex::ZERO; n];
        let modulus = i64::try_from(n).unwrap_or(i64::MAX);
        for (&cell, &weight) in self.cells.iter().zip(&self.weights) {
            // With the sign of its exponent, the place goes backwards.
            let place = usize::try_from((self.center - cell).rem_euclid(modulus)).unwrap_or(0);
            data[place].re += weight;
        }
        let norm = data.iter().map(|value| value.re * value.re).sum::<f64>().sqrt();
        transform(&mut data, false);
        data.truncate(count);
        // ROUNDING: an entry is off by no more than all of them, ‖ŷ − y‖₂ ≤ e·‖y‖₂ = e·√n·‖x‖₂; cells that fall
        // together add a unit each.
        #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
        let (root_n, cells) = ((n as f64).sqrt(), self.cells.len() as f64);
        (data, 1.01 * (relative_error(n) * root_n * norm + U * cells * self.total))
    }

    /// One frequency after the other.
    fn some(&self, n: usize, count: usize) -> (Vec<Complex>, f64) {
        let places: Vec<i64> = self.cells.iter().map(|cell| cell - self.center).collect();
        let turns: Vec<Complex> = places.iter().map(|&place| root(place, n)).collect();
        let (turn_re, turn_im): (Vec<f64>, Vec<f64>) = turns.iter().map(|turn| (turn.re, turn.im)).unzip();
        let (mut re, mut im) = (vec![0.0; places.len()], vec![0.0; places.len()]);
        let mut values = Vec::with_capacity(count);
        let modulus = i64::try_from(n).unwrap_or(i64::MAX);
        for j in 0..count {
            if j % FRESH == 0 {
                let j = i64::try_from(j).unwrap_or(0);
                for (i, &place) in places.iter().enumerate() {
                    let power = root(place.rem_euclid(modulus) * j % modulus, n);
                    (re[i], im[i]) = (power.re, power.im);
                }
            }
            values.push(Complex { re: dot(&self.weights, &re), im: dot(&self.weights, &im) });
            for i in 0..places.len() {
                let (x, y) = (re[i], im[i]);
                re[i] = x * turn_re[i] - y * turn_im[i];
                im[i] = x * turn_im[i] + y * turn_re[i];
            }
        }
        // ROUNDING: each power is within FRESH·(ROOT_ERROR + 3) units; a sum of nonnegative weights times parts of
        // modulus at most one is off by a unit for each addition in a lane.
        #[expect(clippy::cast_precision_loss, reason = "a length in memory")]
        let additions = (places.len() / LANES + LANES + 2) as f64;
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let error = 1.01 * U * ((FRESH as f64 + 1.0) * (ROOT_ERROR + 3.0) + 2.0 * additions) * self.total;
        (values, error)
    }

    /// A bound on `|φ|` between two frequencies, in radians a step, at most π.
    ///
    /// # Theorem
    /// For the difference `D` of two independent losses `|φ(ω)|² = E cos(ωD)`, and `cos u ≤ 1 − u²/2 + u⁴/24`, which
    /// is convex in `u²`: the bound at the worse of the ends. It holds for any part of the law, and what lies outside
    /// the part counts whole. And for a run of neighboring cells `|Σ t_l·e^{iωl}|·|1 − e^{iω}| ≤ Σ|t_l − t_{l−1}|`.
    pub(super) fn most(&self, low: f64, high: f64) -> f64 {
        let by_variation = self.variation / (2.0 * sine_floor(0.5 * low)) * (1.0 + 16.0 * U) + self.outside;
        self.cores.iter().map(|core| core.most(low, high)).fold(by_variation.min(self.total), f64::min)
    }
}

impl Core {
    fn most(&self, low: f64, high: f64) -> f64 {
        let squared = |w: f64| {
            let x = w * w;
            1.0 - x * self.variance + x * x * self.fourth / 24.0
        };
        // The slack is far above what the roundings do.
        self.weight * (squared(low).max(squared(high)).max(0.0) + 1e-12).sqrt() + self.outside
    }
}

/// Parts of a law: without ever less of its lighter end.
#[expect(clippy::cast_precision_loss, reason = "lattice indices are far below 2^53")]
fn cores(cells: &[i64], weights: &[f64], total: f64) -> Vec<Core> {
    [0.5, 0.25, 0.1, 0.03, 0.01, 0.003, 1e-3, 1e-4, 0.0]
        .into_iter()
        .map(|share| {
            // From both ends, whichever is farther from the middle, while no more than the share is given up.
            let (mut first, mut last, mut outside) = (0, cells.len() - 1, 0.0);
            let middle = cells[(0..cells.len()).max_by(|&i, &j| weights[i].total_cmp(&weights[j])).unwrap_or(0)];
            while first < last {
                let at = if middle - cells[first] > cells[last] - middle { first } else { last };
                let more = add_up(outside, weights[at]);
                if more > share * total {
                    break;
                }
                outside = more;
                if at == first { first += 1 } else { last -= 1 }
            }
            let part = || {
                cells[first..=last].iter().zip(&weights[first..=last]).map(|(&cell, &w)| ((cell - middle) as f64, w))
            };
            let weight: f64 = part().map(|(_, w)| w).sum();
            let mean = part().map(|(cell, w)| cell * w).sum::<f64>() / weight;
            let moment = |power: i32| part().map(|(cell, w)| w * (cell - mean).powi(power)).sum::<f64>() / weight;
            let (second, fourth) = (moment(2), moment(4));
            // A mean that is off by 10⁻⁹ of the range adds 10⁻¹⁸ of its square; every term has few roundings.
            Core {
                weight: weight * (1.0 + 1e-9),
                outside: outside * (1.0 + 1e-9),
                variance: second * (1.0 - 1e-9),
                fourth: (2.0 * fourth + 6.0 * second * second) * (1.0 + 1e-9),
            }
        })
        .collect()
}

pub(super) fn modulus(value: Complex) -> f64 {
    value.re.hypot(value.im)
}

/// A lower bound on `sin x` for `0 ≤ x ≤ π/2`.
pub(super) fn sine_floor(x: f64) -> f64 {
    x * (1.0 - x * x / 6.0) * (1.0 - 8.0 * U)
}

/// A sum of products, in lanes.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (mut x, mut y) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (x, y) in (&mut x).zip(&mut y) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(x, y)| x * y).sum();
    lanes.iter().sum::<f64>() + rest
}

/// The variation of the heaviest run of cells that are next to each other, and the weight outside it; both rounded up.
fn variation(cells: &[i64], weights: &[f64]) -> (f64, f64) {
    let (mut best, mut whole) = ((0.0, 0.0), 0.0);
    let mut start = 0;
    while start < cells.len() {
        let run = (start + 1..cells.len()).take_while(|&i| cells[i] == cells[i - 1] + 1).count() + 1;
        let inside = &weights[start..start + run];
        let weight = inside.iter().fold(0.0, |sum, &w| add_up(sum, w));
        if weight > best.0 {
            let changes = inside.windows(2).fold(0.0, |sum, pair| add_up(sum, (pair[1] - pair[0]).abs()));
            best = (weight, mul_up(add_up(changes, add_up(inside[0], inside[run - 1])), 1.0 + 4.0 * U));
        }
        whole = add_up(whole, weight);
        start += run;
    }
    (best.1, (whole - best.0) * (1.0 + 4.0 * U) + 1e-15)
}
