//! `paygo filter` and `paygo odometer` as Unix filters.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

fn spawn(arguments: &[&str]) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_paygo"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs")
}

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = spawn(arguments);
    // A command that complains about its arguments reads nothing.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("ends")
}

#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

fn request(id: &str, mechanism: Value) -> String {
    format!("{}\n", json!({"id": id, "mechanism": mechanism}))
}

fn gaussian(noise: f64) -> Value {
    json!({"gaussian": {"noise_multiplier": noise}})
}

#[track_caller]
fn complains(arguments: &[&str], about: &str) {
    let output = run(arguments, "");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?} {complaint}");
    assert!(complaint.contains(about) && !complaint.contains("panicked"), "{arguments:?}: {complaint}");
}

#[test]
fn every_line_is_answered_before_the_next_is_read() {
    let mut child = spawn(&["filter", "--epsilon", "1", "--delta", "1e-5"]);
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    for n in 0..3 {
        input.write_all(request(&format!("q{n}"), gaussian(20.0)).as_bytes()).expect("written");
        input.flush().expect("flushed");
        let mut line = String::new();
        output.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((answer["id"].as_str(), answer["decision"].as_str()), (Some(&*format!("q{n}")), Some("admit")));
    }
    drop(input);
    assert!(child.wait().expect("ends").success());
}

#[test]
fn a_refusal_says_why_and_how_much_would_do() {
    let many = json!({"repeat": {"count": 1000, "of": gaussian(10.0)}});
    let input = request("a", many) + &request("b", json!({"repeat": {"count": 100, "of": gaussian(10.0)}}));
    let output = run(&["filter", "--kind", "zcdp", "--rho", "0.5"], &input);
    assert_eq!(output.status.code(), Some(1));
    let answers = lines(&output);
    assert_eq!(answers[0]["decision"], "refuse");
    assert_eq!(answers[0]["largest_count"], 100);
    assert_eq!(answers[0]["requested"], json!({"rho": 5.0}));
    assert_eq!(answers[0]["spent"], json!({"rho": 0.0}));
    assert_eq!(answers[0]["remaining"], json!({"rho": 0.5}));
    assert_eq!(answers[0]["reason"], "the total would pass the budget");
    assert_eq!((&answers[1]["decision"], &answers[1]["remaining"]), (&json!("admit"), &json!({"rho": 0.0})));
}

#[test]
fn an_id_seen_before_is_answered_as_before_and_not_charged_again() {
    for (command, kind) in [("filter", "--epsilon=1"), ("odometer", "--epsilon-target=1")] {
        let first = request("q1", gaussian(20.0));
        let input = format!("{first}{}{first}{}", request("q2", gaussian(20.0)), request("q1", gaussian(2.0)));
        let output = run(&[command, kind, "--delta", "1e-5"], &input);
        let text = String::from_utf8(output.stdout.clone()).expect("text");
        let raw: Vec<&str> = text.lines().collect();
        assert_eq!(raw[0], raw[2], "the same bytes");
        assert_ne!(raw[0], raw[1]);
        // Another mechanism under a known id was never charged: running it would be unaccounted.
        let said = "this id was used before, for another mechanism; a new request needs a new id";
        assert_eq!(lines(&output)[3]["error"], said);
        assert_eq!(output.status.code(), Some(2));
        let once = run(&[command, kind, "--delta", "1e-5"], &first);
        assert_eq!(String::from_utf8(once.stdout).expect("text").trim_end(), raw[0]);
    }
}

#[test]
fn a_wrong_line_is_answered_charges_nothing_and_does_not_end_the_stream() {
    let wrong = [
        r#"{"id": "w", "mechanism": {"gauss": {}}}"#,
        r#"{"id": "w", "mechanism": {"pure": {"epsilon": -1}}}"#,
        r#"{"id": "w", "mechanism": {"pure": {"epsilon": "NaN"}}}"#,
        r#"{"id": "w", "mechanism": {"zcdp": {"rho": "inf"}}}"#,
        r#"{"id": "w", "mechanism": {"gaussian": {"noise_multiplier": 0}}}"#,
        r#"{"id": "w"}"#,
        r#"{"id": "w", "mechanism": {"gaussian": {"noise_multiplier": 1}}, "price": 0}"#,
        r#"{"id": 7, "mechanism": {"gaussian": {"noise_multiplier": 1}}}"#,
        r#"{"id": "w", "mechanism": {"repeat": {"count": 0, "of": {"gaussian": {"noise_multiplier": 1}}}}}"#,
        "not JSON",
        "[]",
        "\u{feff}{}",
        r#"{"id": "w", "mechanism": "gaussian"}"#,
        r#"{"id": "w", "count": 3, "mechanism": {"gaussian": {"noise_multiplier": 1}}}"#,
    ];
    let good = request("g", gaussian(20.0));
    let input = wrong.map(|line| format!("{line}\n\n")).concat() + &good;
    let output = run(&["filter", "--epsilon", "1", "--delta", "1e-5"], &input);
    assert_eq!(output.status.code(), Some(2));
    let answers = lines(&output);
    assert_eq!(answers.len(), wrong.len() + 1);
    for (answer, line) in answers.iter().zip(wrong) {
        assert!(answer["error"].as_str().is_some_and(|error| !error.is_empty()), "{line}: {answer}");
        assert!(answer["id"] == "w" || answer["line"].is_u64(), "{line}: {answer}");
    }
    let alone = lines(&run(&["filter", "--epsilon", "1", "--delta", "1e-5"], &good));
    assert_eq!(answers.last(), alone.first(), "nothing was charged before");

    let output = run(&["filter", "--epsilon", "1", "--delta", "1e-5"], &"x".repeat(2 << 20));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 1 is longer than"));
}

/// A reader that goes away leaves charges unanswered: that is a fault, not an end.
#[test]
fn a_closed_output_is_a_fault() {
    let mut child = spawn(&["filter", "--epsilon", "1", "--delta", "1e-5"]);
    drop(child.stdout.take());
    let mut input = child.stdin.take().expect("a pipe");
    let _ = input.write_all(request("q", gaussian(20.0)).as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the answer to line 1 could not be written"));
}

#[test]
fn every_kind_answers() {
    let pure = json!({"pure": {"epsilon": "0.1"}});
    for kind in ["clock", "mixture", "union", "fixed-order", "zcdp", "pure", "approximate"] {
        let output = run(&["filter", "--kind", kind, "--epsilon", "1", "--delta", "1e-5"], &request("q", pure.clone()));
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(lines(&output)[0]["decision"], "admit", "{kind}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("promise: (1, 1e-5)-DP for one record under add-remove neighbors"), "{said}");
    }
    let output = run(&["filter", "--kind", "gdp", "--mu", "1"], &request("q", gaussian(10.0)));
    assert_eq!(lines(&output)[0]["spent"], json!({"mu_squared": 0.01}));
    // Pure steps need no delta, and text is exact: ten tenths are one.
    let tenths: String = (0..11).map(|n| request(&n.to_string(), pure.clone())).collect();
    let output = run(&["filter", "--kind", "pure", "--epsilon", "1"], &tenths);
    let admitted = lines(&output).iter().filter(|answer| answer["decision"] == "admit").count();
    assert_eq!((admitted, output.status.code()), (10, Some(1)));

    for kind in ["ville-fixed", "ville-union", "ville-mixture", "doubling", "restart", "linear", "stitched", "mixture"]
    {
        let input = request("a", gaussian(40.0)) + &request("b", gaussian(20.0));
        let output = run(&["odometer", "--kind", kind, "--delta", "1e-5"], &input);
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let answers = lines(&output);
        let (a, b) = (answers[0]["epsilon"].as_f64(), answers[1]["epsilon"].as_f64());
        // Restart counts in steps.
        assert!(a.is_some() && (b > a || kind == "restart" && b == a), "{kind} {answers:?}");
    }
}

#[test]
fn options_shape_the_rule() {
    let steps = json!({"repeat": {"count": 14062, "of": {"poisson_sampled_gaussian":
        {"sampling_probability": 0.0042667, "noise_multiplier": 1.1}}}});
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/dp-sgd.toml");
    // The plan's price fixed in advance is 2.38171 by its privacy loss and 2.59656 by Rényi orders; with its plan a filter needs at most half a
    // percent more.
    let filter = |epsilon: &str, extra: &[&str]| {
        let arguments = [&["filter", "--epsilon", epsilon, "--delta", "1e-5"], extra].concat();
        lines(&run(&arguments, &request("q", steps.clone())))[0]["decision"].clone()
    };
    assert_eq!(filter("2.393", &["--plan", plan]), "admit");
    assert_eq!(filter("2.38", &["--plan", plan]), "refuse");
    assert_eq!(filter("2.65", &[]), "admit");
    assert_eq!(filter("2.5", &[]), "refuse");
    let mixture = |extra: &[&str]| filter("2.65", &[&["--kind", "mixture"], extra].concat());
    assert_eq!(mixture(&["--plan", plan]), "admit");
    assert_eq!(mixture(&[]), "refuse");
    assert_eq!(mixture(&["--orders", "8"]), "admit");
    assert_eq!(mixture(&["--orders", "8,9", "--weights", "0.99,0.01"]), "admit");
    assert_eq!(filter("2.65", &["--kind", "fixed-order", "--order", "8"]), "admit");
}

#[test]
fn options_shape_the_boundary() {
    let steps = json!({"repeat": {"count": 14062, "of": {"poisson_sampled_gaussian":
        {"sampling_probability": 0.0042667, "noise_multiplier": 1.1}}}});
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/dp-sgd.toml");
    let reading = |extra: &[&str]| {
        let arguments = [&["odometer", "--delta", "1e-5"], extra].concat();
        lines(&run(&arguments, &request("q", steps.clone())))[0]["epsilon"].as_f64().expect("a number")
    };
    // The plan also says who is protected and at which delta.
    let survey = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/survey.toml");
    let output = run(&["filter", "--epsilon", "1", "--plan", survey, "--slack", "1e-9"], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("for one respondent under") && output.status.success(), "{said}");
    assert!(reading(&["--plan", plan]) < reading(&[]));
    assert!(reading(&["--kind", "ville-fixed", "--order", "9"]) < 3.02);
    let own = request("q", json!({"approximate": {"epsilon": 0.1, "delta": 0.5}}));
    let output = run(&["filter", "--kind", "zcdp", "--rho", "1", "--slack", "0.5"], &own);
    assert!(String::from_utf8_lossy(&output.stderr).contains("promise: 0.5-approximate 1-zCDP"));
}

#[test]
fn options_that_are_wrong_are_named() {
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/dp-sgd.toml");
    complains(&["filter"], "give --epsilon and --delta");
    complains(&["filter", "--epsilon", "1"], "give --delta");
    complains(&["filter", "--epsilon", "0", "--delta", "0"], "no order can serve");
    complains(&["filter", "--epsilon", "1", "--delta", "1e-5", "--rho", "1"], "--rho does not go with this --kind");
    complains(&["filter", "--epsilon", "1", "--delta", "1e-5", "--order", "3"], "--order does not go with");
    complains(
        &["filter", "--kind", "mixture", "--epsilon", "1", "--delta", "1e-5", "--weights", "0.6"],
        "number of weights",
    );
    complains(
        &[
            "filter",
            "--kind",
            "mixture",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            "--orders",
            "2,4",
            "--weights",
            "0.6,0.6",
        ],
        "sum of weights = 1.2",
    );
    complains(&["filter", "--epsilon", "1", "--delta", "1e-5", "--orders", "2"], "--orders does not go with");
    complains(
        &["filter", "--kind", "mixture", "--epsilon", "1", "--delta", "1e-5", "--orders", "1"],
        "order = 1 is outside its domain",
    );
    complains(
        &["filter", "--epsilon", "1", "--delta", "1e-5", "--plan", plan, "--reserve", "1"],
        "reserve = 1 is outside",
    );
    complains(&["filter", "--epsilon", "1", "--delta", "1e-5", "--reserve", "0.1"], "--plan");
    complains(&["filter", "--epsilon", "1", "--delta", "1e-5", "--slack", "1"], "slack = 1");
    complains(&["filter", "--epsilon", "-1", "--delta", "1e-5"], "epsilon = -1 is outside its domain");
    complains(
        &["filter", "--epsilon", "1", "--delta", "1e-5", "--plan", plan, "--neighbors", "replace-one"],
        "add-remove",
    );
    complains(&["filter", "--kind", "gdp", "--mu", "1", "--slack", "0.5"], "--slack does not go with");
    complains(&["filter", "--kind", "zcdp", "--rho", "1", "--delta", "1e-5"], "give --rho or --mu");
    complains(&["filter", "--kind", "zcdp", "--rho", "1", "--weights", "uniform"], "--weights does not go with");
    complains(&["odometer", "--delta", "0"], "0 < delta < 1");
    complains(&["odometer", "--delta", "1e-5", "--kind", "linear", "--epsilon-target", "0"], "epsilon-target");
    complains(&["odometer", "--delta", "1e-5", "--step", "1"], "--step does not go with");
    let output = run(
        &["odometer", "--kind", "restart", "--order", "8", "--step", "0.01", "--delta", "1e-5"],
        &request("q", gaussian(10.0)),
    );
    assert!(lines(&output)[0]["error"].as_str().is_some_and(|e| e.contains("expected at most 0.01")));
}
