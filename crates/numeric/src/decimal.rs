//! Decimal text to a double on the safe side.
//!
//! `"0.1"` names a real number that no double holds. [`parse_up`] and [`parse_down`] return its two neighbors, found by
//! comparing the exact decimal expansion of the nearest double with the text, digit by digit.

use std::cmp::Ordering;

/// The least double at or above the decimal number in `text`; `None` when it is not one. `"inf"` is +∞.
#[must_use]
pub fn parse_up(text: &str) -> Option<f64> {
    let nearest = parse_nearest(text)?;
    Some(if compare(nearest, text)? == Ordering::Less { nearest.next_up() } else { nearest })
}

/// The greatest double at or below the decimal number in `text`; `None` when it is not one. `"inf"` is +∞.
#[must_use]
pub fn parse_down(text: &str) -> Option<f64> {
    let nearest = parse_nearest(text)?;
    Some(if compare(nearest, text)? == Ordering::Greater { nearest.next_down() } else { nearest })
}

/// The double nearest to the decimal number in `text`: digits with an optional sign, point and exponent, or `"inf"`.
#[must_use]
pub fn parse_nearest(text: &str) -> Option<f64> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = body.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if plain || body == "inf" { text.parse().ok() } else { None }
}

/// How the double compares with the decimal number, exactly.
fn compare(value: f64, text: &str) -> Option<Ordering> {
    if text.trim_start_matches(['+', '-']) == "inf" {
        return Some(Ordering::Equal);
    }
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if value.is_infinite() {
        return Some(if negative { Ordering::Less } else { Ordering::Greater });
    }
    // 767 significant digits write any double exactly.
    let ours = Digits::of(&format!("{:.766e}", value.abs()))?;
    let theirs = Digits::of(magnitude)?;
    let order = ours.cmp(&theirs);
    Some(if negative { order.reverse() } else { order })
}

/// A decimal number as its first significant digit's exponent and its digits, without zeros at either end.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digits {
    /// The number is `0.d₁d₂… · 10^exponent`.
    pub(crate) exponent: i64,
    /// ASCII digits.
    pub(crate) digits: Vec<u8>,
}

impl Digits {
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let Some(first) = all.iter().position(|&d| d != b'0') else {
            return Some(Self { exponent: i64::MIN, digits: Vec::new() });
        };
        let last = all.iter().rposition(|&d| d != b'0').unwrap_or(first);
        let place = i64::try_from(whole.len()).ok()? - i64::try_from(first).ok()?;
        Some(Self { exponent: exponent.checked_add(place)?, digits: all[first..=last].to_vec() })
    }
}

/// An upper bound for people: six significant digits, rounded up.
#[must_use]
pub fn shown_up(x: f64) -> String {
    shown(x, 6, true)
}

/// A budget for people: six significant digits, rounded down.
#[must_use]
pub fn shown_down(x: f64) -> String {
    shown(x, 6, false)
}

/// An upper bound for people who compare neighbors on a fine grid: twelve significant digits, rounded up.
#[must_use]
pub fn shown_fine(x: f64) -> String {
    shown(x, 12, true)
}

fn shown(x: f64, digits: usize, up: bool) -> String {
    if !x.is_finite() || x == 0.0 {
        return x.to_string();
    }
    let places = digits - 1;
    let rounded: f64 = format!("{x:.places$e}").parse().unwrap_or(x);
    // ROUNDING: to the promised side. Half a unit of the last digit turns "nearest" into "next".
    let wrong_side = if up { rounded < x } else { rounded > x };
    let value = if wrong_side {
        let half = 0.5 * 10f64.powi(exponent(x)) / 10f64.powi(i32::try_from(places).unwrap_or(0)) * (1.0 + 1e-9);
        let moved = if up { x + half } else { x - half };
        format!("{moved:.places$e}").parse().unwrap_or(x)
    } else {
        rounded
    };
    if (1e-4..1e7).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}

fn exponent(x: f64) -> i32 {
    let text = format!("{x:e}");
    text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbors_of_a_decimal() {
        // The double called 0.1 lies above one tenth, the double called 0.3 below three tenths.
        assert_eq!((parse_down("0.1"), parse_up("0.1")), (Some(0.1f64.next_down()), Some(0.1)));
        assert_eq!((parse_down("0.3"), parse_up("0.3")), (Some(0.3), Some(0.3f64.next_up())));
        for exact in ["0.5", "1", "-2.25", "1e3", "0", "-0", "inf", "0.000", "1152921504606846976"] {
            assert_eq!(parse_down(exact), parse_up(exact), "{exact}");
        }
        assert_eq!(parse_up("1e-400"), Some(f64::from_bits(1)));
        assert_eq!(parse_down("1e-400"), Some(0.0));
        assert_eq!((parse_down("1e400"), parse_up("1e400")), (Some(f64::MAX), Some(f64::INFINITY)));
        assert_eq!((parse_down("-0.1"), parse_up("-0.1")), (Some(-0.1), Some((-0.1f64).next_up())));
        for bad in ["", "x", "nan", "NaN", "1e", "--1", ".", "infinity", "1_0"] {
            assert!(parse_up(bad).is_none() && parse_down(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_double_written_out_is_itself(bits in any::<u64>()) {
            let x = f64::from_bits(bits);
            prop_assume!(x.is_finite());
            let text = format!("{x:.1100}");
            prop_assert_eq!(parse_up(&text), Some(x));
            prop_assert_eq!(parse_down(&text), Some(x));
            let shortest = format!("{x:e}");
            let (low, high) = (parse_down(&shortest), parse_up(&shortest));
            prop_assert!(low <= Some(x) && Some(x) <= high);
        }
    }

    #[test]
    fn shown_numbers_err_on_the_promised_side() {
        let mut x = 1.234_567_8e-20;
        for _ in 0..2000 {
            x *= 1.07;
            let (up, down): (f64, f64) = (shown_up(x).parse().expect("up"), shown_down(x).parse().expect("down"));
            let fine: f64 = shown_fine(x).parse().expect("fine");
            assert!(x <= fine && fine <= x * (1.0 + 1.1e-11), "{x:e} {fine:e}");
            assert!(down <= x && x <= up && up <= x * (1.0 + 1.1e-5) && down >= x * (1.0 - 1.1e-5), "{x:e}");
        }
        assert_eq!((shown_up(0.25), shown_down(0.25)), ("0.25".into(), "0.25".into()));
        assert_eq!((shown_up(1.000_000_1), shown_down(0.999_999_9)), ("1.00001".into(), "0.999999".into()));
        assert_eq!((shown_up(f64::INFINITY), shown_up(0.0)), ("inf".into(), "0".into()));
    }
}
