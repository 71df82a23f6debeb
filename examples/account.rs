//! The price of a thousand steps of private gradient descent, and what adding a Laplace query makes of it.

use paygo::accounting::account;
use paygo::accounting::cost::Cost;
use paygo::accounting::mechanism::Mechanism;
use paygo::accounting::params::{Delta, Neighbors};

#[expect(clippy::print_stdout, reason = "an example talks")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let step = Mechanism::poisson_sampled_gaussian(0.01, 1.1)?;
    let cost = Cost::of(&step, Neighbors::AddRemove)?.repeat(1000)?;
    let best = account::tightest(&cost, Delta::new(1e-5)?);
    println!("{} by {}", best.guarantee(cost.neighbors(), "record"), best.method);

    let query = Cost::of(&Mechanism::laplace(10.0)?, Neighbors::AddRemove)?;
    let both = account::tightest(&cost.and(&query)?, Delta::new(1e-5)?);
    println!("{} by {}", both.guarantee(cost.neighbors(), "record"), both.method);
    Ok(())
}
