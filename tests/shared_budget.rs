//! `paygo train`, `paygo query` and `paygo filter` on one ledger: what one spends, the others cannot.

mod common;

use common::Service;
use paygo_accounting::wire::Mechanism;
use paygo_ledger::entry::{Entry, Event};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).expect("written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
        command.args(arguments).current_dir(self.0.path()).env("PAYGO_AS", "alice").env_remove("PAYGO_LEDGER");
        command
    }

    #[track_caller]
    fn run(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", both(&output));
        both(&output)
    }

    /// A command line without spaces inside of its arguments.
    #[track_caller]
    fn line(&self, code: i32, line: &str) -> String {
        self.run(code, &line.split(' ').collect::<Vec<_>>())
    }

    fn ledger(&self, arguments: &[&str]) -> Value {
        let output = self
            .command(&[&["ledger", "--ledger", "our.ledger", "--json"], arguments].concat())
            .output()
            .expect("runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", both(&output)))
    }

    /// Rounds that the ledger counts as drawn, or as perhaps drawn.
    fn rounds(&self) -> u64 {
        let output = self.command(&["ledger", "--ledger", "our.ledger", "export"]).output().expect("runs");
        let (mut prices, mut held, mut rounds) = (HashMap::new(), HashMap::new(), 0);
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let entry: Entry = serde_json::from_str(line).expect("an entry");
            match &entry.event {
                Event::Priced { mechanism, .. } => {
                    let Mechanism::Repeat { count, .. } = mechanism else { continue };
                    prices.insert(entry.seq, count.count("count").expect("a count").get());
                }
                Event::Reserved { decided, .. } if decided.refused.is_none() => {
                    held.insert(decided.id.clone(), prices[&decided.price]);
                }
                Event::Committed { id, used: None, .. } => rounds += held.remove(id).expect("held"),
                Event::Cancelled { id, kept, .. } => {
                    held.remove(id).expect("held");
                    rounds += kept.map_or(0, |kept| prices[&kept]);
                }
                Event::Opened { .. }
                | Event::DatasetCreated(_)
                | Event::BlocksAdded { .. }
                | Event::DatasetClosed { .. }
                | Event::AllowanceSet { .. }
                | Event::TokenGranted { .. }
                | Event::TokenRevoked { .. }
                | Event::Spent(_)
                | Event::Reserved { .. }
                | Event::Committed { .. } => {}
            }
        }
        rounds + held.values().sum::<u64>()
    }
}

fn both(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// The demo, with noise that stays the same.
fn config() -> String {
    let demo =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo.toml")).expect("the demo");
    demo.replace(
        "noise = { exponential = { noise_multiplier = 1.77, rate = 0.02 } }",
        "noise = { uniform = { noise_multiplier = 1.6 } }",
    )
    .replace("epochs = 20\n[", "[")
    .replace("[stop]\nepochs = 20", "[stop]\nsteps = 300")
}

fn steps(place: &Path, run: &str) -> u64 {
    let metrics = std::fs::read_to_string(place.join(run).join("metrics.jsonl")).unwrap_or_default();
    let last = metrics.rsplit('\n').find_map(|line| serde_json::from_str::<Value>(line).ok());
    last.and_then(|line| line["steps"].as_u64()).unwrap_or(0)
}

#[test]
fn runs_share_a_budget() {
    let place = Place::new();
    place.write("config.toml", &config());
    place.line(0, "ledger --ledger our.ledger create digits --epsilon 2.2 --delta 1e-5");
    let train = |code: i32, out: &str| {
        place.line(code, &format!("train config.toml --ledger our.ledger --dataset digits --out {out}"))
    };
    let first = train(0, "first");
    assert!(first.contains("done after") && first.contains("charged to: dataset digits of our.ledger"), "{first}");
    assert_eq!((place.rounds(), steps(place.0.path(), "first")), (300, 300), "what was drawn, and no more");
    assert!(!first.contains("end early"), "{first}");
    // Who else spends may have seen a checkpoint: what the ledger could end was not fixed in advance.
    let second = train(1, "second");
    for (said, run) in [(&first, "first"), (&second, "second")] {
        assert!(!said.contains("fixed in advance"), "{said}");
        let model = std::fs::read(place.0.path().join(run).join("model.safetensors")).expect("a model");
        assert!(!String::from_utf8_lossy(&model).contains("fixed_in_advance"), "{run}");
    }
    assert!(second.contains("; 300 are asked for, so it will end early"), "{second}");
    assert!(second.contains("dataset digits of our.ledger refuses another round"), "{second}");
    let drawn = steps(place.0.path(), "second");
    assert!(drawn > 20 && drawn < 300, "{drawn}");
    assert_eq!(place.rounds(), 300 + drawn);
    let shown = place.ledger(&["show", "digits"]);
    assert_eq!(shown["reservations"], Value::Array(Vec::new()), "nothing is held any more");
    let step = "{\"poisson_sampled_gaussian\": {\"sampling_probability\": 0.03, \"noise_multiplier\": 1.6}}";
    assert_eq!(place.ledger(&["what-if", "digits", step])["largest_count"], 0, "not one more fits");
    let third = train(2, "third");
    assert!(
        third.contains("dataset digits of our.ledger refuses: the budget does not cover a single round"),
        "{third}"
    );
    assert!(place.line(0, "ledger --ledger our.ledger verify").contains("sound"));
}

#[test]
fn a_run_is_charged_to_a_dataset_of_its_kind() {
    let place = Place::new();
    place.write("config.toml", &config());
    place.line(0, "ledger --ledger our.ledger create people --epsilon 2 --delta 1e-5 --privacy-unit person");
    place.line(0, "ledger --ledger our.ledger create replaced --epsilon 2 --delta 1e-5 --neighbors replace-one");
    for (dataset, wrong) in [
        ("people", "protects one person"),
        ("replaced", "about replace-one neighbors"),
        ("none", "there is no dataset none"),
    ] {
        let train = format!("train config.toml --ledger our.ledger --dataset {dataset} --out {dataset}");
        let said = place.line(2, &train);
        assert!(said.contains(wrong), "{said}");
    }
}

/// Something that is wrong with the demo, and what is complained about.
const WRONG: [(&str, &str, &str); 11] = [
    ("batches =", "start_from = \"old.safetensors\"\nbatches =", "start_from"),
    ("batches =", "start_from = \"config.toml\"\nbatches =", "not a safetensors file"),
    ("batches =", "start_from = \"other.safetensors\"\nbatches =", "0.weight is missing"),
    ("steps = 300", "steps = 300\ntarget = { accuracy = 90, noise_std = 20.0, period = 1 }", "0 <= accuracy <= 1"),
    ("steps = 300", "steps = 300\ntarget = { accuracy = 0.9, noise_std = 0, period = 1 }", "noise_std = 0"),
    ("steps = 300", "steps = 300\ntarget = { accuracy = 0.9, noise_std = 20.0, period = 0 }", "period = 0"),
    ("steps = 300", "steps = 300\ntarget = { accuracy = 0.9, noise_std = 0.4, period = 1 }", "not even one is covered"),
    ("public_test = true", "", "the validation policy needs public examples"),
    ("noise_std = 16.0", "noise_std = 0.0", "data.principal_components"),
    ("noise_std = 16.0", "noise_std = 0.2", "does not cover the principal components"),
    ("epsilon = 0.25", "epsilon = 40", "does not cover the selection"),
];

/// What is charged before the first step, components and a choice, is charged only where all that comes after it can be done.
#[test]
fn what_is_wrong_with_a_config_costs_nothing() {
    let choice =
        "[select]\nepsilon = 0.25\nepochs = 1\ncandidates = [{ learning_rate = 0.5 }, { learning_rate = 1.0 }]\n";
    let noise = "{ validation = { noise_multiplier = 1.6, rate = 0.9, threshold = 0.01, period = 2, window = 2 } }";
    let config = config().replace("{ uniform = { noise_multiplier = 1.6 } }", noise);
    let config = config.replace("count = 10000", "count = 3000").replace("public_size = 10000", "public_size = 3000");
    let config = config.replace("[model]", "principal_components = { count = 20, noise_std = 16.0 }\n[model]");
    let place = Place::new();
    place.line(0, "ledger --ledger our.ledger create digits --epsilon 100 --delta 1e-5");
    let train = |code: i32, config: &str| {
        place.write("config.toml", config);
        place.line(code, "train config.toml --ledger our.ledger --dataset digits")
    };
    // Of a model that was trained on something else.
    let header = r#"{"2.weight":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}"#;
    place.write(
        "other.safetensors",
        &format!("{}\0\0\0\0\0\0\0{header}\0\0\0\0", char::from(u8::try_from(header.len()).expect("short"))),
    );
    for (from, to, expected) in WRONG {
        let wrong = format!("{config}{choice}").replacen(from, to, 1);
        assert_ne!(wrong, format!("{config}{choice}"), "{from}");
        let said = train(2, &wrong);
        assert!(said.contains(expected) && !said.contains("trying candidate"), "{to}: {said}");
        assert!(!place.0.path().join("trained").exists(), "{to}");
    }
    assert!(place.line(0, "ledger --ledger our.ledger show digits").contains("0 admitted, 0 refused"));
    // Nothing else was wrong with it.
    assert!(train(0, &format!("{config}{choice}")).contains("candidate 2 of 2"));
}

/// Noise that falls costs more towards the end: what fits are rounds of the plan, and not of the first noise.
#[test]
fn room_is_counted_in_rounds_of_the_plan() {
    let place = Place::new();
    let demo = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo.toml")).expect("it");
    place.write("config.toml", &demo);
    let train = |dataset: &str, epsilon: &str, code: i32| {
        place.run(0, &["ledger", "--ledger", "our.ledger", "create", dataset, "--epsilon", epsilon, "--delta", "1e-5"]);
        place.run(code, &["train", "config.toml", "--ledger", "our.ledger", "--dataset", dataset, "--out", dataset])
    };
    // Less tight than the run's own budget, which was made for the plan.
    let said = train("three", "3", 1);
    let drawn = steps(place.0.path(), "three");
    let told = format!("have room for {drawn} rounds of the plan; 660 are asked for, so it will end early");
    assert!(said.contains(&told) && said.contains("refuses another round"), "{said}");
    assert!(train("four", "4", 0).contains("have room for all 660 rounds of the plan\n"));
    // Noise that depends on what comes out has no plan.
    let adaptive = demo.replace(
        "{ exponential = { noise_multiplier = 1.77, rate = 0.02 } }",
        "{ validation = { noise_multiplier = 1.77, rate = 0.9, threshold = 0.01, period = 2, window = 2 } }",
    );
    place.write("config.toml", &adaptive.replace("\nepochs = 20", "\nepochs = 2"));
    assert!(train("five", "4", 0).contains("rounds of the first noise"));
}

/// Killed, and taken up again: every round that may have been drawn is charged, and none twice but those that were held.
#[test]
fn a_killed_run_stays_charged_and_goes_on() {
    let place = Place::new();
    place.write(
        "config.toml",
        &config().replace("epsilon = 3\n", "epsilon = 500\n").replace("steps = 300", "steps = 2000"),
    );
    place.line(0, "ledger --ledger our.ledger create digits --epsilon 500 --delta 1e-5");
    let mut child = place
        .command(&[
            "train",
            "config.toml",
            "--out",
            "run",
            "--checkpoint-every",
            "0",
            "--ledger",
            "our.ledger",
            "--dataset",
            "digits",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    let begin = Instant::now();
    while steps(place.0.path(), "run") < 200 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no metrics");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    let (drawn, charged) = (steps(place.0.path(), "run"), place.rounds());
    assert!(charged >= drawn, "{charged} charged, {drawn} drawn");
    let other = place.line(2, "train --resume run --ledger other.ledger --dataset digits");
    assert!(other.contains("began with another --ledger"), "{other}");
    let output = place.line(0, "train --resume run");
    assert!(output.contains("done after") && output.contains("charged to: dataset digits of"), "{output}");
    let all = place.rounds();
    // What the killed process held and did not draw stays charged; nothing that was charged then is charged again.
    assert!(
        all >= 2000 && all <= 2000 + (charged - drawn) + 200,
        "{all} charged, {charged} when killed, {drawn} drawn"
    );
}

/// Whoever ends a run by a signal gets back what it held, and its exit code says so.
#[test]
fn a_run_that_is_told_to_end_settles() {
    let place = Place::new();
    let config = config().replace("epsilon = 3\n", "epsilon = 500\n").replace("steps = 300", "steps = 200000");
    place.write("config.toml", &config);
    place.line(0, "ledger --ledger our.ledger create digits --epsilon 500 --delta 1e-5");
    let child = place
        .command(&["train", "config.toml", "--out", "run", "--ledger", "our.ledger", "--dataset", "digits"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    let begin = Instant::now();
    while steps(place.0.path(), "run") < 200 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no metrics");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(place.ledger(&["show", "digits"])["reservations"], Value::Array(Vec::new()), "nothing is held");
    assert_eq!(place.rounds(), steps(place.0.path(), "run"), "what was drawn, and no more");
}

#[test]
fn over_a_service() {
    let place = Place::new();
    place.write("config.toml", &config());
    let service = Service::start(place.0.path().join("our.ledger").to_str().expect("text"), &[]);
    let token = service.token.clone().expect("the first start");
    let asks = |arguments: &[&str]| {
        let output = place.command(arguments).env("PAYGO_TOKEN", &token).output().expect("runs");
        assert!(output.status.success(), "{}", both(&output));
        both(&output)
    };
    asks(&["ledger", "--ledger", &service.address, "create", "digits", "--epsilon", "3", "--delta", "1e-5"]);
    let train = ["train", "config.toml", "--out", "run", "--ledger", &service.address, "--dataset", "digits"];
    assert!(asks(&train).contains("done after"));
    assert_eq!(place.rounds(), 300);
    let said =
        place.run(2, &["train", "config.toml", "--out", "again", "--ledger", &service.address, "--dataset", "digits"]);
    assert!(said.contains("set PAYGO_TOKEN"), "{said}");
}

#[test]
fn questions_share_a_budget() {
    let place = Place::new();
    let mut text = "customer,amount\n".to_owned();
    (0..500).for_each(|customer| writeln!(text, "{customer},{}", customer % 7).expect("text"));
    place.write("sales.csv", &text);
    place.line(0, "ledger --ledger our.ledger create sales --kind zcdp --rho 1 --privacy-unit customer");
    let spent = || place.ledger(&["show", "sales"])["accounts"][0]["spent"]["rho"].as_f64().expect("rho");
    let query = |code: i32, more: &str| {
        let ask = "query sales.csv --person customer --budget rho=0.4 --ledger our.ledger --dataset sales";
        place.line(code, &format!("{ask} {more}"))
    };
    // Everything that people may ever spend is charged with the first question, and then no more.
    let personal = "--accounts a.accounts --count --noise-std 10";
    assert!(query(0, personal).contains("charged to: dataset sales of our.ledger"));
    assert!((0.4..0.400_001).contains(&spent()), "{}", spent());
    query(0, personal);
    query(0, personal);
    assert!(spent() < 0.400_001, "{}", spent());
    // A question that could not be asked leaves nothing behind.
    query(2, "--accounts b.accounts --count --where nothing=1 --noise-std 10");
    place.write("sales.csv", &format!("{text}7,not a number\n"));
    let sum = "--accounts b.accounts --sum amount --clip 0..9 --noise-std 90";
    query(2, sum);
    place.write("sales.csv", &text);
    assert!(spent() < 0.400_001, "what was held is given back: {}", spent());
    // Other accounts are charged again, until there is no more.
    query(0, sum);
    assert!((0.8..0.800_001).contains(&spent()), "{}", spent());
    let refused = query(1, "--accounts c.accounts --count --noise-std 10");
    assert!(
        refused.contains("refused: dataset sales of our.ledger: dataset: the total would pass the budget"),
        "{refused}"
    );
    assert!(!place.0.path().join("c.accounts").exists());
    // In the worst case each round pays for itself: 1 / (2 · 10²).
    let worst_case = "--mode worst-case --accounts w.accounts --count --noise-std 10";
    query(0, worst_case);
    assert!((0.805..0.805_001).contains(&spent()), "{}", spent());
    query(0, worst_case);
    assert!((0.81..0.810_001).contains(&spent()), "{}", spent());
    assert!(place.line(0, "ledger --ledger our.ledger verify").contains("sound"));
}

/// A question that is told to end while rows are read has charged nothing, and leaves nothing behind.
#[test]
fn a_question_that_is_told_to_end_gives_back_what_it_held() {
    let place = Place::new();
    let mut text = "customer,amount\n".to_owned();
    (0..3_000_000).for_each(|row| writeln!(text, "{},{}", row % 1000, row % 7).expect("text"));
    place.write("sales.csv", &text);
    place.line(0, "ledger --ledger our.ledger create sales --kind zcdp --rho 10 --privacy-unit customer");
    let ask = ["query", "sales.csv", "--person", "customer", "--budget", "rho=0.4", "--accounts", "a.accounts"];
    let more = ["--noise-std", "10", "--ledger", "our.ledger", "--dataset", "sales", "--count"];
    let accounts = place.0.path().join("a.accounts");
    // It may have been read before the signal comes; then once more.
    let codes = (0..5).map(|_| {
        let child = place.command(&[&ask[..], &more].concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("runs");
        let held = || !place.ledger(&["show", "sales"])["reservations"].as_array().expect("a list").is_empty();
        while !held() && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let code = child.wait().expect("ends").code();
        if code == Some(0) {
            std::fs::remove_file(&accounts).expect("accounts");
        }
        code
    });
    assert!(codes.into_iter().any(|code| code == Some(130)));
    assert!(!accounts.exists());
    let shown = place.ledger(&["show", "sales"]);
    assert_eq!(shown["reservations"], Value::Array(Vec::new()), "nothing is held: {shown}");
}

/// One block has nothing left: what was held of the others is given back, and can be asked for again.
#[test]
fn questions_about_blocks() {
    let place = Place::new();
    place.write("sales.csv", "customer,amount\n1,2\n2,3\n");
    let ledger = ["ledger", "--ledger", "our.ledger"];
    place.line(0, "ledger --ledger our.ledger create sales --kind zcdp --rho 1 --privacy-unit customer --blocks a,b,c");
    let full = ["spend", "sales", "all of b", r#"{"zcdp": {"rho": 1}}"#, "--blocks", "b"];
    place.run(0, &[&ledger[..], &full].concat());
    let query = |code: i32, blocks: &str| {
        let ask = "query sales.csv --person customer --budget rho=0.4 --accounts a.accounts --count --noise-std 10";
        place.line(code, &format!("{ask} --ledger our.ledger --dataset sales --blocks {blocks}"))
    };
    let spent = || {
        let accounts = place.ledger(&["show", "sales"])["accounts"].clone();
        let each = accounts.as_array().expect("a list").iter().map(|account| account["spent"]["rho"].as_f64());
        each.map(|rho| (10.0 * rho.expect("a number")).round()).collect::<Vec<_>>()
    };
    assert!(query(1, "a,b,c").contains("block b: the total would pass the budget"));
    assert_eq!(spent(), [0.0, 10.0, 0.0], "nothing is held");
    assert!(query(1, "a,b").contains("block b: the total would pass the budget"), "again");
    query(0, "a,c");
    assert_eq!(spent(), [4.0, 10.0, 4.0]);
    query(0, "a,c");
    assert_eq!(spent(), [4.0, 10.0, 4.0], "charged once");
    query(1, "all");
    assert_eq!(spent(), [4.0, 10.0, 4.0], "what was charged stays");
    assert!(place.line(0, "ledger --ledger our.ledger verify").contains("sound"));
}
