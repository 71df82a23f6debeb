//! A private choice among candidates before training: each is tried on a part of the examples, and the exponential mechanism picks one.

use super::config::{Config, LearningRate};
use super::job::Job;
use super::privacy::Checked;
use super::shared::SharedGate;
use crate::cli::interrupt;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Decision};
use paygo_accounting::params::{Neighbors, NoiseMultiplier};
use paygo_noise::Source;
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::Examples;
use paygo_training::gate::{FilterGate, Gate, GateError};
use paygo_training::model::{Model as _, Network};
use paygo_training::optimizer::Method;
use paygo_training::run::{Ending, Entry, Privacy, Run, Setup, Stop, evaluate};
use paygo_training::selection::Selection;
use serde::Deserialize;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is tried, and for how much.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Select {
    /// Of the choice.
    epsilon: f64,
    /// How long each candidate is trained on its part.
    epochs: u64,
    candidates: Vec<Candidate>,
}

/// What is different from the rest of the file.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Candidate {
    learning_rate: Option<LearningRate>,
    clip_norm: Option<f64>,
    optimizer: Option<Method>,
}

impl Config {
    /// The file as a candidate would have it.
    pub(super) fn with_candidate(&self, index: usize) -> anyhow::Result<Self> {
        let candidate = self.select.as_ref().and_then(|select| select.candidates.get(index));
        let Some(&Candidate { learning_rate, clip_norm, optimizer }) = candidate else {
            anyhow::bail!("select.candidates has no candidate number {}", index + 1)
        };
        let mut config = self.clone();
        config.learning_rate = learning_rate.unwrap_or(config.learning_rate);
        config.optimizer = optimizer.unwrap_or(config.optimizer);
        if let (Some(privacy), Some(clip_norm)) = (&mut config.privacy, clip_norm) {
            privacy.clip_norm = clip_norm;
        }
        Ok(config)
    }
}

/// What all candidates have in common.
pub(super) struct Trial<'a> {
    config: &'a Config,
    network: &'a Network,
    examples: &'a Examples,
    sampler: &'a Sampler,
    public_size: u64,
    checked: &'a Checked,
}

/// What was picked, and what was charged for it.
pub(super) struct Picked {
    pub(super) candidate: usize,
    pub(super) charged: Entry,
}

/// The choice that is charged for: each candidate has a plan of so many rounds.
pub(super) fn selection(select: &Select, sampler: &Sampler, noise: NoiseMultiplier) -> anyhow::Result<Selection> {
    anyhow::ensure!(select.epochs > 0, "select.epochs = 0; expected at least 1");
    let rounds = select.epochs.saturating_mul(sampler.rounds_per_epoch());
    Ok(Selection::of_plans(select.candidates.len(), sampler.round(noise)?.cost(), rounds, select.epsilon)?)
}

impl<'a> Trial<'a> {
    pub(super) const fn of(job: &'a Job, sampler: &'a Sampler, public_size: u64, checked: &'a Checked) -> Self {
        let Job { config, network, split, .. } = job;
        Self { config, network, examples: &split.train, sampler, public_size, checked }
    }

    /// What is wrong with the candidates, found before anything is charged.
    pub(super) fn check(&self, select: &Select) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.checked.allowance.is_none(),
            "[select]: a budget for each example leaves none for a choice that all of them make"
        );
        anyhow::ensure!(
            !matches!(self.sampler.batching(), Batching::Shuffled { .. }),
            "[select] goes with full, poisson or balls_and_bins batches"
        );
        for index in 0..select.candidates.len() {
            let config = self.config.with_candidate(index)?;
            config.optimizer(self.network.parameters())?;
            if let Some(privacy) = &config.privacy {
                privacy.clip(self.network)?;
            }
        }
        self.cost(select)?;
        Ok(())
    }

    /// What trying all and picking one is charged.
    pub(super) fn cost(&self, select: &Select) -> anyhow::Result<Cost> {
        Ok(self.selection(select)?.cost(self.sampler.neighbors())?)
    }

    fn rounds(&self, select: &Select) -> u64 {
        select.epochs.saturating_mul(self.sampler.rounds_per_epoch())
    }

    /// What is charged: for each candidate a plan of so many rounds.
    fn entry(&self, select: &Select) -> anyhow::Result<Entry> {
        Ok(Entry::Selection {
            candidates: select.candidates.len() as u64,
            rounds: self.rounds(select),
            noise_multiplier: self.checked.first_noise()?.get() * self.sampler.reach(),
            batching: self.sampler.batching(),
            epsilon: select.epsilon,
        })
    }

    fn selection(&self, select: &Select) -> anyhow::Result<Selection> {
        selection(select, self.sampler, self.checked.first_noise()?)
    }

    /// Charges the gate once for everything, tries all and picks one; nothing where somebody asked to end, and it stays charged.
    pub(super) fn choose(
        &self,
        select: &Select,
        gate: &SharedGate,
        source: &mut Source,
    ) -> anyhow::Result<Option<Picked>> {
        let mut trials = source.child();
        let selected = self.selection(select)?.run(
            self.examples,
            &mut Arc::clone(gate),
            source,
            |candidate, part| {
                eprintln!("note: trying candidate {} of {}", candidate + 1, select.candidates.len());
                self.train(select, candidate, part, trials.child())
            },
            |parameters, last| {
                evaluate(self.network, parameters, last).map(|found| (found.count - found.correct) as u64)
            },
        );
        if interrupt::requested() {
            return Ok(None);
        }
        let selected = selected.map_err(|error| anyhow::anyhow!("{error:#}"))?;
        Ok(Some(Picked { candidate: selected.candidate, charged: self.entry(select)? }))
    }

    /// The parameters of a candidate after its rounds on its part.
    fn train(&self, select: &Select, candidate: usize, part: &Examples, source: Source) -> anyhow::Result<Vec<f32>> {
        let config = self.config.with_candidate(candidate)?;
        // Where neighbors have equally many examples, coins alone say how many are in a part.
        let size = match self.sampler.neighbors() {
            Neighbors::AddRemove => (self.public_size / (select.candidates.len() as u64 + 1)).max(1),
            Neighbors::ZeroOut | Neighbors::ReplaceOne => part.len().max(1) as u64,
        };
        let sampler = self.sampler.part(size, part.len())?;
        let noise = self.checked.first_noise()?;
        let budget = Rounds {
            filter: FilterGate::new(self.checked.filter.clone()),
            cost: sampler.round(noise)?.cost().clone(),
            left: self.rounds(select),
        };
        let clip = config.privacy.as_ref().map(|privacy| privacy.clip(self.network)).transpose()?;
        let plan = Setup {
            model: self.network,
            examples: part,
            public: None,
            sampler,
            privacy: clip.map_or(Privacy::None, Privacy::Clipped),
            policy: super::privacy::uniform(noise),
            optimizer: config.optimizer(self.network.parameters())?,
            stop: Stop { epochs: Some(select.epochs), ..Stop::default() },
        };
        let mut run = Run::new(plan, size, Some(Box::new(budget)), None, Box::new(()), source)?;
        loop {
            let go_on = if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            match run.advance(&mut |_| go_on)? {
                None => {}
                Some(Ending::Done) => return Ok(run.parameters().to_vec()),
                Some(Ending::Interrupted) => anyhow::bail!("interrupted"),
                Some(Ending::Refused(_) | Ending::ScheduleEnded | Ending::TargetReached { .. }) => {
                    anyhow::bail!("the budget of a candidate ended early; this is a fault of paygo")
                }
            }
        }
    }
}

/// The budget of a candidate: so many rounds of one cost, which the selection was charged for.
struct Rounds {
    /// Makes the permits; what it has room for is more.
    filter: FilterGate<AnyRule>,
    cost: Cost,
    left: u64,
}

impl Gate for Rounds {
    fn neighbors(&self) -> Neighbors {
        self.filter.neighbors()
    }

    fn request(&mut self, cost: &Cost) -> Result<Decision, GateError> {
        if *cost != self.cost || self.left == 0 {
            return Err("a candidate asked for more than it was charged for; this is a fault of paygo".into());
        }
        self.left -= 1;
        self.filter.request(cost)
    }

    fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
        Ok(if *cost == self.cost { self.left.min(most) } else { 0 })
    }
}
