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

/// All digits of a double, for messages: as it is usually written, or as `1e-300` where that would take a line of zeros.
#[must_use]
pub fn spelled(x: f64) -> String {
    const LONG: usize = 24;
    let plain = (x + 0.0).to_string(); // `+ 0.0` turns -0.0 into 0.0.
    if plain.len() > LONG { format!("{x:e}") } else { plain }
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
    let text = format!("{:.places$e}", x.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    // ROUNDING: to the promised side. Text that reads as the double stands for it; but subnormal doubles are so few that digits
    // far from one still read as it, and there the text itself is compared.
    let reads_as = text.parse::<f64>().unwrap_or(0.0);
    let side = if x.is_normal() {
        reads_as.total_cmp(&x.abs())
    } else {
        compare(x.abs(), &text).map_or(Ordering::Equal, Ordering::reverse)
    };
    let away = (x > 0.0) == up;
    match (side, away) {
        (Ordering::Less, true) => {
            // One more in the last place: nines turn to zeros, and all nines into a one.
            let last = digits.iter().rposition(|&d| d != b'9');
            digits.iter_mut().skip(last.map_or(0, |last| last + 1)).for_each(|d| *d = b'0');
            match last {
                Some(last) => digits[last] += 1,
                None => (digits[0], exponent) = (b'1', exponent + 1),
            }
        }
        (Ordering::Greater, false) => {
            // One less: zeros turn to nines, and 1.00000 into 9.99999 of the decade below.
            if let Some(last) = digits.iter().rposition(|&d| d != b'0') {
                digits[last] -= 1;
                digits.iter_mut().skip(last + 1).for_each(|d| *d = b'9');
                if digits[0] == b'0' {
                    (digits[0], exponent) = (b'9', exponent - 1);
                }
            }
        }
        (Ordering::Less | Ordering::Equal | Ordering::Greater, _) => {}
    }
    let length = digits.iter().rposition(|&d| d != b'0').map_or(1, |last| last + 1);
    let digits: String = digits[..length].iter().map(|&d| char::from(d)).collect();
    let sign = if x < 0.0 { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let scientific = format!("{sign}{first}{point}{rest}e{exponent}");
    match scientific.parse::<f64>() {
        Ok(value) if (1e-4..1e7).contains(&value.abs()) => value.to_string(),
        Ok(_) | Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_line_of_zeros_is_spelled_out() {
        for (x, text) in [(0.25, "0.25"), (-0.0, "0"), (1e-9, "0.000000001"), (1e-300, "1e-300"), (-1e300, "-1e300")] {
            assert_eq!(spelled(x), text);
        }
        for x in [0.1, 1.0 / 3.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, 5e-324, -1.0 / 3e7] {
            assert_eq!(spelled(x).parse(), Ok(x), "nothing is lost");
        }
    }

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

    proptest! {
        /// Subnormal doubles too: between them the text itself must be on the promised side.
        #[test]
        fn shown_numbers_are_on_the_promised_side_down_to_the_last_double(bits in 1u64..1 << 54) {
            let x = f64::from_bits(bits);
            for (up, down) in [(shown_up(x), shown_down(x)), (shown_fine(x), shown_down(x))] {
                if x.is_normal() {
                    prop_assert!(down.parse::<f64>().expect("down") <= x && x <= up.parse::<f64>().expect("up"));
                } else {
                    prop_assert!(compare(x, &up) != Some(Ordering::Greater), "{x:e} {up}");
                    prop_assert!(compare(x, &down) != Some(Ordering::Less), "{x:e} {down}");
                }
            }
        }
    }

    #[test]
    fn subnormal_numbers_are_shown_to_six_digits() {
        // `paygo convert --gdp 4.9e-02 --epsilon 1.84`: 2.2159926891e-311.
        let x = 2.215_992_689_1e-311;
        assert_eq!((shown_up(x), shown_down(x)), ("2.216e-311".into(), "2.21599e-311".into()));
        assert_eq!(
            (shown_up(f64::from_bits(1)), shown_down(f64::from_bits(1))),
            ("4.94066e-324".into(), "4.94065e-324".into())
        );
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
        assert_eq!((shown_up(9.999_999), shown_down(1.000_000_1e-9)), ("10".into(), "1e-9".into()));
        assert_eq!((shown_down(9.999_999_9e-9), shown_up(9.999_999_9e8)), ("9.99999e-9".into(), "1e9".into()));
        assert_eq!((shown_up(-1.234_567_8), shown_down(-1.234_567_8)), ("-1.23456".into(), "-1.23457".into()));
        assert_eq!((shown_up(1.000_000_1), shown_down(0.999_999_9)), ("1.00001".into(), "0.999999".into()));
        assert_eq!((shown_up(f64::INFINITY), shown_up(0.0)), ("inf".into(), "0".into()));
    }
}
