//! An individual filter over a million people: each pays for their own contribution, and leaves when their own budget is used up.
//!
//! `cargo run --release --example individual_filter`

use paygo::accounting::filter::{Budget, Zcdp};
use paygo::accounting::individual::{FULL, PersonalBudget, Price, admit_round};
use std::error::Error;

const PEOPLE: usize = 1_000_000;

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn main() -> Result<(), Box<dyn Error>> {
    // Everybody is promised (1, 10⁻⁶)-DP, whatever is asked and however often.
    let budget = PersonalBudget::zcdp(&Zcdp::new(Budget::from_decimal("1", "1e-6")?)?);
    // Each round releases a sum of integers with discrete Gaussian noise of standard deviation 1000.
    let price = Price::new(&budget, 1000 * 1000, 1)?;
    let worst_case = FULL / price.share(99 * 99);
    println!("worst-case accounting stops after {worst_case} rounds");

    let mut spent = vec![0u32; PEOPLE];
    let mut active = vec![0u64; PEOPLE.div_ceil(64)];
    // Made-up contributions from 0 to 99, the same in every round: the last of a hundred people is the most exposed.
    let costs: Vec<u32> = (0..PEOPLE).map(|person| price.share((person as u128 % 100).pow(2))).collect();
    for round in 1..=1000 {
        admit_round(&mut spent, &costs, &mut active);
        if [1, worst_case, worst_case + 1, 10, 100, 1000].contains(&round) {
            // Secret, like everything about who takes part: shown because these people do not exist.
            let taking_part: u32 = active.iter().map(|word| word.count_ones()).sum();
            println!("round {round}: {taking_part} of {PEOPLE} take part");
        }
    }
    Ok(())
}
