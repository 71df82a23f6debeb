//! One pass over disjoint batches.
//!
//! \[Y\] Theorem 2 says that such an epoch costs as much as its most expensive batch. That needs more than the paper says
//! (E12): the number of batches is public, and taking a record away must not move any other record. [`Assignment`]
//! makes the caller say which of these worlds they are in.

use super::{Family, Gaussian};
use crate::cost::Bound;
use crate::loss::Pair;
use crate::params::{Count, Divergence, Mu, Neighbors, NoiseMultiplier, Order, OutOfDomain, Rho};
use crate::wire::Number;
use paygo_numeric::Interval;
use paygo_numeric::sums::log_add_exp;
use serde::{Deserialize, Serialize};

/// How records come to batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Each record goes to a batch by a rule or coin of its own, independent of the other records.
    #[default]
    Independent,
    /// As [`Assignment::Independent`], and every batch is equally likely.
    IndependentUniform,
    /// A fixed number of records is shuffled into batches of fixed size. Removing one would move others, so only
    /// relations that keep the number of records are allowed.
    Reshuffled,
}

/// One pass over disjoint batches with the given noise in each.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct PartitionedEpoch {
    assignment: Assignment,
    noise_multipliers: Vec<NoiseMultiplier>,
}

impl PartitionedEpoch {
    /// An epoch with one noise multiplier for each batch: the length of the list is the public number of batches.
    ///
    /// # Errors
    /// [`OutOfDomain`] when there is no batch.
    pub fn new(assignment: Assignment, noise_multipliers: Vec<NoiseMultiplier>) -> Result<Self, OutOfDomain> {
        if noise_multipliers.is_empty() {
            return Err(OutOfDomain::new(
                "noise_multipliers",
                "[]",
                "one noise multiplier for each batch, at least one",
            ));
        }
        Ok(Self { assignment, noise_multipliers })
    }

    /// How records come to batches.
    #[must_use]
    pub const fn assignment(&self) -> Assignment {
        self.assignment
    }

    /// The noise of each batch.
    #[must_use]
    pub fn noise_multipliers(&self) -> &[NoiseMultiplier] {
        &self.noise_multipliers
    }

    /// Gaussian noise of the batch with the least.
    fn worst_batch(&self) -> Gaussian {
        let least = |a: NoiseMultiplier, b: &NoiseMultiplier| if b.get() < a.get() { *b } else { a };
        let first = self.noise_multipliers[0];
        Gaussian { noise_multiplier: self.noise_multipliers.iter().fold(first, least) }
    }

    /// `max_j 1/(2s_j²)`, rounded up (T26).
    fn zcdp(&self) -> Rho {
        Rho::from_upper_bound(self.noise_multipliers.iter().map(|s| rho_of(*s).hi()).fold(0.0, f64::max))
    }
}

impl Family for PartitionedEpoch {
    /// The relations under which one record touches one batch and moves no other.
    fn neighbors(&self) -> &'static [Neighbors] {
        match self.assignment {
            Assignment::Independent | Assignment::IndependentUniform => &[Neighbors::AddRemove, Neighbors::ZeroOut],
            Assignment::Reshuffled => &[Neighbors::ReplaceOne, Neighbors::ZeroOut],
        }
    }

    fn rho(&self) -> Option<Rho> {
        Some(self.zcdp())
    }

    fn rho_of(&self, count: Count) -> Option<Bound> {
        self.worst_batch().rho_of(count)
    }

    fn mu_squared_of(&self, count: Count) -> Option<Bound> {
        self.worst_batch().mu_squared_of(count)
    }

    /// `max_j 1/s_j`, rounded up (T26).
    ///
    /// # Theorem
    /// Under the relations of [`Family::neighbors`] the epoch is μ-GDP with `μ = max_j 1/s_j`.
    ///
    /// *Proof.* Release as well which batch `J` the record is in (for add/remove: would be in), and how the others are assigned. Neither
    /// depends on the record: its own coin, or the shuffle, is drawn alike in both worlds, and no other record moves. Given the
    /// assignment with `J = j`, only the noisy sum of batch `j` differs, by at most its sensitivity; the queries of the batches may
    /// depend on earlier answers, and given those every other answer has the same law in both worlds. So the epoch is then an
    /// adaptive post-processing of one Gaussian mechanism of noise `s_j`: its trade-off function is at least `G_{1/s_j} ≥ G_μ` (Dong,
    /// Roth, Su, arXiv:1905.02383). A test with level `a_j` given `J = j` errs on the other side at least with
    /// probability `E[G_μ(a_J)] ≥ G_μ(E[a_J])`, because `G_μ` is convex. Forgetting the assignment is post-processing. ∎
    fn mu(&self) -> Option<Mu> {
        self.worst_batch().mu()
    }

    fn pair(&self) -> Option<Pair> {
        self.worst_batch().pair()
    }

    /// An upper bound on the Rényi divergence, rounded up (T26).
    ///
    /// # Theorem
    /// `D_α ≤ α·max_j ρ_j`; when every batch is equally likely, `D_α ≤ ln((1/k)·Σ_j e^{α(α−1)ρ_j})/(α−1)`, which is no
    /// larger. Source: Yu et al., Theorem 2, with the preconditions of E12; the refinement is proved in
    /// `docs/theory` (T26).
    fn renyi(&self, order: Order) -> Divergence {
        let a = Interval::point(order.get());
        let worst = (Interval::point(self.zcdp().get()) * a).hi();
        let bound = match self.assignment {
            Assignment::Independent | Assignment::Reshuffled => worst,
            Assignment::IndependentUniform if order.get() == f64::INFINITY => worst,
            Assignment::IndependentUniform => {
                let b = a - 1.0;
                let none = Interval::new(f64::NEG_INFINITY, f64::NEG_INFINITY);
                let sum = self.noise_multipliers.iter().fold(none, |sum, s| log_add_exp(sum, a * b * rho_of(*s)));
                #[expect(clippy::cast_precision_loss, reason = "a list in memory is shorter than 2^53")]
                let batches = Interval::point(self.noise_multipliers.len() as f64);
                ((sum - batches.ln()) / b).hi().min(worst).max(f64::MIN_POSITIVE)
            }
        };
        Divergence::from_upper_bound(bound)
    }
}

fn rho_of(noise_multiplier: NoiseMultiplier) -> Interval {
    Interval::ONE / (Interval::point(noise_multiplier.get()).square() * 2.0)
}

/// The noise of each batch, and how records come to batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PartitionedEpochFields {
    /// One for each batch.
    pub noise_multipliers: Vec<Number>,
    /// How records come to batches.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub assignment: Assignment,
}

impl TryFrom<&PartitionedEpochFields> for PartitionedEpoch {
    type Error = OutOfDomain;
    /// ROUNDING: noise down.
    fn try_from(fields: &PartitionedEpochFields) -> Result<Self, OutOfDomain> {
        let noise_multipliers = fields.noise_multipliers.iter().map(Number::noise).collect::<Result<_, _>>()?;
        Self::new(fields.assignment, noise_multipliers)
    }
}

impl From<&PartitionedEpoch> for PartitionedEpochFields {
    fn from(epoch: &PartitionedEpoch) -> Self {
        let noise_multipliers = epoch.noise_multipliers.iter().map(|&noise| noise.into()).collect();
        Self { noise_multipliers, assignment: epoch.assignment }
    }
}
