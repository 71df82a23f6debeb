//! What questions would cost: public, and known before anything is read.

use super::super::output::{print, print_json, shown_down, shown_up, table};
use super::{Asked, short};
use paygo_accounting::individual::FULL;
use paygo_analysis::{Allowance, Exhausted, Mode, Query, Statistic};
use paygo_numeric::normal;
use serde_json::json;
use std::process::ExitCode;

/// The worst case of each question, as a fraction of the smallest budget, and of all together.
pub(super) struct Plan {
    costs: Vec<f64>,
    total: f64,
    /// What is certainly left, as a fraction of a budget.
    left: f64,
}

impl Plan {
    pub(super) fn of(asked: &Asked) -> anyhow::Result<Self> {
        let mut costs: Vec<f64> = Vec::new();
        for tier in &asked.settings.tiers {
            let tier = asked.layout.worst_cases(&tier.budget.budget()?)?;
            costs.resize(tier.len(), 0.0);
            costs.iter_mut().zip(tier).for_each(|(cost, tier)| *cost = cost.max(tier));
        }
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let left = (1.0 - asked.worst_case as f64 / f64::from(FULL)).max(0.0);
        Ok(Self { total: costs.iter().sum(), costs, left })
    }

    /// How much more noise everything would need to cost no more than this.
    fn factor(&self, share: f64) -> String {
        shown_up((self.total / share).sqrt())
    }

    /// Why the questions are not asked at all: because nothing, or not everything, could be paid for. Decided before the table is read.
    pub(super) fn refusal(&self, asked: &Asked) -> anyhow::Result<Option<String>> {
        let percent = |share: f64| format!("{} %", shown_up(100.0 * share));
        let worst_case = asked.settings.mode == Mode::WorstCase;
        if worst_case && self.total > self.left {
            let more = if self.left > 0.0 {
                format!("; {} times the noise would fit", self.factor(self.left))
            } else {
                String::new()
            };
            return Ok(Some(format!(
                "in the worst case this costs {} of the budget, and {} % is left{more}",
                percent(self.total),
                shown_down(100.0 * self.left)
            )));
        }
        // Whoever contributes the most could never take part: an answer would be about the others only.
        anyhow::ensure!(
            worst_case || self.total <= 1.0 || asked.manner.exhausted == Exhausted::ScaledDown,
            "the largest contribution of one person costs {} of a whole budget, so whoever makes it would always be left out; {} \
             times the noise fits once\nhint: a narrower --clip, fewer questions at once, or --exhausted scaled-down",
            percent(self.total),
            self.factor(1.0)
        );
        Ok(None)
    }

    /// The plan for people and programs.
    pub(super) fn show(&self, asked: &Asked, as_json: bool) -> anyhow::Result<ExitCode> {
        let reach = normal::quantile(0.5 + asked.manner.confidence.get() / 2.0);
        let fits = |cost: f64| (self.left / cost).floor();
        let queries: Vec<&Query> = asked.layout.queries().collect();
        let half = |query: &Query| match query.statistic() {
            Statistic::People | Statistic::Rows(_) | Statistic::Sum(..) | Statistic::Histogram(..) => {
                Some(reach * query.noise_std().get())
            }
            Statistic::Mean(..) | Statistic::Quantile(..) => None,
        };
        if as_json {
            let one = |(query, cost): (&&Query, &f64)| {
                json!({"name": query.name(), "question": query.to_string(), "noise_std": query.noise_std().get(),
                    "half_width": half(query), "worst_case": cost})
            };
            print_json(&json!({
                "queries": queries.iter().zip(&self.costs).map(one).collect::<Vec<_>>(),
                "worst_case": self.total, "left": self.left, "fits": fits(self.total),
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let percent = |cost: f64| format!("{} %", shown_up(100.0 * cost));
        let row = |(query, cost): (&&Query, &f64)| {
            let half = half(query).map_or_else(|| "depends".to_owned(), |half| format!("± {}", shown_up(half)));
            vec![
                query.name().to_owned(),
                query.noise_std().get().to_string(),
                half,
                percent(*cost),
                fits(*cost).to_string(),
            ]
        };
        let mut rows: Vec<Vec<String>> = queries.iter().zip(&self.costs).map(row).collect();
        if self.costs.len() > queries.len() {
            let cost = self.costs[queries.len()];
            rows.push(vec!["took part".into(), "-".into(), "-".into(), percent(cost), fits(cost).to_string()]);
        }
        if rows.len() > 1 {
            let all = percent(self.total);
            rows.push(vec!["all at once".into(), "-".into(), "-".into(), all, fits(self.total).to_string()]);
        }
        print(&table(&["query", "noise", "interval", "costs at most", "fits for certain"], rows))?;
        for tier in &asked.settings.tiers {
            let limit = tier.budget.budget()?.limit();
            let name = if tier.name.is_empty() { String::new() } else { format!(" ({})", tier.name) };
            let budget = match &tier.budget {
                Allowance::EpsilonDelta { epsilon, delta } => {
                    format!("epsilon {} at delta {}", short(epsilon), short(delta))
                }
                Allowance::Rho(rho) => format!("rho {rho}"),
            };
            print(&format!("budget{name}: {budget}, which is rho {}", shown_down(limit.to_f64_down())))?;
        }
        print(&format!(
            "{} % of a budget is certainly left; whoever contributes less pays less. Nothing was read, asked or charged.",
            shown_down(100.0 * self.left)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
