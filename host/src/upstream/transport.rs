//! What stands between rmcp and the wire: it tells at once when a connection ends and why, and bounds what a server can
//! make us hold.

use super::mask::Mask;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ContentBlock, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// The longest message that is taken over a pipe, as over HTTP.
pub const MESSAGE_MAX: usize = 16 << 20;
/// What is said of a longer one.
const TOO_LONG: &str = "the server has sent a message of more than 16 MiB";
/// How many requests of the server may be unanswered by us.
const REQUESTS_MAX: usize = 64;
/// How long a server may leave its input unread while something waits to be written.
pub const UNREAD_MAX: Duration = Duration::from_secs(30);

/// The end of a connection.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    token: CancellationToken,
    why: Arc<OnceLock<&'static str>>,
    /// Whether an answer was read no further, because it is too long.
    too_long: Arc<AtomicBool>,
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

    /// Whether it has come by the other side's doing, as far as that is known here.
    pub fn is_theirs(&self) -> bool {
        self.token.is_cancelled() && self.why().is_none()
    }

    /// An answer is too long, and read no further; what else is on its way over other streams is not concerned.
    pub fn too_long(&self) {
        self.too_long.store(true, Ordering::Relaxed);
    }

    /// Why an answer was cut, if that was our doing.
    pub fn take_cut(&self) -> Option<&'static str> {
        self.too_long.swap(false, Ordering::Relaxed).then_some(TOO_LONG)
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
    probe: Probe,
    mask: Mask,
}

/// The question for the newer protocol that comes first. A server that is slow to start answers it when it was given up and
/// the older handshake has begun, which must not be taken for an answer to that.
#[derive(Debug, Default)]
enum Probe {
    #[default]
    None,
    Asked(RequestId),
    GivenUp(RequestId),
}

impl Probe {
    fn hear_sent(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(sent) = item else { return };
        match (&sent.request, std::mem::take(self)) {
            (ClientRequest::DiscoverRequest(_), _) => *self = Self::Asked(sent.id.clone()),
            (ClientRequest::InitializeRequest(_), Self::Asked(id)) => *self = Self::GivenUp(id),
            (_, before) => *self = before,
        }
    }

    fn is_answered_late_by(&self, item: &RxJsonRpcMessage<RoleClient>) -> bool {
        let Self::GivenUp(id) = self else { return false };
        match item {
            JsonRpcMessage::Response(response) => response.id == *id,
            JsonRpcMessage::Error(error) => error.id.as_ref() == Some(id),
            _ => false,
        }
    }
}

impl<T> Watched<T> {
    /// Watches `inner`, and hides what `mask` does in the errors that come.
    pub fn new(inner: T, ended: Ended, patience: Option<Duration>, mask: Mask) -> Self {
        Self { inner, ended, patience, requests: Arc::default(), probe: Probe::None, mask }
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
        self.probe.hear_sent(&item);
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (sending, requests) = (self.inner.send(item), Arc::clone(&self.requests));
        let (patience, ended) = (self.patience, self.ended.clone());
        async move {
            let sent = match patience {
                Some(patience) => tokio::time::timeout(patience, sending).await.unwrap_or_else(|_| {
                    // Half a message may have been written: nothing can follow it.
                    ended.because("the server does not read its input");
                    Err(io::Error::from(io::ErrorKind::TimedOut).into())
                }),
                None => sending.await,
            };
            // Nothing follows where a pipe takes nothing more.
            if sent.is_err() && patience.is_some() {
                ended.token.cancel();
            }
            if is_answer {
                requests.fetch_sub(1, Ordering::Relaxed);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut received = self.inner.receive().await;
        while received.as_ref().is_some_and(|item| self.probe.is_answered_late_by(item)) {
            received = self.inner.receive().await;
        }
        if matches!(received, Some(JsonRpcMessage::Request(_)))
            && self.requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS_MAX
        {
            self.ended.because("the server asks for too much at once");
            received = None;
        }
        if let Some(received) = &mut received {
            hide(received, &self.mask);
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

/// Takes what was sent in confidence out of an error, of the protocol or of a tool.
fn hide(item: &mut RxJsonRpcMessage<RoleClient>, mask: &Mask) {
    match item {
        JsonRpcMessage::Error(error) => error.error.message = mask.hide(&error.error.message).into(),
        JsonRpcMessage::Response(response) => {
            let ServerResult::CallToolResult(result) = &mut response.result else { return };
            if result.is_error == Some(true) {
                let texts = result.content.iter_mut().filter_map(|content| match content {
                    ContentBlock::Text(text) => Some(text),
                    _ => None,
                });
                texts.for_each(|text| text.text = mask.hide(&text.text));
            }
        }
        _ => {}
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
            self.ended.because(TOO_LONG);
            buf.set_filled(before);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::VecDeque;
    use tokio::io::AsyncReadExt as _;

    /// A server that has said all this already, and that takes whatever it is sent, or nothing at all.
    struct Said(VecDeque<Value>, bool);

    impl Transport<RoleClient> for Said {
        type Error = io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            let takes = self.1;
            async move { if takes { Ok(()) } else { std::future::pending().await } }
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            Some(serde_json::from_value(self.0.pop_front()?).unwrap())
        }

        async fn close(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn watched(said: impl IntoIterator<Item = Value>, takes: bool) -> Watched<Said> {
        let said = Said(said.into_iter().collect(), takes);
        Watched::new(said, Ended::default(), Some(Duration::from_millis(20)), Mask::default())
    }

    fn request(id: u32, method: &str, params: Value) -> TxJsonRpcMessage<RoleClient> {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap()
    }

    fn hello() -> Value {
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}})
    }

    #[tokio::test]
    async fn a_late_answer_to_the_probe_is_not_taken_for_the_handshakes() {
        let refusal = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "unknown"}});
        let answer = |id: u32| json!({"jsonrpc": "2.0", "id": id, "result": {}});
        let mut transport = watched([refusal, answer(0), answer(1)], true);
        transport.send(request(0, "server/discover", json!({}))).await.unwrap();
        assert!(matches!(transport.receive().await, Some(JsonRpcMessage::Error(_))), "in time it counts");
        transport.send(request(1, "initialize", hello())).await.unwrap();
        let Some(JsonRpcMessage::Response(response)) = transport.receive().await else { panic!("no answer") };
        assert_eq!(response.id, RequestId::Number(1));
    }

    #[tokio::test]
    async fn a_server_that_does_not_read_or_asks_for_too_much_is_left() {
        let mut deaf = watched([], false);
        deaf.send(request(0, "ping", json!({}))).await.unwrap_err();
        assert_eq!(deaf.ended.why(), Some("the server does not read its input"));
        let pings = (0..100).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        let mut asking = watched(pings, true);
        let mut asked = 0;
        while asking.receive().await.is_some() {
            asked += 1;
        }
        assert_eq!((asked, asking.ended.why()), (REQUESTS_MAX, Some("the server asks for too much at once")));
        asking.ended.come().await;
    }

    #[tokio::test]
    async fn lines_have_a_length_and_files_have_none() {
        let read = async |bytes: &[u8]| {
            let ended = Ended::default();
            let mut rest = Vec::new();
            let result = Bounded::new(bytes, ended.clone()).read_to_end(&mut rest).await;
            (result.is_ok(), ended.why())
        };
        let mut lines = b"x".repeat(MESSAGE_MAX);
        lines.push(b'\n');
        lines.extend(b"y".repeat(MESSAGE_MAX));
        assert_eq!(read(&lines).await, (true, None));
        lines.push(b'y');
        assert_eq!(read(&lines).await, (false, Some("the server has sent a message of more than 16 MiB")));
    }
}
