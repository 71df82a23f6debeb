//! The dashboard: pages made here, one small script, one style sheet, nothing from anywhere else.
//!
//! A page is whole without the script; with it, the parts marked `data-live` are kept up to date, and forms ask the API.

mod chart;
mod dataset;
mod overview;
mod tokens;

use crate::Service;
use crate::access::{COOKIE, Caller, peer};
use crate::problem::Problem;
use axum::Form;
use axum::Router;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use chrono::DateTime;
use maud::{DOCTYPE, Markup, html};
use paygo_accounting::wire::{Mechanism, Number, Side};
use paygo_ledger::entry::Role;
use paygo_ledger::state::Token;
use paygo_ledger::views::AccountView;
use serde::Deserialize;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How often a page hears of changes at most.
const PULSE: Duration = Duration::from_millis(250);
/// How long a browser keeps a token, in seconds.
const KEPT: u32 = 12 * 3600;

pub(crate) fn router() -> Router<Arc<Service>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/new", get(overview::new))
        .route("/datasets/{dataset}", get(dataset::show))
        .route("/tokens", get(tokens::show))
        .route("/login", get(login_page).post(log_in))
        .route("/logout", post(log_out))
        .route("/events", get(events))
        .route("/assets/dashboard.css", get(|| asset("text/css", include_str!("../../assets/dashboard.css"))))
        .route("/assets/dashboard.js", get(|| asset("text/javascript", include_str!("../../assets/dashboard.js"))))
        .route("/assets/icon.svg", get(|| asset("image/svg+xml", include_str!("../../assets/icon.svg"))))
}

async fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Somebody with a browser: whoever has no token is sent to log in, and what is wrong is shown on a page.
pub(crate) struct Visitor(pub(crate) Caller);

impl FromRequestParts<Arc<Service>> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Response> {
        match Caller::from_request_parts(parts, service).await {
            Ok(caller) => Ok(Self(caller)),
            Err(Problem::Unauthenticated) => Err(Redirect::to("/login").into_response()),
            Err(other) => Err(Wrong(other).into_response()),
        }
    }
}

/// A problem as a page.
pub(crate) struct Wrong(Problem);

impl<P: Into<Problem>> From<P> for Wrong {
    fn from(problem: P) -> Self {
        Self(problem.into())
    }
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let text = self.0.to_string();
        let status = self.0.into_response().status();
        let body = html! { h1 { (status) } p role="alert" { (text) } p { a href="/" { "All datasets" } } };
        (status, layout("Something is wrong", None, &body)).into_response()
    }
}

type Page = Result<Markup, Wrong>;

/// A page around its content.
fn layout(title: &str, token: Option<&Token>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · paygo" }
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/dashboard.css";
                script type="module" src="/assets/dashboard.js" {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    a.brand href="/" { "paygo" }
                    @if let Some(token) = token {
                        nav aria-label="Main" {
                            a href="/" { "Datasets" }
                            @if is_admin(token) {
                                a href="/new" { "New dataset" }
                                a href="/tokens" { "Tokens" }
                            }
                            a href="/docs/" { "API" }
                        }
                        form method="post" action="/logout" {
                            span { (token.holder) ", " (token.role) }
                            button.quiet type="submit" { "Log out" }
                        }
                    }
                }
                main #content { (content) }
                p #live-state role="status" {}
            }
        }
    }
}

/// Whether a token is one of an admin of everything.
fn is_admin(token: &Token) -> bool {
    token.role == Role::Admin && token.datasets.is_none()
}

/// A time for people, with the exact one for programs.
fn time(at: u64) -> Markup {
    let moment = i64::try_from(at).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    html! {
        time datetime=(moment.format("%Y-%m-%dT%H:%M:%S%.3fZ")) { (moment.format("%Y-%m-%d %H:%M:%S")) " UTC" }
    }
}

/// A mechanism in a few words: `60 × gaussian, noise multiplier 10`.
fn mechanism(mechanism: &Mechanism) -> String {
    if let Mechanism::Repeat { count, of } = mechanism {
        return format!("{} × {}", count.text(), self::mechanism(of));
    }
    let parts = mechanism.parts();
    if !parts.is_empty() {
        let word = if matches!(mechanism, Mechanism::Parallel(_)) { " in parallel with " } else { " and " };
        return parts.iter().map(self::mechanism).collect::<Vec<_>>().join(word);
    }
    let plain = |text: &str| text.replace('_', " ");
    let Ok(Value::Object(tagged)) = serde_json::to_value(mechanism) else { return String::new() };
    let each = tagged.iter().map(|(word, fields)| {
        let fields = fields.as_object().into_iter().flatten();
        let fields: String = fields.map(|(name, value)| format!(", {} {}", plain(name), shortened(value))).collect();
        format!("{}{fields}", plain(word))
    });
    each.collect()
}

/// A field's value, without what nobody would read.
fn shortened(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(many) if many.len() > 4 => format!("{} numbers", many.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// What is spent of what, as a bar and in words.
fn meter(account: &AccountView) -> Markup {
    let spent = account.spent.iter().map(|(name, spent)| {
        let budget = account.budget.get(name).map(|budget| budget.shown(Side::Down)).unwrap_or_default();
        format!("{} {} of {budget}", symbol(name), spent.shown(Side::Up))
    });
    let (percent, level) = (percent(account.share), level(account.share));
    html! {
        svg.meter.(level) viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=(format!("{percent} spent")) {
            rect.empty width="100" height="6" {}
            rect.full width=(format!("{:.2}", (100.0 * account.share).clamp(0.0, 100.0))) height="6" {}
        }
        span.amount { (spent.collect::<Vec<_>>().join(", ")) }
    }
}

/// How full, in one word: for colors, which never say anything alone.
const fn level(share: f64) -> &'static str {
    if share >= 0.9 {
        "high"
    } else if share >= 0.6 {
        "middle"
    } else {
        "low"
    }
}

/// A part of a whole; what is spent is never shown as less.
fn percent(share: f64) -> String {
    format!("{:.0} %", (100.0 * share).ceil())
}

/// A meter's name for people.
fn symbol(name: &str) -> &str {
    match name {
        "epsilon" => "ε",
        "delta" => "δ",
        "rho" => "ρ",
        "mu" => "μ",
        "mu_squared" => "μ²",
        "clock" => "share of the clock",
        other => other,
    }
}

/// A number for pictures.
fn double(number: &Number) -> f64 {
    number.nearest("number").unwrap_or(f64::INFINITY)
}

async fn login_page(State(service): State<Arc<Service>>) -> Markup {
    let empty = service.ledger.read(|state| state.datasets().next().is_none());
    login(None, empty)
}

fn login(wrong: Option<&str>, empty: bool) -> Markup {
    let content = html! {
        form.login method="post" action="/login" {
            h1 { "Log in" }
            @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required autofocus;
            button type="submit" { "Log in" }
            @if empty {
                p { "The first start of " code { "paygo serve" } " printed the admin's token." }
            }
            p { "An admin grants tokens, here or with " code { "paygo ledger grant" } "." }
        }
    };
    layout("Log in", None, &content)
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

/// Keeps a token in the browser, out of reach for scripts and never sent from another site.
async fn log_in(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if is_from_elsewhere(&parts.headers) {
        return Wrong(Problem::CrossSite).into_response();
    }
    let (from, secure) = (peer(&parts), service.secure || is_behind_tls(&parts.headers));
    let form = Form::<Login>::from_request(Request::from_parts(parts, body), &service).await;
    let token = form.as_ref().map(|Form(login)| login.token.trim()).unwrap_or_default();
    if service.holder(token).is_none() {
        let status = service.stranger(from).into_response().status();
        let wrong = if status == StatusCode::TOO_MANY_REQUESTS {
            "Too many attempts; try again in a second."
        } else {
            "This token is wrong, revoked or expired."
        };
        return (status, login(Some(wrong), false)).into_response();
    }
    keep(token, KEPT, secure)
}

async fn log_out(State(service): State<Arc<Service>>, headers: HeaderMap) -> Response {
    if is_from_elsewhere(&headers) {
        return Wrong(Problem::CrossSite).into_response();
    }
    keep("", 0, service.secure || is_behind_tls(&headers))
}

/// Whether a form was sent by a page of another site, which browsers say: nobody is to be logged in as somebody else, or out.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match (text("sec-fetch-site"), text("origin"), text("host")) {
        (Some(site), _, _) => !["same-origin", "none"].contains(&site),
        (None, Some(origin), Some(host)) => origin.split_once("://").map(|(_, place)| place) != Some(host),
        (None, Some(_), None) => true,
        (None, None, _) => false,
    }
}

/// Whether a proxy says that the browser came over TLS. Whoever makes that up makes only their own cookie stricter.
fn is_behind_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"https"))
}

fn keep(token: &str, seconds: u32, secure: bool) -> Response {
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    let mut response = Redirect::to(if seconds > 0 { "/" } else { "/login" }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// Says when something has changed, until the token or the service is no more. What has changed, the pages ask for themselves.
async fn events(
    State(service): State<Arc<Service>>,
    caller: Caller,
) -> Result<Sse<impl futures_util::Stream<Item = Result<Event, Infallible>>>, Problem> {
    let (changes, ending) = (service.ledger.changes(), service.ending.subscribe());
    let hash = caller.token.hash;
    let ticket = service.streams.take(hash).ok_or(Problem::TooManyRequests)?;
    let stream = futures_util::stream::unfold(
        (service, changes, ending, ticket),
        move |(service, mut changes, mut ending, ticket)| async move {
            let goes_on = tokio::select! {
                changed = changes.changed() => changed.is_ok(),
                _ = ending.wait_for(|ending| *ending) => false,
            };
            let now = service.ledger.now();
            let known = service.ledger.read(|state| state.token(&hash, now).is_some());
            if !goes_on || !known {
                return None;
            }
            tokio::time::sleep(PULSE).await;
            changes.mark_unchanged();
            Some((Ok(Event::default().event("change").data("look again")), (service, changes, ending, ticket)))
        },
    );
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_in_a_few_words() {
        let check = |json: &str, words: &str| {
            assert_eq!(mechanism(&serde_json::from_str(json).expect(json)), words);
        };
        check(r#"{"gaussian": {"noise_multiplier": 10}}"#, "gaussian, noise multiplier 10");
        check(
            r#"{"repeat": {"count": 60, "of": {"all_of": [{"laplace": {"scale": "0.5"}}, {"pure": {"epsilon": 1}}]}}}"#,
            "60 × laplace, scale 0.5 and pure, epsilon 1",
        );
        let orders = r#"{"renyi": {"orders": [2, 3, 4, 5, 6], "values": [1, 2, 3, 4, 5]}}"#;
        check(orders, "renyi, orders 5 numbers, values 5 numbers");
    }

    #[test]
    fn shares_are_not_shown_as_less() {
        assert_eq!([percent(0.0), percent(0.001), percent(0.991), percent(1.0)], ["0 %", "1 %", "100 %", "100 %"]);
        assert_eq!([level(0.59), level(0.6), level(0.9)], ["low", "middle", "high"]);
    }
}
