//! \[Y\] Tables II and III: how many epochs the budget lasts when the noise decays.

use super::claim::{Claim, Row};
use paygo_accounting::params::{Count, NoiseMultiplier, Rho};
use paygo_accounting::schedule::Schedule;

/// Table II: a schedule, and the epochs that the paper prints.
const TABLE_II: [(&str, MakeSchedule, f64, &str); 5] = [
    ("uniform, noise 8", uniform, 8.0, "100"),
    ("time, k = 0.05", time, 0.05, "38"),
    ("step, k = 0.6", step, 0.6, "31"),
    ("exp, k = 0.01", exponential, 0.01, "71"),
    ("poly, k = 3", polynomial, 3.0, "44"),
];

pub(super) const VALIDATION: &[Claim] = &[Claim {
    source: "Table II",
    what: "validation, from the printed run lengths 29 + 20 + 10",
    printed: "64",
    literal: validation_epochs,
    sound: validation_epochs,
    method: ZCDP,
    note: "the rest at noise 3.43",
}];

/// The printed decay rates of Table III, each for its number of epochs.
const TABLE_III: [(&str, MakeSchedule, [&str; 8]); 4] = [
    ("time", time, ["0.076", "0.0441", "0.0281", "0.019", "0.0132", "0.0093", "0.0067", "0.0048"]),
    ("step", step, ["0.5459", "0.7008", "0.7922", "0.851", "0.891", "0.919", "0.94", "0.956"]),
    ("exp", exponential, ["0.0442", "0.0282", "0.0193", "0.0138", "0.0101", "0.0075", "0.0056", "0.0041"]),
    ("poly", polynomial, ["6.2077", "3.5277", "2.1948", "1.4317", "0.9549", "0.6382", "0.4167", "0.1626"]),
];

const TABLE_III_EPOCHS: [&str; 8] = ["30", "40", "50", "60", "70", "80", "90", "100"];

const ZCDP: &str = "a zCDP filter";

type MakeSchedule = fn(f64) -> anyhow::Result<Schedule>;

fn uniform(noise: f64) -> anyhow::Result<Schedule> {
    Ok(Schedule::Uniform { initial: NoiseMultiplier::new(noise)? })
}

/// The noise that the decaying schedules begin with.
const INITIAL: f64 = 10.0;

fn time(rate: f64) -> anyhow::Result<Schedule> {
    Ok(Schedule::Time { initial: NoiseMultiplier::new(INITIAL)?, rate })
}

fn step(rate: f64) -> anyhow::Result<Schedule> {
    Ok(Schedule::Step { initial: NoiseMultiplier::new(INITIAL)?, rate, period: 10 })
}

fn exponential(rate: f64) -> anyhow::Result<Schedule> {
    Ok(Schedule::Exponential { initial: NoiseMultiplier::new(INITIAL)?, rate })
}

fn polynomial(rate: f64) -> anyhow::Result<Schedule> {
    let (initial, last) = (NoiseMultiplier::new(INITIAL)?, NoiseMultiplier::new(2.0)?);
    Ok(Schedule::Polynomial { initial, rate, last, period: 100 })
}

/// The total ρ of both tables.
const BUDGET: f64 = 0.78125;

fn epochs_within_budget(schedule: &Schedule) -> anyhow::Result<f64> {
    Ok(Count::new(schedule.epochs_within(Rho::new(BUDGET)?).count)?.to_f64())
}

pub(super) fn table_2() -> anyhow::Result<Vec<Row>> {
    let row = |(what, make, rate, printed): (&str, MakeSchedule, f64, &str)| {
        let epochs = epochs_within_budget(&make(rate)?)?;
        Ok(Row {
            source: "Table II",
            what: what.to_owned(),
            printed: printed.to_owned(),
            literal: epochs,
            sound: epochs,
            method: ZCDP,
            note: "epochs until rho = 0.78125 is spent, counted from 0 (E15)",
        })
    };
    TABLE_II.into_iter().map(row).collect()
}

/// The run lengths that the text prints, then as many epochs at the next level as the budget still allows.
fn validation_epochs() -> anyhow::Result<f64> {
    let level = |noise: f64| 1.0 / (2.0 * noise * noise);
    let spent = 29.0 * level(10.0) + 20.0 * level(7.0) + 10.0 * level(4.9);
    Ok(59.0 + ((BUDGET - spent) / level(3.43)).floor())
}

pub(super) fn table_3() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, make, rates) in TABLE_III {
        for (rate, printed) in rates.into_iter().zip(TABLE_III_EPOCHS) {
            let epochs = epochs_within_budget(&make(rate.parse()?)?)?;
            rows.push(Row {
                source: "Table III",
                what: format!("epochs of {name} with k = {rate}"),
                printed: printed.to_owned(),
                literal: epochs,
                sound: epochs,
                method: ZCDP,
                note: "",
            });
        }
    }
    Ok(rows)
}
