//! `paygo query status`: what is public about accounts.

use super::super::output::{print, print_json, shown_up};
use super::promise;
use clap::Args;
use paygo_accounting::individual::FULL;
use paygo_analysis::Accounts;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Arguments {
    /// File that keeps what each person has spent
    #[arg(long, value_name = "FILE")]
    accounts: PathBuf,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let accounts = Accounts::open(&arguments.accounts, None)?;
    let settings = accounts.settings();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let worst_case = accounts.worst_case() as f64 / f64::from(FULL);
    if arguments.json {
        let certain = worst_case <= 1.0;
        print_json(&json!({"settings": settings, "rounds": accounts.rounds(), "worst_case": worst_case,
            "certainly_everyone": certain}))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{}\nmode: {}\nrounds: {}\nworst case so far: {} % of a budget{}",
        promise(settings),
        settings.mode,
        accounts.rounds(),
        shown_up(100.0 * worst_case),
        if worst_case <= 1.0 { "; everybody took part in every round" } else { "" }
    ))?;
    Ok(ExitCode::SUCCESS)
}
