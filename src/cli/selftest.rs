//! `paygo selftest`: the golden vectors against this build.

use super::output::{print, print_json};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder of reference values (golden vectors) [default: those built in]
    #[arg(long, value_name = "DIR")]
    golden: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut lines = Ok(());
    let report = paygo::selftest::run(arguments.golden.as_deref(), |family| {
        if arguments.json || lines.is_err() {
            return;
        }
        let skipped = if family.skipped > 0 { format!(", {} skipped", family.skipped) } else { String::new() };
        lines = print(&format!(
            "{} {}/{}, worst relative error {:.1e}{skipped}",
            family.family, family.passed, family.total, family.worst_relative_error
        ));
        for failure in &family.failures {
            eprintln!("  {failure}");
        }
    })?;
    lines?;
    if arguments.json {
        print_json(&serde_json::to_value(&report)?)?;
    } else {
        print(&format!("{} passed, {} failed, {} skipped", report.passed(), report.failed(), report.skipped()))?;
    }
    let waiting: Vec<&str> =
        report.families.iter().filter(|f| f.skipped > 0).map(|family| family.family.as_str()).collect();
    if !waiting.is_empty() {
        eprintln!(
            "skipped, because this build has no code for them: {}; a skip is not a pass, so the exit code is 1",
            waiting.join(", ")
        );
    }
    let clean = report.failed() == 0 && report.skipped() == 0;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
