//! Everything against everything: what `paygo audit` runs.

use crate::adversary::{self, Adversary};
use crate::clock;
use crate::filters;
use crate::literal_unsound::{CurveFilter, LiteralOdometer};
use crate::odometers::{self, simulate};
use crate::{Trial, Verdict};
use paygo_accounting::charge::{Currency, Sums};
use paygo_accounting::convert::{Conversion, gaussian};
use paygo_accounting::curve::Orders;
use paygo_accounting::filter::{
    AnyRule, Approximate, Budget, BudgetError, Clock, FixedOrder, Gdp, Mixture, Pure, Union, Zcdp,
};
use paygo_accounting::odometer::{
    AnyBoundary, Boundary as _, Doubling, Linear, NormalMixture, Restart, Stitched, VilleFixed, VilleMixture,
    VilleUnion,
};
use paygo_accounting::params::{Delta, Epsilon, Order, OutOfDomain};
use paygo_accounting::prior::Prior;
use paygo_numeric::elementary::{exp, ln_1p};
use paygo_numeric::normal::erfc;
use paygo_numeric::{Amount, Interval};
use rayon::prelude::*;

/// δ of the simulated trials: large, so that a breach shows.
const DELTA: f64 = 0.05;
/// ε of the simulated filter trials.
const EPSILON: f64 = 1.0;
/// What one exact trial counts in the progress, in paths.
const EXACT: u64 = 2000;

/// How much to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Paths of each simulated trial.
    pub paths: u64,
    /// Where the simulation's random numbers start.
    pub seed: u64,
    /// Only subjects whose name contains this.
    pub only: Option<String>,
}

/// Hears of paths that are done.
type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// One trial that is still to come.
struct Job {
    subject: String,
    size: u64,
    run: Box<dyn Fn(Progress<'_>) -> Trial + Sync>,
}

/// What is left to do, in paths: the length of a progress bar.
#[must_use]
pub fn size(options: &Options) -> u64 {
    jobs(options).iter().map(|job| job.size).sum()
}

/// The names of everything that can be tried.
#[must_use]
pub fn names() -> Vec<String> {
    let mut names: Vec<String> =
        jobs(&Options { paths: 1, seed: 0, only: None }).into_iter().map(|job| job.subject).collect();
    names.dedup();
    names.sort();
    names.dedup();
    names
}

/// Runs all trials; `progress` hears of work done, `finished` of each trial.
pub fn run(options: &Options, progress: Progress<'_>, mut finished: impl FnMut(&Trial)) -> Vec<Trial> {
    let run = |job: Job| {
        let trial = (job.run)(progress);
        finished(&trial);
        trial
    };
    jobs(options).into_iter().map(run).collect()
}

/// Whether every shipped subject was acquitted by everyone, and every printed one convicted by someone.
#[must_use]
pub fn as_expected(trials: &[Trial]) -> bool {
    subjects(trials).iter().all(|(_, shipped, violated)| *shipped != *violated)
}

/// Each subject, whether it ships, and whether anyone convicted it.
#[must_use]
pub fn subjects(trials: &[Trial]) -> Vec<(String, bool, bool)> {
    let mut all: Vec<(String, bool, bool)> = Vec::new();
    for trial in trials {
        let violated = trial.verdict == Verdict::Violated;
        match all.iter_mut().find(|(name, _, _)| *name == trial.subject) {
            Some(subject) => subject.2 |= violated,
            None => all.push((trial.subject.clone(), trial.shipped, violated)),
        }
    }
    all
}

fn jobs(options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    odometer_jobs(options, &mut jobs);
    filter_jobs(options, &mut jobs);
    if let Some(only) = &options.only {
        jobs.retain(|job| job.subject.contains(only.as_str()));
    }
    jobs
}

/// The orders of \[L\]: quarters from 1.25 to 10, 16 and 32.
///
/// # Panics
/// Never: they are orders.
#[must_use]
pub fn lecuyer_orders() -> Orders {
    let quarters = (5..=40).map(|k| f64::from(k) / 4.0);
    Orders::from_f64(&quarters.chain([16.0, 32.0]).collect::<Vec<_>>()).expect("increasing and above 1")
}

/// The shipped odometers.
fn boundaries() -> Result<Vec<AnyBoundary>, OutOfDomain> {
    let (delta, none) = (Delta::new(DELTA)?, Amount::ZERO);
    let target = Epsilon::new(2.0)?;
    Ok(vec![
        VilleMixture::new(delta, Prior::log_spaced())?.into(),
        VilleUnion::new(delta, Prior::log_spaced())?.into(),
        VilleFixed::new(Order::new(3.0)?, delta)?.into(),
        Doubling::new(delta, lecuyer_orders())?.into(),
        Restart::new(Order::new(3.0)?, Amount::from_f64_up(8.0), delta)?.into(),
        Linear::for_target(target, delta, none)?.into(),
        NormalMixture::for_target(target, delta, none)?.into(),
        Stitched::new(delta, none)?.into(),
    ])
}

fn literal_odometers() -> Vec<LiteralOdometer> {
    let delta = DELTA;
    vec![
        LiteralOdometer::Doubling { orders: lecuyer_orders(), delta },
        LiteralOdometer::Stitched { delta },
        LiteralOdometer::Mixture { delta, precision: 1.0 },
        LiteralOdometer::NaiveZcdp { delta },
        LiteralOdometer::NaiveRenyi { orders: lecuyer_orders(), delta },
    ]
}

fn odometer_jobs(options: &Options, jobs: &mut Vec<Job>) {
    let shipped = boundaries().expect("constants in their domains").into_iter();
    let shipped = shipped.map(|b| (format!("odometer {}", b.word()), odometers::Subject::shipped(b)));
    let literal = literal_odometers().into_iter();
    let literal = literal.map(|o| (format!("odometer {}", o.name()), odometers::Subject::literal(o)));
    for (name, subject) in shipped.chain(literal) {
        for adversary in adversary::all() {
            let (name, subject, Options { paths, seed, .. }) = (name.clone(), subject.clone(), options.clone());
            jobs.push(Job {
                subject: name.clone(),
                size: paths,
                run: Box::new(move |progress| {
                    simulate(&name, &subject, adversary.as_ref() as &dyn Adversary, DELTA, paths, seed, progress)
                }),
            });
        }
    }
    // Steps with a δ of their own: δ′ = 1e-4/(1 − e^{−0.5}) = 2.5e-4 a step, 0.0153 for sixty, of a slack of 0.02.
    let (delta, slack) = (Delta::new(DELTA).expect("a delta"), Amount::from_decimal_down("0.02").expect("a decimal"));
    let target = Epsilon::new(2.0).expect("an epsilon");
    let with_slack: [AnyBoundary; 3] = [
        Linear::for_target(target, delta, slack).expect("a boundary").into(),
        NormalMixture::for_target(target, delta, slack).expect("a boundary").into(),
        Stitched::new(delta, slack).expect("a boundary").into(),
    ];
    for boundary in with_slack {
        let (name, Options { paths, seed, .. }) = (format!("odometer {}", boundary.word()), options.clone());
        let subject = odometers::Subject::shipped(boundary);
        jobs.push(Job {
            subject: name.clone(),
            size: paths,
            run: Box::new(move |progress| simulate(&name, &subject, &adversary::Reveal, DELTA, paths, seed, progress)),
        });
    }
    exact(jobs, "odometer doubling_literal_unsound", || {
        let found = doubling_crossing(&LiteralOdometer::Doubling { orders: lecuyer_orders(), delta: 1e-5 });
        Trial::exact("odometer doubling_literal_unsound", false, "one Gaussian", 1e-5, found)
    });
    exact(jobs, "odometer doubling", || {
        let delta = Delta::new(1e-5).expect("a delta");
        let doubling = Doubling::new(delta, lecuyer_orders()).expect("finite orders");
        let found = gaussian_crossing(|rho| {
            let sums = doubling.orders().as_slice().iter().map(|order| Amount::from_f64_up(order.get() * rho));
            doubling.least(&sums.collect::<Vec<_>>()).map_or(f64::INFINITY, |level| level.value)
        });
        Trial::exact("odometer doubling", true, "one Gaussian", 1e-5, found)
    });
    for drift in [false, true] {
        let name = if drift { "odometer stitched" } else { "odometer stitched_without_delta_drift_unsound" };
        exact(jobs, name, move || Trial::exact(name, drift, "leak", 1e-6 + 1e-5, leak(drift)));
    }
}

fn exact(jobs: &mut Vec<Job>, subject: &str, trial: impl Fn() -> Trial + Sync + 'static) {
    let run = Box::new(move |progress: Progress<'_>| {
        let trial = trial();
        progress(EXACT);
        trial
    });
    jobs.push(Job { subject: subject.to_owned(), size: EXACT, run });
}

/// The largest chance, over all ρ, that one Gaussian of that ρ passes what is read after it: `P(N(ρ, 2ρ) > U(ρ))`.
fn gaussian_crossing(reading: impl Fn(f64) -> f64 + Sync) -> f64 {
    let at = |k: i32| {
        let rho = 1e-6 * 1.002f64.powi(k);
        0.5 * erfc((reading(rho) - rho) / (2.0 * rho.sqrt()))
    };
    (0..12_600).into_par_iter().map(at).reduce(|| 0.0, f64::max)
}

fn doubling_crossing(literal: &LiteralOdometer) -> f64 {
    let orders = lecuyer_orders();
    gaussian_crossing(|rho| {
        let sums: Vec<f64> = orders.as_slice().iter().map(|order| order.get() * rho).collect();
        literal.value(&sums, 2.0 * rho, 2.0 * rho)
    })
}

/// E6's leak: one world is uniform, the other puts `c` more on a point, so each step is pointwise (−ln(1−c), c)-DP and loses
/// −ln(1−c) for sure. The probability, 0 or 1, that a hundred of them pass the stitched reading.
fn leak(with_drift: bool) -> f64 {
    let (c, steps) = (1e-8, 100u64);
    let one = -ln_1p(-c);
    let lane = |x: f64| Amount::from_f64_up(x).times(steps);
    let drift = if with_drift { lane(c * (1.0 + exp(-one))) } else { Amount::ZERO };
    let lanes = vec![lane(0.5 * one * one), drift, lane(c)];
    let slack = Amount::from_decimal_down("0.00001").expect("a decimal");
    let mut stitched = Stitched::new(Delta::new(1.1e-5).expect("a delta"), slack).expect("a boundary");
    let first = Currency::Pointwise;
    // The first step fixes v₀.
    let gaussian = crate::adversary::Step::Gaussian { variance: one * one };
    let cost = gaussian
        .mechanism()
        .and_then(|m| paygo_accounting::cost::Cost::of(&m, paygo_accounting::params::Neighbors::AddRemove).ok());
    let charge = cost.and_then(|cost| stitched.currency().price(&cost, cost.neighbors()).ok());
    let nothing = Sums::zero(&first);
    let observed = charge.is_some_and(|charge| stitched.absorb(&charge, &nothing).is_ok());
    let sums = Sums::from_stored(&first, lanes, Amount::ZERO).filter(|_| observed);
    let reading = sums.map_or(f64::INFINITY, |sums| stitched.value(&sums));
    #[expect(clippy::cast_precision_loss, reason = "a hundred")]
    let loss = Interval::point(one) * Interval::point(steps as f64);
    f64::from(u8::from(loss.lo() > reading))
}

fn filter_jobs(options: &Options, jobs: &mut Vec<Job>) {
    order_switch_jobs(jobs);
    clock_jobs(jobs).expect("constants in their domains");
    simulated_filter_jobs(options, jobs).expect("constants in their domains");
}

/// A case of E4: two orders, ε, and a first step (its probability and its loss) that is bad for the printed rule.
struct Switch {
    name: &'static str,
    orders: [f64; 2],
    epsilon: f64,
    first: (f64, f64),
}

const SWITCHES: [Switch; 2] = [
    Switch { name: "{4, 16} at epsilon 6", orders: [4.0, 16.0], epsilon: 6.0, first: (9.91e-4, 0.7878) },
    Switch { name: "{3, 12} at epsilon 8", orders: [3.0, 12.0], epsilon: 8.0, first: (1e-4, 1.5) },
];

fn order_switch_jobs(jobs: &mut Vec<Job>) {
    const PROMISED: f64 = 1e-5;
    for Switch { name: case, orders, epsilon, first } in SWITCHES {
        let orders = Orders::from_f64(&orders).expect("orders");
        let (e, d) = (Epsilon::new(epsilon).expect("an epsilon"), Delta::new(PROMISED).expect("a delta"));
        let budget = Budget::new(e, d).expect("a budget");
        let prior = Prior::uniform(orders.clone()).expect("a prior");
        let literal = CurveFilter::new(orders, Conversion::Cks, e, d);
        let shipped = |rule: Result<AnyRule, BudgetError>| filters::Subject::shipped(rule.expect("a rule"));
        let subjects = [
            ("filter curve_literal_unsound", filters::Subject::literal(literal)),
            ("filter mixture", shipped(Mixture::over(budget, prior.clone()).map(AnyRule::from))),
            (
                "filter mixture, all mixed",
                shipped(Mixture::without_light_orders(budget, prior.clone()).map(AnyRule::from)),
            ),
            ("filter union, cks", shipped(Union::over(budget, prior.clone(), Conversion::Cks).map(AnyRule::from))),
            ("filter union", shipped(Union::over(budget, prior, Conversion::Exact).map(AnyRule::from))),
            (
                "filter fixed-order",
                shipped(FixedOrder::new(Order::new(4.0).expect("an order"), budget).map(AnyRule::from)),
            ),
        ];
        for (name, subject) in subjects {
            exact(jobs, name, move || {
                let trial = filters::order_switch_trial(name, &subject, epsilon, PROMISED, first);
                Trial { adversary: format!("order-switch {case}"), ..trial }
            });
        }
    }
}

/// The clock's game, for the shipped filter and for what looks like it.
fn clock_jobs(jobs: &mut Vec<Job>) -> Result<(), BudgetError> {
    let budget = Budget::new(Epsilon::new(EPSILON)?, Delta::new(DELTA)?)?;
    let rule = Clock::new(budget)?;
    // The same moves are cheap on the clock of a plan while the plan lasts.
    let planned = Clock::for_plan(budget, &clock::plan(), 0.3)?;
    let start = rule.reference().terms().noise.to_f64_up();
    let whole = Interval::point(gaussian::budget(budget.epsilon(), budget.delta()).get()).square().lo();
    for (adversary, menu) in clock::menus() {
        for mirrored in [false, true] {
            let adversary = if mirrored { format!("{adversary}, worlds changed") } else { adversary.to_owned() };
            for (name, rule) in [("filter clock", &rule), ("filter clock-for-a-plan", &planned)] {
                let (rule, moves, player) = (rule.clone(), menu.clone(), adversary.clone());
                exact(jobs, name, move || {
                    let found = clock::game(&mut clock::Shipped::new(rule.clone()), EPSILON, &moves, mirrored);
                    Trial::exact(name, true, &player, DELTA, found)
                });
            }
            for planted in clock::planted(EPSILON, DELTA, start, whole) {
                let name = format!("filter {}", planted.name);
                let (moves, player) = (menu.clone(), adversary.clone());
                exact(jobs, &name.clone(), move || {
                    let found = clock::game(&mut planted.clone(), EPSILON, &moves, mirrored);
                    Trial::exact(&name, false, &player, DELTA, found)
                });
            }
        }
    }
    Ok(())
}

fn simulated_filter_jobs(options: &Options, jobs: &mut Vec<Job>) -> Result<(), BudgetError> {
    let budget = Budget::new(Epsilon::new(EPSILON)?, Delta::new(DELTA)?)?;
    let half = Amount::from_f64_down(DELTA).unwrap_or(Amount::ZERO).shared_by(2);
    let rules: Vec<(&'static str, AnyRule)> = vec![
        ("filter clock", Clock::new(budget)?.into()),
        ("filter mixture", Mixture::new(budget)?.into()),
        ("filter union", Union::new(budget)?.into()),
        ("filter fixed-order", FixedOrder::new(Order::new(4.0)?, budget)?.into()),
        ("filter zcdp", Zcdp::new(budget)?.into()),
        ("filter gdp", Gdp::new(budget)?.into()),
    ];
    for (name, rule) in rules {
        for share in [0.3, 4.0] {
            let (rule, Options { paths, seed, .. }) = (rule.clone(), options.clone());
            jobs.push(Job {
                subject: name.to_owned(),
                size: paths,
                run: Box::new(move |progress| {
                    let subject = filters::Subject::shipped(rule.clone());
                    filters::gaussian_chase(name, &subject, (EPSILON, DELTA), share, paths, seed, progress)
                }),
            });
        }
    }
    let own = 0.01;
    let trees: Vec<(&'static str, AnyRule, f64)> = vec![
        ("filter pure", Pure::new(budget)?.into(), 0.0),
        ("filter approximate", Approximate::new(budget.with_slack(half)?)?.into(), own),
        ("filter zcdp, with slack", Zcdp::new(budget.with_slack(half)?)?.into(), own),
        ("filter clock, with slack", Clock::new(budget.with_slack(half)?)?.into(), own),
        ("filter clock", Clock::new(budget)?.into(), 0.0),
        ("filter mixture, with slack", Mixture::new(budget.with_slack(half)?)?.into(), own),
        ("filter mixture", Mixture::new(budget)?.into(), 0.0),
    ];
    for (name, rule, own) in trees {
        exact(jobs, name, move || {
            let subject = filters::Subject::shipped(rule.clone());
            let found = filters::response_tree(&subject, EPSILON, own, &[0.15, 0.4, 1.0], 6);
            Trial::exact(name, true, "response-tree", DELTA, found)
        });
    }
    Ok(())
}
