//! The clock: its prices against brute force, and its filter.

use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Budget, Clock, Decision, Filter, Gdp, Rule as _};
use paygo_accounting::loss::clock::{Levels, payment};
use paygo_accounting::mechanism::{Mechanism, Single};
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_accounting::stored::StoredFilter;
use paygo_accounting::wire;
use paygo_numeric::Amount;
use paygo_numeric::elementary::{exp, exp_m1, ln_1p};
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
    let gdp = Filter::new(Gdp::new(budget(1.0, 0.9e-5)).expect("a rule"), Neighbors::AddRemove);
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
    let alone = |words: serde_json::Value| filter.price(&cost(words)).expect("a price").lanes().to_vec();
    let both = alone(json!({"parallel": [small.clone(), large.clone()]}));
    let (small, large) = (alone(small), alone(large));
    let levels = both.len() - 1;
    for i in 0..levels {
        assert_eq!(both[i], small[i].max(large[i]));
    }
}

#[test]
fn prices_rise_as_the_clock_falls() {
    for words in [sampled(0.01, 1.0), json!({"laplace": {"scale": 5}}), json!({"zcdp": {"rho": 0.001}})] {
        let charge = clock(3.0, 1e-5).price(&cost(words.clone())).expect("a price");
        let prices = &charge.lanes()[..charge.lanes().len() - 1];
        assert!(prices.windows(2).all(|pair| pair[0] <= pair[1]), "{words}");
        assert!(prices[0] > Amount::ZERO && !prices[0].is_infinite(), "{words}");
    }
}

/// An explicit curve of Gaussian noise is priced as what is known of it: not less than the noise itself.
#[test]
fn what_is_known_less_well_costs_more() {
    let orders: Vec<f64> = (1..60).map(|k| 1.0 + 1.2f64.powi(k) * 0.01).collect();
    let values: Vec<f64> = orders.iter().map(|order| order * 0.00125).collect();
    let prices = |words| clock(1.0, 1e-5).price(&cost(words)).expect("a price").lanes()[0];
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
                let charge = filter.price(&cost(sampled(q, s))).expect("a price, if only an infinite one");
                assert!(start.elapsed() < Duration::from_secs(2), "{epsilon} {delta} {q} {s}");
                let least = charge.lanes()[0].to_f64_up();
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
    assert!(Levels::from_stored(vec![amount("0.5"), amount("0.1"), Amount::ZERO], 1e-9).is_ok());
    assert!(Levels::from_stored(vec![amount("0.1"), amount("0.5"), Amount::ZERO], 1e-9).is_err());
    assert!(Levels::from_stored(vec![amount("0.5"), amount("0.1")], 1e-9).is_err());
    assert!(Levels::from_stored(Vec::new(), 1e-9).is_err());
    assert!(Levels::from_stored(vec![Amount::ZERO], f64::NAN).is_err());
}
