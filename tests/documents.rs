//! What the documents say is what the program does.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every `$ paygo …` in a `console` block of README and docs prints exactly what follows it. Where noise is drawn, the numbers may
/// differ; such examples run beside the demo's table.
#[test]
fn console_examples_print_what_they_show() {
    let mut checked = 0;
    let place = tempfile::tempdir().expect("a folder");
    let demo = Command::new(env!("CARGO_BIN_EXE_paygo")).arg("demo").current_dir(place.path()).output().expect("runs");
    assert!(demo.status.success());
    std::os::unix::fs::symlink(root().join("examples"), place.path().join("examples")).expect("a link");
    for document in
        ["README.md", "docs/methods.md", "docs/filters.md", "docs/individual.md", "docs/training.md", "docs/ledger.md"]
    {
        let text = std::fs::read_to_string(root().join(document)).expect(document);
        for block in text.split("```console\n").skip(1) {
            let block = block.split("```").next().expect("an end");
            for example in block.split("$ ").skip(1) {
                let (command, expected) = example.split_once('\n').expect("a line");
                let Some(arguments) = command.strip_prefix("paygo ") else { continue };
                let (arguments, input) = arguments.split_once(" < ").unwrap_or((arguments, "/dev/null"));
                let noisy = arguments.starts_with("query ") || arguments.starts_with("train ");
                let elsewhere = noisy || arguments.contains("--ledger ");
                let output = Command::new(env!("CARGO_BIN_EXE_paygo"))
                    .args(words(arguments))
                    .current_dir(if elsewhere { place.path() } else { root() })
                    .env("PAYGO_AS", "alice")
                    .stdin(std::fs::File::open(root().join(input)).expect(input))
                    .output()
                    .expect("runs");
                let printed = String::from_utf8(output.stdout).expect("text");
                let trim = |text: &str| {
                    let text = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned();
                    if noisy { shape(&text) } else { text }
                };
                assert_eq!(trim(&printed), trim(expected), "{document}: {command}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 4, "only {checked} examples found");
}

/// A command line as a shell splits it, as far as single quotes go.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    quoted
        .flat_map(
            |(i, part)| {
                if i % 2 == 1 { vec![part.to_owned()] } else { part.split_whitespace().map(str::to_owned).collect() }
            },
        )
        .collect()
}

/// A table with its numbers and its width taken out.
fn shape(text: &str) -> String {
    let word = |word: &str| {
        let number = word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '|' | ','));
        if number { "#".to_owned() } else { word.trim_end_matches('-').to_owned() }
    };
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    words.join(" ").replace("# #", "#").replace("# #", "#")
}

/// The tables of docs/filters.md are what the example prints.
#[test]
fn the_tightness_tables_are_what_the_example_prints() {
    let binary = Path::new(env!("CARGO_BIN_EXE_paygo")).parent().expect("a folder").join("examples/tightness");
    let output = Command::new(binary).output().expect("cargo test builds the examples");
    let printed = String::from_utf8(output.stdout).expect("text");
    let document = std::fs::read_to_string(root().join("docs/filters.md")).expect("docs/filters.md");
    let shown = document.split("<!-- tightness -->").nth(1).and_then(|rest| rest.split("<!-- /tightness -->").next());
    assert_eq!(shown.expect("a marked part").trim(), printed.trim());
}

/// ARCHITECTURE names every crate, and the arrows between crates point the way it says.
#[test]
fn architecture_names_every_crate_and_its_arrows_hold() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let crates: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    let named: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### `crates/")?.strip_suffix('`').map(str::to_owned))
        .collect();
    assert_eq!(crates, named);
    let allowed = |name: &str| -> &[&str] {
        match name {
            "accounting" => &["paygo-numeric"],
            "analysis" => &["paygo-accounting", "paygo-mapped", "paygo-noise", "paygo-numeric"],
            "audit" => &["paygo-accounting", "paygo-numeric"],
            "client" => &["paygo-ledger"],
            "server" => &["paygo-accounting", "paygo-ledger"],
            "ledger" | "noise" => &["paygo-accounting", "paygo-numeric"],
            "training" => &["paygo-accounting", "paygo-matrix", "paygo-noise", "paygo-numeric"],
            "mapped" | "matrix" | "numeric" | "report" | "testkit" => &[],
            other => panic!("say in this test what {other} may depend on"),
        }
    };
    for name in crates {
        let manifest = std::fs::read_to_string(root().join("crates").join(&name).join("Cargo.toml")).expect("manifest");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        let ours = manifest["dependencies"].as_table().expect("a table").keys().filter(|key| key.starts_with("paygo-"));
        for dependency in ours {
            assert!(allowed(&name).contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

/// ARCHITECTURE says which files a new mechanism or filter touches. An existing one that nothing else is built from is found in those
/// files of the library, the ledger and the commands, and in no others.
#[test]
fn a_mechanism_and_a_filter_are_where_architecture_says() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    // Comparisons with the papers, and the reference values, are about particular mechanisms and filters by nature.
    let about_some = ["src/selftest/", "src/cli/reproduce/", "src/cli/demo/"];
    for (name, heading) in [("FixedSizeSampledGaussian", "**A mechanism**"), ("Union", "**A filter**")] {
        let recipe = text.split(heading).nth(1).and_then(|rest| rest.split("\n**").next()).expect("a recipe");
        let named: BTreeSet<&str> = recipe.split("| `").skip(1).filter_map(|line| line.split('`').next()).collect();
        for file in &named {
            assert!(root().join(file).exists(), "{heading} names {file}");
        }
        let mut holding = BTreeSet::new();
        let mut folders = vec![root().join("crates"), root().join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let shown = path.strip_prefix(root()).expect("inside").to_str().expect("text").to_owned();
                if path.is_dir() {
                    if path.file_name().is_none_or(|name| name != "tests" && name != "target") {
                        folders.push(path);
                    }
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let code = std::fs::read_to_string(&path).expect("a file");
                    let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<String>();
                    let is_word = |part: &str| part.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
                    let uses = code.match_indices(name).any(|(at, _)| {
                        is_word(&code[at + name.len()..])
                            && code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_')
                    });
                    if uses && !about_some.iter().any(|folder| shown.starts_with(folder)) {
                        holding.insert(shown);
                    }
                }
            }
        }
        let unnamed: Vec<&String> = holding.iter().filter(|file| !named.contains(file.as_str())).collect();
        assert!(unnamed.is_empty(), "{name} is also in {unnamed:?}, which ARCHITECTURE does not name");
    }
}

/// Every word of a mechanism and every kind of filter and odometer has its line for users.
#[test]
fn every_word_is_explained() {
    use paygo::accounting::{filter::FilterKind, mechanism::Single, odometer::OdometerKind};
    let methods = std::fs::read_to_string(root().join("docs/methods.md")).expect("docs/methods.md");
    for word in Single::WORDS {
        assert!(methods.contains(&format!("`{word}`")), "docs/methods.md does not explain {word}");
    }
    let filters = std::fs::read_to_string(root().join("docs/filters.md")).expect("docs/filters.md");
    let kinds = FilterKind::ALL.iter().map(|kind| kind.word()).chain(OdometerKind::ALL.iter().map(|kind| kind.word()));
    for kind in kinds {
        assert!(filters.contains(&format!("`{kind}")), "docs/filters.md does not explain {kind}");
    }
}

/// The notes that the doc comments cite exist.
#[test]
fn cited_theory_exists() {
    let theory = std::fs::read_to_string(root().join("docs/theory.md")).expect("docs/theory.md");
    let mut cited = 0;
    let mut folders = vec![root().join("crates"), root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a file");
                for citation in text.split("(T").skip(1).filter_map(|rest| rest.split_once(')')) {
                    let digits = citation
                        .0
                        .split([',', ' ', ':', '.'])
                        .next()
                        .unwrap_or("")
                        .trim_end_matches(char::is_alphabetic);
                    if let Ok(number) = digits.parse::<u32>() {
                        let heading = [format!("### T{number}. "), format!("**T{number}** ")];
                        assert!(heading.iter().any(|h| theory.contains(h)), "{}: T{number}", path.display());
                        cited += 1;
                    }
                }
            }
        }
    }
    assert!(cited > 20, "only {cited} citations found");
}

/// Every relative link in a document leads to a file.
#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/methods.md",
        "docs/filters.md",
        "docs/individual.md",
        "docs/training.md",
        "docs/ledger.md",
        "docs/operations.md",
        "docs/theory.md",
    ] {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path).expect(document);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target) {
            if target.contains("://") || target.contains(' ') || target.starts_with('#') {
                continue;
            }
            let file = target.split('#').next().expect("a part");
            assert!(path.parent().expect("a folder").join(file).exists(), "{document}: {target}");
            checked += 1;
        }
    }
    assert!(checked >= 6, "only {checked} links found");
}
