//! \[L\] Section 5: policies that adapt noise and batch, and fine-tuning that stops early, on CIFAR-10.
//!
//! The paper trains a ResNet9 for hours on a GPU, and fine-tunes a ResNet18 that was trained on ImageNet. Here a network of two
//! convolutions, which two cores train in minutes, and a network trained before on the first five classes, which is then fine-tuned on
//! the other five: the question is whether adapting helps a given model, not how good the model is.

use super::{Study, Table, Trials, bar, summary};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Budget, Filter, Mixture};
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::{Delta, Epsilon, Neighbors, NoiseMultiplier};
use paygo_accounting::prior::Prior;
use paygo_accounting::schedule::Schedule;
use paygo_noise::Source;
use paygo_training::batching::{Batching, Sampler};
use paygo_training::data::sets::{Set, Split};
use paygo_training::data::{Examples, Shape};
use paygo_training::gate::{FilterGate, Gate};
use paygo_training::gradient::Clip;
use paygo_training::model::{Function, Model as _, Network, known};
use paygo_training::optimizer::{Method, Optimizer, Rate};
use paygo_training::policy::{Adaptive, FineTune, Lever, Policy, Progress};
use paygo_training::run::{AccuracyTarget, Privacy, Run, Setup, Stop, evaluate};
use std::ops::ControlFlow;
use std::path::Path;

const DELTA: f64 = 1e-6;
const BATCH: f64 = 512.0;

pub(in crate::cli::reproduce) const STUDY: Study = Study { key: "lecuyer", parts: &["policies", "early"], tables };

fn tables(data: &Path, trials: Trials, only: Option<&str>) -> anyhow::Result<Vec<Table>> {
    let split = Set::Cifar10.load(data)?;
    let mut tables = Vec::new();
    if only.is_none_or(|only| only == "policies") {
        tables.push(policies(&split, trials)?);
    }
    if only.is_none_or(|only| only == "early") {
        tables.push(early(&split, trials)?);
    }
    Ok(tables)
}

fn network(shape: Shape, classes: usize) -> anyhow::Result<Network> {
    let convolutions = [(16, 5, 2, 2), (32, 3, 1, 1)];
    let network = known::convolutional(shape, &convolutions, 2, 64, Function::Tanh, classes);
    network.ok_or_else(|| anyhow::anyhow!("the network fits the images"))
}

fn noise(multiplier: f64) -> anyhow::Result<NoiseMultiplier> {
    Ok(NoiseMultiplier::new(multiplier)?)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of examples")]
fn probability(batch: f64, examples: &Examples) -> f64 {
    batch / examples.len() as f64
}

/// The cost of some epochs with noise 1.
fn baseline(examples: &Examples, epochs: u64) -> anyhow::Result<Cost> {
    let q = probability(BATCH, examples);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "one over a probability")]
    let steps = (1.0 / q).round() as u64;
    let step = Cost::of(&Mechanism::poisson_sampled_gaussian(q, 1.0)?, Neighbors::AddRemove)?;
    Ok(step.repeat(steps * epochs)?)
}

/// The smallest ε, to two digits, for which a filter made for the plan admits all of it.
fn filter_for(plan: &Cost) -> anyhow::Result<(f64, Filter<Mixture>)> {
    for hundredths in 1..10_000u32 {
        let epsilon = f64::from(hundredths) / 100.0;
        let budget = Budget::new(Epsilon::new(epsilon)?, Delta::new(DELTA)?)?;
        if let Ok(rule) = Mixture::for_plan(budget, plan) {
            let mut filter = Filter::new(rule, Neighbors::AddRemove);
            if filter.request(plan)?.is_admitted() {
                return Ok((epsilon, Filter::new(filter.rule().clone(), Neighbors::AddRemove)));
            }
        }
    }
    anyhow::bail!("no epsilon below 100 covers the plan")
}

struct Outcome {
    epochs: u64,
    accuracy: f64,
    epsilon: f64,
}

/// One private run on Poisson batches.
#[expect(clippy::too_many_arguments, reason = "a run of a table")]
fn run(
    network: &Network,
    split: &Split,
    policy: Policy,
    filter: Filter<Mixture>,
    plan: &Cost,
    stop: Stop,
    start: Option<Vec<f32>>,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let size = split.train.len() as u64;
    let batching = Batching::Poisson { sampling_probability: probability(BATCH, &split.train) };
    let parts = Setup {
        model: network,
        examples: &split.train,
        public: None,
        sampler: Sampler::new(batching, Neighbors::AddRemove, size, split.train.len())?,
        privacy: Privacy::Clipped(Clip::whole(1.0)?),
        policy,
        optimizer: Optimizer::new(Method::Sgd { momentum: 0.9 }, Rate::Constant(0.05), network.parameters())?,
        stop,
    };
    let delta = Delta::new(DELTA)?;
    let odometer = Odometer::new(VilleMixture::new(delta, Prior::for_plan(plan, delta))?, Neighbors::AddRemove);
    let gate = Box::new(FilterGate::new(filter)) as Box<dyn Gate>;
    let source = Source::insecure_from_seed(seed);
    let mut run = Run::new(parts, size, Some(gate), Some(odometer), Box::new(()), source)?;
    if let Some(start) = start {
        run.start_from(start)?;
    }
    while run.advance(&mut |_| ControlFlow::Continue(()))?.is_none() {}
    let found = evaluate(network, run.parameters(), &split.test).expose();
    #[expect(clippy::cast_precision_loss, reason = "numbers of examples")]
    let accuracy = found.correct as f64 / found.count as f64;
    let epsilon = run.epsilon().map_or(f64::INFINITY, |epsilon| epsilon.get());
    Ok(Outcome { epochs: run.position().epoch, accuracy, epsilon })
}

fn policies(split: &Split, trials: Trials) -> anyhow::Result<Table> {
    let network = network(split.train.shape(), 10)?;
    let plan = baseline(&split.train, 100)?;
    let (epsilon, filter) = filter_for(&plan)?;
    let progress = Progress { period: 10, noise_std: 100.0, significance: 3.0 };
    let batch = Lever::Batch {
        sampling_probability: probability(BATCH, &split.train),
        step: probability(128.0, &split.train),
        least: probability(256.0, &split.train),
    };
    let policies = [
        ("baseline", Policy::Schedule(Schedule::Uniform { initial: noise(1.0)? }), "54.58 (53.40 to 55.24)"),
        (
            "adaptive batch",
            Policy::Adaptive(Adaptive::new(progress, noise(1.0)?, batch, 50)?),
            "55.56 (54.93 to 56.38)",
        ),
        (
            "adaptive noise",
            Policy::Adaptive(Adaptive::new(progress, noise(1.0)?, Lever::Noise { step: 0.1 }, 50)?),
            "57.22 (56.96 to 57.40)",
        ),
    ];
    let bar = bar(3 * trials.count, "[L] policies")?;
    let mut rows = Vec::new();
    for (name, policy, paper) in policies {
        let (mut accuracies, mut epochs) = (Vec::new(), Vec::new());
        for seed in trials.seeds() {
            let outcome = run(&network, split, policy.clone(), filter.clone(), &plan, Stop::default(), None, seed)?;
            accuracies.push(outcome.accuracy);
            epochs.push(outcome.epochs.to_string());
            bar.inc(1);
        }
        rows.push(vec![name.to_owned(), paper.to_owned(), summary(&accuracies), epochs.join(", ")]);
    }
    bar.finish_and_clear();
    Ok(Table {
        title: "[L] Section 5.1: CIFAR-10, policies within one budget".into(),
        about: format!(
            "{trials}; test accuracy in percent, until the filter refuses. The budget is what 100 epochs of the baseline cost: \
             epsilon {epsilon} at delta {DELTA}. Theirs is a ResNet9 on a GPU; ours has two convolutions, 44 thousand parameters."
        ),
        header: vec!["policy", "paper, mean (min to max)", "ours", "epochs, ours"],
        rows,
        figures: Vec::new(),
    })
}

/// The examples of five classes, as classes 0 to 4.
fn half(examples: &Examples, first: u32) -> anyhow::Result<Examples> {
    let indices: Vec<usize> =
        (0..examples.len()).filter(|&i| (first..first + 5).contains(&examples.label(i))).collect();
    let inputs = indices.iter().flat_map(|&i| examples.input(i)).copied().collect();
    let labels = indices.iter().map(|&i| examples.label(i) - first).collect();
    Ok(Examples::new(examples.shape(), 5, inputs, labels)?)
}

/// Not private, on public classes.
fn pretrained(network: &Network, examples: &Examples, seed: u64) -> anyhow::Result<Vec<f32>> {
    let size = examples.len() as u64;
    let batching = Batching::Poisson { sampling_probability: probability(128.0, examples) };
    let plan = Setup {
        model: network,
        examples,
        public: None,
        sampler: Sampler::new(batching, Neighbors::AddRemove, size, examples.len())?,
        privacy: Privacy::None,
        policy: Policy::Schedule(Schedule::Uniform { initial: noise(1.0)? }),
        optimizer: Optimizer::new(Method::Sgd { momentum: 0.9 }, Rate::Constant(0.02), network.parameters())?,
        stop: Stop { epochs: Some(15), ..Stop::default() },
    };
    let mut run = Run::new(plan, size, None, None, Box::new(()), Source::insecure_from_seed(seed))?;
    while run.advance(&mut |_| ControlFlow::Continue(()))?.is_none() {}
    Ok(run.parameters().to_vec())
}

fn early(split: &Split, trials: Trials) -> anyhow::Result<Table> {
    let before = Split { train: half(&split.train, 0)?, test: half(&split.test, 0)? };
    let after = Split { train: half(&split.train, 5)?, test: half(&split.test, 5)? };
    let network = network(split.train.shape(), 5)?;
    let plan = baseline(&after.train, 50)?;
    let (epsilon, filter) = filter_for(&plan)?;
    let progress = Progress { period: 1, noise_std: 100.0, significance: 3.0 };
    let target = AccuracyTarget { accuracy: 0.75, noise_std: 100.0, period: 1 };
    let policies = [
        ("noise 1", Policy::Schedule(Schedule::Uniform { initial: noise(1.0)? }), "6 epochs, epsilon 3.24"),
        (
            "from noise 2 down",
            Policy::FineTune(FineTune::new(progress, noise(2.0)?, 0.1, noise(0.8)?)?),
            "8 epochs, epsilon 1.45",
        ),
    ];
    let bar = bar(2 * trials.count, "[L] early stopping")?;
    let mut rows = Vec::new();
    for (name, policy, paper) in policies {
        let (mut epochs, mut spent, mut accuracies) = (Vec::new(), Vec::new(), Vec::new());
        for seed in trials.seeds() {
            let start = pretrained(&network, &before.train, seed)?;
            let stop = Stop { epochs: Some(50), target: Some(target), ..Stop::default() };
            let outcome = run(&network, &after, policy.clone(), filter.clone(), &plan, stop, Some(start), seed)?;
            epochs.push(outcome.epochs.to_string());
            spent.push(format!("{:.2}", outcome.epsilon));
            accuracies.push(outcome.accuracy);
            bar.inc(1);
        }
        rows.push(vec![name.to_owned(), paper.to_owned(), epochs.join(", "), spent.join(", "), summary(&accuracies)]);
    }
    bar.finish_and_clear();
    Ok(Table {
        title: "[L] Section 5.2: fine-tuning that stops when a charged test says so".into(),
        about: format!(
            "{trials}; trained before, not privately, on the first five classes, then privately on the other five until a noisy \
             count says {:.0} % of the training examples are right. Fifty epochs fixed in advance would cost epsilon {epsilon} at delta \
             {DELTA}. The paper's target is 80 % of ten classes with a ResNet18.",
            100.0 * target.accuracy
        ),
        header: vec!["policy", "paper", "epochs, ours", "odometer's epsilon, ours", "test accuracy, ours"],
        rows,
        figures: Vec::new(),
    })
}
