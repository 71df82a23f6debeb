//! An enclosure of a real number: write a formula once, read off a bound on either side.
//!
//! Doubt widens: an operation whose result is undefined on part of its operands returns [`Interval::ALL`], so a
//! bound read from it is ±∞ and never NaN.

use crate::elementary::{exp_down, exp_m1_down, exp_m1_up, exp_up, ln_1p_down, ln_1p_up, ln_down, ln_up};
use crate::rounding::{add_down, add_up, div_down, div_up, mul_down, mul_up, sqrt_down, sqrt_up};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A closed interval `[lo, hi]` of reals that holds the value computed so far.
///
/// ```
/// use paygo_numeric::Interval;
/// let third = Interval::point(1.0) / Interval::point(3.0);
/// assert!(third.lo() < third.hi() && third.hi() - third.lo() < 1e-16);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    lo: f64,
    hi: f64,
}

impl Interval {
    /// The whole line: nothing is known.
    pub const ALL: Self = Self { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
    /// Exactly zero.
    pub const ZERO: Self = Self { lo: 0.0, hi: 0.0 };
    /// Exactly one.
    pub const ONE: Self = Self { lo: 1.0, hi: 1.0 };

    /// The interval from `lo` to `hi`; [`Interval::ALL`] when they are NaN or in the wrong order.
    #[must_use]
    pub fn new(lo: f64, hi: f64) -> Self {
        if lo <= hi { Self { lo, hi } } else { Self::ALL }
    }

    /// The double `x`, taken as an exact real number.
    #[must_use]
    pub fn point(x: f64) -> Self {
        Self::new(x, x)
    }

    /// The lower bound.
    #[must_use]
    pub const fn lo(self) -> f64 {
        self.lo
    }

    /// The upper bound.
    #[must_use]
    pub const fn hi(self) -> f64 {
        self.hi
    }

    /// A number inside, for searches.
    #[must_use]
    pub fn middle(self) -> f64 {
        self.lo + (self.hi - self.lo) / 2.0
    }

    /// `value` known up to a relative error: `value·(1 ± error)`, for `error` in `[0, 1)`.
    #[must_use]
    pub fn around(value: f64, error: f64) -> Self {
        let slack = mul_up(value.abs(), error);
        Self::new(-add_up(-value, slack), add_up(value, slack))
    }

    /// `e^x`.
    #[must_use]
    pub fn exp(self) -> Self {
        Self::new(exp_down(self.lo), exp_up(self.hi))
    }

    /// `e^x − 1`.
    #[must_use]
    pub fn exp_m1(self) -> Self {
        Self::new(exp_m1_down(self.lo), exp_m1_up(self.hi))
    }

    /// `ln x`; a part at or below zero makes the lower bound −∞.
    #[must_use]
    pub fn ln(self) -> Self {
        if self.hi > 0.0 { Self::new(ln_down(self.lo.max(0.0)), ln_up(self.hi)) } else { Self::ALL }
    }

    /// `ln(1 + x)`; a part at or below −1 makes the lower bound −∞.
    #[must_use]
    pub fn ln_1p(self) -> Self {
        if self.hi > -1.0 { Self::new(ln_1p_down(self.lo.max(-1.0)), ln_1p_up(self.hi)) } else { Self::ALL }
    }

    /// `√x` of the part at or above zero.
    #[must_use]
    pub fn sqrt(self) -> Self {
        if self.hi >= 0.0 { Self::new(sqrt_down(self.lo.max(0.0)), sqrt_up(self.hi)) } else { Self::ALL }
    }

    /// `x²`, never below zero.
    #[must_use]
    pub fn square(self) -> Self {
        let least = if self.lo <= 0.0 && self.hi >= 0.0 { 0.0 } else { self.lo.abs().min(self.hi.abs()) };
        let most = self.lo.abs().max(self.hi.abs());
        Self::new(mul_down(least, least).max(0.0), mul_up(most, most))
    }

    /// `tanh(x) = expm1(2x) / (expm1(2x) + 2)`, for `x ≥ 0`.
    #[must_use]
    pub fn tanh(self) -> Self {
        // Increasing in e = expm1(2x), and 1 − 2/(e + 2) loses nothing where e is large.
        let at = |x: f64| {
            let e = (Self::point(2.0) * Self::point(x)).exp_m1();
            if e.hi < 1.0 { e / (e + 2.0) } else { Self::ONE - Self::point(2.0) / (e + 2.0) }
        };
        Self::new(at(self.lo).lo.max(0.0), at(self.hi).hi.min(1.0))
    }

    /// The real maximum with `floor`.
    #[must_use]
    pub fn max(self, floor: f64) -> Self {
        Self::new(self.lo.max(floor), self.hi.max(floor))
    }
}

impl From<f64> for Interval {
    fn from(x: f64) -> Self {
        Self::point(x)
    }
}

impl Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo }
    }
}

impl<T: Into<Interval>> Add<T> for Interval {
    type Output = Self;
    fn add(self, other: T) -> Self {
        let other = other.into();
        Self::new(add_down(self.lo, other.lo), add_up(self.hi, other.hi))
    }
}

impl<T: Into<Interval>> Sub<T> for Interval {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        self + -other.into()
    }
}

impl<T: Into<Interval>> Mul<T> for Interval {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        let other = other.into();
        if self.lo >= 0.0 && other.lo >= 0.0 {
            // A product of numbers at or above zero: `max` undoes the unit that underflow takes.
            return Self::new(mul_down(self.lo, other.lo).max(0.0), mul_up(self.hi, other.hi));
        }
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        let lo = corners.iter().map(|&(a, b)| mul_down(a, b)).fold(f64::INFINITY, f64::min);
        let hi = corners.iter().map(|&(a, b)| mul_up(a, b)).fold(f64::NEG_INFINITY, f64::max);
        Self::new(lo, hi)
    }
}

impl<T: Into<Interval>> Div<T> for Interval {
    type Output = Self;
    fn div(self, other: T) -> Self {
        let other = other.into();
        if other.lo <= 0.0 && other.hi >= 0.0 {
            return Self::ALL;
        }
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        let lo = corners.iter().map(|&(a, b)| div_down(a, b)).fold(f64::INFINITY, f64::min);
        let hi = corners.iter().map(|&(a, b)| div_up(a, b)).fold(f64::NEG_INFINITY, f64::max);
        if self.lo >= 0.0 && other.lo > 0.0 { Self::new(lo.max(0.0), hi) } else { Self::new(lo, hi) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big::{self, Big};
    use proptest::prelude::*;

    #[track_caller]
    fn check(enclosure: Interval, exact: &Big) {
        let inside = (enclosure.lo == f64::NEG_INFINITY || big::from_f64(enclosure.lo) <= *exact)
            && (enclosure.hi == f64::INFINITY || *exact <= big::from_f64(enclosure.hi));
        assert!(inside, "{enclosure:?} misses the value");
    }

    proptest! {
        #[test]
        fn formulas_enclose_the_truth(a in -50.0f64..50.0, b in 0.001f64..50.0, c in -20.0f64..20.0) {
            let (x, y, z) = (Interval::point(a), Interval::point(b), Interval::point(c));
            let (p, q, r) = (big::from_f64(a), big::from_f64(b), big::from_f64(c));
            check((x * z + y) / y, &((&p * &r + &q) / &q));
            check((x - z).square(), &((&p - &r) * (&p - &r)));
            check((x * y).exp(), &big::exp(&(&p * &q)));
            check((x / y).exp_m1(), &big::exp_m1(&(&p / &q)));
            check((y / 3.0).ln_1p(), &big::ln_1p(&(&q / big::from_f64(3.0))));
            check(y.sqrt() * y.ln(), &(big::sqrt(&q) * big::ln(&q)));
            let e = big::exp_m1(&(&q + &q));
            check(y.tanh(), &(&e / (&e + big::from_f64(2.0))));
        }
    }

    #[test]
    fn doubt_widens_and_never_becomes_nan() {
        assert_eq!(Interval::new(1.0, 0.0), Interval::ALL);
        assert_eq!(Interval::point(f64::NAN), Interval::ALL);
        assert_eq!(Interval::ONE / Interval::new(-1.0, 1.0), Interval::ALL);
        assert_eq!(Interval::point(-1.0).ln(), Interval::ALL);
        assert_eq!(Interval::ALL - Interval::ALL, Interval::ALL);
        assert_eq!((Interval::ZERO * Interval::ALL), Interval::ZERO);
        assert!(Interval::point(400.0).tanh().hi() <= 1.0);
    }
}
