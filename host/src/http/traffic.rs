//! What comes in over HTTP and what becomes of it, counted by route. What a client writes in its request makes no new count.

use super::app::App;
use super::oauth;
use super::problem::Refusal;
use super::rest::ROUTES;
use crate::figures::{Count, Each};
use crate::store::audit::RefusedRequest;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// What has come in so far.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Requests that were answered: by route, method and status.
    pub requests: Each<(&'static str, &'static str, u16), Count>,
    /// Requests that were refused, by reason.
    pub refusals: Each<&'static str, Count>,
}

/// What has no route of its own.
const NONE: &str = "none";

/// Counts a request and what became of it.
pub(super) async fn counted(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = route(request.uri().path());
    let method = method(request.method());
    let agent = request.headers().get(header::USER_AGENT).cloned();
    let response = next.run(request).await;
    let status = response.status();
    app.traffic.requests.note((route, method, status.as_u16()), Count::add_one);
    if let Some(Refusal(reason)) = response.extensions().get() {
        app.traffic.refusals.note(reason, Count::add_one);
        // Others were let in, or may come again as they are.
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let principal = response.extensions().get().map(|Holder(user)| user.clone());
            let client = client(agent.as_ref());
            let request = || RefusedRequest { principal, client, method, route, status: status.as_u16() };
            app.refused.came(reason, request);
        }
    }
    response
}

/// The user whose token a request has shown that was refused all the same; it goes with the answer.
#[derive(Debug, Clone)]
pub(super) struct Holder(pub String);

/// What a program calls itself.
pub(super) fn client(agent: Option<&HeaderValue>) -> String {
    let agent = agent.and_then(|agent| agent.to_str().ok());
    agent.map_or_else(|| "unknown client".to_owned(), crate::text::clean)
}

/// The address as the table has it.
pub(super) fn route(path: &str) -> &'static str {
    let same = |(known, asked): (&str, &str)| known == asked || (known.starts_with('{') && !asked.is_empty());
    let is_it = |known: &&str| {
        let parts = known.split('/').count() == path.split('/').count();
        parts && known.split('/').zip(path.split('/')).all(same)
    };
    ROUTES.iter().map(|route| route.path).chain(["/mcp"]).chain(oauth::PATHS).find(is_it).unwrap_or(NONE)
}

fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_by_what_the_table_calls_them() {
        for (path, counted) in [
            ("/mcp", "/mcp"),
            ("/v1/sessions", "/v1/sessions"),
            ("/v1/sessions/shop/status", "/v1/sessions/{id}/status"),
            ("/v1/grants/%2e%2e", "/v1/grants/{id}"),
            ("/v1/grants/", NONE),
            ("/v1/sessions//status", NONE),
            ("/v1/sessions/", NONE),
            ("/mcp/x", NONE),
            ("/", NONE),
            ("*", NONE),
        ] {
            assert_eq!(route(path), counted, "{path}");
        }
        assert_eq!(method(&Method::from_bytes(b"FROBNICATE").unwrap()), "other");
    }
}
