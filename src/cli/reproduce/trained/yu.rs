//! \[Y\] Table II on MNIST, and the Cancer results of Fig. 14.

use super::{Recipe, Study, Table, Trials, bar, rho, summary};
use paygo_accounting::filter::{Filter, Zcdp};
use paygo_accounting::params::{Neighbors, NoiseMultiplier};
use paygo_accounting::schedule::{Schedule, ValidationDecay};
use paygo_noise::Source;
use paygo_training::batching::Batching;
use paygo_training::data::sets::Set;
use paygo_training::data::{Examples, Public};
use paygo_training::gate::FilterGate;
use paygo_training::gradient::Clip;
use paygo_training::model::{Function, Model as _, Network, known};
use paygo_training::pca::principal_components;
use paygo_training::policy::Policy;
use paygo_training::run::{Privacy, Stop};
use std::path::Path;

pub(in crate::cli::reproduce) const STUDY: Study = Study { parts: &["cancer", "mnist"], tables };

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

/// A column: its name, its policy, the same with the paper's noise, what the paper reports.
struct Column {
    name: &'static str,
    policy: Policy,
    as_printed: Policy,
    paper: [&'static str; 5],
}

const BUDGET: f64 = 0.781_25;

/// The schedules of Table II, with their noise multipliers divided by a number.
fn policies(divisor: f64) -> anyhow::Result<[Policy; 6]> {
    let noise = |multiplier: f64| noise(multiplier / divisor);
    let initial = noise(10.0)?;
    let [uniform, time, step, exponential, polynomial] = [
        Schedule::Uniform { initial: noise(8.0)? },
        Schedule::Time { initial, rate: 0.05 },
        Schedule::Step { initial, rate: 0.6, period: 10 },
        Schedule::Exponential { initial, rate: 0.01 },
        Schedule::Polynomial { initial, rate: 3.0, last: noise(2.0)?, period: 100 },
    ]
    .map(Policy::Schedule);
    let validation = Policy::Validation(ValidationDecay::new(initial, 0.7, 0.01, 10, 5)?.into());
    Ok([uniform, time, step, exponential, polynomial, validation])
}

fn columns() -> anyhow::Result<Vec<Column>> {
    let printed = [
        ("uniform 8", ["100", "0.918", "0.919", "0.978/0.970", "-"]),
        ("time 0.05", ["38", "0.934", "0.931", "0.959/0.957", "0.922/0.925"]),
        ("step 0.6, 10", ["31", "0.928", "0.929", "0.955/0.954", "0.921/0.925"]),
        ("exponential 0.01", ["71", "0.934", "0.929", "0.971/0.965", "0.922/0.925"]),
        ("polynomial 3, 2, 100", ["44", "0.930", "0.932", "0.963/0.959", "0.925/0.929"]),
        ("validation 0.7, 5, 0.01, 10", ["64", "0.930", "0.930", "0.97/0.964", "0.924/0.926"]),
    ];
    // An example can move two layers: noise for one of them is that of a multiplier smaller by √2.
    let both = policies(1.0)?.into_iter().zip(policies(std::f64::consts::SQRT_2)?);
    let columns = printed.into_iter().zip(both);
    Ok(columns.map(|((name, paper), (policy, as_printed))| Column { name, policy, as_printed, paper }).collect())
}

fn mnist(data: &Path, trials: Trials) -> anyhow::Result<Table> {
    let split = Set::Mnist.load(data)?;
    let columns = columns()?;
    let bar = bar(columns.len() as u64 * trials.count, "[Y] mnist")?;
    let mut found: Vec<[Vec<f64>; 9]> = columns.iter().map(|_| Default::default()).collect();
    for trial in 0..trials.count {
        let seed = trials.seed + trial;
        // The principal components are charged; the paper leaves their rho, 1/512, out of its total (E13).
        let mut gate = FilterGate::new(Filter::new(rho(1.0 / 512.0)?, Neighbors::ZeroOut));
        let mut source = Source::insecure_from_seed(seed);
        let projection = principal_components(&split.train, 60, noise(16.0)?, &mut gate, &mut source)?;
        let (train, test) = (projection.apply(&split.train), projection.apply(&split.test));
        let network = known::perceptron(train.shape(), &[1000], Function::Relu, 10);
        for (column, found) in columns.iter().zip(&mut found) {
            // Only the validation schedule sets examples aside.
            let (part, validation) = match &column.policy {
                Policy::Validation(_) => {
                    let indices: Vec<usize> = (0..train.len()).collect();
                    (train.select(&indices[..55_000]), Some(Public::declare(train.select(&indices[55_000..]))))
                }
                Policy::Schedule(_) | Policy::Adaptive(_) | Policy::FineTune(_) => (train.clone(), None),
            };
            let one = |policy: &Policy, privacy: Privacy, epochs: Option<u64>, rule: Option<Zcdp>| {
                run(&network, &part, &test, validation.as_ref(), policy, privacy, epochs, rule, seed)
            };
            let clip = || Clip::by_layer(4.0, network.groups()).map(Privacy::Clipped);
            let (epochs, training, testing) = one(&column.policy, clip()?, None, Some(rho(BUDGET)?))?;
            // A hair more than twice: rounded multipliers must fit as often.
            let twice = rho(2.0 * BUDGET * (1.0 + 1e-9))?;
            let (_, their_training, their_testing) = one(&column.as_printed, clip()?, None, Some(twice))?;
            #[expect(clippy::cast_precision_loss, reason = "some epochs")]
            let uniform = (epochs as f64 / (2.0 * BUDGET)).sqrt() * (1.0 + 1e-9);
            let uniform = Policy::Schedule(Schedule::Uniform { initial: noise(uniform)? });
            let (_, free_training, free_testing) = one(&uniform, Privacy::None, Some(epochs), None)?;
            let (_, same_training, same_testing) = one(&uniform, clip()?, Some(epochs), Some(rho(BUDGET)?))?;
            #[expect(clippy::cast_precision_loss, reason = "some epochs")]
            let values = [
                epochs as f64 / 100.0,
                training,
                testing,
                free_training,
                free_testing,
                same_training,
                same_testing,
                their_training,
                their_testing,
            ];
            found.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let rows = columns
        .iter()
        .zip(&found)
        .map(|(column, found)| {
            let pair = |a: usize, b: usize| format!("{}/{}", summary(&found[a]), summary(&found[b]));
            let paper = column.paper;
            [
                column.name.to_owned(),
                paper[0].into(),
                summary(&found[0]).split(' ').next().unwrap_or("").trim_end_matches(".00").to_owned(),
            ]
            .into_iter()
            .chain([
                format!("{}/{}", paper[1], paper[2]),
                pair(1, 2),
                pair(7, 8),
                paper[3].into(),
                pair(3, 4),
                paper[4].into(),
                pair(5, 6),
            ])
            .collect()
        })
        .collect();
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
        rows,
        figures: Vec::new(),
    })
}

#[expect(clippy::too_many_arguments, reason = "a run of a table")]
fn run(
    network: &Network,
    train: &Examples,
    test: &Examples,
    validation: Option<&Public>,
    policy: &Policy,
    privacy: Privacy,
    epochs: Option<u64>,
    rule: Option<Zcdp>,
    seed: u64,
) -> anyhow::Result<(u64, f64, f64)> {
    let recipe = Recipe {
        network,
        train,
        test,
        validation,
        batching: Batching::Shuffled { size: 600 },
        neighbors: Neighbors::ZeroOut,
        privacy,
        policy: policy.clone(),
        momentum: 0.0,
        learning_rate: 0.05,
        stop: Stop { epochs, ..Stop::default() },
    };
    let marks = recipe.run(rule, &[], seed)?;
    let last = marks.last().ok_or_else(|| anyhow::anyhow!("a run ends somewhere"))?;
    Ok((last.epochs, last.train, last.test))
}

/// Fig. 14: 560 training and 123 testing examples, three hidden layers, full batches, ρ = 0.4.
fn cancer(data: &Path, trials: Trials) -> anyhow::Result<Table> {
    let split = Set::Cancer.load(data)?;
    let network = known::perceptron(split.train.shape(), &[10, 20, 10], Function::Relu, 2);
    let scheduled = |schedule: Schedule| schedule.checked().map(Policy::Schedule);
    let public = Public::declare(split.test.clone());
    let policies = [
        ("uniform 25", scheduled(Schedule::Uniform { initial: noise(25.0)? })?, "about 0.92"),
        (
            "exponential 30, 0.001",
            scheduled(Schedule::Exponential { initial: noise(30.0)?, rate: 0.001 })?,
            "3 % above uniform",
        ),
        (
            "validation 35, 0.99, 50, 0.01, 1",
            Policy::Validation(ValidationDecay::new(noise(35.0)?, 0.99, 0.01, 50, 1)?.into()),
            "1.8 % above uniform",
        ),
    ];
    let mut rows = Vec::new();
    for (name, policy, paper) in policies {
        let (mut training, mut testing, mut epochs) = (Vec::new(), Vec::new(), 0);
        for trial in 0..trials.count {
            let recipe = Recipe {
                network: &network,
                train: &split.train,
                test: &split.test,
                validation: Some(&public),
                batching: Batching::Full,
                neighbors: Neighbors::AddRemove,
                privacy: Privacy::Clipped(Clip::whole(4.0)?),
                policy: policy.clone(),
                momentum: 0.0,
                learning_rate: 0.05,
                stop: Stop::default(),
            };
            let marks = recipe.run(Some(rho(0.4)?), &[], trials.seed + trial)?;
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
