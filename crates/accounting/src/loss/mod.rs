//! The privacy-loss distribution: the tightest price of a plan, certified from above and from below (T41).
//!
//! | read | for |
//! | --- | --- |
//! | [`LossLaw`] | what is kept of a plan, and asked |
//! | [`pair`] | the two laws of each mechanism |
//! | `atoms` | of what is known by a profile |
//! | `grid` | their losses on a lattice, never too little and never too much |
//! | `spectrum` | tilted, and transformed at low frequencies |
//! | `product` | of many steps |
//! | `compose` | the profile of many steps |
//! | `aim` | where to look; part of no bound |
//!
//! Fixed in advance only: as a filter it would be unsound (T40).

mod aim;
mod atoms;
pub mod clock;
mod compose;
mod grid;
mod law;
pub mod pair;
mod product;
mod spectrum;

pub use atoms::Atoms;
pub use law::{LossLaw, MAX_MECHANISMS, NoLaw};
pub use pair::Pair;

use crate::account::{Question, Row, tightest};
use crate::cost::Cost;
use crate::guarantee::Basis;
use crate::params::{Delta, Epsilon};
use law::{QUICK, THOROUGH};
use spectrum::Side;

/// The price of a plan by its privacy-loss distribution; `None` when a mechanism has none here, or it would take too long.
#[must_use]
pub fn row(cost: &Cost, question: Question) -> Option<Row> {
    at_most(cost, question, THOROUGH)
}

fn at_most(cost: &Cost, question: Question, work: f64) -> Option<Row> {
    let at_most = LossLaw::of(cost).ok()?.answer(question, Side::Above, work)?;
    Some(answer("privacy-loss", Basis::FixedInAdvance, question, at_most))
}

/// What the plan costs at least, where every mechanism attains its pair of laws; `None` where one may cost less than its pair says.
#[must_use]
pub fn at_least(cost: &Cost, question: Question) -> Option<Row> {
    let at_least = LossLaw::of(cost).ok()?.at_least(question)?;
    Some(answer("privacy-loss-lower", Basis::Lower, question, at_least))
}

fn answer(method: &'static str, basis: Basis, question: Question, value: f64) -> Row {
    let (epsilon, delta) = match question {
        Question::EpsilonAt(delta) => (Epsilon::from_upper_bound(value), delta),
        Question::DeltaAt(epsilon) => (epsilon, Delta::from_upper_bound(value)),
    };
    Row { method, epsilon, delta, order: None, basis }
}

/// How many different mechanisms the cost has, if that is the only reason why it has no [`row`].
#[must_use]
pub fn too_many(cost: &Cost) -> Option<usize> {
    match LossLaw::of(cost) {
        Err(NoLaw::TooMany(given)) if cost.mu().is_none() => Some(given),
        Ok(_) | Err(_) => None,
    }
}

/// The least of the fast methods and the privacy-loss distribution.
#[must_use]
pub fn tightest_of_all(cost: &Cost, delta: Delta) -> Row {
    let fast = tightest(cost, delta);
    if cost.mu().is_some() {
        return fast; // Gaussian noise alone: exact already.
    }
    match at_most(cost, Question::EpsilonAt(delta), QUICK) {
        Some(row) if row.epsilon < fast.epsilon => row,
        Some(_) | None => fast,
    }
}
