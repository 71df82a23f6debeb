//! How much has been spent, at any moment, when nobody knows yet when to stop?
//!
//! ```sh
//! cargo run --release --example odometer
//! ```

use paygo::accounting::cost::Cost;
use paygo::accounting::mechanism::Mechanism;
use paygo::accounting::odometer::{Odometer, VilleMixture};
use paygo::accounting::params::{Delta, Neighbors};
use paygo::accounting::prior::Prior;
use std::error::Error;

#[expect(clippy::print_stdout, reason = "an example talks")]
fn main() -> Result<(), Box<dyn Error>> {
    let boundary = VilleMixture::new(Delta::new(1e-6)?, Prior::log_spaced())?;
    let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
    let count = Cost::of(&Mechanism::gaussian(30.0)?, Neighbors::AddRemove)?;
    let epoch = Cost::of(&Mechanism::poisson_sampled_gaussian(0.01, 1.2)?, Neighbors::AddRemove)?.repeat(100)?;
    for day in 1..=10 {
        // Observe before the release runs. Readings are free, and hold together, at every moment.
        odometer.observe(&odometer.price(if day % 3 == 0 { &epoch } else { &count })?)?;
        println!("day {day:2}: the privacy loss is at most {:.4}, up to probability 1e-6", odometer.reading().get());
    }
    Ok(())
}
