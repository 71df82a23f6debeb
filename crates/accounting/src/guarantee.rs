//! What is promised, to whom, and on what ground.

use crate::params::{Delta, Epsilon, Neighbors};

/// The adaptivity under which a number holds, and so what it may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Holds when every parameter and the moment to stop depend on earlier outputs: may gate a release.
    FullyAdaptive,
    /// Holds when every parameter and the number of steps were fixed in advance: the price of a plan.
    FixedInAdvance,
    /// Not proved: may be far too small.
    Estimate,
    /// A lower bound on the true loss: a warning light.
    Lower,
}

impl Basis {
    /// Its name in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FullyAdaptive => "FullyAdaptive",
            Self::FixedInAdvance => "FixedInAdvance",
            Self::Estimate => "Estimate",
            Self::Lower => "Lower",
        }
    }

    /// What it allows, in one sentence.
    #[must_use]
    pub const fn allows(self) -> &'static str {
        match self {
            Self::FullyAdaptive => {
                "proved also when each step and the moment to stop depend on earlier outputs, as long as a filter keeps \
                 the total within this budget; may gate a release"
            }
            Self::FixedInAdvance => {
                "proved only if every parameter and the number of steps were fixed in advance; the price of a plan, \
                 never a gate"
            }
            Self::Estimate => {
                "what it rests on is false; at some parameters far too small; for orientation only, never a promise"
            }
            Self::Lower => "a lower bound on the true loss; a warning light, never a promise",
        }
    }
}

/// A promise: (ε, δ)-DP for a privacy unit under a neighbor relation, with the ground it stands on.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarantee {
    /// ε, an upper bound.
    pub epsilon: Epsilon,
    /// δ.
    pub delta: Delta,
    /// Which datasets are neighbors.
    pub neighbors: Neighbors,
    /// Who is protected: a record, a user, ….
    pub privacy_unit: String,
    /// The adaptivity under which it holds.
    pub basis: Basis,
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "({}, {})-DP for one {} under {} neighbors [{}]",
            self.epsilon,
            self.delta,
            self.privacy_unit,
            self.neighbors,
            self.basis.word()
        )
    }
}
