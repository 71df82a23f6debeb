//! One charge, one draw.

use crate::discrete::{DiscreteGaussian, DiscreteLaplace, FineGaussian};
use crate::source::Source;
use paygo_accounting::cost::{Cost, CostError};
use paygo_accounting::filter::Permit;
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::params::{Neighbors, OutOfDomain};

/// Noise, and the sensitivity of the integers it is added to: the mechanism and its sampler in one.
///
/// ```
/// use paygo_accounting::{filter::{Budget, Decision, Filter, Mixture}, params::Neighbors};
/// use paygo_noise::{DiscreteGaussian, Ratio, Release, Source};
/// let mut filter = Filter::new(Mixture::new(Budget::from_decimal("1", "1e-6")?)?, Neighbors::AddRemove);
/// let mut source = Source::from_operating_system()?;
/// // A count: one person changes it by at most 1.
/// let release = Release::gaussian(DiscreteGaussian { variance: Ratio::new(400, 1)? }, 1)?;
/// if let Decision::Admitted(permit) = filter.request(&release.cost(Neighbors::AddRemove)?)? {
///     let noisy = release.draw(permit, &mut source, &[1234])?;
///     assert_eq!(noisy.len(), 1);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A second draw for the same permit does not compile:
///
/// ```compile_fail,E0382
/// # use paygo_accounting::filter::Permit;
/// # use paygo_noise::{Release, Source};
/// fn twice(release: &Release, permit: Permit, source: &mut Source) {
///     let _ = release.draw(permit, source, &[1]);
///     let _ = release.draw(permit, source, &[1]);
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    noise: Noise,
    mechanism: Mechanism,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noise {
    Gaussian(DiscreteGaussian),
    Fine(FineGaussian),
    Laplace(DiscreteLaplace),
}

/// A permit for something else. It is gone; nothing was drawn, and what it cost stays spent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the permit was given for another mechanism than the one that is drawn; it is used up, and nothing was released"
)]
pub struct NotCovered;

impl Release {
    /// Discrete Gaussian noise on integers of this squared ℓ2 sensitivity, under the neighbor relation of the filter.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the sensitivity is out of its domain.
    pub fn gaussian(noise: DiscreteGaussian, l2_sensitivity_squared: u64) -> Result<Self, OutOfDomain> {
        Ok(Self { noise: Noise::Gaussian(noise), mechanism: noise.mechanism(l2_sensitivity_squared)? })
    }

    /// Discrete Gaussian noise of an integer standard deviation on integers of this squared ℓ2 sensitivity.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the sensitivity is out of its domain.
    pub fn fine_gaussian(noise: FineGaussian, l2_sensitivity_squared: u64) -> Result<Self, OutOfDomain> {
        Ok(Self { noise: Noise::Fine(noise), mechanism: noise.mechanism(l2_sensitivity_squared)? })
    }

    /// Discrete Laplace noise on integers of this ℓ1 sensitivity, under the neighbor relation of the filter.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the sensitivity is out of its domain.
    pub fn laplace(noise: DiscreteLaplace, l1_sensitivity: u64) -> Result<Self, OutOfDomain> {
        Ok(Self { noise: Noise::Laplace(noise), mechanism: noise.mechanism(l1_sensitivity)? })
    }

    /// The mechanism that is drawn.
    #[must_use]
    pub const fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// What a filter is asked for.
    ///
    /// # Errors
    /// [`CostError`], never for these mechanisms.
    pub fn cost(&self, neighbors: Neighbors) -> Result<Cost, CostError> {
        Cost::of(&self.mechanism, neighbors)
    }

    /// Noisy values, one draw for each, for one permit. The sensitivity is that of all values together. Saturates at the
    /// ends of `i64`, which is post-processing.
    ///
    /// # Errors
    /// [`NotCovered`] when the permit was given for another mechanism.
    pub fn draw(&self, permit: Permit, source: &mut Source, values: &[i64]) -> Result<Vec<i64>, NotCovered> {
        // The permit was moved in: it cannot be used a second time.
        let neighbors = permit.cost().neighbors();
        if Cost::of(&self.mechanism, neighbors).as_ref() != Ok(permit.cost()) {
            return Err(NotCovered);
        }
        let noise = |source: &mut Source| match self.noise {
            Noise::Gaussian(noise) => noise.draw(source),
            Noise::Fine(noise) => noise.draw(source),
            Noise::Laplace(noise) => noise.draw(source),
        };
        Ok(values.iter().map(|value| value.saturating_add(noise(source))).collect())
    }
}
