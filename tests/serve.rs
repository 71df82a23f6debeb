//! `paygo serve` as others run it: the first start, the next, its log, and clients in other languages.

mod common;

use common::{Service, paygo};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn ledger(folder: &Path) -> String {
    folder.join("a.ledger").to_str().expect("text").to_owned()
}

/// `paygo`, with a service for a ledger.
fn asks(service: &Service, token: &str, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
    command.args(arguments).env("PAYGO_LEDGER", &service.address).env("PAYGO_TOKEN", token);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("listens");
    child.wait_with_output().expect("ends")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn the_first_start_tells_a_token_and_the_next_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = ledger(folder.path());
    let mut service = Service::start(&ledger, &["--log", "json"]);
    let token = service.token.clone().expect("the first start");
    let output = asks(&service, &token, &["ledger", "create", "sales", "--kind", "zcdp", "--rho", "1"], "");
    assert!(output.status.success(), "{}", said(&output));
    let spend = ["ledger", "spend", "sales", "q1", r#"{"zcdp": {"rho": "0.4"}}"#];
    assert!(said(&asks(&service, &token, &spend, "")).contains("admitted; dataset: spent rho 0.4, left rho 0.6"));
    assert!(said(&asks(&service, &token, &spend, "")).contains("admitted, as before"));
    let much = ["ledger", "spend", "sales", "q2", r#"{"zcdp": {"rho": "0.7"}}"#];
    let refused = asks(&service, &token, &much, "");
    assert!(refused.status.code() == Some(1) && said(&refused).contains("refused: "), "{}", said(&refused));
    let again = said(&asks(&service, &token, &much, ""));
    assert!(again.contains("refused, as before") && again.contains("0 of the same would have fit then"), "{again}");
    let failed = asks(&service, &token, &["ledger", "grant", "zed", "--role", "spender", "--datasets", "none"], "");
    assert!(said(&failed).contains("there is no dataset none"), "{}", said(&failed));
    let wrong = asks(&service, "paygo_wrong", &["ledger", "show"], "");
    assert!(wrong.status.code() == Some(2) && said(&wrong).contains("wrong, revoked or expired"), "{}", said(&wrong));
    assert_eq!(service.end().code(), Some(0));
    let log = service.stderr();
    assert!(!log.contains(&token) && !log.contains("paygo_wrong"), "no token in the log: {log}");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect();
    let told = |message: &str| lines.iter().any(|line| line["message"] == message && line["level"].is_string());
    for message in ["serving", "create_dataset", "no token, or none that is known", "ending", "ended"] {
        assert!(told(message), "{message}: {log}");
    }
    assert!(!told("grant_token"), "what was asked for in vain: {log}");
    // What was decided is there, and the token still works; nothing new is told.
    service.restart();
    assert!(said(&asks(&service, &token, &spend, "")).contains("admitted, as before"));
    let again = Service::start(&ledger, &[]);
    assert!(again.token.is_none(), "a second process on the same file");
    assert!(said(&asks(&again, &token, &["ledger", "show"], "")).contains("rho 0.4 of 1"));
    // Administration of the same file beside the service.
    let granted = paygo(&["ledger", "--ledger", &ledger, "grant", "ann", "--role", "spender", "--datasets", "sales"]);
    let ann = String::from_utf8(granted.stdout).expect("text").trim().to_owned();
    std::thread::sleep(std::time::Duration::from_millis(700));
    let stream = "{\"id\": \"a\", \"mechanism\": {\"zcdp\": {\"rho\": \"0.1\"}}}\n";
    let filter = ["filter", "--ledger", &service.address, "--dataset", "sales"];
    let streamed = asks(&service, &ann, &filter, stream);
    assert!(streamed.status.success() && said(&streamed).contains("\"decision\":\"admit\""), "{}", said(&streamed));
    assert!(said(&asks(&service, &ann, &filter, stream)).contains("\"repeated\":true"), "ids are kept for good");
    let verify = asks(&service, &token, &["ledger", "verify"], "");
    assert!(
        verify.status.code() == Some(2)
            && said(&verify).contains("this needs the log itself")
            && said(&verify).contains("ledger backup")
    );
    assert!(paygo(&["ledger", "--ledger", &ledger, "verify"]).status.success());
}

#[test]
fn others_are_not_let_in_without_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = paygo(&["serve", "--ledger", &ledger(folder.path()), "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--plain-http behind a proxy"), "{}", said(&output));
    assert!(!folder.path().join("a.ledger").exists(), "nothing was made");
    let missing = paygo(&["serve", "--tls-cert", "no.pem", "--tls-key", "no.pem"]);
    assert!(missing.status.code() == Some(2) && said(&missing).contains("no.pem"), "{}", said(&missing));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = paygo(&["serve", "--ledger", &ledger(folder.path()), "--listen", &address]);
    assert!(output.status.code() == Some(2) && said(&output).contains(&address), "{}", said(&output));
}

/// The examples for curl and for Python, as they are in the repository.
#[test]
fn examples_in_other_languages() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(&ledger(folder.path()), &[]);
    let token = service.token.clone().expect("the first start");
    let run = |program: &str, file: &str| -> String {
        let mut command = Command::new(program);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file));
        let output = command.env("PAYGO_URL", &service.address).env("PAYGO_TOKEN", &token).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{file}: {}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let lines = run("bash", "ledger_over_http.sh");
    let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let words: Vec<&Value> = answers.iter().map(|answer| &answer["decision"]).collect();
    assert_eq!(
        words,
        [&Value::Null, &"admit".into(), &"admit".into(), &"refuse".into(), &"admit".into(), &Value::Null]
    );
    assert_eq!((&answers[2]["repeated"], &answers[5]["admitted"]), (&Value::Bool(true), &1.into()));
    let python = run("python3", "ledger_over_http.py");
    let admitted = python.matches("is admitted;").count();
    assert!(
        admitted > 3 && python.contains(&format!("week {admitted} is refused: the total would pass the budget")),
        "{python}"
    );
    let again = run("python3", "ledger_over_http.py");
    assert_eq!(again.matches("is admitted as before").count(), admitted, "a second run is charged nothing: {again}");
}
