//! A filter that was told the plan: following it costs almost nothing extra, leaving it stays sound.
//!
//! ```sh
//! cargo run --release --example plan_informed
//! ```

use paygo::accounting::cost::Cost;
use paygo::accounting::filter::{Budget, Clock, Filter};
use paygo::accounting::loss::tightest_of_all;
use paygo::accounting::mechanism::Mechanism;
use paygo::accounting::params::{Count, Neighbors};
use std::error::Error;

#[expect(clippy::print_stdout, reason = "an example talks")]
fn main() -> Result<(), Box<dyn Error>> {
    let step = Cost::of(&Mechanism::poisson_sampled_gaussian(0.01, 1.1)?, Neighbors::AddRemove)?;
    let plan = step.repeat(2500)?;
    let budget = Budget::from_decimal("2.7", "1e-5")?;
    println!("the plan, fixed in advance, costs epsilon {:.4}", tightest_of_all(&plan, budget.delta()).epsilon.get());
    let told = Clock::for_plan(budget, &[(step.clone(), 2500)], 0.0)?;
    for (name, rule) in [("not told the plan", Clock::new(budget)?), ("told the plan", told)] {
        let mut filter = Filter::new(rule, Neighbors::AddRemove);
        let charge = filter.price(&step)?;
        println!("{name}: {} steps would be admitted", filter.room_for(&charge, Count::MAX));
        // Plans change. Half way, switch to something else: still (2.7, 1e-5)-DP.
        let mut steps = 0;
        while steps < 1250 && filter.admit(&charge).is_admitted() {
            steps += 1;
        }
        let other = filter.price(&Cost::of(&Mechanism::gaussian(25.0)?, Neighbors::AddRemove)?)?;
        println!(
            "    after {steps} steps, {} Gaussian counts of noise 25 would be",
            filter.room_for(&other, Count::MAX)
        );
    }
    Ok(())
}
