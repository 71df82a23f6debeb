//! `paygo audit`: adversaries against filters and odometers.

use super::arguments::CountArgument;
use super::output::{print, print_json, shown_up, table};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use paygo_audit::suite::{self, Options};
use paygo_audit::{Method, Verdict};
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Each line is one subject against one adversary: the probability that the subject promises, \
    the one that was found, and its 99.9 % limits. VIOLATED means that even the lower limit is above the promise. \
    Subjects whose names end in unsound are published rules that are wrong: they should be violated.\n\n\
    Exit codes: 0 everything shipped holds and every unsound rule is violated, 1 otherwise.\n\n\
    Examples:\n  \
    paygo audit\n  \
    paygo audit --paths 20000        # the full size\n  \
    paygo audit --only ville-mixture --json\n\n\
    See docs/theory/11-audit.md for the adversaries.")]
pub(crate) struct Arguments {
    /// Simulated paths per trial; more make the limits narrower
    #[arg(long, value_name = "COUNT", default_value = "2000")]
    paths: CountArgument,
    /// Seed of the simulation's random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only subjects whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = Options { paths: arguments.paths.0.get(), seed: arguments.seed, only: arguments.only.clone() };
    let size = suite::size(&options);
    anyhow::ensure!(
        size > 0,
        "--only {}: no subject has this in its name; expected a part of one of these:\n  {}",
        arguments.only.as_deref().unwrap_or(""),
        suite::names().join("\n  ")
    );
    // Draws on standard error, and only on a terminal.
    let bar = ProgressBar::new(size);
    bar.set_style(
        ProgressStyle::with_template("{msg:42} [{bar:30}] {percent:>3} %, {eta} left")?.progress_chars("=> "),
    );
    let trials = suite::run(&options, &|done| bar.inc(done), |trial| bar.set_message(trial.subject.clone()));
    bar.finish_and_clear();
    let expected = suite::as_expected(&trials);
    if arguments.json {
        print_json(&json!({"as_expected": expected, "trials": trials}))?;
    } else {
        let rows = trials.iter().map(|trial| {
            let limits = match trial.method {
                Method::Exact => "exact".to_owned(),
                Method::MonteCarlo => format!("{:.4} to {:.4}", trial.limits.0, trial.limits.1),
            };
            let verdict = match trial.verdict {
                Verdict::Holds => "holds",
                Verdict::Violated => "VIOLATED",
            };
            let found =
                if trial.method == Method::Exact { shown_up(trial.found) } else { format!("{:.4}", trial.found) };
            vec![
                trial.subject.clone(),
                trial.adversary.clone(),
                shown_up(trial.promised),
                found,
                limits,
                verdict.to_owned(),
            ]
        });
        print(&table(&["subject", "adversary", "promised", "found", "99.9 % limits", "verdict"], rows))?;
        let subjects = suite::subjects(&trials);
        let count = |shipped: bool, violated: bool| {
            subjects.iter().filter(|subject| subject.1 == shipped && subject.2 == violated).count()
        };
        print(&format!(
            "shipped: {} hold, {} violated; published rules that are wrong: {} violated, {} hold",
            count(true, false),
            count(true, true),
            count(false, true),
            count(false, false)
        ))?;
    }
    Ok(if expected { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
