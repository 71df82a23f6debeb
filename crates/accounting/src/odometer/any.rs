//! A boundary whose kind is known only at run time: what the command line holds.

use super::{
    Boundary, Doubling, Linear, NormalMixture, Restart, Stitched, Unobserved, VilleFixed, VilleMixture, VilleUnion,
};
use crate::charge::{Charge, Currency, Sums};
use crate::params::Delta;
use std::sync::Arc;

macro_rules! any_boundary {
    ($($variant:ident),* $(,)?) => {
        /// Any of the boundaries.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyBoundary {
            $(#[doc = concat!("See [`", stringify!($variant), "`].")] $variant($variant)),*
        }

        $(impl From<$variant> for AnyBoundary {
            fn from(boundary: $variant) -> Self {
                Self::$variant(boundary)
            }
        })*

        impl Boundary for AnyBoundary {
            fn word(&self) -> &'static str {
                match self { $(Self::$variant(boundary) => boundary.word()),* }
            }
            fn currency(&self) -> &Arc<Currency> {
                match self { $(Self::$variant(boundary) => boundary.currency()),* }
            }
            fn delta(&self) -> Delta {
                match self { $(Self::$variant(boundary) => boundary.delta()),* }
            }
            fn absorb(&mut self, charge: &Charge, sums: &Sums) -> Result<(), Unobserved> {
                match self { $(Self::$variant(boundary) => boundary.absorb(charge, sums)),* }
            }
            fn value(&self, sums: &Sums) -> f64 {
                match self { $(Self::$variant(boundary) => boundary.value(sums)),* }
            }
        }
    };
}

any_boundary!(VilleMixture, VilleUnion, VilleFixed, Doubling, Restart, Linear, NormalMixture, Stitched);
