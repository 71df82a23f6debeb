//! `paygo filter --ledger`: mechanisms in, the ledger's decisions out.

use super::Place;
use crate::cli::stream::{Reply, Request, Responder, serve};
use paygo_ledger::RequestId;
use paygo_ledger::words::{Decision, Spend};
use std::process::ExitCode;

/// One answer a line; the ledger keeps the ids, for good.
pub(crate) fn filter(place: &Place) -> anyhow::Result<ExitCode> {
    let counts = serve(&mut Charging(place))?;
    counts.tell();
    Ok(counts.exit_code())
}

struct Charging<'a>(&'a Place);

impl Responder for Charging<'_> {
    fn respond(&mut self, request: &Request) -> anyhow::Result<Reply> {
        let id = match &request.id {
            Some(id) => RequestId::new(id.as_str())?,
            None => {
                anyhow::bail!("a ledger keeps ids for good: give each request one, {{\"id\": \"…\", \"mechanism\": …}}")
            }
        };
        let (mechanism, blocks) = (request.mechanism.clone(), self.0.blocks.clone());
        let answer = self.0.ask(Spend { id, mechanism, blocks, note: None })?;
        let (refused, repeated) = (answer.decision == Decision::Refuse, answer.repeated);
        Ok(Reply { fields: serde_json::to_value(&answer)?, refused, repeated })
    }
}
