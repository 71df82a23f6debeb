//! Who is asked before noise is drawn.

use paygo_accounting::charge::Charge;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Decision, Filter, Rule};
use paygo_accounting::params::Neighbors;
use std::sync::{Arc, Mutex};

/// Whatever went wrong with asking; nothing was admitted.
pub type GateError = Box<dyn std::error::Error + Send + Sync>;

/// A budget that is asked before every release: a filter of this process, or a ledger that many share.
///
/// # Contract
/// What it admits is counted, durably if it outlives this process, before it answers.
pub trait Gate: Send {
    /// The neighbor relation under which everything holds.
    fn neighbors(&self) -> Neighbors;

    /// Admits a cost, and counts it, or refuses it at no cost.
    ///
    /// # Errors
    /// When the cost has no price here, or the answer is not known.
    fn request(&mut self, cost: &Cost) -> Result<Decision, GateError>;

    /// How many more of a cost would be admitted now, up to `most`.
    ///
    /// # Errors
    /// As [`Gate::request`].
    fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError>;
}

/// A filter as a gate: remembers the price of what was asked last, since a training run asks for the same again and again.
#[derive(Clone, Debug)]
pub struct FilterGate<R> {
    filter: Filter<R>,
    priced: Option<Charge>,
}

impl<R: Rule> FilterGate<R> {
    /// The gate of a filter.
    #[must_use]
    pub const fn new(filter: Filter<R>) -> Self {
        Self { filter, priced: None }
    }

    /// The filter.
    #[must_use]
    pub const fn filter(&self) -> &Filter<R> {
        &self.filter
    }

    fn charge(&mut self, cost: &Cost) -> Result<Charge, GateError> {
        match &self.priced {
            Some(charge) if **charge.cost() == *cost => Ok(charge.clone()),
            Some(_) | None => {
                let charge = self.filter.price(cost)?;
                self.priced = Some(charge.clone());
                Ok(charge)
            }
        }
    }
}

impl<R: Rule> Gate for FilterGate<R> {
    fn neighbors(&self) -> Neighbors {
        self.filter.neighbors()
    }

    fn request(&mut self, cost: &Cost) -> Result<Decision, GateError> {
        let charge = self.charge(cost)?;
        Ok(self.filter.admit(&charge))
    }

    fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
        let charge = self.charge(cost)?;
        Ok(self.filter.room_for(&charge, most))
    }
}

/// One budget for several runs.
impl<G: Gate> Gate for Arc<Mutex<G>> {
    fn neighbors(&self) -> Neighbors {
        // A relation does not change; a run that panicked while it asked has changed nothing else.
        self.lock().unwrap_or_else(std::sync::PoisonError::into_inner).neighbors()
    }

    fn request(&mut self, cost: &Cost) -> Result<Decision, GateError> {
        self.lock().map_err(|_| "another run failed while it asked for a budget")?.request(cost)
    }

    fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
        self.lock().map_err(|_| "another run failed while it asked for a budget")?.room(cost, most)
    }
}
