//! `paygo ledger`: a durable budget that many share.

mod address;
mod allow;
mod arguments;
mod copy;
mod open;
mod place;
mod show;
mod stream;
mod twice;
mod who;

pub(crate) use address::Where;
pub(crate) use arguments::Arguments;
pub(crate) use open::{Open, opening};
pub(crate) use place::{Named, Place, PlaceArguments};
pub(crate) use stream::filter;

use super::account::read_plan;
use super::output::{print, print_json};
use super::words::{complaint, note_large_delta, number};
use anyhow::Context;
use arguments::{AllowArguments, Command, CreateArguments, GrantArguments, SpendArguments, WhatIfArguments};
use open::Missing;
use paygo_accounting::params::{Count, Neighbors, OutOfDomain};
use paygo_accounting::wire::{Mechanism, Release};
use paygo_ledger::Name;
use paygo_ledger::entry::Role;
use paygo_ledger::request::{Ask, CloseDataset, ListDatasets, ListTokens, RevokeToken, ShowDataset};
use paygo_ledger::store::SqlStore;
use paygo_ledger::verify::{Demands, verify};
use paygo_ledger::words::{
    Answer, BlockWord, Blocks, Cancel, Commit, Decision, Done, NewAllowance, NewBlocks, NewDataset, NewToken, Question,
    Reserve, Spend,
};
use std::process::ExitCode;

fn blocks(names: Option<&Vec<Name>>) -> Option<Blocks> {
    names.map(|names| match names.as_slice() {
        [one] if one.as_str() == "all" => Blocks::Word(BlockWord::All),
        these => Blocks::These(these.to_vec()),
    })
}

impl WhatIfArguments {
    /// What is asked, and of a plan how many steps it has.
    fn question(&self, open: &Open) -> anyhow::Result<(Question, Option<u64>)> {
        let blocks = blocks(self.blocks.as_ref());
        let Some(path) = &self.plan else {
            let mechanism = self.mechanism.clone().context("give a mechanism, or --plan FILE")?;
            return Ok((Question { mechanism, then: Vec::new(), blocks }, None));
        };
        let (plan, neighbors) = (read_plan(path)?, open.ask(&self.dataset, ShowDataset)?.neighbors);
        anyhow::ensure!(
            plan.neighbors == neighbors,
            "the plan is for {} neighbors, and dataset {} is about {}; expected the same",
            Neighbors::from(plan.neighbors),
            self.dataset,
            Neighbors::from(neighbors)
        );
        let mut steps = plan.releases.iter().map(|release| release.count.count("count").map(Count::get));
        let steps = steps.try_fold(0u64, |sum, count| Ok::<_, OutOfDomain>(sum.saturating_add(count?)))?;
        let releases = plan.releases.into_iter();
        let mut all = releases.map(|Release { count, mechanism }| Mechanism::Repeat { count, of: Box::new(mechanism) });
        let mechanism = all.next().context("the plan has no releases")?;
        Ok((Question { mechanism, then: all.collect(), blocks }, Some(steps)))
    }
}

impl SpendArguments {
    fn spend(&self) -> Spend {
        let (id, mechanism, note) = (self.id.clone(), self.mechanism.clone(), self.note.clone());
        Spend { id, mechanism, blocks: blocks(self.blocks.as_ref()), note }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    twice::refuse()?;
    let place = arguments.ledger.as_ref().context("give --ledger FILE, or set PAYGO_LEDGER")?;
    if let Command::Import { log } = &arguments.command {
        return copy::import(place, log, arguments.json);
    }
    let missing = if matches!(arguments.command, Command::Create(_)) { Missing::IsMade } else { Missing::IsAnError };
    let asking = Asking { open: Open::new(place, &arguments.who, missing)?, json: arguments.json };
    asking.run(&arguments.command, place).map_err(|error| asking.open.with_known(error))
}

/// An open ledger, and how answers are shown.
struct Asking {
    open: Open,
    json: bool,
}

impl Asking {
    fn run(&self, command: &Command, place: &Where) -> anyhow::Result<ExitCode> {
        let (open, json) = (&self.open, self.json);
        match command {
            Command::Create(create) => self.create(create),
            Command::AddBlocks { dataset, blocks } => {
                let done = open.ask(dataset, NewBlocks { blocks: blocks.clone() })?;
                self.done(&done, &format!("dataset {dataset} has these blocks, each with the whole budget"))
            }
            Command::Allow(allow) => self.allow(allow),
            Command::Close { dataset } => {
                self.done(&open.ask(dataset, CloseDataset)?, &format!("dataset {dataset} is closed"))
            }
            Command::Spend(spend) => self.decided(&open.ask(&spend.dataset, spend.spend())?),
            Command::Reserve { spend, expires_in } => {
                let Spend { id, mechanism, blocks, note } = spend.spend();
                let reserve = Reserve { id, mechanism, blocks, note, expires_in_seconds: *expires_in };
                self.decided(&open.ask(&spend.dataset, reserve)?)
            }
            Command::Commit { dataset, id, used } => {
                let done = open.ask(dataset, Commit { id: id.clone(), used: *used })?;
                let said = match used {
                    Some(used) => format!("reservation {id}: {used} used for good, the rest is still held"),
                    None => format!("reservation {id} is committed"),
                };
                self.done(&done, &said)
            }
            Command::Cancel { dataset, id, nothing_drawn } => {
                anyhow::ensure!(*nothing_drawn, "give --nothing-drawn to confirm that nothing more was drawn");
                let done = open.ask(dataset, Cancel { id: id.clone(), nothing_drawn: *nothing_drawn })?;
                self.done(&done, &format!("what was not used of reservation {id} is free again"))
            }
            Command::WhatIf(what_if) => {
                let (question, steps) = what_if.question(open)?;
                show::what_if(&open.ask(&what_if.dataset, question)?, steps, json)
            }
            Command::Show { dataset: Some(dataset) } => show::one(&open.ask(dataset, ShowDataset)?, json),
            Command::Show { dataset: None } => show::all(&open.ask(&(), ListDatasets)?, json),
            Command::History { dataset, last } => show::history(open, dataset.as_ref(), *last, json),
            Command::Grant(grant) => self.grant(grant),
            Command::Tokens => show::tokens(&open.ask(&(), ListTokens)?, json),
            Command::Revoke { hash } => self.revoke(hash),
            Command::Verify { receipt, prices } => {
                let demands = Demands { receipts: receipt, prices: *prices };
                let report =
                    check(open, place, demands).with_context(|| format!("ledger {place} cannot be trusted"))?;
                show::report(&report, json)
            }
            Command::Export => copy::export(open),
            Command::Backup { file } => copy::backup(open, file, json),
            // Done above: there is nothing to open yet.
            Command::Import { .. } => Ok(ExitCode::SUCCESS),
        }
    }

    fn done(&self, done: &Done, said: &str) -> anyhow::Result<ExitCode> {
        if self.json {
            print_json(&serde_json::to_value(done)?)?;
        } else if done.repeated {
            print(&format!("{said}: nothing to do, this was done before"))?;
        } else {
            print(said)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A decision: admitted exits 0, refused 1.
    fn decided(&self, answer: &Answer) -> anyhow::Result<ExitCode> {
        if self.json {
            print_json(&serde_json::to_value(answer)?)?;
        } else {
            print(&show::answer(answer))?;
        }
        Ok(match answer.decision {
            Decision::Admit => ExitCode::SUCCESS,
            Decision::Refuse => ExitCode::from(1),
        })
    }

    fn create(&self, create: &CreateArguments) -> anyhow::Result<ExitCode> {
        let asked = create.filter.asked()?;
        asked.words.rule().map_err(complaint)?;
        note_large_delta(create.filter.delta());
        let new = NewDataset {
            name: create.dataset.clone(),
            neighbors: asked.neighbors.into(),
            privacy_unit: asked.privacy_unit,
            filter: asked.words,
            reading_delta: number(create.reading_delta.as_ref()),
            blocks: create.blocks.clone(),
        };
        let (name, promise, unit, neighbors) = (&new.name, new.filter.promise(), &new.privacy_unit, asked.neighbors);
        let said = format!("dataset {name}: {promise} for one {unit} under {neighbors} neighbors, fixed for good");
        self.done(&self.open.ask(&(), new)?, &said)
    }

    fn allow(&self, allow: &AllowArguments) -> anyhow::Result<ExitCode> {
        let new = NewAllowance {
            name: allow.allowance.clone(),
            members: allow.members.clone(),
            epsilon: number(allow.epsilon.as_ref()),
            delta: number(allow.delta.as_ref()),
            rho: number(allow.rho.as_ref()),
            mu: number(allow.mu.as_ref()),
        };
        let before = self.open.ask(&allow.dataset, ShowDataset)?;
        let done = self.open.ask(&allow.dataset, new)?;
        let after = self.open.ask(&allow.dataset, ShowDataset)?;
        self.done(&done, &allow::told(&before, &after, &allow.allowance))
    }

    fn grant(&self, grant: &GrantArguments) -> anyhow::Result<ExitCode> {
        let new = NewToken {
            holder: grant.holder.clone(),
            role: grant.role.into(),
            datasets: grant.datasets.clone(),
            explicit_curves: grant.explicit_curves,
            expires_in_days: grant.expires_in_days,
        };
        let granted = self.open.ask(&(), new)?;
        if self.json {
            print_json(&serde_json::to_value(&granted)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let names = |names: &Vec<Name>| names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let places = grant.datasets.as_ref().map_or_else(|| "ALL datasets".to_owned(), names);
        let end = grant.expires_in_days.map_or_else(|| "never expires".to_owned(), |days| format!("for {days} days"));
        eprintln!("a token for {}, {} in {places}, {end}", grant.holder, Role::from(grant.role));
        eprintln!("This is shown once; the ledger keeps a hash of it:");
        print(&granted.token)?;
        Ok(ExitCode::SUCCESS)
    }

    fn revoke(&self, hash: &str) -> anyhow::Result<ExitCode> {
        let begins = hash.trim_end_matches('…');
        let tokens = self.open.ask(&(), ListTokens)?;
        let known: Vec<_> = tokens.iter().filter(|token| token.hash.to_string().starts_with(begins)).collect();
        let [token] = known[..] else {
            anyhow::bail!("{hash:?} is not the beginning of one token's hash; `paygo ledger tokens` lists them")
        };
        self.done(&self.open.ask(&token.hash, RevokeToken)?, &format!("the token of {} is revoked", token.holder))
    }
}

/// Derives everything from the log again, with a progress bar.
fn check(open: &Open, place: &Where, demands: Demands<'_>) -> anyhow::Result<paygo_ledger::verify::Report> {
    let (here, Where::Store(location)) = (open.here()?, place) else { anyhow::bail!("a file or a database is needed") };
    let state = here.ledger().read(Clone::clone);
    let bar = indicatif::ProgressBar::new(state.seq());
    let report = here.wait(async {
        let mut store = SqlStore::open(location).await?;
        anyhow::Ok(verify(&mut store, &state, demands, |done| bar.set_position(done)).await?)
    });
    bar.finish_and_clear();
    report
}

/// A word that nobody else has.
pub(crate) fn random_word() -> anyhow::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    Ok(hex::encode(bytes))
}
