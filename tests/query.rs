//! `paygo query` as people use it: files, accounts, refusals, crashes.

use paygo::accounting::individual::FULL;
use paygo::analysis::Accounts;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
        command.arg("query").args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn query(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.query(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], said: &str) {
        let output = self.query(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(said), "{message}");
        assert!(output.stdout.is_empty(), "nothing is released");
    }
}

/// A hundred customers; customer 13 spends 666, everybody else 10 in two rows.
fn sales(place: &Place) {
    let mut text = "customer,region,amount\n".to_owned();
    for customer in 0..100 {
        match customer {
            13 => text.push_str("13,North,666\n"),
            customer => writeln!(text, "{customer},North,4\n{customer},South,6").expect("text"),
        }
    }
    place.write("sales.csv", &text);
}

const ASK: [&str; 5] = ["sales.csv", "--person", "customer", "--budget", "rho=2"];
const SUM: [&str; 6] = ["--sum", "amount", "--clip", "0..100", "--noise-std", "50"];

fn value(answer: &Value) -> f64 {
    answer["numbers"][0]["value"].as_f64().expect("a number")
}

#[test]
fn answers_come_with_noise_intervals_and_a_promise() {
    let place = Place::new();
    sales(&place);
    let answer = place.json(&[&ASK[..], &SUM].concat());
    let sum = &answer["answers"][0];
    assert!((value(sum) - (99.0 * 10.0 + 100.0)).abs() < 500.0, "{answer}");
    assert_eq!((&sum["name"], &sum["noise_std"]), (&Value::from("sum amount"), &Value::from(50.0)));
    assert_eq!(answer["promise"]["basis"], "FullyAdaptive");
    assert_eq!(answer["certainly_everyone"], true);
    let text = place.query(&[&ASK[..], &SUM].concat());
    let (table, notes) = (String::from_utf8_lossy(&text.stdout), String::from_utf8_lossy(&text.stderr));
    assert!(table.starts_with("| query      | answer |") && table.contains("95 % interval"), "{table}");
    assert!(notes.contains("promise: 2-zCDP for each `customer` under add-remove neighbors"), "{notes}");
    assert!(notes.contains("nothing is kept"), "{notes}");
}

#[test]
fn a_dry_run_says_a_budget_once() {
    let place = Place::new();
    let dry = |budget: &str| {
        let ask = ["none.csv", "--person", "customer", "--count", "--noise-std", "20", "--dry-run", "--budget", budget];
        String::from_utf8_lossy(&place.query(&ask).stdout).into_owned()
    };
    assert!(dry("rho=0.01").contains("\nbudget: rho 0.01\n"), "{}", dry("rho=0.01"));
    let said = dry("epsilon=1,delta=1e-6");
    assert!(said.contains("\nbudget: epsilon 1 at delta 1e-6, which is rho 0.02"), "{said}");
}

/// From the first moment on a signal is heard: here while the file with the questions is still being waited for.
#[test]
fn whoever_interrupts_early_is_heard() {
    let place = Place::new();
    let pipe = place.path("queries.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let child =
        place.command(&["sales.csv", "--queries", "queries.toml"]).stderr(Stdio::piped()).spawn().expect("runs");
    // It is opened as soon as the other side opens it.
    let pipe = std::fs::File::options().write(true).open(&pipe).expect("opened");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("ends");
    drop(pipe);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was charged"), "{output:?}");
}

#[test]
fn the_readme_example_works_on_the_demo_table() {
    let place = Place::new();
    let demo =
        Command::new(env!("CARGO_BIN_EXE_paygo")).arg("demo").current_dir(place.0.path()).output().expect("runs");
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let queries = root.join("examples/queries.toml");
    let answer =
        place.json(&["paygo-demo.csv", "--queries", queries.to_str().expect("a path"), "--report", "page.html"]);
    let answers = answer["answers"].as_array().expect("answers");
    assert_eq!(answers.len(), 6);
    // The demo's 40,000 people, about a ninth of them in the North.
    assert!((value(&answers[0]) - 40_000.0).abs() < 500.0, "{}", answers[0]);
    assert_eq!(answers[4]["numbers"].as_array().map(Vec::len), Some(8));
    assert!((value(&answers[4]) - 4444.0).abs() < 600.0, "{}", answers[4]);
    let page = std::fs::read_to_string(place.path("page.html")).expect("a page");
    assert!(
        page.contains("<svg")
            && page.contains("spending of a customer")
            && !page.contains("src=")
            && !page.contains("href=")
    );
}

#[test]
fn accounts_last_from_run_to_run_and_people_leave_one_by_one() {
    let place = Place::new();
    sales(&place);
    let ask = [&ASK[..], &SUM, &["--accounts", "sales.accounts"]].concat();
    // 100 costs ρ = 2, the whole budget; 10 costs 0.02.
    for round in 0..3 {
        let answer = place.json(&ask);
        assert_eq!(answer["certainly_everyone"], round == 0);
        // Customer 13 is there the first time only. Nothing says so: the noise is as large as what is missing.
        assert!((value(&answer["answers"][0]) - if round == 0 { 1090.0 } else { 990.0 }).abs() < 400.0, "{answer}");
    }
    let account = |person: &str| place.json(&["account", "--accounts", "sales.accounts", "--person", person]);
    assert_eq!(account("13")["spent"]["rho"], 2.0);
    assert_eq!(account("7")["spent"]["rho"], 0.06);
    assert!(account("7")["for"].as_str().is_some_and(|whom| whom.contains("for disclosure to customer 7 only")));
    place.fails(&["account", "--accounts", "sales.accounts", "--person", "100"], "no account for `customer` = 100");
    let text = place.query(&["account", "--accounts", "sales.accounts", "--person", "7"]);
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("used: 3 % in 3 rounds, rho 0.06; 1.94 remains"), "{text}");
    let status = place.json(&["status", "--accounts", "sales.accounts"]);
    assert_eq!((&status["rounds"], &status["worst_case"]), (&Value::from(3), &Value::from(3.0)));
    // Person and budget are those of the accounts; the table says where people may be missing.
    let again = [&["sales.csv", "--accounts", "sales.accounts"], &SUM[..]].concat();
    let text = String::from_utf8_lossy(&place.query(&again).stdout).into_owned();
    assert!(text.contains("answer (people may be missing)"), "{text}");
}

#[test]
fn worst_case_refuses_with_exit_1_whatever_the_data() {
    let place = Place::new();
    sales(&place);
    let ask = [&ASK[..], &SUM, &["--mode", "worst-case", "--accounts", "w.accounts"]].concat();
    assert!(place.query(&ask).status.success());
    let refused = place.query(&[&ask[..], &["--json"]].concat());
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("\"decision\":\"refuse\""));
    // Before the table is read, also the first time: the same whatever is in it.
    place.write("broken.csv", "customer,amount\n,1\n");
    for table in ["sales.csv", "broken.csv"] {
        let tiny =
            [table, "--person", "customer", "--budget", "rho=0.5", "--mode", "worst-case", "--accounts", "n.accounts"];
        let output = place.query(&[&tiny[..], &SUM].concat());
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            message.contains("costs 400 % of the budget, and 100 % is left; 2 times the noise would fit"),
            "{message}"
        );
    }
    assert!(!place.path("n.accounts").exists());
    place.fails(&[&ask[..], &["--active-count", "3"]].concat(), "--active-count goes with --mode individual");
    place.fails(
        &[&ASK[..], &SUM, &["--mode", "individual", "--accounts", "w.accounts"]].concat(),
        "the mode is worst-case, and individual was asked for",
    );
}

#[test]
fn a_question_that_somebody_could_never_pay_for_is_not_asked() {
    let place = Place::new();
    sales(&place);
    let ask = ["sales.csv", "--person", "customer", "--budget", "rho=0.5"];
    place.fails(&[&ask[..], &SUM].concat(), "costs 400 % of a whole budget");
    let scaled = place.json(&[&ask[..], &SUM, &["--exhausted", "scaled-down"]].concat());
    assert_eq!(scaled["certainly_everyone"], false);
    let plan = place.json(&[&ask[..], &SUM, &["--dry-run"]].concat());
    assert_eq!((&plan["worst_case"], &plan["fits"]), (&Value::from(4.0), &Value::from(0)));
    let plan = place.json(&[
        "nothing.csv",
        "--person",
        "x",
        "--budget",
        "rho=0.5",
        "--count",
        "--noise-std",
        "10",
        "--dry-run",
    ]);
    assert_eq!((&plan["worst_case"], &plan["fits"]), (&Value::from(0.01), &Value::from(100)));
    let text =
        place.query(&["x.csv", "--person", "x", "--budget", "rho=0.5", "--count", "--noise-std", "10", "--dry-run"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("| count | 10    | ± 19.5997 | 1 %"), "{text:?}");
}

/// Noise as people think of it: a share of everybody's budget, or the accuracy that is wanted.
#[test]
fn noise_can_be_asked_for_as_a_share_or_as_an_accuracy() {
    let place = Place::new();
    sales(&place);
    let plan = |more: &[&str]| {
        let mut arguments = vec!["sales.csv", "--person", "customer", "--budget", "epsilon=1,delta=1e-6", "--dry-run"];
        arguments.extend(more);
        place.json(&arguments)
    };
    let near = |plan: &Value, share: f64| {
        let cost = plan["worst_case"].as_f64().expect("a share");
        assert!(cost <= share && cost > 0.995 * share, "{plan}");
    };
    near(&plan(&["--count", "--spend", "5 %"]), 0.05);
    near(&plan(&["--count", "--spend", "0.05"]), 0.05);
    near(&plan(&["--sum", "amount", "--clip", "0..100", "--spend", "100%"]), 1.0);
    near(&plan(&["--mean", "amount", "--clip", "0..1000000", "--spend", "10 %"]), 0.1);
    near(&plan(&["--histogram", "region", "--categories", "North,South", "--spend", "1 %"]), 0.01);
    for (within, more) in [("10", vec!["--count"]), ("1000", vec!["--sum", "amount", "--clip", "0..100"])] {
        let plan = plan(&[more, vec!["--within", within]].concat());
        let half = plan["queries"][0]["half_width"].as_f64().expect("a width");
        let within: f64 = within.parse().expect("a number");
        assert!(half <= within && half > 0.998 * within, "{plan}");
    }
    let with = |more: &[&'static str]| [&["sales.csv", "--person", "customer", "--budget", "rho=1"][..], more].concat();
    place.fails(
        &with(&["--mean", "amount", "--clip", "0..9", "--within", "1"]),
        "within goes with counts, sums and histograms",
    );
    for share in ["0", "-5 %", "101 %", "five"] {
        let spend = format!("--spend={share}");
        place.fails(&[&with(&["--count"])[..], &[spend.as_str()]].concat(), "is not a share");
    }
    // A wrong column is a mistake to mend first, whatever the budget says.
    let dear = ["--sum", "amuont", "--clip", "0..100", "--noise-std", "0.001", "--mode", "worst-case"];
    place.fails(&with(&dear), "there is no column `amuont`");
}

/// What is said of too little noise is what helps: this much noise is enough, and a little less is not.
#[test]
fn too_little_noise_is_told_what_would_do() {
    let place = Place::new();
    sales(&place);
    let with = |budget: &'static str, more: &[&'static str]| {
        [&["sales.csv", "--person", "customer", "--budget", budget][..], more].concat()
    };
    let count = |noise| with("epsilon=1,delta=1e-6", &["--count", "--noise-std", noise]);
    place.fails(&count("1"), "\nhint: --noise-std 4.54 fits once; with --exhausted scaled-down");
    place.fails(&count("4.52"), "fits once");
    assert!(place.query(&count("4.54")).status.success());
    let sum = with("rho=0.5", &["--sum", "amount", "--clip", "0..100", "--noise-std", "10"]);
    place.fails(&sum, "--noise-std 100 fits once; a narrower --clip needs less");
    let large = place.query(&with("epsilon=1,delta=0.9", &["--count", "--noise-std", "10"]));
    assert!(String::from_utf8_lossy(&large.stderr).contains("note: delta = 0.9 is large"), "{large:?}");
}

#[test]
fn ten_tenths_fit() {
    let place = Place::new();
    sales(&place);
    let ask = ["sales.csv", "--person", "customer", "--budget", "rho=1.25", "--count", "--noise-std", "2"];
    for mode in ["worst-case", "individual"] {
        let ask = [&ask[..], &["--mode", mode, "--accounts", mode]].concat();
        for left in (0..10).rev() {
            let answer = place.json(&ask);
            assert_eq!(answer["certainly_everyone"], true, "{mode}");
            assert_eq!(place.json(&[&ask[..], &["--dry-run"]].concat())["fits"], left, "{mode}");
        }
        let after = place.query(&[&ask[..], &["--json"]].concat());
        assert_eq!(after.status.code(), Some(if mode == "worst-case" { 1 } else { 0 }), "{mode}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_says_that_it_was_charged() {
    let place = Place::new();
    sales(&place);
    let ask = [&ASK[..], &SUM, &["--accounts", "s.accounts"]].concat();
    // Seen before anything is charged.
    place.fails(&[&ask[..], &["--report", "no/where.html"]].concat(), "no/where.html");
    place.fails(&[&ask[..], &["--report", "sales.csv"]].concat(), "would overwrite");
    assert!(!place.path("s.accounts").exists());
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let output = place.command(&ask).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("the question was charged and answered, but the answer could not be written"),
        "{message}"
    );
    place.fails(&[&ask[..], &["--report", "s.accounts"]].concat(), "would overwrite");
    assert_eq!(place.json(&["status", "--accounts", "s.accounts"])["rounds"], 1);
    // A first question that fails leaves no accounts behind.
    place.write("odd.csv", "customer,amount\n1,x\n");
    let odd = [&["odd.csv"], &ASK[1..], &SUM, &["--accounts", "o.accounts"]].concat();
    place.fails(&odd, "column `amount` holds something that is not a finite number");
    assert!(!place.path("o.accounts").exists());
    assert!(place.query(&[&odd[..], &["--missing", "skip"]].concat()).status.success());
}

#[test]
fn what_is_secret_is_never_printed() {
    let place = Place::new();
    let rows: String = (0..100).map(|n| format!("zebra{n},okapi{n},{n}\n")).collect();
    place.write("sales.csv", &format!("customer,region,amount\n{rows}"));
    place.write("odd.csv", &format!("customer,region,amount\n{rows}zebra7,okapi7,giraffe\n,okapi8,3\n"));
    let sum = ["--sum", "amount", "--clip", "0..100", "--noise-std", "60"];
    let more = ["--accounts", "s.accounts", "--active-count", "30", "--report", "r.html"];
    for table in ["sales.csv", "sales.csv", "odd.csv", "sales.csv"] {
        for condition in ["amount >= 0", "region = 'north'", "amount = 'x'", "region > 3"] {
            let ask = [&[table], &ASK[1..], &sum, &more, &["--where", condition]].concat();
            let output = place.query(&ask);
            let page = std::fs::read_to_string(place.path("r.html")).unwrap_or_default();
            let (out, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            for secret in ["zebra", "okapi", "giraffe"] {
                assert!(!format!("{out}{notes}{page}").contains(secret), "{out}{notes}");
            }
        }
    }
    // How many took part, and who, shows in nothing but the noisy count that was asked and paid for.
    let keys = |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
    let answer = place.json(&[&["sales.csv"], &ASK[1..], &sum, &more].concat());
    let public = ["accounts", "answers", "certainly_everyone", "confidence", "promise", "worst_case"];
    assert_eq!(keys(&answer).expect("an object"), public);
    assert_eq!(keys(&answer["answers"][0]).expect("an object"), ["name", "noise_std", "numbers", "statistic"]);
    assert_eq!(keys(&answer["answers"][0]["numbers"][0]).expect("an object"), ["high", "label", "low", "value"]);
}

#[test]
fn bad_input_is_a_message_and_costs_nothing() {
    let place = Place::new();
    sales(&place);
    let with = |more: &[&'static str]| [&ASK[..], more].concat();
    place.fails(&["sales.csv", "--budget", "rho=1", "--count", "--noise-std", "1"], "give --person COLUMN");
    place.fails(&["sales.csv", "--person", "customer", "--count", "--noise-std", "1"], "give --budget");
    place.fails(&["sales.csv", "--person", "customer", "--budget", "epsilon=1", "--count"], "is not a budget");
    // Before anything about noise, and in one domain.
    let budget = |budget: &str, said: &str| {
        place.fails(&["sales.csv", "--person", "customer", "--budget", budget, "--count", "--spend", "5 %"], said);
    };
    budget("epsilon=1,delta=2", "delta = 2 is outside its domain; expected 0 <= delta < 1");
    budget("epsilon=1,delta=1", "delta = 1 is outside its domain; expected 0 <= delta < 1");
    budget("epsilon=-1,delta=1e-6", "epsilon = -1 is outside its domain; expected at least 0");
    budget("epsilon=1,delta=0", "the noise is Gaussian, which needs a delta");
    place.fails(&with(&["--count", "--spend", "0 %"]), "expected above 0 and at most 1");
    place.fails(&with(&[]), "give a question");
    place.fails(&with(&["--count"]), "give the noise in one way: spend");
    place.fails(&with(&["--count", "--noise-std", "1", "--within", "3"]), "give the noise in one way: spend");
    place.fails(&with(&["--count", "--sum", "amount", "--noise-std", "1"]), "count and sum in one query");
    place.fails(&with(&["--sum", "amount", "--noise-std", "1"]), "sum needs clip (--clip LOW..HIGH)");
    place.fails(
        &with(&["--sum", "amount", "--clip", "100..0", "--noise-std", "1"]),
        "clip = 100..0 is outside its domain",
    );
    place.fails(&with(&["--sum", "amount", "--clip", "0..nan", "--noise-std", "1"]), "LOW below HIGH");
    place.fails(&with(&["--sum", "amuont", "--clip", "0..1", "--noise-std", "1"]), "there is no column `amuont`");
    place.fails(&with(&["--sum", "amuont", "--clip", "0..1", "--noise-std", "1", "--accounts", "a"]), "`amuont`");
    place.fails(&["sales.csv", "--person", "cstomer", "--budget", "rho=1", "--count", "--noise-std", "1"], "`cstomer`");
    place.fails(&with(&["--sum", "region", "--clip", "0..1", "--noise-std", "1"]), "column `region` holds something");
    place.fails(&with(&["--sum", "region", "--clip", "0..1", "--noise-std", "1"]), "(--missing skip)");
    place.fails(&with(&["--count", "--noise-std", "-3"]), "noise_std = -3");
    place.fails(&with(&["--count", "--noise-std", "3", "--clip", "0..3"]), "clip does not go with count");
    place.fails(
        &with(&["--count", "rows", "--noise-std", "3", "--clip", "1..3"]),
        "is no number of rows; expected 0..N",
    );
    place.fails(&with(&["--count", "--noise-std", "3", "--where", "amount >"]), "where: a value is missing");
    place.fails(
        &with(&["--count", "--noise-std", "3", "--where", "region > 3"]),
        "cannot be compared with the number 3",
    );
    place.fails(&with(&["--histogram", "region", "--noise-std", "3"]), "histogram needs categories");
    place.fails(&with(&["--quantile", "amount", "--noise-std", "3"]), "quantile needs grid");
    place.fails(
        &with(&["--quantile", "amount", "--grid", "0..9:3", "--at", "1.5", "--noise-std", "3"]),
        "probability = 1.5",
    );
    place.fails(&with(&["--count", "--noise-std", "3", "--confidence", "1"]), "confidence");
    place.fails(&["missing.csv", "--person", "c", "--budget", "rho=1", "--count", "--noise-std", "1"], "missing.csv");
    place.write("queries.toml", "person = \"customer\"\n[[queries]]\ncuont = \"people\"\n");
    place.fails(&["sales.csv", "--queries", "queries.toml", "--budget", "rho=1"], "unknown field `cuont`");
    place.write("queries.toml", "person = \"customer\"\n[[queries]]\ncount = \"people\"\nnoise_std = 3\n");
    place.fails(
        &["sales.csv", "--queries", "queries.toml", "--budget", "rho=1", "--person", "x"],
        "on the command line and in the file",
    );
    assert!(place.query(&["sales.csv", "--queries", "queries.toml", "--budget", "rho=1"]).status.success());
    assert_eq!(std::fs::read_dir(place.0.path()).expect("there").count(), 2, "no accounts were made");
}

#[test]
fn accounts_of_another_dataset_are_not_charged() {
    let place = Place::new();
    sales(&place);
    let ask = |table: &'static str, more: &[&'static str]| {
        [&[table], &ASK[1..], &SUM, &["--accounts", "s.accounts"], more].concat()
    };
    assert!(place.query(&ask("sales.csv", &[])).status.success());
    let grown = std::fs::read_to_string(place.path("sales.csv")).expect("text") + "newcomer,North,5\n";
    place.write("grown.csv", &grown);
    place.fails(&ask("grown.csv", &[]), "the people of this table are not those of the accounts");
    assert!(place.query(&ask("grown.csv", &["--people-changed"])).status.success());
    let spent =
        |person: &str| place.json(&["account", "--accounts", "s.accounts", "--person", person])["spent"]["rho"].clone();
    assert_eq!((spent("7"), spent("newcomer")), (Value::from(0.04), Value::from(0.005)));
    let other = [&ask("grown.csv", &[])[..3], &["--budget", "rho=3"], &SUM, &["--accounts", "s.accounts"]].concat();
    place.fails(&other, "the budget is rho=2, and rho=3 was asked for");
    // Locked while somebody holds them.
    let held = Accounts::open(&place.path("s.accounts"), None).expect("accounts");
    place.fails(&ask("grown.csv", &[]), "another process is using them");
    drop(held);
}

#[test]
fn a_disk_that_takes_no_more_is_an_error_and_nothing_is_released() {
    let place = Place::new();
    sales(&place);
    let ask = [&ASK[..], &SUM, &["--accounts", "s.accounts"]].concat();
    assert!(place.query(&ask).status.success());
    // No file may grow or be written beyond its first KiB.
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" query \"$@\"", env!("CARGO_BIN_EXE_paygo")]);
    let output = command.args(&ask).current_dir(place.0.path()).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && String::from_utf8_lossy(&output.stderr).contains("s.accounts: "));
    let accounts = Accounts::open(&place.path("s.accounts"), None).expect("accounts");
    assert_eq!(accounts.rounds(), 1);
}

/// Killed at any moment: never half a round, never an answer without its charge. `PAYGO_CRASHES=200` for the long version.
#[test]
fn kill_9_never_leaves_an_answer_without_its_charge() {
    let crashes: u32 = std::env::var("PAYGO_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let place = Place::new();
    // More people than one block of the accounts holds, all alike.
    let mut text = "customer,amount\n".to_owned();
    for customer in 0..70_000 {
        writeln!(text, "{customer},10").expect("text");
    }
    place.write("sales.csv", &text);
    let ask = ["sales.csv", "--person", "customer", "--budget", "rho=2000", "--accounts", "s.accounts", "--json"];
    let ask = [&ask[..], &SUM].concat();
    let start = std::time::Instant::now();
    assert!(place.query(&ask).status.success());
    // The first run also makes the accounts; whichever ends by itself says how long one takes.
    let mut whole = start.elapsed();
    let (mut answers, mut killed) = (1, 0);
    for crash in 0..crashes {
        let mut child = place.command(&ask).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("runs");
        // Over the whole run, and a little beyond; the golden ratio spreads the moments.
        let share = (0.618_034 * f64::from(crash)).fract() * 1.2;
        let (begun, moment) = (std::time::Instant::now(), whole.mul_f64(share));
        while begun.elapsed() < moment {
            if child.try_wait().expect("a child").is_some() {
                whole = whole.min(begun.elapsed());
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = child.kill();
        let output = child.wait_with_output().expect("ended");
        answers += u32::from(!output.stdout.is_empty());
        killed += u32::from(!output.status.success());
        let accounts = Accounts::open(&place.path("s.accounts"), None).expect("whole accounts");
        let rounds = u32::try_from(accounts.rounds()).expect("few");
        assert!(answers <= rounds && rounds <= crash + 2, "{answers} answers, {rounds} rounds");
        for person in ["0", "1", "35000", "69999"] {
            let account = accounts.disclose(person).expect("whole").expect("an account").expose();
            assert_eq!(account.share, FULL / 100_000 * rounds + rounds, "{person}");
        }
    }
    assert!(killed > crashes / 3, "only {killed} of {crashes} runs were killed");
}
