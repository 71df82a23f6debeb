//! Composition of (ε, δ)-DP steps whose parameters and number were fixed in advance (T2, T3).
//!
//! Except for [`basic`], none of these is a filter: they say what a plan costs, not whether an adaptive analyst may go
//! on. Rows made from them are marked [`crate::guarantee::Basis::FixedInAdvance`].

use crate::cost::ApproximateStep;
use crate::params::{Delta, Epsilon};
use paygo_numeric::Interval;
use paygo_numeric::elementary::exp_m1;
use paygo_numeric::rounding::{add_up, mul_up};
use paygo_numeric::search::{certified, root};
use paygo_numeric::sums::ln_binomial;

/// Losses kept apart by [`optimal`]; more are merged upward.
const MAX_LOSSES: usize = 1 << 16;
/// Pairs of losses that [`optimal`] looks at, over all steps: about a second's work.
const MAX_PAIRS: usize = 1 << 27;
/// Repetitions of one step, and different steps, beyond which [`optimal`] gives no answer.
const MAX_REPEATS: u64 = 1 << 17;
const MAX_STEPS: usize = 512;

/// Basic composition: sums of ε and of δ, rounded up (T2). Holds under full adaptivity too.
#[must_use]
pub fn basic(steps: &[ApproximateStep]) -> (Epsilon, Delta) {
    let epsilon = steps.iter().fold(0.0, |sum, step| add_up(sum, mul_up(step.epsilon.get(), step.count.to_f64())));
    (Epsilon::from_upper_bound(epsilon), total_delta(steps))
}

/// Which drift term an advanced composition theorem uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// `ε(e^ε − 1)`: Dwork, Rothblum, Vadhan 2010, as the papers print it (\[L\] misprints it, E1).
    Drv,
    /// `ε·tanh(ε/2)`: Kairouz, Oh, Viswanath, arXiv:1311.0776, Theorem 3.4.
    Tanh,
}

/// Advanced composition, heterogeneous: `√(2·ln(1/δ′)·Σε²) + Σ drift(ε)`, rounded up, with total δ `δ′ + Σδ` (T3).
#[must_use]
pub fn advanced(steps: &[ApproximateStep], drift: Drift, slack: Delta) -> (Epsilon, Delta) {
    let (mut squares, mut drifts) = (Interval::ZERO, Interval::ZERO);
    for step in steps {
        let (e, count) = (Interval::point(step.epsilon.get()), step.count.to_f64());
        squares = squares + e.square() * count;
        let one = match drift {
            Drift::Drv => e * e.exp_m1(),
            Drift::Tanh => e * (e * 0.5).tanh(),
        };
        drifts = drifts + one * count;
    }
    let l = -Interval::point(slack.get()).ln();
    let epsilon = (l * squares * 2.0).sqrt() + drifts;
    (Epsilon::from_upper_bound(epsilon.hi()), slack + total_delta(steps))
}

/// Optimal composition: the least δ for which the steps together are (`total`, δ)-DP, rounded up.
///
/// # Theorem
/// Every (ε, δ)-DP pair is a post-processing of "with probability δ reveal, else randomized response", so the optimum is
/// `1 − Π(1−δᵢ)·(1 − E[(1 − e^{t−L})₊])` with `L = Σ ±εᵢ`, a plus of probability `e^{εᵢ}/(1+e^{εᵢ})`. Sources: Kairouz,
/// Oh, Viswanath, arXiv:1311.0776, Theorem 3.3 (equal steps); Murtagh and Vadhan, arXiv:1507.03113, Theorem 1.5 (T3).
///
/// # Tightness
/// Exact while the different values of `L` number at most 2¹⁶; beyond, losses are merged upward on a grid of that many
/// cells (fewer when many different steps meet), which is sound because `(1 − e^{t−L})₊` rises with `L`. `None` beyond 2¹⁷
/// repetitions of one step or 512 different steps.
#[must_use]
pub fn optimal(steps: &[ApproximateStep], total: Epsilon) -> Option<Delta> {
    if total == Epsilon::INFINITE {
        return Some(total_delta(steps));
    }
    Some(OptimalComposition::new(steps)?.delta(total))
}

/// Optimal composition: the least ε for which the steps together are (ε, `target`)-DP, rounded up.
#[must_use]
pub fn optimal_epsilon(steps: &[ApproximateStep], target: Delta) -> Option<Epsilon> {
    let composition = OptimalComposition::new(steps)?;
    let most = basic(steps).0;
    if composition.delta(Epsilon::ZERO) <= target {
        return Some(Epsilon::ZERO);
    }
    if composition.delta(most) > target {
        return Some(Epsilon::INFINITE); // Even basic composition's ε leaves more than the target.
    }
    let found = root(0.0, most.get(), |t| target.get() - composition.delta_near(t));
    let holds = |e: f64| composition.delta(Epsilon::from_upper_bound(e)) <= target;
    Some(Epsilon::from_upper_bound(certified(found, found, most.get(), holds)))
}

/// The law of the total loss of randomized responses, as atoms with upper bounds on their probabilities.
struct OptimalComposition {
    atoms: Vec<(f64, f64)>,
    reveal: Interval,
}

impl OptimalComposition {
    fn new(steps: &[ApproximateStep]) -> Option<Self> {
        let mut atoms = vec![(0.0, 1.0)];
        let mut log_kept = Interval::ZERO;
        if steps.len() > MAX_STEPS {
            return None;
        }
        let most_pairs = MAX_PAIRS / steps.len().max(1);
        for step in steps {
            if step.count.get() > MAX_REPEATS || step.epsilon == Epsilon::INFINITE {
                return None;
            }
            let mut losses = binomial_losses(step);
            if atoms.len() * losses.len() > most_pairs {
                let cells = most_pairs.isqrt();
                atoms = merge_upward(atoms.iter().copied(), cells);
                losses = merge_upward(losses.iter().copied(), cells);
            }
            atoms = convolve(&atoms, &losses);
            log_kept = log_kept + (-Interval::point(step.delta.get())).ln_1p() * step.count.to_f64();
        }
        Some(Self { atoms, reveal: (-log_kept.exp_m1()).max(0.0) })
    }

    fn delta(&self, total: Epsilon) -> Delta {
        // ROUNDING: up. Each atom's loss and probability is an upper bound, and the sum rises with both.
        let mut sum = 0.0;
        for &(loss, probability) in self.atoms.iter().filter(|&&(loss, _)| loss > total.get()) {
            let kept = -(Interval::point(total.get()) - loss).exp_m1();
            sum = add_up(sum, mul_up(probability, kept.hi()));
        }
        let sum = Interval::point(sum.min(1.0));
        // S + D(1−S) rises with both.
        Delta::from_upper_bound((sum + Interval::point(self.reveal.hi()) * (Interval::ONE - sum)).hi())
    }

    /// About the same. Searches only.
    fn delta_near(&self, total: f64) -> f64 {
        let above = self.atoms.iter().filter(|&&(loss, _)| loss > total);
        let sum: f64 = above.map(|&(loss, probability)| probability * -exp_m1(total - loss)).sum();
        sum + self.reveal.hi() * (1.0 - sum)
    }
}

/// `count` randomized responses: loss `(2j − count)·ε` with the binomial probability of `j` pluses; both rounded up.
fn binomial_losses(step: &ApproximateStep) -> Vec<(f64, f64)> {
    let (e, n) = (Interval::point(step.epsilon.get()), step.count.get());
    // ln p = −ln1p(e^{−ε}), ln(1−p) = −ε − ln1p(e^{−ε}).
    let log_norm = (-e).exp().ln_1p();
    (0..=n)
        .map(|j| {
            #[expect(clippy::cast_precision_loss, reason = "at most 2^20")]
            let (plus, minus) = (j as f64, (n - j) as f64);
            let log = ln_binomial(n, j) - e * minus - log_norm * step.count.to_f64();
            ((e * (plus - minus)).hi(), log.exp().hi().min(1.0))
        })
        .collect()
}

/// The law of a sum of independent losses; close losses are merged upward when there are too many.
fn convolve(left: &[(f64, f64)], right: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let pairs = || left.iter().flat_map(|&(a, p)| right.iter().map(move |&(b, q)| (add_up(a, b), mul_up(p, q))));
    if left.len() * right.len() > MAX_LOSSES {
        return merge_upward(pairs(), MAX_LOSSES);
    }
    let mut sums: Vec<(f64, f64)> = pairs().collect();
    sums.sort_by(|a, b| a.0.total_cmp(&b.0));
    sums.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = add_up(kept.1, next.1);
        }
        same
    });
    sums
}

/// At most `cells` atoms on an even grid: each loss goes to the first grid point at or above it.
fn merge_upward(atoms: impl Iterator<Item = (f64, f64)> + Clone, cells: usize) -> Vec<(f64, f64)> {
    let losses = || atoms.clone().map(|(loss, _)| loss);
    let (least, most) = (losses().fold(f64::INFINITY, f64::min), losses().fold(f64::NEG_INFINITY, f64::max));
    #[expect(clippy::cast_precision_loss, reason = "at most 2^16")]
    let width = (most - least) / (cells.max(3) - 2) as f64 * (1.0 + 4.0 * f64::EPSILON);
    #[expect(clippy::cast_precision_loss, reason = "at most 2^16")]
    let mut grid: Vec<f64> = (0..cells.max(3) - 1).map(|k| least + k as f64 * width).collect();
    grid.push(f64::max(most, grid[grid.len() - 1]).next_up());
    let mut masses = vec![0.0; grid.len()];
    for (loss, probability) in atoms {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the number of cells"
        )]
        let mut cell = (((loss - least) / width).floor().max(0.0) as usize).min(grid.len() - 1);
        // ROUNDING: up.
        while grid[cell] < loss {
            cell += 1;
        }
        masses[cell] = add_up(masses[cell], probability);
    }
    grid.into_iter().zip(masses).filter(|&(_, mass)| mass > 0.0).collect()
}

/// `Σδ`, rounded up.
fn total_delta(steps: &[ApproximateStep]) -> Delta {
    Delta::from_upper_bound(
        steps.iter().fold(0.0, |sum, step| add_up(sum, mul_up(step.delta.get(), step.count.to_f64()))),
    )
}

/// Poisson sampling of an (ε, δ)-DP mechanism: `(ln1p(q·expm1(ε)), q·δ)`, rounded up, add/remove (T42).
///
/// Source: Balle, Barthe, Gaboardi, arXiv:1807.01647, Theorem 8.
#[must_use]
pub fn amplify(q: crate::params::SamplingProbability, epsilon: Epsilon, delta: Delta) -> (Epsilon, Delta) {
    let q = Interval::point(q.get());
    let e = (q * Interval::point(epsilon.get()).exp_m1()).ln_1p();
    // For ε past 700, e^ε overflows: ln(1 + q(e^ε − 1)) ≤ ε always.
    let epsilon = Epsilon::from_upper_bound(e.hi().min(epsilon.get()));
    (epsilon, Delta::from_upper_bound((q * delta.get()).hi()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Count, SamplingProbability};
    use paygo_numeric::elementary::exp;

    fn step(epsilon: f64, delta: f64, count: u64) -> ApproximateStep {
        ApproximateStep {
            epsilon: Epsilon::new(epsilon).expect("epsilon"),
            delta: Delta::new(delta).expect("delta"),
            count: Count::new(count).expect("count"),
        }
    }

    #[test]
    fn one_step_is_itself() {
        // T3: k = 1, t < ε: (e^ε − e^t)/(1 + e^ε).
        let ours = optimal(&[step(0.7, 0.0, 1)], Epsilon::new(0.2).expect("epsilon")).expect("one step").get();
        let truth = (exp(0.7) - exp(0.2)) / (1.0 + exp(0.7));
        assert!(ours >= truth * (1.0 - 1e-15) && ours <= truth * (1.0 + 1e-13));
    }

    #[test]
    fn e1_the_misprinted_drift_would_be_negative() {
        // [L] prints Σ ε(ε − 1): −74.8 for 1000 steps of 0.1 at δ = 1e-5. The true DRV value is 25.7.
        let (epsilon, _) = advanced(&[step(0.1, 0.0, 1000)], Drift::Drv, Delta::new(1e-5).expect("delta"));
        assert!((epsilon.get() - 25.7).abs() < 0.05, "{epsilon}");
        let printed = (2.0f64 * 5.0 * std::f64::consts::LN_10 * 1000.0 * 0.01).sqrt() + 1000.0 * 0.1 * (0.1 - 1.0);
        assert!((printed + 74.8).abs() < 0.05, "{printed}");
    }

    #[test]
    fn merging_is_sound_and_close() {
        // Seven different steps, many times each: more than 2^16 losses. Below: fewer repetitions, exactly.
        let many: Vec<_> = (1..=7).map(|i| step(0.01 * f64::from(i), 0.0, 40)).collect();
        let t = Epsilon::new(1.0).expect("epsilon");
        let merged = optimal(&many, t).expect("in range");
        // The same multiset split into different groupings must agree to the grid's width.
        let half: Vec<_> = many.iter().flat_map(|s| [step(s.epsilon.get(), 0.0, 20); 2]).collect();
        let regrouped = optimal(&half, t).expect("in range");
        assert!((merged.get() / regrouped.get() - 1.0).abs() < 1e-2, "{merged} {regrouped}");
        let (tanh, _) = advanced(&many, Drift::Tanh, merged);
        assert!(tanh >= t, "optimal composition beats the tanh form");
    }

    #[test]
    fn amplification() {
        let (e, d) = amplify(
            SamplingProbability::new(0.01).expect("q"),
            Epsilon::new(1.0).expect("epsilon"),
            Delta::new(1e-5).expect("delta"),
        );
        // ln(1 + 0.01·(e − 1)) = 0.017036863…
        assert!((e.get() - 0.017_036_863_2).abs() < 1e-10 && d.get() >= 1e-7, "{e}");
    }
}
