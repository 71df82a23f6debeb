//! What is answered, with so little noise that the truth shows, and who pays what for it.

mod common;

use common::{ask_plainly, ask_with, batch, clip, fresh, layout, noise, query, rows, settings, share, sum, table};
use paygo_accounting::individual::FULL;
use paygo_analysis::{
    Answer, Bins, Exhausted, Layout, Manner, Probability, Query, RoundError, Settings, Statistic, Table, Tier, Weight,
    open_accounts,
};

/// Noise far below what is asked for, and a budget that pays for it.
const HARDLY: f64 = 1e-4;
const PLENTY: &str = "rho=1e15";

const ROWS: [(i64, f64, &str); 7] = [
    (1, 10.0, "North"),
    (1, 20.0, "South"),
    (2, 500.0, "North"),
    (3, -3.0, "South"),
    (3, 5.0, "South"),
    (3, 7.0, "East"),
    (4, 40.0, "Elsewhere"),
];

fn one(table: &Table, query: Query) -> Answer {
    ask_plainly(table, &layout(vec![query]), &mut fresh(table, PLENTY)).answers.remove(0)
}

#[track_caller]
fn check(query: Query, expected: &[(&str, f64)]) {
    let answer = one(&table(&ROWS), query);
    let labels: Vec<&str> = answer.numbers.iter().map(|estimate| estimate.label.as_str()).collect();
    assert_eq!(labels, expected.iter().map(|(label, _)| *label).collect::<Vec<_>>());
    for (estimate, (_, expected)) in answer.numbers.iter().zip(expected) {
        assert!((estimate.value - expected).abs() < 0.01, "{estimate:?}, expected {expected}");
        assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
    }
}

fn selected(statistic: Statistic, condition: &str) -> Query {
    Query::new("q", statistic, Some(condition.parse().expect(condition)), noise(HARDLY)).expect("a query")
}

#[test]
fn statistics_are_over_people() {
    check(query(Statistic::People, HARDLY), &[("", 4.0)]);
    check(selected(Statistic::People, "amount > 5 and region in ('North', 'South')"), &[("", 2.0)]);
    check(query(Statistic::Rows(2), HARDLY), &[("", 2.0 + 1.0 + 2.0 + 1.0)]);
    // Totals: 30, 500 → 100, 9, 40.
    check(query(sum(0.0, 100.0), HARDLY), &[("", 179.0)]);
    // Somebody without a selected row contributes nothing, not the lower end of the range.
    check(selected(sum(20.0, 100.0), "region = 'South'"), &[("", 20.0 + 20.0)]);
    check(selected(sum(-5.0, 100.0), "amount < 0"), &[("", -3.0)]);
    // Own means: 15, 500 → 100, 3, 40.
    check(query(Statistic::Mean("amount".into(), clip(0.0, 100.0)), HARDLY), &[("", 158.0 / 4.0)]);
}

#[test]
fn in_a_histogram_a_person_counts_as_one_or_by_rows() {
    let categories = |names: &[&str]| Bins::Categories(names.iter().map(|&name| name.to_owned()).collect());
    let histogram = |bins, weight| query(Statistic::Histogram("region".into(), bins, weight), HARDLY);
    let three = categories(&["North", "South", "East"]);
    // Rows (North, South, East): 1 (1, 1, 0), 2 (1, 0, 0), 3 (0, 2, 1). The fourth person is elsewhere.
    let split = [("North", 0.5 + 1.0), ("South", 0.5 + 2.0 / 3.0), ("East", 1.0 / 3.0)];
    check(histogram(three.clone(), Weight::Person), &split);
    check(histogram(three.clone(), rows(100.0)), &[("North", 2.0), ("South", 3.0), ("East", 1.0)]);
    let (two, five) = (2f64.sqrt(), 5f64.sqrt());
    let scaled = [("North", 1.0 / two + 1.0), ("South", 1.0 / two + 2.0 / five), ("East", 1.0 / five)];
    check(histogram(three, rows(1.0)), &scaled);
    let edges = Bins::Edges("0..100:2".parse().expect("a grid"));
    let amounts = query(Statistic::Histogram("amount".into(), edges, rows(100.0)), HARDLY);
    check(amounts, &[("0 to 50", 6.0), ("50 to 100", 1.0)]);
}

#[test]
fn quantiles_come_from_a_grid() {
    let rows_of: Vec<(i64, f64, &str)> = (0..1000u16).map(|i| (i64::from(i), f64::from(i) / 10.0, "x")).collect();
    let probabilities = [0.1, 0.5, 0.9].map(|p| Probability::new(p).expect("a fraction")).to_vec();
    let grid = "0..100:50".parse().expect("a grid");
    let statistic = Statistic::Quantile("amount".into(), grid, Weight::Person, probabilities);
    let answer = one(&table(&rows_of), query(statistic.clone(), HARDLY));
    // Somebody with many rows is still one person.
    let mut uneven = rows_of.clone();
    uneven.extend((0..5000).map(|_| (7, 99.0, "x")));
    let uneven = one(&table(&uneven), query(statistic, HARDLY));
    assert!((uneven.numbers[1].value - 50.0).abs() < 0.3, "{uneven:?}");
    for (estimate, expected) in answer.numbers.iter().zip([10.0, 50.0, 90.0]) {
        assert!((estimate.value - expected).abs() < 0.2, "{estimate:?}");
        assert!(estimate.low <= expected && expected <= estimate.high && estimate.high - estimate.low <= 4.01);
    }
}

#[test]
fn what_is_left_of_a_step_does_not_add_up() {
    // 100,000 people with three rows of a third each, and noise at which all those thirds end at the same fraction of a step.
    let rows: Vec<(i64, f64, &str)> = (0..300_000).map(|row| (row / 3, 1.0 / 3.0, "x")).collect();
    let table = table(&rows);
    let noise_std = 1000.0;
    let queries = vec![
        Query::new("sum", sum(0.0, 10.0), None, noise(noise_std)).expect("a query"),
        Query::new("half", sum(0.0, 0.999_9), None, noise(noise_std)).expect("a query"),
    ];
    let layout = layout(queries);
    let mut accounts = fresh(&table, PLENTY);
    let runs = 25;
    let mut means = [0.0; 2];
    for _ in 0..runs {
        let answers = ask_plainly(&table, &layout, &mut accounts).answers;
        means.iter_mut().zip(&answers).for_each(|(mean, answer)| *mean += answer.numbers[0].value / f64::from(runs));
    }
    // The mean of 25 has a fifth of the noise: 200. A step of 2⁻¹⁰ for each person would be 98.
    assert!((means[0] - 100_000.0).abs() < 900.0 && (means[1] - 99_990.0).abs() < 900.0, "{means:?}");
}

#[test]
fn large_rows_cancel_before_the_total_is_clamped() {
    let table = table(&[(1, 3_000_000.0, "x"), (1, -2_999_950.0, "x")]);
    let answer = one(&table, query(sum(0.0, 100.0), 1.0));
    assert!((answer.numbers[0].value - 50.0).abs() < 8.0, "{answer:?}");
}

#[test]
fn nobodys_total_depends_on_how_rows_are_sorted_or_partitioned() {
    // Rows beyond anything, that cancel; many others around them.
    let mut rows: Vec<(i64, f64, &str)> = (0..300).map(|i| (7, if i % 2 == 0 { 1e300 } else { -1e300 }, "x")).collect();
    rows.extend((0..20_000).map(|i| (100 + i % 5000, 0.0, "x")));
    for cut in [1, 7, 150, 299, 4000, 20_000] {
        let batches = vec![batch(&rows[cut..]), batch(&rows[..cut])];
        let answer = one(&Table::in_memory(batches), query(sum(-100.0, 100.0), 1.0));
        assert!(answer.numbers[0].value.abs() < 8.0, "{cut}: {answer:?}");
        rows.reverse();
    }
}

#[test]
fn constants_are_as_fine_as_values() {
    // Half a million people, all alike; bounds and middles that are no whole steps.
    let rows: Vec<(i64, f64, &str)> = (0..500_000).map(|id| (id, 0.1, "x")).collect();
    let table = table(&rows);
    let queries = vec![
        Query::new("mean", Statistic::Mean("amount".into(), clip(-0.1, 0.3)), None, noise(0.5)).expect("a query"),
        Query::new("sum", sum(0.0, 0.07), None, noise(0.5)).expect("a query"),
    ];
    let answers = ask_plainly(&table, &layout(queries), &mut fresh(&table, PLENTY)).answers;
    let off = |answer: &Answer, truth: f64| (answer.numbers[0].value - truth).abs();
    // Six standard deviations; half a step for each person would be 0.24 to 0.48 in the sum.
    assert!(off(&answers[0], 0.1) < 6.0 * 0.5 / 500_000.0 + 1e-7, "{answers:?}");
    assert!(off(&answers[1], 35_000.0) < 3.1, "{answers:?}");
}

#[test]
fn scaling_down_never_gives_more_than_is_left() {
    // A cost beyond counting: 10⁶ at noise 1 against ρ = 0.01, which covers 0.14.
    let table = table(&[(1, 1e6, "x")]);
    let layout = layout(vec![query(sum(0.0, 1e6), 1.0)]);
    let manner = Manner { exhausted: Exhausted::ScaledDown, ..Manner::default() };
    for _ in 0..20 {
        let mut accounts = fresh(&table, "rho=0.01");
        let answer = ask_with(&table, &layout, &mut accounts, manner).expect("answers").answers.remove(0);
        assert!(answer.numbers[0].value.abs() < 8.0, "{answer:?}");
    }
}

#[test]
fn several_answers_are_one_vector_and_one_charge() {
    let table = table(&ROWS);
    let queries = vec![
        Query::new("people", Statistic::People, None, noise(10.0)).expect("a query"),
        Query::new("sum", sum(0.0, 100.0), None, noise(100.0)).expect("a query"),
    ];
    let layout = layout(queries);
    let mut accounts = fresh(&table, "rho=1");
    let answers = ask_plainly(&table, &layout, &mut accounts);
    assert_eq!(answers.answers.len(), 2);
    // ρ = 1/200 + x²/20000 for totals 30, 100, 9, 40, of 1.
    for (id, total) in [("1", 30.0), ("2", 100.0), ("3", 9.0), ("4", 40.0f64)] {
        let expected = 1.0 / 200.0 + total * total / 20_000.0;
        let spent = f64::from(share(&accounts, id)) / f64::from(FULL);
        assert!((spent - expected).abs() < 1e-8, "{id}: {spent}, expected {expected}");
    }
    assert_eq!(accounts.rounds(), 1);
    assert!(answers.everyone && (answers.worst_case - 0.505).abs() < 1e-8, "{}", answers.worst_case);
}

#[test]
fn people_leave_when_their_own_budget_is_used_and_not_before() {
    let rows = [(1, 100.0, "x"), (2, 10.0, "x"), (3, 0.0, "x")];
    let table = table(&rows);
    // 100 costs half of the budget, 10 a two-hundredth, 0 nothing.
    let mut accounts = fresh(&table, "rho=1");
    let small = layout(vec![query(sum(0.0, 100.0), 100.0)]);
    for round in 1..=100u32 {
        let answers = ask_plainly(&table, &small, &mut accounts);
        assert_eq!(share(&accounts, "1"), FULL / 2 * round.min(2));
        assert_eq!(share(&accounts, "2"), FULL / 200 * round);
        assert_eq!(share(&accounts, "3"), 0);
        // Two rounds fit in the worst case; from then on nothing is certain.
        assert_eq!(answers.everyone, round <= 2);
        assert!((answers.worst_case - 0.5 * f64::from(round)).abs() < 1e-9);
    }
    // Somebody who could not pay for one question may return for a cheaper one, if there is something left.
    let mut accounts = fresh(&table, "rho=1");
    ask_plainly(&table, &small, &mut accounts);
    ask_plainly(&table, &layout(vec![query(sum(0.0, 100.0), 99.0)]), &mut accounts);
    assert_eq!(share(&accounts, "1"), FULL / 2);
    ask_plainly(&table, &small, &mut accounts);
    assert_eq!(share(&accounts, "1"), FULL);
}

#[test]
fn those_who_are_left_out_do_not_count() {
    let table = table(&[(1, 100.0, "x"), (2, 1.0, "x")]);
    let mut accounts = fresh(&table, "rho=1");
    let coarse = layout(vec![query(sum(0.0, 100.0), 80.0)]); // 100 costs 0.78
    ask_plainly(&table, &coarse, &mut accounts);
    let fine = layout(vec![query(sum(0.0, 100.0), 2.0)]); // 1 costs 0.125, 100 far too much
    let manner = Manner { exhausted: Exhausted::LeftOut, ..Manner::default() };
    let mean = |manner| {
        let mut accounts = fresh(&table, "rho=1");
        ask_plainly(&table, &coarse, &mut accounts);
        let rounds = 6;
        let answer = |_| ask_with(&table, &fine, &mut accounts, manner).expect("answers").answers[0].numbers[0].value;
        let values: Vec<f64> = (0..rounds).map(answer).collect();
        (values[0], share(&accounts, "1"))
    };
    let (left_out, spent) = mean(manner);
    assert!((left_out - 1.0).abs() < 20.0, "{left_out}");
    assert!(spent < FULL);
    // Scaled down instead: 0.22 of 1 is left, √(2·0.22)·2 = 1.3 of 100 remain, and the budget is used up.
    let (scaled, spent) = mean(Manner { exhausted: Exhausted::ScaledDown, ..Manner::default() });
    assert!((scaled - 2.3).abs() < 20.0, "{scaled}");
    assert_eq!(spent, FULL);
}

#[test]
fn scaling_down_gives_the_norm_that_is_left() {
    // A budget that covers 4 of 100, at hardly any noise: the answer shows the scaled contribution.
    let table = table(&[(1, 100.0, "x")]);
    let mut accounts = fresh(&table, "rho=8e8"); // 4²/(2·10⁻⁸)
    let layout = layout(vec![query(sum(0.0, 100.0), HARDLY)]);
    let manner = Manner { exhausted: Exhausted::ScaledDown, ..Manner::default() };
    let first = ask_with(&table, &layout, &mut accounts, manner).expect("answers");
    assert!((first.answers[0].numbers[0].value - 4.0).abs() < 0.01, "{first:?}");
    assert_eq!(share(&accounts, "1"), FULL);
    let second = ask_with(&table, &layout, &mut accounts, manner).expect("answers");
    assert!(second.answers[0].numbers[0].value.abs() < 0.01, "{second:?}");
}

#[test]
fn the_active_count_is_charged_to_everybody_in_the_table() {
    let table = table(&[(1, 100.0, "x"), (2, 1.0, "x"), (3, 0.0, "x")]);
    let layout = Layout::new(vec![query(sum(0.0, 100.0), 100.0)], Some(noise(HARDLY))).expect("a layout");
    let mut accounts = fresh(&table, "rho=120000000"); // twice 1/(2·10⁻⁸), and a little for the sum
    for active in [3.0, 3.0, 0.0] {
        let answers = ask_plainly(&table, &layout, &mut accounts);
        let count = &answers.answers[1];
        assert_eq!((count.name.as_str(), count.statistic), ("took part", "active count"));
        assert!((count.numbers[0].value - active).abs() < 0.01, "{count:?}");
    }
}

#[test]
fn worst_case_refuses_before_it_reads() {
    let table = table(&[(1, 10.0, "x"), (2, 1.0, "x")]);
    let worst = Settings { mode: paygo_analysis::Mode::WorstCase, ..settings("rho=1") };
    let mut accounts = open_accounts(None, &table, &worst, &|_| ()).expect("accounts");
    let layout = layout(vec![query(sum(0.0, 100.0), 100.0)]);
    for _ in 0..2 {
        let answers = ask_plainly(&table, &layout, &mut accounts);
        assert!(answers.everyone);
    }
    // The same refusal whatever is in the table, also if it could not be read.
    let unreadable = common::table(&[(1, f64::NAN, "x")]);
    for table in [&table, &unreadable] {
        let refused = ask_with(table, &layout, &mut accounts, Manner::default()).expect_err("refused");
        assert!(matches!(refused, RoundError::Refused), "{refused}");
    }
    assert_eq!(accounts.rounds(), 2);
    assert_eq!(share(&accounts, "2"), FULL);
}

#[test]
fn tiers_have_budgets_of_their_own() {
    let rows = [(1, 100.0, "basic"), (1, 0.0, "basic"), (2, 100.0, "plus")];
    let table = table(&rows);
    let tier = |name: &str, budget: &str| Tier { name: name.into(), budget: budget.parse().expect("a budget") };
    let settings = Settings {
        tier_column: Some("region".into()),
        tiers: vec![tier("basic", "rho=1"), tier("plus", "rho=4")],
        ..settings("rho=1")
    };
    let mut accounts = open_accounts(None, &table, &settings, &|_| ()).expect("accounts");
    let layout = layout(vec![query(sum(0.0, 100.0), 100.0)]);
    for round in 1..=10u32 {
        ask_plainly(&table, &layout, &mut accounts);
        assert_eq!(share(&accounts, "1"), FULL / 2 * round.min(2));
        assert_eq!(share(&accounts, "2"), FULL / 8 * round.min(8));
    }
    for odd in [[(1, 1.0, "basic"), (1, 1.0, "plus")], [(1, 1.0, "basic"), (2, 1.0, "other")]] {
        let error = open_accounts(None, &common::table(&odd), &settings, &|_| ()).expect_err("no tier").to_string();
        assert!(error.contains("`basic`, `plus`"), "{error}");
    }
}

#[test]
fn partitions_do_not_matter() {
    let whole = table(&ROWS);
    let pieces = Table::in_memory(ROWS.iter().rev().map(|row| batch(&[*row])).collect());
    let queries = || {
        vec![
            query(sum(0.0, 100.0), HARDLY),
            Query::new(
                "h",
                Statistic::Histogram("region".into(), Bins::Categories(vec!["North".into()]), Weight::Person),
                None,
                noise(1.0),
            )
            .expect("a query"),
        ]
    };
    let (mut one, mut many) = (fresh(&whole, PLENTY), fresh(&pieces, PLENTY));
    ask_plainly(&whole, &layout(queries()), &mut one);
    ask_plainly(&pieces, &layout(queries()), &mut many);
    for id in ["1", "2", "3", "4"] {
        assert_eq!(share(&one, id), share(&many, id));
    }
}

#[test]
fn intervals_hold_as_often_as_they_say() {
    let rows: Vec<(i64, f64, &str)> = (0..200u8).map(|i| (i64::from(i), f64::from(i % 50), "x")).collect();
    let table = table(&rows);
    let half = Probability::new(0.5).expect("a fraction");
    let edges = "0..50:25".parse().expect("a grid");
    let queries = vec![
        Query::new("count", Statistic::People, None, noise(10.0)).expect("a query"),
        Query::new("mean", Statistic::Mean("amount".into(), clip(0.0, 50.0)), None, noise(300.0)).expect("a query"),
        Query::new("median", Statistic::Quantile("amount".into(), edges, Weight::Person, vec![half]), None, noise(2.0))
            .expect("q"),
    ];
    let layout = layout(queries);
    let mut accounts = fresh(&table, PLENTY);
    let manner = Manner { confidence: Probability::new(0.8).expect("a fraction"), ..Manner::default() };
    let (runs, mut held) = (400, [0; 3]);
    for _ in 0..runs {
        let answers = ask_with(&table, &layout, &mut accounts, manner).expect("answers").answers;
        for (held, (answer, truth)) in held.iter_mut().zip(answers.iter().zip([200.0, 24.5, 25.0])) {
            let estimate = &answer.numbers[0];
            *held += i32::from(estimate.low <= truth && truth <= estimate.high);
        }
    }
    // 320 of 400 on average; 290 has a probability of about 10⁻⁴. The second and third are wider than they need to be.
    assert!(held.iter().all(|&held| held >= 290), "{held:?} of {runs}");
    assert!(held[0] <= 350, "{held:?} of {runs}: an interval that always holds says nothing");
}
