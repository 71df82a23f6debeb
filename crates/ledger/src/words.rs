//! What is asked of a ledger and what it answers, as it is written.

use crate::entry::{AccountName, Digest, Role};
use crate::names::{Name, Note, RequestId};
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors, Number};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A dataset to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewDataset {
    /// Its name.
    pub name: Name,
    /// Which datasets are neighbors.
    #[serde(default)]
    pub neighbors: Neighbors,
    /// Who is protected.
    #[serde(default = "record")]
    pub privacy_unit: String,
    /// Which filter keeps its budget. Fixed for good: a budget that could be raised later would promise nothing.
    pub filter: FilterWords,
    /// The δ at which an odometer is read; the budget's unless given, and 10⁻⁶ where that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading_delta: Option<Number>,
    /// Disjoint parts of the data, each with the whole budget. A dataset made with `[]` gets its blocks later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<Name>>,
}

fn record() -> String {
    "record".to_owned()
}

/// Blocks to be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewBlocks {
    /// Their names.
    pub blocks: Vec<Name>,
}

/// A ceiling for some of those who ask, inside a dataset's budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAllowance {
    /// What it is called.
    pub name: Name,
    /// Whose requests count against it.
    pub members: Vec<Name>,
    /// The ceiling: for most kinds ε and δ, for `zcdp` also `rho`, for `gdp` also `mu`; the kind and orders are the dataset's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Number>,
    /// δ of the ceiling; the dataset's unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Number>,
    /// ρ of the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<Number>,
    /// μ of the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mu: Option<Number>,
}

/// A request that is charged when it is admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Spend {
    /// Made by whoever asks, and kept: a retry with the same id hears the first answer.
    pub id: RequestId,
    /// What will be run.
    pub mechanism: Mechanism,
    /// Which blocks it touches: needed where a dataset has blocks, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// A request that is held until it is committed, cancelled or expires; an expired one stays charged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Made by whoever asks, and kept; also the reservation's name.
    pub id: RequestId,
    /// What will be run at most.
    pub mechanism: Mechanism,
    /// Which blocks it touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// How long it can be cancelled; an hour unless given, a week at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// Which blocks a request touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "\"all\", or a list of the names of blocks")]
pub enum Blocks {
    /// By a word.
    Word(BlockWord),
    /// These.
    These(Vec<Name>),
}

/// A word for blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockWord {
    /// All that there are now.
    All,
}

/// How much of a reservation was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Which reservation.
    pub id: RequestId,
    /// How many of a repeated mechanism so far; all of it when left out, and then the reservation is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// What was not used of a reservation is given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Which reservation.
    pub id: RequestId,
    /// The holder's word that nothing was drawn beyond what was committed. Must be `true`.
    pub nothing_drawn: bool,
}

/// A question: what would be answered now?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What would be run.
    pub mechanism: Mechanism,
    /// What would be run after it, one after another: 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Mechanism>,
    /// Which blocks it would touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
}

/// A token to be granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whoever shall ask with it.
    pub holder: Name,
    /// What it allows.
    pub role: Role,
    /// Where; everywhere unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datasets: Option<Vec<Name>>,
    /// Whether it may ask for explicit Rényi curves, which the ledger cannot check.
    #[serde(default)]
    pub explicit_curves: bool,
    /// For how long; for ever unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_days: Option<u32>,
}

/// Names and amounts: `{"epsilon": 0.25}`.
pub type Meters = BTreeMap<String, Number>;

/// The answer to a request to spend or to reserve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Answer {
    /// The request's id.
    pub id: RequestId,
    /// Whether to run it.
    pub decision: Decision,
    /// Whether this was decided before. A repeated admission is no second permission to draw.
    #[serde(default)]
    pub repeated: bool,
    /// The entry of the log that holds the decision.
    pub entry: u64,
    /// The digest of that entry: a receipt.
    pub receipt: Digest,
    /// When it was decided, in milliseconds since 1970.
    pub at: u64,
    /// Which account follows: the one that refused, else the fullest that it touched.
    pub account: AccountName,
    /// What has been spent there by now.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, Number>))]
    pub spent: Arc<Meters>,
    /// What is left there now.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, Number>))]
    pub remaining: Arc<Meters>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it alone would spend there; shown with a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<BTreeMap<String, Number>>,
    /// How many of the same, repeated mechanism would have been admitted; shown with a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_count: Option<u64>,
    /// When a reservation can no longer be cancelled, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

/// What would be answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WhatIf {
    /// Whether it would be admitted now, with all that is to follow.
    pub decision: Decision,
    /// The account that would refuse, else the fullest one that it touches.
    pub account: AccountName,
    /// What has been spent there.
    pub spent: BTreeMap<String, Number>,
    /// What is left there.
    pub remaining: BTreeMap<String, Number>,
    /// What it alone would spend there.
    pub requested: BTreeMap<String, Number>,
    /// What would have been spent there with it.
    pub after: BTreeMap<String, Number>,
    /// The budget there.
    #[serde(default)]
    pub budget: BTreeMap<String, Number>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many of what is asked for would be admitted, one after another; of a repeated mechanism, how many of that.
    pub largest_count: u64,
    /// Where more was to follow: how many of all would be admitted one after another, each of a repeated mechanism counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_turn: Option<u64>,
}

/// A decision in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run it: it is charged.
    Admit,
    /// Do not run it: nothing was charged.
    Refuse,
}

/// The answer to whatever is not a request to spend or to reserve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Done {
    /// The entry of the log that holds it; where it was so already, the one that made it so or a later one.
    pub entry: u64,
    /// The digest of that entry: a receipt.
    pub receipt: Digest,
    /// Whether it was done before.
    #[serde(default)]
    pub repeated: bool,
}

/// A token, told once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Granted {
    /// Keep it: only its hash is stored.
    pub token: String,
    /// SHA-256 of it: its name from now on.
    pub hash: Digest,
    /// The entry of the log.
    pub entry: u64,
    /// The digest of that entry.
    pub receipt: Digest,
}
