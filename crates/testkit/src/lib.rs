//! Slow, obvious references, and servers for tests. Nothing that ships depends on this crate.

pub mod big;
pub mod browser;
pub mod postgres;
