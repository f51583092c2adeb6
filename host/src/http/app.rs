//! What is at which address.

use super::auth::{admitted, meant_for_us, not_permitted};
use super::connection::Connections;
use super::cors;
use super::doors::{At, Doors};
use super::oauth::{self, OAuth};
use super::problem::Problem;
use super::rest;
use super::traffic::{Traffic, counted};
use crate::auth::{Admitted, Gate, Principal};
use crate::mcp::Service;
use crate::mcp::http::{Endpoint, Refusal};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use std::error::Error;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The largest body of a request, bytes.
const MAX_BODY: usize = 4 << 20;

/// What the bodies of all requests that are being answered may have together, in units.
const BODIES: usize = 32 << 10;

/// Bytes of a body for one unit.
const UNIT: usize = 1 << 10;

/// How long the body of a request may take to come.
const BODY: Duration = Duration::from_secs(30);

/// Everything that requests are answered from.
pub(super) struct App {
    pub service: Arc<Service>,
    pub gate: Gate,
    pub endpoint: Endpoint,
    pub traffic: Traffic,
    pub connections: Arc<Connections>,
    /// When the program has started, Unix seconds, once somebody has asked for it: the clock may be set meanwhile.
    pub started: OnceLock<f64>,
    bodies: Arc<Semaphore>,
    oauth: Option<Arc<OAuth>>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl App {
    /// What is served behind these doors.
    pub fn new(
        endpoint: Endpoint,
        gate: Gate,
        doors: &Doors,
        oauth: Option<OAuth>,
        connections: Arc<Connections>,
    ) -> Self {
        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let hosts = own.into_iter().chain(doors.hosts.iter().map(|host| host.to_ascii_lowercase()));
        Self {
            service: Arc::clone(endpoint.service()),
            endpoint,
            gate,
            traffic: Traffic::default(),
            connections,
            started: OnceLock::new(),
            bodies: Arc::new(Semaphore::new(BODIES)),
            oauth: oauth.map(Arc::new),
            hosts: hosts.collect(),
            origins: doors.origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
        }
    }

    /// Whether a request for this host, which has come in at this address, is for this server, whatever its port.
    pub fn is_ours(&self, host: &str, at: At) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        self.hosts.contains(&host) || (address.is_some() && address == at.0)
    }

    /// Whether clients can find out who gives access.
    pub fn says_who_gives_access(&self) -> bool {
        self.oauth.is_some() || self.issuers().next().is_some()
    }

    /// Authorization servers beside this one whose tokens let in.
    fn issuers(&self) -> impl Iterator<Item = String> {
        self.gate.issuers().names().map(str::to_owned)
    }

    /// Whether web pages of this origin may send requests.
    pub fn is_allowed_origin(&self, origin: &str) -> bool {
        self.origins.contains(&origin.to_ascii_lowercase())
    }

    /// Whether those of any may.
    pub fn allows_origins(&self) -> bool {
        !self.origins.is_empty()
    }
}

/// The routes, each behind what it needs.
pub(super) fn router(app: Arc<App>) -> Router {
    let with_token = Router::new()
        .route("/mcp", any(mcp))
        .merge(rest::router(true))
        .fallback(|| async { Problem::not_found("address") })
        .layer(from_fn_with_state(Arc::clone(&app), admitted));
    rest::router(false)
        .merge(oauth::router(app.oauth.clone(), app.issuers().collect()).with_state(()))
        .merge(with_token)
        .layer(from_fn_with_state(Arc::clone(&app), meant_for_us))
        .layer(from_fn_with_state(Arc::clone(&app), cors::shared))
        .layer(from_fn_with_state(Arc::clone(&app), counted))
        .with_state(app)
}

/// Headers of MCP by which others on the way may route. One that stands twice says two things; so does rmcp see it of the rest.
const ONCE: [&str; 2] = ["mcp-protocol-version", "mcp-session-id"];

async fn mcp(State(app): State<Arc<App>>, Extension(admitted): Extension<Admitted>, request: Request) -> Response {
    if let Some(name) = ONCE.iter().find(|name| request.headers().get_all(**name).iter().count() > 1) {
        return Problem::new(StatusCode::BAD_REQUEST, format!("a request has one {name}")).into_response();
    }
    let (request, room) = match timeout(BODY, read(&app, request)).await {
        Ok(Ok(read)) => read,
        Ok(Err(problem)) => return problem.into_response(),
        Err(_) => {
            return Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")
                .because("slow")
                .into_response();
        }
    };
    match app.endpoint.serve(&admitted, request, room).await {
        Ok(response) => response.map(Body::new),
        Err(refusal) => problem(&admitted.principal, &refusal).into_response(),
    }
}

/// Reads a body, once there is room for it.
async fn read(app: &App, request: Request) -> Result<(Request<Bytes>, OwnedSemaphorePermit), Problem> {
    let (parts, body) = request.into_parts();
    // One that does not say how large it is may be as large as it likes.
    let expected = body.size_hint().upper().and_then(|size| usize::try_from(size).ok()).unwrap_or(MAX_BODY);
    if expected > MAX_BODY {
        return Err(too_large());
    }
    let units = |size: usize| size / UNIT + 1;
    let acquired = Arc::clone(&app.bodies).acquire_many_owned(units(expected) as u32).await;
    let mut room = acquired.map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    let body = to_bytes(body, MAX_BODY).await.map_err(|error| unread(&error))?;
    drop(room.split(units(expected) - units(body.len())));
    Ok((Request::from_parts(parts, body), room))
}

/// Why a body was not read to its end.
fn unread(error: &axum::Error) -> Problem {
    let is_large = error.source().is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
    if is_large { too_large() } else { Problem::new(StatusCode::BAD_REQUEST, "the body has broken off") }
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {MAX_BODY} bytes");
    // The rest of it is not waited for.
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).with(header::CONNECTION, "close").because("too_large")
}

fn problem(principal: &Principal, refusal: &Refusal) -> Problem {
    let problem = |status| Problem::new(status, refusal.to_string());
    match refusal {
        Refusal::Scope(scope) => not_permitted(principal, *scope),
        Refusal::TooMany { again, .. } => {
            problem(StatusCode::TOO_MANY_REQUESTS).again_after(*again).because("too_many")
        }
        Refusal::TooLarge(_) => problem(StatusCode::PAYLOAD_TOO_LARGE).because("too_large"),
        Refusal::NoSession => problem(StatusCode::NOT_FOUND),
        Refusal::Method { allow } => Problem::not_done_so().with(header::ALLOW, allow),
        Refusal::Ending => {
            problem(StatusCode::SERVICE_UNAVAILABLE).again_after(Duration::from_secs(1)).because("ending")
        }
    }
}
