//! Answers as rows, as JSON and as a page.

use super::{Asked, participation, promise};
use paygo_analysis::{Answer, Answers, Number};
use paygo_report::{Block, IntervalChart, Page, Table};
use serde_json::{Value, json};

/// The heading of the column of intervals.
pub(super) fn interval_name(confidence: &str) -> String {
    let percent: f64 = confidence.parse().map_or(f64::NAN, |confidence: f64| 100.0 * confidence);
    format!("{} % interval", (percent * 1e6).round() / 1e6)
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
    [name, shown(estimate.value, uncertainty), interval, answer.noise_std.to_string()]
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
        "everyone_took_part": answers.everyone.then_some(true),
        "worst_case": answers.worst_case,
        "promise": {
            "neighbors": "add-remove",
            "privacy_unit": settings.person,
            "basis": "FullyAdaptive",
            "mode": settings.mode,
            "tier_column": settings.tier_column,
            "tiers": settings.tiers,
        },
        "accounts": asked.accounts,
    })
}

/// Each query as a picture of its intervals, and all numbers in a table.
pub(super) fn page(answers: &Answers, asked: &Asked, confidence: &str) -> anyhow::Result<Page> {
    let mut blocks = vec![
        Block::Text(format!("{}. {}.", promise(&asked.settings), participation(answers, asked.settings.mode))),
        Block::Text(
            "An interval says where the truth lies about those who took part, each clipped as asked: it covers the noise, not \
             the clipping, nor people who were left out."
                .into(),
        ),
    ];
    // One number is better read than looked at.
    for answer in answers.answers.iter().filter(|answer| answer.numbers.len() > 1) {
        blocks.push(Block::Heading(answer.name.clone()));
        let chart = IntervalChart {
            title: format!("{}, noise {}", answer.name, answer.noise_std),
            value_label: answer.statistic.to_owned(),
            points: answer.numbers.iter().map(|e| (e.label.clone(), e.low, e.value, e.high)).collect(),
        };
        blocks.push(Block::Figure { svg: chart.svg()?, caption: interval_name(confidence) });
    }
    let header = ["query", "answer", &interval_name(confidence), "noise"].map(str::to_owned).to_vec();
    blocks.insert(2, Block::Table(Table { header, rows: rows(answers) }));
    Ok(Page { title: "Private answers".into(), blocks })
}
