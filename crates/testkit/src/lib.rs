//! Slow, obvious references. Nothing that ships depends on this crate.

pub mod big;
