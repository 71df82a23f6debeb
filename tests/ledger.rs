//! `paygo ledger` and `paygo filter --ledger`: exit codes, answers for programs, several processes on one file.

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{io::Write, thread};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
        command.args(arguments).current_dir(self.folder.path()).env("PAYGO_AS", "alice").env_remove("PAYGO_LEDGER");
        command
    }

    /// `paygo ledger --ledger a.ledger …`
    fn ledger(&self, arguments: &[&str]) -> Output {
        self.ledger_in("a.ledger", arguments)
    }

    fn ledger_in(&self, file: &str, arguments: &[&str]) -> Output {
        self.command(&[&["ledger", "--ledger", file], arguments].concat()).output().expect("runs")
    }

    #[track_caller]
    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        let output = self.ledger(&[&["--json"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"))
    }

    #[track_caller]
    fn complains(&self, arguments: &[&str], complaint: &str) {
        let output = self.ledger(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }

    fn filter(&self, input: &str) -> Output {
        let mut command = self.command(&["filter", "--ledger", "a.ledger", "--dataset", "sales"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
        child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("listens");
        child.wait_with_output().expect("ends")
    }
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Ids and allowances belong to names: a job without USER in its environment asks under the name of its owner, as everywhere else. And
/// `--as` may stand after the command.
#[test]
fn a_job_without_an_environment_has_its_owners_name() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--kind", "zcdp", "--rho", "1"]);
    let spend = |id: &str, more: &[&str]| {
        let mechanism = r#"{"zcdp": {"rho": "0.1"}}"#;
        let arguments = [&["ledger", "--ledger", "a.ledger", "spend", "sales", id, mechanism], more].concat();
        assert!(place.command(&arguments).env_clear().status().expect("runs").success(), "{id}");
    };
    spend("q1", &[]);
    spend("q2", &["--as", "zoe"]);
    let owner = Command::new("id").arg("-un").output().expect("id runs").stdout;
    let history = String::from_utf8_lossy(&place.ledger(&["history", "sales"]).stdout).into_owned();
    let owner = String::from_utf8_lossy(&owner).trim().to_owned();
    assert!(
        history.contains(&owner) && history.contains("zoe") && !history.contains("anonymous"),
        "{owner}: {history}"
    );
}

/// Before the command and after it: which of the two was meant is not known.
#[test]
fn an_option_of_every_command_is_given_once() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--kind", "zcdp", "--rho", "1"]);
    place.complains(&["--as", "bob", "show", "sales", "--as", "carl"], "--as is given twice");
    place.complains(&["--as=bob", "show", "sales", "--as=carl"], "--as is given twice");
    place.complains(&["show", "sales", "--ledger", "b.ledger"], "--ledger is given twice");
    place.complains(&["show", "--as", "bob", "--as", "carl"], "cannot be used multiple times");
    let mechanism = r#"{"zcdp": {"rho": "0.1"}}"#;
    place.json(0, &["spend", "sales", "q", mechanism, "--note=--as", "--as", "bob", "--json"]);
}

#[test]
fn the_history_of_an_allowance_names_its_members_and_its_ceiling() {
    let place = Place::new();
    place.json(0, &["create", "z", "--kind", "zcdp", "--rho", "1"]);
    place.json(0, &["create", "m", "--epsilon", "1", "--delta", "1e-6"]);
    place.json(0, &["allow", "z", "team", "--members", "alice,bob", "--rho", "0.1"]);
    place.json(0, &["allow", "m", "team", "--members", "carol", "--epsilon", "0.25"]);
    let history = String::from_utf8_lossy(&place.ledger(&["history"]).stdout).into_owned();
    for said in [
        "allowance team in z set by alice: alice, bob together at most rho 0.1\n",
        "allowance team in m set by alice: carol together at most epsilon 0.25 at delta 1e-6\n",
    ] {
        assert!(history.contains(said), "{history}");
    }
}

/// What was set, what it was, and what is left of it: an epsilon that is less in rho than what is spent refuses everything.
#[test]
fn an_allowance_that_is_set_says_what_it_allows() {
    let place = Place::new();
    place.json(0, &["create", "survey", "--kind", "zcdp", "--epsilon", "1", "--delta", "1e-6"]);
    let said = |arguments: &[&str]| String::from_utf8_lossy(&place.ledger(arguments).stdout).into_owned();
    let allow = |more: &[&str]| said(&[&["allow", "survey", "ads", "--members", "ann,bob"], more].concat());
    assert_eq!(allow(&["--rho", "0.014"]), "allowance ads: ann, bob together at most rho 0.014\n");
    let gaussian = r#"{"gaussian": {"noise_multiplier": 8}}"#;
    place.json(0, &["spend", "survey", "q", gaussian, "--as", "ann"]);
    let lowered = "at most rho 0.00253965 (was rho 0.014); rho 0.0078125 is spent, so nothing more is admitted\n";
    let answer = allow(&["--epsilon", "0.3"]);
    assert!(answer.ends_with(lowered), "{answer}");
    let refused = said(&["what-if", "survey", gaussian, "--as", "bob"]);
    assert!(refused.contains("spent rho 0.0078125, with it rho 0.015625 of 0.00253965"), "{refused}");
    assert!(
        allow(&["--rho", "0.5"]).ends_with("\nnote: that is more than the dataset's own budget, which holds too\n")
    );
}

#[test]
fn typos_are_answered_with_what_was_meant() {
    let place = Place::new();
    place.json(0, &["create", "survey", "--kind", "zcdp", "--rho", "1"]);
    place.complains(&["spend", "survey", "q", r#"{"gausian": {"noise_multiplier": 10}}"#], "did you mean `gaussian`?");
    place.complains(
        &["spend", "survey", "q", "gaussian"],
        r#"expected JSON such as '{"gaussian": {"noise_multiplier": 10}}'"#,
    );
    place.complains(&["show", "sruvey"], "there is no dataset sruvey\nhint: there are survey");
    let large = place.ledger(&["create", "large", "--epsilon", "1", "--delta", "0.5"]);
    assert!(String::from_utf8_lossy(&large.stderr).contains("note: delta = 0.5 is large"), "{large:?}");
    // A step with a delta of its own, where none was set aside.
    let approximate = r#"{"approximate": {"epsilon": "0.1", "delta": "1e-9"}}"#;
    let refused = place.json(1, &["spend", "survey", "q", approximate]);
    assert!(refused["reason"].as_str().is_some_and(|reason| reason.contains("--slack 1e-7")), "{refused}");
}

#[test]
fn a_budget_of_another_kind_is_told_where_it_belongs() {
    let place = Place::new();
    let create =
        |more: &[&str], said: &str| place.complains(&[&["create", "sales", "--kind", "zcdp"], more].concat(), said);
    create(&["--mu", "1"], "--mu does not go with this --kind; it goes with gdp");
    create(&["--rho", "1", "--order", "3"], "--order does not go with this --kind; it goes with fixed-order");
    create(&["--rho", "1", "--epsilon", "1"], "give --rho or --mu, or --epsilon and --delta");
    create(&["--rhoo", "1"], "a similar argument exists: '--rho'");
}

#[test]
fn a_promise_beside_slack_says_so() {
    let place = Place::new();
    let made = place.ledger(&["create", "zs", "--kind", "zcdp", "--rho", "0.1", "--slack", "1e-7"]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(said.contains("1e-7-approximate 0.1-zCDP"), "{said}");
}

/// A log of version 1, one dataset of every kind and a request of every mechanism, written before numbers were read as their text: it is
/// taken over whole, its balances and prices hold, and a retry hears what was answered then.
#[test]
fn a_log_from_before_is_taken_over_and_its_prices_hold() {
    let place = Place::new();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/ledger/version-1.jsonl");
    let taken = place.ledger(&["import", log.to_str().expect("a path")]);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    let verified = place.ledger(&["verify", "--prices"]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(said.starts_with("sound: 164 entries, 61 admitted, 15 refused"), "{said}");
    let again = place.json(0, &["spend", "mix", "q1", r#"{"pure":{"epsilon":0.1}}"#]);
    assert_eq!((&again["decision"], &again["repeated"]), (&json!("admit"), &json!(true)), "{again}");
}

#[test]
fn a_dataset_from_its_making_to_its_end() {
    let place = Place::new();
    place.complains(&["show"], "there is no ledger a.ledger");
    assert!(!Path::exists(&place.folder.path().join("a.ledger")), "to look makes nothing");
    let made = place.json(0, &["create", "sales", "--kind", "zcdp", "--rho", "1"]);
    assert_eq!((&made["entry"], &made["repeated"]), (&json!(2), &json!(false)));
    assert_eq!(place.json(0, &["create", "sales", "--kind", "zcdp", "--rho", "1"])["repeated"], true);
    place.complains(&["create", "sales", "--kind", "zcdp", "--rho", "2"], "fixed for good");

    let rho = |rho: &str| format!("{{\"zcdp\": {{\"rho\": \"{rho}\"}}}}");
    let first = place.json(0, &["spend", "sales", "q1", &rho("0.4"), "--note", "a test"]);
    assert_eq!(
        (&first["decision"], &first["spent"]["rho"], &first["remaining"]["rho"]),
        (&json!("admit"), &json!(0.4), &json!(0.6))
    );
    assert_eq!(place.json(0, &["spend", "sales", "q1", &rho("0.4")])["repeated"], true);
    let refused =
        place.json(1, &["spend", "sales", "q2", &format!("{{\"repeat\": {{\"count\": 9, \"of\": {}}}}}", rho("0.25"))]);
    assert_eq!((&refused["largest_count"], &refused["requested"]["rho"]), (&json!(2), &json!(2.25)));
    place.complains(&["spend", "sales", "q1", &rho("0.5")], "id q1 was used before");
    place.complains(&["spend", "sales", "q3", "{\"zcdp\": {\"rho\": -1}}"], "rho = -1");
    place.complains(&["spend", "sales", "q3", "gaussian"], "expected value");
    place.complains(&["spend", "elsewhere", "q3", &rho("0.1")], "there is no dataset elsewhere");
    place.complains(&["spend", "sales", "q3", &rho("0.1"), "--blocks", "x"], "not divided into blocks");

    assert!(place.json(0, &["reserve", "sales", "r", &rho("0.6"), "--expires-in", "60"])["expires"].is_u64());
    place.complains(&["cancel", "sales", "r"], "give --nothing-drawn");
    assert_eq!(place.json(1, &["what-if", "sales", &rho("0.1")])["decision"], "refuse");
    place.json(0, &["cancel", "sales", "r", "--nothing-drawn"]);
    assert_eq!(place.json(0, &["what-if", "sales", &rho("0.1")])["largest_count"], 6);
    place.json(0, &["allow", "sales", "team", "--members", "alice,bob", "--rho", "0.1"]);
    let ceiling = place.json(1, &["spend", "sales", "q4", &rho("0.2")]);
    assert_eq!(ceiling["account"], json!({"allowance": "team"}));

    let shown = place.json(0, &["show", "sales"]);
    assert_eq!((&shown["admitted"], &shown["refused"]), (&json!(2), &json!(2)));
    assert!(shown["accounts"][0]["odometer"]["epsilon"].as_f64() > Some(0.4));
    let token = place.json(0, &["grant", "carol", "--role", "spender", "--datasets", "sales"]);
    assert!(token["token"].as_str().is_some_and(|token| token.starts_with("paygo_") && token.len() == 70));
    let tokens = place.json(0, &["tokens"]);
    place.json(0, &["revoke", tokens[0]["hash"].as_str().expect("a hash")]);
    assert_eq!(place.json(0, &["tokens"]), json!([]));
    place.json(0, &["close", "sales"]);
    place.complains(&["spend", "sales", "q5", &rho("0.1")], "is closed");

    let receipt = format!("{}:{}", first["entry"], first["receipt"].as_str().expect("a digest"));
    let report = place.json(0, &["verify", "--receipt", &receipt]);
    assert_eq!((&report["admitted"], &report["refused"]), (&json!(2), &json!(2)));
    place.complains(&["verify", "--receipt", &format!("{}:{}", first["entry"], "0".repeat(64))], "holds a receipt");
    let exported = place.ledger(&["export"]);
    assert_eq!(lines(&exported).len() as u64, report["entries"].as_u64().expect("a number"));
    assert!(!String::from_utf8_lossy(&exported.stdout).contains(token["token"].as_str().expect("a token")));
    let history = place.ledger(&["history", "sales", "--last", "3"]);
    assert_eq!(String::from_utf8_lossy(&history.stdout).lines().count(), 3);
}

/// Four processes stream into one file, each its own requests and some of the others': together what fits, each id once.
#[test]
fn processes_share_one_file() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--kind", "pure", "--epsilon", "1"]);
    let request = |id: &str| format!("{{\"id\": \"{id}\", \"mechanism\": {{\"pure\": {{\"epsilon\": \"0.01\"}}}}}}\n");
    let answers: Vec<Output> = thread::scope(|scope| {
        let streams: Vec<_> = (0..4)
            .map(|process| {
                let input: String =
                    (0..40).map(|i| request(&format!("{process}-{i}")) + &request(&format!("all-{i}"))).collect();
                let place = &place;
                scope.spawn(move || place.filter(&input))
            })
            .collect();
        streams.into_iter().map(|stream| stream.join().expect("a stream")).collect()
    });
    let mut admitted = 0;
    for output in &answers {
        assert_eq!(lines(output).len(), 80);
        let refused = lines(output).iter().any(|answer| answer["decision"] == "refuse");
        assert_eq!(output.status.code(), Some(i32::from(refused)), "{}", String::from_utf8_lossy(&output.stderr));
        admitted +=
            lines(output).iter().filter(|answer| answer["decision"] == "admit" && answer["repeated"] == false).count();
    }
    assert_eq!(admitted, 100, "0.01 fits a hundred times into 1");
    assert_eq!(place.json(0, &["verify"])["admitted"], 100);
}

#[test]
fn a_stream_says_what_a_ledger_needs() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--kind", "pure", "--epsilon", "1"]);
    // The second of two is no second permission, in the same run and in the next.
    let request = "{\"id\": \"q\", \"mechanism\": {\"pure\": {\"epsilon\": \"0.01\"}}}\n";
    let repeated = |output: &Output| lines(output).iter().map(|answer| answer["repeated"].clone()).collect::<Vec<_>>();
    assert_eq!(repeated(&place.filter(&request.repeat(2))), [false, true]);
    assert_eq!(repeated(&place.filter(request)), [true]);
    let other = "{\"id\": \"q\", \"mechanism\": {\"pure\": {\"epsilon\": \"0.02\"}}}\n";
    assert!(lines(&place.filter(other))[0]["error"].as_str().is_some_and(|error| error.contains("was used before")));
    let output = place.filter("{\"mechanism\": {\"pure\": {\"epsilon\": \"0.01\"}}}\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(lines(&output)[0]["error"].as_str().is_some_and(|error| error.contains("give each request one")));
    let mixed = place.command(&["filter", "--ledger", "a.ledger", "--dataset", "sales", "--epsilon", "1"]).output();
    let mixed = mixed.expect("runs");
    assert!(String::from_utf8_lossy(&mixed.stderr).contains("the dataset's own filter decides"));
    let unknown = place.command(&["filter", "--ledger", "a.ledger", "--dataset", "other"]).output().expect("runs");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no dataset other"));
    let alone = place.command(&["filter", "--ledger", "a.ledger"]).output().expect("runs");
    assert!(String::from_utf8_lossy(&alone.stderr).contains("--dataset"));
}

/// Backups while somebody spends: each is a ledger as it was at some moment.
#[test]
fn a_backup_is_a_ledger_as_it_was() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--kind", "zcdp", "--rho", "1000"]);
    thread::scope(|scope| {
        let spender = scope.spawn(|| {
            for n in 0..40 {
                place.json(0, &["spend", "sales", &format!("q{n}"), "{\"zcdp\": {\"rho\": \"0.5\"}}"]);
            }
        });
        let mut backups = 0;
        while !spender.is_finished() || backups == 0 {
            place.json(0, &["backup", &format!("backup-{backups}.ledger")]);
            backups += 1;
        }
        for backup in 0..backups {
            let verified = place.ledger_in(&format!("backup-{backup}.ledger"), &["verify"]);
            assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
        }
    });
    place.complains(&["backup", "backup-0.ledger"], "is there already; a backup is a new file");
}

#[test]
fn a_log_goes_elsewhere_and_comes_back() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--kind", "zcdp", "--rho", "1000"]);
    for n in 0..10 {
        place.json(0, &["spend", "sales", &format!("q{n}"), "{\"zcdp\": {\"rho\": \"0.5\"}}"]);
    }
    let last = place.json(0, &["spend", "sales", "last", "{\"zcdp\": {\"rho\": \"1\"}}"]);
    let text = String::from_utf8(place.ledger(&["export"]).stdout).expect("text");
    let write = |name: &str, text: &str| std::fs::write(place.folder.path().join(name), text).expect("written");
    write("log.jsonl", &text);
    assert!(place.ledger_in("new.ledger", &["import", "log.jsonl"]).status.success());
    let receipt = format!("{}:{}", last["entry"], last["receipt"].as_str().expect("text"));
    let verified = place.ledger_in("new.ledger", &["verify", "--receipt", &receipt]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let again = place.ledger_in("new.ledger", &["--json", "spend", "sales", "last", "{\"zcdp\": {\"rho\": \"1\"}}"]);
    let again: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!((&again["repeated"], &again["receipt"]), (&json!(true), &last["receipt"]), "ids came along");
    // Into what is there already, and from what does not hold: nothing.
    write("changed.jsonl", &text.replace("\"0.5\"", "\"0.4\""));
    let without: Vec<&str> = text.lines().enumerate().filter(|(line, _)| *line != 7).map(|(_, line)| line).collect();
    write("shorter.jsonl", &without.join("\n"));
    write("empty.jsonl", "");
    for (ledger, log, said) in [
        ("new.ledger", "log.jsonl", "entries already"),
        ("other.ledger", "changed.jsonl", "holds digest"),
        ("other.ledger", "shorter.jsonl", "expected 8"),
        ("other.ledger", "empty.jsonl", "no entry"),
        ("other.ledger", "none.jsonl", "none.jsonl"),
    ] {
        let output = place.ledger_in(ledger, &["import", log]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && complaint.contains(said), "{log}: {complaint}");
    }
    let whole = place.ledger_in("other.ledger", &["import", "log.jsonl"]);
    assert!(whole.status.success(), "nothing of those was taken over");
}

/// A whole plan, one release after another: what is admitted then is what was told before, and not what all of it at once would be.
#[test]
fn a_whole_plan_is_asked_about() {
    let place = Place::new();
    place.json(0, &["create", "sales", "--epsilon", "2", "--delta", "1e-5"]);
    let step =
        |noise: f64| json!({"poisson_sampled_gaussian": {"sampling_probability": 0.08, "noise_multiplier": noise}});
    // Cheap steps first and dear ones last, when less is left.
    let releases: Vec<Value> =
        (0..4u32).map(|i| json!({"count": 12, "mechanism": step(2.0 - 0.3 * f64::from(i))})).collect();
    let write =
        |name: &str, plan: Value| std::fs::write(place.folder.path().join(name), plan.to_string()).expect("written");
    write("plan.json", json!({"delta": 1e-5, "releases": releases}));
    let told = place.json(1, &["what-if", "sales", "--plan", "plan.json"]);
    let fit = told["in_turn"].as_u64().expect("a number");
    assert!(fit > 12 && fit < 48, "{told}");
    let mut admitted = 0;
    for (i, release) in releases.iter().enumerate() {
        for j in 0..12 {
            let words = release["mechanism"].to_string();
            let output = place.ledger(&["spend", "sales", &format!("q{i}-{j}"), &words]);
            if output.status.code() != Some(0) {
                break;
            }
            admitted += 1;
        }
        if admitted < 12 * (i as u64 + 1) {
            break;
        }
    }
    assert_eq!(admitted, fit);
    write("other.json", json!({"neighbors": "zero-out", "delta": 1e-5, "releases": releases}));
    place.complains(&["what-if", "sales", "--plan", "other.json"], "the plan is for zero-out neighbors");
    place.complains(&["what-if", "sales"], "required arguments");
}
