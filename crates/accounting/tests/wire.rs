//! The words on the wire: every one parses, round-trips, and says what is wrong when it is.

use paygo_accounting::cost::Cost;
use paygo_accounting::mechanism::{Mechanism as Checked, Single};
use paygo_accounting::params::{Neighbors, Order};
use paygo_accounting::wire::{Mechanism, Plan};

const WORDS: &[&str] = &[
    r#"{"gaussian":{"noise_multiplier":1.1}}"#,
    r#"{"gaussian":{"noise_std":500,"l2_sensitivity":100}}"#,
    r#"{"laplace":{"scale":10.0}}"#,
    r#"{"laplace":{"scale":10.0,"l1_sensitivity":2}}"#,
    r#"{"randomized_response":{"epsilon":0.5}}"#,
    r#"{"exponential":{"epsilon":0.1}}"#,
    r#"{"pure":{"epsilon":0.1}}"#,
    r#"{"pure":{"epsilon":"0.1"}}"#,
    r#"{"approximate":{"epsilon":0.1,"delta":1e-9}}"#,
    r#"{"zcdp":{"rho":0.01}}"#,
    r#"{"gdp":{"mu":0.1}}"#,
    r#"{"poisson_sampled_gaussian":{"sampling_probability":0.01,"noise_multiplier":1.1}}"#,
    r#"{"balls_and_bins_epoch":{"batches":100,"noise_multiplier":6.0}}"#,
    r#"{"partitioned_epoch":{"noise_multipliers":[6.0,6.0],"assignment":"independent"}}"#,
    r#"{"renyi":{"orders":[2,4,8],"values":[0.1,0.2,0.4]}}"#,
    r#"{"repeat":{"count":1000,"of":{"gaussian":{"noise_multiplier":20.0}}}}"#,
    r#"{"all_of":[{"pure":{"epsilon":0.1}},{"gdp":{"mu":0.1}}]}"#,
    r#"{"parallel":[{"pure":{"epsilon":0.1}},{"gdp":{"mu":0.1}}]}"#,
];

#[test]
fn every_word_parses_round_trips_and_has_a_price() {
    for text in WORDS {
        let mechanism: Mechanism = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(serde_json::to_string(&mechanism).expect("text"), *text);
        let checked = Checked::try_from(&mechanism).unwrap_or_else(|error| panic!("{text}: {error}"));
        let cost = Cost::of(&checked, Neighbors::AddRemove).unwrap_or_else(|error| panic!("{text}: {error}"));
        let value = cost.renyi(Order::new(3.0).expect("order")).get();
        assert!(value > 0.0 && value < f64::INFINITY, "{text}: {value}");
        // What is checked can be written again, and so can what was merged into a cost.
        let written = serde_json::to_string(&Mechanism::from(&checked)).expect("text");
        let again: Mechanism = serde_json::from_str(&written).expect("words");
        assert_eq!(Checked::try_from(&again).as_ref(), Ok(&checked), "{written}");
        assert_eq!(Cost::of(&cost.mechanism(), Neighbors::AddRemove).as_ref(), Ok(&cost), "{text}");
    }
    // Every family of the registry is among them, under the name of its file.
    let families = Single::WORDS.iter().filter(|&&word| word != "fixed_size_sampled_gaussian");
    for word in families {
        let text = WORDS.iter().find(|text| text.starts_with(&format!("{{\"{word}\":"))).expect(word);
        let checked = Checked::try_from(&serde_json::from_str::<Mechanism>(text).expect("words")).expect("a mechanism");
        assert!(matches!(checked, Checked::Single(single) if single.word() == *word), "{text}");
    }
    let fixed: Mechanism =
        serde_json::from_str(r#"{"fixed_size_sampled_gaussian":{"batch_fraction":0.01,"noise_multiplier":4.0}}"#)
            .expect("parses");
    let checked = Checked::try_from(&fixed).expect("checks");
    assert!(Cost::of(&checked, Neighbors::ReplaceOne).is_ok());
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let complaint = match serde_json::from_str::<Mechanism>(text) {
        Err(error) => error.to_string(),
        Ok(mechanism) => match Checked::try_from(&mechanism) {
            Err(error) => error.to_string(),
            Ok(checked) => match Cost::of(&checked, Neighbors::AddRemove) {
                Err(error) => error.to_string(),
                Ok(_) => panic!("{text} was accepted"),
            },
        },
    };
    assert!(complaint.contains(expected), "{text}: {complaint:?} does not say {expected:?}");
}

#[test]
fn a_refusal_names_the_field_the_value_and_what_is_allowed() {
    refused(r#"{"gausian":{"noise_multiplier":1.1}}"#, "unknown variant `gausian`, expected one of `gaussian`");
    refused(r#"{"gaussian":{"noise_multiplier":1.1,"sigma":2}}"#, "unknown field `sigma`");
    refused(r#"{"gaussian":{}}"#, "missing field `noise_multiplier`");
    refused(r#"{"gaussian":{"noise_multiplier":1,"noise_std":2,"l2_sensitivity":1}}"#, "noise_std with l2_sensitivity");
    refused(
        r#"{"gaussian":{"noise_multiplier":0}}"#,
        "noise_multiplier = 0 is outside its domain; expected 0 < noise_multiplier < inf",
    );
    refused(r#"{"gaussian":{"noise_multiplier":-1.5}}"#, "noise_multiplier = -1.5");
    refused(
        r#"{"gaussian":{"noise_multiplier":"nan"}}"#,
        "noise_multiplier = nan is outside its domain; expected a decimal number",
    );
    refused(r#"{"gaussian":{"noise_multiplier":"inf"}}"#, "noise_multiplier = inf");
    refused(r#"{"gaussian":{"noise_multiplier":true}}"#, "a number");
    refused(r#"{"laplace":{"scale":-1}}"#, "scale = -1");
    refused(r#"{"pure":{"epsilon":-0.1}}"#, "epsilon = -0.1");
    refused(r#"{"pure":{"epsilon":0.1,"delta":0.1}}"#, "unknown field `delta`");
    refused(r#"{"approximate":{"epsilon":0.1}}"#, "missing field `delta`");
    refused(r#"{"approximate":{"epsilon":0.1,"delta":1.5}}"#, "delta = 1.5");
    refused(
        r#"{"poisson_sampled_gaussian":{"sampling_probability":1.01,"noise_multiplier":1}}"#,
        "sampling_probability = 1.01",
    );
    refused(r#"{"renyi":{"orders":[],"values":[]}}"#, "orders = []");
    refused(r#"{"renyi":{"orders":[4,2],"values":[1,1]}}"#, "strictly increasing");
    refused(r#"{"renyi":{"orders":[1,2],"values":[1,1]}}"#, "order = 1");
    refused(r#"{"renyi":{"orders":[2,3],"values":[1]}}"#, "number of values = 1 for 2 orders");
    refused(r#"{"renyi":{"orders":[2],"values":[0]}}"#, "values = 0");
    refused(r#"{"repeat":{"count":0,"of":{"pure":{"epsilon":1}}}}"#, "count = 0");
    refused(
        r#"{"repeat":{"count":1.5,"of":{"pure":{"epsilon":1}}}}"#,
        "count = 1.5 is outside its domain; expected an integer",
    );
    refused(r#"{"repeat":{"count":9007199254740993,"of":{"pure":{"epsilon":1}}}}"#, "count = 9007199254740993");
    refused(r#"{"repeat":{"count":9007199254740992,"of":{"repeat":{"count":2,"of":{"pure":{"epsilon":1}}}}}}"#, "2^53");
    refused(r#"{"all_of":[]}"#, "all_of is empty");
    refused(r#"{"parallel":[]}"#, "parallel is empty");
    refused(r#"{"partitioned_epoch":{"noise_multipliers":[]}}"#, "noise_multipliers = []");
    refused(r#"{"fixed_size_sampled_gaussian":{"batch_fraction":0.1,"noise_multiplier":1}}"#, "expected replace-one");
}

#[test]
fn a_number_is_the_text_that_was_written_and_goes_to_the_dear_side() {
    let cost = |text: &str| {
        let mechanism: Mechanism = serde_json::from_str(text).expect("parses");
        Cost::of(&Checked::try_from(&mechanism).expect("checks"), Neighbors::AddRemove).expect("cost")
    };
    // The double called 0.3 lies below three tenths: the price must not, with or without quotes.
    let (number, text) = (cost(r#"{"zcdp":{"rho":0.3}}"#), cost(r#"{"zcdp":{"rho":"0.3"}}"#));
    assert_eq!(number, text);
    assert!(number.rho().expect("a rho").get() > 0.3);
    // The double called 1.1 lies above eleven tenths: noise goes down.
    let (number, text) =
        (cost(r#"{"gaussian":{"noise_multiplier":1.1}}"#), cost(r#"{"gaussian":{"noise_multiplier":"1.1"}}"#));
    assert_eq!(number, text);
    assert!(
        number.rho() > Cost::of(&Checked::gaussian(1.1).expect("noise"), Neighbors::AddRemove).expect("cost").rho()
    );
    // A number with more digits than a double can tell apart is the double that every language reads, to the last bit.
    for text in ["0.0054731390087123764", "1.7976931348623157e308", "2.2250738585072014e-280", "0.30000000000000004"] {
        let rho = cost(&format!(r#"{{"zcdp":{{"rho":{text}}}}}"#)).rho().map(paygo_accounting::params::Rho::get);
        assert_eq!(rho, text.parse().ok(), "{text}");
    }
    // A fraction goes to the dear side of its value.
    let poisson = |q: &str| {
        cost(&format!(r#"{{"poisson_sampled_gaussian":{{"sampling_probability":{q},"noise_multiplier":1}}}}"#))
    };
    assert_eq!(poisson(r#""1/4""#), poisson("0.25"));
    let third = cost(r#"{"zcdp":{"rho":"1 / 3"}}"#).rho().expect("a rho").get();
    assert!(third > 1.0 / 3.0 && third <= (1.0f64 / 3.0).next_up(), "1/3 as a double lies below a third");
    refused(r#"{"zcdp":{"rho":"1/0"}}"#, "rho = 1/0");
    refused(r#"{"zcdp":{"rho":"1/-3"}}"#, "rho = 1/-3");
    refused(r#"{"zcdp":{"rho":"-1/3"}}"#, "rho = -1/3");
    refused(r#"{"zcdp":{"rho":"1/3/5"}}"#, "rho = 1/3/5");
    // Sensitivity divides.
    assert_eq!(
        cost(r#"{"gaussian":{"noise_std":500,"l2_sensitivity":100}}"#),
        cost(r#"{"gaussian":{"noise_multiplier":5}}"#)
    );
    assert_eq!(cost(r#"{"laplace":{"scale":10,"l1_sensitivity":2}}"#), cost(r#"{"laplace":{"scale":5}}"#));
}

#[test]
fn plans_have_defaults_and_say_what_is_missing() {
    let plan: Plan = serde_json::from_str(r#"{"releases":[{"mechanism":{"pure":{"epsilon":1}}}]}"#).expect("parses");
    let cost = plan.cost().expect("cost");
    assert_eq!(cost.neighbors(), Neighbors::AddRemove);
    assert_eq!(plan.privacy_unit, "record");
    let empty: Plan = serde_json::from_str(r#"{"releases":[]}"#).expect("parses");
    assert_eq!(empty.cost().expect_err("empty").to_string(), "releases is empty; expected at least one mechanism");
    assert!(serde_json::from_str::<Plan>(r#"{"releases":[],"extra":1}"#).is_err());
    assert!(serde_json::from_str::<Plan>(r#"{"neighbors":"adjacent","releases":[]}"#).is_err());
}

#[test]
fn an_order_is_read_down_wherever_it_is_written() {
    use paygo_accounting::filter::{AnyRule, Filter, Rule};
    use paygo_accounting::wire::FilterWords;
    // The double called 1.1 lies above 1.1: what is known at 1.1 is not known there.
    let below = 1.1f64.next_down();
    let curve: Mechanism =
        serde_json::from_str(r#"{"renyi": {"orders": ["1.1"], "values": ["0.001"]}}"#).expect("words");
    let cost = Cost::of(&Checked::try_from(&curve).expect("a mechanism"), Neighbors::AddRemove).expect("a cost");
    for words in [
        r#"{"kind": "fixed-order", "epsilon": 90, "delta": 1e-3, "order": "1.1"}"#,
        r#"{"kind": "fixed-order", "epsilon": 90, "delta": 1e-3, "order": 1.1}"#,
        r#"{"kind": "union", "epsilon": 90, "delta": 1e-3, "orders": ["1.1"]}"#,
        r#"{"kind": "mixture", "epsilon": 90, "delta": 1e-3, "orders": [1.1]}"#,
    ] {
        let rule = serde_json::from_str::<FilterWords>(words).expect("words").rule().expect("a rule");
        match &rule {
            AnyRule::FixedOrder(rule) => assert_eq!(rule.order().get(), below),
            AnyRule::Union(rule) => assert_eq!(rule.prior().orders().as_slice()[0].get(), below),
            AnyRule::Mixture(rule) => assert_eq!(rule.prior().orders().as_slice()[0].get(), below),
            AnyRule::Clock(_) | AnyRule::Gdp(_) | AnyRule::Zcdp(_) | AnyRule::Pure(_) | AnyRule::Approximate(_) => {
                panic!("{}", rule.word())
            }
        }
        // Once the filter asked at the double above, where the curve says nothing.
        assert!(Filter::new(rule, Neighbors::AddRemove).price(&cost).is_ok(), "{words}");
    }
}

#[test]
fn filters_in_words() {
    use paygo_accounting::filter::{AnyRule, Budget, Clock, Mixture, Rule, Zcdp};
    use paygo_accounting::wire::FilterWords;
    use paygo_numeric::Amount;
    let rule = |text: &str| serde_json::from_str::<FilterWords>(text).expect("words").rule();
    let budget = Budget::from_decimal("1", "1e-6").expect("a budget");
    let clock = AnyRule::from(Clock::new(budget).expect("a rule"));
    // A JSON number is the decimal number that was written, as text is.
    for words in [r#"{"epsilon": 1, "delta": 1e-6}"#, r#"{"kind": "clock", "epsilon": "1", "delta": "0.000001"}"#] {
        assert_eq!(rule(words), Ok(clock.clone()), "{words}");
    }
    let mixture = AnyRule::from(Mixture::new(budget).expect("a rule"));
    assert_eq!(rule(r#"{"kind": "mixture", "epsilon": 1, "delta": 1e-6}"#), Ok(mixture));
    let zcdp = Zcdp::with_limit(Amount::from_decimal_down("0.1").expect("an amount"), Amount::ZERO).expect("a rule");
    assert_eq!(rule(r#"{"kind": "zcdp", "rho": 0.1}"#), Ok(zcdp.into()));
    for (words, word) in [
        (r#"{"kind": "gdp", "mu": 1}"#, "gdp"),
        (r#"{"kind": "pure", "epsilon": 1}"#, "pure"),
        (r#"{"kind": "approximate", "epsilon": 1, "delta": 1e-6}"#, "approximate"),
        (r#"{"kind": "fixed-order", "epsilon": 1, "delta": 1e-6}"#, "fixed-order"),
        (r#"{"kind": "union", "epsilon": 1, "delta": 1e-6, "orders": [20, 40, "inf"]}"#, "union"),
        (
            r#"{"kind": "mixture", "epsilon": 1, "delta": 1e-6, "orders": [20, 40], "weights": ["0.5", "0.5"], "slack": 1e-7}"#,
            "mixture",
        ),
        (
            r#"{"epsilon": 3, "plan": {"delta": 1e-5, "releases": [{"mechanism": {"gaussian": {"noise_multiplier": 2}}}]}}"#,
            "clock",
        ),
    ] {
        assert_eq!(rule(words).map(|rule| rule.word()), Ok(word), "{words}");
    }
    for (words, complaint) in [
        (r"{}", "epsilon is missing"),
        (r#"{"epsilon": 1}"#, "delta is missing"),
        (r#"{"epsilon": -1, "delta": 1e-6}"#, "epsilon = -1"),
        (r#"{"epsilon": "x", "delta": 1e-6}"#, "epsilon = x"),
        (r#"{"epsilon": 1, "delta": 1}"#, "delta = 1"),
        (r#"{"epsilon": 1, "delta": 1e-6, "rho": 1}"#, "rho does not go with this kind; expected kind zcdp"),
        (r#"{"kind": "zcdp", "rho": 1, "epsilon": 1}"#, "give rho or mu, or epsilon and delta"),
        (r#"{"kind": "gdp", "mu": 1, "slack": 0.1}"#, "slack does not go with"),
        (r#"{"epsilon": 1, "delta": 1e-6, "slack": 1}"#, "slack = 1"),
        (r#"{"kind": "mixture", "epsilon": 1, "delta": 1e-6, "weights": [1]}"#, "number of weights"),
        (
            r#"{"epsilon": 1, "delta": 1e-6, "orders": [2]}"#,
            "orders does not go with this kind; expected kind mixture or union",
        ),
        (r#"{"epsilon": 1, "delta": 1e-6, "reserve": "0.1"}"#, "plan is missing"),
    ] {
        let said = rule(words).expect_err(words).to_string();
        assert!(said.contains(complaint), "{words}: {said}");
    }
}
