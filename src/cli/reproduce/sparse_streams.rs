//! \[FZ\] §2.2, Proposition 2.9: one indicator per person per day, and how many daily sums can be reported.
//!
//! A person with a 1 on a day has individual ρ = 1/(2σ²) for that day's report, one with a 0 has none. Worst-case accounting charges
//! everybody 1/(2σ²) each day and stops after `k₀ = ⌊2Bσ²⌋` reports; individual accounting leaves a person out only when their own
//! ones have used up B. Both promise everybody the same. In ρ the paper's order α cancels: its `⌊2Bσ²/α⌋` has a B at order α.

use super::{Row, line};
use crate::cli::made_up::Generator;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Budget, Filter, Zcdp};
use paygo_accounting::individual::{PersonalBudget, SharePrice, admit_round};
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::params::{Count, Neighbors};
use paygo_numeric::Amount;
use paygo_numeric::interval::Interval;
use paygo_numeric::normal::tail_within;
use paygo_report::LineChart;

const PEOPLE: u32 = 10_000;
/// The noise's standard deviation.
const SIGMA: u32 = 50;
/// Ones in a thousand indicators, as text and as a number.
const SPARSITIES: [(&str, usize); 3] = [("0.5", 500), ("0.1", 100), ("0.01", 10)];
/// How many people are left out when a stream is said to have come so far, and in words.
const MARKS: [(u32, &str); 3] = [
    (1, "the first of 10000 people is left out"),
    (PEOPLE / 100, "1 % of the people are left out"),
    (PEOPLE / 2, "half of the people are left out"),
];

/// One stream, until half of the people are left out and the drawing is full.
struct Stream {
    /// Reports before each of [`MARKS`], by Proposition 2.9 read literally: a person's ones are counted against `k₀`.
    literal: [u32; 3],
    /// The same by the column.
    column: [u32; 3],
    /// The share of people who still take part, after each report.
    taking_part: Vec<f64>,
}

/// A person is left out from the first 1 on that did not fit: by the proposition for good, by Algorithm 3 until a smaller cost
/// comes, which with indicators is a 0 and adds nothing either way.
fn stream(thousandths: usize, price: &SharePrice, worst_case: u64, drawn: usize) -> Stream {
    let people = PEOPLE as usize;
    let one = price.share(1);
    let mut random = Generator(0x5eed);
    let (mut spent, mut costs, mut active) = (vec![0; people], vec![0; people], vec![0u64; people.div_ceil(64)]);
    let (mut ones, mut refused) = (vec![0u64; people], vec![false; people]);
    let mut stream = Stream { literal: [0; 3], column: [0; 3], taking_part: Vec::new() };
    let mut out = [0u32; 2];
    while out.iter().any(|&out| out < PEOPLE / 2) || stream.taking_part.len() < drawn {
        for cost in &mut costs {
            *cost = if random.below(1000) < thousandths { one } else { 0 };
        }
        admit_round(&mut spent, &costs, &mut active);
        for (i, (ones, refused)) in ones.iter_mut().zip(&mut refused).enumerate().filter(|(i, _)| costs[*i] > 0) {
            *ones += 1;
            out[0] += u32::from(*ones == worst_case + 1);
            if active[i / 64] >> (i % 64) & 1 == 0 && !*refused {
                *refused = true;
                out[1] += 1;
            }
        }
        for (reports, out) in [(&mut stream.literal, out[0]), (&mut stream.column, out[1])] {
            for (reports, (mark, _)) in reports.iter_mut().zip(MARKS) {
                *reports += u32::from(out < mark);
            }
        }
        stream.taking_part.push(1.0 - f64::from(out[1]) / f64::from(PEOPLE));
    }
    stream
}

/// The chance that noise passes `σ·√(2·ln(1/δ))`, the proposition's accuracy, rounded up.
fn chance_of_a_larger_error(delta: f64) -> f64 {
    let bound = (-Interval::point(delta).ln() * 2.0).sqrt();
    (tail_within(bound) * 2.0).hi()
}

/// The proposition's rows, and the share of people who still take part.
pub(super) fn rows_and_chart() -> anyhow::Result<(Vec<Row>, LineChart)> {
    let rule = Zcdp::new(Budget::from_decimal("1", "1e-6")?)?;
    let variance = u64::from(SIGMA).pow(2);
    // ⌊2Bσ²⌋ exactly: B is a whole number of units.
    let worst_case = u64::try_from(rule.limit().times(2 * variance).units() / Amount::ONE.units())?;
    let price = SharePrice::new(&PersonalBudget::zcdp(&rule), variance, 1)?;
    let filter = Filter::new(rule, Neighbors::AddRemove);
    let report = Cost::of(&Mechanism::gaussian(f64::from(SIGMA))?, Neighbors::AddRemove)?;
    let room = filter.room_for(&filter.price(&report)?, 10 * worst_case);

    let mut rows = vec![Row {
        what: "Prop. 2.9: reports by worst-case accounting, noise 50, budget (1, 1e-6)".into(),
        paper: String::new(),
        literal: Count::new(worst_case)?.to_f64(),
        sound: (Count::new(room)?.to_f64(), "zCDP filter"),
        note: "the largest whole number up to 2·rho·noise²",
    }];
    // Far enough for p = 0.1, with room for the legend.
    let drawn = 25 * usize::try_from(room)?;
    let reports = Count::new(room)?.to_f64();
    let mut series = vec![line("worst case, any p", vec![(0.0, 1.0), (reports, 1.0), (reports, 0.0)])];
    for (text, thousandths) in SPARSITIES {
        let stream = stream(thousandths, &price, worst_case, drawn);
        for (i, (_, words)) in MARKS.iter().enumerate() {
            rows.push(Row {
                what: format!("Prop. 2.9: p = {text}, reports before {words}"),
                paper: String::new(),
                literal: f64::from(stream.literal[i]),
                sound: (f64::from(stream.column[i]), "a zCDP budget for each person"),
                note: "made-up people, each with a 1 on any day with probability p",
            });
        }
        let points = (1u32..).map(f64::from).zip(stream.taking_part).take(drawn).take_while(|(_, share)| *share > 0.0);
        let points = points.step_by(5).collect();
        series.push(line(&format!("individual, p = {text}"), points));
    }
    let delta = 0.05;
    rows.push(Row {
        what: "Prop. 2.9: chance that a report is off by more than noise·sqrt(2·ln(1/0.05))".into(),
        paper: String::new(),
        literal: delta,
        sound: (chance_of_a_larger_error(delta), "both tails of the normal distribution"),
        note: "as long as nobody is left out",
    });
    let chart = LineChart {
        title: "[FZ] Prop. 2.9: indicators that are 1 with probability p, noise 50, budget (1, 1e-6)".into(),
        x_label: "reports".into(),
        y_label: "share of people who still take part".into(),
        series,
        y_limit: f64::INFINITY,
    };
    Ok((rows, chart))
}
