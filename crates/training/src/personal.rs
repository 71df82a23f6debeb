//! A budget for each example: \[FZ\]'s Algorithm 8 in training.
//!
//! Each example pays for its own clipped gradient, and is scaled down to what is left to it; the promise to everybody is the whole
//! budget, charged once at the start, however many steps there are (T23).

use crate::batching::Batching;
use crate::gradient::Personal;
use paygo_accounting::cost::{Cost, CostError};
use paygo_accounting::curve::{Orders, RenyiCurve};
use paygo_accounting::individual::{Clipping, FULL};
use paygo_accounting::mechanism::{self, Family as _, Mechanism, PoissonSampledGaussian, Single};
use paygo_accounting::params::{Mu, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho, SamplingProbability};
use paygo_accounting::secret::Secret;
use paygo_numeric::rounding::{add_up, div_down, div_up, mul_down, mul_up, sub_down};
use serde::{Deserialize, Serialize};

/// What each example may spend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExampleBudget {
    /// ρ of zCDP: full batches.
    Zcdp {
        /// ρ.
        rho: f64,
    },
    /// μ of GDP: full batches; the largest for Gaussian noise.
    Gdp {
        /// μ.
        mu: f64,
    },
    /// A Rényi divergence at one order: Poisson batches.
    Renyi {
        /// The order, fixed in advance.
        order: f64,
        /// The divergence.
        limit: f64,
    },
}

impl ExampleBudget {
    /// What the gate is asked for, once: what is promised to everybody.
    ///
    /// # Errors
    /// [`OutOfDomain`] when a parameter is out of its domain; [`CostError`] never.
    pub fn cost(&self, neighbors: Neighbors) -> Result<Cost, AllowanceError> {
        let single = match *self {
            Self::Zcdp { rho } => Single::Zcdp(mechanism::Zcdp { rho: Rho::new(positive("rho", rho)?)? }),
            Self::Gdp { mu } => Single::Gdp(mechanism::Gdp { mu: Mu::new(positive("mu", mu)?)? }),
            Self::Renyi { order, limit } => {
                let orders = Orders::new(vec![Order::new(order)?])?;
                Single::Renyi(mechanism::Renyi { curve: RenyiCurve::new(orders, vec![positive("limit", limit)?])? })
            }
        };
        Ok(Cost::of(&Mechanism::Single(single), neighbors)?)
    }
}

fn positive(name: &'static str, value: f64) -> Result<f64, OutOfDomain> {
    if value > 0.0 && value < f64::INFINITY {
        Ok(value)
    } else {
        Err(OutOfDomain::new(name, value, "above 0 and finite"))
    }
}

/// An allowance that does not go with the training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllowanceError {
    /// A parameter out of its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// No price.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The currency does not fit the batches.
    #[error("a budget for each example in {given} does not go with {batching} batches; expected {allowed}")]
    Batching {
        /// The currency.
        given: &'static str,
        /// The batches.
        batching: &'static str,
        /// What does.
        allowed: &'static str,
    },
    /// Clipping layer by layer.
    #[error("a budget for each example needs clipping of the whole gradient, not layer by layer")]
    ByLayer,
    /// A relation under which a person may change what they have paid, or others' places.
    #[error("a budget for each example goes with zero-out neighbors, where the others keep their places; given {0}")]
    Neighbors(Neighbors),
}

/// Levels of a norm at which a sampled step is priced.
const LEVELS: usize = 256;

/// How one step charges each example: fixed before the step by public numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Tariff {
    clip_norm: f64,
    /// What single precision can add to an example's effect.
    extra: f64,
    price: Rate,
}

#[derive(Clone, Debug, PartialEq)]
enum Rate {
    /// Proportional to the squared norm.
    Squares(Clipping),
    /// Shares at norms `(level + 1)/LEVELS` of the largest.
    Levels(Vec<u32>),
}

impl Tariff {
    /// For noise of `noise_std` on gradients clipped to `clip_norm`, of which single precision makes `(1 + margin)` times as much.
    ///
    /// # Errors
    /// [`AllowanceError`] when the allowance does not go with the batches, or a number is out of its domain.
    pub fn new(
        allowance: ExampleBudget,
        batching: Batching,
        noise_std: f64,
        clip_norm: f64,
        margin: f64,
    ) -> Result<Self, AllowanceError> {
        let extra = mul_up(clip_norm, margin);
        let largest = add_up(clip_norm, extra);
        let (noise_std, clip_norm) = (positive("noise_std", noise_std)?, positive("clip_norm", clip_norm)?);
        // ROUNDING: budgets down.
        let variance = mul_down(noise_std, noise_std);
        let price = match (allowance, batching) {
            (ExampleBudget::Zcdp { rho }, Batching::Full) => {
                Rate::Squares(Clipping::new(mul_down(2.0 * positive("rho", rho)?, variance), largest)?)
            }
            (ExampleBudget::Gdp { mu }, Batching::Full) => {
                let mu = positive("mu", mu)?;
                Rate::Squares(Clipping::new(mul_down(mul_down(mu, mu), variance), largest)?)
            }
            (ExampleBudget::Renyi { order, limit }, Batching::Poisson { sampling_probability }) => {
                let limit = positive("limit", limit)?;
                let (order, q) = (Order::new(order)?, SamplingProbability::new(sampling_probability)?);
                let mut shares = Vec::with_capacity(LEVELS);
                for level in 1..=LEVELS {
                    #[expect(clippy::cast_precision_loss, reason = "at most 256")]
                    let norm = mul_up(largest, level as f64 / LEVELS as f64);
                    let noise_multiplier = NoiseMultiplier::new(div_down(noise_std, norm))?;
                    let step = PoissonSampledGaussian { sampling_probability: q, noise_multiplier };
                    // ROUNDING: up; the cast saturates.
                    let share = mul_up(div_up(step.renyi(order).get(), limit), f64::from(FULL)).ceil();
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
                    shares.push(share as u32);
                }
                Rate::Levels(shares)
            }
            (ExampleBudget::Zcdp { .. } | ExampleBudget::Gdp { .. }, batching) => {
                let given = if matches!(allowance, ExampleBudget::Gdp { .. }) { "gdp" } else { "zcdp" };
                return Err(AllowanceError::Batching { given, batching: word(batching), allowed: "full batches" });
            }
            (ExampleBudget::Renyi { .. }, batching) => {
                let allowed = "poisson batches; for full ones take zcdp or gdp";
                return Err(AllowanceError::Batching { given: "renyi", batching: word(batching), allowed });
            }
        };
        Ok(Self { clip_norm, extra, price })
    }

    /// What an example has spent after a step, and by what its gradient is multiplied, from what it had spent and its squared norm,
    /// an upper bound. A norm that is no number is charged in full and contributes nothing.
    #[must_use]
    pub fn charge(&self, spent: u32, squared_norm: f64) -> (u32, f32) {
        let finite = squared_norm.is_finite() && squared_norm >= 0.0;
        let norm = if finite { paygo_numeric::rounding::sqrt_up(squared_norm) } else { f64::MAX.sqrt() };
        // Of norm 0 nothing is added, not even rounding.
        if norm == 0.0 {
            return (spent, 1.0);
        }
        let (then, allowed) = match &self.price {
            Rate::Squares(clipping) => {
                let effect = add_up(norm.min(f64::MAX.sqrt() / 2.0), self.extra);
                let (mut column, mut factor) = ([spent], [0.0]);
                clipping.round(&mut column, &[mul_up(effect, effect)], &mut factor);
                (column[0], mul_down(factor[0], effect))
            }
            Rate::Levels(shares) => {
                let effect = add_up(norm.min(self.clip_norm), self.extra);
                let largest = add_up(self.clip_norm, self.extra);
                #[expect(clippy::cast_precision_loss, reason = "at most 256")]
                let reach = |level: usize| mul_down(largest, (level + 1) as f64 / LEVELS as f64);
                let wanted = (0..LEVELS).find(|&level| reach(level) >= effect).unwrap_or(LEVELS - 1);
                // The highest level that is wanted and can be paid.
                let left = FULL.saturating_sub(spent);
                match shares[..=wanted].iter().rposition(|&share| share <= left) {
                    Some(level) => (spent + shares[level], reach(level).min(effect)),
                    None => (spent, 0.0),
                }
            }
        };
        // ROUNDING: down; what single precision adds is not scaled.
        let factor = div_down(sub_down(allowed, self.extra).min(self.clip_norm), norm);
        if !finite || factor <= 0.0 {
            return (then, 0.0);
        }
        #[expect(clippy::cast_possible_truncation, reason = "single precision is what gradients are in")]
        let single = (factor.min(1.0) * (1.0 - 1e-7)) as f32;
        // Below the normal numbers a roundoff is more than what was taken off.
        (
            then,
            if factor >= 1.0 {
                1.0
            } else if single >= f32::MIN_POSITIVE {
                single
            } else {
                0.0
            },
        )
    }

    /// The share that a step costs at most.
    #[must_use]
    pub fn most(&self) -> u32 {
        match &self.price {
            Rate::Squares(_) => self.charge(0, f64::INFINITY).0,
            Rate::Levels(shares) => shares[LEVELS - 1].min(FULL),
        }
    }
}

const fn word(batching: Batching) -> &'static str {
    match batching {
        Batching::Full => "full",
        Batching::Poisson { .. } => "poisson",
        Batching::BallsAndBins { .. } => "balls-and-bins",
        Batching::Shuffled { .. } => "shuffled",
    }
}

/// What each example has spent, in shares of its budget.
#[derive(Clone)]
pub struct Spending {
    allowance: ExampleBudget,
    spent: Vec<u32>,
}

impl std::fmt::Debug for Spending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spending({:?}, ..)", self.allowance)
    }
}

impl Spending {
    /// Nobody has spent anything.
    #[must_use]
    pub fn new(allowance: ExampleBudget, examples: usize) -> Self {
        Self { allowance, spent: vec![0; examples] }
    }

    /// What each has spent already; `None` when a share is more than a budget.
    #[must_use]
    pub fn resume(allowance: ExampleBudget, spent: Vec<u32>) -> Option<Self> {
        spent.iter().all(|&share| share <= FULL).then_some(Self { allowance, spent })
    }

    /// What each may spend.
    #[must_use]
    pub const fn allowance(&self) -> ExampleBudget {
        self.allowance
    }

    /// What each has spent, in shares of [`FULL`].
    #[must_use]
    pub fn shares(&self) -> Secret<&[u32]> {
        Secret::new(&self.spent)
    }

    /// Charges everybody the most that some steps could have cost: for steps of which it is not known what they cost.
    pub(crate) fn charge_the_most(&mut self, tariff: &Tariff, steps: u64) {
        let most = u64::from(tariff.most()).saturating_mul(steps).min(u64::from(FULL));
        let most = u32::try_from(most).unwrap_or(FULL);
        for share in &mut self.spent {
            *share = share.saturating_add(most).min(FULL);
        }
    }

    /// The column, for a step in which everybody's norm is computed.
    pub(crate) fn for_step<'a>(
        &'a mut self,
        charge: &'a (dyn Fn(u32, f64) -> (u32, f32) + Sync),
        sampled: Option<&'a [bool]>,
    ) -> Personal<'a> {
        Personal { spent: &mut self.spent, charge, sampled }
    }
}
