//! \[Y\] Yu et al.: sampling and shuffling, Figs. 1 to 3; [`schedules`] has Tables II and III.

use super::claim::{Claim, Claims, Paper};
use super::figure::{Figure, chart, line, over, unsound};
use super::schedules;
use paygo_accounting::account::least_epsilon;
use paygo_accounting::compose::{Drift, advanced, amplify};
use paygo_accounting::convert::{Conversion, zcdp};
use paygo_accounting::cost::{ApproximateStep, Cost};
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::estimate::yu_epsilon;
use paygo_accounting::mechanism::{BallsAndBinsEpoch, Mechanism, Single};
use paygo_accounting::params::{Count, Delta, Epsilon, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability};
use paygo_numeric::elementary::ln;
use paygo_report::{LineChart, Series};

pub(super) const PAPER: Paper = Paper {
    key: "yu",
    title: "[Y] Yu et al.: private training with dynamic budgets",
    about: "Figs. 1 to 3 and Tables II and III. The cost of the PCA step, rho = 0.00195, is left out of the tables as in the \
            paper; a ledger has to add it (E13).",
    claims: &[
        Claims::Each(CLAIMS),
        Claims::Table(schedules::table_2),
        Claims::Each(schedules::VALIDATION),
        Claims::Table(schedules::table_3),
    ],
    figures: &[
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
    ],
};

const CLAIMS: &[Claim] = &[
    Claim {
        source: "Fig. 2",
        what: "zCDP with reshuffling, 400 epochs",
        printed: "21.5",
        literal: || FIGURE_2.shuffled(400),
        sound: || FIGURE_2.assigned(400),
        method: "balls-and-bins epochs",
        note: "the proof needs independent assignment of each record to a batch (E12)",
    },
    Claim {
        source: "Fig. 2",
        what: "zCDP with random sampling, 400 epochs",
        printed: "2.37",
        literal: || FIGURE_2.sampled(400),
        sound: || FIGURE_2.moments(Conversion::Exact, 400),
        method: MOMENTS,
        note: "an estimate: the conjecture behind it is false (E11)",
    },
    Claim {
        source: "Fig. 2",
        what: "moments accountant, 400 epochs",
        printed: "1.67",
        literal: || FIGURE_2.moments(Conversion::Classic, 400),
        sound: || FIGURE_2.moments(Conversion::Exact, 400),
        method: MOMENTS,
        note: "",
    },
    Claim {
        source: "Fig. 2",
        what: "strong composition, 400 epochs",
        printed: "34.3",
        literal: || FIGURE_2.strong_composition(400),
        sound: || FIGURE_2.moments(Conversion::Exact, 400),
        method: MOMENTS,
        note: "not reproduced: the split of delta is not stated; this is delta/(k+1) for each step and for the slack",
    },
    Claim {
        source: "Fig. 1",
        what: "order at which sampling stops helping (q = 0.01, noise 4)",
        printed: "147",
        literal: order_of_the_jump,
        sound: || Ok(sampled_divergence()?.at(Order::new(147.0)?).get()),
        method: "divergence there, exact",
        note: "the first integer at which the increment jumps",
    },
];

const MOMENTS: &str = "sampled Gaussian, exact conversion";

const DELTA: f64 = 1e-5;

fn delta() -> anyhow::Result<Delta> {
    Ok(Delta::new(DELTA)?)
}

/// ε of some epochs of 1/q steps each, by the paper's methods and by what is proved.
struct Epochs {
    q: f64,
    noise: f64,
}

const FIGURE_2: Epochs = Epochs { q: 0.01, noise: 6.0 };

impl Epochs {
    fn steps(&self, epochs: u32) -> anyhow::Result<Count> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive integer")]
        let steps = (f64::from(epochs) / self.q).round() as u64;
        Ok(Count::new(steps)?)
    }

    /// Reshuffled batches, one after another: ρ = epochs/(2σ²).
    fn shuffled(&self, epochs: u32) -> anyhow::Result<f64> {
        let rho = Rho::from_upper_bound(f64::from(epochs) / (2.0 * self.noise * self.noise));
        Ok(zcdp::epsilon(Conversion::Classic, rho, delta()?).0.get())
    }

    /// The conjecture ρ = q²/σ² per step (E11): an estimate, and none where the paper's condition fails.
    fn sampled(&self, epochs: u32) -> anyhow::Result<f64> {
        let (q, noise) = (SamplingProbability::new(self.q)?, NoiseMultiplier::new(self.noise)?);
        let estimate = yu_epsilon(q, noise, self.steps(epochs)?, delta()?);
        Ok(estimate.map_or(f64::NAN, |estimate| estimate.for_display().get()))
    }

    /// The moments accountant: the sampled Gaussian's curve at integer orders.
    fn moments(&self, conversion: Conversion, epochs: u32) -> anyhow::Result<f64> {
        let step = Cost::of(&Mechanism::poisson_sampled_gaussian(self.q, self.noise)?, Neighbors::AddRemove)?;
        let curve = step.repeat(self.steps(epochs)?.get())?.curve(&integer_orders(63)?);
        Ok(least_epsilon(&curve, conversion, delta()?).0.get())
    }

    /// Independent assignment to batches, the hypothesis that the paper's proof needs (T44).
    fn assigned(&self, epochs: u32) -> anyhow::Result<f64> {
        let epoch = BallsAndBinsEpoch { batches: self.steps(1)?, noise_multiplier: NoiseMultiplier::new(self.noise)? };
        let cost = Cost::of(&Mechanism::Single(Single::BallsAndBinsEpoch(epoch)), Neighbors::AddRemove)?;
        let curve = cost.repeat(epochs.into())?.curve(&integer_orders(63)?);
        Ok(least_epsilon(&curve, Conversion::Exact, delta()?).0.get())
    }

    /// The nearest stated reading of "strong composition": δ shared evenly over the steps and the slack.
    fn strong_composition(&self, epochs: u32) -> anyhow::Result<f64> {
        let count = self.steps(epochs)?;
        let share = Delta::new(DELTA / (count.to_f64() + 1.0))?;
        let own = Delta::new(share.get() / self.q)?;
        let epsilon = Epsilon::new((2.0 * ln(1.25 / own.get())).sqrt() / self.noise)?;
        let (epsilon, _) = amplify(SamplingProbability::new(self.q)?, epsilon, own);
        Ok(advanced(&[ApproximateStep { epsilon, delta: share, count }], Drift::Drv, share).0.get())
    }
}

/// The orders 2, 3, …
fn integer_orders(last: u32) -> anyhow::Result<Orders> {
    Ok(Orders::from_f64(&(2..=last).map(f64::from).collect::<Vec<_>>())?)
}

/// Fig. 1's sampled Gaussian.
fn sampled_divergence() -> anyhow::Result<RenyiCurve> {
    let step = Mechanism::poisson_sampled_gaussian(0.01, 4.0)?;
    Ok(Cost::of(&step, Neighbors::AddRemove)?.curve(&integer_orders(200)?))
}

/// The first order beyond 100 whose increment is five times the one before.
fn order_of_the_jump() -> anyhow::Result<f64> {
    let curve: Vec<(Order, f64)> = sampled_divergence()?.points().map(|(order, value)| (order, value.get())).collect();
    let jumps = |three: &&[(Order, f64)]| {
        let [(_, a), (_, b), (order, c)] = three else { return false };
        order.get() > 100.0 && c - b > 5.0 * (b - a)
    };
    Ok(curve.windows(3).find(jumps).map_or(f64::NAN, |three| three[2].0.get()))
}

fn figure_1() -> anyhow::Result<LineChart> {
    let sampled = sampled_divergence()?.points().map(|(order, value)| (order.get(), value.get())).collect();
    let series = vec![
        line("without sampling: order/32", over(2..=200, |order| Ok(f64::from(order) / 32.0))?),
        line("with sampling", sampled),
    ];
    Ok(chart("[Y] Fig. 1: sampling does not amplify zCDP (q = 0.01, noise 4)", "order", "divergence", series))
}

fn figure_2() -> anyhow::Result<LineChart> {
    let epochs = || (1..=40u32).map(|k| 10 * k);
    let series = vec![
        line("zCDP, reshuffled (E12)", over(epochs(), |e| FIGURE_2.shuffled(e))?),
        line("balls-and-bins epochs, proved", over(epochs(), |e| FIGURE_2.assigned(e))?),
        unsound("zCDP, sampled: estimate (E11)", over(epochs(), |e| FIGURE_2.sampled(e))?),
        line("moments accountant (classic)", over(epochs(), |e| FIGURE_2.moments(Conversion::Classic, e))?),
        line(MOMENTS, over(epochs(), |e| FIGURE_2.moments(Conversion::Exact, e))?),
    ];
    Ok(chart("[Y] Fig. 2: epsilon against epochs, q = 0.01, noise 6, delta = 1e-5", "epoch", "epsilon", series))
}

fn figure_3a() -> anyhow::Result<LineChart> {
    let series =
        after_200_epochs([0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.05, 0.08, 0.1], |q| Epochs { q, noise: 6.0 });
    Ok(chart("[Y] Fig. 3a: epsilon after 200 epochs against q, noise 6", "q", "epsilon", series?))
}

fn figure_3b() -> anyhow::Result<LineChart> {
    let series = after_200_epochs((5..=14).map(f64::from), |noise| Epochs { q: 0.01, noise });
    Ok(chart("[Y] Fig. 3b: epsilon after 200 epochs against noise, q = 0.01", "noise", "epsilon", series?))
}

/// Fig. 3's lines over q or over the noise.
fn after_200_epochs(xs: impl IntoIterator<Item = f64> + Clone, at: fn(f64) -> Epochs) -> anyhow::Result<Vec<Series>> {
    let of = |method: fn(&Epochs) -> anyhow::Result<f64>| over(xs.clone(), |x| method(&at(x)));
    Ok(vec![
        line("zCDP, reshuffled (E12)", of(|epochs| epochs.shuffled(200))?),
        unsound("zCDP, sampled: estimate (E11)", of(|epochs| epochs.sampled(200))?),
        line(MOMENTS, of(|epochs| epochs.moments(Conversion::Exact, 200))?),
    ])
}
