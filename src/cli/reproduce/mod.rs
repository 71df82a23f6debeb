//! `paygo reproduce`: what the five papers print, what their formulas give, and what may be promised.

mod asoodeh;
mod claim;
mod feldman_zrnic;
mod figure;
mod lecuyer;
mod odometers;
mod report;
mod schedules;
mod sparse_streams;
mod trained;
mod whitehouse;
mod yu;

use super::output::{print, print_json};
use claim::Paper;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use report::Study;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Without --data, only the papers' accounting is reproduced. Each row has a claim's \
    place in the paper, what is printed there, what its formula gives here, and a sound value with the method behind it. With --data, the experiments \
    are trained again, on public data and with seeded noise, and their tables are printed beside the papers'.\n\n\
    Examples:\n  \
    paygo reproduce all --out reproduction\n  \
    paygo reproduce yu --json\n  \
    paygo reproduce feldman-zrnic --data DIR --trials 10\n  \
    paygo reproduce yu --data DIR --only cancer\n\n\
    See docs/reproductions.md for the results.")]
pub(crate) struct Arguments {
    /// Which paper
    #[arg(value_enum)]
    what: What,
    /// Folder for the report and its figures; created if missing
    #[arg(long, value_name = "DIR", default_value = "reproduction")]
    out: PathBuf,
    /// Folder of the public data sets; trains the experiments again
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// With --data: how often each experiment is trained, 1 to 1000
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "data")]
    trials: u64,
    /// With --data: seed of the first trial
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "data")]
    seed: u64,
    /// With --data: only one part, such as adult, or mnist:0.3 for one line of a table
    #[arg(long, value_name = "WHAT", requires = "data")]
    only: Option<String>,
    /// Answer in JSON, and write no report
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// All five
    All,
    /// [L] Lécuyer: filters and odometers on CIFAR-10
    Lecuyer,
    /// [A] Asoodeh et al.: Figs. 1-3
    Asoodeh,
    /// [W] Whitehouse et al.: the comparison of odometers
    Whitehouse,
    /// [Y] Yu et al.: Figs. 1-3, Tables II and III
    Yu,
    /// [FZ] Feldman and Zrnic: epsilon of both tables, Fig. 2's odometer, Prop. 2.9
    FeldmanZrnic,
}

/// In the order in which they are shown.
const PAPERS: [(What, Paper); 5] = [
    (What::Lecuyer, lecuyer::PAPER),
    (What::Asoodeh, asoodeh::PAPER),
    (What::Whitehouse, whitehouse::PAPER),
    (What::Yu, yu::PAPER),
    (What::FeldmanZrnic, feldman_zrnic::PAPER),
];

/// The experiments, trained again.
fn train(arguments: &Arguments, data: &Path) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((1..=1000).contains(&arguments.trials), "--trials {}; expected 1 to 1000", arguments.trials);
    let trials = trained::Trials { count: arguments.trials, seed: arguments.seed };
    let mut studies = match arguments.what {
        What::FeldmanZrnic => vec![trained::FELDMAN_ZRNIC],
        What::Yu => vec![trained::YU],
        What::Lecuyer => vec![trained::LECUYER],
        What::All => vec![trained::FELDMAN_ZRNIC, trained::YU, trained::LECUYER],
        What::Asoodeh | What::Whitehouse => {
            anyhow::bail!("--data goes with feldman-zrnic, yu, lecuyer or all: nothing is trained for the others")
        }
    };
    let only = arguments.only.as_deref();
    if let Some(only) = only {
        let parts = studies.iter().flat_map(|study| study.parts).copied().collect::<Vec<_>>().join(", ");
        studies.retain(|study| study.parts.contains(&only));
        anyhow::ensure!(!studies.is_empty(), "--only {only}; expected one of {parts}");
    }
    for study in studies {
        let clock = std::time::Instant::now();
        let command = study.command(trials, only);
        for table in (study.tables)(data, trials, only)? {
            if arguments.json {
                print_json(&table.json(&command))?;
            } else {
                table.show(&command, &arguments.out)?;
            }
        }
        if !arguments.json {
            print(&format!("trained in {:.0} s", clock.elapsed().as_secs_f64()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(data) = &arguments.data {
        return train(arguments, data);
    }
    let papers = PAPERS.iter().filter(|(what, _)| [What::All, *what].contains(&arguments.what));
    let papers: Vec<&Paper> = papers.map(|(_, paper)| paper).collect();
    let bar = ProgressBar::new(papers.len() as u64);
    bar.set_style(ProgressStyle::with_template("{msg:20} [{bar:30}] {pos}/{len}")?);
    let mut studies = Vec::new();
    for paper in papers {
        bar.set_message(paper.key);
        // A drawing is for people.
        let figures = if arguments.json { &[] } else { paper.figures };
        studies.push(Study::of(paper, figures)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if arguments.json {
        print_json(&studies.iter().map(Study::json).collect())?;
    } else {
        report::write(&studies, &arguments.out)?;
    }
    Ok(ExitCode::SUCCESS)
}
