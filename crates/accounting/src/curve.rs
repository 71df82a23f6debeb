//! Rényi curves: an upper bound on `D_α` at chosen orders, and what may be said between them.
//!
//! `(α−1)·D_α` is convex in α and zero at 1 (T4). Between two known orders it therefore lies below the chord; below the
//! smallest known order it lies below the chord to 1, which says `D_α ≤ D_smallest`. Beyond the largest nothing is
//! known, and nothing is claimed.

use crate::params::{Divergence, Order, OutOfDomain};
use paygo_numeric::Interval;

/// Orders in strictly increasing order, at least one.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Orders(Vec<Order>);

impl Orders {
    /// Checks that there is at least one order and that they strictly increase.
    ///
    /// # Errors
    /// [`OutOfDomain`] when they do not.
    pub fn new(orders: Vec<Order>) -> Result<Self, OutOfDomain> {
        const ALLOWED: &str = "at least one order, strictly increasing";
        if orders.is_empty() {
            return Err(OutOfDomain::new("orders", "[]", ALLOWED));
        }
        match orders.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(OutOfDomain::new("orders", format!("[…, {}, {}, …]", pair[0], pair[1]), ALLOWED)),
            None => Ok(Self(orders)),
        }
    }

    /// Checks plain numbers as [`Orders::new`] does.
    ///
    /// # Errors
    /// [`OutOfDomain`] when one is not an order or they do not strictly increase.
    pub fn from_f64(orders: &[f64]) -> Result<Self, OutOfDomain> {
        Self::new(orders.iter().map(|&order| Order::new(order)).collect::<Result<_, _>>()?)
    }

    /// The orders that suit most work: quarters near 1, every integer to 64, then steps of at most a half up to 1024.
    #[must_use]
    pub fn standard() -> Self {
        let low = [1.125, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5];
        let high = [80.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 768.0, 1024.0];
        let all = low.into_iter().chain((4..=64).map(f64::from)).chain(high);
        Self(all.map(|order| Order::new(order).expect("above 1")).collect())
    }

    /// These and others, in order.
    #[must_use]
    pub(crate) fn with(mut self, others: impl IntoIterator<Item = Order>) -> Self {
        self.0.extend(others);
        self.0.sort_by(|a, b| a.get().total_cmp(&b.get()));
        self.0.dedup();
        self
    }

    /// The orders.
    #[must_use]
    pub fn as_slice(&self) -> &[Order] {
        &self.0
    }
}

/// An upper bound on the Rényi divergence at each of some orders.
///
/// ```
/// use paygo_accounting::curve::{Orders, RenyiCurve};
/// use paygo_accounting::params::Order;
/// let curve = RenyiCurve::new(Orders::from_f64(&[2.0, 4.0])?, vec![0.1, 0.2])?;
/// assert!(curve.at(Order::new(3.0)?).get() >= (0.1 + 3.0 * 0.2) / 2.0 / 2.0); // the chord of (α−1)·D
/// assert_eq!(curve.at(Order::new(4.5)?).get(), f64::INFINITY); // never beyond the largest
/// # Ok::<(), paygo_accounting::params::OutOfDomain>(())
/// ```
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct RenyiCurve {
    orders: Orders,
    values: Vec<Divergence>,
}

impl RenyiCurve {
    /// A curve from values that someone vouches for: one above zero for each order (a divergence of zero at one order
    /// means that the mechanism does nothing, so a zero here is an underflow).
    ///
    /// # Errors
    /// [`OutOfDomain`] when their number differs or one is NaN, zero or negative.
    pub fn new(orders: Orders, values: Vec<f64>) -> Result<Self, OutOfDomain> {
        if values.len() != orders.0.len() {
            let given = format!("{} for {} orders", values.len(), orders.0.len());
            return Err(OutOfDomain::new("number of values", given, "one value for each order"));
        }
        match values.iter().find(|&&value| value.is_nan() || value <= 0.0) {
            Some(bad) => Err(OutOfDomain::new("values", bad, "0 < value <= inf")),
            None => Ok(Self { orders, values: values.into_iter().map(Divergence::from_upper_bound).collect() }),
        }
    }

    /// A curve from bounds that paygo computed, one for each order.
    pub(crate) const fn from_bounds(orders: Orders, values: Vec<Divergence>) -> Self {
        Self { orders, values }
    }

    /// The orders.
    #[must_use]
    pub const fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The value at each order.
    #[must_use]
    pub fn values(&self) -> &[Divergence] {
        &self.values
    }

    /// Order and value, pair by pair.
    pub fn points(&self) -> impl Iterator<Item = (Order, Divergence)> + '_ {
        self.orders.0.iter().copied().zip(self.values.iter().copied())
    }

    /// An upper bound at any order: the stored value, the chord of `(α−1)·D` between two, `D` of the smallest order
    /// below it, +∞ beyond the largest (T4). Rounded up.
    #[must_use]
    pub fn at(&self, order: Order) -> Divergence {
        let above = self.orders.0.partition_point(|&stored| stored < order);
        let Some(&right) = self.orders.0.get(above) else { return Divergence::INFINITE };
        if right == order || above == 0 {
            return self.values[above];
        }
        let left = self.orders.0[above - 1];
        if right.get() == f64::INFINITY {
            return self.values[above]; // D rises: the max divergence bounds every order below.
        }
        let (a, b) = (Interval::point(left.get()), Interval::point(right.get()));
        let x = Interval::point(order.get());
        let (u, v) = ((a - 1.0) * self.values[above - 1].get(), (b - 1.0) * self.values[above].get());
        let chord = (u * (b - x) + v * (x - a)) / (b - a) / (x - 1.0);
        Divergence::from_upper_bound(chord.hi()).least(self.values[above])
    }

    /// Composition: adds the other's value at each order, rounded up; false, and nothing changed, when the orders differ.
    #[must_use]
    pub fn add(&mut self, other: &Self) -> bool {
        if self.orders != other.orders {
            return false;
        }
        for (total, value) in self.values.iter_mut().zip(&other.values) {
            *total = *total + *value;
        }
        true
    }
}

/// A bound on `(α−1)·D_α` at a real order from bounds at the integers around it: their chord (T4), rounded up.
pub(crate) fn chord_between_integers(order: f64, mut moment: impl FnMut(f64) -> f64) -> f64 {
    let below = order.floor();
    let mut at = |n: f64| if n <= 1.0 { 0.0 } else { moment(n) };
    let share = Interval::point(order) - below;
    if share == Interval::ZERO {
        return at(order);
    }
    let (left, right) = (Interval::point(at(below)), Interval::point(at(below + 1.0)));
    (left * (Interval::ONE - share) + right * share).hi()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(a: f64) -> Order {
        Order::new(a).expect("an order")
    }

    #[test]
    fn between_orders_the_chord_beyond_them_nothing() {
        let curve =
            RenyiCurve::new(Orders::from_f64(&[2.0, 4.0, 8.0]).expect("orders"), vec![0.2, 0.4, 0.8]).expect("curve");
        // A Gaussian of ρ = 0.1: the chord of (α−1)·α·ρ at 3 is ρ·(2 + 12)/2/2 = 3.5·ρ, above the true 3·ρ.
        let at = |a: f64| curve.at(order(a)).get();
        assert!((at(3.0) - 0.35).abs() < 1e-15 && at(3.0) >= 0.35);
        assert_eq!((at(1.5), at(4.0), at(8.0f64.next_up())), (0.2, 0.4, f64::INFINITY));
    }

    #[test]
    fn bad_orders_and_values() {
        assert!(Orders::new(vec![]).is_err());
        assert!(Orders::from_f64(&[2.0, 2.0]).is_err() && Orders::from_f64(&[3.0, 2.0]).is_err());
        let orders = Orders::from_f64(&[2.0]).expect("orders");
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(RenyiCurve::new(orders.clone(), vec![bad]).is_err());
        }
        assert!(RenyiCurve::new(orders, vec![]).is_err());
        assert!(Orders::standard().as_slice().len() > 60);
    }
}
