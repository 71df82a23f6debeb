//! What a cost comes to, by every method that applies, side by side.
//!
//! The least ε (or δ) over Rényi orders is found in two steps: over stored orders, then between the neighbors of the
//! best one where the curve has a closed form. Every order is sound, so the search may be sloppy; the bound at the order
//! found is rounded up.

use crate::compose::{self, Drift};
use crate::convert::{Conversion, gaussian, zcdp};
use crate::cost::Cost;
use crate::curve::{Orders, RenyiCurve};
use crate::estimate;
use crate::guarantee::{Basis, Guarantee};
use crate::loss::Pair;
use crate::mechanism::Single;
use crate::params::{Count, Delta, Divergence, Epsilon, Neighbors, NoiseMultiplier, Order, SamplingProbability};
use paygo_numeric::elementary::{exp, ln};
use paygo_numeric::search::minimize_over_grid;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// The least ε at this δ.
    EpsilonAt(Delta),
    /// The least δ at this ε.
    DeltaAt(Epsilon),
}

/// One method's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The method's name.
    pub method: &'static str,
    /// ε, an upper bound unless the basis says otherwise.
    pub epsilon: Epsilon,
    /// δ, likewise.
    pub delta: Delta,
    /// The Rényi order used, where there is one.
    pub order: Option<Order>,
    /// The adaptivity under which it holds.
    pub basis: Basis,
}

impl Row {
    /// The promise that the row makes, to whom and under what relation.
    #[must_use]
    pub fn guarantee(&self, neighbors: Neighbors, privacy_unit: &str) -> Guarantee {
        let (epsilon, delta, basis) = (self.epsilon, self.delta, self.basis);
        Guarantee { epsilon, delta, neighbors, privacy_unit: privacy_unit.to_owned(), basis }
    }
}

/// The best of the rows that are proved: the least ε, or at equal ε the least δ.
#[must_use]
pub fn best_proved(rows: &[Row]) -> Option<&Row> {
    let proved = rows.iter().filter(|row| match row.basis {
        Basis::FullyAdaptive | Basis::FixedInAdvance => true,
        Basis::Estimate | Basis::Lower => false,
    });
    proved.reduce(|best, row| if (row.epsilon, row.delta) < (best.epsilon, best.delta) { row } else { best })
}

/// Every method that applies to a cost, from the simplest to the tightest, estimates last.
#[must_use]
pub fn rows(cost: &Cost, question: Question) -> Vec<Row> {
    let mut rows = Vec::new();
    composition_rows(cost, question, &mut rows);
    zcdp_rows(cost, question, &Conversion::ALL, &mut rows);
    gdp_row(cost, question, &mut rows);
    renyi_rows(cost, question, &Conversion::ALL, &mut rows);
    sampled_row(cost, question, &mut rows);
    estimate_rows(cost, question, &mut rows);
    rows
}

/// The tightest proved price of a plan: the least ε at this δ over the same methods as [`rows`], of the conversions only the tightest.
#[must_use]
pub fn tightest(cost: &Cost, delta: Delta) -> Row {
    let question = Question::EpsilonAt(delta);
    let mut rows = Vec::new();
    gdp_row(cost, question, &mut rows);
    if !is_gaussian(cost) {
        composition_rows(cost, question, &mut rows);
        zcdp_rows(cost, question, &[Conversion::Exact], &mut rows);
        renyi_rows(cost, question, &[Conversion::Exact], &mut rows);
        sampled_row(cost, question, &mut rows);
    }
    best_proved(&rows).cloned().unwrap_or(Row {
        method: "none",
        epsilon: Epsilon::INFINITE,
        delta,
        order: None,
        basis: Basis::FixedInAdvance,
    })
}

/// A small δ at each ε of a cost known by a ρ or a curve: for ρ at the order that a closed form likes best, for a curve at its own orders.
pub(crate) fn known_profile(cost: &Cost) -> impl Fn(Epsilon) -> Delta {
    let rho = cost.rho();
    let mut own = cost.stored_orders();
    own.sort_by(|a, b| a.get().total_cmp(&b.get()));
    let own = Orders::new(own).ok().filter(|own| own.as_slice().len() > 1);
    let curve = cost.curve(&own.unwrap_or_else(Orders::standard));
    move |epsilon| {
        let Some(rho) = rho else {
            let (delta, order) = least_delta(&curve, Conversion::Cks, epsilon);
            let at = |order| curve.points().find(|point| point.0 == order).map(|point| point.1);
            let exact =
                order.and_then(at).zip(order).map(|(value, order)| Conversion::Exact.delta(order, value, epsilon));
            return exact.filter(|exact| *exact < delta).unwrap_or(delta);
        };
        let (delta, order) = zcdp::delta(Conversion::Cks, rho, epsilon);
        let exact = order.map(|order| Conversion::Exact.delta(order, zcdp::at_order(rho, order), epsilon));
        exact.filter(|exact| *exact < delta).unwrap_or(delta)
    }
}

/// Whether it is Gaussian noise alone, of which GDP is the exact price.
fn is_gaussian(cost: &Cost) -> bool {
    let of = |single: &Single| matches!(single, Single::Gaussian(_) | Single::Gdp(_));
    cost.singles().is_some_and(|singles| singles.iter().all(|(single, _)| of(single)))
}

/// The least ε at δ over the stored orders of a curve, by one conversion, and the order that gives it.
///
/// Fixed in advance only: the best order is chosen after the fact (E4).
#[must_use]
pub fn least_epsilon(curve: &RenyiCurve, conversion: Conversion, delta: Delta) -> (Epsilon, Option<Order>) {
    let mut candidates: Vec<(f64, Order, Divergence)> = curve
        .points()
        .filter(|&(_, value)| value < Divergence::INFINITE)
        .map(|(order, value)| {
            let floor = conversion.epsilon_floor(order, value.get(), delta);
            (if floor.is_nan() { 0.0 } else { floor }, order, value)
        })
        .collect();
    candidates.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut best = (Epsilon::INFINITE, None);
    for (floor, order, value) in candidates {
        if floor * (1.0 - 1e-9) - 1e-12 > best.0.get() {
            break;
        }
        let epsilon = conversion.epsilon(order, value, delta);
        if epsilon < best.0 || best.1.is_none() {
            best = (epsilon, Some(order));
        }
    }
    best
}

/// The least δ at ε over the stored orders of a curve, by one conversion, and the order that gives it.
#[must_use]
pub fn least_delta(curve: &RenyiCurve, conversion: Conversion, epsilon: Epsilon) -> (Delta, Option<Order>) {
    let mut best = (Delta::ONE, None);
    for (order, value) in curve.points() {
        let delta = conversion.delta(order, value, epsilon);
        if delta < best.0 {
            best = (delta, Some(order));
        }
    }
    best
}

/// A cost with its curve on the standard orders.
struct Priced<'a> {
    cost: &'a Cost,
    curve: RenyiCurve,
    slack: Delta,
}

impl<'a> Priced<'a> {
    fn new(cost: &'a Cost) -> Self {
        Self { cost, curve: cost.curve(&Orders::standard().with(cost.stored_orders())), slack: cost.slack() }
    }

    /// One conversion's row. `hint` is an order at which a looser conversion did well: it keeps the rows in order.
    fn row(&self, conversion: Conversion, question: Question, hint: Option<Order>) -> Row {
        let method = conversion.renyi_row();
        let basis = Basis::FixedInAdvance;
        match question {
            Question::EpsilonAt(delta) => {
                let (epsilon, order) = match after_slack(delta, self.slack) {
                    Some(rest) => self.epsilon(conversion, rest, hint),
                    None => (Epsilon::INFINITE, None),
                };
                Row { method, epsilon, delta, order, basis }
            }
            Question::DeltaAt(epsilon) => {
                let (delta, order) = self.delta(conversion, epsilon, hint);
                Row { method, epsilon, delta: delta + self.slack, order, basis }
            }
        }
    }

    fn epsilon(&self, conversion: Conversion, delta: Delta, hint: Option<Order>) -> (Epsilon, Option<Order>) {
        let stored = least_epsilon(&self.curve, conversion, delta);
        let near = |order: Order| conversion.epsilon_near(order, self.cost.renyi(order).get(), delta);
        [self.refine(stored.1, near), hint].into_iter().flatten().fold(stored, |best, order| {
            let bound = conversion.epsilon(order, self.cost.renyi(order), delta);
            if bound < best.0 { (bound, Some(order)) } else { best }
        })
    }

    fn delta(&self, conversion: Conversion, epsilon: Epsilon, hint: Option<Order>) -> (Delta, Option<Order>) {
        let stored = least_delta(&self.curve, conversion, epsilon);
        let near = |order: Order| conversion.log_delta_near(order, self.cost.renyi(order).get(), epsilon);
        [self.refine(stored.1, near), hint].into_iter().flatten().fold(stored, |best, order| {
            let bound = conversion.delta(order, self.cost.renyi(order), epsilon);
            if bound < best.0 { (bound, Some(order)) } else { best }
        })
    }

    /// A better order between the neighbors of the best stored one, where the curve has a closed form.
    fn refine(&self, stored: Option<Order>, near: impl Fn(Order) -> f64) -> Option<Order> {
        if !self.cost.is_smooth() {
            return None;
        }
        let orders = self.curve.orders().as_slice();
        let at = stored.map_or(0, |best| orders.partition_point(|&order| order < best));
        let low = if at == 0 || stored.is_none() { 1e-6 } else { orders[at - 1].get() - 1.0 };
        let high = orders.get(at + 1).map_or(1e6, |order| (order.get() - 1.0).min(1e6));
        if low >= high {
            return None; // The best order is infinite: a pure guarantee.
        }
        let at_log = |x: f64| Order::new(1.0 + exp(x)).expect("above 1");
        // ε is flat around its minimum: an order good to 10⁻⁵ gives ε to 10⁻¹⁰. Below the smallest stored order there is a long
        // way to 1, with more than one valley.
        Some(at_log(minimize_over_grid(ln(low), ln(high), 1.5, 1e-5, |x| near(at_log(x)))))
    }
}

/// What is left of δ for the conversion once the slack is taken off, rounded down; `None` when nothing is.
fn after_slack(delta: Delta, slack: Delta) -> Option<Delta> {
    delta.less(slack.get()).filter(|rest| slack == Delta::ZERO || *rest > Delta::ZERO)
}

fn renyi_rows(cost: &Cost, question: Question, conversions: &[Conversion], rows: &mut Vec<Row>) {
    let priced = Priced::new(cost);
    let mut hint = None;
    for &conversion in conversions {
        let row = priced.row(conversion, question, hint);
        hint = row.order;
        rows.push(row);
    }
}

fn zcdp_rows(cost: &Cost, question: Question, conversions: &[Conversion], rows: &mut Vec<Row>) {
    let Some(rho) = cost.rho() else { return };
    let slack = cost.slack();
    let basis = Basis::FullyAdaptive;
    for &conversion in conversions {
        let Some(method) = conversion.zcdp_row() else { continue };
        rows.push(match question {
            Question::EpsilonAt(delta) => {
                let (epsilon, order) = match after_slack(delta, slack) {
                    Some(rest) => zcdp::epsilon(conversion, rho, rest),
                    None => (Epsilon::INFINITE, None),
                };
                Row { method, epsilon, delta, order, basis }
            }
            Question::DeltaAt(epsilon) => {
                let (delta, order) = zcdp::delta(conversion, rho, epsilon);
                Row { method, epsilon, delta: delta + slack, order, basis }
            }
        });
    }
}

fn gdp_row(cost: &Cost, question: Question, rows: &mut Vec<Row>) {
    let Some(mu) = cost.mu() else { return };
    let (epsilon, delta) = match question {
        Question::EpsilonAt(delta) => (gaussian::epsilon(mu, delta), delta),
        Question::DeltaAt(epsilon) => (epsilon, gaussian::delta(mu, epsilon)),
    };
    rows.push(Row { method: "gdp-exact", epsilon, delta, order: None, basis: Basis::FullyAdaptive });
}

/// The exact price of one step on a sample: Poisson's (T31), or a batch of fixed size, whose profile has the same form (T43).
fn sampled_row(cost: &Cost, question: Question, rows: &mut Vec<Row>) {
    let Some(&[(single, Count::ONE)]) = cost.singles().as_deref() else { return };
    let Some(Pair::Sampled { q, s } | Pair::Replaced { q, s }) = single.family().pair() else { return };
    let (Ok(q), Ok(s)) = (SamplingProbability::new(q), NoiseMultiplier::new(s)) else { return };
    if q.get() >= 1.0 {
        return; // No sampling: the Gaussian row says the same.
    }
    let (epsilon, delta) = match question {
        Question::EpsilonAt(delta) => (gaussian::sampled_epsilon(q, s, delta), delta),
        Question::DeltaAt(epsilon) => (epsilon, gaussian::sampled_delta(q, s, epsilon).removed),
    };
    rows.push(Row { method: "sampled-exact", epsilon, delta, order: None, basis: Basis::FixedInAdvance });
}

fn composition_rows(cost: &Cost, question: Question, rows: &mut Vec<Row>) {
    let Some(steps) = cost.approximate_steps() else { return };
    let (sum, sum_delta) = compose::basic(&steps);
    match question {
        Question::EpsilonAt(delta) => {
            let epsilon = if sum_delta <= delta { sum } else { Epsilon::INFINITE };
            rows.push(Row { method: "basic", epsilon, delta, order: None, basis: Basis::FullyAdaptive });
            for (method, drift) in [("advanced-drv", Drift::Drv), ("advanced-tanh", Drift::Tanh)] {
                let epsilon = match after_slack(delta, sum_delta) {
                    Some(slack) if slack > Delta::ZERO => compose::advanced(&steps, drift, slack).0,
                    Some(_) | None => Epsilon::INFINITE,
                };
                rows.push(Row { method, epsilon, delta, order: None, basis: Basis::FixedInAdvance });
            }
            if let Some(epsilon) = compose::optimal_epsilon(&steps, delta) {
                let basis = Basis::FixedInAdvance;
                rows.push(Row { method: "optimal", epsilon, delta, order: None, basis });
            }
        }
        Question::DeltaAt(epsilon) => {
            let delta = if sum <= epsilon { sum_delta } else { Delta::ONE };
            rows.push(Row { method: "basic", epsilon, delta, order: None, basis: Basis::FullyAdaptive });
            if let Some(delta) = compose::optimal(&steps, epsilon) {
                let basis = Basis::FixedInAdvance;
                rows.push(Row { method: "optimal", epsilon, delta, order: None, basis });
            }
        }
    }
}

/// \[Y\]'s and \[A\]'s estimates, for plans of one Poisson-sampled Gaussian, so that their readers find them, marked.
fn estimate_rows(cost: &Cost, question: Question, rows: &mut Vec<Row>) {
    let Question::EpsilonAt(delta) = question else { return };
    let Some(&[(Single::PoissonSampledGaussian(sampled), count)]) = cost.singles().as_deref() else { return };
    let (q, s) = (sampled.sampling_probability, sampled.noise_multiplier);
    if q.get() >= 1.0 || delta == Delta::ZERO {
        return;
    }
    let basis = Basis::Estimate;
    if let Some(estimate) = estimate::yu_epsilon(q, s, count, delta) {
        rows.push(Row { method: "estimate-yu", epsilon: estimate.for_display(), delta, order: None, basis });
    }
    let estimate = estimate::abadi_epsilon(q, s, count, delta);
    rows.push(Row { method: "estimate-asoodeh-fig3", epsilon: estimate.for_display(), delta, order: None, basis });
}
