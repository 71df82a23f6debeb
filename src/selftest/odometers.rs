//! Golden readings of odometers.

use super::filters::{cost, half_square, orders, query};
use super::{Check, texts};
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::mechanism::{Renyi, Single, Zcdp};
use paygo_accounting::odometer::{
    Boundary, Doubling, Linear, NormalMixture, Odometer, Restart, Stitched, VilleFixed, VilleMixture, VilleUnion,
};
use paygo_accounting::params::{Delta, Neighbors, Order};
use paygo_accounting::prior::Prior;
use paygo_numeric::Amount;
use paygo_numeric::decimal::parse_up;
use serde_json::Value;

pub(super) fn check(case: &mut Check<'_>) -> Option<()> {
    match case.kind() {
        "rdp" => renyi(case),
        "pure_dp" => pure(case),
        "restart" => restart(case),
        _ => None,
    }
}

/// The cost of each run.
fn runs(case: &Check<'_>, one: impl Fn(&Value) -> Option<Cost>) -> Option<Vec<Cost>> {
    let run = |run: &Value| one(run)?.repeat(run.get("repeat")?.as_str()?.parse().ok()?).ok();
    case.input("runs").as_array()?.iter().map(run).collect()
}

/// What is read after each run.
fn readings<B: Boundary>(boundary: B, runs: &[Cost]) -> Option<Vec<f64>> {
    let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
    let read = |run: &Cost| {
        odometer.observe(&odometer.price(run).ok()?).ok()?;
        Some(odometer.reading().get())
    };
    runs.iter().map(read).collect()
}

fn renyi(case: &mut Check<'_>) -> Option<()> {
    let (orders, delta) = (orders(case)?, Delta::new(case.down("delta")).ok()?);
    let runs = runs(case, query)?;
    let prior = Prior::uniform(orders.clone()).ok()?;
    case.uppers("ville_union", &readings(VilleUnion::new(delta, prior.clone()).ok()?, &runs)?);
    case.uppers("ville_mixture", &readings(VilleMixture::new(delta, prior).ok()?, &runs)?);
    let eight = Order::new(8.0).ok()?;
    let order = if orders.as_slice().contains(&eight) { eight } else { *orders.as_slice().last()? };
    case.uppers("ville_fixed_order_8_or_last", &readings(VilleFixed::new(order, delta).ok()?, &runs)?);
    if !case.has("doubling") {
        return Some(());
    }
    let doubling = Doubling::new(delta, orders).ok()?;
    case.uppers("doubling", &readings(doubling.clone(), &runs)?);
    let mut odometer = Odometer::new(doubling, Neighbors::AddRemove);
    for (index, run) in runs.iter().enumerate() {
        odometer.observe(&odometer.price(run).ok()?).ok()?;
        let least = odometer.boundary().least(odometer.sums().lanes())?;
        case.equal_at("doubling_order", index, least.order.get());
        case.equal_at("doubling_level", index, f64::from(least.level));
    }
    Some(())
}

fn pure(case: &mut Check<'_>) -> Option<()> {
    let delta = Delta::new(case.down("delta")).ok()?;
    let runs = runs(case, |run| cost(Single::Zcdp(Zcdp { rho: half_square(run.get("eps")?.as_str()?)? })))?;
    let mut odometer = Odometer::new(Stitched::new(delta, Amount::ZERO).ok()?, Neighbors::AddRemove);
    let mut variances = Vec::new();
    for run in &runs {
        odometer.observe(&odometer.price(run).ok()?).ok()?;
        variances.push(odometer.sums().lanes()[0].times(2).to_f64_up());
    }
    case.uppers("V", &variances);
    let target = Amount::from_decimal_up(case.text("target"))?;
    case.uppers("linear", &readings(Linear::tight_at(target, delta, Amount::ZERO).ok()?, &runs)?);
    case.uppers("stitched", &readings(Stitched::new(delta, Amount::ZERO).ok()?, &runs)?);
    let precision = Amount::from_decimal_up(case.text("rho"))?;
    case.uppers("mixture_exact", &readings(NormalMixture::new(precision, delta, Amount::ZERO).ok()?, &runs)?);
    Some(())
}

fn restart(case: &mut Check<'_>) -> Option<()> {
    let order = Order::new(8.0).ok()?;
    let step = Amount::from_decimal_up(case.text("step"))?;
    let restart = Restart::new(order, step, Delta::new(0.5).ok()?).ok()?;
    let mut odometer = Odometer::new(restart, Neighbors::AddRemove);
    let mut counted = Vec::new();
    for text in texts(case.input("costs")) {
        let curve = RenyiCurve::new(Orders::new(vec![order]).ok()?, vec![parse_up(text)?]).ok()?;
        odometer.observe(&odometer.price(&cost(Single::Renyi(Renyi { curve }))?).ok()?).ok()?;
        counted.push(odometer.boundary().counted().to_f64_up());
    }
    case.uppers("odometer", &counted);
    Some(())
}
