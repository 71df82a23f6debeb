//! The log's entries as they are stored: one line of JSON each, holding the digest of the line before.
//!
//! An entry is never edited, and a new meaning is a new variant. Amounts are decimal text, exact to 18 places. What a mechanism
//! costs is written once, as [`Event::Priced`]; decisions name that entry.

use crate::names::{Name, Note, RequestId};
use paygo_accounting::stored::{Decimal, StoredRule};
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors};
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The format that is written.
pub const VERSION: u32 = 1;

/// SHA-256 of an entry's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
#[serde(try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// What the first entry holds.
    pub const ZERO: Self = Self([0; 32]);

    /// Of some text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// Of some bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    fn hex(&self) -> [u8; 64] {
        let mut text = [0; 64];
        hex::encode_to_slice(self.0, &mut text).expect("two digits for each byte");
        text
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(as_text(&self.hex()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(as_text(&self.hex()))
    }
}

fn as_text(hex: &[u8; 64]) -> &str {
    std::str::from_utf8(hex).expect("hexadecimal digits")
}

impl TryFrom<String> for Digest {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, &'static str> {
        let wrong = "a digest is 64 hexadecimal digits";
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes).map_err(|_| wrong)?;
        // One way to write it: what is hashed and compared is text.
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(wrong);
        }
        Ok(Self(bytes))
    }
}

impl std::str::FromStr for Digest {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, &'static str> {
        Self::try_from(text.to_owned())
    }
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number, from 1.
    pub seq: u64,
    /// Milliseconds since 1970, never less than the entry before.
    pub at: u64,
    /// The digest of the entry before.
    pub prev: Digest,
    /// What happened.
    pub event: Event,
}

impl Entry {
    /// The line that is stored.
    ///
    /// # Panics
    /// Never: every event is plain data.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// Appends the line that is stored, and says its digest.
    ///
    /// # Panics
    /// Never: every event is plain data.
    pub fn write(&self, page: &mut Vec<u8>) -> Digest {
        let start = page.len();
        serde_json::to_writer(&mut *page, self).expect("plain data");
        Digest::of_bytes(&page[start..])
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// A ledger begins.
    Opened {
        /// The format of the log.
        version: u32,
        /// Which ledger this is: random, so that logs cannot be taken for one another.
        ledger: String,
    },
    /// A dataset with a budget.
    DatasetCreated(Box<DatasetCreated>),
    /// More blocks, each with the whole budget.
    BlocksAdded {
        /// Of what.
        dataset: Name,
        /// Who added them.
        by: Name,
        /// Their names.
        blocks: Vec<Name>,
    },
    /// Nothing more is admitted.
    DatasetClosed {
        /// Which.
        dataset: Name,
        /// Who closed it.
        by: Name,
    },
    /// A ceiling for some of those who ask. What they have spent stays when it is set again.
    AllowanceSet {
        /// In what.
        dataset: Name,
        /// Who set it.
        by: Name,
        /// What it is called.
        allowance: Name,
        /// Whose requests count.
        members: Vec<Name>,
        /// The ceiling, in the dataset's own currency.
        rule: Box<StoredRule>,
    },
    /// A token for whoever shall ask over the network.
    TokenGranted {
        /// Whoever asks with it.
        holder: Name,
        /// Who granted it.
        by: Name,
        /// SHA-256 of the token.
        hash: Digest,
        /// What it allows.
        role: Role,
        /// Where; everywhere when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        datasets: Option<Vec<Name>>,
        /// Whether it may ask for explicit Rényi curves.
        #[serde(default, skip_serializing_if = "is_false")]
        explicit_curves: bool,
        /// Until when; for ever when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<u64>,
    },
    /// A token is no longer one.
    TokenRevoked {
        /// Which.
        hash: Digest,
        /// Who revoked it.
        by: Name,
    },
    /// What a mechanism costs in a dataset's currency.
    Priced {
        /// Where.
        dataset: Name,
        /// What.
        mechanism: Mechanism,
        /// How much of it in each lane; on a clock the price of one at each level, for each of its mechanisms.
        amounts: Vec<Decimal>,
        /// How often each mechanism is asked for: once, but on a clock.
        #[serde(default = "once", skip_serializing_if = "is_once")]
        repeats: Vec<u64>,
        /// Its own δ.
        slack: Decimal,
    },
    /// A decision about a request that is charged at once.
    Spent(Decided),
    /// A decision about a request that is held.
    Reserved {
        /// The decision.
        decided: Decided,
        /// When it can no longer be cancelled.
        expires: u64,
    },
    /// How much of a reservation was used.
    Committed {
        /// Where.
        dataset: Name,
        /// Whose.
        by: Name,
        /// Which.
        id: RequestId,
        /// How many of a repeated mechanism, so far; all of it when `None`, and then the reservation is closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
    },
    /// What was not used of a reservation is free again, by its holder's word that nothing of it was drawn.
    Cancelled {
        /// Where.
        dataset: Name,
        /// Whose.
        by: Name,
        /// Which.
        id: RequestId,
        /// What stays charged for what was used: an entry of what it costs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<u64>,
    },
}

fn once() -> Vec<u64> {
    vec![1]
}

fn is_once(repeats: &[u64]) -> bool {
    repeats == [1]
}

impl Event {
    /// The decision that it is, and when it expires if it is a reservation.
    #[must_use]
    pub const fn decision(&self) -> Option<(&Decided, Option<u64>)> {
        match self {
            Self::Spent(decided) => Some((decided, None)),
            Self::Reserved { decided, expires } => Some((decided, Some(*expires))),
            Self::Opened { .. }
            | Self::DatasetCreated(_)
            | Self::BlocksAdded { .. }
            | Self::DatasetClosed { .. }
            | Self::AllowanceSet { .. }
            | Self::TokenGranted { .. }
            | Self::TokenRevoked { .. }
            | Self::Priced { .. }
            | Self::Committed { .. }
            | Self::Cancelled { .. } => None,
        }
    }

    /// The mechanism whose price it says.
    #[must_use]
    pub fn into_mechanism(self) -> Option<Mechanism> {
        if let Self::Priced { mechanism, .. } = self { Some(mechanism) } else { None }
    }

    /// The reservation that it ends, as dataset, holder and id.
    #[must_use]
    pub const fn end(&self) -> Option<(&Name, &Name, &RequestId)> {
        match self {
            Self::Committed { dataset, by, id, used: None } | Self::Cancelled { dataset, by, id, .. } => {
                Some((dataset, by, id))
            }
            Self::Opened { .. }
            | Self::DatasetCreated(_)
            | Self::BlocksAdded { .. }
            | Self::DatasetClosed { .. }
            | Self::AllowanceSet { .. }
            | Self::TokenGranted { .. }
            | Self::TokenRevoked { .. }
            | Self::Priced { .. }
            | Self::Spent(_)
            | Self::Reserved { .. }
            | Self::Committed { .. } => None,
        }
    }
}

/// A dataset as it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetCreated {
    /// Its name.
    pub dataset: Name,
    /// Who made it.
    pub by: Name,
    /// Which datasets are neighbors.
    pub neighbors: Neighbors,
    /// Who is protected.
    pub privacy_unit: String,
    /// The filter as it was asked for.
    pub filter: FilterWords,
    /// The filter as it decides, orders and weights frozen.
    pub rule: StoredRule,
    /// The δ at which an odometer is read.
    pub reading_delta: f64,
    /// Its first blocks, each with the whole budget; `None` when it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<Name>>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// Where.
    pub dataset: Name,
    /// Who asked.
    pub by: Name,
    /// Their id for it.
    pub id: RequestId,
    /// What it costs: the entry that says so.
    pub price: u64,
    /// The blocks it touches; `None` for a dataset without blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<Name>>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Why not; `None` when it was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Refused>>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Whose budget it would have passed.
    pub account: AccountName,
    /// In one sentence.
    pub reason: String,
    /// How many of the same, repeated mechanism would have been admitted.
    pub largest_count: u64,
}

/// What keeps a sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AccountName {
    /// A dataset without blocks.
    Dataset,
    /// One of its blocks.
    Block(Name),
    /// The ceiling of some of those who ask.
    Allowance(Name),
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dataset => write!(f, "dataset"),
            Self::Block(name) => write!(f, "block {name}"),
            Self::Allowance(name) => write!(f, "allowance {name}"),
        }
    }
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything, tokens and new datasets too.
    Admin,
    /// Blocks, allowances and closing, and whatever spenders may.
    Steward,
    /// To spend, reserve, commit and cancel, and to read.
    Spender,
    /// To read, the log too.
    Auditor,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admin => "admin",
            Self::Steward => "steward",
            Self::Spender => "spender",
            Self::Auditor => "auditor",
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
