//! Filters: decisions, exactness, refusals, bad input.

use paygo_accounting::charge::Unpriced;
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::filter::{
    AnyRule, Approximate, Budget, BudgetError, Decision, Filter, FixedOrder, Gdp, Mixture, Pure, Reason, Rule, Union,
    Zcdp,
};
use paygo_accounting::mechanism::{self, Mechanism, RandomizedResponse, Renyi, Single};
use paygo_accounting::params::{Count, Delta, Epsilon, Mu, Neighbors, Order, Rho};
use paygo_accounting::prior::Prior;
use paygo_accounting::stored::StoredFilter;
use paygo_numeric::Amount;
use paygo_numeric::elementary::exp;
use proptest::prelude::*;

fn budget(epsilon: &str, delta: &str) -> Budget {
    Budget::from_decimal(epsilon, delta).expect("a budget")
}

fn amount(text: &str) -> Amount {
    Amount::from_decimal_down(text).expect("an amount")
}

fn order(a: f64) -> Order {
    Order::new(a).expect("an order")
}

fn single(single: Single) -> Cost {
    Cost::of(&Mechanism::Single(single), Neighbors::AddRemove).expect("a cost")
}

fn cost(mechanism: Mechanism) -> Cost {
    Cost::of(&mechanism, Neighbors::AddRemove).expect("a cost")
}

fn gaussian_noise(s: f64) -> Cost {
    cost(Mechanism::gaussian(s).expect("noise"))
}

fn pure(text: &str) -> Cost {
    single(Single::Pure(mechanism::Pure { epsilon: Epsilon::from_decimal(text).expect("an epsilon") }))
}

fn approximate(epsilon: &str, delta: &str) -> Cost {
    let (e, d) = (Epsilon::from_decimal(epsilon), Delta::from_decimal(delta));
    single(Single::Approximate(mechanism::Approximate { epsilon: e.expect("an epsilon"), delta: d.expect("a delta") }))
}

fn filter<R: Rule>(rule: Result<R, BudgetError>) -> Filter<R> {
    Filter::new(rule.expect("a rule"), Neighbors::AddRemove)
}

/// How many of a cost one after another are admitted.
#[track_caller]
fn admitted<R: Rule>(mut filter: Filter<R>, cost: &Cost) -> u64 {
    let charge = filter.price(cost).expect("a price");
    let mut n = 0;
    while filter.admit(&charge).is_admitted() {
        n += 1;
        assert!(n < 2_000_000, "no end");
    }
    // Refused once, refused for good, and nothing moved.
    let before = filter.clone();
    assert!(!filter.admit(&charge).is_admitted());
    assert_eq!(before, filter);
    assert_eq!(filter.room_for(&charge, 10), 0);
    n
}

#[test]
fn a_budget_of_a_thousand_holds_a_thousand() {
    assert_eq!(admitted(filter(Pure::new(budget("1", "0"))), &pure("0.001")), 1000);
    assert_eq!(admitted(filter(Pure::new(budget("0.3", "0"))), &pure("0.1")), 3);
    assert_eq!(admitted(filter(Pure::new(budget("1", "0"))), &cost(Mechanism::laplace(10.0).expect("noise"))), 10);
    assert_eq!(admitted(filter(Zcdp::with_limit(amount("0.5"), Amount::ZERO)), &gaussian_noise(10.0)), 100);
    let tenth = single(Single::Zcdp(mechanism::Zcdp { rho: Rho::from_decimal("0.1").expect("a rho") }));
    assert_eq!(admitted(filter(Zcdp::with_limit(amount("1"), Amount::ZERO)), &tenth), 10);
    assert_eq!(admitted(filter(Gdp::with_limit(amount("1"))), &gaussian_noise(20.0)), 400);
    let gdp = single(Single::Gdp(mechanism::Gdp { mu: Mu::from_decimal("0.1").expect("a mu") }));
    assert_eq!(admitted(filter(Gdp::with_limit(amount("1"))), &gdp), 100);
    let with_slack = budget("10", "2e-5").with_slack(amount("0.00001")).expect("a slack");
    assert_eq!(admitted(filter(Approximate::new(with_slack)), &approximate("0.01", "0.000001")), 10);
    // The mixture filter adds pure steps up exactly too.
    assert!(admitted(filter(Mixture::new(budget("1", "1e-5"))), &pure("0.001")) >= 1000);
    for c in [pure("0.1"), cost(Mechanism::laplace(10.0).expect("noise"))] {
        assert_eq!(admitted(filter(Mixture::new(budget("1", "1e-6"))), &c), 10);
        assert_eq!(admitted(filter(Union::new(budget("1", "1e-6"))), &c), 10);
    }
}

#[test]
fn the_gdp_filter_is_the_gaussian_profile() {
    for (epsilon, delta, s) in [("1", "1e-5", 20.0), ("3", "1e-6", 8.0), ("0.1", "1e-9", 400.0)] {
        let b = budget(epsilon, delta);
        let n = admitted(filter(Gdp::new(b)), &gaussian_noise(s));
        let at = |n: u64| {
            let mu = gaussian_noise(s).repeat(n).expect("a count").mu().expect("a mu");
            gaussian::delta(mu, b.epsilon())
        };
        assert!(at(n) <= b.delta() && at(n + 1) > b.delta(), "{epsilon} {delta} {n}");
        // No other filter admits more.
        assert!(admitted(filter(Mixture::new(b)), &gaussian_noise(s)) <= n);
        assert!(admitted(filter(Zcdp::new(b)), &gaussian_noise(s)) <= n);
        assert!(admitted(filter(Union::new(b)), &gaussian_noise(s)) <= n);
    }
}

#[test]
fn the_mixture_admits_at_least_the_union() {
    for (epsilon, delta) in [("1", "1e-5"), ("4", "1e-8"), ("2", "1e-5")] {
        let b = budget(epsilon, delta);
        let sampled = |q, s| cost(Mechanism::poisson_sampled_gaussian(q, s).expect("q"));
        for c in [gaussian_noise(8.0), pure("0.05"), sampled(0.01, 0.8), sampled(0.001, 1.0), sampled(0.01, 2.0)] {
            let room = |rule: AnyRule| {
                let f = Filter::new(rule, Neighbors::AddRemove);
                f.room_for(&f.price(&c).expect("a price"), Count::MAX)
            };
            let mixture = room(Mixture::new(b).expect("a rule").into());
            let cks = room(Union::over(b, Prior::log_spaced(), Conversion::Cks).expect("a rule").into());
            let exact = room(Union::new(b).expect("a rule").into());
            assert!(mixture >= cks && 20 * mixture >= 19 * exact, "{epsilon} {delta} {c:?} {mixture} {cks} {exact}");
        }
    }
}

#[test]
fn pure_admits_what_either_rule_admits() {
    let b = budget("1", "1e-5");
    let rho = zcdp::budget(Conversion::Exact, b.epsilon(), b.delta()).get();
    // Few large steps: basic composition. Many small ones: zCDP.
    assert_eq!(admitted(filter(Pure::new(b)), &pure("0.5")), 2);
    let many = admitted(filter(Pure::new(b)), &pure("0.01"));
    // tanh(0.005) = 0.005 − 0.005³/3 + …
    let each = 0.01 * (0.005 - 0.005f64.powi(3) / 3.0);
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let n = many as f64;
    assert!(n * each <= rho && (n + 1.0) * each > rho, "{many}");
}

/// The search for the worst loss once looked too near the end of its range: seven were refused, with "6 would fit", and eight
/// admitted.
#[test]
fn the_mixture_finds_its_worst_loss_however_far_it_lies() {
    let filter = filter(Mixture::new(budget("0.011196211788678242", "0.0038145762769247167")));
    let one = single(Single::RandomizedResponse(RandomizedResponse {
        epsilon: Epsilon::from_decimal("0.00262594285924254").expect("an epsilon"),
    }));
    let charge = filter.price(&one).expect("a price");
    let allowed: Vec<bool> =
        (1..=12).map(|n| filter.rule().allows(filter.sums().plus(charge.lanes(), n).lanes())).collect();
    let room = filter.room_for(&charge, 12);
    assert!(room >= 8, "{allowed:?}");
    assert_eq!(allowed, (1..=12).map(|n| n <= room).collect::<Vec<_>>());
    let filter = self::filter(Mixture::new(budget("0.183", "0.0182")));
    let one = single(Single::RandomizedResponse(RandomizedResponse {
        epsilon: Epsilon::from_decimal("0.035").expect("an epsilon"),
    }));
    let charge = filter.price(&one).expect("a price");
    let meter = |n: u64| filter.meters_of(&filter.sums().plus(charge.lanes(), n))[0].spent;
    assert!((1..30).all(|n| meter(n) <= meter(n + 1)), "{:?}", (1..30).map(meter).collect::<Vec<_>>());
}

#[test]
fn a_refusal_says_how_far_one_would_have_come() {
    let mut f = filter(Zcdp::with_limit(amount("0.5"), Amount::ZERO));
    assert!(f.request(&gaussian_noise(10.0).repeat(36).expect("a count")).expect("a price").is_admitted());
    let Decision::Refused(refusal) = f.request(&gaussian_noise(10.0).repeat(1000).expect("a count")).expect("a price")
    else {
        panic!("more than the budget was admitted")
    };
    assert_eq!(refusal.reason, Reason::Budget);
    assert_eq!(refusal.largest_count, 64);
    assert_eq!((refusal.requested[0].spent, refusal.spent[0].spent), (amount("5"), amount("0.18")));
    assert_eq!(refusal.spent[0].remaining(), amount("0.32"));
    assert_eq!(
        refusal.to_string(),
        "refused: the total would pass the budget; rho 0.18 spent of 0.5, 5 requested; 64 of the same would fit"
    );
    assert!(f.request(&gaussian_noise(10.0).repeat(64).expect("a count")).expect("a price").is_admitted());
    // One that is no repeat of anything has no smaller count.
    let Decision::Refused(refusal) = f.request(&gaussian_noise(10.0)).expect("a price") else { panic!("overspent") };
    assert_eq!(refusal.largest_count, 0);
}

#[test]
fn slack_is_kept_apart() {
    let b = budget("2", "1e-5").with_slack(amount("0.000002")).expect("a slack");
    for rule in [AnyRule::from(Mixture::new(b).expect("a rule")), Zcdp::new(b).expect("a rule").into()] {
        let mut f = Filter::new(rule, Neighbors::AddRemove);
        let c = approximate("0.1", "0.000001");
        assert!(f.request(&c).expect("a price").is_admitted());
        assert!(f.request(&c).expect("a price").is_admitted());
        let Decision::Refused(refusal) = f.request(&c).expect("a price") else { panic!("slack overspent") };
        assert_eq!(refusal.reason, Reason::Slack);
        assert!(f.request(&pure("0.1")).expect("a price").is_admitted());
    }
    // Without slack no step with a δ of its own.
    let mut f = filter(Mixture::new(budget("2", "1e-5")));
    let Decision::Refused(refusal) = f.request(&approximate("0.1", "1e-12")).expect("a price") else {
        panic!("no slack")
    };
    assert_eq!(refusal.reason, Reason::NoSlack);
    assert!(refusal.to_string().contains("one made with a slack (--slack 1e-7) does"), "{refusal}");
    assert!(budget("1", "1e-5").with_slack(amount("0.00002")).is_err());
}

#[test]
fn what_has_no_price_is_an_error_that_says_what_would_work() {
    let b = budget("1", "1e-5");
    let sampled = cost(Mechanism::poisson_sampled_gaussian(0.01, 1.0).expect("q"));
    let error = filter(Gdp::new(b)).request(&sampled).expect_err("no mu");
    assert_eq!(
        error.to_string(),
        "poisson_sampled_gaussian has no price here: it has no mu; what has one: gaussian, gdp, partitioned_epoch and balls_and_bins_epoch; a mixture takes any mechanism"
    );
    assert!(matches!(filter(Pure::new(b)).request(&gaussian_noise(1.0)), Err(Unpriced::NoPrice { .. })));
    let curve = RenyiCurve::new(Orders::from_f64(&[2.0]).expect("orders"), vec![0.1]).expect("a curve");
    assert!(matches!(
        filter(Zcdp::new(b)).request(&single(Single::Renyi(Renyi { curve }))),
        Err(Unpriced::NoPrice { .. })
    ));
    let endless = single(Single::Zcdp(mechanism::Zcdp { rho: Rho::new(f64::INFINITY).expect("a rho") }));
    assert!(matches!(filter(Zcdp::new(b)).request(&endless), Err(Unpriced::Infinite { .. })));
    assert!(matches!(filter(Mixture::new(b)).request(&endless), Err(Unpriced::Infinite { .. })));
    let elsewhere = Cost::of(&Mechanism::gaussian(1.0).expect("noise"), Neighbors::ReplaceOne).expect("a cost");
    assert!(matches!(filter(Mixture::new(b)).request(&elsewhere), Err(Unpriced::Neighbors { .. })));
    // What was declared to be nothing costs nothing; what is merely tiny does not.
    let nothing = single(Single::Zcdp(mechanism::Zcdp { rho: Rho::ZERO }));
    let mut f = filter(Zcdp::new(b));
    assert!(f.request(&nothing).expect("a price").is_admitted());
    assert_eq!(f.sums().lanes(), [Amount::ZERO]);
    for tiny in
        [gaussian_noise(1e200), pure("1e-300"), cost(Mechanism::poisson_sampled_gaussian(1e-200, 1.0).expect("q"))]
    {
        let mut f = filter(Mixture::new(b));
        assert!(f.request(&tiny).expect("a price").is_admitted());
        assert!(f.sums().lanes().iter().all(|&sum| sum > Amount::ZERO), "{tiny:?}");
    }
}

#[test]
fn a_charge_for_another_filter_is_refused() {
    let narrow = filter(FixedOrder::new(order(8.0), budget("1", "1e-5")));
    let mut other = filter(FixedOrder::new(order(9.0), budget("1", "1e-5")));
    let charge = narrow.price(&gaussian_noise(100.0)).expect("a price");
    let Decision::Refused(refusal) = other.admit(&charge) else { panic!("another filter's charge was admitted") };
    assert_eq!(refusal.reason, Reason::OtherCurrency);
}

#[test]
fn budgets_that_serve_nothing_are_errors() {
    let few = Prior::uniform(Orders::from_f64(&[2.0, 4.0]).expect("orders")).expect("a prior");
    let error = Mixture::without_light_orders(budget("1", "1e-5"), few.clone()).expect_err("dead");
    assert!(error.to_string().starts_with("no order can serve epsilon = 1 at delta = 0.00001"), "{error}");
    assert!(Union::over(budget("1", "1e-5"), few, Conversion::Cks).is_err());
    assert!(FixedOrder::by(Conversion::Cks, order(2.0), budget("1", "1e-5")).is_err());
    assert!(Mixture::new(budget("1", "0")).is_err() && Zcdp::new(budget("1", "0")).is_err());
    assert!(Gdp::new(budget("1", "0")).is_err() && Pure::new(budget("0", "0")).is_err());
    assert!(Approximate::new(budget("1", "1e-5")).is_err());
    for (epsilon, delta) in [("-1", "1e-5"), ("1", "-1"), ("1", "1"), ("inf", "1e-5"), ("x", "1e-5"), ("1", "2")] {
        assert!(Budget::from_decimal(epsilon, delta).is_err(), "{epsilon} {delta}");
    }
}

#[test]
fn promises() {
    let b = budget("1", "1e-5");
    let delta = b.delta();
    for rule in [
        AnyRule::from(Mixture::new(b).expect("a rule")),
        Union::new(b).expect("a rule").into(),
        Gdp::new(b).expect("a rule").into(),
        Zcdp::new(b).expect("a rule").into(),
        Pure::new(b).expect("a rule").into(),
        FixedOrder::new(order(16.0), b).expect("a rule").into(),
    ] {
        let promised = rule.promise(delta).get();
        assert!((0.999..=1.0 + 1e-9).contains(&promised), "{} {promised}", rule.word());
        assert!(rule.promise(Delta::ZERO) == Epsilon::INFINITE, "{}", rule.word());
    }
}

/// Found by review: below the slack nothing is promised, and never less than what is admitted.
#[test]
fn promises_beside_slack_and_exact_limits() {
    let half = amount("0.5");
    let infinite = FixedOrder::with_limit(order(f64::INFINITY), Amount::ONE, half).expect("a rule");
    let nothing = FixedOrder::with_limit(order(2.0), Amount::ZERO, half).expect("a rule");
    let zcdp = Zcdp::with_limit(Amount::ZERO, half).expect("a rule");
    for rule in [AnyRule::from(infinite), nothing.into(), zcdp.into()] {
        for below in [0.0, 0.1, 0.499] {
            assert_eq!(rule.promise(Delta::new(below).expect("a delta")), Epsilon::INFINITE, "{rule:?}");
        }
        assert!(rule.promise(Delta::new(0.75).expect("a delta")) < Epsilon::INFINITE);
    }
    let tenth = filter(Pure::new(budget("0.1", "0")));
    assert!(tenth.guarantee(Delta::ZERO, "record").epsilon.get() >= 0.1);
}

/// Found by review: a limit that saturates is still a limit.
#[test]
fn enormous_budgets_end() {
    for epsilon in ["1e21", "1e300"] {
        let mut f = filter(Pure::new(budget(epsilon, "0")));
        let charge = f.price(&pure("3e20")).expect("a price");
        assert!((0..10).filter(|_| f.admit(&charge).is_admitted()).count() <= 1);
        let mut f = filter(Mixture::new(budget(epsilon, "1e-5")));
        let charge = f.price(&pure("3e20")).expect("a price");
        assert!((0..10).filter(|_| f.admit(&charge).is_admitted()).count() <= 1);
    }
}

#[test]
fn a_plan_that_is_followed_costs_almost_nothing_extra() {
    let step = cost(Mechanism::poisson_sampled_gaussian(0.01, 1.0).expect("q"));
    let b = budget("3", "1e-5");
    let fixed = |n: u64| {
        let rows = paygo_accounting::account::rows(
            &step.repeat(n).expect("a count"),
            paygo_accounting::account::Question::EpsilonAt(b.delta()),
        );
        rows.iter().find(|row| row.method == "renyi-exact").expect("a row").epsilon.get()
    };
    let planned = (1..).map(|k| 100 * k).take_while(|&n| fixed(n) <= 3.0 / 1.04).last().expect("some");
    let rule = Mixture::for_plan(b, &step.repeat(planned).expect("a count")).expect("a rule");
    let f = Filter::new(rule, Neighbors::AddRemove);
    let charge = f.price(&step).expect("a price");
    assert!(f.room_for(&charge, Count::MAX) >= planned, "{planned}");
}

fn every_rule() -> Vec<AnyRule> {
    let b = budget("0.7", "1e-5");
    let with_slack = b.with_slack(amount("0.000003")).expect("a slack");
    vec![
        Mixture::new(with_slack).expect("a rule").into(),
        Mixture::without_light_orders(b, Prior::log_spaced()).expect("a rule").into(),
        Mixture::for_plan(b, &gaussian_noise(30.0).repeat(50).expect("a count")).expect("a rule").into(),
        Union::over(b, Prior::log_spaced(), Conversion::Cks).expect("a rule").into(),
        FixedOrder::new(order(16.0), with_slack).expect("a rule").into(),
        Zcdp::new(with_slack).expect("a rule").into(),
        Gdp::new(b).expect("a rule").into(),
        Pure::new(b).expect("a rule").into(),
        Approximate::new(with_slack).expect("a rule").into(),
    ]
}

#[test]
fn a_stored_filter_is_the_same_filter_and_the_same_bytes() {
    for rule in every_rule() {
        let mut f = Filter::new(rule, Neighbors::AddRemove);
        let costs = [gaussian_noise(41.0), pure("0.013"), approximate("0.01", "0.0000001")];
        let admitted = costs.iter().filter(|c| f.request(c).is_ok_and(|d| d.is_admitted())).count();
        assert!(admitted > 0, "{}", f.rule().word());
        let text = serde_json::to_string(&StoredFilter::from(&f)).expect("text");
        let loaded = Filter::try_from(serde_json::from_str::<StoredFilter>(&text).expect("stored")).expect("a filter");
        assert_eq!(loaded, f);
        assert_eq!(serde_json::to_string(&StoredFilter::from(&loaded)).expect("text"), text);
        // What is not ours is refused, with the reason.
        let later = text.replacen("\"version\":1", "\"version\":2", 1);
        let error = Filter::try_from(serde_json::from_str::<StoredFilter>(&later).expect("stored")).expect_err("later");
        assert_eq!(error.to_string(), "version 2 of a stored filter is not known here; expected 1");
        let mut stored = StoredFilter::from(&f);
        stored.spent.pop();
        assert!(Filter::try_from(stored).is_err());
    }
    let broken = r#"{"version":1,"neighbors":"add-remove","rule":{"zcdp":{"limit":"-1","slack":"0"}},"spent":["0"],"slack_spent":"0"}"#;
    let error = Filter::try_from(serde_json::from_str::<StoredFilter>(broken).expect("stored")).expect_err("negative");
    assert_eq!(error.to_string(), "limit = -1 is outside its domain; expected a decimal number of at most 18 places");
    let over = r#"{"version":1,"neighbors":"add-remove","rule":{"zcdp":{"limit":"1","slack":"0"}},"spent":["2"],"slack_spent":"0"}"#;
    let mut f = Filter::try_from(serde_json::from_str::<StoredFilter>(over).expect("stored")).expect("a filter");
    assert!(!f.request(&gaussian_noise(1e9)).expect("a price").is_admitted());
}

#[test]
fn filters_are_plain_data() {
    fn plain<T: Send + Sync + Clone + 'static>() {}
    plain::<Filter<AnyRule>>();
    plain::<Filter<Mixture>>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The order of arrival changes neither the sums nor what is admitted next.
    #[test]
    fn order_of_arrival_does_not_matter(mut parts in proptest::collection::vec((1u32..60, 0usize..4), 1..12), swap in 0usize..12) {
        let mechanisms = |k: u32, kind: usize| match kind {
            0 => gaussian_noise(f64::from(k) / 7.0 + 6.0),
            1 => pure(&format!("0.00{k}")),
            2 => cost(Mechanism::laplace(f64::from(k) + 10.0).expect("noise")),
            _ => single(Single::Zcdp(mechanism::Zcdp { rho: Rho::from_decimal(&format!("0.000{k}")).expect("a rho") })),
        };
        let run = |parts: &[(u32, usize)]| {
            let mut f = filter(Mixture::new(budget("8", "1e-5")));
            let all = parts.iter().all(|&(k, kind)| f.request(&mechanisms(k, kind)).expect("a price").is_admitted());
            (f, all)
        };
        let (first, all) = run(&parts);
        prop_assume!(all);
        parts.reverse();
        let n = parts.len();
        parts.swap(0, swap % n);
        let (second, all) = run(&parts);
        prop_assert!(all && first == second);
    }

    /// A what-if on a clone leaves the filter alone, and says what the filter then does.
    /// What `Rule` promises: where larger sums are allowed, so are smaller ones.
    #[test]
    fn smaller_sums_are_allowed_wherever_larger_ones_are(
        log_epsilon in -7.0f64..2.0, log_delta in -25.0f64..-1.5, share in 0.01f64..1.0, spread in 0.0f64..1.0, cut in 0.0f64..1.0,
    ) {
        let (epsilon, delta) = (exp(log_epsilon), exp(log_delta));
        let budget = Budget::new(Epsilon::new(epsilon).expect("epsilon"), Delta::new(delta).expect("delta"));
        let Ok(rule) = Mixture::new(budget.expect("a budget")) else { return Ok(()) };
        // Randomized responses one by one: allowed up to some count, and never after; the reading never falls before that.
        let step = Epsilon::new(epsilon * share).expect("epsilon");
        let filter = Filter::new(rule, Neighbors::AddRemove);
        let charge = filter.price(&single(Single::RandomizedResponse(RandomizedResponse { epsilon: step }))).expect("a price");
        let readings: Vec<(bool, f64)> = (1..60)
            .map(|n| {
                let sums = filter.sums().plus(charge.lanes(), n);
                (filter.rule().allows(sums.lanes()), filter.rule().least_epsilon(sums.lanes()).get())
            })
            .collect();
        for pair in readings.windows(2) {
            prop_assert!(pair[0].0 || !pair[1].0, "refused, then admitted: {readings:?}");
            prop_assert!(pair[1].1 >= pair[0].1 * (1.0 - 1e-12), "the reading fell: {readings:?}");
        }
        // Any sums, and smaller ones in some of the lanes.
        let n = readings.iter().take_while(|(allowed, _)| *allowed).count() as u64 + 1;
        let large = filter.sums().plus(charge.lanes(), n);
        let mut place = cut;
        let less = |lane: &Amount| {
            place = (place + 0.618).fract();
            let keep = if place < spread { 1.0 } else { cut };
            Amount::from_f64_down(lane.to_f64_down() * keep).expect("an amount")
        };
        let small: Vec<Amount> = large.lanes().iter().map(less).collect();
        prop_assert!(filter.rule().allows(&small) || !filter.rule().allows(large.lanes()));
        let (below, above) = (filter.rule().least_epsilon(&small).get(), filter.rule().least_epsilon(large.lanes()).get());
        prop_assert!(below <= above * (1.0 + 1e-12), "{below} {above}");
    }

    #[test]
    fn what_if(noise in 2.0f64..40.0, times in 1u64..50) {
        let mut f = filter(Mixture::new(budget("2", "1e-6")));
        let charge = f.price(&gaussian_noise(noise)).expect("a price");
        let room = f.room_for(&charge, times);
        let mut what_if = f.clone();
        for _ in 0..room {
            prop_assert!(what_if.admit(&charge).is_admitted());
        }
        prop_assert!(room == times || !what_if.admit(&charge).is_admitted());
        prop_assert_eq!(f.sums().lanes()[0], Amount::ZERO);
        prop_assert!(room == 0 || f.admit(&charge).is_admitted());
    }
}

#[test]
fn what_is_replayed_counts() {
    let mut filter = filter(Mixture::new(budget("1", "1e-6")));
    let charge = filter.price(&gaussian_noise(20.0)).expect("a price");
    let mut asked = filter.clone();
    let most = filter.room_for(&charge, 1 << 20);
    for _ in 0..most {
        filter.replay(charge.lanes());
    }
    assert!(filter.is_within_budget() && filter.objects_to(&charge) == Some(Reason::Budget));
    while asked.admit(&charge).is_admitted() {}
    assert_eq!(asked, filter, "a log replayed is the filter that wrote it");
    // One too many was stored: nothing more fits, and it says so.
    filter.replay(charge.lanes());
    assert!(!filter.is_within_budget());
    // Sums of another currency: doubt costs.
    let other = Filter::new(Zcdp::with_limit(Amount::ONE, Amount::ZERO).expect("a rule"), Neighbors::AddRemove);
    let foreign = other.price(&gaussian_noise(20.0)).expect("a price").lanes().clone();
    let mut empty = Filter::new(filter.rule().clone(), Neighbors::AddRemove);
    empty.replay(&foreign);
    assert!(!empty.is_within_budget());
}
