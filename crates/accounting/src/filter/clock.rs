//! The clock: the privacy-loss distribution as a filter. The default.

use super::{Budget, BudgetError, Kind, Meter, Mixture, Rule};
use crate::charge::{Currency, Held, Lanes, Sums};
use crate::convert::gaussian;
use crate::cost::Cost;
use crate::curve::Orders;
use crate::loss::clock::{MAX_KINDS, Reference, Terms};
use crate::mechanism::{Mechanism, Single};
use crate::params::{Count, Delta, Epsilon, Mu, OutOfDomain};
use crate::prior::Prior;
use crate::stored::{Decimal, LoadError, StoredBudget, prior_of, stored_prior};
use crate::wire::{self, FilterError, FilterWords, Number};
use paygo_numeric::rounding::{mul_down, mul_up};
use paygo_numeric::search::{first_true, last_true};
use paygo_numeric::{Amount, Interval};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The share of δ that goes with payments: of noise, and of a plan, which pays with nothing but itself if it is followed.
const SHARE: f64 = 0.1;
const PLAN_SHARE: f64 = 0.02;
/// The share of δ of the mixture of Rényi orders beside the clock.
const BESIDE: f64 = 0.02;
/// The noise that is kept beside a plan, as a share of the plan.
const BASE: f64 = 0.002;
/// What of δ the losses of a plan that count as infinite may weigh.
const NEGLIGIBLE: f64 = 1e-4;
/// A clock is made a little smaller than it could be, so that it still fits when a bound moves by its last digits.
const MARGIN: f64 = 1e-6;
/// Noise beside a plan is sought in such parts of the most there could be.
const PARTS: u64 = 1 << 20;

/// Admits while a clock, which every step moves by its price, has not run out.
///
/// # Theorem
/// Start the clock at a reference `R₀`: Gaussian noise of some μ², or the steps of a plan beside such noise. Each step is paid for with a part
/// `b` of what is left, so that `A ⊗ R ≤ R ⊗ b` up to `η` at every threshold and in both directions, where `R` is what is left after it and `A`
/// dominates the step given everything before. Let the `η` sum to at most `d`. Then, however steps were chosen and wherever one stops,
/// `δ(ε) ≤ H_{R₀}(ε) + d` for every ε at once (T53). For the profile of what is left, taken at `ε` less the loss so far, is a supermartingale up to
/// the `η`, and at the end it is at least the hockey stick.
///
/// - A Gaussian step moves the clock by μ², with `η = 0`: T40. So does a step of the plan, by one step of its kind: a plan that is followed
///   costs what its privacy-loss distribution says, and may still be left at any moment.
/// - `η = rate·b`, so that `d` needs no sum of its own.
/// - *Beside it*: until the clock cannot pay it is the clock that holds. Where it could not, a mixture of Rényi orders with a fiftieth of δ
///   (T16d) must allow everything together, or the sum of pure ε be at most ε (order ∞). Each is an event with its own share of δ (Part 8.10).
///   So what is known by a curve alone, and dear on a clock, is no worse off than with a little less of δ under a mixture.
/// - Steps with a δ of their own are allowed up to the slack (Part 2.3).
///
/// # Order of arrival
/// The same step costs a little more later, when less is left. So the sums depend on the order in which steps came, but not on how a
/// repeated step was cut into requests. A step that was admitted may run later than others that came after it (T53 j).
///
/// # Soundness
/// Prices are rounded up, what is on the clock is rounded down, sums are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    budget: Budget,
    reference: Reference,
    /// For what the clock cannot pay, and for an odometer; its last order is ∞. Without a mixture where so little δ serves none.
    prior: Prior,
    mixture: Option<Mixture>,
    currency: Arc<Currency>,
}

impl Clock {
    /// The Gaussian clock of a budget: the largest amount of noise that costs nine tenths of its δ at ε; the rest goes with the payments.
    ///
    /// # Errors
    /// [`BudgetError`] when no noise would do.
    pub fn new(budget: Budget) -> Result<Self, BudgetError> {
        let (epsilon, whole) = (budget.epsilon(), of_clock(budget));
        // ROUNDING: down, a unit of the amount below at most.
        let noise = Delta::from_upper_bound(mul_down(whole.get(), 1.0 - SHARE));
        let clock = gaussian_clock(epsilon, noise);
        let rate = mul_down(whole.get(), SHARE * (1.0 - 1e-9)) / clock.to_f64_up() * (1.0 - 1e-9);
        if clock == Amount::ZERO || clock.is_infinite() || !(rate > 0.0 && rate.is_finite()) {
            let least = gaussian::epsilon(Mu::from_upper_bound(1e-9), whole).get();
            return Err(BudgetError::Unservable { epsilon, delta: whole, least });
        }
        Self::with(budget, Reference::new(Vec::new(), Terms::noise(clock, rate))?, usual_prior(budget))
    }

    /// The clock of a plan, releases in the order in which they will probably be made, each so often: as many of them as the budget pays for, and
    /// noise for whatever else is asked. `reserve` is the least share of [`Clock::new`]'s noise that is kept beside the plan for it; what the plan
    /// leaves is added to it.
    ///
    /// What is Gaussian noise in the plan, or has no law of its own, has its noise beside the plan, too: all of what comes before the first
    /// step that is neither, and as much of the rest as of the plan.
    ///
    /// # Errors
    /// [`BudgetError`] when the budget serves nothing, the share is not below 1, or the plan has too many kinds of steps.
    pub fn for_plan(budget: Budget, plan: &[(Cost, u64)], reserve: f64) -> Result<Self, BudgetError> {
        let alone = Self::new(budget)?;
        if !(0.0..1.0).contains(&reserve) {
            return Err(OutOfDomain::new("reserve", reserve, "0 <= reserve < 1").into());
        }
        let (whole, most) = (of_clock(budget).get(), alone.reference.terms().noise);
        let negligible = NEGLIGIBLE * whole / most.to_f64_up();
        let Planned { steps, first, later } = Planned::of(plan, |single| alone.reference.counts(single, negligible));
        if steps.len() > MAX_KINDS {
            let given = format!("{} kinds of steps", steps.len());
            return Err(OutOfDomain::new("plan", given, "at most 256 kinds that are not Gaussian noise").into());
        }
        if steps.is_empty() {
            return Ok(alone);
        }
        let counts: Vec<u64> = steps.iter().map(|step| step.1).collect();
        let total = counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
        let total = total.filter(|total| *total <= Count::MAX);
        let total = total.ok_or_else(|| OutOfDomain::new("steps of the plan", "more", "at most 2^53"))?;
        let bare = Terms::noise(Amount::UNIT, 1.0).beside((Amount::UNIT, Amount::UNIT), 1.0, negligible, &counts);
        let share = Amount::from_f64_down(reserve * most.to_f64_down()).unwrap_or(Amount::ZERO);
        let (first, later) = (alone.noise_for(&first), alone.noise_for(&later));
        let draft = Draft { budget, all: Reference::new(steps, bare)?, total, kept: share.plus(first), later };
        let fits = |count: u64| draft.reference(count, Amount::ZERO).is_some_and(|reference| draft.fits(&reference));
        // From above, since of few steps less may be known than of many.
        let (mut count, mut too_many) = (total, total);
        while count > 0 && !fits(count) {
            (count, too_many) = (count / 8 * 7 + count % 8 * 7 / 8, count);
        }
        let count = last_true(count, too_many, |tried| tried <= count || fits(tried)).unwrap_or(count);
        if count == 0 {
            return Ok(alone);
        }
        // What is left beside it, in units fine enough.
        let more = |part: u64| most.shared_by(PARTS).times(part);
        let fits = |part: u64| draft.reference(count, more(part)).is_some_and(|reference| draft.fits(&reference));
        let part = if count == total { last_true(0, PARTS, |part| part == 0 || fits(part)).unwrap_or(0) } else { 0 };
        let reference = draft.reference(count, more(part)).ok_or(OutOfDomain::new("plan", count, "steps that fit"))?;
        Self::with(budget, reference, usual_prior(budget))
    }

    /// About the noise that pays for all of these, one after another; all there is where that is not enough.
    fn noise_for(&self, costs: &[(Cost, u64)]) -> Amount {
        let most = self.reference.terms().noise;
        let prices: Option<Vec<_>> =
            costs.iter().map(|(cost, times)| Some((self.reference.prices(cost)?, *times))).collect();
        let Some(prices) = prices else { return most };
        let pays = |part: &u64| {
            let start = Some(vec![most.shared_by(PARTS).times(*part)]);
            let walk = |left, (price, times): &(Vec<Amount>, u64)| self.reference.walk(left?, None, price, *times);
            prices.iter().fold(start, walk).is_some()
        };
        most.shared_by(PARTS).times(first_true(0, PARTS, 1, |part| pays(&part)).unwrap_or(PARTS))
    }

    /// A given reference.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the reference and what goes with its payments are more than the budget, or the orders do not end in ∞.
    fn with(budget: Budget, reference: Reference, prior: Prior) -> Result<Self, BudgetError> {
        let orders: Orders = prior.orders().clone();
        let currency = Arc::new(Currency::Clock(reference.clone(), orders));
        let beside = mul_down(budget.loss_delta().get(), BESIDE);
        let beside = Budget::new(budget.epsilon(), Delta::from_upper_bound(beside))?.with_limit(budget.limit())?;
        let mixture = Mixture::over(beside, prior.clone()).ok();
        let rule = Self { budget, reference, prior, mixture, currency };
        if rule.needs(budget.epsilon()).is_some_and(|least| least <= budget.delta()) {
            return Ok(rule);
        }
        Err(OutOfDomain::new("clock", rule.reference.terms().noise, "what epsilon and delta pay for").into())
    }

    /// What is on the clock at first.
    #[must_use]
    pub const fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The δ that is promised at an ε.
    fn needs(&self, epsilon: Epsilon) -> Option<Delta> {
        let noise = self.reference.delta(&self.reference.full(), epsilon, self.budget.loss_delta().get());
        let sum = Interval::point(noise) + self.apart();
        (noise.is_finite() && sum.hi() < 1.0).then(|| Delta::from_upper_bound(sum.hi()))
    }

    /// What of a δ is left for the reference; rounded down.
    fn spare(&self, delta: Delta) -> Option<Delta> {
        delta.less(self.apart().hi()).filter(|spare| *spare > Delta::ZERO)
    }

    /// What of δ is not the reference's: the slack, what goes with the payments, and what the mixture has.
    fn apart(&self) -> Interval {
        let mixture = self.mixture.as_ref().and_then(Rule::budget).map_or(0.0, |budget| budget.delta().get());
        Interval::point(self.budget.slack().to_f64_up()) + self.reference.allowances() + mixture
    }

    /// The ε of what was paid, at the budget's δ without what goes with the payments; rounded up.
    fn worth(&self, paid: &[Amount]) -> f64 {
        if paid.iter().all(|paid| *paid == Amount::ZERO) {
            return 0.0;
        }
        if paid.iter().any(|paid| paid.is_infinite()) {
            return f64::INFINITY;
        }
        self.spare(self.budget.delta()).map_or(f64::INFINITY, |spare| self.reference.worth(paid, spare.get()))
    }

    /// The share of the clock that was paid, rounded up.
    fn share(&self, paid: &[Amount]) -> Amount {
        if paid.iter().any(|paid| paid.is_infinite()) {
            return Amount::INFINITE;
        }
        let share = self.reference.weight(paid) / self.reference.weight(&self.reference.full());
        Amount::from_f64_up(mul_up(share, 1.0 + 1e-12)).min(Amount::ONE)
    }

    /// What was paid, and the sum at order ∞.
    fn parts<'a>(&self, lanes: &'a [Amount]) -> (&'a [Amount], Amount) {
        let (paid, sums) = lanes.split_at(self.reference.coins());
        (paid, self.prior.pure_sum(sums))
    }

    /// The divergences.
    fn beside<'a>(&self, lanes: &'a [Amount]) -> &'a [Amount] {
        &lanes[self.reference.coins()..]
    }

    fn left(&self, sums: &Sums) -> Option<Vec<Amount>> {
        let (paid, _) = self.parts(sums.lanes());
        let full = self.reference.full();
        let within = paid.iter().zip(&full).all(|(paid, full)| paid <= full);
        within.then(|| full.iter().zip(paid).map(|(full, paid)| full.minus(*paid)).collect())
    }

    /// What was paid when so much is left, more than all where nothing would do; with other sums beside it.
    fn paid(&self, left: Option<Vec<Amount>>, beside: Vec<Amount>) -> Vec<Amount> {
        let full = self.reference.full();
        let paid: Vec<Amount> = match left {
            Some(left) => full.iter().zip(left).map(|(full, left)| full.minus(left)).collect(),
            None => vec![Amount::INFINITE; full.len()],
        };
        paid.into_iter().chain(beside).collect()
    }
}

/// The μ² of the noise that costs this much, rounded down.
fn gaussian_clock(epsilon: Epsilon, delta: Delta) -> Amount {
    let mu = gaussian::budget(epsilon, delta);
    Amount::from_f64_down(Interval::point(mu.get()).square().lo()).unwrap_or(Amount::ZERO)
}

/// The δ of the clock: without the mixture's, and the slack.
fn of_clock(budget: Budget) -> Delta {
    Delta::from_upper_bound(mul_down(budget.loss_delta().get(), 1.0 - BESIDE))
}

/// For the mixture.
fn usual_prior(budget: Budget) -> Prior {
    Prior::for_budget(budget.epsilon(), Delta::from_upper_bound(mul_down(budget.loss_delta().get(), BESIDE)))
}

/// A plan, taken apart.
#[derive(Default)]
struct Planned {
    /// Each kind of step once, where it comes first, of those that count.
    steps: Vec<(Single, u64)>,
    /// What else there is before the first of them, and after.
    first: Vec<(Cost, u64)>,
    later: Vec<(Cost, u64)>,
}

impl Planned {
    fn of(plan: &[(Cost, u64)], counts: impl Fn(&Single) -> bool) -> Self {
        let mut all = Self::default();
        for (cost, times) in plan {
            // Groups of people that stand apart are no steps of a plan.
            let Some(singles) = cost.singles() else {
                all.others().push((cost.clone(), *times));
                continue;
            };
            for (single, count) in singles {
                let count = count.get().saturating_mul(*times);
                match all.steps.iter_mut().find(|(kind, _)| kind == single) {
                    Some((_, known)) => *known = known.saturating_add(count),
                    None if counts(single) => all.steps.push((single.clone(), count)),
                    None => {
                        let one = Cost::of(&Mechanism::Single(single.clone()), cost.neighbors());
                        all.others().extend(one.map(|one| (one, count)));
                    }
                }
            }
        }
        all
    }

    fn others(&mut self) -> &mut Vec<(Cost, u64)> {
        if self.steps.is_empty() { &mut self.first } else { &mut self.later }
    }
}

/// A plan for which a clock is wanted.
struct Draft {
    budget: Budget,
    all: Reference,
    /// How many steps.
    total: u64,
    /// The least noise beside it, and what is added to it with the whole of the steps.
    kept: Amount,
    later: Amount,
}

impl Draft {
    /// The first `count` steps of it, and so much more noise than is kept at least.
    fn reference(&self, count: u64, more: Amount) -> Option<Reference> {
        let negligible = self.all.terms().negligible;
        // In parts: a count may be larger than what an amount can be divided into.
        #[expect(clippy::cast_possible_truncation, reason = "at most PARTS")]
        let done = (u128::from(count) * u128::from(PARTS) / u128::from(self.total)) as u64;
        let kept = self.kept.plus(self.later.shared_by(PARTS).times(done));
        let terms = |first: &Reference, counts: &[u64]| {
            let weight = first.weight(&first.full()) - first.terms().noise.to_f64_up();
            let base = Amount::from_f64_up(BASE * weight);
            let noise = kept.max(base).plus(more);
            let whole = mul_down(of_clock(self.budget).get(), 1.0 - 1e-9) / (weight + noise.to_f64_up());
            let beside = (base, Amount::from_f64_up(weight));
            Terms::noise(noise, SHARE * whole).beside(beside, PLAN_SHARE * whole, negligible, counts)
        };
        self.all.first(count, terms).ok()
    }

    fn fits(&self, reference: &Reference) -> bool {
        let whole = mul_down(of_clock(self.budget).get(), 1.0 - MARGIN);
        let noise = reference.delta(&reference.full(), self.budget.epsilon(), whole);
        (Interval::point(noise) + reference.allowances()).hi() <= whole
    }
}

impl Rule for Clock {
    fn word(&self) -> &'static str {
        "clock"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn slack(&self) -> Amount {
        self.budget.slack()
    }

    fn after(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes, times: u64) -> Sums {
        let held = held.map(|held| &held.amounts()[..self.reference.lanes()]);
        let mut left = self.left(sums);
        let mut beside = sums.lanes()[self.reference.coins()..].to_vec();
        for (amounts, repeats) in charge.parts() {
            let (price, divergences) = amounts.split_at(self.reference.lanes());
            let count = repeats.checked_mul(times);
            left = left.zip(count).and_then(|(left, count)| self.reference.walk(left, held, price, count));
            for (sum, divergence) in beside.iter_mut().zip(divergences) {
                *sum = sum.plus(divergence.times(repeats).times(times));
            }
        }
        sums.moved(self.paid(left, beside), charge.slack().times(times))
    }

    fn to_hold(&self, sums: &Sums, held: Option<&Held>, charge: &Lanes) -> Held {
        let mut all =
            held.map_or_else(|| vec![Amount::ZERO; self.currency.price_lanes()], |held| held.amounts().to_vec());
        let before = all.clone();
        let (left, lanes, kinds) = (self.left(sums), self.reference.lanes(), self.reference.coins() - 1);
        for (amounts, repeats) in charge.parts() {
            // As steps of the plan where there are enough, else at the prices.
            let is_own = left
                .as_ref()
                .is_some_and(|left| self.reference.has_steps(left, Some(&all[..lanes]), &amounts[..lanes], repeats));
            for (lane, (sum, amount)) in all.iter_mut().zip(amounts).enumerate() {
                if lane >= lanes || (lane < kinds) == is_own {
                    *sum = sum.plus(amount.times(repeats));
                }
            }
        }
        let more = |(all, before): (Amount, Amount)| if all.is_infinite() { all } else { all.minus(before) };
        Held::new(all.into_iter().zip(before).map(more).collect(), charge.slack())
    }

    fn with_held(&self, sums: &Sums, held: &Held) -> Sums {
        let (prices, divergences) = held.amounts().split_at(self.reference.lanes());
        let left = self.left(sums).and_then(|left| self.reference.without(left, prices));
        let before = &sums.lanes()[self.reference.coins()..];
        let beside = before.iter().zip(divergences).map(|(sum, divergence)| sum.plus(*divergence)).collect();
        sums.moved(self.paid(left, beside), held.slack())
    }

    /// What was held as steps of the plan is paid with those, everything else in noise (T53 j).
    fn after_held(&self, sums: &Sums, held: Option<&Held>, mine: &Held, charge: &Lanes) -> Sums {
        let held = held.map(|held| &held.amounts()[..self.reference.lanes()]);
        let (mut left, mut own) = (self.left(sums), mine.amounts()[..self.reference.coins() - 1].to_vec());
        let mut beside = self.beside(sums.lanes()).to_vec();
        for (amounts, repeats) in charge.parts() {
            let (price, divergences) = amounts.split_at(self.reference.lanes());
            let steps: Vec<Amount> = price[..own.len()].iter().map(|steps| steps.times(repeats)).collect();
            let is_own =
                steps.iter().any(|steps| *steps > Amount::ZERO) && steps.iter().zip(&own).all(|(s, own)| s <= own);
            left = left.and_then(|left| {
                if !is_own {
                    return self.reference.walk_in_noise(left, held, price, repeats);
                }
                own = own.iter().zip(&steps).map(|(own, steps)| own.minus(*steps)).collect();
                self.reference
                    .has_steps(&left, held, price, repeats)
                    .then(|| self.reference.follow(left, price, repeats))
            });
            for (sum, divergence) in beside.iter_mut().zip(divergences) {
                *sum = sum.plus(divergence.times(repeats));
            }
        }
        sums.moved(self.paid(left, beside), charge.slack())
    }

    /// What was paid with more left would have cost more with less (T53 c).
    fn may_follow(&self, before: &Self) -> bool {
        self.reference == before.reference && self.reference.terms().noise >= before.reference.terms().noise
    }

    fn allows(&self, lanes: &[Amount]) -> bool {
        let (paid, pure) = self.parts(lanes);
        let full = self.reference.full();
        paid.iter().zip(&full).all(|(paid, full)| paid <= full)
            || pure <= self.budget.limit()
            || self.mixture.as_ref().is_some_and(|mixture| mixture.allows(self.beside(lanes)))
    }

    fn meters(&self, lanes: &[Amount]) -> Vec<Meter> {
        let (paid, pure) = self.parts(lanes);
        let limit = self.budget.limit();
        let worth = self.worth(paid);
        // What the clock cannot pay for is worth what the mixture says.
        let by_orders =
            || self.mixture.as_ref().map_or(f64::INFINITY, |mixture| mixture.least_epsilon(self.beside(lanes)).get());
        let worth = if worth.is_finite() { worth } else { by_orders() };
        let worth = Amount::from_f64_up(worth).min(pure);
        // The whole clock is worth the whole of ε, up to rounding.
        let spent = if worth > limit && self.allows(lanes) { limit } else { worth };
        vec![
            Meter { name: "epsilon", spent, budget: limit },
            Meter { name: "clock", spent: self.share(paid), budget: Amount::ONE },
        ]
    }

    fn promise(&self, delta: Delta) -> Epsilon {
        let at_budget = self.budget.epsilon().get().max(self.budget.limit().to_f64_up());
        let epsilon = if delta >= self.budget.delta() {
            at_budget
        } else {
            // Every δ is bounded by the clock and what the mixture has, and what is within pure ε has no loss above it.
            let spare = self.spare(delta);
            let worth = |spare: Delta| self.reference.worth(&self.reference.full(), spare.get());
            spare.map_or(f64::INFINITY, |spare| worth(spare).max(at_budget))
        };
        Epsilon::from_upper_bound(epsilon)
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn prior(&self) -> Prior {
        self.prior.clone()
    }
}

impl Kind for Clock {
    const TAKES: &'static [&'static str] = &["slack", "plan", "reserve"];
    type Stored = StoredClock;

    fn from_words(words: &FilterWords) -> Result<Self, FilterError> {
        let budget = words.budget(|_| Amount::ZERO)?;
        let Some(plan) = &words.plan else { return Ok(Self::new(budget)?) };
        let plan: Vec<(Cost, u64)> =
            plan.release_costs()?.into_iter().map(|(cost, count)| (cost, count.get())).collect();
        let reserve = words.reserve.as_ref().map_or(Ok(0.0), |reserve| reserve.nearest("reserve"))?;
        Ok(Self::for_plan(budget, &plan, reserve)?)
    }

    fn changed(&self, words: &FilterWords) -> Result<Self, FilterError> {
        // Levels, rates and plan stay, and with them every price: only how much noise there is is new.
        let budget = words.changed_budget(self.slack())?;
        let terms = self.reference.terms();
        let with = |noise: Amount| {
            let reference = self.reference.with(Terms { noise, ..terms.clone() })?;
            Self::with(budget, reference, self.prior.clone())
        };
        let most = gaussian_clock(budget.epsilon(), of_clock(budget));
        let some = |part: u64| terms.base.max(Amount::UNIT).plus(most.shared_by(1 << 30).times(part));
        let part = last_true(0, 1 << 30, |part| with(some(part)).is_ok());
        let part = part.ok_or_else(|| {
            let allowed = "enough for the plan that the clock starts with";
            OutOfDomain::new("epsilon and delta", words.promise(), allowed)
        })?;
        Ok(with(some(part))?)
    }

    fn to_stored(&self) -> StoredClock {
        let terms = self.reference.terms();
        let (orders, weights) = stored_prior(&self.prior);
        let step =
            |(single, count): (Single, u64)| StoredStep { count, mechanism: (&Mechanism::Single(single)).into() };
        StoredClock {
            budget: (&self.budget).into(),
            clock: terms.noise.into(),
            levels: terms.noise_levels.iter().map(|&level| level.into()).collect(),
            rate: terms.rate,
            plan: (!terms.step_levels.is_empty()).then(|| StoredPlan {
                steps: self.reference.steps().into_iter().map(step).collect(),
                base: terms.base.into(),
                levels: terms.step_levels.clone(),
                has_reserve: terms.has_reserve,
                rate: terms.step_rate,
                negligible: terms.negligible,
            }),
            orders,
            weights,
        }
    }

    fn from_stored(stored: &StoredClock) -> Result<Self, LoadError> {
        let levels = stored.levels.iter().map(|level| level.amount("levels")).collect::<Result<Vec<_>, _>>()?;
        let mut terms = Terms { noise_levels: levels, ..Terms::noise(stored.clock.amount("clock")?, stored.rate) };
        let mut steps = Vec::new();
        if let Some(plan) = &stored.plan {
            terms.base = plan.base.amount("base")?;
            (terms.step_levels, terms.step_rate, terms.negligible) = (plan.levels.clone(), plan.rate, plan.negligible);
            terms.has_reserve = plan.has_reserve;
            for step in &plan.steps {
                let mechanism = Mechanism::try_from(&step.mechanism)?;
                let Mechanism::Single(single) = mechanism else {
                    return Err(OutOfDomain::new("steps", "a mechanism of several", "single mechanisms").into());
                };
                steps.push((single, step.count));
            }
        }
        let reference = Reference::new(steps, terms)?;
        Ok(Self::with((&stored.budget).try_into()?, reference, prior_of(&stored.orders, &stored.weights)?)?)
    }
}

/// A clock as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredClock {
    /// ε and δ.
    pub budget: StoredBudget,
    /// The noise on it at first, as μ².
    pub clock: Decimal,
    /// How much noise is left where prices are asked for, falling to 0.
    pub levels: Vec<Decimal>,
    /// How much of δ goes with a payment of 1 in noise.
    pub rate: f64,
    /// The steps beside the noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<StoredPlan>,
    /// Orders of the odometer beside it, strictly increasing, the last `"inf"`.
    pub orders: Vec<Number>,
    /// One for each finite order.
    pub weights: Vec<Decimal>,
}

/// The plan of a clock as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredPlan {
    /// In the order in which they will probably be taken.
    pub steps: Vec<StoredStep>,
    /// Below so much noise the plan pays for nothing but itself.
    pub base: Decimal,
    /// How many steps are left where prices are asked for, falling to 0.
    pub levels: Vec<u64>,
    /// Whether prices in noise are asked for there, too.
    pub has_reserve: bool,
    /// How much of δ goes with a payment in steps, for each unit of the second moment of their loss.
    pub rate: f64,
    /// How much of a step's loss may count as infinite.
    pub negligible: f64,
}

/// A kind of step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredStep {
    /// How many.
    pub count: u64,
    /// Of what.
    pub mechanism: wire::Mechanism,
}
