//! Many clients, several replicas: together they are admitted what one filter admits, never a unit more.

mod common;

use common::{Asker, Place, complaint, on_every_store, read, repeat, spend};
use paygo_ledger::Ledger;
use paygo_ledger::ledger::Requester;
use paygo_ledger::words::{Decision, NewToken, Spend};
use serde_json::{Value, json};

const CLIENTS: u32 = 64;

fn pure(epsilon: &str) -> Value {
    json!({"pure": {"epsilon": epsilon}})
}

/// 64 clients of two replicas, each asking until it is refused: exactly what fits is admitted.
#[test]
fn clients_and_replicas_share_one_budget() {
    on_every_store(|place| async move {
        let replicas = [place.open().await, place.open().await];
        Asker::new(&replicas[0], "steward", "sales").create(json!({"kind": "pure", "epsilon": "1"})).await;
        replicas[1].refresh().await.expect("the other replica");
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let ledger = replicas[client as usize % 2].clone();
                tokio::spawn(async move {
                    let asker = Asker::new(&ledger, &format!("client-{client}"), "sales");
                    let mut admitted = 0u64;
                    for i in 0..40 {
                        admitted += u64::from(asker.admits(&format!("q{i}"), pure("0.003")).await);
                    }
                    admitted
                })
            })
            .collect();
        let mut admitted = 0;
        for client in clients {
            admitted += client.await.expect("a client");
        }
        assert_eq!(admitted, 333, "0.003 fits 333 times into 1");
        for replica in &replicas {
            replica.refresh().await.expect("a refresh");
        }
        let sums = replicas.each_ref().map(|ledger| Asker::new(ledger, "x", "sales").sums("dataset"));
        assert_eq!(sums[0], sums[1]);
        for replica in &replicas {
            replica.close().await;
        }
        let report = place.verify().await.expect("a sound log");
        assert_eq!(report.decisions, (333, u64::from(CLIENTS) * 40 - 333));
    });
}

/// Overlapping blocks near exhaustion: every block holds what a sequential filter would, and each request all or nothing.
#[test]
fn overlapping_blocks() {
    on_every_store(|place| async move {
        let replicas = [place.open().await, place.open().await];
        let blocks: Vec<String> = (0..8).map(|i| format!("b{i}")).collect();
        let new = json!({"filter": {"kind": "pure", "epsilon": "1"}, "blocks": blocks});
        Asker::new(&replicas[0], "steward", "events").create_with(new).await;
        replicas[1].refresh().await.expect("the other replica");
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let ledger = replicas[client as usize % 2].clone();
                tokio::spawn(async move {
                    let asker = Asker::new(&ledger, &format!("client-{client}"), "events");
                    let mut admitted = Vec::new();
                    for i in 0..10u32 {
                        let first = (client * 7 + i * 3) % 8;
                        let touched: Vec<u32> = (0..=(client + i) % 4).map(|k| (first + k) % 8).collect();
                        let names: Vec<String> = touched.iter().map(|b| format!("b{b}")).collect();
                        let words = json!({"id": format!("q{i}"), "mechanism": pure("0.01"), "blocks": names});
                        let answer = asker.try_spend(read::<Spend>(words)).await.expect("an answer");
                        if answer.decision == Decision::Admit {
                            admitted.push(touched);
                        }
                    }
                    admitted
                })
            })
            .collect();
        let mut counts = [0u64; 8];
        for client in clients {
            for touched in client.await.expect("a client") {
                touched.iter().for_each(|block| counts[*block as usize] += 1);
            }
        }
        replicas[0].refresh().await.expect("a refresh");
        let asker = Asker::new(&replicas[0], "x", "events");
        for (block, count) in counts.iter().enumerate() {
            assert!(*count <= 100, "block {block} was asked for {count} hundredths");
            let units = format!("Amount({})", count * 10_000_000_000_000_000);
            assert!(asker.sums(&format!("block b{block}")).contains(&units), "block {block}: {count}");
        }
        assert!(counts.contains(&100), "near exhaustion: {counts:?}");
        for replica in &replicas {
            replica.close().await;
        }
        place.verify().await.expect("a sound log");
    });
}

/// The same id, from many clients of two replicas at once: one charge, one answer.
#[test]
fn one_id_from_everywhere() {
    on_every_store(|place| async move {
        let replicas = [place.open().await, place.open().await];
        Asker::new(&replicas[0], "steward", "sales").create(json!({"kind": "pure", "epsilon": "1"})).await;
        replicas[1].refresh().await.expect("the other replica");
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let ledger: Ledger = replicas[client as usize % 2].clone();
                tokio::spawn(async move {
                    let asker = Asker::new(&ledger, "alice", "sales");
                    let answer = asker.try_spend(spend("the one", pure("0.1"))).await.expect("an answer");
                    (answer.entry, answer.receipt, answer.repeated)
                })
            })
            .collect();
        let mut answers = Vec::new();
        for client in clients {
            answers.push(client.await.expect("a client"));
        }
        assert_eq!(answers.iter().filter(|answer| !answer.2).count(), 1);
        assert!(answers.iter().all(|answer| (answer.0, answer.1) == (answers[0].0, answers[0].1)));
        for replica in &replicas {
            replica.close().await;
        }
        place.verify().await.expect("a sound log");
    });
}

/// Two replicas pass the boundary of a snapshot together: what is stored fits together, and the next one opens from it.
#[test]
fn replicas_share_snapshots() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let place = Place::file();
        let replicas = [place.open().await, place.open().await];
        Asker::new(&replicas[0], "alice", "sales").create(json!({"epsilon": 100, "delta": 1e-6})).await;
        replicas[1].refresh().await.expect("the other replica");
        let clients: Vec<_> = (0..256)
            .map(|client| {
                let ledger = replicas[client % 2].clone();
                tokio::spawn(async move {
                    let asker = Asker::new(&ledger, "alice", "sales");
                    for i in 0..260 {
                        assert!(asker.admits(&format!("{client}-{i}"), common::gaussian(1000.0)).await);
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.expect("a client");
        }
        for replica in &replicas {
            replica.close().await;
        }
        let mut store = place.store().await;
        let saved = paygo_ledger::store::Store::saved(&mut store).await.expect("a store");
        let chunks = paygo_ledger::store::Store::fingerprints(&mut store).await.expect("a store");
        assert!(saved > 65_536);
        assert_eq!(chunks.iter().map(|chunk| chunk.len() as u64 / 8).sum::<u64>(), saved, "they fit together");
        let again = place.open().await;
        let asker = Asker::new(&again, "alice", "sales");
        assert!(asker.spend("0-0", common::gaussian(1000.0)).await.repeated);
        again.close().await;
        // Closed: the file is whole by itself.
        let paygo_ledger::store::Location::File(path) = &place.location else { panic!("a file") };
        drop(store);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let copy = path.with_file_name("copy.db");
        std::fs::copy(path, &copy).expect("a copy");
        let copied = Ledger::open(&paygo_ledger::store::Location::File(copy)).await.expect("a whole ledger");
        assert_eq!(copied.read(paygo_ledger::state::State::seq), again.read(paygo_ledger::state::State::seq));
        copied.close().await;
    });
}

/// Past the first snapshot: what was asked long ago is known, and the ledger opens from the snapshot.
#[test]
fn a_long_log_opens_from_its_snapshot() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let place = Place::file();
        let ledger = place.open().await;
        let steward = Asker::new(&ledger, "alice", "sales");
        steward.create(json!({"epsilon": 100, "delta": 1e-6})).await;
        let clients: Vec<_> = (0..256)
            .map(|client| {
                let ledger = ledger.clone();
                tokio::spawn(async move {
                    let asker = Asker::new(&ledger, "alice", "sales");
                    for i in 0..270 {
                        assert!(asker.admits(&format!("{client}-{i}"), common::gaussian(1000.0)).await);
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.expect("a client");
        }
        let sums = steward.sums("dataset");
        let history = ledger.read(|state| state.dataset(&common::name("sales")).expect("it").history().to_vec());
        assert!((256..=512).contains(&history.len()) && history.is_sorted_by_key(|point| point.spent));
        ledger.close().await;

        let mut store = place.store().await;
        let snapshot = paygo_ledger::store::Store::state(&mut store).await.expect("a store").expect("a snapshot");
        assert!(snapshot.contains("\"seq\":65"), "a snapshot past 65536: {}", &snapshot[..100]);
        let again = place.open().await;
        let asker = Asker::new(&again, "alice", "sales");
        assert_eq!(asker.sums("dataset"), sums);
        assert_eq!(*again.changes().borrow(), again.read(paygo_ledger::state::State::seq));
        assert_eq!(again.read(|state| state.dataset(&common::name("sales")).expect("it").history().to_vec()), history);
        for id in ["0-0", "255-0", "17-269"] {
            assert!(asker.spend(id, common::gaussian(1000.0)).await.repeated, "{id} was forgotten");
        }
        again.close().await;
        place.verify().await.expect("a sound log");
    });
}

/// What another replica wrote counts at once, also where nobody has looked since: a token that was revoked, how much of a reservation
/// was used, and every unit that was spent.
#[test]
fn what_another_replica_did_counts_at_once() {
    on_every_store(|place| async move {
        let [one, other] = [place.open().await, place.open().await];
        let asker = Asker::new(&one, "alice", "sales");
        asker.create(json!({"kind": "pure", "epsilon": "1"})).await;
        let words = json!({"holder": "alice", "role": "spender"});
        let granted = one.grant(&asker.who, read::<NewToken>(words)).await.expect("a token");
        other.refresh().await.expect("a refresh");
        // In turn: whoever was not last has decided on what is no longer so, and decides again.
        let mut admitted = 0;
        for i in 0..60 {
            let elsewhere = Asker::new(if i % 2 == 0 { &one } else { &other }, "alice", "sales");
            admitted += u32::from(elsewhere.admits(&format!("turn-{i}"), pure("0.02")).await);
        }
        assert_eq!(admitted, 50, "0.02 fits 50 times into 1");
        // A token.
        let by_token = Requester { token: Some(granted.hash), ..asker.who.clone() };
        let known = other.spend(&by_token, &asker.dataset, spend("turn-1", pure("0.02"))).await.expect("an answer");
        assert!(known.repeated);
        one.revoke(&asker.who, granted.hash).await.expect("done");
        for id in ["turn-1", "new"] {
            let said = complaint(other.spend(&by_token, &asker.dataset, spend(id, pure("0.02"))).await);
            assert!(said.contains("revoked"), "{said}");
        }
        // A reservation.
        let asker = Asker::new(&one, "alice", "held");
        asker.create(json!({"kind": "pure", "epsilon": "1"})).await;
        asker.reserve(json!({"id": "r", "mechanism": repeat(10, &pure("0.1"))})).await.expect("an answer");
        other.refresh().await.expect("a refresh");
        asker.commit("r", Some(3)).await.expect("done");
        let held = Asker::new(&other, "alice", "held");
        held.cancel("r").await.expect("done");
        assert!(held.sums("dataset").contains("Amount(300000000000000000)"), "{}", held.sums("dataset"));
        one.close().await;
        other.close().await;
        place.verify().await.expect("a sound log");
    });
}

/// Whoever only looks waits for nobody's lock, and so keeps nobody waiting.
#[test]
fn a_follower_takes_no_lock() {
    on_every_store(|place| async move {
        let [one, follower] = [place.open().await, place.open().await];
        let asker = Asker::new(&one, "alice", "sales");
        asker.create(json!({"kind": "pure", "epsilon": "1"})).await;
        assert!(asker.admits("q", pure("0.5")).await);
        let mut busy = place.store().await;
        let head = paygo_ledger::store::Store::begin(&mut busy).await.expect("the lock");
        let looks = async {
            follower.refresh().await.expect("a refresh");
            follower.lines(0, 1).await.expect("a line")
        };
        let lines = tokio::time::timeout(std::time::Duration::from_secs(5), looks).await.expect("it does not wait");
        assert_eq!((lines.len(), follower.read(paygo_ledger::state::State::seq)), (1, head.seq));
        paygo_ledger::store::Store::rollback(&mut busy).await.expect("the end");
        one.close().await;
        follower.close().await;
        // Closed twice, and asked again: an answer, not a wait.
        follower.close().await;
        assert!(follower.refresh().await.is_err());
    });
}
