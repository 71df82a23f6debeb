//! The page that a run leaves behind.

use super::claims::{Claims, Kept, Spent};
use super::job::Job;
use super::metrics::Metrics;
use crate::cli::output::shown_up;
use paygo_accounting::individual::FULL;
use paygo_accounting::secret::Secret;
use paygo_report::{Block, Histogram, LineChart, Page, Series, Table};

pub(super) fn page(
    job: &Job,
    claims: &Claims,
    ending: &str,
    metrics: &[Metrics],
    spending: Option<Secret<&[u32]>>,
) -> anyhow::Result<Page> {
    let last = metrics.last().cloned().unwrap_or_default();
    let mut blocks = vec![
        Block::Text(format!("{ending} after {} epochs, {} steps.", last.epoch, last.steps)),
        Block::Numbers(numbers(claims, &last)),
        Block::Heading("What is promised".into()),
        Block::Text(claims.promise.clone()),
    ];
    if claims.kept.is_some() {
        let text = "The promise is the filter's: it holds whatever the policy decided on the way. The price of a plan that was fixed in \
                    advance is there only where nothing was decided on the way, and nobody else could have ended the run. The odometer \
                    bounds the privacy loss up to each moment, with probability 1 − δ: it is a reading, not a promise of differential \
                    privacy, and towards the end it may be more than the promise.";
        blocks.push(Block::Text(text.into()));
    }
    blocks.push(Block::Heading("How it went".into()));
    blocks.extend(curves(metrics)?);
    if let Some(spending) = spending {
        blocks.push(Block::Heading("SECRET: what each example has spent".into()));
        let caption = "examples by how much of their own budget they have spent".to_owned();
        let svg = spent(spending.expose(), "what each example has spent").svg()?;
        blocks.push(Block::Figure { svg, caption });
    }
    blocks.push(Block::Heading("What was asked for".into()));
    let rows = job.text.lines().map(|line| vec![line.to_owned()]).collect();
    blocks.push(Block::Table(Table { header: vec!["config".into()], rows }));
    Ok(Page { title: "Private training".into(), blocks })
}

/// The tiles: name, number, what it is.
fn numbers(claims: &Claims, last: &Metrics) -> Vec<(String, String, String)> {
    let mut numbers = vec![("steps".to_owned(), last.steps.to_string(), format!("{} epochs", last.epoch))];
    if let Some(accuracy) = last.public_accuracy {
        numbers.push(("accuracy".into(), format!("{accuracy:.4}"), "on public test examples".into()));
    }
    let Some(Kept { shown, delta, .. }) = &claims.kept else { return numbers };
    numbers.push(("epsilon promised".into(), shown.clone(), format!("at delta {delta}, kept by the filter")));
    if let Some(Spent { clock, by_orders }) = claims.spent {
        numbers.push(("epsilon spent".into(), shown_up(clock), format!("of {shown} on the clock: a gauge")));
        let what = "what the same steps would have needed".to_owned();
        numbers.push(("by Rényi orders".into(), shown_up(by_orders), what));
    }
    if let Some((epsilon, method)) = claims.fixed {
        numbers.push(("epsilon as a fixed plan".into(), shown_up(epsilon), format!("at delta {delta} [{method}]")));
    }
    if let Some(reading) = claims.odometer {
        let what = format!("privacy loss so far, with probability 1 - {delta}");
        numbers.push(("odometer".into(), shown_up(reading), what));
    }
    numbers
}

/// Each metric over the epochs, where there is something to draw.
fn curves(metrics: &[Metrics]) -> anyhow::Result<Vec<Block>> {
    type Value = fn(&Metrics) -> Option<f64>;
    let curves: [(&str, &str, Value); 5] = [
        ("accuracy on public test examples", "accuracy", |m| m.public_accuracy),
        ("loss on public test examples", "loss", |m| m.public_loss),
        ("privacy loss so far, at most (odometer)", "odometer", |m| m.odometer),
        ("noise multiplier", "noise", |m| (m.noise_multiplier > 0.0).then_some(m.noise_multiplier)),
        #[expect(clippy::cast_precision_loss, reason = "a batch")]
        ("expected batch", "examples", |m| Some(m.batch as f64)),
    ];
    let mut figures = Vec::new();
    for (title, y_label, value) in curves {
        #[expect(clippy::cast_precision_loss, reason = "epochs")]
        let points: Vec<_> = metrics.iter().filter_map(|m| Some((m.epoch as f64, value(m)?))).collect();
        // Where training diverged, there is nothing to draw.
        if points.iter().filter(|(_, y)| y.is_finite()).count() < 2 {
            continue;
        }
        let chart = LineChart {
            title: title.into(),
            x_label: "epoch".into(),
            y_label: y_label.into(),
            series: vec![Series { name: y_label.into(), points, dashed: false }],
            y_limit: f64::INFINITY,
        };
        figures.push(Block::Figure { svg: chart.svg()?, caption: title.into() });
    }
    Ok(figures)
}

/// Examples by how much of their own budget they have spent. It depends on the data.
pub(crate) fn spent(shares: &[u32], title: &str) -> Histogram {
    const BINS: u64 = 50;
    let mut counts = vec![0; 50];
    for &share in shares {
        counts[(u64::from(share) * BINS / u64::from(FULL)).min(BINS - 1) as usize] += 1;
    }
    Histogram {
        title: title.into(),
        x_label: "of the budget".into(),
        y_label: "examples".into(),
        range: (0.0, 1.0),
        counts,
    }
}
