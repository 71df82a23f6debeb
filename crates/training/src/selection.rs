//! Private selection among candidates that were trained on parts of the examples: \[Y\] §IV-A3, after Gupta et al.
//!
//! Each example goes to one of `k + 1` parts by its own coin. Candidate `i` is trained on part `i`; on the last part the errors `zᵢ` of
//! all of them are counted, and the exponential mechanism picks one. Nobody is in two parts, so the whole costs what the dearest part
//! does (E13).

use crate::batching::NotCovered;
use crate::data::Examples;
use crate::gate::{Gate, GateError};
use paygo_accounting::cost::{Cost, CostError};
use paygo_accounting::filter::{Decision, Permit, Refusal};
use paygo_accounting::mechanism::{Exponential, Mechanism};
use paygo_accounting::params::{Count, Epsilon, Neighbors, OutOfDomain};
use paygo_accounting::secret::Secret;
use paygo_noise::{Source, coin};

/// The most candidates.
const MAX_CANDIDATES: usize = 1 << 16;

/// What went wrong; before a candidate was trained, nothing was charged unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError<E> {
    /// The budgets have no price together: under replace-one, parallel parts have none.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The budget was not asked, or did not answer.
    #[error("the budget did not answer: {0}")]
    Gate(GateError),
    /// The budget does not cover it.
    #[error("the budget does not cover the selection: {0}")]
    Refused(Refusal),
    /// A permit for something else: it stays charged.
    #[error(transparent)]
    NotCovered(#[from] NotCovered),
    /// A candidate could not be trained. The selection stays charged.
    #[error("candidate {candidate} was not trained: {error}")]
    Train {
        /// Which.
        candidate: usize,
        /// Why.
        error: E,
    },
}

/// What was picked. The others are gone, and nobody saw them.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected<T> {
    /// Which candidate.
    pub candidate: usize,
    /// What was trained, on its part alone.
    pub winner: T,
}

/// What may be spent on training each candidate, and on picking one.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    budgets: Vec<Mechanism>,
    epsilon: Epsilon,
    exact: Fraction,
}

/// A number as a fraction, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    numerator: u128,
    denominator: u128,
}

impl Selection {
    /// One budget for each candidate, and the ε of the choice.
    ///
    /// # Errors
    /// [`OutOfDomain`] when there are fewer than two candidates or more than 2¹⁶, or ε is not between 2⁻²⁰ and 2²⁰.
    pub fn new(budgets: Vec<Mechanism>, epsilon: f64) -> Result<Self, OutOfDomain> {
        if !(2..=MAX_CANDIDATES).contains(&budgets.len()) {
            return Err(OutOfDomain::new("candidates", budgets.len(), "2 <= candidates <= 2^16"));
        }
        let exact = Fraction::of(epsilon)?;
        // The double itself, which is what the coin is tossed with.
        Ok(Self { budgets, epsilon: Epsilon::new(epsilon)?, exact })
    }

    /// For each of so many candidates a plan of so many rounds, and the ε of the choice.
    ///
    /// # Errors
    /// As [`Selection::new`]; and when there are no rounds, or too many.
    pub fn of_plans(candidates: usize, round: &Cost, rounds: u64, epsilon: f64) -> Result<Self, OutOfDomain> {
        let plan = Mechanism::Repeat { count: Count::new(rounds)?, of: Box::new(round.mechanism()) };
        Self::new(vec![plan; candidates.min(MAX_CANDIDATES + 1)], epsilon)
    }

    /// How many candidates.
    #[must_use]
    pub const fn candidates(&self) -> usize {
        self.budgets.len()
    }

    /// What the whole costs: training on disjoint parts and choosing on another, all parallel.
    ///
    /// # Theorem
    /// If each example goes to one part by a coin of its own, and each part is used by one mechanism, which may see what came of the
    /// parts before, then the whole costs no more than the dearest part. Given the coins of the others and of the one who differs, the
    /// data of a single part differ; what mixes over coins is no farther apart than its farthest (quasi-convexity, T27).
    ///
    /// The choice is the exponential mechanism: an example more, less or zeroed moves every `zᵢ` by at most 1, so picking `i` with
    /// probability `∝ exp(−ε·zᵢ/2)` is ε-DP, of range ε, and ε²/8-zCDP (E17; \[Y\] have ε²/2).
    ///
    /// # Preconditions
    /// Coins, not a shuffle: cutting a permutation in equal parts would move others when one is taken away (E12).
    ///
    /// # Tightness
    /// For neighbors that add or remove, all `zᵢ` move in one direction, and half the ε would do. It is not used.
    ///
    /// # Errors
    /// [`CostError`] under replace-one, where an example can leave one part and enter another, or when a budget has no price.
    pub fn cost(&self, neighbors: Neighbors) -> Result<Cost, CostError> {
        let choice = Mechanism::from(Exponential { epsilon: self.epsilon });
        Cost::of(&Mechanism::Parallel(self.budgets.iter().cloned().chain([choice]).collect()), neighbors)
    }

    /// Asks once for everything, trains each candidate on its part, counts errors on the last one, and picks.
    ///
    /// # Preconditions
    /// - What `train` does for a candidate costs no more than its budget under the gate's neighbors: it spends from a fresh filter of
    ///   that budget, not from the gate that was asked here. It uses no examples but those it is given, and nothing that another part
    ///   told it outside its own budget.
    /// - `errors` is a number of examples, each counted or not by that example and the candidate alone, as
    ///   [`evaluate`](crate::run::evaluate) does.
    /// - An error of `train` says nothing about the examples.
    /// - Taking an example away moves those after it in its part up by one. What is trained must not depend on that beyond what is
    ///   charged.
    ///
    /// # Errors
    /// [`SelectionError`]: no price or no answer, a refusal, which costs nothing, or the first error of `train`.
    pub fn run<T, E>(
        &self,
        examples: &Examples,
        gate: &mut dyn Gate,
        source: &mut Source,
        train: impl FnMut(usize, &Examples) -> Result<T, E>,
        errors: impl FnMut(&T, &Examples) -> Secret<u64>,
    ) -> Result<Selected<T>, SelectionError<E>> {
        let cost = self.cost(gate.neighbors())?;
        match gate.request(&cost).map_err(SelectionError::Gate)? {
            Decision::Refused(refusal) => Err(SelectionError::Refused(refusal)),
            Decision::Admitted(permit) => self.select(examples, &cost, permit, source, train, errors),
        }
    }

    /// Uses the permit up.
    fn select<T, E>(
        &self,
        examples: &Examples,
        cost: &Cost,
        permit: Permit,
        source: &mut Source,
        mut train: impl FnMut(usize, &Examples) -> Result<T, E>,
        mut errors: impl FnMut(&T, &Examples) -> Secret<u64>,
    ) -> Result<Selected<T>, SelectionError<E>> {
        if permit.cost() != cost {
            return Err(NotCovered.into());
        }
        drop(permit);
        let mut parts = assign(examples.len(), self.candidates() + 1, source);
        let last = examples.select(&parts.pop().unwrap_or_default());
        let mut trained = Vec::with_capacity(parts.len());
        for (candidate, part) in parts.iter().enumerate() {
            let one =
                train(candidate, &examples.select(part)).map_err(|error| SelectionError::Train { candidate, error })?;
            trained.push(one);
        }
        let counts: Vec<u64> = trained.iter().map(|one| errors(one, &last).expose()).collect();
        let candidate = self.exact.pick(Secret::new(&counts), source);
        Ok(Selected { candidate, winner: trained.swap_remove(candidate) })
    }
}

impl Fraction {
    /// A double as an integer over a power of two: every one of them is.
    fn of(epsilon: f64) -> Result<Self, OutOfDomain> {
        const MAX_STEPS: f64 = 1_048_576.0;
        if !(1.0 / MAX_STEPS..=MAX_STEPS).contains(&epsilon) {
            return Err(OutOfDomain::new("epsilon", epsilon, "2^-20 <= epsilon <= 2^20"));
        }
        // Normal: 53 bits, of which the first is not written, times 2^(exponent − 1075).
        let (bits, exponent) = (epsilon.to_bits() & ((1 << 52) - 1) | (1 << 52), epsilon.to_bits() >> 52);
        // From 2^−72 for 2⁻²⁰ to 2^−32 for 2²⁰: a numerator of 53 bits and a denominator of at most 73.
        Ok(Self { numerator: u128::from(bits), denominator: 1 << (1075 - exponent) })
    }

    /// `i` with probability `∝ exp(−ε·zᵢ/2)`, exactly: a uniform candidate is kept with probability `exp(−ε·(zᵢ − min z)/2)`, by a coin
    /// of integers. A best candidate is always kept, so it takes `k` tries on average at most.
    fn pick(self, errors: Secret<&[u64]>, source: &mut Source) -> usize {
        let errors = errors.expose();
        let least = errors.iter().copied().min().unwrap_or(0);
        loop {
            let tried = usize::try_from(coin::below(errors.len() as u128, source)).unwrap_or(0);
            // Below 2⁵³·2⁶⁴.
            let numerator = self.numerator * u128::from(errors[tried] - least);
            if coin::heads_exp(numerator, 2 * self.denominator, source) {
                return tried;
            }
        }
    }
}

/// Each of `0..examples` to one of the parts by a coin of its own; parts are in increasing order.
fn assign(examples: usize, parts: usize, source: &mut Source) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); parts];
    for example in 0..examples {
        let part = coin::below(parts as u128, source);
        all[usize::try_from(part).unwrap_or(0)].push(example);
    }
    all
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
mod tests {
    use super::*;
    use crate::data::Shape;
    use crate::gate::FilterGate;
    use paygo_accounting::filter::{Filter, Zcdp};
    use paygo_accounting::mechanism;
    use paygo_accounting::params::Rho;
    use paygo_numeric::Amount;
    use std::convert::Infallible;

    fn zcdp(rho: f64) -> Mechanism {
        Mechanism::from(mechanism::Zcdp { rho: Rho::new(rho).expect("a rho") })
    }

    fn gate(rho: &str, neighbors: Neighbors) -> FilterGate<Zcdp> {
        let limit = Amount::from_decimal_up(rho).expect("an amount");
        FilterGate::new(Filter::new(Zcdp::with_limit(limit, Amount::ZERO).expect("a rule"), neighbors))
    }

    /// Each input is its position.
    fn examples(count: usize) -> Examples {
        let inputs = (0..count).map(|i| i as f32).collect();
        Examples::new(Shape::vector(1), 2, inputs, vec![0; count]).expect("examples")
    }

    fn positions(part: &Examples) -> Vec<usize> {
        (0..part.len()).map(|i| part.input(i)[0] as usize).collect()
    }

    /// χ² of observed counts.
    fn chi_square(observed: &[u32], probabilities: &[f64]) -> f64 {
        let n: f64 = observed.iter().map(|&count| f64::from(count)).sum();
        observed.iter().zip(probabilities).map(|(&o, p)| (f64::from(o) - n * p).powi(2) / (n * p)).sum()
    }

    #[test]
    fn picks_have_the_probabilities_of_the_exponential_mechanism() {
        let mut source = Source::insecure_from_seed(41);
        for (epsilon, errors) in [(1.0, [7, 5, 6, 9]), (0.3, [1_000_003, 1_000_000, 1_000_010, 1_000_000])] {
            // Only differences count, and exp(−10⁵) is 0 in doubles.
            let least = errors.iter().copied().min().expect("four");
            let weights = errors.map(|z: u64| paygo_numeric::elementary::exp(-epsilon * (z - least) as f64 / 2.0));
            let exact = weights.map(|w| w / weights.iter().sum::<f64>());
            let fraction = Fraction::of(epsilon).expect("in range");
            let errors = Secret::new(&errors[..]);
            let mut observed = [0u32; 4];
            for _ in 0..100_000 {
                observed[fraction.pick(errors, &mut source)] += 1;
            }
            // Three degrees of freedom: above 21.1 with probability 10⁻⁴.
            assert!(chi_square(&observed, &exact) < 21.1, "{observed:?} {exact:?}");
            // And the test would notice a factor of 2 in ε.
            let squares = exact.map(|x| x * x);
            let doubled = squares.map(|x| x / squares.iter().sum::<f64>());
            assert!(chi_square(&observed, &doubled) > 1000.0);
        }
    }

    #[test]
    fn fractions_are_exact() {
        for epsilon in [2f64.powi(-20), 0.1, 0.3, 1.0, 1.0f64.next_up(), 3.7, 1000.1, 2f64.powi(20)] {
            let Fraction { numerator, denominator } = Fraction::of(epsilon).expect("in range");
            // Both are doubles: 53 bits, and a power of two.
            assert_eq!(numerator as f64 / denominator as f64, epsilon);
            assert!(numerator < 1 << 53 && denominator <= 1 << 73 && denominator.is_power_of_two());
        }
        for epsilon in [0.0, -1.0, 2f64.powi(-21), 2f64.powi(21), f64::INFINITY, f64::NAN] {
            assert!(Fraction::of(epsilon).is_err());
        }
    }

    #[test]
    fn parts_are_disjoint_and_cover_everybody_by_independent_coins() {
        let (n, parts, rounds) = (1000, 4, 200);
        let mut source = Source::insecure_from_seed(42);
        let mut sizes = Vec::new();
        // Of the first and the last two examples, together.
        let mut pairs = vec![0u32; parts * parts];
        for _ in 0..rounds * 20 {
            let assigned = assign(2, parts, &mut source);
            let part = |example| assigned.iter().position(|part| part.contains(&example)).expect("a part");
            pairs[part(0) * parts + part(1)] += 1;
        }
        // Fifteen degrees of freedom: above 44.3 with probability 10⁻⁴.
        assert!(chi_square(&pairs, &[1.0 / 16.0; 16]) < 44.3, "{pairs:?}");
        for _ in 0..rounds {
            let assigned = assign(n, parts, &mut source);
            assert!(assigned.iter().all(|part| part.is_sorted()));
            let mut all = assigned.concat();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
            sizes.extend(assigned.iter().map(|part| part.len() as f64));
        }
        // Binomial: independent coins, not equal parts.
        let variance = sizes.iter().map(|size| (size - 250.0).powi(2)).sum::<f64>() / sizes.len() as f64;
        assert!((140.0..240.0).contains(&variance), "{variance}, where 187.5 is expected");
        assert_eq!(assign(0, 3, &mut source), vec![Vec::<usize>::new(); 3]);
    }

    /// Who trains sees its own part; who counts sees the last; together everybody, once.
    #[test]
    fn candidates_see_their_part_and_no_other() {
        let all = examples(500);
        let selection = Selection::new(vec![zcdp(0.1), zcdp(0.1), zcdp(0.1)], 1.0).expect("a selection");
        let mut gate = gate("1", Neighbors::AddRemove);
        let mut seen: Vec<usize> = Vec::new();
        let mut last = Vec::new();
        let selected = selection
            .run(
                &all,
                &mut gate,
                &mut Source::insecure_from_seed(43),
                |candidate, part| {
                    seen.extend(positions(part));
                    Ok::<_, Infallible>((candidate, part.len()))
                },
                |_, part| {
                    last.push(positions(part));
                    Secret::new(0)
                },
            )
            .expect("admitted");
        assert_eq!(selected.candidate, selected.winner.0);
        assert!(last.len() == 3 && last.iter().all(|part| *part == last[0]));
        seen.extend(&last[0]);
        seen.sort_unstable();
        assert_eq!(seen, (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn the_charge_is_that_of_the_dearest_part_and_is_asked_for_once() {
        for (budgets, epsilon, rho) in
            [(vec![zcdp(0.25), zcdp(0.5), zcdp(0.125)], 1.0, "0.5"), (vec![zcdp(0.25); 3], 2.0, "0.5")]
        {
            let selection = Selection::new(budgets, epsilon).expect("a selection");
            let mut gate = gate(rho, Neighbors::AddRemove);
            let mut run = || {
                let mut trained = 0;
                let selected = selection.run(
                    &examples(20),
                    &mut gate,
                    &mut Source::insecure_from_seed(44),
                    |_, _| {
                        trained += 1;
                        Ok::<_, Infallible>(())
                    },
                    |(), _| Secret::new(0),
                );
                (selected.map(|selected| selected.candidate), trained, gate.filter().sums().lanes().to_vec())
            };
            let whole = Amount::from_decimal_up(rho).expect("an amount");
            let (first, trained, spent) = run();
            assert!(first.is_ok() && trained == 3 && spent == [whole], "{spent:?}");
            // Nothing is left: refused, uncharged, untrained.
            let (second, trained, spent) = run();
            assert!(matches!(second, Err(SelectionError::Refused(_))) && trained == 0 && spent == [whole]);
        }
    }

    #[test]
    fn a_better_candidate_wins() {
        let selection = Selection::new(vec![zcdp(0.1); 4], 8.0).expect("a selection");
        let mut source = Source::insecure_from_seed(45);
        for best in 0..4 {
            let mut gate = gate("10", Neighbors::ZeroOut);
            let train = |candidate, _: &Examples| Ok::<_, Infallible>(candidate);
            let errors = |&candidate: &usize, part: &Examples| {
                let wrong = |i: &usize| candidate != best && positions(part)[*i].is_multiple_of(2);
                Secret::new((0..part.len()).filter(wrong).count() as u64)
            };
            // About 20 errors more, e^{−80}.
            let selected = selection.run(&examples(200), &mut gate, &mut source, train, errors).expect("admitted");
            assert_eq!((selected.candidate, selected.winner), (best, best));
        }
    }

    #[test]
    fn what_has_no_price_is_not_run() {
        let never = |_, _: &Examples| -> Result<(), Infallible> { panic!("trained") };
        let selection = Selection::new(vec![zcdp(0.1); 2], 1.0).expect("a selection");
        assert!(selection.cost(Neighbors::ZeroOut).is_ok());
        let mut replace = gate("1", Neighbors::ReplaceOne);
        let mut source = Source::insecure_from_seed(46);
        let found = selection.run(&examples(10), &mut replace, &mut source, never, |(), _| Secret::new(0));
        let error = found.expect_err("no price");
        assert!(matches!(error, SelectionError::Cost(CostError::Neighbors { .. })), "{error}");
        assert_eq!(replace.filter().sums().lanes(), [Amount::ZERO]);
        for (candidates, epsilon) in [(0, 1.0), (1, 1.0), (2, 0.0), (2, f64::NAN), (2, 1e9)] {
            assert!(Selection::new(vec![zcdp(0.1); candidates], epsilon).is_err());
        }
    }

    #[test]
    fn a_candidate_that_fails_ends_it_and_stays_charged() {
        let selection = Selection::new(vec![zcdp(0.1); 2], 1.0).expect("a selection");
        let mut gate = gate("1", Neighbors::AddRemove);
        let train = |candidate, _: &Examples| if candidate == 1 { Err("no") } else { Ok(()) };
        let mut source = Source::insecure_from_seed(47);
        let found = selection.run(&examples(10), &mut gate, &mut source, train, |(), _| Secret::new(0));
        assert_eq!(found.expect_err("failed").to_string(), "candidate 1 was not trained: no");
        assert!(gate.filter().sums().lanes()[0] > Amount::ZERO);
    }

    /// A gate that admits something else.
    struct Cheat(FilterGate<Zcdp>);

    impl Gate for Cheat {
        fn neighbors(&self) -> Neighbors {
            self.0.neighbors()
        }

        fn request(&mut self, _cost: &Cost) -> Result<Decision, GateError> {
            self.0.request(&Cost::of(&zcdp(0.01), self.neighbors())?)
        }

        fn room(&mut self, cost: &Cost, most: u64) -> Result<u64, GateError> {
            self.0.room(cost, most)
        }
    }

    #[test]
    fn only_a_permit_for_the_same_selection_will_do() {
        let never = |_, _: &Examples| -> Result<(), Infallible> { panic!("trained") };
        let selection = Selection::new(vec![zcdp(0.1); 2], 1.0).expect("a selection");
        let mut cheat = Cheat(gate("1", Neighbors::AddRemove));
        let mut source = Source::insecure_from_seed(48);
        let found = selection.run(&examples(10), &mut cheat, &mut source, never, |(), _| Secret::new(0));
        assert!(matches!(found, Err(SelectionError::NotCovered(_))));
    }
}
