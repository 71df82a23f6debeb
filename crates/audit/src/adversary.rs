//! What an adversary is: a rule that picks the next mechanism from everything seen so far.
//!
//! To add one, implement [`Adversary`] and hand it to [`crate::odometers::simulate`], or push it to [`all`]:
//!
//! ```
//! use paygo_audit::adversary::{Adversary, Step, View};
//! /// Spends more the closer the loss is to the reading.
//! struct Greedy;
//! impl Adversary for Greedy {
//!     fn name(&self) -> &'static str {
//!         "greedy"
//!     }
//!     fn next(&self, view: &View) -> Option<Step> {
//!         let close = view.loss / view.reading.max(1e-9);
//!         (view.step < 100).then_some(Step::Gaussian { variance: if close > 0.5 { 0.2 } else { 0.01 } })
//!     }
//! }
//! ```

use paygo_accounting::mechanism::{Approximate, Gaussian, Mechanism, RandomizedResponse, Single};
use paygo_accounting::params::{Delta, Epsilon, NoiseMultiplier};
use paygo_numeric::elementary::exp;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use rand_distr::{Distribution as _, StandardNormal};

/// One mechanism, whose privacy loss can be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Gaussian noise; the loss has mean `variance/2` and variance `variance`.
    Gaussian {
        /// 1/noise_multiplier².
        variance: f64,
    },
    /// Binary randomized response; the loss is ±ε.
    RandomizedResponse {
        /// ε.
        epsilon: f64,
    },
    /// The worst (ε, δ)-DP mechanism: with probability δ it reveals everything, else it is randomized response.
    Revealing {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
    },
}

impl Step {
    /// As a mechanism that can be charged; `None` when the parameter is out of its domain.
    #[must_use]
    pub fn mechanism(&self) -> Option<Mechanism> {
        Some(Mechanism::Single(match *self {
            Self::Gaussian { variance } => {
                Single::Gaussian(Gaussian { noise_multiplier: NoiseMultiplier::new(1.0 / variance.sqrt()).ok()? })
            }
            Self::RandomizedResponse { epsilon } => {
                Single::RandomizedResponse(RandomizedResponse { epsilon: Epsilon::new(epsilon).ok()? })
            }
            Self::Revealing { epsilon, delta } => Single::Approximate(Approximate {
                epsilon: Epsilon::new(epsilon).ok()?,
                delta: Delta::new(delta).ok()?,
            }),
        }))
    }

    /// Twice its ρ as the papers have it: the variance, or ε².
    #[must_use]
    pub const fn variance(&self) -> f64 {
        match *self {
            Self::Gaussian { variance } => variance,
            Self::RandomizedResponse { epsilon } | Self::Revealing { epsilon, .. } => epsilon * epsilon,
        }
    }

    /// The privacy loss of one run in the first world. Both laws are symmetric: the second world looks the same.
    #[must_use]
    pub fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
        match *self {
            Self::Gaussian { variance } => {
                let normal: f64 = StandardNormal.sample(random);
                0.5 * variance + variance.sqrt() * normal
            }
            Self::RandomizedResponse { epsilon } => {
                let heads = 1.0 / (1.0 + exp(-epsilon));
                if uniform(random) < heads { epsilon } else { -epsilon }
            }
            Self::Revealing { delta, .. } if uniform(random) < delta => f64::INFINITY,
            Self::Revealing { epsilon, .. } => Self::RandomizedResponse { epsilon }.draw(random),
        }
    }
}

/// A number in [0, 1) with 53 random bits.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "53 bits are a double")]
pub fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 * 2f64.powi(-53)
}

/// What an adversary knows: more than an analyst, who does not see the loss.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// How many steps were taken.
    pub step: usize,
    /// The privacy loss so far.
    pub loss: f64,
    /// The odometer's reading, or the filter's ε.
    pub reading: f64,
    /// The sum of the steps' variances.
    pub variance: f64,
    /// The last step.
    pub last: Option<Step>,
}

/// A rule that picks the next mechanism.
pub trait Adversary: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it looks at nothing but the number of steps: its readings are then the same on every path.
    fn is_oblivious(&self) -> bool {
        false
    }
    /// The next step; `None` to stop.
    fn next(&self, view: &View) -> Option<Step>;
}

/// The same randomized response, over and over.
pub struct March;

impl Adversary for March {
    fn name(&self) -> &'static str {
        "march"
    }
    fn is_oblivious(&self) -> bool {
        true
    }
    fn next(&self, view: &View) -> Option<Step> {
        (view.step < 400).then_some(Step::RandomizedResponse { epsilon: 0.5 })
    }
}

/// The same Gaussian noise, over and over.
pub struct GaussianMarch;

impl Adversary for GaussianMarch {
    fn name(&self) -> &'static str {
        "gaussian-march"
    }
    fn is_oblivious(&self) -> bool {
        true
    }
    fn next(&self, view: &View) -> Option<Step> {
        (view.step < 400).then_some(Step::Gaussian { variance: 0.05 })
    }
}

/// The worst (ε, δ)-DP step, over and over. For odometers that set part of δ aside for such steps.
pub struct Reveal;

impl Adversary for Reveal {
    fn name(&self) -> &'static str {
        "reveal"
    }
    fn is_oblivious(&self) -> bool {
        true
    }
    fn next(&self, view: &View) -> Option<Step> {
        (view.step < 60).then_some(Step::Revealing { epsilon: 0.5, delta: 1e-4 })
    }
}

/// Costs that grow by 1.4 a step over thirteen decades: every level of every boundary is visited.
pub struct Scales;

impl Adversary for Scales {
    fn name(&self) -> &'static str {
        "scales"
    }
    fn is_oblivious(&self) -> bool {
        true
    }
    fn next(&self, view: &View) -> Option<Step> {
        let power = i32::try_from(view.step).ok()?;
        (view.step < 90).then(|| Step::Gaussian { variance: 1e-9 * 1.4f64.powi(power) })
    }
}

/// Always a tenth of the squared distance to the boundary: as much chance as possible to cross it next.
pub struct Chase;

impl Adversary for Chase {
    fn name(&self) -> &'static str {
        "chase"
    }
    fn next(&self, view: &View) -> Option<Step> {
        let gap = view.reading - view.loss;
        (view.step < 300 && gap < 1e6).then(|| Step::Gaussian { variance: (0.1 * gap * gap).max(1e-6) })
    }
}

/// Doubles the stake while behind, starts over when ahead.
pub struct Martingale;

impl Adversary for Martingale {
    fn name(&self) -> &'static str {
        "martingale"
    }
    fn next(&self, view: &View) -> Option<Step> {
        const STAKE: f64 = 0.01;
        let behind = view.loss < 0.5 * view.variance;
        let variance = match view.last {
            Some(last) if behind => (2.0 * last.variance()).min(100.0),
            Some(_) | None => STAKE,
        };
        (view.step < 200).then_some(Step::Gaussian { variance })
    }
}

/// All that are built in.
#[must_use]
pub fn all() -> Vec<Box<dyn Adversary>> {
    vec![Box::new(March), Box::new(GaussianMarch), Box::new(Scales), Box::new(Chase), Box::new(Martingale)]
}
