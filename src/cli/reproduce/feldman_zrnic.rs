//! \[FZ\] Feldman and Zrnic: the ε of both tables, and Fig. 2's odometer; [`sparse_streams`] has Proposition 2.9.

use super::{Figure, Row, Study, line, sparse_streams};
use anyhow::Context;
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::cost::Cost;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::odometer::{Odometer, Restart};
use paygo_accounting::params::{Count, Delta, Divergence, Neighbors, Order};
use paygo_numeric::Amount;
use paygo_report::LineChart;

/// Label, σ and steps of each row of the tables.
const TABLES: [(&str, &str, f64, u64); 8] = [
    ("MNIST", "0.3", 170.0, 104),
    ("MNIST", "0.5", 130.0, 180),
    ("MNIST", "1.2", 88.0, 460),
    ("MNIST", "3.0", 50.0, 875),
    ("Adult", "0.3", 455.34, 800),
    ("Adult", "0.5", 433.80, 2000),
    ("Adult", "1.0", 613.49, 4000),
    ("Adult", "1.2", 259.33, 4000),
];

/// Fig. 2's odometer for two records that do not exist, beside the sums it counts.
fn odometer_chart() -> anyhow::Result<LineChart> {
    let order = Order::new(63.0)?;
    let step = Amount::from_decimal_up("0.00109").context("a decimal")?;
    let series = |share: f64, most: u32| -> anyhow::Result<[Vec<(f64, f64)>; 2]> {
        // A squared norm of `share`·C² each step: noise that is 1/√share as large.
        let cost = Cost::of(&Mechanism::gaussian(170.0 / share.sqrt())?, Neighbors::AddRemove)?;
        let mut odometer = Odometer::new(Restart::new(order, step, Delta::new(1e-5)?)?, Neighbors::AddRemove);
        let charge = odometer.price(&cost)?;
        let (mut counted, mut sums) = (Vec::new(), Vec::new());
        for t in 1..=most {
            odometer.observe(&charge)?;
            counted.push((f64::from(t), odometer.boundary().counted().to_f64_up()));
            sums.push((f64::from(t), odometer.sums().lanes()[0].to_f64_up()));
        }
        Ok([counted, sums])
    };
    let [clipped, clipped_sum] = series(1.0, 104)?;
    let [less, less_sum] = series(104.0 / 125.0, 125)?;
    Ok(LineChart {
        title: "[FZ] Fig. 2: the restart odometer at order 63, noise 170".into(),
        x_label: "step".into(),
        y_label: "Rényi divergence at order 63".into(),
        series: vec![
            line("odometer, always clipped", clipped),
            line("its sum", clipped_sum),
            line("odometer, squared norm 104/125 of the bound", less),
            line("its sum", less_sum),
        ],
        y_limit: f64::INFINITY,
    })
}

pub(super) fn study() -> anyhow::Result<Study> {
    let delta = Delta::new(1e-5)?;
    let mut rows = Vec::new();
    for (data, label, sigma, steps) in TABLES {
        let cost = Cost::of(&Mechanism::gaussian(sigma)?, Neighbors::AddRemove)?.repeat(steps)?;
        let rho = cost.rho().context("Gaussian noise has a rho")?;
        let literal = zcdp::epsilon(Conversion::Classic, rho, delta).0.get();
        let exact = gaussian::epsilon(cost.mu().context("Gaussian noise has a mu")?, delta).get();
        let note = match (data, label) {
            ("Adult", "1.0") => "this row is a run at epsilon 0.5; noise 309.94 would be 1.0 (E8)",
            ("MNIST", "0.5" | "3.0") => "a little more than its label (E8)",
            (_, _) => "",
        };
        rows.push(Row {
            what: format!("{data}: noise {sigma}, {steps} steps"),
            paper: label.into(),
            literal,
            sound: (exact, "exact Gaussian profile"),
            note,
        });
    }
    let order = Order::new(63.0)?;
    let step = Cost::of(&Mechanism::gaussian(170.0)?, Neighbors::AddRemove)?;
    rows.push(Row {
        what: "Fig. 2: the odometer's step Delta at order 63".into(),
        paper: "0.00109".into(),
        literal: step.renyi(order).get(),
        sound: (step.renyi(order).get(), "Rényi at 63"),
        note: "printed as order/noise²; it is order/(2·noise²) (E8)",
    });
    rows.push(Row {
        what: "Fig. 2: a Rényi loss of 0.135 as epsilon".into(),
        paper: "0.32".into(),
        literal: Conversion::Classic.epsilon(order, Divergence::from_upper_bound(0.135), delta).get(),
        sound: (Conversion::Classic.epsilon(order, Divergence::from_upper_bound(0.135), delta).get(), "restart odometer: 0.135 + ln(1/delta)/62"),
        note: "as an odometer, with the order fixed in advance; the paper's proposition is for a fixed number of restarts (T22)",
    });
    for steps in [52u64, 104, 125] {
        rows.push(Row {
            what: format!("Fig. 2: most that the odometer can show after {steps} steps"),
            paper: String::new(),
            literal: 0.00109 * Count::new(steps)?.to_f64(),
            sound: (
                step.repeat(steps)?.renyi(order).least(step.repeat(104)?.renyi(order)).get(),
                "the sum itself, within the filter",
            ),
            note: "every step restarts; the histogram over people needs the training run",
        });
    }
    let (more, streams) = sparse_streams::rows_and_chart()?;
    rows.extend(more);
    Ok(Study {
        key: "feldman-zrnic",
        title: "[FZ] Feldman and Zrnic: private gradient descent with individual filtering",
        about: "Both tables at delta = 1e-5: k steps of noise sigma are k/(2·sigma²)-zCDP, with and without filtering. Labels agree \
                with the classic conversion, which the paper does not name. Then Proposition 2.9 where the paper's own example has \
                it, on people who do not exist: one sparse indicator a day from each, and how many daily sums worst-case and \
                individual accounting can report at the same guarantee.",
        rows,
        figures: vec![
            Figure {
                name: "odometer",
                caption: "A record whose gradient is always clipped stops at its budget; one with a little less in each step is \
                          counted a whole step each time, hence the odometer's 0.136 where 0.113 was spent.",
                chart: odometer_chart()?,
            },
            Figure {
                name: "sparse-streams",
                caption: "Worst-case accounting stops for everybody at once, as if each person had a 1 every day. Individual \
                          accounting goes on until a person's own ones have used up their budget, and at p = 0.01 nobody is near \
                          that where the drawing ends. With real people these lines would be secret.",
                chart: streams,
            },
        ],
    })
}
