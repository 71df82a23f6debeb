//! Private statistics on tables of people, with a budget for each person.
//!
//! ```text
//! rows ──▶ contributions, one vector a person, clipped ──▶ who takes part ──▶ charge, on disk ──▶ noise ──▶ answers
//! Table    gather (by partition of rows)                   decide (by block of people)
//! ```
//!
//! | read | for |
//! | --- | --- |
//! | [`Query`], [`Statistic`] | what can be asked, and what one person contributes to it |
//! | [`Condition`] | `where` |
//! | [`Table`] | CSV and Parquet files, in partitions |
//! | [`Accounts`] | what each person has spent, in one file that survives a crash |
//! | [`open_accounts`], [`ask`] | one round, from a question to its answers |
//! | [`Answer`] | numbers and their intervals |
//!
//! # What is promised
//! Whatever is asked, and however the next question depends on the answers: for each person, everything released is as private as
//! their own budget says, under adding or removing that person with all their rows (T19, T20). Noise and normalizers are public.
//! Who takes part, how many do, and what anybody has spent is secret and never shown; [`Accounts::disclose`] reads one person's account
//! for that person.
//!
//! ```
//! use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
//! use paygo_analysis::{ask, open_accounts, Layout, Manner, Mode, NoiseStd, Query, Settings, Statistic, Table};
//! use std::sync::Arc;
//! let user: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 3]));
//! let amount: ArrayRef = Arc::new(Float64Array::from(vec![10.0, 20.0, 500.0, 3.0]));
//! let table = Table::in_memory(vec![RecordBatch::try_from_iter([("user", user), ("amount", amount)])?]);
//! let settings = Settings::new("user", Mode::Individual, "epsilon=1,delta=1e-6".parse()?);
//! let mut accounts = open_accounts(None, &table, &settings, &|_| ())?;
//! let sum = Statistic::Sum("amount".into(), "0..100".parse()?);
//! let sum = Query::new("sales", sum, Some("amount > 0".parse()?), NoiseStd::new(500.0)?)?;
//! let mut source = paygo_noise::Source::from_operating_system()?;
//! let answers = ask(&table, &Layout::new(vec![sum], None)?, &mut accounts, Manner::default(), &mut source, &|_| ())?;
//! assert_eq!(answers.answers[0].name, "sales"); // 30 + 100 + 3, and noise of 500
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use arrow_array;

mod accounts;
mod answer;
mod ask;
mod column;
mod condition;
mod layout;
mod person;
mod query;
mod round;
mod settings;
mod table;

pub use accounts::{Accounts, AccountsError, Disclosure};
pub use answer::{Answer, Number};
pub use ask::{Answers, Manner, ask, open_accounts};
pub use condition::{Comparison, Condition, ConditionError, NotComparable, Value};
pub use layout::Layout;
pub use person::{Key, PersonError, Salt};
pub use query::{
    Bins, ClipNorm, ClipRange, Edges, Missing, NoiseStd, Probability, Query, QueryError, Statistic, Weight,
};
pub use round::{Contributions, Exhausted, RoundError, check_columns, gather};
pub use settings::{Mode, PersonBudget, Settings, Tier};
pub use table::{Partition, Progress, Table, TableError};
