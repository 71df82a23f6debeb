//! Gaussian noise, and the two currencies that are made of it: zCDP and GDP.

use crate::params::{Count, Mu, NoiseMultiplier, Order, Rho};
use paygo_numeric::Interval;

/// Gaussian noise of `noise_multiplier` times the ℓ2 sensitivity.
///
/// *Discrete* Gaussian noise has the same ρ (T52) but not the same μ or profile: declare it as `zcdp`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Gaussian {
    /// Noise over sensitivity.
    pub noise_multiplier: NoiseMultiplier,
}

impl Gaussian {
    /// `n/(2s²)`: the ρ of `n` of them, rounded up once.
    #[must_use]
    pub fn rho_of(&self, count: Count) -> Rho {
        let s = Interval::point(self.noise_multiplier.get());
        Rho::from_upper_bound((Interval::point(count.to_f64()) / (s.square() * 2.0)).hi())
    }

    /// `ρ = 1/(2s²)`, rounded up (T5). Source: Bun and Steinke, arXiv:1605.02065, Proposition 1.6.
    #[must_use]
    pub fn rho(&self) -> Rho {
        self.rho_of(Count::ONE)
    }

    /// `μ = 1/s`, rounded up (T5). Source: Dong, Roth, Su, arXiv:1905.02383, Theorem 1.
    #[must_use]
    pub fn mu(&self) -> Mu {
        Mu::from_upper_bound((Interval::ONE / Interval::point(self.noise_multiplier.get())).hi())
    }

    /// `D_α = α/(2s²)`, rounded up; exact at every order (T5).
    #[must_use]
    pub fn renyi(&self, order: Order) -> f64 {
        let s = Interval::point(self.noise_multiplier.get());
        (Interval::point(order.get()) / (s.square() * 2.0)).hi()
    }
}

/// A mechanism known to be ρ-zCDP: `D_α ≤ α·ρ` at every order (T8).
#[must_use]
pub fn zcdp_renyi(rho: Rho, order: Order) -> f64 {
    (Interval::point(rho.get()) * order.get()).hi()
}

/// A mechanism known to be μ-GDP is no easier to tell apart than `N(0,1)` from `N(μ,1)`: `ρ = μ²/2` (T5), rounded up.
#[must_use]
pub fn gdp_rho(mu: Mu) -> Rho {
    Rho::from_upper_bound((Interval::point(mu.get()).square() * 0.5).hi())
}
