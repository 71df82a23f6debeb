//! What the log says: datasets, what was spent of their budgets, reservations and tokens.
//!
//! Pure: no clock, no disk, no randomness. [`State::decide`] says what a request becomes, [`State::apply`] moves the sums, and
//! replaying the log from its first entry makes the same state on every machine.

mod allowance;
mod dataset;
mod decide;
mod mistake;
mod reading;
mod snapshot;

pub use dataset::{Account, Dataset, Point, Reservation, Totals};
pub(crate) use decide::unit;
pub use decide::{Asked, Command, Priced, Pricing, Quote, Requester};
pub use mistake::Mistake;
pub(crate) use mistake::{CANCELLED, COMMITTED, EXPIRED};
pub use reading::Reading;
pub use snapshot::{SnapshotError, StoredState};

use crate::entry::{DatasetCreated, Decided, Digest, Entry, Event, Role, VERSION};
use crate::names::Name;
use paygo_accounting::charge::Lanes;
use paygo_accounting::filter::{AnyRule, Rule};
use paygo_accounting::wire::Mechanism;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How many prices are remembered; past that all are forgotten, and written again when they are needed.
const MAX_PRICES: usize = 4096;

/// What the log says.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Which ledger this is; empty before the first entry.
    ledger: String,
    /// The last entry: its number, digest and time.
    seq: u64,
    digest: Option<Digest>,
    at: u64,
    datasets: BTreeMap<Name, Dataset>,
    tokens: BTreeMap<Digest, Token>,
    prices: Prices,
}

/// A token, without what only its holder knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// SHA-256 of it.
    pub hash: Digest,
    /// Whoever asks with it.
    pub holder: Name,
    /// What it allows.
    pub role: Role,
    /// Where; everywhere when `None`.
    pub datasets: Option<Vec<Name>>,
    /// Whether it may ask for explicit curves.
    pub explicit_curves: bool,
    /// Until when; for ever when `None`.
    pub expires: Option<u64>,
}

impl Token {
    /// Whether it is about a dataset.
    #[must_use]
    pub fn covers(&self, dataset: &Name) -> bool {
        self.datasets.as_ref().is_none_or(|datasets| datasets.contains(dataset))
    }
}

/// What a mechanism costs in a dataset's currency.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Where.
    pub dataset: Name,
    /// What, as it was asked for.
    pub mechanism: Mechanism,
    /// How much of it.
    pub lanes: Lanes,
    /// What it is called.
    word: String,
}

impl Price {
    fn new(dataset: Name, mechanism: Mechanism, lanes: Lanes) -> Self {
        let word = dataset::word(&mechanism);
        Self { dataset, mechanism, lanes, word }
    }
}

/// Prices by the entries that say them.
#[derive(Clone, Debug, Default)]
struct Prices {
    by_entry: HashMap<u64, Arc<Price>>,
    /// By dataset and mechanism as it is written, the latest.
    latest: HashMap<Name, HashMap<String, u64>>,
}

impl Prices {
    fn insert(&mut self, entry: u64, price: Price) {
        // The same on every machine: what is remembered depends on the log alone.
        if self.by_entry.len() >= MAX_PRICES {
            *self = Self::default();
        }
        self.latest.entry(price.dataset.clone()).or_default().insert(written(&price.mechanism), entry);
        self.by_entry.insert(entry, Arc::new(price));
    }

    fn latest(&self, dataset: &Name, written: &str) -> Option<u64> {
        self.latest.get(dataset)?.get(written).copied()
    }
}

/// A mechanism as it is written.
pub(crate) fn written(mechanism: &Mechanism) -> String {
    serde_json::to_string(mechanism).unwrap_or_default()
}

/// A log that contradicts itself, or was written by a later version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq} of the log: {what}")]
pub struct Broken {
    /// Which entry.
    pub seq: u64,
    /// What is wrong.
    pub what: String,
}

impl State {
    /// Which ledger this is.
    #[must_use]
    pub fn ledger(&self) -> &str {
        &self.ledger
    }

    /// The number of the last entry; 0 before the first.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The digest of the last entry.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest.unwrap_or(Digest::ZERO)
    }

    /// The time of the last entry.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// All datasets.
    pub fn datasets(&self) -> impl Iterator<Item = &Dataset> {
        self.datasets.values()
    }

    /// One of them.
    #[must_use]
    pub fn dataset(&self, name: &Name) -> Option<&Dataset> {
        self.datasets.get(name)
    }

    /// All tokens.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values()
    }

    /// The token with a hash, unless it has expired by a time.
    #[must_use]
    pub fn token(&self, hash: &Digest, at: u64) -> Option<&Token> {
        self.tokens.get(hash).filter(|token| token.expires.is_none_or(|expires| at < expires))
    }

    /// What a mechanism was said to cost by an entry, if that is remembered.
    #[must_use]
    pub fn price(&self, entry: u64) -> Option<&Arc<Price>> {
        self.prices.by_entry.get(&entry)
    }

    /// Moves the state on by an entry of the log, whose line has this digest.
    ///
    /// # Errors
    /// [`Broken`] when the entry does not follow; the state is then of no more use.
    pub fn apply(&mut self, entry: &Entry, digest: Digest) -> Result<(), Broken> {
        let broken = |what: String| Broken { seq: entry.seq, what };
        if entry.seq != self.seq + 1 {
            return Err(broken(format!("numbered {}; expected {}", entry.seq, self.seq + 1)));
        }
        if entry.prev != self.digest() {
            return Err(broken(format!("holds digest {}; the entry before has {}", entry.prev, self.digest())));
        }
        if entry.at < self.at {
            return Err(broken("is older than the entry before".to_owned()));
        }
        self.event(entry).map_err(broken)?;
        (self.seq, self.digest, self.at) = (entry.seq, Some(digest), entry.at);
        Ok(())
    }

    fn event(&mut self, entry: &Entry) -> Result<(), String> {
        let at = entry.at;
        match &entry.event {
            Event::Opened { version, ledger } => self.opened(entry.seq, *version, ledger)?,
            Event::DatasetCreated(created) => self.created(created, at)?,
            Event::BlocksAdded { dataset, by: _, blocks } => self.known(dataset)?.add_blocks(blocks),
            Event::DatasetClosed { dataset, by: _ } => self.known(dataset)?.close(),
            Event::AllowanceSet { dataset, by: _, allowance, members, rule } => {
                let rule = Arc::new(AnyRule::try_from(&**rule).map_err(|error| error.to_string())?);
                self.known(dataset)?.set_allowance(allowance, members, rule)?;
            }
            Event::TokenGranted { holder, by: _, hash, role, datasets, explicit_curves, expires } => {
                let (holder, datasets) = (holder.clone(), datasets.clone());
                let (explicit_curves, expires) = (*explicit_curves, *expires);
                let token = Token { hash: *hash, holder, role: *role, datasets, explicit_curves, expires };
                self.tokens.insert(*hash, token);
            }
            Event::TokenRevoked { hash, by: _ } => {
                self.tokens.remove(hash);
            }
            Event::Priced { .. } => {
                let price = self.read_price(&entry.event).ok_or("does not say a price in its dataset's currency")?;
                self.prices.insert(entry.seq, price);
            }
            Event::Spent(decided) => self.decided(decided, None, entry)?,
            Event::Reserved { decided, expires } => self.decided(decided, Some(*expires), entry)?,
            Event::Committed { dataset, by, id, used } => self.known(dataset)?.committed(by, id, *used, at)?,
            Event::Cancelled { dataset, by, id, kept } => {
                let kept = match kept {
                    Some(kept) => Some(Arc::clone(self.price(*kept).ok_or("names a price that is not known")?)),
                    None => None,
                };
                self.known(dataset)?.cancelled(by, id, kept.as_deref(), at)?;
            }
        }
        Ok(())
    }

    fn opened(&mut self, seq: u64, version: u32, ledger: &str) -> Result<(), String> {
        if seq != 1 {
            return Err("opens a ledger that is open".to_owned());
        }
        if version != VERSION {
            return Err(format!("format {version} is not known here; expected {VERSION}"));
        }
        ledger.clone_into(&mut self.ledger);
        Ok(())
    }

    fn created(&mut self, created: &DatasetCreated, at: u64) -> Result<(), String> {
        let rule = Arc::new(AnyRule::try_from(&created.rule).map_err(|error| error.to_string())?);
        let mut dataset = Dataset::new(dataset::Settings {
            name: created.dataset.clone(),
            by: created.by.clone(),
            at,
            neighbors: created.neighbors,
            privacy_unit: created.privacy_unit.clone(),
            filter: created.filter.clone(),
            rule,
            reading_delta: created.reading_delta,
            has_blocks: created.blocks.is_some(),
        });
        dataset.add_blocks(created.blocks.as_deref().unwrap_or_default());
        if self.datasets.insert(created.dataset.clone(), dataset).is_some() {
            return Err(format!("creates dataset {} again", created.dataset));
        }
        Ok(())
    }

    /// The price that an event says.
    pub(crate) fn read_price(&self, event: &Event) -> Option<Price> {
        let Event::Priced { dataset, mechanism, amounts, repeats, slack } = event else { return None };
        let amounts = amounts.iter().map(|text| text.amount("amounts").ok()).collect::<Option<Vec<_>>>()?;
        let currency = self.dataset(dataset)?.rule().currency();
        let lanes = Lanes::from_stored(currency, amounts, repeats.clone(), slack.amount("slack").ok()?)?;
        Some(Price::new(dataset.clone(), mechanism.clone(), lanes))
    }

    fn known(&mut self, name: &Name) -> Result<&mut Dataset, String> {
        self.datasets.get_mut(name).ok_or_else(|| format!("names dataset {name}, which there is not"))
    }

    fn decided(&mut self, decided: &Decided, expires: Option<u64>, entry: &Entry) -> Result<(), String> {
        let price = self.prices.by_entry.get(&decided.price).filter(|price| price.dataset == decided.dataset);
        let price = price.ok_or_else(|| format!("names price {}, which there is not", decided.price))?;
        let dataset = self.datasets.get_mut(&decided.dataset).ok_or("names a dataset that there is not")?;
        dataset.decided(decided, price, expires, entry)
    }

    /// Whether the accounts that an event touched are within their budgets: asserted before it is written.
    #[must_use]
    pub fn is_within_budget(&self, event: &Event) -> bool {
        let Some((decided, _)) = event.decision().filter(|(decided, _)| decided.refused.is_none()) else { return true };
        self.dataset(&decided.dataset).is_some_and(|dataset| {
            let mut touched = dataset.touched(decided.blocks.as_deref(), &decided.by);
            touched.all(|(_, account)| account.filter().is_within_budget())
        })
    }
}
