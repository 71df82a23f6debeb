//! The clock: its prices against brute force, and its filter.

use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Budget, Clock, Decision, Filter, Gdp, Rule as _};
use paygo_accounting::loss::clock::{Reference, Terms, payment};
use paygo_accounting::loss::tightest_of_all;
use paygo_accounting::mechanism::{Mechanism, Single};
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_accounting::stored::StoredFilter;
use paygo_accounting::wire;
use paygo_numeric::Amount;
use paygo_numeric::elementary::{exp, exp_m1, ln, ln_1p};
use paygo_numeric::normal::erfc;
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

fn mechanism(words: serde_json::Value) -> Mechanism {
    let words: wire::Mechanism = serde_json::from_value(words).expect("a mechanism");
    Mechanism::try_from(&words).expect("in its domain")
}

fn single(words: serde_json::Value) -> Single {
    let Mechanism::Single(single) = mechanism(words) else { panic!("not a single mechanism") };
    single
}

fn sampled(q: f64, s: f64) -> serde_json::Value {
    json!({"poisson_sampled_gaussian": {"sampling_probability": q, "noise_multiplier": s}})
}

fn cost(words: serde_json::Value) -> Cost {
    Cost::of(&mechanism(words), Neighbors::AddRemove).expect("a cost")
}

fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget::new(Epsilon::new(epsilon).expect("ε"), Delta::new(delta).expect("δ")).expect("a budget")
}

fn clock(epsilon: f64, delta: f64) -> Filter<Clock> {
    Filter::new(Clock::new(budget(epsilon, delta)).expect("a clock"), Neighbors::AddRemove)
}

/// How many of a mechanism, one request at a time.
fn admitted(filter: &Filter<Clock>, words: serde_json::Value) -> u64 {
    let (mut filter, mut count) = (filter.clone(), 0);
    let charge = filter.price(&cost(words)).expect("a price");
    while filter.admit(&charge).is_admitted() {
        count += 1;
    }
    count
}

/// The profile of Gaussian noise with `μ² = t`, in plain doubles.
fn gaussian_profile(t: f64, x: f64) -> f64 {
    let (s, r) = (t.sqrt(), std::f64::consts::SQRT_2);
    0.5 * erfc((x / s - 0.5 * s) / r) - exp(x) * 0.5 * erfc((x / s + 0.5 * s) / r)
}

/// Losses and probabilities of a mechanism in one direction, fine enough that sums of smooth functions are exact to doubles.
fn losses(single: &Single, added: bool) -> Vec<(f64, f64)> {
    if let Single::RandomizedResponse(response) = single {
        let e = response.epsilon.get();
        return vec![(e, 1.0 / (1.0 + exp(-e))), (-e, 1.0 / (1.0 + exp(e)))];
    }
    let Single::PoissonSampledGaussian(sampled) = single else { panic!("not taken apart here") };
    let (q, s) = (sampled.sampling_probability.get(), sampled.noise_multiplier.get());
    let step = s / 400.0;
    let density = |z: f64| exp(-0.5 * z * z) * step / (s * (2.0 * std::f64::consts::PI).sqrt());
    let points = (-9000..=40_000).map(|k| f64::from(k) * step).take_while(|x| *x <= 22.5 * s + 1.0);
    let loss = |x: f64| ln_1p(q * exp_m1((2.0 * x - 1.0) / (2.0 * s * s)));
    let both = points.map(|x| (loss(x), density(x / s), density((x - 1.0) / s)));
    if added {
        both.map(|(loss, base, _)| (-loss, base)).collect()
    } else {
        both.map(|(loss, base, shifted)| (loss, (1.0 - q) * base + q * shifted)).collect()
    }
}

/// The largest excess of the composition with what is left over what is left and the payment, over thresholds of either sign, both directions.
fn worst_excess(single: &Single, left: f64, payment: f64) -> f64 {
    let mut worst = f64::NEG_INFINITY;
    for added in [false, true] {
        let losses: Vec<(f64, f64)> = losses(single, added).into_iter().filter(|(_, p)| *p > 1e-30).collect();
        let reach = 9.0 * (left + payment).sqrt() + 6.0;
        for k in -400..=400 {
            // Fine around 0, where most of it is.
            let x = reach * (f64::from(k) / 400.0).powi(3);
            let with: f64 = losses.iter().map(|(loss, p)| p * gaussian_profile(left, x - loss)).sum();
            worst = worst.max(with - gaussian_profile(left + payment, x));
        }
    }
    worst
}

/// What a payment promises, at 801 thresholds and by plain sums; and one a little smaller breaks it.
#[test]
fn a_payment_is_enough_at_every_threshold_and_hardly_more() {
    let response = |e: f64| json!({"randomized_response": {"epsilon": e}});
    let cases = [
        (response(0.05), 0.2, 1e-9),
        (response(0.5), 1.0, 1e-7),
        (response(2.0), 0.3, 1e-4),
        (response(1.0), 30.0, 1e-6),
        (sampled(0.01, 1.0), 0.5, 1e-8),
        (sampled(0.2, 0.8), 0.1, 1e-5),
        (sampled(0.5, 2.0), 2.0, 1e-9),
        (sampled(0.02, 0.6), 1.0, 1e-6),
        (sampled(0.3, 1.0), 40.0, 1e-6),
    ];
    for (words, left, eta) in cases {
        let single = single(words.clone());
        let enough = payment(&single, left, eta);
        let excess = worst_excess(&single, left, enough);
        assert!(excess <= eta + 2e-13, "{words} {left} {eta}: {enough} leaves {excess}");
        let less = worst_excess(&single, left, 0.99 * enough);
        assert!(less > eta, "{words} {left} {eta}: 0.99 of {enough} would do");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn payments_of_all_sorts_are_enough(q in 1e-4f64..0.9, s in 0.5f64..4.0, log_left in -4.0f64..3.0, log_eta in -22.0f64..-7.0) {
        let (left, eta) = (exp(log_left), exp(log_eta));
        let single = single(sampled(q, s));
        let enough = payment(&single, left, eta);
        if enough.is_finite() {
            let excess = worst_excess(&single, left, enough);
            prop_assert!(excess <= eta + 2e-13, "{} {}", enough, excess);
        }
    }

    /// However a repeated mechanism is cut into requests, the clock ends where it ends.
    #[test]
    fn cuts_change_nothing(parts in prop::collection::vec(1u64..40, 1..8), before in 0u64..900) {
        let step = sampled(0.02, 1.0);
        let mut at_once = clock(3.0, 1e-5);
        if before > 0 {
            let first = at_once.price(&cost(json!({"repeat": {"count": before, "of": sampled(0.01, 1.0)}}))).expect("a price");
            prop_assert!(at_once.admit(&first).is_admitted());
        }
        let mut cut = at_once.clone();
        let whole: u64 = parts.iter().sum();
        let all = at_once.price(&cost(json!({"repeat": {"count": whole, "of": step.clone()}}))).expect("a price");
        let together = at_once.admit(&all).is_admitted();
        let mut apart = true;
        for part in parts {
            let some = cut.price(&cost(json!({"repeat": {"count": part, "of": step.clone()}}))).expect("a price");
            apart &= cut.admit(&some).is_admitted();
        }
        prop_assert_eq!(together, apart);
        if together {
            prop_assert_eq!(at_once.sums(), cut.sums());
        }
    }
}

/// docs/filters.md has these numbers, and those of the other filters.
#[test]
fn the_workloads_of_the_documents() {
    assert_eq!(admitted(&clock(1.0, 1e-5), json!({"gaussian": {"noise_multiplier": 20}})), 28);
    assert!(admitted(&clock(3.0, 1e-5), sampled(0.01, 1.0)) >= 1900);
    assert!(admitted(&clock(2.0, 1e-6), json!({"pure": {"epsilon": "0.05"}})) >= 78);
    // 1,000 sampled steps fixed in advance cost ε = 1.9; nobody may have more than the price in advance.
    assert!(admitted(&clock(3.0, 1e-5), sampled(0.01, 1.0)) <= 2666);
}

#[test]
fn gaussian_noise_moves_it_exactly() {
    let clock = clock(1.0, 1e-5);
    let gdp = Filter::new(Gdp::new(budget(1.0, 0.98 * 0.9e-5)).expect("a rule"), Neighbors::AddRemove);
    for noise in [20.0, 3.7, 100.0] {
        let words = json!({"gaussian": {"noise_multiplier": noise}});
        let charge = gdp.price(&cost(words.clone())).expect("a price");
        assert_eq!(admitted(&clock, words), gdp.room_for(&charge, 1 << 40), "noise {noise}");
    }
}

/// Order ∞ beside the clock: what has a pure ε is admitted while those add up to no more than ε, whatever the clock says.
#[test]
fn pure_sums_are_exact_beside_it() {
    let tenth = json!({"pure": {"epsilon": "0.1"}});
    let mut filter = clock(1.0, 1e-12);
    let charge = filter.price(&cost(tenth)).expect("a price");
    for n in 1..=10 {
        assert!(filter.admit(&charge).is_admitted(), "{n}");
    }
    assert!(matches!(filter.admit(&charge), Decision::Refused(_)));
    // The clock ran out on the way, so that nothing is left for noise without an ε.
    let noise = filter.price(&cost(json!({"gaussian": {"noise_multiplier": 1000}}))).expect("a price");
    assert_eq!(filter.room_for(&noise, 10), 0);
    assert!(filter.is_within_budget());
}

#[test]
fn of_groups_the_worst_counts() {
    let (small, large) = (json!({"laplace": {"scale": 20}}), sampled(0.01, 1.0));
    let filter = clock(3.0, 1e-5);
    let alone = |words: serde_json::Value| filter.price(&cost(words)).expect("a price").lanes().amounts().to_vec();
    let both = alone(json!({"parallel": [small.clone(), large.clone()]}));
    let (small, large) = (alone(small), alone(large));
    for i in 0..filter.rule().reference().lanes() {
        assert_eq!(both[i], small[i].max(large[i]));
    }
}

#[test]
fn prices_rise_as_the_clock_falls() {
    for words in [sampled(0.01, 1.0), json!({"laplace": {"scale": 5}}), json!({"zcdp": {"rho": 0.001}})] {
        let filter = clock(3.0, 1e-5);
        let charge = filter.price(&cost(words.clone())).expect("a price");
        let prices = &charge.lanes().amounts()[..filter.rule().reference().lanes()];
        assert!(prices.windows(2).all(|pair| pair[0] <= pair[1]), "{words}");
        assert!(prices[0] > Amount::ZERO && !prices[0].is_infinite(), "{words}");
    }
}

/// An explicit curve of Gaussian noise is priced as what is known of it: not less than the noise itself.
#[test]
fn what_is_known_less_well_costs_more() {
    let orders: Vec<f64> = (1..60).map(|k| 1.0 + 1.2f64.powi(k) * 0.01).collect();
    let values: Vec<f64> = orders.iter().map(|order| order * 0.00125).collect();
    let prices = |words| clock(1.0, 1e-5).price(&cost(words)).expect("a price").lanes().amounts()[0];
    let noise = prices(json!({"gaussian": {"noise_multiplier": 20}}));
    let rho = prices(json!({"zcdp": {"rho": "0.00125"}}));
    let curve = prices(json!({"renyi": {"orders": orders, "values": values}}));
    assert!(noise < rho && noise < curve, "{noise} {rho} {curve}");
    assert!(rho.to_f64_up() < 2.5 * noise.to_f64_up(), "{rho}");
}

#[test]
fn it_is_stored_as_it_is_and_not_as_more() {
    let rule = AnyRule::from(
        Clock::new(budget(3.0, 1e-5).with_slack(Amount::from_f64_up(1e-7)).expect("a slack")).expect("a clock"),
    );
    let mut filter = Filter::new(rule, Neighbors::AddRemove);
    let charge = filter.price(&cost(sampled(0.01, 1.0))).expect("a price");
    assert!(filter.admit(&charge).is_admitted());
    let stored = serde_json::to_value(StoredFilter::from(&filter)).expect("plain data");
    let load = |stored: &serde_json::Value| {
        Filter::try_from(serde_json::from_value::<StoredFilter>(stored.clone()).expect("the format"))
    };
    let again = load(&stored).expect("what was stored");
    assert_eq!(again, filter);
    assert_eq!(serde_json::to_value(StoredFilter::from(&again)).expect("plain data"), stored);
    // More on the clock, or a higher rate, than ε and δ pay for.
    for (field, value) in
        [("clock", json!("0.52")), ("rate", json!(1e-4)), ("rate", json!(-1.0)), ("levels", json!(["0.1"]))]
    {
        let mut forged = stored.clone();
        forged["rule"]["clock"][field] = value.clone();
        assert!(load(&forged).is_err(), "{field} {value}");
    }
}

/// A promise at every δ, not only at the budget's.
#[test]
fn it_promises_at_every_delta() {
    let filter = clock(3.0, 1e-5);
    let at = |delta: f64| filter.rule().promise(Delta::new(delta).expect("δ")).get();
    assert!((3.0..3.0 + 1e-9).contains(&at(1e-5)));
    assert!(at(2e-6) > 3.0 && at(2e-6) < 3.6, "{}", at(2e-6));
    // What goes with the payments is a tenth of δ.
    assert_eq!(at(0.9e-6), f64::INFINITY);
}

#[test]
fn extremes_are_priced_or_refused_in_time() {
    for (epsilon, delta) in [(3.0, 1e-5), (0.01, 1e-12), (100.0, 1e-6), (1.0, 1e-300)] {
        let Ok(rule) = Clock::new(budget(epsilon, delta)) else { continue };
        let filter = Filter::new(rule, Neighbors::AddRemove);
        for q in [1e-9, 1e-4, 0.3, 1.0] {
            for s in [1e-3, 0.1, 1.0, 30.0, 1e6] {
                let start = Instant::now();
                let charge = match filter.price(&cost(sampled(q, s))) {
                    Ok(charge) => charge,
                    Err(error) => {
                        assert!(s == 1e-3 && error.to_string().contains("mixture"), "{q} {s}: {error}");
                        continue;
                    }
                };
                assert!(start.elapsed() < Duration::from_secs(2), "{epsilon} {delta} {q} {s}");
                let least = charge.lanes().amounts()[0].to_f64_up();
                // No step costs less than the second moment of its loss without the record, within a part of it.
                let moment = q * q * exp_m1((1.0 / (s * s)).min(1.0));
                assert!(
                    least >= 0.5 * moment || least >= 1e-14 || q * q / (s * s) < 1e-14,
                    "{q} {s}: {least} {moment}"
                );
            }
        }
    }
}

#[test]
fn levels_are_checked() {
    let amount = |text: &str| Amount::from_decimal_up(text).expect("a decimal");
    let with = |noise_levels: Vec<Amount>, rate: f64| {
        Reference::new(Vec::new(), Terms { noise_levels, ..Terms::noise(Amount::ONE, rate) }).is_ok()
    };
    assert!(with(vec![amount("0.5"), amount("0.1"), Amount::ZERO], 1e-9));
    assert!(!with(vec![amount("0.1"), amount("0.5"), Amount::ZERO], 1e-9));
    assert!(!with(vec![amount("0.5"), amount("0.1")], 1e-9));
    assert!(!with(Vec::new(), 1e-9));
    assert!(!with(vec![Amount::ZERO], f64::NAN));
}

/// A clock that starts with a plan: steps of it are paid for by themselves, everything else in noise or in steps.
fn clock_for(epsilon: f64, delta: f64, plan: &[(serde_json::Value, u64)], reserve: f64) -> Filter<Clock> {
    let plan: Vec<(Cost, u64)> = plan.iter().map(|(words, count)| (cost(words.clone()), *count)).collect();
    let rule = Clock::for_plan(budget(epsilon, delta), &plan, reserve).expect("a clock");
    Filter::new(rule, Neighbors::AddRemove)
}

#[test]
fn a_plan_that_is_followed_costs_its_privacy_loss() {
    let filter = clock_for(3.0, 1e-5, &[(sampled(0.01, 1.0), 4000)], 0.0);
    let count = admitted(&filter, sampled(0.01, 1.0));
    assert!((2640..=2666).contains(&count), "{count}");
}

/// A few steps whose large losses are rare are far from smooth: more noise than there is says what they are worth.
#[test]
fn the_clock_of_a_plan_serves_small_budgets() {
    for (epsilon, at_least) in [(0.5, 26), (0.75, 110), (1.0, 249)] {
        let filter = clock_for(epsilon, 1e-5, &[(sampled(0.01, 1.0), 4000)], 0.0);
        let count = admitted(&filter, sampled(0.01, 1.0));
        let in_advance = |count: u64| {
            let plan = cost(sampled(0.01, 1.0)).repeat(count).expect("a plan");
            tightest_of_all(&plan, Delta::new(1e-5).expect("δ")).epsilon.get()
        };
        assert!(count >= at_least && in_advance(count) <= epsilon, "{epsilon}: {count}");
    }
}

/// What people read of a plan that was followed is about its price.
#[test]
fn the_gauge_of_a_plan_is_about_its_price() {
    let plan: Vec<_> = (0..20).map(|i| (sampled(0.03, 1.77 * exp(-0.02 * f64::from(i))), 33)).collect();
    for epsilon in [2.7, 3.0, 4.0] {
        let mut filter = clock_for(epsilon, 1e-5, &plan, 0.0);
        for (words, count) in &plan {
            assert!(filter.request(&cost(words.clone()).repeat(*count).expect("them")).expect("a price").is_admitted());
        }
        let spent = filter.meters()[0].spent.to_f64_up();
        assert!((2.667..2.70).contains(&spent), "{epsilon}: {spent}");
    }
}

/// However much is on it: a price falls towards the second moment of the loss.
#[test]
fn prices_on_large_clocks() {
    let mut before = f64::INFINITY;
    for left in [1.0, 10.0, 100.0, 700.0, 5000.0] {
        let price = payment(&single(sampled(0.03, 1.6)), left, 1e-12);
        assert!(price < before && price > 4.1e-4, "{left}: {price}");
        before = price;
    }
}

/// What is left of a clock, as losses with probabilities in the first world, and how much noise beside them; a part of a step is there with that
/// probability.
fn spread_out(steps: &[(Vec<(f64, f64)>, f64)]) -> Vec<(f64, f64)> {
    let mut all = vec![(0.0, 1.0)];
    for (one, count) in steps {
        let mut left = *count;
        while left > 0.0 {
            all = composed(&all, one, left.min(1.0));
            left -= 1.0;
        }
    }
    all
}

/// Composed with a law that is there with a probability; equal losses are put together.
fn composed(all: &[(f64, f64)], one: &[(f64, f64)], probability: f64) -> Vec<(f64, f64)> {
    let mut sums: std::collections::BTreeMap<i64, (f64, f64)> = std::collections::BTreeMap::new();
    let mut add = |loss: f64, p: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "small losses")]
        let key = (loss * 1e9).round() as i64;
        sums.entry(key).or_insert((loss, 0.0)).1 += p;
    };
    for &(loss, p) in all {
        add(loss, p * (1.0 - probability));
        one.iter().for_each(|&(more, q)| add(loss + more, p * q * probability));
    }
    sums.into_values().filter(|(_, p)| *p > 0.0).collect()
}

/// Two losses, up with the record and down without it.
fn response(epsilon: f64) -> Vec<(f64, f64)> {
    vec![(epsilon, 1.0 / (1.0 + exp(-epsilon))), (-epsilon, 1.0 / (1.0 + exp(epsilon)))]
}

/// The profile of losses beside noise, at a threshold.
fn profile_of(losses: &[(f64, f64)], noise: f64, x: f64) -> f64 {
    losses.iter().map(|(loss, p)| p * gaussian_profile(noise, x - loss)).sum()
}

/// Every payment of a clock with a plan of responses is enough at every threshold: whatever is asked, however much is left.
#[test]
fn payments_in_steps_are_enough_at_every_threshold() {
    let words = |e: f64| json!({"randomized_response": {"epsilon": e}});
    let filter = clock_for(2.0, 1e-4, &[(words(0.3), 4), (words(0.2), 8)], 0.05);
    let reference = filter.rule().reference().clone();
    let (terms, full) = (reference.terms().clone(), reference.full());
    assert_eq!(reference.steps().len(), 2);
    let rates = [terms.step_rate * 0.3 * 0.3, terms.step_rate * 0.2 * 0.2, terms.rate];
    for asked in [0.1, 0.25, 0.5, 0.8] {
        let charge = filter.price(&cost(words(asked))).expect("a price");
        let (price, _) = charge.lanes().amounts().split_at(reference.lanes());
        let mut left = full.clone();
        let mut paid = 0;
        while let Some(after) = reference.walk(left.clone(), None, price, 1) {
            let floats = |left: &[Amount]| left.iter().map(|amount| amount.to_f64_up()).collect::<Vec<_>>();
            let (before, now) = (floats(&left), floats(&after));
            let law = |n: &[f64]| spread_out(&[(response(0.3), n[0]), (response(0.2), n[1])]);
            let (had, has) = (law(&before), composed(&law(&now), &response(asked), 1.0));
            let allowance: f64 = (0..3).map(|i| rates[i] * (before[i] - now[i])).sum();
            for k in -60..=60 {
                let x = f64::from(k) * 0.15;
                let excess = profile_of(&has, now[2], x) - profile_of(&had, before[2], x);
                assert!(excess <= allowance * 1.01 + 1e-12, "{asked} after {paid} at {x}: {excess} > {allowance}");
            }
            (left, paid) = (after, paid + 1);
        }
        assert!(paid > 0 || asked > 0.3, "{asked}: {paid}");
    }
}

/// T53: an epoch of other noise, where 7,000 steps of a plan are left, in steps of it.
#[test]
fn leaving_a_plan_costs_little_more_than_it_must() {
    let sampling = 256.0 / 60_000.0;
    let filter = clock_for(2.39, 1e-5, &[(sampled(sampling, 1.1), 14_062)], 0.0);
    let reference = filter.rule().reference();
    let mut left = reference.full();
    // As if nothing were left beside the plan but what it needs.
    (left[0], left[1]) = (Amount::ONE.times(7_000 + 600), reference.terms().base);
    for (noise, at_most) in [(1.3, 156.0), (0.9, 565.0), (2.0, 59.0)] {
        let charge = filter.price(&cost(sampled(sampling, noise))).expect("a price");
        let price = &charge.lanes().amounts()[..reference.lanes()];
        let after = reference.walk(left.clone(), None, price, 234).expect("it pays");
        let paid = left[0].minus(after[0]).to_f64_up();
        assert!(paid <= at_most, "noise {noise}: {paid} steps");
        // What is in the plan costs itself, and less noise more.
        let variance = |s: f64| exp_m1(1.0 / (s * s));
        assert!(paid >= 234.0 * variance(noise) / variance(1.1) * 0.9, "noise {noise}: {paid} steps");
    }
}

#[test]
fn a_plan_is_stored_and_forgeries_are_refused() {
    let rule = clock_for(2.0, 1e-5, &[(sampled(0.01, 1.0), 300), (sampled(0.01, 0.9), 200)], 0.1);
    let mut filter = Filter::new(AnyRule::from(rule.rule().clone()), Neighbors::AddRemove);
    for words in [sampled(0.01, 0.9), sampled(0.02, 1.0), json!({"gaussian": {"noise_multiplier": 30}})] {
        let charge = filter.price(&cost(words)).expect("a price");
        assert!(filter.admit(&charge).is_admitted());
    }
    let stored = serde_json::to_value(StoredFilter::from(&filter)).expect("plain data");
    let load = |stored: &serde_json::Value| {
        Filter::try_from(serde_json::from_value::<StoredFilter>(stored.clone()).expect("the format"))
    };
    let again = load(&stored).expect("what was stored");
    assert_eq!(serde_json::to_value(StoredFilter::from(&again)).expect("plain data"), stored);
    let other = again.price(&cost(sampled(0.013, 1.1))).expect("a price");
    assert_eq!(other.lanes(), filter.price(&cost(sampled(0.013, 1.1))).expect("a price").lanes());
    for (field, value) in [
        ("/rule/clock/clock", json!("0.5")),
        ("/rule/clock/plan/rate", json!(1e-3)),
        ("/rule/clock/plan/steps/0/count", json!(9000)),
        ("/rule/clock/plan/steps/0/count", json!(0)),
        ("/rule/clock/plan/levels", json!([3, 5, 0])),
        ("/rule/clock/plan/negligible", json!(0)),
    ] {
        let mut forged = stored.clone();
        *forged.pointer_mut(field).expect(field) = value.clone();
        assert!(load(&forged).is_err(), "{field} {value}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// However a plan's steps and others come, and are cut: never more than is there, and what is held can always be spent.
    #[test]
    fn what_is_held_can_be_spent(order in prop::collection::vec((0usize..4, 1u64..60, any::<bool>()), 1..14)) {
        let plan = [(sampled(0.01, 1.0), 300), (sampled(0.02, 1.2), 150)];
        let mut filter = clock_for(2.0, 1e-5, &plan, 0.1);
        let kinds = [sampled(0.01, 1.0), sampled(0.02, 1.2), sampled(0.015, 0.9), json!({"gaussian": {"noise_multiplier": 25}})];
        let mut open = Vec::new();
        for (kind, count, holds) in order {
            let charge = filter.price(&cost(json!({"repeat": {"count": count, "of": kinds[kind].clone()}}))).expect("a price");
            if !holds {
                let _ = filter.admit(&charge);
            } else if filter.objects_to_holding(&charge).is_none() {
                open.push((filter.hold(charge.lanes()), charge));
            }
            prop_assert!(filter.is_within_budget());
        }
        // In another order than they were held.
        while let Some((held, charge)) = open.pop() {
            filter.release(&held, Some(charge.lanes()), || open.iter().map(|(held, _)| held).collect());
            prop_assert!(filter.is_within_budget());
        }
        prop_assert_eq!(filter.charged(), filter.sums().clone());
    }
}

/// Two-point pairs whose divergences are within a curve, in both directions, some of them touching it.
fn pairs_within(curve: impl Fn(f64) -> f64) -> Vec<[(f64, f64); 2]> {
    let orders: Vec<f64> = (0..160).map(|i| 1.0 + 1e-3 * exp(f64::from(i) * 0.06)).collect();
    let renyi = |p: f64, q: f64, order: f64| {
        let sum = exp(order * ln(p) + (1.0 - order) * ln(q)) + exp(order * ln_1p(-p) + (1.0 - order) * ln_1p(-q));
        ln(sum) / (order - 1.0)
    };
    let within = |p: f64, q: f64| {
        orders.iter().all(|&order| renyi(p, q, order) <= curve(order) && renyi(q, p, order) <= curve(order))
    };
    let mut pairs = Vec::new();
    for i in 0..40 {
        // Where the second law has this mass, the first has as much as it may.
        let q = 0.5 * exp(-f64::from(i) * 0.4);
        for up in [true, false] {
            let at = |part: f64| if up { q + part * (1.0 - q) } else { q * (1.0 - part) };
            let (mut low, mut high) = (0.0, 1.0 - 1e-12);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                *(if within(at(middle), q) { &mut low } else { &mut high }) = middle;
            }
            let p = at(low * 0.999_999);
            if low > 0.0 {
                pairs.push([(ln(p / q), p), (ln_1p(-p) - ln_1p(-q), 1.0 - p)]);
                pairs.push([(ln(q / p), q), (ln_1p(-q) - ln_1p(-p), 1.0 - q)]);
            }
        }
    }
    pairs
}

/// T53 k: what a curve costs is enough for every law within it; and for what is small hardly more than Gaussian noise.
#[test]
fn a_curve_is_paid_for_whatever_law_it_belongs_to() {
    for (rho, left, eta) in
        [(0.005, 0.4, 1e-9), (0.05, 0.4, 1e-7), (0.001, 5.0, 1e-9), (0.2, 3.0, 1e-6), (0.3, 30.0, 1e-5)]
    {
        let enough = payment(&single(json!({"zcdp": {"rho": rho}})), left, eta);
        let pairs = pairs_within(|order| order * rho);
        assert!(pairs.len() > 60, "{}", pairs.len());
        let mut worst = f64::NEG_INFINITY;
        for pair in &pairs {
            for k in -300..=300 {
                let x = (9.0 * (left + enough).sqrt() + 6.0) * (f64::from(k) / 300.0).powi(3);
                let with: f64 = pair.iter().map(|&(loss, p)| p * gaussian_profile(left, x - loss)).sum();
                worst = worst.max(with - gaussian_profile(left + enough, x));
            }
        }
        assert!(worst <= eta + 2e-13, "{rho} {left}: {enough} leaves {worst}");
        assert!(
            enough >= 2.0 * rho && enough <= 2.0 * rho * (1.15 + rho * (1.0 + 12.0 / left)),
            "{rho} {left}: {enough}"
        );
    }
}

/// What lies within a range is paid for wherever the range is: a quarter of its square, where randomized response costs the square.
#[test]
fn a_range_is_paid_for_wherever_it_is() {
    for (epsilon, left, eta) in [(0.1, 0.4, 1e-9), (0.5, 2.0, 1e-7), (1.0, 10.0, 1e-6)] {
        let enough = payment(&single(json!({"exponential": {"epsilon": epsilon}})), left, eta);
        for part in 1..100 {
            let (high, low) = (epsilon * f64::from(part) / 100.0, epsilon * (f64::from(part) / 100.0 - 1.0));
            let q = -exp_m1(low) / (exp(high) - exp(low));
            let law = [(high, q * exp(high)), (low, 1.0 - q * exp(high))];
            for k in -300..=300 {
                let x = (9.0 * (left + enough).sqrt() + 6.0) * (f64::from(k) / 300.0).powi(3);
                let with: f64 = law.iter().map(|&(loss, p)| p * gaussian_profile(left, x - loss)).sum();
                let excess = with - gaussian_profile(left + enough, x);
                assert!(excess <= eta + 2e-13, "{epsilon} {left} {part}: {excess}");
            }
        }
        let response = payment(&single(json!({"pure": {"epsilon": epsilon}})), left, eta);
        assert!(enough < 0.33 * response, "{epsilon}: {enough} {response}");
    }
}

/// Of few rare steps less is known than of many: a plan that fits is not cut short by what is not known of its first steps.
#[test]
fn a_plan_is_not_cut_short() {
    for (epsilon, delta, q, s, count) in [
        (3.0, 1e-5, 1e-3, 1.0, 2_000),
        (1.0, 1e-6, 1e-3, 1.0, 5_000),
        (3.0, 1e-5, 1e-4, 0.6, 2_000),
        (3.0, 1e-5, 1e-5, 1.0, 1_000_000),
        (3.0, 1e-8, 1e-4, 1.0, 100_000),
    ] {
        let filter = clock_for(epsilon, delta, &[(sampled(q, s), count)], 0.0);
        let all: u64 = filter.rule().reference().steps().iter().map(|step| step.1).sum();
        let noise = filter.rule().reference().terms().noise.to_f64_up();
        assert!(all == count && noise > 1e-3, "{epsilon} {delta} {q} {s}: {all} of {count}, noise {noise}");
    }
}

/// What was admitted under a large clock was paid for while more was left than a small one ever has.
#[test]
fn sums_do_not_move_to_a_smaller_clock() {
    let rule = AnyRule::from(Clock::new(budget(3.0, 1e-5)).expect("a clock"));
    let words = serde_json::from_value(json!({"kind": "clock", "epsilon": 2, "delta": 1e-5})).expect("words");
    let small = rule.changed(&words).expect("a smaller one");
    let mut filter = Filter::new(rule.clone(), Neighbors::AddRemove);
    let charge = filter.price(&cost(sampled(0.01, 1.0)).repeat(600).expect("some")).expect("a price");
    assert!(filter.admit(&charge).is_admitted());
    assert!(filter.under(small.clone()).is_none());
    let mut filter = Filter::new(small, Neighbors::AddRemove);
    assert!(filter.admit(&charge).is_admitted());
    assert!(filter.under(rule).is_some_and(|larger| larger.is_within_budget()));
}

/// Which coin pays for what is held is fixed when it is held: whoever has seen its output cannot choose (T53 j).
#[test]
fn what_is_held_is_paid_in_noise() {
    let plan = [(sampled(0.01, 1.0), 600), (sampled(0.05, 3.0), 300)];
    let mut filter = clock_for(2.0, 1e-5, &plan, 0.3);
    let charge = |filter: &Filter<Clock>, count: u64, words| {
        filter.price(&cost(words).repeat(count).expect("some")).expect("a price")
    };
    let held = charge(&filter, 20, json!({"randomized_response": {"epsilon": 0.05}}));
    assert!(filter.objects_to_holding(&held).is_none());
    let hold = filter.hold(held.lanes());
    let steps = charge(&filter, 400, sampled(0.01, 1.0));
    assert!(filter.admit(&steps).is_admitted());
    filter.release(&hold, Some(held.lanes()), Vec::new);
    let paid = &filter.sums().lanes()[..3];
    assert_eq!(paid[..2], [Amount::ONE.times(400), Amount::ZERO]);
    assert!(paid[2] > Amount::ZERO && filter.is_within_budget());
}
