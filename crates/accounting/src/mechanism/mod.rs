//! Mechanisms: inert descriptions of what was, or will be, done to the data.
//!
//! One file for each family, which says everything about it: its fields on the wire, the neighbor relations under which it is
//! proved, and its price in every currency ([`Family`]). This file is the registry: a module and a line for each. The name of
//! the module is the word on the wire. [`crate::cost::Cost`] turns a mechanism into numbers, under a neighbor relation.

mod approximate;
mod balls_and_bins_epoch;
mod exponential;
mod family;
mod fixed_size_sampled_gaussian;
mod gaussian;
mod gdp;
mod laplace;
mod one_number;
mod partitioned_epoch;
mod poisson_sampled_gaussian;
mod pure;
mod randomized_response;
mod renyi;
mod zcdp;

pub use family::Family;
pub use gaussian::gdp_rho;
pub use partitioned_epoch::Assignment;

use crate::params::{Count, OutOfDomain};

/// The registry. Costs are sorted in its order, so a new family goes to the end.
macro_rules! registry {
    ($for_each:ident) => {
        $for_each! {
            /// Gaussian noise.
            gaussian: Gaussian, GaussianFields;
            /// Laplace noise.
            laplace: Laplace, LaplaceFields;
            /// Binary randomized response.
            randomized_response: RandomizedResponse, RandomizedResponseFields;
            /// The exponential mechanism.
            exponential: Exponential, ExponentialFields;
            /// Anything ε-DP.
            pure: Pure, PureFields;
            /// Anything (ε, δ)-DP.
            approximate: Approximate, ApproximateFields;
            /// Anything ρ-zCDP.
            zcdp: Zcdp, ZcdpFields;
            /// Anything μ-GDP.
            gdp: Gdp, GdpFields;
            /// Gaussian noise on a Poisson sample.
            poisson_sampled_gaussian: PoissonSampledGaussian, PoissonSampledGaussianFields;
            /// Gaussian noise on a batch of fixed size.
            fixed_size_sampled_gaussian: FixedSizeSampledGaussian, FixedSizeSampledGaussianFields;
            /// An epoch in which each record goes to one batch by its own fair coin.
            balls_and_bins_epoch: BallsAndBinsEpoch, BallsAndBinsEpochFields;
            /// An epoch over disjoint batches.
            partitioned_epoch: PartitionedEpoch, PartitionedEpochFields;
            /// Anything with this Rényi curve, both directions.
            renyi: Renyi, RenyiFields;
        }
    };
}
pub(crate) use registry;

macro_rules! singles {
    ($($(#[$doc:meta])* $word:ident: $family:ident, $fields:ident;)*) => {
        $(pub use $word::{$family, $fields};)*

        /// One mechanism. Noise multipliers and scales are relative to the sensitivity under the neighbor relation in use.
        #[derive(Clone, Debug, PartialEq, PartialOrd)]
        pub enum Single {
            $($(#[$doc])* $family($family),)*
        }

        impl Single {
            /// The words of all of them.
            pub const WORDS: &'static [&'static str] = &[$(stringify!($word)),*];

            /// Its word on the wire.
            #[must_use]
            pub const fn word(&self) -> &'static str {
                match self {
                    $(Self::$family(_) => stringify!($word),)*
                }
            }

            /// What is known of it.
            #[must_use]
            pub fn family(&self) -> &dyn Family {
                match self {
                    $(Self::$family(family) => family,)*
                }
            }
        }

        $(impl From<$family> for Single {
            fn from(family: $family) -> Self {
                Self::$family(family)
            }
        }

        impl From<$family> for Mechanism {
            fn from(family: $family) -> Self {
                Self::Single(family.into())
            }
        })*
    };
}
registry!(singles);

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
        Gaussian::new(noise_multiplier).map(Self::from)
    }

    /// Laplace noise of `scale` times the ℓ1 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the scale is not positive and finite.
    pub fn laplace(scale: f64) -> Result<Self, OutOfDomain> {
        Laplace::new(scale).map(Self::from)
    }

    /// Anything ε-DP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ε is negative or NaN.
    pub fn pure(epsilon: f64) -> Result<Self, OutOfDomain> {
        Pure::new(epsilon).map(Self::from)
    }

    /// Anything ρ-zCDP.
    ///
    /// # Errors
    /// [`OutOfDomain`] when ρ is negative or NaN.
    pub fn zcdp(rho: f64) -> Result<Self, OutOfDomain> {
        Zcdp::new(rho).map(Self::from)
    }

    /// Gaussian noise on a Poisson sample.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the probability or the noise is out of its domain.
    pub fn poisson_sampled_gaussian(sampling_probability: f64, noise_multiplier: f64) -> Result<Self, OutOfDomain> {
        PoissonSampledGaussian::new(sampling_probability, noise_multiplier).map(Self::from)
    }
}
