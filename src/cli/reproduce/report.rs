//! What `paygo reproduce` shows: tables, figures, JSON and a page.

use super::claim::{Paper, Row};
use super::figure::Figure;
use crate::cli::output::{print, shown_up, table};
use anyhow::Context;
use paygo_report::{Block, Page, Table};
use serde_json::{Value, json};
use std::path::Path;

/// A paper whose numbers are found and whose figures are drawn.
pub(super) struct Study {
    paper: &'static Paper,
    rows: Vec<Row>,
    /// Each with its drawing, as SVG.
    figures: Vec<(&'static Figure, String)>,
}

impl Study {
    /// Finds all numbers, and draws some figures.
    pub(super) fn of(paper: &'static Paper, figures: &'static [Figure]) -> anyhow::Result<Self> {
        let draw = |figure: &'static Figure| anyhow::Ok((figure, (figure.chart)()?.svg()?));
        Ok(Self { paper, rows: paper.rows()?, figures: figures.iter().map(draw).collect::<anyhow::Result<_>>()? })
    }

    pub(super) fn json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "source": row.source, "what": row.what, "paper": row.printed, "literal": row.literal,
                "agrees": row.agrees(), "sound": row.sound, "method": row.method, "note": row.note,
            })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({"paper": self.paper.key, "title": self.paper.title, "command": self.paper.command(), "rows": rows})
    }

    fn cells(&self) -> Vec<Vec<String>> {
        self.rows.iter().map(cells).collect()
    }
}

/// Prints the tables; puts the figures, and a page with everything, into a folder.
pub(super) fn write(studies: &[Study], folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        anyhow::Ok(path)
    };
    for study in studies {
        print(&format!("{}\n{}\n{}\n", study.paper.title, study.paper.command(), table(&HEADER, study.cells())))?;
        for (figure, svg) in &study.figures {
            file(&format!("{}-{}.svg", study.paper.key, figure.name), svg)?;
        }
    }
    print(&format!("report: {}", file("index.html", &page(studies).html())?.display()))
}

const HEADER: [&str; 7] = ["source", "what", "paper", "paper's formula, here", "agrees", "sound", "note"];

fn cells(row: &Row) -> Vec<String> {
    let agrees = match row.agrees() {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    };
    vec![
        row.source.to_owned(),
        row.what.clone(),
        if row.printed.is_empty() { "-".to_owned() } else { row.printed.clone() },
        shown(row.literal),
        agrees.to_owned(),
        format!("{} ({})", shown(row.sound), row.method),
        row.note.to_owned(),
    ]
}

fn shown(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e6 { x.to_string() } else { shown_up(x) }
}

fn page(studies: &[Study]) -> Page {
    let mut blocks = vec![Block::Text(
        "Each row has a claim's place in the paper, what is printed there, what its formula gives here, and a value that may be \
         promised, with the method behind it. Dashed lines are not bounds: printed forms that are unsound, or estimates."
            .into(),
    )];
    for study in studies {
        blocks.push(Block::Heading(study.paper.title.into()));
        blocks.push(Block::Text(study.paper.about.into()));
        blocks.push(Block::Text(format!("Made by: {}", study.paper.command())));
        let header = HEADER.iter().map(|&cell| cell.into()).collect();
        blocks.push(Block::Table(Table { header, rows: study.cells() }));
        for (figure, svg) in &study.figures {
            blocks.push(Block::Figure { svg: svg.clone(), caption: figure.caption.into() });
        }
    }
    Page { title: "Five papers, reproduced".into(), blocks }
}
