//! \[FZ\] §2.2, Proposition 2.9: one indicator per person per day, and how many daily sums can be reported.
//!
//! A person with a 1 on a day has individual ρ = 1/(2σ²) for that day's report, one with a 0 has none. Worst-case accounting charges
//! everybody 1/(2σ²) each day and stops after `k₀ = ⌊2Bσ²⌋` reports; individual accounting leaves a person out only when their own
//! ones have used up B. Both promise everybody the same. In ρ the paper's order α cancels: its `⌊2Bσ²/α⌋` has a B at order α.

use super::claim::{Claim, Row, Shared};
use super::figure::{chart, line};
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

pub(super) const WORST_CASE: &[Claim] = &[Claim {
    source: "Prop. 2.9",
    what: "reports by worst-case accounting, noise 50, budget (1, 1e-6)",
    printed: "",
    literal: || Ok(Count::new(worst_case()?)?.to_f64()),
    sound: || Ok(Count::new(room()?)?.to_f64()),
    method: "zCDP filter",
    note: "the largest whole number up to 2·rho·noise²",
}];

pub(super) const ACCURACY: &[Claim] = &[Claim {
    source: "Prop. 2.9",
    what: "chance that a report is off by more than noise·sqrt(2·ln(1/0.05))",
    printed: "",
    literal: || Ok(0.05),
    sound: || Ok(chance_of_a_larger_error(0.05)),
    method: "both tails of the normal distribution",
    note: "as long as nobody is left out",
}];

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

/// A budget in ρ, as of (1, 10⁻⁶)-DP.
fn rule() -> anyhow::Result<Zcdp> {
    Ok(Zcdp::new(Budget::from_decimal("1", "1e-6")?)?)
}

const VARIANCE: u64 = (SIGMA as u64).pow(2);

/// `k₀ = ⌊2Bσ²⌋`, exactly: B is a whole number of units.
fn worst_case() -> anyhow::Result<u64> {
    Ok(u64::try_from(rule()?.limit().times(2 * VARIANCE).units() / Amount::ONE.units())?)
}

/// Reports that a filter admits if everybody is charged for each.
fn room() -> anyhow::Result<u64> {
    let filter = Filter::new(rule()?, Neighbors::AddRemove);
    let report = Cost::of(&Mechanism::gaussian(f64::from(SIGMA))?, Neighbors::AddRemove)?;
    Ok(filter.room_for(&filter.price(&report)?, 10 * worst_case()?))
}

/// How many reports are drawn: far enough for p = 0.1, with room for the legend.
fn drawn() -> anyhow::Result<usize> {
    Ok(25 * usize::try_from(room()?)?)
}

/// A stream for each of [`SPARSITIES`].
static STREAMS: Shared<Vec<Stream>> = Shared::new(|| {
    let price = SharePrice::new(&PersonalBudget::zcdp(&rule()?), VARIANCE, 1)?;
    let (worst_case, drawn) = (worst_case()?, drawn()?);
    Ok(SPARSITIES.into_iter().map(|(_, thousandths)| stream(thousandths, &price, worst_case, drawn)).collect())
});

pub(super) fn individual() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for ((p, _), stream) in SPARSITIES.into_iter().zip(STREAMS.get()?) {
        for ((_, words), (literal, column)) in MARKS.into_iter().zip(stream.literal.into_iter().zip(stream.column)) {
            rows.push(Row {
                source: "Prop. 2.9",
                what: format!("p = {p}, reports before {words}"),
                printed: String::new(),
                literal: literal.into(),
                sound: column.into(),
                method: "a zCDP budget for each person",
                note: "made-up people, each with a 1 on any day with probability p",
            });
        }
    }
    Ok(rows)
}

/// The share of people who still take part.
pub(super) fn drawing() -> anyhow::Result<LineChart> {
    let reports = Count::new(room()?)?.to_f64();
    let mut series = vec![line("worst case, any p", vec![(0.0, 1.0), (reports, 1.0), (reports, 0.0)])];
    for ((p, _), stream) in SPARSITIES.into_iter().zip(STREAMS.get()?) {
        let points = (1u32..).map(f64::from).zip(stream.taking_part.iter().copied());
        let points = points.take(drawn()?).take_while(|(_, share)| *share > 0.0).step_by(5).collect();
        series.push(line(&format!("individual, p = {p}"), points));
    }
    let title = "[FZ] Prop. 2.9: indicators that are 1 with probability p, noise 50, budget (1, 1e-6)";
    Ok(chart(title, "reports", "share of people who still take part", series))
}
