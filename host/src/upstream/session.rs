//! The handle on a persistent session with an upstream server.

use super::Server;
use super::allow::{Allow, BadToolName};
use super::calls::{Answer, Request};
use super::error::{Failure, UpstreamError};
use super::owner::{Lines, Order, Owner};
use super::state::CallId;
use super::status::Status;
use crate::clock::Clock;
use rmcp::model::{CallToolResult, JsonObject, ReadResourceResult, Resource, Tool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// A session with an upstream server, which connects when it is first used, and again when it has to. Cheap to clone; when
/// the last clone is dropped the session ends, though nobody waits for it then.
#[derive(Debug, Clone)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: Arc<Server>,
    allow: Arc<Allow>,
    orders: mpsc::Sender<Order>,
    gone: mpsc::UnboundedSender<CallId>,
    next: AtomicU64,
    close: CancellationToken,
    closed: CancellationToken,
    status: watch::Receiver<Status>,
}

impl Session {
    /// A session with `server`, of whose tools those named in `allow` may be called (all, if none is). Nothing is started or
    /// connected before it is used. To be called where tokio's runtime is.
    ///
    /// # Errors
    /// When `allow` holds what can be no tool's name.
    pub fn open(server: Server, allow: &[String], clock: Arc<dyn Clock>) -> Result<Self, BadToolName> {
        let (server, allow) = (Arc::new(server), Arc::new(Allow::new(allow)?));
        let (orders, orders_there) = mpsc::channel(server.queue);
        let (gone, gone_there) = mpsc::unbounded_channel();
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let (status_there, status) = watch::channel(Status::unused(clock.now().unix_ms));
        let lines = Lines {
            orders: orders_there,
            gone: gone_there,
            close: close.clone(),
            closed: closed.clone().drop_guard(),
            status: status_there,
        };
        let owner = Owner::new(Arc::clone(&server), Arc::clone(&allow), clock, lines);
        tokio::spawn(owner.run());
        Ok(Self(Arc::new(Inner { server, allow, orders, gone, next: AtomicU64::new(0), close, closed, status })))
    }

    /// The server's name in the configuration.
    pub fn name(&self) -> &str {
        &self.0.server.name
    }

    /// Calls a tool. A result that says `isError` is a result.
    ///
    /// # Errors
    /// When the tool is not allowed or no answer came; [`Failure::outcome`] says whether it may have been done all the same.
    pub async fn call_tool(&self, name: &str, arguments: Option<JsonObject>) -> Result<CallToolResult, UpstreamError> {
        self.call_tool_within(name, arguments, self.0.server.timeout).await
    }

    /// Calls a tool, and waits so long for its answer.
    ///
    /// # Errors
    /// As [`Self::call_tool`].
    pub async fn call_tool_within(
        &self,
        name: &str,
        arguments: Option<JsonObject>,
        patience: Duration,
    ) -> Result<CallToolResult, UpstreamError> {
        let request = Request::CallTool { name: name.to_owned(), arguments };
        self.ask(request, patience, |answer| match answer {
            Answer::Called(result) => Some(result),
            _ => None,
        })
        .await
    }

    /// The tools that may be called. They are listed once for each connection, and again when the server says that they have
    /// changed.
    ///
    /// # Errors
    /// When there is no connection and none can be made.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, UpstreamError> {
        self.tools(false).await
    }

    /// The same, but the server is asked, whatever is known: a server may have changed its tools and not have said so.
    ///
    /// # Errors
    /// As [`Self::list_tools`].
    pub async fn list_tools_anew(&self) -> Result<Vec<Tool>, UpstreamError> {
        self.tools(true).await
    }

    async fn tools(&self, anew: bool) -> Result<Vec<Tool>, UpstreamError> {
        self.ask(Request::ListTools { anew }, self.0.server.timeout, |answer| match answer {
            Answer::Tools(tools) => Some(self.0.allow.of(&tools)),
            _ => None,
        })
        .await
    }

    /// The resources that the server lists.
    ///
    /// # Errors
    /// When it lists none, or no answer came.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, UpstreamError> {
        self.ask(Request::ListResources, self.0.server.timeout, |answer| match answer {
            Answer::Resources(resources) => Some(resources),
            _ => None,
        })
        .await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// When there is none of this URI, or no answer came.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, UpstreamError> {
        let request = Request::ReadResource { uri: uri.to_owned() };
        self.ask(request, self.0.server.timeout, |answer| match answer {
            Answer::Read(result) => Some(result),
            _ => None,
        })
        .await
    }

    /// The tools that may be called by name, sorted; `None`: all that the server has.
    pub fn allowed_tools(&self) -> Option<Vec<String>> {
        self.0.allow.names()
    }

    /// Allows exactly these tools from now on, or all if there are none; tells whether that changes anything.
    ///
    /// # Errors
    /// When one can be no tool's name. Nothing has changed then.
    pub fn set_allowed_tools(&self, names: &[String]) -> Result<bool, BadToolName> {
        self.0.allow.set(names)
    }

    /// How it stands now.
    pub fn status(&self) -> Status {
        self.0.status.borrow().clone()
    }

    /// How it stands, to be watched.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.0.status.clone()
    }

    /// Closes it, whatever it is doing: who waits gets [`Failure::Closed`], and when this returns nothing is left of the
    /// server where it is a child of ours. It is bounded in time, and may be called any number of times.
    pub async fn close(&self) {
        self.0.close.cancel();
        self.0.closed.cancelled().await;
    }

    async fn ask<T>(
        &self,
        request: Request,
        patience: Duration,
        read: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, UpstreamError> {
        let operation = request.in_words();
        let answer = self.answer(request, patience).await;
        let answer =
            answer.and_then(|answer| read(answer).ok_or(Failure::Unsupported("the answer is none to this request")));
        answer.map_err(|failure| UpstreamError { upstream: Arc::clone(&self.0.server.name), operation, failure })
    }

    async fn answer(&self, request: Request, patience: Duration) -> Result<Answer, Failure> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (answer, comes) = oneshot::channel();
        let order = Order { id, request, patience, answer };
        self.0.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => Failure::QueueFull { limit: self.0.server.queue },
            TrySendError::Closed(_) => Failure::Closed,
        })?;
        let mut caller = Caller { id, gone: &self.0.gone, waits: true };
        let answer = comes.await.unwrap_or(Err(Failure::Closed));
        caller.waits = false;
        answer
    }
}

/// Somebody who waits for an answer, or who tells that they do no longer.
struct Caller<'a> {
    id: CallId,
    gone: &'a mpsc::UnboundedSender<CallId>,
    waits: bool,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if self.waits {
            // Without an owner nothing is left to be told.
            let _ = self.gone.send(self.id);
        }
    }
}
