//! What went wrong, as RFC 9457 has it.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::time::Duration;

/// A problem; the answer to a request that cannot be served.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of this kind; `detail` says what to do about it.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), headers: Vec::new() }
    }

    /// Nothing is there, or nothing that may be seen.
    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no such {what}"))
    }

    /// The same, with one header more.
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// The same; it may be tried again after this time.
    pub fn again_after(mut self, time: Duration) -> Self {
        self.headers.push((header::RETRY_AFTER, after(time)));
        self
    }
}

/// A time as `Retry-After` has it: in whole seconds, and never none.
pub(super) fn after(time: Duration) -> HeaderValue {
    HeaderValue::from((time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1))
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let problem = json!({ "title": title, "status": self.status.as_u16(), "detail": self.detail });
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, kind, problem.to_string()).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}
