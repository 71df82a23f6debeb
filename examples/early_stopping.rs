//! Training that may stop early: a filter for the budget, an odometer for what was really spent.
//!
//! ```sh
//! cargo run --release --example early_stopping
//! ```

use paygo::accounting::cost::Cost;
use paygo::accounting::filter::{Budget, Clock, Filter};
use paygo::accounting::mechanism::Mechanism;
use paygo::accounting::odometer::{Odometer, VilleMixture};
use paygo::accounting::params::Neighbors;
use paygo::accounting::prior::Prior;
use std::error::Error;

#[expect(clippy::print_stdout, reason = "an example talks")]
fn main() -> Result<(), Box<dyn Error>> {
    let budget = Budget::from_decimal("4", "1e-6")?;
    let mut filter = Filter::new(Clock::new(budget)?, Neighbors::AddRemove);
    let prior = Prior::for_budget(budget.epsilon(), budget.delta());
    let mut odometer = Odometer::new(VilleMixture::new(budget.delta(), prior)?, Neighbors::AddRemove);
    let epoch = Cost::of(&Mechanism::poisson_sampled_gaussian(0.01024, 1.0)?, Neighbors::AddRemove)?.repeat(98)?;
    // Each epoch ends with a noisy look at the validation accuracy, which is charged too.
    let look = Cost::of(&Mechanism::gaussian(100.0)?, Neighbors::AddRemove)?;
    let charge = filter.price(&epoch.and(&look)?)?;
    let observed = odometer.price(&epoch.and(&look)?)?;
    let mut best = 0.0;
    for (epoch, accuracy) in (1..).zip([0.41, 0.52, 0.58, 0.61, 0.62, 0.62, 0.62]) {
        if !filter.admit(&charge).is_admitted() {
            println!("epoch {epoch}: refused; the budget is used");
            break;
        }
        odometer.observe(&observed)?;
        println!("epoch {epoch}: accuracy about {accuracy}, odometer {:.3}", odometer.reading().get());
        if accuracy < best + 0.005 {
            println!("no gain any more: stop, and the reading still holds");
            break;
        }
        best = accuracy;
    }
    let meter = filter.meters()[0];
    println!("the filter has spent {} of {}: the rest stays for other work", meter.spent, meter.budget);
    Ok(())
}
