//! `paygo serve`: the ledger as a service.

use super::ledger::opening;
use super::output::print;
use anyhow::Context;
use clap::{Args, ValueEnum};
use paygo_ledger::entry::Role;
use paygo_ledger::ledger::Requester;
use paygo_ledger::store::Location;
use paygo_ledger::words::NewToken;
use paygo_ledger::{Ledger, Name};
use paygo_server::{Door, Service, app, listen, tls};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

#[derive(Args)]
#[command(after_help = "The first start makes the ledger and prints a token for its admin, once. Open the address in \
    a browser and log in with it. Several services on one PostgreSQL database share one budget. After SIGTERM or \
    Ctrl-C the service answers what was begun, then ends.\n\n\
    Examples:\n  \
    paygo serve\n  \
    paygo serve --ledger our.ledger --listen 0.0.0.0:443 \\\n      \
    --tls-cert chain.pem --tls-key key.pem\n  \
    paygo serve --ledger postgres://paygo@db/paygo\n\n\
    See docs/operations.md for how to keep it running.")]
pub(crate) struct Arguments {
    /// The ledger: a file, or postgres://user@host/database
    #[arg(long, value_name = "FILE|URL", env = "PAYGO_LEDGER", default_value = "paygo.ledger")]
    ledger: Location,
    /// Address and port to listen on; port 0 takes a free one.
    ///
    /// A port alone, or localhost:PORT, listens on this machine only.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7460", value_parser = address)]
    listen: SocketAddr,
    /// Certificate chain for TLS, in PEM; needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM; needs --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Allow plain HTTP on an address that others can reach.
    ///
    /// Without TLS, tokens can be read on the way. Use this behind a proxy that ends TLS.
    #[arg(long)]
    plain_http: bool,
    /// Most requests per second with one token
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    rate_limit: u32,
    /// Format of the log [default: text on a terminal, else json]
    #[arg(long, value_enum)]
    log: Option<LogFormat>,
    /// How much is logged
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    log_level: LogLevel,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    /// A line for each event
    Text,
    /// A JSON object for each event, one per line
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogLevel {
    /// Faults
    Error,
    /// Also requests that were turned away
    Warn,
    /// Also changes to datasets and tokens
    Info,
    /// Also every answer
    Debug,
}

/// An address and a port; `localhost` and a port alone are this machine.
fn address(text: &str) -> Result<SocketAddr, String> {
    let here = |port: &str| format!("127.0.0.1:{port}").parse();
    let given = match text.strip_prefix("localhost:") {
        Some(port) => here(port),
        None => text.parse().or_else(|_| here(text)),
    };
    given.map_err(|_| "expected an address and a port, such as 127.0.0.1:7460".to_owned())
}

impl Arguments {
    fn begin_log(&self) {
        let level = match self.log_level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        let usual = if std::io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json };
        let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false);
        match self.log.unwrap_or(usual) {
            LogFormat::Text => builder.with_ansi(false).init(),
            LogFormat::Json => builder.json().flatten_event(true).init(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(tls(certificate, key)?),
        (None, _) | (_, None) => None,
    };
    anyhow::ensure!(
        tls.is_some() || arguments.plain_http || arguments.listen.ip().is_loopback(),
        "without TLS, tokens can be read on their way to {}\nhint: give --tls-cert and --tls-key, or --plain-http behind a proxy that ends TLS",
        arguments.listen
    );
    arguments.begin_log();
    let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
    runtime.block_on(async {
        let location = &arguments.ledger;
        let ledger = Ledger::open(location).await.map_err(|error| opening(location, error))?;
        let listener = TcpListener::bind(arguments.listen).await;
        let listener =
            listener.with_context(|| format!("cannot listen on {}; give another --listen", arguments.listen))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}", listener.local_addr()?);
        first_token(&ledger).await?;
        print(&format!("the ledger {location} is at {address}"))?;
        tracing::info!(%address, ledger = %location, version = env!("CARGO_PKG_VERSION"), "serving");
        let service = Service::new(ledger.clone(), arguments.rate_limit, tls.is_some());
        let follower = tokio::spawn(service.clone().follow());
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let ending = service.clone();
        let end = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("ending");
            ending.end();
        };
        listen(listener, app(service), Door::new(tls), end).await;
        follower.abort();
        ledger.close().await;
        tracing::info!("ended");
        Ok(ExitCode::SUCCESS)
    })
}

/// A ledger without any token gets one for its admin.
async fn first_token(ledger: &Ledger) -> anyhow::Result<()> {
    if ledger.read(|state| state.tokens().next().is_some()) {
        return Ok(());
    }
    let admin = Name::new("admin")?;
    let requester = Requester::new(admin.clone());
    let new =
        NewToken { holder: admin, role: Role::Admin, datasets: None, explicit_curves: false, expires_in_days: None };
    let granted = ledger.grant(&requester, new).await?;
    print(&format!("the admin's token, shown this once: {}", granted.token))
}
