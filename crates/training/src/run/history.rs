//! What was charged so far, and how a run goes on from there.

use super::{Entry, Position, Privacy, Run, State, TrainError};
use crate::batching::BatchingError;
use crate::model::Model;
use crate::pca;
use crate::personal::Spending;
use crate::policy;
use crate::selection::Selection;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::Decision;
use paygo_accounting::params::NoiseMultiplier;

impl<M: Model + ?Sized> Run<'_, M> {
    /// Where it stands, to be stored.
    #[must_use]
    pub fn state(&self) -> State {
        let (steps, first, second) = self.plan.optimizer.memory();
        State {
            parameters: self.parameters.clone(),
            optimizer: (steps, first.to_vec(), second.to_vec()),
            position: self.position,
            observations: self.observations.clone(),
            history: self.history.clone(),
            spent: self.spending().map(|spending| spending.shares().expose().to_vec()),
            digest: self.digest,
        }
    }

    /// Goes on where a run of the same plan stood. What was charged then, and what was `lost` (charged after the state was taken),
    /// is charged again to gate and odometer, which must be fresh; what was lost of a budget for each example is charged at its most.
    ///
    /// # Errors
    /// [`TrainError`] when the state belongs to another run, or the gate does not admit what it admitted then.
    pub fn resume(&mut self, state: State, lost: &[(Entry, u64)]) -> Result<(), TrainError> {
        self.start_from(state.parameters)?;
        let (steps, first, second) = state.optimizer;
        if !self.plan.optimizer.restore(steps, first, second) {
            return Err(TrainError::Foreign("the optimizer remembers other numbers"));
        }
        if let Privacy::Personal(_, spending) = &mut self.plan.privacy {
            if state.digest != self.digest {
                return Err(TrainError::Foreign("its accounts belong to other examples, or to these in another order"));
            }
            let spent = state.spent.filter(|spent| spent.len() == self.plan.examples.len());
            let resumed = spent.and_then(|spent| Spending::resume(spending.allowance(), spent));
            *spending = resumed.ok_or(TrainError::Foreign("there is not one account for each example"))?;
        }
        for &(entry, count) in state.history.iter().chain(lost) {
            self.charge_again(entry, count)?;
        }
        for &(entry, steps) in lost {
            if let Entry::Round { noise_multiplier, .. } = entry
                && let Some(tariff) = self.tariff(self.multiplier(noise_multiplier)?)?
                && let Privacy::Personal(_, spending) = &mut self.plan.privacy
            {
                spending.charge_the_most(&tariff, steps);
            }
        }
        for observation in state.observations {
            self.see(observation)?;
        }
        self.position = state.position;
        Ok(())
    }

    /// What was charged to the gate before the run was made (principal components, a selection): the odometer and the checkpoints know of
    /// it, too.
    ///
    /// # Errors
    /// [`TrainError`] when it has no price.
    pub fn was_charged(&mut self, entry: Entry) -> Result<(), TrainError> {
        if let (Some(cost), Some((odometer, _))) = (self.cost_of(entry)?, &mut self.odometer) {
            let charge = odometer.price(&cost)?;
            odometer.observe(&charge)?;
        }
        self.note(&entry);
        Ok(())
    }

    /// The noise multiplier of an entry, which holds the noise over the clip norm; a power of two, so nothing is rounded.
    fn multiplier(&self, stored: f64) -> Result<NoiseMultiplier, TrainError> {
        Ok(NoiseMultiplier::new(stored / self.plan.sampler.reach())?)
    }

    /// The price of an entry; none for a round where each example has paid for all of them.
    fn cost_of(&self, entry: Entry) -> Result<Option<Cost>, TrainError> {
        let personal = matches!(self.plan.privacy, Privacy::Personal(..));
        Ok(match entry {
            Entry::Round { .. } if personal => None,
            Entry::Round { noise_multiplier, batching } => {
                let sampler = self.plan.sampler.with(batching)?;
                Some(sampler.round(self.multiplier(noise_multiplier)?)?.cost().clone())
            }
            Entry::Count { noise_std } => {
                Some(policy::count(noise_std)?.cost(self.neighbors()).map_err(BatchingError::Cost)?)
            }
            Entry::Components { noise_multiplier } => {
                Some(pca::cost(NoiseMultiplier::new(noise_multiplier)?, self.neighbors())?)
            }
            Entry::Selection { candidates, rounds, noise_multiplier, batching, epsilon } => {
                let round = self.plan.sampler.with(batching)?.round(self.multiplier(noise_multiplier)?)?;
                let candidates = usize::try_from(candidates).unwrap_or(usize::MAX);
                let selection = Selection::of_plans(candidates, round.cost(), rounds, epsilon)?;
                Some(selection.cost(self.neighbors()).map_err(BatchingError::Cost)?)
            }
            Entry::Allowance => match &self.plan.privacy {
                Privacy::Personal(_, spending) => Some(spending.allowance().cost(self.neighbors())?),
                Privacy::None | Privacy::Clipped(_) => {
                    return Err(TrainError::Foreign("it had a budget for each example"));
                }
            },
        })
    }

    /// Whether every round that was charged was drawn to its end, but for one that the last step of all ended in. If not, a crash or an
    /// interrupt made the run pay for more, and when that happened may have been chosen by looking: then nothing was fixed in advance.
    #[must_use]
    pub fn is_as_planned(&self) -> bool {
        let round = |&(entry, count): &(Entry, u64)| match entry {
            Entry::Round { .. } => count,
            Entry::Count { .. } | Entry::Allowance | Entry::Components { .. } | Entry::Selection { .. } => 0,
        };
        let charged: u64 = self.history.iter().map(round).sum();
        let Position { epoch, rounds, steps } = self.position;
        let cut = self.plan.stop.steps == Some(steps) && !steps.is_multiple_of(self.plan.sampler.steps_per_round());
        charged == epoch * self.plan.sampler.rounds_per_epoch() + rounds + u64::from(cut)
    }

    /// Everything that was charged, each kind as often as it was. Where all of it was fixed in advance (noise, batches, and the number of
    /// rounds; see [`Run::is_as_planned`]) the price of all together is that of the run.
    ///
    /// # Errors
    /// [`TrainError`] when an entry has no price.
    pub fn charged(&self) -> Result<Vec<Cost>, TrainError> {
        let mut all = Vec::with_capacity(self.history.len());
        for &(entry, count) in &self.history {
            if let Some(cost) = self.cost_of(entry)? {
                all.push(cost.repeat(count).map_err(BatchingError::Cost)?);
            }
        }
        Ok(all)
    }

    /// What was charged once, to a gate and an odometer that do not know of it; nothing is written to the journal, or drawn.
    fn charge_again(&mut self, entry: Entry, count: u64) -> Result<(), TrainError> {
        let cost = self.cost_of(entry)?;
        for _ in 0..count {
            if let Some(cost) = &cost {
                let gate = self.gate.as_mut().ok_or(TrainError::Foreign("it had a budget"))?;
                if let Decision::Refused(_) = gate.request(cost).map_err(TrainError::Gate)? {
                    return Err(TrainError::Foreign("it was charged more than this budget"));
                }
                if let Some((odometer, priced)) = &mut self.odometer {
                    let charge = match priced.take() {
                        Some(charge) if **charge.cost() == *cost => charge,
                        Some(_) | None => odometer.price(cost)?,
                    };
                    odometer.observe(&charge)?;
                    *priced = Some(charge);
                }
            }
            self.note(&entry);
        }
        Ok(())
    }
}
