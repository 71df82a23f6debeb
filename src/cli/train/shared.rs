//! A gate that asks a shared ledger beside the run's own budget.
//!
//! Rounds are reserved some at a time, so that a run need not wait for the ledger at every step: as many as take about a second. What was
//! not drawn of the last is given back at the end; what a killed run held stays charged.

use super::plan::covered;
use crate::cli::ledger::Place;
use anyhow::Context;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{self, AnyRule, Filter, Reason, Refusal};
use paygo_accounting::params::{Count, Neighbors};
use paygo_accounting::wire::{Mechanism, Number};
use paygo_ledger::RequestId;
use paygo_ledger::words::{Answer, Cancel, Commit, Decision, Question, Reserve};
use paygo_training::gate::{FilterGate, Gate, GateError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Rounds that are reserved at once.
const MAX_ROUNDS: u64 = 4096;
/// Kinds of rounds that a ledger is asked about at once; more take it long to price.
const MAX_DIFFERENT: usize = 65;
/// How long they should take.
const WHILE: Duration = Duration::from_secs(1);
/// How long what was reserved can be given back, in seconds: a week.
const HOLD: u64 = 7 * 24 * 3600;

/// One budget for everything that a run does.
pub(super) type SharedGate = Arc<Mutex<SharedBudget>>;

/// The run's own budget, and a ledger's if one was named.
pub(super) struct SharedBudget {
    own: FilterGate<AnyRule>,
    ledger: Option<Shared>,
}

struct Shared {
    place: Place,
    /// Names this process's reservations.
    run: String,
    reserved: u64,
    /// How many rounds to reserve next.
    size: u64,
    held: Option<Held>,
    /// While a run is taken up again: what it was charged then is in the ledger.
    asleep: bool,
    refusal: Option<Answer>,
}

struct Held {
    cost: Cost,
    id: RequestId,
    count: u64,
    used: u64,
    since: Instant,
}

/// Several of a cost, in words: the outermost `repeat` is what is counted.
fn several(cost: &Cost, count: u64) -> Result<Mechanism, GateError> {
    let count = Number::Integer(i64::try_from(Count::new(count)?.get())?);
    Ok(Mechanism::Repeat { count, of: Box::new(Mechanism::from(&cost.mechanism())) })
}

impl SharedBudget {
    /// # Errors
    /// When the dataset is about other neighbors or somebody else than the run.
    pub(super) fn new(own: Filter<AnyRule>, privacy_unit: &str, place: Option<Place>) -> anyhow::Result<Self> {
        let Some(place) = place else { return Ok(Self { own: FilterGate::new(own), ledger: None }) };
        let (dataset, neighbors) = (&place.dataset, Neighbors::from(place.dataset.neighbors));
        anyhow::ensure!(
            neighbors == own.neighbors(),
            "dataset {} is about {neighbors} neighbors; expected {}, as the config says",
            dataset.name,
            own.neighbors()
        );
        anyhow::ensure!(
            dataset.privacy_unit == privacy_unit,
            "dataset {} protects one {}; expected one {privacy_unit}, as the config says",
            dataset.name,
            dataset.privacy_unit
        );
        let run = format!("train-{}", super::super::ledger::random_word()?);
        let (held, refusal) = (None, None);
        let shared = Shared { place, run, reserved: 0, size: 1, held, asleep: false, refusal };
        Ok(Self { own: FilterGate::new(own), ledger: Some(shared) })
    }

    /// The run's own filter.
    pub(super) const fn filter(&self) -> &Filter<AnyRule> {
        self.own.filter()
    }

    /// Whether what is charged was charged to the ledger before: a run that is taken up again.
    pub(super) const fn sleep(&mut self, asleep: bool) {
        if let Some(ledger) = &mut self.ledger {
            ledger.asleep = asleep;
        }
    }

    /// Gives back what was not drawn.
    pub(super) fn settle(&mut self) -> anyhow::Result<()> {
        self.ledger.as_mut().map_or(Ok(()), Shared::settle)
    }

    /// How many of these rounds would be admitted now, one after another; none where the ledger does not say for so many that differ.
    pub(super) fn room_for_all(&self, rounds: &[(Cost, u64)]) -> anyhow::Result<Option<u64>> {
        let own = covered(self.own.filter(), rounds)?;
        Ok(match &self.ledger {
            Some(_) if rounds.len() > MAX_DIFFERENT => None,
            Some(ledger) if own > 0 => ledger.room_for_all(rounds).ok().map(|room| room.min(own)),
            Some(_) | None => Some(own),
        })
    }

    /// Where the ledger is, and what it said when it refused.
    pub(super) fn shared(&self) -> Option<(String, Option<&Answer>)> {
        self.ledger.as_ref().map(|ledger| (ledger.place.told(), ledger.refusal.as_ref()))
    }
}

impl Shared {
    /// Whether another round of a cost is held.
    fn holds(&self, cost: &Cost) -> bool {
        self.held.as_ref().is_some_and(|held| held.cost == *cost && held.used < held.count)
    }

    /// Whether more rounds of a cost can be had, at most so many; they are held then.
    fn reserve(&mut self, cost: &Cost, most: u64) -> Result<bool, GateError> {
        self.settle()?;
        let mut count = most;
        loop {
            self.reserved += 1;
            let id = RequestId::new(format!("{}-{}", self.run, self.reserved))?;
            let reserve = Reserve {
                id: id.clone(),
                mechanism: several(cost, count)?,
                blocks: self.place.blocks.clone(),
                note: Some("paygo train".to_owned().try_into()?),
                expires_in_seconds: Some(HOLD),
            };
            let answer = self.place.ask(reserve)?;
            let fits = answer.largest_count.unwrap_or(0);
            match answer.decision {
                Decision::Admit => {
                    self.held = Some(Held { cost: cost.clone(), id, count, used: 0, since: Instant::now() });
                    // An earlier one was about something dearer.
                    self.refusal = None;
                    return Ok(true);
                }
                Decision::Refuse if fits == 0 => {
                    self.refusal = Some(answer);
                    return Ok(false);
                }
                Decision::Refuse => count = fits.min(count - 1),
            }
        }
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        let Some(Held { id, count, used, since, .. }) = self.held.take() else { return Ok(()) };
        let wrong = || format!("what reservation {id} holds stays charged");
        if used == count {
            let took = since.elapsed();
            let longer = if took < WHILE { self.size * 2 } else { self.size };
            self.size = if took > 4 * WHILE { self.size.div_ceil(2) } else { longer.min(MAX_ROUNDS) };
            self.place.ask(Commit { id: id.clone(), used: None }).with_context(wrong)?;
            return Ok(());
        }
        if used > 0 {
            self.place.ask(Commit { id: id.clone(), used: Some(used) }).with_context(wrong)?;
        }
        self.place.ask(Cancel { id: id.clone(), nothing_drawn: true }).with_context(wrong)?;
        Ok(())
    }

    fn room(&self, cost: &Cost) -> Result<u64, GateError> {
        let (mechanism, then, blocks) = (several(cost, 1)?, Vec::new(), self.place.blocks.clone());
        let question = Question { mechanism, then, blocks };
        let fits = self.place.ask(question)?.largest_count;
        let held = self.held.as_ref().filter(|held| held.cost == *cost).map_or(0, |held| held.count - held.used);
        Ok(fits.saturating_add(held))
    }

    /// How many of these rounds would be admitted now, one after another.
    fn room_for_all(&self, rounds: &[(Cost, u64)]) -> Result<u64, GateError> {
        let mut mechanisms = rounds.iter().map(|(cost, count)| several(cost, *count));
        let mechanism = mechanisms.next().ok_or("no rounds were asked for")??;
        let then: Vec<Mechanism> = mechanisms.collect::<Result<_, _>>()?;
        let (is_one, all) = (then.is_empty(), rounds[0].1);
        let answer = self.place.ask(Question { mechanism, then, blocks: self.place.blocks.clone() })?;
        Ok(if is_one { answer.largest_count.min(all) } else { answer.in_turn.unwrap_or(0) })
    }
}

impl Gate for SharedBudget {
    fn neighbors(&self) -> Neighbors {
        self.own.neighbors()
    }

    fn request(&mut self, cost: &Cost) -> Result<filter::Decision, GateError> {
        let Some(ledger) = self.ledger.as_mut().filter(|ledger| !ledger.asleep) else { return self.own.request(cost) };
        if !ledger.holds(cost) {
            // What the run's own budget refuses, the ledger is not asked for.
            let room = self.own.room(cost, ledger.size)?;
            if room > 0 && !ledger.reserve(cost, room)? {
                let (requested, spent) = (Vec::new(), self.own.filter().meters());
                return Ok(filter::Decision::Refused(Refusal {
                    reason: Reason::Budget,
                    requested,
                    spent,
                    largest_count: 0,
                }));
            }
        }
        let decision = self.own.request(cost)?;
        if matches!(decision, filter::Decision::Admitted(_)) {
            let held = ledger.held.as_mut().filter(|held| held.cost == *cost && held.used < held.count);
            held.ok_or("a round was admitted that the ledger does not hold; this is a fault of paygo")?.used += 1;
        }
        Ok(decision)
    }

    fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
        let own = self.own.room(cost, most)?;
        match &self.ledger {
            Some(ledger) if own > 0 && !ledger.asleep => Ok(own.min(ledger.room(cost)?)),
            Some(_) | None => Ok(own),
        }
    }
}
