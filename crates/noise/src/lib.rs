//! Noise that can be trusted: a secure source, exact samplers, one draw for each admitted charge.
//!
//! | read | for |
//! | --- | --- |
//! | [`source`] | where randomness comes from: AES-256 in counter mode, keyed by the operating system |
//! | [`coin`] | exact coins: uniform integers, and heads with probability `e^{−n/d}` |
//! | [`discrete`] | discrete Laplace and discrete Gaussian noise, integers only |
//! | [`release`] | permit in, noisy integers out: a permit is consumed by one release |
//! | [`grid`] | real contributions on a grid, so that sums and noise are integers |
//!
//! Noise drawn as a floating-point number leaks through its last digits: some doubles can only come from some true answers
//! (Mironov 2012). Here answers and noise are integers on a public grid, so no such digits exist (T52).

pub mod coin;
pub mod discrete;
pub mod grid;
pub mod release;
pub mod source;

pub use discrete::{DiscreteGaussian, DiscreteLaplace, FineGaussian, Ratio};
pub use grid::Grid;
pub use release::{NotCovered, Release};
pub use source::Source;
