//! `paygo train`: private training that cannot overspend.

mod claims;
mod config;
mod job;
mod metrics;
mod model;
mod noise;
mod note;
mod outcome;
mod plan;
mod privacy;
mod report;
mod room;
mod select;
mod setting;
mod shared;
mod watch;

pub(crate) use note::Trained;
pub(crate) use report::spent;

use super::interrupt;
use super::ledger::PlaceArguments;
use anyhow::Context;
use clap::Args;
use job::{Job, Opened};
use outcome::Outcome;
use paygo_noise::Source;
use paygo_training::checkpoint::{Folder, FolderError, Interrupted};
use paygo_training::model::Network;
use paygo_training::run::Run;
use room::Room;
use setting::{Setting, Stage};
use shared::SharedGate;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::PoisonError;

#[derive(Args)]
#[command(after_help = "Every step is charged to a filter before its noise is drawn. Training ends when the budget \
    does not cover another step. The folder gets the model (model.safetensors), metrics (metrics.jsonl), a page with \
    curves (report.html) and a checkpoint.\n\n\
    Ctrl-C, SIGTERM and SIGHUP end the run after the current step, with a checkpoint; a second signal ends it at \
    once. After that, or after a crash, --resume continues. Every step whose noise may have been drawn stays \
    charged.\n\n\
    Exit codes: 0 trained, 1 the ledger refused another round, 2 something was wrong, 130 interrupted.\n\n\
    Examples:\n  \
    paygo train examples/demo.toml\n  \
    paygo train examples/mnist.toml --data DIR --out runs/mnist\n  \
    paygo train --resume runs/mnist\n\n\
    See docs/training.md for everything that the file may contain.")]
pub(crate) struct Arguments {
    /// What to train, on which data, and within which budget
    #[arg(value_name = "CONFIG.toml", required_unless_present = "resume", conflicts_with = "resume")]
    config: Option<PathBuf>,
    /// Continue the run in this folder
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Folder of the public data sets
    #[arg(long, value_name = "DIR", env = "PAYGO_DATA")]
    data: Option<PathBuf>,
    /// Folder for the model, metrics, report and checkpoint; created if missing
    #[arg(long, value_name = "DIR", default_value = "trained", conflicts_with = "resume")]
    out: PathBuf,
    #[command(flatten)]
    place: PlaceArguments,
    /// Seconds between two checkpoints.
    ///
    /// They are taken between rounds; a round is an epoch with balls_and_bins and shuffled batches, and a step
    /// otherwise. If the process is killed, what was trained since the last checkpoint is lost, and stays charged.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    checkpoint_every: u64,
    /// NOT PRIVATE, for tests: make the noise from this seed.
    ///
    /// The noise is the same every time, and whoever knows the seed can subtract it.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// NOT PRIVATE, for research on public data: show what depends on the examples.
    ///
    /// That is the training loss, the speed, and what each example has spent.
    #[arg(long)]
    reveal_secrets: bool,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    let Opened { mut job, before } = Opened::new(arguments)?;
    let (folder, interrupted) = before.unzip();
    let mut source = source(arguments)?;
    let mut setting = checked(&mut job, interrupted.is_none())?;
    forewarn(&job, &mut setting, interrupted.as_ref())?;
    let start = if interrupted.is_none() { setting.rehearse(&job)? } else { None };
    let gate = job.gate(arguments, setting.checked.as_ref())?;
    // Written only where all of the file is fine.
    let mut folder = match folder {
        Some(folder) => folder,
        None => create(&arguments.out, &job)?,
    };
    // From here on there is something to be stored, and given back.
    interrupt::defer();
    let before = interrupted.as_ref().and_then(|interrupted| interrupted.components.clone());
    let projection = job.look_along_components(gate.as_ref(), &mut folder, &mut source, before)?;
    let mut selection = None;
    if let (Some(gate), None, true) = (&gate, &interrupted, job.config.select.is_some()) {
        selection = setting.select(&mut job, gate, &mut folder, &mut source)?;
        if selection.is_none() {
            return interrupted_early(gate);
        }
    }
    let job = job;
    let public = job.public(&job.split.test);
    let room = Room::of(&job, &setting)?;
    let stage = Stage { job: &job, split: &job.split, public: public.as_ref(), gate: gate.as_ref() };
    let mut training = setting.prepare(source, stage, folder.journal())?;
    match interrupted {
        None => job.begin(&mut training, start, selection)?,
        Some(interrupted) => take_up(&mut training, interrupted, gate.as_ref())?,
    }
    folder.save(&training.state())?;
    if let Some(gate) = &gate {
        room.tell(gate, &mut training)?;
    }
    let begun = training.position();
    let trained = watch::train(arguments, &job, &mut training, public.as_ref(), &mut folder);
    let (ending, metrics) = match gate.as_ref().and_then(settle) {
        Some(refusing) => trained.context(refusing)?,
        None => trained?,
    };
    folder.save(&training.state())?;
    let outcome = Outcome {
        arguments,
        job: &job,
        training: &mut training,
        projection: projection.as_ref(),
        gate: gate.as_ref(),
        folder: &folder,
        ending: &ending,
        begun,
        metrics: &metrics,
    };
    outcome.finish()
}

/// Everything checked; a new run keeps the rule that it begins with.
fn checked(job: &mut Job, is_new: bool) -> anyhow::Result<Setting> {
    let setting = Setting::of(job)?;
    if is_new {
        job.keep_rule(setting.checked.as_ref());
    }
    Ok(setting)
}

/// What is worth knowing before the run begins, or goes on.
fn forewarn(job: &Job, setting: &mut Setting, interrupted: Option<&Interrupted>) -> anyhow::Result<()> {
    let note = match interrupted {
        None => job.config.forecast(&setting.sampler, &job.network)?,
        Some(interrupted) => setting.changed_since(interrupted)?,
    };
    if let Some(note) = note {
        eprintln!("note: {note}");
    }
    Ok(())
}

/// The folder of a new run; where there is one already, how to go on is said.
fn create(path: &Path, job: &Job) -> anyhow::Result<Folder> {
    Folder::create(path, &job.stored()?).map_err(|error| match error {
        FolderError::Taken(path) => anyhow::anyhow!(
            "{at}: there is a run in this folder\n\
             hint: paygo train --resume {at} goes on with it; --out DIR begins another elsewhere",
            at = path.display()
        ),
        other @ (FolderError::Io { .. }
        | FolderError::Locked(_)
        | FolderError::Nothing(_)
        | FolderError::Damaged { .. }) => other.into(),
    })
}

/// Gives back what the ledger holds; which ledger has refused, if one has.
fn settle(gate: &SharedGate) -> Option<String> {
    let mut gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = gate.settle() {
        eprintln!("note: {error:#}");
    }
    gate.shared().and_then(|(place, refusal)| refusal.map(|_| format!("{place} refuses")))
}

/// Ends before there is anything to store: what was charged stays so.
fn interrupted_early(gate: &SharedGate) -> anyhow::Result<ExitCode> {
    gate.lock().unwrap_or_else(PoisonError::into_inner).settle()?;
    eprintln!("interrupted: the selection stays charged, and its result is lost");
    Ok(ExitCode::from(interrupt::EXIT))
}

/// Where randomness comes from. What is not private is said at once.
fn source(arguments: &Arguments) -> anyhow::Result<Source> {
    if arguments.reveal_secrets {
        eprintln!("NOT PRIVATE: with --reveal-secrets this shows what depends on the examples");
    }
    match arguments.seed {
        Some(seed) => {
            eprintln!("NOT PRIVATE: with --seed the noise can be repeated, and taken off, by whoever knows the seed");
            Ok(Source::insecure_from_seed(seed))
        }
        None => Ok(Source::from_operating_system()?),
    }
}

/// Goes on where a run stood.
fn take_up(training: &mut Run<'_, Network>, interrupted: Interrupted, gate: Option<&SharedGate>) -> anyhow::Result<()> {
    let lost: u64 = interrupted.lost.iter().map(|(_, count)| count).sum();
    let sleep = |asleep: bool| {
        if let Some(gate) = gate {
            gate.lock().unwrap_or_else(PoisonError::into_inner).sleep(asleep);
        }
    };
    // What it was charged then is in the ledger since then.
    sleep(true);
    training.resume(interrupted.state, &interrupted.lost)?;
    sleep(false);
    if lost > 0 {
        eprintln!("{lost} rounds may have been drawn after the last checkpoint: they are charged, and not drawn again");
    }
    Ok(())
}
