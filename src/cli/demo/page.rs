//! The report of the demo.

use super::analyst::{Entry, FINEST, ROUGHEST};
use super::shop::{NOISE, Shop};
use super::{DELTA, EPSILON, PEOPLE, Story};
use crate::cli::output::{shown_down, shown_up};
use paygo_report::{Block, LineChart, Page, Series, Table};

impl Story {
    pub(super) fn page(&self, shop: &Shop) -> anyhow::Result<Page> {
        Ok(Page {
            title: "An adaptive analyst inside a budget".into(),
            blocks: vec![
                Block::Text(format!(
                    "{PEOPLE} made-up people; the median income of each region, by halving an interval with noisy counts. Each \
                     next question, and its noise between {FINEST} and {ROUGHEST}, depends on the answers so far. A clock filter \
                     keeps the whole within ({EPSILON}, {DELTA})-differential privacy for one person added or removed, however the \
                     analyst asks and whenever the analyst stops. Noise is discrete Gaussian, from a source seeded by the operating \
                     system: this page differs from run to run."
                )),
                self.numbers(),
                Block::Heading("What was learned".into()),
                table(&["region", "median income"], self.found()),
                Block::Heading("What it cost".into()),
                figure(
                    &self.spending(),
                    "The filter never lets the first line pass the budget. The odometer pays for being readable at any moment.",
                )?,
                figure(
                    &self.precision(),
                    "Rough questions while the answer is clear, precise ones where it is close.",
                )?,
                figure(
                    &self.comparison(),
                    "A plan fixed in advance has to assume the most precise question throughout.",
                )?,
                Block::Heading("A budget for each customer".into()),
                Block::Text(format!("{} (noise {NOISE})", shop.summary())),
                figure(
                    &shop.chart(),
                    "The days that worst-case accounting can report, and those that individual accounting can.",
                )?,
                Block::Heading("Every request".into()),
                table(&["", "question", "noise", "answer", "spent", "odometer"], self.requests()),
            ],
        })
    }

    fn numbers(&self) -> Block {
        let (spent, reading) = self.last();
        Block::Numbers(vec![
            ("answered".into(), self.admitted().to_string(), "questions".into()),
            ("refused".into(), (self.log.len() - self.admitted()).to_string(), "at no cost".into()),
            ("spent".into(), shown_up(spent), format!("of epsilon = {EPSILON}")),
            ("remaining".into(), shown_down((1.0 - spent).max(0.0)), "".into()),
            ("odometer".into(), shown_up(reading), "holds at every moment".into()),
            ("worst-case plan".into(), self.worst_case.len().to_string(), "questions".into()),
        ])
    }

    /// A point for each request.
    fn over(&self, f: impl Fn(&Entry) -> f64) -> Vec<(f64, f64)> {
        (1..).map(f64::from).zip(self.log.iter().map(f)).collect()
    }

    fn spending(&self) -> LineChart {
        let lines = vec![
            line("spent, of the filter's budget", self.over(|entry| entry.spent)),
            line("the odometer's reading", self.over(|entry| entry.reading)),
            Series { dashed: true, ..line("the budget", self.over(|_| 1.0)) },
        ];
        chart("What has been spent", "request", "epsilon at delta = 1e-6", lines)
    }

    fn precision(&self) -> LineChart {
        #[expect(clippy::cast_precision_loss, reason = "small integers")]
        let lines = vec![line("noise of each request", self.over(|entry| entry.noise as f64))];
        chart("How precisely the analyst asked", "request", "noise (standard deviation of a count)", lines)
    }

    fn comparison(&self) -> LineChart {
        let admitted = self.log.iter().filter(|entry| entry.answer.is_some());
        let adaptive = (1..).map(f64::from).zip(admitted.map(|entry| entry.spent)).collect();
        let lines = vec![
            line("adaptive, under the filter", adaptive),
            line("a plan for the worst case, fixed in advance", self.worst_case.clone()),
        ];
        chart("How far the budget went", "questions answered", "epsilon at delta = 1e-6", lines)
    }

    fn requests(&self) -> Vec<Vec<String>> {
        let row = |(i, entry): (usize, &Entry)| {
            let answer = entry.answer.map_or_else(|| "refused, at no cost".to_owned(), |answer| answer.to_string());
            let (noise, spent, reading) = (entry.noise.to_string(), shown_up(entry.spent), shown_up(entry.reading));
            vec![(i + 1).to_string(), entry.question.clone(), noise, answer, spent, reading]
        };
        self.log.iter().enumerate().map(row).collect()
    }
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points, dashed: false }
}

fn chart(title: &str, x_label: &str, y_label: &str, series: Vec<Series>) -> LineChart {
    LineChart { title: title.into(), x_label: x_label.into(), y_label: y_label.into(), series, y_limit: f64::INFINITY }
}

fn figure(chart: &LineChart, caption: &str) -> anyhow::Result<Block> {
    Ok(Block::Figure { svg: chart.svg()?, caption: caption.into() })
}

fn table(header: &[&str], rows: Vec<Vec<String>>) -> Block {
    Block::Table(Table { header: header.iter().map(|&cell| cell.to_owned()).collect(), rows })
}
