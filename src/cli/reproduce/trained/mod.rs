//! What the papers trained, trained again: theirs beside ours.
//!
//! Public data, seeded noise: nothing here is private, and nothing has to be.

mod feldman_zrnic;
mod lecuyer;
mod yu;

use crate::cli::output::{print, table};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use paygo_accounting::filter::{Filter, Rule, Zcdp};
use paygo_accounting::params::Neighbors;
use paygo_noise::Source;
use paygo_numeric::Amount;
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::{Examples, Public};
use paygo_training::gate::{FilterGate, Gate};
use paygo_training::model::{Model as _, Network};
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::policy::Policy;
use paygo_training::run::{Privacy, Run, Setup, Stop, evaluate};
use std::ops::ControlFlow;
use std::path::Path;

pub(super) use feldman_zrnic::STUDY as FELDMAN_ZRNIC;
pub(super) use lecuyer::STUDY as LECUYER;
pub(super) use yu::STUDY as YU;

/// How often, and from which seed on.
#[derive(Clone, Copy)]
pub(super) struct Trials {
    pub(super) count: u64,
    pub(super) seed: u64,
}

impl Trials {
    fn seeds(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |trial| self.seed + trial)
    }
}

impl std::fmt::Display for Trials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let trials = if self.count == 1 { "trial" } else { "trials" };
        write!(f, "{} {trials} from seed {}", self.count, self.seed)
    }
}

/// One table.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// File names and drawings.
    pub(super) figures: Vec<(&'static str, String)>,
}

impl Table {
    /// For programs, with what made it.
    pub(super) fn json(&self, command: &str) -> serde_json::Value {
        serde_json::json!({
            "title": self.title, "about": self.about, "command": command, "header": self.header, "rows": self.rows,
        })
    }

    /// Prints it, and puts its drawings into a folder.
    pub(super) fn show(self, command: &str, folder: &Path) -> anyhow::Result<()> {
        print(&format!("{}\n{}\n{command}\n{}\n", self.title, self.about, table(&self.header, self.rows)))?;
        for (name, svg) in self.figures {
            let path = folder.join(name);
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            std::fs::write(&path, svg).with_context(|| path.display().to_string())?;
            print(&format!("drawn in {}", path.display()))?;
        }
        Ok(())
    }
}

/// A run to be made.
struct Recipe<'a> {
    network: &'a Network,
    train: &'a Examples,
    test: &'a Examples,
    validation: Option<&'a Public>,
    batching: Batching,
    neighbors: Neighbors,
    privacy: Privacy,
    policy: Policy,
    momentum: f64,
    learning_rate: f64,
    stop: Stop,
}

/// What a run came to at some step.
struct Mark {
    steps: u64,
    epochs: u64,
    train: f64,
    test: f64,
    /// What each example has spent, where each has a budget.
    spent: Option<Vec<u32>>,
}

impl Recipe<'_> {
    /// Runs it within a budget, and looks at the given steps and at the end.
    fn run<R: Rule + 'static>(self, rule: Option<R>, marks: &[u64], seed: u64) -> anyhow::Result<Vec<Mark>> {
        let size = self.train.len() as u64;
        let (network, train, test) = (self.network, self.train, self.test);
        let plan = Setup {
            model: network,
            examples: train,
            public: self.validation,
            sampler: Sampler::new(self.batching, self.neighbors, size, train.len())?,
            privacy: self.privacy,
            policy: self.policy,
            optimizer: Optimizer::new(
                Method::Sgd { momentum: self.momentum },
                Rate::Constant(self.learning_rate),
                network.parameters(),
            )?,
            stop: self.stop,
        };
        let gate = rule.map(|rule| Box::new(FilterGate::new(Filter::new(rule, self.neighbors))) as Box<dyn Gate>);
        let source = Source::insecure_from_seed(seed);
        let mut run = Run::new(plan, size, gate, None, Box::new(()), source)?;
        let mut found = Vec::new();
        loop {
            let ending = run.advance(&mut |_| ControlFlow::Continue(()))?;
            let steps = run.position().steps;
            let is_new = found.last().is_none_or(|mark: &Mark| mark.steps < steps);
            if is_new && (marks.contains(&steps) || ending.is_some()) {
                let share = |examples: &Examples| {
                    let found = evaluate(network, run.parameters(), examples).expose();
                    #[expect(clippy::cast_precision_loss, reason = "numbers of examples")]
                    let share = found.correct as f64 / found.count.max(1) as f64;
                    share
                };
                let spent = run.spending().map(|spending| spending.shares().expose().to_vec());
                found.push(Mark { steps, epochs: run.position().epoch, train: share(train), test: share(test), spent });
            }
            if ending.is_some() {
                return Ok(found);
            }
        }
    }
}

/// A zCDP budget as decimal text.
fn rho(limit: f64) -> anyhow::Result<Zcdp> {
    let limit = Amount::from_f64_down(limit).context("a finite budget")?;
    Ok(Zcdp::with_limit(limit, Amount::ZERO)?)
}

/// `93.18 ± 0.32`, in percent; one trial has no deviation.
fn summary(values: &[f64]) -> String {
    #[expect(clippy::cast_precision_loss, reason = "few trials")]
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return format!("{:.2}", 100.0 * mean);
    }
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    format!("{:.2} ± {:.2}", 100.0 * mean, 100.0 * variance.sqrt())
}

fn bar(count: u64, what: &str) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(count);
    bar.set_style(ProgressStyle::with_template("{msg:30} [{bar:30}] {pos}/{len} [{elapsed}, {eta} left]")?);
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    Ok(bar)
}

/// What can be trained of a paper.
pub(super) struct Study {
    /// Its word on the command line.
    pub(super) key: &'static str,
    /// The parts that can be asked for alone.
    pub(super) parts: &'static [&'static str],
    /// All tables, or those of one part.
    pub(super) tables: fn(&Path, Trials, Option<&str>) -> anyhow::Result<Vec<Table>>,
}

impl Study {
    /// What makes its tables.
    pub(super) fn command(&self, trials: Trials, only: Option<&str>) -> String {
        let only = only.map_or_else(String::new, |only| format!(" --only {only}"));
        format!("paygo reproduce {} --data DIR{only} --trials {} --seed {}", self.key, trials.count, trials.seed)
    }
}
