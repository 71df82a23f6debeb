//! `paygo schedule`: noise schedules, and how long a budget lasts.

use super::arguments::{Decimal, delta, svg_path};
use super::output::{json_number, print, print_json, shown_down, shown_up, table};
use anyhow::Context;
use clap::{Args, ValueEnum};
use paygo_accounting::convert::{Conversion, zcdp};
use paygo_accounting::params::{Epsilon, NoiseMultiplier, Rho};
use paygo_accounting::schedule::{MAX_EPOCHS, Schedule};
use paygo_report::{LineChart, Series};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// The same noise in every epoch
    Uniform,
    /// initial / (1 + rate·t)
    Time,
    /// initial · e^(−rate·t)
    Exponential,
    /// initial · rate^⌊t/period⌋
    Step,
    /// (initial − end)·(1 − t/period)^rate + end
    Polynomial,
}

#[derive(Args)]
#[command(after_help = "An epoch is one pass over disjoint batches. It costs rho = 1/(2·noise²) in zCDP. Give the \
    budget as --rho, or as --epsilon and --delta.\n\n\
    Exit codes: 0 done, 1 not even one epoch fits, 2 something was wrong.\n\n\
    Examples:\n  \
    paygo schedule exponential --initial 10 --rate 0.01 --rho 0.78125\n  \
    paygo schedule exponential --initial 10 --epochs 70 \\\n      \
    --rho 0.78125  # finds the rate")]
pub(crate) struct Arguments {
    /// Shape of the schedule; t is the epoch, from 0
    #[arg(value_enum)]
    kind: Kind,
    /// Noise multiplier of epoch 0, more than 0
    #[arg(long, allow_hyphen_values = true)]
    initial: Decimal,
    /// Decay rate; give --epochs instead to have it found.
    ///
    /// At least 0 for time and exponential, more than 0 for polynomial, more than 0 and at most 1 for step. The uniform
    /// schedule has none.
    #[arg(long, allow_hyphen_values = true)]
    rate: Option<Decimal>,
    /// Epochs between steps (step), or until --end is reached (polynomial)
    #[arg(long)]
    period: Option<u64>,
    /// Noise multiplier at which the polynomial ends, at most --initial
    #[arg(long, allow_hyphen_values = true)]
    end: Option<Decimal>,
    /// Budget as rho of zCDP
    #[arg(long, allow_hyphen_values = true)]
    rho: Option<Decimal>,
    /// Epsilon of the budget; needs --delta. The largest rho that gives it is used
    #[arg(long, allow_hyphen_values = true, conflicts_with = "rho")]
    epsilon: Option<Decimal>,
    /// Delta of the budget, 0 <= delta < 1; needs --epsilon
    #[arg(long, allow_hyphen_values = true)]
    delta: Option<Decimal>,
    /// Find the smallest rate with which the budget lasts exactly so many epochs.
    ///
    /// Rates are tried in steps of 0.0001.
    #[arg(long)]
    epochs: Option<u64>,
    /// Draw the noise of each epoch
    #[arg(long, value_name = "FILE.svg", value_parser = svg_path)]
    plot: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let budget = budget(arguments)?;
    let schedule = schedule(arguments, budget)?;
    let fits = schedule.epochs_within(budget);
    let noise = |t: u64| schedule.noise_multiplier(t).map_or(0.0, NoiseMultiplier::get);
    if let Some(path) = &arguments.plot {
        #[expect(clippy::cast_precision_loss, reason = "a plot")]
        let points = (0..fits.count).map(|t| (t as f64, noise(t))).collect();
        let series = vec![Series { name: "noise multiplier".into(), points, dashed: false }];
        let title = format!("{} epochs within rho = {budget}", fits.count);
        let (x_label, y_label) = ("epoch".into(), "noise multiplier".into());
        LineChart { title, x_label, y_label, series, y_limit: f64::INFINITY }.write_svg(path)?;
    }
    // As typed, where it was typed.
    let rate = match (&arguments.rate, schedule) {
        (Some(typed), _) => Some(typed.typed()),
        (None, Schedule::Uniform { .. }) => None,
        (None, Schedule::Time { rate, .. })
        | (None, Schedule::Exponential { rate, .. })
        | (None, Schedule::Step { rate, .. })
        | (None, Schedule::Polynomial { rate, .. }) => Some(rate),
    };
    if arguments.json {
        let noises: Vec<f64> = (0..fits.count.min(100_000)).map(noise).collect();
        print_json(&json!({
            "epochs": fits.count,
            "rate": rate,
            "rho_budget": json_number(budget.get()),
            "rho_spent": json_number(fits.spent.get()),
            "stopped_at_limit": fits.count == MAX_EPOCHS,
            "noise_multipliers": noises,
        }))?;
    } else if fits.count == 0 {
        let first = shown_up(schedule.rho(0).get());
        let budget = shown_down(budget.get());
        print(&format!("not even the first epoch fits: it costs rho = {first}, the budget is {budget}"))?;
    } else {
        let shown: Vec<u64> = match fits.count {
            n if n <= 8 => (0..n).collect(),
            n => vec![0, 1, n / 4, n / 2, 3 * n / 4, n - 2, n - 1],
        };
        let rows = shown.iter().map(|&t| vec![t.to_string(), shown_down(noise(t)), shown_up(schedule.rho(t).get())]);
        print(&table(&["epoch", "noise multiplier", "rho"], rows))?;
        if let Some(rate) = rate {
            print(&format!("rate {rate}"))?;
        }
        let (count, spent) = (fits.count, shown_up(fits.spent.get()));
        let next = if count < MAX_EPOCHS { "the next would pass it" } else { "more were not tried" };
        print(&format!("{count} epochs spend rho = {spent} of {}; {next}", shown_down(budget.get())))?;
    }
    Ok(if fits.count == 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The budget, in rho.
fn budget(arguments: &Arguments) -> anyhow::Result<Rho> {
    let budget = match (&arguments.rho, &arguments.epsilon, &arguments.delta) {
        (Some(rho), _, _) => rho.down_as(Rho::new)?,
        (None, Some(epsilon), Some(text)) => {
            zcdp::budget(Conversion::Exact, epsilon.down_as(Epsilon::new)?, delta(text)?)
        }
        (None, _, _) => anyhow::bail!("give the budget: --rho, or --epsilon and --delta"),
    };
    anyhow::ensure!(budget.get() < f64::INFINITY, "rho = inf is outside its domain; expected 0 <= rho < inf");
    Ok(budget)
}

/// The schedule: with the rate that was given, or with the one that makes the budget last as long as wanted.
fn schedule(arguments: &Arguments, budget: Rho) -> anyhow::Result<Schedule> {
    match (arguments.epochs, &arguments.rate) {
        (Some(_), Some(_)) => anyhow::bail!("give --rate or --epochs, not both"),
        (Some(_), None) if matches!(arguments.kind, Kind::Uniform) => {
            anyhow::bail!("a uniform schedule has no rate to find; drop --epochs")
        }
        (Some(epochs), None) => {
            // Any rate will do to name the shape; 1 is allowed by all of them.
            let shape = shape(arguments, 1.0)?;
            let rate = shape
                .rate_for(epochs, budget, 1e-4)
                .with_context(|| format!("no rate makes a budget of rho = {budget} last exactly {epochs} epochs"))?;
            shape.with_rate(rate).context("a rate on the grid")
        }
        (None, rate) => match (arguments.kind, rate) {
            (Kind::Uniform, None) => shape(arguments, 0.0),
            (Kind::Uniform, Some(_)) => anyhow::bail!("a uniform schedule has no --rate"),
            // Towards less noise: a step keeps a share of it, the others lose more with a larger rate.
            (Kind::Step, Some(rate)) => shape(arguments, rate.down()),
            (_, Some(rate)) => shape(arguments, rate.up()),
            (_, None) => anyhow::bail!("give --rate, or --epochs to have it found"),
        },
    }
}

fn shape(arguments: &Arguments, rate: f64) -> anyhow::Result<Schedule> {
    let initial = arguments.initial.down_as(NoiseMultiplier::new)?;
    let period = || arguments.period.context("give --period EPOCHS");
    let schedule = match arguments.kind {
        Kind::Uniform => Schedule::Uniform { initial },
        Kind::Time => Schedule::Time { initial, rate },
        Kind::Exponential => Schedule::Exponential { initial, rate },
        Kind::Step => Schedule::Step { initial, rate, period: period()? },
        Kind::Polynomial => {
            let last = arguments.end.as_ref().context("give --end NUMBER")?.down_as(NoiseMultiplier::new)?;
            Schedule::Polynomial { initial, rate, last, period: period()? }
        }
    };
    Ok(schedule.checked()?)
}
