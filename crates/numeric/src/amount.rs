//! Exact amounts: integers in a fixed unit of 10⁻¹⁸, like money.
//!
//! Sums of doubles depend on their order and on the machine's patience; sums of integers do not. A double enters an
//! amount once, rounded to the side the caller names; decimal text with up to 18 places enters exactly, so that 0.1 fits
//! ten times into 1. The largest amount stands for +∞ and absorbs whatever is added to it.

use crate::decimal::Digits;
use crate::rounding::{div_down, div_up};

/// A sum or a limit: a whole number of units of 10⁻¹⁸, or +∞.
///
/// ```
/// use paygo_numeric::Amount;
/// let tenth = Amount::from_decimal_up("0.1").unwrap();
/// assert_eq!(tenth.times(10), Amount::ONE);
/// assert!(Amount::from_f64_up(0.1) > tenth); // the double 0.1 is a little more than a tenth
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(u128);

/// Units in 1.
const ONE: u128 = 1_000_000_000_000_000_000;
/// Decimal places of the unit.
const PLACES: usize = 18;

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The least amount above nothing.
    pub const UNIT: Self = Self(1);
    /// 1.
    pub const ONE: Self = Self(ONE);
    /// More than any finite amount (which end below 3.4·10²⁰).
    pub const INFINITE: Self = Self(u128::MAX);
    /// The largest finite amount.
    const MAX: Self = Self(u128::MAX - 1);

    /// The least amount at or above `x`; +∞ for NaN, 0 for a negative number.
    #[must_use]
    pub fn from_f64_up(x: f64) -> Self {
        // ROUNDING: up. NaN is doubt, and doubt costs.
        if x.is_nan() { Self::INFINITE } else { scaled(x).map_or(Self::ZERO, |(floor, rest)| floor.plus_unit_if(rest)) }
    }

    /// The greatest amount at or below `x`, finite if `x` is; `None` for NaN and for a negative number, which no amount is
    /// below.
    #[must_use]
    pub fn from_f64_down(x: f64) -> Option<Self> {
        scaled(x).map(|(floor, _)| if x < f64::INFINITY { floor.min(Self::MAX) } else { floor })
    }

    /// The least amount at or above the decimal number in `text`; `None` when it is not one or is negative.
    #[must_use]
    pub fn from_decimal_up(text: &str) -> Option<Self> {
        decimal(text).map(|(floor, rest)| floor.plus_unit_if(rest))
    }

    /// The greatest amount at or below the decimal number in `text`, finite unless that is `inf`; `None` when it is not one or is
    /// negative.
    #[must_use]
    pub fn from_decimal_down(text: &str) -> Option<Self> {
        let infinite = text.trim_start_matches('+') == "inf";
        decimal(text).map(|(floor, _)| if infinite { floor } else { floor.min(Self::MAX) })
    }

    /// The least amount at or above `numerator/denominator`; +∞ for a denominator of 0 or where the integers do not fit in
    /// 128 bits even when whole and rest are taken apart.
    #[must_use]
    pub fn from_ratio_up(numerator: u128, denominator: u128) -> Self {
        let (Some(whole), Some(rest)) = (numerator.checked_div(denominator), numerator.checked_rem(denominator)) else {
            return Self::INFINITE;
        };
        // Below: rest < denominator; when rest·10¹⁸ does not fit, a unit more than the whole covers it.
        let rest = rest.checked_mul(ONE).map_or(ONE, |units| units.div_ceil(denominator));
        Self(whole.saturating_mul(ONE).saturating_add(rest))
    }

    /// The least amount at or above `n/x`, exactly rounded; `None` where the integers would not fit in 128 bits, which
    /// short decimal and binary fractions never meet. For finite `x > 0`.
    #[must_use]
    pub fn inverse_up(n: u64, x: f64) -> Option<Self> {
        let (mantissa, exponent) = parts(x)?;
        ratio_up(n, u128::from(mantissa), exponent)
    }

    /// The least amount at or above `n/(c·x²)`, as [`Amount::inverse_up`] does.
    #[must_use]
    pub fn inverse_square_up(n: u64, c: u32, x: f64) -> Option<Self> {
        let (mantissa, exponent) = parts(x)?;
        let square = u128::from(mantissa).checked_mul(u128::from(mantissa))?;
        ratio_up(n, square.checked_mul(u128::from(c))?, 2 * exponent)
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, 0 when `other` is larger; +∞ less anything finite stays +∞.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        if self.0 == u128::MAX && other.0 < u128::MAX { self } else { Self(self.0.saturating_sub(other.0)) }
    }

    /// The product with a count.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count as u128))
    }

    /// How often it fits into `room`; the largest count when it is zero.
    #[must_use]
    pub fn fits_into(self, room: Self) -> u64 {
        room.0.checked_div(self.0).map_or(u64::MAX, |times| u64::try_from(times).unwrap_or(u64::MAX))
    }

    /// An even share among `n` (at least one), rounded down, so that `n` of them are at most the whole.
    #[must_use]
    pub const fn shared_by(self, n: u64) -> Self {
        Self(self.0 / if n == 0 { 1 } else { n as u128 })
    }

    /// An even share among `n` (at least one), rounded up.
    #[must_use]
    pub const fn shared_by_up(self, n: u64) -> Self {
        if self.is_infinite() { self } else { Self(self.0.div_ceil(if n == 0 { 1 } else { n as u128 })) }
    }

    /// How many units of 10⁻¹⁸ it is.
    #[must_use]
    pub const fn units(self) -> u128 {
        self.0
    }

    /// The least amount at or above the square.
    #[must_use]
    pub const fn square_up(self) -> Self {
        match self.0.checked_mul(self.0) {
            Some(square) => Self(square.div_ceil(ONE)),
            // From 18.4 on: multiply whole units by the rest, rounded up, so that no product overflows needlessly.
            None => Self(self.0.saturating_mul(self.0.div_ceil(ONE))),
        }
    }

    /// The greatest amount at or below the square, up to 18.4; beyond that, some amount below it.
    #[must_use]
    pub const fn square_down(self) -> Self {
        match self.0.checked_mul(self.0) {
            Some(square) => Self(square / ONE),
            None => match self.0.checked_mul(self.0 / ONE) {
                Some(square) if square < u128::MAX => Self(square),
                Some(_) | None => Self::MAX,
            },
        }
    }

    /// Whether it stands for +∞.
    #[must_use]
    pub const fn is_infinite(self) -> bool {
        self.0 == u128::MAX
    }

    /// The least double at or above it.
    #[must_use]
    pub fn to_f64_up(self) -> f64 {
        if self.is_infinite() {
            return f64::INFINITY;
        }
        #[expect(clippy::cast_precision_loss, reason = "the direction is repaired below")]
        let near = self.0 as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer below 2^128")]
        let up = if (near as u128) < self.0 { near.next_up() } else { near };
        div_up(up, 1e18)
    }

    /// The greatest double at or below it.
    #[must_use]
    pub fn to_f64_down(self) -> f64 {
        if self.is_infinite() {
            return f64::INFINITY;
        }
        #[expect(clippy::cast_precision_loss, reason = "the direction is repaired below")]
        let near = self.0 as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer below 2^128")]
        let down = if (near as u128) > self.0 { near.next_down() } else { near };
        div_down(down, 1e18).max(0.0)
    }

    const fn plus_unit_if(self, rest: bool) -> Self {
        if rest { Self(self.0.saturating_add(1)) } else { self }
    }
}

/// All digits, no exponent: `0.05`; `inf` for +∞.
impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_infinite() {
            return f.write_str("inf");
        }
        let (whole, rest) = (self.0 / ONE, self.0 % ONE);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{rest:0PLACES$}").trim_end_matches('0'))
    }
}

/// `n/(m·2^shift)` in units, rounded up.
fn ratio_up(n: u64, m: u128, shift: i32) -> Option<Amount> {
    let numerator = u128::from(n).checked_mul(ONE)?;
    let (numerator, denominator) = if shift >= 0 {
        (numerator, shift_left(m, shift.unsigned_abs())?)
    } else {
        (shift_left(numerator, shift.unsigned_abs())?, m)
    };
    Some(Amount(numerator.div_ceil(denominator)))
}

/// `x = mantissa·2^exponent` with an odd mantissa, for finite `x > 0`.
fn parts(x: f64) -> Option<(u64, i32)> {
    if !(x > 0.0 && x < f64::INFINITY) {
        return None;
    }
    let bits = x.to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) & 0x7ff);
    let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | (1 << 52), 0) };
    #[expect(clippy::cast_possible_truncation, reason = "an exponent field of 11 bits")]
    let exponent = if biased == 0 { exponent } else { biased as i32 - 1075 };
    let zeros = mantissa.trailing_zeros();
    Some((mantissa >> zeros, exponent + zeros as i32))
}

/// The whole units below `x`, and whether something is left; `None` for NaN and below zero.
fn scaled(x: f64) -> Option<(Amount, bool)> {
    if x == 0.0 {
        return Some((Amount::ZERO, false));
    }
    if x == f64::INFINITY {
        return Some((Amount::INFINITE, false));
    }
    let (mantissa, exponent) = parts(x)?;
    let units = u128::from(mantissa) * ONE; // below 2^53·2^60
    if exponent >= 0 {
        return Some((shift_left(units, exponent.unsigned_abs()).map_or(Amount::INFINITE, Amount), false));
    }
    let shift = exponent.unsigned_abs();
    if shift >= u128::BITS {
        return Some((Amount::ZERO, true));
    }
    let floor = units >> shift;
    Some((Amount(floor), floor << shift != units))
}

fn shift_left(x: u128, shift: u32) -> Option<u128> {
    (shift <= x.leading_zeros()).then(|| x.checked_shl(shift)).flatten()
}

/// The whole units below a decimal number, and whether something is left.
fn decimal(text: &str) -> Option<(Amount, bool)> {
    let magnitude = text.strip_prefix('+').unwrap_or(text);
    if magnitude == "inf" {
        return Some((Amount::INFINITE, false));
    }
    let digits = Digits::of(magnitude.strip_prefix('-').unwrap_or(magnitude))?;
    if digits.digits.is_empty() {
        return Some((Amount::ZERO, false));
    }
    if magnitude.starts_with('-') {
        return None;
    }
    // 0.d₁d₂… · 10^exponent, times 10^18.
    let places = i64::try_from(PLACES).ok()?.saturating_add(digits.exponent);
    let Ok(places) = usize::try_from(places) else { return Some((Amount::ZERO, true)) };
    if places > 39 {
        return Some((Amount::INFINITE, false)); // at least 10^39 units
    }
    let mut units: u128 = 0;
    for place in 0..places {
        let digit = u128::from(digits.digits.get(place).map_or(0, |digit| digit - b'0'));
        match units.checked_mul(10).and_then(|units| units.checked_add(digit)) {
            Some(next) => units = next,
            None => return Some((Amount::INFINITE, false)),
        }
    }
    Some((Amount(units), digits.digits.len() > places))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paygo_testkit::big;
    use proptest::prelude::*;

    /// In units, exactly.
    fn exact(amount: Amount) -> big::Big {
        let word = |n: u128| big::from_u64(u64::try_from(n).expect("64 bits"));
        word(amount.0 >> 64) * big::from_f64(2f64.powi(64)) + word(amount.0 & u128::from(u64::MAX))
    }

    fn units(x: f64) -> big::Big {
        big::from_f64(x) * big::from_f64(1e18)
    }

    proptest! {
        #[test]
        fn doubles_enter_on_the_promised_side(mantissa in 1.0f64..2.0, exponent in -80i32..60) {
            let x = mantissa * 2f64.powi(exponent);
            let (up, down) = (Amount::from_f64_up(x), Amount::from_f64_down(x).expect("not negative"));
            prop_assert!(exact(down) <= units(x) && units(x) <= exact(up));
            prop_assert!(up.minus(down) <= Amount::UNIT);
            prop_assert!(down.to_f64_down() <= x && x <= up.to_f64_up());
            prop_assert!(units(up.to_f64_up()) >= exact(up) && units(up.to_f64_down()) <= exact(up));
        }

        #[test]
        fn text_of_eighteen_places_is_exact(units in 0u128..1_000_000_000_000_000_000_000_000) {
            let amount = Amount(units);
            let text = amount.to_string();
            prop_assert_eq!(Amount::from_decimal_up(&text), Some(amount));
            prop_assert_eq!(Amount::from_decimal_down(&text), Some(amount));
            let longer = if text.contains('.') { format!("{text:0<40}1") } else { format!("{text}.0000000000000000001") };
            prop_assert_eq!(Amount::from_decimal_up(&longer), Some(amount.plus(Amount::UNIT)));
            prop_assert_eq!(Amount::from_decimal_down(&longer), Some(amount));
        }

        #[test]
        fn inverse_squares_round_up_by_less_than_a_unit(n in 1u64..1_000_000, c in 1u32..3, k in 1u32..4000) {
            let x = f64::from(k) / 16.0;
            let ours = Amount::inverse_square_up(n, c, x).expect("fits");
            let truth = big::from_f64(f64::from(c) * x * x);
            // ours·c·x² ≥ n, and one unit less is not.
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let n = units(n as f64);
            prop_assert!(exact(ours) * &truth >= n);
            prop_assert!(exact(ours.minus(Amount::UNIT)) * truth < n);
        }

        #[test]
        fn squares_round_up(n in 0u128..40_000_000_000_000_000_000) {
            let a = Amount(n);
            prop_assert!(exact(a.square_up()) * units(1.0) >= exact(a) * exact(a));
            prop_assert!(exact(a.square_down()) * units(1.0) <= exact(a) * exact(a));
        }
    }

    #[test]
    fn edges() {
        assert_eq!(Amount::from_f64_up(f64::NAN), Amount::INFINITE);
        assert_eq!(Amount::from_f64_down(f64::NAN), None);
        assert_eq!((Amount::from_f64_up(-1.0), Amount::from_f64_down(-1.0)), (Amount::ZERO, None));
        assert_eq!(Amount::from_f64_up(5e-324), Amount::UNIT);
        assert_eq!(Amount::from_f64_down(5e-324), Some(Amount::ZERO));
        assert_eq!(Amount::from_f64_up(1e300), Amount::INFINITE);
        // A limit rounds down to something finite, which no saturated sum is within.
        for limit in [Amount::from_f64_down(1e300), Amount::from_decimal_down("1e300")] {
            assert!(limit.is_some_and(|limit| limit < Amount::INFINITE));
        }
        assert!(Amount::from_f64_up(1e19).square_down() < Amount::INFINITE);
        assert_eq!(Amount::from_f64_down(f64::INFINITY), Some(Amount::INFINITE));
        assert_eq!(Amount::INFINITE.plus(Amount::ONE), Amount::INFINITE);
        assert_eq!(Amount::INFINITE.minus(Amount::ONE), Amount::INFINITE);
        assert_eq!(Amount::INFINITE.times(0).plus(Amount::ONE), Amount::ONE);
        assert_eq!(Amount::from_decimal_up("1e-400"), Some(Amount::UNIT));
        assert_eq!(Amount::from_decimal_up("1e400"), Some(Amount::INFINITE));
        assert_eq!(Amount::from_decimal_up("-0"), Some(Amount::ZERO));
        assert_eq!((Amount::from_decimal_up("-1"), Amount::from_decimal_up("x")), (None, None));
        assert_eq!(Amount::from_decimal_up("inf"), Some(Amount::INFINITE));
        assert_eq!(Amount::inverse_square_up(100, 2, 10.0), Some(Amount::from_decimal_up("0.5").expect("text")));
        assert_eq!(Amount::inverse_square_up(1, 2, 1.1), None);
        assert_eq!(Amount::from_ratio_up(1, 3).to_string(), "0.333333333333333334");
        assert_eq!(Amount::from_ratio_up(7, 0), Amount::INFINITE);
        assert_eq!(Amount::from_ratio_up(u128::MAX, 2), Amount::INFINITE);
        assert!(Amount::from_ratio_up(u128::MAX - 1, u128::MAX) >= Amount::ONE.minus(Amount::UNIT));
        assert_eq!(Amount::inverse_up(10, 10.0), Some(Amount::ONE));
        assert_eq!(Amount::inverse_up(1, 3.0).expect("fits").to_string(), "0.333333333333333334");
        assert_eq!(Amount::from_decimal_up("0.05").expect("text").to_string(), "0.05");
        assert_eq!(Amount::from_f64_up(0.25).to_f64_up(), 0.25);
    }
}
