//! The boundaries of \[W\] for sub-Gaussian losses, with the drift their text leaves out.
//!
//! # Theorem
//! For steps with ρₙ (pure-DP ones with `ρ = ε·tanh(ε/2)`, T7), let `V = 2·Σρ`. Then `L − V/2` is sub-Gaussian with variance
//! process `V`, so if a boundary `B` is crossed by such a process with probability at most δ′, the loss passes
//! `V/2 + B(V)` with at most that (Part 2.4). Without the drift V/2 the bounds fail almost surely (E6).
//!
//! (ε, δ)-DP steps are made pointwise first (T36). They add the drift `Σ(1 + e^{−ε′})δ′ₙ` and are observed up to `Σδ′ₙ ≤ δ″`; the
//! bound then holds with probability 1 − δ′ − δ″ (Part 2.5).
//!
//! Sources: Whitehouse, Ramdas, Rogers, Wu, *Fully Adaptive Composition in Differential Privacy*; Howard, Ramdas, McAuliffe,
//! Sekhon, arXiv:1810.08240, for the boundaries.

use super::ville::positive;
use super::{Boundary, Kind, Unobserved};
use crate::charge::{Charge, Currency, Sums};
use crate::convert::{Conversion, zcdp};
use crate::params::{Delta, Epsilon, OutOfDomain};
use crate::wire::{FilterError, OdometerWords};
use paygo_numeric::elementary::ln;
use paygo_numeric::normal::{log_cdf, tail_within};
use paygo_numeric::search::{certified, root};
use paygo_numeric::{Amount, Interval};
use std::sync::Arc;

/// δ = δ′ + δ″.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    total: Delta,
    loss: Delta,
    slack: Amount,
}

impl Split {
    fn new(delta: Delta, slack: Amount) -> Result<Self, OutOfDomain> {
        let total = positive(delta)?;
        // ROUNDING: down; δ′ + δ″ is at most δ.
        let loss = (Interval::point(delta.get()) - slack.to_f64_up()).lo();
        match Delta::new(loss).and_then(positive) {
            Ok(loss) => Ok(Self { total, loss, slack }),
            Err(_) => Err(OutOfDomain::new("slack", slack, "0 <= slack < delta")),
        }
    }

    /// Whether the steps' own δ stay within δ″.
    fn check(&self, charge: &Charge, sums: &Sums) -> Result<(), Unobserved> {
        let delta = Currency::POINTWISE_DELTA;
        let needed = sums.lanes()[delta].plus(charge.lanes().amounts()[delta]);
        if needed > self.slack { Err(Unobserved::Slack { needed, slack: self.slack }) } else { Ok(()) }
    }

    /// ln(1/δ′).
    fn log(&self) -> Interval {
        -Interval::point(self.loss.get()).ln()
    }

    /// V, and what is added to every boundary: V/2 and the pointwise drift. `None` once δ″ is used up.
    fn moments(&self, sums: &Sums) -> Option<(Interval, Interval)> {
        let [rho, drift, delta] = sums.lanes() else { return None };
        if *delta > self.slack || rho.is_infinite() {
            return None;
        }
        // ROUNDING: up; every boundary rises with V.
        let rho = Interval::point(rho.to_f64_up());
        Some((rho * 2.0, rho + drift.to_f64_up()))
    }
}

macro_rules! normal_boundary {
    ($name:ident, $word:literal) => {
        fn word(&self) -> &'static str {
            $word
        }

        fn currency(&self) -> &Arc<Currency> {
            &self.currency
        }

        fn delta(&self) -> Delta {
            self.split.total
        }
    };
}

/// A straight line in V, tight at one place: \[W\]'s filter read as an odometer.
///
/// # Theorem
/// `B(V) = V·√(l/(2y)) + √(y·l/2)` with `l = ln(1/δ′)`: Ville's inequality at `λ = √(2l/y)`. At `V = y` it is `√(2yl)`, which no
/// boundary can beat by much there.
///
/// # Preconditions
/// `y` was fixed before the first output. See the head of this file for the steps.
///
/// # Tightness
/// At `V = y` as tight as the classic conversion of a plan that ends there; far from it a straight line, hence loose. An adversary
/// that chases it crosses it with almost the whole of δ′ (`paygo audit`).
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    split: Split,
    tight_at: Amount,
    currency: Arc<Currency>,
}

impl Linear {
    /// Tight where `V` reaches a given value.
    ///
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, the slack is δ or more, or the place is 0 or infinite.
    pub fn tight_at(variance: Amount, delta: Delta, slack: Amount) -> Result<Self, OutOfDomain> {
        if variance == Amount::ZERO || variance.is_infinite() {
            return Err(OutOfDomain::new("variance", variance, "0 < variance < inf"));
        }
        let currency = Arc::new(Currency::Pointwise);
        Ok(Self { split: Split::new(delta, slack)?, tight_at: variance, currency })
    }

    /// Tight where the reading reaches a given ε.
    ///
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, the slack is δ or more, or ε is 0 or infinite.
    pub fn for_target(epsilon: Epsilon, delta: Delta, slack: Amount) -> Result<Self, OutOfDomain> {
        let split = Split::new(delta, slack)?;
        let rho = zcdp::budget(Conversion::Classic, epsilon, split.loss).get();
        match Amount::from_f64_down(2.0 * rho) {
            Some(variance) if variance > Amount::ZERO && !variance.is_infinite() => {
                Self::tight_at(variance, delta, slack)
            }
            Some(_) | None => Err(OutOfDomain::new("epsilon-target", epsilon, "0 < epsilon < inf")),
        }
    }

    /// The `V` at which it is tight.
    #[must_use]
    pub const fn variance(&self) -> Amount {
        self.tight_at
    }

    /// The part of δ for the steps' own δ.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.split.slack
    }
}

impl Boundary for Linear {
    normal_boundary!(Linear, "linear");

    fn absorb(&mut self, charge: &Charge, sums: &Sums) -> Result<(), Unobserved> {
        self.split.check(charge, sums)
    }

    fn value(&self, sums: &Sums) -> f64 {
        let Some((v, drift)) = self.split.moments(sums) else { return f64::INFINITY };
        let (l, y) = (self.split.log(), Interval::new(self.tight_at.to_f64_down(), self.tight_at.to_f64_up()));
        (drift + v * (l / (y * 2.0)).sqrt() + (y * l * 0.5).sqrt()).hi()
    }
}

/// A mixture over half-normal λ: within a small factor of the best over a wide range of V.
///
/// # Theorem
/// `B(v) = x·√(v+ρ)` with `2·√(ρ/(v+ρ))·e^{x²/2}·Φ(x) = 1/δ′`: Ville's inequality for the mixture of precision ρ.
///
/// # Preconditions
/// ρ was fixed before the first output. See the head of this file for the steps.
///
/// # Soundness
/// The root is certified; the closed form `x² = 2·ln(√((v+ρ)/ρ)/(2δ′) + ½)`, which is at or above it because
/// `1 − Φ(x) ≤ e^{−x²/2}/2`, stands in where that fails.
///
/// # Tightness
/// Best where `V` is about `2·ln(1/δ′)` times the precision, within a few percent of [`Linear`] there and never far from it; almost
/// the whole of δ′ is used by an adversary that chases it (`paygo audit`).
#[derive(Clone, Debug, PartialEq)]
pub struct NormalMixture {
    split: Split,
    precision: Amount,
    currency: Arc<Currency>,
}

impl NormalMixture {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, the slack is δ or more, or the precision is 0 or infinite.
    pub fn new(precision: Amount, delta: Delta, slack: Amount) -> Result<Self, OutOfDomain> {
        if precision == Amount::ZERO || precision.is_infinite() {
            return Err(OutOfDomain::new("precision", precision, "0 < precision < inf"));
        }
        Ok(Self { split: Split::new(delta, slack)?, precision, currency: Arc::new(Currency::Pointwise) })
    }

    /// The precision that is best about where the reading reaches a given ε.
    ///
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, the slack is δ or more, or ε is 0 or infinite.
    pub fn for_target(epsilon: Epsilon, delta: Delta, slack: Amount) -> Result<Self, OutOfDomain> {
        let linear = Linear::for_target(epsilon, delta, slack)?;
        let twice_log = -2.0 * ln(linear.split.loss.get());
        let precision = linear.tight_at.to_f64_down() / (twice_log + ln(1.0 + twice_log));
        Self::new(Amount::from_f64_up(precision), delta, slack)
    }

    /// The precision.
    #[must_use]
    pub const fn precision(&self) -> Amount {
        self.precision
    }

    /// The part of δ for the steps' own δ.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.split.slack
    }

    /// ROUNDING: up. x rises with v; ρ is an exact amount, enclosed.
    fn root(&self, ratio: Interval) -> f64 {
        let log = self.split.log();
        // ½·ln((v+ρ)/ρ) + ln(1/δ′) − ln 2, which x²/2 + ln Φ(x) must reach.
        let target = ratio.ln() * 0.5 + log - Interval::point(2.0).ln();
        let reached = |x: f64| (Interval::point(x).square() * 0.5 + (-tail_within(Interval::point(x))).ln_1p()).lo();
        let closed =
            ((ratio.sqrt() / (Interval::point(self.split.loss.get()) * 2.0) + 0.5).ln() * 2.0).max(0.0).sqrt().hi();
        let near = root(0.0, closed, |x| 0.5 * x * x + log_cdf(x) - target.middle());
        certified(near, near.max(1e-3), closed, |x| reached(x) >= target.hi())
    }
}

impl Boundary for NormalMixture {
    normal_boundary!(NormalMixture, "normal-mixture");

    fn absorb(&mut self, charge: &Charge, sums: &Sums) -> Result<(), Unobserved> {
        self.split.check(charge, sums)
    }

    fn value(&self, sums: &Sums) -> f64 {
        let Some((v, drift)) = self.split.moments(sums) else { return f64::INFINITY };
        let precision = Interval::new(self.precision.to_f64_down(), self.precision.to_f64_up());
        let x = self.root((v + precision) / precision);
        (drift + (v + precision).sqrt() * x).hi()
    }
}

/// A stitched boundary, growing like the law of the iterated logarithm.
///
/// # Theorem
/// `B(v) = 1.7·√(v·(ln ln(2v/v₀) + 0.72·ln(5.2/δ′)))` for `v ≥ v₀`, the stitched bound with η = 2, s = 1.4 and its constants
/// rounded up.
///
/// # Preconditions
/// `v₀ > 0` is fixed before any output: it is `V` after the first charge that is not zero. See the head of this file for the
/// steps.
///
/// # Tightness
/// The right growth, `√(v·ln ln v)`, at larger constants: usually above the other two within a few decades of `v₀`, below them beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Stitched {
    split: Split,
    /// ρ of the first charge that is not zero: v₀/2.
    first: Option<Amount>,
    currency: Arc<Currency>,
}

impl Stitched {
    /// # Errors
    /// [`OutOfDomain`] when δ is 0 or 1, or the slack is δ or more.
    pub fn new(delta: Delta, slack: Amount) -> Result<Self, OutOfDomain> {
        Ok(Self { split: Split::new(delta, slack)?, first: None, currency: Arc::new(Currency::Pointwise) })
    }

    /// The part of δ for the steps' own δ.
    #[must_use]
    pub const fn slack(&self) -> Amount {
        self.split.slack
    }

    /// ρ of the first charge that is not zero, once there was one.
    #[must_use]
    pub const fn first(&self) -> Option<Amount> {
        self.first
    }
}

impl Boundary for Stitched {
    normal_boundary!(Stitched, "stitched");

    fn absorb(&mut self, charge: &Charge, sums: &Sums) -> Result<(), Unobserved> {
        self.split.check(charge, sums)?;
        let rho = charge.lanes().amounts()[Currency::POINTWISE_RHO];
        if rho > Amount::ZERO {
            self.first.get_or_insert(rho);
        }
        Ok(())
    }

    fn value(&self, sums: &Sums) -> f64 {
        let Some((v, drift)) = self.split.moments(sums) else { return f64::INFINITY };
        let Some(first) = self.first else { return drift.hi() };
        if sums.lanes()[Currency::POINTWISE_RHO] < first {
            return f64::INFINITY; // Not the sums that this boundary has seen: v < v₀ is outside its theorem.
        }
        // ROUNDING: up; the bound falls as v₀ rises.
        let start = Interval::point(first.to_f64_down()) * 2.0;
        let iterated = (v * 2.0 / start).ln().ln();
        let constant =
            (Interval::point(5.2).ln() + self.split.log()) * Interval::new(0.72f64.next_down(), 0.72f64.next_up());
        let outside = Interval::new(1.7f64.next_down(), 1.7f64.next_up());
        (drift + outside * (v * (iterated + constant)).sqrt()).hi()
    }
}

impl Kind for Linear {
    const TAKES: &'static [&'static str] = &["slack"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        Ok(Self::for_target(words.target()?, words.delta()?, words.slack()?)?)
    }
}

impl Kind for NormalMixture {
    const TAKES: &'static [&'static str] = &["slack", "precision"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        let (delta, slack) = (words.delta()?, words.slack()?);
        Ok(match &words.precision {
            Some(precision) => Self::new(precision.amount_down("precision")?, delta, slack)?,
            None => Self::for_target(words.target()?, delta, slack)?,
        })
    }
}

impl Kind for Stitched {
    const TAKES: &'static [&'static str] = &["slack"];

    fn from_words(words: &OdometerWords) -> Result<Self, FilterError> {
        Ok(Self::new(words.delta()?, words.slack()?)?)
    }
}
