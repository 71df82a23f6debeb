//! A durable privacy budget that a whole organization shares.
//!
//! ```text
//! request ──▶ seen before? ──▶ decide ──▶ append durably ──▶ apply ──▶ answer
//!             the first answer  pure       one transaction    state     with a receipt
//! ```
//!
//! | read | for |
//! | --- | --- |
//! | [`request`] | everything that can be asked, in one table, and the two traits of whoever answers |
//! | [`words`] | what is asked and answered, as it is written |
//! | [`views`] | what is shown, as it is written |
//! | [`entry`] | the log: one line of JSON for each thing that happened, hash-chained |
//! | [`state`] | what the log says: pure, derived, exact |
//! | [`ledger`] | the handle that many share, and the one writer behind it |
//! | [`store`] | where the log is kept: SQLite or PostgreSQL |
//! | [`import`] | a log taken over from somewhere else |
//! | [`verify`] | everything derived again from the log alone, by other code |

pub mod entry;
#[cfg(feature = "store")]
pub mod import;
#[cfg(feature = "store")]
pub mod ledger;
mod names;
pub mod request;
#[cfg(feature = "store")]
mod seen;
pub mod state;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
pub mod verify;
pub mod views;
pub mod words;

#[cfg(feature = "store")]
pub use ledger::{Ledger, LedgerError};
pub use names::{Name, Note, RequestId};
