//! How a job is carried out: its batches and its budget, checked against each other.

use super::job::Job;
use super::privacy::{Checked, Privacy as PrivacyWords, uniform};
use super::select::Trial;
use super::shared::{SharedBudget, SharedGate};
use anyhow::Context;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::Decision;
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::{Delta, NoiseMultiplier};
use paygo_accounting::prior::Prior;
use paygo_noise::Source;
use paygo_training::batching::Sampler;
use paygo_training::checkpoint::{Folder, Interrupted};
use paygo_training::data::sets::Split;
use paygo_training::data::{Examples, Public};
use paygo_training::gate::Gate;
use paygo_training::model::{Model as _, Network};
use paygo_training::pca;
use paygo_training::personal::Spending;
use paygo_training::run::{Entry, Journal, Privacy, Run, Setup};
use std::sync::{Arc, Mutex};

/// Batches and budget.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) sampler: Sampler,
    public_size: u64,
    pub(super) checked: Option<Checked>,
}

/// What a run is made with: the job, its examples as the model sees them, and who is asked.
pub(super) struct Stage<'a, 'b> {
    pub(super) job: &'a Job,
    pub(super) split: &'a Split,
    pub(super) public: Option<&'a Public>,
    pub(super) gate: Option<&'b SharedGate>,
}

impl Setting {
    /// Checks everything that can be wrong before anything is written or charged.
    pub(super) fn of(job: &Job) -> anyhow::Result<Self> {
        let (neighbors, public_size) = job.config.size(&job.split.train)?;
        let sampler = job.config.sampler(neighbors, public_size, job.split.train.len())?;
        let check = |privacy: &PrivacyWords| privacy.check(&job.config, &sampler, &job.network, &job.rule);
        let checked = job.config.privacy.as_ref().map(check).transpose()?;
        job.config.optimizer(job.network.parameters())?;
        if let Some(select) = &job.config.select {
            let checked = checked.as_ref().context("[select] goes with [privacy]")?;
            Trial::of(job, &sampler, public_size, checked).check(select)?;
        }
        Ok(Self { sampler, public_size, checked })
    }

    /// What a run that was begun by an earlier version does otherwise from here on, in words: its noise multiplier was noise over the clip
    /// norm, as rounds are stored, and now it is noise over the sensitivity.
    pub(super) fn changed_since(&self, interrupted: &Interrupted) -> anyhow::Result<Option<String>> {
        let Some(checked) = &self.checked else { return Ok(None) };
        let rounds = interrupted.state.history.iter().chain(&interrupted.lost).filter_map(|(entry, _)| match entry {
            Entry::Round { noise_multiplier, .. } => Some(*noise_multiplier),
            Entry::Count { .. } | Entry::Allowance | Entry::Components { .. } | Entry::Selection { .. } => None,
        });
        let (now, reach) = (checked.first_noise()?.get(), self.sampler.reach());
        // Half of what it would be now; anything between the two tells them apart.
        let is_older = rounds.take(1).any(|first| first < 0.75 * now * reach);
        Ok(is_older.then(|| {
            format!(
                "this run was begun by an earlier version, where noise_multiplier was noise over clip_norm; with {} neighbors it is noise \
                 over {reach} times clip_norm now, so the run goes on with {reach} times the noise, and is charged for that",
                self.sampler.neighbors()
            )
        }))
    }

    /// Chooses among the candidates of the config, if it has any, and takes up the one that was picked: what was charged for it; nothing
    /// where somebody asked to end.
    pub(super) fn select(
        &mut self,
        job: &mut Job,
        gate: &SharedGate,
        folder: &mut Folder,
        source: &mut Source,
    ) -> anyhow::Result<Option<Entry>> {
        let (Some(select), Some(checked)) = (job.config.select.clone(), &mut self.checked) else { return Ok(None) };
        let trial = Trial::of(job, &self.sampler, self.public_size, checked);
        let Some(picked) = trial.choose(&select, gate, source)? else { return Ok(None) };
        eprintln!("note: candidate {} of [select] was picked", picked.candidate + 1);
        job.pick(picked.candidate, folder)?;
        if let Some(privacy) = &job.config.privacy {
            checked.clip = privacy.clip(&job.network)?;
        }
        Ok(Some(picked.charged))
    }

    /// Goes as far as the first step, with the run's own budget alone: what cannot be is said before anything is written or charged.
    /// The parameters to start from, if the config names some.
    pub(super) fn rehearse(&self, job: &Job) -> anyhow::Result<Option<Vec<f32>>> {
        let start = job.start()?;
        let gate = match (&self.checked, &job.config.privacy) {
            (Some(checked), Some(privacy)) => {
                let mut own = SharedBudget::new(checked.filter.clone(), &privacy.privacy_unit, None)?;
                self.charge_ahead(job, checked, &mut own)?;
                Some(Arc::new(Mutex::new(own)))
            }
            (_, _) => None,
        };
        // Components are not found yet: inputs along them are known in shape alone.
        let shape = job.network.input();
        let blank = |examples: &Examples| examples.with_inputs(shape, vec![0.0; shape.len() * examples.len()]);
        let Split { train, test } = &job.split;
        let is_seen = train.shape() == shape;
        let blank = if is_seen { None } else { Some(Split { train: blank(train)?, test: blank(test)? }) };
        let split = blank.as_ref().unwrap_or(&job.split);
        let public = job.public(&split.test);
        let stage = Stage { job, split, public: public.as_ref(), gate: gate.as_ref() };
        let mut run = self.clone().prepare(Source::from_operating_system()?, stage, Box::new(()))?;
        anyhow::ensure!(
            run.rounds_left()? != Some(0),
            "the budget does not cover a single round after what is charged before training\n\
             hint: a larger budget, or more noise on that"
        );
        Ok(start)
    }

    /// Charges what comes before training.
    fn charge_ahead(&self, job: &Job, checked: &Checked, own: &mut SharedBudget) -> anyhow::Result<()> {
        let mut charge = |what: &str, cost: &Cost| -> anyhow::Result<()> {
            match own.request(cost).map_err(|error| anyhow::anyhow!(error))? {
                Decision::Admitted(_) => Ok(()),
                Decision::Refused(refusal) => anyhow::bail!("the budget does not cover the {what}: {refusal}"),
            }
        };
        let neighbors = self.sampler.neighbors();
        if let Some(components) = &job.config.data.principal_components {
            charge("principal components", &pca::cost(components.noise()?, neighbors)?)?;
        }
        if let Some(select) = &job.config.select {
            charge("selection", &Trial::of(job, &self.sampler, self.public_size, checked).cost(select)?)?;
        }
        Ok(())
    }

    /// The run.
    pub(super) fn prepare<'a>(
        self,
        source: Source,
        stage: Stage<'a, '_>,
        journal: Box<dyn Journal>,
    ) -> anyhow::Result<Run<'a, Network>> {
        let Stage { job, split, public, gate } = stage;
        let odometer = match (&self.checked, &job.config.privacy) {
            (Some(checked), Some(privacy)) => {
                let delta = Delta::new(privacy.delta.down("delta")?)?;
                let boundary = VilleMixture::new(delta, Prior::for_plan(&checked.plan, delta))?;
                Some(Odometer::new(boundary, checked.filter.neighbors()))
            }
            (_, _) => None,
        };
        let (policy, privacy) = match self.checked {
            // Noise is not looked at.
            None => (uniform(NoiseMultiplier::new(1.0)?), Privacy::None),
            Some(checked) => match checked.allowance {
                None => (checked.policy, Privacy::Clipped(checked.clip)),
                Some(allowance) => {
                    let spending = Spending::new(allowance, split.train.len());
                    (checked.policy, Privacy::Personal(checked.clip, spending))
                }
            },
        };
        let plan = Setup {
            model: &job.network,
            examples: &split.train,
            public,
            sampler: self.sampler,
            privacy,
            policy,
            optimizer: job.config.optimizer(job.network.parameters())?,
            stop: job.config.stop(),
        };
        let gate = gate.map(|gate| Box::new(Arc::clone(gate)) as Box<dyn Gate>);
        Ok(Run::new(plan, self.public_size, gate, odometer, journal, source)?)
    }
}
