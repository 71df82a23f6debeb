//! `paygo reproduce`: every printed number that is accounting, and which of them do not follow from their text.

use serde_json::Value;
use std::process::Command;

fn paygo(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_paygo")).args(arguments).output().expect("runs")
}

/// Where in the paper, and what.
fn name(row: &Value) -> String {
    let text = |field: &str| row[field].as_str().filter(|text| !text.is_empty()).expect("a text");
    format!("{}: {}", text("source"), text("what"))
}

#[test]
fn printed_numbers_are_reproduced_or_named() {
    let output = paygo(&["reproduce", "all", "--json"]);
    assert!(output.status.success());
    let studies: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let studies = studies.as_array().expect("studies");
    let commands: Vec<&str> = studies.iter().map(|study| study["command"].as_str().expect("a command")).collect();
    let papers = ["lecuyer", "asoodeh", "whitehouse", "yu", "feldman-zrnic"];
    assert_eq!(commands, papers.map(|paper| format!("paygo reproduce {paper}")));
    let rows: Vec<&Value> = studies.iter().flat_map(|study| study["rows"].as_array().expect("rows")).collect();
    // Every row has its place in the paper.
    let names: Vec<String> = rows.iter().map(|row| name(row)).collect();
    let with =
        |agrees: bool| rows.iter().zip(&names).filter(move |(row, _)| row["agrees"] == agrees).map(|(_, name)| name);
    assert_eq!(
        with(false).collect::<Vec<_>>(),
        [
            "Section 5.2: odometer after 20 epochs",        // E2: not from the text
            "Section 5.2: odometer after 6 epochs",         // E2: not from the text
            "Fig. 2: strong composition, 400 epochs",       // the split of δ is not stated
            "Section 6.2: Adult: noise 613.49, 4000 steps", // E8: labelled 1.0, is 0.5
        ]
    );
    assert!(with(true).count() >= 50, "{}", with(true).count());
    // Every sound value is a number, and no unsound form is below where it would be convicted for nothing.
    assert!(rows.iter().all(|row| row["sound"].as_f64().is_some_and(f64::is_finite)));
    let row = |what: &str| rows.iter().find(|row| name(row) == what).unwrap_or_else(|| panic!("{what}"));
    let near = |what: &str, value: f64| {
        let literal = row(what)["literal"].as_f64().expect("a number");
        assert!((literal - value).abs() < 5e-4 * value, "{what}: {literal}");
    };
    near("Fig. 2: largest gain in epsilon up to T = 1000", 0.7588);
    near("Fig. 2: more iterations at epsilon = 6", 102.0);
    near("Fig. 2: more iterations at epsilon = 8", 144.0);
    near("Fig. 2: zCDP with reshuffling, 400 epochs", 21.5506);
    near("Odometer Comparison: stitched odometer after 100 steps", 6.0825);
}

/// \[FZ\] Proposition 2.9: at the same guarantee, a person whose indicators are sparse takes part in as many more reports.
#[test]
fn sparse_streams_last_as_long_as_their_ones() {
    let output = paygo(&["reproduce", "feldman-zrnic", "--json"]);
    assert!(output.status.success());
    let studies: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = studies[0]["rows"].as_array().expect("rows");
    // Both columns of a row: the paper's rule and ours.
    let reports = |what: &str| {
        let what = format!("Prop. 2.9: {what}");
        let row = rows.iter().find(|row| name(row) == what).unwrap_or_else(|| panic!("{what}"));
        ["literal", "sound"].map(|column| row[column].as_f64().expect("a number"))
    };
    // (1, 1e-6) is 0.0243-zCDP by the exact conversion, and 2·0.0243·50² = 121.6.
    let worst_case = 121.0;
    assert_eq!(reports("reports by worst-case accounting, noise 50, budget (1, 1e-6)"), [worst_case; 2]);
    for (text, p) in [("0.5", 0.5), ("0.1", 0.1), ("0.01", 0.01)] {
        let marks = ["the first of 10000 people is", "1 % of the people are", "half of the people are"].map(|who| {
            let [literal, column] = reports(&format!("p = {text}, reports before {who} left out"));
            assert_eq!(literal, column, "{text}: {who}");
            column
        });
        let [first, hundredth, half] = marks;
        assert!(worst_case <= first && first <= hundredth && hundredth <= half, "{text}: {marks:?}");
        // The middle person's ones come at their rate; the least lucky of all is within four standard deviations of it.
        let spread = (worst_case * (1.0 - p)).sqrt() / p;
        assert!((worst_case / p..worst_case / p + spread).contains(&half), "{text}: {half}");
        assert!(first >= worst_case / p - 4.0 * spread, "{text}: {first}");
    }
    let [stated, chance] = reports("chance that a report is off by more than noise·sqrt(2·ln(1/0.05))");
    // 2·(1 − Φ(2.4477468)), and below what the proposition states.
    assert!((chance - 0.014_375_26).abs() < 1e-6 && chance <= stated, "{chance}");
}

#[test]
fn a_report_is_written_that_needs_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a/b");
    let output = paygo(&["reproduce", "whitehouse", "--out", out.to_str().expect("a path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(out.join("index.html")).expect("a report");
    assert!(html.contains("paygo reproduce whitehouse") && html.contains("Odometer Comparison"));
    assert!(html.contains("<svg") && html.contains("stitched as printed (E6)") && !html.contains("src="));
    assert!(std::fs::read_to_string(out.join("whitehouse-odometers.svg")).expect("a figure").starts_with("<svg"));
    let output = paygo(&["reproduce", "whitehouse", "--out", "/dev/null/x"]);
    assert_eq!(output.status.code(), Some(2));
}

/// One short experiment of each paper that fits: trained again, it is where the paper is. `PAYGO_DATA` names the folder of the data sets;
/// without it nothing is trained.
#[test]
fn experiments_are_trained_again() {
    let output = paygo(&["reproduce", "yu", "--data", "nowhere", "--only", "mnist:3"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("--only mnist:3; expected one of cancer, mnist"), "{error}");
    let Some(folder) = std::env::var_os("PAYGO_DATA") else {
        // Not by a macro, whose text is kept from whoever looks.
        let text = b"skipped: PAYGO_DATA is not set, so nothing is trained\n";
        std::io::Write::write_all(&mut std::io::stderr(), text).expect("standard error");
        return;
    };
    let folder = folder.to_str().expect("a path");
    // Which column, and what the paper has there, in percent.
    for (paper, part, column, expected) in
        [("yu", "cancer", 4, 92.0..100.0), ("feldman-zrnic", "adult:0.3", 5, 82.0..86.0)]
    {
        let output = paygo(&["reproduce", paper, "--data", folder, "--only", part, "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let table: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = table["rows"].as_array().expect("rows");
        assert!(!rows.is_empty());
        assert_eq!(table["command"], format!("paygo reproduce {paper} --data DIR --only {part} --trials 1 --seed 1"));
        for row in rows {
            let accuracy: f64 = row[column].as_str().and_then(|text| text.parse().ok()).expect("an accuracy");
            assert!(expected.contains(&accuracy), "{row}");
        }
    }
}
