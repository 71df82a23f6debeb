//! Published rules as they are printed. Every one of them fails; see the errata in `docs/theory/10-errata.md`.
//!
//! They exist so that the audit can convict them and reproductions can show the printed numbers. They make no
//! [`paygo_accounting::filter::Permit`] and implement none of the traits of the shipped filters and odometers.

use crate::adversary::Step;
use paygo_accounting::convert::Conversion;
use paygo_accounting::cost::Cost;
use paygo_accounting::curve::Orders;
use paygo_accounting::params::{Delta, Divergence, Epsilon, Neighbors, Order};
use paygo_numeric::elementary::ln;

/// An odometer that is printed somewhere.
#[derive(Clone, Debug)]
pub enum LiteralOdometer {
    /// \[L\] 4.4 (E2): compares the sum with level *plus* tail.
    Doubling {
        /// The orders.
        orders: Orders,
        /// δ.
        delta: f64,
    },
    /// \[W\] (E6): the stitched boundary without the drift V/2.
    Stitched {
        /// δ.
        delta: f64,
    },
    /// \[W\] (E6): the mixture boundary without the drift V/2.
    Mixture {
        /// δ.
        delta: f64,
        /// The precision.
        precision: f64,
    },
    /// An ordinary zCDP accountant, read at a moment of one's choice (E19).
    NaiveZcdp {
        /// δ.
        delta: f64,
    },
    /// An ordinary Rényi accountant, its order chosen anew at every reading (E19).
    NaiveRenyi {
        /// The orders.
        orders: Orders,
        /// δ.
        delta: f64,
    },
}

impl LiteralOdometer {
    /// Its name: what it is, and that it is unsound.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Doubling { .. } => "doubling_literal_unsound",
            Self::Stitched { .. } => "stitched_literal_unsound",
            Self::Mixture { .. } => "mixture_literal_unsound",
            Self::NaiveZcdp { .. } => "zcdp_accountant_as_odometer_unsound",
            Self::NaiveRenyi { .. } => "renyi_accountant_as_odometer_unsound",
        }
    }

    /// The orders it adds up.
    fn orders(&self) -> &[Order] {
        match self {
            Self::Doubling { orders, .. } | Self::NaiveRenyi { orders, .. } => orders.as_slice(),
            Self::Stitched { .. } | Self::Mixture { .. } | Self::NaiveZcdp { .. } => &[],
        }
    }

    /// The reading of these sums. `first` is the first variance.
    #[must_use]
    pub fn value(&self, renyi: &[f64], variance: f64, first: f64) -> f64 {
        match self {
            Self::Doubling { orders, delta } => {
                #[expect(clippy::cast_precision_loss, reason = "a handful of orders")]
                let log = ln(2.0 * orders.as_slice().len() as f64 / delta);
                let each = orders.as_slice().iter().zip(renyi).map(|(order, sum)| {
                    let slope = order.get() - 1.0;
                    let bound = |f: i32| 2f64.powi(f - 1) * log / slope + (log + 2.0 * ln(f64::from(f))) / slope;
                    (1..400).map(bound).find(|&bound| *sum <= bound).unwrap_or(f64::INFINITY)
                });
                each.fold(f64::INFINITY, f64::min)
            }
            Self::Stitched { delta } if variance > 0.0 => {
                1.7 * (variance * (ln(ln(2.0 * variance / first)) + 0.72 * ln(5.2 / delta))).sqrt()
            }
            Self::Stitched { .. } => 0.0,
            Self::Mixture { delta, precision } => {
                let ratio = (variance + precision) / precision;
                (2.0 * (variance + precision) * ln(ratio.sqrt() / (2.0 * delta) + 1.0)).sqrt()
            }
            Self::NaiveZcdp { delta } => {
                let rho = 0.5 * variance;
                rho + 2.0 * (rho * -ln(*delta)).sqrt()
            }
            Self::NaiveRenyi { orders, delta } => {
                let each =
                    orders.as_slice().iter().zip(renyi).map(|(order, sum)| sum - ln(*delta) / (order.get() - 1.0));
                each.fold(f64::INFINITY, f64::min)
            }
        }
    }
}

/// A literal odometer and its sums.
#[derive(Clone, Debug)]
pub struct LiteralReading {
    odometer: LiteralOdometer,
    renyi: Vec<f64>,
    variance: f64,
    first: f64,
}

impl LiteralReading {
    /// Nothing observed yet.
    #[must_use]
    pub fn new(odometer: LiteralOdometer) -> Self {
        let renyi = vec![0.0; odometer.orders().len()];
        Self { odometer, renyi, variance: 0.0, first: 0.0 }
    }

    /// Adds a step.
    pub fn observe(&mut self, step: &Step) {
        self.variance += step.variance();
        if self.first == 0.0 {
            self.first = step.variance();
        }
        if self.renyi.is_empty() {
            return;
        }
        if let Some(cost) = step.mechanism().and_then(|m| Cost::of(&m, Neighbors::AddRemove).ok()) {
            for (sum, order) in self.renyi.iter_mut().zip(self.odometer.orders()) {
                *sum += cost.renyi(*order).get();
            }
        }
    }

    /// What it reads.
    #[must_use]
    pub fn reading(&self) -> f64 {
        self.odometer.value(&self.renyi, self.variance, self.first)
    }
}

/// \[L\] Corollary 1 (E4): admits while *some* order is within the budget that it alone would have, the whole of δ each.
#[derive(Clone, Debug)]
pub struct CurveFilter {
    orders: Orders,
    budgets: Vec<Option<Divergence>>,
    sums: Vec<f64>,
}

impl CurveFilter {
    /// Budgets for (ε, δ) by a conversion, at each order with the whole of δ.
    #[must_use]
    pub fn new(orders: Orders, conversion: Conversion, epsilon: Epsilon, delta: Delta) -> Self {
        let budgets = orders.as_slice().iter().map(|&order| conversion.budget(order, epsilon, delta)).collect();
        let sums = vec![0.0; orders.as_slice().len()];
        Self { orders, budgets, sums }
    }

    /// The orders.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// What the printed rule would say; a bool, and no permit.
    pub fn would_admit(&mut self, cost: &Cost) -> bool {
        let next: Vec<f64> =
            self.sums.iter().zip(self.orders.as_slice()).map(|(sum, &order)| sum + cost.renyi(order).get()).collect();
        let admitted =
            next.iter().zip(&self.budgets).any(|(sum, budget)| budget.is_some_and(|budget| *sum <= budget.get()));
        if admitted {
            self.sums = next;
        }
        admitted
    }
}
