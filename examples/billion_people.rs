//! One round of a filter over a billion people, each with a budget of their own, on a machine with 8 GiB to spare.
//!
//! ```sh
//! cargo run --release --example billion_people            # 10⁹ people
//! cargo run --release --example billion_people 1000000    # fewer
//! ```

use paygo::accounting::filter::{Budget, Zcdp};
use paygo::accounting::individual::{PersonalBudget, SharePrice, admit_round};
use rayon::prelude::*;
use std::error::Error;
use std::time::Instant;

/// Columns are made in pieces of this many people.
const PIECE: usize = 1 << 20;

#[expect(clippy::print_stdout, reason = "an example talks")]
fn main() -> Result<(), Box<dyn Error>> {
    let people: usize = std::env::args().nth(1).map_or(Ok(1_000_000_000), |given| given.parse())?;

    // Everybody may lose (3, 10⁻⁶). A contribution of squared norm 1 against noise of variance 100 costs its share of that.
    let budget = PersonalBudget::zcdp(&Zcdp::new(Budget::from_decimal("3", "1e-6")?)?);
    let price = SharePrice::new(&budget, 100, 1)?;
    // Squared norms from 0 to 15: sixteen prices for a billion people.
    let prices: Vec<u32> = (0..16).map(|squared_norm| price.share(squared_norm)).collect();

    let start = Instant::now();
    let mut spent = vec![0u32; people];
    let mut costs = vec![0u32; people];
    let mut active = vec![0u64; people.div_ceil(64)];
    // What they have spent before, and what this round asks of them.
    for (column, salt) in [(&mut spent, 0), (&mut costs, people)] {
        column.par_chunks_mut(PIECE).enumerate().for_each(|(piece, column)| {
            for (i, share) in (salt + PIECE * piece..).zip(column) {
                *share = prices[squared_norm_of(i)];
            }
        });
    }
    println!("{people} people: columns made in {:.2} s", start.elapsed().as_secs_f64());

    for round in 1..=5 {
        let start = Instant::now();
        admit_round(&mut spent, &costs, &mut active);
        let seconds = start.elapsed().as_secs_f64();
        // How many take part is secret; these people do not exist.
        let count: u64 = active.par_iter().map(|word| u64::from(word.count_ones())).sum();
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let rate = people as f64 / seconds / 1e6;
        println!("round {round}: {seconds:.3} s, {rate:.0} million people a second, {count} take part");
    }
    if let Some(peak) = peak_memory_gib() {
        println!("peak memory: {peak:.2} GiB");
    }
    Ok(())
}

/// Made up, from 0 to 15.
fn squared_norm_of(i: usize) -> usize {
    usize::try_from((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60).unwrap_or(0)
}

/// What the process ever held at once; nothing where the system does not say.
fn peak_memory_gib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0 / 1024.0)
}
