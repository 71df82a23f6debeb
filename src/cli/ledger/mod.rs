//! `paygo ledger`: a durable budget that many share.

mod copy;
mod place;
mod show;

pub(crate) use place::{Named, Open, Place, PlaceArguments, Where, WhoArguments, opening};

use super::filter::FilterArguments;
use super::output::{print, print_json};
use super::stream::{Answer, Request, Responder, serve};
use super::words::complaint;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use paygo_accounting::charge::{Charge, Unpriced};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Rule};
use paygo_accounting::wire::{Mechanism, Number};
use paygo_ledger::entry::{Digest, Role};
use paygo_ledger::state::State;
use paygo_ledger::store::{Location, SqlStore};
use paygo_ledger::verify::{Demands, verify};
use paygo_ledger::words::{
    Answer as Decision, BlockWord, Blocks, Cancel, Commit, Done, NewAllowance, NewBlocks, NewDataset, NewToken,
    Question, Reserve, Spend, Verdict,
};
use paygo_ledger::{Name, Note, RequestId};
use place::Missing;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "A ledger is one file, made with its first dataset, or a PostgreSQL database. Every decision is durable before it is answered; a\nretry with the same id hears the first answer and is charged once. Whoever may write the file may do everything.\nExit 0: done or admitted, 1: refused, 2: something was wrong; nothing was charged unless the message says so.\n\nExamples:\n  paygo ledger --ledger our.ledger create sales --epsilon 3 --delta 1e-6 --privacy-unit customer\n  paygo ledger --ledger our.ledger spend sales q1 '{\"gaussian\": {\"noise_multiplier\": 10}}' --note \"weekly counts\"\n  paygo ledger --ledger our.ledger show sales\n  paygo ledger --ledger our.ledger verify\ndocs/ledger.md says what is promised and how."
)]
pub(crate) struct Arguments {
    /// Which ledger: a file, postgres://user@host/database, or https://host of a service
    #[arg(long, value_name = "FILE|URL", env = "PAYGO_LEDGER", global = true)]
    ledger: Option<Where>,
    #[command(flatten)]
    who: WhoArguments,
    /// Answer in JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a dataset with a budget; the budget is fixed for good.
    Create(Box<CreateArguments>),
    /// Add blocks to a dataset, each with the whole budget.
    AddBlocks {
        /// Which dataset
        dataset: Name,
        /// Their names
        #[arg(required = true)]
        blocks: Vec<Name>,
    },
    /// Set a ceiling for some of those who ask.
    Allow(AllowArguments),
    /// Close a dataset: nothing more is admitted.
    Close {
        /// Which dataset
        dataset: Name,
    },
    /// Ask, and be charged at once.
    Spend(SpendArguments),
    /// Ask, and hold what is admitted until it is committed or cancelled; what expires stays charged.
    Reserve {
        #[command(flatten)]
        spend: SpendArguments,
        /// How long it can be cancelled [default: 3600]
        #[arg(long, value_name = "SECONDS")]
        expires_in: Option<u64>,
    },
    /// Say how much of a reservation was used.
    Commit {
        /// Which dataset
        dataset: Name,
        /// The reservation's id
        id: RequestId,
        /// How many of a repeated mechanism so far [default: all, and the reservation is closed]
        #[arg(long)]
        used: Option<u64>,
    },
    /// Give back what was not used of a reservation.
    Cancel {
        /// Which dataset
        dataset: Name,
        /// The reservation's id
        id: RequestId,
        /// Your word that nothing was drawn beyond what was committed
        #[arg(long)]
        nothing_drawn: bool,
    },
    /// What would be answered now; nothing is charged.
    WhatIf(WhatIfArguments),
    /// Datasets, or one of them: what is spent, left, held, and by whom.
    Show {
        /// Which dataset [default: all of them, in short]
        dataset: Option<Name>,
    },
    /// The log, newest last.
    History {
        /// Only what is about this dataset
        dataset: Option<Name>,
        /// How many entries
        #[arg(long, default_value_t = 20, value_name = "N")]
        last: usize,
    },
    /// Grant a token for the service; it is shown once.
    Grant(GrantArguments),
    /// The tokens that were granted, by their hashes.
    Tokens,
    /// Revoke a token.
    Revoke {
        /// Its hash, as `tokens` shows it, or how that begins
        hash: String,
    },
    /// Derive every balance from the log with other code, and check every link of the chain.
    Verify {
        /// An entry that must be there: NUMBER:DIGEST, as an answer's `entry` and `receipt`
        #[arg(long, value_name = "NUMBER:DIGEST", value_parser = receipt)]
        receipt: Vec<(u64, Digest)>,
        /// Compute every price again as well: none may be less than what its mechanism costs
        #[arg(long)]
        prices: bool,
    },
    /// Write the log as JSON Lines to standard output.
    Export,
    /// Make this ledger from a log that was exported: every link and every budget is checked, all or nothing.
    Import {
        /// The log; - reads standard input
        log: PathBuf,
    },
    /// Copy this ledger, while it is in use, into a new file that is a ledger itself.
    Backup {
        /// The file; it must not be there yet
        file: PathBuf,
    },
}

#[derive(Args)]
struct CreateArguments {
    /// What it is called
    dataset: Name,
    #[command(flatten)]
    filter: FilterArguments,
    /// Disjoint parts of the data, each with the whole budget
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    blocks: Option<Vec<Name>>,
    /// The delta at which the odometer is read [default: the budget's, or 1e-6]
    #[arg(long, value_name = "DELTA")]
    reading_delta: Option<super::arguments::Decimal>,
}

#[derive(Args)]
struct AllowArguments {
    /// Which dataset
    dataset: Name,
    /// What the ceiling is called
    allowance: Name,
    /// Whose requests count against it
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    members: Vec<Name>,
    /// Epsilon of the ceiling
    #[arg(long)]
    epsilon: Option<super::arguments::Decimal>,
    /// Delta of the ceiling [default: the dataset's]
    #[arg(long)]
    delta: Option<super::arguments::Decimal>,
    /// Rho of the ceiling, where the dataset's kind is zcdp
    #[arg(long)]
    rho: Option<super::arguments::Decimal>,
    /// Mu of the ceiling, where the dataset's kind is gdp
    #[arg(long)]
    mu: Option<super::arguments::Decimal>,
}

#[derive(Args)]
struct SpendArguments {
    /// Which dataset
    dataset: Name,
    /// An id of your own making: a retry with the same id hears the first answer
    id: RequestId,
    /// What will be run, such as '{"gaussian": {"noise_multiplier": 10}}'
    #[arg(value_parser = mechanism)]
    mechanism: Mechanism,
    /// Which blocks it touches, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    blocks: Option<Vec<Name>>,
    /// What for, in a few words
    #[arg(long)]
    note: Option<Note>,
}

#[derive(Args)]
struct WhatIfArguments {
    /// Which dataset
    dataset: Name,
    /// What would be run
    #[arg(value_parser = mechanism)]
    mechanism: Mechanism,
    /// Which blocks it would touch, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    blocks: Option<Vec<Name>>,
}

#[derive(Args)]
struct GrantArguments {
    /// Whoever shall ask with it
    holder: Name,
    /// What it allows
    #[arg(long, value_enum)]
    role: RoleArgument,
    /// Only in these datasets
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    datasets: Option<Vec<Name>>,
    /// May also ask for explicit Rényi curves, which cannot be checked
    #[arg(long)]
    explicit_curves: bool,
    /// For how long [default: until it is revoked]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    expires_in_days: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArgument {
    /// Everything, tokens and new datasets too
    Admin,
    /// Blocks, allowances and closing, and whatever spenders may
    Steward,
    /// To spend, reserve, commit and cancel, and to read
    Spender,
    /// To read, the log too
    Auditor,
}

impl From<RoleArgument> for Role {
    fn from(role: RoleArgument) -> Self {
        match role {
            RoleArgument::Admin => Self::Admin,
            RoleArgument::Steward => Self::Steward,
            RoleArgument::Spender => Self::Spender,
            RoleArgument::Auditor => Self::Auditor,
        }
    }
}

fn mechanism(text: &str) -> Result<Mechanism, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn receipt(text: &str) -> Result<(u64, Digest), String> {
    let wrong = || "expected NUMBER:DIGEST, such as an answer's entry and receipt".to_owned();
    let (number, digest) = text.split_once(':').ok_or_else(wrong)?;
    Ok((number.parse().map_err(|_| wrong())?, digest.parse().map_err(|_| wrong())?))
}

fn blocks(names: Option<&Vec<Name>>) -> Option<Blocks> {
    names.map(|names| match names.as_slice() {
        [one] if one.as_str() == "all" => Blocks::Word(BlockWord::All),
        these => Blocks::These(these.to_vec()),
    })
}

fn number(decimal: Option<&super::arguments::Decimal>) -> Option<Number> {
    decimal.map(|decimal| Number::Decimal(decimal.as_str().to_owned()))
}

impl SpendArguments {
    fn spend(&self) -> Spend {
        let (id, mechanism, note) = (self.id.clone(), self.mechanism.clone(), self.note.clone());
        Spend { id, mechanism, blocks: blocks(self.blocks.as_ref()), note }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let place = arguments.ledger.as_ref().context("give --ledger FILE, or set PAYGO_LEDGER")?;
    if let Command::Import { log } = &arguments.command {
        return copy::import(place, log, arguments.json);
    }
    let missing = if matches!(arguments.command, Command::Create(_)) { Missing::IsMade } else { Missing::IsAnError };
    let open = Open::new(place, &arguments.who, missing)?;
    let done = |done: Done, said: String| -> anyhow::Result<ExitCode> {
        if arguments.json {
            print_json(&serde_json::to_value(&done)?)?;
        } else {
            print(&if done.repeated { format!("{said}: it is so already") } else { said })?;
        }
        Ok(ExitCode::SUCCESS)
    };
    match &arguments.command {
        Command::Create(create) => {
            let asked = create.filter.asked()?;
            asked.words.rule().map_err(complaint)?;
            let name = create.dataset.clone();
            let new = NewDataset {
                name: name.clone(),
                neighbors: asked.neighbors.into(),
                privacy_unit: asked.privacy_unit,
                filter: asked.words,
                reading_delta: number(create.reading_delta.as_ref()),
                blocks: create.blocks.clone(),
            };
            let (promise, unit, neighbors) = (new.filter.promise(), new.privacy_unit.clone(), asked.neighbors);
            let said = format!("dataset {name}: {promise} for one {unit} under {neighbors} neighbors, fixed for good");
            done(open.create_dataset(new)?, said)
        }
        Command::AddBlocks { dataset, blocks } => {
            let said = format!("dataset {dataset} has them, each with the whole budget");
            done(open.add_blocks(dataset, NewBlocks { blocks: blocks.clone() })?, said)
        }
        Command::Allow(allow) => {
            let new = NewAllowance {
                name: allow.allowance.clone(),
                members: allow.members.clone(),
                epsilon: number(allow.epsilon.as_ref()),
                delta: number(allow.delta.as_ref()),
                rho: number(allow.rho.as_ref()),
                mu: number(allow.mu.as_ref()),
            };
            let said = format!("allowance {} is set", allow.allowance);
            done(open.set_allowance(&allow.dataset, new)?, said)
        }
        Command::Close { dataset } => done(open.close_dataset(dataset)?, format!("dataset {dataset} is closed")),
        Command::Spend(spend) => decision(&open.spend(&spend.dataset, spend.spend())?, arguments.json),
        Command::Reserve { spend, expires_in } => {
            let Spend { id, mechanism, blocks, note } = spend.spend();
            let reserve = Reserve { id, mechanism, blocks, note, expires_in_seconds: *expires_in };
            decision(&open.reserve(&spend.dataset, reserve)?, arguments.json)
        }
        Command::Commit { dataset, id, used } => {
            let commit = Commit { id: id.clone(), used: *used };
            let said = match used {
                Some(used) => format!("reservation {id}: {used} used for good, the rest is still held"),
                None => format!("reservation {id} is committed"),
            };
            done(open.commit(dataset, commit)?, said)
        }
        Command::Cancel { dataset, id, nothing_drawn } => {
            anyhow::ensure!(*nothing_drawn, "give --nothing-drawn: your word that nothing of it was drawn");
            let cancel = Cancel { id: id.clone(), nothing_drawn: *nothing_drawn };
            done(open.cancel(dataset, cancel)?, format!("what was not used of reservation {id} is free again"))
        }
        Command::WhatIf(what_if) => {
            let (mechanism, blocks) = (what_if.mechanism.clone(), blocks(what_if.blocks.as_ref()));
            show::what_if(&open.what_if(&what_if.dataset, Question { mechanism, blocks })?, arguments.json)
        }
        Command::Show { dataset: Some(dataset) } => show::one(&open.dataset(dataset)?, arguments.json),
        Command::Show { dataset: None } => show::all(&open.datasets()?, arguments.json),
        Command::History { dataset, last } => show::history(&open, dataset.as_ref(), *last, arguments.json),
        Command::Grant(grant) => {
            let granted = open.grant(NewToken {
                holder: grant.holder.clone(),
                role: grant.role.into(),
                datasets: grant.datasets.clone(),
                explicit_curves: grant.explicit_curves,
                expires_in_days: grant.expires_in_days,
            })?;
            if arguments.json {
                print_json(&serde_json::to_value(&granted)?)?;
            } else {
                let names = |names: &Vec<Name>| names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
                let places = grant.datasets.as_ref().map_or_else(|| "ALL datasets".to_owned(), names);
                let end =
                    grant.expires_in_days.map_or_else(|| "never expires".to_owned(), |days| format!("for {days} days"));
                eprintln!("a token for {}, {} in {places}, {end}", grant.holder, Role::from(grant.role));
                eprintln!("This is shown once; the ledger keeps a hash of it:");
                print(&granted.token)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Tokens => show::tokens(&open.tokens()?, arguments.json),
        Command::Revoke { hash } => {
            let begins = hash.trim_end_matches('…');
            let known = open.tokens()?.into_iter().filter(|token| token.hash.to_string().starts_with(begins));
            let [token] = &known.collect::<Vec<_>>()[..] else {
                anyhow::bail!("{hash:?} is not how one hash begins; `paygo ledger tokens` shows them")
            };
            done(open.revoke(token.hash)?, format!("the token of {} is revoked", token.holder))
        }
        Command::Verify { receipt, prices } => {
            let (here, Where::Store(location)) = (open.here()?, place) else { anyhow::bail!("a store is needed") };
            let state = here.ledger().read(Clone::clone);
            let report = here.wait(check(location, &state, Demands { receipts: receipt, prices: *prices }));
            let report = report.with_context(|| format!("ledger {place} cannot be trusted"))?;
            show::report(&report, arguments.json)
        }
        Command::Export => {
            let mut after = 0;
            loop {
                let lines = open.lines(after, 4096)?;
                if lines.is_empty() {
                    return Ok(ExitCode::SUCCESS);
                }
                after += lines.len() as u64;
                print(&lines.join("\n"))?;
            }
        }
        Command::Backup { file } => copy::backup(&open, file, arguments.json),
        // Done above: there is nothing to open yet.
        Command::Import { .. } => Ok(ExitCode::SUCCESS),
    }
}

async fn check(
    location: &Location,
    state: &State,
    demands: Demands<'_>,
) -> anyhow::Result<paygo_ledger::verify::Report> {
    let mut store = SqlStore::open(location).await?;
    let bar = indicatif::ProgressBar::new(state.seq());
    let report = verify(&mut store, state, demands, |done| bar.set_position(done)).await;
    bar.finish_and_clear();
    Ok(report?)
}

/// A decision: admitted exits 0, refused 1.
fn decision(answer: &Decision, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(answer)?)?;
    } else {
        print(&show::answer(answer))?;
    }
    Ok(match answer.decision {
        Verdict::Admit => ExitCode::SUCCESS,
        Verdict::Refuse => ExitCode::from(1),
    })
}

/// A word that nobody else has.
pub(crate) fn random_word() -> anyhow::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// `paygo filter --ledger`: one answer a line, ids kept for good.
pub(crate) fn filter(place: &Place) -> anyhow::Result<ExitCode> {
    let rule = place.dataset.filter.rule().map_err(complaint)?;
    let mut charging = Charging { place, rule };
    let counts = serve(&mut charging, place.dataset.neighbors.into())?;
    let admitted = counts.answered - counts.refused;
    eprintln!("admitted {admitted}, refused {}, repeated {}, wrong {}", counts.refused, counts.repeated, counts.wrong);
    Ok(counts.exit_code())
}

struct Charging<'a> {
    place: &'a Place,
    rule: AnyRule,
}

impl Responder for Charging<'_> {
    fn price(&self, cost: &Cost) -> Result<Charge, Unpriced> {
        self.rule.currency().price(cost, cost.neighbors())
    }

    fn keeps_ids(&self) -> bool {
        true
    }

    fn respond(&mut self, request: &Request, _charge: &Charge) -> anyhow::Result<Answer> {
        let id = match &request.id {
            Some(id) => RequestId::new(id.as_str())?,
            None => {
                anyhow::bail!("a ledger keeps ids for good: give each request one, {{\"id\": \"…\", \"mechanism\": …}}")
            }
        };
        let spend = Spend { id, mechanism: request.mechanism.clone(), blocks: self.place.blocks.clone(), note: None };
        let answer = self.place.open.spend(&self.place.dataset.name, spend)?;
        let fields: Value = serde_json::to_value(&answer)?;
        Ok(Answer { fields, refused: answer.decision == Verdict::Refuse, repeated: answer.repeated })
    }
}
