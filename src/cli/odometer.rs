//! `paygo odometer`: mechanisms in, readings out.

use super::arguments::Decimal;
use super::output::{json_number, shown_up};
use super::stream::{Answer, Request, Responder, serve};
use super::words::{OrderArguments, complaint, number, odometer_kinds};
use clap::Args;
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::cost::Cost;
use paygo_accounting::odometer::{AnyBoundary, Boundary, Odometer, OdometerKind};
use paygo_accounting::wire::{OdometerWords, Plan};
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "Reads one request a line: {\"id\": \"q1\", \"mechanism\": {\"gaussian\": {\"noise_multiplier\": 20}}}\nand answers {\"id\": \"q1\", \"epsilon\": …}: with probability 1 - delta, in each direction, the privacy loss never passes the\nreading, at any moment. An id seen before is answered as before and not counted again. Exit 0: all observed, 2: a line\nwas wrong.\n\nExamples:\n  paygo odometer --delta 1e-5 < requests.jsonl\n  paygo odometer --kind linear --epsilon-target 2 --delta 1e-5 < requests.jsonl\ndocs/filters.md says which kind to use and what it promises."
)]
pub(crate) struct Arguments {
    /// Which bound is read
    #[arg(long, value_parser = odometer_kinds(), default_value = OdometerKind::default().word())]
    kind: OdometerKind,
    /// The probability with which the reading may ever be passed, in each direction
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: Decimal,
    /// For linear, stitched and normal-mixture: the part of delta set aside for steps with a delta of their own [default: 0]
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    slack: Option<Decimal>,
    /// Where the reading should be tightest [default: 1 for the kinds that must aim]
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon_target: Option<Decimal>,
    /// For normal-mixture: its precision rho [default: from --epsilon-target]
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    precision: Option<Decimal>,
    /// For restart: its step, a Rényi divergence; no cost may be larger [default: from --epsilon-target]
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
    let mut odometer = Odometer::new(words.boundary().map_err(complaint)?, neighbors);
    let counts = serve(&mut odometer, neighbors)?;
    eprintln!("observed {}, repeated {}, wrong and not counted {}", counts.answered, counts.repeated, counts.wrong);
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

impl Responder for Odometer<AnyBoundary> {
    fn price(&self, cost: &Cost) -> Result<Charge, Unpriced> {
        Self::price(self, cost)
    }

    fn respond(&mut self, _request: &Request, charge: &Charge) -> anyhow::Result<Answer> {
        self.observe(charge)?;
        Ok(Answer { fields: json!({"epsilon": json_number(self.reading().get())}), refused: false, repeated: false })
    }
}
