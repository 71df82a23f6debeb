//! \[W\] Whitehouse et al.: one hundred 0.1-DP steps, odometer beside odometer.

use super::claim::{Claims, Paper, Row};
use super::figure::{Figure, line, unsound};
use super::odometers::{Readings, after, points, readings};
use anyhow::Context;
use paygo_accounting::cost::Cost;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::odometer::{AnyBoundary, Linear, NormalMixture, Stitched, VilleMixture};
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_accounting::prior::Prior;
use paygo_audit::literal_unsound::LiteralOdometer;
use paygo_numeric::Amount;
use paygo_report::LineChart;

pub(super) const PAPER: Paper = Paper {
    key: "whitehouse",
    title: "[W] Whitehouse et al.: odometers for one hundred 0.1-DP steps",
    about: "The poster prints neither delta nor the mixture's precision; 1e-6 and 0.1 give the crossing that its caption \
            speaks of. The older odometer it compares with is not defined in the poster and is left out.",
    claims: &[Claims::Table(comparison)],
    figures: &[Figure {
        name: "odometers",
        caption: "Printed forms dashed. The default odometer also knows that the loss never passes the sum of the epsilons.",
        chart: odometers,
    }],
};

/// An odometer of the poster, and what may be promised instead.
struct Comparison {
    name: &'static str,
    printed: fn() -> Readings,
    sound: fn() -> Readings,
    method: &'static str,
}

const ODOMETERS: [Comparison; 3] = [
    Comparison { name: "stitched", printed: printed_stitched, sound: stitched, method: "stitched with its drift" },
    Comparison { name: "mixture", printed: printed_mixture, sound: mixture, method: "mixture with its drift" },
    Comparison { name: "mixture", printed: printed_mixture, sound: ville_mixture, method: "ville-mixture" },
];

const STEPS: u32 = 100;
const EPSILON: f64 = 0.1;
const DELTA: f64 = 1e-6;
const PRECISION: &str = "0.1";

fn comparison() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for steps in [10, 50, 100] {
        for Comparison { name, printed, sound, method } in ODOMETERS {
            rows.push(Row {
                source: "Odometer Comparison",
                what: format!("{name} odometer after {steps} steps"),
                printed: String::new(),
                literal: after(steps, printed())?,
                sound: after(steps, sound())?,
                method,
                note: "the printed form leaves out the drift V/2 (E6); the audit crosses it almost surely",
            });
        }
    }
    Ok(rows)
}

fn printed(odometer: &LiteralOdometer) -> Readings {
    // ε² of a step.
    let square = 0.01;
    Ok((1..=STEPS).map(|n| odometer.value(&[], square * f64::from(n), square)).collect())
}

fn printed_stitched() -> Readings {
    printed(&LiteralOdometer::Stitched { delta: DELTA })
}

fn printed_mixture() -> Readings {
    printed(&LiteralOdometer::Mixture { delta: DELTA, precision: PRECISION.parse()? })
}

fn sound(boundary: AnyBoundary) -> Readings {
    readings(boundary, &Cost::of(&Mechanism::pure(EPSILON)?, Neighbors::AddRemove)?, STEPS)
}

fn stitched() -> Readings {
    sound(Stitched::new(Delta::new(DELTA)?, Amount::ZERO)?.into())
}

fn mixture() -> Readings {
    let precision = Amount::from_decimal_up(PRECISION).context("a decimal")?;
    sound(NormalMixture::new(precision, Delta::new(DELTA)?, Amount::ZERO)?.into())
}

fn linear() -> Readings {
    sound(Linear::for_target(Epsilon::new(4.0)?, Delta::new(DELTA)?, Amount::ZERO)?.into())
}

fn ville_mixture() -> Readings {
    sound(VilleMixture::new(Delta::new(DELTA)?, Prior::log_spaced())?.into())
}

fn odometers() -> anyhow::Result<LineChart> {
    let sums = (1..=STEPS).map(|n| EPSILON * f64::from(n)).collect();
    Ok(LineChart {
        title: "[W]: one hundred steps of 0.1-DP, delta = 1e-6".into(),
        x_label: "steps".into(),
        y_label: "reading".into(),
        series: vec![
            line("basic composition", points(Ok(sums))?),
            unsound("stitched as printed (E6)", points(printed_stitched())?),
            unsound("mixture as printed (E6)", points(printed_mixture())?),
            line("stitched", points(stitched())?),
            line("mixture, precision 0.1", points(mixture())?),
            line("linear, tight at 4", points(linear())?),
            line("Ville mixture (default)", points(ville_mixture())?),
        ],
        y_limit: 8.0,
    })
}
