//! CORS, as the Fetch standard has it: web pages of an allowed origin may ask, and may read what they are answered. Those of
//! any other are [refused](super::auth::meant_for_us), and no answer speaks of them.

use super::app::App;
use super::auth::one;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// What requests may be.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Headers that requests may have; those of [`PARAMETERS`] beside.
const HEADERS: &str =
    "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id";

/// What the headers begin with that repeat a parameter of a tool, whose names the tools decide.
const PARAMETERS: &str = "mcp-param-";

/// Headers of answers that pages may read beside those that all may.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate");

/// Seconds for which a browser need not ask again; none remembers it for longer than this.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Lets pages of an allowed origin read the answer, whatever it is. That origin alone is named, and never that a browser may
/// send what it knows its user by: a token is what lets in here.
pub(super) async fn shared(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let allowed = request.headers().get(header::ORIGIN).cloned();
    let allowed = allowed.filter(|_| origin(request.headers()).is_some_and(|origin| app.is_allowed_origin(origin)));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if app.allows_origins() {
        // Another origin gets another answer, which nobody on the way may mix up.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

/// The origin of the page that sends a request; `None`: no page sends it, or several origins are named.
pub(super) fn origin(headers: &HeaderMap) -> Option<&str> {
    one(headers, header::ORIGIN)
}

/// Whether a browser asks before it sends what a page wants to send.
pub(super) fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && request.headers().contains_key(header::ORIGIN)
}

/// What a page of an allowed origin may send. A browser that asks has no token.
pub(super) fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    if let Ok(names) = HeaderValue::from_str(&allowed_headers(asked)) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

fn allowed_headers(asked: &HeaderMap) -> String {
    let asked = one(asked, header::ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let names = asked.split(',').filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let parameters = names.filter(|name| name.as_str().starts_with(PARAMETERS));
    parameters.fold(HEADERS.to_owned(), |all, name| all + ", " + name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_headers_that_mean_something_here_are_allowed() {
        let allowed = |asked: &str| {
            let asked = [(header::ACCESS_CONTROL_REQUEST_HEADERS, asked.parse().unwrap())];
            allowed_headers(&asked.into_iter().collect())
        };
        assert_eq!(allowed("authorization,x-evil, cookie"), HEADERS);
        assert_eq!(allowed("Mcp-Param-Region,x-mcp-param-a, mcp-param"), format!("{HEADERS}, mcp-param-region"));
        assert_eq!(allowed("mcp-param-a b,mcp-param-\"c\",*"), HEADERS);
        assert_eq!(allowed_headers(&HeaderMap::new()), HEADERS);
    }
}
