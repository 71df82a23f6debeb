//! The program as others run it.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs `paygo` to its end.
pub(crate) fn paygo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
    command.args(arguments).env("PAYGO_AS", "alice").env_remove("PAYGO_LEDGER").output().expect("runs")
}

/// `paygo serve` on a port that was free.
pub(crate) struct Service {
    child: Child,
    ledger: String,
    arguments: Vec<String>,
    port: u16,
    /// Where it is.
    pub(crate) address: String,
    /// The admin's token, if this was the first start.
    pub(crate) token: Option<String>,
}

impl Service {
    pub(crate) fn start(ledger: &str, arguments: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let (child, said) = run(ledger, port, &arguments);
        let token = said.iter().find_map(|line| Some(line.split_once("shown this once: ")?.1.to_owned()));
        Self { child, ledger: ledger.to_owned(), arguments, port, address: format!("http://127.0.0.1:{port}"), token }
    }

    /// Without warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("dead");
    }

    pub(crate) fn restart(&mut self) {
        (self.child, _) = run(&self.ledger, self.port, &self.arguments);
    }

    /// In peace: says what it wrote to standard error.
    pub(crate) fn end(&mut self) -> std::process::ExitStatus {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill runs");
        assert!(told.success());
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn stderr(&mut self) -> String {
        std::io::read_to_string(self.child.stderr.take().expect("piped")).expect("text")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts, and reads what it says until it serves.
fn run(ledger: &str, port: u16, arguments: &[String]) -> (Child, Vec<String>) {
    // A database that was killed takes a while to come back.
    for _ in 0..100 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paygo"));
        command.args(["serve", "--ledger", ledger, "--listen", &format!("127.0.0.1:{port}")]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut said = Vec::new();
        for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
            let line = line.expect("text");
            let serves = line.contains("is at http");
            said.push(line);
            if serves {
                return (child, said);
            }
        }
        let status = child.wait().expect("ends");
        let wrong = std::io::read_to_string(child.stderr.take().expect("piped")).expect("text");
        assert!(ledger.starts_with("postgres"), "{status}: {wrong}");
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it does not start");
}
