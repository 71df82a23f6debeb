//! The API: JSON under `/v1`, described by the code itself.

use crate::Service;
use crate::access::Caller;
use crate::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use paygo_ledger::Name;
use paygo_ledger::entry::Digest;
use paygo_ledger::views::{DatasetView, Decision, HeadView, Overview, TokenView};
use paygo_ledger::words::{
    Answer, Cancel, Commit, Done, Granted, NewAllowance, NewBlocks, NewDataset, NewToken, Question, Reserve, Spend,
    WhatIf,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{IntoParams, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest body that is read.
pub(crate) const LONGEST_BODY: usize = 1 << 20;
/// Lines of the log in one answer.
const MOST_LINES: u64 = 10_000;

#[derive(OpenApi)]
#[openapi(
    info(title = "paygo", description = "A durable privacy budget that a whole organization shares. A refusal is an answer: \
        `200` with `\"decision\": \"refuse\"`. Every request to spend has an id made by whoever asks; a retry with the same id hears the \
        first answer and is charged once."),
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

/// Everything under `/v1`.
pub(crate) fn router() -> OpenApiRouter<Arc<Service>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(list_datasets, create_dataset))
        .routes(routes!(show_dataset))
        .routes(routes!(list_decisions))
        .routes(routes!(spend))
        .routes(routes!(reserve))
        .routes(routes!(commit))
        .routes(routes!(cancel))
        .routes(routes!(what_if))
        .routes(routes!(add_blocks))
        .routes(routes!(set_allowance))
        .routes(routes!(close_dataset))
        .routes(routes!(list_tokens, grant_token))
        .routes(routes!(revoke_token))
        .routes(routes!(show_caller))
        .routes(routes!(read_log))
        .routes(routes!(show_head))
}

/// A body of JSON, whatever its type is called.
struct Body<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<Service>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<Self, Problem> {
        let bytes = axum::body::Bytes::from_request(request, service).await.map_err(|rejection| match rejection {
            BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
                Problem::TooLarge(LONGEST_BODY)
            }
            other @ (BytesRejection::FailedToBufferBody(_) | _) => Problem::Malformed(other.to_string()),
        })?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| Problem::Malformed(error.to_string()))
    }
}

/// The dataset in the path.
struct Dataset(Name);

impl FromRequestParts<Arc<Service>> for Dataset {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, service).await.map_err(|_| Problem::NotFound)?;
        Ok(Self(Name::new(name)?))
    }
}

type Answered<T> = Result<Json<T>, Problem>;

/// All datasets that the token is about, in short.
#[utoipa::path(get, path = "/v1/datasets", tag = "datasets",
    responses((status = 200, body = Vec<Overview>), (status = "4XX", body = ProblemBody)))]
async fn list_datasets(State(service): State<Arc<Service>>, caller: Caller) -> Answered<Vec<Overview>> {
    Ok(Json(service.ledger.overview(|name| caller.token.covers(name)).await?))
}

/// Make a dataset with a budget, fixed for good.
#[utoipa::path(post, path = "/v1/datasets", tag = "datasets", request_body = NewDataset,
    responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn create_dataset(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Body(new): Body<NewDataset>,
) -> Answered<Done> {
    let by = caller.administers()?;
    let dataset = new.name.clone();
    let done = service.ledger.create_dataset(&by, new).await?;
    tracing::info!(holder = %by.name, %dataset, repeated = done.repeated, "create");
    Ok(Json(done))
}

/// A dataset: what is spent, left and held, by whom, and over time.
#[utoipa::path(get, path = "/v1/datasets/{dataset}", tag = "datasets", params(("dataset" = Name, Path)),
    responses((status = 200, body = DatasetView), (status = "4XX", body = ProblemBody)))]
async fn show_dataset(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
) -> Answered<DatasetView> {
    caller.looks(&dataset)?;
    Ok(Json(service.ledger.view(&dataset).await?))
}

/// The latest decisions, newest first, at most a hundred.
#[utoipa::path(get, path = "/v1/datasets/{dataset}/decisions", tag = "datasets", params(("dataset" = Name, Path)),
    responses((status = 200, body = Vec<Decision>), (status = "4XX", body = ProblemBody)))]
async fn list_decisions(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
) -> Answered<Vec<Decision>> {
    caller.looks(&dataset)?;
    Ok(Json(service.ledger.decisions(&dataset, 100).await?))
}

/// Ask, and be charged at once if admitted.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/spend", tag = "requests", request_body = Spend,
    params(("dataset" = Name, Path)), responses((status = 200, body = Answer), (status = "4XX", body = ProblemBody)))]
async fn spend(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(spend): Body<Spend>,
) -> Answered<Answer> {
    Ok(Json(service.ledger.spend(&caller.spends(&dataset)?, &dataset, spend).await?))
}

/// Ask, and hold what is admitted until it is committed or cancelled; what expires stays charged.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/reserve", tag = "requests", request_body = Reserve,
    params(("dataset" = Name, Path)), responses((status = 200, body = Answer), (status = "4XX", body = ProblemBody)))]
async fn reserve(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(reserve): Body<Reserve>,
) -> Answered<Answer> {
    Ok(Json(service.ledger.reserve(&caller.spends(&dataset)?, &dataset, reserve).await?))
}

/// Say how much of a reservation was used.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/commit", tag = "requests", request_body = Commit,
    params(("dataset" = Name, Path)), responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn commit(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(commit): Body<Commit>,
) -> Answered<Done> {
    Ok(Json(service.ledger.commit(&caller.spends(&dataset)?, &dataset, commit).await?))
}

/// Give back what was not used of a reservation, on your word that nothing of it was drawn.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/cancel", tag = "requests", request_body = Cancel,
    params(("dataset" = Name, Path)), responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn cancel(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(cancel): Body<Cancel>,
) -> Answered<Done> {
    Ok(Json(service.ledger.cancel(&caller.spends(&dataset)?, &dataset, cancel).await?))
}

/// What would be answered now; nothing is charged.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/what-if", tag = "requests", request_body = Question,
    params(("dataset" = Name, Path)), responses((status = 200, body = WhatIf), (status = "4XX", body = ProblemBody)))]
async fn what_if(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(question): Body<Question>,
) -> Answered<WhatIf> {
    Ok(Json(service.ledger.what_if(&caller.looks(&dataset)?, &dataset, question).await?))
}

/// Add blocks, each with the whole budget.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/blocks", tag = "datasets", request_body = NewBlocks,
    params(("dataset" = Name, Path)), responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn add_blocks(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(new): Body<NewBlocks>,
) -> Answered<Done> {
    let by = caller.keeps(&dataset)?;
    let done = service.ledger.add_blocks(&by, &dataset, new).await?;
    tracing::info!(holder = %by.name, %dataset, repeated = done.repeated, "add blocks");
    Ok(Json(done))
}

/// Set a ceiling for some of those who ask, or set it anew.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/allowances", tag = "datasets", request_body = NewAllowance,
    params(("dataset" = Name, Path)), responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn set_allowance(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
    Body(new): Body<NewAllowance>,
) -> Answered<Done> {
    let by = caller.keeps(&dataset)?;
    let allowance = new.name.clone();
    let done = service.ledger.set_allowance(&by, &dataset, new).await?;
    tracing::info!(holder = %by.name, %dataset, %allowance, repeated = done.repeated, "set an allowance");
    Ok(Json(done))
}

/// Close a dataset for good.
#[utoipa::path(post, path = "/v1/datasets/{dataset}/close", tag = "datasets", params(("dataset" = Name, Path)),
    responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn close_dataset(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Dataset(dataset): Dataset,
) -> Answered<Done> {
    let by = caller.keeps(&dataset)?;
    let done = service.ledger.close_dataset(&by, &dataset).await?;
    tracing::info!(holder = %by.name, %dataset, repeated = done.repeated, "close");
    Ok(Json(done))
}

/// All tokens, by their hashes.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens",
    responses((status = 200, body = Vec<TokenView>), (status = "4XX", body = ProblemBody)))]
async fn list_tokens(State(service): State<Arc<Service>>, caller: Caller) -> Answered<Vec<TokenView>> {
    caller.administers()?;
    Ok(Json(service.ledger.read(|state| state.tokens().map(TokenView::from).collect())))
}

/// Grant a token. It is told once, here.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", request_body = NewToken,
    responses((status = 200, body = Granted), (status = "4XX", body = ProblemBody)))]
async fn grant_token(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Body(new): Body<NewToken>,
) -> Answered<Granted> {
    let by = caller.administers()?;
    let (to, role) = (new.holder.clone(), new.role);
    let granted = service.ledger.grant(&by, new).await?;
    tracing::info!(holder = %by.name, %to, %role, hash = %granted.hash, "grant a token");
    Ok(Json(granted))
}

/// Revoke a token.
#[utoipa::path(delete, path = "/v1/tokens/{hash}", tag = "tokens", params(("hash" = Digest, Path)),
    responses((status = 200, body = Done), (status = "4XX", body = ProblemBody)))]
async fn revoke_token(State(service): State<Arc<Service>>, caller: Caller, Path(hash): Path<String>) -> Answered<Done> {
    let by = caller.administers()?;
    let hash: Digest = hash.parse().map_err(|_| paygo_ledger::state::Mistake::UnknownToken)?;
    let done = service.ledger.revoke(&by, hash).await?;
    tracing::info!(holder = %by.name, %hash, repeated = done.repeated, "revoke a token");
    Ok(Json(done))
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
    caller.audits()?;
    let Query(Page { after, limit }) = page.map_err(|rejection| Problem::Malformed(rejection.to_string()))?;
    let mut lines = service.ledger.lines(after, limit.min(MOST_LINES)).await?.join("\n");
    if !lines.is_empty() {
        lines.push('\n');
    }
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/x-ndjson")], lines).into_response())
}

/// Where the log ends: kept elsewhere, `paygo ledger verify --receipt` insists on it later.
#[utoipa::path(get, path = "/v1/log/head", tag = "log",
    responses((status = 200, body = HeadView), (status = "4XX", body = ProblemBody)))]
async fn show_head(State(service): State<Arc<Service>>, caller: Caller) -> Answered<HeadView> {
    caller.audits()?;
    Ok(Json(service.ledger.read(|state| HeadView::from(state))))
}
