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
            if self.priced.len() >= MAX_PRICED {
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
