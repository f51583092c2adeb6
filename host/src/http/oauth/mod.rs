//! The authorization server over HTTP: its endpoints, which need no token. Tokens, codes and secrets come in bodies alone.

mod authorize;
mod metadata;
mod page;
mod register;
mod revoke;
mod token;

pub(super) use metadata::METADATA;

use super::peers::Peers;
use super::problem::{Problem, after};
use crate::auth::oauth::{AuthorizationServer, ErrorCode, OAuthError, Params, RequestRow};
use crate::clock::Clock;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use metadata::Givers;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Where the page is that asks for consent. Its form is the one thing that web pages of this server's own may send.
pub(super) const AUTHORIZE: &str = "/oauth/authorize";
const TOKEN: &str = "/oauth/token";
const REVOKE: &str = "/oauth/revoke";
const REGISTER: &str = "/oauth/register";

/// All of the endpoints that are asked by name.
pub(super) const PATHS: [&str; 5] = [AUTHORIZE, TOKEN, REVOKE, REGISTER, METADATA];

/// The largest body of a request, bytes.
const MAX_BODY: usize = 64 << 10;

/// How long a body may take to come.
const BODY: Duration = Duration::from_secs(10);

/// What the endpoints are answered from.
pub(super) struct OAuth {
    server: AuthorizationServer,
    /// Tells the owner of a request that waits.
    tell: Box<dyn Fn(&RequestRow) + Send + Sync>,
    requests: Peers,
    registrations: Peers,
    tokens: Peers,
}

impl OAuth {
    /// The endpoints of an authorization server; `tell` is given each request that waits for its owner.
    pub fn new(
        server: AuthorizationServer,
        clock: &Arc<dyn Clock>,
        tell: Box<dyn Fn(&RequestRow) + Send + Sync>,
    ) -> Self {
        let peers = |rate, size| Peers::new(clock, rate, size);
        Self { server, tell, requests: peers(1.0, 40.0), registrations: peers(1.0, 40.0), tokens: peers(200.0, 1000.0) }
    }

    /// Runs `work`, which waits for the disk.
    async fn run<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&AuthorizationServer) -> T + Send + 'static,
    ) -> Result<T, OAuthError> {
        let done = tokio::task::spawn_blocking(move || work(&self.server)).await;
        done.map_err(|error| OAuthError::new(ErrorCode::ServerError, error.to_string()))
    }
}

/// The routes: what says who gives access, if anybody does, and the endpoints of the authorization server, if there is one.
/// `others` are authorization servers beside it whose tokens let in.
pub(super) fn router(oauth: Option<Arc<OAuth>>, others: Arc<[String]>) -> Router {
    let nothing = any(|| async { Problem::not_found("address") });
    let mut router = Router::new().route("/.well-known/{*name}", nothing);
    if oauth.is_some() || !others.is_empty() {
        router = router.merge(metadata::resource_router(Givers { own: oauth.is_some(), others }));
    }
    let Some(oauth) = oauth else { return router };
    let routes = Router::new()
        .merge(metadata::router())
        .merge(authorize::router())
        .merge(token::router())
        .merge(revoke::router())
        .merge(register::router())
        .method_not_allowed_fallback(async || Problem::not_done_so());
    router.merge(routes.with_state(oauth))
}

/// Why an endpoint for programs does not do what it was asked.
enum Failure {
    Error(OAuthError),
    /// Too much was asked for; after this time it may be tried again.
    TooMany(Duration),
    /// A client has tried to prove who it is, as none can here.
    Credentials,
}

impl From<OAuthError> for Failure {
    fn from(error: OAuthError) -> Self {
        Self::Error(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, error, retry) = match self {
            Self::Error(error) => (status(error.code), error, None),
            Self::TooMany(wait) => {
                let error = OAuthError::new(ErrorCode::TemporarilyUnavailable, "too much is asked for at a time");
                (StatusCode::TOO_MANY_REQUESTS, error, Some(wait))
            }
            Self::Credentials => {
                let error =
                    OAuthError::new(ErrorCode::InvalidClient, "clients have no secret here: send client_id alone");
                (StatusCode::UNAUTHORIZED, error, None)
            }
        };
        let body = json!({ "error": error.code.as_str(), "error_description": error.description });
        let mut response = json_response(status, &body);
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static(r#"Basic realm="headcount""#);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(wait) =
            retry.or_else(|| (status == StatusCode::SERVICE_UNAVAILABLE).then_some(Duration::from_secs(1)))
        {
            response.headers_mut().insert(header::RETRY_AFTER, after(wait));
        }
        response
    }
}

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// An answer that nobody keeps (RFC 6749, section 5.1).
fn json_response(status: StatusCode, body: &serde_json::Value) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store"), (header::PRAGMA, "no-cache")];
    (status, headers, body.to_string()).into_response()
}

/// The parameters that a program posts. What an address carries stands in logs, and none of it is heeded.
async fn posted(request: Request) -> Result<Params, Failure> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return Err(Failure::Credentials);
    }
    Ok(form(request).await?)
}

/// The parameters of a form.
async fn form(request: Request) -> Result<Params, OAuthError> {
    let refused = |why| OAuthError::new(ErrorCode::InvalidRequest, why);
    if request.uri().query().is_some() {
        return Err(refused("parameters belong into the body, not into the address"));
    }
    if !is_of_type(&request, "application/x-www-form-urlencoded") {
        return Err(refused("the body has to be application/x-www-form-urlencoded"));
    }
    Params::parse(&body(request).await?)
}

/// Whether a request says once that its body is of this type.
fn is_of_type(request: &Request, wanted: &str) -> bool {
    let mut types = request.headers().get_all(header::CONTENT_TYPE).iter();
    let (Some(first), None) = (types.next(), types.next()) else { return false };
    let essence = first.to_str().ok().and_then(|text| text.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

/// A body, read to its end.
async fn body(request: Request) -> Result<axum::body::Bytes, OAuthError> {
    let read = timeout(BODY, to_bytes(request.into_body(), MAX_BODY)).await;
    let refused = |why| OAuthError::new(ErrorCode::InvalidRequest, why);
    read.map_err(|_| refused("the body did not come in time"))?
        .map_err(|_| refused("the body has broken off, or is larger than 64 KiB"))
}
