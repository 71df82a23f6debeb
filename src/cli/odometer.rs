//! `paygo odometer`: mechanisms in, readings out.

use super::arguments::Decimal;
use super::output::{json_number, shown_up};
use super::stream::{Local, Meters, Reply, serve};
use super::words::{OrderArguments, complaint, number, odometer_kinds};
use clap::Args;
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::cost::Cost;
use paygo_accounting::odometer::{AnyBoundary, Boundary, Odometer, OdometerKind};
use paygo_accounting::wire::{OdometerWords, Plan};
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Reads one request per line from standard input, and answers each with one line:\n  \
    {\"id\": \"q1\", \"mechanism\": {\"gaussian\": {\"noise_multiplier\": 20}}}\n  \
    {\"id\": \"q1\", \"epsilon\": 0.29}\n\
    With probability 1 - delta the privacy loss never passes the reading, at any moment. A request whose id was seen \
    before gets the first answer again and is not counted again.\n\n\
    Exit codes: 0 all observed, 2 something was wrong.\n\n\
    Examples:\n  \
    paygo odometer --delta 1e-5 < requests.jsonl\n  \
    paygo odometer --kind linear --epsilon-target 2 --delta 1e-5 \\\n      \
    < requests.jsonl\n\n\
    See docs/filters.md for which kind to use and what it promises.")]
pub(crate) struct Arguments {
    /// Kind of odometer
    #[arg(long, value_parser = odometer_kinds(), default_value = OdometerKind::default().word())]
    kind: OdometerKind,
    /// Probability that the privacy loss ever passes the reading, 0 < delta < 1.
    ///
    /// It is the probability in each direction: from a dataset to its neighbor, and back.
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: Decimal,
    /// Part of delta set aside for mechanisms with a delta of their own.
    ///
    /// Less than delta. Only for the kinds linear, stitched and normal-mixture. [default: 0]
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    slack: Option<Decimal>,
    /// Epsilon at which the reading should be tightest.
    ///
    /// The default is 1 for the kinds linear, normal-mixture, ville-fixed and restart. The others cover a wide range.
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon_target: Option<Decimal>,
    /// Precision of the kind normal-mixture, a rho of more than 0.
    ///
    /// [default: from --epsilon-target]
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    precision: Option<Decimal>,
    /// Step of the kind restart, a Rényi divergence.
    ///
    /// No single mechanism may cost more than one step. [default: from --epsilon-target]
    #[arg(long, value_name = "STEP", allow_hyphen_values = true)]
    step: Option<Decimal>,
    #[command(flatten)]
    orders: OrderArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = arguments.orders.plan()?;
    let neighbors = arguments.orders.neighbors(plan.as_ref());
    let privacy_unit = arguments.orders.privacy_unit(plan.as_ref());
    let words = arguments.words(plan.map(|(plan, _)| plan));
    let odometer = Odometer::new(words.boundary().map_err(complaint)?, neighbors);
    let mut local = Local::new(odometer, neighbors);
    let counts = serve(&mut local)?;
    eprintln!("observed {}, repeated {}, wrong and not counted {}", counts.admitted, counts.repeated, counts.wrong);
    let mut odometer = local.meters;
    eprintln!(
        "reading: the privacy loss stays at or below {} with probability 1 - {}, for one {} under {neighbors} neighbors, in each direction ({})",
        shown_up(odometer.reading().get()),
        arguments.delta.as_str(),
        privacy_unit,
        odometer.boundary().word(),
    );
    Ok(counts.exit_code())
}

impl Arguments {
    fn words(&self, plan: Option<Plan>) -> OdometerWords {
        let (orders, weights) = self.orders.words();
        OdometerWords {
            kind: self.kind,
            delta: self.delta.number(),
            slack: number(self.slack.as_ref()),
            epsilon_target: number(self.epsilon_target.as_ref()),
            precision: number(self.precision.as_ref()),
            step: number(self.step.as_ref()),
            order: number(self.orders.order.as_ref()),
            orders,
            weights,
            plan,
        }
    }
}

impl Meters for Odometer<AnyBoundary> {
    fn price(&self, cost: &Cost) -> Result<Charge, Unpriced> {
        Self::price(self, cost)
    }

    fn charge(&mut self, charge: &Charge) -> anyhow::Result<Reply> {
        self.observe(charge)?;
        Ok(Reply { fields: json!({"epsilon": json_number(self.reading().get())}), refused: false, repeated: false })
    }
}
