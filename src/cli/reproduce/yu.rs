//! \[Y\] Yu et al.: sampling and shuffling, Figs. 1 to 3; schedules, Tables II and III.

use super::{Figure, Row, Study, line, unsound};
use paygo_accounting::account::least_epsilon;
use paygo_accounting::convert::{Conversion, zcdp};
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::Orders;
use paygo_accounting::estimate::yu_epsilon;
use paygo_accounting::mechanism::{BallsAndBinsEpoch, Mechanism, Single};
use paygo_accounting::params::{Count, Delta, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability};
use paygo_accounting::schedule::Schedule;
use paygo_report::{LineChart, Series};

const BUDGET: f64 = 0.78125;

fn chart(title: &str, x: &str, y: &str, series: Vec<Series>) -> LineChart {
    LineChart { title: title.into(), x_label: x.into(), y_label: y.into(), series, y_limit: f64::INFINITY }
}

/// ε of some epochs of 1/q steps each, by the paper's three methods and by what is proved.
struct Epochs {
    q: f64,
    noise: f64,
    delta: Delta,
}

impl Epochs {
    fn steps(&self, epochs: u32) -> anyhow::Result<Count> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive integer")]
        let steps = (f64::from(epochs) / self.q).round() as u64;
        Ok(Count::new(steps)?)
    }

    /// Reshuffled batches, one after another: ρ = epochs/(2σ²).
    fn shuffled(&self, epochs: u32) -> f64 {
        let rho = Rho::from_upper_bound(f64::from(epochs) / (2.0 * self.noise * self.noise));
        zcdp::epsilon(Conversion::Classic, rho, self.delta).0.get()
    }

    /// The conjecture ρ = q²/σ² per step (E11): an estimate.
    fn sampled(&self, epochs: u32) -> anyhow::Result<f64> {
        let (q, noise) = (SamplingProbability::new(self.q)?, NoiseMultiplier::new(self.noise)?);
        Ok(yu_epsilon(q, noise, self.steps(epochs)?, self.delta)
            .map_or(f64::NAN, |estimate| estimate.for_display().get()))
    }

    /// The moments accountant: the sampled Gaussian's curve at integer orders.
    fn moments(&self, epochs: u32, conversion: Conversion) -> anyhow::Result<f64> {
        let step = Cost::of(&Mechanism::poisson_sampled_gaussian(self.q, self.noise)?, Neighbors::AddRemove)?;
        let orders = Orders::from_f64(&(2..=63).map(f64::from).collect::<Vec<_>>())?;
        let curve = step.repeat(self.steps(epochs)?.get())?.curve(&orders);
        Ok(least_epsilon(&curve, conversion, self.delta).0.get())
    }

    /// Independent assignment to batches, the hypothesis that the paper's proof needs (T44).
    fn assigned(&self, epochs: u32) -> anyhow::Result<f64> {
        let epoch = BallsAndBinsEpoch { batches: self.steps(1)?, noise_multiplier: NoiseMultiplier::new(self.noise)? };
        let cost = Cost::of(&Mechanism::Single(Single::BallsAndBinsEpoch(epoch)), Neighbors::AddRemove)?;
        let orders = Orders::from_f64(&(2..=63).map(f64::from).collect::<Vec<_>>())?;
        Ok(least_epsilon(&cost.repeat(epochs.into())?.curve(&orders), Conversion::Exact, self.delta).0.get())
    }
}

fn figures_and_rows() -> anyhow::Result<(Vec<Row>, Vec<Figure>)> {
    let delta = Delta::new(1e-5)?;
    let six = Epochs { q: 0.01, noise: 6.0, delta };
    let mut rows = vec![
        Row {
            what: "Fig. 2: zCDP with reshuffling, 400 epochs".into(),
            paper: "21.5".into(),
            literal: six.shuffled(400),
            sound: (six.assigned(400)?, "balls-and-bins epochs"),
            note: "the proof needs independent assignment of each record to a batch (E12)",
        },
        Row {
            what: "Fig. 2: zCDP with random sampling, 400 epochs".into(),
            paper: "2.37".into(),
            literal: six.sampled(400)?,
            sound: (six.moments(400, Conversion::Exact)?, "sampled Gaussian, exact conversion"),
            note: "an estimate: the conjecture behind it is false (E11)",
        },
        Row {
            what: "Fig. 2: moments accountant, 400 epochs".into(),
            paper: "1.67".into(),
            literal: six.moments(400, Conversion::Classic)?,
            sound: (six.moments(400, Conversion::Exact)?, "sampled Gaussian, exact conversion"),
            note: "",
        },
    ];
    // The nearest stated reading of "strong composition": δ shared evenly over the steps and the slack.
    let strong = {
        use paygo_accounting::compose::{Drift, advanced, amplify};
        use paygo_accounting::cost::ApproximateStep;
        use paygo_accounting::params::Epsilon;
        let steps = six.steps(400)?;
        let share = Delta::new(1e-5 / (steps.to_f64() + 1.0))?;
        let own = Delta::new(share.get() / 0.01)?;
        let epsilon = (2.0 * paygo_numeric::elementary::ln(1.25 / own.get())).sqrt() / 6.0;
        let (epsilon, _) = amplify(SamplingProbability::new(0.01)?, Epsilon::new(epsilon)?, own);
        advanced(&[ApproximateStep { epsilon, delta: share, count: steps }], Drift::Drv, share).0.get()
    };
    rows.push(Row {
        what: "Fig. 2: strong composition, 400 epochs".into(),
        paper: "34.3".into(),
        literal: strong,
        sound: (six.moments(400, Conversion::Exact)?, "sampled Gaussian, exact conversion"),
        note: "not reproduced: the split of delta is not stated; this is delta/(k+1) for each step and for the slack",
    });
    let orders: Vec<f64> = (2..=200).map(f64::from).collect();
    let sampled = Cost::of(&Mechanism::poisson_sampled_gaussian(0.01, 4.0)?, Neighbors::AddRemove)?;
    let curve = sampled.curve(&Orders::from_f64(&orders)?);
    let at = |order: f64| anyhow::Ok(curve.at(Order::new(order)?).get());
    let change = (3..200).map(f64::from).find(|&a| {
        let step = |a: f64| at(a).unwrap_or(f64::NAN) - at(a - 1.0).unwrap_or(f64::NAN);
        step(a) > 5.0 * step(a - 1.0) && a > 100.0
    });
    rows.push(Row {
        what: "Fig. 1: order at which sampling stops helping (q = 0.01, noise 4)".into(),
        paper: "147".into(),
        literal: change.unwrap_or(f64::NAN),
        sound: (at(147.0)?, "divergence there, exact"),
        note: "the first integer at which the increment jumps",
    });
    let epochs: Vec<u32> = (1..=40).map(|k| 10 * k).collect();
    let over = |f: &dyn Fn(u32) -> f64| epochs.iter().map(|&e| (f64::from(e), f(e))).collect::<Vec<_>>();
    let figure_1 = chart(
        "[Y] Fig. 1: sampling does not amplify zCDP (q = 0.01, noise 4)",
        "order",
        "divergence",
        vec![
            line("without sampling: order/32", orders.iter().map(|&a| (a, a / 32.0)).collect()),
            line("with sampling", curve.points().map(|(order, value)| (order.get(), value.get())).collect()),
        ],
    );
    let nan = |x: anyhow::Result<f64>| x.unwrap_or(f64::NAN);
    let figure_2 = chart(
        "[Y] Fig. 2: epsilon against epochs, q = 0.01, noise 6, delta = 1e-5",
        "epoch",
        "epsilon",
        vec![
            line("zCDP, reshuffled (E12)", over(&|e| six.shuffled(e))),
            line("balls-and-bins epochs, proved", over(&|e| nan(six.assigned(e)))),
            unsound("zCDP, sampled: estimate (E11)", over(&|e| nan(six.sampled(e)))),
            line("moments accountant (classic)", over(&|e| nan(six.moments(e, Conversion::Classic)))),
            line("sampled Gaussian, exact conversion", over(&|e| nan(six.moments(e, Conversion::Exact)))),
        ],
    );
    let qs = [0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.05, 0.08, 0.1];
    let by_q = |f: &dyn Fn(&Epochs) -> f64| qs.map(|q| (q, f(&Epochs { q, noise: 6.0, delta }))).to_vec();
    let figure_3a = chart(
        "[Y] Fig. 3a: epsilon after 200 epochs against q, noise 6",
        "q",
        "epsilon",
        vec![
            line("zCDP, reshuffled (E12)", by_q(&|c| c.shuffled(200))),
            unsound("zCDP, sampled: estimate (E11)", by_q(&|c| nan(c.sampled(200)))),
            line("sampled Gaussian, exact conversion", by_q(&|c| nan(c.moments(200, Conversion::Exact)))),
        ],
    );
    let by_noise = |f: &dyn Fn(&Epochs) -> f64| {
        (5..=14).map(|s| (f64::from(s), f(&Epochs { q: 0.01, noise: f64::from(s), delta }))).collect::<Vec<_>>()
    };
    let figure_3b = chart(
        "[Y] Fig. 3b: epsilon after 200 epochs against noise, q = 0.01",
        "noise",
        "epsilon",
        vec![
            line("zCDP, reshuffled (E12)", by_noise(&|c| c.shuffled(200))),
            unsound("zCDP, sampled: estimate (E11)", by_noise(&|c| nan(c.sampled(200)))),
            line("sampled Gaussian, exact conversion", by_noise(&|c| nan(c.moments(200, Conversion::Exact)))),
        ],
    );
    let figures = vec![
        Figure {
            name: "fig1",
            caption: "Beyond order 147 the sampled curve runs parallel to the other.",
            chart: figure_1,
        },
        Figure { name: "fig2", caption: "The estimate is dashed.", chart: figure_2 },
        Figure {
            name: "fig3a",
            caption: "The paper's own condition q <= 1/(16·noise) fails beyond q = 0.0104; there the estimate has no value.",
            chart: figure_3a,
        },
        Figure { name: "fig3b", caption: "The same condition fails beyond noise 6.25.", chart: figure_3b },
    ];
    Ok((rows, figures))
}

/// The printed decay rates of Table III for 30, 40, …, 100 epochs.
const TABLE_III: [(&str, [&str; 8]); 4] = [
    ("time", ["0.076", "0.0441", "0.0281", "0.019", "0.0132", "0.0093", "0.0067", "0.0048"]),
    ("step", ["0.5459", "0.7008", "0.7922", "0.851", "0.891", "0.919", "0.94", "0.956"]),
    ("exp", ["0.0442", "0.0282", "0.0193", "0.0138", "0.0101", "0.0075", "0.0056", "0.0041"]),
    ("poly", ["6.2077", "3.5277", "2.1948", "1.4317", "0.9549", "0.6382", "0.4167", "0.1626"]),
];

fn schedule(name: &str, rate: f64) -> anyhow::Result<Schedule> {
    let initial = NoiseMultiplier::new(10.0)?;
    Ok(match name {
        "time" => Schedule::Time { initial, rate },
        "step" => Schedule::Step { initial, rate, period: 10 },
        "exp" => Schedule::Exponential { initial, rate },
        _ => Schedule::Polynomial { initial, rate, last: NoiseMultiplier::new(2.0)?, period: 100 },
    })
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred epochs")]
fn tables() -> anyhow::Result<Vec<Row>> {
    let budget = Rho::new(BUDGET)?;
    let mut rows = Vec::new();
    let uniform = Schedule::Uniform { initial: NoiseMultiplier::new(8.0)? };
    let second = [
        ("uniform, noise 8", uniform, "100"),
        ("time, k = 0.05", schedule("time", 0.05)?, "38"),
        ("step, k = 0.6", schedule("step", 0.6)?, "31"),
        ("exp, k = 0.01", schedule("exp", 0.01)?, "71"),
        ("poly, k = 3", schedule("poly", 3.0)?, "44"),
    ];
    for (name, schedule, paper) in second {
        let epochs = schedule.epochs_within(budget).count as f64;
        let note = "epochs until rho = 0.78125 is spent, counted from 0 (E15)";
        rows.push(Row {
            what: format!("Table II: {name}"),
            paper: paper.into(),
            literal: epochs,
            sound: (epochs, "a zCDP filter"),
            note,
        });
    }
    // The run lengths that the text prints, then as many epochs at the next level as the budget still allows.
    let level = |noise: f64| 1.0 / (2.0 * noise * noise);
    let spent = 29.0 * level(10.0) + 20.0 * level(7.0) + 10.0 * level(4.9);
    let more = ((BUDGET - spent) / level(3.43)).floor();
    rows.push(Row {
        what: "Table II: validation, from the printed run lengths 29 + 20 + 10".into(),
        paper: "64".into(),
        literal: 59.0 + more,
        sound: (59.0 + more, "a zCDP filter"),
        note: "the rest at noise 3.43",
    });
    for (name, rates) in TABLE_III {
        for (rate, wanted) in rates.iter().zip([30u64, 40, 50, 60, 70, 80, 90, 100]) {
            let epochs = schedule(name, rate.parse()?)?.epochs_within(budget).count as f64;
            rows.push(Row {
                what: format!("Table III: epochs of {name} with k = {rate}"),
                paper: wanted.to_string(),
                literal: epochs,
                sound: (epochs, "a zCDP filter"),
                note: "",
            });
        }
    }
    Ok(rows)
}

pub(super) fn study() -> anyhow::Result<Study> {
    let (mut rows, figures) = figures_and_rows()?;
    rows.extend(tables()?);
    Ok(Study {
        key: "yu",
        title: "[Y] Yu et al.: private training with dynamic budgets",
        about: "Figs. 1 to 3 and Tables II and III. The cost of the PCA step, rho = 0.00195, is left out of the tables as in the \
                paper; a ledger has to add it (E13).",
        rows,
        figures,
    })
}
