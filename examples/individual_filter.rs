//! An individual filter over a million people: each pays for their own contribution, and leaves when their own budget is used up.
//! The order matters: decide and charge, keep the charge, add up those who take part, and only then draw.
//!
//! `cargo run --release --example individual_filter`

use paygo::accounting::filter::{Budget, Zcdp};
use paygo::accounting::individual::{FULL, PersonalBudget, SharePrice, admit_round};
use paygo::noise::{DiscreteGaussian, Ratio, Source};
use std::error::Error;

const PEOPLE: usize = 1_000_000;

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn main() -> Result<(), Box<dyn Error>> {
    // Everybody is promised (1, 10⁻⁶)-DP, whatever is asked and however often.
    let budget = PersonalBudget::zcdp(&Zcdp::new(Budget::from_decimal("1", "1e-6")?)?);
    // Each round releases a sum of integers with discrete Gaussian noise of standard deviation 1000: of variance 10⁶/1.
    let noise = DiscreteGaussian { variance: Ratio::new(1000 * 1000, 1)? };
    let price = SharePrice::new(&budget, noise.variance.numerator(), noise.variance.denominator())?;
    let mut source = Source::from_operating_system()?;
    let worst_case = FULL / price.share(99 * 99);
    println!("worst-case accounting stops after {worst_case} rounds");

    let mut spent = vec![0u32; PEOPLE];
    let mut active = vec![0u64; PEOPLE.div_ceil(64)];
    // Made-up contributions from 0 to 99, the same in every round: the last of a hundred people is the most exposed.
    let contribution = |person: usize| i64::try_from(person % 100).unwrap_or(0);
    let square = |person: usize| u128::from(contribution(person).unsigned_abs()).pow(2);
    let costs: Vec<u32> = (0..PEOPLE).map(|person| price.share(square(person))).collect();
    for round in 1..=1000 {
        admit_round(&mut spent, &costs, &mut active); // A real system writes `spent` to disk before it goes on.
        let takes_part = |person: &usize| active[person / 64] >> (person % 64) & 1 == 1;
        let sum: i64 = (0..PEOPLE).filter(takes_part).map(contribution).sum();
        let released = sum + noise.draw(&mut source);
        if [1, worst_case, worst_case + 1, 10, 100, 1000].contains(&round) {
            // Secret, like everything about who takes part: shown because these people do not exist.
            let taking_part: u32 = active.iter().map(|word| word.count_ones()).sum();
            println!("round {round}: released {released}; {taking_part} of {PEOPLE} take part");
        }
    }
    Ok(())
}
