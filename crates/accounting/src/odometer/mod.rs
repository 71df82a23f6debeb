//! Privacy odometers: a bound on the privacy loss that holds at every moment, wherever one stops.
//!
//! # What is promised
//! Fix a pair of neighboring datasets and a direction. With probability at least 1 − δ over the releases, the privacy loss
//! `L` of everything released never passes the reading, at any moment, however requests were chosen. It is a statement about
//! the loss as it happened (*ex post*), one-sided, each direction with its own δ; reading as often as one likes is free.
//! It does not say "the mechanism is (reading, δ)-DP", because the reading is random (E5). To stop *at* a budget, use a
//! [`crate::filter`].
//!
//! | boundary | for | theorem |
//! | --- | --- | --- |
//! | [`VilleMixture`] | any mechanisms; the default | T18c |
//! | [`VilleUnion`] | the same, simpler and looser | T18b |
//! | [`VilleFixed`] | one Rényi order chosen in advance | T18a |
//! | [`Doubling`] | \[L\]'s odometer, corrected; for comparison, since the mixture is always at most this | T17, E2 |
//! | [`Restart`] | \[FZ\]'s odometer at one order, in steps | T22 |
//! | [`Linear`] | steps with a ρ, tight at a target | Part 2.4 |
//! | [`NormalMixture`] | steps with a ρ, good over a wide range | Part 2.4 |
//! | [`Stitched`] | steps with a ρ, the best growth | Part 2.4, E6 |
//!
//! The last three also take (ε, δ)-DP steps, made pointwise first (T36) and with the drift that these need (Part 2.5).

mod doubling;
mod kinds;
mod normal;
mod restart;
mod ville;

pub use doubling::Doubling;
pub(crate) use kinds::names as kind_names;
pub use kinds::{AnyBoundary, Kind, OdometerKind};
pub use normal::{Linear, NormalMixture, Stitched};
pub use restart::Restart;
pub use ville::{VilleFixed, VilleMixture, VilleUnion};

use crate::charge::{Charge, Currency, Sums, Unpriced};
use crate::cost::Cost;
use crate::params::{Delta, Epsilon, Neighbors};
use paygo_numeric::Amount;
use std::sync::Arc;

/// A bound as a function of exact sums.
///
/// # Contract
/// If every release was observed before it ran, the loss passes [`Boundary::value`] at some moment with probability at
/// most [`Boundary::delta`], in each direction.
pub trait Boundary: Clone + PartialEq + std::fmt::Debug + Send + Sync {
    /// Its name on the command line.
    fn word(&self) -> &'static str;
    /// The numbers it adds up.
    fn currency(&self) -> &Arc<Currency>;
    /// The probability with which it may fail, in each direction.
    fn delta(&self) -> Delta;
    /// What the boundary remembers besides the sums so far. Called before the charge is added to them.
    ///
    /// # Errors
    /// [`Unobserved`] when the charge breaks a precondition; nothing is changed then.
    fn absorb(&mut self, _charge: &Charge, _sums: &Sums) -> Result<(), Unobserved> {
        Ok(())
    }
    /// The bound, rounded up.
    fn value(&self, sums: &Sums) -> f64;
}

/// A charge that was not observed. If the release runs all the same, the reading no longer covers it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unobserved {
    /// Priced for other sums.
    #[error("the charge was priced for an odometer with other sums")]
    OtherCurrency,
    /// A step with a δ of its own where the loss itself must be bounded.
    #[error("a step with a delta of its own has no bound on its loss here")]
    OwnDelta,
    /// The steps' own δ would pass what is set aside for it.
    #[error(
        "the steps' own delta, made pointwise, would add up to {needed}; expected at most the slack, {slack} (an (epsilon, \
         delta)-DP step counts as delta/(1 - e^-epsilon) here)"
    )]
    Slack {
        /// The sum with this charge.
        needed: Amount,
        /// What is set aside.
        slack: Amount,
    },
    /// Larger than the step of a restart odometer.
    #[error("a cost of {given} is more than the odometer's step; expected at most {step}, or a larger step")]
    TooLarge {
        /// The cost.
        given: Amount,
        /// The step.
        step: Amount,
    },
}

/// A boundary and the exact sums of what was observed.
///
/// ```
/// use paygo_accounting::{cost::Cost, mechanism::Mechanism, odometer::{Odometer, VilleMixture}, prior::Prior};
/// use paygo_accounting::params::{Delta, Neighbors};
/// let boundary = VilleMixture::new(Delta::new(1e-5)?, Prior::log_spaced())?;
/// let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
/// let charge = odometer.price(&Cost::of(&Mechanism::gaussian(20.0)?, Neighbors::AddRemove)?)?;
/// let mut last = odometer.reading();
/// for _ in 0..10 {
///     odometer.observe(&charge)?; // before the release runs
///     assert!(odometer.reading() >= last);
///     last = odometer.reading();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Odometer<B> {
    boundary: B,
    neighbors: Neighbors,
    sums: Sums,
    /// The highest reading so far: the bound rises with the sums, and rounding must not make it look otherwise.
    highest: f64,
}

impl<B: Boundary> Odometer<B> {
    /// An odometer that has observed nothing yet.
    #[must_use]
    pub fn new(boundary: B, neighbors: Neighbors) -> Self {
        let sums = Sums::zero(boundary.currency());
        Self { boundary, neighbors, sums, highest: 0.0 }
    }

    /// What a cost would add to the sums. The slow part, and independent of everything observed so far.
    ///
    /// # Errors
    /// [`Unpriced`] when the neighbor relation differs, or a mechanism has no price in the odometer's currency.
    pub fn price(&self, cost: &Cost) -> Result<Charge, Unpriced> {
        let charge = self.boundary.currency().price(cost, self.neighbors)?;
        if charge.lanes().slack() > Amount::ZERO {
            return Err(Unpriced::OwnDelta);
        }
        Ok(charge)
    }

    /// Adds a charge, before its release runs.
    ///
    /// # Errors
    /// [`Unobserved`] when the charge is another odometer's or breaks a precondition; nothing is changed then.
    pub fn observe(&mut self, charge: &Charge) -> Result<(), Unobserved> {
        if !charge.fits(self.boundary.currency(), self.neighbors) {
            return Err(Unobserved::OtherCurrency);
        }
        // A filter with the same currency prices such steps; only here do they not count.
        if charge.lanes().slack() > Amount::ZERO {
            return Err(Unobserved::OwnDelta);
        }
        self.boundary.absorb(charge, &self.sums)?;
        self.sums.add(charge.lanes(), 1);
        Ok(())
    }

    /// The bound on the privacy loss now. Never falls.
    #[must_use]
    pub fn reading(&mut self) -> Epsilon {
        // A NaN is doubt.
        let value = self.boundary.value(&self.sums);
        self.highest = if value.is_nan() { f64::INFINITY } else { self.highest.max(value) };
        Epsilon::from_upper_bound(self.highest)
    }

    /// The boundary.
    #[must_use]
    pub const fn boundary(&self) -> &B {
        &self.boundary
    }

    /// The neighbor relation under which the reading holds.
    #[must_use]
    pub const fn neighbors(&self) -> Neighbors {
        self.neighbors
    }

    /// The exact sums of what was observed.
    #[must_use]
    pub const fn sums(&self) -> &Sums {
        &self.sums
    }
}
