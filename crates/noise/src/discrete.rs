//! Discrete Laplace and discrete Gaussian noise.
//!
//! Source: Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*, arXiv:2004.00010, Algorithms 2 and 3.
//! Exact: no floating-point number is touched between the random bits and the answer.

use crate::coin::{heads, heads_exp};
use crate::source::Source;
use paygo_accounting::mechanism::{Mechanism, Pure, Zcdp};
use paygo_accounting::params::{Epsilon, OutOfDomain, Rho};
use paygo_numeric::Amount;
use paygo_numeric::sums::greatest_common_divisor;

/// A positive fraction of two integers up to 2⁴⁰, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// The largest numerator and denominator: squares and products stay below 2¹²⁸.
    pub const MAX: u64 = 1 << 40;

    /// # Errors
    /// [`OutOfDomain`] when one of them is zero or more than 2⁴⁰.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, OutOfDomain> {
        if !(1..=Self::MAX).contains(&numerator) || !(1..=Self::MAX).contains(&denominator) {
            let given = format!("{numerator}/{denominator}");
            return Err(OutOfDomain { parameter: "ratio", given, allowed: "two integers from 1 to 2^40" });
        }
        let common = greatest_common_divisor(numerator, denominator);
        Ok(Self { numerator: numerator / common, denominator: denominator / common })
    }

    /// The least fraction with the denominator 2²⁰ at or above a number: for noise, more is safe.
    ///
    /// # Errors
    /// [`OutOfDomain`] when it is not between 2⁻²⁰ and 2²⁰.
    pub fn at_least(x: f64) -> Result<Self, OutOfDomain> {
        const SCALE: f64 = 1_048_576.0;
        if !(1.0 / SCALE..=SCALE).contains(&x) {
            return Err(OutOfDomain { parameter: "ratio", given: x.to_string(), allowed: "2^-20 <= ratio <= 2^20" });
        }
        // ROUNDING: up; multiplying by a power of two is exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer up to 2^40")]
        Self::new((x * SCALE).ceil() as u64, 1 << 20)
    }

    /// The numerator.
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator.
    #[must_use]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }
}

/// Noise on integers with `P(k) ∝ e^{−|k|/scale}`.
///
/// # Theorem
/// Added to integers of ℓ1 sensitivity Δ it is Δ/scale-DP; exactly, because the ratio of neighboring probabilities is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteLaplace {
    /// The scale.
    pub scale: Ratio,
}

impl DiscreteLaplace {
    /// One draw (Algorithm 2).
    pub fn draw(&self, source: &mut Source) -> i64 {
        let (t, s) = (u128::from(self.scale.numerator), u128::from(self.scale.denominator));
        loop {
            // X geometric with ratio e^{−1/t}, as U + t·V.
            let u = crate::coin::below(t, source);
            if !heads_exp(u, t, source) {
                continue;
            }
            let mut v: u128 = 0;
            while heads_exp(1, 1, source) {
                v += 1;
            }
            let magnitude = (u + t * v) / s;
            let negative = heads(1, 2, source);
            if negative && magnitude == 0 {
                continue; // Zero would come twice.
            }
            // Beyond i64 lies less than e^{−2²²} of the mass; it is put at the end.
            let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
            return if negative { -magnitude } else { magnitude };
        }
    }

    /// What one draw costs at an ℓ1 sensitivity: `Δ/scale`, exactly where it has 18 places.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the sensitivity is zero or more than 2⁴⁰.
    pub fn mechanism(&self, l1_sensitivity: u64) -> Result<Mechanism, OutOfDomain> {
        let sensitivity = checked("l1_sensitivity", l1_sensitivity)?;
        let epsilon =
            Amount::from_ratio_up(u128::from(self.scale.denominator) * sensitivity, u128::from(self.scale.numerator));
        Ok(Mechanism::from(Pure { epsilon: Epsilon::from_decimal(&epsilon.to_string())? }))
    }
}

/// Noise on integers with `P(k) ∝ e^{−k²/(2·variance)}`.
///
/// # Theorem
/// Added to integers of ℓ2 sensitivity Δ it is Δ²/(2·variance)-zCDP. Source: Canonne, Kamath, Steinke, Theorem 4 (T52). Not
/// μ-GDP, and not the profile of continuous Gaussian noise. What lies beyond 2²⁰ standard deviations is never drawn: less than
/// e^{−2²⁰} of the mass, which no δ that can be written down notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    /// σ², not quite the variance when it is small.
    pub variance: Ratio,
}

impl DiscreteGaussian {
    /// One draw (Algorithm 3): discrete Laplace noise of scale `t = ⌊σ⌋ + 1`, kept with probability
    /// `exp(−(|y| − σ²/t)²/(2σ²))`.
    pub fn draw(&self, source: &mut Source) -> i64 {
        let (a, b) = (u128::from(self.variance.numerator), u128::from(self.variance.denominator));
        let t = (a / b).isqrt() + 1; // ⌊√(a/b)⌋ = ⌊√⌊a/b⌋⌋
        let proposal =
            DiscreteLaplace { scale: Ratio { numerator: u64::try_from(t).unwrap_or(Ratio::MAX), denominator: 1 } };
        loop {
            let y = proposal.draw(source);
            // (|y| − a/(bt))²/(2a/b) = (|y|·b·t − a)²/(2·a·b·t²). Below 2¹²⁸ unless |y| > 2²⁰·t, which has less than
            // e^{−2²⁰} of the mass and is drawn again.
            let distance = u128::from(y.unsigned_abs()).checked_mul(b * t).map(|x| x.abs_diff(a));
            let Some(numerator) = distance.and_then(|d| d.checked_mul(d)) else { continue };
            if heads_exp(numerator, 2 * a * b * t * t, source) {
                return y;
            }
        }
    }

    /// What one draw costs at an ℓ2 sensitivity whose square is an integer: `Δ²/(2σ²)`, exactly where it has 18 places.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the squared sensitivity is zero or more than 2⁴⁰.
    pub fn mechanism(&self, l2_sensitivity_squared: u64) -> Result<Mechanism, OutOfDomain> {
        let square = checked("l2_sensitivity squared", l2_sensitivity_squared)?;
        let rho = Amount::from_ratio_up(
            u128::from(self.variance.denominator) * square,
            2 * u128::from(self.variance.numerator),
        );
        Ok(Mechanism::from(Zcdp { rho: Rho::from_decimal(&rho.to_string())? }))
    }
}

/// Noise on integers with `P(k) ∝ e^{−k²/(2·std²)}` and an integer `std` up to 2⁴⁹: for sums in steps so fine that the variance is no
/// [`Ratio`].
///
/// # Theorem
/// As [`DiscreteGaussian`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FineGaussian {
    std: u64,
}

impl FineGaussian {
    /// The largest standard deviation: twice its square is a denominator that [`heads_exp`] takes.
    pub const MAX: u64 = 1 << 49;

    /// # Errors
    /// [`OutOfDomain`] when it is zero or more than 2⁴⁹.
    pub fn new(std: u64) -> Result<Self, OutOfDomain> {
        if !(1..=Self::MAX).contains(&std) {
            let given = std.to_string();
            return Err(OutOfDomain { parameter: "noise_std", given, allowed: "an integer from 1 to 2^49" });
        }
        Ok(Self { std })
    }

    /// One draw: Algorithm 3 with the scale `t = σ`, where what is drawn is kept with probability `exp(−(|y| − σ)²/(2σ²))`.
    pub fn draw(&self, source: &mut Source) -> i64 {
        let proposal = DiscreteLaplace { scale: Ratio { numerator: self.std, denominator: 1 } };
        let denominator = 2 * u128::from(self.std).pow(2);
        loop {
            let y = proposal.draw(source);
            if heads_exp(u128::from(y.unsigned_abs().abs_diff(self.std)).pow(2), denominator, source) {
                return y;
            }
        }
    }

    /// What one draw costs at an ℓ2 sensitivity whose square is an integer up to 2⁶⁰: `Δ²/(2σ²)`, rounded up to 18 places.
    ///
    /// # Errors
    /// [`OutOfDomain`] when the squared sensitivity is zero or more than 2⁶⁰.
    pub fn mechanism(&self, l2_sensitivity_squared: u64) -> Result<Mechanism, OutOfDomain> {
        if !(1..=1 << 60).contains(&l2_sensitivity_squared) {
            let given = l2_sensitivity_squared.to_string();
            let allowed = "an integer from 1 to 2^60";
            return Err(OutOfDomain { parameter: "l2_sensitivity squared", given, allowed });
        }
        let rho = Amount::from_ratio_up(u128::from(l2_sensitivity_squared), 2 * u128::from(self.std).pow(2));
        Ok(Mechanism::from(Zcdp { rho: Rho::from_decimal(&rho.to_string())? }))
    }
}

fn checked(parameter: &'static str, value: u64) -> Result<u128, OutOfDomain> {
    if (1..=Ratio::MAX).contains(&value) {
        Ok(u128::from(value))
    } else {
        Err(OutOfDomain { parameter, given: value.to_string(), allowed: "an integer from 1 to 2^40" })
    }
}
