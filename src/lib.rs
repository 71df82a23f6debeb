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
//! An adaptive run, decided step by step:
//!
//! ```
//! use paygo::accounting::filter::{Budget, Clock, Decision, Filter};
//! use paygo::accounting::params::Neighbors;
//! use paygo::noise::{DiscreteGaussian, Ratio, Release, Source};
//!
//! let mut filter = Filter::new(Clock::new(Budget::from_decimal("1", "1e-6")?)?, Neighbors::AddRemove);
//! let release = Release::gaussian(DiscreteGaussian { variance: Ratio::new(900, 1)? }, 1)?;
//! match filter.request(&release.cost(Neighbors::AddRemove)?)? {
//!     Decision::Admitted(permit) => {
//!         let noisy = release.draw(permit, &mut Source::from_operating_system()?, &[1234])?;
//!         assert_eq!(noisy.len(), 1);
//!     }
//!     Decision::Refused(refusal) => panic!("{}", refusal.reason.explanation()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tables of people, with a budget for each person, are in [`analysis`]; a budget that many share and that survives, in [`ledger`],
//! over HTTP in [`server`] and [`client`]. Start at [`accounting`]; `ARCHITECTURE.md` has the map, `docs/theory/` the theorems.

pub use paygo_accounting as accounting;
pub use paygo_analysis as analysis;
pub use paygo_client as client;
pub use paygo_ledger as ledger;
pub use paygo_noise as noise;
pub use paygo_numeric as numeric;
pub use paygo_server as server;
pub use paygo_training as training;

pub mod selftest;
