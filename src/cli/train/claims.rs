//! What can be claimed about the privacy of a run, and what only read.

use super::job::Job;
use super::shared::SharedGate;
use crate::cli::output::{json_number, shown_up};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Filter, Mixture, Rule as _};
use paygo_accounting::loss::tightest_of_all;
use paygo_accounting::params::Delta;
use paygo_training::model::Network;
use paygo_training::run::{Ending, Run};
use serde_json::{Value, json};
use std::sync::PoisonError;

/// Everything that is said about the privacy of a run. Where nothing is promised, there is no number either.
pub(super) struct Claims {
    /// The promise in words, or NOT PRIVATE and why.
    pub(super) promise: String,
    pub(super) kept: Option<Kept>,
    /// The odometer's reading. With probability 1 − δ the privacy loss never passes it; the reading is random, so it is no ε of a DP
    /// promise (E5).
    pub(super) odometer: Option<f64>,
    /// The ε of the plan, and the method that found it.
    pub(super) fixed: Option<(f64, &'static str)>,
    pub(super) spent: Option<Spent>,
}

/// Gauges of what a run has spent of its budget; neither is a promise.
pub(super) struct Spent {
    /// The ε that is spent, as the clock counts.
    pub(super) clock: f64,
    /// The ε that the same rounds would have needed under a mixture of Rényi orders that was made for just them.
    pub(super) by_orders: f64,
}

/// The ε and δ that the filter keeps.
pub(super) struct Kept {
    pub(super) epsilon: f64,
    /// As it is shown.
    pub(super) shown: String,
    /// As it was written.
    pub(super) delta: String,
}

impl Claims {
    pub(super) fn of(
        job: &Job,
        training: &mut Run<'_, Network>,
        gate: Option<&SharedGate>,
        ending: &Ending,
    ) -> anyhow::Result<Self> {
        let not_private = |why: &str| {
            let promise = format!("NOT PRIVATE: {why}");
            Ok(Self { promise, kept: None, odometer: None, fixed: None, spent: None })
        };
        let (Some(gate), Some(privacy)) = (gate, &job.config.privacy) else {
            return not_private("no [privacy] in the config");
        };
        if let Some(why) = &job.spoiled {
            return not_private(why);
        }
        // The run asks the gate about some of it: before it is locked.
        let charged = training.charged()?;
        let gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let guarantee = gate.filter().guarantee(Delta::new(privacy.delta.down("delta")?)?, &privacy.privacy_unit);
        // The rule was made for the budget: rounding must not show more.
        let epsilon = guarantee.epsilon.get().min(job.epsilon());
        let shown = if epsilon < job.epsilon() { shown_up(epsilon) } else { privacy.epsilon.text() };
        let rule = gate.filter().rule();
        let order =
            if let AnyRule::FixedOrder(fixed) = rule { format!(" at order {}", fixed.order()) } else { String::new() };
        let delta = privacy.delta.text();
        let promise = format!(
            "({shown}, {delta})-DP for one {} under {} neighbors [{}], kept by the {} filter{order}{}",
            guarantee.privacy_unit,
            guarantee.neighbors,
            guarantee.basis.word(),
            rule.word(),
            if job.config.start_from.is_some() {
                "; what start_from had learned before is not covered: it must come from other data"
            } else {
                ""
            }
        );
        let spent = if let AnyRule::Clock(_) = rule { spent(gate.filter(), &charged)? } else { None };
        drop(gate);
        Ok(Self {
            promise,
            spent,
            kept: Some(Kept { epsilon, shown, delta }),
            odometer: training.epsilon().map(|epsilon| epsilon.get()),
            fixed: fixed_in_advance(job, training, ending)?,
        })
    }

    /// Adds the numbers to what is stored with the model.
    pub(super) fn note(&self, note: &mut Value) {
        let Some(Kept { delta, .. }) = &self.kept else { return };
        if let Some(reading) = self.odometer {
            note["odometer"] = json!({"loss_at_most": json_number(reading), "except_with_probability": delta});
        }
        if let Some(Spent { clock, by_orders }) = self.spent {
            note["spent"] = json!({"epsilon": json_number(clock), "by_renyi_orders": json_number(by_orders)});
        }
        if let Some((epsilon, method)) = self.fixed {
            note["fixed_in_advance"] = json!({"epsilon": json_number(epsilon), "delta": delta, "method": method});
        }
    }
}

/// What was spent on a clock, and what it would have been by Rényi orders.
fn spent(filter: &Filter<AnyRule>, charged: &[Cost]) -> anyhow::Result<Option<Spent>> {
    let (Some((first, others)), Some(&budget)) = (charged.split_first(), filter.rule().budget()) else {
        return Ok(None);
    };
    let all = first.and_all(others)?;
    let orders = Filter::new(Mixture::for_plan(budget, &all)?, filter.neighbors());
    let [alone, _] = orders.would_spend(orders.price(&all)?.lanes());
    let clock = filter.meters().first().map_or(f64::INFINITY, |meter| meter.spent.to_f64_up());
    Ok(Some(Spent { clock, by_orders: orders.rule().least_epsilon(alone.lanes()).get() }))
}

/// What the run costs where nothing about it was decided on the way: its ε and the method behind it, if that is less than the promise.
///
/// A run that was interrupted, or ended by a test, might have gone on; and one that paid for rounds it lost might have lost fewer: then it
/// is not known that nobody looked. A ledger that others spend from could have ended it at any round, and they may have looked.
fn fixed_in_advance(
    job: &Job,
    training: &Run<'_, Network>,
    ending: &Ending,
) -> anyhow::Result<Option<(f64, &'static str)>> {
    let Some(privacy) = job.config.privacy.as_ref().filter(|privacy| privacy.is_scheduled()) else { return Ok(None) };
    match ending {
        Ending::Done | Ending::Refused(_) | Ending::ScheduleEnded => {}
        Ending::TargetReached { .. } | Ending::Interrupted => return Ok(None),
    }
    if job.ledger.is_some() || job.config.stop().target.is_some() || !training.is_as_planned() {
        return Ok(None);
    }
    let charged = training.charged()?;
    // More of them take long to price.
    let Some((first, others)) = charged.split_first().filter(|_| charged.len() <= 256) else { return Ok(None) };
    let row = tightest_of_all(&first.and_all(others)?, Delta::new(privacy.delta.down("delta")?)?);
    Ok((row.epsilon.get() < job.epsilon()).then_some((row.epsilon.get(), row.method)))
}
