//! The training loop: ask, write down, draw, sum, add noise, move; after an epoch, look and decide.

use crate::batching::{Batch, Batches, BatchingError, Sampler};
use crate::data::{Examples, Public};
use crate::gate::Gate;
use crate::gradient::{BatchFindings, Scaling, Summer};
use crate::model::{Findings, Model, Start};
use crate::noise::{release, release_without_noise, standard_normals};
use crate::personal::{Spending, Tariff};
use crate::policy::{self, Observation, Policy, Question};
use paygo_accounting::charge::Charge;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Decision, Permit, Refusal};
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::{Epsilon, Neighbors, NoiseMultiplier};
use paygo_accounting::schedule::Schedule;
use paygo_accounting::secret::Secret;
use paygo_noise::Source;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

mod checks;
mod history;
mod parts;

pub use parts::{
    AccuracyTarget, Ending, Entry, Journal, Position, Privacy, Setup, State, Step, Stop, Times, TrainError,
};

/// A run of private training.
pub struct Run<'a, M: ?Sized> {
    plan: Setup<'a, M>,
    summer: Summer<'a, M>,
    gate: Option<Box<dyn Gate + 'a>>,
    odometer: Option<(Odometer<VilleMixture>, Option<Charge>)>,
    journal: Box<dyn Journal + 'a>,
    source: Source,
    public_size: u64,
    parameters: Vec<f32>,
    gradient: Vec<f32>,
    position: Position,
    observations: Vec<Observation>,
    history: Vec<(Entry, u64)>,
    ending: Option<Ending>,
    untaken: u64,
    /// The last tariff, and its noise.
    tariff: Option<(NoiseMultiplier, Arc<Tariff>)>,
    /// Of the examples, where each has a budget.
    digest: Option<u32>,
}

impl<'a, M: Model + ?Sized> Run<'a, M> {
    /// Checks that everything fits; nothing is charged yet. Training that is private needs a gate.
    ///
    /// # Errors
    /// [`TrainError`], which says what does not fit.
    pub fn new(
        plan: Setup<'a, M>,
        public_size: u64,
        gate: Option<Box<dyn Gate + 'a>>,
        odometer: Option<Odometer<VilleMixture>>,
        journal: Box<dyn Journal + 'a>,
        mut source: Source,
    ) -> Result<Self, TrainError> {
        checks::check_plan(&plan, gate.is_some())?;
        let (model, examples) = (plan.model, plan.examples);
        let parameters = start(model, &mut source);
        let summer = Summer::new(model, examples, plan.sampler.prepared_for(), plan.sampler.neighbors(), &mut source);
        let mut run = Self {
            summer,
            gate,
            odometer: odometer.map(|odometer| (odometer, None)),
            journal,
            source,
            public_size,
            gradient: vec![0.0; parameters.len()],
            parameters,
            position: Position::default(),
            observations: Vec::new(),
            history: Vec::new(),
            ending: None,
            untaken: 0,
            tariff: None,
            digest: matches!(plan.privacy, Privacy::Personal(..)).then(|| examples.digest()),
            plan,
        };
        run.check()?;
        Ok(run)
    }

    fn neighbors(&self) -> Neighbors {
        self.gate.as_ref().map_or(Neighbors::AddRemove, |gate| gate.neighbors())
    }

    /// The parameters now: released, so public.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Takes these parameters instead of fresh ones: a model that was trained before, on other data.
    ///
    /// # Errors
    /// [`TrainError::Foreign`] when there are more or fewer of them.
    pub fn start_from(&mut self, parameters: Vec<f32>) -> Result<(), TrainError> {
        if parameters.len() != self.parameters.len() {
            return Err(TrainError::Foreign("the model has another number of parameters"));
        }
        self.parameters = parameters;
        Ok(())
    }

    /// How far it has come.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The noise of the coming round.
    #[must_use]
    pub fn noise_multiplier(&self) -> Option<NoiseMultiplier> {
        self.plan.policy.noise_multiplier(self.position.epoch)
    }

    /// What the policy saw.
    #[must_use]
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// The odometer's reading: a bound on what has been spent, that holds at every moment.
    #[must_use]
    pub fn epsilon(&mut self) -> Option<Epsilon> {
        self.odometer.as_mut().map(|(odometer, _)| odometer.reading())
    }

    /// How many more rounds like the coming one the budget covers, up to a million; none where each example has its own.
    ///
    /// # Errors
    /// [`TrainError`] when the budget does not answer.
    pub fn rounds_left(&mut self) -> Result<Option<u64>, TrainError> {
        let (Some(noise_multiplier), Privacy::Clipped(_)) = (self.noise_multiplier(), &self.plan.privacy) else {
            return Ok(None);
        };
        let round = self.plan.sampler.round(noise_multiplier)?;
        let room = |gate: &mut Box<dyn Gate + 'a>| gate.room(round.cost(), 1_000_000).map_err(TrainError::Gate);
        self.gate.as_mut().map(room).transpose()
    }

    /// What each example has spent, where each has a budget.
    #[must_use]
    pub const fn spending(&self) -> Option<&Spending> {
        match &self.plan.privacy {
            Privacy::Personal(_, spending) => Some(spending),
            Privacy::None | Privacy::Clipped(_) => None,
        }
    }

    /// Public: how a sampler draws, now.
    #[must_use]
    pub const fn sampler(&self) -> &Sampler {
        &self.plan.sampler
    }

    /// One round. Returns why it ended, once it has.
    ///
    /// # Errors
    /// [`TrainError`]. What was charged stays charged.
    pub fn advance(&mut self, watch: &mut dyn FnMut(&Step) -> ControlFlow<()>) -> Result<Option<Ending>, TrainError> {
        if self.ending.is_none() {
            self.ending = self.round(watch)?;
        }
        Ok(self.ending.clone())
    }

    fn round(&mut self, watch: &mut dyn FnMut(&Step) -> ControlFlow<()>) -> Result<Option<Ending>, TrainError> {
        let stop = self.plan.stop;
        let reached = |limit: Option<u64>, now: u64| limit.is_some_and(|limit| now >= limit);
        if reached(stop.epochs, self.position.epoch) || reached(stop.steps, self.position.steps) {
            return Ok(Some(Ending::Done));
        }
        let mut batches = match self.next_batches()? {
            Ok(batches) => batches.peekable(),
            Err(ending) => return Ok(Some(ending)),
        };
        let mut interrupted = false;
        while let Some(batch) = batches.next() {
            let step = self.step(batch)?;
            interrupted = watch(&step).is_break();
            let ends = interrupted || reached(stop.steps, self.position.steps);
            // In the middle of a round: what is left of it was charged, and is not drawn.
            if ends && batches.peek().is_some() {
                return Ok(Some(if interrupted { Ending::Interrupted } else { Ending::Done }));
            }
        }
        self.position.rounds += 1;
        if self.position.rounds >= self.plan.sampler.rounds_per_epoch() {
            self.position.rounds = 0;
            self.position.epoch += 1;
            if let Some(ending) = self.after_epoch()? {
                return Ok(Some(ending));
            }
        }
        Ok(interrupted.then_some(Ending::Interrupted))
    }

    /// The batches of a round that was charged; or why there is none.
    fn next_batches(&mut self) -> Result<Result<Batches, Ending>, TrainError> {
        loop {
            let Some(noise_multiplier) = self.noise_multiplier() else { return Ok(Err(Ending::ScheduleEnded)) };
            self.move_batching()?;
            let round = self.plan.sampler.round(noise_multiplier)?;
            let batching = self.plan.sampler.batching();
            let stored = noise_multiplier.get() * self.plan.sampler.reach();
            let entry = Entry::Round { noise_multiplier: stored, batching };
            match &self.plan.privacy {
                Privacy::None => return Ok(Ok(round.batches(&mut self.source))),
                Privacy::Personal(..) => {
                    self.charge_allowance()?;
                    self.note(&entry);
                    let alike = self.alike();
                    self.journal.before(&entry, &mut |most| most.min(alike))?;
                    return Ok(Ok(round.batches(&mut self.source)));
                }
                Privacy::Clipped(_) => match self.charge(&entry, round.cost())? {
                    Ok(permit) => return Ok(Ok(round.draw(permit, &mut self.source)?)),
                    Err(refusal) if self.position == Position::default() => return Err(TrainError::TooSmall(refusal)),
                    // More noise costs less.
                    Err(_) if self.plan.policy.can_go_up() => self.see(Observation::NotCovered)?,
                    Err(refusal) => return Ok(Err(Ending::Refused(refusal))),
                },
            }
        }
    }

    /// Takes up the batches that the policy has come to.
    fn move_batching(&mut self) -> Result<(), TrainError> {
        let now = self.plan.sampler.batching();
        if let Some(batching) = self.plan.policy.batching().filter(|&batching| batching != now) {
            self.plan.sampler = self.plan.sampler.with(batching)?;
            let expected = self.plan.sampler.prepared_for();
            let neighbors = self.plan.sampler.neighbors();
            self.summer = Summer::new(self.plan.model, self.plan.examples, expected, neighbors, &mut self.source);
            self.tariff = None;
        }
        Ok(())
    }

    /// All that examples may ever spend is charged once, before the first round.
    fn charge_allowance(&mut self) -> Result<(), TrainError> {
        let Privacy::Personal(_, spending) = &self.plan.privacy else { return Ok(()) };
        if self.history.iter().any(|(entry, _)| *entry == Entry::Allowance) {
            return Ok(());
        }
        let cost = spending.allowance().cost(self.neighbors())?;
        match self.charge(&Entry::Allowance, &cost)? {
            Ok(_) => Ok(()),
            Err(refusal) => Err(TrainError::TooSmall(refusal)),
        }
    }

    /// How many rounds after the coming one are surely like it.
    fn alike(&self) -> u64 {
        match &self.plan.policy {
            Policy::Schedule(Schedule::Uniform { .. }) => u64::MAX,
            // After this epoch the noise may be another.
            Policy::Schedule(_) | Policy::Validation(_) | Policy::Adaptive(_) | Policy::FineTune(_) => {
                self.plan.sampler.rounds_per_epoch().saturating_sub(1 + self.position.rounds)
            }
        }
    }

    /// Asks the gate; if it admits, the odometer and the journal know before anybody draws.
    fn charge(&mut self, entry: &Entry, cost: &Cost) -> Result<Result<Permit, Refusal>, TrainError> {
        let alike = self.alike();
        let gate = self.gate.as_mut().ok_or(TrainError::Needs { what: "private training", needs: "a budget" })?;
        // Whatever the odometer cannot take must not be drawn, so it is priced first.
        if let Some((odometer, priced)) = &mut self.odometer {
            match priced {
                Some(charge) if **charge.cost() == *cost => {}
                Some(_) | None => *priced = Some(odometer.price(cost)?),
            }
        }
        match gate.request(cost).map_err(TrainError::Gate)? {
            Decision::Refused(refusal) => Ok(Err(refusal)),
            Decision::Admitted(permit) => {
                if let Some((odometer, Some(charge))) = &mut self.odometer {
                    odometer.observe(charge)?;
                }
                let alike = match entry {
                    Entry::Round { .. } => alike,
                    Entry::Count { .. } | Entry::Allowance | Entry::Components { .. } | Entry::Selection { .. } => 0,
                };
                self.journal.before(entry, &mut |most| gate.room(cost, most.min(alike)).unwrap_or(0))?;
                self.note(entry);
                Ok(Ok(permit))
            }
        }
    }

    fn note(&mut self, entry: &Entry) {
        match self.history.last_mut() {
            Some((last, count)) if last == entry => *count += 1,
            Some(_) | None => self.history.push((*entry, 1)),
        }
    }

    /// How a step with this noise charges each example, where each has a budget; the last one is remembered.
    fn tariff(&mut self, noise_multiplier: NoiseMultiplier) -> Result<Option<Arc<Tariff>>, TrainError> {
        let Privacy::Personal(clip, spending) = &self.plan.privacy else { return Ok(None) };
        if let Some((of, tariff)) = &self.tariff
            && *of == noise_multiplier
        {
            return Ok(Some(Arc::clone(tariff)));
        }
        let noise_std = noise_multiplier.get() * self.plan.sampler.reach() * self.summer.l2_sensitivity(clip);
        let (allowance, batching) = (spending.allowance(), self.plan.sampler.batching());
        let tariff = Arc::new(Tariff::new(allowance, batching, noise_std, clip.norm(), self.summer.margin())?);
        self.tariff = Some((noise_multiplier, Arc::clone(&tariff)));
        Ok(Some(tariff))
    }

    fn step(&mut self, batch: Batch) -> Result<Step, TrainError> {
        let clock = std::time::Instant::now();
        let tariff = self.tariff(batch.noise_multiplier)?;
        let sensitivity = match &self.plan.privacy {
            Privacy::None => 0.0,
            Privacy::Clipped(clip) | Privacy::Personal(clip, _) => self.summer.l2_sensitivity(clip),
        };
        let findings = match (&mut self.plan.privacy, tariff) {
            (Privacy::None, _) => self.summer.add_up(&self.parameters, &batch.indices, Scaling::None)?,
            (Privacy::Personal(_, spending), Some(tariff)) => {
                // Everybody's norm is computed: who was not sampled might have been, and pays.
                let count = self.plan.examples.len();
                let everybody: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
                let sampled = (batch.indices.len() < count).then(|| {
                    let mut sampled = vec![false; count];
                    batch.indices.iter().for_each(|&index| sampled[index as usize] = true);
                    sampled
                });
                let charge = |spent: u32, norm: f64| tariff.charge(spent, norm);
                let personal = spending.for_step(&charge, sampled.as_deref());
                self.summer.add_up(&self.parameters, &everybody, Scaling::Personal(personal))?
            }
            (Privacy::Clipped(clip) | Privacy::Personal(clip, _), _) => {
                self.summer.add_up(&self.parameters, &batch.indices, Scaling::Clip(clip))?
            }
        };
        let sum = clock.elapsed().as_secs_f64();
        let total = |start: usize, part: &mut [f64]| self.summer.part(start, part);
        if matches!(self.plan.privacy, Privacy::None) {
            release_without_noise(total, batch.divisor, &mut self.gradient);
        } else {
            // Noise is added once, to the sum (E7), and the sum is divided by a public number (E13).
            let noise_std = batch.noise_multiplier.get() * self.plan.sampler.reach() * sensitivity;
            release(total, noise_std, batch.divisor, &mut self.source, &mut self.gradient);
        }
        let noise = clock.elapsed().as_secs_f64() - sum;
        self.plan.optimizer.step(self.position.epoch, &self.gradient, &mut self.parameters);
        let update = clock.elapsed().as_secs_f64() - sum - noise;
        self.position.steps += 1;
        Ok(Step {
            steps: self.position.steps,
            epoch: self.position.epoch,
            noise_multiplier: if sensitivity == 0.0 { 0.0 } else { batch.noise_multiplier.get() },
            expected: self.plan.sampler.expected(),
            findings,
            times: Times { sum, noise, update },
        })
    }

    /// What the policy and the target want to know, and what follows.
    fn after_epoch(&mut self) -> Result<Option<Ending>, TrainError> {
        let epochs = self.position.epoch;
        let question = self.plan.policy.question(epochs);
        let target = self.plan.stop.target.filter(|target| epochs.is_multiple_of(target.period));
        if question == Question::PublicAccuracy
            && let Some(public) = self.plan.public
        {
            self.see(Observation::PublicAccuracy(self.public_accuracy(public)))?;
        }
        // One count serves both; the less noisy one.
        let noise_std = match (question, target) {
            (Question::NoisyCount { noise_std }, Some(target)) => noise_std.min(target.noise_std),
            (Question::NoisyCount { noise_std }, None) => noise_std,
            (Question::Nothing | Question::PublicAccuracy, Some(target)) => target.noise_std,
            (Question::Nothing | Question::PublicAccuracy, None) => return Ok(None),
        };
        // A count that the budget does not cover is not taken; a cheaper round may still be.
        let Some(count) = self.noisy_count(noise_std)? else {
            self.untaken += 1;
            return Ok(None);
        };
        if matches!(question, Question::NoisyCount { .. }) {
            let lasts = self.lasts(self.plan.policy.reserve())?;
            self.see(Observation::NoisyCount { count, lasts })?;
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of examples")]
        let reached = target.is_some_and(|target| count >= target.accuracy * self.public_size as f64);
        Ok(reached.then_some(Ending::TargetReached { count }))
    }

    fn see(&mut self, observation: Observation) -> Result<(), TrainError> {
        self.plan.policy.observe(observation)?;
        self.observations.push(observation);
        Ok(())
    }

    /// Whether the budget covers more than this many epochs of the present setting.
    fn lasts(&mut self, epochs: u64) -> Result<bool, TrainError> {
        let Some(noise_multiplier) = self.noise_multiplier() else { return Ok(false) };
        let round = self.plan.sampler.round(noise_multiplier)?;
        let rounds = self.plan.sampler.rounds_per_epoch().saturating_mul(epochs).saturating_add(1);
        let gate = self.gate.as_mut().ok_or(TrainError::Needs { what: "a policy that counts", needs: "a budget" })?;
        Ok(gate.room(round.cost(), rounds).map_err(TrainError::Gate)? >= rounds)
    }

    /// How many private examples are classified correctly, charged and with noise; `None` when the budget does not cover it.
    ///
    /// One example more, less or other changes the count by at most 1.
    ///
    /// # Errors
    /// [`TrainError`].
    pub fn noisy_count(&mut self, noise_std: f64) -> Result<Option<f64>, TrainError> {
        let release = policy::count(noise_std)?;
        let cost = release.cost(self.neighbors()).map_err(BatchingError::Cost)?;
        let Ok(permit) = self.charge(&Entry::Count { noise_std }, &cost)? else { return Ok(None) };
        let correct = evaluate(self.plan.model, &self.parameters, self.plan.examples).expose().correct;
        let noisy = release.draw(permit, &mut self.source, &[i64::try_from(correct).unwrap_or(i64::MAX)])?;
        #[expect(clippy::cast_precision_loss, reason = "a number of examples")]
        Ok(noisy.first().map(|&count| count as f64))
    }

    /// How many noisy counts were wanted and not taken, because the budget did not cover them.
    #[must_use]
    pub const fn untaken(&self) -> u64 {
        self.untaken
    }

    /// The accuracy on public examples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a number of examples")]
    pub fn public_accuracy(&self, public: &Public) -> f64 {
        // Public: nothing is given away.
        let found = evaluate(self.plan.model, &self.parameters, public.examples()).expose();
        found.correct as f64 / found.count.max(1) as f64
    }
}

/// Parameters to start from.
fn start<M: Model + ?Sized>(model: &M, source: &mut Source) -> Vec<f32> {
    let mut parameters = Vec::with_capacity(model.parameters());
    for tensor in model.tensors() {
        let mut normals = vec![0.0; tensor.len()];
        match tensor.start {
            Start::Zeros => {}
            Start::Ones => normals.fill(1.0),
            Start::Scaled { inputs } => {
                standard_normals(source, &mut normals);
                #[expect(clippy::cast_precision_loss, reason = "the size of a layer")]
                let deviation = (2.0 / inputs.max(1) as f64).sqrt();
                normals.iter_mut().for_each(|x| *x *= deviation);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "single precision is what parameters are in")]
        parameters.extend(normals.iter().map(|&x| x as f32));
    }
    parameters
}

/// Losses and correct predictions over all examples.
pub fn evaluate<M: Model + ?Sized>(model: &M, parameters: &[f32], examples: &Examples) -> Secret<BatchFindings> {
    const ROWS: usize = 64;
    let starts: Vec<usize> = (0..examples.len()).step_by(ROWS).collect();
    let chunk = |(memory, findings): &mut (Vec<f32>, Findings), &start: &usize| {
        let range = start..examples.len().min(start + ROWS);
        memory.resize(model.memory(range.len()), 0.0);
        model.predict(parameters, examples.chunk(range), memory, findings);
        let loss: f64 = findings.losses.iter().map(|&loss| f64::from(loss)).sum();
        let correct = findings.correct.iter().filter(|&&correct| correct).count();
        (loss, correct)
    };
    let each: Vec<(f64, usize)> = starts.par_iter().map_init(|| (Vec::new(), Findings::default()), chunk).collect();
    let (loss, correct) = each.iter().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Secret::new(BatchFindings { loss, correct, count: examples.len() })
}
