//! Small tables, and one way to ask them.

#![expect(unreachable_pub, reason = "shared by several test programs")]
#![allow(dead_code, reason = "not every test program uses all of it")]

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use paygo_analysis::{
    Accounts, Answers, ClipNorm, ClipRange, Layout, Manner, Mode, NoiseStd, Query, RoundError, Settings, Statistic,
    Table, Weight, ask, open_accounts,
};
use paygo_noise::Source;
use std::sync::Arc;

/// Rows of person, amount and region.
pub fn batch(rows: &[(i64, f64, &str)]) -> RecordBatch {
    let person: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let amount: ArrayRef = Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let region: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.2)));
    RecordBatch::try_from_iter([("person", person), ("amount", amount), ("region", region)]).expect("a batch")
}

pub fn table(rows: &[(i64, f64, &str)]) -> Table {
    Table::in_memory(vec![batch(rows)])
}

pub fn settings(budget: &str) -> Settings {
    Settings::new("person", Mode::Individual, budget.parse().expect("a budget"))
}

pub fn fresh(table: &Table, budget: &str) -> Accounts {
    open_accounts(None, table, &settings(budget), &|_| ()).expect("accounts")
}

pub fn query(statistic: Statistic, noise_std: f64) -> Query {
    Query::new("q", statistic, None, noise(noise_std)).expect("a query")
}

pub fn noise(noise_std: f64) -> NoiseStd {
    NoiseStd::new(noise_std).expect("noise")
}

pub fn clip(low: f64, high: f64) -> ClipRange {
    ClipRange::new(low, high).expect("a clip")
}

pub fn rows(norm: f64) -> Weight {
    Weight::Rows(ClipNorm::new(norm).expect("a norm"))
}

pub fn sum(low: f64, high: f64) -> Statistic {
    Statistic::Sum("amount".into(), clip(low, high))
}

pub fn layout(queries: Vec<Query>) -> Layout {
    Layout::new(queries, None).expect("a layout")
}

pub fn ask_with(
    table: &Table,
    layout: &Layout,
    accounts: &mut Accounts,
    manner: Manner,
) -> Result<Answers, RoundError> {
    ask(table, layout, accounts, manner, &mut Source::from_operating_system().expect("a source"), &|_| ())
}

pub fn ask_plainly(table: &Table, layout: &Layout, accounts: &mut Accounts) -> Answers {
    ask_with(table, layout, accounts, Manner::default()).expect("answers")
}

/// The share that somebody has spent.
pub fn share(accounts: &Accounts, id: &str) -> u32 {
    accounts.disclose(id).expect("whole").expect("an account").expose().share
}
