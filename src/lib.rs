//! paygo: pay-as-you-go differential privacy.
pub use paygo_accounting as accounting;
pub use paygo_numeric as numeric;
pub mod selftest;
