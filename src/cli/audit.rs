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
#[command(
    after_help = "Each line is one subject against one adversary: the probability that was promised not to be passed, the one\nthat was found, and its 99.9 % limits; violated means that even the lower limit is above the promise. Names that end\nin unsound are published forms as they are printed; they are here to be convicted.\n\nAdversaries: march and gaussian-march repeat one step; scales raises costs over thirteen decades; chase spends a tenth\nof the squared distance to the bound; martingale doubles when behind; reveal sometimes reveals everything; leak loses a\nlittle for sure; order-switch and response-tree are enumerated exactly; one Gaussian is a formula.\n\n Exit 0: every shipped form was acquitted and every printed one convicted; 1: not so.\n\nExamples:\n  paygo audit --paths 2000\n  paygo audit --paths 20000        # the full size\n  paygo audit --only ville-mixture --json"
)]
pub(crate) struct Arguments {
    /// Paths of each simulated trial
    #[arg(long, value_name = "COUNT", default_value = "2000")]
    paths: CountArgument,
    /// Where the simulation's random numbers start
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
        "nothing is called {}; there are:\n  {}",
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
            "shipped: {} acquitted, {} convicted; printed forms: {} convicted, {} acquitted",
            count(true, false),
            count(true, true),
            count(false, true),
            count(false, false)
        ))?;
    }
    Ok(if expected { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
