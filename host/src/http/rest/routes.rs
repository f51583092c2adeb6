//! The table of routes: from it both the router and its description are made, so that neither has what the other has not.

use super::super::app::App;
use super::super::auth::not_permitted;
use super::super::problem::Problem;
use super::{clients, failed, grants, health, metrics, openapi, sessions};
use crate::auth::{Admitted, Grants, Scope};
use crate::clients::{ClientRow, Clients};
use crate::report::{Report, Sessions};
use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::sync::Arc;

/// The schema of something, among those of all.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One thing that can be asked for.
pub(in super::super) struct Route {
    /// `get` or `delete`.
    pub method: &'static str,
    /// Its address; what stands in braces is any text.
    pub path: &'static str,
    /// What whoever asks must be permitted; `None`: it needs no token.
    pub scope: Option<Scope>,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What may stand behind the `?`; each member of the schema is one parameter. `None`: nothing may.
    pub query: Option<SchemaOf>,
    /// What is answered.
    pub answer: Answer,
    /// What can go wrong with it beside what can with each.
    pub problems: &'static [u16],
    handler: fn() -> MethodRouter<Arc<App>>,
}

/// What a route answers where all goes well.
#[derive(Clone, Copy)]
pub(in super::super) enum Answer {
    /// JSON of this schema.
    Json(SchemaOf),
    /// Text of these media types.
    Text(&'static [&'static str]),
    /// Nothing: 204.
    Nothing,
}

impl Answer {
    /// How it can be written.
    pub fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Json(_) => &["application/json"],
            Self::Text(kinds) => kinds,
            Self::Nothing => &[],
        }
    }

    /// Whether somebody takes it who accepts one of these kinds; who says nothing takes everything.
    fn is_acceptable<'a>(self, ranges: impl Iterator<Item = &'a str>) -> bool {
        let mut ranges = ranges.map(|range| range.split(';').next().unwrap_or_default().trim()).peekable();
        let is_one = |range: &str, kind: &str| {
            let (kind, group) =
                (kind.split(';').next().unwrap_or_default(), kind.split('/').next().unwrap_or_default());
            range == "*/*" || range.eq_ignore_ascii_case(kind) || range.eq_ignore_ascii_case(&format!("{group}/*"))
        };
        let kinds = self.media_types();
        kinds.is_empty() || ranges.peek().is_none() || ranges.any(|range| kinds.iter().any(|kind| is_one(range, kind)))
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    Schema::from(true)
}

/// All there are but `/mcp`.
pub(in super::super) const ROUTES: &[Route] = &[
    Route {
        method: "get",
        path: "/v1/sessions",
        scope: Some(Scope::StatusRead),
        summary: "The sessions of AI agents on this machine",
        query: None,
        answer: Answer::Json(of::<Sessions>),
        problems: &[400],
        handler: || get(sessions::list),
    },
    Route {
        method: "get",
        path: "/v1/sessions/{id}/status",
        scope: Some(Scope::StatusRead),
        summary: "What the agents of a session do, what they cost, and how they fare",
        query: Some(of::<sessions::Wanted>),
        answer: Answer::Json(of::<Report>),
        problems: &[400, 404, 409],
        handler: || get(sessions::status),
    },
    Route {
        method: "get",
        path: "/v1/mcp/sessions",
        scope: Some(Scope::ClientsRead),
        summary: "The MCP clients, the newest first: who is connected, and what each has called",
        query: Some(of::<clients::Wanted>),
        answer: Answer::Json(of::<Clients>),
        problems: &[400],
        handler: || get(clients::list),
    },
    Route {
        method: "get",
        path: "/v1/mcp/sessions/{id}",
        scope: Some(Scope::ClientsRead),
        summary: "One of the MCP clients, also where it has ended",
        query: None,
        answer: Answer::Json(of::<ClientRow>),
        problems: &[400, 404],
        handler: || get(clients::one),
    },
    Route {
        method: "get",
        path: "/v1/grants",
        scope: Some(Scope::GrantsRevoke),
        summary: "The grants: who may use the servers, and until when",
        query: Some(of::<grants::Wanted>),
        answer: Answer::Json(of::<Grants>),
        problems: &[400],
        handler: || get(grants::list),
    },
    Route {
        method: "delete",
        path: "/v1/grants/{id}",
        scope: Some(Scope::GrantsRevoke),
        summary: "Ends a grant for good, and at once what goes on under it",
        query: None,
        answer: Answer::Nothing,
        problems: &[400, 404],
        handler: || delete(grants::revoke),
    },
    Route {
        method: "get",
        path: "/metrics",
        scope: Some(Scope::MetricsRead),
        summary: "What the server counts, for Prometheus",
        query: None,
        answer: Answer::Text(&metrics::TYPES),
        problems: &[],
        handler: || get(metrics::scrape),
    },
    Route {
        method: "get",
        path: "/healthz",
        scope: None,
        summary: "Whether the server lives",
        query: None,
        answer: Answer::Text(&["text/plain; charset=utf-8"]),
        problems: &[],
        handler: || get(health::lives),
    },
    Route {
        method: "get",
        path: "/readyz",
        scope: None,
        summary: "Whether the server can answer, and else what is not ready",
        query: None,
        answer: Answer::Text(&["text/plain; charset=utf-8"]),
        problems: &[],
        handler: || get(health::is_ready),
    },
    Route {
        method: "get",
        path: "/openapi.json",
        scope: None,
        summary: "This description",
        query: None,
        answer: Answer::Json(anything),
        problems: &[],
        handler: || get(openapi::shown),
    },
];

/// The routes that need a token, or those that need none.
pub(in super::super) fn router(with_token: bool) -> Router<Arc<App>> {
    let wanted = ROUTES.iter().filter(|route| route.scope.is_some() == with_token);
    let router = wanted.fold(Router::new(), |router, route| router.route(route.path, handler(route)));
    router.method_not_allowed_fallback(not_done_so)
}

/// What answers a route, for who may ask and takes what it answers.
fn handler(route: &'static Route) -> MethodRouter<Arc<App>> {
    (route.handler)().route_layer(from_fn(async |request: Request, next: Next| match check(route, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }))
}

fn check(route: &Route, request: &Request) -> Result<(), Problem> {
    if let Some(scope) = route.scope {
        let admitted = request.extensions().get::<Admitted>().ok_or_else(|| failed("nobody was let in"))?;
        if !admitted.principal.may(scope) {
            return Err(not_permitted(&admitted.principal, scope));
        }
    }
    let accepted = request.headers().get_all(header::ACCEPT).iter().filter_map(|accepted| accepted.to_str().ok());
    if !route.answer.is_acceptable(accepted.flat_map(|header| header.split(','))) {
        let kinds = route.answer.media_types().join(", ");
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, format!("this is answered as {kinds} only")));
    }
    if route.query.is_none() && request.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "there are no parameters here"));
    }
    Ok(())
}

/// What can be done there stands in `Allow`, which axum adds. Whoever asks just for that is answered.
async fn not_done_so(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::not_done_so().into_response()
}
