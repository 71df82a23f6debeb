//! paygo's side of `bench/compare.py`: the same three tasks, timed, as JSON Lines on standard output.

use paygo::accounting::account::{Question, least_epsilon, tightest};
use paygo::accounting::calibrate::{Target, least_noise};
use paygo::accounting::convert::Conversion;
use paygo::accounting::cost::Cost;
use paygo::accounting::curve::Orders;
use paygo::accounting::mechanism::{Mechanism, PoissonSampledGaussian, Single};
use paygo::accounting::params::{Delta, Epsilon, Neighbors, NoiseMultiplier, SamplingProbability};
use paygo::accounting::privacy_loss;
use std::error::Error;
use std::time::Instant;

const Q: f64 = 256.0 / 60_000.0;
const STEPS: u64 = 14_062;

fn cost(q: f64, noise: f64) -> Result<Cost, Box<dyn Error>> {
    let single = Single::PoissonSampledGaussian(PoissonSampledGaussian {
        sampling_probability: SamplingProbability::new(q)?,
        noise_multiplier: NoiseMultiplier::new(noise)?,
    });
    Ok(Cost::of(&Mechanism::Single(single), Neighbors::AddRemove)?)
}

/// The least of seven means over `repeats` runs: the machine's other work only ever adds.
fn timed<T>(repeats: u32, mut task: impl FnMut() -> T) -> (f64, T) {
    let mut best = f64::INFINITY;
    let mut result = task();
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..repeats {
            result = std::hint::black_box(task());
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(repeats));
    }
    (best, result)
}

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn main() -> Result<(), Box<dyn Error>> {
    let delta = Delta::new(1e-5)?;
    let (seconds, row) =
        timed(200, || tightest(&cost(Q, 1.1).and_then(|c| Ok(c.repeat(STEPS)?)).expect("a plan"), delta));
    println!(
        r#"{{"task": "epsilon", "method": "paygo {}", "seconds": {seconds:e}, "value": {}}}"#,
        row.method, row.epsilon
    );

    let plan = cost(Q, 1.1)?.repeat(STEPS)?;
    let (seconds, row) = timed(1, || privacy_loss::row(&plan, Question::EpsilonAt(delta)).expect("a row"));
    println!(
        r#"{{"task": "epsilon", "method": "paygo {}", "seconds": {seconds:e}, "value": {}}}"#,
        row.method, row.epsilon
    );

    let orders = Orders::standard();
    for steps in [100u32, 1000, 10_000] {
        let (seconds, epsilon) = timed(1, || {
            let mut total = cost(0.005, 0.9).expect("a step").curve(&orders);
            let mut epsilon = Epsilon::ZERO;
            for i in 1..steps {
                let share = f64::from(i) / f64::from(steps);
                let step = cost(0.005 + 0.01 * share, 0.9 + share).expect("a step").curve(&orders);
                assert!(total.add(&step));
                epsilon = least_epsilon(&total, Conversion::Exact, delta).0;
            }
            epsilon
        });
        let per_step = seconds / f64::from(steps);
        println!(
            r#"{{"task": "schedule", "method": "paygo renyi-exact", "steps": {steps}, "seconds": {per_step:e}, "value": {epsilon}}}"#
        );
    }

    let target = Target::EpsilonDelta(Epsilon::new(3.0)?, delta);
    let (seconds, found) =
        timed(5, || least_noise(target, |noise| Ok(cost(Q, noise).expect("a step").repeat(STEPS)?)));
    let found = found?;
    let tight = Target::EpsilonDeltaTight(Epsilon::new(3.0)?, delta);
    let start = Instant::now();
    let tightest = least_noise(tight, |noise| Ok(cost(Q, noise).expect("a step").repeat(STEPS)?))?;
    println!(
        r#"{{"task": "calibrate", "method": "paygo privacy-loss", "seconds": {:e}, "value": {}, "epsilon": {}}}"#,
        start.elapsed().as_secs_f64(),
        tightest.value,
        tightest.price.get()
    );
    println!(
        r#"{{"task": "calibrate", "method": "paygo renyi-exact", "seconds": {seconds:e}, "value": {}, "epsilon": {}}}"#,
        found.value,
        found.price.get()
    );
    Ok(())
}
