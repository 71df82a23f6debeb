//! `paygo train` as its users run it: to the end, killed, interrupted, and with files that are wrong.

use paygo::training::checkpoint::Folder;
use paygo::training::run::Entry;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn paygo(arguments: &[&str], at: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paygo")).args(arguments).current_dir(at).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn demo() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo.toml"))
        .expect("examples/demo.toml")
}

/// A config in a fresh folder.
fn with(config: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("config.toml"), config).expect("written");
    place
}

#[test]
fn the_demo_trains_on_a_fresh_machine_and_leaves_everything_behind() {
    let place = with(&demo());
    let output = paygo(&["train", "config.toml"], place.path());
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(printed.contains("promise: (3, 1e-5)-DP for one record under add-remove neighbors"), "{printed}");
    assert!(accuracy(&printed) > 0.85, "{printed}");
    let folder = place.path().join("trained");
    let metrics = std::fs::read_to_string(folder.join("metrics.jsonl")).expect("metrics");
    let lines: Vec<serde_json::Value> = metrics.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() > 10);
    // It rises.
    let readings: Vec<f64> = lines.iter().map(|line| line["odometer"].as_f64().expect("a number")).collect();
    assert!(readings[0] < 2.0 && readings.windows(2).all(|pair| pair[0] < pair[1]), "{readings:?}");
    // A reading is not called DP (E5); how fast it goes tells how many examples there are.
    assert!(printed.contains("odometer: the privacy loss so far is at most"), "{printed}");
    assert_eq!(printed.matches("-DP").count(), 2, "the plan's and the promise: {printed}");
    assert!(!metrics.contains("epsilon") && !metrics.contains("per_second"), "{metrics}");
    assert!(lines.windows(2).all(|pair| pair[0]["noise_multiplier"].as_f64() >= pair[1]["noise_multiplier"].as_f64()));
    assert!(!metrics.contains("SECRET"), "no training loss unless asked for");
    let report = std::fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(report.matches("<svg").count() >= 4 && report.contains("FullyAdaptive"));
    assert!(report.contains("epsilon promised") && report.contains("epsilon as a fixed plan"), "both prices");
    assert!(report.contains("not a promise of differential privacy") && !report.contains("samples"));
    let model = std::fs::read(folder.join("model.safetensors")).expect("a model");
    let length = u64::from_le_bytes(model[..8].try_into().expect("eight"));
    let header: serde_json::Value =
        serde_json::from_slice(&model[8..8 + usize::try_from(length).expect("short")]).expect("JSON");
    assert_eq!(header["0.weight"]["shape"], serde_json::json!([196, 100]));
    assert_eq!(header["2.bias"]["dtype"], "F32");
    assert!(header["__metadata__"]["paygo"].as_str().expect("a note").contains("(3, 1e-5)-DP"));
    // A folder with a run in it is not written over.
    let again = paygo(&["train", "config.toml"], place.path());
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("there is a run in this folder"));
}

#[test]
fn a_folder_with_a_run_says_how_to_go_on() {
    let place = with(&demo().replace("\nepochs = 20", "\nepochs = 1"));
    let train = || paygo(&["train", "config.toml", "--out", "run"], place.path());
    assert!(train().status.success());
    let again = text(&train().stderr);
    assert!(again.contains("run: there is a run in this folder"), "{again}");
    assert!(again.contains("hint: paygo train --resume run goes on with it; --out DIR begins another"), "{again}");
}

/// From the first moment on a signal is heard: here while the config is still being waited for.
#[test]
fn whoever_interrupts_early_is_heard() {
    let place = tempfile::tempdir().expect("a folder");
    let pipe = place.path().join("config.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
    let child = command.args(["train", "config.toml"]).current_dir(place.path()).stderr(Stdio::piped()).spawn();
    let child = child.expect("runs");
    // It is opened as soon as the other side opens it.
    let pipe = std::fs::File::options().write(true).open(&pipe).expect("opened");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("ends");
    drop(pipe);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(text(&output.stderr).contains("nothing was charged"), "{output:?}");
}

/// Rounds are stored with their noise over the clip norm. An earlier version stored the noise multiplier of the config there, which is
/// half of it now where an example is replaced by another; whoever goes on is told.
#[test]
fn a_run_of_an_earlier_version_is_told_that_its_noise_doubles() {
    let config = demo().replace("clip_norm = 1.0", "clip_norm = 1.0\nneighbors = \"replace-one\"");
    let config = config.replace("epsilon = 3\n", "epsilon = 500\n").replace("\nepochs = 20", "\nepochs = 4");
    let place = with(&config.replace("{ poisson = { sampling_probability = 0.03 } }", "\"full\""));
    let run = |arguments: &[&str]| {
        let output = paygo(arguments, place.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    run(&["train", "config.toml", "--out", "run"]);
    assert!(!run(&["train", "--resume", "run"]).contains("earlier version"));
    let (mut folder, mut interrupted) = Folder::open(&place.path().join("run")).expect("a run");
    for (entry, _) in &mut interrupted.state.history {
        if let Entry::Round { noise_multiplier, .. } = entry {
            *noise_multiplier /= 2.0;
        }
    }
    folder.save(&interrupted.state).expect("saved");
    drop(folder);
    let said = run(&["train", "--resume", "run"]);
    assert!(said.contains("with replace-one neighbors") && said.contains("goes on with 2 times the noise"), "{said}");
}

#[test]
fn a_seed_repeats_everything_and_is_loud_about_it() {
    let place = with(&demo());
    let run = |out: &str, seed: &str| {
        let output = paygo(&["train", "config.toml", "--out", out, "--seed", seed, "--json"], place.path());
        assert!(text(&output.stderr).contains("NOT PRIVATE"));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(answer["promise"].as_str().expect("text").starts_with("NOT PRIVATE"));
        let model = std::fs::read(place.path().join(out).join("model.safetensors")).expect("a model");
        assert!(
            text(&std::fs::read(place.path().join(out).join("report.html")).expect("a report")).contains("NOT PRIVATE")
        );
        model
    };
    let (one, two, three) = (run("one", "7"), run("two", "7"), run("three", "8"));
    assert!(one == two && one != three);
    // Nothing is promised, so there is no number that looks like it.
    let report = std::fs::read_to_string(place.path().join("one/report.html")).expect("a report");
    assert!(!report.contains("epsilon promised") && !report.to_lowercase().contains(">odometer<"), "no tile");
    let metrics = std::fs::read_to_string(place.path().join("one/metrics.jsonl")).expect("metrics");
    assert!(!metrics.contains("odometer") && !metrics.contains("per_second"), "{metrics}");
    let output = paygo(&["train", "config.toml", "--out", "shown", "--reveal-secrets"], place.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let metrics = std::fs::read_to_string(place.path().join("shown/metrics.jsonl")).expect("metrics");
    assert!(metrics.contains("samples_per_second") && metrics.contains("SECRET_training_loss"), "{metrics}");
}

/// A long run in the background, and when it has written some metrics.
fn start(place: &Path) -> Child {
    let child = Command::new(env!("CARGO_BIN_EXE_paygo"))
        .args(["train", "config.toml", "--out", "run", "--checkpoint-every", "0"])
        .current_dir(place)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("runs");
    let begin = Instant::now();
    while steps(place) < 200 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no metrics");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Steps that the metrics have seen.
fn steps(place: &Path) -> u64 {
    let metrics = std::fs::read_to_string(place.join("run/metrics.jsonl")).unwrap_or_default();
    let last = metrics.rsplit('\n').find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    last.and_then(|line| line["steps"].as_u64()).unwrap_or(0)
}

/// Rounds that a folder has charged, as its checkpoint and journal tell.
fn charged(place: &Path) -> u64 {
    let (_folder, interrupted) = Folder::open(&place.join("run")).expect("a run");
    let rounds = |entries: &[(Entry, u64)]| {
        entries.iter().filter(|(entry, _)| matches!(entry, Entry::Round { .. })).map(|(_, count)| count).sum::<u64>()
    };
    rounds(&interrupted.state.history) + rounds(&interrupted.lost)
}

fn long() -> String {
    demo()
        .replace("epsilon = 3\n", "epsilon = 2000\n")
        .replace("epochs = 20\n[", "[")
        .replace("epochs = 20\n", "epochs = 30\n")
}

#[test]
fn after_a_kill_every_step_whose_noise_was_drawn_has_been_charged() {
    let place = with(&long());
    for round in 0..3 {
        let mut child = if round == 0 {
            start(place.path())
        } else {
            let before = steps(place.path());
            let child = Command::new(env!("CARGO_BIN_EXE_paygo"))
                .args(["train", "--resume", "run", "--checkpoint-every", "0"])
                .current_dir(place.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("runs");
            let begin = Instant::now();
            while steps(place.path()) <= before && begin.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(5));
            }
            child
        };
        child.kill().expect("killed");
        child.wait().expect("gone");
        let (drawn, charged) = (steps(place.path()), charged(place.path()));
        assert!(charged >= drawn, "{charged} charged, {drawn} drawn");
        assert!(charged <= drawn + 64 * (round + 1) + 100, "{charged} charged, {drawn} drawn");
    }
    let output = paygo(&["train", "--resume", "run"], place.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("done after 30 epochs"), "{}", text(&output.stdout));
    assert!(charged(place.path()) >= 30 * 33);
}

/// By whoever: Ctrl-C, a service manager or a batch system, a terminal that goes away.
#[test]
fn an_interrupt_ends_cleanly_and_the_run_goes_on() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let place = with(&long());
        let child = start(place.path());
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        let output = child.wait_with_output().expect("ends");
        let printed = text(&output.stdout);
        assert!(output.status.code() == Some(130) && printed.contains("interrupted after"), "{signal}: {printed}");
        assert!(printed.contains("paygo train --resume"), "{printed}");
        // Nothing was announced that was not drawn: the journal was closed by a checkpoint.
        let before = charged(place.path());
        assert_eq!(before, steps(place.path()), "{signal}");
        if signal == "-INT" {
            let output = paygo(&["train", "--resume", "run", "--json"], place.path());
            assert!(output.status.success(), "{}", text(&output.stderr));
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(answer["ending"], "done");
        }
    }
}

/// Where nobody sees a bar, a line now and then says how far it is.
#[test]
fn progress_off_a_terminal_is_lines() {
    // Noise that stays the same: with less and less the budget ends within seconds.
    let endless = long().replace("epochs = 30\n", "epochs = 100000\n");
    let noise =
        ("{ exponential = { noise_multiplier = 1.77, rate = 0.02 } }", "{ uniform = { noise_multiplier = 1.77 } }");
    let place = with(&endless.replace(noise.0, noise.1));
    let said = place.path().join("said");
    let mut child = Command::new(env!("CARGO_BIN_EXE_paygo"))
        .args(["train", "config.toml", "--out", "run"])
        .current_dir(place.path())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("runs");
    let begin = Instant::now();
    let lines = || std::fs::read_to_string(&said).expect("text");
    while !lines().lines().any(|line| line.starts_with("step ") && line.contains("rounds left")) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", lines());
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(lines().lines().count() < 5, "{}", lines());
}

/// What was seeded once is not private, also when it is resumed without a seed.
#[test]
fn a_seeded_run_stays_not_private_when_it_is_resumed() {
    let place = with(&demo().replace("epochs = 20\n", "epochs = 2\n"));
    let first = paygo(&["train", "config.toml", "--seed", "3"], place.path());
    assert!(first.status.success(), "{}", text(&first.stderr));
    let again = paygo(&["train", "--resume", "trained"], place.path());
    assert!(
        text(&again.stdout).contains("promise: NOT PRIVATE: the noise was made with --seed"),
        "{}",
        text(&again.stdout)
    );
}

/// The components are charged, stored with the checkpoint and the model, and not drawn again when a run goes on.
#[test]
fn principal_components_are_charged_once() {
    let pca = "count = 10000\nprincipal_components = { count = 20, noise_std = 8.0 }";
    let place = with(&demo().replace("count = 10000", pca).replace("public_size = 10000\nprincipal", "principal"));
    let run = |arguments: &[&str]| {
        let output = paygo(arguments, place.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let answer = run(&["train", "config.toml", "--out", "run", "--json"]);
    assert!(answer["promise"].as_str().expect("text").starts_with("(3, 1e-5)-DP"));
    assert!(answer["last"]["public_accuracy"].as_f64().expect("a number") > 0.5, "{answer}");
    let stored = || {
        let (_folder, interrupted) = Folder::open(&place.path().join("run")).expect("a run");
        let charged =
            |entry: &Entry| matches!(entry, Entry::Components { noise_multiplier } if *noise_multiplier == 8.0);
        let times: u64 =
            interrupted.state.history.iter().filter(|(entry, _)| charged(entry)).map(|(_, count)| count).sum();
        (interrupted.components.expect("components"), times)
    };
    let (components, times) = stored();
    assert_eq!((components.len(), times), (20 * 196, 1));
    let model = std::fs::read(place.path().join("run/model.safetensors")).expect("a model");
    let length = usize::from(u16::from_le_bytes([model[0], model[1]]));
    let header: serde_json::Value = serde_json::from_slice(&model[8..8 + length]).expect("JSON");
    assert_eq!(header["components"]["shape"], serde_json::json!([20, 196]));
    assert_eq!(header["0.weight"]["shape"], serde_json::json!([20, 100]));
    let again = run(&["train", "--resume", "run", "--json"]);
    assert_eq!(again["odometer"], answer["odometer"]);
    assert_eq!(stored(), (components, 1));
    let done = text(&paygo(&["train", "--resume", "run"], place.path()).stdout);
    assert!(done.contains("\nnothing was left to train\n"), "{done}");
}

/// A refusal leaves nothing behind that is in the way; a run that is resumed has all of its curves; an end must be in sight.
#[test]
fn a_run_is_easy_to_live_with() {
    let place = with(&demo().replace("epsilon = 3", "epsilon = 0.01"));
    let refused = paygo(&["train", "config.toml"], place.path());
    assert!(text(&refused.stderr).contains("does not cover a single round"), "{}", text(&refused.stderr));
    std::fs::write(place.path().join("config.toml"), demo()).expect("written");
    let output = paygo(&["train", "config.toml"], place.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = || std::fs::read_to_string(place.path().join("trained/report.html")).expect("a report");
    let before = report();
    let again = paygo(&["train", "--resume", "trained", "--json"], place.path());
    let answer: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert!(answer["last"]["public_accuracy"].as_f64().expect("a number") > 0.8, "{answer}");
    assert!(answer["epsilon"].as_f64().expect("a number") <= 3.0, "{answer}");
    assert_eq!(report().matches("<svg").count(), before.matches("<svg").count());
    let endless = demo().replace("[stop]\nepochs = 20\n", "");
    for (from, to) in [("clip_norm = 1.0", "clip_norm = 1.0\nindividual = true"), ("[privacy]", "[ignored]")] {
        let config = endless.replace(from, to);
        let config = if to == "[ignored]" { config[..config.find(to).expect("there")].to_owned() } else { config };
        let place = with(&config);
        let output = paygo(&["train", "config.toml"], place.path());
        assert!(text(&output.stderr).contains("stop.epochs or stop.steps is missing"), "{}", text(&output.stderr));
    }
    // Weights from before: the promise says that it does not cover them.
    let config = format!("start_from = \"trained/model.safetensors\"\n{}", demo());
    std::fs::write(place.path().join("config.toml"), config).expect("written");
    let output = paygo(&["train", "config.toml", "--out", "tuned"], place.path());
    assert!(text(&output.stdout).contains("must come from other data"), "{}", text(&output.stderr));
}

/// Something of the demo, what is put in its place, and what is complained about.
const WRONG: &[(&str, &str, &str)] = &[
    ("set = \"digits\"", "set = \"digitz\"", "data.set"),
    ("public_size = 10000", "", "data.public_size is missing"),
    ("count = 10000", "count = 0", "data.count = 0"),
    (
        "{ poisson = { sampling_probability = 0.03 } }",
        "{ poisson = { sampling_probability = 1.5 } }",
        "sampling_probability",
    ),
    (
        "{ poisson = { sampling_probability = 0.03 } }",
        "{ shuffled = { size = 100 } }",
        "not accounted under add-remove",
    ),
    ("{ poisson = { sampling_probability = 0.03 } }", "{ poison = 0.03 }", "unknown variant"),
    ("perceptron = {", "perceptor = {", "unknown variant"),
    ("hidden = [100]", "hidden = [100, 0]", "a layer of 0 units"),
    ("hidden = [100]", "hidden = [9000000000000000000]", "expected 1 to 2^20"),
    ("hidden = [100]", "hidden = [1000000, 1000000]", "expected at most 2^28"),
    ("public_size = 10000", "public_size = 9000000000000000000", "expected 1 to 2^30"),
    ("clip_norm = 1.0", "clip_norm = 1.0\nindividual = true", "goes with neighbors = \"zero-out\""),
    ("clip_norm = 1.0", "clip_norm = -1.0", "clip_norm"),
    ("epsilon = 3", "epsilon = 0.001", "epsilon"),
    ("delta = \"1e-5\"", "delta = 1", "delta"),
    ("rate = 0.02", "rate = -0.02", "rate"),
    ("noise_multiplier = 1.77", "noise_multiplier = 0.0", "noise_multiplier"),
    ("{ exponential = {", "{ exponentially = {", "unknown variant"),
    ("noise_multiplier = 1.77", "noise_multiplier = 0.05", "does not cover a single round"),
    ("momentum = 0.5", "momentum = 1.5", "momentum"),
    ("first = 1.0", "first = 0.0", "learning_rate"),
    (
        "clip_norm = 1.0",
        "clip_norm = 1.0\nneighbors = \"zero-out\"\nindividual = true\nfilter = \"mixture\"",
        "goes with filter gdp, zcdp or fixed-order",
    ),
    ("clip_norm = 1.0", "clip_norm = 1.0\nfilter = \"gdp\"", "filter gdp takes full batches"),
    (
        "count = 10000",
        "count = 10000\nprincipal_components = { count = 197, noise_multiplier = 10.0 }",
        "principal_components.count = 197; expected 1 to 196",
    ),
    (
        "count = 10000",
        "count = 10000\nprincipal_components = { count = 20, noise_multiplier = 0.1 }",
        "does not cover the principal components",
    ),
    ("perceptron = { hidden = [100], activation = \"tanh\" }", "logistic = {}", "logistic"),
    (
        "epochs = 20\n",
        "epochs = 20\ntarget = { accuracy = 0.9, noise_std = 0.1, period = 1 }\n",
        "not even one is covered",
    ),
    ("epochs = 20\n", "epochs = 20\ntarget = { accuracy = 2.0, noise_std = 10.0, period = 1 }\n", "accuracy"),
    ("epochs = 20\n", "epochs = 20\ntarget = { accuracy = 0.9, noise_std = -1.0, period = 1 }\n", "noise_std = -1"),
    ("epochs = 20\n", "epochs = 0\n", "stop.epochs = 0; expected at least 1"),
    (
        "epochs = 20\n",
        "epochs = 20\ntarget = { accuracy = 0.9, noise_std = 1e300, period = 1 }\n",
        "0.001 <= noise_std <= 1e6",
    ),
    (
        "perceptron = { hidden = [100], activation = \"tanh\" }",
        "layers = [{ convolution = { channels = 1, size = 3000, padding = 2999 } }]",
        "the convolution does not fit",
    ),
    ("epsilon = 3", "epsilon = \"1e400\"", "privacy.epsilon = 1e400"),
    ("public_size = 10000", "public_size = 6000", "public_size = 6000"),
    ("{ poisson = { sampling_probability = 0.03 } }", "256", "hint: batches = \"full\""),
    ("{ exponential = { noise_multiplier = 1.77, rate = 0.02 } }", "1.5", "hint: noise = { uniform"),
    ("{ poisson = { sampling_probability = 0.03 } }", "{ shuffled = { size = 100 } }", "shuffled with zero-out"),
    (
        "noise = { exponential = { noise_multiplier = 1.77, rate = 0.02 } }",
        "individual = true\nneighbors = \"zero-out\"\nnoise = { adaptive = { noise_multiplier = 2.0, step = 0.1, reserve = 5, progress = { period = 1, noise_std = 50.0, significance = 3.0 } } }",
        "privacy.noise: a budget for each example leaves none",
    ),
];

/// What is wrong with a file is said, with the place, before anything is charged.
#[test]
fn bad_files_are_refused() {
    for (from, to, expected) in WRONG {
        let config = demo();
        assert!(config.contains(from), "{from}");
        // The last: some words are in both the learning rate and the end.
        let at = config.rfind(from).expect("there");
        let place = with(&format!("{}{to}{}", &config[..at], &config[at + from.len()..]));
        let output = paygo(&["train", "config.toml"], place.path());
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to}: {complaint}");
        assert!(complaint.contains(expected), "{to}: {complaint}");
    }
}

/// A hint is about the key that is missing or wrong, and no other.
#[test]
fn hints_are_about_what_is_wrong() {
    let sampled = "batches = { poisson = { sampling_probability = 0.03 } }";
    for (from, to, expected, other) in [
        ("[optimizer]\nkind = \"sgd\"\nmomentum = 0.5", "", "hint: optimizer = { kind", "hint: batches"),
        (sampled, "", "hint: batches = ", "hint: learning_rate"),
        (
            "learning_rate = { linear = { first = 1.0, last = 0.2, epochs = 20 } }",
            "",
            "hint: learning_rate = ",
            "batches",
        ),
        ("public_size = 10000", "public_size = 1000", "error: data: public_size = 1000", "neighbors"),
        ("= 0.03", "= 3", "batches: sampling_probability = 3", "neighbors"),
    ] {
        assert!(demo().contains(from), "{from}");
        let place = with(&demo().replace(from, to));
        let said = text(&paygo(&["train", "config.toml"], place.path()).stderr);
        assert!(said.contains(expected) && !said.contains(other), "{from}: {said}");
    }
}

/// Ten full batches with noise 20 are one Gaussian release with noise 20/√10: what is said of a plan that was fixed in advance, and of no
/// other; and what the budget covers is said before it is spent.
#[test]
fn a_plan_that_was_fixed_in_advance_has_its_own_price() {
    use paygo::accounting::{convert::gaussian, params};
    let config = "batches = \"full\"\nlearning_rate = 0.1\nmodel = \"softmax\"\n[data]\nset = \"census\"\ncount = 500\npublic_size = 500\n\
                  [optimizer]\nkind = \"sgd\"\n[privacy]\nepsilon = 3\ndelta = \"1e-5\"\nclip_norm = 1.0\n\
                  noise = { uniform = { noise_multiplier = 20.0 } }\n[stop]\nsteps = 10\n";
    let run = |config: &str, more: &[&str]| {
        let place = with(config);
        let output = paygo(&[&["train", "config.toml", "--json"], more].concat(), place.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (value["fixed_in_advance"].as_f64(), text(&output.stderr))
    };
    let mu = params::Mu::new(10f64.sqrt() / 20.0).expect("a mu");
    let exact = gaussian::epsilon(mu, params::Delta::new(1e-5).expect("a delta")).get();
    let (found, said) = run(config, &[]);
    assert!(found.is_some_and(|found| (found / exact - 1.0).abs() < 1e-6), "{found:?} {exact}");
    assert!(!said.contains("note:"), "{said}");
    let target = config.to_owned() + "target = { accuracy = 1.0, noise_std = 500.0, period = 5 }\n";
    assert_eq!(run(&target, &[]).0, None, "a test might have ended it");
    assert_eq!(run(config, &["--seed", "1"]).0, None, "not private");
    // A budget of μ covers so many steps of noise σ as (μσ)²; the noise for more is larger by the root of how many more.
    let (_, said) = run(&config.replace("steps = 10", "steps = 1000"), &[]);
    let numbers: Vec<f64> = said.split([' ', ';']).filter_map(|word| word.parse().ok()).collect();
    let [covered, asked, noise] = numbers[..] else { panic!("{said}") };
    let expected = 20.0 * (asked / covered).sqrt();
    assert!(asked == 1000.0 && (0.99 * expected..1.03 * expected).contains(&noise), "{said} {expected}");
}

/// A model to start from is read once; a run that diverged is reported like any other; and a folder's name may not be text.
#[test]
fn odd_runs_end_like_others() {
    let short = demo().replace("\nepochs = 20", "\nepochs = 2");
    let place = with(&short);
    assert!(paygo(&["train", "config.toml", "--out", "first"], place.path()).status.success());
    std::fs::copy(place.path().join("first/model.safetensors"), place.path().join("old.safetensors")).expect("copied");
    std::fs::write(place.path().join("config.toml"), format!("start_from = \"old.safetensors\"\n{short}"))
        .expect("written");
    assert!(paygo(&["train", "config.toml", "--out", "second"], place.path()).status.success());
    std::fs::remove_file(place.path().join("old.safetensors")).expect("removed");
    let output = paygo(&["train", "--resume", "second"], place.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Large steps.
    let rate = "learning_rate = { linear = { first = 1.0, last = 0.2, epochs = 20 } }";
    assert!(short.contains(rate));
    std::fs::write(place.path().join("config.toml"), short.replace(rate, "learning_rate = 1e29")).expect("written");
    let output = paygo(&["train", "config.toml", "--out", "third"], place.path());
    assert!(
        output.status.success() && text(&output.stdout).contains("promise: (3, 1e-5)-DP"),
        "{}",
        text(&output.stderr)
    );
    assert!(place.path().join("third/report.html").exists());
    assert!(text(&output.stderr).contains("warning: training diverges"), "{}", text(&output.stderr));
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let odd = place.path().join(std::ffi::OsStr::from_bytes(b"a\xffb"));
        std::fs::create_dir(&odd).expect("a folder");
        std::fs::write(odd.join("config.toml"), &short).expect("written");
        let output = paygo(&["train", "config.toml"], &odd);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("is not UTF-8"), "{}", text(&output.stderr));
    }
}

/// A row that is left out would change how many there are, which neighbors have in common.
#[test]
fn rows_are_left_out_only_where_their_number_is_private() {
    let schema = "missing_text = \"?\"\nmissing = \"skip row\"\ncolumns = [{ name = \"x\", kind = \"number\", low = 0, high = 1 }, \
                  { name = \"y\", kind = \"label\", values = [\"a\", \"b\"] }]";
    let data = "csv = \"rows.csv\"\nschema = \"schema.toml\"\npublic_size = 4";
    let config = demo().replace("set = \"digits\"\ncount = 10000\n", &format!("{data}\n"));
    let config = config.replacen("public_size = 10000", "", 1).replace("epsilon = 3", "epsilon = 300");
    let config = config.replace("public_test = true", "");
    for (neighbors, is_fine) in [("add-remove", true), ("zero-out", false), ("replace-one", false)] {
        let config = config.replace("clip_norm", &format!("neighbors = \"{neighbors}\"\nclip_norm"));
        let place = with(&config);
        std::fs::write(place.path().join("schema.toml"), schema).expect("written");
        std::fs::write(place.path().join("rows.csv"), "0,a\n1,b\n?,a\n0.5,b\n0.1,a\n").expect("written");
        let output = paygo(&["train", "config.toml"], place.path());
        let complaint = text(&output.stderr);
        assert_eq!(output.status.success(), is_fine, "{neighbors}: {complaint}");
        assert!(is_fine || complaint.contains("goes with neighbors = \"add-remove\""), "{complaint}");
    }
}

const PEOPLE_SCHEMA: &str = r#"
    header = true
    columns = [
      { name = "age", kind = "number", low = 18, high = 90 },
      { name = "region", kind = "category", values = ["north", "south"] },
      { name = "income", kind = "label", values = ["low", "high"] },
    ]"#;

const PEOPLE_CONFIG: &str = r#"
    batches = "full"
    learning_rate = 2.0
    [data]
    csv = "people.csv"
    schema = "schema.toml"
    test_csv = "people.csv"
    public_size = 3000
    public_test = true
    [model]
    perceptron = { hidden = [] }
    [optimizer]
    kind = "sgd"
    momentum = 0.9
    [privacy]
    epsilon = 1
    delta = "1e-6"
    clip_norm = 1.0
    noise = { uniform = { noise_multiplier = 40.0 } }
    neighbors = "zero-out"
    individual = true
    [stop]
    steps = 100"#;

/// Made-up people: who is older is rich, and some in the south.
fn people() -> String {
    let mut csv = "age,region,income\n".to_owned();
    for person in 0..3000u32 {
        let (age, region) = (18 + person * 7 % 60, ["north", "south"][person as usize / 3 % 2]);
        let rich = age > 45 || (region == "south" && person % 5 == 0);
        csv += &format!("{age},{region},{}\n", if rich { "high" } else { "low" });
    }
    csv
}

/// The accuracy that is said.
fn accuracy(said: &str) -> f64 {
    said.split("accuracy ").nth(1).and_then(|rest| rest.split(' ').next()).expect("one").parse().expect("a number")
}

#[test]
fn a_table_with_a_declared_schema_is_trained_on() {
    let place = with(PEOPLE_CONFIG);
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).expect("written");
    write("people.csv", &people());
    write("schema.toml", PEOPLE_SCHEMA);
    let output = paygo(&["train", "config.toml"], place.path());
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(printed.contains("done after 100 epochs, 100 steps") && printed.contains("gdp filter"), "{printed}");
    the_model_predicts_without_python(place.path(), accuracy(&printed));
    // What is no longer as the schema says.
    write("people.csv", &people().replace("north", "noord"));
    write("schema.toml", &PEOPLE_SCHEMA.replace("income", "wealth"));
    let output = paygo(&["train", "config.toml", "--out", "other"], place.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("wealth"), "{}", text(&output.stderr));
}

/// The least config that docs/training.md shows is enough.
#[test]
fn the_least_config_trains() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/training.md");
    let document = std::fs::read_to_string(document).expect("docs/training.md");
    let section = document.split("## The configuration file").nth(1).expect("a section");
    let place = with(section.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a config"));
    std::fs::write(place.path().join("people.csv"), people()).expect("written");
    std::fs::write(place.path().join("schema.toml"), PEOPLE_SCHEMA).expect("written");
    let output = paygo(&["train", "config.toml"], place.path());
    assert!(text(&output.stdout).contains("stopped: the budget does not cover another round"), "{output:?}");
}

fn the_model_predicts_without_python(place: &Path, trained: f64) {
    let predict = |arguments: &[&str]| paygo(&[&["predict", "trained"], arguments].concat(), place);
    let output = predict(&["people.csv"]);
    let (predicted, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.contains("model: (1, 1e-6)-DP for one record"), "{said}");
    assert!(said.contains("on 3000 rows with labels"), "{said}");
    assert_eq!(accuracy(&said), trained, "{said}");
    let lines: Vec<&str> = predicted.lines().collect();
    assert!(lines.len() == 3001 && lines[0] == "prediction,probability", "{}", lines.len());
    // The likelier of two classes, which may be as good as certain.
    let is_prediction = |line: &&str| {
        let (class, probability) = line.split_once(',').expect("two columns");
        matches!(class, "high" | "low") && probability.parse::<f64>().is_ok_and(|p| (0.5..=1.0).contains(&p))
    };
    let wrong = lines[1..].iter().find(|line| !is_prediction(line));
    assert!(wrong.is_none(), "{wrong:?}");
    // Without labels, in another order, and as JSON.
    std::fs::write(place.join("new.csv"), "region,age\nsouth,80\nnorth,18\n").expect("written");
    let output = predict(&["new.csv", "--json"]);
    assert!(!text(&output.stderr).contains("accuracy"), "{}", text(&output.stderr));
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.iter().map(|row| row["prediction"].as_str().expect("text")).collect::<Vec<_>>(), ["high", "low"]);
    let sum: f64 = ["low", "high"].iter().map(|name| rows[0]["probabilities"][name].as_f64().expect("a number")).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    std::fs::write(place.join("new.csv"), "region,years\nsouth,80\n").expect("written");
    let output = predict(&["new.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("does not name column \"age\""), "{}", text(&output.stderr));
}

/// A rate that learns nothing and one that does, tried on parts of the examples: the choice is charged once, before training, kept with the
/// checkpoint, and not made again when the run goes on.
#[test]
fn a_learning_rate_is_selected_privately() {
    let select = "[select]\nepsilon = 1.0\nepochs = 2\ncandidates = [{ learning_rate = 1e-9 }, { learning_rate = 1.0, clip_norm = 0.5 }]\n";
    let place =
        with(&format!("{}{select}", demo().replace("epsilon = 3\n", "epsilon = 4\n").replace("epochs = 20\n[", "[")));
    let run = |arguments: &[&str]| {
        let output = paygo(arguments, place.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
        (serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON"), text(&output.stderr))
    };
    let (answer, said) = run(&["train", "config.toml", "--out", "run", "--json"]);
    // 2,500 examples of which the one gets nine in ten wrong and the other most of them right: it is never the first.
    assert!(said.contains("candidate 2 of [select] was picked"), "{said}");
    assert!(answer["promise"].as_str().expect("text").starts_with("(4, 1e-5)-DP"), "{answer}");
    assert!(answer["last"]["public_accuracy"].as_f64().expect("a number") > 0.7, "{answer}");
    let stored = || {
        let (_folder, interrupted) = Folder::open(&place.path().join("run")).expect("a run");
        let times = interrupted.state.history.iter().filter(|(entry, _)| matches!(entry, Entry::Selection { .. }));
        (times.map(|(_, count)| count).sum::<u64>(), interrupted.config)
    };
    assert_eq!(stored().0, 1);
    assert!(stored().1.contains("\"picked\":1"), "{}", stored().1);
    let (again, said) = run(&["train", "--resume", "run", "--json"]);
    assert!(!said.contains("candidate"), "{said}");
    assert_eq!(again["odometer"], answer["odometer"]);
    assert_eq!(stored().0, 1);
    // What cannot be, before anything is charged.
    for (from, to, wrong) in [
        ("epochs = 2\ncand", "epochs = 0\ncand", "select.epochs = 0"),
        ("learning_rate = 1e-9", "learning_rate = 0.0", "learning_rate"),
        ("{ learning_rate = 1e-9 }, ", "", "2 <= candidates"),
        ("clip_norm = 1.0", "clip_norm = 1.0\nneighbors = \"replace-one\"", "not accounted under replace-one"),
        ("clip_norm = 0.5", "noise = 3", "unknown field"),
    ] {
        let config = std::fs::read_to_string(place.path().join("config.toml")).expect("text");
        assert!(config.contains(from), "{from}");
        let other = with(&config.replace(from, to));
        let output = paygo(&["train", "config.toml"], other.path());
        assert_eq!(output.status.code(), Some(2), "{to}");
        assert!(text(&output.stderr).contains(wrong), "{to}: {}", text(&output.stderr));
        assert!(!other.path().join("trained").exists(), "{to}");
    }
}

/// With the smallest public size that is allowed, about every second part has more examples than its public share allows for: no error,
/// because an error would tell how many there are.
#[test]
fn a_part_of_a_selection_is_never_too_large() {
    let select =
        "[select]\nepsilon = 1.0\nepochs = 1\ncandidates = [{ learning_rate = 0.5 }, { learning_rate = 1.0 }]\n";
    let config = demo().replace("epsilon = 3\n", "epsilon = 4\n").replace("epochs = 20\n", "epochs = 1\n");
    let config = config.replace("public_size = 10000", "public_size = 6667");
    assert!(config.contains("public_size = 6667"), "{config}");
    let place = with(&format!("{config}{select}"));
    for out in ["one", "two", "three"] {
        let output = paygo(&["train", "config.toml", "--out", out], place.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// Counts and components have exact noise on integers, which has a rho and no mu: with full batches the filter is then zCDP's.
#[test]
fn counts_with_full_batches_are_charged_in_zcdp() {
    let config = "batches = \"full\"\nlearning_rate = 0.1\nmodel = \"softmax\"\n[data]\nset = \"census\"\ncount = 500\npublic_size = 500\n\
                  [optimizer]\nkind = \"sgd\"\n[privacy]\nepsilon = 3\ndelta = \"1e-5\"\nclip_norm = 1.0\n\
                  noise = { uniform = { noise_multiplier = 20.0 } }\n[stop]\nsteps = 10\n";
    let target = "target = { accuracy = 1.0, noise_std = 50.0, period = 5 }\n";
    let place = with(&format!("{config}{target}"));
    let output = paygo(&["train", "config.toml"], place.path());
    assert!(
        text(&output.stdout).contains("kept by the zcdp filter"),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let place = with(&format!("{}{target}", config.replace("clip_norm", "filter = \"gdp\"\nclip_norm")));
    let output = paygo(&["train", "config.toml"], place.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("they have no proved mu"), "{}", text(&output.stderr));
    assert!(text(&paygo(&["train", "--help"], place.path()).stdout).contains("a round is an epoch"));
}

#[test]
fn the_selftest_looks_at_the_machine() {
    let output = paygo(&["selftest"], Path::new("."));
    assert!(text(&output.stdout).contains("matrix_rows 1/1"), "{}", text(&output.stdout));
}
