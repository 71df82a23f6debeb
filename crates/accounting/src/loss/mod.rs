//! The privacy-loss distribution: the tightest price of a plan, certified from above and from below (T41).
//!
//! | read | for |
//! | --- | --- |
//! | [`pair`] | the two laws of each mechanism |
//! | `grid` | their losses on a lattice, never too little and never too much |
//! | `spectrum` | tilted, and transformed at low frequencies |
//! | `compose` | the profile of many steps |
//! | `aim` | where to look; part of no bound |
//!
//! Fixed in advance only: as a filter it would be unsound (T40).

mod aim;
pub mod clock;
mod compose;
mod grid;
pub mod pair;
mod spectrum;

pub use pair::Pair;

use crate::account::{Question, Row, tightest};
use crate::cost::Cost;
use crate::guarantee::Basis;
use crate::params::{Count, Delta, Epsilon};
use aim::{Aim, COARSE, FINE, Sketches};
use compose::{Composed, Window};
use grid::{Cut, GridLaw};
use paygo_numeric::rounding::{add_up, mul_up};
use spectrum::Side;

/// Different mechanisms beyond which it takes too long.
pub const MAX_MECHANISMS: usize = 512;
/// What may count as an infinite loss, as a share of δ.
const NEGLIGIBLE: f64 = 1e-7;
/// Multiples of the saddle point that are tried as tilts until there is little doubt.
const TILTS: [f64; 4] = [1.0, 0.6, 0.35, 1.5];

/// The price of a plan by its privacy-loss distribution; `None` when a mechanism has none here, or it would take too long.
///
/// # Theorem
/// For each mechanism the pair of laws used dominates it, in the direction concerned, at every ε. Composition of
/// dominating pairs dominates the composition, also when the queries (not the parameters) are adaptive. Source: Zhu,
/// Dong, Wang, arXiv:2106.08567, Theorems 10 and 11 (T41).
#[must_use]
pub fn row(cost: &Cost, question: Question) -> Option<Row> {
    let at_most = profile(cost, question, Side::Above)?;
    Some(answer("privacy-loss", Basis::FixedInAdvance, question, at_most))
}

/// What the plan costs at least, where every mechanism attains its pair of laws; `None` where one may cost less than its pair says.
#[must_use]
pub fn at_least(cost: &Cost, question: Question) -> Option<Row> {
    if !cost.singles()?.iter().all(|(single, _)| single.family().attains_its_pair()) {
        return None;
    }
    let at_least = profile(cost, question, Side::Below)?;
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
    let singles = cost.singles()?;
    let priced = singles.iter().all(|(single, _)| single.family().pair().is_some());
    (priced && cost.mu().is_none() && singles.len() > MAX_MECHANISMS).then_some(singles.len())
}

/// The least of the fast methods and the privacy-loss distribution.
#[must_use]
pub fn tightest_of_all(cost: &Cost, delta: Delta) -> Row {
    let fast = tightest(cost, delta);
    if cost.mu().is_some() {
        return fast; // Gaussian noise alone: exact already.
    }
    match row(cost, Question::EpsilonAt(delta)) {
        Some(row) if row.epsilon < fast.epsilon => row,
        Some(_) | None => fast,
    }
}

/// ε or δ from one side.
fn profile(cost: &Cost, question: Question, side: Side) -> Option<f64> {
    let pairs: Vec<(Pair, Count)> = cost
        .singles()?
        .into_iter()
        .map(|(single, count)| Some((single.family().pair()?, count)))
        .collect::<Option<_>>()?;
    if pairs.len() > MAX_MECHANISMS || pairs.is_empty() {
        return None;
    }
    // About how small the δ in question is, and with which tilt: any is sound.
    let attempts: Vec<(Option<f64>, f64)> = match question {
        Question::EpsilonAt(delta) if delta.get() < 1e-290 || delta == Delta::ONE => return None,
        Question::EpsilonAt(delta) => TILTS.map(|share| (Some(delta.get()), share)).to_vec(),
        Question::DeltaAt(_) => {
            [None, Some(1e-4), Some(1e-8), Some(1e-16), Some(1e-32)].map(|guess| (guess, 1.0)).to_vec()
        }
    };
    let mut best: Option<f64> = None;
    // Plans of many mechanisms have to do with fewer attempts.
    for (guess, share) in attempts.into_iter().take(if pairs.len() > 64 { 1 } else { 5 }) {
        let Some((value, good)) = attempt(&pairs, question, side, guess, share) else { continue };
        let better = |other: f64| match side {
            Side::Above => value < other,
            Side::Below => value > other,
        };
        if best.is_none_or(better) {
            best = Some(value);
        }
        if good {
            break;
        }
    }
    best
}

/// With this multiple of the saddle point as the tilt: the answer, and whether there is little doubt in it.
fn attempt(
    pairs: &[(Pair, Count)],
    question: Question,
    side: Side,
    guess: Option<f64>,
    share: f64,
) -> Option<(f64, bool)> {
    let sure = |(value, doubt): (f64, f64)| {
        let delta = match question {
            Question::EpsilonAt(delta) => delta.get(),
            Question::DeltaAt(_) => value,
        };
        // What counted as infinite must be little, too.
        let lost = guess.map_or(0.0, |guess| NEGLIGIBLE * guess);
        (value, value.is_finite() && doubt + lost <= 1e-3 * delta)
    };
    let way =
        |side: Side, added: bool, accuracy: f64| Way { pairs, question, side, guess, share, added, accuracy }.answer();
    let (value, doubt) = way(side, false, FINE)?;
    // In the other direction it is often enough to see roughly that it costs less.
    let symmetric = pairs.iter().all(|(pair, _)| pair.is_symmetric());
    let no_more = |bound: f64| bound <= value;
    if symmetric
        || no_more(simple_bound(pairs, question))
        || way(Side::Above, true, COARSE).is_some_and(|(other, _)| no_more(other))
    {
        return Some(sure((value, doubt)));
    }
    match (way(side, true, FINE), side) {
        (Some((other, other_doubt)), _) => Some(sure((value.max(other), doubt.max(other_doubt)))),
        // From below, one direction is enough.
        (None, Side::Below) => Some(sure((value, doubt))),
        (None, Side::Above) => None,
    }
}

/// A bound on the answer without the record against with: where nothing is infinite, no loss passes the sum of the largest.
fn simple_bound(pairs: &[(Pair, Count)], question: Question) -> f64 {
    if pairs.iter().any(|(pair, _)| pair.infinite() > 0.0) {
        return f64::INFINITY;
    }
    let most = pairs.iter().fold(0.0, |sum, (pair, n)| add_up(sum, mul_up(pair.largest(true), n.to_f64())));
    match question {
        Question::EpsilonAt(_) => most,
        Question::DeltaAt(epsilon) if most <= epsilon.get() => 0.0,
        Question::DeltaAt(_) => f64::INFINITY,
    }
}

/// One way to an answer.
#[derive(Clone, Copy)]
struct Way<'a> {
    pairs: &'a [(Pair, Count)],
    question: Question,
    side: Side,
    /// About the δ in question, where it is known.
    guess: Option<f64>,
    /// The tilt, as a multiple of the saddle point.
    share: f64,
    /// Without the record against with, instead of with against without.
    added: bool,
    accuracy: f64,
}

impl Way<'_> {
    /// The answer, and the doubt in the δ there.
    fn answer(self) -> Option<(f64, f64)> {
        let (composed, aim) = self.compose()?;
        Some(match self.question {
            Question::DeltaAt(epsilon) => (composed.delta(epsilon.get()), composed.doubt(epsilon.get())),
            Question::EpsilonAt(delta) => {
                let epsilon = composed.epsilon(delta.get(), aim.epsilon, aim.top.max(aim.epsilon) * 2.0);
                (epsilon, composed.doubt(epsilon))
            }
        })
    }

    fn compose(self) -> Option<(Composed, Aim)> {
        let Self { pairs, question, side, guess, share, added, accuracy } = self;
        let total: f64 = pairs.iter().map(|(_, count)| count.to_f64()).sum();
        let guess = match guess {
            Some(guess) => guess,
            None => Sketches::new(pairs, added, 1e-290).aim(question, 1.0)?.delta,
        };
        let negligible = (NEGLIGIBLE * guess / total).max(1e-300);
        let aim = Sketches::new(pairs, added, negligible).aim(question, share)?;
        // Atoms are best on the lattice: those of the mechanism that runs most often.
        let atoms = pairs.iter().filter_map(|(pair, count)| Some((*count, pair.atom()?)));
        let atom = atoms.max_by_key(|(count, _)| *count).map(|(_, atom)| atom);
        let window = aim::window(&aim, total, atom, accuracy)?;
        let law = |&(pair, count): &(Pair, Count)| {
            let cut = cut(pair, window, added, negligible, side)?;
            let law = match side {
                Side::Above => grid::upper(&cut),
                Side::Below => grid::lower(&cut),
            };
            Some((law, count))
        };
        let laws: Vec<(GridLaw, Count)> = pairs.iter().map(law).collect::<Option<_>>()?;
        let laws: Vec<(&GridLaw, Count)> = laws.iter().map(|(law, count)| (law, *count)).collect();
        Some((Composed::new(&laws, window, side)?, aim))
    }
}

/// The cells of a pair in one direction, and its tails where this side wants them.
fn cut(pair: Pair, window: Window, added: bool, negligible: f64, side: Side) -> Option<Cut> {
    let ends = aim::ends(pair, window, added, negligible, side)?;
    let step = window.step;
    let tails = |loss: f64| if added { pair.tails(-loss).mirrored() } else { pair.tails(loss) };
    let tails = match side {
        Side::Above => ends.iter().map(|&end| tails(grid::loss_at(end, step))).collect(),
        Side::Below => ends.windows(2).map(|cell| tails(grid::loss_at(cell[0] + cell[1], 0.5 * step))).collect(),
    };
    Some(Cut { step, ends, tails, infinite: pair.infinite() })
}
