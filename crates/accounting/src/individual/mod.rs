//! A budget for each person: columns with one number per person, and the rounds that move them.
//!
//! Worst-case accounting charges everybody for the most exposed person imaginable. Individual accounting charges each person
//! for what their own record did, and leaves a person out of a computation only when their own budget is used up. What is
//! promised is the same, to everybody (T19, T20).
//!
//! # The column
//! What a person has spent is a share of that person's budget, an integer from 0 to [`FULL`]. Costs are shares too, rounded up
//! once by [`SharePrice`]; sums are exact, so rounds and partitions of people can be merged in any order. Budgets may differ from
//! person to person: each has a [`SharePrice`] of their own, the column does not change.
//!
//! | read | for | theorem |
//! | --- | --- | --- |
//! | [`SharePrice`] | a squared norm against Gaussian noise, as a share of a budget in zCDP, GDP or at one Rényi order | T19, T49 |
//! | [`admit_round`] | Algorithm 3: who takes part in this round; who does not pays nothing and may return | T20 |
//! | [`Clipping`] | Algorithm 8: everybody takes part, scaled down to what is left to them | T23, E7 |
//! | [`odometer`] | no budget: a reading for each person at every moment | T18, T22 |
//!
//! # Preconditions of every theorem here
//! - What a person contributes, and whether they take part, depends on their own record and on what was released; on nobody else.
//! - The noise and every normalizer are public: they do not depend on who takes part, nor on how many do.
//! - Neighbors add or remove one person, or zero one out.
//! - Columns, masks and sums are secret: they may be shown to nobody but the person they are about ([`crate::secret`]).

mod clip;
mod filter;
pub mod odometer;
mod price;

pub use clip::Clipping;
pub use filter::admit_round;
pub use price::{Fine, PersonalBudget, SharePrice};

/// A whole budget. Divisible by every number up to 18, by 20, 24, 25, 50, 100 and 1000, so that plain fractions of a budget fit
/// as often as they should.
pub const FULL: u32 = 4_288_284_000;

/// A cost that fits into no budget.
pub const NEVER: u32 = u32::MAX;

/// Columns shorter than this are not worth another thread.
const WORTH_A_THREAD: usize = 1 << 18;
