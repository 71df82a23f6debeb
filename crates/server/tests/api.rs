//! The API as a client sees it: spending, retries, refusals, reservations, blocks, tokens, the log, numbers, pages.

mod common;

use common::{Served, Setup, rho};
use paygo_client::{Client, ClientError};
use paygo_ledger::Name;
use paygo_ledger::entry::Role;
use paygo_ledger::request::{
    Ask, CloseDataset, ListDatasets, ListDecisions, ListTokens, RevokeToken, ShowDataset, ShowHead,
};
use paygo_ledger::words::{
    Cancel, Commit, Decision, NewAllowance, NewBlocks, NewDataset, NewToken, Question, Reserve, Spend,
};
use paygo_server::{Door, tls};
use paygo_testkit::postgres::Server;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as it is written")
}

#[test]
fn spend_retry_refuse() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    let ann = served.token("ann", Role::Spender, Some(&["sales"]));
    let first = served.post(&ann, "/v1/datasets/sales/spend", &json!({"id": "q1", "mechanism": rho("0.4")}));
    assert_eq!(
        (&first["decision"], &first["remaining"]["rho"], &first["repeated"]),
        (&json!("admit"), &json!(0.6), &json!(false))
    );
    let again = served.post(&ann, "/v1/datasets/sales/spend", &json!({"id": "q1", "mechanism": rho("0.4")}));
    assert_eq!(
        (&again["entry"], &again["receipt"], &again["repeated"]),
        (&first["entry"], &first["receipt"], &json!(true))
    );
    let other = json!({"id": "q1", "mechanism": rho("0.5")});
    assert_eq!(served.json(&ann, "POST", "/v1/datasets/sales/spend", &other, 409)["code"], "id_used");
    let much = json!({"id": "q2", "mechanism": {"repeat": {"count": 9, "of": rho("0.25")}}});
    let refused = served.post(&ann, "/v1/datasets/sales/spend", &much);
    assert_eq!((&refused["decision"], &refused["largest_count"]), (&json!("refuse"), &json!(2)));
    let what_if = served.post(&ann, "/v1/datasets/sales/what-if", &json!({"mechanism": rho("0.6")}));
    assert_eq!(
        (&what_if["decision"], &what_if["after"]["rho"], &what_if["largest_count"]),
        (&json!("admit"), &json!(1.0), &json!(1))
    );
    // Whoever has the same id under another name asks something else.
    let bob = served.token("bob", Role::Spender, None);
    let theirs = served.post(&bob, "/v1/datasets/sales/spend", &json!({"id": "q1", "mechanism": rho("0.4")}));
    assert_eq!((&theirs["repeated"], &theirs["remaining"]["rho"]), (&json!(false), &json!(0.2)));

    let view = served.get(&ann, "/v1/datasets/sales");
    assert_eq!(
        (&view["admitted"], &view["refused"], &view["accounts"][0]["spent"]["rho"]),
        (&json!(2), &json!(1), &json!(0.8))
    );
    assert_eq!(view["history"].as_array().expect("points").len(), 2);
    let decisions = served.get(&ann, "/v1/datasets/sales/decisions");
    let ids: Vec<&Value> = decisions.as_array().expect("a list").iter().map(|decided| &decided["id"]).collect();
    assert_eq!(ids, ["q1", "q2", "q1"], "newest first");
    assert_eq!((&decisions[1]["decision"], &decisions[1]["refused"]["largest_count"]), (&json!("refuse"), &json!(2)));
    assert_eq!(decisions[1]["mechanism"], much["mechanism"]);
}

#[test]
fn a_client_of_every_word() {
    let served = Served::new();
    let root = Client::new(&served.url(""), served.token("root", Role::Admin, None)).expect("a client");
    assert_eq!((root.me().expect("me").holder.as_str(), root.ask(&(), ListDatasets).expect("none").len()), ("root", 0));
    let events: Name = read(json!("events"));
    let new = json!({"name": "events", "filter": {"kind": "zcdp", "rho": 1}, "blocks": ["jan"]});
    assert!(!root.ask(&(), read::<NewDataset>(new.clone())).expect("made").repeated);
    assert!(root.ask(&(), read::<NewDataset>(new)).expect("there").repeated);
    root.ask(&events, read::<NewBlocks>(json!({"blocks": ["feb"]}))).expect("added");
    root.ask(&events, read::<NewAllowance>(json!({"name": "ads", "members": ["ann"], "rho": "0.3"}))).expect("set");

    let granted = root
        .ask(&(), read::<NewToken>(json!({"holder": "ann", "role": "spender", "datasets": ["events"]})))
        .expect("granted");
    let ann = Client::new(&served.url("/"), &granted.token).expect("a client");
    let spend =
        |id: &str, amount: &str| -> Spend { read(json!({"id": id, "mechanism": rho(amount), "blocks": ["jan"]})) };
    assert_eq!(ann.ask(&events, spend("a", "0.2")).expect("an answer").decision, Decision::Admit);
    let refused = ann.ask(&events, spend("b", "0.2")).expect("an answer");
    assert_eq!((refused.decision, refused.account.to_string()), (Decision::Refuse, "allowance ads".to_owned()));
    let question: Question = read(json!({"mechanism": rho("0.1"), "blocks": "all"}));
    assert_eq!(ann.ask(&events, question).expect("an answer").largest_count, 1);

    let hold: Reserve =
        read(json!({"id": "run", "mechanism": {"repeat": {"count": 4, "of": rho("0.1")}}, "blocks": ["feb"]}));
    assert_eq!(root.ask(&events, hold).expect("an answer").decision, Decision::Admit);
    root.ask(&events, Commit { id: read(json!("run")), used: Some(1) }).expect("done");
    let missing_word = root.ask(&events, Cancel { id: read(json!("run")), nothing_drawn: false });
    assert!(matches!(missing_word, Err(ClientError::Problem { status: 422, code, .. }) if code == "nothing_drawn"));
    root.ask(&events, Cancel { id: read(json!("run")), nothing_drawn: true }).expect("done");
    let view = root.ask(&events, ShowDataset).expect("a view");
    let spent: Vec<String> = view.accounts.iter().map(|account| account.spent["rho"].text()).collect();
    assert_eq!(spent, ["0.1", "0.2"], "feb, jan");
    assert_eq!(root.ask(&events, ListDecisions).expect("decisions").len(), 3);

    assert!(matches!(ann.ask(&events, CloseDataset), Err(ClientError::Problem { status: 403, .. })));
    root.ask(&events, CloseDataset).expect("closed");
    let late = ann.ask(&events, spend("c", "0.01"));
    assert!(matches!(late, Err(ClientError::Problem { status: 409, code, .. }) if code == "dataset_closed"));
    assert_eq!(ann.ask(&events, spend("a", "0.2")).expect("the first answer").decision, Decision::Admit);

    assert_eq!(root.ask(&(), ListTokens).expect("tokens").len(), 2);
    root.ask(&granted.hash, RevokeToken).expect("revoked");
    assert!(matches!(ann.me(), Err(ClientError::Problem { status: 401, .. })));
    let head = root.ask(&(), ShowHead).expect("the head");
    let lines = root.lines(0, 1000).expect("the log");
    assert_eq!(lines.len() as u64, head.entry);
    assert_eq!(paygo_ledger::entry::Digest::of(lines.last().expect("a line")), head.receipt);
    assert_eq!(root.lines(head.entry - 1, 9).expect("the log").len(), 1);
}

#[test]
fn a_client_asks_again_until_somebody_answers() {
    let mut served = Served::new();
    let token = served.token("root", Role::Admin, None);
    served.create(&token, "sales", "1");
    let client = Client::new(&served.url(""), &token).expect("a client");
    served.end();
    let sales: Name = read(json!("sales"));
    let spend: Spend = read(json!({"id": "q", "mechanism": rho("0.1")}));
    let nobody = client.ask(&sales, spend).expect_err("nobody is there").to_string();
    assert!(nobody.contains("whether it was charged is not known"), "{nobody}");
    for wrong in ["", "ftp://x", "http://", "127.0.0.1"] {
        assert!(Client::new(wrong, "paygo_1").expect_err("no address").to_string().contains("expected http://host"));
    }
    assert!(Client::new("http://x", "a\nb").is_err() && Client::new("http://x", " ").is_err());
    assert!(!format!("{client:?}").contains(&token), "no token in what is printed");
}

#[test]
fn health_numbers_and_description() {
    let mut served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    served.post(&admin, "/v1/datasets/sales/spend", &json!({"id": "q1", "mechanism": rho("0.25")}));
    served.post(&admin, "/v1/datasets/sales/spend", &json!({"id": "q2", "mechanism": rho("2")}));
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(served.ask("GET", path, &[], b"").0, 200, "{path}");
    }
    let Value::String(numbers) = served.get(&admin, "/metrics") else { panic!("text") };
    for line in [
        "paygo_decisions_total{dataset=\"sales\",decision=\"admit\"} 1",
        "paygo_decisions_total{dataset=\"sales\",decision=\"refuse\"} 1",
        "paygo_spent_share{dataset=\"sales\"} 0.25",
        "paygo_requests_total{route=\"/v1/datasets/{dataset}/spend\",method=\"POST\",status=\"200\"} 2",
        "paygo_request_seconds_count{route=\"/v1/datasets/{dataset}/spend\"} 2",
    ] {
        assert!(numbers.contains(line), "{line} in\n{numbers}");
    }
    assert!(!numbers.contains(&admin), "no token in numbers");
    let (status, page) = served.ask("GET", "/docs/", &[], b"");
    assert!(status == 200 && page.contains("swagger"), "{page}");
    for path in ["/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css", "/docs/swagger-initializer.js"] {
        assert!(served.ask("GET", path, &[], b"").1.len() > 100, "{path} comes from the binary");
    }
    served.runtime.block_on(served.ledger.close());
    assert_eq!(served.ask("GET", "/health/ready", &[], b"").0, 503, "the writer is gone");
    assert_eq!(served.ask("GET", "/health/live", &[], b"").0, 200);
    let late =
        served.json(&admin, "POST", "/v1/datasets/sales/spend", &json!({"id": "q3", "mechanism": rho("0.1")}), 503);
    assert_eq!(late["code"], "unavailable");
    served.end();
}

#[test]
fn tls_by_certificate_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("made");
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("made");
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, other.signing_key.serialize_pem()).expect("written");
    assert!(tls(&certificate, &key).expect_err("another's key").to_string().contains("certificate.pem"));
    assert!(tls(&certificate, &folder.path().join("none")).is_err());
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let door = Door { patience: Duration::from_millis(300), ..Door::new(Some(tls(&certificate, &key).expect("TLS"))) };
    let served = Served::with(Setup { door, ..Setup::default() });
    let token = served.token("root", Role::Admin, None);
    let address = format!("https://localhost:{}", served.address.port());
    let client = Client::with_authority(&address, &token, made.cert.pem().as_bytes()).expect("a client");
    assert_eq!(client.me().expect("me").holder.as_str(), "root");
    for stranger in
        [Client::with_authority(&address, &token, other.cert.pem().as_bytes()), Client::new(&address, &token)]
    {
        let error = stranger.expect("a client").me().expect_err("not an authority").to_string();
        assert!(error.contains("does not answer"), "{error}");
    }
    // The other way round: TLS to a port that has none.
    let mut without = Served::with(Setup::default());
    let address_without = format!("https://127.0.0.1:{}", without.address.port());
    let error = Client::new(&address_without, &token).expect("a client").me().expect_err("no TLS").to_string();
    assert!(error.contains("does not speak TLS"), "{error}");
    without.end();
    // Without TLS there is no answer at all, and whoever says nothing is sent away.
    let mut plain = std::net::TcpStream::connect(served.address).expect("connects");
    plain.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut plain, &mut rest).ok();
    assert!(rest.is_empty(), "{rest:?}");
    // In a browser the cookie goes over TLS only.
    let agent = ureq::Agent::config_builder()
        .max_redirects(0)
        .http_status_as_error(false)
        .tls_config(
            ureq::tls::TlsConfig::builder()
                .root_certs(ureq::tls::RootCerts::new_with_certs(&[ureq::tls::Certificate::from_pem(
                    made.cert.pem().as_bytes(),
                )
                .expect("a certificate")
                .to_owned()]))
                .build(),
        )
        .build()
        .new_agent();
    let answer = agent.post(format!("{address}/login")).send_form([("token", token.as_str())]).expect("an answer");
    let cookie = answer.headers()["set-cookie"].to_str().expect("text");
    for word in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
}

/// What was accepted is answered, and what was answered is in the log.
#[test]
fn a_peaceful_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = paygo_ledger::store::Location::File(folder.path().join("a.ledger"));
    let mut served = Served::with(Setup { location: Some(location), ..Setup::default() });
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1000000");
    let (acknowledged, torn, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let url = served.url("/v1/datasets/sales/spend");
    std::thread::scope(|scope| {
        for client in 0..32 {
            let (url, admin, acknowledged, torn, stop) = (&url, &admin, &acknowledged, &torn, &stop);
            scope.spawn(move || {
                let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
                for n in 0.. {
                    let body = json!({"id": format!("{client}-{n}"), "mechanism": rho("1")}).to_string();
                    let answer = agent.post(url).header("authorization", format!("Bearer {admin}")).send(&body);
                    match answer {
                        Ok(mut answer) if answer.status() == 200 => match answer.body_mut().read_json::<Value>() {
                            Ok(_) => drop(acknowledged.fetch_add(1, Ordering::SeqCst)),
                            Err(_) => drop(torn.fetch_add(1, Ordering::SeqCst)),
                        },
                        Ok(answer) => panic!("{answer:?}"),
                        // A connection that was idle is closed; nothing was said about this request.
                        Err(_) => break,
                    }
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(300));
        served.end();
        stop.store(true, Ordering::SeqCst);
    });
    let decided = served.ledger.read(|state| state.dataset(&read(json!("sales"))).expect("it").totals().admitted);
    let acknowledged = acknowledged.load(Ordering::SeqCst);
    assert!(acknowledged > 100 && torn.load(Ordering::SeqCst) == 0, "{acknowledged} {torn:?}");
    assert_eq!(decided, acknowledged, "everything begun was answered");
}

/// Two services on one database: what one decides, the other knows; a token that one revokes, the other refuses soon.
#[test]
fn two_replicas() {
    let Some(server) = Server::shared() else { return };
    let url = server.database();
    let setup = || Setup { location: Some(url.parse().expect("an address")), ..Setup::default() };
    let (one, two) = (Served::with(setup()), Served::with(setup()));
    let admin = one.token("root", Role::Admin, None);
    let wait = |what: &dyn Fn() -> bool| {
        for _ in 0..100 {
            if what() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the other replica does not hear of it");
    };
    let bearer = format!("Bearer {admin}");
    wait(&|| two.ask("GET", "/v1/me", &[("authorization", &bearer)], b"").0 == 200);
    one.create(&admin, "sales", "1");
    wait(&|| two.ask("GET", "/v1/datasets/sales", &[("authorization", &bearer)], b"").0 == 200);
    let spend = json!({"id": "q1", "mechanism": rho("0.6")});
    let first = one.post(&admin, "/v1/datasets/sales/spend", &spend);
    let again = two.post(&admin, "/v1/datasets/sales/spend", &spend);
    assert_eq!((&again["repeated"], &again["receipt"]), (&json!(true), &first["receipt"]));
    let more = two.post(&admin, "/v1/datasets/sales/spend", &json!({"id": "q2", "mechanism": rho("0.6")}));
    assert_eq!(more["decision"], "refuse");
    let ann = one.token("ann", Role::Spender, None);
    let theirs = format!("Bearer {ann}");
    wait(&|| two.ask("GET", "/v1/me", &[("authorization", &theirs)], b"").0 == 200);
    let hash = paygo_ledger::entry::Digest::of(&ann);
    one.json(&admin, "DELETE", &format!("/v1/tokens/{hash}"), &Value::Null, 200);
    wait(&|| two.ask("GET", "/v1/me", &[("authorization", &theirs)], b"").0 == 401);
}
