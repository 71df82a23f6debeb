//! What questions would cost: public, and known before anything is read.

use super::super::output::{print, print_json, shown_amount, shown_down, shown_up, table};
use super::noise::few_digits;
use super::{Asked, short};
use paygo_accounting::individual::FULL;
use paygo_analysis::{Exhausted, Mode, PersonBudget, Query, Statistic};
use paygo_numeric::{Amount, normal};
use serde_json::json;
use std::process::ExitCode;

/// The worst case of each question, in shares of the smallest budget, and of all together.
pub(super) struct Forecast {
    costs: Vec<u64>,
    total: u64,
    /// What is certainly left, in shares of a budget.
    left: u64,
}

/// Shares as a fraction of a budget, for people.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn fraction(shares: u64) -> f64 {
    shares as f64 / f64::from(FULL)
}

impl Forecast {
    pub(super) fn of(asked: &Asked) -> anyhow::Result<Self> {
        let (mut costs, mut total): (Vec<u64>, u64) = (Vec::new(), 0);
        for tier in &asked.settings.tiers {
            let budget = tier.budget.budget()?;
            total = total.max(asked.layout.worst_case(&budget)?);
            let tier = asked.layout.worst_cases(&budget)?;
            costs.resize(tier.len(), 0);
            costs.iter_mut().zip(tier).for_each(|(cost, tier)| *cost = tier.max(*cost));
        }
        Ok(Self { costs, total, left: u64::from(FULL).saturating_sub(asked.worst_case) })
    }

    /// What the questions cost whom they cost the most, in ρ.
    pub(super) fn worst_case(&self, asked: &Asked) -> anyhow::Result<Amount> {
        let mut most = Amount::ZERO;
        for tier in &asked.settings.tiers {
            let budget = tier.budget.budget()?;
            let share = u32::try_from(asked.layout.worst_case(&budget)?).unwrap_or(u32::MAX);
            most = most.max(budget.spent(share));
        }
        Ok(most)
    }

    /// How much more noise everything would need to cost no more than this.
    fn factor(&self, shares: u64) -> String {
        shown_up((fraction(self.total) / fraction(shares)).sqrt())
    }

    /// Why the questions are not asked at all: because nothing, or not everything, could be paid for. Decided before the table is read.
    pub(super) fn refusal(&self, asked: &Asked) -> anyhow::Result<Option<String>> {
        let percent = |shares: u64| format!("{} %", shown_up(100.0 * fraction(shares)));
        let worst_case = asked.settings.mode == Mode::WorstCase;
        if worst_case && self.total > self.left {
            let more = if self.left > 0 {
                format!("; {} times the noise would fit", self.factor(self.left))
            } else {
                String::new()
            };
            return Ok(Some(format!(
                "in the worst case this costs {} of the budget, and {} % is left{more}",
                percent(self.total),
                shown_down(100.0 * fraction(self.left))
            )));
        }
        // Whoever contributes the most could never take part: an answer would be about the others only.
        anyhow::ensure!(
            worst_case || self.total <= u64::from(FULL) || asked.manner.exhausted == Exhausted::ScaledDown,
            "the largest contribution of one person costs {} of a whole budget, so whoever makes it would always be left out\n\
             hint: {}",
            percent(self.total),
            self.remedies(asked)
        );
        Ok(None)
    }

    /// What would make the questions fit once.
    fn remedies(&self, asked: &Asked) -> String {
        let factor = (fraction(self.total) / fraction(u64::from(FULL))).sqrt();
        let queries: Vec<&Query> = asked.layout.queries().collect();
        let enough = match (&queries[..], &self.costs[..]) {
            // ROUNDING: up, to three digits; a share is rounded by far less.
            ([one], [_]) => {
                format!("--noise-std {} fits once", few_digits(one.noise_std().get() * factor, 3, f64::ceil))
            }
            (_, _) => format!(
                "{} times the noise fits once, so may fewer questions at a time",
                few_digits(factor, 3, f64::ceil)
            ),
        };
        let is_clipped = |query: &&Query| match query.statistic() {
            Statistic::Sum(..) | Statistic::Mean(..) | Statistic::Rows(_) => true,
            Statistic::People | Statistic::Histogram(..) | Statistic::Quantile(..) => false,
        };
        let clip = if queries.iter().any(is_clipped) { "; a narrower --clip needs less" } else { "" };
        format!("{enough}{clip}; with --exhausted scaled-down nobody is left out")
    }

    /// The plan for people and programs.
    pub(super) fn show(&self, asked: &Asked, as_json: bool) -> anyhow::Result<ExitCode> {
        let reach = normal::quantile(0.5 + asked.manner.confidence.get() / 2.0);
        let fits = |cost: u64| self.left / cost.max(1);
        let queries: Vec<&Query> = asked.layout.queries().collect();
        let half = |query: &Query| match query.statistic() {
            Statistic::People | Statistic::Rows(_) | Statistic::Sum(..) | Statistic::Histogram(..) => {
                Some(reach * query.noise_std().get())
            }
            Statistic::Mean(..) | Statistic::Quantile(..) => None,
        };
        if as_json {
            let one = |(query, cost): (&&Query, &u64)| {
                json!({"name": query.name(), "question": query.to_string(), "noise_std": query.noise_std().get(),
                    "half_width": half(query), "worst_case": fraction(*cost)})
            };
            print_json(&json!({
                "queries": queries.iter().zip(&self.costs).map(one).collect::<Vec<_>>(),
                "worst_case": fraction(self.total), "left": fraction(self.left), "fits": fits(self.total),
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let percent = |cost: u64| format!("{} %", shown_up(100.0 * fraction(cost)));
        let row = |(query, cost): (&&Query, &u64)| {
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
            let name = if tier.name.is_empty() { String::new() } else { format!(" ({})", tier.name) };
            let budget = match &tier.budget {
                PersonBudget::EpsilonDelta { epsilon, delta } => {
                    let rho = shown_amount(tier.budget.budget()?.limit(), false);
                    format!("epsilon {} at delta {}, which is rho {rho}", short(epsilon), short(delta))
                }
                PersonBudget::Rho(rho) => format!("rho {rho}"),
            };
            print(&format!("budget{name}: {budget}"))?;
        }
        print(&format!(
            "{} % of a budget is certainly left; whoever contributes less pays less. Nothing was read, asked or charged.",
            shown_down(100.0 * fraction(self.left))
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
