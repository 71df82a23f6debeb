//! Who asks, and what that allows.
//!
//! | | admin | steward | spender | auditor |
//! | --- | --- | --- | --- | --- |
//! | look at a dataset, what-if | ✓ | ✓ | ✓ | ✓ |
//! | spend, reserve, commit, cancel | ✓ | ✓ | ✓ | |
//! | blocks, allowances, close | ✓ | ✓ | | |
//! | create datasets; grant, list and revoke tokens | everywhere | | | |
//! | read the log, metrics | everywhere | | | everywhere |
//!
//! A token is about some datasets or all; *everywhere* needs one about all. Whether a dataset exists is told only to whom it concerns.

use crate::Service;
use crate::limits::Whose;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use paygo_ledger::Name;
use paygo_ledger::entry::Digest;
use paygo_ledger::ledger::Requester;
use paygo_ledger::request::Needs;
use paygo_ledger::state::{State, Token};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// The cookie that holds a token in a browser: out of reach for scripts, never sent from another site.
pub(crate) const COOKIE: &str = "paygo_token";

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Somebody whose token is known.
pub(crate) struct Caller {
    pub(crate) token: Token,
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Two lines by hand: axum-extra would bring two more crates for them.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

impl Service {
    /// Whoever holds a token.
    pub(crate) fn holder(&self, token: &str) -> Option<Token> {
        let now = self.ledger.now();
        self.ledger.read(|state: &State| state.token(&Digest::of(token), now).cloned())
    }

    /// An attempt without a token that is known: told so, and after some more to wait.
    pub(crate) fn stranger(&self, peer: IpAddr) -> Problem {
        if self.limiter.allows(Whose::Peer(peer), Instant::now()) {
            tracing::warn!(%peer, "no token, or none that is known");
            return Problem::Unauthenticated;
        }
        Problem::TooManyRequests
    }
}

/// The address that a request came from.
pub(crate) fn peer(parts: &Parts) -> IpAddr {
    parts.extensions.get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(address)| address.ip())
}

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let by_cookie = || cookie(&parts.headers).map(|token| (token, true));
        let given = bearer(&parts.headers).map(|token| (token, false)).or_else(by_cookie);
        let known = given.and_then(|(token, by_cookie)| Some((service.holder(token)?, by_cookie)));
        let Some((token, by_cookie)) = known else { return Err(service.stranger(peer(parts))) };
        if by_cookie && !parts.method.is_safe() && !parts.headers.contains_key("x-paygo") {
            tracing::warn!(holder = %token.holder, "a cookie without the header of our own pages");
            return Err(Problem::CrossSite);
        }
        if !service.limiter.allows(Whose::Token(token.hash), Instant::now()) {
            tracing::warn!(holder = %token.holder, "too many requests");
            return Err(Problem::TooManyRequests);
        }
        Ok(Self { token })
    }
}

impl Caller {
    fn requester(&self) -> Requester {
        let Token { holder, explicit_curves, hash, .. } = &self.token;
        Requester { name: holder.clone(), explicit_curves: *explicit_curves, token: Some(*hash) }
    }

    /// Whether the token allows something, with a dataset or without.
    pub(crate) fn may(&self, needs: Needs, dataset: Option<&Name>) -> Result<Requester, Problem> {
        let Token { holder, role, datasets, .. } = &self.token;
        let refused = |needs: Needs| {
            tracing::warn!(%holder, %role, what = needs.sentence(), "not allowed");
            Err(Problem::Forbidden(needs.sentence()))
        };
        if dataset.is_some_and(|dataset| !self.token.covers(dataset)) {
            return refused(Needs::Look);
        }
        if !needs.allows(*role) || (needs.is_everywhere() && datasets.is_some()) {
            return refused(needs);
        }
        Ok(self.requester())
    }
}
