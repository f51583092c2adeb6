//! What went wrong, as RFC 9457 has it.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// The media type of a problem.
pub(super) const PROBLEM: &str = "application/problem+json";

/// A problem; the answer to a request that cannot be served.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    refusal: Option<Refusal>,
    not_ready: Vec<NotReady>,
}

/// Why somebody was sent away, in a word of this program's; it goes with the answer to whoever counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal(pub &'static str);

/// A part of the server that is not ready.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NotReady {
    /// `sessions`: nobody has looked at them yet, or nobody does any more. `database`: who may come in cannot be told.
    pub part: &'static str,
    /// What is the matter.
    pub reason: String,
}

/// A problem, as RFC 9457 has it. It has no `type` of its own: `status` says all.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct ProblemBody<'a> {
    /// What the status means.
    title: &'a str,
    /// The status of the answer.
    status: u16,
    /// What is the matter here, and what to do about it.
    detail: &'a str,
    /// Of a server that is not ready: the parts that are not.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    not_ready: &'a [NotReady],
}

impl Problem {
    /// A problem of this kind; `detail` says what to do about it.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), headers: Vec::new(), refusal: None, not_ready: Vec::new() }
    }

    /// Nothing is there, or nothing that may be seen.
    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no such {what}"))
    }

    /// What is there is asked for in other ways, which stand in `Allow`.
    pub fn not_done_so() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this is not done so; Allow says how")
    }

    /// The same; somebody was sent away for this reason.
    pub fn because(mut self, reason: &'static str) -> Self {
        self.refusal = Some(Refusal(reason));
        self
    }

    /// The server is not ready: these parts of it are not.
    pub fn not_ready(parts: Vec<NotReady>) -> Self {
        let reasons: Vec<&str> = parts.iter().map(|part| part.reason.as_str()).collect();
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, reasons.join("; "));
        Self { not_ready: parts, ..problem }
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
        let Self { status, detail, headers, refusal, not_ready } = self;
        let problem = ProblemBody { title, status: status.as_u16(), detail: &detail, not_ready: &not_ready };
        let mut response = (status, axum::Json(problem)).into_response();
        // A problem passes with what has caused it.
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.headers_mut().extend(headers);
        if let Some(refusal) = refusal {
            response.extensions_mut().insert(refusal);
        }
        response
    }
}
