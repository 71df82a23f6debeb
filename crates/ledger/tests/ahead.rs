//! What is decided while the store still writes what it rests on: nobody is answered too early, and what did not come true is
//! decided again.

mod common;

use common::{Asker, Place, name, on_every_store, read, spend, who};
use paygo_ledger::ledger::system_clock;
use paygo_ledger::store::{Head, Snapshot, SqlStore, Store, StoreError};
use paygo_ledger::words::{Answer, Commit, Decision, Done, NewDataset, Reserve};
use paygo_ledger::{Ledger, LedgerError, Name};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What becomes of the write that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is written.
    Written,
    /// It fails, and nothing was written.
    Lost,
    /// It fails, although it was written.
    WrittenUnheard,
    /// Somebody else writes first.
    Overtaken,
}

/// A store that holds one write until it is told.
struct Held {
    inner: SqlStore,
    fate: Fate,
    /// Writes until the one that is held.
    left: Arc<AtomicU64>,
    holds: Arc<Notify>,
    go: Arc<Notify>,
}

impl Store for Held {
    async fn extend(&mut self, from: Head, lines: &str, to: Head) -> Result<bool, StoreError> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
            return self.inner.extend(from, lines, to).await;
        }
        self.holds.notify_one();
        self.go.notified().await;
        let unheard = || StoreError::Damaged("a planted fault".to_owned());
        match self.fate {
            Fate::Written | Fate::Overtaken => self.inner.extend(from, lines, to).await,
            Fate::Lost => Err(unheard()),
            Fate::WrittenUnheard => {
                assert!(self.inner.extend(from, lines, to).await?);
                Err(unheard())
            }
        }
    }

    async fn begin(&mut self) -> Result<Head, StoreError> {
        self.inner.begin().await
    }
    async fn append(&mut self, lines: &str, last: u64) -> Result<(), StoreError> {
        self.inner.append(lines, last).await
    }
    async fn save(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.inner.save(snapshot).await
    }
    async fn commit(&mut self, head: Head) -> Result<(), StoreError> {
        self.inner.commit(head).await
    }
    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.inner.rollback().await
    }
    async fn lines(&mut self, after: u64, most: u64) -> Result<Vec<String>, StoreError> {
        self.inner.lines(after, most).await
    }
    async fn state(&mut self) -> Result<Option<String>, StoreError> {
        self.inner.state().await
    }
    async fn saved(&mut self) -> Result<u64, StoreError> {
        self.inner.saved().await
    }
    async fn fingerprints(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.fingerprints().await
    }
    async fn close(self) {
        self.inner.close().await;
    }
    async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.inner.reconnect().await
    }
}

type Asked<T> = JoinHandle<Result<T, LedgerError>>;

/// Asks in the background, in this order.
struct Crowd {
    ledger: Ledger,
}

impl Crowd {
    async fn begun<T: Send + 'static>(
        &self,
        ask: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
    ) -> Asked<T> {
        let asked = tokio::spawn(ask);
        // Long enough for it to be queued before the next one.
        tokio::time::sleep(Duration::from_millis(20)).await;
        asked
    }

    async fn spend(&self, dataset: &'static str, id: &'static str, rho: &'static str) -> Asked<Answer> {
        let ledger = self.ledger.clone();
        let ask = async move {
            Asker::new(&ledger, "alice", dataset).try_spend(spend(id, json!({"zcdp": {"rho": rho}}))).await
        };
        self.begun(ask).await
    }

    async fn reserve(&self, id: &'static str, rho: &'static str) -> Asked<Answer> {
        let ledger = self.ledger.clone();
        let words: Reserve = read(json!({"id": id, "mechanism": {"zcdp": {"rho": rho}}}));
        self.begun(async move { ledger.reserve(&who("alice"), &name("sales"), words).await }).await
    }

    async fn commit(&self, id: &'static str) -> Asked<Done> {
        let ledger = self.ledger.clone();
        let words: Commit = read(json!({"id": id}));
        self.begun(async move { ledger.commit(&who("alice"), &name("sales"), words).await }).await
    }

    async fn create(&self, dataset: Name) -> Asked<Done> {
        let ledger = self.ledger.clone();
        let words: NewDataset = read(json!({"name": dataset.as_str(), "filter": {"kind": "zcdp", "rho": "1"}}));
        self.begun(async move { ledger.create_dataset(&who("alice"), words).await }).await
    }
}

async fn heard(asked: Asked<Answer>) -> (Decision, bool) {
    let answer = asked.await.expect("a task").expect("an answer");
    (answer.decision, answer.repeated)
}

/// A budget of 1: q0 is held while it is written, with room for q1 of 0.5 unless somebody else takes it meanwhile.
async fn meanwhile(place: &Place, fate: Fate) {
    let (left, holds, go) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let inner = place.store().await;
    let store = Held { inner, fate, left: Arc::clone(&left), holds: Arc::clone(&holds), go: Arc::clone(&go) };
    let ledger = Ledger::over(store, system_clock()).await.expect("a ledger");
    let asker = Asker::new(&ledger, "alice", "sales");
    asker.create(json!({"kind": "zcdp", "rho": "1"})).await;
    let old = asker.spend("old", json!({"zcdp": {"rho": "0.1"}})).await;

    let crowd = Crowd { ledger: ledger.clone() };
    left.store(0, Ordering::SeqCst);
    let first = crowd.spend("sales", "q0", "0.2").await;
    holds.notified().await;
    // All of this is decided, or waits, while q0 is being written.
    let again = crowd.spend("sales", "q0", "0.2").await;
    let second = crowd.spend("sales", "q1", "0.5").await;
    let another = crowd.spend("sales", "q1", "0.4").await;
    let made = crowd.create(name("other")).await;
    let too_early = crowd.spend("other", "q0", "0.9").await;
    assert!(matches!(too_early.await.expect("a task"), Err(LedgerError::Mistake(_))), "it is not there yet");
    let held = crowd.reserve("r", "0.1").await;
    let kept = crowd.commit("r").await;
    // Decided long ago: the store must be asked, and what comes after waits behind it.
    let known = crowd.spend("sales", "old", "0.1").await;
    let too_much = crowd.spend("sales", "q2", "0.2").await;
    assert!(
        !first.is_finished()
            && ![&again, &second, &another, &held, &known, &too_much].iter().any(|asked| asked.is_finished())
    );
    assert!(!made.is_finished() && !kept.is_finished());
    assert_eq!(ledger.read(|state| (state.seq(), state.dataset(&name("other")).is_some())), (old.entry, false));

    let taken = fate == Fate::Overtaken;
    if taken {
        let elsewhere = place.open().await;
        let bob = Asker::new(&elsewhere, "bob", "sales");
        assert!(bob.admits("q0", json!({"zcdp": {"rho": "0.4"}})).await);
        elsewhere.close().await;
    }
    go.notify_one();

    // As if each had been asked after the one before was answered.
    assert_eq!(heard(first).await, (Decision::Admit, fate == Fate::WrittenUnheard));
    assert_eq!(heard(again).await, (Decision::Admit, true));
    let room = if taken { Decision::Refuse } else { Decision::Admit };
    assert_eq!(heard(second).await, (room, false));
    assert!(matches!(another.await.expect("a task"), Err(LedgerError::Mistake(_))), "one id, two requests");
    assert!(!made.await.expect("a task").expect("a dataset").repeated);
    assert_eq!(heard(held).await, (Decision::Admit, false));
    kept.await.expect("a task").expect("committed");
    assert_eq!(heard(known).await, (Decision::Admit, true));
    // 0.1 + 0.2 + 0.5 + 0.1, or with 0.4 in place of 0.5, leave 0.1 or 0.2.
    assert_eq!(heard(too_much).await, (if taken { Decision::Admit } else { Decision::Refuse }, false));
    let spent = if taken { "1000000000000000000" } else { "900000000000000000" };
    assert!(asker.sums("dataset").contains(&format!("Amount({spent})")), "{fate:?}: {}", asker.sums("dataset"));
    ledger.close().await;
    place.verify().await.unwrap_or_else(|error| panic!("{fate:?}: {error}"));
}

#[test]
fn what_is_decided_ahead() {
    on_every_store(async |place| meanwhile(&place, Fate::Written).await);
    on_every_store(async |place| meanwhile(&place, Fate::Lost).await);
    on_every_store(async |place| meanwhile(&place, Fate::WrittenUnheard).await);
    on_every_store(async |place| meanwhile(&place, Fate::Overtaken).await);
}
