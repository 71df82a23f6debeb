//! The real service under load, killed without warning again and again: every acknowledged charge is there exactly once, no balance
//! is above its budget, and the chain holds.
//!
//! `PAYGO_CRASHES=200 cargo test --release --test crash` is the long version; eight times is what CI has time for.

mod common;

use common::Service;
use paygo_client::Client;
use paygo_ledger::Name;
use paygo_ledger::entry::{Digest, Entry, Event};
use paygo_ledger::request::Ask;
use paygo_ledger::words::{Answer, Cancel, Commit, Decision, NewDataset, Reserve, Spend};
use paygo_testkit::postgres::Server;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Clients at once.
const CLIENTS: u64 = 12;
/// How many spends of `small` its budget has room for.
const SMALL: u64 = 150;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as it is written")
}

fn kills() -> u64 {
    std::env::var("PAYGO_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

/// Asks until there is an answer: the same id every time.
fn persist<T>(stop: &AtomicBool, ask: impl Fn() -> Result<T, paygo_client::ClientError>) -> Option<T> {
    loop {
        match ask() {
            Ok(answer) => return Some(answer),
            Err(paygo_client::ClientError::Unavailable { .. }) if stop.load(Ordering::SeqCst) => return None,
            Err(paygo_client::ClientError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

struct Heard {
    answers: Mutex<Vec<(Name, Answer)>>,
    freed: AtomicU64,
}

/// What one client does until it is told to stop.
fn client(number: u64, client: &Client, stop: &AtomicBool, heard: &Heard) {
    let name = |text: &str| -> Name { text.parse().expect("a name") };
    let (big, small, events) = (name("big"), name("small"), name("events"));
    for round in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let id = format!("{number}-{round}");
        let tell =
            |dataset: &Name, answer: Answer| heard.answers.lock().expect("no panic").push((dataset.clone(), answer));
        let one = json!({"zcdp": {"rho": "0.001"}});
        let spend: Spend = read(json!({"id": id, "mechanism": one}));
        let Some(answer) = persist(stop, || client.ask(&big, spend.clone())) else { return };
        assert_eq!(answer.decision, Decision::Admit);
        tell(&big, answer);
        let Some(answer) = persist(stop, || client.ask(&small, spend.clone())) else { return };
        tell(&small, answer);
        let blocks = json!([format!("b{}", round % 5), format!("b{}", (round + number) % 5)]);
        let hold: Reserve = read(json!({"id": id, "mechanism": {"repeat": {"count": 3, "of": one}}, "blocks": blocks}));
        let Some(answer) = persist(stop, || client.ask(&events, hold.clone())) else { return };
        tell(&events, answer);
        let id: paygo_ledger::RequestId = read(json!(id));
        if round % 2 == 0 {
            let Some(_) = persist(stop, || client.ask(&events, Commit { id: id.clone(), used: None })) else {
                return;
            };
        } else {
            let cancel = Cancel { id, nothing_drawn: true };
            let Some(_) = persist(stop, || client.ask(&events, cancel.clone())) else { return };
            heard.freed.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// SplitMix64: which moments, the same on every run as far as a machine allows.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn crash(ledger: &str, database: Option<&Server>) {
    let mut service = Service::start(ledger, &["--rate-limit", "1000000", "--log-level", "error"]);
    let (address, token) = (service.address.clone(), service.token.clone().expect("the first start"));
    let make = || Client::new(&address, &token).expect("a client");
    let root = make();
    for new in [
        json!({"name": "big", "filter": {"kind": "zcdp", "rho": 1_000_000}}),
        json!({"name": "small", "filter": {"kind": "zcdp", "rho": "0.15"}}),
        json!({"name": "events", "filter": {"kind": "zcdp", "rho": 1_000_000}, "blocks": ["b0", "b1", "b2", "b3", "b4"]}),
    ] {
        root.ask(&(), read::<NewDataset>(new)).expect("made");
    }
    let (stop, heard) = (AtomicBool::new(false), Heard { answers: Mutex::default(), freed: AtomicU64::new(0) });
    let mut seed = 20_261_116;
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (stop, heard, asks) = (&stop, &heard, make());
            scope.spawn(move || client(number, &asks, stop, heard));
        }
        for kill in 0..kills() {
            std::thread::sleep(Duration::from_millis(20 + random(&mut seed) % 250));
            match database {
                // Both at once, the database alone, the service alone.
                Some(server) if kill % 3 == 0 => {
                    service.kill();
                    server.crash();
                    service.restart();
                }
                Some(server) if kill % 3 == 1 => server.crash(),
                Some(_) | None => {
                    service.kill();
                    service.restart();
                }
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::SeqCst);
    });
    service.end();
    check(ledger, &heard);
}

/// Derives everything again from the log.
fn check(ledger: &str, heard: &Heard) {
    let verified = common::paygo(&["ledger", "--ledger", ledger, "--json", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let exported = common::paygo(&["ledger", "--ledger", ledger, "export"]);
    let lines = String::from_utf8(exported.stdout).expect("text");
    let mut decided: HashMap<(Name, Name, String), Vec<(Entry, Digest)>> = HashMap::new();
    let mut cancelled = 0;
    for line in lines.lines() {
        let entry: Entry = serde_json::from_str(line).expect("an entry");
        if matches!(entry.event, Event::Cancelled { .. }) {
            cancelled += 1;
        }
        if let Some((decision, _)) = entry.event.decision() {
            let key = (decision.dataset.clone(), decision.by.clone(), decision.id.to_string());
            decided.entry(key).or_default().push((entry, Digest::of(line)));
        }
    }
    for (key, entries) in &decided {
        assert_eq!(entries.len(), 1, "{key:?} is decided once");
    }
    let answers = heard.answers.lock().expect("no panic");
    for (dataset, answer) in answers.iter() {
        let key = (dataset.clone(), "admin".parse().expect("a name"), answer.id.to_string());
        let (entry, digest) = &decided.get(&key).unwrap_or_else(|| panic!("{key:?} was acknowledged and is lost"))[0];
        let admitted = entry.event.decision().is_some_and(|(decision, _)| decision.refused.is_none());
        assert_eq!((entry.seq, *digest, admitted), (answer.entry, answer.receipt, answer.decision == Decision::Admit));
    }
    let admitted = |dataset: &str| {
        let of = decided.iter().filter(|((name, ..), _)| name.as_str() == dataset);
        of.filter(|(_, entries)| entries[0].0.event.decision().is_some_and(|(decision, _)| decision.refused.is_none()))
            .count() as u64
    };
    let (small, asked) =
        (admitted("small"), answers.iter().filter(|(name, _)| name.as_str() == "small").count() as u64);
    assert!(small <= SMALL, "{small} admitted where {SMALL} fit");
    if asked > SMALL {
        assert_eq!(small, SMALL, "refused only when it is full: {asked} asked");
    }
    assert!(cancelled >= heard.freed.load(Ordering::SeqCst), "what was freed is in the log");
    eprintln!("{} acknowledged, {} decided, {} entries", answers.len(), decided.len(), lines.lines().count());
    assert!(answers.len() > 100, "under load: {}", answers.len());
}

#[test]
fn killed_on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    crash(folder.path().join("a.ledger").to_str().expect("text"), None);
}

#[test]
fn killed_on_postgres_with_the_database() {
    let Some(server) = Server::start() else { return };
    crash(&server.database(), Some(&server));
}
