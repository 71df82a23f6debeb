//! The table of odometers: each kind's name and boundary, a line each.

use super::{
    Boundary, Doubling, Linear, NormalMixture, Restart, Stitched, Unobserved, VilleFixed, VilleMixture, VilleUnion,
};
use crate::charge::{Charge, Currency, Sums};
use crate::filter::listed;
use crate::params::Delta;
use crate::wire::{FilterError, OdometerWords};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a boundary is asked for.
pub trait Kind: Boundary {
    /// What may be said beside δ and a target: the names of fields of [`OdometerWords`].
    const TAKES: &'static [&'static str];

    /// The boundary that was asked for.
    ///
    /// # Errors
    /// [`FilterError`] naming the field, what was given and what is allowed.
    fn from_words(words: &OdometerWords) -> Result<Self, FilterError>;
}

macro_rules! kinds {
    ($(#[doc = $help:literal] $word:literal $(or $old:literal)?: $boundary:ident;)*) => {
        /// The kinds of odometers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum OdometerKind {
            $(#[doc = $help] #[serde(rename = $word $(, alias = $old)?)] $boundary,)*
        }

        impl OdometerKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$boundary),*];

            /// Its name.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$boundary => $word),* }
            }

            /// A name it had before, which is still read.
            #[must_use]
            pub fn old_word(self) -> Option<&'static str> {
                match self { $(Self::$boundary => [$($old)?].first().copied()),* }
            }

            /// What it is for, in a line.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$boundary => $help.trim_ascii()),* }
            }

            /// Whether a field of [`OdometerWords`] goes with it.
            pub(crate) fn takes(self, field: &str) -> bool {
                match self { $(Self::$boundary => <$boundary as Kind>::TAKES.contains(&field)),* }
            }

            /// The boundary that was asked for.
            pub(crate) fn boundary(self, words: &OdometerWords) -> Result<AnyBoundary, FilterError> {
                match self { $(Self::$boundary => $boundary::from_words(words).map(AnyBoundary::from)),* }
            }
        }

        /// A boundary whose kind is known only at run time.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyBoundary {
            $(#[doc = $help] $boundary($boundary),)*
        }

        $(impl From<$boundary> for AnyBoundary {
            fn from(boundary: $boundary) -> Self {
                Self::$boundary(boundary)
            }
        })*

        impl Boundary for AnyBoundary {
            fn word(&self) -> &'static str {
                match self { $(Self::$boundary(_) => $word),* }
            }
            fn currency(&self) -> &Arc<Currency> {
                match self { $(Self::$boundary(boundary) => boundary.currency()),* }
            }
            fn delta(&self) -> Delta {
                match self { $(Self::$boundary(boundary) => boundary.delta()),* }
            }
            fn absorb(&mut self, charge: &Charge, sums: &Sums) -> Result<(), Unobserved> {
                match self { $(Self::$boundary(boundary) => boundary.absorb(charge, sums)),* }
            }
            fn value(&self, sums: &Sums) -> f64 {
                match self { $(Self::$boundary(boundary) => boundary.value(sums)),* }
            }
        }
    };
}

kinds! {
    /// A mixture of Rényi orders: any mechanism, the default
    "ville-mixture": VilleMixture;
    /// Rényi orders that share delta
    "ville-union": VilleUnion;
    /// One Rényi order, fixed in advance
    "ville-fixed": VilleFixed;
    /// Levels that double, corrected; for comparison
    "doubling": Doubling;
    /// Steps of a fixed size at one order
    "restart": Restart;
    /// A straight line in the sum of rho, tight at a target
    "linear": Linear;
    /// A mixture in the sum of rho, good over a wide range
    "normal-mixture" or "mixture": NormalMixture;
    /// The best growth in the sum of rho
    "stitched": Stitched;
}

#[expect(clippy::derivable_impls, reason = "the variants come from the table")]
impl Default for OdometerKind {
    fn default() -> Self {
        Self::VilleMixture
    }
}

/// The names of some kinds, as a sentence lists them.
pub(crate) fn names(which: impl Fn(OdometerKind) -> bool) -> String {
    listed(OdometerKind::ALL.iter().filter(|&&kind| which(kind)).map(|kind| kind.word()))
}
