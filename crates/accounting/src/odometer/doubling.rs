//! \[L\]'s doubling odometer, corrected.

use super::ville::positive;
use super::{Boundary, Kind};
use crate::charge::{Currency, Sums};
use crate::curve::Orders;
use crate::params::{Delta, Order, OutOfDomain};
use crate::prior::Prior;
use crate::wire::{FilterError, OdometerWords};
use paygo_numeric::{Amount, Interval};
use std::sync::Arc;

/// The highest level that is looked for; an amount ends long before.
const MAX_LEVELS: u32 = 200;

/// Levels that double: at each order the least level that the sum has not passed, and the tail bound that goes with it.
///
/// # Theorem
/// Let `c_α = ln(2·n/δ)/(α−1)` for each of `n` orders, `f_α` the least `f ≥ 1` with `S(α) ≤ 2^{f−1}·c_α`, the current release
/// included, and `U = min_α 2^{f_α−1}·c_α + ln(2·n·f_α²/δ)/(α−1)`. The loss ever passes `U` with probability at most
/// (π²/12)·δ (T17). The printed text compares the sum with level *plus* tail, which is unsound (E2).
///
/// # Preconditions
/// The orders were fixed before the first output.
///
/// # Soundness
/// The levels are doubles fixed in advance (any `c_α > 0` will do); the rest is rounded up.
///
/// # Tightness
/// Never below [`super::VilleUnion`] or [`super::VilleMixture`] with the same orders. Kept for comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubling {
    orders: Orders,
    delta: Delta,
    currency: Arc<Currency>,
}

/// Where the least bound was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The bound.
    pub value: f64,
    /// At which order.
    pub order: Order,
    /// At which level, from 1.
    pub level: u32,
}

impl Doubling {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, or an order is ∞.
    pub fn new(delta: Delta, orders: Orders) -> Result<Self, OutOfDomain> {
        if orders.as_slice().iter().any(|order| order.get() == f64::INFINITY) {
            return Err(OutOfDomain::new("orders", "inf", "finite orders"));
        }
        let currency = Arc::new(Currency::Renyi(orders.clone()));
        Ok(Self { orders, delta: positive(delta)?, currency })
    }

    /// The orders.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The least bound, and where it was found.
    #[must_use]
    pub fn least(&self, lanes: &[Amount]) -> Option<Level> {
        #[expect(clippy::cast_precision_loss, reason = "a handful of orders")]
        let twice = Interval::point(2.0 * self.orders.as_slice().len() as f64);
        let log = twice.ln() - Interval::point(self.delta.get()).ln();
        let mut least: Option<Level> = None;
        for (&order, sum) in self.orders.as_slice().iter().zip(lanes) {
            let slope = Interval::point(order.get()) - 1.0;
            // ROUNDING: up, once; from here on the first level is this double, and doubling is exact.
            let first = (log / slope).hi();
            let sum = sum.to_f64_up();
            let Some(level) = (1..=MAX_LEVELS).find(|&f| sum <= first * 2f64.powi(f.cast_signed() - 1)) else {
                continue;
            };
            let reached = Interval::point(first * 2f64.powi(level.cast_signed() - 1));
            let value = (reached + (log + Interval::point(f64::from(level)).ln() * 2.0) / slope).hi();
            if least.is_none_or(|least| value < least.value) {
                least = Some(Level { value, order, level });
            }
        }
        least
    }
}

impl Boundary for Doubling {
    fn word(&self) -> &'static str {
        "doubling"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn value(&self, sums: &Sums) -> f64 {
        self.least(sums.lanes()).map_or(f64::INFINITY, |level| level.value)
    }
}

impl Kind for Doubling {
    const TAKES: &'static [&'static str] = &["orders"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        let orders = match words.order_words().orders()? {
            Some(orders) => orders,
            None => Prior::log_spaced().finite_orders(),
        };
        Ok(Self::new(words.delta()?, orders)?)
    }
}
