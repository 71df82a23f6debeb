//! How often does the privacy loss pass the reading, at any moment?

use crate::Trial;
use crate::adversary::{Adversary, Step, View};
use crate::literal_unsound::{LiteralOdometer, LiteralReading};
use paygo_accounting::cost::Cost;
use paygo_accounting::odometer::{AnyBoundary, Boundary as _, Odometer};
use paygo_accounting::params::Neighbors;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rayon::prelude::*;

/// An odometer under audit: a shipped one, or one that is printed somewhere.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A shipped odometer.
    Shipped(Box<Odometer<AnyBoundary>>),
    /// A printed one.
    Literal(Box<LiteralReading>),
}

impl Subject {
    /// A shipped odometer that has observed nothing yet.
    #[must_use]
    pub fn shipped(boundary: impl Into<AnyBoundary>) -> Self {
        Self::Shipped(Box::new(Odometer::new(boundary.into(), Neighbors::AddRemove)))
    }

    /// A printed odometer that has observed nothing yet.
    #[must_use]
    pub fn literal(odometer: LiteralOdometer) -> Self {
        Self::Literal(Box::new(LiteralReading::new(odometer)))
    }

    /// The reading after a step is observed; `None` when a shipped odometer does not take it, which then may not run.
    fn observe(&mut self, step: &Step) -> Option<f64> {
        match self {
            Self::Shipped(odometer) => {
                let cost = Cost::of(&step.mechanism()?, Neighbors::AddRemove).ok()?;
                let charge = odometer.price(&cost).ok()?;
                odometer.observe(&charge).ok()?;
                Some(odometer.reading().get())
            }
            Self::Literal(literal) => {
                literal.observe(step);
                Some(literal.reading())
            }
        }
    }

    fn reading(&mut self) -> f64 {
        match self {
            Self::Shipped(odometer) => odometer.reading().get(),
            Self::Literal(literal) => literal.reading(),
        }
    }

    /// Whether it ships.
    #[must_use]
    pub const fn is_shipped(&self) -> bool {
        matches!(self, Self::Shipped(_))
    }

    /// δ of a shipped odometer.
    #[must_use]
    pub fn delta(&self) -> Option<f64> {
        match self {
            Self::Shipped(odometer) => Some(odometer.boundary().delta().get()),
            Self::Literal(_) => None,
        }
    }
}

/// Simulates `paths` games and counts those in which the loss passed the reading. `progress` hears of finished paths.
#[must_use]
pub fn simulate(
    name: &str,
    subject: &Subject,
    adversary: &dyn Adversary,
    promised: f64,
    paths: u64,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Trial {
    const CHUNK: u64 = 64;
    let script = adversary.is_oblivious().then(|| script(subject.clone(), adversary));
    let hits: u64 = (0..paths.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(chunk);
            let here = CHUNK.min(paths - chunk * CHUNK);
            let crossed = (0..here).filter(|_| match &script {
                Some(script) => recite(script, &mut random),
                None => play(subject.clone(), adversary, &mut random),
            });
            let hits = crossed.count() as u64;
            progress(here);
            hits
        })
        .sum();
    Trial::simulated(name, subject.is_shipped(), adversary.name(), promised, hits, paths)
}

/// One game; whether the loss passed the reading.
fn play(mut subject: Subject, adversary: &dyn Adversary, random: &mut ChaCha8Rng) -> bool {
    let mut view = View { step: 0, loss: 0.0, reading: subject.reading(), variance: 0.0, last: None };
    while let Some(step) = adversary.next(&view) {
        let Some(reading) = subject.observe(&step) else { return false };
        view.reading = reading;
        view.loss += step.draw(random);
        if view.loss > view.reading {
            return true;
        }
        view = View { step: view.step + 1, variance: view.variance + step.variance(), last: Some(step), ..view };
    }
    false
}

/// The steps and readings of an adversary that does not look.
fn script(mut subject: Subject, adversary: &dyn Adversary) -> Vec<(Step, f64)> {
    let mut view = View { step: 0, loss: 0.0, reading: 0.0, variance: 0.0, last: None };
    let mut script = Vec::new();
    while let Some(step) = adversary.next(&view) {
        let Some(reading) = subject.observe(&step) else { break };
        script.push((step, reading));
        view = View { step: view.step + 1, variance: view.variance + step.variance(), last: Some(step), ..view };
    }
    script
}

/// One game along a script.
fn recite(script: &[(Step, f64)], random: &mut ChaCha8Rng) -> bool {
    let mut loss = 0.0;
    script.iter().any(|(step, reading)| {
        loss += step.draw(random);
        loss > *reading
    })
}
