//! What answers at the endpoint: one of rmcp's handlers, whichever it is. Nothing else here depends on its type.

use super::super::connection::Connection;
use super::sessions::Sessions;
use async_trait::async_trait;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::sync::Arc;
use tokio_util::bytes::Bytes;

/// The protocol as rmcp speaks it, with a handler behind it.
#[async_trait]
pub(super) trait Protocol: Send + Sync {
    /// Answers a request.
    async fn answer(&self, request: Request<Full<Bytes>>) -> Response<BoxBody<Bytes, Infallible>>;
}

#[async_trait]
impl<H: ServerHandler> Protocol for StreamableHttpService<H, Sessions> {
    async fn answer(&self, request: Request<Full<Bytes>>) -> Response<BoxBody<Bytes, Infallible>> {
        self.handle(request).await
    }
}

/// Makes a connection of a guest.
type Connect = Box<dyn Fn() -> Connection + Send + Sync>;

/// Opens the protocol for a guest: to its connections, with its sessions.
pub(super) type Handlers =
    Box<dyn Fn(Connect, Arc<Sessions>, StreamableHttpServerConfig) -> Box<dyn Protocol> + Send + Sync>;

/// What opens the protocol so that `handler` makes what answers on each connection.
pub(super) fn handlers<H: ServerHandler>(handler: impl Fn(Connection) -> H + Send + Sync + 'static) -> Handlers {
    let handler = Arc::new(handler);
    Box::new(move |connect, sessions, config| {
        let handler = Arc::clone(&handler);
        Box::new(StreamableHttpService::new(move || Ok(handler(connect())), sessions, config))
    })
}
