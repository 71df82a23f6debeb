//! What the tests of the service share: a service that listens, and short ways to ask it.

#![allow(dead_code, reason = "each test uses a part")]

use paygo_ledger::entry::Role;
use paygo_ledger::ledger::{Clock, Requester, system_clock};
use paygo_ledger::store::{Location, SqlStore};
use paygo_ledger::words::NewToken;
use paygo_ledger::{Ledger, Name};
use paygo_server::{Door, Service, app, listen};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A service on a port of its own.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) ledger: Ledger,
    pub(crate) service: Arc<Service>,
    pub(crate) runtime: Runtime,
    end: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<()>>,
    _folder: Option<TempDir>,
}

pub(crate) struct Setup {
    pub(crate) location: Option<Location>,
    pub(crate) clock: Clock,
    pub(crate) rate: u32,
    pub(crate) door: Door,
}

impl Default for Setup {
    fn default() -> Self {
        Self { location: None, clock: system_clock(), rate: 1_000_000, door: Door::new(None) }
    }
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let folder = setup.location.is_none().then(|| tempfile::tempdir().expect("a folder"));
        let own = || Location::File(folder.as_ref().expect("a folder").path().join("a.ledger"));
        let location = setup.location.unwrap_or_else(own);
        let secure = setup.door.tls.is_some();
        let (ledger, service, listener) = runtime.block_on(async {
            let store = SqlStore::open(&location).await.expect("a store");
            let ledger = Ledger::over(store, setup.clock).await.expect("a ledger");
            let service = Service::new(ledger.clone(), setup.rate, secure);
            (ledger, service, tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port"))
        });
        let address = listener.local_addr().expect("an address");
        let (end, ends) = oneshot::channel::<()>();
        let (ending, router) = (Arc::clone(&service), app(Arc::clone(&service)));
        let ended = runtime.spawn(listen(listener, router, setup.door, async move {
            ends.await.ok();
            ending.end();
        }));
        runtime.spawn(Arc::clone(&service).follow());
        Self { address, ledger, service, runtime, end: Some(end), ended: Some(ended), _folder: folder }
    }

    /// Ends in peace.
    pub(crate) fn end(&mut self) {
        drop(self.end.take());
        if let Some(ended) = self.ended.take() {
            self.runtime.block_on(ended).expect("ends");
        }
        self.runtime.block_on(self.ledger.close());
    }

    pub(crate) fn token(&self, holder: &str, role: Role, datasets: Option<&[&str]>) -> String {
        self.grant(holder, role, datasets, None)
    }

    pub(crate) fn grant(&self, holder: &str, role: Role, datasets: Option<&[&str]>, days: Option<u32>) -> String {
        let name = |text: &str| Name::new(text).expect("a name");
        let by = Requester::new(name("test"));
        let datasets = datasets.map(|names| names.iter().map(|text| name(text)).collect());
        let new = NewToken { holder: name(holder), role, datasets, explicit_curves: false, expires_in_days: days };
        self.runtime.block_on(self.ledger.grant(&by, new)).expect("granted").token
    }

    pub(crate) fn entries(&self) -> u64 {
        self.ledger.read(paygo_ledger::state::State::seq)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
        let (status, _, body) = self.ask_fully(method, path, headers, body);
        (status, body)
    }

    pub(crate) fn ask_fully(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (u16, ureq::http::HeaderMap, String) {
        let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0);
        let agent = config.timeout_global(Some(Duration::from_secs(30))).build().new_agent();
        let mut request = ureq::http::Request::builder().method(method).uri(self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = agent.run(request.body(body).expect("a request")).expect("an answer");
        let text = response.body_mut().read_to_string().unwrap_or_default();
        (response.status().as_u16(), response.headers().clone(), text)
    }

    /// JSON in, JSON out, with a token.
    #[track_caller]
    pub(crate) fn json(&self, token: &str, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let bearer = format!("Bearer {token}");
        let (given, text) = self.ask(method, path, &[("authorization", &bearer)], body.to_string().as_bytes());
        assert_eq!(given, status, "{method} {path} {body}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    #[track_caller]
    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Value {
        self.json(token, "POST", path, body, 200)
    }

    #[track_caller]
    pub(crate) fn get(&self, token: &str, path: &str) -> Value {
        self.json(token, "GET", path, &Value::Null, 200)
    }

    /// A dataset of ρ-zCDP.
    pub(crate) fn create(&self, admin: &str, name: &str, rho: &str) {
        self.post(admin, "/v1/datasets", &json!({"name": name, "filter": {"kind": "zcdp", "rho": rho}}));
    }
}

pub(crate) fn rho(rho: &str) -> Value {
    json!({"zcdp": {"rho": rho}})
}
