//! `paygo odometer`: mechanisms in, readings out.

use super::arguments::Decimal;
use super::output::{json_number, shown_up};
use super::stream::{Answer, OrderArguments, Request, Responder, limit, only_with, serve};
use anyhow::Context;
use clap::{Args, ValueEnum};
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::convert::Conversion;
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::Orders;
use paygo_accounting::odometer::{
    AnyBoundary, Boundary, Doubling, Linear, NormalMixture, Odometer, Restart, Stitched, VilleFixed, VilleMixture,
    VilleUnion,
};
use paygo_accounting::params::{Delta, Epsilon};
use paygo_accounting::prior::Prior;
use paygo_numeric::Amount;
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "Reads one request a line: {\"id\": \"q1\", \"mechanism\": {\"gaussian\": {\"noise_multiplier\": 20}}}\nand answers {\"id\": \"q1\", \"epsilon\": …}: with probability 1 - delta, in each direction, the privacy loss never passes the\nreading, at any moment. An id seen before is answered as before and not counted again. Exit 0: all observed, 2: a line\nwas wrong.\n\nExamples:\n  paygo odometer --delta 1e-5 < requests.jsonl\n  paygo odometer --kind linear --epsilon-target 2 --delta 1e-5 < requests.jsonl\ndocs/filters.md says which kind to use and what it promises."
)]
pub(crate) struct Arguments {
    /// Which bound is read
    #[arg(long, value_enum, default_value_t = Kind::VilleMixture)]
    kind: Kind,
    /// The probability with which the reading may ever be passed, in each direction
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: Decimal,
    /// For linear, stitched and mixture: the part of delta set aside for steps with a delta of their own
    #[arg(long, value_name = "DELTA", default_value = "0", allow_hyphen_values = true)]
    slack: Decimal,
    /// Where the reading should be tightest [default: 1 for the kinds that must aim]
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon_target: Option<Decimal>,
    /// For mixture: its precision rho [default: from --epsilon-target]
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    precision: Option<Decimal>,
    /// For restart: its step, a Rényi divergence; no cost may be larger [default: from --epsilon-target]
    #[arg(long, value_name = "STEP", allow_hyphen_values = true)]
    step: Option<Decimal>,
    #[command(flatten)]
    orders: OrderArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// One Rényi order, fixed in advance
    VilleFixed,
    /// Rényi orders that share delta
    VilleUnion,
    /// A mixture of Rényi orders: any mechanism, the default
    VilleMixture,
    /// Levels that double, corrected; for comparison
    Doubling,
    /// Steps of a fixed size at one order
    Restart,
    /// A straight line in the sum of rho, tight at a target
    Linear,
    /// The best growth in the sum of rho
    Stitched,
    /// A mixture in the sum of rho, good over a wide range
    Mixture,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = arguments.orders.plan()?;
    let neighbors = arguments.orders.neighbors(plan.as_ref());
    let planned = plan.as_ref().map(|(_, cost)| cost);
    let mut odometer = Odometer::new(boundary(arguments, planned)?, neighbors);
    let counts = serve(&mut odometer, neighbors)?;
    eprintln!("observed {}, repeated {}, wrong and not counted {}", counts.answered, counts.repeated, counts.wrong);
    eprintln!(
        "reading: the privacy loss stays at or below {} with probability 1 - {}, for one {} under {neighbors} neighbors, in each direction ({})",
        shown_up(odometer.reading().get()),
        arguments.delta.as_str(),
        arguments.orders.privacy_unit(plan.as_ref()),
        odometer.boundary().word(),
    );
    Ok(counts.exit_code())
}

fn boundary(arguments: &Arguments, plan: Option<&Cost>) -> anyhow::Result<AnyBoundary> {
    let kind = arguments.kind;
    let only = |given: bool, name: &str, kinds: &[Kind]| only_with(given, name, kind, kinds);
    only(arguments.precision.is_some(), "precision", &[Kind::Mixture])?;
    only(arguments.step.is_some(), "step", &[Kind::Restart])?;
    only(arguments.orders.order.is_some(), "order", &[Kind::VilleFixed, Kind::Restart])?;
    only(plan.is_some(), "plan", &[Kind::VilleMixture, Kind::VilleUnion])?;
    let over_orders = [Kind::VilleMixture, Kind::VilleUnion, Kind::Doubling];
    only(arguments.orders.orders()?.is_some(), "orders", &over_orders)?;
    only(arguments.orders.has_weights(), "weights", &[Kind::VilleMixture, Kind::VilleUnion])?;
    let delta = arguments.delta.down_as(Delta::new)?;
    let aim = arguments.epsilon_target.as_ref().map(|text| text.down_as(Epsilon::new)).transpose()?;
    let target = aim.unwrap_or(Epsilon::new(1.0)?);
    let slack = limit("slack", &arguments.slack)?;
    only(slack > Amount::ZERO, "slack", &[Kind::Linear, Kind::Stitched, Kind::Mixture])?;
    let prior = || match plan {
        Some(plan) => Ok(Prior::for_plan(plan, delta)),
        None => arguments.orders.prior(aim.map_or_else(Prior::log_spaced, |aim| Prior::for_budget(aim, delta))),
    };
    Ok(match kind {
        Kind::VilleMixture => VilleMixture::new(delta, prior()?)?.into(),
        Kind::VilleUnion => VilleUnion::new(delta, prior()?)?.into(),
        Kind::VilleFixed => VilleFixed::new(arguments.orders.order_for(target, delta)?, delta)?.into(),
        Kind::Doubling => {
            let orders = match arguments.orders.orders()? {
                Some(orders) => orders,
                None => finite(&Prior::log_spaced())?,
            };
            Doubling::new(delta, orders)?.into()
        }
        Kind::Restart => {
            let order = arguments.orders.order_for(target, delta)?;
            let step = match &arguments.step {
                Some(step) => limit("step", step)?,
                None => {
                    let whole = Amount::from_f64_down(Conversion::Classic.budget(order, target, delta));
                    whole.context("no step suits this target; give --step")?.shared_by(10)
                }
            };
            Restart::new(order, step, delta)?.into()
        }
        Kind::Linear => Linear::for_target(target, delta, slack)?.into(),
        Kind::Stitched => Stitched::new(delta, slack)?.into(),
        Kind::Mixture => match &arguments.precision {
            Some(precision) => NormalMixture::new(limit("precision", precision)?, delta, slack)?.into(),
            None => NormalMixture::for_target(target, delta, slack)?.into(),
        },
    })
}

/// The finite orders.
fn finite(prior: &Prior) -> anyhow::Result<Orders> {
    Ok(Orders::new(prior.orders().as_slice()[..prior.weights().len()].to_vec())?)
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
