//! What people and programs read.

use comfy_table::{Table, presets};
use paygo_accounting::wire::{Number, Side};
use paygo_numeric::Amount;
use serde_json::Value;
use std::io::Write;

/// An error and its causes, each once: many say what their cause says.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// A number for programs: itself, or the text `"inf"`, which JSON has no number for.
pub(crate) fn json_number(x: f64) -> Value {
    if x == f64::INFINITY { Value::from("inf") } else { Value::from(x) }
}

/// An amount for programs.
pub(crate) fn json_amount(amount: Amount, up: bool) -> Value {
    match Number::of(amount, if up { Side::Up } else { Side::Down }) {
        Number::Integer(n) => n.into(),
        Number::Float(x) => x.into(),
        Number::Decimal(text) => text.into(),
    }
}

/// An amount for people: itself where it is short, else six significant digits on the safe side.
pub(crate) fn shown_amount(amount: Amount, up: bool) -> String {
    let exact = amount.to_string();
    match (exact.len() <= 8, up) {
        (true, _) => exact,
        (false, true) => shown_up(amount.to_f64_up()),
        (false, false) => shown_down(amount.to_f64_down()),
    }
}

/// An upper bound for people: six significant digits, rounded up.
pub(crate) fn shown_up(x: f64) -> String {
    shown(x, 6, true)
}

/// A budget for people: six significant digits, rounded down.
pub(crate) fn shown_down(x: f64) -> String {
    shown(x, 6, false)
}

/// An upper bound for people who compare neighbors on a fine grid: twelve significant digits, rounded up.
pub(crate) fn shown_fine(x: f64) -> String {
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

/// A table for people.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    table.to_string()
}

/// Writes text to standard output; a reader that went away is an ordinary end.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Writes JSON to standard output.
pub(crate) fn print_json(value: &Value) -> anyhow::Result<()> {
    print(&value.to_string())
}

/// Whether an error only says that nobody reads on.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_or_on_the_safe_side() {
        let amount = |text: &str| Amount::from_decimal_up(text).expect("an amount");
        for text in ["0.000001", "0.1", "3", "0.3"] {
            for up in [true, false] {
                assert_eq!(json_amount(amount(text), up).to_string().parse::<f64>(), text.parse::<f64>());
            }
        }
        let third = amount("0.333333333333333334");
        assert!(json_amount(third, true).as_f64() > json_amount(third, false).as_f64());
        assert_eq!(json_amount(Amount::INFINITE, true), "inf");
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
