//! How many examples a second are trained on, privately and not, for four workloads: one JSON line each.
//!
//! `cargo run --release --example training_speed [WORKLOAD [THREADS]]`; `bench/training.py` runs it beside the peers.
#![expect(clippy::print_stdout, reason = "an example prints")]

use paygo::accounting::filter::{Filter, Zcdp};
use paygo::accounting::params::{Neighbors, NoiseMultiplier};
use paygo::accounting::schedule::Schedule;
use paygo::noise::Source;
use paygo::numeric::Amount;
use paygo::training::batching::{Batching, Sampler};
use paygo::training::data::{Examples, Shape};
use paygo::training::gate::{FilterGate, Gate};
use paygo::training::gradient::Clip;
use paygo::training::model::{Function, Model, Network, known};
use paygo::training::noise::standard_normals;
use paygo::training::optimizer::{Method, Optimizer, Rate};
use paygo::training::policy::Policy;
use paygo::training::run::{Privacy, Run, Setup, Stop};
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

/// Private and not, in turns: so many of them, so many seconds each, after one round that is not counted. The machine's moods then
/// meet both.
const TURNS: usize = 10;
const SECONDS: f64 = 0.3;

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1);
    if let Some(threads) = std::env::args().nth(2) {
        rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
    }
    let perceptron = |inputs: usize, hidden: &[usize], classes| {
        known::perceptron(Shape::vector(inputs), hidden, Function::Relu, classes)
    };
    let shuffled = |size| Batching::Shuffled { size };
    let workloads: [(&str, Network, usize, Batching); 4] = [
        ("mlp-784", perceptron(784, &[1000], 10), 6000, shuffled(600)),
        ("mlp-60", perceptron(60, &[1000], 10), 6000, shuffled(600)),
        ("cnn", known::mnist().ok_or("it fits")?, 5120, shuffled(512)),
        ("regression", perceptron(105, &[], 2), 32_561, Batching::Full),
    ];
    for (name, network, count, batching) in workloads {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let examples = made_up(network.input(), network.classes(), count)?;
        let mut runs = [start(&network, &examples, batching, true)?, start(&network, &examples, batching, false)?];
        let mut times = [Times::default(), Times::default()];
        for _ in 0..TURNS {
            for (run, times) in runs.iter_mut().zip(&mut times) {
                times.measure(run)?;
            }
        }
        for (mode, times) in ["private", "not private"].into_iter().zip(times) {
            let (speed, noise) = (times.examples / times.seconds, times.noise / times.seconds);
            println!(
                "{{\"workload\": \"{name}\", \"mode\": \"{mode}\", \"samples_per_second\": {speed:.0}, \"noise_fraction\": {noise:.4}}}"
            );
        }
    }
    Ok(())
}

fn made_up(shape: Shape, classes: usize, count: usize) -> Result<Examples, Box<dyn Error>> {
    let mut numbers = vec![0.0; count * shape.len()];
    standard_normals(&mut Source::from_operating_system()?, &mut numbers);
    #[expect(clippy::cast_possible_truncation, reason = "single precision is what inputs are in")]
    let inputs = numbers.iter().map(|&x| x as f32).collect();
    let classes_u32 = u32::try_from(classes)?;
    let labels = (0..u32::try_from(count)?).map(|index| index % classes_u32).collect();
    Ok(Examples::new(shape, classes, inputs, labels)?)
}

fn start<'a>(
    network: &'a Network,
    examples: &'a Examples,
    batching: Batching,
    private: bool,
) -> Result<Run<'a, Network>, Box<dyn Error>> {
    let (neighbors, size) = (Neighbors::ZeroOut, examples.len() as u64);
    let plan = Setup {
        model: network,
        examples,
        public: None,
        sampler: Sampler::new(batching, neighbors, size, examples.len())?,
        privacy: if private { Privacy::Clipped(Clip::whole(1.0)?) } else { Privacy::None },
        policy: Policy::Schedule(Schedule::Uniform { initial: NoiseMultiplier::new(1.0)? }),
        optimizer: Optimizer::new(Method::Sgd { momentum: 0.0 }, Rate::Constant(1e-3), network.parameters())?,
        stop: Stop::default(),
    };
    let rule = Zcdp::with_limit(Amount::from_decimal_down("1e9").ok_or("a decimal")?, Amount::ZERO)?;
    let gate = Box::new(FilterGate::new(Filter::new(rule, neighbors))) as Box<dyn Gate>;
    let mut run = Run::new(plan, size, private.then_some(gate), None, Box::new(()), Source::from_operating_system()?)?;
    run.advance(&mut |_| ControlFlow::Continue(()))?;
    Ok(run)
}

/// How many examples were trained on in how many seconds, and how many of these went into noise and the release of the sum.
#[derive(Default)]
struct Times {
    examples: f64,
    seconds: f64,
    noise: f64,
}

impl Times {
    fn measure(&mut self, run: &mut Run<'_, Network>) -> Result<(), Box<dyn Error>> {
        let clock = Instant::now();
        while clock.elapsed().as_secs_f64() < SECONDS {
            run.advance(&mut |step| {
                #[expect(clippy::cast_precision_loss, reason = "some thousands")]
                let examples = step.expected as f64;
                self.examples += examples;
                self.noise += step.times.noise;
                ControlFlow::Continue(())
            })?;
        }
        self.seconds += clock.elapsed().as_secs_f64();
        Ok(())
    }
}
