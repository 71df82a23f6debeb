//! A private PostgreSQL server for tests, from the server binaries on the machine.
//!
//! It listens on a socket in a folder of its own, runs as an unprivileged user (PostgreSQL refuses to run as root), and goes away
//! with the process that started it: a shell waits for the end of its standard input, stops the server and removes the folder.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// A running server.
pub struct Server {
    /// The folder of its socket, or the address that was given.
    place: Place,
    made: AtomicU32,
    shell: Mutex<Option<(Child, ChildStdin)>>,
}

enum Place {
    Socket(PathBuf),
    Given(String),
}

/// Starts a server in a new folder; says the folder when it answers.
const START: &str = r#"
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
exec 2>"$folder/shell.log"
"$1/initdb" -D "$folder/data" -U paygo -A trust -E UTF8 --locale=C >"$folder/initdb.log" 2>&1
while true; do
  "$1/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=200 -c restart_after_crash=on \
    >>"$folder/log" 2>&1 &
  server=$!
  tries=0
  until "$1/pg_isready" -q -h "$folder" -U paygo; do
    kill -0 $server
    tries=$((tries + 1))
    [ $tries -lt 1200 ]
    sleep 0.05
  done
  echo "$folder"
  if read -r word; then
    # Killed as by the machine: no goodbye, and everything begins again on the same folder. Held first, so that it starts no others while they are killed.
    kill -STOP $server || true
    pkill -KILL -P $server || true
    kill -KILL $server || true
    wait $server || true
    rm -f "$folder/data/postmaster.pid"
  else
    kill -INT $server
    wait $server || true
    exit 0
  fi
done
"#;

impl Server {
    /// The server of this process: the one that `PAYGO_TEST_POSTGRES_URL` names, or a private one, started when it is first asked
    /// for; `None`, and a word about it on standard error, where the machine has no server binaries.
    #[must_use]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED
            .get_or_init(|| match std::env::var("PAYGO_TEST_POSTGRES_URL") {
                Ok(url) => Some(Self { place: Place::Given(url), made: AtomicU32::new(0), shell: Mutex::new(None) }),
                Err(_) => Self::start(),
            })
            .as_ref()
    }

    /// A server of one's own; `None` where the machine has no server binaries.
    ///
    /// # Panics
    /// When they are there and the server does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(binaries) = binaries() else {
            // Seen even where the test's own output is not.
            writeln!(std::io::stderr(), "SKIPPED: PostgreSQL, because there is no initdb on this machine").ok();
            return None;
        };
        let mut command = match unprivileged() {
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &user, "--regid", &group, "--clear-groups", "sh"]);
                command
            }
            None => Command::new("sh"),
        };
        command.arg("-c").arg(START).arg("sh").arg(&binaries).current_dir("/");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        let stdin = child.stdin.take().expect("piped");
        let folder = ready(&mut child);
        let shell = Mutex::new(Some((child, stdin)));
        Some(Self { place: Place::Socket(folder), made: AtomicU32::new(0), shell })
    }

    /// Kills the server without warning, and starts it again on what it left.
    ///
    /// # Panics
    /// When it is not a private one, or does not come back.
    pub fn crash(&self) {
        let mut shell = self.shell.lock().expect("no test failed while it crashed the server");
        let (child, stdin) = shell.as_mut().expect("a private server");
        stdin.write_all(b"crash\n").expect("the shell listens");
        ready(child);
    }

    /// A new, empty database: its address.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn database(&self) -> String {
        let name = format!("paygo_{}_{}", std::process::id(), self.made.fetch_add(1, Ordering::Relaxed));
        let (administration, url) = match &self.place {
            Place::Socket(folder) => {
                let host = folder.display();
                (
                    format!("postgres://paygo@localhost/postgres?host={host}"),
                    format!("postgres://paygo@localhost/{name}?host={host}"),
                )
            }
            Place::Given(url) => {
                let (base, query) = url.split_once('?').map_or((url.as_str(), ""), |(base, query)| (base, query));
                let server = base.rsplit_once('/').map_or(base, |(server, _)| server);
                (url.clone(), format!("{server}/{name}?{query}"))
            }
        };
        let psql = binaries().map_or_else(|| PathBuf::from("psql"), |folder| folder.join("psql"));
        let made = Command::new(psql).arg(administration).arg("-qc").arg(format!("CREATE DATABASE {name}")).status();
        assert!(made.is_ok_and(|status| status.success()), "no database could be made");
        url
    }
}

/// Waits until the server says where it is.
fn ready(child: &mut Child) -> PathBuf {
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("piped");
    BufReader::with_capacity(1, stdout).read_line(&mut line).expect("the shell speaks");
    assert!(!line.is_empty(), "PostgreSQL did not start");
    line.trim().into()
}

/// Where the server binaries are: all of them in one folder, whatever links lead there.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = versions.map(|version| version.path().join("bin"));
    let found = |folder: PathBuf| {
        let folder = folder.join("initdb").canonicalize().ok()?.parent()?.to_owned();
        ["postgres", "pg_isready", "psql"].iter().all(|name| folder.join(name).is_file()).then_some(folder)
    };
    std::env::split_paths(&path).chain(debian).find_map(found)
}

/// Whom to be instead of root.
fn unprivileged() -> Option<(String, String)> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if id(&["-u"])? != "0" {
        return None;
    }
    ["postgres", "nobody"].into_iter().find_map(|user| Some((id(&["-u", user])?, id(&["-g", user])?)))
}
