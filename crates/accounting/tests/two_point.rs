//! The exact conversion, confirmed by brute force over two-point pairs, without its own formula.

#![expect(clippy::disallowed_methods, reason = "an independent reference")]

use paygo_accounting::convert::Conversion;
use paygo_accounting::params::{Delta, Divergence, Epsilon, Order};
use proptest::prelude::*;

/// Rényi divergence of `(p, 1−p)` from `(r, 1−r)`.
fn divergence(a: f64, p: f64, r: f64) -> f64 {
    let terms = [a * p.ln() + (1.0 - a) * r.ln(), a * (1.0 - p).ln() + (1.0 - a) * (1.0 - r).ln()];
    let largest = terms[0].max(terms[1]);
    (largest + terms.iter().map(|t| (t - largest).exp()).sum::<f64>().ln()) / (a - 1.0)
}

/// The largest `ln((p−δ)/r)` over pairs with divergence at most `value`: the ε that some mechanism needs.
fn needed_epsilon(a: f64, value: f64, d: f64) -> f64 {
    let at = |p: f64| {
        // The least r with divergence at most `value`, by bisection in ln r.
        let (mut low, mut high) = ((1e-300f64).ln(), p.ln());
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if divergence(a, p, middle.exp()) > value { low = middle } else { high = middle }
        }
        ((p - d) / high.exp()).ln()
    };
    let mut best = (0.0f64, 0.5);
    // p between δ and 1, on a logistic grid, then finer around the best.
    let (mut center, mut width) = (0.0f64, 40.0f64);
    for _ in 0..12 {
        for i in -40..=40 {
            let u = center + width * f64::from(i) / 40.0;
            let p = d + (1.0 - d) / (1.0 + (-u).exp());
            if p > d && p < 1.0 {
                let epsilon = at(p);
                if epsilon > best.0 {
                    best = (epsilon, u);
                }
            }
        }
        center = best.1;
        width *= 0.15;
    }
    best.0
}

#[test]
fn no_two_point_pair_needs_more_and_one_needs_as_much() {
    for a in [1.2, 1.5, 2.0, 3.0, 8.0, 20.0] {
        for value in [0.02, 0.2, 1.0, 4.0] {
            for d in [1e-2, 1e-4, 1e-6] {
                let order = Order::new(a).expect("order");
                let ours = Conversion::Exact
                    .epsilon(order, Divergence::from_upper_bound(value), Delta::new(d).expect("delta"))
                    .get();
                let needed = needed_epsilon(a, value, d);
                // The search's own error, 10⁻⁷, is far below the gaps between the conversions.
                assert!(ours >= needed - 1e-7, "unsound: α {a} γ {value} δ {d}: {ours} < {needed}");
                assert!(ours <= needed + 1e-6 * needed.max(1.0), "loose: α {a} γ {value} δ {d}: {ours} > {needed}");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_random_pair_keeps_the_promise(
        a in 1.01f64..40.0, p in 1e-6f64..1.0, share in 1e-6f64..1.0, e in 0.0f64..6.0, d in -8i32..-1
    ) {
        let r = p * share;
        prop_assume!(p < 1.0 - 1e-9 && r > 1e-9);
        let (value, delta) = (divergence(a, p, r) * (1.0 + 1e-9), 10f64.powi(d));
        let order = Order::new(a).expect("order");
        // ε from δ: the pair's own hockey stick stays below δ.
        let epsilon = Conversion::Exact.epsilon(order, Divergence::from_upper_bound(value), Delta::new(delta).expect("delta")).get();
        prop_assert!(p - epsilon.exp() * r <= delta * (1.0 + 1e-6) + 1e-12);
        // δ from ε.
        let bound = Conversion::Exact.delta(order, Divergence::from_upper_bound(value), Epsilon::new(e).expect("epsilon")).get();
        prop_assert!(p - e.exp() * r <= bound * (1.0 + 1e-6) + 1e-12);
        // The budget refuses every pair that breaks the promise.
        let budget = Conversion::Exact.budget(order, Epsilon::new(e).expect("epsilon"), Delta::new(delta).expect("delta"));
        let budget = budget.map_or(f64::NEG_INFINITY, Divergence::get);
        prop_assert!(divergence(a, p, r) >= budget * (1.0 - 1e-9) - 1e-12 || p - e.exp() * r <= delta);
    }
}

/// Where `e^{−ε}` leaves the doubles, γ* as it is written, in logarithms, by a fine grid over p.
#[test]
fn the_exact_conversion_is_exact_for_huge_epsilons() {
    let written = |a: f64, e: f64, d: f64| {
        let at = |v: f64| {
            let (above, rest) = ((1.0 - d) / (1.0 + (-v).exp()), (1.0 - d) / (1.0 + v.exp()));
            let p = (above + d).ln();
            let (x, y) = (p + (a - 1.0) * (p - above.ln()), a * rest.ln() - (a - 1.0) * e);
            x.max(y) + (-(x - y).abs()).exp().ln_1p()
        };
        let least = (-4000..4000).map(|i| at(f64::from(i) * 0.01)).fold(f64::INFINITY, f64::min);
        e + least / (a - 1.0)
    };
    for a in [1.0001, 1.001, 1.01, 1.3, 4.0] {
        for value in [650.0, 695.0, 1e3, 1e4, 1e6] {
            for d in [1e-3, 1e-8] {
                let (order, delta) = (Order::new(a).expect("order"), Delta::new(d).expect("delta"));
                let ours = Conversion::Exact.epsilon(order, Divergence::from_upper_bound(value), delta).get();
                if ours < 700.0 {
                    continue;
                }
                assert!(written(a, ours, d) >= value * (1.0 - 1e-9), "unsound: α {a} γ {value} δ {d}: {ours}");
                assert!(written(a, ours * (1.0 - 1e-6), d) <= value, "loose: α {a} γ {value} δ {d}: {ours}");
            }
        }
    }
}
