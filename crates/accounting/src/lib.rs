//! Privacy accounting that never reports too little: the pure core of paygo.
//!
//! ```text
//! what was done      how bad at worst     all together     may it go on?        what we promise
//! Mechanism  ─────▶  Cost (a curve)  ──▶  composition ──▶  Filter | Odometer ─▶ Guarantee
//! plain data         upper bound          upper bound      decision | reading   (ε, δ), neighbors, unit, basis
//! ```
//!
//! Every arrow is a pure function; every number that flows right is an upper bound and is only ever rounded up. No I/O,
//! no clock, no randomness; no threads but where a column of people is split among them.
//!
//! | read | for |
//! | --- | --- |
//! | [`params`] | ε, δ, ρ, μ, orders, noise: each checked once; which datasets are neighbors |
//! | [`mechanism`] | what can be done to data, one file per family with mathematics of its own |
//! | [`cost`] | the price of a mechanism in every currency, under one neighbor relation |
//! | [`curve`] | Rényi curves on stored orders, and what may be said between them |
//! | [`convert`] | Rényi, zCDP and GDP to (ε, δ) and back, every method |
//! | [`compose`] | composition of (ε, δ) steps fixed in advance |
//! | [`filter`] | may it go on? decisions before each release, fully adaptive |
//! | [`odometer`] | how much has been spent? readings that hold at every moment |
//! | [`individual`] | a budget for each person: columns and the rounds that move them |
//! | [`secret`] | values that depend on the data |
//! | [`charge`] | a cost in one currency, as exact amounts; their sums |
//! | [`prior`] | weights over orders, fixed in advance, and the mixture they make |
//! | [`stored`] | filters as they are stored |
//! | [`account`] | all methods side by side; the tightest |
//! | [`loss`] | the privacy-loss distribution: the tightest for sampled noise |
//! | [`calibrate`] | the least noise, most steps or largest batch for a target |
//! | [`schedule`] | noise schedules and how long a budget lasts |
//! | [`guarantee`] | the bases, and what each allows |
//! | [`estimate`] | numbers from the papers that are not bounds |
//! | [`wire`] | the words in which plans and requests are written |
//!
//! Theorems are cited by their number in `docs/theory/` (T9, E4, …), which gives statements, sources, preconditions and
//! corrections.

pub mod account;
pub mod calibrate;
pub mod charge;
pub mod compose;
pub mod convert;
pub mod cost;
pub mod curve;
pub mod estimate;
pub mod filter;
pub mod guarantee;
pub mod individual;
pub mod loss;
pub mod mechanism;
pub mod odometer;
pub mod params;
pub mod prior;
pub mod schedule;
pub mod secret;
pub mod stored;
pub mod wire;
