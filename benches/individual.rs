//! Rounds over columns of people, beside `memcpy` in the same run: machines differ and are shared, so what counts is the ratio.
//!
//! ```sh
//! cargo bench --bench individual
//! ```
//!
//! A round ought to cost what its memory traffic costs. `memcpy` is counted as bytes read and bytes written; a round reads a sum
//! and a cost, writes the sum back, and writes one bit: 12 1/8 bytes a person.

use paygo::accounting::individual::odometer::{RestartColumn, SumColumn};
use paygo::accounting::individual::{Clipping, FULL, admit_round};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const PEOPLE: usize = 100_000_000;
const REPEATS: usize = 7;
/// A round is to move at least this share of the bytes a second that `memcpy` moves.
const BAR: f64 = 80.0;

/// The least of several times: what else the machine does only ever adds.
struct Best(f64);

impl Best {
    fn time<T>(&mut self, task: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = black_box(task());
        self.0 = self.0.min(start.elapsed().as_secs_f64());
        result
    }
}

/// Numbers below `limit` that differ from person to person and from column to column; for made-up data only.
fn scattered(people: usize, column: u64, limit: u32) -> Vec<u32> {
    let number = |i: u64| {
        let mixed = (i ^ column << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        u32::try_from((mixed * u64::from(limit)) >> 32).unwrap_or(limit)
    };
    (0..).map(number).take(people).collect()
}

/// One piece a thread, as large as can be: from some size on (192 MiB where this was written) `memcpy` writes around the cache,
/// which is nearly twice as fast.
fn copy(source: &[u64], target: &mut [u64]) {
    let piece = source.len().div_ceil(rayon::current_num_threads());
    source.par_chunks(piece).zip(target.par_chunks_mut(piece)).for_each(|(from, to)| to.copy_from_slice(from));
}

/// The filter beside `memcpy`, one after the other in each repeat.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn filter(people: usize, pools: &[&ThreadPool]) {
    // Budgets used up to anywhere, costs up to a fifth: at first nine of ten fit, and fewer from round to round.
    let (mut spent, costs) = (scattered(people, 0, FULL), scattered(people, 1, FULL / 5));
    let mut active = vec![0; people.div_ceil(64)];
    let (source, mut target) = (vec![1; people], vec![0; people]);
    let mut times: Vec<[Best; 2]> = pools.iter().map(|_| [Best(f64::INFINITY), Best(f64::INFINITY)]).collect();
    for _ in 0..REPEATS {
        for (pool, [memcpy, round]) in pools.iter().zip(&mut times) {
            memcpy.time(|| pool.install(|| copy(black_box(&source), black_box(&mut target))));
            round.time(|| pool.install(|| admit_round(black_box(&mut spent), black_box(&costs), &mut active)));
        }
    }
    println!("{:<28} {:>8} {:>16} {:>8} {:>10}", "", "threads", "million people/s", "GB/s", "of memcpy");
    for (pool, [memcpy, round]) in pools.iter().zip(&times) {
        let tiny = people < PEOPLE;
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let people = people as f64;
        let (copied, moved) = (16.0 * people / memcpy.0, 12.125 * people / round.0);
        let threads = pool.current_num_threads();
        println!(
            "{:<28} {threads:>8} {:>16.0} {:>8.2}",
            "memcpy, 8 bytes a person",
            people / memcpy.0 / 1e6,
            copied / 1e9
        );
        let share = 100.0 * moved / copied;
        let verdict = if share >= BAR || tiny { "" } else { "  BELOW THE BAR" };
        println!(
            "{:<28} {threads:>8} {:>16.0} {:>8.2} {share:>8.0} %{verdict}",
            "admit_round",
            people / round.0 / 1e6,
            moved / 1e9
        );
    }
}

/// What is not bound by memory: people a second.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn others(people: usize, pools: &[&ThreadPool]) -> Result<(), Box<dyn Error>> {
    let clipping = Clipping::new(100.0, 2.0)?;
    let squared_norms: Vec<f64> = scattered(people, 2, 9000).iter().map(|&n| f64::from(n) / 1000.0).collect();
    let costs = scattered(people, 1, FULL / 3);
    for pool in pools {
        let mut times = [const { Best(f64::INFINITY) }; 3];
        let (mut spent, mut factors) = (scattered(people, 0, FULL), vec![0.0; people]);
        let (mut restarts, mut sums) = (RestartColumn::new(people), SumColumn::new(people));
        for _ in 0..REPEATS {
            let [clip, restart, sum] = &mut times;
            clip.time(|| pool.install(|| clipping.round(&mut spent, black_box(&squared_norms), &mut factors)));
            restart.time(|| pool.install(|| restarts.observe(black_box(&costs))))?;
            sum.time(|| pool.install(|| sums.observe(black_box(&costs))))?;
        }
        for (name, time) in ["Clipping::round", "RestartColumn::observe", "SumColumn::observe"].iter().zip(&times) {
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let rate = people as f64 / time.0 / 1e6;
            println!("{name:<28} {:>8} {rate:>16.0}", pool.current_num_threads());
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` says `--bench`; `cargo test --benches` does not, and only wants to see it run.
    let given = |name: &str| std::env::args().any(|argument| argument == name);
    let (many, some) = if given("--bench") && !given("--test") { (PEOPLE, PEOPLE / 10) } else { (1000, 1000) };
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let all = rayon::ThreadPoolBuilder::new().build()?;
    println!("{many} people; `memcpy` and the round take turns, the best of {REPEATS} repeats");
    filter(many, &[&one, &all]);
    println!("{some} people, the best of {REPEATS} repeats");
    others(some, &[&one, &all])
}
