//! What people and programs read.

use comfy_table::{Table, presets};
use paygo_accounting::wire::{Number, Side};
use paygo_numeric::Amount;
pub(crate) use paygo_numeric::decimal::{shown_down, shown_fine, shown_up};
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
}
