//! Laplace noise.

use super::Family;
use super::pure::pure_rho;
use crate::cost::Bound;
use crate::loss::Pair;
use crate::params::{Count, Delta, Divergence, Epsilon, Neighbors, Order, OutOfDomain, Rho, Scale};
use crate::wire::{Number, renamed};
use paygo_numeric::rounding::{div_down, mul_up};
use paygo_numeric::sums::log_add_exp;
use paygo_numeric::{Amount, Interval, excess};
use serde::{Deserialize, Serialize};

/// Laplace noise of `scale` times the ℓ1 sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Laplace {
    /// Scale over sensitivity.
    pub scale: Scale,
}

impl Laplace {
    /// Noise of `scale` times the ℓ1 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not positive and finite.
    pub fn new(scale: f64) -> Result<Self, OutOfDomain> {
        Ok(Self { scale: Scale::new(scale)? })
    }

    /// `ε = 1/b`, rounded up.
    #[must_use]
    pub fn epsilon(&self) -> Epsilon {
        Epsilon::from_upper_bound((Interval::ONE / self.scale.get()).hi())
    }
}

impl Family for Laplace {
    fn neighbors(&self) -> &'static [Neighbors] {
        Neighbors::ALL
    }

    /// Rényi divergence of two Laplace laws one unit apart (T6); exact.
    ///
    /// `e^{(α−1)D} = α/(2α−1)·e^{(α−1)/b} + (α−1)/(2α−1)·e^{−α/b}`, whose weights sum to one. Source: Mironov,
    /// arXiv:1702.07476, Proposition 6.
    fn renyi(&self, order: Order) -> Divergence {
        let a = order.get();
        if a == f64::INFINITY {
            return Divergence::from_upper_bound(self.epsilon().get());
        }
        let inverse = Interval::ONE / self.scale.get();
        let b = Interval::point(a) - 1.0;
        let denominator = b * 2.0 + 1.0;
        let (up, down) = (b * inverse, inverse * a);
        // Small losses: moment − 1 = α/(2α−1)·expm1(u) + (α−1)/(2α−1)·expm1(−v), where the linear parts cancel
        // (α·u = (α−1)·v) and the excesses E(x) = e^x − 1 − x add up.
        let moment = if up.hi() < 600.0 {
            let excess = |x: Interval| {
                let (p, q) = (excess::exp_excess(x.lo()), excess::exp_excess(x.hi()));
                Interval::new(
                    Interval::around(p.min(q), excess::ERROR).lo(),
                    Interval::around(p.max(q), excess::ERROR).hi(),
                )
            };
            ((excess(up) * a + excess(-down) * b) / denominator).ln_1p()
        } else {
            log_add_exp((Interval::point(a) / denominator).ln() + up, (b / denominator).ln() - down)
        };
        Divergence::from_upper_bound((moment / b).hi().min(self.epsilon().get()).max(f64::MIN_POSITIVE))
    }

    fn rho(&self) -> Option<Rho> {
        Some(pure_rho(self.epsilon()))
    }

    fn approximate(&self) -> Option<(Epsilon, Delta)> {
        Some((self.epsilon(), Delta::ZERO))
    }

    /// `n/b`, as an amount rounded up once.
    fn epsilon_of(&self, count: Count) -> Option<Bound> {
        let bound = Bound::repeated(self.epsilon().get(), self.epsilon().amount(), count);
        let exact = Amount::inverse_up(count.get(), self.scale.get());
        Some(Bound { amount: exact.unwrap_or(bound.amount), float: mul_up(self.epsilon().get(), count.to_f64()) })
    }

    fn attains_its_pair(&self) -> bool {
        true
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair::Laplace { scale: self.scale.get() })
    }
}

/// A scale; the sensitivity is 1 unless given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LaplaceFields {
    /// Scale of the noise.
    pub scale: Number,
    /// ℓ1 sensitivity of the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1_sensitivity: Option<Number>,
}

impl TryFrom<&LaplaceFields> for Laplace {
    type Error = OutOfDomain;
    /// ROUNDING: the scale down, the sensitivity up.
    fn try_from(fields: &LaplaceFields) -> Result<Self, OutOfDomain> {
        let scale = Scale::new(fields.scale.down("scale")?)?;
        let Some(sensitivity) = &fields.l1_sensitivity else { return Ok(Self { scale }) };
        let sensitivity = Scale::new(sensitivity.up("l1_sensitivity")?)
            .map_err(renamed("l1_sensitivity", "0 < l1_sensitivity < inf"))?;
        Self::new(div_down(scale.get(), sensitivity.get()))
    }
}

impl From<&Laplace> for LaplaceFields {
    fn from(laplace: &Laplace) -> Self {
        Self { scale: Number::double(laplace.scale.get()), l1_sensitivity: None }
    }
}
