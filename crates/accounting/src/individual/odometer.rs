//! A reading for each person, without a budget.
//!
//! Costs are shares of a public step Δ at one Rényi order, made by a [`super::SharePrice`] whose budget is Δ. A reading is about one
//! person and depends on that person's record: it may be disclosed to them, and to nobody else without noise and a charge
//! (\[FZ\], Section 5.2).

use super::{FULL, PersonalBudget, WORTH_A_THREAD};
use crate::charge::Sums;
use crate::filter::FixedOrder;
use crate::odometer::{Boundary, VilleFixed, VilleMixture};
use crate::params::{Delta, Epsilon, Order, OutOfDomain};
use crate::secret::Secret;
use paygo_numeric::Amount;
use paygo_numeric::rounding::mul_up;
use rayon::prelude::*;

/// A column of restart odometers: \[FZ\]'s Algorithm 6.
///
/// # Theorem
/// If every cost is at most Δ, the steps begun times Δ are at least the person's sum, so the reading bounds the person's loss at
/// every moment by Ville's inequality at the order fixed in advance (T22). Corollary 5.3 itself holds only for a number of
/// restarts fixed in advance.
#[derive(Clone, Debug)]
pub struct RestartColumn {
    /// For each person the restarts, and the share that the current run has used of its step.
    runs: Vec<(u32, u32)>,
}

/// A column of sums: the Ville form, which needs no steps.
///
/// # Theorem
/// With the order fixed in advance, `S(α) + ln(1/δ)/(α−1)` bounds the person's loss at every moment (T18a); never above
/// [`RestartColumn`]'s reading.
#[derive(Clone, Debug)]
pub struct SumColumn {
    /// For each person the sum of the shares.
    sums: Vec<u64>,
}

/// Somebody's cost is more than a step. Says no more: whose, and how much, is secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cost is more than the odometer's step; clip contributions so that none can be, or take a larger step")]
pub struct MoreThanAStep;

/// Reads the columns: the order, Δ and δ, fixed before the first output.
#[derive(Clone, Debug)]
pub struct Reader {
    step: PersonalBudget,
    boundary: VilleFixed,
}

impl RestartColumn {
    /// Nobody has spent anything.
    #[must_use]
    pub fn new(people: usize) -> Self {
        Self { runs: vec![(0, 0); people] }
    }

    /// Adds one cost for each person, before the release runs.
    ///
    /// # Errors
    /// [`MoreThanAStep`] when a cost is more than Δ, which would be counted as one Δ (E8); nothing is changed then.
    ///
    /// # Panics
    /// When the columns differ in length.
    pub fn observe(&mut self, costs: &[u32]) -> Result<(), MoreThanAStep> {
        assert_eq!(self.runs.len(), costs.len(), "columns of different lengths");
        at_most_a_step(costs)?;
        self.runs.par_chunks_mut(WORTH_A_THREAD).zip(costs.par_chunks(WORTH_A_THREAD)).for_each(|(runs, costs)| {
            for ((restarts, run), &cost) in runs.iter_mut().zip(costs) {
                if cost > FULL - *run {
                    *restarts = restarts.saturating_add(1);
                    *run = cost;
                } else {
                    *run += cost;
                }
            }
        });
        Ok(())
    }
}

impl SumColumn {
    /// Nobody has spent anything.
    #[must_use]
    pub fn new(people: usize) -> Self {
        Self { sums: vec![0; people] }
    }

    /// Adds one cost for each person, before the release runs.
    ///
    /// # Errors
    /// [`MoreThanAStep`] when a cost has no share; nothing is changed then.
    ///
    /// # Panics
    /// When the columns differ in length.
    pub fn observe(&mut self, costs: &[u32]) -> Result<(), MoreThanAStep> {
        assert_eq!(self.sums.len(), costs.len(), "columns of different lengths");
        at_most_a_step(costs)?;
        self.sums.par_chunks_mut(WORTH_A_THREAD).zip(costs.par_chunks(WORTH_A_THREAD)).for_each(|(sums, costs)| {
            for (sum, &cost) in sums.iter_mut().zip(costs) {
                *sum = sum.saturating_add(u64::from(cost));
            }
        });
        Ok(())
    }
}

fn at_most_a_step(costs: &[u32]) -> Result<(), MoreThanAStep> {
    let more = costs.par_chunks(WORTH_A_THREAD).any(|costs| costs.iter().any(|&cost| cost > FULL));
    if more { Err(MoreThanAStep) } else { Ok(()) }
}

impl Reader {
    /// # Errors
    /// [`OutOfDomain`] when the order is infinite, Δ is 0 or infinite, or δ is 0 or 1.
    pub fn new(order: Order, step: Amount, delta: Delta) -> Result<Self, OutOfDomain> {
        if step == Amount::ZERO || step.is_infinite() {
            return Err(OutOfDomain::new("step", step, "0 < step < inf"));
        }
        let rule = FixedOrder::with_limit(order, step, Amount::ZERO)
            .map_err(|_| OutOfDomain::new("step", step, "0 < step < inf"))?;
        Ok(Self { step: PersonalBudget::fixed_order(&rule)?, boundary: VilleFixed::new(order, delta)? })
    }

    /// Δ, as the budget that costs are shares of.
    #[must_use]
    pub const fn step(&self) -> &PersonalBudget {
        &self.step
    }

    /// What a restart odometer has counted for a person, a Rényi divergence at the order: \[FZ\]'s reading.
    #[must_use]
    pub fn counted(&self, column: &RestartColumn, person: usize) -> Secret<Amount> {
        Secret::new(column.runs[person].0).map(|restarts| match restarts {
            u32::MAX => Amount::INFINITE,
            restarts => self.step.limit().times(u64::from(restarts) + 1),
        })
    }

    /// The sum for a person, a Rényi divergence at the order, rounded up.
    #[must_use]
    pub fn sum(&self, column: &SumColumn, person: usize) -> Secret<Amount> {
        Secret::new(column.sums[person]).map(|sum| match sum {
            u64::MAX => Amount::INFINITE,
            sum => self.step.limit().times(sum).shared_by_up(u64::from(FULL)),
        })
    }

    /// The person's loss stays below this at every moment, with probability 1 − δ, if the divergence is at most `sum`.
    #[must_use]
    pub fn reading(&self, sum: Secret<Amount>) -> Secret<Epsilon> {
        sum.map(|sum| reading(&self.boundary, vec![sum]))
    }
}

/// A person's reading from their sum of ρ alone: costs of Gaussian noise at order α are α·ρ, so one number serves every order of
/// the mixture (T18c).
#[must_use]
pub fn reading_of_rho(boundary: &VilleMixture, rho: Secret<Amount>) -> Secret<Epsilon> {
    // ROUNDING: up.
    let lane = |order: &Order, rho: f64| Amount::from_f64_up(mul_up(order.get(), rho));
    let lanes = |rho: f64| boundary.prior().orders().as_slice().iter().map(|order| lane(order, rho)).collect();
    rho.map(|rho| reading(boundary, lanes(rho.to_f64_up())))
}

fn reading<B: Boundary>(boundary: &B, lanes: Vec<Amount>) -> Epsilon {
    let sums = Sums::from_stored(boundary.currency(), lanes, Amount::ZERO);
    Epsilon::from_upper_bound(sums.map_or(f64::INFINITY, |sums| boundary.value(&sums).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Cost;
    use crate::individual::{NEVER, SharePrice};
    use crate::mechanism::Mechanism;
    use crate::odometer::{Odometer, Restart};
    use crate::params::Neighbors;
    use crate::prior::Prior;
    use proptest::prelude::*;

    fn reader(step: &str) -> Reader {
        let step = Amount::from_decimal_down(step).expect("a decimal");
        Reader::new(Order::new(8.0).expect("an order"), step, Delta::new(1e-5).expect("a delta")).expect("a reader")
    }

    proptest! {
        /// The column moves as one odometer per person would, and never reads less than the sum.
        #[test]
        fn columns_agree_with_single_odometers(
            costs in prop::collection::vec(prop::collection::vec(0u64..=10_000, 3), 1..40),
        ) {
            let reader = reader("0.01");
            let price = SharePrice::new(reader.step(), 4 * 10_000 * 100, 1).expect("a price"); // 10⁴ costs one step
            let (mut restarts, mut sums) = (RestartColumn::new(3), SumColumn::new(3));
            let order = Order::new(8.0).expect("an order");
            let restart = Restart::new(order, reader.step().limit(), Delta::new(1e-5).expect("d")).expect("r");
            let mut singles: Vec<_> = (0..3).map(|_| Odometer::new(restart.clone(), Neighbors::AddRemove)).collect();
            for round in &costs {
                let shares: Vec<u32> = round.iter().map(|&square| price.share(u128::from(square))).collect();
                restarts.observe(&shares).expect("at most a step");
                sums.observe(&shares).expect("at most a step");
                for (single, &square) in singles.iter_mut().zip(round) {
                    if square > 0 {
                        #[expect(clippy::cast_precision_loss, reason = "small")]
                        let noise = (4_000_000.0 / square as f64).sqrt();
                        let cost = Cost::of(&Mechanism::gaussian(noise).expect("noise"), Neighbors::AddRemove).expect("c");
                        let charge = single.price(&cost).expect("a price");
                        // Rounded the other way, a cost of exactly one step may be a unit more.
                        prop_assume!(single.observe(&charge).is_ok());
                    }
                }
            }
            for (person, single) in singles.iter().enumerate() {
                let (counted, sum) = (reader.counted(&restarts, person), reader.sum(&sums, person));
                prop_assert!(reader.reading(sum).expose() <= reader.reading(counted).expose());
                let (counted, sum) = (counted.expose(), sum.expose());
                prop_assert!(sum <= counted);
                let exact = single.sums().lanes()[0];
                prop_assert!(exact <= sum.plus(Amount::from_f64_up(1e-15)), "{exact} {sum}");
                prop_assert!(sum.minus(exact) <= Amount::from_f64_up(1e-9));
            }
        }
    }

    #[test]
    fn a_step_is_begun_when_the_run_would_pass_it() {
        let reader = reader("0.5");
        let mut column = RestartColumn::new(2);
        for _ in 0..3 {
            column.observe(&[FULL / 2, FULL / 2 + 1]).expect("at most a step");
        }
        // Halves: 1, 1, then a new step. A little more than halves: a new step each time.
        let counted = |person| reader.counted(&column, person).expose().to_string();
        assert_eq!((counted(0), counted(1)), ("1".into(), "1.5".into()));
        let before = column.clone();
        assert_eq!(column.observe(&[0, NEVER]), Err(MoreThanAStep));
        assert_eq!(column.runs, before.runs);
        assert_eq!(SumColumn::new(1).observe(&[NEVER]), Err(MoreThanAStep));
    }

    #[test]
    fn a_mixture_reads_a_rho_as_an_odometer_does() {
        let delta = Delta::new(1e-6).expect("a delta");
        let boundary = VilleMixture::new(delta, Prior::log_spaced()).expect("a boundary");
        let mut odometer = Odometer::new(boundary.clone(), Neighbors::AddRemove);
        let cost = Cost::of(&Mechanism::gaussian(10.0).expect("noise"), Neighbors::AddRemove).expect("a cost");
        let charge = odometer.price(&cost).expect("a price");
        for n in 1..=20u64 {
            odometer.observe(&charge).expect("observed");
            let rho = Amount::from_ratio_up(u128::from(n), 200);
            let (ours, theirs) = (reading_of_rho(&boundary, Secret::new(rho)).expose().get(), odometer.reading().get());
            assert!((ours - theirs).abs() < 1e-9 * theirs, "{ours} {theirs}");
        }
        assert_eq!(reading_of_rho(&boundary, Secret::new(Amount::INFINITE)).expose().get(), f64::INFINITY);
    }
}
