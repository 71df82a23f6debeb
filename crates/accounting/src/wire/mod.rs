//! The words in which mechanisms, plans and filters are written: one vocabulary for plans, streams, ledger and HTTP.
//!
//! These types only mirror the text. `TryFrom` turns them into checked values, so an impossible parameter is an error
//! that names the field, what was given and what is allowed, and a change inside the core never changes a file on disk.

mod filter;
mod mechanism;
mod number;
mod odometer;
mod orders;
mod plan;

pub use crate::filter::FilterKind;
pub use crate::odometer::OdometerKind;
pub use filter::{FilterError, FilterWords};
pub use mechanism::Mechanism;
pub(crate) use number::renamed;
pub use number::{Number, Side};
pub use odometer::OdometerWords;
pub(crate) use orders::OrderWords;
pub use orders::{WeightWord, Weights};
pub use plan::{Neighbors, Plan, PlanError, Release};
