//! The clock: at what price a step may be taken, so that the privacy-loss distribution may gate (T53).
//!
//! | read | for |
//! | --- | --- |
//! | [`Reference`] | what is left and what is paid: noise, and steps of a plan |
//! | `law` | the losses of a step, as atoms |
//! | `transform` | their transforms, with bounds on the errors |
//! | `rest` | what is left, as a factor of all sums |
//! | `line` | the condition at all thresholds of a stretch |
//! | `price` | the least payment that meets it |
//! | `curve` | the same for what is known by its Rényi divergences |
//! | `profile` | δ of a reference, from above |
//!
//! Write `H_R(x) = E[(1 − e^{x−l})₊]` for the profile of a loss law at the threshold `x`, and `R_t` for the reference when `t` is left. A payment `b`
//! for a step with dominating pair `A` is enough, when `t` is left after it, where
//!
//! ```text
//! H_{A⊗R_t}(x) ≤ H_{R_{t+b}}(x) + rate·b    for every real x, in both directions.
//! ```
//!
//! Half of the thresholds are enough: `H_{(P,Q)}(−x) = 1 − e^{−x} + e^{−x}·H_{(Q,P)}(x)`, so that below zero one direction follows from
//! the other above it. And what is enough at `t` is enough at every larger one: compose both sides with what is more.

mod curve;
mod law;
mod line;
mod price;
mod profile;
mod reference;
mod rest;
mod transform;

pub use reference::{MAX_KINDS, Reference, Terms};

use super::law::pair_of;
use crate::cost::Bound;
use crate::mechanism::Single;
use crate::params::Count;
use curve::Curve;
use law::Law;
use line::Coin;
use paygo_numeric::rounding::{add_up, mul_up};
use price::{Allowance, Direction, MOST_WORK_OF_ALL, Task};
use rest::Rest;

/// A payment above it is none.
const MOST: f64 = 1e6;
/// A step is priced as if this share of its allowance were lost with the largest losses.
const LOST: f64 = 1e-3;

/// The payment for one step when so much is left of a Gaussian clock after it, and so much of δ goes with it; rounded up. +∞ where none was found.
#[must_use]
pub fn payment(single: &Single, remaining: f64, eta: f64) -> f64 {
    if let Some(square) = exact(single, Count::ONE) {
        return square.float;
    }
    let by_curve =
        Curve::of(single).map_or(f64::INFINITY, |curve| curve.price(remaining, Allowance::Fixed(eta), (0.0, MOST)));
    let Some(laws) = laws(single, LOST * eta, false) else { return by_curve };
    let mut work = MOST_WORK_OF_ALL;
    let price = laws.into_iter().try_fold(0.0, |least, (_, law)| {
        let task = Task { rest: Rest::noise(remaining), coin: Coin::Noise, allowance: Allowance::Fixed(eta) };
        Direction::new(law, remaining, remaining).price(&task, (least, MOST), &mut work)
    });
    price.unwrap_or(f64::INFINITY).min(by_curve)
}

/// The μ² of a step that is Gaussian noise, or as good as it.
fn exact(single: &Single, count: Count) -> Option<Bound> {
    let family = single.family();
    family.pair().and_then(|_| family.mu_squared_of(count))
}

/// The law of a step, with the record against without, or the other way around. `negligible` is what may be lost, as a multiple of the second
/// moment.
fn law(single: &Single, added: bool, negligible: f64) -> Option<Law> {
    Law::of_pair(&pair_of(single, negligible)?, added, negligible)
}

/// Laws of which each must be paid for, with the direction of what is left: 0, with the record against without, or 1. Where what is left is the
/// same in both directions, a law that is its own mirror image is there once, unless `both` are wanted.
///
/// Of what is known by the range of its losses, the part of the range that lies above zero is not known: some laws dominate it wherever that is.
fn laws(single: &Single, negligible: f64, both: bool) -> Option<Vec<(usize, Law)>> {
    if let Some(range) = single.family().bounded_range() {
        // The mirror image of one lies within such a range, too.
        let ways: &[usize] = if both { &[0, 1] } else { &[0] };
        let laws = bounded_range(range.get());
        return Some(laws.into_iter().flat_map(|law| ways.iter().map(move |way| (*way, law.clone()))).collect());
    }
    let pair = pair_of(single, negligible)?;
    let first = Law::of_pair(&pair, false, negligible)?;
    if !pair.is_symmetric() {
        return Some(vec![(0, first), (1, Law::of_pair(&pair, true, negligible)?)]);
    }
    Some(if both { vec![(0, first.clone()), (1, first)] } else { vec![(0, first)] })
}

/// Two-point laws one of which dominates each law whose losses lie within a range of this length; those that cost most come first.
///
/// # Soundness
/// Losses between `t − ε` and `t`, `s ≤ t ≤ s'`, lie between `s − ε` and `s'`; two losses at the ends have the largest profile, since
/// `(1 − e^{x−l})₊` is convex in `e^{−l}`. Parts of a 32nd above the middle, where large losses are rare and dear; below it they may be wider,
/// so that none has a second moment of more than 1.02·ε²/4.
fn bounded_range(epsilon: f64) -> Vec<Law> {
    let part = |from: f64, to: f64| {
        let range = mul_up(epsilon, add_up(1.0, to - from)) * (1.0 + 4.0 * f64::EPSILON);
        Law::of_two(mul_up(epsilon, to), range)
    };
    let upper = (16..32).map(|i| part(f64::from(i) / 32.0, f64::from(i + 1) / 32.0));
    let ends = std::iter::successors(Some(0.0), |from| Some(0.255 / (1.0 - from)));
    let ends: Vec<f64> = ends.take_while(|from| *from < 0.5).chain([0.5]).collect();
    upper.chain(ends.windows(2).map(|ends| part(ends[0], ends[1]))).collect()
}
