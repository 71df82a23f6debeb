//! \[FZ\] Feldman and Zrnic: the ε of both tables, and Fig. 2's odometer; [`sparse_streams`] has Proposition 2.9.

use super::claim::{Claim, Claims, Paper, Row};
use super::figure::{Figure, chart, line};
use super::sparse_streams;
use anyhow::Context;
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::cost::Cost;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::odometer::{Odometer, Restart};
use paygo_accounting::params::{Count, Delta, Divergence, Neighbors, Order};
use paygo_numeric::Amount;
use paygo_report::LineChart;

pub(super) const PAPER: Paper = Paper {
    key: "feldman-zrnic",
    title: "[FZ] Feldman and Zrnic: private gradient descent with individual filtering",
    about: "Both tables at delta = 1e-5: k steps of noise sigma are k/(2·sigma²)-zCDP, with and without filtering. Labels agree \
            with the classic conversion, which the paper does not name. Then Proposition 2.9 where the paper's own example has \
            it, on people who do not exist: one sparse indicator a day from each, and how many daily sums worst-case and \
            individual accounting can report at the same guarantee.",
    claims: &[
        Claims::Table(tables),
        Claims::Each(ODOMETER),
        Claims::Each(sparse_streams::WORST_CASE),
        Claims::Table(sparse_streams::individual),
        Claims::Each(sparse_streams::ACCURACY),
    ],
    figures: &[
        Figure {
            name: "odometer",
            caption: "A record whose gradient is always clipped stops at its budget; one with a little less in each step is \
                      counted a whole step each time, hence the odometer's 0.136 where 0.113 was spent.",
            chart: odometer_chart,
        },
        Figure {
            name: "sparse-streams",
            caption: "Worst-case accounting stops for everybody at once, as if each person had a 1 every day. Individual \
                      accounting goes on until a person's own ones have used up their budget, and at p = 0.01 nobody is near \
                      that where the drawing ends. With real people these lines would be secret.",
            chart: sparse_streams::drawing,
        },
    ],
};

/// A row of the tables of Sections 6.1 and 6.2.
struct Run {
    source: &'static str,
    data: &'static str,
    /// The ε that it is printed under.
    label: &'static str,
    noise: f64,
    steps: u64,
    note: &'static str,
}

const TABLES: [Run; 8] = [
    mnist("0.3", 170.0, 104, ""),
    mnist("0.5", 130.0, 180, A_LITTLE_MORE),
    mnist("1.2", 88.0, 460, ""),
    mnist("3.0", 50.0, 875, A_LITTLE_MORE),
    adult("0.3", 455.34, 800, ""),
    adult("0.5", 433.80, 2000, ""),
    adult("1.0", 613.49, 4000, "this row is a run at epsilon 0.5; noise 309.94 would be 1.0 (E8)"),
    adult("1.2", 259.33, 4000, ""),
];

const A_LITTLE_MORE: &str = "a little more than its label (E8)";

const fn mnist(label: &'static str, noise: f64, steps: u64, note: &'static str) -> Run {
    Run { source: "Section 6.1", data: "MNIST", label, noise, steps, note }
}

const fn adult(label: &'static str, noise: f64, steps: u64, note: &'static str) -> Run {
    Run { source: "Section 6.2", data: "Adult", label, noise, steps, note }
}

const ODOMETER: &[Claim] = &[
    Claim {
        source: "Fig. 2",
        what: "the odometer's step Delta at order 63",
        printed: "0.00109",
        literal: || renyi(1),
        sound: || renyi(1),
        method: "Rényi at 63",
        note: "printed as order/noise²; it is order/(2·noise²) (E8)",
    },
    Claim {
        source: "Fig. 2",
        what: "a Rényi loss of 0.135 as epsilon",
        printed: "0.32",
        literal: || epsilon_of(0.135),
        sound: || epsilon_of(0.135),
        method: "restart odometer: 0.135 + ln(1/delta)/62",
        note: "as an odometer, with the order fixed in advance; the paper's proposition is for a fixed number of restarts (T22)",
    },
    Claim {
        source: "Fig. 2",
        what: "most that the odometer can show after 52 steps",
        printed: "",
        literal: || counted(52),
        sound: || within_filter(52),
        method: WITHIN_FILTER,
        note: EVERY_STEP,
    },
    Claim {
        source: "Fig. 2",
        what: "most that the odometer can show after 104 steps",
        printed: "",
        literal: || counted(104),
        sound: || within_filter(104),
        method: WITHIN_FILTER,
        note: EVERY_STEP,
    },
    Claim {
        source: "Fig. 2",
        what: "most that the odometer can show after 125 steps",
        printed: "",
        literal: || counted(125),
        sound: || within_filter(125),
        method: WITHIN_FILTER,
        note: EVERY_STEP,
    },
];

const WITHIN_FILTER: &str = "the sum itself, within the filter";
const EVERY_STEP: &str = "every step restarts; the histogram over people needs the training run";

fn delta() -> anyhow::Result<Delta> {
    Ok(Delta::new(1e-5)?)
}

fn tables() -> anyhow::Result<Vec<Row>> {
    TABLES.iter().map(Run::row).collect()
}

impl Run {
    fn row(&self) -> anyhow::Result<Row> {
        let cost = Cost::of(&Mechanism::gaussian(self.noise)?, Neighbors::AddRemove)?.repeat(self.steps)?;
        let rho = cost.rho().context("Gaussian noise has a rho")?;
        let mu = cost.mu().context("Gaussian noise has a mu")?;
        Ok(Row {
            source: self.source,
            what: format!("{}: noise {}, {} steps", self.data, self.noise, self.steps),
            printed: self.label.to_owned(),
            literal: zcdp::epsilon(Conversion::Classic, rho, delta()?).0.get(),
            sound: gaussian::epsilon(mu, delta()?).get(),
            method: "exact Gaussian profile",
            note: self.note,
        })
    }
}

fn order() -> anyhow::Result<Order> {
    Ok(Order::new(63.0)?)
}

/// What a gradient that is always clipped costs in some steps, with Fig. 2's noise and order.
fn renyi(steps: u64) -> anyhow::Result<f64> {
    let step = Cost::of(&Mechanism::gaussian(170.0)?, Neighbors::AddRemove)?;
    Ok(step.repeat(steps)?.renyi(order()?).get())
}

/// The same where the filter stops it after their 104 steps.
fn within_filter(steps: u64) -> anyhow::Result<f64> {
    renyi(steps.min(104))
}

/// The same as their odometer counts it.
fn counted(steps: u64) -> anyhow::Result<f64> {
    Ok(0.00109 * Count::new(steps)?.to_f64())
}

fn epsilon_of(renyi: f64) -> anyhow::Result<f64> {
    Ok(Conversion::Classic.epsilon(order()?, Divergence::new(renyi)?, delta()?).get())
}

/// Fig. 2's odometer for a record with a squared norm of `share`·C² in each step, and the sum that it counts.
fn odometer_and_sum(share: f64, steps: u32) -> anyhow::Result<[Vec<(f64, f64)>; 2]> {
    let step = Amount::from_decimal_up("0.00109").context("a decimal")?;
    // Noise that is 1/√share as large.
    let cost = Cost::of(&Mechanism::gaussian(170.0 / share.sqrt())?, Neighbors::AddRemove)?;
    let mut odometer = Odometer::new(Restart::new(order()?, step, delta()?)?, Neighbors::AddRemove);
    let charge = odometer.price(&cost)?;
    let (mut counted, mut sums) = (Vec::new(), Vec::new());
    for t in 1..=steps {
        odometer.observe(&charge)?;
        counted.push((f64::from(t), odometer.boundary().counted().to_f64_up()));
        sums.push((f64::from(t), odometer.sums().lanes()[0].to_f64_up()));
    }
    Ok([counted, sums])
}

/// Two records that do not exist.
fn odometer_chart() -> anyhow::Result<LineChart> {
    let [clipped, clipped_sum] = odometer_and_sum(1.0, 104)?;
    let [less, less_sum] = odometer_and_sum(104.0 / 125.0, 125)?;
    let series = vec![
        line("odometer, always clipped", clipped),
        line("its sum", clipped_sum),
        line("odometer, squared norm 104/125 of the bound", less),
        line("its sum", less_sum),
    ];
    let title = "[FZ] Fig. 2: the restart odometer at order 63, noise 170";
    Ok(chart(title, "step", "Rényi divergence at order 63", series))
}
