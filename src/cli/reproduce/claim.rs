//! A paper as data: its claims, and the figures that go with them.

use super::figure::Figure;
use anyhow::Context;
use std::sync::LazyLock;

/// One paper.
pub(super) struct Paper {
    /// Its word on the command line.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The rows of its table, in their order.
    pub(super) claims: &'static [Claims],
    pub(super) figures: &'static [Figure],
}

/// Some rows of a paper's table.
pub(super) enum Claims {
    /// Written one by one.
    Each(&'static [Claim]),
    /// All entries of a table that the paper prints, or of a list of cases.
    Table(fn() -> anyhow::Result<Vec<Row>>),
}

/// One claim of a paper; or, where it prints no number, what follows from its text.
pub(super) struct Claim<Text = &'static str, Number = fn() -> anyhow::Result<f64>> {
    /// Where in the paper.
    pub(super) source: &'static str,
    pub(super) what: Text,
    /// As it is printed; empty when nothing is.
    pub(super) printed: Text,
    /// What the paper's formula gives here.
    pub(super) literal: Number,
    /// What may be promised.
    pub(super) sound: Number,
    /// What the sound value is found by.
    pub(super) method: &'static str,
    pub(super) note: &'static str,
}

/// A claim and its numbers.
pub(super) type Row = Claim<String, f64>;

impl Paper {
    /// What makes its table.
    pub(super) fn command(&self) -> String {
        format!("paygo reproduce {}", self.key)
    }

    /// All its claims, with their numbers.
    pub(super) fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for claims in self.claims {
            match claims {
                Claims::Each(claims) => {
                    for claim in *claims {
                        rows.push(claim.row()?);
                    }
                }
                Claims::Table(table) => rows.extend(table()?),
            }
        }
        Ok(rows)
    }
}

impl Claim {
    fn row(&self) -> anyhow::Result<Row> {
        let found =
            |number: fn() -> anyhow::Result<f64>| number().with_context(|| format!("{}: {}", self.source, self.what));
        Ok(Row {
            source: self.source,
            what: self.what.to_owned(),
            printed: self.printed.to_owned(),
            literal: found(self.literal)?,
            sound: found(self.sound)?,
            method: self.method,
            note: self.note,
        })
    }
}

impl Row {
    /// Whether the formula's value is the printed one, rounded or cut to the printed digits; `None` when none is printed.
    pub(super) fn agrees(&self) -> Option<bool> {
        let printed: f64 = self.printed.parse().ok()?;
        let places = self.printed.split_once('.').map_or(0, |(_, places)| places.len());
        let unit = 10f64.powi(-i32::try_from(places).unwrap_or(0));
        let off = self.literal - printed;
        Some(off.abs() <= 0.5 * unit * (1.0 + 1e-9) || (0.0..unit).contains(&off))
    }
}

/// What takes long and is needed more than once: found at its first use.
pub(super) struct Shared<T>(LazyLock<anyhow::Result<T>>);

impl<T> Shared<T> {
    pub(super) const fn new(find: fn() -> anyhow::Result<T>) -> Self {
        Self(LazyLock::new(find))
    }

    pub(super) fn get(&self) -> anyhow::Result<&T> {
        self.0.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))
    }
}
