//! What the documents say is what the program does.
//!
//! By hand and not by `trycmd`: the blocks of a page build on each other in one folder, and where noise is drawn numbers may differ.

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
    for (document, text) in documents() {
        if document != "README.md" && !document.starts_with("docs/") {
            continue;
        }
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
        let named: BTreeSet<&str> =
            recipe.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        for file in &named {
            assert!(root().join(file).exists(), "{heading} names {file}");
        }
        let sources = ["crates", "src"].into_iter().flat_map(|folder| files_below(&root().join(folder), "rs"));
        let uses = |path: &String| {
            let code = std::fs::read_to_string(root().join(path)).expect("a file");
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|word| word == name)
        };
        let elsewhere =
            |path: &String| path.contains("/tests/") || about_some.iter().any(|some| path.starts_with(some));
        let holding: Vec<String> = sources.filter(|path| !elsewhere(path) && uses(path)).collect();
        let unnamed: Vec<&String> = holding.iter().filter(|file| !named.contains(file.as_str())).collect();
        assert!(unnamed.is_empty(), "{name} is also in {unnamed:?}, which ARCHITECTURE does not name");
    }
}

/// Every word of a mechanism and every kind of filter and odometer has its line for users, and every mechanism its golden vectors.
#[test]
fn every_word_is_explained() {
    use paygo::accounting::{filter::FilterKind, mechanism::Single, odometer::OdometerKind};
    let methods = std::fs::read_to_string(root().join("docs/methods.md")).expect("docs/methods.md");
    let golden = std::fs::read_to_string(root().join("testdata/golden/mechanisms.json")).expect("golden vectors");
    for word in Single::WORDS {
        assert!(golden.contains(&format!("\"kind\": \"{word}\"")), "mechanisms.json has no case of {word}");
        assert!(methods.contains(&format!("`{word}`")), "docs/methods.md does not explain {word}");
    }
    let filters = std::fs::read_to_string(root().join("docs/filters.md")).expect("docs/filters.md");
    let kinds = FilterKind::ALL.iter().map(|kind| kind.word()).chain(OdometerKind::ALL.iter().map(|kind| kind.word()));
    for kind in kinds {
        assert!(filters.contains(&format!("`{kind}")), "docs/filters.md does not explain {kind}");
    }
}

/// All documents, with their paths from the root.
fn documents() -> Vec<(String, String)> {
    let read = |path: String| (path.clone(), std::fs::read_to_string(root().join(path)).expect("text"));
    files_below(root(), "md").into_iter().map(read).collect()
}

/// Files with this extension, as paths from the root; but not in hidden folders, nor what was built.
fn files_below(folder: &Path, extension: &str) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(root()).expect("below the root").to_str().expect("text").to_owned());
            }
        }
    }
    found
}

/// A document without its code blocks, in which brackets are no links.
fn prose(text: &str) -> String {
    text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// Places that a link can lead to: `<a id="…">`, and headings as GitHub names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let explicit = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id.to_owned());
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#')).map(|line| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    });
    explicit.chain(headings.collect::<Vec<_>>()).collect()
}

/// The labels of docs/theory that a text cites: `T16`, `T16c`, `E4`, `C3`, `Part 2.3`, `Part 8.9`, as the anchors they should have.
fn cited_labels(text: &str) -> Vec<String> {
    let mut cited = Vec::new();
    let begins_word = |at: usize| !text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
    let ends_word = |rest: &str| !rest.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
    for (at, letter) in text.match_indices(['T', 'E', 'C']).filter(|(at, _)| begins_word(*at)) {
        let rest = &text[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let part = usize::from(letter == "T" && rest[digits..].starts_with(['a', 'b', 'c']));
        // `C` followed by a digit is a lemma only where it is cited in parentheses.
        let lemma = letter != "C" || (text[..at].ends_with('(') && rest[digits..].starts_with([')', ',']));
        if (1..=2).contains(&digits) && lemma && !rest.starts_with('0') && ends_word(&rest[digits + part..]) {
            cited.push(format!("{}{}", letter.to_lowercase(), &rest[..digits + part]));
        }
    }
    for (at, _) in text.match_indices("Part ") {
        let rest = &text[at + 5..];
        let number: &str =
            &rest[..rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len()];
        let number = number.trim_end_matches('.');
        if !number.is_empty() {
            cited.push(format!("p{}", number.replace('.', "-")));
        }
    }
    cited
}

/// Whatever is cited by its label, in the code and in the documents, has its place in docs/theory, once; and every label is in the
/// index.
#[test]
fn cited_theory_exists() {
    let documents = documents();
    let theory: Vec<&(String, String)> =
        documents.iter().filter(|(path, _)| path.starts_with("docs/theory/")).collect();
    assert!(theory.len() >= 12, "only {} chapters", theory.len());
    let mut places = BTreeSet::new();
    for (path, text) in &theory {
        for id in text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id) {
            assert!(places.insert(id.to_owned()), "{path}: {id} is there twice");
        }
    }
    let index = &theory.iter().find(|(path, _)| path == "docs/theory/README.md").expect("an index").1;
    for place in &places {
        let labelled = place.starts_with(['t', 'e', 'c']) || place.starts_with("p2") || place.starts_with("p8");
        assert!(!labelled || index.contains(&format!("#{place})")), "{place} is not in the index");
    }
    let sources = ["crates", "src"].into_iter().flat_map(|folder| files_below(&root().join(folder), "rs"));
    let sources = sources.map(|path| (path.clone(), std::fs::read_to_string(root().join(&path)).expect("a file")));
    let comments = |text: &str| -> String {
        text.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| format!("{comment}\n")).collect()
    };
    let strings = |text: &str| text.split('"').skip(1).step_by(2).filter(|s| s.contains("(E")).collect::<String>();
    let sources = sources.map(|(path, text)| (path, format!("{}{}", comments(&text), strings(&text))));
    let documents = documents.iter().filter(|(path, _)| path.starts_with("docs/") || path == "README.md").cloned();
    let mut cited = 0;
    for (path, text) in sources.chain(documents) {
        for label in cited_labels(&text) {
            assert!(places.contains(&label), "{path} cites {label}, which docs/theory does not have");
            cited += 1;
        }
    }
    assert!(cited > 200, "only {cited} citations found");
}

/// A test that docs/theory names exists; every erratum names one.
#[test]
fn cited_tests_exist() {
    let mut named = 0;
    for (path, text) in documents().iter().filter(|(path, _)| path.starts_with("docs/theory/")) {
        for (file, test) in text.split('`').filter_map(|code| code.split_once(".rs::")) {
            let source = std::fs::read_to_string(root().join(format!("{file}.rs")));
            let source = source.unwrap_or_else(|_| panic!("{path} names {file}.rs, which is not there"));
            assert!(source.contains(&format!("fn {test}(")), "{path} names {file}.rs::{test}, which is not there");
            named += 1;
        }
        if path.ends_with("errata.md") {
            for erratum in text.split("<a id=\"e").skip(1) {
                let label = erratum.split('"').next().unwrap_or("");
                assert!(erratum.contains("**Test.** `") && erratum.contains(".rs::"), "E{label} names no test");
            }
        }
    }
    assert!(named > 60, "only {named} tests named");
}

/// Every relative link in a document leads to a file, and to a place in it.
#[test]
fn links_lead_somewhere() {
    let documents = documents();
    let mut checked = 0;
    for (path, text) in &documents {
        let text = prose(text);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target) {
            if target.contains("://") || target.contains(' ') {
                continue;
            }
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let full = if file.is_empty() {
                root().join(path)
            } else {
                root().join(path).parent().expect("a folder").join(file)
            };
            assert!(full.exists(), "{path}: {target}");
            if !place.is_empty() {
                let other = std::fs::read_to_string(&full).unwrap_or_default();
                assert!(anchors(&other).contains(place), "{path}: {target} has no such place");
            }
            checked += 1;
        }
    }
    assert!(documents.len() >= 20 && checked > 300, "only {checked} links in {} documents", documents.len());
}

/// Lines of each function of a formatted file, by name.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_end = |line: &str| line.trim_start() == "}" || line.ends_with(';');
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some((before, name)) = line.trim_start().split_once("fn ") else { continue };
        let modifier = |word: &str| matches!(word, "const" | "async" | "unsafe") || word.starts_with("pub");
        if !before.split_whitespace().all(modifier) {
            continue;
        }
        let rest = lines[i + 1..].iter().position(|other| indent(other) == indent(line) && is_end(other));
        let more = if line.ends_with(['}', ';']) { 0 } else { rest.map_or(0, |rest| rest + 1) };
        found.push((name.split(['(', '<']).next().unwrap_or(name), 1 + more));
    }
    found
}

/// CONTRIBUTING: a function is at most 60 lines. A table of data is a constant.
#[test]
fn no_function_is_longer_than_60_lines() {
    let mut looked_at = 0;
    for path in files_below(root(), "rs") {
        let code = std::fs::read_to_string(root().join(&path)).expect("a file");
        for (name, lines) in functions(&code) {
            assert!(lines <= 60, "{path}: {name} has {lines} lines");
            looked_at += 1;
        }
    }
    assert!(looked_at > 2000, "only {looked_at} functions found");
}
