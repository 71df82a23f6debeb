//! The privacy loss of some steps together: a value to keep, to extend, to store and to ask.

use super::aim::{self, Aim, COARSE, FINE, Sketches};
use super::atoms::Atoms;
use super::compose::{Composed, Window};
use super::grid::{self, Cut, GridLaw};
use super::pair::Pair;
use super::product::Product;
use super::spectrum::Side;
use crate::account::{Question, known_profile};
use crate::cost::{Cost, CostError};
use crate::mechanism::{Mechanism, Single};
use crate::params::{Count, Delta, Epsilon};
use paygo_numeric::Interval;
use paygo_numeric::elementary::exp;
use paygo_numeric::rounding::{add_up, mul_up};
use std::sync::Arc;

/// Different mechanisms beyond which it takes too long.
pub const MAX_MECHANISMS: usize = 2048;
/// What may count as an infinite loss, as a share of δ.
const NEGLIGIBLE: f64 = 1e-7;
/// The same for what is known by its profile, as a multiple of its second moment.
const SMALL: f64 = 1e-24;
/// What may be in doubt of a δ until another way is tried.
const DOUBT: f64 = 1e-3;
/// A finer lattice for where the usual one is too coarse.
const FINER: f64 = 0.01;
/// How many numbers are computed for an answer at most, nearly: where one is wanted, and where many are.
pub(super) const THOROUGH: f64 = 4e5;
pub(super) const QUICK: f64 = 2e4;
/// What a term of a law costs beside a cell, and what one of all laws costs until the answer is found.
const CHEAP: f64 = 0.03;
const ASKED: f64 = 0.6;
/// How much of what a lattice adds counts as doubt.
const COARSENESS: f64 = 0.1;
const COARSENESS_OF_EPSILON: f64 = 3.0;
/// Multiples of the saddle point that are tried as tilts until there is little doubt.
const TILTS: [f64; 6] = [1.0, 0.6, 0.35, 0.8, 0.1, 1.5];
/// Plans of more mechanisms have to do with one attempt, and with coarser lattices, as has a law that grows.
const MANY: usize = 256;
const MIDDLING: f64 = 4e-5;
/// A law that grows is prepared for so many times the steps that there are.
const GROWTH: f64 = 4.0;
/// How many ways to an answer are kept.
const KEPT: usize = 8;

/// Steps that have no law together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoLaw {
    /// Nothing is known of a mechanism that its loss could be bounded by.
    #[error("{0} has no privacy-loss distribution here; a Rényi odometer or filter takes it")]
    Mechanism(&'static str),
    /// It would take too long.
    #[error(
        "{0} different mechanisms are too many for the privacy-loss distribution; expected at most {MAX_MECHANISMS}"
    )]
    TooMany(usize),
    /// The steps cannot be added.
    #[error(transparent)]
    Cost(#[from] CostError),
}

/// The privacy-loss distribution of steps that are fixed in advance, composed: asked for δ at any ε and ε at any δ, from above and from below,
/// and extended by further steps at a cost that does not depend on how many there are.
///
/// # Theorem
/// For each mechanism the pair of laws used dominates it, in the direction concerned, at every ε. Composition of
/// dominating pairs dominates the composition, also when the queries (not the parameters) are adaptive. Source: Zhu,
/// Dong, Wang, arXiv:2106.08567, Theorems 10 and 11 (T41).
///
/// # Soundness
/// Every number is at or above the truth, those of [`LossLaw::at_least`] at or below, whatever is kept from earlier questions: what is kept is
/// where to look and how finely. An answer may differ in its last digits from that of a law that was made at once.
///
/// ```
/// use paygo_accounting::{cost::Cost, loss::LossLaw, mechanism::Mechanism, params::{Delta, Neighbors}};
/// let step = |q, noise| Cost::of(&Mechanism::poisson_sampled_gaussian(q, noise)?, Neighbors::AddRemove);
/// let mut law = LossLaw::of(&step(0.01, 1.0)?.repeat(1000)?)?;
/// let delta = Delta::new(1e-5)?;
/// let before = law.epsilon(delta);
/// law.extend(&step(0.02, 1.3)?)?;
/// assert!(law.epsilon(delta) > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LossLaw {
    cost: Cost,
    /// In the order in which they came.
    pairs: Vec<(Pair, Count)>,
    grows: bool,
    /// The latest first.
    prepared: Vec<Prepared>,
    /// Numbers that may still be computed for the answer in question.
    work: f64,
}

impl LossLaw {
    /// Of these steps.
    ///
    /// # Errors
    /// [`NoLaw`] when a mechanism has no pair of laws, or they are too many.
    pub fn of(cost: &Cost) -> Result<Self, NoLaw> {
        Ok(Self { cost: cost.clone(), pairs: pairs(cost, 0)?, grows: false, prepared: Vec::new(), work: 0.0 })
    }

    /// And these.
    ///
    /// # Errors
    /// [`NoLaw`], as [`LossLaw::of`], and when the neighbor relations differ; then nothing is added.
    pub fn extend(&mut self, more: &Cost) -> Result<(), NoLaw> {
        let pairs = pairs(more, self.pairs.len())?;
        self.cost = self.cost.and(more)?;
        self.pairs.extend(pairs);
        self.grows = true;
        Ok(())
    }

    /// All steps together.
    #[must_use]
    pub const fn cost(&self) -> &Cost {
        &self.cost
    }

    /// ε at a δ, at most; +∞ where none was found.
    pub fn epsilon(&mut self, delta: Delta) -> Epsilon {
        let found = self.answer(Question::EpsilonAt(delta), Side::Above, THOROUGH);
        found.map_or(Epsilon::INFINITE, Epsilon::from_upper_bound)
    }

    /// δ at an ε, at most; 1 where none was found.
    pub fn delta(&mut self, epsilon: Epsilon) -> Delta {
        let found = self.answer(Question::DeltaAt(epsilon), Side::Above, THOROUGH);
        found.map_or(Delta::ONE, Delta::from_upper_bound)
    }

    /// What they cost at least, where every mechanism attains its pair of laws; `None` where one may cost less than its pair says.
    pub fn at_least(&mut self, question: Question) -> Option<f64> {
        let attained = self.cost.singles()?.iter().all(|(single, _)| single.family().attains_its_pair());
        attained.then(|| self.answer(question, Side::Below, THOROUGH)).flatten()
    }

    /// δ at each of so many ε, from 0 to where δ has fallen to `least`: to be drawn.
    pub fn curve(&mut self, points: u32, least: Delta) -> Vec<(Epsilon, Delta)> {
        let most = self.epsilon(least).get();
        if !most.is_finite() {
            return Vec::new();
        }
        let at = |i: u32| Epsilon::from_upper_bound(most * f64::from(i) / f64::from(points.max(2) - 1));
        (0..points.max(2)).map(|i| (at(i), self.delta(at(i)))).collect()
    }

    /// ε or δ from one side. Other ways are tried until there is little doubt, or about so many numbers were computed.
    pub(super) fn answer(&mut self, question: Question, side: Side, work: f64) -> Option<f64> {
        // A law that grows is asked again and again: where it is made anew one way must do.
        self.work = if self.grows { 0.0 } else { work };
        let longest = if work > QUICK { aim::LONGEST } else { aim::LONG };
        // About how small the δ in question is, and with which tilt: any is sound.
        let mut attempts: Vec<(Option<f64>, f64, f64)> = match question {
            Question::EpsilonAt(delta) if delta.get() < 1e-290 || delta == Delta::ONE => return None,
            Question::EpsilonAt(delta) => TILTS.map(|share| (Some(delta.get()), share, 1.0)).to_vec(),
            Question::DeltaAt(_) => {
                [None, Some(1e-4), Some(1e-8), Some(1e-16), Some(1e-32)].map(|guess| (guess, 1.0, 1.0)).to_vec()
            }
        };
        attempts.extend([(0.35, FINER), (1.0, FINER)].map(|(share, finer)| (attempts[0].0, share, finer)));
        let mut best: Option<f64> = None;
        let most = if self.pairs.len() > MANY { 1 } else { attempts.len() };
        for (number, (guess, share, finer)) in attempts.into_iter().take(most).enumerate() {
            // A δ that was found says better where to look than a guess.
            let guess = match (question, best) {
                (Question::DeltaAt(_), Some(best)) if guess.is_some_and(|guess| guess > best) => Some(best.max(1e-290)),
                (Question::DeltaAt(_), Some(best)) if finer < 1.0 => Some(best.max(1e-290)),
                _ => guess,
            };
            let aimed = Aimed { question, guess, share, finer, longest, afresh: number > 0 };
            let Some((value, good)) = self.attempt(aimed, side) else { continue };
            let better = |other: f64| match side {
                Side::Above => value < other,
                Side::Below => value > other,
            };
            if best.is_none_or(better) {
                best = Some(value);
            }
            if good || self.work <= 0.0 {
                break;
            }
        }
        match side {
            Side::Above => best.into_iter().chain(self.by_largest(question)).reduce(f64::min),
            Side::Below => best,
        }
    }

    /// What holds because no loss passes the sum of the largest, where all are finite.
    fn by_largest(&self, question: Question) -> Option<f64> {
        let [removed, added] = [false, true].map(|added| self.simple_bound(question, added));
        Some(removed.max(added)).filter(|bound| bound.is_finite())
    }

    /// Both directions: the answer, and whether there is little doubt in it.
    fn attempt(&mut self, aimed: Aimed, side: Side) -> Option<(f64, bool)> {
        let many = self.grows || self.pairs.len() > MANY;
        let accuracy = aimed.finer * if many { MIDDLING } else { FINE };
        let Answer { value, doubt } = self.way(aimed, Way { side, added: false, accuracy })?;
        // In the other direction it is often enough to see roughly that it costs less.
        let symmetric = self.pairs.iter().all(|(pair, _)| pair.is_symmetric());
        let no_more = |bound: f64| bound <= value;
        let roughly = Way { side: Side::Above, added: true, accuracy: COARSE };
        if symmetric
            || no_more(self.simple_bound(aimed.question, true))
            || self.way(aimed, roughly).is_some_and(|other| no_more(other.value))
        {
            return Some((value, value.is_finite() && doubt <= self.doubt()));
        }
        let (value, doubt) = match (self.way(aimed, Way { side, added: true, accuracy }), side) {
            (Some(other), _) => (value.max(other.value), doubt.max(other.doubt)),
            // From below, one direction is enough.
            (None, Side::Below) => (value, doubt),
            (None, Side::Above) => return None,
        };
        Some((value, value.is_finite() && doubt <= self.doubt()))
    }

    /// What may be in doubt of a δ: of a law that grows more, whose lattice is coarser.
    const fn doubt(&self) -> f64 {
        if self.grows { 10.0 * DOUBT } else { DOUBT }
    }

    /// A bound on the answer in one direction: where nothing is infinite, no loss passes the sum of the largest.
    fn simple_bound(&self, question: Question, added: bool) -> f64 {
        if self.pairs.iter().any(|(pair, _)| pair.infinite() > 0.0) {
            return f64::INFINITY;
        }
        let most = self.pairs.iter().fold(0.0, |sum, (pair, n)| add_up(sum, mul_up(pair.largest(added), n.to_f64())));
        match question {
            Question::EpsilonAt(_) => most,
            Question::DeltaAt(epsilon) if most <= epsilon.get() => 0.0,
            Question::DeltaAt(_) => f64::INFINITY,
        }
    }

    /// One way to an answer: one that is prepared and leaves little doubt, else a new one.
    fn way(&mut self, aimed: Aimed, way: Way) -> Option<Answer> {
        if !aimed.afresh {
            let pairs = &self.pairs;
            self.prepared.retain_mut(|prepared| prepared.way != way || prepared.catch_up(pairs).is_some());
            let found = self.prepared.iter().position(|prepared| prepared.way == way);
            let answers = found.and_then(|at| Some((at, self.prepared[at].answer(aimed.question)?)));
            let doubt = self.doubt();
            if let Some((at, answer)) = answers.filter(|(_, answer)| answer.doubt <= doubt) {
                self.prepared[..=at].rotate_right(1);
                return Some(answer);
            }
        }
        let prepared = Prepared::new(&self.pairs, way, aimed, self.grows)?;
        self.work -= prepared.work;
        let answer = prepared.answer(aimed.question);
        self.prepared.insert(0, prepared);
        self.prepared.truncate(KEPT);
        answer
    }
}

/// The pair of each mechanism of a cost, beside so many others; those known by a ρ or a curve are one.
fn pairs(cost: &Cost, others: usize) -> Result<Vec<(Pair, Count)>, NoLaw> {
    let singles = cost.singles().ok_or(NoLaw::Mechanism("parallel"))?;
    if singles.len() + others > MAX_MECHANISMS {
        return Err(NoLaw::TooMany(singles.len() + others));
    }
    let mut pairs = Vec::new();
    let mut rest: Vec<Cost> = Vec::new();
    for (single, count) in
        singles.into_iter().filter(|(single, _)| !single.family().is_null() || single.family().slack() > Delta::ZERO)
    {
        match closed_pair(single) {
            Some(pair) => pairs.push((pair, count)),
            None => rest.push(Cost::of(&Mechanism::Single(single.clone()), cost.neighbors())?.repeat(count.get())?),
        }
    }
    if let Some((first, more)) = rest.split_first() {
        let known = first.and_all(more)?;
        let word = known.singles().and_then(|singles| Some(singles.first()?.0.word())).unwrap_or("renyi");
        pairs.push((of_profile(&known, SMALL).ok_or(NoLaw::Mechanism(word))?, Count::ONE));
    }
    Ok(pairs)
}

/// A pair that dominates a mechanism: its own, that of the noise that its μ is worth, or one with the profile that is known of it. Of the last
/// so much is lost, as a multiple of the second moment.
pub(super) fn pair_of(single: &Single, negligible: f64) -> Option<Pair> {
    closed_pair(single).or_else(|| {
        let neighbors = *single.family().neighbors().first()?;
        of_profile(&Cost::of(&Mechanism::Single(single.clone()), neighbors).ok()?, negligible)
    })
}

/// Whatever has a μ is dominated by that noise. ROUNDING: the noise down.
fn closed_pair(single: &Single) -> Option<Pair> {
    let family = single.family();
    let noise = || family.mu().filter(|mu| mu.get() > 0.0);
    family.pair().or_else(|| noise().map(|mu| Pair::Sampled { q: 1.0, s: (Interval::ONE / mu.get()).lo() }))
}

fn of_profile(cost: &Cost, negligible: f64) -> Option<Pair> {
    let known = known_profile(cost);
    let atoms = Atoms::of_profile(|x| known(Epsilon::from_upper_bound(x)).get(), negligible)?;
    Some(Pair::Profile(Arc::new(atoms)))
}

/// What is asked, and where to look for it.
#[derive(Clone, Copy)]
struct Aimed {
    question: Question,
    /// About the δ in question, where it is known.
    guess: Option<f64>,
    /// The tilt, as a multiple of the saddle point.
    share: f64,
    /// What the lattice may add, as a multiple of the usual.
    finer: f64,
    /// The longest window.
    longest: f64,
    /// Without what was prepared for earlier questions.
    afresh: bool,
}

/// From which side, in which direction (`added`: without the record against with) and how finely.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    side: Side,
    added: bool,
    accuracy: f64,
}

/// ε or δ, and what of the δ there is in doubt, as a share of it.
struct Answer {
    value: f64,
    doubt: f64,
}

/// A window, with the steps composed in it.
#[derive(Clone, Debug)]
struct Prepared {
    way: Way,
    aim: Aim,
    product: Product,
    negligible: f64,
    /// How many of the steps are in it.
    known: usize,
    /// How many numbers were computed for it.
    work: f64,
    /// What is infinite of the pairs themselves.
    infinite: f64,
    /// How many lattice cells squared, for each unit of variance, it had at first.
    coarseness: f64,
}

impl Prepared {
    fn new(pairs: &[(Pair, Count)], way: Way, aimed: Aimed, grows: bool) -> Option<Self> {
        let Aimed { question, guess, share, longest, .. } = aimed;
        let total: f64 = pairs.iter().map(|(_, count)| count.to_f64()).sum();
        let guess = match guess {
            Some(guess) => guess,
            None => Sketches::new(pairs, way.added, 1e-290, 1.0).aim(question, 1.0)?.delta,
        };
        let growth = if grows { GROWTH } else { 1.0 };
        let guess = nearer(pairs, way, aimed, guess);
        let negligible = (NEGLIGIBLE * guess / (growth * total)).max(1e-300);
        let question = match question {
            Question::DeltaAt(_) if grows || aimed.guess.is_some() => {
                Question::EpsilonAt(Delta::from_upper_bound(guess.min(0.5)))
            }
            Question::DeltaAt(_) | Question::EpsilonAt(_) => question,
        };
        let aim = Sketches::new(pairs, way.added, negligible, growth).aim(question, share)?;
        // Atoms are best on the lattice: those of the mechanism that runs most often.
        let atoms = pairs.iter().filter_map(|(pair, count)| Some((*count, pair.atom()?)));
        let atom = atoms.max_by_key(|(count, _)| *count).map(|(_, atom)| atom);
        let window = aim::window(&aim, growth * total, atom, way.accuracy, longest)?;
        let law = |(pair, count): &(Pair, Count)| Some((grid_law(pair, window, way, negligible)?, *count));
        let laws: Vec<(GridLaw, Count)> = pairs.iter().map(law).collect::<Option<_>>()?;
        #[expect(clippy::cast_precision_loss, reason = "lengths in memory")]
        let cells = laws.iter().map(|(law, _)| law.cells.len() as f64).sum::<f64>();
        let laws: Vec<(&GridLaw, Count)> = laws.iter().map(|(law, count)| (law, *count)).collect();
        let product = Product::new(&laws, window, way.side)?;
        let coarseness = product.steps * window.step * window.step / product.variance;
        let infinite = infinite(pairs);
        let terms = product.terms();
        let work = cells + CHEAP * terms.0 + ASKED * terms.1;
        Some(Self { work, way, aim, product, negligible, known: pairs.len(), infinite, coarseness })
    }

    /// Adds the steps that have come since; `None` where they do not fit any more.
    fn catch_up(&mut self, pairs: &[(Pair, Count)]) -> Option<()> {
        for (pair, count) in &pairs[self.known..] {
            let law = grid_law(pair, self.product.window, self.way, self.negligible)?;
            self.product.and(&law, *count)?;
            let step = self.product.window.step;
            let coarseness = self.product.steps * step * step / self.product.variance;
            if self.product.variance > 1.1 * self.aim.variance || coarseness > 4.0 * self.coarseness {
                return None;
            }
        }
        (self.known, self.infinite) = (pairs.len(), infinite(pairs));
        Some(())
    }

    fn answer(&self, question: Question) -> Option<Answer> {
        let (product, window) = (&self.product, self.product.window);
        let composed = Composed::of(product)?;
        let top = product.mean + 6.0 * product.variance.sqrt();
        let (epsilon, delta, value) = match question {
            Question::DeltaAt(epsilon) => {
                let delta = composed.delta(epsilon.get());
                (epsilon.get(), delta, delta)
            }
            Question::EpsilonAt(delta) => {
                let most = self.aim.top.max(top).max(self.aim.epsilon) * 2.0;
                let epsilon = composed.epsilon(delta.get(), self.aim.epsilon, most);
                (epsilon, delta.get(), epsilon)
            }
        };
        // What counted as infinite, and what the neighboring windows hold, must be little, too.
        let lost = (product.infinite() - self.infinite * (1.0 + 1e-9)).max(0.0);
        // What the lattice adds to the cumulant, about: to each loss a twelfth of its step's square at most.
        let coarse = window.tilt * (window.tilt + 1.0) * product.steps * window.step * window.step / 12.0;
        // Of an ε it is so much more, relatively, as the tilt times ε is small.
        let reach = window.tilt * epsilon;
        let coarse =
            coarse * (COARSENESS + if value > 0.0 && reach > 0.0 { COARSENESS_OF_EPSILON / reach } else { 0.0 });
        let left = exp(-window.tilt * window.width()) + lost + coarse * delta;
        let beside = if top > epsilon + window.width() { f64::INFINITY } else { 0.0 };
        Some(Answer { value, doubt: (composed.doubt(epsilon) + left) / delta + beside })
    }
}

/// About the probability of an infinite loss.
fn infinite(pairs: &[(Pair, Count)]) -> f64 {
    pairs.iter().map(|(pair, count)| pair.infinite() * count.to_f64()).sum()
}

/// About how small the δ is: what counts as nothing for a larger one may be all of it.
fn nearer(pairs: &[(Pair, Count)], way: Way, aimed: Aimed, guess: f64) -> f64 {
    let (Question::DeltaAt(_), None) = (aimed.question, aimed.guess) else { return guess };
    let total: f64 = pairs.iter().map(|(_, count)| count.to_f64()).sum();
    let aim =
        Sketches::new(pairs, way.added, (NEGLIGIBLE * guess / total).max(1e-300), 1.0).aim(aimed.question, aimed.share);
    aim.map_or(guess, |aim| guess.min(aim.delta))
}

/// The law of a pair on a lattice.
fn grid_law(pair: &Pair, window: Window, way: Way, negligible: f64) -> Option<GridLaw> {
    let ends = aim::ends(pair, window, way.added, negligible, way.side)?;
    let step = window.step;
    let tails = |loss: f64| if way.added { pair.tails(-loss).mirrored() } else { pair.tails(loss) };
    let tails = match way.side {
        Side::Above => ends.iter().map(|&end| tails(grid::loss_at(end, step))).collect(),
        Side::Below => ends.windows(2).map(|cell| tails(grid::loss_at(cell[0] + cell[1], 0.5 * step))).collect(),
    };
    let cut = Cut { step, ends, tails, infinite: pair.infinite() };
    Some(match way.side {
        Side::Above => grid::upper(&cut),
        Side::Below => grid::lower(&cut),
    })
}
