//! The HTTP client of a session, with the token that holds when a request is sent.

use super::{Access, NoToken};
use crate::text::clean;
use crate::upstream::mask::Mask;
use crate::upstream::transport::Ended;
use futures_core::Stream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::AuthError;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The HTTP client, and the access that its requests show where there is one.
#[derive(Debug, Clone)]
pub struct Authorized {
    client: reqwest::Client,
    access: Option<Arc<Access>>,
    mask: Mask,
    ended: Ended,
}

impl Authorized {
    /// `client`, which shows this access. What it sends in confidence is hidden in what comes back.
    pub fn new(client: reqwest::Client, access: Option<Arc<Access>>, mask: Mask, ended: Ended) -> Self {
        Self { client, access, mask, ended }
    }

    async fn with_token<T, F>(&self, given: Option<String>, send: impl Fn(Option<String>) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let sent = self.sent(given, send).await;
        sent.map_err(|error| masked(error, &self.mask))
    }

    /// Sends a request with a token that holds; once more with another if the server refuses that one, which it can do
    /// whatever it has said of its end. A request that was refused so was not done.
    async fn sent<T, F>(&self, given: Option<String>, send: impl Fn(Option<String>) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        given.iter().for_each(|token| self.mask.add(token));
        let Some(access) = &self.access else { return send(given).await };
        let token = access.token(None).await.map_err(no_token)?;
        self.mask.add(&token);
        let sent = match send(Some(token.clone())).await {
            Err(error) if is_refusal(&error) => {
                let other = access.token(Some(&token)).await.map_err(no_token)?;
                self.mask.add(&other);
                send(Some(other)).await
            }
            sent => sent,
        };
        sent.map_err(|error| access.explain(error))
    }
}

/// The same failure, without what the server repeats of what it was sent in confidence.
fn masked(error: Failed, mask: &Mask) -> Failed {
    match error {
        StreamableHttpError::AuthRequired(asked) => {
            StreamableHttpError::AuthRequired(AuthRequiredError::new(mask.hide(&asked.www_authenticate_header)))
        }
        StreamableHttpError::InsufficientScope(asked) => {
            let scope = asked.required_scope.as_deref().map(|scope| mask.hide(scope));
            let challenge = mask.hide(&asked.www_authenticate_header);
            StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope))
        }
        StreamableHttpError::UnexpectedServerResponse(words) => {
            StreamableHttpError::UnexpectedServerResponse(mask.hide(&words).into())
        }
        StreamableHttpError::UnexpectedContentType(kind) => {
            StreamableHttpError::UnexpectedContentType(kind.map(|kind| mask.hide(&kind)))
        }
        // What a parser says of it quotes it.
        StreamableHttpError::Deserialize(error) => {
            StreamableHttpError::UnexpectedServerResponse(mask.hide(&error.to_string()).into())
        }
        StreamableHttpError::Auth(AuthError::InsufficientScope { required_scope, upgrade_url }) => {
            let required_scope = mask.hide(&required_scope);
            StreamableHttpError::Auth(AuthError::InsufficientScope { required_scope, upgrade_url })
        }
        error => error,
    }
}

/// The events of an answer. rmcp tells nobody that it reads one no further.
struct Events {
    events: BoxedSseResponse,
    ended: Ended,
}

impl Stream for Events {
    type Item = <BoxedSseResponse as Stream>::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.events.as_mut().poll_next(cx));
        if let Some(Err(error)) = &event {
            let mut causes = std::iter::successors(Some(error as &dyn Error), |&error| error.source());
            if causes.any(|cause| cause.to_string().contains("SSE event exceeded the maximum size")) {
                self.ended.too_long();
            }
        }
        Poll::Ready(event)
    }
}

/// Whether the server takes the token for none, with a challenge, as it should be, or without one.
fn is_refusal(error: &Failed) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        // What rmcp makes of one without a challenge.
        StreamableHttpError::UnexpectedServerResponse(words) => words.starts_with("HTTP 401 "),
        _ => false,
    }
}

/// A request without a token is not sent.
fn no_token(why: NoToken) -> Failed {
    StreamableHttpError::Auth(AuthError::AuthorizationFailed(why.to_string()))
}

impl Access {
    /// What can be done about a refusal.
    fn explain(&self, error: Failed) -> Failed {
        match error {
            error if is_refusal(&error) => {
                let why = format!("the server refuses its own authorization server's tokens (401): {}", self.command());
                StreamableHttpError::Auth(AuthError::AuthorizationFailed(why))
            }
            StreamableHttpError::InsufficientScope(asked) => {
                let scope = asked.required_scope.as_deref().unwrap_or_default();
                StreamableHttpError::Auth(AuthError::InsufficientScope {
                    required_scope: self.reaching(scope),
                    upgrade_url: None,
                })
            }
            error => error,
        }
    }

    /// What it takes to reach as far as `scope`, which the server has written.
    fn reaching(&self, scope: &str) -> String {
        // People copy commands.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ":._/ -".contains(c);
        if scope.trim().is_empty() || scope.trim_start().starts_with('-') || !scope.chars().all(is_plain) {
            return format!("the login does not reach so far: it asks for the scope {:?}", clean(scope));
        }
        let asked: String = scope.split_whitespace().map(|scope| format!(" --scope {scope}")).collect();
        format!("the login does not reach so far: {}{}", self.command(), clean(&asked))
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.with_token(token, |token| {
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session.clone(), headers.clone());
            self.client.post_message(uri, message, session, token, headers)
        })
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.with_token(token, |token| {
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session.clone(), headers.clone());
            self.client.post_message_with_response_limits(uri, message, session, token, headers, limits)
        })
        .await
        .map(|response| match response {
            StreamableHttpPostResponse::Sse(events, session) => {
                let events = Events { events, ended: self.ended.clone() };
                StreamableHttpPostResponse::Sse(Box::pin(events), session)
            }
            response => response,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.with_token(token, |token| self.client.delete_session(uri.clone(), session.clone(), token, headers.clone()))
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failed> {
        self.with_token(token, |token| {
            self.client.get_stream(uri.clone(), session.clone(), last_event.clone(), token, headers.clone())
        })
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, Failed> {
        self.with_token(token, |token| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            self.client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers.clone(), most)
        })
        .await
    }
}
