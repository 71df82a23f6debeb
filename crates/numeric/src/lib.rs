//! Numbers that err on a known side.
//!
//! Everything paygo reports is a bound, so every operation that enters a bound has a direction. This crate holds all
//! of them; nothing above it calls `exp` or `ln` on its own.
//!
//! | module | holds |
//! | --- | --- |
//! | [`rounding`] | `add_up`, `mul_down`, … : the nearest double on the named side of the real result |
//! | [`elementary`] | `exp`, `ln`, `exp_m1`, `ln_1p` from a portable library, with a stated error, and directed forms |
//! | [`interval`] | [`Interval`]: a pair of doubles that encloses the real value, through any formula |
//! | [`excess`] | `(1+w)^a − 1 − a·w` and its relatives, free of cancellation: the kernel of every Rényi moment |
//! | [`normal`] | `erfc`, `log_erfc`, the normal tail, its logarithm, Mills' ratio, the quantile |
//! | [`fft`] | a Fourier transform with an error bound known beforehand |
//! | [`sums`] | log-sum-exp, log-diff-exp, log-binomials |
//! | [`search`] | minima of convex functions and roots of monotone ones, each with a certificate |
//! | [`decimal`] | decimal text to the nearest double on the named side |
//! | [`amount`] | [`Amount`]: exact sums and limits in units of 10⁻¹⁸ |
//!
//! The rounding mode of the processor is never touched: Rust assumes the default.

#![expect(clippy::disallowed_methods, reason = "this is the crate that the border protects")]

pub mod amount;
pub mod decimal;
pub mod elementary;
pub mod excess;
pub mod fft;
pub mod interval;
pub mod normal;
pub mod rounding;
pub mod search;
pub mod sums;

pub use amount::Amount;
pub use interval::Interval;
