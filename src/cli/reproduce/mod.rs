//! `paygo reproduce`: what the five papers print, what their formulas give, and what may be promised.

mod asoodeh;
mod feldman_zrnic;
mod lecuyer;
mod sparse_streams;
mod trained;
mod whitehouse;
mod yu;

use super::output::{print, print_json, table};
use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use paygo_report::{Block, LineChart, Page, Series, Table};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Without --data, only the papers' accounting is reproduced. Each row has what the paper \
    prints, what its formula gives here, and a sound value with the method behind it. With --data, the experiments \
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

/// One paper.
pub(super) struct Study {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) rows: Vec<Row>,
    pub(super) figures: Vec<Figure>,
}

/// One comparison.
pub(super) struct Row {
    pub(super) what: String,
    /// As it is printed; empty when nothing is.
    pub(super) paper: String,
    /// What the paper's formula gives here.
    pub(super) literal: f64,
    /// What may be promised, and by what.
    pub(super) sound: (f64, &'static str),
    pub(super) note: &'static str,
}

/// One drawing.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) caption: &'static str,
    pub(super) chart: LineChart,
}

impl Row {
    /// Whether the formula's value is the printed one, rounded or cut to the printed digits; `None` when none is printed.
    fn agrees(&self) -> Option<bool> {
        let printed: f64 = self.paper.parse().ok()?;
        let places = self.paper.split_once('.').map_or(0, |(_, places)| places.len());
        let unit = 10f64.powi(-i32::try_from(places).unwrap_or(0));
        let off = self.literal - printed;
        Some(off.abs() <= 0.5 * unit * (1.0 + 1e-9) || (0.0..unit).contains(&off))
    }
}

/// A line of a chart.
pub(super) fn line(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points, dashed: false }
}

/// A dashed line: a number that is no bound.
pub(super) fn unsound(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points, dashed: true }
}

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
        for one in (study.tables)(data, trials, only)? {
            if arguments.json {
                print_json(&json!({"title": one.title, "about": one.about, "header": one.header, "rows": one.rows}))?;
            } else {
                print(&format!("{}\n{}\n{}\n", one.title, one.about, table(&one.header, one.rows)))?;
                for (name, svg) in one.figures {
                    let at = arguments.out.join(name);
                    std::fs::create_dir_all(&arguments.out).with_context(|| arguments.out.display().to_string())?;
                    std::fs::write(&at, svg).with_context(|| at.display().to_string())?;
                    print(&format!("drawn in {}", at.display()))?;
                }
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
    type Make = fn() -> anyhow::Result<Study>;
    let all: [(What, Make); 5] = [
        (What::Lecuyer, lecuyer::study),
        (What::Asoodeh, asoodeh::study),
        (What::Whitehouse, whitehouse::study),
        (What::Yu, yu::study),
        (What::FeldmanZrnic, feldman_zrnic::study),
    ];
    let wanted: Vec<_> = all.into_iter().filter(|(what, _)| [What::All, *what].contains(&arguments.what)).collect();
    let bar = ProgressBar::new(wanted.len() as u64);
    bar.set_style(ProgressStyle::with_template("{msg:20} [{bar:30}] {pos}/{len}")?);
    let mut studies = Vec::new();
    for (what, make) in wanted {
        bar.set_message(format!("{what:?}"));
        studies.push(make()?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if arguments.json {
        print_json(&json!(studies.iter().map(study_json).collect::<Vec<_>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&arguments.out).with_context(|| arguments.out.display().to_string())?;
    for study in &studies {
        print(&format!("{}\n{}\n", study.title, table(&HEADER, cells(study))))?;
        for figure in &study.figures {
            figure.chart.write_svg(&arguments.out.join(format!("{}-{}.svg", study.key, figure.name)))?;
        }
    }
    let path = arguments.out.join("index.html");
    std::fs::write(&path, page(&studies)?.html()).with_context(|| path.display().to_string())?;
    print(&format!("report: {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

const HEADER: [&str; 6] = ["what", "paper", "paper's formula, here", "agrees", "sound", "note"];

fn cells(study: &Study) -> Vec<Vec<String>> {
    let row = |row: &Row| {
        let agrees = match row.agrees() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        vec![
            row.what.clone(),
            if row.paper.is_empty() { "-".to_owned() } else { row.paper.clone() },
            shown(row.literal),
            agrees.to_owned(),
            format!("{} ({})", shown(row.sound.0), row.sound.1),
            row.note.to_owned(),
        ]
    };
    study.rows.iter().map(row).collect()
}

fn shown(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e6 { x.to_string() } else { super::output::shown_up(x) }
}

fn study_json(study: &Study) -> serde_json::Value {
    let row = |row: &Row| {
        json!({
            "what": row.what, "paper": row.paper, "literal": row.literal, "agrees": row.agrees(),
            "sound": row.sound.0, "method": row.sound.1, "note": row.note,
        })
    };
    json!({"paper": study.key, "title": study.title, "rows": study.rows.iter().map(row).collect::<Vec<_>>()})
}

fn page(studies: &[Study]) -> anyhow::Result<Page> {
    let mut blocks = vec![Block::Text(
        "Each row has what the paper prints, what its formula gives here, and a value that may be promised, with the method \
         behind it. Dashed lines are not bounds: printed forms that are unsound, or estimates."
            .into(),
    )];
    for study in studies {
        blocks.push(Block::Heading(study.title.into()));
        blocks.push(Block::Text(study.about.into()));
        let header = HEADER.iter().map(|&cell| cell.into()).collect();
        blocks.push(Block::Table(Table { header, rows: cells(study) }));
        for figure in &study.figures {
            blocks.push(Block::Figure { svg: figure.chart.svg()?, caption: figure.caption.into() });
        }
    }
    Ok(Page { title: "Five papers, reproduced".into(), blocks })
}
