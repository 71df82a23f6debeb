//! Numbers from the papers that are not bounds, kept where they can do no harm.
//!
//! [`Estimate`] wraps them. No constructor of [`crate::cost::Cost`] and no conversion accepts one, so handing an estimate
//! to anything that decides does not compile.

use crate::convert::{Conversion, limited::limited_order_epsilon, zcdp};
use crate::params::{Count, Delta, Epsilon, NoiseMultiplier, Order, Rho, SamplingProbability};
use paygo_numeric::elementary::ln;

/// A number that is not a bound.
///
/// ```compile_fail
/// use paygo_accounting::{estimate, mechanism::Zcdp, params::{NoiseMultiplier, SamplingProbability}};
/// let q = SamplingProbability::new(0.01).unwrap();
/// let rho = estimate::abadi_rho(q, NoiseMultiplier::new(4.0).unwrap());
/// let cost = Zcdp { rho }; // expected `Rho`, found `Estimate<Rho>`
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate<T>(T);

impl<T: Copy> Estimate<T> {
    /// The number, to be shown beside the word "estimate".
    pub const fn for_display(&self) -> T {
        self.0
    }
}

impl<T: std::fmt::Display> std::fmt::Display for Estimate<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (estimate)", self.0)
    }
}

/// A conjectured `D_α ≤ α·ρ` up to some order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitedRho {
    /// The conjectured ρ.
    pub rho: Rho,
    /// The largest order for which it was conjectured.
    pub largest_order: Order,
}

/// \[Y\]'s conjecture for a Poisson-sampled Gaussian: `ρ = q²/σ²` up to order `σ²·ln(1/(qσ)) + 1` (T29). **False** (E11):
/// at σ = 1, q = 0.046, α = 4 the true divergence is 1.116 times as large. `None` outside the conjecture's range,
/// `q ≤ 1/(16σ)`.
#[must_use]
pub fn yu_rho(q: SamplingProbability, noise_multiplier: NoiseMultiplier) -> Option<Estimate<LimitedRho>> {
    let (q, s) = (q.get(), noise_multiplier.get());
    if q == 0.0 || q > 1.0 / (16.0 * s) {
        return None;
    }
    let largest_order = Order::new(s * s * ln(1.0 / (q * s)) + 1.0).ok()?;
    Some(Estimate(LimitedRho { rho: Rho::from_upper_bound(q * q / (s * s)), largest_order }))
}

/// The ε that \[Y\] reports for `steps` of them, by \[Y\] Theorem 3 from [`yu_rho`].
#[must_use]
pub fn yu_epsilon(
    q: SamplingProbability,
    noise_multiplier: NoiseMultiplier,
    steps: Count,
    delta: Delta,
) -> Option<Estimate<Epsilon>> {
    let one = yu_rho(q, noise_multiplier)?.0;
    let rho = Rho::from_upper_bound(one.rho.get() * steps.to_f64());
    Some(Estimate(limited_order_epsilon(rho, one.largest_order, delta).0))
}

/// \[A\] Fig. 3's ρ for a Poisson-sampled Gaussian, `q²/((1−q)σ²)` at every order. **False** (E10): it drops a term and
/// holds only at small orders; at q = 0.001, σ = 4, α = 256 the true divergence is 1.065, not 1.6·10⁻⁵.
#[must_use]
pub fn abadi_rho(q: SamplingProbability, noise_multiplier: NoiseMultiplier) -> Estimate<Rho> {
    let (q, s) = (q.get(), noise_multiplier.get());
    Estimate(Rho::from_upper_bound(q * q / ((1.0 - q) * s * s)))
}

/// The ε that \[A\] Fig. 3 reports for `steps` of them, by Lemma 2 from [`abadi_rho`].
#[must_use]
pub fn abadi_epsilon(
    q: SamplingProbability,
    noise_multiplier: NoiseMultiplier,
    steps: Count,
    delta: Delta,
) -> Estimate<Epsilon> {
    let rho = Rho::from_upper_bound(abadi_rho(q, noise_multiplier).0.get() * steps.to_f64());
    Estimate(zcdp::epsilon(Conversion::Lemma1, rho, delta).0)
}

/// \[A\] Theorem 5 without its O(·) term: a noise multiplier for `steps` Gaussians to be about (ε, δ)-DP. `None` where the
/// expression is not positive or its condition `ε > 2δ·ln(1/δ)` fails.
#[must_use]
pub fn theorem5_noise(epsilon: Epsilon, delta: Delta, steps: Count) -> Option<Estimate<NoiseMultiplier>> {
    let (e, t, l) = (epsilon.get(), steps.to_f64(), -ln(delta.get()));
    if e <= 2.0 * delta.get() * l {
        return None;
    }
    let variance = 2.0 * t / (e * e) * l + t / e - 2.0 * t / (e * e) * (ln(2.0 * l) + 1.0 - ln(e));
    NoiseMultiplier::new(variance.max(0.0).sqrt()).ok().map(Estimate)
}
