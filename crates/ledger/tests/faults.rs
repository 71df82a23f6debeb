//! A store that fails, at every step there is: the answer is an error or the truth, never a lost or doubled charge.

mod common;

use common::{Asker, FakeClock, Place, gaussian, spend};
use paygo_ledger::store::{Head, Snapshot, SqlStore, Store, StoreError};
use paygo_ledger::words::Decision;
use paygo_ledger::{Ledger, LedgerError};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// How a step fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Before anything happened.
    Before,
    /// After it happened: whoever asked does not know.
    After,
    /// Half of what should be written is, and then it fails.
    Torn,
    /// Late.
    Slow,
}

/// A store whose nth step fails.
struct Faulty {
    inner: SqlStore,
    fault: Fault,
    /// Steps until it fails.
    left: Arc<AtomicI64>,
    /// How many in a row fail.
    for_steps: i64,
    steps: Arc<AtomicU64>,
    /// Whether nobody else writes; if somebody does, nothing is written in one go.
    alone: bool,
}

fn broken() -> StoreError {
    StoreError::Damaged("a planted fault".to_owned())
}

impl Faulty {
    /// Whether this step fails.
    fn strikes(&self) -> bool {
        self.steps.fetch_add(1, Ordering::SeqCst);
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        left <= 0 && left > -self.for_steps
    }

    async fn around<T>(
        &mut self,
        step: impl AsyncFnOnce(&mut SqlStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.strikes() {
            return step(&mut self.inner).await;
        }
        match self.fault {
            Fault::Before | Fault::Torn => Err(broken()),
            Fault::After => {
                step(&mut self.inner).await?;
                Err(broken())
            }
            Fault::Slow => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                step(&mut self.inner).await
            }
        }
    }
}

impl Store for Faulty {
    async fn begin(&mut self) -> Result<Head, StoreError> {
        self.around(async |store| store.begin().await).await
    }

    async fn extend(&mut self, from: Head, lines: &str, to: Head) -> Result<bool, StoreError> {
        if !self.alone {
            return Ok(false);
        }
        if self.fault == Fault::Torn && self.strikes() {
            // The first half only.
            self.inner.begin().await?;
            let every: Vec<&str> = lines.lines().collect();
            let half = &every[..every.len() / 2];
            self.inner.append(&half.join("\n"), to.seq - (every.len() - half.len()) as u64).await?;
            return Err(broken());
        }
        self.around(async |store| store.extend(from, lines, to).await).await
    }

    async fn append(&mut self, lines: &str, last: u64) -> Result<(), StoreError> {
        if self.fault == Fault::Torn && self.strikes() {
            // The first half only.
            let every: Vec<&str> = lines.lines().collect();
            let half = &every[..every.len() / 2];
            self.inner.append(&half.join("\n"), last - (every.len() - half.len()) as u64).await?;
            return Err(broken());
        }
        self.around(async |store| store.append(lines, last).await).await
    }

    async fn save(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.around(async |store| store.save(snapshot).await).await
    }

    async fn commit(&mut self, head: Head) -> Result<(), StoreError> {
        self.around(async |store| store.commit(head).await).await
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.around(async |store| store.rollback().await).await
    }

    async fn lines(&mut self, after: u64, most: u64) -> Result<Vec<String>, StoreError> {
        self.around(async |store| store.lines(after, most).await).await
    }

    async fn state(&mut self) -> Result<Option<String>, StoreError> {
        self.around(async |store| store.state().await).await
    }

    async fn saved(&mut self) -> Result<u64, StoreError> {
        self.around(async |store| store.saved().await).await
    }

    async fn close(self) {
        self.inner.close().await;
    }

    async fn fingerprints(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        self.around(async |store| store.fingerprints().await).await
    }

    async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.around(async |store| store.reconnect().await).await
    }
}

/// Asks for a few things over a store whose nth step fails, asks again for what had no answer, and compares with what a store
/// that never fails would hold.
async fn strike(place: &Place, alone: bool, fault: Fault, at: i64, for_steps: i64) -> u64 {
    let clock = FakeClock::new(1_000_000);
    let healthy = place.open_at(&clock).await;
    let asker = Asker::new(&healthy, "alice", "sales");
    asker.create(json!({"kind": "zcdp", "rho": "1"})).await;
    healthy.close().await;

    let steps = Arc::new(AtomicU64::new(0));
    let left = Arc::new(AtomicI64::new(i64::MAX / 2));
    let inner = place.store().await;
    let store = Faulty { inner, fault, left: Arc::clone(&left), for_steps, steps: Arc::clone(&steps), alone };
    let ledger = Ledger::over(store, clock.clock()).await.expect("a ledger");
    left.store(at, Ordering::SeqCst);
    steps.store(0, Ordering::SeqCst);
    let mut heard: BTreeMap<String, (Decision, u64)> = BTreeMap::new();
    // Five of 0.3: three fit.
    for i in 0..5 {
        let (id, asker) = (format!("q{i}"), Asker::new(&ledger, "alice", "sales"));
        match asker.try_spend(spend(&id, json!({"zcdp": {"rho": "0.3"}}))).await {
            Ok(answer) => drop(heard.insert(id, (answer.decision, answer.entry))),
            Err(LedgerError::Unavailable(_)) => {}
            Err(other) => panic!("{fault:?} at step {at}: {other}"),
        }
        if i == 1 {
            // Something to be read back, and something freed.
            asker.reserve(json!({"id": "held", "mechanism": {"zcdp": {"rho": "0.05"}}})).await.ok();
            asker.cancel("held").await.ok();
        }
    }
    ledger.close().await;
    let taken = steps.load(Ordering::SeqCst);

    // Afterwards, on a store that works: everything heard is so, everything else can be asked again, once.
    let ledger = place.open_at(&clock).await;
    let asker = Asker::new(&ledger, "alice", "sales");
    for (id, (decision, entry)) in &heard {
        let again = asker.spend(id, json!({"zcdp": {"rho": "0.3"}})).await;
        assert!(again.repeated, "{fault:?} at step {at}: {id} was acknowledged and is lost");
        assert_eq!((again.decision, again.entry), (*decision, *entry), "{fault:?} at step {at}: {id}");
    }
    asker.cancel("held").await.ok();
    let mut admitted = 0;
    for i in 0..5 {
        let answer = asker.spend(&format!("q{i}"), json!({"zcdp": {"rho": "0.3"}})).await;
        admitted += u32::from(answer.decision == Decision::Admit);
    }
    assert_eq!(admitted, 3, "{fault:?} at step {at}");
    assert!(asker.sums("dataset").contains("Amount(900000000000000000)"), "{fault:?} at step {at}");
    ledger.close().await;
    place.verify().await.unwrap_or_else(|error| panic!("{fault:?} at step {at}: {error}"));
    taken
}

#[test]
fn whichever_step_fails() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Each way to write; once, and so often that the writer gives up.
        for (alone, least) in [(true, 7), (false, 16)] {
            for fault in [Fault::Before, Fault::After, Fault::Torn, Fault::Slow] {
                for for_steps in [1, 12] {
                    let mut at = 0;
                    loop {
                        let taken = strike(&Place::file(), alone, fault, at, for_steps).await;
                        at += 1;
                        if i64::try_from(taken).expect("few") <= at {
                            break;
                        }
                    }
                    assert!(at >= least, "{fault:?}: only {at} steps");
                }
            }
        }
        // PostgreSQL takes the same steps; a sample of them.
        if paygo_testkit::postgres::Server::shared().is_some() {
            for (fault, at) in
                [(Fault::Before, 2), (Fault::After, 2), (Fault::After, 1), (Fault::Torn, 1), (Fault::After, 6)]
            {
                for alone in [true, false] {
                    strike(&Place::postgres().expect("a server"), alone, fault, at, 1).await;
                }
            }
        }
    });
}

/// A database that is killed in the middle of everything.
#[test]
fn the_database_is_killed() {
    let Some(server) = paygo_testkit::postgres::Server::start() else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let url: paygo_ledger::store::Location = server.database().parse().expect("an address");
    runtime.block_on(async {
        let ledger = Ledger::open(&url).await.expect("a ledger");
        let asker = Asker::new(&ledger, "alice", "sales");
        asker.create(json!({"epsilon": 100, "delta": 1e-6})).await;
        let load = tokio::spawn({
            let ledger = ledger.clone();
            async move {
                let asker = Asker::new(&ledger, "alice", "sales");
                let (mut heard, mut errors) = (Vec::new(), 0);
                for i in 0.. {
                    match asker.try_spend(spend(&format!("q{i}"), gaussian(500.0))).await {
                        Ok(answer) => heard.push((i, answer.entry)),
                        Err(LedgerError::Unavailable(_)) => errors += 1,
                        Err(other) => panic!("{other}"),
                    }
                    if i > 200 && errors == 0 && heard.len() > 2000 || heard.len() > 3000 {
                        break;
                    }
                }
                heard
            }
        });
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            tokio::task::block_in_place(|| server.crash());
        }
        let heard = load.await.expect("the load");
        let before = asker.sums("dataset");
        ledger.close().await;
        let again = Ledger::open(&url).await.expect("a ledger");
        let asker = Asker::new(&again, "alice", "sales");
        assert_eq!(asker.sums("dataset"), before);
        for (i, entry) in heard.iter().step_by(7) {
            let answer = asker.spend(&format!("q{i}"), gaussian(500.0)).await;
            assert!(answer.repeated && answer.entry == *entry, "q{i} was acknowledged and is lost");
        }
        let state = again.read(Clone::clone);
        again.close().await;
        let mut store = SqlStore::open(&url).await.expect("a store");
        let report = paygo_ledger::verify::verify(&mut store, &state, paygo_ledger::verify::Demands::default(), |_| {})
            .await
            .expect("a sound log");
        assert!(report.decisions.0 >= heard.len() as u64);
    });
}

/// The disk is full: nothing is acknowledged that is not there, and it goes on when there is room.
#[test]
fn the_disk_is_full() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let place = Place::file();
        let paygo_ledger::store::Location::File(path) = &place.location else { panic!("a file") };
        let ledger = place.open().await;
        Asker::new(&ledger, "alice", "sales").create(json!({"epsilon": 100, "delta": 1e-6})).await;
        ledger.close().await;
        // A limit on the size of files, which SQLite meets as a disk that is full: in a process of its own.
        let size = std::fs::metadata(path).expect("a file").len() + 200_000;
        let exe = std::env::current_exe().expect("this test");
        let output = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"", "sh", &(size / 512).to_string()])
            .arg(exe)
            .args(["--exact", "spends_until_the_disk_is_full", "--ignored", "--nocapture"])
            .env("PAYGO_TEST_LEDGER", path)
            .output()
            .expect("this test again");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let heard: u64 =
            said.lines().find_map(|line| line.strip_prefix("heard ")?.parse().ok()).unwrap_or_else(|| panic!("{said}"));
        assert!(heard > 10 && said.contains("then: the ledger cannot say"), "{said}");
        let ledger = place.open().await;
        let asker = Asker::new(&ledger, "alice", "sales");
        for i in 0..heard {
            assert!(asker.spend(&format!("q{i}"), gaussian(500.0)).await.repeated, "q{i} was acknowledged and is lost");
        }
        assert!(!asker.spend("room again", gaussian(500.0)).await.repeated);
        ledger.close().await;
        place.verify().await.expect("a sound log");
    });
}

#[test]
#[ignore = "a part of `the_disk_is_full`, which runs it with a limit on the size of files"]
fn spends_until_the_disk_is_full() {
    let Ok(path) = std::env::var("PAYGO_TEST_LEDGER") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let ledger = Ledger::open(&path.parse().expect("a path")).await.expect("a ledger");
        let asker = Asker::new(&ledger, "alice", "sales");
        for heard in 0.. {
            if let Err(error) = asker.try_spend(spend(&format!("q{heard}"), gaussian(500.0))).await {
                writeln!(std::io::stdout(), "heard {heard}\nthen: {error}").expect("standard output");
                break;
            }
        }
    });
}
