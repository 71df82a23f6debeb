//! Noise schedules of \[Y\]: the noise of each epoch, known before the first (T25), and how long a budget lasts.
//!
//! The epoch index starts at 0, which reproduces all of \[Y\] Tables II and III (E15). An epoch is one pass over disjoint
//! batches with the same noise and costs `1/(2σ_t²)` (T26, with its preconditions).

use crate::mechanism::Gaussian;
use crate::params::{Count, NoiseMultiplier, OutOfDomain, Rho};
use paygo_numeric::Interval;
use paygo_numeric::rounding::add_up;
use paygo_numeric::search::first_true;

/// Epochs beyond which no schedule is followed.
pub const MAX_EPOCHS: u64 = 10_000_000;

/// How the noise multiplier changes from epoch to epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// `σ0` throughout.
    Uniform {
        /// The noise multiplier.
        initial: NoiseMultiplier,
    },
    /// `σ0/(1 + k·t)`.
    Time {
        /// Of epoch 0.
        initial: NoiseMultiplier,
        /// k ≥ 0.
        rate: f64,
    },
    /// `σ0·e^{−k·t}`.
    Exponential {
        /// Of epoch 0.
        initial: NoiseMultiplier,
        /// k ≥ 0.
        rate: f64,
    },
    /// `σ0·k^⌊t/period⌋`.
    Step {
        /// Of epoch 0.
        initial: NoiseMultiplier,
        /// k in (0, 1].
        rate: f64,
        /// Epochs between two steps.
        period: u64,
    },
    /// `(σ0 − σ_end)·(1 − t/period)^k + σ_end`, and `σ_end` from `t = period` on.
    Polynomial {
        /// Of epoch 0.
        initial: NoiseMultiplier,
        /// k > 0.
        rate: f64,
        /// Where it ends.
        last: NoiseMultiplier,
        /// When it ends.
        period: u64,
    },
}

/// How many epochs a budget allows, and what they spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epochs {
    /// Whole epochs.
    pub count: u64,
    /// Their total ρ, rounded up; at most the budget.
    pub spent: Rho,
}

impl Schedule {
    /// Checks the rate and period.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the rate, the period or the end is out of range.
    pub fn checked(self) -> Result<Self, OutOfDomain> {
        let (rate, period, ok, allowed) = match self {
            Self::Uniform { .. } => return Ok(self),
            Self::Time { rate, .. } | Self::Exponential { rate, .. } => {
                (rate, 1, (0.0..f64::INFINITY).contains(&rate), "0 <= rate < inf")
            }
            Self::Step { rate, period, .. } => (rate, period, 0.0 < rate && rate <= 1.0, "0 < rate <= 1"),
            Self::Polynomial { rate, period, initial, last } => {
                if last > initial {
                    return Err(OutOfDomain::new("end", last, "0 < end <= initial noise"));
                }
                (rate, period, 0.0 < rate && rate < f64::INFINITY, "0 < rate < inf")
            }
        };
        if !ok {
            return Err(OutOfDomain::new("rate", rate, allowed));
        }
        if !(1..=MAX_EPOCHS).contains(&period) {
            return Err(OutOfDomain::new("period", period, "1 <= period <= 10000000"));
        }
        Ok(self)
    }

    /// The noise multiplier of epoch `t`, rounded down: so its cost is at or above the formula's. `None` when it
    /// underflows.
    #[must_use]
    pub fn noise_multiplier(&self, epoch: u64) -> Option<NoiseMultiplier> {
        #[expect(clippy::cast_precision_loss, reason = "epochs are far below 2^53")]
        let t = Interval::point(epoch as f64);
        let value = match *self {
            Self::Uniform { initial } => return Some(initial),
            Self::Time { initial, rate } => Interval::point(initial.get()) / (t * rate + 1.0),
            Self::Exponential { initial, rate } => (-(t * rate)).exp() * initial.get(),
            Self::Step { initial, rate, period } => power(rate, epoch / period) * initial.get(),
            Self::Polynomial { initial, rate, last, period } => {
                if epoch >= period {
                    return Some(last);
                }
                #[expect(clippy::cast_precision_loss, reason = "periods are far below 2^53")]
                let left = Interval::ONE - t / period as f64;
                let share = if epoch == 0 { Interval::ONE } else { (left.ln() * rate).exp() };
                (Interval::point(initial.get()) - last.get()) * share + last.get()
            }
        };
        NoiseMultiplier::new(value.lo()).ok()
    }

    /// The cost of epoch `t`: `1/(2σ_t²)`, rounded up; +∞ when the noise underflows.
    #[must_use]
    pub fn rho(&self, epoch: u64) -> Rho {
        self.noise_multiplier(epoch).map_or(Rho::from_upper_bound(f64::INFINITY), |noise_multiplier| {
            Rho::from_upper_bound(Gaussian { noise_multiplier }.rho_sum(Count::ONE).float)
        })
    }

    /// The whole epochs that fit a budget: stops before the epoch that would exceed it.
    #[must_use]
    pub fn epochs_within(&self, budget: Rho) -> Epochs {
        // Epochs of equal noise are priced together, rounded once: a hundred of noise 8 are 100/128 and not a hair more.
        let (mut before, mut spent) = (0.0, 0.0);
        let mut run: (Option<NoiseMultiplier>, u64) = (None, 0);
        for epoch in 0..MAX_EPOCHS {
            let noise = self.noise_multiplier(epoch);
            run = if noise == run.0 { (noise, run.1 + 1) } else { (noise, 1) };
            if run.1 == 1 {
                before = spent;
            }
            let next = match (noise, Count::new(run.1)) {
                (Some(noise_multiplier), Ok(count)) => {
                    add_up(before, Gaussian { noise_multiplier }.rho_sum(count).float)
                }
                _ => f64::INFINITY,
            };
            if next > budget.get() {
                return Epochs { count: epoch, spent: Rho::from_upper_bound(spent) };
            }
            spent = next;
        }
        Epochs { count: MAX_EPOCHS, spent: Rho::from_upper_bound(spent) }
    }

    /// The smallest rate on a grid of `unit` with which the budget lasts exactly `epochs`, as in \[Y\] Table III (unit
    /// 10⁻⁴). `None` when no rate does.
    ///
    /// The number of epochs falls as the rate grows for time, exponential and polynomial decay, and rises for steps.
    #[must_use]
    pub fn rate_for(&self, epochs: u64, budget: Rho, unit: f64) -> Option<f64> {
        // Grid points are decimals: n·unit as n/(1/unit), so that 441·10⁻⁴ is the double called 0.0441.
        let per_one = (1.0 / unit).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded positive number")]
        let size = per_one as u64;
        #[expect(clippy::cast_precision_loss, reason = "grid indices are far below 2^53")]
        let at = |n: u64| n as f64 / per_one;
        let lasts = |n: u64| self.with_rate(at(n)).map_or(0, |schedule| schedule.epochs_within(budget).count);
        let found = match self {
            Self::Uniform { .. } => return None,
            Self::Time { .. } | Self::Exponential { .. } => {
                first_true(0, 100 * size, size / 100, |n| lasts(n) <= epochs)?
            }
            Self::Polynomial { .. } => first_true(1, 100 * size, size, |n| lasts(n) <= epochs)?,
            Self::Step { .. } => first_true(1, size, size / 2, |n| lasts(n) >= epochs)?,
        };
        (lasts(found) == epochs).then(|| at(found))
    }

    /// The same schedule with another rate.
    #[must_use]
    pub fn with_rate(&self, rate: f64) -> Option<Self> {
        let schedule = match *self {
            Self::Uniform { initial } => Self::Uniform { initial },
            Self::Time { initial, .. } => Self::Time { initial, rate },
            Self::Exponential { initial, .. } => Self::Exponential { initial, rate },
            Self::Step { initial, period, .. } => Self::Step { initial, rate, period },
            Self::Polynomial { initial, last, period, .. } => Self::Polynomial { initial, rate, last, period },
        };
        schedule.checked().ok()
    }
}

/// `x^n` enclosed, by squaring.
fn power(x: f64, mut n: u64) -> Interval {
    let (mut square, mut product) = (Interval::point(x), Interval::ONE);
    while n > 0 {
        if n & 1 == 1 {
            product = product * square;
        }
        square = square * square;
        n >>= 1;
    }
    product
}

/// Accuracy on **public** data: the only kind that may steer the noise without being charged.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PublicAccuracy(f64);

impl PublicAccuracy {
    /// Declares that the accuracy was measured on public data.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not in `[0, 1]`.
    pub fn new(accuracy: f64) -> Result<Self, OutOfDomain> {
        if (0.0..=1.0).contains(&accuracy) {
            Ok(Self(accuracy))
        } else {
            Err(OutOfDomain::new("accuracy", accuracy, "0 <= accuracy <= 1"))
        }
    }
}

/// \[Y\]'s validation-based decay (8)–(10): every `period` epochs, when the mean of the last `window` public accuracies
/// has grown by at most `threshold` since the last check, the noise is multiplied by `rate`.
///
/// The noise depends on public data only, so a filter over the epochs' costs keeps the budget (T25).
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationDecay {
    noise_multiplier: NoiseMultiplier,
    rate: f64,
    threshold: f64,
    period: usize,
    window: usize,
    seen: Vec<f64>,
    last_mean: f64,
}

impl ValidationDecay {
    /// Starts at `initial` noise.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the rate is outside (0, 1], the threshold not finite, or not `1 ≤ window ≤ period`.
    pub fn new(
        initial: NoiseMultiplier,
        rate: f64,
        threshold: f64,
        period: usize,
        window: usize,
    ) -> Result<Self, OutOfDomain> {
        if !(0.0 < rate && rate <= 1.0) {
            return Err(OutOfDomain::new("rate", rate, "0 < rate <= 1"));
        }
        if !threshold.is_finite() {
            return Err(OutOfDomain::new("threshold", threshold, "a finite number"));
        }
        if window == 0 || window > period {
            return Err(OutOfDomain::new("window", window, "1 <= window <= period"));
        }
        Ok(Self { noise_multiplier: initial, rate, threshold, period, window, seen: Vec::new(), last_mean: 0.0 })
    }

    /// The noise of the coming epoch.
    #[must_use]
    pub const fn noise_multiplier(&self) -> NoiseMultiplier {
        self.noise_multiplier
    }

    /// Takes the accuracy after an epoch, and lowers the noise of the coming ones if progress has stalled.
    pub fn observe(&mut self, accuracy: PublicAccuracy) {
        self.seen.push(accuracy.0);
        if self.seen.len() < self.period {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a window in memory")]
        let mean = self.seen[self.period - self.window..].iter().sum::<f64>() / self.window as f64;
        if mean - self.last_mean <= self.threshold {
            let lower = (Interval::point(self.noise_multiplier.get()) * self.rate).lo();
            self.noise_multiplier = NoiseMultiplier::new(lower).unwrap_or(self.noise_multiplier);
        }
        self.last_mean = mean;
        self.seen.clear();
    }
}
