//! Golden decisions of filters.

use super::{Check, texts};
use paygo_accounting::convert::{Conversion, zcdp};
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::Orders;
use paygo_accounting::filter::{Budget, Filter, Gdp, Mixture, Rule, Union, Zcdp};
use paygo_accounting::mechanism::{self, Approximate, Gaussian, Mechanism, RandomizedResponse, Single};
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::{Delta, Divergence, Epsilon, Mu, Neighbors, NoiseMultiplier, Rho};
use paygo_accounting::prior::Prior;
use paygo_numeric::Amount;
use paygo_numeric::decimal::{parse_down, parse_nearest};
use paygo_numeric::elementary::exp;
use serde_json::Value;

pub(super) fn check(case: &mut Check<'_>) -> Option<()> {
    match case.kind() {
        "additive" => additive(case),
        "curve_union_classic" => union(case, Conversion::Classic),
        "curve_union_cks" => union(case, Conversion::Cks),
        "curve_mixture_hockey_stick" => mixture(case),
        "curve_mixture_tail" => tail(case),
        "advanced" => advanced(case),
        "gdp" => gdp(case),
        "pure_dp_zcdp_classic" => pure(case, Conversion::Classic),
        "pure_dp_zcdp_cks" => pure(case, Conversion::Cks),
        _ => None,
    }
}

/// The cost of one mechanism.
pub(super) fn cost(single: Single) -> Option<Cost> {
    Cost::of(&Mechanism::Single(single), Neighbors::AddRemove).ok()
}

/// The mechanism of a query: Gaussian noise or randomized response.
pub(super) fn query(query: &Value) -> Option<Cost> {
    let field = |name: &str| query.get(name).and_then(Value::as_str).unwrap_or("");
    cost(match field("type") {
        "gaussian" => {
            Single::Gaussian(Gaussian { noise_multiplier: NoiseMultiplier::new(parse_down(field("sigma"))?).ok()? })
        }
        "randomized_response" => {
            Single::RandomizedResponse(RandomizedResponse { epsilon: Epsilon::from_decimal(field("eps")).ok()? })
        }
        _ => return None,
    })
}

fn queries(case: &Check<'_>) -> Option<Vec<Cost>> {
    case.input("queries").as_array()?.iter().map(query).collect()
}

pub(super) fn orders(case: &Check<'_>) -> Option<Orders> {
    Orders::from_f64(&case.downs("orders")).ok()
}

fn budget(case: &Check<'_>) -> Option<Budget> {
    Budget::from_decimal(case.text("eps"), case.text("delta")).ok()
}

/// What a filter makes of a sequence, and where its sums end.
fn decide<R: Rule>(filter: &mut Filter<R>, costs: &[Cost]) -> Option<Vec<bool>> {
    costs.iter().map(|cost| Some(filter.request(cost).ok()?.is_admitted())).collect()
}

/// Decisions and sums; a budget that no order can serve refuses all.
fn run<R: Rule, E>(case: &mut Check<'_>, rule: Result<R, E>, costs: &[Cost], lanes: usize) -> Option<Vec<f64>> {
    let Ok(rule) = rule else {
        case.decisions(&vec![false; costs.len()]);
        return Some(vec![0.0; lanes]);
    };
    let mut filter = Filter::new(rule, Neighbors::AddRemove);
    let decisions = decide(&mut filter, costs)?;
    case.decisions(&decisions);
    Some(filter.sums().lanes().iter().map(|sum| sum.to_f64_up()).collect())
}

/// Any currency adds up alike; ρ stands for all.
fn additive(case: &mut Check<'_>) -> Option<()> {
    let rho = |text: &&str| cost(Single::Zcdp(mechanism::Zcdp { rho: Rho::from_decimal(text).ok()? }));
    let costs = texts(case.input("costs")).iter().map(rho).collect::<Option<Vec<_>>>()?;
    let rule = Amount::from_decimal_down(case.text("budget"))
        .ok_or(())
        .and_then(|limit| Zcdp::with_limit(limit, Amount::ZERO).map_err(drop));
    let sums = run(case, rule, &costs, 1)?;
    case.upper("total", sums[0]);
    Some(())
}

fn union(case: &mut Check<'_>, conversion: Conversion) -> Option<()> {
    let (orders, costs, budget) = (orders(case)?, queries(case)?, budget(case)?);
    let prior = Prior::uniform(orders.clone()).ok()?;
    let share = |i: usize| Delta::new(prior.weights()[i].to_f64_down() * case.down("delta") * (1.0 - 1e-15));
    let limits = orders.as_slice().iter().enumerate();
    let limits =
        limits.map(|(i, &order)| Some(conversion.budget(order, budget.epsilon(), share(i).ok()?).map(Divergence::get)));
    let limits = limits.collect::<Option<Vec<_>>>()?;
    case.budgets("budgets", &limits);
    let sums = run(case, Union::over(budget, prior, conversion), &costs, limits.len())?;
    case.uppers("totals", &sums);
    Some(())
}

fn mixture(case: &mut Check<'_>) -> Option<()> {
    let (orders, costs, budget) = (orders(case)?, queries(case)?, budget(case)?);
    let prior = Prior::uniform(orders.clone()).ok()?;
    let sums = run(case, Mixture::without_light_orders(budget, prior.clone()), &costs, orders.as_slice().len())?;
    case.uppers("totals", &sums);
    // At δ·e^{−margin} the inequality is an equality: the least ε there is the ε of the case.
    let filter =
        Mixture::without_light_orders(budget, prior.clone()).ok().map(|rule| Filter::new(rule, Neighbors::AddRemove));
    let Some(mut filter) = filter else { return Some(()) };
    for (margin, cost) in texts(case.output("log_margins")).iter().zip(&costs) {
        let charge = filter.price(cost).ok()?;
        let sums = filter.sums().plus(charge.lanes(), 1);
        let delta = case.near("delta") * exp(-parse_nearest(margin)?);
        if delta > 0.0 && delta < 0.5 {
            let at_edge = Budget::new(Epsilon::new(1e6).ok()?, Delta::new(delta).ok()?).ok()?;
            let least = Mixture::without_light_orders(at_edge, prior.clone()).ok()?.least_epsilon(sums.lanes());
            case.close("log_margins", least.get(), case.near("eps"));
        }
        let _ = filter.admit(&charge);
    }
    Some(())
}

/// The pointwise version admits while the Ville mixture odometer stays at or below ε.
fn tail(case: &mut Check<'_>) -> Option<()> {
    let (orders, costs) = (orders(case)?, queries(case)?);
    let (epsilon, delta) = (case.down("eps"), Delta::new(case.down("delta")).ok()?);
    let boundary = VilleMixture::new(delta, Prior::uniform(orders).ok()?).ok()?;
    let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
    let mut decisions = Vec::new();
    for cost in &costs {
        let mut next = odometer.clone();
        next.observe(&next.price(cost).ok()?).ok()?;
        let admit = next.reading().get() <= epsilon;
        if admit {
            odometer = next;
        }
        decisions.push(admit);
    }
    case.decisions(&decisions);
    let sums: Vec<f64> = odometer.sums().lanes().iter().map(|sum| sum.to_f64_up()).collect();
    case.uppers("totals", &sums);
    Some(())
}

/// \[W\]'s filter is the zCDP filter with ρ = ε²/2, the classic conversion, and the steps' own δ.
fn advanced(case: &mut Check<'_>) -> Option<()> {
    let (epsilon, delta) = (Epsilon::new(case.down("eps")).ok()?, Delta::new(case.down("delta_loss")).ok()?);
    let limit = Amount::from_f64_down(zcdp::budget(Conversion::Classic, epsilon, delta).get())?;
    let slack = Amount::from_decimal_down(case.text("delta_fail"))?;
    let mut filter = Filter::new(Zcdp::with_limit(limit, slack).ok()?, Neighbors::AddRemove);
    let mut decisions = Vec::new();
    for query in case.input("queries").as_array()? {
        let field = |name: &str| query.get(name).and_then(Value::as_str).unwrap_or("");
        let half_square = cost(Single::Zcdp(mechanism::Zcdp { rho: half_square(field("eps"))? }))?;
        let own = cost(Single::Approximate(Approximate {
            epsilon: Epsilon::ZERO,
            delta: Delta::from_decimal(field("delta")).ok()?,
        }))?;
        decisions.push(filter.request(&half_square.and(&own).ok()?).ok()?.is_admitted());
    }
    case.decisions(&decisions);
    case.upper("sum_eps_sq", filter.sums().lanes()[0].times(2).to_f64_up());
    case.upper("sum_delta", filter.sums().slack().to_f64_up());
    Some(())
}

/// ε²/2 of decimal text, exactly.
pub(super) fn half_square(epsilon: &str) -> Option<Rho> {
    let square = Amount::from_decimal_up(epsilon)?.square_up();
    // ROUNDING: half of it, up.
    Rho::from_decimal(&square.plus(Amount::UNIT).shared_by(2).to_string()).ok()
}

fn gdp(case: &mut Check<'_>) -> Option<()> {
    let mu = |text: &&str| cost(Single::Gdp(mechanism::Gdp { mu: Mu::from_decimal(text).ok()? }));
    let costs = texts(case.input("mus")).iter().map(mu).collect::<Option<Vec<_>>>()?;
    let limit = Amount::from_decimal_down(case.text("mu"))?.square_up();
    let sums = run(case, Gdp::with_limit(limit), &costs, 1)?;
    case.upper("sum_mu_sq", sums[0]);
    Some(())
}

/// \[FZ\]'s filter: ρ = ε²/2 against the ρ that a conversion allows.
fn pure(case: &mut Check<'_>, conversion: Conversion) -> Option<()> {
    let budget = budget(case)?;
    case.lower("rho_budget", zcdp::budget(conversion, budget.epsilon(), budget.delta()).get());
    let half = |text: &&str| cost(Single::Zcdp(mechanism::Zcdp { rho: half_square(text)? }));
    let costs = texts(case.input("eps_list")).iter().map(half).collect::<Option<Vec<_>>>()?;
    let sums = run(case, Zcdp::by(conversion, budget), &costs, 1)?;
    case.upper("sum_rho", sums[0]);
    Some(())
}
