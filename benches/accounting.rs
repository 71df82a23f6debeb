//! Speed of the accounting core; names hold the parameters. `bench/` runs the peers beside it.

use criterion::{Criterion, criterion_group, criterion_main};
use paygo::accounting::account::{least_epsilon, tightest};
use paygo::accounting::calibrate::{Target, least_noise};
use paygo::accounting::convert::{Conversion, gaussian, zcdp};
use paygo::accounting::cost::Cost;
use paygo::accounting::curve::{Orders, RenyiCurve};
use paygo::accounting::mechanism::{Family as _, Mechanism, PoissonSampledGaussian, Single};
use paygo::accounting::params::{
    Delta, Divergence, Epsilon, Mu, Neighbors, NoiseMultiplier, Order, Rho, SamplingProbability,
};
use std::hint::black_box;

fn sampled(q: f64, s: f64) -> PoissonSampledGaussian {
    PoissonSampledGaussian {
        sampling_probability: SamplingProbability::new(q).expect("q"),
        noise_multiplier: NoiseMultiplier::new(s).expect("noise"),
    }
}

fn cost(q: f64, s: f64) -> Cost {
    let mechanism = Mechanism::Single(Single::PoissonSampledGaussian(sampled(q, s)));
    Cost::of(&mechanism, Neighbors::AddRemove).expect("cost")
}

fn benches(c: &mut Criterion) {
    let delta = Delta::new(1e-5).expect("delta");
    let order = |a: f64| Order::new(a).expect("order");

    c.bench_function("renyi/poisson_sampled_gaussian/q=0.0042667/noise=1.1/order=8", |b| {
        b.iter(|| black_box(sampled(0.004_266_7, 1.1)).renyi(order(8.0)));
    });
    c.bench_function("renyi/poisson_sampled_gaussian/q=0.0042667/noise=1.1/order=8.12", |b| {
        b.iter(|| black_box(sampled(0.004_266_7, 1.1)).renyi(order(8.12)));
    });
    c.bench_function("curve/poisson_sampled_gaussian/q=0.0042667/noise=1.1/orders=standard", |b| {
        let orders = Orders::standard();
        b.iter(|| black_box(cost(0.004_266_7, 1.1)).curve(&orders));
    });
    c.bench_function("convert/renyi-exact/order=8/value=0.5/delta=1e-5", |b| {
        b.iter(|| Conversion::Exact.epsilon(order(8.0), Divergence::from_upper_bound(black_box(0.5)), delta));
    });
    c.bench_function("convert/zcdp-cks/rho=0.1/delta=1e-5", |b| {
        b.iter(|| zcdp::epsilon(Conversion::Cks, Rho::new(black_box(0.1)).expect("rho"), delta));
    });
    c.bench_function("convert/gdp-exact/mu=1/delta=1e-5", |b| {
        b.iter(|| gaussian::epsilon(Mu::new(black_box(1.0)).expect("mu"), delta));
    });
    c.bench_function("epsilon/dp-sgd/q=256_of_60000/noise=1.1/steps=14062/delta=1e-5", |b| {
        b.iter(|| tightest(&cost(black_box(256.0 / 60_000.0), 1.1).repeat(14_062).expect("count"), delta));
    });
    c.bench_function("schedule/one_step_and_epsilon/q=0.01+/noise=1+/delta=1e-5", |b| {
        let orders = Orders::standard();
        let mut total: Option<RenyiCurve> = None;
        let mut i = 0u32;
        b.iter(|| {
            i = (i + 1) % 1000;
            let step = cost(0.005 + 1e-5 * f64::from(i), 0.9 + 1e-3 * f64::from(i)).curve(&orders);
            match &mut total {
                Some(sum) => assert!(sum.add(&step)),
                None => total = Some(step),
            }
            let epsilon = least_epsilon(total.as_ref().expect("a curve"), Conversion::Exact, delta);
            if i == 0 {
                total = None;
            }
            epsilon
        });
    });
    c.bench_function("calibrate/noise/epsilon=3/delta=1e-5/steps=14062/q=256_of_60000", |b| {
        let target = Target::EpsilonDelta(Epsilon::new(3.0).expect("epsilon"), delta);
        b.iter(|| least_noise(target, |noise| Ok(cost(256.0 / 60_000.0, noise).repeat(14_062)?)));
    });
}

criterion_group!(all, benches);
criterion_main!(all);
