//! Laws that hold whatever the numbers.

#![expect(clippy::disallowed_methods, reason = "an independent reference")]

use paygo_accounting::account::{Question, rows, tightest};
use paygo_accounting::calibrate::{self, CalibrationError, largest_sampling_probability, least_noise, most_repeats};
use paygo_accounting::convert::pointwise::{dp_to_pointwise, pointwise_to_dp};
use paygo_accounting::convert::{Conversion, gaussian, zcdp};
use paygo_accounting::cost::{Cost, CostError};
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::guarantee::Basis;
use paygo_accounting::mechanism::{
    Approximate, Assignment, BallsAndBinsEpoch, Exponential, Family as _, FixedSizeSampledGaussian, Gaussian, Gdp,
    Laplace, Mechanism, PartitionedEpoch, PoissonSampledGaussian, Pure, RandomizedResponse, Renyi, Single, Zcdp,
};
use paygo_accounting::params::{
    BatchFraction, Count, Delta, Divergence, Epsilon, Mu, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability,
    Scale,
};
use paygo_numeric::Amount;
use proptest::prelude::*;

fn order(a: f64) -> Order {
    Order::new(a).expect("order")
}

fn noise(s: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(s).expect("noise")
}

fn sampled(q: f64, s: f64) -> PoissonSampledGaussian {
    PoissonSampledGaussian { sampling_probability: SamplingProbability::new(q).expect("q"), noise_multiplier: noise(s) }
}

fn eps(e: f64) -> Epsilon {
    Epsilon::new(e).expect("epsilon")
}

fn del(d: f64) -> Delta {
    Delta::new(d).expect("delta")
}

fn bound(value: f64) -> Divergence {
    Divergence::from_upper_bound(value)
}

fn single(single: Single) -> Mechanism {
    Mechanism::Single(single)
}

/// One of each mechanism that is accounted under add/remove.
fn add_remove_zoo() -> Vec<Single> {
    vec![
        Single::Gaussian(Gaussian { noise_multiplier: noise(3.0) }),
        Single::Laplace(Laplace { scale: Scale::new(4.0).expect("scale") }),
        Single::RandomizedResponse(RandomizedResponse { epsilon: eps(0.4) }),
        Single::Exponential(Exponential { epsilon: eps(0.5) }),
        Single::Pure(Pure { epsilon: eps(0.3) }),
        Single::Approximate(Approximate { epsilon: eps(0.2), delta: del(1e-8) }),
        Single::Zcdp(Zcdp { rho: Rho::new(0.02).expect("rho") }),
        Single::Gdp(Gdp { mu: Mu::new(0.2).expect("mu") }),
        Single::PoissonSampledGaussian(sampled(0.02, 1.3)),
        Single::BallsAndBinsEpoch(BallsAndBinsEpoch {
            batches: Count::new(50).expect("count"),
            noise_multiplier: noise(5.0),
        }),
        Single::PartitionedEpoch(
            PartitionedEpoch::new(Assignment::IndependentUniform, vec![noise(6.0), noise(8.0)]).expect("epoch"),
        ),
        Single::Renyi(Renyi {
            curve: RenyiCurve::new(
                Orders::from_f64(&[2.0, 4.0, 8.0, 16.0]).expect("orders"),
                vec![0.02, 0.04, 0.08, 0.16],
            )
            .expect("curve"),
        }),
    ]
}

/// A mechanism from a parameter.
type Family = Box<dyn Fn(f64) -> Single>;

/// For each mechanism family, a parameter in which the cost must rise.
fn rising_families() -> Vec<(&'static str, Family)> {
    vec![
        ("gaussian", Box::new(|x| Single::Gaussian(Gaussian { noise_multiplier: noise(1.0 / x) }))),
        ("laplace", Box::new(|x| Single::Laplace(Laplace { scale: Scale::new(1.0 / x).expect("scale") }))),
        ("rr", Box::new(|x| Single::RandomizedResponse(RandomizedResponse { epsilon: eps(x) }))),
        ("exponential", Box::new(|x| Single::Exponential(Exponential { epsilon: eps(x) }))),
        ("zcdp", Box::new(|x| Single::Zcdp(Zcdp { rho: Rho::new(x).expect("rho") }))),
        ("gdp", Box::new(|x| Single::Gdp(Gdp { mu: Mu::new(x).expect("mu") }))),
        ("poisson in q", Box::new(|x| Single::PoissonSampledGaussian(sampled(0.2 * x, 1.5)))),
        ("poisson in noise", Box::new(|x| Single::PoissonSampledGaussian(sampled(0.03, 1.0 / x)))),
        (
            "fixed size in fraction",
            Box::new(|x| {
                let batch_fraction = BatchFraction::new(0.2 * x).expect("fraction");
                Single::FixedSizeSampledGaussian(FixedSizeSampledGaussian {
                    batch_fraction,
                    noise_multiplier: noise(4.0),
                })
            }),
        ),
        (
            "balls and bins in noise",
            Box::new(|x| {
                let batches = Count::new(20).expect("count");
                Single::BallsAndBinsEpoch(BallsAndBinsEpoch { batches, noise_multiplier: noise(1.0 / x) })
            }),
        ),
    ]
}

fn fixed_size(fraction: f64, s: f64) -> FixedSizeSampledGaussian {
    let batch_fraction = BatchFraction::new(fraction).expect("fraction");
    FixedSizeSampledGaussian { batch_fraction, noise_multiplier: noise(s) }
}

/// Wang, Balle, Kasiviswanathan, arXiv:1808.00087, Theorem 9.
fn theorem_9(q: f64, s: f64, a: u32) -> f64 {
    let (e, n) = (0.5 / (s * s), f64::from(a));
    let mut choose = n * (n - 1.0) / 2.0;
    let mut sum = q * q * choose * (4.0 * (2.0 * e).exp_m1()).min(2.0 * (2.0 * e).exp());
    for j in (3..=a).map(f64::from) {
        choose *= (n - j + 1.0) / j;
        sum += 2.0 * choose * (j * q.ln() + j * (j - 1.0) * e).exp();
    }
    sum.ln_1p() / (n - 1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn costs_rise_with_their_parameter_and_with_the_order(x in 0.05f64..1.9, y in 0.05f64..1.9, a in 1.05f64..60.0, b in 1.05f64..60.0) {
        let (x, y) = (x.min(y), x.max(y));
        let (a, b) = (a.min(b), a.max(b));
        for (name, family) in rising_families() {
            let low = family(x).family().renyi(order(a)).get();
            // Rounding may disagree in the last digits where the truth is equal.
            prop_assert!(low <= family(y).family().renyi(order(a)).get() * (1.0 + 1e-9), "{name} falls in its parameter");
            prop_assert!(low <= family(x).family().renyi(order(b)).get() * (1.0 + 1e-9), "{name} falls in the order");
        }
    }

    #[test]
    fn conversions_dominate_each_other(a in 1.001f64..300.0, value in 1e-6f64..30.0, d in 1e-12f64..0.9, e in 0.0f64..20.0) {
        let (a, delta, epsilon) = (order(a), del(d), eps(e));
        for pair in Conversion::ALL.windows(2) {
            let (loose, tight) = (pair[0], pair[1]);
            prop_assert!(tight.epsilon(a, bound(value), delta) <= loose.epsilon(a, bound(value), delta));
            prop_assert!(tight.delta(a, bound(value), epsilon) <= loose.delta(a, bound(value), epsilon));
            prop_assert!(tight.budget(a, epsilon, delta) >= loose.budget(a, epsilon, delta));
        }
        for conversion in Conversion::ALL {
            // Monotone in every argument.
            prop_assert!(conversion.epsilon(a, bound(value * 1.01), delta) >= conversion.epsilon(a, bound(value), delta));
            prop_assert!(conversion.epsilon(a, bound(value), del(d * 0.99)) >= conversion.epsilon(a, bound(value), delta));
            prop_assert!(conversion.delta(a, bound(value), eps(e + 0.01)) <= conversion.delta(a, bound(value), epsilon));
            prop_assert!(conversion.budget(a, eps(e + 0.01), delta) >= conversion.budget(a, epsilon, delta));
            // The three directions agree: spending the budget keeps the promise.
            let budget = conversion.budget(a, epsilon, delta);
            if let Some(budget) = budget {
                prop_assert!(conversion.epsilon(a, budget, delta).get() <= e * (1.0 + 1e-9) + 1e-12);
                prop_assert!(conversion.delta(a, budget, epsilon).get() <= d * (1.0 + 1e-8));
            }
        }
    }

    #[test]
    fn zcdp_and_gdp_directions_agree(rho in 1e-6f64..20.0, d in 1e-12f64..0.5, e in 1e-3f64..20.0) {
        let (rho, delta, epsilon) = (Rho::new(rho).expect("rho"), del(d), eps(e));
        for pair in [Conversion::Classic, Conversion::Cks, Conversion::Exact].windows(2) {
            prop_assert!(zcdp::epsilon(pair[1], rho, delta).0 <= zcdp::epsilon(pair[0], rho, delta).0);
            prop_assert!(zcdp::delta(pair[1], rho, epsilon).0 <= zcdp::delta(pair[0], rho, epsilon).0);
            prop_assert!(zcdp::budget(pair[1], epsilon, delta) >= zcdp::budget(pair[0], epsilon, delta));
        }
        for conversion in [Conversion::Classic, Conversion::Cks, Conversion::Exact] {
            let budget = zcdp::budget(conversion, epsilon, delta);
            prop_assert!(zcdp::epsilon(conversion, budget, delta).0.get() <= e * (1.0 + 1e-6));
        }
        // The exact Gaussian profile beats every conversion of its ρ.
        let mu = Mu::new((2.0 * rho.get()).sqrt()).expect("mu");
        prop_assert!(gaussian::epsilon(mu, delta).get() <= zcdp::epsilon(Conversion::Exact, rho, delta).0.get() * (1.0 + 1e-9));
        let largest = gaussian::budget(epsilon, delta);
        prop_assert!(gaussian::delta(largest, epsilon) <= delta);
        prop_assert!(gaussian::delta(Mu::new(largest.get() * (1.0 + 1e-9)).expect("mu"), epsilon) > delta);
    }

    /// The budget is the inverse of the conversion, also for large δ, where the best order is far from the classic one.
    #[test]
    fn the_zcdp_budget_is_the_inverse_of_the_conversion(log_epsilon in -10.0f64..3.0, log_delta in -28.0f64..-0.3) {
        let (epsilon, delta) = (eps(log_epsilon.exp()), del(log_delta.exp()));
        for conversion in [Conversion::Cks, Conversion::Exact] {
            let budget = zcdp::budget(conversion, epsilon, delta);
            prop_assert!(zcdp::epsilon(conversion, budget, delta).0.get() <= epsilon.get() * (1.0 + 1e-6));
            let more = Rho::new(budget.get() * (1.0 + 1e-5)).expect("rho");
            prop_assert!(zcdp::epsilon(conversion, more, delta).0 >= epsilon, "{conversion:?} {budget}");
        }
    }

    /// A step on a batch of fixed size costs at least what it does where the other records are all alike, which is the forward
    /// direction of a Poisson-sampled one, and at most what Theorem 9 of arXiv:1808.00087 says.
    #[test]
    fn fixed_size_sampling_is_between_its_worst_case_and_theorem_9(q in 1e-6f64..0.9, s in 0.4f64..30.0, a in 2u32..40) {
        let ours = fixed_size(q, s).renyi(order(f64::from(a))).get();
        let least = sampled(q, s).renyi(order(f64::from(a))).get();
        prop_assert!(ours >= least * (1.0 - 1e-9), "{ours} {least}");
        prop_assert!(ours <= theorem_9(q, s, a).min(f64::from(a) / (2.0 * s * s)) * (1.0 + 1e-9), "{ours}");
        prop_assert!(ours <= 2.0 * least + 1e-300, "{ours} {least}");
    }

    #[test]
    fn sampled_gaussian_three_ways_agree(q in 1e-7f64..0.9, s in 0.3f64..20.0, a in 2u32..60, shift in 0.001f64..0.999) {
        let mechanism = sampled(q, s);
        let a = f64::from(a);
        // At integers: binomial sum or trapezoid (`renyi` picks the cheaper) against the triangle (`renyi_at`).
        let one = mechanism.renyi(order(a)).get();
        let all = mechanism.renyi_at(&[order(a)])[0].get();
        if (a - 1.0) * one < 250.0 {
            prop_assert!((one / all - 1.0).abs() < 2e-9, "{one:e} {all:e}");
        }
        // Just beside an integer, the trapezoidal rule: continuous, so it must agree with the sum.
        let beside = mechanism.renyi(order(a * (1.0 + 1e-13))).get();
        prop_assert!((beside / one - 1.0).abs() < 2e-9, "{one:e} {beside:e}");
        // (α−1)·D is convex, so a real order lies below the chord of its neighbors.
        let (next, middle) = (mechanism.renyi(order(a + 1.0)).get(), mechanism.renyi(order(a + shift)).get());
        let chord = (1.0 - shift) * (a - 1.0) * one + shift * a * next;
        prop_assert!((a + shift - 1.0) * middle <= chord * (1.0 + 1e-8));
        // Forward is the larger direction, and no larger than without sampling.
        let reverse = mechanism.renyi_reverse(order(a)).get();
        prop_assert!(reverse <= one * (1.0 + 1e-8) || reverse == f64::INFINITY);
        prop_assert!(one <= a / (2.0 * s * s) * (1.0 + 1e-12));
    }

    #[test]
    fn splitting_and_reordering_change_nothing(cut in 1u64..999, picks in proptest::collection::vec(0usize..add_remove_zoo().len(), 1..6)) {
        let zoo = add_remove_zoo();
        let whole = Mechanism::AllOf(
            picks.iter().map(|&i| Mechanism::Repeat { count: Count::new(1000).expect("count"), of: Box::new(single(zoo[i].clone())) }).collect(),
        );
        let split = Mechanism::AllOf(
            picks.iter().rev().flat_map(|&i| {
                [cut, 1000 - cut].map(|n| Mechanism::Repeat { count: Count::new(n).expect("count"), of: Box::new(single(zoo[i].clone())) })
            }).collect(),
        );
        let (whole, split) = (Cost::of(&whole, Neighbors::AddRemove).expect("cost"), Cost::of(&split, Neighbors::AddRemove).expect("cost"));
        prop_assert_eq!(&whole, &split);
        prop_assert_eq!(whole.renyi(order(3.3)).get().to_bits(), split.renyi(order(3.3)).get().to_bits());
        prop_assert_eq!(whole.rho(), split.rho());
        prop_assert_eq!(whole.slack(), split.slack());
    }

    #[test]
    fn extreme_parameters_give_a_sound_bound_never_nan_never_zero(
        s in -3i32..7, m in 1.0f64..9.99, q in -9i32..1, a in prop_oneof![1.000_001f64..3.0, 3.0f64..1e6], count in 1u64..1_000_000_000_000
    ) {
        let (s, q) = ((m * 10f64.powi(s)).min(1e6), (m * 10f64.powi(q - 1)).min(1.0));
        let singles = [
            Single::PoissonSampledGaussian(sampled(q, s)),
            Single::Gaussian(Gaussian { noise_multiplier: noise(s) }),
            Single::Laplace(Laplace { scale: Scale::new(s).expect("scale") }),
            Single::Pure(Pure { epsilon: eps(q) }),
            Single::Exponential(Exponential { epsilon: eps(q) }),
            Single::BallsAndBinsEpoch(BallsAndBinsEpoch { batches: Count::new(count).expect("count"), noise_multiplier: noise(s) }),
        ];
        for one in singles {
            let cost = Cost::of(&single(one.clone()), Neighbors::AddRemove).expect("cost").repeat(count).expect("count");
            let value = cost.renyi(order(a)).get();
            prop_assert!(value > 0.0, "{one:?} at {a}: {value}");
            let row = tightest(&cost, del(1e-9));
            prop_assert!(row.epsilon.get() >= 0.0, "{one:?}: {row:?}");
        }
        let fixed = FixedSizeSampledGaussian { batch_fraction: BatchFraction::new(q).expect("fraction"), noise_multiplier: noise(s) };
        prop_assert!(fixed.renyi(order(a)).get() > 0.0);
    }
}

/// Where products turn subnormal nothing is claimed below 10⁻²⁹⁰.
#[test]
fn vanishing_samples_cost_something() {
    for q in [1e-300, 1e-200, 1e-155, 1e-148, 1e-140] {
        for a in [1.5, 2.0, 3.5, 64.0, 300.0] {
            let values = [sampled(q, 1.0).renyi(order(a)).get(), sampled(q, 1.0).renyi_at(&[order(a)])[0].get()];
            assert!(values.iter().all(|&value| (1e-290..f64::INFINITY).contains(&value)), "q {q} α {a}: {values:?}");
        }
    }
}

/// A lower bound on the sampled Gaussian's divergence, `α/(2s²) + α·ln q/(α−1)`: `(1+w)^α ≥ (qΛ)^α`. Once broken for small
/// noise and orders below 2, where a scale far above the truth drowned the sum in underflow.
#[test]
fn small_noise_and_orders_below_two_stay_above_the_last_term() {
    for i in 0..60 {
        let s = 0.02 + 0.001 * f64::from(i);
        for j in 1..50 {
            let a = 1.0 + 0.02 * f64::from(j);
            for q in [1e-9f64, 1e-6, 1e-3, 0.01, 0.5, 0.99] {
                let floor = a / (2.0 * s * s) + a * q.ln() / (a - 1.0);
                let ours = [sampled(q, s).renyi(order(a)).get(), sampled(q, s).renyi_at(&[order(a)])[0].get()];
                assert!(
                    ours.iter().all(|&ours| ours >= floor * (1.0 - 1e-12)),
                    "q {q} s {s} α {a}: {ours:?} < {floor}"
                );
            }
        }
    }
    // One step against its exact profile, where the reported ε was once a thousandth of the truth.
    for (q, s, d) in
        [(0.01, 0.04, 1e-4), (0.001, 0.04, 5e-4), (0.5, 0.04, 0.005), (0.001, 0.045, 1e-5), (0.02, 0.3, 1e-6)]
    {
        let cost =
            Cost::of(&single(Single::PoissonSampledGaussian(sampled(q, s))), Neighbors::AddRemove).expect("cost");
        let epsilon = tightest(&cost, del(d)).epsilon;
        let truth = gaussian::sampled_delta(SamplingProbability::new(q).expect("q"), noise(s), epsilon);
        assert!(truth.removed.get() <= d * (1.0 + 1e-9), "q {q} s {s}: ε {epsilon} has δ {}", truth.removed);
    }
}

#[test]
fn every_conversion_is_no_looser_than_the_one_before_it_in_the_rows_too() {
    let costs = [
        Cost::of(&single(Single::Gaussian(Gaussian { noise_multiplier: noise(1.0) })), Neighbors::AddRemove)
            .and_then(|c| c.repeat(1000)),
        Cost::of(&single(Single::PoissonSampledGaussian(sampled(0.1, 0.3))), Neighbors::AddRemove)
            .and_then(|c| c.repeat(10_000)),
        Cost::of(&single(Single::PoissonSampledGaussian(sampled(0.1, 1.0))), Neighbors::AddRemove),
    ];
    for cost in costs.map(|cost| cost.expect("cost")) {
        for question in [Question::EpsilonAt(del(1e-5)), Question::DeltaAt(eps(1.0))] {
            let rows = rows(&cost, question);
            let renyi: Vec<_> = rows.iter().filter(|row| row.method.starts_with("renyi-")).collect();
            for pair in renyi.windows(2) {
                assert!(pair[1].epsilon <= pair[0].epsilon && pair[1].delta <= pair[0].delta, "{pair:?}");
            }
        }
    }
}

#[test]
fn explicit_curves_are_asked_at_their_own_orders() {
    let of = |orders: &[f64], values: &[f64]| {
        let curve = RenyiCurve::new(Orders::from_f64(orders).expect("orders"), values.to_vec()).expect("curve");
        tightest(&Cost::of(&single(Single::Renyi(Renyi { curve })), Neighbors::AddRemove).expect("cost"), del(1e-5))
            .epsilon
            .get()
    };
    assert!(of(&[1.1], &[0.5]) < 200.0);
    assert!(of(&[f64::INFINITY], &[0.5]) <= 0.5);
    assert_eq!(Conversion::Exact.epsilon(order(f64::INFINITY), bound(1.0), Delta::ZERO), eps(1.0));
    assert_eq!(Conversion::Lemma1.budget(order(f64::INFINITY), eps(1.0), Delta::ZERO), Some(bound(1.0)));
}

#[test]
fn gaussian_epsilon_is_tight_for_tiny_mu_and_finite_near_the_top() {
    let tiny = gaussian::epsilon(Mu::new(1e-7).expect("mu"), del(1e-10)).get();
    assert!((2.71e-7..2.73e-7).contains(&tiny), "{tiny}");
    // δ a hair below δ(0) = 0.38292492254802624…: ε is a hair above 0, not infinite.
    let top = gaussian::epsilon(Mu::new(1.0).expect("mu"), del(0.382_924_922_548_022_4)).get();
    assert!(top < 1e-6, "{top}");
}

#[test]
fn optimal_composition_of_many_steps_ends() {
    let steps = [(0.001, 100_000), (0.002, 100_000), (0.003, 50_000)].map(|(e, n)| {
        Cost::of(&single(Single::Pure(Pure { epsilon: eps(e) })), Neighbors::AddRemove)
            .and_then(|cost| cost.repeat(n))
            .expect("cost")
    });
    let cost = steps[0].and(&steps[1]).and_then(|cost| cost.and(&steps[2])).expect("cost");
    let rows = rows(&cost, Question::EpsilonAt(del(1e-6)));
    let of = |method: &str| rows.iter().find(|row| row.method == method).expect("a row").epsilon.get();
    assert!(of("optimal") <= of("advanced-tanh") && of("optimal") >= 0.5 * of("zcdp-exact"), "{rows:?}");
}

#[test]
fn orders_beyond_every_curve_and_infinite_orders() {
    for one in add_remove_zoo() {
        let value = one.family().renyi(order(f64::INFINITY)).get();
        assert!(value > 0.0, "{one:?}: {value}");
        if let Some((epsilon, _)) = one.family().approximate() {
            assert!(value <= epsilon.get() * (1.0 + 1e-12), "{one:?}: max divergence {value} above ε");
        }
    }
}

#[test]
fn each_mechanism_is_accounted_under_its_own_relations_only() {
    let poisson = single(Single::PoissonSampledGaussian(sampled(0.01, 1.0)));
    let error = Cost::of(&poisson, Neighbors::ReplaceOne).expect_err("Poisson sampling is about adding a record");
    assert_eq!(
        error.to_string(),
        "poisson_sampled_gaussian is not accounted under replace-one neighbors; expected add-remove or zero-out"
    );
    let fixed = single(Single::FixedSizeSampledGaussian(FixedSizeSampledGaussian {
        batch_fraction: BatchFraction::new(0.01).expect("fraction"),
        noise_multiplier: noise(4.0),
    }));
    assert!(Cost::of(&fixed, Neighbors::AddRemove).is_err() && Cost::of(&fixed, Neighbors::ReplaceOne).is_ok());
    // E12: shuffled batches move when a record goes; only relations that keep their number are allowed.
    let shuffled = single(Single::PartitionedEpoch(
        PartitionedEpoch::new(Assignment::Reshuffled, vec![noise(6.0)]).expect("epoch"),
    ));
    assert!(Cost::of(&shuffled, Neighbors::AddRemove).is_err() && Cost::of(&shuffled, Neighbors::ZeroOut).is_ok());
    let parallel = Mechanism::Parallel(vec![poisson.clone()]);
    assert!(Cost::of(&parallel, Neighbors::ReplaceOne).is_err() && Cost::of(&parallel, Neighbors::AddRemove).is_ok());
    // Costs under different relations never add up.
    let gaussian = single(Single::Gaussian(Gaussian { noise_multiplier: noise(2.0) }));
    let (left, right) = (
        Cost::of(&gaussian, Neighbors::AddRemove).expect("cost"),
        Cost::of(&gaussian, Neighbors::ReplaceOne).expect("cost"),
    );
    assert!(matches!(left.and(&right), Err(CostError::Mixed(..))));
}

#[test]
fn parallel_costs_the_worst_group_and_all_of_the_sum() {
    let (cheap, dear) =
        (single(Single::Pure(Pure { epsilon: eps(0.1) })), single(Single::Pure(Pure { epsilon: eps(0.4) })));
    let parallel =
        Cost::of(&Mechanism::Parallel(vec![cheap.clone(), dear.clone()]), Neighbors::AddRemove).expect("cost");
    let alone = Cost::of(&dear, Neighbors::AddRemove).expect("cost");
    assert_eq!(parallel.renyi(order(4.0)).get(), alone.renyi(order(4.0)).get());
    assert_eq!(parallel.rho(), alone.rho());
    assert_eq!(parallel.approximate_steps(), alone.approximate_steps());
    let both = Cost::of(&Mechanism::AllOf(vec![cheap, dear]), Neighbors::AddRemove).expect("cost");
    assert!(both.renyi(order(4.0)).get() > alone.renyi(order(4.0)).get());
    // A sample that everybody joins is no sample.
    let (all, plain) = (Mechanism::poisson_sampled_gaussian(1.0, 3.0), Mechanism::gaussian(3.0));
    let of = |mechanism| Cost::of(&mechanism, Neighbors::AddRemove).expect("cost");
    assert_eq!(of(all.expect("mechanism")), of(plain.expect("mechanism")));
    // Counts beyond 2⁵³ are an error, not a wrap.
    assert!(both.repeat(Count::MAX).and_then(|cost| cost.repeat(2)).is_err());
}

#[test]
fn approximate_steps_pay_their_delta_first() {
    let step = single(Single::Approximate(Approximate { epsilon: eps(0.1), delta: del(1e-8) }));
    let cost = Cost::of(&step, Neighbors::AddRemove).expect("cost").repeat(100).expect("count");
    assert!(cost.slack().get() >= 1e-6);
    for row in rows(&cost, Question::EpsilonAt(del(1e-6 * 0.99))) {
        assert_eq!(row.epsilon, Epsilon::INFINITE, "{}: δ is spent before ε is looked at", row.method);
    }
    for row in rows(&cost, Question::EpsilonAt(del(1e-5))) {
        assert!(row.epsilon < Epsilon::INFINITE, "{}", row.method);
    }
    for row in rows(&cost, Question::DeltaAt(eps(5.0))) {
        assert!(row.delta.get() >= 1e-6 * (1.0 - 1e-3), "{}: δ {} leaves out the steps' own", row.method, row.delta);
    }
}

#[test]
fn optimal_composition_is_the_tightest_for_pure_steps() {
    let cost =
        Cost::of(&single(Single::RandomizedResponse(RandomizedResponse { epsilon: eps(0.1) })), Neighbors::AddRemove)
            .expect("cost")
            .repeat(200)
            .expect("count");
    let rows = rows(&cost, Question::EpsilonAt(del(1e-6)));
    let optimal = rows.iter().find(|row| row.method == "optimal").expect("a row").epsilon;
    for row in rows.iter().filter(|row| row.basis != Basis::Estimate) {
        assert!(optimal.get() <= row.epsilon.get() * (1.0 + 1e-9), "{} beats the optimum", row.method);
    }
    assert_eq!(tightest(&cost, del(1e-6)).method, "optimal");
}

#[test]
fn calibration_ends_between_a_pass_and_a_fail() {
    let target = calibrate::Target::EpsilonDelta(eps(2.0), del(1e-5));
    let cost_at = |q: f64, s: f64| -> Result<Cost, CalibrationError> {
        let one = Single::PoissonSampledGaussian(PoissonSampledGaussian {
            sampling_probability: SamplingProbability::new(q)?,
            noise_multiplier: NoiseMultiplier::new(s)?,
        });
        Ok(Cost::of(&single(one), Neighbors::AddRemove)?.repeat(1000)?)
    };
    let found = least_noise(target, |s| cost_at(0.01, s)).expect("reachable");
    let (next, next_price) = found.next.expect("an inner solution");
    assert!(found.price.get() <= 2.0 && next_price.get() > 2.0);
    assert!(next < found.value && found.value - next <= 1.000_001e-9 * found.value, "{} {next}", found.value);

    let found = largest_sampling_probability(target, |q| cost_at(q, 1.0)).expect("reachable");
    let (next, next_price) = found.next.expect("an inner solution");
    assert!(found.price.get() <= 2.0 && next_price.get() > 2.0 && next > found.value);

    let one =
        Cost::of(&single(Single::PoissonSampledGaussian(sampled(0.01, 1.0))), Neighbors::AddRemove).expect("cost");
    let found = most_repeats(target, &one).expect("reachable");
    assert!(found.price.get() <= 2.0 && found.next.expect("one more").get() > 2.0 && found.value > 100);

    // ρ targets, where a closed form exists in exact doubles: 128/(2s²) ≤ 1/4 iff s ≥ 16.
    let gaussian = |s: f64| -> Result<Cost, CalibrationError> {
        let one = Single::Gaussian(Gaussian { noise_multiplier: NoiseMultiplier::new(s)? });
        Ok(Cost::of(&single(one), Neighbors::AddRemove)?.repeat(128)?)
    };
    let found = least_noise(calibrate::Target::Rho(Amount::from_decimal_down("0.25").expect("rho")), gaussian)
        .expect("reachable");
    assert_eq!(found.value, 16.0);
    // Out of reach.
    let nothing = calibrate::Target::EpsilonDelta(Epsilon::ZERO, Delta::ZERO);
    assert!(matches!(least_noise(nothing, gaussian), Err(CalibrationError::Unreachable { .. })));
}

#[test]
fn golden_gaussian_noise_is_reached_by_calibration() {
    // One Gaussian, (1, 1e-5): σ = 3.730631634816464… (golden `gaussian_profile`).
    let target = calibrate::Target::EpsilonDelta(eps(1.0), del(1e-5));
    let found = least_noise(target, |s| {
        let one = Single::Gaussian(Gaussian { noise_multiplier: NoiseMultiplier::new(s)? });
        Ok(Cost::of(&single(one), Neighbors::AddRemove)?)
    });
    let value = found.expect("reachable").value;
    assert!((3.730_631_634..3.730_631_640).contains(&value), "{value}");
}

#[test]
fn pointwise_and_back() {
    // T36: ε′ = 2ε gives δ/(1 − e^{−ε}).
    let wider = dp_to_pointwise(eps(1.0), del(1e-6), eps(2.0)).get();
    let truth = 1e-6 / (1.0 - (-1.0f64).exp());
    assert!(wider >= truth && wider <= truth * (1.0 + 1e-14));
    assert_eq!(dp_to_pointwise(eps(1.0), del(1e-6), eps(1.0)), Delta::ONE);
    assert_eq!(dp_to_pointwise(eps(1.0), Delta::ZERO, eps(1.0)), Delta::ZERO);
    assert_eq!(pointwise_to_dp(eps(1.0), del(1e-6)), (eps(1.0), del(1e-6)));
}

#[test]
fn edges_of_the_conversions() {
    let a = order(8.0);
    for conversion in Conversion::ALL {
        assert_eq!(conversion.epsilon(a, bound(f64::NAN), del(1e-5)), Epsilon::INFINITE);
        assert_eq!(conversion.epsilon(a, bound(f64::INFINITY), del(1e-5)), Epsilon::INFINITE);
        assert_eq!(conversion.epsilon(a, bound(0.5), Delta::ZERO), Epsilon::INFINITE);
        assert_eq!(conversion.epsilon(a, bound(0.5), Delta::ONE), Epsilon::ZERO);
        assert_eq!(conversion.delta(a, bound(f64::NAN), eps(1.0)), Delta::ONE);
        // A max divergence is a pure ε.
        assert!(conversion.epsilon(order(f64::INFINITY), bound(0.5), del(1e-5)).get() <= 0.5);
        assert_eq!(conversion.delta(order(f64::INFINITY), bound(0.5), eps(0.5)), Delta::ZERO);
        // Deep in the tail δ is tiny but not zero.
        assert!(conversion.delta(a, bound(0.1), eps(500.0)).get() > 0.0);
    }
    assert_eq!(gaussian::epsilon(Mu::new(1.0).expect("mu"), Delta::ZERO), Epsilon::INFINITE);
    assert_eq!(gaussian::epsilon(Mu::new(0.0).expect("mu"), Delta::ZERO), Epsilon::ZERO);
    assert!(gaussian::delta(Mu::new(0.1).expect("mu"), eps(50.0)).get() > 0.0);
    assert_eq!(zcdp::budget(Conversion::Exact, eps(1.0), Delta::ZERO), Rho::ZERO);
}

#[test]
fn partitioned_epochs_follow_t26() {
    let noises = vec![noise(4.0), noise(8.0), noise(8.0), noise(8.0)];
    let of = |assignment| PartitionedEpoch::new(assignment, noises.clone()).expect("epoch");
    let worst = 8.0 / (2.0 * 16.0);
    assert!((of(Assignment::Independent).renyi(order(8.0)).get() - worst).abs() < 1e-15);
    let refined = of(Assignment::IndependentUniform).renyi(order(8.0)).get();
    let truth = ((1.75f64.exp() + 3.0 * (8.0f64 * 7.0 / 128.0).exp()) / 4.0).ln() / 7.0;
    assert!(refined >= truth && refined <= truth * (1.0 + 1e-13) && refined < worst, "{refined} {truth}");
    assert!(PartitionedEpoch::new(Assignment::Independent, vec![]).is_err());
}

#[test]
fn fixed_size_sampling_follows_t43() {
    // 1 + E[z^α + z^{1−α} − 1 − z; z > 1], by quadrature with 30 digits. Theorem 9 of arXiv:1808.00087, used before, is up to 20
    // times as much.
    for (q, s, a, truth, before) in [
        (0.01, 2.0, 3, 0.000_058_623_028_473_919_186, 0.000_172_502_489_498),
        (0.01, 2.14, 8, 0.000_132_210_389_662_306_28, 0.000_421_393_481_374),
        (0.05, 2.14, 2, 0.000_804_688_690_788_059_4, 0.002_437_371_635_36),
        (0.3, 4.0, 12, 0.041_494_281_448_898_63, 0.337_416_987_541),
        (0.001, 1.0, 32, 8.869_413_905_602_326, 8.891_773_492_07),
        (0.01, 20.0, 8, 1.040_744_370_388_293_5e-6, 2.032_868_028_14e-5),
    ] {
        let ours = fixed_size(q, s).renyi(order(f64::from(a))).get();
        assert!(ours >= truth * (1.0 - 1e-15) && ours <= truth * (1.0 + 1e-4), "{q} {s} {a}: {ours} {truth}");
        assert!((theorem_9(q, s, a) / before - 1.0).abs() < 1e-9 && ours < before);
    }
    assert!(fixed_size(0.01, 2.0).renyi(order(1e6)).get() <= 1e6 / 8.0 * (1.0 + 1e-15));
    // The whole dataset is plain noise, and hardly any noise is no privacy.
    assert!((fixed_size(1.0, 2.0).renyi(order(4.0)).get() - 0.5).abs() < 1e-12);
    assert!(fixed_size(0.5, 0.01).renyi(order(4.0)).get() <= 2e4 * (1.0 + 1e-12));
}

#[test]
fn balls_and_bins_keep_within_the_doubles() {
    // The moments pass e^709; truths by 60 digits.
    for (batches, s, a, truth) in [
        (10_000_000_000, 0.3, 16.0, 65.863_037_958_948_43),
        (100, 0.25, 32.0, 251.394_829_814_011_9),
        (7, 0.5, 64.0, 126.054_089_850_944_69),
        (1000, 0.2, 3.0, 30.592_244_721_017_863),
    ] {
        let epoch = BallsAndBinsEpoch { batches: Count::new(batches).expect("batches"), noise_multiplier: noise(s) };
        let ours = epoch.forward_bound(a);
        assert!(ours >= truth && ours <= truth * (1.0 + 1e-9), "{batches} {s} {a}: {ours} {truth}");
    }
}

#[test]
fn budgets_reach_what_conversions_certify() {
    // Before: 0.000396. `convert --zcdp 0.0674 --delta 0.183` says 0.000114.
    let budget = zcdp::budget(Conversion::Exact, eps(0.000_122), del(0.183)).get();
    assert!(budget >= 0.0674, "{budget}");
}

#[test]
fn gaussian_epsilon_is_tight_below_the_series() {
    // By 50 digits; before, up to 6e-6 above.
    for (mu, d, truth) in [
        (0.009, 1e-5, 0.024_203_824_468_268_241),
        (0.003, 1e-4, 0.004_331_822_172_425_517),
        (0.0001, 1e-5, 0.000_090_237_094_325_635_04),
        (0.005, 1e-9, 0.023_753_558_654_794_371),
    ] {
        let ours = gaussian::epsilon(Mu::new(mu).expect("mu"), del(d)).get();
        assert!(ours >= truth * (1.0 - 1e-14) && ours <= truth * (1.0 + 1e-10), "{mu} {d}: {ours} {truth}");
    }
}

#[test]
fn one_sampled_step_has_its_exact_price() {
    for (q, s, d, truth) in [
        (1.4e-6, 0.5, 1e-8, 0.000_727_212_352_066_866_3),
        (0.01, 1.0, 1e-5, 0.199_450_447_795_914_72),
        (0.01, 2.0, 1e-5, 0.028_259_083_957_234_787),
    ] {
        let poisson = (Single::PoissonSampledGaussian(sampled(q, s)), Neighbors::AddRemove);
        let fixed = (Single::FixedSizeSampledGaussian(fixed_size(q, s)), Neighbors::ReplaceOne);
        for (mechanism, neighbors) in [poisson, fixed] {
            let cost = Cost::of(&single(mechanism), neighbors).expect("cost");
            let all = rows(&cost, Question::EpsilonAt(del(d)));
            let row = all.iter().find(|row| row.method == "sampled-exact").expect("a row");
            let ours = row.epsilon.get();
            assert!(ours >= truth * (1.0 - 1e-14) && ours <= truth * (1.0 + 1e-9), "{q} {s}: {ours} {truth}");
            let back = rows(&cost, Question::DeltaAt(row.epsilon));
            let delta = back.iter().find(|row| row.method == "sampled-exact").expect("a row").delta.get();
            assert!(delta <= d * (1.0 + 1e-12) && delta >= d * (1.0 - 1e-8), "{delta}");
            assert_eq!(tightest(&cost, del(d)).epsilon, row.epsilon);
            let two = rows(&cost.repeat(2).expect("cost"), Question::EpsilonAt(del(d)));
            assert!(two.iter().all(|row| row.method != "sampled-exact"));
        }
    }
}

#[test]
fn what_calibration_says_is_the_best_row() {
    // Two valleys below the smallest stored order: once 0.001140 here and 0.001023 there.
    let plan = |q, s, n| {
        Cost::of(&single(Single::PoissonSampledGaussian(sampled(q, s))), Neighbors::AddRemove).and_then(|c| c.repeat(n))
    };
    for (q, s, n, d) in
        [(2.814e-8, 0.244_936_859_9, 100, 3e-5), (0.01, 1.0, 1000, 1e-5), (1e-4, 0.5, 20, 0.01), (1e-6, 0.4, 1, 1e-3)]
    {
        let cost = plan(q, s, n).expect("cost");
        let all = rows(&cost, Question::EpsilonAt(del(d)));
        let best = all
            .iter()
            .filter(|row| row.basis != Basis::Estimate)
            .map(|row| row.epsilon.get())
            .fold(f64::INFINITY, f64::min);
        let ours = tightest(&cost, del(d)).epsilon.get();
        assert!((ours - best).abs() <= 1e-6 * best, "{q} {s} {n}: {ours} {best}");
    }
}

#[test]
fn a_partitioned_epoch_is_gaussian_noise_of_its_worst_batch() {
    let epoch = |noises: &[f64], assignment| {
        let noises = noises.iter().map(|&s| noise(s)).collect();
        Single::PartitionedEpoch(PartitionedEpoch::new(assignment, noises).expect("epoch"))
    };
    for (assignment, neighbors) in [
        (Assignment::Independent, Neighbors::AddRemove),
        (Assignment::IndependentUniform, Neighbors::ZeroOut),
        (Assignment::Reshuffled, Neighbors::ZeroOut),
    ] {
        assert_eq!(epoch(&[8.0, 8.0], assignment).family().mu().expect("mu").get(), 0.125);
        assert_eq!(epoch(&[8.0, 4.0, 16.0], assignment).family().mu().expect("mu").get(), 0.25);
        // 33 epochs of noise 8 within ε = 3 at δ = 1e-5, as for plain Gaussian noise; by Rényi divergences 28.
        let one = Cost::of(&single(epoch(&[8.0; 10], assignment)), neighbors).expect("cost");
        let plain =
            Cost::of(&single(Single::Gaussian(Gaussian { noise_multiplier: noise(8.0) })), neighbors).expect("cost");
        let target = calibrate::Target::EpsilonDelta(eps(3.0), del(1e-5));
        assert_eq!(most_repeats(target, &one).expect("epochs").value, 33);
        assert_eq!(most_repeats(target, &plain).expect("steps").value, 33);
    }
    // Where the batches differ and are equally likely, the Rényi curve can say less, and then it counts.
    let mixed =
        Cost::of(&single(epoch(&[1.0, 40.0, 40.0, 40.0, 40.0], Assignment::IndependentUniform)), Neighbors::AddRemove);
    let mixed = mixed.expect("cost");
    let all = rows(&mixed, Question::EpsilonAt(del(0.05)));
    let best = all.iter().map(|row| row.epsilon.get()).fold(f64::INFINITY, f64::min);
    assert_eq!(tightest(&mixed, del(0.05)).epsilon.get(), best);
}
