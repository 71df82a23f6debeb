//! `paygo query account`: one person's own account.

use super::super::output::{json_amount, json_number, print, print_json, shown_amount, shown_up};
use super::short;
use clap::Args;
use paygo_accounting::individual::FULL;
use paygo_accounting::individual::odometer::reading_of_rho;
use paygo_accounting::odometer::VilleMixture;
use paygo_accounting::params::{Delta, Epsilon};
use paygo_accounting::prior::Prior;
use paygo_accounting::secret::Secret;
use paygo_analysis::{Accounts, Mode, PersonBudget};
use paygo_numeric::decimal::parse_down;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Arguments {
    /// File that keeps what each person has spent
    #[arg(long, value_name = "FILE")]
    accounts: PathBuf,
    /// Id of the person, as it is in the table
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    person: String,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let accounts = Accounts::open(&arguments.accounts, None)?;
    let column = accounts.settings().person.clone();
    let Some(account) = accounts.disclose(&arguments.person)? else {
        anyhow::bail!("no account for `{column}` = {}", arguments.person)
    };
    // For the person it is about, who asked for it: said below.
    let account = account.expose();
    let limit = account.tier.budget.budget()?.limit();
    let percent = 100.0 * f64::from(account.share) / f64::from(FULL);
    let delta = match &account.tier.budget {
        // ROUNDING: down; a smaller delta reads higher.
        PersonBudget::EpsilonDelta { delta, .. } => Delta::new(parse_down(delta).unwrap_or(0.0))?,
        PersonBudget::Rho(_) => Delta::new(1e-6)?,
    };
    let boundary = VilleMixture::new(delta, Prior::for_budget(Epsilon::new(1.0)?, delta))?;
    let reading = reading_of_rho(&boundary, Secret::new(account.spent)).expose().get();
    let public = accounts.settings().mode == Mode::WorstCase;
    let whom = match public {
        true => {
            format!("the account of {column} {}: in the worst-case mode it is the same for everybody", arguments.person)
        }
        false => format!("for disclosure to {column} {} only: it depends on their own rows", arguments.person),
    };
    let promised = match &account.tier.budget {
        PersonBudget::EpsilonDelta { epsilon, delta } => {
            format!("epsilon {} at delta {} (rho {})", short(epsilon), short(delta), shown_amount(limit, false))
        }
        PersonBudget::Rho(rho) => format!("rho {rho}"),
    };
    if arguments.json {
        print_json(&json!({
            "for": whom,
            "person": arguments.person,
            "budget": account.tier.budget.to_string(),
            "rounds": accounts.rounds(),
            "spent": {"rho": json_amount(account.spent, true), "share": f64::from(account.share) / f64::from(FULL)},
            "remaining": {"rho": json_amount(limit.minus(account.spent), false)},
            "reading": {"epsilon": json_number(reading), "delta": json_number(delta.get())},
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{whom}\npromised: {promised} in all, whatever is asked\nused: {} % in {} rounds, rho {}; {} remains\nso far: with probability \
         1 - {}, what was released tells less than epsilon {} about them\n(the last line is an odometer's: it holds at every moment, so \
         it may be above the epsilon that is promised for the end)",
        shown_up(percent),
        accounts.rounds(),
        shown_amount(account.spent, true),
        shown_amount(limit.minus(account.spent), false),
        delta.get(),
        shown_up(reading),
    ))?;
    Ok(ExitCode::SUCCESS)
}
