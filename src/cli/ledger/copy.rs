//! Logs that go from one place to another: a backup, and a ledger made from what was exported.

use super::{Open, Where};
use crate::cli::output::{print, print_json};
use anyhow::Context;
use indicatif::ProgressBar;
use paygo_ledger::import::Import;
use paygo_ledger::request::{Ask, ShowHead};
use paygo_ledger::store::{Location, SqlStore};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

/// Lines at a time.
const PAGE: usize = 4096;

fn told(entries: u64, what: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        print_json(&json!({"entries": entries}))?;
    } else {
        print(&format!("{entries} entries {what}; every link and every budget holds"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a ledger from lines, as they come.
fn make(location: &Location, mut next: impl FnMut() -> anyhow::Result<Vec<String>>) -> anyhow::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let store = runtime.block_on(SqlStore::open(location))?;
    let mut import = runtime.block_on(Import::begin(store))?;
    let bar = ProgressBar::no_length();
    loop {
        let lines = next()?;
        if lines.is_empty() {
            bar.finish_and_clear();
            return Ok(runtime.block_on(import.finish())?);
        }
        runtime.block_on(import.add(&lines))?;
        bar.inc(lines.len() as u64);
    }
}

pub(super) fn import(place: &Where, log: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let Where::Store(location) = place else {
        anyhow::bail!("import makes a file or a database, not a service; do it where that is")
    };
    let file: Box<dyn Read> = if log == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(log).with_context(|| log.display().to_string())?)
    };
    let mut lines = BufReader::new(file).lines();
    let fresh = if let Location::File(path) = location { Some(path).filter(|path| !path.exists()) } else { None };
    let entries = make(location, || Ok(lines.by_ref().take(PAGE).collect::<Result<_, _>>()?));
    if let (Err(_), Some(path)) = (&entries, fresh) {
        remove(path);
    }
    told(entries.with_context(|| format!("{} was not imported", log.display()))?, "imported", as_json)
}

/// What was begun and is not a ledger.
fn remove(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::remove_file(name).ok();
    }
}

/// Writes the whole log to standard output.
pub(super) fn export(open: &Open) -> anyhow::Result<ExitCode> {
    let mut after = 0;
    loop {
        let lines = open.lines(after, PAGE as u64)?;
        if lines.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        after += lines.len() as u64;
        print(&lines.join("\n"))?;
    }
}

/// The log only grows, so whatever of it is there is a ledger as it was at some moment.
pub(super) fn backup(open: &Open, file: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(!file.exists(), "{} is there already; a backup is a new file", file.display());
    let name = file.file_name().and_then(|name| name.to_str()).context("expected the name of a file")?;
    let part = file.with_file_name(format!("{name}.part"));
    anyhow::ensure!(
        !part.exists(),
        "{} is there already: another backup is running, or one was cut off; if none is running, remove it",
        part.display()
    );
    let (head, mut after) = (open.ask(&(), ShowHead)?.entry, 0);
    let entries = make(&Location::File(part.clone()), || {
        let lines = open.lines(after, (head - after).min(PAGE as u64))?;
        after += lines.len() as u64;
        Ok(lines)
    });
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            remove(&part);
            return Err(error);
        }
    };
    std::fs::rename(&part, file).with_context(|| file.display().to_string())?;
    told(entries, &format!("copied to {}", file.display()), as_json)
}
