//! Connections: taken up to a number, given a time to say what they want, ended in peace.
//!
//! HTTP/1.1 only, by hyper itself: `axum::serve` has neither TLS nor a limit on how long a request may take to arrive.

use crate::access::Peer;
use crate::limits::Tickets;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

/// Connections at once; more wait to be taken.
const MAX_CONNECTIONS: usize = 4096;
/// Connections at once from one address; more are closed. A proxy is one address.
const MAX_CONNECTIONS_OF_ONE: usize = 1024;
/// How long what was begun may take to end.
const FAREWELL: Duration = Duration::from_secs(30);
/// The longest head of a request.
const MAX_HEAD: usize = 1 << 16;

/// How connections are taken.
#[derive(Clone)]
pub struct Door {
    /// Over TLS, or not.
    pub tls: Option<Arc<ServerConfig>>,
    /// How long a TLS handshake may take, and the head of a request to arrive, also the next after a pause.
    pub patience: Duration,
}

impl Door {
    /// The usual patience.
    #[must_use]
    pub fn new(tls: Option<Arc<ServerConfig>>) -> Self {
        Self { tls, patience: Duration::from_secs(30) }
    }
}

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct TlsError {
    file: String,
    what: String,
}

/// TLS 1.2 and 1.3 with a certificate chain and its key, both in PEM files.
///
/// # Errors
/// [`TlsError`] when a file cannot be read or the two do not fit.
pub fn tls(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let wrong = |file: &Path, what: String| TlsError { file: file.display().to_string(), what };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| wrong(certificate, error.to_string()))?;
    Ok(Arc::new(config))
}

/// Takes connections until `end`, then answers what was begun.
pub async fn listen(listener: TcpListener, app: Router, door: Door, end: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let tickets = Tickets::new(MAX_CONNECTIONS_OF_ONE);
    let graceful = GracefulShutdown::new();
    let (tls, patience) = (door.tls.map(TlsAcceptor::from), door.patience);
    tokio::pin!(end);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.map_err(std::io::Error::other)?;
            listener.accept().await.map(|(stream, peer)| (stream, peer, place))
        };
        let (stream, peer, place) = tokio::select! {
            accepted = next => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Too many open files, most likely: others must end first.
                    tracing::error!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut end => break,
        };
        let Some(ticket) = tickets.take(peer.ip()) else {
            tracing::debug!(%peer, "too many connections from one address");
            continue;
        };
        stream.set_nodelay(true).ok();
        let (app, tls, watcher) = (app.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let _held = (place, ticket);
            match tls {
                None => converse(stream, peer, app, watcher, patience).await,
                Some(tls) => match tokio::time::timeout(patience, tls.accept(stream)).await {
                    Ok(Ok(stream)) => converse(stream, peer, app, watcher, patience).await,
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
                    Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
                },
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(FAREWELL, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: SocketAddr,
    app: Router,
    watcher: hyper_util::server::graceful::Watcher,
    patience: Duration,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        app.clone().call(request)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(MAX_HEAD);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
