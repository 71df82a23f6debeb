//! Odometers from Ville's inequality.

use super::{Boundary, Kind};
use crate::charge::{Currency, Sums};
use crate::curve::Orders;
use crate::params::{Delta, Order, OutOfDomain};
use crate::prior::{Mixed, Prior};
use crate::wire::{FilterError, OdometerWords};
use paygo_numeric::Interval;
use std::sync::Arc;

/// δ of an odometer: above 0, since only certain bounds hold with probability 1.
pub(super) fn positive(delta: Delta) -> Result<Delta, OutOfDomain> {
    if Delta::ZERO < delta && delta < Delta::ONE {
        Ok(delta)
    } else {
        Err(OutOfDomain::new("delta", delta, "0 < delta < 1"))
    }
}

/// `S + ln(1/δ)/(α−1)`, rounded up.
pub(super) fn tail(sum: f64, delta: Delta, order: Order) -> f64 {
    if order.get() == f64::INFINITY {
        return sum; // The loss never passes it.
    }
    (Interval::point(sum) - Interval::point(delta.get()).ln() / (Interval::point(order.get()) - 1.0)).hi()
}

/// At one order, fixed in advance: `S(α) + ln(1/δ)/(α−1)`.
///
/// # Theorem
/// `exp((α−1)(L − S(α)))` is a supermartingale of mean at most 1, so it ever reaches 1/δ with probability at most δ (Ville's
/// inequality; T18a). No price for reading at every moment: it is the classic conversion of one order, made good for all times.
///
/// # Preconditions
/// The order was fixed before the first output.
///
/// # Tightness
/// The best there is where the work suits the order; \[L\]'s remark that orders cannot be re-chosen applies to the others.
#[derive(Clone, Debug, PartialEq)]
pub struct VilleFixed {
    order: Order,
    delta: Delta,
    currency: Arc<Currency>,
}

impl VilleFixed {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1.
    pub fn new(order: Order, delta: Delta) -> Result<Self, OutOfDomain> {
        let currency = Arc::new(Currency::Renyi(Orders::new(vec![order])?));
        Ok(Self { order, delta: positive(delta)?, currency })
    }

    /// The order.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }
}

impl Boundary for VilleFixed {
    fn word(&self) -> &'static str {
        "ville-fixed"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn value(&self, sums: &Sums) -> f64 {
        tail(sums.lanes()[0].to_f64_up(), self.delta, self.order)
    }
}

macro_rules! over_a_prior {
    ($name:ident) => {
        impl $name {
            /// Orders and weights, fixed in advance.
            #[must_use]
            pub const fn prior(&self) -> &Prior {
                &self.prior
            }
        }
    };
}

/// The least over the orders of `S(α) + ln(1/(w_α·δ))/(α−1)`.
///
/// # Theorem
/// [`VilleFixed`] at each order with its share of δ; all hold at once with probability 1 − δ (T18b). At order ∞, if it is
/// kept, the sum itself bounds the loss with certainty.
///
/// # Preconditions
/// Orders and weights were fixed before the first output.
///
/// # Tightness
/// Never above [`super::Doubling`] with the same orders; never below [`VilleMixture`] with the same weights.
#[derive(Clone, Debug, PartialEq)]
pub struct VilleUnion {
    prior: Prior,
    delta: Delta,
    currency: Arc<Currency>,
}

impl VilleUnion {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1.
    pub fn new(delta: Delta, prior: Prior) -> Result<Self, OutOfDomain> {
        let currency = Arc::new(Currency::Renyi(prior.orders().clone()));
        Ok(Self { prior, delta: positive(delta)?, currency })
    }
}

over_a_prior!(VilleUnion);

impl Boundary for VilleUnion {
    fn word(&self) -> &'static str {
        "ville-union"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn value(&self, sums: &Sums) -> f64 {
        let orders = self.prior.orders().as_slice().iter().zip(sums.lanes()).take(self.prior.weights().len());
        let each =
            orders.enumerate().map(|(i, (&order, sum))| tail(sum.to_f64_up(), self.prior.share(i, self.delta), order));
        each.fold(self.prior.pure_sum(sums.lanes()).to_f64_up(), f64::min)
    }
}

/// The least `u` with `Σ_α w_α·e^{(α−1)(u−S(α))} ≥ 1/δ`: the default.
///
/// # Theorem
/// The weighted sum of the supermartingales of all orders is one too, so Ville's inequality holds for it (T18c): nothing
/// is paid for looking at every moment, and little for not knowing the order. At order ∞, if it is kept, the sum itself
/// bounds the loss with certainty.
///
/// # Preconditions
/// Orders and weights were fixed before the first output.
///
/// # Soundness
/// The root is certified from above ([`crate::prior`]).
///
/// # Tightness
/// At most [`VilleUnion`] with the same weights, hence at most [`super::Doubling`] with the same orders. Against an
/// adversary that chases the boundary, it is crossed with almost the whole of δ (`paygo audit`).
#[derive(Clone, Debug, PartialEq)]
pub struct VilleMixture {
    prior: Prior,
    delta: Delta,
    currency: Arc<Currency>,
    mixed: Mixed,
}

impl VilleMixture {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1.
    pub fn new(delta: Delta, prior: Prior) -> Result<Self, OutOfDomain> {
        let delta = positive(delta)?;
        let currency = Arc::new(Currency::Renyi(prior.orders().clone()));
        Ok(Self { mixed: Mixed::new(&prior, delta, |_| true), prior, delta, currency })
    }
}

over_a_prior!(VilleMixture);

impl Boundary for VilleMixture {
    fn word(&self) -> &'static str {
        "ville-mixture"
    }

    fn currency(&self) -> &Arc<Currency> {
        &self.currency
    }

    fn delta(&self) -> Delta {
        self.delta
    }

    fn value(&self, sums: &Sums) -> f64 {
        self.mixed.tail(sums.lanes()).min(self.prior.pure_sum(sums.lanes()).to_f64_up())
    }
}

impl Kind for VilleFixed {
    const TAKES: &'static [&'static str] = &["order"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        let delta = words.delta()?;
        Ok(Self::new(words.order_words().order(words.target()?, delta)?, delta)?)
    }
}

impl Kind for VilleUnion {
    const TAKES: &'static [&'static str] = &["orders", "weights", "plan"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        Ok(Self::new(words.delta()?, words.prior()?)?)
    }
}

impl Kind for VilleMixture {
    const TAKES: &'static [&'static str] = &["orders", "weights", "plan"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        Ok(Self::new(words.delta()?, words.prior()?)?)
    }
}
