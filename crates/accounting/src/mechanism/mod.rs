//! Mechanisms: inert descriptions of what was, or will be, done to the data.
//!
//! One file each for the families with mathematics of their own; this one holds the vocabulary. [`crate::cost::Cost`]
//! turns a mechanism into numbers, under a neighbor relation.

mod balls_and_bins;
mod fixed_size_sampled_gaussian;
mod gaussian;
mod partitioned_epoch;
mod poisson_sampled_gaussian;
mod pure;

pub use balls_and_bins::BallsAndBinsEpoch;
pub use fixed_size_sampled_gaussian::FixedSizeSampledGaussian;
pub use gaussian::{Gaussian, gdp_rho, zcdp_renyi};
pub use partitioned_epoch::{Assignment, PartitionedEpoch};
pub use poisson_sampled_gaussian::PoissonSampledGaussian;
pub use pure::{Laplace, bounded_range_rho, pure_kl, pure_renyi, pure_rho};

use crate::curve::RenyiCurve;
use crate::params::{
    Count, Delta, Epsilon, Mu, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho, SamplingProbability, Scale,
};

/// What was done: one mechanism, one repeated, several together, or several on disjoint people.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Mechanism {
    /// One mechanism, once.
    Single(Single),
    /// The same mechanism, several times.
    Repeat {
        /// How often.
        count: Count,
        /// What.
        of: Box<Mechanism>,
    },
    /// All of them, one after another, on the same people.
    AllOf(Vec<Mechanism>),
    /// Each on its own group of people. A person's group depends on that person alone, so that one record more or less
    /// touches one group; therefore not under replace-one, where a record can leave one group and enter another.
    Parallel(Vec<Mechanism>),
}

impl Mechanism {
    /// Gaussian noise of `noise_multiplier` times the ℓ2 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the noise is not positive and finite.
    pub fn gaussian(noise_multiplier: f64) -> Result<Self, OutOfDomain> {
        let noise_multiplier = NoiseMultiplier::new(noise_multiplier)?;
        Ok(Self::Single(Single::Gaussian(Gaussian { noise_multiplier })))
    }

    /// Laplace noise of `scale` times the ℓ1 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the scale is not positive and finite.
    pub fn laplace(scale: f64) -> Result<Self, OutOfDomain> {
        Ok(Self::Single(Single::Laplace(Laplace { scale: Scale::new(scale)? })))
    }

    /// Anything ε-DP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ε is negative or NaN.
    pub fn pure(epsilon: f64) -> Result<Self, OutOfDomain> {
        Ok(Self::Single(Single::Pure(Epsilon::new(epsilon)?)))
    }

    /// Gaussian noise on a Poisson sample.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the probability or the noise is out of its domain.
    pub fn poisson_sampled_gaussian(sampling_probability: f64, noise_multiplier: f64) -> Result<Self, OutOfDomain> {
        let sampling_probability = SamplingProbability::new(sampling_probability)?;
        let noise_multiplier = NoiseMultiplier::new(noise_multiplier)?;
        let sampled = PoissonSampledGaussian { sampling_probability, noise_multiplier };
        Ok(Self::Single(Single::PoissonSampledGaussian(sampled)))
    }
}

/// One mechanism. Noise multipliers and scales are relative to the sensitivity under the neighbor relation in use.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Single {
    /// Gaussian noise.
    Gaussian(Gaussian),
    /// Laplace noise.
    Laplace(Laplace),
    /// Binary randomized response with parameter ε.
    RandomizedResponse(Epsilon),
    /// The exponential mechanism with parameter ε: ε-DP and of range ε.
    Exponential(Epsilon),
    /// Anything ε-DP.
    Pure(Epsilon),
    /// Anything (ε, δ)-DP.
    Approximate(Epsilon, Delta),
    /// Anything ρ-zCDP.
    Zcdp(Rho),
    /// Anything μ-GDP.
    Gdp(Mu),
    /// Gaussian noise on a Poisson sample.
    PoissonSampledGaussian(PoissonSampledGaussian),
    /// Gaussian noise on a batch of fixed size.
    FixedSizeSampledGaussian(FixedSizeSampledGaussian),
    /// An epoch with independent uniform assignment to batches.
    BallsAndBinsEpoch(BallsAndBinsEpoch),
    /// An epoch over disjoint batches.
    PartitionedEpoch(PartitionedEpoch),
    /// Anything with this Rényi curve, both directions.
    Renyi(RenyiCurve),
}

impl Single {
    /// The word for it on the wire.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Gaussian(_) => "gaussian",
            Self::Laplace(_) => "laplace",
            Self::RandomizedResponse(_) => "randomized_response",
            Self::Exponential(_) => "exponential",
            Self::Pure(_) => "pure",
            Self::Approximate(..) => "approximate",
            Self::Zcdp(_) => "zcdp",
            Self::Gdp(_) => "gdp",
            Self::PoissonSampledGaussian(_) => "poisson_sampled_gaussian",
            Self::FixedSizeSampledGaussian(_) => "fixed_size_sampled_gaussian",
            Self::BallsAndBinsEpoch(_) => "balls_and_bins_epoch",
            Self::PartitionedEpoch(_) => "partitioned_epoch",
            Self::Renyi(_) => "renyi",
        }
    }

    /// The neighbor relations under which its bounds are proved.
    #[must_use]
    pub const fn neighbors(&self) -> &'static [Neighbors] {
        match self {
            Self::Gaussian(_)
            | Self::Laplace(_)
            | Self::RandomizedResponse(_)
            | Self::Exponential(_)
            | Self::Pure(_)
            | Self::Approximate(..)
            | Self::Zcdp(_)
            | Self::Gdp(_)
            | Self::Renyi(_) => &[Neighbors::AddRemove, Neighbors::ReplaceOne, Neighbors::ZeroOut],
            Self::PoissonSampledGaussian(_) => PoissonSampledGaussian::NEIGHBORS,
            Self::FixedSizeSampledGaussian(_) => FixedSizeSampledGaussian::NEIGHBORS,
            Self::BallsAndBinsEpoch(_) => BallsAndBinsEpoch::NEIGHBORS,
            Self::PartitionedEpoch(epoch) => epoch.neighbors(),
        }
    }

    /// An upper bound on the Rényi divergence at an order, both directions, outside an event of probability
    /// [`Single::slack`]; +∞ where none is known.
    #[must_use]
    pub fn renyi(&self, order: Order) -> f64 {
        match self {
            Self::Gaussian(gaussian) => gaussian.renyi(order),
            Self::Laplace(laplace) => laplace.renyi(order),
            Self::RandomizedResponse(epsilon) | Self::Pure(epsilon) | Self::Approximate(epsilon, _) => {
                pure_renyi(*epsilon, order)
            }
            Self::Exponential(epsilon) => {
                pure_renyi(*epsilon, order).min(zcdp_renyi(bounded_range_rho(*epsilon), order))
            }
            Self::Zcdp(rho) => zcdp_renyi(*rho, order),
            Self::Gdp(mu) => zcdp_renyi(gdp_rho(*mu), order),
            Self::PoissonSampledGaussian(sampled) => sampled.renyi(order),
            Self::FixedSizeSampledGaussian(sampled) => sampled.renyi(order),
            Self::BallsAndBinsEpoch(epoch) => epoch.renyi(order),
            Self::PartitionedEpoch(epoch) => epoch.renyi(order),
            Self::Renyi(curve) => curve.at(order),
        }
    }

    /// [`Single::renyi`] at many orders; the families with shared work do it once.
    #[must_use]
    pub(crate) fn renyi_at(&self, orders: &[Order]) -> Vec<f64> {
        match self {
            Self::PoissonSampledGaussian(sampled) => sampled.renyi_at(orders),
            Self::FixedSizeSampledGaussian(sampled) => sampled.renyi_at(orders),
            Self::BallsAndBinsEpoch(epoch) => epoch.renyi_at(orders),
            Self::Gaussian(_)
            | Self::Laplace(_)
            | Self::RandomizedResponse(_)
            | Self::Exponential(_)
            | Self::Pure(_)
            | Self::Approximate(..)
            | Self::Zcdp(_)
            | Self::Gdp(_)
            | Self::PartitionedEpoch(_)
            | Self::Renyi(_) => orders.iter().map(|&order| self.renyi(order)).collect(),
        }
    }

    /// Whether [`Single::renyi`] is a closed form worth asking at every real order, not a chord between some.
    #[must_use]
    pub(crate) const fn is_smooth(&self) -> bool {
        match self {
            Self::Gaussian(_)
            | Self::Laplace(_)
            | Self::RandomizedResponse(_)
            | Self::Exponential(_)
            | Self::Pure(_)
            | Self::Approximate(..)
            | Self::Zcdp(_)
            | Self::Gdp(_)
            | Self::PoissonSampledGaussian(_)
            | Self::PartitionedEpoch(_) => true,
            Self::FixedSizeSampledGaussian(_) | Self::BallsAndBinsEpoch(_) | Self::Renyi(_) => false,
        }
    }

    /// Its ρ in zCDP, an upper bound; `None` when it has none.
    #[must_use]
    pub fn rho(&self) -> Option<Rho> {
        match self {
            Self::Gaussian(gaussian) => Some(gaussian.rho()),
            Self::Laplace(laplace) => Some(pure_rho(laplace.epsilon())),
            Self::RandomizedResponse(epsilon) | Self::Pure(epsilon) => Some(pure_rho(*epsilon)),
            // Part 2.3: outside the event of probability δ, an (ε, δ)-DP step is a post-processing of an ε-DP one.
            Self::Approximate(epsilon, _) => Some(pure_rho(*epsilon)),
            Self::Exponential(epsilon) => Some(bounded_range_rho(*epsilon)),
            Self::Zcdp(rho) => Some(*rho),
            Self::Gdp(mu) => Some(gdp_rho(*mu)),
            // Sampling does not amplify zCDP, and does not hurt it (T27).
            Self::PoissonSampledGaussian(sampled) => {
                let whole = Gaussian { noise_multiplier: sampled.noise_multiplier };
                Some(if sampled.sampling_probability.get() == 0.0 { Rho::ZERO } else { whole.rho() })
            }
            Self::FixedSizeSampledGaussian(sampled) => {
                Some(Gaussian { noise_multiplier: sampled.noise_multiplier }.rho())
            }
            Self::BallsAndBinsEpoch(epoch) => Some(Gaussian { noise_multiplier: epoch.noise_multiplier }.rho()),
            Self::PartitionedEpoch(epoch) => Some(epoch.rho()),
            Self::Renyi(_) => None,
        }
    }

    /// Its μ in GDP, an upper bound; `None` when it has none.
    #[must_use]
    pub fn mu(&self) -> Option<Mu> {
        match self {
            Self::Gaussian(gaussian) => Some(gaussian.mu()),
            Self::Gdp(mu) => Some(*mu),
            Self::PartitionedEpoch(epoch) => Some(epoch.mu()),
            Self::Laplace(_)
            | Self::RandomizedResponse(_)
            | Self::Exponential(_)
            | Self::Pure(_)
            | Self::Approximate(..)
            | Self::Zcdp(_)
            | Self::PoissonSampledGaussian(_)
            | Self::FixedSizeSampledGaussian(_)
            | Self::BallsAndBinsEpoch(_)
            | Self::Renyi(_) => None,
        }
    }

    /// Its (ε, δ), an upper bound; `None` when it has none of its own.
    #[must_use]
    pub fn approximate(&self) -> Option<(Epsilon, Delta)> {
        match self {
            Self::Laplace(laplace) => Some((laplace.epsilon(), Delta::ZERO)),
            Self::RandomizedResponse(epsilon) | Self::Exponential(epsilon) | Self::Pure(epsilon) => {
                Some((*epsilon, Delta::ZERO))
            }
            Self::Approximate(epsilon, delta) => Some((*epsilon, *delta)),
            Self::Gaussian(_)
            | Self::Zcdp(_)
            | Self::Gdp(_)
            | Self::PoissonSampledGaussian(_)
            | Self::FixedSizeSampledGaussian(_)
            | Self::BallsAndBinsEpoch(_)
            | Self::PartitionedEpoch(_)
            | Self::Renyi(_) => None,
        }
    }

    /// Whether its output cannot depend on the data outside its slack, because the parameter that carries the loss is
    /// zero.
    #[must_use]
    pub fn is_null(&self) -> bool {
        match self {
            Self::RandomizedResponse(epsilon)
            | Self::Exponential(epsilon)
            | Self::Pure(epsilon)
            | Self::Approximate(epsilon, _) => *epsilon == Epsilon::ZERO,
            Self::Zcdp(rho) => *rho == Rho::ZERO,
            Self::Gdp(mu) => mu.get() == 0.0,
            Self::PoissonSampledGaussian(sampled) => sampled.sampling_probability.get() == 0.0,
            Self::Gaussian(_)
            | Self::Laplace(_)
            | Self::FixedSizeSampledGaussian(_)
            | Self::BallsAndBinsEpoch(_)
            | Self::PartitionedEpoch(_)
            | Self::Renyi(_) => false,
        }
    }

    /// The probability of the event outside which the Rényi curve and ρ hold: the δ of an (ε, δ)-DP mechanism, else 0.
    #[must_use]
    pub const fn slack(&self) -> Delta {
        match self {
            Self::Approximate(_, delta) => *delta,
            Self::Gaussian(_)
            | Self::Laplace(_)
            | Self::RandomizedResponse(_)
            | Self::Exponential(_)
            | Self::Pure(_)
            | Self::Zcdp(_)
            | Self::Gdp(_)
            | Self::PoissonSampledGaussian(_)
            | Self::FixedSizeSampledGaussian(_)
            | Self::BallsAndBinsEpoch(_)
            | Self::PartitionedEpoch(_)
            | Self::Renyi(_) => Delta::ZERO,
        }
    }
}
