//! The ledger over HTTP: an API, its description, and a dashboard, in one router that needs no socket to be tested.
//!
//! | read | for |
//! | --- | --- |
//! | [`app`] | everything that is served |
//! | `access` | who may do what |
//! | `api` | the API under `/v1`; `/docs` shows it |
//! | `pages` | the dashboard |
//! | `problem` | what is wrong, as it is answered |
//! | [`listen`](listen()) | connections, TLS, a peaceful end |

mod access;
mod api;
mod limits;
mod listen;
mod metrics;
mod pages;
mod problem;

pub use access::Peer;
pub use listen::{Door, TlsError, listen, tls};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use paygo_ledger::Ledger;
use paygo_ledger::entry::Digest;
use problem::Problem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};
use utoipa_swagger_ui::SwaggerUi;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a part of a body may take to arrive.
const BODY: Duration = Duration::from_secs(10);
/// Pages of one token that are kept up to date at once.
const MAX_STREAMS: usize = 32;
/// How often what others wrote is taken in: tokens that were revoked elsewhere are refused here that much later.
const REFRESH: Duration = Duration::from_millis(250);

/// A ledger that is served.
pub struct Service {
    ledger: Ledger,
    limiter: limits::Limiter,
    /// Pages that are kept up to date, by token.
    streams: limits::Tickets<Digest>,
    metrics: metrics::Metrics,
    /// Whether browsers may send the cookie over TLS only.
    secure: bool,
    /// Whether it is ending.
    ending: watch::Sender<bool>,
}

impl Service {
    /// Serves a ledger, to each token at most so many requests a second, over TLS or not.
    #[must_use]
    pub fn new(ledger: Ledger, rate: u32, secure: bool) -> Arc<Self> {
        let (limiter, metrics) = (limits::Limiter::new(rate), metrics::Metrics::new());
        let streams = limits::Tickets::new(MAX_STREAMS);
        Arc::new(Self { ledger, limiter, streams, metrics, secure, ending: watch::Sender::new(false) })
    }

    /// Ends what would go on for ever: pages that are kept up to date.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Takes in what other processes write, for as long as it is polled.
    pub async fn follow(self: Arc<Self>) {
        let mut every = tokio::time::interval(REFRESH);
        loop {
            every.tick().await;
            self.metrics.upkeep();
            if let Err(error) = self.ledger.refresh().await {
                tracing::error!(%error, "the store could not be read");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// Everything that is served.
pub fn app(service: Arc<Service>) -> Router {
    let (api, description) = api::router();
    let swagger = SwaggerUi::new("/docs").url("/v1/openapi.json", description);
    // Its pages set styles of their own.
    let loose = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
                 form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
    let strict = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
                  base-uri 'none'; frame-ancestors 'none'";
    let header = |name, value| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value));
    // As one layer: each that is added alone is looked up and copied alone, for each request.
    let around = ServiceBuilder::new()
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(header::CONTENT_SECURITY_POLICY, strict))
        .layer(header(header::X_FRAME_OPTIONS, "DENY"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
        .layer(header(header::CACHE_CONTROL, "no-store"))
        .layer(RequestBodyTimeoutLayer::new(BODY))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, ANSWER))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(DefaultBodyLimit::max(api::MAX_BODY));
    Router::new()
        .merge(api)
        .merge(pages::router())
        .route("/health/live", get(|| async { "alive\n" }))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics::show))
        .fallback(|| async { Problem::NotFound })
        .method_not_allowed_fallback(|| async { Problem::Method })
        .layer(middleware::from_fn_with_state(Arc::clone(&service), metrics::measure))
        .with_state(service)
        .merge(Router::from(swagger).layer(header(header::CONTENT_SECURITY_POLICY, loose)))
        .layer(around)
}

/// Whether the writer answers and the store can be read.
async fn ready(State(service): State<Arc<Service>>) -> Response {
    let reads = tokio::time::timeout(Duration::from_secs(5), service.ledger.lines(0, 1)).await;
    if service.ledger.is_open() && matches!(reads, Ok(Ok(_))) {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
}

#[expect(clippy::needless_pass_by_value, reason = "as the layer asks for it")]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let detail = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    tracing::error!(detail, "a fault of paygo");
    Problem::Unavailable.into_response()
}
