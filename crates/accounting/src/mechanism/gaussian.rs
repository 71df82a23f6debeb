//! Gaussian noise.

use super::Family;
use crate::cost::Bound;
use crate::loss::Pair;
use crate::params::{Count, Divergence, Mu, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho, Scale};
use crate::wire::{Number, renamed};
use paygo_numeric::rounding::div_down;
use paygo_numeric::{Amount, Interval};
use serde::{Deserialize, Serialize};

/// Gaussian noise of `noise_multiplier` times the ℓ2 sensitivity.
///
/// *Discrete* Gaussian noise has the same ρ (T52) but not the same μ or profile: declare it as `zcdp`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Gaussian {
    /// Noise over sensitivity.
    pub noise_multiplier: NoiseMultiplier,
}

impl Gaussian {
    /// Noise of `noise_multiplier` times the ℓ2 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not positive and finite.
    pub fn new(noise_multiplier: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { noise_multiplier: NoiseMultiplier::new(noise_multiplier)? })
    }

    /// `n/(2s²)`: the ρ of `n` of them, rounded up once, so that a hundred of noise 10 are 1/2 and not a hair more.
    pub(crate) fn rho_sum(&self, count: Count) -> Bound {
        self.over_variance(count, 2)
    }

    /// `n/(k·s²)`, rounded up once.
    fn over_variance(&self, count: Count, k: u32) -> Bound {
        let s = self.noise_multiplier.get();
        let float = (Interval::point(count.to_f64()) / (Interval::point(s).square() * f64::from(k))).hi();
        Bound { float, amount: Amount::inverse_square_up(count.get(), k, s).unwrap_or(Amount::from_f64_up(float)) }
    }
}

impl Family for Gaussian {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    /// `D_α = α/(2s²)`; exact at every order (T5).
    fn renyi(&self, order: Order) -> Divergence {
        let s = Interval::point(self.noise_multiplier.get());
        Divergence::from_upper_bound((Interval::point(order.get()) / (s.square() * 2.0)).hi())
    }

    /// `ρ = 1/(2s²)` (T5). Source: Bun and Steinke, arXiv:1605.02065, Proposition 1.6.
    fn rho(&self) -> Option<Rho> {
        Some(Rho::from_upper_bound(self.rho_sum(Count::ONE).float))
    }

    fn rho_of(&self, count: Count) -> Option<Bound> {
        Some(self.rho_sum(count))
    }

    /// `μ = 1/s` (T5). Source: Dong, Roth, Su, arXiv:1905.02383, Theorem 1.
    fn mu(&self) -> Option<Mu> {
        Some(Mu::from_upper_bound((Interval::ONE / Interval::point(self.noise_multiplier.get())).hi()))
    }

    fn mu_squared_of(&self, count: Count) -> Option<Bound> {
        let sum = self.over_variance(count, 1);
        Some(Bound::either(sum.float, sum.amount))
    }

    fn attains_its_pair(&self) -> bool {
        true
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::Sampled { q: 1.0, s: self.noise_multiplier.get() })
    }
}

/// A mechanism known to be μ-GDP is no easier to tell apart than `N(0,1)` from `N(μ,1)`: `ρ = μ²/2` (T5), rounded up.
#[must_use]
pub fn gdp_rho(mu: Mu) -> Rho {
    Rho::from_upper_bound((Interval::point(mu.get()).square() * 0.5).hi())
}

/// A `noise_multiplier`, or a `noise_std` and an `l2_sensitivity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "AsWritten")]
pub struct GaussianFields {
    /// Noise over sensitivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<Number>,
    /// Standard deviation in the query's units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<Number>,
    /// ℓ2 sensitivity in the query's units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_sensitivity: Option<Number>,
}

/// What may be written, before it is known to say the noise in exactly one way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AsWritten {
    noise_multiplier: Option<Number>,
    noise_std: Option<Number>,
    l2_sensitivity: Option<Number>,
}

impl TryFrom<AsWritten> for GaussianFields {
    type Error = &'static str;
    fn try_from(written: AsWritten) -> Result<Self, &'static str> {
        let AsWritten { noise_multiplier, noise_std, l2_sensitivity } = written;
        match (&noise_multiplier, &noise_std, &l2_sensitivity) {
            (Some(_), None, None) | (None, Some(_), Some(_)) => {
                Ok(Self { noise_multiplier, noise_std, l2_sensitivity })
            }
            (None, None, None) => Err("missing field `noise_multiplier`"),
            _ => Err("gaussian takes noise_multiplier, or noise_std with l2_sensitivity"),
        }
    }
}

impl TryFrom<&GaussianFields> for Gaussian {
    type Error = OutOfDomain;
    /// ROUNDING: noise down, sensitivity up.
    fn try_from(fields: &GaussianFields) -> Result<Self, OutOfDomain> {
        let noise_multiplier = match (&fields.noise_multiplier, &fields.noise_std, &fields.l2_sensitivity) {
            (Some(multiplier), _, _) => multiplier.noise()?,
            (None, Some(std), Some(sensitivity)) => {
                let std = Scale::new(std.down("noise_std")?).map_err(renamed("noise_std", "0 < noise_std < inf"))?;
                let sensitivity = Scale::new(sensitivity.up("l2_sensitivity")?)
                    .map_err(renamed("l2_sensitivity", "0 < l2_sensitivity < inf"))?;
                NoiseMultiplier::new(div_down(std.get(), sensitivity.get()))?
            }
            (None, _, _) => {
                let allowed = "noise_multiplier, or noise_std with l2_sensitivity";
                return Err(OutOfDomain::new("noise_multiplier", "nothing", allowed));
            }
        };
        Ok(Self { noise_multiplier })
    }
}

impl From<&Gaussian> for GaussianFields {
    fn from(gaussian: &Gaussian) -> Self {
        let noise_multiplier = Some(gaussian.noise_multiplier.into());
        Self { noise_multiplier, noise_std: None, l2_sensitivity: None }
    }
}
