//! \[FZ\]'s restart odometer.

use super::ville::{positive, tail};
use super::{Boundary, Kind, Unobserved};
use crate::charge::{Charge, Currency, Sums};
use crate::convert::Conversion;
use crate::curve::Orders;
use crate::params::{Delta, Divergence, Order, OutOfDomain};
use crate::wire::{FilterError, OdometerWords};
use paygo_numeric::Amount;
use std::sync::Arc;

/// Counts in steps of Δ at one order: whenever a run of costs would pass Δ, the odometer moves on by Δ and starts a new run.
///
/// # Theorem
/// If every cost is at most Δ, the steps counted so far times Δ are at least the sum `S(α)`, so
/// `(steps·Δ) + ln(1/δ)/(α−1)` bounds the loss at every moment by [`super::VilleFixed`]'s theorem (T22). \[FZ\]'s Proposition 5.2
/// itself holds only for a number of restarts fixed in advance.
///
/// # Preconditions
/// The order and Δ were fixed before the first output; each cost is at most Δ, which is enforced: a larger one would be
/// counted as one Δ (E8).
///
/// # Tightness
/// Never below [`super::VilleFixed`] at the same order, which needs no steps. A repeat is observed one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Restart {
    order: Order,
    delta: Delta,
    step: Amount,
    /// Steps begun, times Δ.
    counted: Amount,
    /// What the current run has used of its step.
    run: Amount,
    currency: Arc<Currency>,
}

impl Restart {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, or Δ is 0 or infinite.
    pub fn new(order: Order, step: Amount, delta: Delta) -> Result<Self, OutOfDomain> {
        if step == Amount::ZERO || step.is_infinite() {
            return Err(OutOfDomain::new("step", step, "0 < step < inf"));
        }
        let currency = Arc::new(Currency::Renyi(Orders::new(vec![order])?));
        Ok(Self { order, delta: positive(delta)?, step, counted: step, run: Amount::ZERO, currency })
    }

    /// The steps begun, times Δ: \[FZ\]'s reading, a Rényi divergence at the order.
    #[must_use]
    pub const fn counted(&self) -> Amount {
        self.counted
    }

    /// The order.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Δ.
    #[must_use]
    pub const fn step(&self) -> Amount {
        self.step
    }

    /// What the current run has used of its step.
    #[must_use]
    pub const fn run(&self) -> Amount {
        self.run
    }
}

impl Boundary for Restart {
    fn word(&self) -> &'static str {
        "restart"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    /// A repeat of `n` equal costs moves as `n` single ones would.
    fn absorb(&mut self, charge: &Charge, _sums: &Sums) -> Result<(), Unobserved> {
        let (one, count) = charge.cost().as_repeat();
        let whole = charge.lanes().amounts()[0];
        let (cost, mut left) = match self.currency.price(&one, charge.cost().neighbors()) {
            Ok(one) if count.get() > 1 => (one.lanes().amounts()[0], count.get()),
            Ok(_) | Err(_) => (whole, 1),
        };
        if cost > self.step {
            return Err(Unobserved::TooLarge { given: cost, step: self.step });
        }
        if cost == Amount::ZERO {
            return Ok(());
        }
        let fit = cost.fits_into(self.step.minus(self.run)).min(left);
        self.run = self.run.plus(cost.times(fit));
        left -= fit;
        if left > 0 {
            let per_run = cost.fits_into(self.step);
            let runs = left.div_ceil(per_run);
            self.counted = self.counted.plus(self.step.times(runs));
            self.run = cost.times(left - (runs - 1) * per_run);
        }
        Ok(())
    }

    fn value(&self, _sums: &Sums) -> f64 {
        tail(self.counted.to_f64_up(), self.delta, self.order)
    }
}

impl Kind for Restart {
    const TAKES: &'static [&'static str] = &["step", "order"];

    /// A tenth of what the target allows is a step, unless one was asked for.
    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        let (target, delta) = (words.target()?, words.delta()?);
        let order = words.order_words().order(target, delta)?;
        let step = match &words.step {
            Some(step) => step.amount_down("step")?,
            None => {
                let whole = Conversion::Classic.budget(order, target, delta).and_then(Divergence::limit);
                whole.ok_or(FilterError::Missing("step", "one; none suits this target by itself"))?.shared_by(10)
            }
        };
        Ok(Self::new(order, step, delta)?)
    }
}
