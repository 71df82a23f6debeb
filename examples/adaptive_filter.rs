//! An analyst whose next noise depends on the last answer, inside a budget.
//!
//! ```sh
//! cargo run --release --example adaptive_filter
//! ```

use paygo::accounting::filter::{Budget, Clock, Decision, Filter};
use paygo::accounting::params::{Delta, Neighbors};
use paygo::noise::{DiscreteGaussian, Ratio, Release, Source};
use std::error::Error;

#[expect(clippy::print_stdout, reason = "an example talks")]
fn main() -> Result<(), Box<dyn Error>> {
    // (1, 1e-6)-DP for one record more or less, however the analyst asks and whenever the analyst stops.
    let mut filter = Filter::new(Clock::new(Budget::from_decimal("1", "1e-6")?)?, Neighbors::AddRemove);
    let mut source = Source::from_operating_system()?;

    let true_count = 1234;
    let (mut noise, mut finest) = (200, 10); // standard deviations
    loop {
        let release = Release::gaussian(DiscreteGaussian { variance: Ratio::new(noise * noise, 1)? }, 1)?;
        match filter.request(&release.cost(Neighbors::AddRemove)?)? {
            Decision::Admitted(permit) => {
                let answer = release.draw(permit, &mut source, &[true_count])?[0]; // the permit is used up
                println!("noise {noise:3}: about {answer}");
                // Adaptive: look more closely while the answer could still be on either side of 1200.
                if answer.abs_diff(1200) < 2 * noise && noise / 2 >= finest {
                    noise /= 2;
                }
            }
            Decision::Refused(refusal) => {
                let left = refusal.spent[0].remaining();
                println!("noise {noise:3}: refused, nothing spent; epsilon {left} remains");
                noise *= 2; // a rougher question may still fit
                finest = noise;
                if noise > 200 {
                    break;
                }
            }
        }
    }
    println!("{}", filter.guarantee(Delta::new(1e-6)?, "record"));
    Ok(())
}
