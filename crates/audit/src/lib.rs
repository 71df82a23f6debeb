//! Adversaries against filters and odometers.
//!
//! A filter or an odometer is a promise about every analyst there could be. This crate plays the nastiest ones it knows and
//! counts how often the promise is broken: exactly, by enumerating all outcomes, where the adversary's tree is finite; else
//! by simulation with exact binomial limits. A verdict of "holds" is no proof (the proofs are in `docs/theory/`); a verdict
//! of "violated" is one, up to a stated error.
//!
//! | read | for |
//! | --- | --- |
//! | [`adversary`] | what an adversary is, the built-in ones, and how to add one |
//! | [`odometers`] | how often does the loss pass the reading? |
//! | [`filters`] | what is the true δ of an adversary that a filter admits? |
//! | [`clock`] | the same for the clock and for what looks like it, played out over the loss and what is left |
//! | [`literal_unsound`] | published rules as they are printed, which must be convicted and cannot gate anything |
//! | [`binomial`] | exact limits of a probability |
//! | [`suite`] | everything against everything: what `paygo audit` runs |
//!
//! **Cannot gate:** nothing here makes a [`paygo_accounting::filter::Permit`]; only the shipped filters can.

pub mod adversary;
pub mod binomial;
pub mod clock;
pub mod filters;
pub mod literal_unsound;
pub mod odometers;
pub mod suite;

/// What became of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No breach was shown.
    Holds,
    /// The promise was broken.
    Violated,
}

/// How a probability was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By enumerating every outcome, or by a formula.
    Exact,
    /// By simulation.
    MonteCarlo,
}

/// One subject against one adversary.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Trial {
    /// What was tried.
    pub subject: String,
    /// Whether it ships, or is a published form kept for comparison.
    pub shipped: bool,
    /// Who tried it.
    pub adversary: String,
    /// How.
    pub method: Method,
    /// The probability that was promised not to be passed.
    pub promised: f64,
    /// The probability that was found.
    pub found: f64,
    /// 99.9 % limits of it; both equal it when it is exact.
    pub limits: (f64, f64),
    /// Paths simulated; none when exact.
    pub paths: u64,
    /// What follows.
    pub verdict: Verdict,
}

impl Trial {
    /// An exact probability. ROUNDING: plain doubles over a small tree, so a breach must exceed a relative 10⁻⁹.
    #[must_use]
    pub fn exact(subject: &str, shipped: bool, adversary: &str, promised: f64, found: f64) -> Self {
        let verdict = if found > promised * (1.0 + 1e-9) { Verdict::Violated } else { Verdict::Holds };
        Self {
            subject: subject.to_owned(),
            shipped,
            adversary: adversary.to_owned(),
            method: Method::Exact,
            promised,
            found,
            limits: (found, found),
            paths: 0,
            verdict,
        }
    }

    /// A simulated probability: violated when even its lower limit is above what was promised.
    #[must_use]
    pub fn simulated(subject: &str, shipped: bool, adversary: &str, promised: f64, hits: u64, paths: u64) -> Self {
        let limits = binomial::limits(hits, paths, 1e-3);
        let verdict = if limits.0 > promised { Verdict::Violated } else { Verdict::Holds };
        #[expect(clippy::cast_precision_loss, reason = "counts of paths")]
        let found = hits as f64 / paths.max(1) as f64;
        Self {
            subject: subject.to_owned(),
            shipped,
            adversary: adversary.to_owned(),
            method: Method::MonteCarlo,
            promised,
            found,
            limits,
            paths,
            verdict,
        }
    }
}
