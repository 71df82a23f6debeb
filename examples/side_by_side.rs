//! paygo's side of `bench/compare.py`: the same tasks, timed, as JSON Lines on standard output. `people` and `people-exact` are
//! tasks of their own, which are large.

use paygo::accounting::account::{Question, least_epsilon, tightest};
use paygo::accounting::calibrate::{Target, least_noise};
use paygo::accounting::convert::Conversion;
use paygo::accounting::cost::Cost;
use paygo::accounting::curve::Orders;
use paygo::accounting::filter::{AnyRule, Budget, Clock, Filter, FixedOrder, Gdp, Mixture, Pure, Rule, Zcdp};
use paygo::accounting::individual::{PersonalBudget, SharePrice, admit_round};
use paygo::accounting::loss::{self, LossLaw};
use paygo::accounting::mechanism::{self, Mechanism, PoissonSampledGaussian, Single};
use paygo::accounting::params::{Delta, Epsilon, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability};
use paygo::accounting::prior::Prior;
use paygo::numeric::Amount;
use rayon::prelude::*;
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

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        None => plans().and_then(|()| filters()).and_then(|()| decisions()),
        Some("loss") => losses(),
        Some("clock") => {
            priced().and_then(|()| read_after_each()).and_then(|()| decisions_on(&clocks()?, &[1_000_000, 10_000_000]))
        }
        Some("people") => people(),
        Some("people-exact") => exactness(),
        Some(other) => Err(format!("no task is called {other}").into()),
    }
}

/// Costs, conversions and calibration.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn plans() -> Result<(), Box<dyn Error>> {
    let delta = Delta::new(1e-5)?;
    let (seconds, row) =
        timed(200, || tightest(&cost(Q, 1.1).and_then(|c| Ok(c.repeat(STEPS)?)).expect("a plan"), delta));
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
    println!(
        r#"{{"task": "calibrate", "method": "paygo renyi-exact", "seconds": {seconds:e}, "value": {}, "epsilon": {}}}"#,
        found.value,
        found.price.get()
    );
    Ok(())
}

/// Plans by their privacy loss, from above and from below, and the least noise for a target: as in `bench/compare.py`.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn losses() -> Result<(), Box<dyn Error>> {
    let delta = Delta::new(1e-5)?;
    let question = Question::EpsilonAt(delta);
    let plans = [
        (Q, 1.1, STEPS),
        (0.01, 1.1, 10_000),
        (0.001, 4.0, 100_000),
        (0.01, 6.0, 40_000),
        (512.0 / 50_000.0, 1.0, 9_800),
        (0.04, 2.0, 2_000),
        (Q, 1.1, 14_040),
    ];
    for (q, noise, steps) in plans {
        let plan = cost(q, noise)?.repeat(steps)?;
        let (seconds, row) = timed(5, || loss::row(&plan, question).expect("a row"));
        let (more, lower) = timed(5, || loss::at_least(&plan, question).expect("a row"));
        println!(
            r#"{{"task": "loss", "q": {q}, "noise": {noise}, "steps": {steps}, "seconds": {seconds:e}, "lower_seconds": {more:e}, "at_least": {}, "at_most": {}}}"#,
            lower.epsilon, row.epsilon
        );
    }
    let target = Target::EpsilonDeltaTight(Epsilon::new(3.0)?, delta);
    let start = Instant::now();
    let found = least_noise(target, |noise| Ok(cost(Q, noise).expect("a step").repeat(STEPS)?))?;
    println!(
        r#"{{"task": "least", "seconds": {:e}, "value": {}, "epsilon": {}}}"#,
        start.elapsed().as_secs_f64(),
        found.value,
        found.price.get()
    );
    Ok(())
}

/// The adaptive sequence of `bench/compare.py`.
fn adaptive_sizes(n: u32) -> impl Iterator<Item = f64> {
    let mut state = 12_345u64;
    (0..n).map(move |_| {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        f64::from(u32::try_from(500 + state % 1000).unwrap_or(0)) / 1500.0 / f64::from(n)
    })
}

/// Pure-DP queries one by one, priced and decided.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn filters() -> Result<(), Box<dyn Error>> {
    fn run<R: Rule>(rule: &R, epsilons: impl Iterator<Item = Mechanism>) -> u64 {
        let mut filter = Filter::new(rule.clone(), Neighbors::AddRemove);
        let admit = |mechanism: Mechanism| {
            let cost = Cost::of(&mechanism, Neighbors::AddRemove).expect("a cost");
            u64::from(filter.request(&cost).expect("a price").is_admitted())
        };
        epsilons.map(admit).sum()
    }
    let pure = Pure::new(Budget::from_decimal("1", "0")?)?;
    let mixture = Mixture::new(Budget::from_decimal("1", "1e-9")?)?;
    for n in [1000, 4000, 1_000_000] {
        let steps = || adaptive_sizes(n).map(|e| Mechanism::laplace(1.0 / e).expect("noise"));
        let (seconds, admitted) = timed(1, || run(&pure, steps()));
        let per_query = seconds / f64::from(n);
        println!(
            r#"{{"task": "filter", "method": "paygo pure filter", "steps": {n}, "seconds": {per_query:e}, "value": {admitted}}}"#
        );
        if n < 1_000_000 {
            let (seconds, admitted) = timed(1, || run(&mixture, steps()));
            let per_query = seconds / f64::from(n);
            println!(
                r#"{{"task": "filter", "method": "paygo mixture filter", "steps": {n}, "seconds": {per_query:e}, "value": {admitted}}}"#
            );
        }
    }
    let thousandth = Mechanism::from(mechanism::Pure { epsilon: Epsilon::from_decimal("0.001")? });
    let admitted = run(&pure, std::iter::repeat_n(thousandth, 1000));
    println!(r#"{{"task": "thousand", "method": "paygo pure filter", "value": {admitted}}}"#);
    Ok(())
}

/// How long it takes until a mechanism that nobody has asked for has its price on a clock: at all levels, in both directions.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn priced() -> Result<(), Box<dyn Error>> {
    let budget = Budget::from_decimal("3", "1e-5")?;
    let (alone, planned) = (Clock::new(budget)?, Clock::for_plan(budget, &[(cost(Q, 1.1)?, STEPS)], 0.1)?);
    let one = |mechanism: Mechanism| Cost::of(&mechanism, Neighbors::AddRemove);
    let mechanisms = [
        ("sampled, q 0.01, noise 1", cost(0.01, 1.0)?),
        ("sampled, q 0.0001, noise 0.6", cost(0.0001, 0.6)?),
        ("sampled, q 0.2, noise 4", cost(0.2, 4.0)?),
        ("laplace, scale 10", one(Mechanism::laplace(10.0)?)?),
        ("pure, 0.05", one(Mechanism::pure(0.05)?)?),
        ("zcdp, 0.001", one(Mechanism::from(mechanism::Zcdp { rho: Rho::new(0.001)? }))?),
    ];
    for (name, priced) in mechanisms {
        for (clock, rule) in [("clock", &alone), ("clock for a plan", &planned)] {
            let fresh = || rule.reference().with(rule.reference().terms().clone()).expect("the same again");
            // What is left at each level is known after the first price.
            let warm = fresh();
            let _ = warm.prices(&cost(0.03, 1.7)?);
            let start = Instant::now();
            let known = std::hint::black_box(warm.prices(&priced)).is_some();
            let seconds = start.elapsed().as_secs_f64();
            println!(
                r#"{{"task": "priced", "method": "{clock}", "mechanism": "{name}", "known": {known}, "seconds": {seconds:e}}}"#
            );
        }
    }
    Ok(())
}

/// ε by privacy loss after each of so many different steps, from one law that grows.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn read_after_each() -> Result<(), Box<dyn Error>> {
    let delta = Delta::new(1e-5)?;
    for steps in [100u32, 300, 1000] {
        let (mut slowest, mut epsilon, whole) = (0.0f64, Epsilon::ZERO, Instant::now());
        let mut law = LossLaw::of(&cost(0.005, 0.9)?)?;
        for i in 1..steps {
            let share = f64::from(i) / f64::from(steps);
            let start = Instant::now();
            law.extend(&cost(0.005 + 0.01 * share, 0.9 + share)?)?;
            epsilon = law.epsilon(delta);
            slowest = slowest.max(start.elapsed().as_secs_f64());
        }
        let seconds = whole.elapsed().as_secs_f64() / f64::from(steps);
        let at_once = loss::row(law.cost(), Question::EpsilonAt(delta)).map_or(f64::NAN, |row| row.epsilon.get());
        println!(
            r#"{{"task": "after-each", "steps": {steps}, "seconds": {seconds:e}, "slowest": {slowest:e}, "value": {epsilon}, "at_once": {at_once}}}"#
        );
    }
    Ok(())
}

/// A filter, its name, and what is asked of it.
type Decided = (&'static str, AnyRule, Cost);

/// A clock and a charge that it knows: noise, steps, steps of its plan, and others beside the plan.
fn clocks() -> Result<Vec<Decided>, Box<dyn Error>> {
    let budget = Budget::from_decimal("8", "1e-6")?;
    let planned = || Ok::<_, Box<dyn Error>>(Clock::for_plan(budget, &[(cost(1e-4, 2.0)?, 1 << 40)], 0.5)?.into());
    Ok(vec![
        (
            "clock, gaussian noise",
            Clock::new(budget)?.into(),
            Cost::of(&Mechanism::gaussian(1e6)?, Neighbors::AddRemove)?,
        ),
        ("clock, sampled noise", Clock::new(budget)?.into(), cost(1e-6, 30.0)?),
        ("clock of a plan, its steps", planned()?, cost(1e-4, 2.0)?),
        ("clock of a plan, other steps", planned()?, cost(1e-6, 30.0)?),
    ])
}

/// Known charges: how fast, and whether the number of decisions matters.
fn decisions() -> Result<(), Box<dyn Error>> {
    let budget = Budget::from_decimal("8", "1e-6")?;
    let orders: Vec<f64> = (0..64).map(|k| 1.0 + 0.25 * 1.14f64.powi(k)).collect();
    let many = Prior::uniform(Orders::from_f64(&orders)?)?;
    let step = Cost::of(&Mechanism::gaussian(1e6)?, Neighbors::AddRemove)?;
    let rules = [
        ("fixed-order", FixedOrder::new(Order::new(8.0)?, budget)?.into(), step.clone()),
        ("zcdp", Zcdp::new(budget)?.into(), step.clone()),
        ("gdp", Gdp::new(budget)?.into(), step.clone()),
        ("mixture, 64 orders", Mixture::over(budget, many)?.into(), step),
    ];
    decisions_on(&rules, &[1_000_000, 10_000_000, 100_000_000])
}

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn decisions_on(rules: &[Decided], counts: &[u64]) -> Result<(), Box<dyn Error>> {
    for (name, rule, step) in rules {
        let mut filter = Filter::new(rule.clone(), Neighbors::AddRemove);
        let charge = filter.price(step)?;
        let mut done = 0u64;
        for &until in counts {
            let (start, before) = (Instant::now(), done);
            while done < until {
                assert!(filter.admit(std::hint::black_box(&charge)).is_admitted());
                done += 1;
            }
            let (seconds, steps) = (start.elapsed().as_secs_f64(), done - before);
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let scaled = seconds * until as f64 / steps as f64;
            println!(r#"{{"task": "decisions", "method": "{name}", "steps": {until}, "seconds": {scaled}}}"#);
        }
    }
    Ok(())
}

const PEOPLE: usize = 100_000_000;
const THREADS: usize = 2;
/// Columns are made in pieces of this many people.
const PIECE: usize = 1 << 16;

/// What a unit costs when a budget is this many: a zCDP budget of 1/2 against a variance of as many.
fn price(budget: u64) -> Result<SharePrice, Box<dyn Error>> {
    let half = Amount::from_decimal_down("0.5").ok_or("a decimal")?;
    Ok(SharePrice::new(&PersonalBudget::zcdp(&Zcdp::with_limit(half, Amount::ZERO)?), budget, 1)?)
}

/// The made-up units of `bench/fused.c`, below 2²⁴.
fn units(column: u64, person: usize) -> u64 {
    let mut z = ((column << 32) + person as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z >> 40
}

fn fill(shares: &mut [u32], column: u64, price: &SharePrice) {
    shares.par_chunks_mut(PIECE).enumerate().for_each(|(piece, shares)| {
        for (i, share) in (PIECE * piece..).zip(shares) {
            *share = price.share(u128::from(units(column, i)));
        }
    });
}

fn pool() -> Result<rayon::ThreadPool, Box<dyn Error>> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(THREADS).build()?)
}

/// One round over a column of people.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn people() -> Result<(), Box<dyn Error>> {
    let (mut start, mut costs) = (vec![0; PEOPLE], vec![0; PEOPLE]);
    let (mut spent, mut active) = (vec![0; PEOPLE], vec![0; PEOPLE.div_ceil(64)]);
    let (whole, quarter) = (price(1 << 24)?, price(1 << 26)?);
    let best = pool()?.install(|| {
        fill(&mut start, 0, &whole);
        fill(&mut costs, 1, &quarter);
        let round = |_| {
            spent.copy_from_slice(&start);
            let start = Instant::now();
            admit_round(&mut spent, &costs, &mut active);
            start.elapsed().as_secs_f64()
        };
        (0..7).map(round).fold(f64::INFINITY, f64::min)
    });
    println!(
        r#"{{"task": "people", "method": "paygo `admit_round`", "numbers": "u32", "threads": {THREADS}, "seconds": {best:e}}}"#
    );
    Ok(())
}

/// The same column after many rounds, against exact sums.
#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn exactness() -> Result<(), Box<dyn Error>> {
    for (rounds, budget) in [(2, 1u64 << 24), (100, 1 << 29)] {
        let price = price(budget)?;
        let (mut spent, mut costs, mut exact) = (vec![0; PEOPLE], vec![0; PEOPLE], vec![0u64; PEOPLE]);
        let mut active = vec![0u64; PEOPLE.div_ceil(64)];
        let (over, refused) = pool()?.install(|| {
            let mut refused = 0;
            for round in 0..rounds {
                fill(&mut costs, round, &price);
                admit_round(&mut spent, &costs, &mut active);
                let tally = |(piece, exact): (usize, &mut [u64])| {
                    let one = |(i, exact): (usize, &mut u64)| {
                        let (sum, fits) = (*exact + units(round, i), active[i / 64] >> (i % 64) & 1 == 1);
                        *exact = if fits { sum } else { *exact };
                        usize::from(!fits && sum <= budget)
                    };
                    (PIECE * piece..).zip(exact).map(one).sum::<usize>()
                };
                refused += exact.par_chunks_mut(PIECE).enumerate().map(tally).sum::<usize>();
            }
            (exact.par_iter().filter(|&&sum| sum > budget).count(), refused)
        });
        println!(
            r#"{{"task": "people-exact", "method": "paygo `admit_round`", "rounds": {rounds}, "over": {over}, "refused": {refused}}}"#
        );
    }
    Ok(())
}
