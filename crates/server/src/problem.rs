//! What is wrong, as it is answered: a word for programs and a sentence for people. Details of the inside go to the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use paygo_accounting::params::OutOfDomain;
use paygo_ledger::LedgerError;
use paygo_ledger::state::Mistake;
use serde::Serialize;
use utoipa::ToSchema;

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// No token, or none that is known.
    #[error("no token, or one that is wrong, revoked or expired; expected Authorization: Bearer paygo_…")]
    Unauthenticated,
    /// A token that does not allow it.
    #[error("this token does not allow it: {0}")]
    Forbidden(&'static str),
    /// A page of somebody else may have sent it.
    #[error("a request with a cookie needs the header X-Paygo")]
    CrossSite,
    /// Too often.
    #[error("too many requests; try again in a second")]
    TooManyRequests,
    /// Not JSON.
    #[error("the body is not the JSON that is expected: {0}")]
    Malformed(String),
    /// More than is read.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// Nothing is there.
    #[error("there is nothing here; /docs describes the API")]
    NotFound,
    /// Not this way.
    #[error("this address has no such method; /docs describes the API")]
    Method,
    /// A request that is not one. Nothing was charged.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The store failed.
    #[error("the ledger cannot say; whether it was charged is not known, and a retry with the same id tells")]
    Unavailable,
    /// The log contradicts itself.
    #[error("the ledger's log contradicts itself; nothing is decided any more")]
    Broken,
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Mistake(Mistake::TokenGone) => Self::Unauthenticated,
            LedgerError::Mistake(mistake) => Self::Mistake(mistake),
            LedgerError::Unavailable(detail) => {
                tracing::error!(%detail, "the store failed");
                Self::Unavailable
            }
            LedgerError::Broken(broken) => {
                tracing::error!(detail = %broken, "the log contradicts itself");
                Self::Broken
            }
        }
    }
}

impl From<OutOfDomain> for Problem {
    fn from(error: OutOfDomain) -> Self {
        Self::Mistake(error.into())
    }
}

/// A problem, as it is written.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// A word for programs, which stays.
    #[schema(example = "unknown_dataset")]
    code: &'static str,
    /// A sentence for people.
    message: String,
}

impl Problem {
    const fn code(&self) -> &'static str {
        match self {
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden(_) => "forbidden",
            Self::CrossSite => "cross_site",
            Self::TooManyRequests => "too_many_requests",
            Self::Malformed(_) => "malformed",
            Self::TooLarge(_) => "too_large",
            Self::NotFound => "not_found",
            Self::Method => "method_not_allowed",
            Self::Mistake(mistake) => mistake.code(),
            Self::Unavailable => "unavailable",
            Self::Broken => "broken",
        }
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) | Self::CrossSite => StatusCode::FORBIDDEN,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Mistake(mistake) => mistake_status(mistake),
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

const fn mistake_status(mistake: &Mistake) -> StatusCode {
    match mistake {
        Mistake::UnknownDataset(_) | Mistake::UnknownReservation(_) | Mistake::UnknownToken => StatusCode::NOT_FOUND,
        Mistake::DatasetExists(_)
        | Mistake::Closed(_)
        | Mistake::IdUsed(_)
        | Mistake::ReservationClosed { .. }
        | Mistake::UsedMeanwhile(_)
        | Mistake::LowerCeiling { .. } => StatusCode::CONFLICT,
        Mistake::TokenGone => StatusCode::UNAUTHORIZED,
        Mistake::ExplicitCurve => StatusCode::FORBIDDEN,
        Mistake::UnknownBlock { .. }
        | Mistake::BlocksNeeded(_)
        | Mistake::NoBlocks(_)
        | Mistake::EmptyBlocks
        | Mistake::Used { .. }
        | Mistake::NothingDrawn
        | Mistake::TooMany { .. }
        | Mistake::Cost(_)
        | Mistake::Unpriced(_)
        | Mistake::Filter(_)
        | Mistake::OutOfDomain(_) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody { code: self.code(), message: self.to_string() };
        let mut response = (self.status(), Json(body)).into_response();
        match self {
            Self::Unauthenticated => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooManyRequests | Self::Unavailable => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Forbidden(_)
            | Self::CrossSite
            | Self::Malformed(_)
            | Self::TooLarge(_)
            | Self::NotFound
            | Self::Method
            | Self::Mistake(_)
            | Self::Broken => {}
        }
        response
    }
}
