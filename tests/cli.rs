//! The command as a user meets it: output, exit codes, messages.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn paygo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paygo")).args(arguments).output().expect("runs")
}

/// A command line without spaces inside of its arguments.
fn line(line: &str) -> Output {
    paygo(&line.split(' ').collect::<Vec<_>>())
}

fn with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paygo"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    child.wait_with_output().expect("ends")
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[track_caller]
fn fails(output: &Output, expected: &[&str]) {
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(output.stdout.is_empty(), "nothing on standard output");
    for part in expected {
        assert!(complaint.contains(part), "{complaint:?} does not say {part:?}");
    }
    assert!(!complaint.contains("panicked"), "{complaint}");
}

const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/dp-sgd.toml");

#[test]
fn account_answers_one_row_per_method() {
    let answer = json(&paygo(&["account", PLAN, "--json"]));
    let rows = answer["rows"].as_array().expect("rows");
    let row = |method: &str| rows.iter().find(|row| row["method"] == method).unwrap_or_else(|| panic!("no {method}"));
    let exact = row("renyi-exact");
    assert_eq!(exact["basis"], "FixedInAdvance");
    assert_eq!(exact["delta"], 1e-5);
    let (epsilon, order) = (exact["epsilon"].as_f64().expect("a number"), exact["order"].as_f64().expect("a number"));
    assert!((2.5965..2.5966).contains(&epsilon) && (8.0..8.3).contains(&order), "{epsilon} at {order}");
    assert_eq!(row("zcdp-exact")["basis"], "FullyAdaptive");
    assert_eq!(row("estimate-yu")["basis"], "Estimate");

    let text = String::from_utf8(paygo(&["account", PLAN]).stdout).expect("text");
    for part in ["under add-remove neighbors", "renyi-exact", "never a gate", "may gate a release", "never a promise"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn account_reads_json_from_standard_input_and_asks_for_delta() {
    let plan = r#"{"releases":[{"count":100,"mechanism":{"gaussian":{"noise_multiplier":20}}}]}"#;
    let answer = json(&with_input(&["account", "-", "--epsilon", "2", "--json"], plan));
    let rows = answer["rows"].as_array().expect("rows");
    let gdp = rows.iter().find(|row| row["method"] == "gdp-exact").expect("a row");
    // μ = 1/2: δ(2) from the exact profile.
    let delta = gdp["delta"].as_f64().expect("a number");
    assert!((9.3e-6..9.5e-6).contains(&delta), "{delta}");
    // Without a target the message says how to give one.
    fails(&with_input(&["account", "-"], plan), &["neither delta nor epsilon", "hint:"]);
}

#[test]
fn account_draws() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.svg");
    let output = paygo(&["account", PLAN, "--plot", path.to_str().expect("a path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = std::fs::read_to_string(&path).expect("drawn");
    for part in ["<svg", "renyi-exact", "estimate-yu (estimate)", "steps", "epsilon"] {
        assert!(svg.contains(part), "{part}");
    }
    fails(&paygo(&["account", PLAN, "--plot", "/nonexistent/x.svg"]), &["cannot write /nonexistent/x.svg"]);
}

#[test]
fn convert_answers_every_method_that_applies() {
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or_else(|| panic!("{name} in {value}"));
    // Golden rdp_to_dp: order 1.5, 0.01, δ = 1e-3.
    let answer = json(&line("convert --renyi 1.5:0.01 --delta 1e-3 --json"));
    let truths = [
        ("classic", 13.825_510_557_964_274),
        ("cks", 11.915_968_053_079_836),
        ("lemma1", 2.936_523_003_890_483),
        ("exact", 2.087_130_232_145_113_7),
    ];
    for (name, truth) in truths {
        let ours = number(&answer, name);
        assert!(ours >= truth && ours <= truth * (1.0 + 1e-9), "{name}: {ours}");
    }
    assert_eq!(answer.as_object().expect("an object").len(), 4);
    let answer = json(&line("convert --zcdp 0.1 --epsilon 2 --json"));
    assert!(number(&answer, "exact") <= number(&answer, "cks") && number(&answer, "cks") < number(&answer, "classic"));
    let answer = json(&line("convert --gdp 1 --delta 1e-5 --json"));
    assert!((number(&answer, "exact") - 4.377_178_095_6).abs() < 1e-9);
    assert_eq!(answer.as_object().expect("an object").len(), 1);
    let answer = json(&line("convert --epsilon 3 --delta 1e-5 --json"));
    assert!(
        (number(&answer["rho"], "cks") - 0.224_249_168).abs() < 1e-8
            && answer["renyi"].as_array().expect("list").len() == 6
    );
    // No ε is enough for a Gaussian at δ = 0, and JSON says so.
    let answer = json(&line("convert --gdp 1 --delta 0 --json"));
    assert_eq!(answer["exact"], "inf");
}

#[test]
fn calibrate_answers_from_the_safe_side() {
    let answer =
        json(&line("calibrate noise --epsilon 3 --delta 1e-5 --steps 1000 --sampling-probability 0.01 --json"));
    assert!(answer["epsilon"].as_f64().expect("a number") <= 3.0);
    assert!(answer["next"]["epsilon"].as_f64().expect("a number") > 3.0);
    assert!(answer["noise_multiplier"].as_f64() > answer["next"]["noise_multiplier"].as_f64());
    assert_eq!(answer["delta"], 1e-5);
    let answer200 = json(&line("calibrate noise --rho 0.5 --steps 1e2 --json"));
    assert_eq!(answer200["noise_multiplier"], 10.0);
    let answer = json(&line("calibrate steps --rho 1 --noise-multiplier 10 --json"));
    assert_eq!(answer["steps"], 200, "200/(2·10²) is 1, exactly");
    let answer = json(&line("calibrate epochs --epsilon 3 --delta 1e-5 --noise-multiplier 6 --batches 100 --json"));
    assert_eq!(answer["epochs"], 157);
    let answer = json(&line(
        "calibrate epochs --epsilon 3 --delta 1e-5 --noise-multiplier 1 --sampling-probability 0.003 --json",
    ));
    assert_eq!(answer["steps_per_epoch"], 334);
    fails(
        &line("calibrate noise --epsilon 0 --delta 0 --steps 5"),
        &["no noise_multiplier between 0.001 and 10000000 is shown to meet the target"],
    );
}

/// Steps that are all alike are a plan without a file.
#[test]
fn a_plan_may_be_one_line() {
    let steps = "account --steps 14062 --sampling-probability 0.0042667 --noise-multiplier 1.1 --delta 1e-5 --json";
    assert_eq!(json(&line(steps)), json(&paygo(&["account", PLAN, "--json"])));
    let one = json(&line("account --noise-multiplier 10 --delta 1e-6 --json"));
    let written = r#"{"releases": [{"mechanism": {"gaussian": {"noise_multiplier": 10}}}]}"#;
    assert_eq!(one, json(&with_input(&["account", "-", "--delta", "1e-6", "--json"], written)));
    fails(&line("account --steps 10 --delta 1e-5"), &["--noise-multiplier"]);
    fails(&line("account --delta 1e-5"), &["required"]);
    fails(&line("account examples/dp-sgd.toml --noise-multiplier 1"), &["cannot be used with"]);
}

#[test]
fn a_typo_in_a_plan_is_pointed_at_and_the_word_that_was_meant_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plan.toml");
    let plan = "delta = 1e-5\n\n[[releases]]\nmechanism = { gausian = { noise_multiplier = 4 } }\n";
    std::fs::write(&path, plan).expect("written");
    let path = path.to_str().expect("a path");
    fails(&paygo(&["account", path]), &["line 4", "gausian", "did you mean `gaussian`?"]);
    let answer = with_input(&["filter", "--epsilon", "1", "--delta", "1e-6"], r#"{"mechanism": {"zdcp": {"rho": 1}}}"#);
    let said = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(said.contains("did you mean `zcdp`?"), "{said}");
    // A fraction wherever a probability is read.
    let noise = "calibrate noise --epsilon 3 --delta 1e-5 --steps 100 --json --sampling-probability";
    let plan = |q: &str| json(&line(&format!("{noise} {q}")));
    assert_eq!(plan("1/4"), plan("0.25"));
}

const TARGET: [&str; 4] = ["--epsilon", "3", "--delta", "1e-5"];

/// `calibrate plan` with a plan of one release.
fn calibrate(neighbors: &str, count: &str, mechanism: &str) -> Output {
    let plan = format!("neighbors = \"{neighbors}\"\n[[releases]]\ncount = {count}\nmechanism = {mechanism}\n");
    with_input(&[&["calibrate", "plan", "-", "--json"], &TARGET[..]].concat(), &plan)
}

/// Whatever is unknown in a plan is found, seen to meet the target, and the next value seen not to.
#[test]
fn a_plan_with_one_unknown_is_calibrated() {
    for (neighbors, count, mechanism) in [
        (
            "replace-one",
            "100",
            r#"{ fixed_size_sampled_gaussian = { batch_fraction = 0.01, noise_multiplier = "?" } }"#,
        ),
        ("replace-one", "100", r#"{ fixed_size_sampled_gaussian = { batch_fraction = "?", noise_multiplier = 4 } }"#),
        ("add-remove", "10", r#"{ balls_and_bins_epoch = { batches = 100, noise_multiplier = "?" } }"#),
        ("zero-out", "33", r#"{ partitioned_epoch = { noise_multipliers = ["?", "?"], assignment = "reshuffled" } }"#),
        ("add-remove", "20", r#"{ laplace = { scale = "?" } }"#),
        ("add-remove", "20", r#"{ pure = { epsilon = "?" } }"#),
        ("add-remove", "\"?\"", "{ gaussian = { noise_multiplier = 20 } }"),
    ] {
        let found = json(&calibrate(neighbors, count, mechanism));
        assert!(found["epsilon"].as_f64().expect("ε") <= 3.0, "{mechanism}: {found}");
        assert!(found["next"]["epsilon"].as_f64().expect("ε") > 3.0, "{mechanism}: {found}");
        assert_eq!(found["neighbors"], neighbors, "{mechanism}");
        // Put into the plan, the number costs what was said.
        let text = found["value"].to_string();
        let (count, mechanism) = (count.replace("\"?\"", &text), mechanism.replace("\"?\"", &text));
        let plan = format!(
            "neighbors = \"{neighbors}\"\ndelta = 1e-5\n[[releases]]\ncount = {count}\nmechanism = {mechanism}\n"
        );
        let rows = json(&with_input(&["account", "-", "--json"], &plan));
        assert!(rows.to_string().contains(&found["epsilon"].to_string()), "{mechanism}: {found} {rows}");
    }
    // As many shuffled epochs of noise 8 as Gaussian noise of it: 33, not 28.
    let shuffled = r#"{ partitioned_epoch = { noise_multipliers = [8, 8], assignment = "reshuffled" } }"#;
    let epochs = json(&calibrate("zero-out", "\"?\"", shuffled));
    assert_eq!(epochs["value"], 33, "{epochs}");
}

#[test]
fn an_unknown_that_cannot_be_sought_is_refused() {
    for (count, mechanism, expected) in [
        ("1", "{ gaussian = { noise_multiplier = 3 } }", &["has one unknown", "given none"][..]),
        ("\"?\"", r#"{ gaussian = { noise_multiplier = "?" } }"#, &["count and noise_multiplier"]),
        ("1", r#"{ balls_and_bins_epoch = { batches = "?", noise_multiplier = 4 } }"#, &["batches cannot be sought"]),
        // What is infinite is not passed over.
        ("1", r#"{ laplace = { scale = "?", l1_sensitivity = inf } }"#, &["infinite or NaN"]),
    ] {
        fails(&calibrate("add-remove", count, mechanism), expected);
    }
    // Nor what is there twice, or no part of a release. A step with a delta of its own has no rho.
    let twice = r#"{"releases":[{"mechanism":{"gaussian":{"noise_multiplier":0.1}}}],"releases":[{"mechanism":{"gaussian":{"noise_multiplier":"?"}}}]}"#;
    let aside = r#"{"epsilon":"?","releases":[{"mechanism":{"gaussian":{"noise_multiplier":5}}}]}"#;
    let own = r#"{"releases":[{"count":"?","mechanism":{"approximate":{"epsilon":0.01,"delta":0.5}}}]}"#;
    for (plan, target, expected) in
        [(twice, &TARGET[..], "duplicate field"), (aside, &TARGET, "given none"), (own, &["--rho", "0.1"], "no rho")]
    {
        fails(&with_input(&[&["calibrate", "plan", "-"], target].concat(), plan), &[expected]);
    }
}

#[test]
fn schedule_answers() {
    let answer = json(&line("schedule exponential --initial 10 --rate 0.01 --rho 0.78125 --json"));
    assert_eq!(answer["epochs"], 71);
    assert_eq!(answer["noise_multipliers"].as_array().expect("a list").len(), 71);
    let answer = json(&line("schedule uniform --initial 10 --rho 0.5 --json"));
    assert_eq!(answer["epochs"], 100);
    // A step's rate is read towards less noise: at exactly 0.59 five epochs pass this budget by a hair.
    let budget = "0.519693740719505914427145398803986608982086181640625";
    let answer = json(&line(&format!("schedule step --initial 10 --rate 0.59 --period 1 --rho {budget} --json")));
    assert_eq!(answer["epochs"], 4);
    let answer = json(&line("schedule polynomial --initial 10 --end 2 --period 100 --epochs 40 --rho 0.78125 --json"));
    assert_eq!(answer["rate"], 3.5277);
    // Not even one epoch: refused, for people and for programs.
    for json in [&[][..], &["--json"]] {
        let none = paygo(&[&["schedule", "uniform", "--initial", "1", "--rho", "0.1"], json].concat());
        assert_eq!(none.status.code(), Some(1), "{none:?}");
    }
    fails(&line("schedule step --initial 10 --rate 0.5 --rho 1"), &["--period"]);
    fails(&line("schedule step --initial 10 --rate 1.5 --period 3 --rho 1"), &["rate = 1.5", "0 < rate <= 1"]);
    fails(&line("schedule uniform --initial 8 --rho inf"), &["rho = inf"]);
}

#[test]
fn selftest_counts_and_convicts() {
    let output = paygo(&["selftest"]);
    let text = String::from_utf8(output.stdout).expect("text");
    for family in ["rdp_to_dp 119/119", "filters 36/36", "odometers 9/9", "individual_clipping 4/4"] {
        assert!(text.contains(&format!("{family}, worst relative error ")), "{text}");
    }
    let last = text.lines().last().expect("a line");
    assert!(last.ends_with(" passed, 0 failed, 0 skipped"), "{last}");
    assert!(output.status.success());

    // A folder with one known family passes; the same with one digit changed is convicted.
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden/limited_order.json");
    let text = std::fs::read_to_string(source).expect("golden");
    let path = folder.path().join("limited_order.json");
    let run = || paygo(&["selftest", "--golden", folder.path().to_str().expect("a path")]);
    std::fs::write(&path, &text).expect("written");
    assert!(run().status.success());
    let tampered = text.replacen("\"eps\": \"2.373", "\"eps\": \"2.374", 1);
    assert_ne!(tampered, text);
    std::fs::write(&path, tampered).expect("written");
    let output = run();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("6 passed, 1 failed, 0 skipped"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is below the truth"));
    std::fs::write(&path, "{}").expect("written");
    fails(&run(), &["is not a file of golden vectors"]);
    fails(&paygo(&["selftest", "--golden", "/nonexistent"]), &["golden folder /nonexistent"]);
}

const BAD_PLANS: &[(&str, &[&str])] = &[
    ("releases = 3", &["releases"]),
    ("releases = []", &["releases is empty"]),
    ("privacy_unit = \" \"\n[[releases]]\nmechanism = { pure = { epsilon = 1 } }", &["privacy_unit"]),
    (
        "[[releases]]\nmechanism = { pure = { epsilon = 1 } }\n[[releases]]\nmechanism = { pure = { epsilon = -1 } }",
        &["releases[1]: epsilon = -1"],
    ),
    ("not toml at all ][", &["plan on standard input"]),
    ("{\"releases\": [", &["EOF"]),
    (
        "[[releases]]\nmechanism = { gaussian = { noise_multiplier = nan } }",
        &["noise_multiplier = NaN", "0 < noise_multiplier < inf"],
    ),
    ("[[releases]]\nmechanism = { gaussian = { noise_multiplier = -inf } }", &["noise_multiplier = -inf"]),
    ("[[releases]]\ncount = 9007199254740993\nmechanism = { pure = { epsilon = 1 } }", &["count = 9007199254740993"]),
    ("[[releases]]\ncount = -1\nmechanism = { pure = { epsilon = 1 } }", &["count = -1"]),
    ("surprise = 1\n[[releases]]\nmechanism = { pure = { epsilon = 1 } }", &["unknown field `surprise`"]),
    (
        "neighbors = \"replace-one\"\n[[releases]]\nmechanism = { poisson_sampled_gaussian = { sampling_probability = 0.1, noise_multiplier = 1 } }",
        &["add-remove or zero-out"],
    ),
];

const BAD_ARGUMENTS: &[(&str, &[&str])] = &[
    ("account /nonexistent.toml", &["/nonexistent.toml"]),
    ("account examples/dp-sgd.toml --plot x.png", &[".svg"]),
    ("convert --renyi 1:0.5 --delta 1e-5", &["order = 1", "1 < order"]),
    ("convert --renyi 8 --delta 1e-5", &["ORDER:VALUE"]),
    ("convert --renyi 8:-1 --delta 1e-5", &["divergence = -1"]),
    ("convert --renyi 8:nan --delta 1e-5", &["ORDER:VALUE"]),
    ("convert --zcdp 0.1 --delta 1", &["delta = 1", "0 <= delta < 1"]),
    ("convert --zcdp -0.1 --delta 1e-5", &["rho = -0.1"]),
    ("convert --zcdp x --delta 1e-5", &["a decimal number"]),
    ("convert --gdp 1", &["--delta", "--epsilon"]),
    ("convert", &["hint:"]),
    ("convert --rho 0.1 --gdp 1 --delta 1e-5", &["'--zcdp <RHO>'"]),
    ("calibrate noise --epsilon 1 --delta 1e-5 --steps 0", &["an integer from 1 to 2^53"]),
    ("calibrate steps --epsilon 1 --delta 1e-5 --noise-multiplier -2", &["noise_multiplier = -2"]),
    ("calibrate noise --epsilon 1 --delta 1e-5 --steps 10 --sampling-probability 2", &["sampling_probability = 2"]),
    ("calibrate noise --steps 10", &["--epsilon and --delta, or --rho"]),
    ("calibrate noise --rho 1 --steps 10 --sampling-probability 0.1", &["zCDP is not amplified"]),
    ("calibrate steps --epsilon 0.1 --delta 1e-5 --noise-multiplier 1", &["not even one step"]),
    ("calibrate steps --epsilon 0.0001 --delta 1e-5 --noise-multiplier 1", &["the target is 0.0001\n"]),
    ("calibrate epochs --rho 1 --noise-multiplier 1", &["--sampling-probability, or --batches"]),
    ("schedule uniform --initial 8 --epochs 5 --rho 1", &["no rate to find"]),
    ("schedule uniform --initial 8", &["--rho, or --epsilon and --delta"]),
    ("frobnicate", &["unrecognized subcommand"]),
];

#[test]
fn bad_input_is_a_message_and_exit_2() {
    let plan = |text: &str| with_input(&["account", "-", "--delta", "1e-5"], text);
    for (text, expected) in BAD_PLANS {
        fails(&plan(text), expected);
    }
    let nested = format!("{}{}{}", "{\"releases\":[{\"mechanism\":", "{\"all_of\":[".repeat(100_000), "]}");
    fails(&plan(&nested), &["recursion limit"]);
    for (arguments, expected) in BAD_ARGUMENTS {
        fails(&line(arguments), expected);
    }
}

/// What a help text says under a heading, on a terminal that is wide enough for everything.
fn part_of_help(command: &[&str], heading: &str) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_paygo")).args(command).arg("--help").env("COLUMNS", "100").output();
    let help = String::from_utf8(help.expect("runs").stdout).expect("text");
    let after = help.lines().skip_while(|line| *line != heading).skip(1);
    after.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Examples are to be copied from a terminal of 80 columns, so no line of them may be wrapped there.
#[test]
fn examples_in_help_texts_fit_into_80_columns() {
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    let mut examples = 0;
    while let Some(command) = commands.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        for line in part_of_help(&words, "Examples:") {
            assert!(line.chars().count() <= 78, "{words:?}: {line}");
            examples += 1;
        }
        // A name stands two columns from the left, what is wrapped further on.
        let names = part_of_help(&words, "Commands:").into_iter().filter(|line| !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
        commands.extend(names.filter(|name| name != "help").map(|name| [&command[..], &[name]].concat()));
    }
    assert!(examples > 30, "{examples} lines found");
}

#[test]
fn options_of_every_command_stand_apart_in_help_texts() {
    for (command, heading) in
        [("ledger spend", "Options of every ledger command:"), ("train", "Options of a shared ledger:")]
    {
        let words: Vec<&str> = command.split(' ').collect();
        let own = part_of_help(&words, "Options:").join(" ");
        let apart = paygo(&[&words[..], &["-h"]].concat());
        let apart = String::from_utf8(apart.stdout).expect("text");
        let apart = apart.split_once(heading).unwrap_or_else(|| panic!("{command}: {apart}")).1;
        for option in ["--as ", "--ca ", "--token-file "] {
            assert!(apart.contains(option) && !own.contains(option), "{command}: {option}");
        }
    }
}

/// Sums of rho are compared with a target as the zcdp filter compares them: as they are written.
#[test]
fn calibration_for_rho_finds_what_fits_exactly() {
    let plan =
        |count: &str, rho: &str| format!("[[releases]]\ncount = {count}\nmechanism = {{ zcdp = {{ rho = {rho} }} }}\n");
    let find = |text: &str, rho: &str| json(&with_input(&["calibrate", "plan", "-", "--rho", rho, "--json"], text));
    let found = find(&plan("\"?\"", "0.1"), "0.3");
    assert_eq!((&found["value"], &found["rho"]), (&Value::from(3), &Value::from(0.3)), "{found}");
    assert_eq!(find(&plan("3", "\"?\""), "0.3")["value"], 0.1);
    assert_eq!(find(&plan("\"?\"", "0.1"), "0.299999999999999999")["value"], 2, "a hair less, in the last place");
    assert_eq!(find(&plan("\"?\"", "\"0.100000000000000001\""), "0.3")["value"], 2, "a hair more");
    let steps = json(&paygo(&["calibrate", "steps", "--rho", "0.1", "--noise-multiplier", "10", "--json"]));
    assert_eq!((&steps["steps"], &steps["rho"]), (&Value::from(20), &Value::from(0.1)), "20/(2·10²)");
    // The filter admits as many.
    let request = "{\"mechanism\": {\"gaussian\": {\"noise_multiplier\": 10}}}\n".repeat(21);
    let answers = with_input(&["filter", "--kind", "zcdp", "--rho", "0.1"], &request);
    assert_eq!(String::from_utf8_lossy(&answers.stdout).matches("\"admit\"").count(), 20);
}

#[test]
fn numbers_in_messages_are_short_and_say_what_is_expected() {
    let budget = |more: &[&str]| with_input(&[&["filter", "--delta", "1e-300"], more].concat(), "");
    fails(&budget(&["--kind", "gdp", "--epsilon", "1e-300"]), &["epsilon = 1e-300 at delta = 1e-300"]);
    fails(&budget(&["--epsilon", "1/3"]), &["epsilon = 1/3", "a decimal number such as 0.5 or 1e-5, not a fraction"]);
    let plan = |noise: &str| {
        let plan = format!("[[releases]]\nmechanism = {{ gaussian = {{ noise_multiplier = {noise} }} }}\n");
        with_input(&["account", "-", "--delta", "1/100000", "--json"], &plan)
    };
    fails(&plan("-1e-300"), &["noise_multiplier = -1e-300 is outside"]);
    fails(&plan("\"0/5\""), &["noise_multiplier = 0 is outside"]);
    let delta = "delta = 2\n[[releases]]\nmechanism = { pure = { epsilon = 1 } }\n";
    fails(&with_input(&["account", "-"], delta), &["delta = 2 is outside its domain; expected 0 <= delta < 1"]);
    assert_eq!(json(&plan("4"))["best"]["delta"], 1e-5, "a fraction is read, and echoed");
    let steps = ["calibrate", "steps", "--epsilon", "1e-300", "--delta", "1e-300", "--noise-multiplier", "1"];
    fails(&paygo(&steps), &["not even one step", "the target is 1e-300\n"]);
}

#[test]
fn demo_tells_the_story() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, table, plan, ledger] =
        ["demo.html", "demo.csv", "demo.toml", "demo.ledger"].map(|name| folder.path().join(name));
    let file = |path: &Path| path.to_str().expect("a path").to_owned();
    let files = [("--out", &path), ("--table", &table), ("--plan", &plan), ("--ledger", &ledger)];
    let files: Vec<String> = files.iter().flat_map(|(word, path)| [(*word).to_owned(), file(path)]).collect();
    let arguments: Vec<&str> = std::iter::once("demo").chain(files.iter().map(String::as_str)).collect();
    let output = paygo(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    for part in ["renyi-exact", "noise_multiplier 1.01", "| North", "answered ", "the odometer reads ", "report: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The analyst uses the budget, gets far beyond a plan for the worst case, and never passes it.
    let number = |before: &str, after: &str| -> f64 {
        let rest = text.split_once(before).unwrap_or_else(|| panic!("{before}")).1;
        rest.split(after).next().expect("a number").parse().unwrap_or_else(|_| panic!("{rest}"))
    };
    let (answered, worst) = (number("answered ", " "), number("ends after ", " "));
    let spent = number("spent epsilon ", " ");
    assert!(answered > 2.0 * worst && worst > 5.0 && (0.9..=1.0).contains(&spent), "{text}");
    // With a budget for each customer the shop reports all of its sixty days, in the worst case nineteen.
    assert_eq!((number("accounting reports ", " "), number("for each customer there are ", " ")), (19.0, 60.0));
    assert!(std::fs::read_to_string(table).expect("a table").starts_with("customer,region,income,day,amount\n1,"));
    // The command that the first step shows works where the demo was run.
    assert!(
        text.contains(&format!("$ paygo account {}", file(&plan)))
            && paygo(&["account", &file(&plan)]).status.success()
    );
    let html = std::fs::read_to_string(path).expect("a report");
    assert!(html.matches("<svg").count() == 4 && html.contains("refused, at no cost") && !html.contains("src="));
}
