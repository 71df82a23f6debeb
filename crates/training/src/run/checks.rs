//! What can be seen to be wrong before anything is charged.

use super::{Privacy, Run, Setup, TrainError};
use crate::batching::{Batching, BatchingError};
use crate::data::{Examples, Public};
use crate::model::{Model, check_rows, examples_are_independent};
use crate::personal::AllowanceError;
use crate::policy::{self, Policy, Question};
use paygo_accounting::params::{Neighbors, NoiseMultiplier, OutOfDomain};

/// What can be seen to be wrong with a plan by itself.
pub(super) fn check_plan<M: Model + ?Sized>(plan: &Setup<'_, M>, has_budget: bool) -> Result<(), TrainError> {
    let (model, examples) = (plan.model, plan.examples);
    if plan.sampler.examples() != examples.len() {
        return Err(TrainError::Sampler { sampler: plan.sampler.examples(), examples: examples.len() });
    }
    let fits = |examples: &Examples| model.input() == examples.shape() && model.classes() == examples.classes();
    for examples in [Some(examples), plan.public.map(Public::examples)].into_iter().flatten() {
        if !fits(examples) {
            let found = format!("shape {} and {} classes", examples.shape(), examples.classes());
            return Err(TrainError::Shape { model: model.input(), classes: model.classes(), examples: found });
        }
    }
    if plan.public.is_none() && matches!(plan.policy, Policy::Validation(_)) {
        return Err(TrainError::Needs { what: "the validation policy", needs: "public examples (data.public_test)" });
    }
    let is_private = !matches!(plan.privacy, Privacy::None);
    if is_private != has_budget {
        return Err(TrainError::Needs { what: "private training", needs: "a budget, and no other training has one" });
    }
    if !is_private && (plan.stop.target.is_some() || matches!(plan.policy.question(0), Question::NoisyCount { .. })) {
        return Err(TrainError::Needs { what: "a charged noisy count", needs: "a budget" });
    }
    if let Some(target) = plan.stop.target {
        if !(0.0..=1.0).contains(&target.accuracy) {
            return Err(OutOfDomain::new("accuracy", target.accuracy, "0 <= accuracy <= 1").into());
        }
        if target.period == 0 {
            return Err(OutOfDomain::new("period", target.period, "at least 1").into());
        }
        policy::count(target.noise_std)?;
    }
    if plan.policy.batching().is_some() && !matches!(plan.sampler.batching(), Batching::Poisson { .. }) {
        return Err(TrainError::Needs { what: "a policy that moves the batch", needs: "poisson batches" });
    }
    Ok(())
}

impl<M: Model + ?Sized> Run<'_, M> {
    /// A budget for each example that does not fit, a gradient that is
    /// missing, a model or a machine that mixes examples.
    pub(super) fn check(&mut self) -> Result<(), TrainError> {
        if self.gate.is_some() && self.neighbors() != self.plan.sampler.neighbors() {
            return Err(TrainError::Needs { what: "training", needs: "the same neighbors of sampler and budget" });
        }
        if let Privacy::Personal(clip, spending) = &self.plan.privacy {
            if clip.is_by_layer() {
                return Err(AllowanceError::ByLayer.into());
            }
            // Whoever has spent everything must not change the sum, not even its rounding: all others keep their places.
            if self.neighbors() != Neighbors::ZeroOut {
                return Err(AllowanceError::Neighbors(self.neighbors()).into());
            }
            if spending.shares().map(<[u32]>::len).expose() != self.plan.examples.len() {
                return Err(TrainError::Foreign("as many accounts as examples are expected"));
            }
            self.tariff(NoiseMultiplier::new(1.0)?)?;
        }
        // A test that can never be paid for would never end anything.
        let counted = match (self.plan.policy.question(0), self.plan.stop.target) {
            (Question::NoisyCount { noise_std }, _) => Some(noise_std),
            (Question::Nothing | Question::PublicAccuracy, target) => target.map(|target| target.noise_std),
        };
        let personal = matches!(self.plan.privacy, Privacy::Personal(..));
        if let (Some(noise_std), false, Some(gate)) = (counted, personal, self.gate.as_mut()) {
            let cost = policy::count(noise_std)?.cost(gate.neighbors()).map_err(BatchingError::Cost)?;
            if gate.room(&cost, 1).map_err(TrainError::Gate)? == 0 {
                return Err(TrainError::Needs {
                    what: "a noisy count with this noise_std",
                    needs: "a larger budget, or a larger noise_std: not even one is covered",
                });
            }
        }
        // Of examples that are nobody's: that there is a gradient, and that it is that of the example alone.
        check_rows()?;
        if !examples_are_independent(self.plan.model, &self.parameters, self.summer.rows_at_a_time())? {
            return Err(TrainError::Dependent);
        }
        Ok(())
    }
}
