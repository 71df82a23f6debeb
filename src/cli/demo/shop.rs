//! A shop that counts its customers every day: with a budget for each of them, and with one for the worst case.

use super::people::{DAYS, REGIONS, batch, purchases};
use super::{DELTA, EPSILON, people};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use paygo_analysis::{
    Layout, Manner, Mode, NoiseStd, Query, RoundError, Settings, Statistic, Table, ask, open_accounts,
};
use paygo_noise::Source;
use paygo_report::{LineChart, Series};
use std::path::Path;

/// Noise of each day's count, as a standard deviation.
pub(super) const NOISE: u32 = 20;

/// What each mode could report.
pub(super) struct Shop {
    pub(super) individual: Vec<(f64, f64)>,
    pub(super) worst_case: Vec<(f64, f64)>,
}

/// Writes the table of purchases, and asks it for every day.
pub(super) fn tell(people: &[people::Person], path: &Path) -> anyhow::Result<Shop> {
    let purchases = purchases(people);
    let mut file = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
    purchases.iter().try_for_each(|purchase| file.serialize(purchase))?;
    file.flush()?;
    let table = Table::in_memory(vec![batch(&purchases)?]);
    let bar = ProgressBar::new(2 * DAYS.unsigned_abs());
    bar.set_style(ProgressStyle::with_template("   {msg:11} [{bar:30}] {pos}/{len} days")?);
    let report = |mode: Mode| -> anyhow::Result<Vec<(f64, f64)>> {
        let budget = format!("epsilon={EPSILON},delta={DELTA}").parse().map_err(anyhow::Error::msg)?;
        let mut accounts = open_accounts(None, &table, &Settings::new("customer", mode, budget), &|_| ())?;
        let mut source = Source::from_operating_system()?;
        bar.set_message(mode.to_string());
        let mut reports = Vec::new();
        for day in 1..=DAYS {
            let condition = format!("day = {day}").parse()?;
            let noise = NoiseStd::new(f64::from(NOISE))?;
            let query = Query::new("customers", Statistic::People, Some(condition), noise)?;
            let layout = Layout::new(vec![query], None)?;
            bar.inc(1);
            match ask(&table, &layout, &mut accounts, Manner::default(), &mut source, &|_| ()) {
                #[expect(clippy::cast_precision_loss, reason = "a day")]
                Ok(answers) => reports.push((day as f64, answers.answers[0].numbers[0].value)),
                Err(RoundError::Refused) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(reports)
    };
    let shop = Shop { individual: report(Mode::Individual)?, worst_case: report(Mode::WorstCase)? };
    bar.finish_and_clear();
    Ok(shop)
}

impl Shop {
    pub(super) fn summary(&self) -> String {
        format!(
            "worst-case accounting reports {} days and must stop; with a budget for each customer there are {} days so far, because a \
             customer pays only for the days on which they bought something. Both promise ({EPSILON}, {DELTA})-DP to each of them.",
            self.worst_case.len(),
            self.individual.len()
        )
    }

    pub(super) fn chart(&self) -> LineChart {
        let series =
            |name: &str, points: &[(f64, f64)]| Series { name: name.into(), points: points.to_vec(), dashed: false };
        LineChart {
            title: "Customers a day, with noise of 20".into(),
            x_label: "day".into(),
            y_label: "customers".into(),
            series: vec![
                series("a budget for each customer", &self.individual),
                series("one budget for the worst case", &self.worst_case),
            ],
            y_limit: f64::INFINITY,
        }
    }

    /// What the reader may try next.
    pub(super) fn next(csv: &Path) -> String {
        format!(
            "$ paygo query {} --person customer --budget epsilon={EPSILON},delta={DELTA} --histogram region \\\n       --categories {} --noise-std 40",
            csv.display(),
            REGIONS.join(",")
        )
    }
}
