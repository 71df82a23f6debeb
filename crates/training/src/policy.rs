//! What decides about noise and batches from epoch to epoch.
//!
//! A policy sees nothing of the private examples but what was released and charged. What it saw is kept as a list of
//! [`Observation`]s, from which it can be made again.

use crate::batching::Batching;
use paygo_accounting::params::{NoiseMultiplier, OutOfDomain};
use paygo_accounting::schedule::{PublicAccuracy, Schedule, ValidationDecay};
use paygo_noise::{DiscreteGaussian, Ratio, Release};
use paygo_numeric::rounding::mul_up;
use serde::{Deserialize, Serialize};

/// What decides about noise and batches.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// Noise known in advance for every epoch (\[Y\], T25).
    Schedule(Schedule),
    /// \[Y\]'s decay when the accuracy on public examples stalls.
    Validation(Validation),
    /// \[L\]'s: spends less while the model improves, and more, up to the baseline, when it does not.
    Adaptive(Adaptive),
    /// \[L\]'s for fine-tuning: starts noisy, and lowers the noise whenever progress stalls.
    FineTune(FineTune),
}

/// What a policy wants to know after an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Nothing.
    Nothing,
    /// The accuracy on public examples: free.
    PublicAccuracy,
    /// How many private examples are classified correctly, with noise of this standard deviation: charged.
    NoisyCount {
        /// The standard deviation.
        noise_std: f64,
    },
}

/// What a policy was told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Observation {
    /// The accuracy on public examples.
    PublicAccuracy(f64),
    /// The noisy count, and whether the budget would last for the policy's reserve.
    NoisyCount {
        /// As it was released.
        count: f64,
        /// Whether the present setting could go on for as long as the policy wants to be sure of.
        lasts: bool,
    },
    /// The budget does not cover another round of the present noise.
    NotCovered,
}

/// When a noisy count has risen enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Epochs between two counts.
    pub period: u64,
    /// The standard deviation of a count's noise.
    pub noise_std: f64,
    /// A rise of this many standard deviations is progress. \[L\] takes 3; the difference of two counts has √2 times the deviation of
    /// one (E18), so mere noise passes 3 once in sixty times.
    pub significance: f64,
}

/// A count of examples with exact discrete Gaussian noise of this standard deviation: the noise and its price in one. An example more,
/// less or other changes the count by at most 1.
pub fn count(noise_std: f64) -> Result<Release, OutOfDomain> {
    if !(1e-3..=1e6).contains(&noise_std) {
        return Err(OutOfDomain::new("noise_std", noise_std, "0.001 <= noise_std <= 1e6"));
    }
    // ROUNDING: up; more noise costs less.
    let variance = mul_up(noise_std, noise_std);
    let variance = if variance <= 1_048_576.0 {
        Ratio::at_least(variance)?
    } else {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer up to 10^12")]
        Ratio::new(variance.ceil() as u64, 1)?
    };
    Release::gaussian(DiscreteGaussian { variance }, 1)
}

impl Progress {
    fn checked(self) -> Result<Self, OutOfDomain> {
        if self.period == 0 {
            return Err(OutOfDomain::new("period", self.period, "at least 1"));
        }
        count(self.noise_std)?;
        if !(0.0..f64::INFINITY).contains(&self.significance) {
            return Err(OutOfDomain::new("significance", self.significance, "0 or above, and finite"));
        }
        Ok(self)
    }

    fn question(&self, epochs: u64) -> Question {
        if epochs.is_multiple_of(self.period) {
            Question::NoisyCount { noise_std: self.noise_std }
        } else {
            Question::Nothing
        }
    }

    fn is_progress(&self, before: f64, now: f64) -> bool {
        now - before >= self.significance * self.noise_std
    }
}

/// \[Y\]'s decay. Where the budget does not cover another round of the noise it has come down to, the rest is spent on rounds of the noise
/// before, which cost less.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    decay: ValidationDecay,
    /// The noise before each time it came down, and is not back yet.
    higher: Vec<NoiseMultiplier>,
    /// Where it stays once it had to go up again.
    stays: Option<NoiseMultiplier>,
}

impl From<ValidationDecay> for Validation {
    fn from(decay: ValidationDecay) -> Self {
        Self { decay, higher: Vec::new(), stays: None }
    }
}

impl Validation {
    fn noise_multiplier(&self) -> NoiseMultiplier {
        self.stays.unwrap_or_else(|| self.decay.noise_multiplier())
    }

    fn observe(&mut self, accuracy: PublicAccuracy) {
        let before = self.noise_multiplier();
        if self.stays.is_none() {
            self.decay.observe(accuracy);
            self.higher.extend((self.noise_multiplier() < before).then_some(before));
        }
    }

    fn go_up(&mut self) {
        self.stays = self.higher.pop().or(self.stays);
    }
}

/// \[L\] §5.1: what is spent on a step goes down a step when the count has risen, and up one, to the baseline at most, when not.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptive {
    progress: Progress,
    baseline: NoiseMultiplier,
    lever: Lever,
    reserve: u64,
    last: f64,
    /// Steps away from the baseline.
    level: u32,
}

/// What is moved to spend less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Lever {
    /// The noise multiplier, up by this much.
    Noise {
        /// 0.1 in \[L\].
        step: f64,
    },
    /// The sampling probability of Poisson batches, down by this much.
    Batch {
        /// Of the baseline.
        sampling_probability: f64,
        /// 128 examples of 50,000 in \[L\].
        step: f64,
        /// Never below this: 256 of 50,000 in \[L\].
        least: f64,
    },
}

impl Adaptive {
    /// `reserve`: spending goes down only while the present setting would last for more than this many epochs (50 in \[L\]).
    ///
    /// # Errors
    /// [`OutOfDomain`] when a parameter is out of its domain.
    pub fn new(progress: Progress, baseline: NoiseMultiplier, lever: Lever, reserve: u64) -> Result<Self, OutOfDomain> {
        match lever {
            Lever::Noise { step } if !(step > 0.0 && step < f64::INFINITY) => {
                return Err(OutOfDomain::new("step", step, "above 0 and finite"));
            }
            Lever::Batch { step, .. } if !(step > 0.0 && step < 1.0) => {
                return Err(OutOfDomain::new("step", step, "0 < step < 1"));
            }
            Lever::Batch { least, sampling_probability, .. } if !(least > 0.0 && least <= sampling_probability) => {
                return Err(OutOfDomain::new("least", least, "0 < least <= sampling_probability"));
            }
            Lever::Noise { .. } | Lever::Batch { .. } => {}
        }
        Ok(Self { progress: progress.checked()?, baseline, lever, reserve, last: 0.0, level: 0 })
    }

    fn noise_multiplier(&self) -> NoiseMultiplier {
        let step = match self.lever {
            Lever::Noise { step } => step,
            Lever::Batch { .. } => 0.0,
        };
        NoiseMultiplier::new(self.baseline.get() + f64::from(self.level) * step).unwrap_or(self.baseline)
    }

    fn batching(&self) -> Option<Batching> {
        match self.lever {
            Lever::Noise { .. } => None,
            Lever::Batch { sampling_probability, step, least } => {
                let lower = (sampling_probability - f64::from(self.level) * step).max(least);
                Some(Batching::Poisson { sampling_probability: lower })
            }
        }
    }

    fn observe(&mut self, count: f64, lasts: bool) {
        if self.progress.is_progress(self.last, count) {
            let before = self.batching();
            self.level += u32::from(lasts);
            // No steps below the least batch: they would have to be taken back one by one.
            if self.batching().is_some() && self.batching() == before {
                self.level -= u32::from(lasts);
            }
        } else {
            self.level = self.level.saturating_sub(1);
        }
        self.last = count;
    }
}

/// \[L\] §5.2: noise goes down a step after every period in which the count has not risen.
#[derive(Clone, Debug, PartialEq)]
pub struct FineTune {
    progress: Progress,
    noise_multiplier: NoiseMultiplier,
    step: f64,
    least: NoiseMultiplier,
    last: f64,
}

impl FineTune {
    /// From `first` down by `step` (2 and 0.1 in \[L\]), never below `least`.
    ///
    /// # Errors
    /// [`OutOfDomain`] when a parameter is out of its domain.
    pub fn new(
        progress: Progress,
        first: NoiseMultiplier,
        step: f64,
        least: NoiseMultiplier,
    ) -> Result<Self, OutOfDomain> {
        if !(step > 0.0 && step < f64::INFINITY) {
            return Err(OutOfDomain::new("step", step, "above 0 and finite"));
        }
        if least > first {
            return Err(OutOfDomain::new("least", least, "at most the first noise multiplier"));
        }
        Ok(Self { progress: progress.checked()?, noise_multiplier: first, step, least, last: 0.0 })
    }

    fn observe(&mut self, count: f64) {
        if !self.progress.is_progress(self.last, count) {
            let lower = (self.noise_multiplier.get() - self.step).max(self.least.get());
            self.noise_multiplier = NoiseMultiplier::new(lower).unwrap_or(self.least);
        }
        self.last = count;
    }
}

impl Policy {
    /// The noise of the coming epoch; `None` when a schedule has come to its end.
    #[must_use]
    pub fn noise_multiplier(&self, epoch: u64) -> Option<NoiseMultiplier> {
        match self {
            Self::Schedule(schedule) => schedule.noise_multiplier(epoch),
            Self::Validation(validation) => Some(validation.noise_multiplier()),
            Self::Adaptive(adaptive) => Some(adaptive.noise_multiplier()),
            Self::FineTune(fine_tune) => Some(fine_tune.noise_multiplier),
        }
    }

    /// The batches of the coming epoch, where the policy decides about them.
    #[must_use]
    pub fn batching(&self) -> Option<Batching> {
        match self {
            Self::Adaptive(adaptive) => adaptive.batching(),
            Self::Schedule(_) | Self::Validation(_) | Self::FineTune(_) => None,
        }
    }

    /// What it wants to know after this many epochs.
    #[must_use]
    pub fn question(&self, epochs: u64) -> Question {
        match self {
            Self::Schedule(_) => Question::Nothing,
            Self::Validation(_) => Question::PublicAccuracy,
            Self::Adaptive(adaptive) => adaptive.progress.question(epochs),
            Self::FineTune(fine_tune) => fine_tune.progress.question(epochs),
        }
    }

    /// Whether rounds with more noise are left to try where the budget does not cover the coming one.
    #[must_use]
    pub const fn can_go_up(&self) -> bool {
        match self {
            Self::Validation(validation) => !validation.higher.is_empty(),
            Self::Schedule(_) | Self::Adaptive(_) | Self::FineTune(_) => false,
        }
    }

    /// For how many epochs the present setting should last before less is spent.
    #[must_use]
    pub const fn reserve(&self) -> u64 {
        match self {
            Self::Adaptive(adaptive) => adaptive.reserve,
            Self::Schedule(_) | Self::Validation(_) | Self::FineTune(_) => 0,
        }
    }

    /// Is told what it asked for; what it did not ask for it ignores.
    ///
    /// # Errors
    /// [`OutOfDomain`] when an accuracy is not in [0, 1].
    pub fn observe(&mut self, observation: Observation) -> Result<(), OutOfDomain> {
        match (self, observation) {
            (Self::Validation(validation), Observation::PublicAccuracy(accuracy)) => {
                validation.observe(PublicAccuracy::new(accuracy)?);
            }
            (Self::Validation(validation), Observation::NotCovered) => validation.go_up(),
            (Self::Adaptive(adaptive), Observation::NoisyCount { count, lasts }) => adaptive.observe(count, lasts),
            (Self::FineTune(fine_tune), Observation::NoisyCount { count, .. }) => fine_tune.observe(count),
            (
                Self::Schedule(_),
                Observation::PublicAccuracy(_) | Observation::NoisyCount { .. } | Observation::NotCovered,
            )
            | (Self::Validation(_), Observation::NoisyCount { .. })
            | (Self::Adaptive(_) | Self::FineTune(_), Observation::PublicAccuracy(_) | Observation::NotCovered) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(multiplier: f64) -> NoiseMultiplier {
        NoiseMultiplier::new(multiplier).expect("noise")
    }

    const PROGRESS: Progress = Progress { period: 10, noise_std: 100.0, significance: 3.0 };

    fn count(count: f64, lasts: bool) -> Observation {
        Observation::NoisyCount { count, lasts }
    }

    #[test]
    fn noise_goes_up_while_the_count_rises_and_back_to_the_baseline() {
        let adaptive = Adaptive::new(PROGRESS, noise(1.0), Lever::Noise { step: 0.1 }, 50).expect("a policy");
        let mut policy = Policy::Adaptive(adaptive);
        assert_eq!(policy.question(9), Question::Nothing);
        assert_eq!(policy.question(20), Question::NoisyCount { noise_std: 100.0 });
        let mut after = |observation| {
            policy.observe(observation).expect("observed");
            (policy.noise_multiplier(0).expect("noise").get() * 10.0).round()
        };
        // A rise of exactly three deviations counts; one less does not.
        let seen = [
            (count(1000.0, true), 11.0),
            (count(1300.0, true), 12.0),
            (count(1599.0, true), 11.0),
            (count(1999.0, false), 11.0), // would not last: stays
            (count(1000.0, true), 10.0),
            (count(900.0, true), 10.0), // never below the baseline
            (Observation::PublicAccuracy(0.5), 10.0),
        ];
        for (observation, expected) in seen {
            assert_eq!(after(observation), expected, "{observation:?}");
        }
    }

    #[test]
    fn batches_shrink_to_the_least_and_grow_back_at_once() {
        let lever = Lever::Batch { sampling_probability: 0.01, step: 0.004, least: 0.005 };
        let mut policy = Policy::Adaptive(Adaptive::new(PROGRESS, noise(1.0), lever, 50).expect("a policy"));
        let mut probabilities = Vec::new();
        for step in 1..=4 {
            policy.observe(count(f64::from(step) * 1000.0, true)).expect("observed");
            probabilities.push(policy.batching());
        }
        policy.observe(count(4000.0, true)).expect("observed");
        probabilities.push(policy.batching());
        let poisson = |sampling_probability| Some(Batching::Poisson { sampling_probability });
        assert_eq!(probabilities, [poisson(0.006), poisson(0.005), poisson(0.005), poisson(0.005), poisson(0.006)]);
    }

    #[test]
    fn fine_tuning_lowers_the_noise_when_progress_stalls() {
        let progress = Progress { period: 1, ..PROGRESS };
        let mut policy = Policy::FineTune(FineTune::new(progress, noise(2.0), 0.5, noise(1.2)).expect("a policy"));
        let mut noises = Vec::new();
        for seen in [500.0, 600.0, 1000.0, 1001.0, 1002.0] {
            policy.observe(count(seen, true)).expect("observed");
            noises.push(policy.noise_multiplier(0).expect("noise").get());
        }
        assert_eq!(noises, [2.0, 1.5, 1.5, 1.2, 1.2]);
    }

    /// What does not fit any more is followed by what still does, down to the first noise; and then there is nothing more to try.
    #[test]
    fn validation_goes_back_up_where_the_budget_ends() {
        let decay = ValidationDecay::new(noise(4.0), 0.5, 0.0, 1, 1).expect("a decay");
        let mut policy = Policy::Validation(decay.into());
        let mut after = |observation| {
            policy.observe(observation).expect("observed");
            (policy.noise_multiplier(0).expect("noise").get(), policy.can_go_up())
        };
        let accuracy = Observation::PublicAccuracy;
        // Progress, and then none.
        let seen = [
            (accuracy(0.5), (4.0, false)),
            (accuracy(0.5), (2.0, true)),
            (accuracy(0.4), (1.0, true)),
            (Observation::NotCovered, (2.0, true)),
            (accuracy(0.4), (2.0, true)), // stays there
            (Observation::NotCovered, (4.0, false)),
            (Observation::NotCovered, (4.0, false)),
        ];
        for (observation, expected) in seen {
            assert_eq!(after(observation), expected, "{observation:?}");
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Adaptive::new(PROGRESS, noise(1.0), Lever::Noise { step: bad }, 50).is_err());
            assert!(FineTune::new(PROGRESS, noise(2.0), bad, noise(1.0)).is_err());
            let lever = Lever::Noise { step: 0.1 };
            assert!(Adaptive::new(Progress { noise_std: bad, ..PROGRESS }, noise(1.0), lever, 50).is_err());
        }
        assert!(FineTune::new(PROGRESS, noise(1.0), 0.1, noise(2.0)).is_err());
        assert!(FineTune::new(Progress { period: 0, ..PROGRESS }, noise(1.0), 0.1, noise(1.0)).is_err());
        let lever = Lever::Batch { sampling_probability: 0.1, step: 0.01, least: 0.2 };
        assert!(Adaptive::new(PROGRESS, noise(1.0), lever, 50).is_err());
    }
}
