//! From one currency to another, in every direction, each rounded to the safe side.
//!
//! | from | file |
//! | --- | --- |
//! | one Rényi order | [`renyi`]: classic, CKS, Lemma 1, exact; the exact one is solved in [`joint_range`] |
//! | zCDP | [`zcdp`]: the same four, minimised over real orders |
//! | GDP, that is Gaussian noise | [`gaussian`]: the exact profile, and that of one Poisson-sampled step |
//! | a curve known only up to some order | [`limited`] |
//! | (ε, δ)-DP and its pointwise cousin | [`pointwise`] |

pub mod gaussian;
pub mod joint_range;
pub mod limited;
pub mod pointwise;
pub mod renyi;
pub mod zcdp;

pub use renyi::Conversion;
