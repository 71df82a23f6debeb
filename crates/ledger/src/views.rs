//! What is shown of a ledger, as it is written: the same for pages, programs and the command line.

use crate::entry::{AccountName, Digest, Entry, Refused, Role};
use crate::names::{Name, Note, RequestId};
use crate::state::{Account, Dataset, Point, State, Token, Totals};
use crate::words::{Decision, Meters};
use paygo_accounting::filter::{Meter, Rule};
use paygo_accounting::params::Neighbors as Relation;
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors, Number, Side};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Meters by name, on the safe side.
pub(crate) fn meters(meters: &[Meter], amount: impl Fn(&Meter) -> Amount, side: Side) -> Meters {
    meters.iter().map(|meter| (meter.name.to_owned(), Number::of(amount(meter), side))).collect()
}

/// Where a log ends: whoever keeps it elsewhere can insist on it later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeadView {
    /// Which ledger.
    pub ledger: String,
    /// The last entry.
    pub entry: u64,
    /// Its digest.
    pub receipt: Digest,
    /// Its time, in milliseconds since 1970.
    pub at: u64,
}

/// A dataset in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overview {
    /// Its name.
    pub name: Name,
    /// Who is protected.
    pub privacy_unit: String,
    /// Which rule decides.
    pub kind: String,
    /// Whether it admits nothing any more.
    pub closed: bool,
    /// How many blocks it has; `None` when it is not divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// The fullest of its accounts; `None` when it has no block yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullest: Option<AccountView>,
    /// Requests admitted.
    pub admitted: u64,
    /// Requests refused.
    pub refused: u64,
    /// Reservations that may still be cancelled.
    pub reservations: u64,
}

/// A dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DatasetView {
    /// Its name.
    pub name: Name,
    /// Who made it.
    pub by: Name,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Which datasets are neighbors.
    pub neighbors: Neighbors,
    /// Who is protected.
    pub privacy_unit: String,
    /// Which rule decides.
    pub kind: String,
    /// What is promised to whom.
    pub promise: String,
    /// The filter as it was asked for.
    pub filter: FilterWords,
    /// Whether it admits nothing any more.
    pub closed: bool,
    /// Whether it is divided into blocks.
    pub has_blocks: bool,
    /// Requests admitted.
    pub admitted: u64,
    /// Requests refused.
    pub refused: u64,
    /// The whole, or each block.
    pub accounts: Vec<AccountView>,
    /// Ceilings.
    pub allowances: Vec<AllowanceView>,
    /// What is held.
    pub reservations: Vec<ReservationView>,
    /// By who asked; those past the first thousand under `…`.
    pub by_requester: BTreeMap<String, TotalsView>,
    /// By mechanism.
    pub by_mechanism: BTreeMap<String, TotalsView>,
    /// What was spent of the fullest account over time.
    pub history: Vec<PointView>,
}

/// Sums against a budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountView {
    /// Which.
    pub account: AccountName,
    /// What has been spent, reservations included, rounded up.
    pub spent: BTreeMap<String, Number>,
    /// Of what.
    pub budget: BTreeMap<String, Number>,
    /// What is left, rounded down.
    pub remaining: BTreeMap<String, Number>,
    /// The part of the budget that is spent, for pictures.
    pub share: f64,
    /// What was lost, as an odometer reads it.
    pub odometer: OdometerView,
}

/// A bound on what was lost, at every moment at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OdometerView {
    /// ε, rounded up.
    pub epsilon: Number,
    /// δ.
    pub delta: Number,
}

/// A ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AllowanceView {
    /// What it is called.
    pub name: Name,
    /// Whose requests count.
    pub members: Vec<Name>,
    /// What they have spent.
    pub account: AccountView,
}

/// A charge that may still be given back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservationView {
    /// Whose.
    pub holder: Name,
    /// Which.
    pub id: RequestId,
    /// What is held.
    pub mechanism: Mechanism,
    /// How many of a repeated mechanism were used, as far as was said.
    pub used: u64,
    /// When it can no longer be cancelled, in milliseconds since 1970.
    pub expires: u64,
}

/// How much was asked for, and how much of it admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TotalsView {
    /// Requests admitted.
    pub admitted: u64,
    /// Requests refused.
    pub refused: u64,
    /// The part of everything admitted.
    pub share: f64,
}

/// What had been spent at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PointView {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How much of the fullest account's first meter, rounded up.
    pub spent: Number,
    /// What its odometer read.
    pub odometer: Number,
}

/// A decision, as the log holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecisionView {
    /// The entry of the log.
    pub entry: u64,
    /// Its digest.
    pub receipt: Digest,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Who asked.
    pub by: Name,
    /// Their id for it.
    pub id: RequestId,
    /// What.
    pub mechanism: Mechanism,
    /// Which blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<Name>>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Whether it was admitted.
    pub decision: Decision,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// Whether it was a reservation.
    pub reserved: bool,
}

/// A token, without what only its holder knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenView {
    /// SHA-256 of it.
    pub hash: Digest,
    /// Whoever asks with it.
    pub holder: Name,
    /// What it allows.
    pub role: Role,
    /// Where; everywhere when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datasets: Option<Vec<Name>>,
    /// Whether it may ask for explicit Rényi curves.
    pub explicit_curves: bool,
    /// Until when, in milliseconds since 1970; for ever when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

impl DecisionView {
    /// The decision that an entry is, with its mechanism among those that were priced.
    #[must_use]
    pub fn new(entry: &Entry, receipt: Digest, mechanisms: &HashMap<u64, Mechanism>) -> Option<Self> {
        let (decided, expires) = entry.event.decision()?;
        Some(Self {
            entry: entry.seq,
            receipt,
            at: entry.at,
            by: decided.by.clone(),
            id: decided.id.clone(),
            mechanism: mechanisms.get(&decided.price)?.clone(),
            blocks: decided.blocks.clone(),
            note: decided.note.clone(),
            decision: if decided.refused.is_some() { Decision::Refuse } else { Decision::Admit },
            refused: decided.refused.as_deref().cloned(),
            reserved: expires.is_some(),
        })
    }
}

impl AccountView {
    fn new(dataset: &Dataset, account: AccountName, sums: &Account) -> Self {
        let (each, reading) = (sums.meters(), dataset.reading(sums));
        Self {
            account,
            spent: meters(&each, |meter| meter.spent, Side::Up),
            budget: meters(&each, |meter| meter.budget, Side::Down),
            remaining: meters(&each, Meter::remaining, Side::Down),
            share: Dataset::part_spent(&each),
            odometer: OdometerView {
                epsilon: Number::double(reading.epsilon.get()),
                delta: Number::double(reading.delta.get()),
            },
        }
    }
}

impl From<&State> for HeadView {
    fn from(state: &State) -> Self {
        let (entry, receipt, at) = (state.seq(), state.digest(), state.at());
        Self { ledger: state.ledger().to_owned(), entry, receipt, at }
    }
}

impl From<&Dataset> for Overview {
    fn from(dataset: &Dataset) -> Self {
        let fullest = dataset.fullest_account().and_then(|name| Some((dataset.find_account(&name)?, name)));
        Self {
            name: dataset.name().clone(),
            privacy_unit: dataset.privacy_unit().to_owned(),
            kind: dataset.rule().word().to_owned(),
            closed: dataset.is_closed(),
            blocks: dataset.has_blocks().then(|| dataset.accounts().count() as u64),
            fullest: fullest.map(|(account, name)| AccountView::new(dataset, name, account)),
            admitted: dataset.totals().admitted,
            refused: dataset.totals().refused,
            reservations: dataset.reservations().count() as u64,
        }
    }
}

impl From<&Dataset> for DatasetView {
    fn from(dataset: &Dataset) -> Self {
        let totals = |(name, totals): (&str, &Totals)| {
            let (admitted, refused, share) = (totals.admitted, totals.refused, dataset.share(totals));
            (name.to_owned(), TotalsView { admitted, refused, share })
        };
        let (by, at) = dataset.made();
        Self {
            name: dataset.name().clone(),
            by: by.clone(),
            at,
            neighbors: dataset.neighbors(),
            privacy_unit: dataset.privacy_unit().to_owned(),
            kind: dataset.rule().word().to_owned(),
            promise: format!(
                "{} for one {} under {} neighbors, fully adaptive, kept by a {} filter",
                dataset.words().promise(),
                dataset.privacy_unit(),
                Relation::from(dataset.neighbors()),
                dataset.rule().word()
            ),
            filter: dataset.words().clone(),
            closed: dataset.is_closed(),
            has_blocks: dataset.has_blocks(),
            admitted: dataset.totals().admitted,
            refused: dataset.totals().refused,
            accounts: dataset.accounts().map(|(name, sums)| AccountView::new(dataset, name.clone(), sums)).collect(),
            allowances: dataset
                .allowances()
                .map(|(name, members, account)| AllowanceView {
                    name: name.clone(),
                    members: members.to_vec(),
                    account: AccountView::new(dataset, AccountName::Allowance(name.clone()), account),
                })
                .collect(),
            reservations: dataset
                .reservations()
                .map(|((holder, id), held)| ReservationView {
                    holder: holder.clone(),
                    id: id.clone(),
                    mechanism: held.mechanism.clone(),
                    used: held.used,
                    expires: held.expires,
                })
                .collect(),
            by_requester: dataset.by_requester().map(totals).collect(),
            by_mechanism: dataset.by_mechanism().map(totals).collect(),
            history: dataset.history().iter().map(PointView::from).collect(),
        }
    }
}

impl From<&Point> for PointView {
    fn from(point: &Point) -> Self {
        let (spent, odometer) = (Number::of(point.spent, Side::Up), Number::of(point.lost, Side::Up));
        Self { at: point.at, spent, odometer }
    }
}

impl From<&Token> for TokenView {
    fn from(token: &Token) -> Self {
        let Token { hash, holder, role, datasets, explicit_curves, expires } = token.clone();
        Self { hash, holder, role, datasets, explicit_curves, expires }
    }
}
