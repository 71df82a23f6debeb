//! What a ledger promises to those who ask, on every store.

mod common;

use common::{Asker, FakeClock, complaint, gaussian, name, on_every_store, read, repeat, spend};
use paygo_accounting::cost::Cost;
use paygo_accounting::filter::{Budget, Clock, Filter};
use paygo_accounting::mechanism::Mechanism;
use paygo_accounting::params::Neighbors;
use paygo_ledger::state::Mistake;
use paygo_ledger::words::{Cancel, Decision, NewBlocks, Question};
use paygo_ledger::{Ledger, LedgerError};
use serde_json::json;
use std::sync::Arc;

const HOUR: u64 = 3_600_000;

/// How many of a mechanism one filter admits.
fn sequentially(epsilon: &str, noise_multiplier: f64) -> u64 {
    let rule = Clock::new(Budget::from_decimal(epsilon, "1e-6").expect("a budget")).expect("a rule");
    let mut filter = Filter::new(rule, Neighbors::AddRemove);
    let mechanism = Mechanism::gaussian(noise_multiplier).expect("noise");
    let charge = filter.price(&Cost::of(&mechanism, Neighbors::AddRemove).expect("a cost")).expect("a price");
    (0..).take_while(|_| filter.admit(&charge).is_admitted()).count() as u64
}

#[test]
fn what_is_admitted_is_what_one_filter_admits_and_survives() {
    on_every_store(|place| async move {
        let ledger = place.open().await;
        let asker = Asker::new(&ledger, "alice", "sales");
        asker.create(json!({"epsilon": "1", "delta": "1e-6"})).await;
        let mut admitted = 0;
        while asker.admits(&format!("q{admitted}"), gaussian(20.0)).await {
            admitted += 1;
        }
        assert_eq!(admitted, sequentially("1", 20.0));
        // The refusal is an answer, heard again by a retry, and a cheaper request still fits.
        let refusal = asker.spend(&format!("q{admitted}"), gaussian(20.0)).await;
        assert!(refusal.repeated && refusal.decision == Decision::Refuse && refusal.largest_count == Some(0));
        assert!(refusal.reason.is_some() && refusal.requested.is_some() && refusal.remaining.contains_key("epsilon"));
        assert!(asker.admits("small", gaussian(400.0)).await);
        let sums = asker.sums("dataset");
        ledger.close().await;
        assert!(matches!(asker.try_spend(spend("x", gaussian(9.0))).await, Err(LedgerError::Unavailable(_))));

        let again = place.open().await;
        let asker = Asker::new(&again, "alice", "sales");
        assert_eq!(asker.sums("dataset"), sums);
        let first = asker.spend("q0", gaussian(20.0)).await;
        assert!(first.repeated && first.decision == Decision::Admit);
        assert_eq!(asker.sums("dataset"), sums, "a retry costs nothing");
        // Ids belong to whoever asks: the same id of somebody else is another request, and is charged.
        let other = Asker::new(&again, "bob", "sales");
        assert!(!other.spend("small", gaussian(400.0)).await.repeated);
        assert_ne!(asker.sums("dataset"), sums);
        again.close().await;
        let report = place.verify().await.expect("a sound log");
        assert_eq!(report.decisions, (admitted + 2, 1));
    });
}

#[test]
fn an_id_is_one_request() {
    on_every_store(|place| async move {
        let ledger = place.open().await;
        let asker = Asker::new(&ledger, "alice", "sales");
        asker.create(json!({"epsilon": 1, "delta": 1e-6})).await;
        let first = asker.spend("q", gaussian(20.0)).await;
        let sums = asker.sums("dataset");
        let again = asker.spend("q", gaussian(20.0)).await;
        assert_eq!((again.entry, again.receipt, again.at), (first.entry, first.receipt, first.at));
        for other in [
            asker.try_spend(spend("q", gaussian(30.0))).await,
            asker.reserve(json!({"id": "q", "mechanism": gaussian(20.0)})).await,
        ] {
            assert!(complaint(other).contains("id q was used before"));
        }
        assert_eq!(asker.sums("dataset"), sums);
        // Many at once, in one transaction.
        let many: Vec<_> = (0..50).map(|_| asker.try_spend(spend("twin", gaussian(20.0)))).collect();
        let mut firsts = 0;
        for answer in futures(many).await {
            firsts += u32::from(!answer.expect("an answer").repeated);
        }
        assert_eq!(firsts, 1);
        ledger.close().await;
        place.verify().await.expect("a sound log");
    });
}

/// All at once.
async fn futures<T>(all: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut pinned: Vec<_> = all.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = pinned.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in pinned.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn a_reservation_is_charged_until_its_holder_says_otherwise() {
    on_every_store(|place| async move {
        let clock = FakeClock::new(1000 * HOUR);
        let ledger = place.open_at(&clock).await;
        let asker = Asker::new(&ledger, "alice", "sales");
        asker.create(json!({"epsilon": 1, "delta": 1e-6})).await;
        all_is_held_and_given_back(&asker).await;
        what_was_used_stays(&asker).await;
        used_is_counted_as_it_is_written(&ledger).await;
        what_expires_stays(&asker, &clock).await;
        what_is_committed_stays(&asker).await;
        let sums = asker.sums("dataset");
        ledger.close().await;
        let again = place.open_at(&clock).await;
        assert_eq!(Asker::new(&again, "alice", "sales").sums("dataset"), sums);
        again.close().await;
        place.verify().await.expect("a sound log");
    });
}

/// All of the budget is held: nothing fits until it is given back.
async fn all_is_held_and_given_back(asker: &Asker<'_>) {
    let empty = asker.sums("dataset");
    let whole = json!({"id": "run", "mechanism": repeat(sequentially("1", 20.0), &gaussian(20.0))});
    let held = asker.reserve(whole.clone()).await.expect("an answer");
    assert_eq!((held.decision, held.expires), (Decision::Admit, Some(1001 * HOUR)));
    assert!(!asker.admits("q", gaussian(20.0)).await);
    let mallory = Asker::new(asker.ledger, "mallory", "sales");
    assert!(complaint(mallory.cancel("run").await).contains("no reservation run of yours"));
    let without = Cancel { id: read(json!("run")), nothing_drawn: false };
    let without = asker.ledger.cancel(&asker.who, &asker.dataset, without).await;
    assert!(complaint(without).contains("nothing_drawn"));
    let first = asker.cancel("run").await.expect("done");
    assert_eq!(asker.sums("dataset"), empty, "freed to the last unit, infinite lanes too");
    let again = asker.cancel("run").await.expect("done");
    assert_eq!((again.entry, again.repeated), (first.entry, true));
    // What was given back is no admission any more, also for whoever asks again.
    assert!(complaint(asker.reserve(whole).await).contains("run was cancelled"));
    assert!(complaint(asker.commit("run", None).await).contains("was cancelled"));
}

/// Part of it was used: that part stays, at what it costs alone.
async fn what_was_used_stays(asker: &Asker<'_>) {
    let most = sequentially("1", 20.0);
    let whole = json!({"id": "half", "mechanism": repeat(most, &gaussian(20.0))});
    asker.reserve(whole).await.expect("an answer");
    for used in [1, most / 2] {
        asker.commit("half", Some(used)).await.expect("done");
    }
    for (used, said) in [(0, "at least"), (most + 1, "at most")] {
        assert!(complaint(asker.commit("half", Some(used)).await).contains(said));
    }
    asker.cancel("half").await.expect("done");
    let other = Asker::new(asker.ledger, "alice", "compare");
    other.create(json!({"epsilon": 1, "delta": 1e-6})).await;
    assert!(other.admits("half", repeat(most / 2, &gaussian(20.0))).await);
    assert_eq!(asker.sums("dataset"), other.sums("dataset"));
}

/// One of three pairs is two, and all of two pairs is four.
async fn used_is_counted_as_it_is_written(ledger: &Ledger) {
    let zcdp = Asker::new(ledger, "alice", "units");
    zcdp.create(json!({"kind": "zcdp", "rho": "10"})).await;
    let one = json!({"zcdp": {"rho": "1"}});
    for (id, mechanism, used, units) in [
        ("a", repeat(3, &repeat(2, &one)), 1, 2u64),
        ("b", repeat(2, &json!({"all_of": [one, one]})), 2, 6),
        ("c", json!({"all_of": [one, one]}), 1, 8),
    ] {
        zcdp.reserve(json!({"id": id, "mechanism": mechanism})).await.expect("an answer");
        zcdp.commit(id, Some(used)).await.expect("done");
        assert!(complaint(zcdp.commit(id, Some(4)).await).contains("at most"));
        zcdp.cancel(id).await.expect("done");
        assert!(zcdp.sums("dataset").contains(&format!("Amount({units}000000000000000000)")), "{id}");
    }
}

/// Expired: it stays charged, and cannot be given back. The clock of the machine may go back; that of the log does not.
async fn what_expires_stays(asker: &Asker<'_>, clock: &FakeClock) {
    let before = asker.sums("dataset");
    let minute = json!({"id": "lost", "mechanism": gaussian(20.0), "expires_in_seconds": 60});
    asker.reserve(minute).await.expect("an answer");
    assert_ne!(before, asker.sums("dataset"));
    clock.set(1001 * HOUR);
    assert!(complaint(asker.cancel("lost").await).contains("left to expire"));
    assert!(asker.admits("tick", gaussian(4000.0)).await);
    clock.set(10);
    let late = asker.cancel("lost").await;
    assert!(complaint(late).contains("left to expire"), "a clock that jumps back revives nothing");
    let commit = asker.commit("lost", None).await.expect("done");
    assert!(commit.repeated, "to commit what expired is to say what is so");
    for (seconds, said) in [(0, "expires_in_seconds = 0"), (604_801, "a week")] {
        let words = json!({"id": "w", "mechanism": gaussian(9.0), "expires_in_seconds": seconds});
        assert!(complaint(asker.reserve(words).await).contains(said));
    }
}

async fn what_is_committed_stays(asker: &Asker<'_>) {
    asker.reserve(json!({"id": "good", "mechanism": gaussian(4000.0)})).await.expect("an answer");
    asker.commit("good", None).await.expect("done");
    assert!(complaint(asker.cancel("good").await).contains("was committed"));
}

#[test]
fn blocks_are_charged_together_or_not_at_all() {
    on_every_store(|place| async move {
        let ledger = place.open().await;
        let asker = Asker::new(&ledger, "alice", "events");
        asker.create_with(json!({"filter": {"kind": "pure", "epsilon": "1"}, "blocks": ["jan", "feb"]})).await;
        let pure = |epsilon: &str, blocks: serde_json::Value, id: &str| {
            read::<paygo_ledger::words::Spend>(
                json!({"id": id, "mechanism": {"pure": {"epsilon": epsilon}}, "blocks": blocks}),
            )
        };
        assert!(
            asker.try_spend(pure("0.9", json!(["jan"]), "a")).await.expect("an answer").decision == Decision::Admit
        );
        let before = (asker.sums("block jan"), asker.sums("block feb"));
        let refused = asker.try_spend(pure("0.2", json!(["feb", "jan", "feb"]), "b")).await.expect("an answer");
        assert_eq!((refused.decision, refused.account.to_string()), (Decision::Refuse, "block jan".to_owned()));
        assert_eq!((asker.sums("block jan"), asker.sums("block feb")), before, "atomic");
        let both = asker.try_spend(pure("0.1", json!("all"), "c")).await.expect("an answer");
        assert_eq!((both.decision, both.account.to_string()), (Decision::Admit, "block jan".to_owned()));
        assert!(asker.try_spend(pure("0.1", json!(["jan", "feb"]), "c")).await.expect("the same").repeated);
        // A block that comes later begins with the whole budget.
        let done = ledger
            .add_blocks(&asker.who, &name("events"), NewBlocks { blocks: vec![name("mar"), name("jan")] })
            .await
            .expect("done");
        assert!(!done.repeated);
        assert!(
            ledger
                .add_blocks(&asker.who, &name("events"), NewBlocks { blocks: vec![name("mar")] })
                .await
                .expect("done")
                .repeated
        );
        // The same id over other blocks is another request; "all" are all that there are now.
        for blocks in [json!("all"), json!(["jan", "mar"])] {
            let wider = asker.try_spend(pure("0.1", blocks, "c")).await;
            assert!(complaint(wider).contains("id c was used before"));
        }
        assert!(asker.try_spend(pure("1", json!(["mar"]), "d")).await.expect("an answer").decision == Decision::Admit);
        for (words, said) in [
            (json!({"id": "x", "mechanism": gaussian(9.0)}), "has blocks; expected"),
            (json!({"id": "x", "mechanism": {"pure": {"epsilon": "0.1"}}, "blocks": ["dec"]}), "has no block dec"),
            (json!({"id": "x", "mechanism": {"pure": {"epsilon": "0.1"}}, "blocks": []}), "blocks is empty"),
        ] {
            let words = read::<paygo_ledger::words::Spend>(words);
            let said_so = complaint(asker.try_spend(words).await);
            assert!(said_so.contains(said) || said_so.contains("no price here"), "{said_so}");
        }
        let plain = Asker::new(&ledger, "alice", "plain");
        plain.create(json!({"epsilon": 1, "delta": 1e-6})).await;
        let wrong = plain.try_spend(read(json!({"id": "x", "mechanism": gaussian(9.0), "blocks": "all"}))).await;
        assert!(complaint(wrong).contains("not divided into blocks"));
        ledger.close().await;
        place.verify().await.expect("a sound log");
    });
}

#[test]
fn an_allowance_is_a_ceiling_inside_the_budget() {
    on_every_store(|place| async move {
        let ledger = place.open().await;
        let steward = Asker::new(&ledger, "steward", "sales");
        steward.create(json!({"kind": "zcdp", "rho": "1"})).await;
        steward.allow(json!({"name": "ads", "members": ["ann", "bob"], "rho": "0.3"})).await.expect("done");
        let rho = |rho: &str| json!({"zcdp": {"rho": rho}});
        let (ann, bob, eve) = (
            Asker::new(&ledger, "ann", "sales"),
            Asker::new(&ledger, "bob", "sales"),
            Asker::new(&ledger, "eve", "sales"),
        );
        assert!(ann.admits("1", rho("0.2")).await);
        let refused = bob.spend("1", rho("0.2")).await;
        assert_eq!((refused.decision, refused.account.to_string()), (Decision::Refuse, "allowance ads".to_owned()));
        assert!(bob.admits("2", rho("0.1")).await && eve.admits("1", rho("0.7")).await);
        assert!(!eve.admits("2", rho("0.000000000000000001")).await, "the dataset is used up, to the last unit");
        // Raised: what was spent under it stays spent.
        steward.allow(json!({"name": "ads", "members": ["ann"], "rho": "0.9"})).await.expect("done");
        let report = ledger.read(|state| {
            let dataset = state.dataset(&name("sales")).expect("the dataset");
            let (_, members, account) = dataset.allowances().next().expect("the allowance");
            (members.to_vec(), account.meters()[0].spent.to_string())
        });
        assert_eq!(report, (vec![name("ann")], "0.3".to_owned()));
        for (words, said) in [
            (json!({"name": "x", "members": [], "mu": 1}), "give epsilon and delta"),
            (json!({"name": "x", "members": [], "epsilon": 1}), "delta is missing"),
            (json!({"name": "x", "members": []}), "epsilon is missing"),
        ] {
            assert!(complaint(steward.allow(words).await).contains(said));
        }
        // Every kind of dataset can have one.
        for (kind, filter) in [
            ("mixture", json!({"epsilon": 3, "delta": 1e-6, "slack": 1e-7})),
            ("union", json!({"kind": "union", "epsilon": 3, "delta": 1e-6})),
            ("fixed", json!({"kind": "fixed-order", "epsilon": 3, "delta": 1e-6})),
            ("gdp", json!({"kind": "gdp", "epsilon": 3, "delta": 1e-6})),
            ("pure", json!({"kind": "pure", "epsilon": 3})),
            ("approximate", json!({"kind": "approximate", "epsilon": 3, "delta": 1e-6})),
        ] {
            let steward = Asker::new(&ledger, "steward", kind);
            steward.create(filter).await;
            steward.allow(json!({"name": "a", "members": ["ann"], "epsilon": 1, "delta": 1e-6})).await.expect(kind);
            let (ann, eve) = (Asker::new(&ledger, "ann", kind), Asker::new(&ledger, "eve", kind));
            let step = match kind {
                "pure" | "approximate" => json!({"pure": {"epsilon": 1.5}}),
                _ => gaussian(2.5),
            };
            assert!(!ann.admits("q", step.clone()).await && eve.admits("q", step).await, "{kind}");
        }
        ledger.close().await;
        place.verify().await.expect("a sound log");
    });
}

#[test]
fn mistakes_are_named_and_change_nothing() {
    on_every_store(|place| async move {
        let ledger = place.open().await;
        let asker = Asker::new(&ledger, "alice", "sales");
        asker.create(json!({"epsilon": 1, "delta": 1e-6})).await;
        let before = ledger.read(paygo_ledger::state::State::seq);
        let nowhere = Asker::new(&ledger, "alice", "nowhere");
        assert!(complaint(nowhere.try_spend(spend("q", gaussian(9.0))).await).contains("no dataset nowhere"));
        for (mechanism, said) in [
            (json!({"gaussian": {"noise_multiplier": -1}}), "noise_multiplier = -1"),
            (json!({"fixed_size_sampled_gaussian": {"batch_fraction": 0.1, "noise_multiplier": 1}}), "replace-one"),
            (json!({"pure": {"epsilon": 1e300}}), "infinite"),
            ((0..20).fold(gaussian(9.0), |inner, _| repeat(1, &inner)), "levels of a mechanism"),
            (json!({"renyi": {"orders": [2, 30], "values": [0.1, 0.2]}}), "explicit_curves"),
            (repeat(2, &json!({"renyi": {"orders": [2, 30], "values": [0.1, 0.2]}})), "explicit_curves"),
        ] {
            let said_so = complaint(asker.try_spend(spend("q", mechanism)).await);
            assert!(said_so.contains(said), "{said_so}");
        }
        for (words, said) in [
            (json!({"name": "sales", "filter": {"epsilon": 2, "delta": 1e-6}}), "fixed for good"),
            (json!({"name": "b", "filter": {"epsilon": 2}}), "delta is missing"),
            (json!({"name": "b", "filter": {"epsilon": 1, "delta": 1e-6}, "privacy_unit": " "}), "privacy_unit"),
            (json!({"name": "b", "filter": {"kind": "gdp", "mu": 1}, "reading_delta": 0}), "reading_delta"),
        ] {
            let said_so = complaint(ledger.create_dataset(&asker.who, read(words)).await);
            assert!(said_so.contains(said), "{said_so}");
        }
        let same = read(json!({"name": "sales", "filter": {"epsilon": 1, "delta": 1e-6}}));
        assert!(ledger.create_dataset(&asker.who, same).await.expect("done").repeated);
        assert_eq!(ledger.read(paygo_ledger::state::State::seq), before, "nothing was written");
        // With the permission, an explicit curve counts.
        let mut trusted = asker.who.clone();
        trusted.explicit_curves = true;
        let curve = spend("q", json!({"renyi": {"orders": [2, 30], "values": [0.1, 0.2]}}));
        assert!(ledger.spend(&trusted, &name("sales"), curve).await.is_ok());
        // Closed for good.
        ledger.close_dataset(&asker.who, &name("sales")).await.expect("done");
        assert!(complaint(asker.try_spend(spend("z", gaussian(9.0))).await).contains("is closed"));
        assert!(asker.spend("q", json!({"renyi": {"orders": [2, 30], "values": [0.1, 0.2]}})).await.repeated);
        ledger.close().await;
        place.verify().await.expect("a sound log");
    });
}

#[test]
fn what_if_charges_nothing_and_an_odometer_reads() {
    on_every_store(|place| async move {
        let ledger = place.open().await;
        for (kind, filter) in [
            ("mixture", json!({"epsilon": 3, "delta": 1e-6, "slack": 1e-7})),
            ("union", json!({"kind": "union", "epsilon": 3, "delta": 1e-6})),
            ("fixed", json!({"kind": "fixed-order", "epsilon": 3, "delta": 1e-6})),
            ("zcdp", json!({"kind": "zcdp", "rho": 1})),
            ("gdp", json!({"kind": "gdp", "mu": 1})),
            ("pure", json!({"kind": "pure", "epsilon": 3})),
            ("approximate", json!({"kind": "approximate", "epsilon": 3, "delta": 1e-6})),
        ] {
            let asker = Asker::new(&ledger, "alice", kind);
            asker.create(filter).await;
            let step = match kind {
                "pure" | "approximate" => json!({"pure": {"epsilon": 0.1}}),
                _ => gaussian(20.0),
            };
            let question = Question { mechanism: read(step.clone()), then: Vec::new(), blocks: None };
            let dataset = name(kind);
            let whatif = ledger.what_if(&asker.who, &dataset, question.clone()).await.expect("an answer");
            assert_eq!(whatif.decision, Decision::Admit);
            let reading = |ledger: &paygo_ledger::Ledger| {
                ledger.read(|state| {
                    let dataset = state.dataset(&dataset).expect("the dataset");
                    let reading = dataset.reading(dataset.accounts().next().expect("the account").1);
                    (reading.epsilon.get(), reading.delta.get())
                })
            };
            let (mut last, _) = reading(&ledger);
            let mut admitted = 0;
            while asker.admits(&format!("q{admitted}"), step.clone()).await {
                admitted += 1;
                let (epsilon, delta) = reading(&ledger);
                assert!(epsilon >= last && epsilon < 20.0 && delta < 2e-6, "{kind}: {epsilon} at {delta}");
                last = epsilon;
            }
            assert!(last > 0.0 && admitted == whatif.largest_count, "{kind}: {admitted} {whatif:?}");
            let over = ledger.what_if(&asker.who, &dataset, question).await.expect("an answer");
            assert!(over.decision == Decision::Refuse && over.largest_count == 0 && over.reason.is_some());
        }
        ledger.close().await;
    });
}

/// Every request is decided and written at one time: a clock that moves whenever it is read, around the moment at which a reservation
/// expires.
#[test]
fn the_moment_at_which_a_reservation_expires() {
    on_every_store(|place| async move {
        let clock = FakeClock::new(1_000_000);
        let reads = clock.clone();
        let ledger = Ledger::over(place.store().await, Arc::new(move || reads.step())).await.expect("a ledger");
        let asker = Asker::new(&ledger, "alice", "sales");
        asker.create(json!({"kind": "zcdp", "rho": "1"})).await;
        let (mut done, mut late) = (0, 0);
        for before in 0..12 {
            for (cancels, used) in [(false, None), (false, Some(2)), (true, None), (true, Some(1))] {
                let name = format!("{cancels}-{used:?}-{before}");
                let three = repeat(3, &json!({"zcdp": {"rho": "0.001"}}));
                let words = json!({"id": name, "mechanism": three, "expires_in_seconds": 1});
                let expires = asker.reserve(words).await.expect("an answer").expires.expect("a time");
                if cancels && used.is_some() {
                    asker.commit(&name, used).await.expect("done");
                }
                clock.set(expires - before);
                let outcome = if cancels { asker.cancel(&name).await } else { asker.commit(&name, used).await };
                match outcome {
                    Ok(_) => done += 1,
                    Err(LedgerError::Mistake(Mistake::ReservationClosed { .. })) => late += 1,
                    Err(other) => panic!("{name}: {other}"),
                }
            }
        }
        assert!(done > 20 && late > 1, "{done} in time, {late} late");
        ledger.close().await;
        place.verify().await.expect("a sound log");
    });
}
