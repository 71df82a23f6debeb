//! Weights over orders, frozen in advance, and the mixture of supermartingales they make.
//!
//! # Theorem
//! For each order α fixed in advance, `M(α) = exp((α−1)(L − S(α)))` is a supermartingale of mean at most 1, where `L` is the
//! privacy loss so far and `S(α)` the sum of the Rényi divergences (Lemma 0). So is `Σ_α w_α·M(α)` for weights that sum to at
//! most 1 (C3). Writing `h(x) = δ·Σ_α w_α·e^{(α−1)(x−S(α))}`, which rises and is convex:
//!
//! - *Tail* (Ville's inequality, T18c): `P(the loss ever reaches U) ≤ δ` where `h(U) = 1`.
//! - *Hockey stick* (T16c): stopping wherever one likes is (ε, δ)-DP for `ε = sup_{x<U} x + ln(1 − h(x))`. For
//!   `(1 − e^{ε−x})₊ ≤ h(x)` at every `x` says exactly this, and the mean of `h(L)` is at most δ. The supremum is of a
//!   concave function.
//!
//! Order ∞ needs no weight: the loss never passes `S(∞)`, so where that is at most ε nothing else need hold.

use crate::account::{Question, rows};
use crate::cost::Cost;
use crate::curve::Orders;
use crate::params::{Delta, Epsilon, Order, OutOfDomain};
use paygo_numeric::elementary::{exp, ln, ln_1p};
use paygo_numeric::rounding::mul_down;
use paygo_numeric::search::{certified, root};
use paygo_numeric::{Amount, Interval};

/// Orders and their weights.
///
/// ```
/// use paygo_accounting::{curve::Orders, prior::Prior};
/// let prior = Prior::uniform(Orders::from_f64(&[2.0, 4.0, 8.0])?)?;
/// assert_eq!(prior.orders().as_slice().len(), 3);
/// # Ok::<(), paygo_accounting::params::OutOfDomain>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// All of them; ∞, if there, is last.
    orders: Orders,
    /// One for each finite order.
    weights: Vec<Amount>,
}

impl Prior {
    /// The share that [`Prior::around`] puts on one order.
    const SHARE: &str = "0.9";

    /// Weights as given, one for each finite order; ∞ may be among the orders and takes none.
    ///
    /// # Errors
    /// [`OutOfDomain`] when no order is finite, their number differs, one is zero, or they sum to more than 1.
    pub fn new(orders: Orders, weights: Vec<Amount>) -> Result<Self, OutOfDomain> {
        let finite = finite(&orders);
        if finite == 0 {
            return Err(OutOfDomain::new("orders", "[inf]", "at least one finite order"));
        }
        if weights.len() != finite {
            let given = format!("{} for {finite} finite orders", weights.len());
            return Err(OutOfDomain::new("number of weights", given, "one weight for each finite order"));
        }
        if weights.contains(&Amount::ZERO) {
            return Err(OutOfDomain::new("weights", 0, "0 < weight"));
        }
        let sum = weights.iter().fold(Amount::ZERO, |sum, weight| sum.plus(*weight));
        if sum > Amount::ONE {
            return Err(OutOfDomain::new("sum of weights", sum, "at most 1"));
        }
        Ok(Self { orders, weights })
    }

    /// The same weight for every finite order.
    ///
    /// # Errors
    /// [`OutOfDomain`] when no order is finite.
    pub fn uniform(orders: Orders) -> Result<Self, OutOfDomain> {
        let weights = shared(Amount::ONE, finite(&orders));
        Self::new(orders, weights)
    }

    /// Nine tenths on one order, which joins the others if it is not among them, and the rest shared evenly: what suits
    /// that order costs almost nothing extra, and what does not is still sound.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the order is ∞ and no other is finite.
    pub fn around(order: Order, orders: Orders) -> Result<Self, OutOfDomain> {
        let orders = orders.with([order]);
        let share = Amount::from_decimal_down(Self::SHARE).expect("a decimal");
        let mut weights = shared(Amount::ONE.minus(share), finite(&orders));
        let at = orders.as_slice().iter().position(|&each| each == order);
        if let Some(weight) = at.and_then(|at| weights.get_mut(at)) {
            *weight = weight.plus(share);
        }
        Self::new(orders, weights)
    }

    /// The orders that suit a budget: a grid around `1 + 2·ln(1/δ)/ε`, where Gaussian noise that uses the budget up is
    /// converted best, in steps of √2 to sixteen times nearer and farther from 1, each weighing half as much as the one
    /// before it; and ∞. Depends on ε and δ alone, hence fixed in advance.
    #[must_use]
    pub fn for_budget(epsilon: Epsilon, delta: Delta) -> Self {
        const REACH: i32 = 8;
        let center = (-2.0 * ln(delta.get()) / epsilon.get()).clamp(0.05, 1e6);
        let orders = (-REACH..=REACH).map(|k| {
            let even = 2f64.powi(k.div_euclid(2));
            1.0 + center * if k.rem_euclid(2) == 1 { even * 1.414_062_5 } else { even }
        });
        // A third for the center: 1/3·(1 + 2·(1/2 + 1/4 + …)) is at most 1.
        let weight = |k: i32| Amount::ONE.shared_by(3).shared_by(1 << k.abs());
        let orders = Orders::from_f64(&orders.chain([f64::INFINITY]).collect::<Vec<_>>());
        let prior = orders.and_then(|orders| Self::new(orders, (-REACH..=REACH).map(weight).collect()));
        prior.unwrap_or_else(|_| Self::log_spaced())
    }

    /// Its finite orders.
    #[must_use]
    pub fn finite_orders(&self) -> Orders {
        Orders::new(self.orders.as_slice()[..self.weights.len()].to_vec()).unwrap_or_else(|_| self.orders.clone())
    }

    /// The orders that suit most work when nothing is known in advance: about `1 + 2^{k/2}` from 1.5 to 1025, evenly
    /// weighted, and ∞.
    #[must_use]
    pub fn log_spaced() -> Self {
        let orders: Vec<f64> = (-2i32..=20)
            .map(|k| {
                let even = 2f64.powi(k.div_euclid(2));
                1.0 + if k.rem_euclid(2) == 1 { even * 1.414_062_5 } else { even }
            })
            .chain([f64::INFINITY])
            .collect();
        Orders::from_f64(&orders).and_then(Self::uniform).expect("finite orders above 1")
    }

    /// [`Prior::around`] the order at which a plan is priced best at δ, over [`Prior::log_spaced`] orders.
    #[must_use]
    pub fn for_plan(plan: &Cost, delta: Delta) -> Self {
        let rows = rows(plan, Question::EpsilonAt(delta));
        let best = rows.iter().find(|row| row.method == "renyi-exact").and_then(|row| row.order);
        let even = Self::log_spaced();
        match best.filter(|order| order.get() < f64::INFINITY) {
            Some(order) => Self::around(order, even.orders.clone()).unwrap_or(even),
            None => even,
        }
    }

    /// The orders: the lanes in which sums are kept.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The weight of each finite order.
    #[must_use]
    pub fn weights(&self) -> &[Amount] {
        &self.weights
    }

    /// `w_α·δ` of one order, rounded down.
    #[must_use]
    pub(crate) fn share(&self, index: usize, delta: Delta) -> Delta {
        let share = mul_down(self.weights[index].to_f64_down(), delta.get());
        Delta::new(share.max(0.0)).unwrap_or(Delta::ZERO)
    }

    /// The sum at order ∞, if it is kept: an upper bound on the loss itself.
    pub(crate) fn pure_sum(&self, lanes: &[Amount]) -> Amount {
        lanes.get(self.weights.len()).copied().unwrap_or(Amount::INFINITE)
    }
}

/// How many orders are finite.
fn finite(orders: &Orders) -> usize {
    orders.as_slice().iter().filter(|order| order.get() < f64::INFINITY).count()
}

/// A total shared evenly; the shares sum to at most the total.
fn shared(total: Amount, n: usize) -> Vec<Amount> {
    vec![total.shared_by(u64::try_from(n).unwrap_or(u64::MAX)); n]
}

/// The function `h` of a prior at one δ; see the head of this file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mixed {
    /// The lane of each order that takes part, and α − 1 and `ln(w_α·δ)`, enclosed.
    terms: Vec<(usize, Interval, Interval)>,
}

/// One order that is still finite: α − 1, `ln(w_α·δ)`, and its sum, rounded up.
struct Term {
    slope: Interval,
    offset: Interval,
    sum: f64,
}

impl Term {
    /// Its part of h(x), enclosed.
    fn at(&self, x: f64) -> Interval {
        (self.slope * (Interval::point(x) - self.sum) + self.offset).exp()
    }
}

impl Mixed {
    /// Of the finite orders for which `takes_part` says so.
    pub(crate) fn new(prior: &Prior, delta: Delta, takes_part: impl Fn(usize) -> bool) -> Self {
        let log_delta = Interval::point(delta.get()).ln();
        let terms = prior.orders.as_slice().iter().zip(&prior.weights).enumerate();
        let terms = terms.filter(|(lane, _)| takes_part(*lane)).map(|(lane, (order, weight))| {
            // ROUNDING: a weight and δ may be taken smaller; their doubles are rounded down.
            let offset = Interval::point(weight.to_f64_down()).ln() + log_delta;
            (lane, Interval::point(order.get()) - 1.0, offset)
        });
        Self { terms: terms.collect() }
    }

    /// The least ε for which stopping here is (ε, δ)-DP, rounded up; +∞ when no order is left.
    ///
    /// `lanes` holds one sum for each order of the prior; that at ∞ is not looked at.
    ///
    /// # Theorem
    /// `f(x) = x + ln(1 − h(x))` is concave and `f′ = 1 − h′/(1 − h)`, so its maximum is where `h + h′ = Σ (1 + s)·h_s = 1`, with
    /// `h_s` the term of slope `s`. The sum rises, and there is one such place. At *any* `v`, with the mean slope
    /// `m = h′(v)/h(v)`, `ln h` lies above its tangent (it is convex), so `h(x) ≥ h(v)·e^{m(x−v)}`, and of a single exponential
    /// the supremum is known: `f(x) ≤ v − ln((1+m)·h(v))/m + ln(m/(1+m))` for every `x`. At the maximum this is `f` itself, and
    /// near it larger only by the square of the distance.
    ///
    /// # Soundness
    /// The place may be off: the bound holds at every `v`, and is evaluated in intervals.
    pub(crate) fn least_epsilon(&self, lanes: &[Amount]) -> f64 {
        let terms = self.finite(lanes);
        let weighted = |t: &Term| t.offset.middle() + ln_1p(t.slope.middle());
        let Some(best) = crossing(&terms, weighted) else { return f64::INFINITY };
        let (mut sum, mut slopes) = (Interval::ZERO, Interval::ZERO);
        for term in &terms {
            let value = term.at(best);
            (sum, slopes) = (sum + value, slopes + value * term.slope);
        }
        let mean = slopes / sum;
        // ROUNDING: up, by intervals; ln(m/(1+m)) = −ln1p(1/m).
        let bound = Interval::point(best) - ((mean + 1.0) * sum).ln() / mean - (Interval::ONE / mean).ln_1p();
        if bound.hi().is_nan() { f64::INFINITY } else { bound.hi() }
    }

    /// The least `x` with `h(x) ≥ 1`, rounded up; +∞ when no order is left.
    pub(crate) fn tail(&self, lanes: &[Amount]) -> f64 {
        let terms = self.finite(lanes);
        let near = crossing(&terms, |t| t.offset.middle());
        near.map_or(f64::INFINITY, |near| certified_end(&terms, near))
    }

    fn finite(&self, lanes: &[Amount]) -> Vec<Term> {
        let terms = self.terms.iter().filter(|(lane, _, _)| !lanes[*lane].is_infinite());
        // ROUNDING: sums up; h falls as they rise.
        terms.map(|&(lane, slope, offset)| Term { slope, offset, sum: lanes[lane].to_f64_up() }).collect()
    }
}

/// About the `x` at which the exponentials `e^{offset + slope·(x − sum)}` sum to 1, each with an offset of one's choice; `None`
/// when there is none.
fn crossing(terms: &[Term], offset: impl Fn(&Term) -> f64) -> Option<f64> {
    // Each term alone reaches 1 at `sum − offset/slope`; together they do so no later than the first, and not before one
    // of them has reached 1/n. In between no term is above 1.
    let alone = |t: &Term, extra: f64| t.sum - (offset(t) + extra) / t.slope.middle();
    let hi = terms.iter().map(|t| alone(t, 0.0)).reduce(f64::min)?;
    #[expect(clippy::cast_precision_loss, reason = "a handful of orders")]
    let n = terms.len() as f64;
    let lo = terms.iter().map(|t| alone(t, ln(n))).fold(hi, f64::min);
    let value = |x: f64| terms.iter().map(|t| exp(offset(t) + t.slope.middle() * (x - t.sum))).sum::<f64>();
    Some(root(lo, hi, |x| ln(value(x))))
}

/// A place at or just above the root of h = 1 where h was seen to be at least 1.
fn certified_end(terms: &[Term], near: f64) -> f64 {
    let reached = |x: f64| terms.iter().fold(Interval::ZERO, |sum, t| sum + t.at(x)).lo() >= 1.0;
    certified(near, near.abs().max(1e-3), f64::INFINITY, reached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_numeric::elementary::exp_m1;
    use proptest::prelude::*;

    /// What one order alone gives: CKS's conversion (T10).
    fn cks(order: f64, sum: f64, delta: f64) -> f64 {
        let zeta = -ln(order) + (order - 1.0) * ln_1p(-1.0 / order);
        sum + (zeta - ln(delta)) / (order - 1.0)
    }

    fn amounts(sums: &[f64]) -> Vec<Amount> {
        sums.iter().map(|&sum| Amount::from_f64_up(sum)).collect()
    }

    proptest! {
        #[test]
        fn one_order_is_cks(order in 1.01f64..500.0, sum in 0.0f64..20.0, log in -30.0f64..-1.0) {
            let delta = exp(log);
            let prior = Prior::uniform(Orders::from_f64(&[order]).expect("an order")).expect("a prior");
            let ours = Mixed::new(&prior, Delta::new(delta).expect("a delta"), |_| true).least_epsilon(&amounts(&[sum]));
            let truth = cks(order, sum, delta);
            prop_assert!((ours - truth).abs() <= 1e-11 * truth.abs().max(1.0), "{ours} {truth}");
        }

        /// The pointwise inequality behind T16c, on a grid of losses, and that a little less ε breaks it.
        #[test]
        fn the_supremum_is_the_least_epsilon(sums in proptest::collection::vec(0.0f64..8.0, 4), log in -30.0f64..-1.0) {
            let orders = [1.5, 3.0, 9.0, 40.0];
            let mut sums = sums;
            sums.sort_by(f64::total_cmp);
            let prior = Prior::uniform(Orders::from_f64(&orders).expect("orders")).expect("a prior");
            let delta = exp(log);
            let mixed = Mixed::new(&prior, Delta::new(delta).expect("a delta"), |_| true);
            let lanes = amounts(&sums);
            let (epsilon, tail) = (mixed.least_epsilon(&lanes), mixed.tail(&lanes));
            prop_assert!(epsilon <= tail);
            let h = |x: f64| delta * orders.iter().zip(&sums).map(|(a, s)| 0.25 * exp((a - 1.0) * (x - s))).sum::<f64>();
            prop_assert!((h(tail) - 1.0).abs() < 1e-9);
            let (mut holds, mut tight) = (true, false);
            for i in 1..4000 {
                let x = epsilon + 1e-3 * f64::from(i) * (tail - epsilon + 1e-9) * 1.5;
                holds &= -exp_m1(epsilon - x) <= h(x) * (1.0 + 1e-9) + 1e-300;
                let less = epsilon - 1e-4;
                tight |= -exp_m1(less - x) > h(x);
            }
            prop_assert!(holds && tight, "{epsilon} {tail}");
        }
    }

    #[test]
    fn weights_are_checked() {
        let orders = Orders::from_f64(&[2.0, 4.0]).expect("orders");
        let w = |text: &str| Amount::from_decimal_up(text).expect("an amount");
        assert!(Prior::new(orders.clone(), vec![w("0.5"), w("0.5")]).is_ok());
        let error = Prior::new(orders.clone(), vec![w("0.5"), w("0.500000000000000001")]).expect_err("too much");
        assert_eq!(
            error.to_string(),
            "sum of weights = 1.000000000000000001 is outside its domain; expected at most 1"
        );
        assert!(Prior::new(orders.clone(), vec![w("1")]).is_err());
        assert!(Prior::new(orders, vec![w("1"), w("0")]).is_err());
        let free = Prior::uniform(Orders::from_f64(&[2.0, f64::INFINITY]).expect("orders")).expect("a prior");
        assert_eq!(free.weights(), [Amount::ONE]);
        assert!(Prior::uniform(Orders::from_f64(&[f64::INFINITY]).expect("orders")).is_err());
        for n in 1..40u32 {
            let many = Orders::from_f64(&(0..n).map(|k| 2.0 + f64::from(k)).collect::<Vec<_>>()).expect("orders");
            let prior = Prior::uniform(many.clone()).expect("a prior");
            let sum = prior.weights.iter().fold(Amount::ZERO, |sum, w| sum.plus(*w));
            assert!(sum <= Amount::ONE && sum >= Amount::from_decimal_up("0.999999999999").expect("an amount"));
            assert!(Prior::around(Order::new(7.25).expect("an order"), many).is_ok());
        }
        assert_eq!(Prior::log_spaced().orders().as_slice().len(), 24);
        for (e, d) in [(1.0, 1e-5), (1e-9, 1e-300), (1e9, 0.5), (0.0, 1e-5)] {
            let prior = Prior::for_budget(Epsilon::new(e).expect("ε"), Delta::new(d).expect("δ"));
            let sum = prior.weights.iter().fold(Amount::ZERO, |sum, w| sum.plus(*w));
            assert!(sum <= Amount::ONE && prior.orders().as_slice().len() == 18, "{e} {d}");
        }
    }

    #[test]
    fn no_order_left_promises_nothing() {
        let prior = Prior::uniform(Orders::from_f64(&[2.0]).expect("an order")).expect("a prior");
        let mixed = Mixed::new(&prior, Delta::new(1e-5).expect("a delta"), |_| true);
        assert_eq!(mixed.least_epsilon(&[Amount::INFINITE]), f64::INFINITY);
        assert_eq!(mixed.tail(&[Amount::INFINITE]), f64::INFINITY);
    }
}
