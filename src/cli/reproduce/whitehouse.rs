//! \[W\] Whitehouse et al.: one hundred 0.1-DP steps, odometer beside odometer.

use super::{Figure, Row, Study, line, unsound};
use paygo_accounting::cost::Cost;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::odometer::{AnyBoundary, Linear, NormalMixture, Odometer, Stitched, VilleMixture};
use paygo_accounting::params::{Delta, Epsilon, Neighbors};
use paygo_accounting::prior::Prior;
use paygo_audit::literal_unsound::LiteralOdometer;
use paygo_numeric::Amount;
use paygo_report::LineChart;

const STEPS: u32 = 100;
const PRECISION: &str = "0.1";

pub(super) fn study() -> anyhow::Result<Study> {
    let delta = Delta::new(1e-6)?;
    let precision = Amount::from_decimal_up(PRECISION).unwrap_or(Amount::ONE);
    let step = Cost::of(&Mechanism::pure(0.1)?, Neighbors::AddRemove)?;
    let readings = |boundary: AnyBoundary| -> anyhow::Result<Vec<f64>> {
        let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
        let charge = odometer.price(&step)?;
        let read = |_| {
            odometer.observe(&charge)?;
            Ok(odometer.reading().get())
        };
        (0..STEPS).map(read).collect()
    };
    let literal = |odometer: LiteralOdometer| -> Vec<f64> {
        (1..=STEPS).map(|n| odometer.value(&[], 0.01 * f64::from(n), 0.01)).collect()
    };
    let stitched_literal = literal(LiteralOdometer::Stitched { delta: 1e-6 });
    let mixture_literal = literal(LiteralOdometer::Mixture { delta: 1e-6, precision: 0.1 });
    let stitched = readings(Stitched::new(delta, Amount::ZERO)?.into())?;
    let mixture = readings(NormalMixture::new(precision, delta, Amount::ZERO)?.into())?;
    let linear = readings(Linear::for_target(Epsilon::new(4.0)?, delta, Amount::ZERO)?.into())?;
    let ville = readings(VilleMixture::new(delta, Prior::log_spaced())?.into())?;
    let mut rows = Vec::new();
    for n in [10usize, 50, 100] {
        for (name, printed, sound, method) in [
            ("stitched", &stitched_literal, &stitched, "stitched with its drift"),
            ("mixture", &mixture_literal, &mixture, "mixture with its drift"),
            ("mixture", &mixture_literal, &ville, "ville-mixture"),
        ] {
            rows.push(Row {
                what: format!("{name} odometer after {n} steps"),
                paper: String::new(),
                literal: printed[n - 1],
                sound: (sound[n - 1], method),
                note: "the printed form leaves out the drift V/2 (E6); the audit crosses it almost surely",
            });
        }
    }
    let points = |values: &[f64]| (1..).map(f64::from).zip(values.iter().copied()).collect();
    let chart = LineChart {
        title: "[W]: one hundred steps of 0.1-DP, delta = 1e-6".into(),
        x_label: "steps".into(),
        y_label: "reading".into(),
        series: vec![
            line("basic composition", (1..=STEPS).map(|n| (f64::from(n), 0.1 * f64::from(n))).collect()),
            unsound("stitched as printed (E6)", points(&stitched_literal)),
            unsound("mixture as printed (E6)", points(&mixture_literal)),
            line("stitched", points(&stitched)),
            line("mixture, precision 0.1", points(&mixture)),
            line("linear, tight at 4", points(&linear)),
            line("Ville mixture (default)", points(&ville)),
        ],
        y_limit: 8.0,
    };
    Ok(Study {
        key: "whitehouse",
        title: "[W] Whitehouse et al.: odometers for one hundred 0.1-DP steps",
        about: "The poster prints neither delta nor the mixture's precision; 1e-6 and 0.1 give the crossing that its caption \
                speaks of. The older odometer it compares with is not defined in the poster and is left out.",
        rows,
        figures: vec![Figure {
            name: "odometers",
            caption: "Printed forms dashed. The default odometer also knows that the loss never passes the sum of the epsilons.",
            chart,
        }],
    })
}
