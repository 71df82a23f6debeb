//! Asks a paygo service: small and blocking.
//!
//! Every request can be sent again: a retry with the same id hears the first answer and is charged once, so whatever gets lost on the
//! way is simply asked again, a few times.
//!
//! ```no_run
//! use paygo_client::Client;
//! use paygo_ledger::request::Ask;
//! use paygo_ledger::words::{Spend, Decision};
//!
//! let client = Client::new("https://budget.example", std::env::var("PAYGO_TOKEN")?)?;
//! let spend: Spend = serde_json::from_str(r#"{"id": "q1", "mechanism": {"gaussian": {"noise_multiplier": 10}}}"#)?;
//! let answer = client.ask(&"sales".parse()?, spend)?;
//! if answer.decision == Decision::Admit && !answer.repeated {
//!     // Draw the noise, and release.
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use paygo_ledger::request::{Ask, Method, Request, path};
use paygo_ledger::views::TokenView;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use url::Url;

/// How often a request is sent at most.
const MAX_TRIES: u32 = 6;
/// How long to wait after the first try; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(50);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(90);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service says what is wrong. Nothing was charged; with 401 or 403 nothing now, and what an earlier try of the same id did is not
    /// told.
    #[error("{message}")]
    Problem {
        /// The status of HTTP.
        status: u16,
        /// A word for programs.
        code: String,
        /// A sentence for people.
        message: String,
    },
    /// No answer came. Whether the request was charged is not known: counted as spent, and a retry with the same id tells.
    #[error(
        "{address} does not answer: {reason}; whether it was charged is not known, and a retry with the same id tells"
    )]
    Unavailable {
        /// Where.
        address: String,
        /// Why.
        reason: String,
    },
    /// No answer came to a question that charges nothing.
    #[error("{address} does not answer: {reason}")]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        reason: String,
    },
    /// Not an address, token or certificate.
    #[error("{0}")]
    Setup(String),
}

/// A service, and a token for it.
pub struct Client {
    agent: ureq::Agent,
    address: String,
    authorization: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    message: String,
}

impl Client {
    /// A service at `http://host:port` or `https://host`, whose certificate is checked against the usual authorities.
    ///
    /// # Errors
    /// [`ClientError::Setup`] when it is no address, or the token cannot be one.
    pub fn new(address: &str, token: impl AsRef<str>) -> Result<Self, ClientError> {
        Self::over(address, token.as_ref(), RootCerts::WebPki)
    }

    /// The same, with a certificate authority of one's own: one or more certificates in PEM.
    ///
    /// # Errors
    /// [`ClientError::Setup`] when it is no address, or the token or a certificate cannot be one.
    pub fn with_authority(address: &str, token: impl AsRef<str>, pem: &[u8]) -> Result<Self, ClientError> {
        let mut certificates: Vec<Certificate<'static>> = Vec::new();
        for item in parse_pem(pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|error| ClientError::Setup(error.to_string()))? {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() {
            return Err(ClientError::Setup("there is no certificate in the PEM file".to_owned()));
        }
        Self::over(address, token.as_ref(), RootCerts::new_with_certs(&certificates))
    }

    fn over(address: &str, token: &str, roots: RootCerts) -> Result<Self, ClientError> {
        let host = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
        if host.is_none_or(|host| host.starts_with('/')) || Url::parse(address).is_err() {
            let expected = "expected http://host:port or https://host";
            return Err(ClientError::Setup(format!("{address:?} is not the address of a service; {expected}")));
        }
        let token = token.trim();
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ClientError::Setup("the token is empty, or has characters that no token has".to_owned()));
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER))
            .max_redirects(0)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        let (address, authorization) = (address.trim_end_matches('/').to_owned(), format!("Bearer {token}"));
        Ok(Self { agent: config.new_agent(), address, authorization })
    }

    /// Asks until there is an answer, or it was asked often enough.
    fn send(&self, method: Method, path: &str, body: Option<&[u8]>) -> Result<Vec<u8>, ClientError> {
        let mut reason = String::new();
        for attempt in 0..MAX_TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE * 2_u32.pow(attempt - 1));
            }
            match self.once(method.word(), path, body) {
                Ok((status, bytes)) if status.is_success() => return Ok(bytes),
                Ok((status, bytes)) => {
                    let problem: Option<Problem> = serde_json::from_slice(&bytes).ok();
                    let problem = problem.unwrap_or_else(|| Problem {
                        code: "not_paygo".to_owned(),
                        message: format!("{} answered {status}, and not as a paygo service does", self.address),
                    });
                    let wait = status == StatusCode::TOO_MANY_REQUESTS;
                    // A proxy in front may not have heard the answer.
                    let unknown =
                        [StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_GATEWAY, StatusCode::GATEWAY_TIMEOUT];
                    if !wait && !unknown.contains(&status) {
                        let Problem { code, message } = problem;
                        return Err(ClientError::Problem { status: status.as_u16(), code, message });
                    }
                    reason = problem.message;
                    if !method.is_repeatable() && !wait {
                        break;
                    }
                }
                Err(error) => {
                    reason = error.to_string();
                    // What a port that serves no TLS says to a handshake.
                    if self.address.starts_with("https://") && reason.contains("InvalidContentType") {
                        reason = "it does not speak TLS; without TLS its address begins with http://".to_owned();
                    }
                    if !method.is_repeatable() {
                        break;
                    }
                }
            }
        }
        let address = self.address.clone();
        if method == Method::Get {
            return Err(ClientError::Unreachable { address, reason });
        }
        Err(ClientError::Unavailable { address, reason })
    }

    fn once(&self, method: &str, path: &str, body: Option<&[u8]>) -> Result<(StatusCode, Vec<u8>), ureq::Error> {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.address));
        let request = request.header("authorization", &self.authorization).header("content-type", "application/json");
        let mut response = match body {
            Some(body) => self.agent.run(request.body(body)?)?,
            None => self.agent.run(request.body(())?)?,
        };
        let bytes = response.body_mut().with_config().limit(1 << 30).read_to_vec()?;
        Ok((response.status(), bytes))
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(bytes).map_err(|error| {
            let message = format!("{} answers in words that are not known here: {error}", self.address);
            ClientError::Problem { status: 200, code: "not_paygo".to_owned(), message }
        })
    }

    /// Whom the token belongs to, and what it allows.
    ///
    /// # Errors
    /// [`ClientError`] when the service says what is wrong, or does not answer.
    pub fn me(&self) -> Result<TokenView, ClientError> {
        self.read(&self.send(Method::Get, "/v1/me", None)?)
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// What can be asked is in [`paygo_ledger::request`], and in `/docs` of the service.
impl Ask for Client {
    type Error = ClientError;

    fn ask<R: Request>(&self, about: &R::About, request: R) -> Result<R::Answer, ClientError> {
        let words = serde_json::to_vec(&request).map_err(|error| ClientError::Setup(error.to_string()))?;
        self.read(&self.send(R::METHOD, &path::<R>(about), (R::METHOD.word() == "POST").then_some(&words))?)
    }

    fn lines(&self, after: u64, limit: u64) -> Result<Vec<String>, ClientError> {
        let bytes = self.send(Method::Get, &format!("/v1/log?after={after}&limit={limit}"), None)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(str::to_owned).collect())
    }
}
