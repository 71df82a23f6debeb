//! Decisions a second on known charges, one core.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paygo::accounting::cost::Cost;
use paygo::accounting::curve::Orders;
use paygo::accounting::filter::{AnyRule, Budget, Filter, FixedOrder, Gdp, Mixture, Pure, Union, Zcdp};
use paygo::accounting::mechanism::Mechanism;
use paygo::accounting::odometer::{Odometer, VilleMixture};
use paygo::accounting::params::{Delta, Neighbors, Order};
use paygo::accounting::prior::Prior;
use std::hint::black_box;

const DECISIONS: u64 = 10_000;

fn budget() -> Budget {
    Budget::from_decimal("8", "1e-6").expect("a budget")
}

/// 64 orders, log-spaced.
fn many() -> Prior {
    let orders: Vec<f64> = (0..64).map(|k| 1.0 + 0.25 * 1.14f64.powi(k)).collect();
    Prior::uniform(Orders::from_f64(&orders).expect("orders")).expect("a prior")
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("admit");
    group.throughput(Throughput::Elements(DECISIONS));
    let order = Order::new(8.0).expect("an order");
    let rules: [(&str, AnyRule); 6] = [
        ("fixed-order", FixedOrder::new(order, budget()).expect("a rule").into()),
        ("zcdp", Zcdp::new(budget()).expect("a rule").into()),
        ("gdp", Gdp::new(budget()).expect("a rule").into()),
        (
            "union/orders=64",
            Union::over(budget(), many(), paygo::accounting::convert::Conversion::Cks).expect("r").into(),
        ),
        ("mixture/orders=64", Mixture::over(budget(), many()).expect("a rule").into()),
        ("mixture/default", Mixture::new(budget()).expect("a rule").into()),
    ];
    let step = Cost::of(&Mechanism::gaussian(2000.0).expect("noise"), Neighbors::AddRemove).expect("a cost");
    for (name, rule) in rules {
        let filter = Filter::new(rule, Neighbors::AddRemove);
        let charge = filter.price(&step).expect("a price");
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_batched(
                || filter.clone(),
                |mut filter| {
                    for _ in 0..DECISIONS {
                        assert!(filter.admit(black_box(&charge)).is_admitted());
                    }
                    filter
                },
                BatchSize::SmallInput,
            );
        });
    }
    let filter = Filter::new(Pure::new(budget()).expect("a rule"), Neighbors::AddRemove);
    let step = Cost::of(&Mechanism::pure(1e-4).expect("an epsilon"), Neighbors::AddRemove).expect("a cost");
    let charge = filter.price(&step).expect("a price");
    group.bench_function("pure", |b| {
        b.iter_batched(
            || filter.clone(),
            |mut filter| (0..DECISIONS).filter(|_| filter.admit(black_box(&charge)).is_admitted()).count(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// At the edge the full test decides.
fn edge(c: &mut Criterion) {
    let mut filter = Filter::new(Mixture::new(budget()).expect("a rule"), Neighbors::AddRemove);
    let step = Cost::of(&Mechanism::gaussian(20.0).expect("noise"), Neighbors::AddRemove).expect("a cost");
    let charge = filter.price(&step).expect("a price");
    while filter.admit(&charge).is_admitted() {}
    c.bench_function("mixture at the edge/would it fit", |b| b.iter(|| filter.room_for(black_box(&charge), 1)));

    let boundary = VilleMixture::new(Delta::new(1e-6).expect("a delta"), Prior::log_spaced()).expect("a boundary");
    let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
    let charge = odometer.price(&step).expect("a price");
    c.bench_function("ville-mixture/observe and read", |b| {
        b.iter(|| {
            odometer.observe(black_box(&charge)).expect("observed");
            odometer.reading()
        });
    });
    let sampled = Mechanism::poisson_sampled_gaussian(0.01, 1.1).expect("q");
    let sampled = Cost::of(&sampled, Neighbors::AddRemove).expect("a cost");
    c.bench_function("mixture/price a sampled Gaussian", |b| b.iter(|| filter.price(black_box(&sampled))));
}

criterion_group!(benches, decisions, edge);
criterion_main!(benches);
