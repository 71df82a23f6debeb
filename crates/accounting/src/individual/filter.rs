//! Algorithm 3, one round over a column.

use super::{FULL, WORTH_A_THREAD};
use rayon::prelude::*;
use wide::u32x8;

/// People in one word of the mask.
const WORD: usize = 64;

/// One round of the individual filter: each person whose cost still fits into their budget is charged and takes part; the
/// others pay nothing, stay out of this round, and may return. Bit `i % 64` of `active[i / 64]` says whether person `i` takes
/// part; the bits after the last person are 0.
///
/// # Theorem
/// If each person's costs bound the divergence that their own record can make given everything before, the view is private for
/// each person as their own budget says, under full adaptivity. Source: Feldman and Zrnic, Algorithm 3 and Theorem 4.5, at one
/// Rényi order; in zCDP and GDP units for all orders at once (T20, T49).
///
/// # Preconditions
/// Those of the module; `spent[i] ≤ FULL`, as this function leaves it.
///
/// # Soundness
/// Integers: no sum passes [`FULL`], whatever the costs are.
///
/// # Panics
/// When the columns differ in length, or the mask has not one word for each 64 people, begun ones included.
///
/// ```
/// use paygo_accounting::individual::{FULL, admit_round};
/// let mut spent = [0, FULL / 2, FULL];
/// let mut active = [0];
/// admit_round(&mut spent, &[FULL / 10, FULL / 2 + 1, 0], &mut active);
/// assert_eq!(active, [0b101]); // The second person's cost does not fit; the third pays nothing, so may stay.
/// assert_eq!(spent, [FULL / 10, FULL / 2, FULL]);
/// ```
pub fn admit_round(spent: &mut [u32], costs: &[u32], active: &mut [u64]) {
    assert!(
        spent.len() == costs.len() && active.len() == spent.len().div_ceil(WORD),
        "columns of {} and {} people with a mask of {} words",
        spent.len(),
        costs.len(),
        active.len()
    );
    // Whole words, so that no two threads share one.
    const PIECE: usize = WORTH_A_THREAD;
    const { assert!(PIECE.is_multiple_of(WORD)) };
    if spent.len() <= PIECE {
        return admit(spent, costs, active);
    }
    spent
        .par_chunks_mut(PIECE)
        .zip(costs.par_chunks(PIECE))
        .zip(active.par_chunks_mut(PIECE / WORD))
        .for_each(|((spent, costs), active)| admit(spent, costs, active));
}

fn admit(spent: &mut [u32], costs: &[u32], active: &mut [u64]) {
    let (spent, spent_rest) = spent.as_chunks_mut::<WORD>();
    let (costs, costs_rest) = costs.as_chunks::<WORD>();
    for ((spent, costs), word) in spent.iter_mut().zip(costs).zip(&mut *active) {
        *word = admit_word(spent, costs);
    }
    if let (false, Some(word)) = (spent_rest.is_empty(), active.last_mut()) {
        *word = 0;
        for (i, (spent, &cost)) in spent_rest.iter_mut().zip(costs_rest).enumerate() {
            if cost <= FULL.saturating_sub(*spent) {
                *spent += cost;
                *word |= 1 << i;
            }
        }
    }
}

/// Eight people at a time; at the baseline instruction set this runs at the speed of memory.
#[inline]
fn admit_word(spent: &mut [u32; WORD], costs: &[u32; WORD]) -> u64 {
    let full = u32x8::splat(FULL);
    let mut over = 0u64;
    let (spent, _) = spent.as_chunks_mut::<8>();
    let (costs, _) = costs.as_chunks::<8>();
    for (i, (spent, costs)) in spent.iter_mut().zip(costs).enumerate() {
        let (sum, cost) = (u32x8::from(*spent), u32x8::from(*costs));
        // FULL − spent does not wrap: no sum passes FULL.
        let too_much = cost.simd_gt(full - sum);
        *spent = (sum + (cost & !too_much)).to_array();
        over |= u64::from(too_much.to_bitmask()) << (8 * i);
    }
    !over
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::individual::NEVER;
    use proptest::prelude::*;

    /// One person at a time, as the paper has it.
    fn slow(spent: &mut [u32], costs: &[u32]) -> Vec<bool> {
        let one = |(spent, &cost): (&mut u32, &u32)| {
            let fits = u64::from(*spent) + u64::from(cost) <= u64::from(FULL);
            *spent += if fits { cost } else { 0 };
            fits
        };
        spent.iter_mut().zip(costs).map(one).collect()
    }

    fn edgy() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0), Just(1), Just(FULL), Just(FULL + 1), Just(NEVER), Just(1 << 31), 0..=FULL, 0..=FULL / 50]
    }

    proptest! {
        /// Against the obvious loop, at every length, with every edge; and nobody ever passes their budget.
        #[test]
        fn agrees_with_one_person_at_a_time(
            rounds in prop::collection::vec(prop::collection::vec(edgy(), 1..200), 1..20),
        ) {
            let people = rounds.iter().map(Vec::len).min().unwrap_or(0);
            let (mut fast, mut reference) = (vec![0; people], vec![0; people]);
            let mut active = vec![u64::MAX; people.div_ceil(64)];
            for costs in &rounds {
                admit_round(&mut fast, &costs[..people], &mut active);
                let expected = slow(&mut reference, &costs[..people]);
                prop_assert_eq!(&fast, &reference);
                prop_assert!(fast.iter().all(|&spent| spent <= FULL));
                let bits: Vec<bool> = (0..64 * active.len()).map(|i| active[i / 64] >> (i % 64) & 1 == 1).collect();
                prop_assert_eq!(&bits[..people], &expected[..]);
                prop_assert!(bits[people..].iter().all(|&bit| !bit));
            }
        }

        /// Charges that all fit may come in any order, in one partition or in several.
        #[test]
        fn merges_in_any_order(costs in prop::collection::vec(0..=FULL / 40, 40), cut in 0usize..40) {
            let mut one_way = [0];
            let mut other_way = [0];
            for &cost in &costs {
                admit_round(&mut one_way, &[cost], &mut [0]);
            }
            for &cost in costs[cut..].iter().chain(&costs[..cut]) {
                admit_round(&mut other_way, &[cost], &mut [0]);
            }
            prop_assert_eq!(one_way, other_way);
        }
    }

    #[test]
    fn long_columns_are_split_among_threads_without_a_trace() {
        let people = 3 * WORTH_A_THREAD + 77;
        let costs: Vec<u32> = (0u32..).map(|i| i.wrapping_mul(2_654_435_761)).take(people).collect();
        let mut spent = vec![FULL / 3; people];
        let mut reference = spent.clone();
        let mut active = vec![0; people.div_ceil(64)];
        admit_round(&mut spent, &costs, &mut active);
        let expected = slow(&mut reference, &costs);
        assert_eq!(spent, reference);
        assert!((0..people).all(|i| (active[i / 64] >> (i % 64) & 1 == 1) == expected[i]));
    }

    #[test]
    #[should_panic(expected = "columns of 2 and 1 people")]
    fn columns_of_different_lengths_are_a_bug() {
        admit_round(&mut [0, 0], &[0], &mut [0]);
    }
}
