//! Odometers: how much privacy was lost so far, whatever was asked and whenever one looks.

use super::{Account, Dataset};
use paygo_accounting::charge::{Currency, Sums};
use paygo_accounting::filter::Rule;
use paygo_accounting::odometer::{Boundary, VilleMixture};
use paygo_accounting::params::{Delta, Epsilon};
use paygo_numeric::Amount;
use paygo_numeric::rounding::mul_up;

/// A bound on what was lost: with probability at least 1 − δ, in each direction, the privacy loss never passes ε, at any moment. It is
/// not (ε, δ)-DP, because ε is itself random (E5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// ε, rounded up.
    pub epsilon: Epsilon,
    /// δ: the odometer's, and the part that is set aside for steps with a δ of their own.
    pub delta: Delta,
}

impl Dataset {
    /// The odometer of one of its accounts, read at the dataset's `reading_delta`.
    ///
    /// # Theorem
    /// The sums are read by a Ville mixture over the rule's own orders and weights (T18c): with probability at least 1 − δ the
    /// privacy loss is within the reading at every moment. Sums of ρ bound the Rényi divergence at order α by αρ, those of μ² by
    /// αμ²/2 (T8, T40), and pure sums by the sum of ε at every order. Steps with a δ of their own add the part of δ that the rule
    /// sets aside for them, all of it, since how much of it is used is chosen along the way (Part 2.3).
    ///
    /// # Soundness
    /// Rounded up throughout; +∞ where no order is known.
    #[must_use]
    pub fn reading(&self, account: &Account) -> Reading {
        let (rule, sums) = (account.filter().rule(), &account.filter().charged());
        let delta = Delta::new(self.reading_delta()).unwrap_or(Delta::ONE);
        let total = delta + Delta::from_upper_bound(rule.slack().to_f64_up());
        let epsilon = VilleMixture::new(delta, rule.prior()).ok().and_then(|boundary| {
            let lanes = renyi(rule.currency(), boundary.currency(), sums)?;
            let value = boundary.value(&Sums::from_stored(boundary.currency(), lanes, Amount::ZERO)?);
            Some(Epsilon::from_upper_bound(value))
        });
        Reading { epsilon: epsilon.unwrap_or(Epsilon::INFINITE), delta: total }
    }
}

/// Sums in some currency as sums of Rényi divergences at a boundary's orders; `None` where there is no way.
fn renyi(currency: &Currency, boundary: &Currency, sums: &Sums) -> Option<Vec<Amount>> {
    let Currency::Renyi(orders) = boundary else { return None };
    // ROUNDING: up. At order ∞ a sum of ρ says nothing.
    let times = |amount: Amount, order: f64| Amount::from_f64_up(mul_up(amount.to_f64_up(), order));
    let orders = orders.as_slice().iter().map(|order| order.get());
    match (currency, sums.lanes()) {
        (Currency::Renyi(_), lanes) => (currency == boundary).then(|| lanes.to_vec()),
        (Currency::Rho, [rho]) => Some(orders.map(|order| times(*rho, order)).collect()),
        (Currency::MuSquared, [square]) => Some(orders.map(|order| times(square.shared_by_up(2), order)).collect()),
        (Currency::Pure, [epsilon, rho]) => Some(orders.map(|order| times(*rho, order).min(*epsilon)).collect()),
        // Beside what was paid on a clock are the divergences.
        (Currency::Clock(reference, kept), lanes) => {
            (Currency::Renyi(kept.clone()) == *boundary).then(|| lanes[reference.coins()..].to_vec())
        }
        (Currency::Rho | Currency::MuSquared | Currency::Pure | Currency::Pointwise, _) => None,
    }
}
