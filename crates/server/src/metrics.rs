//! Numbers for Prometheus: how the service does, and how full the datasets are.

use crate::Service;
use crate::access::Caller;
use crate::problem::Problem;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use paygo_ledger::request::Needs;
use std::sync::Arc;
use std::time::Instant;

const ABOUT: Metadata<'static> = Metadata::new("paygo", Level::INFO, None);
/// Bounds of the buckets of how long an answer takes, in seconds.
const SECONDS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0];

/// A recorder of this service's own.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
}

fn key(name: &'static str, labels: Vec<Label>) -> Key {
    Key::from_parts(name, labels)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new().set_buckets(&SECONDS);
        let recorder = builder.unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
        let about = |name: &'static str, text: &'static str| {
            recorder.describe_counter(name.into(), None, text.into());
        };
        about("paygo_requests_total", "Answers, by route, method and status.");
        about("paygo_decisions_total", "Decisions, by dataset.");
        let about = |name: &'static str, text: &'static str| recorder.describe_gauge(name.into(), None, text.into());
        about("paygo_spent_share", "The part of a dataset's budget that is spent, of its fullest account.");
        about("paygo_reservations_open", "Reservations that may still be cancelled.");
        about("paygo_log_entries", "Entries of the log.");
        recorder.describe_histogram("paygo_request_seconds".into(), None, "How long an answer takes.".into());
        Self { recorder }
    }

    /// What was measured by now. Called now and then, so that what is measured does not pile up.
    pub(crate) fn upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>, value: f64) {
        self.recorder.register_gauge(&key(name, labels), &ABOUT).set(value);
    }

    fn count(&self, name: &'static str, labels: Vec<Label>) -> metrics::Counter {
        self.recorder.register_counter(&key(name, labels), &ABOUT)
    }
}

/// Counts answers and how long they take.
pub(crate) async fn measure(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = request.method().as_str().to_owned();
    let start = Instant::now();
    let response = next.run(request).await;
    let (took, status) = (start.elapsed(), response.status());
    tracing::debug!(method, route, status = status.as_u16(), seconds = took.as_secs_f64(), "answered");
    let metrics = &service.metrics;
    let time = key("paygo_request_seconds", vec![Label::new("route", route.clone())]);
    metrics.recorder.register_histogram(&time, &ABOUT).record(took.as_secs_f64());
    // A client must not be able to make up labels.
    let known = ["GET", "HEAD", "POST", "DELETE"].contains(&method.as_str());
    let method = if known { method } else { "other".to_owned() };
    let labels = vec![
        Label::new("route", route),
        Label::new("method", method),
        Label::new("status", status.as_str().to_owned()),
    ];
    metrics.count("paygo_requests_total", labels).increment(1);
    response
}

/// The numbers by now, for an auditor's token.
pub(crate) async fn show(State(service): State<Arc<Service>>, caller: Caller) -> Result<Response, Problem> {
    caller.may(Needs::Audit, None)?;
    #[expect(clippy::cast_precision_loss, reason = "gauges are doubles")]
    let double = |n: u64| n as f64;
    let metrics = &service.metrics;
    for dataset in service.ledger.overview(|_| true).await? {
        let label = || Label::new("dataset", dataset.name.to_string());
        for (word, count) in [("admit", dataset.admitted), ("refuse", dataset.refused)] {
            metrics.count("paygo_decisions_total", vec![label(), Label::new("decision", word)]).absolute(count);
        }
        metrics.gauge("paygo_spent_share", vec![label()], dataset.fullest.map_or(0.0, |account| account.share));
        metrics.gauge("paygo_reservations_open", vec![label()], double(dataset.reservations));
    }
    metrics.gauge("paygo_log_entries", Vec::new(), double(service.ledger.read(paygo_ledger::state::State::seq)));
    let text = metrics.recorder.handle().render();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
