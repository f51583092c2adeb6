//! What stands between rmcp and the wire: it tells at once when a connection ends and why, and bounds what a server can
//! make us hold.

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// The longest message that is taken over a pipe, as over HTTP.
pub const MESSAGE_MAX: usize = 16 << 20;
/// How many requests of the server may be unanswered by us.
const REQUESTS_MAX: usize = 64;
/// How long a server may leave its input unread while something waits to be written.
pub const UNREAD_MAX: Duration = Duration::from_secs(30);

/// The end of a connection.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    token: CancellationToken,
    why: Arc<OnceLock<&'static str>>,
}

impl Ended {
    /// Waits for it.
    pub async fn come(&self) {
        self.token.cancelled().await;
    }

    /// Why, where that is known.
    pub fn why(&self) -> Option<&'static str> {
        self.why.get().copied()
    }

    /// The first reason is the one that counts.
    fn because(&self, why: &'static str) {
        let _ = self.why.set(why);
    }
}

/// A transport that tells when it ends.
#[derive(Debug)]
pub struct Watched<T> {
    inner: T,
    ended: Ended,
    /// How long sending one message may take, where that is bounded here.
    patience: Option<Duration>,
    requests: Arc<AtomicUsize>,
}

impl<T> Watched<T> {
    /// Watches `inner`.
    pub fn new(inner: T, ended: Ended, patience: Option<Duration>) -> Self {
        Self { inner, ended, patience, requests: Arc::default() }
    }
}

impl<T> Transport<RoleClient> for Watched<T>
where
    T: Transport<RoleClient>,
    T::Error: From<io::Error>,
{
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (sending, requests) = (self.inner.send(item), Arc::clone(&self.requests));
        let (patience, ended) = (self.patience, self.ended.clone());
        async move {
            let sent = match patience {
                Some(patience) => tokio::time::timeout(patience, sending).await.unwrap_or_else(|_| {
                    // Half a message may have been written: nothing can follow it.
                    ended.because("the server does not read its input");
                    ended.token.cancel();
                    Err(io::Error::from(io::ErrorKind::TimedOut).into())
                }),
                None => sending.await,
            };
            if is_answer {
                requests.fetch_sub(1, Ordering::Relaxed);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut received = self.inner.receive().await;
        if matches!(received, Some(JsonRpcMessage::Request(_)))
            && self.requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS_MAX
        {
            self.ended.because("the server asks for too much at once");
            received = None;
        }
        if received.is_none() {
            self.ended.token.cancel();
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// A stream of lines that fails at one that is too long, as nobody could tell which call it would answer.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    line: usize,
    ended: Ended,
}

impl<R> Bounded<R> {
    /// Bounds the lines of `inner`.
    pub fn new(inner: R, ended: Ended) -> Self {
        Self { inner, line: 0, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        self.line = match memchr::memrchr(b'\n', read) {
            Some(end) => read.len() - end - 1,
            None => self.line + read.len(),
        };
        if self.line > MESSAGE_MAX {
            self.ended.because("the server has sent a message of more than 16 MiB");
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}
