//! What the tests of the ledger share: stores, clocks, and short ways to ask.

#![allow(dead_code, reason = "each test uses a part")]

use paygo_ledger::ledger::{Clock, Requester};
use paygo_ledger::store::{Location, SqlStore};
use paygo_ledger::verify::{Demands, Report, VerifyError, verify};
use paygo_ledger::words::{Answer, Cancel, Commit, Decision, Done, NewAllowance, NewDataset, Reserve, Spend};
use paygo_ledger::{Ledger, LedgerError, Name};
use paygo_testkit::postgres::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// A place for a ledger, and what keeps it.
pub(crate) struct Place {
    pub(crate) location: Location,
    _folder: Option<TempDir>,
}

impl Place {
    pub(crate) fn file() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let location = Location::File(folder.path().join("a ledger?.db"));
        Self { location, _folder: Some(folder) }
    }

    pub(crate) fn postgres() -> Option<Self> {
        let url = Server::shared()?.database();
        Some(Self { location: url.parse().expect("an address"), _folder: None })
    }

    pub(crate) async fn open(&self) -> Ledger {
        Ledger::open(&self.location).await.expect("a ledger")
    }

    pub(crate) async fn open_at(&self, clock: &FakeClock) -> Ledger {
        Ledger::over(self.store().await, clock.clock()).await.expect("a ledger")
    }

    pub(crate) async fn store(&self) -> SqlStore {
        SqlStore::open(&self.location).await.expect("a store")
    }

    /// Everything derived again from the log.
    pub(crate) async fn verify(&self) -> Result<Report, VerifyError> {
        let ledger = self.open().await;
        let state = ledger.read(Clone::clone);
        ledger.close().await;
        verify(&mut self.store().await, &state, Demands::default(), |_| {}).await
    }
}

/// Runs a test on every store that the machine has.
pub(crate) fn on_every_store<F: Future<Output = ()>>(test: impl Fn(Place) -> F) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
    runtime.block_on(test(Place::file()));
    if let Some(place) = Place::postgres() {
        runtime.block_on(test(place));
    }
}

/// A clock that stands still until it is told to move, back too.
#[derive(Clone)]
pub(crate) struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    pub(crate) fn new(at: u64) -> Self {
        Self(Arc::new(AtomicU64::new(at)))
    }

    pub(crate) fn set(&self, at: u64) {
        self.0.store(at, Ordering::SeqCst);
    }

    /// The time; the next time a millisecond later.
    pub(crate) fn step(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn clock(&self) -> Clock {
        let at = Arc::clone(&self.0);
        Arc::new(move || at.load(Ordering::SeqCst))
    }
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

pub(crate) fn who(text: &str) -> Requester {
    Requester::new(name(text))
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

pub(crate) fn gaussian(noise_multiplier: f64) -> Value {
    json!({"gaussian": {"noise_multiplier": noise_multiplier}})
}

pub(crate) fn repeat(count: u64, of: &Value) -> Value {
    json!({"repeat": {"count": count, "of": of}})
}

pub(crate) fn spend(id: &str, mechanism: Value) -> Spend {
    read(json!({"id": id, "mechanism": mechanism}))
}

/// A short way to ask.
pub(crate) struct Asker<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) who: Requester,
    pub(crate) dataset: Name,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(ledger: &'a Ledger, who_asks: &str, dataset: &str) -> Self {
        Self { ledger, who: who(who_asks), dataset: name(dataset) }
    }

    pub(crate) async fn create(&self, filter: Value) {
        self.create_with(json!({"filter": filter})).await;
    }

    pub(crate) async fn create_with(&self, mut new: Value) {
        new["name"] = json!(self.dataset.as_str());
        self.ledger.create_dataset(&self.who, read::<NewDataset>(new)).await.expect("a dataset");
    }

    pub(crate) async fn spend(&self, id: &str, mechanism: Value) -> Answer {
        self.try_spend(spend(id, mechanism)).await.expect("an answer")
    }

    pub(crate) async fn try_spend(&self, spend: Spend) -> Result<Answer, LedgerError> {
        self.ledger.spend(&self.who, &self.dataset, spend).await
    }

    pub(crate) async fn admits(&self, id: &str, mechanism: Value) -> bool {
        self.spend(id, mechanism).await.decision == Decision::Admit
    }

    pub(crate) async fn reserve(&self, words: Value) -> Result<Answer, LedgerError> {
        self.ledger.reserve(&self.who, &self.dataset, read::<Reserve>(words)).await
    }

    pub(crate) async fn commit(&self, id: &str, used: Option<u64>) -> Result<Done, LedgerError> {
        self.ledger.commit(&self.who, &self.dataset, Commit { id: read(json!(id)), used }).await
    }

    /// With the word that nothing of it was drawn.
    pub(crate) async fn cancel(&self, id: &str) -> Result<Done, LedgerError> {
        self.ledger.cancel(&self.who, &self.dataset, Cancel { id: read(json!(id)), nothing_drawn: true }).await
    }

    pub(crate) async fn allow(&self, words: Value) -> Result<(), LedgerError> {
        self.ledger.set_allowance(&self.who, &self.dataset, read::<NewAllowance>(words)).await.map(drop)
    }

    /// The exact sums of an account, as text.
    pub(crate) fn sums(&self, account: &str) -> String {
        self.ledger.read(|state| {
            let dataset = state.dataset(&self.dataset).expect("the dataset");
            let accounts = dataset.accounts().map(|(name, account)| (name.to_string(), account));
            let ceilings = dataset.allowances().map(|(name, _, account)| (format!("allowance {name}"), account));
            let (_, found) = accounts.chain(ceilings).find(|(name, _)| name == account).expect("the account");
            format!("{:?}", found.filter().charged())
        })
    }
}

/// What went wrong, as people read it.
#[track_caller]
pub(crate) fn complaint<T: std::fmt::Debug>(outcome: Result<T, LedgerError>) -> String {
    match outcome.expect_err("a complaint") {
        LedgerError::Mistake(mistake) => mistake.to_string(),
        LedgerError::Unavailable(what) => panic!("{what}"),
        LedgerError::Broken(broken) => panic!("{broken}"),
    }
}
