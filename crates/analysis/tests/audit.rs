//! The whole system against neighboring tables, thousands of times: what can be told apart stays below what is promised; copies with a
//! planted fault do not get away with it.
//!
//! A distinguisher looks at all answers of a run and decides which table it was. Its best threshold is chosen on one half of the
//! runs and judged on the other, with exact binomial limits: `ln((p − δ)/q)` with `p` at its lower and `q` at its upper limit is below
//! the true ε with probability 99.8 %.

mod common;

use common::{ask_with, fresh, layout, query, sum, table};
use paygo_accounting::individual::{FULL, PersonalBudget, SharePrice};
use paygo_analysis::{Manner, PersonBudget};
use paygo_audit::binomial::limits;
use paygo_noise::{DiscreteGaussian, Ratio, Source};
use std::collections::HashMap;

const EPSILON: f64 = 1.0;
const DELTA: f64 = 0.01;
const RUNS: usize = 2000;

type Row = (i64, f64, &'static str);

/// The person in question has many rows; the other one has one.
fn with_and_without() -> (Vec<Row>, Vec<Row>) {
    let other: Vec<Row> = vec![(1, 5.0, "x")];
    let mut all = other.clone();
    all.extend((0..20).map(|_| (0, 60.0, "x")));
    (all, other)
}

fn budget() -> PersonBudget {
    PersonBudget::EpsilonDelta { epsilon: EPSILON.to_string(), delta: DELTA.to_string() }
}

/// Noise at which a contribution of 100 costs a little less than a quarter of the budget.
fn noise_std() -> f64 {
    let limit = budget().rule().expect("a rule").limit().to_f64_down();
    (4.0 * 100.0 * 100.0 / (2.0 * limit)).sqrt() * 1.001
}

/// The system as it ships.
fn shipped(rows: &[Row], source: &mut Source) -> Vec<f64> {
    let _ = source; // The system has its own.
    let table = table(rows);
    let mut accounts = fresh(&table, &budget().to_string());
    let layout = layout(vec![query(sum(0.0, 100.0), noise_std())]);
    let answer =
        |_| ask_with(&table, &layout, &mut accounts, Manner::default()).expect("answers").answers[0].numbers[0].value;
    (0..8).map(answer).collect()
}

/// What may be wrong with a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The noise grows with the number of people who take part, so its size tells how many do.
    NoiseScaledByTheActiveCount,
    /// Each row of a person is clipped, but not their total.
    RowsNotClippedTogether,
    /// Nobody is ever charged.
    ChargesForgotten,
}

/// A small copy of the system with a fault, in whole numbers.
fn copy(fault: Fault, rows: &[Row], source: &mut Source) -> Vec<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    let variance = noise_std().powi(2).ceil() as u64;
    let budget = PersonalBudget::zcdp(&budget().rule().expect("a rule"));
    let price = SharePrice::new(&budget, variance, 1).expect("a price");
    let mut totals: HashMap<i64, i64> = HashMap::new();
    for &(id, amount, _) in rows {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
        let amount = amount.clamp(0.0, 100.0) as i64;
        *totals.entry(id).or_default() += amount;
    }
    let mut spent: HashMap<i64, u32> = HashMap::new();
    let mut round = |_| {
        let (mut sum, mut active) = (0, 0);
        for (&id, &total) in &totals {
            let total = if fault == Fault::RowsNotClippedTogether { total } else { total.min(100) };
            let cost = price.share(u128::from(total.min(100).unsigned_abs()).pow(2));
            let spent = spent.entry(id).or_default();
            if cost <= FULL - *spent {
                *spent += if fault == Fault::ChargesForgotten { 0 } else { cost };
                sum += total;
                active += 1;
            }
        }
        let scale = if fault == Fault::NoiseScaledByTheActiveCount { active * active } else { 1 };
        let noise = DiscreteGaussian { variance: Ratio::new(variance * scale, 1).expect("a variance") };
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let answer = (sum + noise.draw(source)) as f64;
        answer
    };
    (0..32).map(&mut round).collect()
}

/// What a distinguisher looks at: sums of the answers, which show a person, and their size, which shows the noise.
fn features(answers: &[f64]) -> Vec<f64> {
    let sum = |n: usize| answers[..n].iter().sum::<f64>();
    let squares = |n: usize| answers[..n].iter().map(|x| x * x).sum::<f64>();
    let all = answers.len();
    vec![answers[0], sum(4), sum(all), squares(4), squares(all)]
}

/// A lower limit on ε at δ, in both directions, from runs on both tables.
fn lower_limit(run: impl Fn(&[Row], &mut Source) -> Vec<f64>) -> f64 {
    let (with, without) = with_and_without();
    let mut source = Source::from_operating_system().expect("a source");
    let mut observe = |rows: &[Row]| (0..2 * RUNS).map(|_| features(&run(rows, &mut source))).collect::<Vec<_>>();
    let (with, without) = (observe(&with), observe(&without));
    let ((choose_with, judge_with), (choose_without, judge_without)) = (with.split_at(RUNS), without.split_at(RUNS));
    // Event: feature above (or below) a threshold, and which table it speaks for.
    let count = |runs: &[Vec<f64>], feature: usize, threshold: f64, above: bool| {
        runs.iter().filter(|run| (run[feature] > threshold) == above).count() as u64
    };
    let epsilon =
        |p: f64, q: f64| if p > DELTA { paygo_numeric::elementary::ln((p - DELTA) / q.max(1e-12)) } else { 0.0 };
    let judged = |(p, q): (&[Vec<f64>], &[Vec<f64>]), (feature, threshold, above): (usize, f64, bool)| {
        let (low, _) = limits(count(p, feature, threshold, above), RUNS as u64, 1e-3);
        let (_, high) = limits(count(q, feature, threshold, above), RUNS as u64, 1e-3);
        epsilon(low, high)
    };
    let mut best = (0.0, (0, 0.0, true), true);
    for feature in 0..5 {
        let mut values: Vec<f64> = choose_with.iter().chain(choose_without).map(|run| run[feature]).collect();
        values.sort_by(f64::total_cmp);
        for threshold in values.into_iter().step_by(RUNS / 20) {
            for (above, for_with) in [(true, true), (true, false), (false, true), (false, false)] {
                let event = (feature, threshold, above);
                let pair = if for_with { (choose_with, choose_without) } else { (choose_without, choose_with) };
                let found = judged(pair, event);
                if found > best.0 {
                    best = (found, event, for_with);
                }
            }
        }
    }
    let (_, event, for_with) = best;
    judged(if for_with { (judge_with, judge_without) } else { (judge_without, judge_with) }, event)
}

#[test]
fn the_system_keeps_its_promise_and_is_not_needlessly_quiet() {
    let found = lower_limit(shipped);
    assert!(found <= EPSILON, "{found}");
    // A budget that is used up can be seen to be: the audit looks at something.
    assert!(found > 0.0, "{found}");
}

#[test]
fn faulty_copies_are_convicted_and_a_faultless_one_is_not() {
    let found = |fault| lower_limit(|rows, source| copy(fault, rows, source));
    assert!(found(Fault::None) <= EPSILON);
    for fault in [Fault::NoiseScaledByTheActiveCount, Fault::RowsNotClippedTogether, Fault::ChargesForgotten] {
        let found = found(fault);
        assert!(found > EPSILON, "{fault:?} gets away with {found}");
    }
}
