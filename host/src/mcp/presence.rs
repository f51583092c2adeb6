//! Whether the client is still there. rmcp gives calls that are under way five seconds after the client's end, and cancels them
//! then; who waits for what will come is let go at once.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a client sends; it has gone when nothing more can come.
#[derive(Debug)]
pub struct WhileHere<R> {
    inner: R,
    /// Tells that the client has gone when it is dropped.
    here: Option<DropGuard>,
}

impl<R> WhileHere<R> {
    /// The client that speaks through `inner`; `gone` is cancelled when it has gone.
    pub fn new(inner: R, gone: CancellationToken) -> Self {
        Self { inner, here: Some(gone.drop_guard()) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for WhileHere<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        let at_end = buf.filled().len() == before && buf.remaining() > 0;
        if at_end || read.is_err() {
            self.here = None;
        }
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_client_has_gone_when_all_that_it_said_was_read() {
        let gone = CancellationToken::new();
        let mut input = WhileHere::new(&b"hello"[..], gone.clone());
        let mut word = [0; 5];
        input.read_exact(&mut word).await.unwrap();
        assert!(!gone.is_cancelled(), "there may be more");
        assert_eq!(input.read(&mut word).await.unwrap(), 0);
        assert!(gone.is_cancelled());
    }
}
