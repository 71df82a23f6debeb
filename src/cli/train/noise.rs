//! The words for noise that changes, and the policies that they stand for.

use paygo_accounting::params::NoiseMultiplier;
use paygo_accounting::schedule::{Schedule, ValidationDecay};
use paygo_training::batching::{Batching, Sampler};
use paygo_training::policy::{Adaptive, FineTune, Lever, Policy, Progress};
use serde::Deserialize;

/// How noise changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Noise {
    Uniform { noise_multiplier: f64 },
    Time { noise_multiplier: f64, rate: f64 },
    Exponential { noise_multiplier: f64, rate: f64 },
    Step { noise_multiplier: f64, rate: f64, period: u64 },
    Polynomial { noise_multiplier: f64, rate: f64, last: f64, period: u64 },
    Validation { noise_multiplier: f64, rate: f64, threshold: f64, period: usize, window: usize },
    Adaptive { noise_multiplier: f64, step: f64, reserve: u64, progress: Progress },
    AdaptiveBatch { noise_multiplier: f64, step: f64, least: f64, reserve: u64, progress: Progress },
    FineTune { noise_multiplier: f64, step: f64, least: f64, progress: Progress },
}

impl Noise {
    /// The noise of the first epoch.
    pub(super) const fn first(&mut self) -> &mut f64 {
        match self {
            Self::Uniform { noise_multiplier }
            | Self::Time { noise_multiplier, .. }
            | Self::Exponential { noise_multiplier, .. }
            | Self::Step { noise_multiplier, .. }
            | Self::Polynomial { noise_multiplier, .. }
            | Self::Validation { noise_multiplier, .. }
            | Self::Adaptive { noise_multiplier, .. }
            | Self::AdaptiveBatch { noise_multiplier, .. }
            | Self::FineTune { noise_multiplier, .. } => noise_multiplier,
        }
    }

    /// Whether it counts correct private examples.
    pub(super) const fn counts(&self) -> bool {
        match self {
            Self::Adaptive { .. } | Self::AdaptiveBatch { .. } | Self::FineTune { .. } => true,
            Self::Uniform { .. }
            | Self::Time { .. }
            | Self::Exponential { .. }
            | Self::Step { .. }
            | Self::Polynomial { .. }
            | Self::Validation { .. } => false,
        }
    }

    /// Whether it follows a schedule, whatever happens.
    pub(super) const fn is_scheduled(&self) -> bool {
        !self.counts() && !matches!(self, Self::Validation { .. })
    }

    pub(super) fn policy(&self, sampler: &Sampler) -> anyhow::Result<Policy> {
        let noise = |multiplier: f64| NoiseMultiplier::new(multiplier);
        let schedule = |schedule: Schedule| schedule.checked().map(Policy::Schedule);
        Ok(match *self {
            Self::Uniform { noise_multiplier } => schedule(Schedule::Uniform { initial: noise(noise_multiplier)? })?,
            Self::Time { noise_multiplier, rate } => {
                schedule(Schedule::Time { initial: noise(noise_multiplier)?, rate })?
            }
            Self::Exponential { noise_multiplier, rate } => {
                schedule(Schedule::Exponential { initial: noise(noise_multiplier)?, rate })?
            }
            Self::Step { noise_multiplier, rate, period } => {
                schedule(Schedule::Step { initial: noise(noise_multiplier)?, rate, period })?
            }
            Self::Polynomial { noise_multiplier, rate, last, period } => {
                let (initial, last) = (noise(noise_multiplier)?, noise(last)?);
                schedule(Schedule::Polynomial { initial, rate, last, period })?
            }
            Self::Validation { noise_multiplier, rate, threshold, period, window } => {
                let decay = ValidationDecay::new(noise(noise_multiplier)?, rate, threshold, period, window)?;
                Policy::Validation(decay.into())
            }
            Self::Adaptive { noise_multiplier, step, reserve, progress } => {
                Policy::Adaptive(Adaptive::new(progress, noise(noise_multiplier)?, Lever::Noise { step }, reserve)?)
            }
            Self::AdaptiveBatch { noise_multiplier, step, least, reserve, progress } => {
                let Batching::Poisson { sampling_probability } = sampler.batching() else {
                    anyhow::bail!("noise.adaptive_batch goes with poisson batches")
                };
                let lever = Lever::Batch { sampling_probability, step, least };
                Policy::Adaptive(Adaptive::new(progress, noise(noise_multiplier)?, lever, reserve)?)
            }
            Self::FineTune { noise_multiplier, step, least, progress } => {
                Policy::FineTune(FineTune::new(progress, noise(noise_multiplier)?, step, noise(least)?)?)
            }
        })
    }
}
