//! How fast a ledger decides: `ledger_speed file`, `ledger_speed postgres`, `ledger_speed long 10000000`.
//!
//! Everything is durable (fsync). Ratios are of runs in turn on one machine; `bench/ledger.md` has the table.

use anyhow::Context;
use paygo::accounting::wire::Mechanism;
use paygo::ledger::ledger::Requester;
use paygo::ledger::store::Location;
use paygo::ledger::words::{NewDataset, Spend, Verdict};
use paygo::ledger::{Ledger, Name, RequestId};
use paygo_testkit::postgres::Server;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Requests that wait at once.
const CLIENTS: u64 = 1024;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["file"] => runtime.block_on(file()),
        ["postgres"] => runtime.block_on(postgres()),
        ["long", entries] => runtime.block_on(long(entries.parse()?)),
        _ => anyhow::bail!("expected: ledger_speed file | postgres | long ENTRIES"),
    }
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}

/// A dataset whose budget is never reached.
async fn open(location: &Location) -> anyhow::Result<Ledger> {
    let ledger = Ledger::open(location).await?;
    let words = r#"{"name": "sales", "filter": {"epsilon": 1000, "delta": "1e-6"}}"#;
    ledger.create_dataset(&me()?, serde_json::from_str::<NewDataset>(words)?).await?;
    Ok(ledger)
}

fn me() -> anyhow::Result<Requester> {
    Ok(Requester { name: Name::new("alice")?, explicit_curves: false })
}

fn request(id: u64) -> anyhow::Result<Spend> {
    let mechanism: Mechanism = serde_json::from_str(r#"{"gaussian": {"noise_multiplier": 10000}}"#)?;
    Ok(Spend { id: RequestId::new(format!("{id:016x}"))?, mechanism, blocks: None, note: None })
}

/// Decisions a second, asked one after another: each waits for its own commit.
async fn one_by_one(ledger: &Ledger, next: &Arc<AtomicU64>, time: Duration) -> anyhow::Result<f64> {
    let (who, dataset) = (me()?, Name::new("sales")?);
    let (start, mut done) = (Instant::now(), 0.0);
    while start.elapsed() < time {
        let answer = ledger.spend(&who, &dataset, request(next.fetch_add(1, Ordering::Relaxed))?).await?;
        anyhow::ensure!(answer.decision == Verdict::Admit, "refused");
        done += 1.0;
    }
    Ok(done / start.elapsed().as_secs_f64())
}

/// Decisions a second, asked by many at once.
async fn together(ledger: &Ledger, next: &Arc<AtomicU64>, time: Duration) -> anyhow::Result<f64> {
    let start = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (ledger, next) = (ledger.clone(), Arc::clone(next));
            tokio::spawn(async move {
                let (who, dataset) = (me()?, Name::new("sales")?);
                let mut done = 0.0;
                while start.elapsed() < time {
                    let answer = ledger.spend(&who, &dataset, request(next.fetch_add(1, Ordering::Relaxed))?).await?;
                    anyhow::ensure!(answer.decision == Verdict::Admit, "refused");
                    done += 1.0;
                }
                anyhow::Ok(done)
            })
        })
        .collect();
    let mut done = 0.0;
    for client in clients {
        done += client.await??;
    }
    Ok(done / start.elapsed().as_secs_f64())
}

const TURNS: u32 = 3;

async fn file() -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    say(&format!("one fsync: {:.2} ms", 1e3 * fsync(folder.path())?));
    let ledger = open(&Location::File(folder.path().join("speed.ledger"))).await?;
    let next = Arc::new(AtomicU64::new(0));
    for _ in 0..TURNS {
        let one = one_by_one(&ledger, &next, Duration::from_secs(2)).await?;
        let many = together(&ledger, &next, Duration::from_secs(4)).await?;
        say(&format!("SQLite: {one:.0}/s one by one, {many:.0}/s with {CLIENTS} waiting: {:.0} times", many / one));
    }
    ledger.close().await;
    Ok(())
}

/// Seconds of one small durable write.
fn fsync(folder: &Path) -> anyhow::Result<f64> {
    let mut file = std::fs::File::create(folder.join("fsync"))?;
    let start = Instant::now();
    for _ in 0..50 {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    Ok(start.elapsed().as_secs_f64() / 50.0)
}

/// What pgbench runs: a conditional update and an entry, durable, as the ledger's own decisions are.
const TRANSACTION: &str = "BEGIN;
UPDATE budget SET spent = spent + 1 WHERE id = 1 AND spent + 1 <= 1000000000;
INSERT INTO log (line) VALUES ('0123456789012345678901234567890123456789012345678901234567890123456789');
COMMIT;
";

async fn postgres() -> anyhow::Result<()> {
    let server = Server::start().context("no PostgreSQL server binaries on this machine")?;
    let url = server.database();
    let other = server.database();
    let setup = "CREATE TABLE budget (id INT PRIMARY KEY, spent BIGINT NOT NULL); INSERT INTO budget VALUES (1, 0); \
                 CREATE TABLE log (seq BIGSERIAL PRIMARY KEY, line TEXT NOT NULL)";
    let made = Command::new("psql").args([other.as_str(), "-qc", setup]).status()?;
    anyhow::ensure!(made.success(), "psql failed");
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), TRANSACTION)?;
    let ledger = open(&url.parse()?).await?;
    let next = Arc::new(AtomicU64::new(0));
    for _ in 0..TURNS {
        let output = Command::new("pgbench")
            .args(["-n", "-M", "prepared", "-c", "64", "-j", "2", "-T", "5", "-f"])
            .arg(script.path())
            .arg(&other)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        let theirs =
            theirs.with_context(|| format!("pgbench said {said}{}", String::from_utf8_lossy(&output.stderr)))?;
        let many = together(&ledger, &next, Duration::from_secs(4)).await?;
        let ratio = many / theirs;
        say(&format!(
            "PostgreSQL: pgbench {theirs:.0}/s with 64 clients, {many:.0}/s with {CLIENTS} waiting: {ratio:.1} times"
        ));
    }
    ledger.close().await;
    Ok(())
}

async fn long(entries: u64) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let (empty, full) = (folder.path().join("empty.ledger"), folder.path().join("full.ledger"));
    let next = Arc::new(AtomicU64::new(0));
    let location = Location::File(full.clone());
    let ledger = open(&location).await?;
    let start = Instant::now();
    while ledger.read(paygo::ledger::state::State::seq) < entries {
        together(&ledger, &next, Duration::from_secs(2)).await?;
    }
    let held = ledger.read(paygo::ledger::state::State::seq);
    say(&format!(
        "{held} entries in {:.0} s, {} MB",
        start.elapsed().as_secs_f64(),
        std::fs::metadata(&full)?.len() >> 20
    ));
    ledger.close().await;
    for _ in 0..TURNS {
        let start = Instant::now();
        let ledger = Ledger::open(&location).await?;
        say(&format!("opened in {:.2} s", start.elapsed().as_secs_f64()));
        let fresh = open(&Location::File(empty.clone())).await?;
        let other = Arc::new(AtomicU64::new(1 << 60));
        let short = together(&fresh, &other, Duration::from_secs(4)).await?;
        let long = together(&ledger, &next, Duration::from_secs(4)).await?;
        say(&format!("{short:.0}/s while empty, {long:.0}/s with {held} entries: {:.2} times", long / short));
        fresh.close().await;
        ledger.close().await;
        std::fs::remove_file(&empty)?;
    }
    Ok(())
}
