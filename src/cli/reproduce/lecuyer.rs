//! \[L\] Lécuyer: filters and odometers for DP-SGD on CIFAR-10.
//!
//! The text gives σ = 1, batch 512, clipping 1 and the orders; 98 steps an epoch, q = 512/50000 and δ = 10⁻⁶ are what makes
//! its 5.76 come out.

use super::claim::{Claim, Claims, Paper, Row};
use super::figure::{Figure, chart, line, over, unsound};
use super::odometers::{Readings, after, points, readings};
use paygo_accounting::account::least_epsilon;
use paygo_accounting::convert::Conversion;
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{AnyRule, Budget, Filter, Mixture, Union};
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::odometer::{Doubling, VilleMixture};
use paygo_accounting::params::{Count, Delta, Epsilon, Neighbors};
use paygo_accounting::prior::Prior;
use paygo_audit::literal_unsound::{CurveFilter, LiteralOdometer};
use paygo_audit::suite::lecuyer_orders;
use paygo_report::LineChart;

pub(super) const PAPER: Paper = Paper {
    key: "lecuyer",
    title: "[L] Lécuyer: filters and odometers on CIFAR-10",
    about: "DP-SGD with batch 512 of 50 000, noise multiplier 1, orders 1.25 to 10 by quarters, 16 and 32. Figures whose \
            noise or batch follows a training run (1c, 1d, 2d) are not redrawn.",
    claims: &[Claims::Each(ODOMETER), Claims::Table(filters)],
    figures: &[
        Figure {
            name: "odometer",
            caption: "The printed rule falls below the price fixed in advance: it cannot be an odometer.",
            chart: odometer_chart,
        },
        Figure {
            name: "filter",
            caption: "Where a line meets the budget, its filter stops. The printed rule is an ordinary accountant used as a gate (E4).",
            chart: filter_chart,
        },
    ],
};

const ODOMETER: &[Claim] = &[
    Claim {
        source: "Section 5.2",
        what: "epsilon of 50 epochs, fixed in advance",
        printed: "5.76",
        literal: || fixed_in_advance(Conversion::Classic, 50),
        sound: || fixed_in_advance(Conversion::Exact, 50),
        method: "renyi-exact",
        note: "delta = 1e-6 and 98 steps an epoch are not printed",
    },
    Claim {
        source: "Section 5.2",
        what: "odometer after 20 epochs",
        printed: "4.7",
        literal: || after(20, printed_doubling()),
        sound: || after(20, ville_mixture()),
        method: "ville-mixture",
        note: "does not follow from the text (E2); corrected doubling: 4.84. Level base 6.15/(order - 1) instead of section 4.5's prints it",
    },
    Claim {
        source: "Section 5.2",
        what: "odometer after 6 epochs",
        printed: "3.24",
        literal: || after(6, printed_doubling()),
        sound: || after(6, ville_mixture()),
        method: "ville-mixture",
        note: "does not follow from the text (E2); corrected doubling: 4.40. The same level base prints it",
    },
    Claim {
        source: "Fig. 2(b)",
        what: "odometer after 50 epochs",
        printed: "",
        literal: || after(50, printed_doubling()),
        sound: || after(50, ville_mixture()),
        method: "ville-mixture",
        note: "the printed rule reads less than the price fixed in advance: the visible sign of E2",
    },
];

const DELTA: f64 = 1e-6;
/// Epochs of fine-tuning.
const EPOCHS: u32 = 50;

fn epoch() -> anyhow::Result<Cost> {
    let step = Mechanism::poisson_sampled_gaussian(512.0 / 50_000.0, 1.0)?;
    Ok(Cost::of(&step, Neighbors::AddRemove)?.repeat(98)?)
}

/// ε of a number of epochs that is fixed in advance.
fn fixed_in_advance(conversion: Conversion, epochs: u32) -> anyhow::Result<f64> {
    let curve = epoch()?.repeat(epochs.into())?.curve(&lecuyer_orders());
    Ok(least_epsilon(&curve, conversion, Delta::new(DELTA)?).0.get())
}

fn prior() -> anyhow::Result<Prior> {
    Ok(Prior::uniform(lecuyer_orders())?)
}

/// Section 4.4's odometer as it is printed, after each epoch.
fn printed_doubling() -> Readings {
    let odometer = LiteralOdometer::Doubling { orders: lecuyer_orders(), delta: DELTA };
    let one = epoch()?.curve(&lecuyer_orders());
    let sums = |epochs: u32| one.values().iter().map(|value| value.get() * f64::from(epochs)).collect::<Vec<_>>();
    Ok((1..=EPOCHS).map(|epochs| odometer.value(&sums(epochs), 0.0, 0.0)).collect())
}

fn corrected_doubling() -> Readings {
    readings(Doubling::new(Delta::new(DELTA)?, lecuyer_orders())?.into(), &epoch()?, EPOCHS)
}

fn ville_mixture() -> Readings {
    readings(VilleMixture::new(Delta::new(DELTA)?, prior()?)?.into(), &epoch()?, EPOCHS)
}

/// How many epochs each filter admits of a plan whose price in advance is its budget.
#[expect(clippy::cast_precision_loss, reason = "a few hundred epochs")]
fn filters() -> anyhow::Result<Vec<Row>> {
    let epoch = epoch()?;
    let mut rows = Vec::new();
    for epochs in [50, 100] {
        let target = fixed_in_advance(Conversion::Classic, epochs)?.next_up();
        let budget = Budget::new(Epsilon::new(target)?, Delta::new(DELTA)?)?;
        let mut printed = CurveFilter::new(lecuyer_orders(), Conversion::Classic, budget.epsilon(), budget.delta());
        let literal = (0..500).take_while(|_| printed.would_admit(&epoch)).count();
        let rules: [(&str, AnyRule); 3] = [
            ("mixture", Mixture::over(budget, prior()?)?.into()),
            ("union", Union::over(budget, prior()?, Conversion::Cks)?.into()),
            ("mixture for this plan", Mixture::for_plan(budget, &epoch.repeat(epochs.into())?)?.into()),
        ];
        for (name, rule) in rules {
            let filter = Filter::new(rule, Neighbors::AddRemove);
            rows.push(Row {
                source: "Section 3.4",
                what: format!("epochs that a filter admits at epsilon = {target:.4}: {name}"),
                printed: String::new(),
                literal: literal as f64,
                sound: filter.room_for(&filter.price(&epoch)?, Count::MAX) as f64,
                method: name,
                note: "the printed rule (E4) is unsound when parameters adapt; its classic budgets hide part of it",
            });
        }
    }
    Ok(rows)
}

fn odometer_chart() -> anyhow::Result<LineChart> {
    let series = vec![
        line("fixed in advance (classic)", over(1..=EPOCHS, |n| fixed_in_advance(Conversion::Classic, n))?),
        unsound("doubling as printed (E2)", points(printed_doubling())?),
        line("doubling, corrected", points(corrected_doubling())?),
        line("Ville mixture", points(ville_mixture())?),
    ];
    Ok(chart("[L] Fig. 2(b): an odometer while fine-tuning", "epoch", "epsilon at delta = 1e-6", series))
}

/// What a filter has spent after each epoch.
fn spent(rule: Mixture, epochs: u32) -> anyhow::Result<Vec<(f64, f64)>> {
    let filter = Filter::new(rule, Neighbors::AddRemove);
    let charge = filter.price(&epoch()?)?;
    let after = |n: u32| filter.rule().least_epsilon(filter.sums().plus(charge.lanes(), n.into()).lanes()).get();
    over(1..=epochs, |n| Ok(after(n)))
}

/// Fig. 1(b)'s baseline: what each filter has spent of the budget that 100 epochs cost in advance.
fn filter_chart() -> anyhow::Result<LineChart> {
    const MAX_EPOCHS: u32 = 120;
    let target = fixed_in_advance(Conversion::Classic, 100)?;
    let budget = Budget::new(Epsilon::new(target)?, Delta::new(DELTA)?)?;
    let told = Mixture::for_plan(budget, &epoch()?.repeat(100)?)?;
    let series = vec![
        unsound("the printed rule (E4)", over(1..=MAX_EPOCHS, |n| fixed_in_advance(Conversion::Classic, n))?),
        line("mixture over the paper's orders", spent(Mixture::over(budget, prior()?)?, MAX_EPOCHS)?),
        line("mixture, told the plan", spent(told, MAX_EPOCHS)?),
        line("the budget", vec![(1.0, target), (f64::from(MAX_EPOCHS), target)]),
    ];
    Ok(chart("[L] Fig. 1(b), baseline: what a filter has spent", "epoch", "epsilon at delta = 1e-6", series))
}
