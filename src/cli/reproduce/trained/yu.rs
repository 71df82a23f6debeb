//! \[Y\] Table II on MNIST, and the Cancer results of Fig. 14.

use super::{Recipe, Study, Table, Trials, bar, rho, summary};
use anyhow::Context;
use paygo_accounting::filter::{Filter, Zcdp};
use paygo_accounting::params::{Neighbors, NoiseMultiplier};
use paygo_accounting::schedule::{Schedule, ValidationDecay};
use paygo_noise::Source;
use paygo_training::batching::Batching;
use paygo_training::data::sets::{Set, Split};
use paygo_training::data::{Examples, Public};
use paygo_training::gate::FilterGate;
use paygo_training::gradient::Clip;
use paygo_training::model::{Function, Model as _, Network, known};
use paygo_training::pca::principal_components;
use paygo_training::policy::Policy;
use paygo_training::run::{Privacy, Stop};
use std::path::Path;

pub(in crate::cli::reproduce) const STUDY: Study = Study { key: "yu", parts: &["cancer", "mnist"], tables };

fn tables(data: &Path, trials: Trials, only: Option<&str>) -> anyhow::Result<Vec<Table>> {
    let mut tables = Vec::new();
    if only.is_none_or(|only| only == "cancer") {
        tables.push(cancer(data, trials)?);
    }
    if only.is_none_or(|only| only == "mnist") {
        tables.push(mnist(data, trials)?);
    }
    Ok(tables)
}

fn noise(multiplier: f64) -> anyhow::Result<NoiseMultiplier> {
    Ok(NoiseMultiplier::new(multiplier)?)
}

fn scheduled(schedule: Schedule) -> anyhow::Result<Policy> {
    Ok(Policy::Schedule(schedule.checked()?))
}

/// A line of Table II: a policy, and what the paper has of it.
struct Line {
    name: &'static str,
    /// With its noise multipliers divided by a number.
    policy: fn(f64) -> anyhow::Result<Policy>,
    epochs: &'static str,
    /// Training and testing accuracy.
    private: &'static str,
    not_private: &'static str,
    uniform: &'static str,
}

const TABLE_II: [Line; 6] = [
    Line {
        name: "uniform 8",
        policy: |divisor| scheduled(Schedule::Uniform { initial: noise(8.0 / divisor)? }),
        epochs: "100",
        private: "0.918/0.919",
        not_private: "0.978/0.970",
        uniform: "-",
    },
    Line {
        name: "time 0.05",
        policy: |divisor| scheduled(Schedule::Time { initial: noise(10.0 / divisor)?, rate: 0.05 }),
        epochs: "38",
        private: "0.934/0.931",
        not_private: "0.959/0.957",
        uniform: "0.922/0.925",
    },
    Line {
        name: "step 0.6, 10",
        policy: |divisor| scheduled(Schedule::Step { initial: noise(10.0 / divisor)?, rate: 0.6, period: 10 }),
        epochs: "31",
        private: "0.928/0.929",
        not_private: "0.955/0.954",
        uniform: "0.921/0.925",
    },
    Line {
        name: "exponential 0.01",
        policy: |divisor| scheduled(Schedule::Exponential { initial: noise(10.0 / divisor)?, rate: 0.01 }),
        epochs: "71",
        private: "0.934/0.929",
        not_private: "0.971/0.965",
        uniform: "0.922/0.925",
    },
    Line {
        name: "polynomial 3, 2, 100",
        policy: |divisor| {
            let (initial, last) = (noise(10.0 / divisor)?, noise(2.0 / divisor)?);
            scheduled(Schedule::Polynomial { initial, rate: 3.0, last, period: 100 })
        },
        epochs: "44",
        private: "0.930/0.932",
        not_private: "0.963/0.959",
        uniform: "0.925/0.929",
    },
    Line {
        name: "validation 0.7, 5, 0.01, 10",
        policy: |divisor| {
            Ok(Policy::Validation(ValidationDecay::new(noise(10.0 / divisor)?, 0.7, 0.01, 10, 5)?.into()))
        },
        epochs: "64",
        private: "0.930/0.930",
        not_private: "0.97/0.964",
        uniform: "0.924/0.926",
    },
];

const BUDGET: f64 = 0.781_25;

/// Where a run ended.
struct Outcome {
    epochs: u64,
    training: f64,
    testing: f64,
}

/// The runs of one line with one seed.
struct Outcomes {
    private: Outcome,
    /// With the paper's noise, which is for one layer where an example moves two (E12).
    printed_noise: Outcome,
    not_private: Outcome,
    /// With uniform noise for as many epochs.
    uniform: Outcome,
}

/// What all lines train on, with one seed.
struct Task {
    network: Network,
    train: Examples,
    test: Examples,
    seed: u64,
}

impl Task {
    fn new(split: &Split, seed: u64) -> anyhow::Result<Self> {
        // The principal components are charged; the paper leaves their rho, 1/512, out of its total (E13).
        let mut gate = FilterGate::new(Filter::new(rho(1.0 / 512.0)?, Neighbors::ZeroOut));
        let mut source = Source::insecure_from_seed(seed);
        let projection = principal_components(&split.train, 60, noise(16.0)?, &mut gate, &mut source)?;
        let (train, test) = (projection.apply(&split.train), projection.apply(&split.test));
        let network = known::perceptron(train.shape(), &[1000], Function::Relu, 10);
        Ok(Self { network, train, test, seed })
    }

    fn outcomes(&self, line: &Line) -> anyhow::Result<Outcomes> {
        let policy = (line.policy)(1.0)?;
        // Only the validation schedule sets examples aside.
        let (train, validation) = match &policy {
            Policy::Validation(_) => {
                let indices: Vec<usize> = (0..self.train.len()).collect();
                let aside = Public::declare(self.train.select(&indices[55_000..]));
                (self.train.select(&indices[..55_000]), Some(aside))
            }
            Policy::Schedule(_) | Policy::Adaptive(_) | Policy::FineTune(_) => (self.train.clone(), None),
        };
        let run = |policy: Policy, privacy: Privacy, epochs: Option<u64>, rule: Option<Zcdp>| {
            self.run(&train, validation.as_ref(), policy, privacy, epochs, rule)
        };
        let clip = || Clip::by_layer(4.0, self.network.groups()).map(Privacy::Clipped);
        let private = run(policy, clip()?, None, Some(rho(BUDGET)?))?;
        // An example can move two layers: noise for one of them is that of a multiplier smaller by √2. A hair more than twice: rounded
        // multipliers must fit as often.
        let twice = rho(2.0 * BUDGET * (1.0 + 1e-9))?;
        let printed_noise = run((line.policy)(std::f64::consts::SQRT_2)?, clip()?, None, Some(twice))?;
        let epochs = private.epochs;
        #[expect(clippy::cast_precision_loss, reason = "some epochs")]
        let uniform = (epochs as f64 / (2.0 * BUDGET)).sqrt() * (1.0 + 1e-9);
        let uniform = Policy::Schedule(Schedule::Uniform { initial: noise(uniform)? });
        Ok(Outcomes {
            private,
            printed_noise,
            not_private: run(uniform.clone(), Privacy::None, Some(epochs), None)?,
            uniform: run(uniform, clip()?, Some(epochs), Some(rho(BUDGET)?))?,
        })
    }

    fn run(
        &self,
        train: &Examples,
        validation: Option<&Public>,
        policy: Policy,
        privacy: Privacy,
        epochs: Option<u64>,
        rule: Option<Zcdp>,
    ) -> anyhow::Result<Outcome> {
        let recipe = Recipe {
            network: &self.network,
            train,
            test: &self.test,
            validation,
            batching: Batching::Shuffled { size: 600 },
            neighbors: Neighbors::ZeroOut,
            privacy,
            policy,
            momentum: 0.0,
            learning_rate: 0.05,
            stop: Stop { epochs, ..Stop::default() },
        };
        let marks = recipe.run(rule, &[], self.seed)?;
        let last = marks.last().context("a run ends somewhere")?;
        Ok(Outcome { epochs: last.epochs, training: last.train, testing: last.test })
    }
}

impl Line {
    fn row(&self, trials: &[Outcomes]) -> Vec<String> {
        let accuracies = |of: fn(&Outcomes) -> &Outcome| {
            let part = |value: fn(&Outcome) -> f64| trials.iter().map(|trial| value(of(trial))).collect::<Vec<_>>();
            format!("{}/{}", summary(&part(|outcome| outcome.training)), summary(&part(|outcome| outcome.testing)))
        };
        let total: u64 = trials.iter().map(|trial| trial.private.epochs).sum();
        #[expect(clippy::cast_precision_loss, reason = "some epochs")]
        let epochs = format!("{:.2}", total as f64 / trials.len() as f64);
        vec![
            self.name.into(),
            self.epochs.into(),
            epochs.trim_end_matches(".00").into(),
            self.private.into(),
            accuracies(|trial| &trial.private),
            accuracies(|trial| &trial.printed_noise),
            self.not_private.into(),
            accuracies(|trial| &trial.not_private),
            self.uniform.into(),
            accuracies(|trial| &trial.uniform),
        ]
    }
}

fn mnist(data: &Path, trials: Trials) -> anyhow::Result<Table> {
    let split = Set::Mnist.load(data)?;
    let bar = bar(TABLE_II.len() as u64 * trials.count, "[Y] mnist")?;
    let mut found: Vec<Vec<Outcomes>> = TABLE_II.iter().map(|_| Vec::new()).collect();
    for seed in trials.seeds() {
        let task = Task::new(&split, seed)?;
        for (line, found) in TABLE_II.iter().zip(&mut found) {
            found.push(task.outcomes(line)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(Table {
        title: "[Y] Table II: MNIST, rho 0.78125, 60 private components, 60-1000-10".into(),
        about: format!(
            "{trials}; training/testing accuracy in percent. Shuffled batches of 600, zero-out neighbors, clipped to 4 a \
             layer: our noise is larger by the root of two layers, because that is what one example can do (E12)."
        ),
        header: vec![
            "schedule",
            "epochs, paper",
            "epochs, ours",
            "private, paper",
            "private, ours",
            "with the paper's noise, at twice the rho",
            "not private, paper",
            "not private, ours",
            "uniform of as many epochs, paper",
            "uniform of as many epochs, ours",
        ],
        rows: TABLE_II.iter().zip(&found).map(|(line, found)| line.row(found)).collect(),
        figures: Vec::new(),
    })
}

type MakePolicy = fn() -> anyhow::Result<Policy>;

/// Fig. 14's policies, and what it shows of them.
const FIGURE_14: [(&str, MakePolicy, &str); 3] = [
    ("uniform 25", || scheduled(Schedule::Uniform { initial: noise(25.0)? }), "about 0.92"),
    (
        "exponential 30, 0.001",
        || scheduled(Schedule::Exponential { initial: noise(30.0)?, rate: 0.001 }),
        "3 % above uniform",
    ),
    (
        "validation 35, 0.99, 50, 0.01, 1",
        || Ok(Policy::Validation(ValidationDecay::new(noise(35.0)?, 0.99, 0.01, 50, 1)?.into())),
        "1.8 % above uniform",
    ),
];

/// Fig. 14: 560 training and 123 testing examples, three hidden layers, full batches, ρ = 0.4.
fn cancer(data: &Path, trials: Trials) -> anyhow::Result<Table> {
    let split = Set::Cancer.load(data)?;
    let network = known::perceptron(split.train.shape(), &[10, 20, 10], Function::Relu, 2);
    let public = Public::declare(split.test.clone());
    let mut rows = Vec::new();
    for (name, policy, paper) in FIGURE_14 {
        let (mut training, mut testing, mut epochs) = (Vec::new(), Vec::new(), 0);
        for seed in trials.seeds() {
            let recipe = Recipe {
                network: &network,
                train: &split.train,
                test: &split.test,
                validation: Some(&public),
                batching: Batching::Full,
                neighbors: Neighbors::AddRemove,
                privacy: Privacy::Clipped(Clip::whole(4.0)?),
                policy: policy()?,
                momentum: 0.0,
                learning_rate: 0.05,
                stop: Stop::default(),
            };
            let marks = recipe.run(Some(rho(0.4)?), &[], seed)?;
            if let Some(last) = marks.last() {
                training.push(last.train);
                testing.push(last.test);
                epochs = last.epochs;
            }
        }
        rows.push(vec![name.to_owned(), epochs.to_string(), paper.to_owned(), summary(&training), summary(&testing)]);
    }
    Ok(Table {
        title: "[Y] Fig. 14: Breast Cancer Wisconsin, rho 0.4".into(),
        about: format!(
            "{trials}; accuracy in percent. The paper prints a figure only, and neither clip norm nor learning rate: here 4 \
             and 0.05. Not private it reports 0.96."
        ),
        header: vec!["schedule", "epochs", "paper", "training, ours", "testing, ours"],
        rows,
        figures: Vec::new(),
    })
}
