//! How fast a ledger decides: `ledger_speed file`, `ledger_speed postgres`, `ledger_speed long 10000000`,
//! `ledger_speed http`, and what they run on: `ledger_speed fsync`.
//!
//! Everything is durable (fsync). Ratios are of runs in turn on one machine; `bench/ledger.md` has the table.

use anyhow::Context;
use paygo::accounting::wire::Mechanism;
use paygo::ledger::ledger::Requester;
use paygo::ledger::store::Location;
use paygo::ledger::words::{Decision, NewDataset, NewToken, Spend};
use paygo::ledger::{Ledger, Name, RequestId};
use paygo::server::{Door, Service, app, listen};
use paygo_testkit::postgres::Server;
use sqlx::{AnyConnection, Connection};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// Requests that wait at once.
const CLIENTS: u64 = 4096;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["file"] => runtime.block_on(file()),
        ["postgres"] => runtime.block_on(postgres()),
        ["long", entries] => runtime.block_on(long(entries.parse()?)),
        ["http"] => runtime.block_on(http()),
        ["fsync"] => disk(),
        _ => anyhow::bail!("expected: ledger_speed file | postgres | long ENTRIES | http | fsync"),
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
    Ok(Requester::new(Name::new("alice")?))
}

fn mechanism() -> anyhow::Result<Mechanism> {
    Ok(serde_json::from_str(r#"{"gaussian": {"noise_multiplier": 10000}}"#)?)
}

fn request(id: u64, mechanism: &Mechanism) -> anyhow::Result<Spend> {
    Ok(Spend { id: RequestId::new(format!("{id:016x}"))?, mechanism: mechanism.clone(), blocks: None, note: None })
}

/// Decisions a second, asked one after another: each waits for its own commit.
async fn one_by_one(ledger: &Ledger, next: &Arc<AtomicU64>, time: Duration) -> anyhow::Result<f64> {
    let (who, dataset, mechanism) = (me()?, Name::new("sales")?, mechanism()?);
    let (start, mut done) = (Instant::now(), 0.0);
    while start.elapsed() < time {
        let request = request(next.fetch_add(1, Ordering::Relaxed), &mechanism)?;
        let answer = ledger.spend(&who, &dataset, request).await?;
        anyhow::ensure!(answer.decision == Decision::Admit, "refused");
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
                let (who, dataset, mechanism) = (me()?, Name::new("sales")?, mechanism()?);
                let mut done = 0.0;
                while start.elapsed() < time {
                    let request = request(next.fetch_add(1, Ordering::Relaxed), &mechanism)?;
                    let answer = ledger.spend(&who, &dataset, request).await?;
                    anyhow::ensure!(answer.decision == Decision::Admit, "refused");
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
    let ledger = open(&Location::File(folder.path().join("speed.ledger"))).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut plain = Plain::open(&folder.path().join("plain.db")).await?;
    for _ in 0..TURNS {
        let once = fsync(folder.path(), 500, Duration::ZERO)?;
        let loops = plain.turn(Duration::from_secs(2)).await?;
        let one = one_by_one(&ledger, &next, Duration::from_secs(2)).await?;
        let many = together(&ledger, &next, Duration::from_secs(4)).await?;
        say(&format!(
            "SQLite: plain {loops:.0}/s, {one:.0}/s one by one, {many:.0}/s with {CLIENTS} waiting: {:.0} and {:.0} times; one fsync {:.2} ms",
            many / loops,
            many / one,
            1e3 * once
        ));
    }
    ledger.close().await;
    Ok(())
}

/// A budget without paygo: for each request a transaction of its own, with the statements that pgbench runs below.
struct Plain(AnyConnection);

impl Plain {
    async fn open(path: &Path) -> anyhow::Result<Self> {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await?;
        let setup = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                     CREATE TABLE budget (id INTEGER PRIMARY KEY, spent BIGINT NOT NULL); INSERT INTO budget VALUES (1, 0); \
                     CREATE TABLE log (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)";
        sqlx::raw_sql(setup).execute(&mut connection).await?;
        Ok(Self(connection))
    }

    /// Decisions a second.
    async fn turn(&mut self, time: Duration) -> anyhow::Result<f64> {
        let (start, mut done) = (Instant::now(), 0.0);
        while start.elapsed() < time {
            for statement in TRANSACTION.lines() {
                sqlx::query(statement).execute(&mut self.0).await?;
            }
            done += 1.0;
        }
        Ok(done / start.elapsed().as_secs_f64())
    }
}

/// Seconds of one small durable write, on average over some, with a pause between them.
fn fsync(folder: &Path, times: u32, pause: Duration) -> anyhow::Result<f64> {
    let mut file = std::fs::File::create(folder.join("fsync"))?;
    let mut total = 0.0;
    for _ in 0..times {
        std::thread::sleep(pause);
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        total += start.elapsed().as_secs_f64();
    }
    Ok(total / f64::from(times))
}

/// How even the disk is: how long small durable writes take while nothing else runs.
fn disk() -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    for _ in 0..TURNS {
        let (start, mut took) = (Instant::now(), Vec::new());
        while start.elapsed() < Duration::from_secs(10) {
            took.push(fsync(folder.path(), 1, Duration::ZERO)?);
        }
        took.sort_by(f64::total_cmp);
        let long: Vec<f64> = took.iter().copied().filter(|&each| each > 1e-3).collect();
        say(&format!(
            "{} fsyncs in 10 s: median {:.2} ms, p99 {:.2} ms; {} took more than 1 ms, the longest {:.1} ms, together {:.1} % of the time",
            took.len(),
            1e3 * took[took.len() / 2],
            1e3 * took[took.len() * 99 / 100],
            long.len(),
            1e3 * long.last().unwrap_or(&0.0),
            10.0 * long.iter().sum::<f64>()
        ));
    }
    Ok(())
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

/// Connections at once.
const CONNECTIONS: u32 = 256;
/// Decisions a second that are asked for.
const RATE: u32 = 10_000;

async fn http() -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    serve("SQLite", &Location::File(folder.path().join("speed.ledger")), folder.path()).await?;
    let server = Server::start().context("no PostgreSQL server binaries on this machine")?;
    serve("PostgreSQL", &server.database().parse()?, folder.path()).await
}

/// The service as it runs, and clients that keep their connections, on the same machine.
async fn serve(name: &str, location: &Location, folder: &Path) -> anyhow::Result<()> {
    let ledger = open(location).await?;
    let new = r#"{"holder": "alice", "role": "spender"}"#;
    let token = ledger.grant(&me()?, serde_json::from_str::<NewToken>(new)?).await?.token;
    let service = Service::new(ledger.clone(), u32::MAX, false);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let follower = tokio::spawn(Arc::clone(&service).follow());
    let (end, ends) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(listen(listener, app(service), Door::new(None), async move { drop(ends.await) }));
    let next = Arc::new(AtomicU64::new(0));
    // At a rate that leaves room: then how long one waits is not how long the queue is.
    let paced = Some(Duration::from_secs(u64::from(CONNECTIONS)) / RATE);
    let ask = |pace, seconds| {
        let (token, next) = (token.clone(), Arc::clone(&next));
        tokio::task::spawn_blocking(move || crowd(address, &token, &next, pace, Duration::from_secs(seconds)))
    };
    for _ in 0..TURNS {
        let idle = fsync(folder, 500, Duration::ZERO)?;
        let (rate, most) = ask(None, 5).await??;
        let (asked_for, took) = ask(paced, 5).await??;
        // Again, with an fsync of our own now and then beside it; what that does to the answers is not counted.
        let probe = folder.to_owned();
        let probe = tokio::task::spawn_blocking(move || fsync(&probe, 100, Duration::from_millis(20)));
        ask(paced, 2).await??;
        let beside = probe.await??;
        let p99 = took[took.len() * 99 / 100];
        say(&format!(
            "{name}: {rate:.0}/s at most, {CONNECTIONS} connections, median {:.1} ms, p99 {:.1} ms; {asked_for:.0}/s asked for: median {:.1} ms, p99 {:.1} ms; \
             one fsync {:.2} ms, {:.2} ms beside the load: p99 is {:.0} and {:.0} of them",
            1e3 * most[most.len() / 2],
            1e3 * most[most.len() * 99 / 100],
            1e3 * took[took.len() / 2],
            1e3 * p99,
            1e3 * idle,
            1e3 * beside,
            p99 / idle,
            p99 / beside
        ));
    }
    drop(end);
    serving.await?;
    follower.abort();
    ledger.close().await;
    Ok(())
}

/// Asks over many connections: answers a second, and how long each took, the quickest first.
fn crowd(
    address: SocketAddr,
    token: &str,
    next: &Arc<AtomicU64>,
    pace: Option<Duration>,
    time: Duration,
) -> anyhow::Result<(f64, Vec<f64>)> {
    // Everybody is connected before anybody asks.
    let streams = (0..CONNECTIONS).map(|_| TcpStream::connect(address)).collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now() + Duration::from_millis(100);
    let client = |(number, stream): (u32, TcpStream)| {
        let (token, next, pace) = (token.to_owned(), Arc::clone(next), Pace { number, pace, start, time });
        std::thread::Builder::new().stack_size(1 << 17).spawn(move || client(stream, &token, &next, &pace))
    };
    let clients = (0..).zip(streams).map(client).collect::<Result<Vec<_>, _>>()?;
    let mut took = Vec::new();
    for client in clients {
        took.extend(client.join().unwrap_or_else(|_| anyhow::bail!("a client failed"))?);
    }
    let rate = took.iter().map(|_| 1.0).sum::<f64>() / start.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Ok((rate, took))
}

/// When a client asks: as soon as it can, or at its own moments.
struct Pace {
    number: u32,
    pace: Option<Duration>,
    start: Instant,
    time: Duration,
}

/// How long each answer took, in seconds, from the moment it was due. As little HTTP as there is, in a thread of its own, so that the
/// clients take little of the machine and wait for nothing but the service.
fn client(mut stream: TcpStream, token: &str, next: &AtomicU64, pace: &Pace) -> anyhow::Result<Vec<f64>> {
    stream.set_nodelay(true)?;
    let (mut took, mut buffer) = (Vec::new(), vec![0; 1 << 14]);
    // One client after another.
    let mut due = pace.start + pace.pace.map_or(Duration::ZERO, |each| each * pace.number / CONNECTIONS);
    while due < pace.start + pace.time {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let begin = if pace.pace.is_some() { due } else { Instant::now() };
        let id = next.fetch_add(1, Ordering::Relaxed);
        let body =
            format!("{{\"id\": \"{id:016x}\", \"mechanism\": {{\"gaussian\": {{\"noise_multiplier\": 10000}}}}}}");
        let length = body.len();
        let request = format!(
            "POST /v1/datasets/sales/spend HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut filled = 0;
        loop {
            let read = stream.read(&mut buffer[filled..])?;
            anyhow::ensure!(read > 0, "the service hung up");
            filled += read;
            // The body is one JSON object, and its end the end of the answer.
            if buffer[..filled].ends_with(b"}") && buffer[..filled].windows(4).any(|four| four == b"\r\n\r\n") {
                break;
            }
        }
        took.push(begin.elapsed().as_secs_f64());
        let said = String::from_utf8_lossy(&buffer[..filled]);
        anyhow::ensure!(said.starts_with("HTTP/1.1 200") && said.contains("\"decision\":\"admit\""), "{said}");
        due = pace.pace.map_or_else(Instant::now, |each| due + each);
    }
    Ok(took)
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
