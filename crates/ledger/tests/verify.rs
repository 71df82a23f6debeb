//! Whatever is changed in the store behind the ledger's back is found, at the entry where it was changed.

mod common;

use common::{Asker, Place, gaussian, name, read, spend};
use paygo_ledger::LedgerError;
use paygo_ledger::entry::{Digest, Entry};
use paygo_ledger::store::{Store, StoreError};
use paygo_ledger::verify::{Demands, verify};
use paygo_ledger::words::NewBlocks;
use serde_json::{Value, json};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

/// A log with something of everything.
async fn a_log(place: &Place) {
    let ledger = place.open().await;
    let asker = Asker::new(&ledger, "alice", "sales");
    asker.create(json!({"epsilon": 1, "delta": 1e-6})).await;
    asker.allow(json!({"name": "a", "members": ["alice"], "epsilon": 0.9})).await.expect("done");
    for i in 0..10 {
        asker.spend(&format!("q{i}"), gaussian(30.0)).await;
    }
    for (id, end) in [("r1", "commit"), ("r2", "cancel"), ("r3", "nothing"), ("r4", "part")] {
        asker.reserve(json!({"id": id, "mechanism": common::repeat(3, &gaussian(40.0))})).await.expect("an answer");
        match end {
            "commit" => drop(asker.commit(id, None).await.expect("done")),
            "cancel" => drop(asker.cancel(id).await.expect("done")),
            "part" => {
                asker.commit(id, Some(1)).await.expect("done");
                asker.cancel(id).await.expect("done");
            }
            _ => {}
        }
    }
    let blocks = Asker::new(&ledger, "bob", "events");
    blocks.create_with(json!({"filter": {"kind": "zcdp", "rho": "1"}, "blocks": ["a", "b"]})).await;
    ledger.add_blocks(&blocks.who, &name("events"), NewBlocks { blocks: vec![name("c")] }).await.expect("done");
    let words = json!({"id": "q", "mechanism": {"zcdp": {"rho": "0.5"}}, "blocks": ["a", "c"]});
    blocks.try_spend(read(words)).await.expect("an answer");
    ledger.close().await;
}

async fn execute(place: &Place, statement: &str) {
    let paygo_ledger::store::Location::File(path) = &place.location else { panic!("a file") };
    sqlx::any::install_default_drivers();
    let copy = path.with_file_name("link.db");
    std::fs::remove_file(&copy).ok();
    // The driver's address has its own ideas about odd names.
    let url = format!("sqlite://{}", path.to_str().expect("text").replace(' ', "%20").replace('?', "%3F"));
    let mut connection = AnyConnection::connect(&url).await.expect("a connection");
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.expect(statement);
    connection.close().await.ok();
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
}

#[test]
fn a_sound_log_verifies_and_receipts_hold() {
    block_on(async {
        let place = Place::file();
        a_log(&place).await;
        let report = place.verify().await.expect("a sound log");
        assert_eq!((report.decisions, report.balances.len()), ((15, 0), 2));
        let ledger = place.open().await;
        let lines = ledger.lines(0, 1000).await.expect("lines");
        assert_eq!(lines.len() as u64, report.entries);
        let receipts: Vec<(u64, Digest)> = (1..).zip(lines.iter().map(|line| Digest::of(line))).collect();
        let state = ledger.read(Clone::clone);
        ledger.close().await;
        let mut store = place.store().await;
        verify(&mut store, &state, Demands { receipts: &receipts, prices: true }, |_| {})
            .await
            .expect("receipts that hold");
        let mut forged = receipts.clone();
        forged[4].1 = Digest::of("another entry");
        let found = verify(&mut store, &state, Demands { receipts: &forged, prices: true }, |_| {})
            .await
            .expect_err("a receipt that does not");
        assert!(found.to_string().contains("entry 5") && found.to_string().contains("receipt"), "{found}");
        let beyond = [(report.entries + 1, Digest::ZERO)];
        let found = verify(&mut store, &state, Demands { receipts: &beyond, prices: true }, |_| {})
            .await
            .expect_err("an entry that is gone");
        assert!(found.to_string().contains("is missing"), "{found}");
        // What is stored is what is written: reading and writing an entry changes no byte.
        for line in &lines {
            let entry: Entry = serde_json::from_str(line).expect("an entry");
            assert_eq!(entry.line(), *line);
        }
    });
}

/// Each change, the entry at which it must be found, and what must be said.
#[test]
fn whatever_is_changed_is_found() {
    let change = |line: &str, from: &str, to: &str| {
        let statement =
            format!("UPDATE paygo_pages SET lines = replace(lines, '{from}', '{to}') WHERE lines LIKE '%{line}%'");
        (statement, "digest")
    };
    let cases: Vec<(String, &str)> = vec![
        change("\"id\":\"q3\"", "\"id\":\"q3\"", "\"id\":\"q33\""),
        change("\"id\":\"q3\"", "\"at\":1", "\"at\":2"),
        change("\"priced\"", "\"noise_multiplier\":30.0", "\"noise_multiplier\":31.0"),
        ("DELETE FROM paygo_pages WHERE last = 7".to_owned(), "numbered"),
        ("UPDATE paygo_pages SET last = -1 WHERE last = 7".to_owned(), "numbered"),
        ("DELETE FROM paygo_pages WHERE last > 20".to_owned(), "head"),
        ("UPDATE paygo_head SET seq = 20".to_owned(), "digest"),
        ("UPDATE paygo_head SET seq = 200".to_owned(), "ends before its head"),
        ("UPDATE paygo_pages SET lines = 'x' WHERE last = 9".to_owned(), "expected value"),
    ];
    for (statement, said) in cases {
        block_on(async {
            let place = Place::file();
            a_log(&place).await;
            execute(&place, &statement).await;
            let opened = paygo_ledger::Ledger::open(&place.location).await;
            let found = opened.map(drop).expect_err(&statement);
            assert!(matches!(found, LedgerError::Broken(_)), "{statement}: {found}");
            assert!(found.to_string().contains(said), "{statement}: {found}");
        });
    }
}

/// A log that is made shorter under a ledger that is open: nothing is decided any more, and everybody hears why.
#[test]
fn a_log_that_is_broken_while_it_is_open() {
    block_on(async {
        let place = Place::file();
        a_log(&place).await;
        let ledger = place.open().await;
        let before = ledger.read(|state| (state.seq(), state.digest()));
        execute(&place, "UPDATE paygo_head SET seq = 2").await;
        for id in ["a", "b", "c"] {
            let asker = Asker::new(&ledger, "alice", "sales");
            let found = asker.try_spend(spend(id, gaussian(30.0))).await.expect_err("nothing is decided");
            assert!(matches!(&found, LedgerError::Broken(_)) && found.to_string().contains("shorter"), "{found}");
        }
        assert!(!ledger.is_open());
        assert_eq!(ledger.read(|state| (state.seq(), state.digest())), before);
        ledger.close().await;
    });
}

/// What is forged; in events that have this value in this place, or in all; what is put where; and what must be said.
type Forgery = (&'static str, Option<(&'static str, Value)>, Vec<(&'static str, Value)>, &'static str);

fn forgeries() -> Vec<Forgery> {
    vec![
        ("a price of nothing", None, vec![("/priced/amounts", json!(["0"]))], "currency"),
        (
            "a refund of what was never held",
            Some(("/spent/id", json!("q9"))),
            vec![("", json!({"cancelled": {"dataset": "sales", "by": "alice", "id": "q8"}}))],
            "cancels reservation q8",
        ),
        (
            "a budget that was raised",
            Some(("/dataset_created/dataset", json!("events"))),
            vec![("/dataset_created/rule/zcdp/limit", json!("0.4"))],
            "block a was charged more than its budget",
        ),
        (
            // As if it had been set lower: what was admitted under it is too much.
            "a ceiling that was passed",
            None,
            vec![
                ("/allowance_set/rule/clock/clock", json!("0.004")),
                ("/allowance_set/rule/clock/budget/epsilon", json!(0.3)),
                ("/allowance_set/rule/clock/budget/epsilon_limit", json!("0.3")),
            ],
            "allowance a was charged more than its budget",
        ),
        (
            "less used than was said",
            None,
            vec![("/committed/used", json!(2))],
            "does not keep charged what 2 of what was reserved cost",
        ),
        ("more used than was reserved", None, vec![("/committed/used", json!(4))], "says 4 were used"),
        (
            "all freed where a part was used",
            Some(("/cancelled/id", json!("r4"))),
            vec![("/cancelled", json!({"dataset": "sales", "by": "alice", "id": "r4"}))],
            "does not keep charged what 1 of what was reserved cost",
        ),
        (
            "an id again",
            Some(("/spent/id", json!("q7"))),
            vec![("/spent/id", json!("q3"))],
            "decides id q3 of alice again",
        ),
        (
            "a mechanism that costs more than its price",
            None,
            vec![("/priced/mechanism/gaussian/noise_multiplier", json!(29))],
            "less than what the mechanism costs",
        ),
    ]
}

/// Changes the events that a forgery is about, and the whole chain after them, digests and all.
async fn forge(place: &Place, (forgery, which, changes, _): &Forgery) {
    let lines = place.store().await.lines(0, 1000).await.expect("lines");
    let mut prev = Digest::ZERO.to_string();
    let (mut changed, mut forged) = (false, Vec::new());
    for line in &lines {
        let mut entry: Value = serde_json::from_str(line).expect("JSON");
        let event = &mut entry["event"];
        if which.as_ref().is_none_or(|(at, value)| event.pointer(at) == Some(value)) {
            for (at, value) in changes {
                changed |= event.pointer_mut(at).map(|old| *old = value.clone()).is_some();
            }
        }
        entry["prev"] = json!(prev);
        let line = entry.to_string();
        prev = Digest::of(&line).to_string();
        forged.push(line);
    }
    assert!(changed, "{forgery}");
    execute(place, "DELETE FROM paygo_pages").await;
    let (last, page) = (forged.len(), forged.join("\n"));
    execute(place, &format!("INSERT INTO paygo_pages (last, lines) VALUES ({last}, '{page}')")).await;
    execute(place, &format!("UPDATE paygo_head SET digest = '{prev}'")).await;
}

/// Somebody rewrites the whole chain, digests and all: the sums then contradict what was admitted. It is found when the log is opened, or
/// when everything is derived again.
#[test]
fn a_forged_chain_is_found_where_it_contradicts_itself() {
    for forgery in forgeries() {
        block_on(async {
            let place = Place::file();
            a_log(&place).await;
            forge(&place, &forgery).await;
            let (forgery, .., said) = forgery;
            let found = match paygo_ledger::Ledger::open(&place.location).await {
                Err(error) => error.to_string(),
                Ok(ledger) => {
                    ledger.close().await;
                    let ledger = place.open().await;
                    let state = ledger.read(Clone::clone);
                    ledger.close().await;
                    let demands = Demands { prices: true, ..Demands::default() };
                    let found = verify(&mut place.store().await, &state, demands, |_| {}).await;
                    let found = found.expect_err(forgery).to_string();
                    assert!(found.contains("entry "), "{forgery}: {found}");
                    found
                }
            };
            assert!(found.contains(said), "{forgery}: {found}");
        });
    }
}

#[test]
fn a_later_format_is_refused() {
    block_on(async {
        let place = Place::file();
        a_log(&place).await;
        execute(&place, "UPDATE paygo_schema SET version = 99").await;
        let found = paygo_ledger::store::SqlStore::open(&place.location).await.expect_err("a later format");
        assert!(matches!(found, StoreError::Version { given: 99, known: 1 }), "{found}");
    });
}

/// The log can be read with nothing but SQL and SHA-256.
#[test]
fn the_chain_is_what_the_documents_say() {
    block_on(async {
        let place = Place::file();
        a_log(&place).await;
        let paygo_ledger::store::Location::File(path) = &place.location else { panic!("a file") };
        let url = format!("sqlite://{}", path.to_str().expect("text").replace(' ', "%20").replace('?', "%3F"));
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&url).await.expect("a connection");
        let rows =
            sqlx::query("SELECT lines FROM paygo_pages ORDER BY last").fetch_all(&mut connection).await.expect("rows");
        let mut prev = "0".repeat(64);
        for row in &rows {
            let page: String = row.try_get(0).expect("text");
            for line in page.lines() {
                let entry: Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(entry["prev"], json!(prev));
                prev = Digest::of(line).to_string();
            }
        }
        connection.close().await.ok();
    });
}
