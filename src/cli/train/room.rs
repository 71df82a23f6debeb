//! How much room a shared ledger has for a run, as it is told before the first step.

use super::job::Job;
use super::plan::Rounds;
use super::privacy::Privacy;
use super::setting::Setting;
use super::shared::SharedGate;
use paygo_training::model::Network;
use paygo_training::run::Run;
use std::sync::PoisonError;

/// Rounds that are looked ahead where none are asked for.
const MANY: u64 = 1_000_000;

/// What is asked for.
pub(super) struct Room {
    rounds: Option<u64>,
    steps_per_round: u64,
    /// All rounds, where nothing that comes out changes them.
    plan: Option<Rounds>,
}

impl Room {
    pub(super) fn of(job: &Job, setting: &Setting) -> anyhow::Result<Self> {
        let rounds = job.config.rounds(&setting.sampler);
        let is_fixed =
            job.config.privacy.as_ref().is_some_and(Privacy::is_scheduled) && job.config.stop().target.is_none();
        let plan = match &setting.checked {
            Some(checked) if is_fixed && job.ledger.is_some() => {
                Some(checked.rounds_ahead(&setting.sampler, rounds.unwrap_or(MANY))?)
            }
            Some(_) | None => None,
        };
        Ok(Self { rounds, steps_per_round: setting.sampler.steps_per_round(), plan })
    }

    /// Says how many rounds fit, where there is a ledger: of the plan, or where there is none, of the noise of the first.
    pub(super) fn tell(self, gate: &SharedGate, training: &mut Run<'_, Network>) -> anyhow::Result<()> {
        let shared = || gate.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = shared().shared().map(|(place, _)| place) else { return Ok(()) };
        let done = training.position().steps / self.steps_per_round.max(1);
        let asked = self.rounds.map(|rounds| rounds.saturating_sub(done));
        if asked == Some(0) {
            return Ok(());
        }
        let room = self.plan.map(|plan| after(plan, done));
        let room = room.map(|plan| shared().room_for_all(&plan)).transpose()?.flatten();
        let (left, kind) = match (room, asked) {
            (Some(left), Some(asked)) if left == asked => (format!("all {left}"), "of the plan".to_owned()),
            (Some(left), _) => (left.to_string(), format!("of the plan{}", short(left, asked))),
            (None, _) => match training.rounds_left()? {
                Some(left) => (left.to_string(), format!("of the first noise{}", short(left, asked))),
                None => return Ok(()),
            },
        };
        eprintln!("note: {place} and the run's own budget have room for {left} rounds {kind}");
        Ok(())
    }
}

/// That fewer fit than are asked for, if so.
fn short(left: u64, asked: Option<u64>) -> String {
    let asked = asked.filter(|asked| left < *asked);
    asked.map(|asked| format!("; {asked} are asked for, so it will end early")).unwrap_or_default()
}

/// What is left of some rounds after the first.
fn after(mut rounds: Rounds, mut done: u64) -> Rounds {
    for (_, count) in &mut rounds {
        let now = done.min(*count);
        *count -= now;
        done -= now;
    }
    rounds.retain(|(_, count)| *count > 0);
    rounds
}
