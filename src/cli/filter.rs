//! `paygo filter`: mechanisms in, decisions out.

use super::arguments::Decimal;
use super::ledger::PlaceArguments;
use super::output::{json_amount, shown_amount};
use super::stream::{Local, Meters, Reply, serve};
use super::words::{OrderArguments, complaint, filter_kinds, number};
use clap::Args;
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Decision, Filter, Meter, Rule};
use paygo_accounting::params::Neighbors;
use paygo_accounting::wire::{FilterKind, FilterWords, Plan};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Reads one request per line from standard input, and answers each with one line:\n  \
    {\"id\": \"q1\", \"mechanism\": {\"gaussian\": {\"noise_multiplier\": 20}}}\n\
    A request whose id was seen before gets the first answer again and is not charged again. Every run starts with \
    the whole budget, unless --ledger keeps it.\n\n\
    Numbers are taken as they are written: 0.1 is exactly a tenth, and \"256/60000\" is a fraction. Numbers with 16 \
    or more digits should be in quotes: without quotes they are read as doubles.\n\n\
    Exit codes: 0 all admitted, 1 something was refused, 2 something was wrong.\n\n\
    Examples:\n  \
    echo '{\"id\": \"q1\", \"mechanism\": {\"laplace\": {\"scale\": 10}}}' |\n      \
    paygo filter --epsilon 3 --delta 1e-5\n  \
    paygo filter --kind gdp --epsilon 1 --delta 1e-6 < requests.jsonl\n  \
    paygo filter --plan examples/dp-sgd.toml --epsilon 3 --delta 1e-5 \\\n      \
    < requests.jsonl\n  \
    paygo filter --ledger our.ledger --dataset sales < requests.jsonl\n\n\
    See docs/filters.md for which kind to use and what it promises.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    place: PlaceArguments,
}

/// A filter on the command line.
#[derive(Args)]
pub(crate) struct FilterArguments {
    /// Kind of filter
    #[arg(long, value_parser = filter_kinds(), default_value = FilterKind::default().word())]
    kind: FilterKind,
    /// Epsilon of the budget, at least 0
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: Option<Decimal>,
    /// Delta of the budget, 0 <= delta < 1 [default: the plan's]
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    delta: Option<Decimal>,
    /// Part of delta set aside for mechanisms with a delta of their own.
    ///
    /// Less than delta. Not for the kinds gdp and pure. [default: half of delta for the kind approximate, else 0]
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    slack: Option<Decimal>,
    /// Budget as rho, instead of epsilon and delta, for the kind zcdp
    #[arg(long, value_name = "RHO", allow_hyphen_values = true)]
    rho: Option<Decimal>,
    /// Budget as mu, instead of epsilon and delta, for the kind gdp
    #[arg(long, value_name = "MU", allow_hyphen_values = true)]
    mu: Option<Decimal>,
    /// For the kind clock with --plan: the share of the budget that is kept for what is not in the plan.
    ///
    /// At least so much; what the plan does not need is added to it. 0 <= share < 1. [default: 0]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, requires = "plan")]
    reserve: Option<Decimal>,
    #[command(flatten)]
    orders: OrderArguments,
}

/// A filter as it is asked for, and under whose neighbors it protects whom.
pub(crate) struct AskedFilter {
    pub(crate) words: FilterWords,
    pub(crate) neighbors: Neighbors,
    pub(crate) privacy_unit: String,
}

impl FilterArguments {
    pub(crate) fn asked(&self) -> anyhow::Result<AskedFilter> {
        let plan = self.orders.plan()?;
        let (neighbors, privacy_unit) = (self.orders.neighbors(plan.as_ref()), self.orders.privacy_unit(plan.as_ref()));
        Ok(AskedFilter { words: self.words(plan.map(|(plan, _)| plan)), neighbors, privacy_unit })
    }

    /// δ as it was typed; 0 where none was.
    pub(crate) fn delta(&self) -> f64 {
        self.delta.as_ref().map_or(0.0, Decimal::typed)
    }

    /// Whether nothing was said about a filter.
    fn is_silent(&self) -> bool {
        let numbers = [&self.epsilon, &self.delta, &self.slack, &self.rho, &self.mu, &self.reserve];
        numbers.iter().all(|number| number.is_none()) && self.kind == FilterKind::default() && self.orders.is_silent()
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(place) = arguments.place.place()? {
        anyhow::ensure!(
            arguments.filter.is_silent(),
            "with --ledger the dataset's own filter decides; leave out --kind, the budget and other filter options"
        );
        return super::ledger::filter(&place);
    }
    let asked = arguments.filter.asked()?;
    let rule = asked.words.rule().map_err(complaint)?;
    let neighbors = asked.neighbors;
    let who = format!("one {} under {neighbors} neighbors", asked.privacy_unit);
    let mut local = Local::new(Filter::new(rule, neighbors), neighbors);
    let counts = serve(&mut local)?;
    counts.tell();
    let filter = local.meters;
    for meter in filter.meters() {
        eprintln!("spent {} {} of {}", meter.name, shown_amount(meter.spent, true), shown_amount(meter.budget, false));
    }
    eprintln!("promise: {} for {who}, fully adaptive ({})", asked.words.promise(), filter.rule().word());
    Ok(counts.exit_code())
}

impl FilterArguments {
    fn words(&self, plan: Option<Plan>) -> FilterWords {
        let (orders, weights) = self.orders.words();
        FilterWords {
            kind: self.kind,
            epsilon: number(self.epsilon.as_ref()),
            delta: number(self.delta.as_ref()),
            slack: number(self.slack.as_ref()),
            rho: number(self.rho.as_ref()),
            mu: number(self.mu.as_ref()),
            order: number(self.orders.order.as_ref()),
            orders,
            weights,
            plan,
            reserve: number(self.reserve.as_ref()),
        }
    }
}

/// Meters as an object of numbers.
fn numbers(meters: &[Meter], of: impl Fn(&Meter) -> Value) -> Value {
    Value::Object(meters.iter().map(|meter| (meter.name.to_owned(), of(meter))).collect::<Map<_, _>>())
}

impl Meters for Filter<AnyRule> {
    fn price(&self, cost: &Cost) -> Result<Charge, Unpriced> {
        Self::price(self, cost)
    }

    fn charge(&mut self, charge: &Charge) -> anyhow::Result<Reply> {
        let decision = self.admit(charge);
        let meters = self.meters();
        let mut fields = json!({
            "decision": "admit",
            "spent": numbers(&meters, |meter| json_amount(meter.spent, true)),
            "remaining": numbers(&meters, |meter| json_amount(meter.remaining(), false)),
        });
        let Decision::Refused(refusal) = decision else {
            return Ok(Reply { fields, refused: false, repeated: false });
        };
        fields["decision"] = json!("refuse");
        fields["reason"] = json!(refusal.reason.explanation());
        fields["requested"] = numbers(&refusal.requested, |meter| json_amount(meter.spent, true));
        fields["largest_count"] = json!(refusal.largest_count);
        Ok(Reply { fields, refused: true, repeated: false })
    }
}
