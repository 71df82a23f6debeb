//! paygo: pay-as-you-go differential privacy, the library's front door.
//!
//! ```
//! use paygo::accounting::{account, cost::Cost, mechanism::Mechanism};
//! use paygo::accounting::params::{Delta, Neighbors};
//!
//! let step = Mechanism::gaussian(20.0)?;
//! let cost = Cost::of(&step, Neighbors::AddRemove)?.repeat(1000)?;
//! let best = account::tightest(&cost, Delta::new(1e-5)?);
//! assert_eq!(best.method, "gdp-exact");
//! assert!((best.epsilon.get() - 7.511_276).abs() < 1e-4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Start at [`accounting`]; `ARCHITECTURE.md` has the map, `docs/theory.md` the theorems.

pub use paygo_accounting as accounting;
pub use paygo_numeric as numeric;

pub mod selftest;
