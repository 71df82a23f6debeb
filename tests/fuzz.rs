//! Random bytes and random numbers at every door. Runs on stable as an ordinary test; `cargo bolero test NAME` makes the
//! same bodies coverage-guided.

use bolero::check;
use paygo::accounting::account::{Question, rows};
use paygo::accounting::convert::{Conversion, gaussian, zcdp};
use paygo::accounting::cost::Cost;
use paygo::accounting::filter::{
    AnyRule, Approximate, Budget, Decision, Filter, FixedOrder, Gdp, Mixture, Pure, Rule, Union, Zcdp,
};
use paygo::accounting::mechanism::{self, Mechanism, PoissonSampledGaussian, Single};
use paygo::accounting::odometer::{AnyBoundary, Linear, Odometer, Restart, Stitched, VilleMixture};
use paygo::accounting::params::{
    Delta, Divergence, Epsilon, Mu, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability,
};
use paygo::accounting::prior::Prior;
use paygo::accounting::stored::StoredFilter;
use paygo::accounting::wire::{self, Plan};
use paygo::analysis::{Accounts, ClipRange, Condition, Edges, Key, Mode, PersonBudget, Salt, Settings};
use paygo::numeric::decimal::{parse_down, parse_up};
use paygo::numeric::{Amount, Interval};
use serde_json::json;

#[test]
fn plan_parsers() {
    check!().with_type::<Vec<u8>>().for_each(|bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        for plan in [serde_json::from_str::<Plan>(text).ok(), toml::from_str::<Plan>(text).ok()].into_iter().flatten() {
            let _ = plan.cost();
        }
    });
}

/// Well-formed plans with arbitrary numbers: an error or finite work, never a panic, never NaN.
#[test]
fn plan_numbers() {
    check!().with_type::<(f64, f64, i64, u8)>().for_each(|&(x, y, n, word)| {
        let words = match word % 8 {
            0 => json!({"pure": {"epsilon": x}}),
            1 => json!({"approximate": {"epsilon": x, "delta": y}}),
            2 => json!({"zcdp": {"rho": x}}),
            3 => json!({"gdp": {"mu": x}}),
            4 => json!({"laplace": {"scale": x, "l1_sensitivity": y}}),
            5 => json!({"randomized_response": {"epsilon": x}}),
            6 => json!({"renyi": {"orders": [x, y], "values": [y, x]}}),
            _ => json!({"partitioned_epoch": {"noise_multipliers": [x, y], "assignment": "independent-uniform"}}),
        };
        // JSON has no word for infinity or NaN.
        let Ok(mechanism) = serde_json::from_value::<wire::Mechanism>(words) else { return };
        let mechanism = wire::Mechanism::Repeat { count: wire::Number::Integer(n), of: Box::new(mechanism) };
        let Ok(checked) = Mechanism::try_from(&mechanism) else { return };
        let Ok(cost) = Cost::of(&checked, Neighbors::AddRemove) else { return };
        for row in rows(&cost, Question::EpsilonAt(Delta::new(1e-6).unwrap())) {
            assert!(!row.epsilon.get().is_nan() && !row.delta.get().is_nan());
        }
    });
}

fn rules() -> [AnyRule; 7] {
    let budget = Budget::from_decimal("2", "1e-5").expect("a budget");
    let with_slack = budget.with_slack(Amount::from_decimal_down("0.000001").expect("slack")).expect("room for it");
    [
        Mixture::new(with_slack).expect("a rule").into(),
        Union::new(with_slack).expect("a rule").into(),
        FixedOrder::new(Order::new(8.0).expect("an order"), with_slack).expect("a rule").into(),
        Zcdp::new(with_slack).expect("a rule").into(),
        Gdp::new(budget).expect("a rule").into(),
        Pure::new(budget).expect("a rule").into(),
        Approximate::new(with_slack).expect("a rule").into(),
    ]
}

fn boundaries() -> [AnyBoundary; 4] {
    let (delta, slack) = (Delta::new(1e-5).expect("δ"), Amount::from_decimal_down("0.000001").expect("slack"));
    [
        VilleMixture::new(delta, Prior::log_spaced()).expect("a boundary").into(),
        Restart::new(Order::new(8.0).expect("an order"), Amount::ONE, delta).expect("a boundary").into(),
        Linear::for_target(Epsilon::new(1.0).expect("ε"), delta, slack).expect("a boundary").into(),
        Stitched::new(delta, slack).expect("a boundary").into(),
    ]
}

/// A cost with these numbers in it, if they can be.
fn any_cost(x: f64, y: f64, word: u8) -> Option<Cost> {
    let mechanism = match word % 6 {
        0 => Mechanism::gaussian(x),
        1 => Mechanism::laplace(x),
        2 => Mechanism::pure(x),
        3 => Mechanism::poisson_sampled_gaussian(y.fract(), x),
        4 => Epsilon::new(x)
            .and_then(|epsilon| Ok(Mechanism::from(mechanism::Approximate { epsilon, delta: Delta::new(y.fract())? }))),
        _ => Rho::new(x).map(|rho| Mechanism::from(mechanism::Zcdp { rho })),
    };
    Cost::of(&mechanism.ok()?, Neighbors::AddRemove).ok()
}

/// Any numbers against any rule and boundary: a typed error, a refusal that changes nothing, or sums that the rule allows.
#[test]
fn filters_and_odometers() {
    let (rules, boundaries) = (rules(), boundaries());
    check!().with_type::<(f64, f64, u64, u8)>().for_each(|&(x, y, n, word)| {
        let Some(cost) = any_cost(x.abs(), y.abs(), word) else { return };
        let count = n % (1 << 40) + 1;
        let Ok(cost) = cost.repeat(count) else { return };
        for rule in &rules {
            let mut filter = Filter::new(rule.clone(), Neighbors::AddRemove);
            let before = filter.clone();
            match filter.request(&cost) {
                Ok(Decision::Admitted(_)) => assert!(rule.allows(filter.sums().lanes())),
                Ok(Decision::Refused(refusal)) => assert!(filter == before && refusal.largest_count < count),
                Err(_) => assert!(filter == before),
            }
            let admitted = rule.allows(filter.sums().lanes());
            let within = filter.meters().iter().all(|meter| meter.spent <= meter.budget);
            // The pure rules have two meters, of which one is enough.
            assert!(!admitted || within || ["pure", "approximate"].contains(&rule.word()));
        }
        for boundary in &boundaries {
            let mut odometer = Odometer::new(boundary.clone(), Neighbors::AddRemove);
            let empty = odometer.reading();
            if let Ok(charge) = odometer.price(&cost)
                && odometer.observe(&charge).is_ok()
            {
                assert!(odometer.reading() >= empty);
            }
        }
    });
}

#[test]
fn stored_filters() {
    check!().with_type::<Vec<u8>>().for_each(|bytes| {
        let Ok(stored) = serde_json::from_slice::<StoredFilter>(bytes) else { return };
        let _ = Filter::try_from(stored);
    });
}

#[test]
fn conversions() {
    check!().with_type::<(f64, f64, f64, f64)>().for_each(|&(a, value, d, e)| {
        let (d, e) = (d.abs().fract(), e.abs());
        let (Ok(order), Ok(delta), Ok(epsilon)) = (Order::new(a.abs()), Delta::new(d), Epsilon::new(e)) else { return };
        for conversion in Conversion::ALL {
            assert!(!conversion.epsilon(order, Divergence::from_upper_bound(value.abs()), delta).get().is_nan());
            assert!(!conversion.delta(order, Divergence::from_upper_bound(value.abs()), epsilon).get().is_nan());
            assert!(conversion.budget(order, epsilon, delta).is_none_or(|budget| budget.get() >= 0.0));
            if let Ok(rho) = Rho::new(value.abs()) {
                assert!(!zcdp::epsilon(conversion, rho, delta).0.get().is_nan());
                assert!(!zcdp::delta(conversion, rho, epsilon).0.get().is_nan());
                assert!(!zcdp::budget(conversion, epsilon, delta).get().is_nan());
            }
        }
        if let Ok(mu) = Mu::new(value.abs()) {
            assert!(!gaussian::epsilon(mu, delta).get().is_nan() && !gaussian::delta(mu, epsilon).get().is_nan());
            assert!(!gaussian::budget(epsilon, delta).get().is_nan());
        }
    });
}

#[test]
fn sampled_gaussian() {
    check!().with_type::<(f64, f64, f64)>().for_each(|&(q, s, a)| {
        let parameters =
            (SamplingProbability::new(q.abs().fract()), NoiseMultiplier::new(s.abs()), Order::new(a.abs()));
        let (Ok(sampling_probability), Ok(noise_multiplier), Ok(order)) = parameters else { return };
        let mechanism =
            Single::PoissonSampledGaussian(PoissonSampledGaussian { sampling_probability, noise_multiplier });
        let value = mechanism.family().renyi(order).get();
        assert!(value > 0.0 || sampling_probability.get() == 0.0, "{mechanism:?} at {order}: {value}");
    });
}

#[test]
fn numbers() {
    check!().with_type::<(f64, f64, String)>().for_each(|(x, y, text)| {
        if let (Some(low), Some(high)) = (parse_down(text), parse_up(text)) {
            assert!(low <= high);
        }
        let (x, y) = (Interval::point(*x), Interval::point(*y));
        for z in [x + y, x - y, x * y, x / y, x.exp(), x.exp_m1(), x.ln(), x.ln_1p(), x.sqrt(), x.square()] {
            assert!(z.lo() <= z.hi());
        }
    });
}

/// Any text as a condition, a range, a grid or a budget: read or refused, never a panic.
#[test]
fn query_words() {
    check!().with_type::<Vec<u8>>().for_each(|bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let _ = text.parse::<Condition>();
        let _ = format!("a {text} 3 and b in ('{text}')").parse::<Condition>();
        if let Ok(clip) = text.parse::<ClipRange>() {
            assert!(clip.low() < clip.high());
        }
        let _ = text.parse::<Edges>();
        if let Ok(allowance) = text.parse::<PersonBudget>() {
            let _ = allowance.budget();
        }
    });
}

/// Accounts with arbitrary bytes in them: whole, or refused by name; never a panic, never more people or less spent.
#[test]
fn damaged_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("whole"), folder.path().join("damaged"));
    let settings = Settings::new("person", Mode::Individual, "rho=1".parse().unwrap());
    let salt = Salt([3; 16]);
    let mut people: Vec<(Key, u8)> = (0..100).map(|id: u32| (salt.key(&id.to_string()), 0)).collect();
    people.sort_unstable();
    drop(Accounts::create(Some(&path), settings.clone(), salt, &people).unwrap());
    let whole = std::fs::read(&path).unwrap();
    check!().with_iterations(400).with_type::<(u32, Vec<u8>, bool)>().for_each(|(at, damage, cut)| {
        let mut bytes = whole.clone();
        let at = *at as usize % bytes.len();
        for (byte, damage) in bytes[at..].iter_mut().zip(damage) {
            *byte ^= damage;
        }
        if *cut {
            bytes.truncate(at);
        }
        std::fs::write(&copy, bytes).unwrap();
        if let Ok(accounts) = Accounts::open(&copy, Some(&settings)) {
            let _ = accounts.disclose("7");
        }
    });
}
