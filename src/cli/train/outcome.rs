//! What came out of a run: the model, the report, and what is said about both.

use super::claims::{Claims, Spent};
use super::job::Job;
use super::metrics::Metrics;
use super::note::note;
use super::shared::SharedGate;
use super::{Arguments, report};
use crate::cli::interrupt;
use crate::cli::output::{json_number, print, print_json, shown_up};
use paygo_ledger::words::Answer;
use paygo_training::checkpoint::{Folder, export};
use paygo_training::model::Network;
use paygo_training::pca::Projection;
use paygo_training::personal::Spending;
use paygo_training::run::{Ending, Position, Run};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::PoisonError;

/// A run that has ended, and what belongs to it.
pub(super) struct Outcome<'a, 'run> {
    pub(super) arguments: &'a Arguments,
    pub(super) job: &'a Job,
    pub(super) training: &'a mut Run<'run, Network>,
    pub(super) projection: Option<&'a Projection>,
    pub(super) gate: Option<&'a SharedGate>,
    pub(super) folder: &'a Folder,
    pub(super) ending: &'a Ending,
    /// Where this process took it up.
    pub(super) begun: Position,
    pub(super) metrics: &'a [Metrics],
}

impl Outcome<'_, '_> {
    /// Writes the model and the report, and says what came out.
    pub(super) fn finish(self) -> anyhow::Result<ExitCode> {
        let claims = Claims::of(self.job, self.training, self.gate, self.ending)?;
        let shared = self.gate.and_then(|gate| {
            let gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            gate.shared().map(|(place, refusal)| (place, refusal.cloned()))
        });
        let refused = match (self.ending, &shared) {
            (Ending::Refused(_), Some((place, Some(refusal)))) => Some(refused_by(place, refusal)),
            (_, _) => None,
        };
        let code = match (self.ending, &refused) {
            // As a shell says it, so that scripts can tell.
            (Ending::Interrupted, _) => ExitCode::from(interrupt::EXIT),
            (_, Some(_)) => ExitCode::from(1),
            (_, None) => ExitCode::SUCCESS,
        };
        let why = refused.unwrap_or_else(|| describe(self.ending, self.job));
        self.write(&claims, &why)?;
        if self.arguments.json {
            print_json(&self.json(&claims, &why))?;
        } else {
            self.tell(&claims, &why, shared.map(|(place, _)| place))?;
        }
        Ok(code)
    }

    fn write(&self, claims: &Claims, why: &str) -> anyhow::Result<()> {
        // As it is before it is seen along components.
        let input = self.projection.map_or_else(|| self.job.split.train.shape(), Projection::shape);
        let mut note = note(self.job, input, &claims.promise);
        claims.note(&mut note);
        let model = export(&self.job.network, self.training.parameters(), self.projection, &note.to_string())
            .map_err(|error| anyhow::anyhow!(error))?;
        self.folder.replace("model.safetensors", &model)?;
        let spending = self.training.spending().filter(|_| self.arguments.reveal_secrets).map(Spending::shares);
        let page = report::page(self.job, claims, why, self.metrics, spending)?;
        self.folder.replace("report.html", page.html().as_bytes())?;
        Ok(())
    }

    fn last(&self) -> Metrics {
        self.metrics.last().cloned().unwrap_or_default()
    }

    fn json(&self, claims: &Claims, why: &str) -> Value {
        let mut answer = json!({
            "ending": why, "promise": claims.promise, "last": self.last().json(),
            "steps": self.training.position().steps, "counts_not_covered": self.training.untaken(),
            "folder": self.folder.path().display().to_string(),
        });
        answer["epsilon"] = claims.kept.as_ref().map(|kept| json_number(kept.epsilon)).into();
        answer["delta"] = claims.kept.as_ref().map(|kept| kept.delta.clone()).into();
        if let Some(Spent { clock, by_orders }) = claims.spent {
            answer["spent"] = json!({"epsilon": json_number(clock), "by_renyi_orders": json_number(by_orders)});
        }
        answer["odometer"] = claims.odometer.map(json_number).into();
        answer["fixed_in_advance"] = claims.fixed.map(|(epsilon, _)| json_number(epsilon)).into();
        answer
    }

    fn tell(&self, claims: &Claims, why: &str, place: Option<String>) -> anyhow::Result<()> {
        let position = self.training.position();
        let comma = if why.contains(':') { "," } else { "" };
        print(&format!("{why}{comma} after {} epochs, {} steps", position.epoch, position.steps))?;
        if self.arguments.resume.is_some() && position == self.begun && !matches!(self.ending, Ending::Interrupted) {
            print("nothing was left to train")?;
        }
        if let Some(accuracy) = self.last().public_accuracy {
            print(&format!("accuracy {accuracy:.4} on the public test examples"))?;
        }
        if self.training.untaken() > 0 {
            print(&format!("{} noisy counts were not taken: the budget did not cover them", self.training.untaken()))?;
        }
        if let (Some(Spent { clock, by_orders }), Some(kept)) = (&claims.spent, &claims.kept) {
            print(&format!(
                "spent: epsilon {} of {} by the clock, a gauge and no promise; Rényi orders would have needed {} for the same steps",
                shown_up(*clock),
                kept.shown,
                shown_up(*by_orders)
            ))?;
        }
        if let (Some(reading), Some(kept)) = (claims.odometer, &claims.kept) {
            print(&format!(
                "odometer: the privacy loss so far is at most {} with probability 1 - {}; a reading at this moment, not a DP promise",
                shown_up(reading),
                kept.delta
            ))?;
        }
        if let (Some((epsilon, method)), Some(kept)) = (claims.fixed, &claims.kept) {
            print(&format!(
                "as a plan that was fixed in advance: ({}, {})-DP [{method}]",
                shown_up(epsilon),
                kept.delta
            ))?;
        }
        print(&format!("promise: {}", claims.promise))?;
        if let Some(place) = place {
            print(&format!("charged to: {place}, which keeps the promise for everything that is asked of it"))?;
        }
        let at = self.folder.path().display();
        print(&format!("model: {at}/model.safetensors, metrics: {at}/metrics.jsonl, report: {at}/report.html"))?;
        if matches!(self.ending, Ending::Interrupted) {
            print(&format!("go on with: paygo train --resume {at}"))?;
        }
        Ok(())
    }
}

fn refused_by(place: &str, refusal: &Answer) -> String {
    let reason = refusal.reason.as_deref().unwrap_or("the budget does not allow it");
    format!("stopped: {place} refuses another round: {}: {reason}", refusal.account)
}

fn describe(ending: &Ending, job: &Job) -> String {
    match ending {
        Ending::Refused(_) => "stopped: the budget does not cover another round".to_owned(),
        Ending::Done => "done".to_owned(),
        Ending::ScheduleEnded => "stopped: the schedule has no noise for another epoch".to_owned(),
        Ending::TargetReached { count } => {
            let wanted = job.config.stop().target.map_or(f64::NAN, |target| target.accuracy);
            let size = job.config.size(&job.split.train).map_or(0, |(_, size)| size);
            format!("target reached: {count:.0} examples correct by a noisy count, wanted {wanted} of {size}")
        }
        Ending::Interrupted => "interrupted".to_owned(),
    }
}
