//! What is at which address.

use super::auth::{admitted, meant_for_us, not_permitted};
use super::bodies;
use super::connection::Connections;
use super::cors;
use super::doors::Doors;
use super::oauth::{self, OAuth};
use super::problem::Problem;
use super::refused::Refused;
use super::rest;
use super::traffic::{Traffic, counted};
use crate::auth::{Admitted, Gate, Principal};
use crate::mcp::Service;
use crate::mcp::http::{Endpoint, Refusal};
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Everything that requests are answered from.
pub(super) struct App {
    pub service: Arc<Service>,
    pub gate: Gate,
    pub endpoint: Endpoint,
    pub traffic: Traffic,
    pub refused: Refused,
    pub connections: Arc<Connections>,
    /// When the program has started, Unix seconds, once somebody has asked for it: the clock may be set meanwhile.
    pub started: OnceLock<f64>,
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
        let refused = Refused::noted_by(endpoint.service());
        Self {
            service: Arc::clone(endpoint.service()),
            endpoint,
            gate,
            traffic: Traffic::default(),
            refused,
            connections,
            started: OnceLock::new(),
            oauth: oauth.map(Arc::new),
            hosts: hosts.collect(),
            origins: doors.origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
        }
    }

    /// Whether a request for this host, which has come in at this address, is for this server, whatever its port.
    pub fn is_ours(&self, host: &str, at: Option<IpAddr>) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        self.hosts.contains(&host) || (address.is_some() && address == at)
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
    let (parts, body) = request.into_parts();
    let refused = |refusal: Refusal| problem(&admitted.principal, &refusal);
    let body = match app.endpoint.room(&admitted) {
        Ok(room) => bodies::read(body, room, refused).await,
        Err(refusal) => Err(refused(refusal)),
    };
    let request = match body {
        Ok(body) => Request::from_parts(parts, body),
        Err(problem) => return problem.into_response(),
    };
    match app.endpoint.serve(&admitted, request).await {
        Ok(response) => response.map(Body::new),
        Err(refusal) => refused(refusal).into_response(),
    }
}

/// A refusal as HTTP says it.
pub(super) fn problem(principal: &Principal, refusal: &Refusal) -> Problem {
    let problem = |status| Problem::new(status, refusal.to_string());
    match refusal {
        Refusal::Scope(scope) => not_permitted(principal, *scope),
        Refusal::TooMany { again, .. } => {
            problem(StatusCode::TOO_MANY_REQUESTS).again_after(*again).because("too_many")
        }
        Refusal::TooLarge(_) => problem(StatusCode::PAYLOAD_TOO_LARGE).because("too_large"),
        Refusal::NoSession => problem(StatusCode::NOT_FOUND),
        Refusal::Method { allow } => Problem::not_done_so().with(header::ALLOW, allow),
        Refusal::Full => problem(StatusCode::SERVICE_UNAVAILABLE)
            .again_after(Duration::from_secs(5))
            // What has not been read of the body is not waited for.
            .with(header::CONNECTION, "close")
            .because("full"),
        Refusal::Ending => {
            problem(StatusCode::SERVICE_UNAVAILABLE).again_after(Duration::from_secs(1)).because("ending")
        }
    }
}
