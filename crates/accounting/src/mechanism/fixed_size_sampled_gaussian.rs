//! The Gaussian mechanism on a batch of fixed size drawn without replacement; neighbors replace one record.

use super::{Family, Gaussian};
use crate::curve::chord_between_integers;
use crate::params::{BatchFraction, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho};
use crate::wire::Number;
use paygo_numeric::Interval;
use paygo_numeric::sums::{ln_binomial, log_add_exp};
use serde::{Deserialize, Serialize};

/// Above this order only the bound without amplification, `α/(2s²)`, is used.
const LARGEST: f64 = 4096.0;

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

    /// An upper bound on the Rényi divergence, rounded up.
    ///
    /// # Theorem
    /// At integer α, with `γ` the batch fraction and `ε(j) = j/(2s²)`:
    /// `(α−1)·D_α ≤ ln(1 + γ²C(α,2)·min{4(e^{ε(2)}−1), 2e^{ε(2)}} + Σ_{j=3}^α 2γ^j C(α,j) e^{(j−1)ε(j)})`.
    /// Source: Wang, Balle, Kasiviswanathan, arXiv:1808.00087, Theorem 9, with `ε(∞) = ∞` (T43). Between integers the
    /// chord (T4); never above `α/(2s²)` (T27).
    fn renyi(&self, order: Order) -> f64 {
        let (s, a) = (Interval::point(self.noise_multiplier.get()), order.get());
        let plain = (Interval::point(a) / (s.square() * 2.0)).hi();
        if a > LARGEST {
            return plain;
        }
        let moment = chord_between_integers(a, |n| self.moment(n));
        let value = (Interval::point(moment) / (Interval::point(a) - 1.0)).hi();
        value.min(plain).max(f64::MIN_POSITIVE)
    }

    fn is_smooth(&self) -> bool {
        false
    }

    /// Sampling does not amplify zCDP, and does not hurt it (T27).
    fn rho(&self) -> Option<Rho> {
        Gaussian { noise_multiplier: self.noise_multiplier }.rho()
    }
}

impl FixedSizeSampledGaussian {
    /// The bound on `(α−1)·D_α` at an integer order.
    fn moment(&self, order: f64) -> f64 {
        let s = Interval::point(self.noise_multiplier.get());
        let log_fraction = Interval::point(self.batch_fraction.get()).ln();
        let rate = Interval::ONE / (s.square() * 2.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer of at most 4096")]
        let n = order as u64;
        let log_two = Interval::point(2.0).ln();
        let mut total = Interval::new(f64::NEG_INFINITY, f64::NEG_INFINITY);
        for j in 2..=n {
            #[expect(clippy::cast_precision_loss, reason = "at most 4096")]
            let x = j as f64;
            let growth = if j == 2 {
                // min{4(e^{ε(2)}−1), 2e^{ε(2)}}, each as a logarithm; the smaller upper bound is a bound on the smaller.
                let e2 = rate * 2.0;
                let first = if e2.hi() < 40.0 { e2.exp_m1().ln() } else { e2 } + log_two * 2.0;
                let second = e2 + log_two;
                if first.hi() < second.hi() { first } else { second }
            } else {
                rate * x * (x - 1.0) + log_two
            };
            total = log_add_exp(total, ln_binomial(n, j) + log_fraction * x + growth);
        }
        log_add_exp_one(total)
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
