//! What a run is made of, what it says, and where it stands.

use crate::batching::{Batching, BatchingError, NotCovered, Sampler};
use crate::data::{Examples, Public, Shape};
use crate::gate::GateError;
use crate::gradient::{BatchFindings, Clip};
use crate::model::{MissingGradient, RowsKnowEachOther};
use crate::optimizer::Optimizer;
use crate::pca::PcaError;
use crate::personal::{AllowanceError, Spending};
use crate::policy::{Observation, Policy};
use paygo_accounting::charge::Unpriced;
use paygo_accounting::filter::Refusal;
use paygo_accounting::odometer::Unobserved;
use paygo_accounting::params::OutOfDomain;
use paygo_accounting::secret::Secret;
use serde::{Deserialize, Serialize};

/// Everything that is decided before the first step.
pub struct Setup<'a, M: ?Sized> {
    /// What is learned.
    pub model: &'a M,
    /// From whom.
    pub examples: &'a Examples,
    /// Examples that are public, if there are any.
    pub public: Option<&'a Public>,
    /// How batches are drawn.
    pub sampler: Sampler,
    /// What makes it private.
    pub privacy: Privacy,
    /// What decides about noise and batches.
    pub policy: Policy,
    /// What moves the parameters.
    pub optimizer: Optimizer,
    /// When it ends, if the budget does not end it.
    pub stop: Stop,
}

/// What makes training private.
#[derive(Clone, Debug)]
pub enum Privacy {
    /// Nothing: no clipping, no noise, no budget.
    None,
    /// Clipped gradients; every round is charged.
    Clipped(Clip),
    /// A budget for each example, charged once.
    Personal(Clip, Spending),
}

/// When training ends, if the budget does not end it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stop {
    /// After this many epochs.
    pub epochs: Option<u64>,
    /// After this many steps.
    pub steps: Option<u64>,
    /// When a charged noisy test says that the accuracy has been reached.
    pub target: Option<AccuracyTarget>,
}

/// An accuracy to be reached on the private examples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccuracyTarget {
    /// Correct over the public size.
    pub accuracy: f64,
    /// The standard deviation of the noise on the number of correct examples.
    pub noise_std: f64,
    /// Epochs between two tests.
    pub period: u64,
}

/// What was charged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A round of training.
    Round {
        /// Its noise, over the clip norm: the noise multiplier times [`Sampler::reach`].
        noise_multiplier: f64,
        /// Its batches.
        batching: Batching,
    },
    /// A noisy count of correct examples.
    Count {
        /// Its noise.
        noise_std: f64,
    },
    /// The budget of each example, once.
    Allowance,
    /// Principal components of the inputs, once, before training.
    Components {
        /// Their noise.
        noise_multiplier: f64,
    },
    /// A choice among candidates, once, before training.
    Selection {
        /// How many there were.
        candidates: u64,
        /// How many rounds each was trained for.
        rounds: u64,
        /// The noise of these rounds.
        noise_multiplier: f64,
        /// Their batches.
        batching: Batching,
        /// Of the choice.
        epsilon: f64,
    },
}

/// Where it is written down that noise is about to be drawn.
pub trait Journal: Send {
    /// Returns when it is on disk that this entry may be drawn. `more(n)` says how many more of it, up to n, the budget would allow.
    ///
    /// # Errors
    /// The operating system's; nothing is drawn then.
    fn before(&mut self, entry: &Entry, more: &mut dyn FnMut(u64) -> u64) -> std::io::Result<()>;
}

/// Nothing is written down: for runs that end with their process.
impl Journal for () {
    fn before(&mut self, _entry: &Entry, _more: &mut dyn FnMut(u64) -> u64) -> std::io::Result<()> {
        Ok(())
    }
}

/// Why training ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The budget does not cover another round.
    Refused(Refusal),
    /// As many epochs or steps as were wanted.
    Done,
    /// The schedule has no noise for another epoch.
    ScheduleEnded,
    /// The accuracy was reached, by this noisy number of correct examples.
    TargetReached {
        /// As it was released.
        count: f64,
    },
    /// Whoever watched wanted to stop.
    Interrupted,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A parameter out of its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// Batches that cannot be drawn or charged.
    #[error(transparent)]
    Batching(#[from] BatchingError),
    /// A budget for each example that does not fit.
    #[error(transparent)]
    ExampleBudget(#[from] AllowanceError),
    /// Principal components that have no price.
    #[error(transparent)]
    Components(#[from] PcaError),
    /// The model did not write a gradient.
    #[error(transparent)]
    Model(#[from] MissingGradient),
    /// Inputs and model do not fit.
    #[error("the model takes inputs of shape {model} and tells {classes} classes apart; the examples have {examples}")]
    Shape {
        /// The model's input.
        model: Shape,
        /// The model's classes.
        classes: usize,
        /// What there is.
        examples: String,
    },
    /// Matrix products do not keep what the bound on the sum of gradients rests on.
    #[error("{0}; private training rests on that they do not, and does not start here")]
    Rows(#[from] RowsKnowEachOther),
    /// The model does not.
    #[error(
        "what the model makes of an example depends on the examples beside it; training does not start with it on this machine"
    )]
    Dependent,
    /// The sampler draws from other examples.
    #[error("the sampler was made for {sampler} examples; there are {examples}")]
    Sampler {
        /// As the sampler has it.
        sampler: usize,
        /// As there are.
        examples: usize,
    },
    /// The budget was not asked, or did not answer.
    #[error("the budget did not answer: {0}")]
    Gate(GateError),
    /// The budget does not cover the first round.
    #[error("the budget does not cover a single round: {0}")]
    TooSmall(Refusal),
    /// A policy or a test that private training needs and this has not.
    #[error("{what} needs {needs}")]
    Needs {
        /// What.
        what: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// Odometer and charge do not fit.
    #[error(transparent)]
    Unobserved(#[from] Unobserved),
    /// The odometer cannot price a cost.
    #[error(transparent)]
    Unpriced(#[from] Unpriced),
    /// The journal could not be written.
    #[error("the charge could not be written down, so nothing was drawn: {0}")]
    Journal(#[from] std::io::Error),
    /// A permit for something else.
    #[error(transparent)]
    NotCovered(#[from] NotCovered),
    /// A permit for another release.
    #[error(transparent)]
    NotReleased(#[from] paygo_noise::NotCovered),
    /// A state of another run.
    #[error("the stored state does not belong to this run: {0}")]
    Foreign(&'static str),
}

/// What a watcher sees of a step.
#[derive(Debug)]
pub struct Step {
    /// Steps so far.
    pub steps: u64,
    /// Epochs so far.
    pub epoch: u64,
    /// The noise of this step; 0 when it is not private.
    pub noise_multiplier: f64,
    /// Public: how many examples a batch has, about.
    pub expected: usize,
    /// What the batch came to.
    pub findings: Secret<BatchFindings>,
    /// Where the step's time went.
    pub times: Times,
}

/// Seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Gradients, clipped and summed.
    pub sum: f64,
    /// Noise.
    pub noise: f64,
    /// Moving the parameters.
    pub update: f64,
}

/// Where a run stands: with its plan and the history of charges, all that is needed to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The parameters.
    pub parameters: Vec<f32>,
    /// What the optimizer remembers.
    pub optimizer: (u64, Vec<f32>, Vec<f32>),
    /// Epochs and steps so far, and rounds in the present epoch.
    pub position: Position,
    /// What the policy saw.
    pub observations: Vec<Observation>,
    /// What was charged, in order, and how often.
    pub history: Vec<(Entry, u64)>,
    /// What each example has spent, where each has a budget. It depends on the data.
    pub spent: Option<Vec<u32>>,
    /// Of which examples, where each has a budget: a checksum of them, as secret as they are.
    pub digest: Option<u32>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Whole epochs.
    pub epoch: u64,
    /// Rounds in the present epoch.
    pub rounds: u64,
    /// Steps in all.
    pub steps: u64,
}
