//! What odometers read when the same is done again and again.

use anyhow::Context;
use paygo_accounting::cost::Cost;
use paygo_accounting::odometer::{AnyBoundary, Odometer};

/// Readings after 1, 2, … times.
pub(super) type Readings = anyhow::Result<Vec<f64>>;

/// What a sound odometer reads.
pub(super) fn readings(boundary: AnyBoundary, cost: &Cost, times: u32) -> Readings {
    let mut odometer = Odometer::new(boundary, cost.neighbors());
    let charge = odometer.price(cost)?;
    let read = |_| {
        odometer.observe(&charge)?;
        Ok(odometer.reading().get())
    };
    (0..times).map(read).collect()
}

/// The reading after so many times.
pub(super) fn after(times: usize, readings: Readings) -> anyhow::Result<f64> {
    readings?.get(times - 1).copied().context("there are fewer readings")
}

/// Points of a line, from 1 on.
pub(super) fn points(readings: Readings) -> anyhow::Result<Vec<(f64, f64)>> {
    Ok((1..).map(f64::from).zip(readings?).collect())
}
