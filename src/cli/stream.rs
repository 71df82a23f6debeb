//! Requests in, answers out: one JSON line each, flushed; an id seen before is answered as before.

use super::suggest::did_you_mean;
use anyhow::Context;
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::cost::Cost;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::params::Neighbors;
use paygo_accounting::wire;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;

/// The longest line that is read.
const MAX_LINE: u64 = 1 << 20;
/// How many priced mechanisms are remembered.
const MAX_PRICED: usize = 256;

/// One line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) mechanism: wire::Mechanism,
}

/// The line that answers a request, but for its id; and how it counts.
pub(crate) struct Reply {
    pub(crate) fields: Value,
    pub(crate) refused: bool,
    /// Heard before.
    pub(crate) repeated: bool,
}

/// How many requests were answered how: each counts once.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) repeated: u64,
    pub(crate) wrong: u64,
    /// Whether a refusal was heard, a repeated one too.
    any_refused: bool,
}

impl Counts {
    /// Says so on standard error.
    pub(crate) fn tell(&self) {
        let Self { admitted, refused, repeated, wrong, .. } = self;
        eprintln!("admitted {admitted}, refused {refused}, repeated {repeated}, wrong {wrong}");
    }

    /// 0 done, 1 something was refused, 2 a line was wrong.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match (self.wrong, self.any_refused) {
            (0, false) => ExitCode::SUCCESS,
            (0, true) => ExitCode::from(1),
            (_, _) => ExitCode::from(2),
        }
    }
}

/// What decides or reads.
pub(crate) trait Responder {
    /// The answer to a request. Whoever asks again with the same id hears the first answer and is not charged again.
    fn respond(&mut self, request: &Request) -> anyhow::Result<Reply>;
}

/// Answers every line of standard input.
pub(crate) fn serve(responder: &mut impl Responder) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut bytes = Vec::new();
    for number in 1u64.. {
        bytes.clear();
        let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut bytes).context("standard input")?;
        if read == 0 {
            break;
        }
        anyhow::ensure!(
            bytes.len() as u64 <= MAX_LINE || bytes.ends_with(b"\n"),
            "line {number} is longer than {MAX_LINE} bytes"
        );
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = answer(responder, &mut counts, number, &bytes);
        // A reader that went away is no ordinary end here: what was charged went unanswered.
        let write =
            output.write_all(answer.as_bytes()).and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush());
        write.map_err(|error| anyhow::anyhow!("the answer to line {number} could not be written: {error}"))?;
    }
    Ok(counts)
}

fn answer(responder: &mut impl Responder, counts: &mut Counts, number: u64, line: &[u8]) -> String {
    let (id, reply) = match serde_json::from_slice::<Request>(line) {
        Ok(request) => {
            let reply = responder.respond(&request);
            (request.id, reply)
        }
        Err(error) => (id_of(line), Err(complaint(&error))),
    };
    let mut fields = match reply {
        Ok(Reply { fields, refused, repeated }) => {
            counts.any_refused |= refused;
            match (repeated, refused) {
                (true, _) => counts.repeated += 1,
                (false, true) => counts.refused += 1,
                (false, false) => counts.admitted += 1,
            }
            fields
        }
        Err(error) => {
            counts.wrong += 1;
            let mut fields = json!({"error": format!("{error:#}")});
            if id.is_none() {
                fields["line"] = Value::from(number);
            }
            fields
        }
    };
    if let Some(id) = id {
        fields["id"] = Value::from(id);
    }
    fields.to_string()
}

/// A filter or an odometer of this process.
pub(crate) trait Meters {
    /// The charge of a cost.
    fn price(&self, cost: &Cost) -> Result<Charge, Unpriced>;
    /// Decides or reads, and charges.
    fn charge(&mut self, charge: &Charge) -> anyhow::Result<Reply>;
}

/// Keeps the ids and the prices of a filter or an odometer. Memory grows with the ids seen, and with nothing else.
pub(crate) struct Local<M> {
    pub(crate) meters: M,
    neighbors: Neighbors,
    /// By id.
    seen: HashMap<String, Seen>,
    /// By mechanism as it was written; forgotten when there are too many.
    priced: HashMap<String, Charge>,
}

/// A request that was answered: its mechanism and the answer as they are written, and whether it was refused.
struct Seen {
    mechanism: Box<str>,
    fields: Box<str>,
    refused: bool,
}

impl<M> Local<M> {
    pub(crate) fn new(meters: M, neighbors: Neighbors) -> Self {
        Self { meters, neighbors, seen: HashMap::new(), priced: HashMap::new() }
    }
}

impl<M: Meters> Responder for Local<M> {
    fn respond(&mut self, request: &Request) -> anyhow::Result<Reply> {
        let written = serde_json::to_string(&request.mechanism)?;
        if let Some(seen) = request.id.as_ref().and_then(|id| self.seen.get(id)) {
            // A retry hears the first answer. Another mechanism under the same id was never charged, so it may not.
            anyhow::ensure!(
                *seen.mechanism == *written,
                "this id was used before, for another mechanism; a new request needs a new id"
            );
            return Ok(Reply { fields: serde_json::from_str(&seen.fields)?, refused: seen.refused, repeated: true });
        }
        if !self.priced.contains_key(&written) {
            let cost = Cost::of(&Mechanism::try_from(&request.mechanism)?, self.neighbors)?;
            if self.priced.len() >= MAX_PRICED {
                self.priced.clear();
            }
            self.priced.insert(written.clone(), self.meters.price(&cost)?);
        }
        let reply = self.meters.charge(&self.priced[&written])?;
        if let Some(id) = &request.id {
            let (mechanism, fields) = (written.into(), reply.fields.to_string().into());
            self.seen.insert(id.clone(), Seen { mechanism, fields, refused: reply.refused });
        }
        Ok(reply)
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
        serde_json::error::Category::Data => {
            let hint = did_you_mean(reason).map(|hint| format!("; {hint}")).unwrap_or_default();
            anyhow::anyhow!("{reason} (column {}){hint}", error.column())
        }
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
