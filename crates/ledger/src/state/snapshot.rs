//! The state as it is stored now and then, so that a long log opens quickly. Derived from the log, and checked against it by
//! [`crate::verify`].

use super::dataset::{Account, Allowance, Dataset, History, Point, Reservation, Settings, Totals};
use super::{Price, State, Token};
use crate::entry::{AccountName, Digest, Role};
use crate::names::{Name, RequestId};
use paygo_accounting::charge::Sums;
use paygo_accounting::filter::{AnyRule, Filter, Rule};
use paygo_accounting::params::OutOfDomain;
use paygo_accounting::stored::{Decimal, LoadError, StoredRule};
use paygo_accounting::wire::{FilterWords, Mechanism, Neighbors};
use paygo_numeric::Amount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The format that is written. A snapshot in another is passed over: the log says everything that it says.
const VERSION: u32 = 1;

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
struct StoredAccount {
    charged: StoredSums,
    spent: StoredSums,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredPrice {
    dataset: Name,
    mechanism: Mechanism,
    sums: StoredSums,
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
    sums: StoredSums,
    accounts: Vec<AccountName>,
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
    accounts: Vec<(AccountName, StoredAccount)>,
    allowances: Vec<(Name, Vec<Name>, StoredRule, StoredAccount)>,
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

impl From<&Sums> for StoredSums {
    fn from(sums: &Sums) -> Self {
        Self { lanes: decimals(sums.lanes()), slack: sums.slack().into() }
    }
}

impl StoredSums {
    fn sums(&self, rule: &AnyRule) -> Result<Sums, SnapshotError> {
        let slack = self.slack.amount("slack")?;
        Sums::from_stored(rule.currency(), amounts(&self.lanes)?, slack).ok_or(SnapshotError::Sums)
    }
}

impl From<&Account> for StoredAccount {
    fn from(account: &Account) -> Self {
        Self { charged: account.charged.sums().into(), spent: (&account.spent).into() }
    }
}

impl StoredAccount {
    fn account(&self, rule: &Arc<AnyRule>, neighbors: Neighbors) -> Result<Account, SnapshotError> {
        let mut charged = Filter::new(Arc::clone(rule), neighbors.into());
        charged.replay(&self.charged.sums(rule)?);
        Ok(Account { charged, spent: self.spent.sums(rule)? })
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
                    let rule = StoredRule::from(&**allowance.account.charged.rule());
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
                    sums: (&held.sums).into(),
                    accounts: held.accounts.clone(),
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
        let account = |(name, account): &(AccountName, StoredAccount)| {
            Ok::<_, SnapshotError>((name.clone(), account.account(&rule, stored.neighbors)?))
        };
        let allowance = |(name, members, rule, account): &(Name, Vec<Name>, StoredRule, StoredAccount)| {
            let rule = Arc::new(AnyRule::try_from(rule)?);
            let account = account.account(&rule, stored.neighbors)?;
            Ok::<_, SnapshotError>((name.clone(), Allowance { members: members.clone(), account }))
        };
        let reservation = |held: &StoredReservation| {
            let (mechanism, sums) = (held.mechanism.clone(), held.sums.sums(&rule)?);
            let (accounts, used, expires) = (held.accounts.clone(), held.used, held.expires);
            let key = (held.holder.clone(), held.id.clone());
            Ok::<_, SnapshotError>((key, Reservation { mechanism, sums, accounts, used, expires }))
        };
        let point = |(at, spent, lost): &(u64, Decimal, Decimal)| {
            let (spent, lost) = (spent.amount("points")?, lost.amount("points")?);
            Ok::<_, SnapshotError>(Point { at: *at, spent, lost })
        };
        let points = stored.points.iter().map(point).collect::<Result<_, _>>()?;
        let reservations = stored.reservations.iter().map(reservation).collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(Self {
            closed: stored.closed,
            accounts: stored.accounts.iter().map(account).collect::<Result<_, _>>()?,
            allowances: stored.allowances.iter().map(allowance).collect::<Result<_, _>>()?,
            expiries: reservations.iter().map(|(key, held)| (held.expires, key.clone())).collect(),
            reservations,
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
        })
    }
}

impl From<&State> for StoredState {
    fn from(state: &State) -> Self {
        let price = |price: &Price| StoredPrice {
            dataset: price.dataset.clone(),
            mechanism: price.mechanism.clone(),
            sums: (&price.sums).into(),
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
            let sums = price.sums.sums(dataset.rule())?;
            let price = Price::new(price.dataset.clone(), price.mechanism.clone(), sums);
            state.prices.insert(*entry, price);
        }
        Ok(state)
    }
}
