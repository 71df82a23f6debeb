//! Requests in, answers out: one JSON line each, flushed; an id seen before is answered as before.

use super::arguments::Decimal;
use anyhow::Context;
use clap::{Args, ValueEnum};
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::convert::zcdp;
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::Orders;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::params::{Delta, Epsilon, Neighbors, Order};
use paygo_accounting::prior::Prior;
use paygo_accounting::wire::{self, Number, Plan, WeightWord, Weights};
use paygo_numeric::Amount;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The longest line that is read.
const LONGEST_LINE: u64 = 1 << 20;
/// How many priced mechanisms are remembered.
const MOST_PRICED: usize = 256;

/// One line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) mechanism: wire::Mechanism,
}

/// What a request is answered with: the fields of the line, and whether it was refused.
pub(crate) struct Answer {
    pub(crate) fields: Value,
    pub(crate) refused: bool,
    /// Heard before, by whoever keeps the ids.
    pub(crate) repeated: bool,
}

/// How many requests were answered how.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    pub(crate) repeated: u64,
    pub(crate) wrong: u64,
}

impl Counts {
    /// 0 done, 1 something was refused, 2 a line was wrong.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match (self.wrong, self.refused) {
            (0, 0) => ExitCode::SUCCESS,
            (0, _) => ExitCode::from(1),
            (_, _) => ExitCode::from(2),
        }
    }
}

/// What decides or reads.
pub(crate) trait Responder {
    /// The charge of a cost.
    fn price(&self, cost: &Cost) -> Result<Charge, Unpriced>;
    /// Whether it knows ids by itself, from other runs too.
    fn keeps_ids(&self) -> bool {
        false
    }
    /// The answer to a request, which costs this.
    fn respond(&mut self, request: &Request, charge: &Charge) -> anyhow::Result<Answer>;
}

/// Answers every line of standard input. Memory grows with the ids seen, and with nothing else.
pub(crate) fn serve(responder: &mut impl Responder, neighbors: Neighbors) -> anyhow::Result<Counts> {
    let mut stream =
        Stream { responder, neighbors, seen: HashMap::new(), priced: HashMap::new(), counts: Counts::default() };
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut bytes = Vec::new();
    for number in 1u64.. {
        bytes.clear();
        let read = input.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes).context("standard input")?;
        if read == 0 {
            break;
        }
        anyhow::ensure!(
            bytes.len() as u64 <= LONGEST_LINE || bytes.ends_with(b"\n"),
            "line {number} is longer than {LONGEST_LINE} bytes"
        );
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = stream.answer(number, &bytes);
        // A reader that went away is no ordinary end here: what was charged went unanswered.
        let write =
            output.write_all(answer.as_bytes()).and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush());
        write.map_err(|error| anyhow::anyhow!("the answer to line {number} could not be written: {error}"))?;
    }
    Ok(stream.counts)
}

struct Stream<'a, R> {
    responder: &'a mut R,
    neighbors: Neighbors,
    /// By id: the mechanism as it was written, and the answer.
    seen: HashMap<String, (Box<str>, Box<str>)>,
    /// By mechanism as it was written; forgotten when there are too many.
    priced: HashMap<String, Charge>,
    counts: Counts,
}

impl<R: Responder> Stream<'_, R> {
    fn answer(&mut self, number: u64, line: &[u8]) -> String {
        let (id, outcome) = match serde_json::from_slice::<Request>(line) {
            Ok(request) => {
                let id = request.id.clone();
                (id, self.respond(request))
            }
            Err(error) => (id_of(line), Err(complaint(&error))),
        };
        outcome.unwrap_or_else(|error| {
            self.counts.wrong += 1;
            match id {
                Some(id) => json!({"id": id, "error": format!("{error:#}")}).to_string(),
                None => json!({"line": number, "error": format!("{error:#}")}).to_string(),
            }
        })
    }

    fn respond(&mut self, request: Request) -> anyhow::Result<String> {
        let written = serde_json::to_string(&request.mechanism)?;
        let keeps_ids = self.responder.keeps_ids();
        if let Some((mechanism, answer)) = request.id.as_ref().and_then(|id| self.seen.get(id)) {
            // A retry hears the first answer. Another mechanism under the same id was never charged, so it may not.
            anyhow::ensure!(
                **mechanism == *written,
                "this id was used before, for another mechanism; a new request needs a new id"
            );
            self.counts.repeated += 1;
            return Ok(answer.to_string());
        }
        if !self.priced.contains_key(&written) {
            let cost = Cost::of(&Mechanism::try_from(&request.mechanism)?, self.neighbors)?;
            if self.priced.len() >= MOST_PRICED {
                self.priced.clear();
            }
            self.priced.insert(written.clone(), self.responder.price(&cost)?);
        }
        let Answer { mut fields, refused, repeated } = self.responder.respond(&request, &self.priced[&written])?;
        self.counts.answered += 1;
        self.counts.refused += u64::from(refused);
        self.counts.repeated += u64::from(repeated);
        let Some(id) = request.id else { return Ok(fields.to_string()) };
        fields["id"] = Value::from(id.as_str());
        let answer = fields.to_string();
        if !keeps_ids {
            self.seen.insert(id, (written.into(), answer.as_str().into()));
        }
        Ok(answer)
    }
}

/// What is wrong with a line, in its own words: where in the line, and the shape that was expected.
fn complaint(error: &serde_json::Error) -> anyhow::Error {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    let shape = "expected {\"id\": \"q1\", \"mechanism\": {\"gaussian\": {\"noise_multiplier\": 20}}}";
    match error.classify() {
        serde_json::error::Category::Data if reason.contains("variant") && reason.contains("invalid type") => {
            anyhow::anyhow!("a mechanism is an object; {shape}")
        }
        serde_json::error::Category::Data if reason.contains("unknown field `count`") => {
            anyhow::anyhow!("{reason}; several of the same are {{\"repeat\": {{\"count\": 3, \"of\": {{…}}}}}}")
        }
        serde_json::error::Category::Data => anyhow::anyhow!("{reason} (column {})", error.column()),
        serde_json::error::Category::Io | serde_json::error::Category::Syntax | serde_json::error::Category::Eof => {
            anyhow::anyhow!("not a JSON object (column {}): {shape}", error.column())
        }
    }
}

/// The id of a line that is not a request otherwise.
fn id_of(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    Some(value.get("id")?.as_str()?.to_owned())
}

/// Which datasets are neighbors.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NeighborsArgument {
    /// One record more or less
    AddRemove,
    /// One record replaced by another
    ReplaceOne,
    /// One record replaced by a null record
    ZeroOut,
}

impl From<NeighborsArgument> for Neighbors {
    fn from(argument: NeighborsArgument) -> Self {
        match argument {
            NeighborsArgument::AddRemove => Self::AddRemove,
            NeighborsArgument::ReplaceOne => Self::ReplaceOne,
            NeighborsArgument::ZeroOut => Self::ZeroOut,
        }
    }
}

/// Orders and their weights, and who is protected: what filters and odometers share.
#[derive(Args)]
pub(crate) struct OrderArguments {
    /// The orders of union and mixture, such as 2,4,8; inf may be among them [default: those that suit the target]
    #[arg(long, value_delimiter = ',', value_name = "ORDERS", conflicts_with = "plan")]
    orders: Option<Vec<Decimal>>,
    /// The order of the fixed-order kinds [default: the best for Gaussian noise at the target]
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<Decimal>,
    /// `uniform`, or one weight for each finite order, together at most 1 [default: those that suit the target, uniform with --orders]
    #[arg(long, value_delimiter = ',', value_name = "WEIGHTS", conflicts_with = "plan")]
    weights: Option<Vec<String>>,
    /// Concentrate the weights on the order that this plan would use; requests may still be anything
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Which datasets are neighbors [default: the plan's, or add-remove]
    #[arg(long, value_enum)]
    neighbors: Option<NeighborsArgument>,
    /// Who is protected [default: the plan's, or record]
    #[arg(long, value_name = "WHO")]
    privacy_unit: Option<String>,
}

impl OrderArguments {
    /// The plan, if one was given, and its cost.
    pub(crate) fn plan(&self) -> anyhow::Result<Option<(Plan, Cost)>> {
        let Some(path) = &self.plan else { return Ok(None) };
        let plan = super::account::read_plan(path)?;
        let cost = plan.cost().with_context(|| format!("plan {}", path.display()))?;
        if let Some(neighbors) = self.neighbors.map(Neighbors::from) {
            anyhow::ensure!(
                cost.neighbors() == neighbors,
                "the plan is about {} neighbors; expected {neighbors}",
                cost.neighbors()
            );
        }
        Ok(Some((plan, cost)))
    }

    /// Who is protected: as asked for, as the plan says, or a record.
    pub(crate) fn privacy_unit(&self, plan: Option<&(Plan, Cost)>) -> String {
        let planned = plan.map(|(plan, _)| plan.privacy_unit.clone());
        self.privacy_unit.clone().or(planned).unwrap_or_else(|| "record".to_owned())
    }

    /// The neighbor relation: the one asked for, the plan's, or add-remove.
    pub(crate) fn neighbors(&self, plan: Option<&(Plan, Cost)>) -> Neighbors {
        self.neighbors.map(Neighbors::from).or(plan.map(|(_, cost)| cost.neighbors())).unwrap_or(Neighbors::AddRemove)
    }

    /// Whether nothing was said.
    pub(crate) const fn is_silent(&self) -> bool {
        self.orders.is_none()
            && self.order.is_none()
            && self.weights.is_none()
            && self.plan.is_none()
            && self.neighbors.is_none()
            && self.privacy_unit.is_none()
    }

    /// Whether weights were asked for.
    pub(crate) const fn has_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// Orders and weights as they are asked for.
    pub(crate) fn words(&self) -> (Option<Vec<Number>>, Option<Weights>) {
        let number = |text: &str| Number::Decimal(text.to_owned());
        let orders = self.orders.as_ref().map(|orders| orders.iter().map(|order| number(order.as_str())).collect());
        let weights = self.weights.as_ref().map(|weights| match weights.as_slice() {
            [word] if word == "uniform" => Weights::Word(WeightWord::Uniform),
            each => Weights::Each(each.iter().map(|weight| number(weight)).collect()),
        });
        (orders, weights)
    }

    /// The orders asked for.
    pub(crate) fn orders(&self) -> anyhow::Result<Option<Orders>> {
        let Some(orders) = &self.orders else { return Ok(None) };
        let orders = orders.iter().map(|order| order.down_as(Order::new)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Some(Orders::new(orders)?))
    }

    /// The orders and weights asked for, or the usual ones.
    pub(crate) fn prior(&self, usual: Prior) -> anyhow::Result<Prior> {
        let (orders, weights) = match (self.orders()?, &self.weights) {
            (None, None) => return Ok(usual),
            (Some(orders), None) => return Ok(Prior::uniform(orders)?),
            (Some(orders), Some(weights)) => (orders, weights),
            (None, Some(weights)) => (Prior::log_spaced().orders().clone(), weights),
        };
        if *weights == ["uniform"] {
            return Ok(Prior::uniform(orders)?);
        }
        let weight = |text: &String| {
            Amount::from_decimal_down(text).with_context(|| {
                format!("weights: {text} is not a number; expected uniform or one for each finite order")
            })
        };
        Ok(Prior::new(orders, weights.iter().map(weight).collect::<anyhow::Result<_>>()?)?)
    }

    /// The order asked for, or the one at which Gaussian noise is converted best at a target.
    pub(crate) fn order_for(&self, epsilon: Epsilon, delta: Delta) -> anyhow::Result<Order> {
        if let Some(order) = &self.order {
            return order.down_as(Order::new);
        }
        zcdp::order_for_budget(epsilon, delta).context("no order suits this target; give --order")
    }
}

/// An option that goes with some kinds only: an error that names them when it was given with another.
pub(crate) fn only_with<K: ValueEnum + PartialEq>(given: bool, name: &str, kind: K, kinds: &[K]) -> anyhow::Result<()> {
    let words =
        || kinds.iter().filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned())).collect::<Vec<_>>();
    anyhow::ensure!(
        !given || kinds.contains(&kind),
        "--{name} does not go with this --kind; expected {}",
        words().join(", ")
    );
    Ok(())
}

/// An amount as it was typed, read down: a limit.
pub(crate) fn limit(name: &str, text: &Decimal) -> anyhow::Result<Amount> {
    Amount::from_decimal_down(text.as_str())
        .with_context(|| format!("{name} = {} is outside its domain; expected 0 <= {name}", text.as_str()))
}
