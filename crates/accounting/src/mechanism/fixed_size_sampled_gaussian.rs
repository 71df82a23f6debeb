//! The Gaussian mechanism on a batch of fixed size drawn without replacement; neighbors replace one record.

use super::{Family, Gaussian};
use crate::curve::chord_between_integers;
use crate::loss::Pair;
use crate::params::{BatchFraction, Divergence, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho};
use crate::wire::Number;
use paygo_numeric::Interval;
use paygo_numeric::elementary::ln_1p;
use paygo_numeric::excess::{self, exp_excess, log_excess};
use paygo_numeric::normal::tail_within;
use paygo_numeric::rounding::{add_up, mul_up, sub_up};
use paygo_numeric::sums::log_add_exp;
use serde::{Deserialize, Serialize};

/// Above this order only the bound without amplification, `α/(2s²)`, is used.
const MAX_ORDER: f64 = 4096.0;

/// The Gaussian mechanism on a batch of fixed size drawn without replacement.
///
/// `noise_multiplier` is the noise over the ℓ2 sensitivity *under replace-one*: for a sum of vectors clipped to norm `C`
/// that sensitivity is `2C`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct FixedSizeSampledGaussian {
    /// Batch size over dataset size.
    pub batch_fraction: BatchFraction,
    /// Noise over sensitivity under replace-one.
    pub noise_multiplier: NoiseMultiplier,
}

impl Family for FixedSizeSampledGaussian {
    /// The theorem is about replacing one record of a dataset of fixed size.
    fn neighbors(&self) -> &'static [Neighbors] {
        &[Neighbors::ReplaceOne]
    }

    /// An upper bound on the Rényi divergence of either direction, rounded up.
    ///
    /// # Theorem
    /// Let `γ` be the batch fraction, `x ~ N(0, s²)` and `z = 1 − γ + γ·e^{(2x−1)/(2s²)}`, the likelihood ratio of a Poisson-sampled
    /// step. Then `e^{(α−1)·D_α} ≤ 1 + E[z^α + z^{1−α} − 1 − z; z > 1]` (T43).
    ///
    /// *Proof.* Call the laws of the output on the two datasets `P = (1−γ)R + γP₁` and `Q = (1−γ)R + γQ₁`: with probability γ the
    /// record is in the batch, and without it both draw from the same batches. For `t ≥ 1` and `t′ = 1 + γ(t−1)`,
    /// `p − t′q = γ·(p₁ − t·((1−β)r + βq₁))` with `β = t′/t`, so for the hockey stick `H_t(P‖Q) = ∫(p − tq)₊`, which is convex in its
    /// second argument, `H_{t′}(P‖Q) ≤ γ·((1−β)·H_t(P₁‖R) + β·H_t(P₁‖Q₁)) ≤ γ·c(t)`, where `c(t)` is the hockey stick of Gaussian noise
    /// at distance one: `P₁` and `Q₁` differ in one record of the batch, and so do `P₁` and `R` when a batch without the record is
    /// made from one with it by exchanging it for a random other. (Balle, Barthe, Gaboardi, arXiv:1807.01647, Theorems 2 and 9.)
    /// The relation is symmetric, so `H(Q‖P)` has the same bound. And `γ·c(t)` is `H_{t′}` of mixture against base for a
    /// Poisson-sampled step, `E[(z − t′)₊]`. A Rényi moment is a mean of hockey sticks:
    /// `∫p^α q^{1−α} = 1 + α(α−1)·∫_1^∞ (t^{α−2}·H_t(P‖Q) + t^{−α−1}·H_t(Q‖P)) dt`. With the bounds put in, the integral over `t` of
    /// each `z > 1` gives `z^α − 1 − α(z−1)` and `z^{1−α} − 1 + (α−1)(z−1)`. ∎
    ///
    /// # Soundness and tightness
    /// At integer orders, between them the chord (T4); never above `α/(2s²)` (T27). The same pair of laws bounds every ε (see
    /// [`crate::loss`]) and is attained at every `t > 1` by a batch whose other records are all alike, so that one step has no
    /// smaller privacy profile. The first part is exact up to rounding, the second within 10⁻⁴ of itself.
    fn renyi(&self, order: Order) -> Divergence {
        self.renyi_at(&[order])[0]
    }

    /// The weights of the second part are shared.
    fn renyi_at(&self, orders: &[Order]) -> Vec<Divergence> {
        let s = Interval::point(self.noise_multiplier.get());
        let chords = Chords::new(self.noise_multiplier.get());
        let one = |order: &Order| {
            let a = order.get();
            let plain = (Interval::point(a) / (s.square() * 2.0)).hi();
            if a > MAX_ORDER {
                return Divergence::from_upper_bound(plain);
            }
            let moment = chord_between_integers(a, |n| self.moment(n, &chords));
            let value = (Interval::point(moment) / (Interval::point(a) - 1.0)).hi();
            Divergence::from_upper_bound(value.min(plain).max(f64::MIN_POSITIVE))
        };
        orders.iter().map(one).collect()
    }

    fn is_smooth(&self) -> bool {
        false
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::Replaced { q: self.batch_fraction.get(), s: self.noise_multiplier.get() })
    }

    /// Sampling does not amplify zCDP, and does not hurt it (T27).
    fn rho(&self) -> Option<Rho> {
        Gaussian { noise_multiplier: self.noise_multiplier }.rho()
    }
}

impl FixedSizeSampledGaussian {
    /// The bound on `(α−1)·D_α` at an integer order.
    fn moment(&self, order: f64, chords: &Chords) -> f64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer of at most 4096")]
        let n = order as u64;
        let fraction = Interval::point(self.batch_fraction.get());
        let (log_in, log_out) = (fraction.ln(), (-fraction).ln_1p());
        // E[z^α − 1 − α(z−1); z > 1] = Σ_j C(α,j)γ^j(1−γ)^{α−j}·S_j, every term at or above zero.
        let mut total = Interval::point(chords.expected(self.batch_fraction.get(), order - 1.0)).ln();
        let mut log_binomial = Interval::point(order).ln();
        for j in 2..=n {
            #[expect(clippy::cast_precision_loss, reason = "at most 4096")]
            let (x, out) = (j as f64, (n - j) as f64);
            log_binomial = log_binomial + (Interval::point(out + 1.0) / x).ln();
            let kept = if out > 0.0 { log_out * out } else { Interval::ZERO };
            let excess = log_truncated_excess(self.noise_multiplier.get(), x);
            total = log_add_exp(total, log_binomial + log_in * x + kept + excess);
        }
        log_add_exp_one(total)
    }
}

/// The logarithm of `S_j = E[e^{jy} − 1 − j(e^y − 1); y > 0]` with `y = (2x−1)/(2s²)`: an enclosure's upper end is what counts.
///
/// `E[e^{jy}; y > 0] = e^{j(j−1)/(2s²)}·Φ((j−½)/s)`. Without the restriction the mean is `expm1(j(j−1)/(2s²))`, which is larger.
fn log_truncated_excess(s: f64, j: f64) -> Interval {
    let s_in = Interval::point(s);
    let exponent = Interval::point(j * (j - 1.0)) / (s_in.square() * 2.0);
    if exponent.hi() > 40.0 {
        return exponent;
    }
    let whole = exponent.exp_m1();
    let below = |k: f64| tail_within(-(Interval::point(k - 0.5) / s_in));
    let (none, all) = (below(0.0), below(j));
    let part = whole * all + (all - none) - (Interval::ONE - none * 2.0) * j;
    Interval::point(part.hi().clamp(0.0, whole.hi())).ln()
}

/// Weights with which any function that is convex in the likelihood ratio of plain Gaussian noise, `e^y` for `y > 0`, is bounded in
/// the mean by its values at the borders of cells: in each cell it lies below its chord, and the mean of the chord needs only the
/// cell's probabilities under `N(0, s²)` and `N(1, s²)`.
struct Chords {
    /// `e^y − 1` at each border, and its weight.
    nodes: Vec<(f64, f64)>,
    /// `E[e^y − 1]` above the last border.
    beyond: f64,
}

impl Chords {
    /// Cells of this many to a standard deviation, if that makes them narrow enough in the exponent too.
    const FINE: f64 = 64.0;
    const MAX_NODES: f64 = 4096.0;

    fn new(s: f64) -> Self {
        let width = (s / Self::FINE).min(s * s / 16.0);
        let cells = ((0.5 + 10.0 * s) / width).min(Self::MAX_NODES).min(600.0 * s * s / width).ceil();
        let at = |i: f64| {
            let x = Interval::point(i * width) + 0.5;
            let y = Interval::point(i * width) / Interval::point(s).square();
            (y.exp_m1(), tail_within(x / s), tail_within((x - 1.0) / s))
        };
        let mut left = at(0.0);
        let mut nodes = vec![(0.0, 0.0)];
        let mut i = 1.0;
        while i <= cells {
            let right = at(i);
            let (base, shifted) = (left.1 - right.1, left.2 - right.2);
            // right + left = base, right·e^{y'} + left·e^y = shifted. ROUNDING: weight to the right border is up.
            let weight = ((shifted - base - base * left.0) / (right.0 - left.0)).hi().clamp(0.0, base.hi());
            if let Some(last) = nodes.last_mut() {
                last.1 = add_up(last.1, sub_up(base.hi(), weight));
            }
            nodes.push((right.0.hi(), weight));
            left = right;
            i += 1.0;
        }
        Self { nodes, beyond: (left.2 - left.1).hi().max(0.0) }
    }

    /// `E[z^{−c} − 1 + c(z−1); z > 1]`, rounded up, with `z − 1` the batch fraction times `e^y − 1`; convex and rising in `z`.
    fn expected(&self, fraction: f64, c: f64) -> f64 {
        let sum: f64 = self
            .nodes
            .iter()
            .map(|&(excess, weight)| {
                let w = fraction * excess;
                weight * (exp_excess(-c * ln_1p(w)) + c * log_excess(w))
            })
            .sum();
        // ROUNDING: up. The kernels' stated error, twice for those of their arguments, and a unit for each term; beyond the last
        // border the function is at most c(z−1).
        #[expect(clippy::cast_precision_loss, reason = "at most 4097")]
        let error = 4.0 * excess::ERROR + f64::EPSILON * self.nodes.len() as f64;
        add_up(mul_up(sum, 1.0 + error), mul_up(mul_up(c, fraction), self.beyond))
    }
}

/// `ln(1 + e^x)`, rounded up.
fn log_add_exp_one(x: Interval) -> f64 {
    if x.hi() < 600.0 { x.exp().ln_1p().hi() } else { log_add_exp(x, Interval::ZERO).hi() }
}

/// A fraction and a noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FixedSizeSampledGaussianFields {
    /// Batch size over dataset size.
    pub batch_fraction: Number,
    /// Noise over sensitivity under replace-one.
    pub noise_multiplier: Number,
}

impl TryFrom<&FixedSizeSampledGaussianFields> for FixedSizeSampledGaussian {
    type Error = OutOfDomain;
    /// ROUNDING: the fraction up, noise down.
    fn try_from(fields: &FixedSizeSampledGaussianFields) -> Result<Self, OutOfDomain> {
        Ok(Self {
            batch_fraction: BatchFraction::new(fields.batch_fraction.up("batch_fraction")?)?,
            noise_multiplier: fields.noise_multiplier.noise()?,
        })
    }
}

impl From<&FixedSizeSampledGaussian> for FixedSizeSampledGaussianFields {
    fn from(sampled: &FixedSizeSampledGaussian) -> Self {
        Self {
            batch_fraction: Number::double(sampled.batch_fraction.get()),
            noise_multiplier: sampled.noise_multiplier.into(),
        }
    }
}
