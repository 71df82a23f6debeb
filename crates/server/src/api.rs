//! The API: JSON under `/v1`, described by the table of requests itself.

use crate::Service;
use crate::access::Caller;
use crate::problem::{Problem, ProblemBody};
use axum::extract::rejection::{BytesRejection, FailedToBufferBody, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Json, Router};
use paygo_ledger::request::{AskAsync, Described, Method, Needs, Request, Schema, Subject, Visit, visit_all};
use paygo_ledger::views::TokenView;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, Required, ResponseBuilder};
use utoipa::{IntoParams, OpenApi, ToSchema};

/// The longest body that is read.
pub(crate) const MAX_BODY: usize = 1 << 20;
/// Bytes of a request that are logged.
const MAX_LOGGED: usize = 1000;
/// Lines of the log in one answer.
const MAX_LINES: u64 = 10_000;

#[derive(OpenApi)]
#[openapi(
    info(title = "paygo", description = "A durable privacy budget that a whole organization shares. A refusal is an answer: \
        `200` with `\"decision\": \"refuse\"`. Every request to spend has an id made by whoever asks; a retry with the same id hears the \
        first answer and is charged once."),
    paths(show_caller, read_log),
    modifiers(&Bearer),
    security(("token" = []))
)]
struct Description;

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        openapi.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

/// Everything under `/v1`, and its description.
pub(crate) fn router() -> (Router<Arc<Service>>, utoipa::openapi::OpenApi) {
    let router = Router::new().route("/v1/me", get(show_caller)).route("/v1/log", get(read_log));
    let mut routes = Routes { router, description: Description::openapi() };
    visit_all(&mut routes);
    (routes.router, routes.description)
}

/// Requests that are answered, and how that is described.
struct Routes {
    router: Router<Arc<Service>>,
    description: utoipa::openapi::OpenApi,
}

impl Visit for Routes {
    fn visit<R: Request>(&mut self) {
        let (filter, method) = match R::METHOD {
            Method::Get => (MethodFilter::GET, HttpMethod::Get),
            Method::Post | Method::PostOnce => (MethodFilter::POST, HttpMethod::Post),
            Method::Delete => (MethodFilter::DELETE, HttpMethod::Delete),
        };
        self.router = std::mem::take(&mut self.router).route(R::PATH, on(filter, answer::<R>));
        let described = R::described();
        self.description.paths.add_path_operation(R::PATH, vec![method], operation::<R>(&described));
        self.description.components.get_or_insert_default().schemas.extend(described.components);
    }
}

/// What a request looks like from outside.
fn operation<R: Request>(described: &Described) -> Operation {
    let json = |schema: &Schema| ContentBuilder::new().schema(Some(schema.clone())).build();
    let response = |content| ResponseBuilder::new().content("application/json", content).build();
    let problem = Ref::from_schema_name(ProblemBody::name()).into();
    let mut operation = OperationBuilder::new()
        .tag(R::PATH.split('/').nth(2).unwrap_or_default())
        .operation_id(Some(R::NAME))
        .summary(Some(R::SENTENCE))
        .response("200", response(json(&described.answer)))
        .response("4XX", response(json(&problem)));
    if let (Some(name), Some(schema)) = (R::About::PLACEHOLDER, &described.about) {
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
        operation = operation.parameter(parameter.schema(Some(schema.clone())));
    }
    if let Some(words) = &described.words {
        let body = RequestBodyBuilder::new().content("application/json", json(words)).required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    operation.build()
}

/// Answers a request of any kind: what the caller may comes first, then what they say.
async fn answer<R: Request>(
    State(service): State<Arc<Service>>,
    caller: Caller,
    request: axum::extract::Request,
) -> Result<Json<R::Answer>, Problem> {
    let (mut parts, body) = request.into_parts();
    let about = match subject::<R::About>(&mut parts, &service).await {
        Ok(about) => about,
        Err(problem) => {
            caller.may(R::NEEDS, None)?;
            return Err(problem);
        }
    };
    let by = caller.may(R::NEEDS, about.dataset())?;
    let request: R = words(axum::extract::Request::from_parts(parts, body), &service).await?;
    let changes = R::METHOD != Method::Get && matches!(R::NEEDS, Needs::Keep | Needs::Administer);
    let told = changes.then(|| (by.name.clone(), serde_json::to_string(&request).unwrap_or_default()));
    let answer = service.ledger.by(by).ask(&about, request).await?;
    if let Some((holder, mut words)) = told {
        words.truncate(words.floor_char_boundary(MAX_LOGGED));
        // Not the answer itself: a token may be in it.
        let answer = serde_json::to_value(&answer).unwrap_or_default();
        let (entry, repeated) = (answer["entry"].as_u64(), answer["repeated"].as_bool());
        tracing::info!(%holder, about = about.in_path(), words, entry, repeated, hash = answer["hash"].as_str(), "{}", R::NAME);
    }
    Ok(Json(answer))
}

/// What the path is about.
async fn subject<S: Subject>(parts: &mut Parts, service: &Arc<Service>) -> Result<S, Problem> {
    if S::PLACEHOLDER.is_none() {
        return Ok(S::from_path("")?);
    }
    let Path(text) = Path::<String>::from_request_parts(parts, service).await.map_err(|_| Problem::NotFound)?;
    Ok(S::from_path(&text)?)
}

/// The words in the body.
async fn words<R: Request>(request: axum::extract::Request, service: &Arc<Service>) -> Result<R, Problem> {
    let bytes = if R::HAS_WORDS {
        axum::body::Bytes::from_request(request, service).await.map_err(|rejection| match rejection {
            BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => Problem::TooLarge(MAX_BODY),
            other @ (BytesRejection::FailedToBufferBody(_) | _) => Problem::Malformed(other.to_string()),
        })?
    } else {
        axum::body::Bytes::new()
    };
    R::from_body(&bytes).map_err(|error| Problem::Malformed(error.to_string()))
}

/// Whom the token belongs to, and what it allows.
#[utoipa::path(get, path = "/v1/me", tag = "tokens",
    responses((status = 200, body = TokenView), (status = "4XX", body = ProblemBody)))]
async fn show_caller(caller: Caller) -> Json<TokenView> {
    Json(TokenView::from(&caller.token))
}

/// Which part of the log.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Page {
    /// The entry after which it begins; from the first unless given.
    #[serde(default)]
    after: u64,
    /// How many lines, at most 10,000; a thousand unless given.
    #[serde(default = "thousand")]
    limit: u64,
}

const fn thousand() -> u64 {
    1000
}

/// The log: a line of JSON for each entry.
#[utoipa::path(get, path = "/v1/log", tag = "log", params(Page),
    responses((status = 200, body = String, content_type = "application/x-ndjson"), (status = "4XX", body = ProblemBody)))]
async fn read_log(
    State(service): State<Arc<Service>>,
    caller: Caller,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Problem> {
    caller.may(Needs::Audit, None)?;
    let Query(Page { after, limit }) = page.map_err(|rejection| Problem::Malformed(rejection.to_string()))?;
    let mut lines = service.ledger.lines(after, limit.min(MAX_LINES)).await?.join("\n");
    if !lines.is_empty() {
        lines.push('\n');
    }
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/x-ndjson")], lines).into_response())
}
