//! The state as it is stored now and then, so that a long log opens quickly. Derived from the log, and checked against it by
//! [`crate::verify`].

use super::dataset::{Account, Allowance, Dataset, History, Point, Reservation, Settings, Totals};
use super::{Price, State, Token};
use crate::entry::{AccountName, Digest, Role};
use crate::names::{Name, RequestId};
use paygo_accounting::charge::{Held, Lanes};
use paygo_accounting::filter::{AnyRule, Filter, Rule};
use paygo_accounting::params::OutOfDomain;
use paygo_accounting::stored::{Decimal, LoadError, StoredRule};
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The format that is written. A snapshot in another is passed over: the log says everything that it says.
const VERSION: u32 = 2;

/// A state as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredState {
    version: u32,
    ledger: String,
    /// The entry after which it is the state.
    pub seq: u64,
    /// The digest of that entry.
    pub digest: Digest,
    at: u64,
    datasets: Vec<StoredDataset>,
    tokens: Vec<StoredToken>,
    prices: BTreeMap<u64, StoredPrice>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredSums {
    lanes: Vec<Decimal>,
    slack: Decimal,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredLanes {
    amounts: Vec<Decimal>,
    repeats: Vec<u64>,
    slack: Decimal,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredPrice {
    dataset: Name,
    mechanism: Mechanism,
    lanes: StoredLanes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredToken {
    hash: Digest,
    holder: Name,
    role: Role,
    datasets: Option<Vec<Name>>,
    explicit_curves: bool,
    expires: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredTotals {
    admitted: u64,
    refused: u64,
    amounts: Vec<Decimal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredReservation {
    holder: Name,
    id: RequestId,
    mechanism: Mechanism,
    lanes: StoredLanes,
    held: Vec<(AccountName, StoredSums)>,
    used: u64,
    expires: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredDataset {
    name: Name,
    by: Name,
    at: u64,
    neighbors: Neighbors,
    privacy_unit: String,
    filter: FilterWords,
    rule: StoredRule,
    reading_delta: f64,
    has_blocks: bool,
    closed: bool,
    accounts: Vec<(AccountName, StoredSums)>,
    allowances: Vec<(Name, Vec<Name>, StoredRule, StoredSums)>,
    reservations: Vec<StoredReservation>,
    by_requester: BTreeMap<String, StoredTotals>,
    by_mechanism: BTreeMap<String, StoredTotals>,
    totals: StoredTotals,
    recent: Vec<u64>,
    points: Vec<(u64, Decimal, Decimal)>,
    stride: u64,
    since: u64,
}

/// A snapshot that cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SnapshotError {
    /// In another format.
    #[error("format {0} of a snapshot is not known here; expected {VERSION}")]
    Version(u32),
    /// A rule or an amount that is not one.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Sums that are not those of their rule.
    #[error("sums that are not those of their rule")]
    Sums,
}

impl From<OutOfDomain> for SnapshotError {
    fn from(error: OutOfDomain) -> Self {
        Self::Load(error.into())
    }
}

fn decimals(amounts: &[Amount]) -> Vec<Decimal> {
    amounts.iter().map(|&amount| amount.into()).collect()
}

fn amounts(decimals: &[Decimal]) -> Result<Vec<Amount>, OutOfDomain> {
    decimals.iter().map(|decimal| decimal.amount("amounts")).collect()
}

impl From<&Lanes> for StoredLanes {
    fn from(lanes: &Lanes) -> Self {
        Self { amounts: decimals(lanes.amounts()), repeats: lanes.repeats().to_vec(), slack: lanes.slack().into() }
    }
}

impl StoredLanes {
    fn lanes(&self, rule: &AnyRule) -> Result<Lanes, SnapshotError> {
        let (amounts, slack) = (amounts(&self.amounts)?, self.slack.amount("slack")?);
        Lanes::from_stored(rule.currency(), amounts, self.repeats.clone(), slack).ok_or(SnapshotError::Sums)
    }
}

impl From<&Held> for StoredSums {
    fn from(held: &Held) -> Self {
        Self { lanes: decimals(held.amounts()), slack: held.slack().into() }
    }
}

impl From<&Account> for StoredSums {
    fn from(account: &Account) -> Self {
        let sums = account.filter.sums();
        Self { lanes: decimals(sums.lanes()), slack: sums.slack().into() }
    }
}

impl StoredSums {
    fn held(&self, rule: &AnyRule) -> Result<Held, SnapshotError> {
        let (amounts, slack) = (amounts(&self.lanes)?, self.slack.amount("slack")?);
        Held::from_stored(rule.currency(), amounts, slack).ok_or(SnapshotError::Sums)
    }

    /// An account, with what is held there.
    fn account<'a>(
        &self,
        rule: &Arc<AnyRule>,
        neighbors: Neighbors,
        held: impl Iterator<Item = &'a Held>,
    ) -> Result<Account, SnapshotError> {
        let (lanes, slack) = (amounts(&self.lanes)?, self.slack.amount("slack")?);
        let filter = Filter::resume(Arc::clone(rule), neighbors.into(), lanes, slack);
        let mut filter = filter.ok_or(SnapshotError::Sums)?;
        held.for_each(|held| filter.hold_again(held));
        Ok(Account { filter })
    }
}

impl From<&Totals> for StoredTotals {
    fn from(totals: &Totals) -> Self {
        Self { admitted: totals.admitted, refused: totals.refused, amounts: decimals(&totals.amounts) }
    }
}

impl TryFrom<&StoredTotals> for Totals {
    type Error = SnapshotError;
    fn try_from(stored: &StoredTotals) -> Result<Self, SnapshotError> {
        Ok(Self { admitted: stored.admitted, refused: stored.refused, amounts: amounts(&stored.amounts)? })
    }
}

impl From<&Dataset> for StoredDataset {
    fn from(dataset: &Dataset) -> Self {
        let Settings { name, by, at, neighbors, privacy_unit, filter, rule, reading_delta, has_blocks } =
            dataset.settings.clone();
        let totals =
            |map: &BTreeMap<String, Totals>| map.iter().map(|(key, totals)| (key.clone(), totals.into())).collect();
        Self {
            name,
            by,
            at,
            neighbors,
            privacy_unit,
            filter,
            rule: StoredRule::from(&*rule),
            reading_delta,
            has_blocks,
            closed: dataset.closed,
            accounts: dataset.accounts.iter().map(|(name, account)| (name.clone(), account.into())).collect(),
            allowances: dataset
                .allowances
                .iter()
                .map(|(name, allowance)| {
                    let rule = StoredRule::from(&**allowance.account.filter.rule());
                    (name.clone(), allowance.members.clone(), rule, (&allowance.account).into())
                })
                .collect(),
            reservations: dataset
                .reservations
                .iter()
                .map(|((holder, id), held)| StoredReservation {
                    holder: holder.clone(),
                    id: id.clone(),
                    mechanism: held.mechanism.clone(),
                    lanes: (&held.lanes).into(),
                    held: held.held.iter().map(|(name, held)| (name.clone(), held.into())).collect(),
                    used: held.used,
                    expires: held.expires,
                })
                .collect(),
            by_requester: totals(&dataset.by_requester),
            by_mechanism: totals(&dataset.by_mechanism),
            totals: (&dataset.totals).into(),
            recent: dataset.recent.iter().copied().collect(),
            points: dataset
                .history
                .points
                .iter()
                .map(|point| (point.at, point.spent.into(), point.lost.into()))
                .collect(),
            stride: dataset.history.stride,
            since: dataset.history.since,
        }
    }
}

impl TryFrom<&StoredDataset> for Dataset {
    type Error = SnapshotError;
    fn try_from(stored: &StoredDataset) -> Result<Self, SnapshotError> {
        let rule = Arc::new(AnyRule::try_from(&stored.rule)?);
        let totals = |map: &BTreeMap<String, StoredTotals>| -> Result<BTreeMap<String, Totals>, SnapshotError> {
            map.iter().map(|(key, totals)| Ok((key.clone(), totals.try_into()?))).collect()
        };
        let reservation = |held: &StoredReservation| {
            let (mechanism, lanes) = (held.mechanism.clone(), held.lanes.lanes(&rule)?);
            let (used, expires) = (held.used, held.expires);
            let key = (held.holder.clone(), held.id.clone());
            let each = held.held.iter().map(|(name, held)| Ok((name.clone(), held.held(&rule)?)));
            let held = each.collect::<Result<Vec<_>, SnapshotError>>()?;
            Ok::<_, SnapshotError>((key, Reservation { mechanism, lanes, held, used, expires }))
        };
        let reservations = stored.reservations.iter().map(reservation).collect::<Result<BTreeMap<_, _>, _>>()?;
        let held_at = |name: AccountName| {
            let all = reservations.values().flat_map(|open| &open.held);
            all.filter(move |(other, _)| *other == name).map(|(_, held)| held)
        };
        let account = |(name, account): &(AccountName, StoredSums)| {
            Ok::<_, SnapshotError>((name.clone(), account.account(&rule, stored.neighbors, held_at(name.clone()))?))
        };
        let allowance = |(name, members, rule, account): &(Name, Vec<Name>, StoredRule, StoredSums)| {
            let rule = Arc::new(AnyRule::try_from(rule)?);
            let held = held_at(AccountName::Allowance(name.clone()));
            let account = account.account(&rule, stored.neighbors, held)?;
            Ok::<_, SnapshotError>((name.clone(), Allowance { members: members.clone(), account }))
        };
        let point = |(at, spent, lost): &(u64, Decimal, Decimal)| {
            let (spent, lost) = (spent.amount("points")?, lost.amount("points")?);
            Ok::<_, SnapshotError>(Point { at: *at, spent, lost })
        };
        let points = stored.points.iter().map(point).collect::<Result<_, _>>()?;
        Ok(Self {
            closed: stored.closed,
            accounts: stored.accounts.iter().map(account).collect::<Result<_, _>>()?,
            allowances: stored.allowances.iter().map(allowance).collect::<Result<_, _>>()?,
            expiries: reservations.iter().map(|(key, held)| (held.expires, key.clone())).collect(),
            by_requester: totals(&stored.by_requester)?,
            by_mechanism: totals(&stored.by_mechanism)?,
            totals: (&stored.totals).try_into()?,
            recent: stored.recent.iter().copied().collect(),
            history: History { points, stride: stored.stride, since: stored.since },
            settings: Settings {
                name: stored.name.clone(),
                by: stored.by.clone(),
                at: stored.at,
                neighbors: stored.neighbors,
                privacy_unit: stored.privacy_unit.clone(),
                filter: stored.filter.clone(),
                rule,
                reading_delta: stored.reading_delta,
                has_blocks: stored.has_blocks,
            },
            reservations,
        })
    }
}

impl From<&State> for StoredState {
    fn from(state: &State) -> Self {
        let price = |price: &Price| StoredPrice {
            dataset: price.dataset.clone(),
            mechanism: price.mechanism.clone(),
            lanes: (&price.lanes).into(),
        };
        let token = |token: &Token| StoredToken {
            hash: token.hash,
            holder: token.holder.clone(),
            role: token.role,
            datasets: token.datasets.clone(),
            explicit_curves: token.explicit_curves,
            expires: token.expires,
        };
        Self {
            version: VERSION,
            ledger: state.ledger.clone(),
            seq: state.seq,
            digest: state.digest(),
            at: state.at,
            datasets: state.datasets.values().map(StoredDataset::from).collect(),
            tokens: state.tokens.values().map(token).collect(),
            prices: state.prices.by_entry.iter().map(|(entry, each)| (*entry, price(each))).collect(),
        }
    }
}

impl TryFrom<&StoredState> for State {
    type Error = SnapshotError;
    fn try_from(stored: &StoredState) -> Result<Self, SnapshotError> {
        if stored.version != VERSION {
            return Err(SnapshotError::Version(stored.version));
        }
        let mut state = Self {
            ledger: stored.ledger.clone(),
            seq: stored.seq,
            digest: Some(stored.digest),
            at: stored.at,
            ..Self::default()
        };
        for dataset in &stored.datasets {
            state.datasets.insert(dataset.name.clone(), dataset.try_into()?);
        }
        for token in &stored.tokens {
            let (holder, datasets) = (token.holder.clone(), token.datasets.clone());
            let (hash, role, explicit_curves, expires) = (token.hash, token.role, token.explicit_curves, token.expires);
            let token = Token { hash, holder, role, datasets, explicit_curves, expires };
            state.tokens.insert(hash, token);
        }
        for (entry, price) in &stored.prices {
            let dataset = state.dataset(&price.dataset).ok_or(SnapshotError::Sums)?;
            let lanes = price.lanes.lanes(dataset.rule())?;
            let price = Price::new(price.dataset.clone(), price.mechanism.clone(), lanes);
            state.prices.insert(*entry, price);
        }
        Ok(state)
    }
}
