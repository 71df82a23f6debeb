//! Answers as rows, as JSON and as a page.

use super::{Asked, participation, promise, short};
use paygo_analysis::{Answer, Answers, Exhausted, Mode, Number, Query};
use paygo_report::{Block, IntervalChart, Page, Table};
use serde_json::{Value, json};

/// The heading of the column of intervals.
pub(super) fn interval_name(confidence: &str) -> String {
    let percent: f64 = confidence.parse().map_or(f64::NAN, |confidence: f64| 100.0 * confidence);
    format!("{} % interval", (percent * 1e6).round() / 1e6)
}

/// The headings of the table. Where people may be missing, it says so.
pub(super) fn header(answers: &Answers, asked: &Asked, confidence: &str) -> [String; 4] {
    let complete = answers.everyone || asked.settings.mode == Mode::WorstCase;
    let answer = match (complete, asked.manner.exhausted) {
        (true, _) => "answer",
        (false, Exhausted::LeftOut) => "answer (people may be missing)",
        (false, Exhausted::ScaledDown) => "answer (people may count less)",
    };
    ["query".into(), answer.into(), interval_name(confidence), "noise".into()]
}

/// A number to about a hundredth of its uncertainty.
fn shown(x: f64, uncertainty: f64) -> String {
    let places = (0..15).find(|&places| uncertainty * 10f64.powi(places) >= 50.0).unwrap_or(15);
    let text = format!("{x:.*}", usize::try_from(places).unwrap_or(0));
    if text.trim_start_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-').to_owned() } else { text }
}

fn cells(answer: &Answer, estimate: &Number) -> [String; 4] {
    let name = match estimate.label.as_str() {
        "" => answer.name.clone(),
        label => format!("{}: {label}", answer.name),
    };
    let uncertainty = (estimate.high - estimate.low) / 2.0;
    let interval = format!("{} to {}", shown(estimate.low, uncertainty), shown(estimate.high, uncertainty));
    let of_the_sum = if answer.statistic == "mean" { " in the sum" } else { "" };
    let noise = format!("{}{of_the_sum}", answer.noise_std);
    [name, shown(estimate.value, uncertainty), interval, noise]
}

/// One row for each number.
pub(super) fn rows(answers: &Answers) -> Vec<Vec<String>> {
    let rows = |answer: &Answer| answer.numbers.iter().map(|e| cells(answer, e).to_vec()).collect::<Vec<_>>();
    answers.answers.iter().flat_map(rows).collect()
}

pub(super) fn json(answers: &Answers, asked: &Asked, confidence: f64) -> Value {
    let settings = &asked.settings;
    json!({
        "answers": answers.answers,
        "confidence": confidence,
        "certainly_everyone": answers.everyone || settings.mode == Mode::WorstCase,
        "worst_case": answers.worst_case,
        "promise": {
            "neighbors": "add-remove",
            "privacy_unit": settings.person,
            "basis": "FullyAdaptive",
            "mode": settings.mode,
            "tier_column": settings.tier_column,
            "tiers": settings.tiers,
        },
        "accounts": asked.accounts.as_ref().map(|path| path.display().to_string()),
    })
}

/// Each query as a picture of its intervals, and all numbers in a table.
pub(super) fn page(answers: &Answers, asked: &Asked, confidence: &str) -> anyhow::Result<Page> {
    let mut blocks = vec![
        Block::Text(format!("{}. {}.", promise(&asked.settings), participation(answers, asked))),
        Block::Text(
            "An interval says where the truth lies about those who took part, each clipped as asked: it covers the noise, not \
             the clipping, nor people who were left out."
                .into(),
        ),
    ];
    let question =
        |query: &Query| vec![query.name().to_owned(), query.to_string(), short(&query.noise_std().get().to_string())];
    let asked_for = Table {
        header: ["query", "question", "noise"].map(str::to_owned).to_vec(),
        rows: asked.layout.queries().map(question).collect(),
    };
    // One number is better read than looked at.
    for answer in answers.answers.iter().filter(|answer| answer.numbers.len() > 1) {
        blocks.push(Block::Heading(answer.name.clone()));
        let chart = IntervalChart {
            title: format!("{}, noise {}", answer.name, answer.noise_std),
            value_label: match answer.statistic {
                "histogram" => "count".to_owned(),
                other => other.to_owned(),
            },
            points: answer.numbers.iter().map(|e| (e.label.clone(), e.low, e.value, e.high)).collect(),
        };
        blocks.push(Block::Figure { svg: chart.svg()?, caption: interval_name(confidence) });
    }
    let header = header(answers, asked, confidence).to_vec();
    blocks.insert(2, Block::Table(Table { header, rows: rows(answers) }));
    blocks.extend([Block::Heading("What was asked".into()), Block::Table(asked_for)]);
    if let Some(path) = &asked.accounts {
        blocks.push(Block::Text(format!("Accounts: {}", path.display())));
    }
    Ok(Page { title: "Private answers".into(), blocks })
}
