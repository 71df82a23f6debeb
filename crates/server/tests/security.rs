//! Whoever should not get in: refused, logged, and nothing changed.

mod common;

use common::{Served, Setup, rho};
use paygo_ledger::entry::Role;
use paygo_server::Door;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Every route, a body that would do, and which roles of dataset `sales` may: admin, steward, spender, auditor.
fn routes() -> Vec<(&'static str, &'static str, Value, [bool; 4])> {
    let all = [true, true, true, true];
    let spends = [true, true, true, false];
    let keeps = [true, true, false, false];
    let everywhere = [false, false, false, false];
    vec![
        ("GET", "/v1/datasets", Value::Null, all),
        ("GET", "/v1/me", Value::Null, all),
        ("GET", "/v1/datasets/sales", Value::Null, all),
        ("GET", "/v1/datasets/sales/decisions", Value::Null, all),
        ("POST", "/v1/datasets/sales/what-if", json!({"mechanism": rho("0.1")}), all),
        ("POST", "/v1/datasets/sales/spend", json!({"id": "s", "mechanism": rho("0.01")}), spends),
        ("POST", "/v1/datasets/sales/reserve", json!({"id": "r", "mechanism": rho("0.01")}), spends),
        ("POST", "/v1/datasets/sales/commit", json!({"id": "r"}), spends),
        ("POST", "/v1/datasets/sales/cancel", json!({"id": "none", "nothing_drawn": true}), spends),
        ("POST", "/v1/datasets/sales/blocks", json!({"blocks": ["b"]}), keeps),
        ("POST", "/v1/datasets/sales/allowances", json!({"name": "a", "members": ["x"], "rho": 1}), keeps),
        ("POST", "/v1/datasets/sales/close", Value::Null, keeps),
        ("POST", "/v1/datasets", json!({"name": "more", "filter": {"epsilon": 1, "delta": 1e-6}}), everywhere),
        ("GET", "/v1/tokens", Value::Null, everywhere),
        ("POST", "/v1/tokens", json!({"holder": "x", "role": "admin"}), everywhere),
        ("DELETE", "/v1/tokens/0", Value::Null, everywhere),
        ("GET", "/v1/log", Value::Null, everywhere),
        ("GET", "/v1/log/head", Value::Null, everywhere),
        ("GET", "/metrics", Value::Null, everywhere),
    ]
}

#[test]
fn roles_and_datasets() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    served.create(&admin, "other", "1");
    let roles = [Role::Admin, Role::Steward, Role::Spender, Role::Auditor];
    let holders = ["an-admin", "a-steward", "a-spender", "an-auditor"];
    let here: Vec<String> =
        holders.iter().zip(roles).map(|(holder, role)| served.token(holder, role, Some(&["sales"]))).collect();
    let elsewhere: Vec<String> =
        holders.iter().zip(roles).map(|(holder, role)| served.token(holder, role, Some(&["other"]))).collect();
    let before = served.entries();
    let ask = |token: &str, method: &str, path: &str, body: &Value| {
        served.ask(method, path, &[("authorization", &format!("Bearer {token}"))], body.to_string().as_bytes())
    };
    for (method, path, body, allowed) in routes() {
        for ((token, other), allowed) in here.iter().zip(&elsewhere).zip(allowed) {
            if !allowed {
                let (status, said) = ask(token, method, path, &body);
                assert_eq!(status, 403, "{method} {path}: {said}");
            }
            if path.contains("/sales") {
                let (status, said) = ask(other, method, path, &body);
                assert_eq!(status, 403, "{method} {path}: {said}");
                // Nobody learns from it whether there is such a dataset.
                let nowhere = path.replace("/sales", "/nowhere");
                assert_eq!(ask(other, method, &nowhere, &body), (status, said), "{method} {nowhere}");
            }
        }
    }
    assert_eq!(served.entries(), before, "nothing changed");
    let listed = served.get(&elsewhere[2], "/v1/datasets");
    assert_eq!((listed.as_array().expect("a list").len(), &listed[0]["name"]), (1, &json!("other")));
    // And whoever may, does.
    for (method, path, body, allowed) in routes() {
        for ((token, holder), allowed) in here.iter().zip(holders).zip(allowed) {
            if allowed && path != "/v1/datasets/sales/close" {
                let (status, said) = ask(token, method, path, &body);
                assert!(status != 403 && status != 401 && status < 500, "{holder} {method} {path}: {status} {said}");
            }
        }
    }
}

#[test]
fn explicit_curves_need_a_permission() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.post(&admin, "/v1/datasets", &json!({"name": "sales", "filter": {"epsilon": 1, "delta": 1e-6}}));
    let orders: Vec<u32> = (2..200).collect();
    let values: Vec<f64> = orders.iter().map(|order| 1e-4 * f64::from(*order)).collect();
    let curve = json!({"id": "c", "mechanism": {"all_of": [{"renyi": {"orders": orders, "values": values}}]}});
    assert_eq!(served.json(&admin, "POST", "/v1/datasets/sales/spend", &curve, 403)["code"], "explicit_curve");
    let new = json!({"holder": "ann", "role": "spender", "explicit_curves": true});
    let ann = served.post(&admin, "/v1/tokens", &new)["token"].as_str().expect("a token").to_owned();
    assert_eq!(served.post(&ann, "/v1/datasets/sales/spend", &curve)["decision"], "admit");
}

#[test]
fn tokens_that_are_none() {
    let clock = Arc::new(AtomicU64::new(1_000_000_000_000));
    let now = Arc::clone(&clock);
    let served = Served::with(Setup { clock: Arc::new(move || now.load(Ordering::SeqCst)), ..Setup::default() });
    let admin = served.token("root", Role::Admin, None);
    let short = served.grant("ann", Role::Admin, None, Some(1));
    assert_eq!(served.get(&short, "/v1/me")["holder"], "ann");
    clock.fetch_add(24 * 3600 * 1000, Ordering::SeqCst);
    let before = served.entries();
    let upper = admin.to_uppercase();
    let (cut, hash) = (&admin[..admin.len() - 1], paygo_ledger::entry::Digest::of(&admin).to_string());
    let long = "a".repeat(20_000);
    let tried = [&short, &upper, cut, &hash, &long, "paygo_", "x", "%00", "' OR 1=1 --"];
    for (index, token) in tried.iter().enumerate() {
        for header in [format!("Bearer {token}"), format!("Basic {token}"), (*token).to_owned()] {
            let (status, said) = served.ask("GET", "/v1/datasets", &[("authorization", &header)], b"");
            // After ten in a second it is told to wait; a token that is good is not.
            assert!(status == 401 || status == 429, "{header}: {status} {said}");
        }
        assert_eq!(served.get(&admin, "/v1/me")["holder"], "root", "{index}");
    }
    let twice = [("authorization", "Bearer x"), ("cookie", "paygo_token=y")];
    assert_ne!(served.ask("GET", "/v1/datasets", &twice, b"").0, 200);
    std::thread::sleep(Duration::from_millis(300));
    let (status, headers, _) = served.ask_fully("GET", "/v1/datasets", &[], b"");
    assert_eq!((status, headers["www-authenticate"].to_str().expect("text")), (401, "Bearer"));
    assert_eq!(served.entries(), before, "nothing changed");
}

#[test]
fn a_page_of_somebody_else_cannot_spend() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    let (status, headers, _) = served.ask_fully(
        "POST",
        "/login",
        &[("content-type", "application/x-www-form-urlencoded")],
        format!("token={admin}").as_bytes(),
    );
    assert_eq!((status, headers["location"].to_str().expect("text")), (303, "/"));
    let cookie = headers["set-cookie"].to_str().expect("text").split(';').next().expect("a cookie").to_owned();
    let spend = json!({"id": "q", "mechanism": rho("0.1")}).to_string();
    let before = served.entries();
    let (status, said) = served.ask("POST", "/v1/datasets/sales/spend", &[("cookie", &cookie)], spend.as_bytes());
    assert!(status == 403 && said.contains("cross_site"), "{said}");
    assert_eq!(served.entries(), before);
    let ours = [("cookie", cookie.as_str()), ("x-paygo", "1")];
    assert_eq!(served.ask("POST", "/v1/datasets/sales/spend", &ours, spend.as_bytes()).0, 200);
    let (status, page) = served.ask("GET", "/datasets/sales", &[("cookie", &cookie)], b"");
    assert!(status == 200 && page.contains("Could I run"), "{page}");
    let (status, headers, _) = served.ask_fully("GET", "/datasets/sales", &[], b"");
    assert_eq!((status, headers["location"].to_str().expect("text")), (303, "/login"));
    let policy = headers["content-security-policy"].to_str().expect("text");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let (status, page) =
        served.ask("POST", "/login", &[("content-type", "application/x-www-form-urlencoded")], b"token=%3Cscript%3E");
    assert!(status == 401 && !page.contains("<script>"), "{page}");
    let (_, headers, _) = served.ask_fully("POST", "/logout", &[], b"");
    assert!(headers["set-cookie"].to_str().expect("text").contains("Max-Age=0"));
    // Nobody is logged in or out by another site's page, and behind a proxy with TLS the cookie goes over TLS only.
    let host = served.url("").trim_start_matches("http://").to_owned();
    let (ours, theirs) = (format!("http://{host}"), "http://elsewhere.example".to_owned());
    let form = format!("token={admin}");
    for path in ["/login", "/logout"] {
        for (header, value, works) in [
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "same-site", false),
            ("sec-fetch-site", "cross-site", false),
            ("origin", ours.as_str(), true),
            ("origin", theirs.as_str(), false),
            ("origin", "null", false),
            ("x-forwarded-proto", "https", true),
        ] {
            let headers =
                [("content-type", "application/x-www-form-urlencoded"), ("host", host.as_str()), (header, value)];
            let (status, headers, _) = served.ask_fully("POST", path, &headers, form.as_bytes());
            assert_eq!(status, if works { 303 } else { 403 }, "{path} {header} {value}");
            let cookie = headers.get("set-cookie").map(|cookie| cookie.to_str().expect("text"));
            assert_eq!(cookie.is_some(), works, "{path} {header} {value}");
            assert_eq!(cookie.is_some_and(|cookie| cookie.contains("; Secure")), value == "https", "{cookie:?}");
        }
    }
}

/// One token keeps only so many pages up to date at once; others theirs.
#[test]
fn streams_are_counted() {
    let served = Served::new();
    let [ann, bob] = ["ann", "bob"].map(|holder| served.token(holder, Role::Spender, None));
    let open = |token: &str| {
        let mut stream =
            std::net::TcpStream::connect(served.url("").trim_start_matches("http://")).expect("a connection");
        let request = format!("GET /events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("a request");
        let mut head = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut head).expect("an answer");
        (stream, String::from_utf8_lossy(&head).into_owned())
    };
    let held: Vec<_> = (0..32).map(|_| open(&ann)).collect();
    assert!(held.iter().all(|(_, head)| head == "HTTP/1.1 200"), "{held:?}");
    assert_eq!([open(&ann).1, open(&bob).1], ["HTTP/1.1 429", "HTTP/1.1 200"]);
    drop(held);
    let again = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        open(&ann).1 == "HTTP/1.1 200"
    });
    assert!(again, "what is closed is given back");
}

#[test]
fn what_people_write_is_shown_as_text() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    let unit = "<img src=x onerror=alert(1)>";
    served.post(
        &admin,
        "/v1/datasets",
        &json!({"name": "sales", "privacy_unit": unit, "filter": {"kind": "zcdp", "rho": 1}}),
    );
    let spend = json!({"id": "<b>\"'&", "note": "<script>alert(1)</script>", "mechanism": rho("0.1")});
    served.post(&admin, "/v1/datasets/sales/spend", &spend);
    for path in ["/", "/datasets/sales"] {
        let (_, page) = served.ask("GET", path, &[("cookie", &format!("paygo_token={admin}"))], b"");
        assert!(page.contains("&lt;img src=x"), "{page}");
        assert!(!page.contains("<img") && !page.contains("<script>") && !page.contains("<b>"), "{page}");
    }
}

/// A request of an admin, and the status and code of its answer.
#[track_caller]
fn check(served: &Served, admin: &str, (method, path): (&str, &str), body: &[u8], expected: u16, code: &str) {
    let (status, said) = served.ask(method, path, &[("authorization", &format!("Bearer {admin}"))], body);
    assert!(status == expected && said.contains(code), "{method} {path}: {status} {said}");
}

#[test]
fn bodies() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    let before = served.entries();
    let spend = |body: &[u8], expected: u16, code: &str| {
        check(&served, &admin, ("POST", "/v1/datasets/sales/spend"), body, expected, code);
    };
    for body in [
        "",
        "{",
        "null",
        "[]",
        "\u{0}",
        "{\"id\": \"q\"}",
        "{\"id\": \"q\", \"mechanism\": 1}",
        "{\"id\": 1, \"mechanism\": {}}",
    ] {
        spend(body.as_bytes(), 400, "malformed");
    }
    spend(b"\xff\xfe", 400, "malformed");
    let deep = format!("{{\"id\": \"q\", \"mechanism\": {}1{}}}", "{\"all_of\":[".repeat(5000), "]}".repeat(5000));
    spend(deep.as_bytes(), 400, "malformed");
    spend(&vec![b' '; (1 << 20) + 1], 413, "too_large");
    let nested = (0..20).fold(rho("0.1"), |inner, _| json!({"repeat": {"count": 2, "of": inner}}));
    let long = json!({"zcdp": {"rho": "0.3".to_owned() + &"3".repeat(70_000)}});
    for (body, expected, code) in [
        (json!({"id": "q", "mechanism": rho("0.1"), "admin": true}), 400, "unknown field"),
        (json!({"id": "q", "mechanism": nested}), 422, "too_many"),
        (json!({"id": "q", "mechanism": long}), 422, "bytes of a mechanism"),
        (json!({"id": "", "mechanism": rho("1")}), 400, "1 to 128 bytes"),
        (json!({"id": "q", "mechanism": rho("-1")}), 422, "out_of_domain"),
        (json!({"id": "q", "mechanism": rho("NaN")}), 422, "out_of_domain"),
        (json!({"id": "q", "mechanism": {"laplace": {"scale": 0}}}), 422, "out_of_domain"),
        (json!({"id": "q", "mechanism": {"repeat": {"count": 0, "of": rho("1")}}}), 422, "out_of_domain"),
    ] {
        spend(body.to_string().as_bytes(), expected, code);
    }
    spend(b"{\"id\": \"q\", \"mechanism\": {\"zcdp\": {\"rho\": 1e400}}}", 400, "malformed");
    assert_eq!(served.entries(), before, "nothing changed");
}

#[test]
fn paths() {
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    let before = served.entries();
    let raw = |method: &str, path: &str| {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\n");
        raw_ask(&served, format!("{head}connection: close\r\n\r\n").as_bytes())
    };
    assert!(raw("MADEUP", "/v1/datasets").starts_with("HTTP/1.1 405"));
    let Value::String(numbers) = served.get(&admin, "/metrics") else { panic!("text") };
    assert!(!numbers.contains("MADEUP"), "nobody makes up labels");
    for path in [
        "/v1/datasets/..%2f..%2fetc%2fpasswd",
        "/v1/datasets/%2e%2e",
        "/v1/datasets/sales%00",
        "/v1/datasets/sales%2fspend",
        "/v1/datasets/%ff",
        "/v1/datasets/sa les",
        "/v1/datasets/sales/../../tokens",
        "/v1//datasets",
        "/assets/../Cargo.toml",
        "/assets/%2e%2e/lib.rs",
        "/docs/..%2f..%2fCargo.toml",
        "/v1/log?after=-1",
        "/v1/log?after=x",
        "/v1/log?unknown=1",
        "/v1/tokens/zz",
    ] {
        let said = raw("GET", path);
        let status: u16 = said.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        assert!((400..500).contains(&status), "{path}: {said}");
    }
    for (method, path, expected, code) in [
        ("GET", "/v1/log?after=9223372036854775808", 200, ""),
        ("PUT", "/v1/datasets", 405, "method_not_allowed"),
        ("GET", "/v2/datasets", 404, "not_found"),
        ("GET", "/v1/datasets/nowhere", 404, "unknown_dataset"),
    ] {
        check(&served, &admin, (method, path), b"", expected, code);
    }
    assert_eq!(served.entries(), before, "nothing changed");
}

fn raw_ask(served: &Served, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    stream.write_all(request).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn requests_that_are_not_http() {
    let served = Served::new();
    let before = served.entries();
    for request in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /v1/datasets HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/datasets HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/datasets HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut request = request.to_vec();
        request.extend(b"\r\n\r\n");
        let said = raw_ask_shut(&served, &request);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    let huge = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(200_000));
    let said = raw_ask_shut(&served, huge.as_bytes());
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    assert_eq!((served.entries(), served.ask("GET", "/health/ready", &[], b"").0), (before, 200));
}

fn raw_ask_shut(served: &Served, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    stream.write_all(request).ok();
    stream.shutdown(std::net::Shutdown::Write).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn slow_clients_are_sent_away() {
    let door = Door { patience: Duration::from_millis(400), ..Door::new(None) };
    let served = Served::with(Setup { door, ..Setup::default() });
    let admin = served.token("root", Role::Admin, None);
    let begin = Instant::now();
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).expect("connects");
            stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: ").expect("written");
            stream
        })
        .collect();
    assert_eq!(served.get(&admin, "/v1/me")["holder"], "root", "others are served");
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        // One letter now and then does not help.
        stream.write_all(b"a").ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let said = String::from_utf8_lossy(&answer);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "all of them at once");
}

#[test]
fn more_than_the_rate_is_told_to_wait() {
    let served = Served::with(Setup { rate: 20, ..Setup::default() });
    let (ann, bob) = (served.token("ann", Role::Auditor, None), served.token("bob", Role::Auditor, None));
    let ask = |token: &str| served.ask_fully("GET", "/v1/me", &[("authorization", &format!("Bearer {token}"))], b"");
    let statuses: Vec<u16> = (0..60).map(|_| ask(&ann).0).collect();
    let served_now = statuses.iter().filter(|status| **status == 200).count();
    assert!((20..60).contains(&served_now) && statuses.contains(&429), "{statuses:?}");
    let (status, headers, _) = (0..40).map(|_| ask(&ann)).find(|(status, ..)| *status == 429).expect("told to wait");
    assert_eq!((status, headers["retry-after"].to_str().expect("text")), (429, "1"));
    assert_eq!(ask(&bob).0, 200, "another's rate is another's");
}
