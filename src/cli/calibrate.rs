//! `paygo calibrate`: the least noise, most steps, largest sampling probability or most epochs for a target.

use super::arguments::{CountArgument, Decimal, delta};
use super::output::{json_number, print, print_json, shown_fine, shown_up};
use super::unknown::{Sought, UnknownPlan};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use paygo_accounting::calibrate::{
    Calibrated, CalibratedCount, CalibrationError, Target, TargetCost, largest_sampling_probability, least_noise,
    most_count, most_repeats, on_grid,
};
use paygo_accounting::cost::{Bound, Cost};
use paygo_accounting::mechanism::{BallsAndBinsEpoch, Gaussian, Mechanism, PoissonSampledGaussian, Single};
use paygo_accounting::params::{Count, Epsilon, Neighbors, NoiseMultiplier, SamplingProbability};
use paygo_accounting::wire::{Number, Side};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    paygo calibrate noise --epsilon 3 --delta 1e-5 --steps 14062 \\\n      \
    --sampling-probability 0.0042667\n  \
    paygo calibrate noise --epsilon 1 --delta 1e-6 --steps 100\n  \
    paygo calibrate steps --epsilon 3 --delta 1e-5 --noise-multiplier 1.1 \\\n      \
    --sampling-probability 0.01\n  \
    paygo calibrate epochs --epsilon 3 --delta 1e-5 --noise-multiplier 6 \\\n      \
    --batches 100\n  \
    paygo calibrate plan examples/shuffled.toml --epsilon 3 --delta 1e-5\n\n\
    Neighbors are add-remove (one record more or less); with `calibrate plan` they are the plan's. The answer is for \
    a plan fixed in advance, unless its basis says FullyAdaptive. See docs/planning.md.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Find the least noise multiplier
    Noise {
        #[command(flatten)]
        target: TargetArguments,
        /// Number of steps, each a noisy sum: 1 to 2^53
        #[arg(long)]
        steps: CountArgument,
        /// Poisson sampling probability of each step [default: no sampling]
        #[arg(long, allow_hyphen_values = true)]
        sampling_probability: Option<Decimal>,
        /// Answer in JSON
        #[arg(long)]
        json: bool,
    },
    /// Find the largest number of steps
    Steps {
        #[command(flatten)]
        target: TargetArguments,
        /// Noise multiplier: standard deviation of the noise over the sensitivity
        #[arg(long, allow_hyphen_values = true)]
        noise_multiplier: Decimal,
        /// Poisson sampling probability of each step [default: no sampling]
        #[arg(long, allow_hyphen_values = true)]
        sampling_probability: Option<Decimal>,
        /// Answer in JSON
        #[arg(long)]
        json: bool,
    },
    /// Find the largest Poisson sampling probability
    SamplingProbability {
        #[command(flatten)]
        target: TargetArguments,
        /// Noise multiplier: standard deviation of the noise over the sensitivity
        #[arg(long, allow_hyphen_values = true)]
        noise_multiplier: Decimal,
        /// Number of steps, each a noisy sum: 1 to 2^53
        #[arg(long)]
        steps: CountArgument,
        /// Answer in JSON
        #[arg(long)]
        json: bool,
    },
    /// Find the one number of a plan that is written as "?".
    ///
    /// Every mechanism is allowed. The number may be count, noise_multiplier, noise_multipliers, noise_std, scale,
    /// sampling_probability, batch_fraction, epsilon, rho or mu.
    Plan {
        /// The plan, in TOML or JSON; - reads standard input
        #[arg(value_name = "PLAN")]
        plan: PathBuf,
        #[command(flatten)]
        target: TargetArguments,
        /// Answer in JSON
        #[arg(long)]
        json: bool,
    },
    /// Find the largest number of epochs.
    ///
    /// Say what an epoch is: --sampling-probability for Poisson batches, or --batches for batches to which each record
    /// is assigned at random.
    Epochs {
        #[command(flatten)]
        target: TargetArguments,
        /// Noise multiplier: standard deviation of the noise over the sensitivity
        #[arg(long, allow_hyphen_values = true)]
        noise_multiplier: Decimal,
        /// Poisson sampling probability q; an epoch has 1/q batches, rounded up
        #[arg(long, allow_hyphen_values = true, conflicts_with = "batches")]
        sampling_probability: Option<Decimal>,
        /// Public number of batches per epoch; each record goes to one at random
        #[arg(long)]
        batches: Option<CountArgument>,
        /// Answer in JSON
        #[arg(long)]
        json: bool,
    },
}

/// An (ε, δ) or a ρ to be met.
#[derive(Args, Clone, Debug)]
struct TargetArguments {
    /// Target epsilon, at least 0; needs --delta
    #[arg(long, allow_hyphen_values = true)]
    epsilon: Option<Decimal>,
    /// Target delta, 0 <= delta < 1; needs --epsilon
    #[arg(long, allow_hyphen_values = true)]
    delta: Option<Decimal>,
    /// Target rho of zCDP, instead of --epsilon and --delta
    #[arg(long, allow_hyphen_values = true, conflicts_with_all = ["epsilon", "delta"])]
    rho: Option<Decimal>,
    /// Also use the privacy-loss distribution: slower, and better with sampling.
    ///
    /// It takes seconds instead of milliseconds.
    #[arg(long, conflicts_with = "rho")]
    tight: bool,
}

impl TargetArguments {
    fn target(&self) -> anyhow::Result<Target> {
        match (&self.epsilon, &self.delta, &self.rho) {
            (Some(epsilon), Some(text), None) => {
                let (epsilon, delta) = (epsilon.down_as(Epsilon::new)?, delta(text)?);
                let make = if self.tight { Target::EpsilonDeltaTight } else { Target::EpsilonDelta };
                Ok(make(epsilon, delta))
            }
            (None, None, Some(rho)) => Ok(Target::Rho(rho.number().amount_down("rho")?)),
            _ => anyhow::bail!("give the target: --epsilon and --delta, or --rho"),
        }
    }
}

/// One step: Gaussian noise, on a Poisson sample if a probability is given.
fn step(noise: f64, probability: Option<f64>) -> Result<Cost, CalibrationError> {
    let noise_multiplier = NoiseMultiplier::new(noise)?;
    let single = match probability {
        None => Single::Gaussian(Gaussian { noise_multiplier }),
        Some(q) => Single::PoissonSampledGaussian(PoissonSampledGaussian {
            sampling_probability: SamplingProbability::new(q)?,
            noise_multiplier,
        }),
    };
    Ok(Cost::of(&Mechanism::Single(single), Neighbors::AddRemove)?)
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (target, sampling) = match &arguments.what {
        What::Noise { target, sampling_probability, .. }
        | What::Steps { target, sampling_probability, .. }
        | What::Epochs { target, sampling_probability, .. } => (target, sampling_probability.is_some()),
        What::SamplingProbability { target, .. } => (target, true),
        What::Plan { target, .. } => (target, false),
    };
    if sampling && target.rho.is_some() {
        anyhow::bail!("sampling does not lower rho: zCDP is not amplified\nhint: give --epsilon and --delta");
    }
    answer(arguments).map_err(|error| match (error.downcast_ref(), &target.delta) {
        (Some(CalibrationError::Unreachable { .. }), Some(delta)) if delta.down() <= 0.0 => {
            error.context("Gaussian noise never reaches delta = 0")
        }
        (Some(CalibrationError::NotEvenOne { cost, .. }), _) => {
            let typed = target.epsilon.as_ref().or(target.rho.as_ref()).map_or("not given", Decimal::as_str);
            anyhow::anyhow!("not even one step meets the target: it costs {}, the target is {typed}", shown_up(*cost))
        }
        _ => error,
    })
}

fn answer(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Plan { plan, target, json } => unknown(&UnknownPlan::read(plan)?, target, *json),
        What::Noise { target, steps, sampling_probability, json } => {
            let probability = sampling_probability.as_ref().map(Decimal::up);
            let found = least_noise(target.target()?, |noise| Ok(step(noise, probability)?.repeat(steps.0.get())?))?;
            show_real("noise_multiplier", &found, target, Neighbors::AddRemove, *json)
        }
        What::SamplingProbability { target, noise_multiplier, steps, json } => {
            let noise = noise_multiplier.down();
            let found =
                largest_sampling_probability(target.target()?, |q| Ok(step(noise, Some(q))?.repeat(steps.0.get())?))?;
            show_real("sampling_probability", &found, target, Neighbors::AddRemove, *json)
        }
        What::Steps { target, noise_multiplier, sampling_probability, json } => {
            let one = step(noise_multiplier.down(), sampling_probability.as_ref().map(Decimal::up))?;
            let found = most_repeats(target.target()?, &one)?;
            show_count("steps", &found, target, Neighbors::AddRemove, Map::new(), *json)
        }
        What::Epochs { target, noise_multiplier, sampling_probability, batches, json } => {
            let batches = batches.as_ref().map(|batches| batches.0);
            let (epoch, steps) = epoch(noise_multiplier.down(), sampling_probability.as_ref(), batches)?;
            let found = most_repeats(target.target()?, &epoch)?;
            let extra = steps.map(|steps| ("steps_per_epoch".to_owned(), Value::from(steps))).into_iter().collect();
            show_count("epochs", &found, target, Neighbors::AddRemove, extra, *json)
        }
    }
}

/// A bound as the double that is called like its exact amount, where there is one: 0.3 and not 0.30000000000000004.
fn shortest(bound: &Bound) -> f64 {
    let amount = Number::of(bound.amount, Side::Up).nearest("rho");
    amount.map_or(bound.float, |amount| amount.min(bound.float))
}

/// The one unknown of a plan.
fn unknown(plan: &UnknownPlan, target: &TargetArguments, json: bool) -> anyhow::Result<ExitCode> {
    match plan.sought {
        Sought::Count => {
            let found = most_count(target.target()?, |count| plan.cost_at(&count.to_string()))?;
            let name = if json { "value" } else { "count" };
            show_count(name, &found, target, plan.neighbors, Map::new(), json)
        }
        Sought::Real(name, sense, range) => {
            let cost_at = |value: f64| plan.cost_at(&value.to_string());
            let found = on_grid(name, target.target()?, range, sense, cost_at)?;
            // The number itself may be an epsilon or a rho, as its price is.
            let name = if json { "value" } else { name };
            show_real(name, &found, target, plan.neighbors, json)
        }
    }
}

/// One epoch, and how many Poisson batches it has where it has those.
fn epoch(noise: f64, probability: Option<&Decimal>, batches: Option<Count>) -> anyhow::Result<(Cost, Option<u64>)> {
    if let Some(q) = probability {
        let q = q.up_as(SamplingProbability::new)?.get();
        anyhow::ensure!(
            q > 0.0,
            "sampling_probability = 0 never fills an epoch; expected 0 < sampling_probability <= 1"
        );
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by Count")]
        let steps = Count::new((1.0 / q).ceil() as u64)?.get();
        return Ok((step(noise, Some(q))?.repeat(steps)?, Some(steps)));
    }
    let batches = batches.context("say what an epoch is: --sampling-probability, or --batches")?;
    let epoch = BallsAndBinsEpoch { batches, noise_multiplier: NoiseMultiplier::new(noise)? };
    Ok((Cost::of(&Mechanism::Single(Single::BallsAndBinsEpoch(epoch)), Neighbors::AddRemove)?, None))
}

/// The price in the target's currency, as JSON fields.
fn price_json(price: &TargetCost, target: &TargetArguments, neighbors: Neighbors) -> Map<String, Value> {
    let mut object = Map::new();
    match price {
        TargetCost::Epsilon(row) => {
            object.insert("epsilon".into(), json_number(row.epsilon.get()));
            // δ was read down; the promise holds at the δ typed.
            object
                .insert("delta".into(), target.delta.as_ref().map_or(Value::Null, |delta| json_number(delta.typed())));
            object.insert("method".into(), Value::from(row.method));
            object.insert("basis".into(), Value::from(row.basis.word()));
            object.insert("neighbors".into(), Value::from(neighbors.word()));
        }
        TargetCost::Rho(rho) => {
            object.insert("rho".into(), json_number(shortest(rho)));
        }
    }
    object
}

fn price_text(price: &TargetCost, target: &TargetArguments) -> String {
    match price {
        TargetCost::Epsilon(row) => {
            let delta = target.delta.as_ref().map_or(f64::NAN, Decimal::typed);
            let (epsilon, basis) = (shown_fine(row.epsilon.get()), row.basis.word());
            format!("epsilon {epsilon} at delta {delta:e} ({}, {basis})", row.method)
        }
        TargetCost::Rho(rho) => format!("rho {}", shown_fine(shortest(rho))),
    }
}

fn show_real(
    name: &str,
    found: &Calibrated,
    target: &TargetArguments,
    neighbors: Neighbors,
    json: bool,
) -> anyhow::Result<ExitCode> {
    if json {
        let mut object = price_json(&found.price, target, neighbors);
        object.insert(name.into(), json_number(found.value));
        let next = found.next.as_ref().map(|(value, price)| {
            let mut next = price_json(price, target, neighbors);
            next.insert(name.into(), json_number(*value));
            Value::Object(next)
        });
        object.insert("next".into(), next.unwrap_or(Value::Null));
        print_json(&Value::Object(object))?;
    } else {
        print(&real_text(name, found, target))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer for people: what meets the target, and beside it what does not.
fn real_text(name: &str, found: &Calibrated, target: &TargetArguments) -> String {
    let yes = format!("{name} {:<14} meets the target: {}", found.value, price_text(&found.price, target));
    match &found.next {
        Some((value, price)) => format!("{yes}\n{name} {value:<14} does not:         {}", price_text(price, target)),
        None => format!("{yes}\nevery value in range meets the target"),
    }
}

/// The answer to `calibrate noise`, as the demo shows it.
pub(crate) fn noise_text(epsilon: &str, delta: &str, steps: u64, probability: f64) -> anyhow::Result<String> {
    let parse = |text: &str| text.parse::<Decimal>().map_err(anyhow::Error::msg);
    let target =
        TargetArguments { epsilon: Some(parse(epsilon)?), delta: Some(parse(delta)?), rho: None, tight: false };
    let found = least_noise(target.target()?, |noise| Ok(step(noise, Some(probability))?.repeat(steps)?))?;
    Ok(real_text("noise_multiplier", &found, &target))
}

fn show_count(
    name: &str,
    found: &CalibratedCount,
    target: &TargetArguments,
    neighbors: Neighbors,
    extra: Map<String, Value>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    if json {
        let mut object = price_json(&found.price, target, neighbors);
        object.insert(name.into(), Value::from(found.value));
        object.extend(extra);
        let next = found.next.as_ref().map(|price| {
            let mut next = price_json(price, target, neighbors);
            next.insert(name.into(), Value::from(found.value + 1));
            Value::Object(next)
        });
        object.insert("next".into(), next.unwrap_or(Value::Null));
        print_json(&Value::Object(object))?;
    } else {
        print(&format!("{name} {}  meet the target: {}", found.value, price_text(&found.price, target)))?;
        match &found.next {
            Some(price) => print(&format!("one more does not: {}", price_text(price, target)))?,
            None => print("larger numbers were not tried")?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
