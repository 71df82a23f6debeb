//! The least noise, the most steps, the largest batch that meet a target, from the safe side.
//!
//! Each search ends with two neighboring candidates on a decimal grid: the one returned was *seen* to meet the target by
//! the certified bound, the next was seen not to. The grid has ten significant digits, so the tolerance is below 10⁻⁹.

use crate::account::{Row, tightest};
use crate::cost::{Bound, Cost, CostError};
use crate::loss::tightest_of_all;
use crate::params::{Delta, Epsilon, OutOfDomain};
use paygo_numeric::Amount;
use paygo_numeric::decimal::spelled;
use paygo_numeric::elementary::{exp, ln};
use paygo_numeric::search::{first_true, last_true, root_within};

/// What is to be met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// (ε, δ)-DP, by the tightest of the fast methods.
    EpsilonDelta(Epsilon, Delta),
    /// (ε, δ)-DP, by the privacy-loss distribution too: less noise for sampled plans, a thousand times slower.
    EpsilonDeltaTight(Epsilon, Delta),
    /// ρ-zCDP. The sum of the ρ is compared exactly, as [`crate::filter::Zcdp`] compares it.
    Rho(Amount),
}

/// What could not be calibrated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// No value in range meets the target.
    #[error("no {parameter} between {least} and {most} is shown to meet the target")]
    Unreachable {
        /// What was sought.
        parameter: &'static str,
        /// The least value tried.
        least: f64,
        /// The largest value tried.
        most: f64,
    },
    /// Not even one repetition meets the target.
    #[error("not even one step meets the target: it costs {}, the target is {}", spelled(*.cost), spelled(*.target))]
    NotEvenOne {
        /// What one costs, in the target's currency.
        cost: f64,
        /// The target.
        target: f64,
    },
    /// The mechanism has no ρ.
    #[error("the mechanism has no rho, or has it only up to a delta of its own; give an (epsilon, delta) target")]
    NoRho,
    /// The mechanism cannot be priced.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// A parameter was out of its domain.
    #[error(transparent)]
    OutOfDomain(#[from] OutOfDomain),
    /// The plan with a value in the place of the unknown is no plan.
    #[error("{0}")]
    Plan(String),
}

/// The outcome of a search over a real parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// The value that meets the target.
    pub value: f64,
    /// What it costs.
    pub price: TargetCost,
    /// The next value on the grid, which does not, and what it costs; `None` when the search ended at the edge of its
    /// range.
    pub next: Option<(f64, TargetCost)>,
}

/// The outcome of a search over a count.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedCount {
    /// The largest count that meets the target.
    pub value: u64,
    /// What it costs.
    pub price: TargetCost,
    /// What one more costs.
    pub next: Option<TargetCost>,
}

/// What a candidate costs, in the target's currency; an upper bound.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetCost {
    /// By the tightest proved method for a plan.
    Epsilon(Row),
    /// In zCDP.
    Rho(Bound),
}

impl TargetCost {
    /// An upper bound.
    #[must_use]
    pub const fn get(&self) -> f64 {
        match self {
            Self::Epsilon(row) => row.epsilon.get(),
            Self::Rho(rho) => rho.float,
        }
    }
}

impl Target {
    fn limit(self) -> f64 {
        match self {
            Self::EpsilonDelta(epsilon, _) | Self::EpsilonDeltaTight(epsilon, _) => epsilon.get(),
            // ROUNDING: down.
            Self::Rho(rho) => rho.to_f64_down(),
        }
    }

    /// The price of a cost in this currency.
    ///
    /// # Errors
    /// [`CalibrationError::NoRho`] when the currency is ρ and the mechanism has none.
    pub fn price(self, cost: &Cost) -> Result<TargetCost, CalibrationError> {
        match self {
            Self::EpsilonDelta(_, delta) => Ok(TargetCost::Epsilon(tightest(cost, delta))),
            Self::EpsilonDeltaTight(_, delta) => Ok(TargetCost::Epsilon(tightest_of_all(cost, delta))),
            // A step with a δ of its own has a ρ only outside an event of that probability.
            Self::Rho(_) if cost.slack() > Delta::ZERO => Err(CalibrationError::NoRho),
            Self::Rho(_) => cost.total_rho().map(TargetCost::Rho).ok_or(CalibrationError::NoRho),
        }
    }

    fn met_by(self, price: &TargetCost) -> bool {
        match (self, price) {
            (Self::Rho(limit), TargetCost::Rho(rho)) => rho.amount <= limit,
            (_, _) => price.get() <= self.limit(),
        }
    }
}

/// Which way the price goes with the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// More of it costs less, as of noise: the least is sought.
    Falls,
    /// More of it costs more, as of a sampling probability: the most is sought.
    Rises,
}

/// The least noise multiplier in `[10⁻³, 10⁷]` with which `cost_at(noise)` meets the target.
///
/// # Errors
/// [`CalibrationError`] when none does or the mechanism cannot be priced.
pub fn least_noise(
    target: Target,
    cost_at: impl Fn(f64) -> Result<Cost, CalibrationError>,
) -> Result<Calibrated, CalibrationError> {
    on_grid("noise_multiplier", target, (1e-3, 1.0, 1e7), Sense::Falls, cost_at)
}

/// The largest sampling probability in `[10⁻⁹, 1]` with which `cost_at(q)` meets the target.
///
/// # Errors
/// [`CalibrationError`] when none does or the mechanism cannot be priced.
pub fn largest_sampling_probability(
    target: Target,
    cost_at: impl Fn(f64) -> Result<Cost, CalibrationError>,
) -> Result<Calibrated, CalibrationError> {
    on_grid("sampling_probability", target, (1e-9, 1e-2, 1.0), Sense::Rises, cost_at)
}

/// The largest number of repetitions of `one`, up to 10¹², that meets the target.
///
/// # Errors
/// [`CalibrationError`] when not even one does or the mechanism cannot be priced.
pub fn most_repeats(target: Target, one: &Cost) -> Result<CalibratedCount, CalibrationError> {
    most_count(target, |count| Ok(one.repeat(count)?))
}

/// The largest count, up to 10¹², with which `cost_at(count)` meets the target.
///
/// # Errors
/// [`CalibrationError`] when not even one does or the mechanism cannot be priced.
pub fn most_count(
    target: Target,
    cost_at: impl Fn(u64) -> Result<Cost, CalibrationError>,
) -> Result<CalibratedCount, CalibrationError> {
    const MAX_COUNT: u64 = 1_000_000_000_000;
    let price = |count: u64| target.price(&cost_at(count)?);
    let one_price = price(1)?; // An error of the mechanism, not of the search, is reported as such.
    let meets = |count: u64| price(count).is_ok_and(|price| target.met_by(&price));
    let too_dear = CalibrationError::NotEvenOne { cost: one_price.get(), target: target.limit() };
    let value = last_true(1, MAX_COUNT, meets).ok_or(too_dear)?;
    let next = if value < MAX_COUNT { Some(price(value + 1)?) } else { None };
    Ok(CalibratedCount { value, price: price(value)?, next })
}

/// The least or the most of a parameter in `[least, most]` with which `cost_at` meets the target; the search begins at `start`.
///
/// # Errors
/// [`CalibrationError`] when no value does or the mechanism cannot be priced.
pub fn on_grid(
    parameter: &'static str,
    target: Target,
    (least, start, most): (f64, f64, f64),
    sense: Sense,
    cost_at: impl Fn(f64) -> Result<Cost, CalibrationError>,
) -> Result<Calibrated, CalibrationError> {
    let price_at = |value: f64| target.price(&cost_at(value)?);
    let unreachable = || CalibrationError::Unreachable { parameter, least, most };
    price_at(start)?; // An error of the mechanism, not of the search, is reported as such.
    // Search: where the price crosses the limit, on logarithmic axes.
    let log_limit = ln(target.limit().max(f64::MIN_POSITIVE));
    let gap = |x: f64| {
        let price = price_at(exp(x)).map_or(f64::INFINITY, |price| price.get());
        let log = ln(price.clamp(f64::MIN_POSITIVE, f64::MAX)) - log_limit;
        match sense {
            Sense::Falls => -log,
            Sense::Rises => log,
        }
    };
    let (low, high) = bracket(ln(least), ln(most), ln(start), gap);
    let found = exp(root_within(low, high, 1e-12, gap));
    // Bound: the first grid point that is seen to meet the target beside one that is seen not to.
    let grid = Grid::around(found);
    let meets = |n: u64| price_at(grid.value(n)).is_ok_and(|price| target.met_by(&price));
    let (low, high) = (grid.index(least).max(1), grid.index(most));
    let guess = grid.index(found);
    let (best, next) = match sense {
        Sense::Falls => {
            let best = first_true(low, high, guess, meets).ok_or_else(unreachable)?;
            (best, (best > low).then(|| best - 1))
        }
        Sense::Rises => {
            let fails = |n: u64| !meets(n);
            match first_true(low, high, guess, fails) {
                Some(first) if first == low => return Err(unreachable()),
                Some(first) => (first - 1, Some(first)),
                None => (high, None),
            }
        }
    };
    let value = grid.value(best);
    let next = match next {
        Some(n) => Some((grid.value(n), price_at(grid.value(n))?)),
        None => None,
    };
    Ok(Calibrated { value, price: price_at(value)?, next })
}

/// A part of `[least, most]` around `start` in which the increasing `gap` changes sign, found by doubling steps: extreme
/// parameters are slow to price and rarely wanted.
fn bracket(least: f64, most: f64, start: f64, gap: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut step = 0.5;
    let (mut low, mut high) = (start, start);
    let rising = gap(start) < 0.0;
    loop {
        if rising {
            (low, high) = (high, (high + step).min(most));
            if high >= most || gap(high) >= 0.0 {
                return (low, high);
            }
        } else {
            (low, high) = ((low - step).max(least), low);
            if low <= least || gap(low) <= 0.0 {
                return (low, high);
            }
        }
        step *= 2.0;
    }
}

/// Decimals of ten significant digits around a number: `n·10^exponent`.
struct Grid {
    exponent: i32,
}

impl Grid {
    fn around(x: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a double is small")]
        let exponent = x.log10().floor() as i32 - 9;
        Self { exponent }
    }

    /// The double called `n·10^exponent`.
    fn value(&self, n: u64) -> f64 {
        format!("{n}e{}", self.exponent).parse().expect("digits and an exponent")
    }

    /// The nearest grid point.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range of the search")]
    fn index(&self, x: f64) -> u64 {
        (x / 10f64.powi(self.exponent)).round().clamp(0.0, 1e18) as u64
    }
}
