//! One epoch in which every record goes to one of `T` batches by its own fair coin.
//!
//! Exactly the hypothesis under which \[Y\] Theorem 2 holds (E12), and this is a better bound for it (T44).

use super::{Family, Gaussian};
use crate::cost::Bound;
use crate::curve::chord_between_integers;
use crate::params::{Count, Divergence, Mu, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho};
use crate::wire::Number;
use paygo_numeric::Interval;
use paygo_numeric::elementary::{exp_m1, ln, ln_1p_up};
use paygo_numeric::rounding::mul_up;
use paygo_numeric::sums::{log_add_exp, log_sum_exp};
use serde::{Deserialize, Serialize};

/// Above this order only the bound of a single batch, `α/(2s²)`, is used.
const MAX_ORDER: f64 = 128.0;
/// Below this exponent no product of two moments leaves the doubles.
const MAX_EXPONENT: f64 = 600.0;

/// One epoch of `batches` noisy sums; each record is in one of them, chosen uniformly and independently of the others.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct BallsAndBinsEpoch {
    /// The public number of batches.
    pub batches: Count,
    /// Noise over sensitivity of each batch.
    pub noise_multiplier: NoiseMultiplier,
}

impl Family for BallsAndBinsEpoch {
    /// A record more or less, or zeroed, changes one batch and moves no other record.
    fn neighbors(&self) -> &'static [Neighbors] {
        &[Neighbors::AddRemove, Neighbors::ZeroOut]
    }

    /// An upper bound on the Rényi divergence of either direction, rounded up.
    ///
    /// # Theorem
    /// Forward, at integer α: `e^{(α−1)D_α} ≤ E[Π_t e^{k_t(k_t−1)/(2s²)}]` with `(k_1 … k_T)` multinomial, `α` draws over
    /// `T` cells. Reverse, at every α: `D_α ≤ 1/(2s²) + (α−1)/(2s²T)`. Both at most `α/(2s²)`. Proved in
    /// `docs/theory` (T44), for adaptive steps of sensitivity at most one. Between integers the chord (T4).
    fn renyi(&self, order: Order) -> Divergence {
        self.renyi_at(&[order])[0]
    }

    /// From one table.
    fn renyi_at(&self, orders: &[Order]) -> Vec<Divergence> {
        let largest = orders.iter().map(|order| order.get()).filter(|&a| a <= MAX_ORDER).fold(1.0, f64::max);
        let table = self.forward_moments(largest.ceil());
        orders
            .iter()
            .map(|order| {
                let a = order.get();
                let plain = self.plain_bound(a);
                if a > MAX_ORDER {
                    return Divergence::from_upper_bound(plain);
                }
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 128")]
                let moment = chord_between_integers(a, |n| table[n as usize]);
                let forward = (Interval::point(moment) / (Interval::point(a) - 1.0)).hi();
                Divergence::from_upper_bound(forward.max(self.reverse_bound(order.get())).min(plain))
            })
            .collect()
    }

    fn is_smooth(&self) -> bool {
        false
    }

    /// What the one batch that holds the record costs, were it known (T27).
    fn rho(&self) -> Option<Rho> {
        self.one_batch().rho()
    }

    fn rho_of(&self, count: Count) -> Option<Bound> {
        self.one_batch().rho_of(count)
    }

    /// The same, as Gaussian noise: given all coins one batch differs (T26).
    fn mu(&self) -> Option<Mu> {
        self.one_batch().mu()
    }

    fn mu_squared_of(&self, count: Count) -> Option<Bound> {
        self.one_batch().mu_squared_of(count)
    }
}

impl BallsAndBinsEpoch {
    /// The one batch that holds the record.
    const fn one_batch(&self) -> Gaussian {
        Gaussian { noise_multiplier: self.noise_multiplier }
    }

    /// `α/(2s²)`: the one batch that holds the record, were it known.
    #[must_use]
    pub fn plain_bound(&self, order: f64) -> f64 {
        (Interval::point(order) * self.rate()).hi()
    }

    /// The bound on the reverse direction, `1/(2s²) + (α−1)/(2s²T)`.
    #[must_use]
    pub fn reverse_bound(&self, order: f64) -> f64 {
        let share = (Interval::point(order) - 1.0) / self.batches.to_f64();
        (self.rate() * (share + 1.0)).hi()
    }

    /// The bound on the forward direction at an integer order.
    #[must_use]
    pub fn forward_bound(&self, order: f64) -> f64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "indexes the table it asked for")]
        let moment = self.forward_moments(order)[order as usize];
        (Interval::point(moment) / (Interval::point(order) - 1.0)).hi()
    }

    fn rate(&self) -> Interval {
        Interval::ONE / (Interval::point(self.noise_multiplier.get()).square() * 2.0)
    }

    /// `ln(1 + e_T(n))` for `n = 0 … largest`, rounded up, where `1 + e_T(n)` is the forward moment of order `n`.
    ///
    /// Two groups of batches combine by splitting the `n` draws between them binomially:
    /// `e_{S+T}(n) = Σ_j Bin(j; n, S/(S+T))·(e_S(j) + e_T(n−j) + e_S(j)·e_T(n−j))`, where nothing is negative. Where the largest of
    /// them would leave the doubles, the table holds logarithms.
    #[expect(clippy::cast_precision_loss, reason = "orders of at most 128")]
    fn forward_moments(&self, largest: f64) -> Vec<f64> {
        let spread = self.rate().middle();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 128")]
        let size = largest as usize + 1;
        let exponents = (0..size).map(|j| j as f64 * (j as f64 - 1.0) * spread);
        if largest * (largest - 1.0) * spread < MAX_EXPONENT {
            let one: Vec<f64> = exponents.map(exp_m1).collect();
            let (table, combinations) = self.all_batches(&one, combine);
            let up = |(n, &excess): (usize, &f64)| {
                // ROUNDING: up. Each combination: at most 6n roundings in a weight, n in the sum, 4 in a term, and the errors of
                // both factors of a product, which each have their own draws; the first table: the relative error of expm1
                // with an argument of three roundings.
                let n = n as f64;
                let error = f64::EPSILON * (combinations * 16.0 * (n + 1.0) + 4.0 + 4.0 * n * n * spread);
                ln_1p_up(mul_up(excess, 1.0 + error))
            };
            table.iter().enumerate().map(up).collect()
        } else {
            let log = |c: f64| if c > 40.0 { c } else { ln(exp_m1(c)) };
            let one: Vec<f64> = exponents.map(log).collect();
            let (table, combinations) = self.all_batches(&one, combine_logs);
            let log_batches = ln(self.batches.to_f64());
            let up = |(n, &log): (usize, &f64)| {
                // ROUNDING: up. Each combination: 3n roundings in the logarithm of a weight and a few in a term, each a unit of
                // the largest logarithm, twice for the two factors of a product.
                let n = n as f64;
                let scale = n * n * spread + n * (log_batches + 1.0) + 1.0;
                let log = Interval::point(log) + f64::EPSILON * scale * (combinations * (3.0 * n + 16.0) + 8.0);
                if log.hi() < 600.0 { log.exp().ln_1p().hi() } else { log_add_exp(log, Interval::ZERO).hi() }
            };
            table.iter().enumerate().map(up).collect()
        }
    }

    /// The table of all batches from that of one, by doubling, and how many combinations it took.
    fn all_batches(&self, one: &[f64], combine: impl Fn(&[f64], u64, &[f64], u64) -> Vec<f64>) -> (Vec<f64>, f64) {
        // Binary exponentiation over the number of batches, highest bit first.
        let batches = self.batches.get();
        let (mut count, mut table, mut combinations) = (1u64, one.to_vec(), 0.0);
        for bit in (0..batches.ilog2()).rev() {
            table = combine(&table, count, &table, count);
            count *= 2;
            combinations += 1.0;
            if batches >> bit & 1 == 1 {
                table = combine(one, 1, &table, count);
                count += 1;
                combinations += 1.0;
            }
        }
        (table, combinations)
    }
}

/// The table of `s + t` batches from those of `s` and `t` batches, for `s ≤ t`.
#[expect(clippy::cast_precision_loss, reason = "counts of at most 2^53, orders of at most 128")]
fn combine(left: &[f64], s: u64, right: &[f64], t: u64) -> Vec<f64> {
    let (p, odds) = (t as f64 / (s + t) as f64, s as f64 / t as f64);
    (0..left.len())
        .map(|n| {
            // Weights from j = 0 up; p ≥ 1/2 keeps the first from underflowing.
            let mut weight = p.powi(i32::try_from(n).unwrap_or(i32::MAX));
            let mut sum = 0.0;
            for j in 0..=n {
                let (x, y) = (left[j], right[n - j]);
                sum += weight * (x + y + x * y);
                weight *= (n - j) as f64 / (j + 1) as f64 * odds;
            }
            sum
        })
        .collect()
}

/// [`combine`] for tables of logarithms.
#[expect(clippy::cast_precision_loss, reason = "counts of at most 2^53, orders of at most 128")]
fn combine_logs(left: &[f64], s: u64, right: &[f64], t: u64) -> Vec<f64> {
    let (log_p, log_odds) = (ln(t as f64 / (s + t) as f64), ln(s as f64 / t as f64));
    (0..left.len())
        .map(|n| {
            let mut log_weight = n as f64 * log_p;
            let term = |j: usize| {
                let (x, y) = (left[j], right[n - j]);
                let term = log_weight + log_sum_exp(&[x, y, x + y]);
                log_weight += ln((n - j) as f64 / (j + 1) as f64) + log_odds;
                term
            };
            log_sum_exp(&(0..=n).map(term).collect::<Vec<_>>())
        })
        .collect()
}

/// A number of batches and a noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BallsAndBinsEpochFields {
    /// Public number of batches.
    pub batches: Number,
    /// Noise over sensitivity.
    pub noise_multiplier: Number,
}

impl TryFrom<&BallsAndBinsEpochFields> for BallsAndBinsEpoch {
    type Error = OutOfDomain;
    /// ROUNDING: noise down.
    fn try_from(fields: &BallsAndBinsEpochFields) -> Result<Self, OutOfDomain> {
        Ok(Self { batches: fields.batches.count("batches")?, noise_multiplier: fields.noise_multiplier.noise()? })
    }
}

impl From<&BallsAndBinsEpoch> for BallsAndBinsEpochFields {
    fn from(epoch: &BallsAndBinsEpoch) -> Self {
        Self { batches: epoch.batches.into(), noise_multiplier: epoch.noise_multiplier.into() }
    }
}
