//! Whether the client is still there. rmcp gives calls that are under way five seconds after the client's end, and cancels them
//! then; who waits for what will come is let go at once.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// The client's side; it has gone when this is dropped.
#[derive(Debug)]
pub struct Here(#[expect(dead_code, reason = "being there is all it does")] watch::Sender<()>);

/// Tells when the client has gone.
#[derive(Debug, Clone)]
pub struct Presence(watch::Receiver<()>);

impl Presence {
    /// A client that is there, and how to tell.
    pub fn new() -> (Here, Self) {
        let (here, presence) = watch::channel(());
        (Here(here), Self(presence))
    }

    /// Waits until the client has gone.
    pub async fn gone(&self) {
        let mut presence = self.0.clone();
        while presence.changed().await.is_ok() {}
    }
}

/// What a client sends; it has gone when nothing more can come.
#[derive(Debug)]
pub struct WhileHere<R> {
    inner: R,
    here: Option<Here>,
}

impl<R> WhileHere<R> {
    /// The client that speaks through `inner`.
    pub fn new(inner: R, here: Here) -> Self {
        Self { inner, here: Some(here) }
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
        let (here, presence) = Presence::new();
        let mut input = WhileHere::new(&b"hello"[..], here);
        let mut word = [0; 5];
        input.read_exact(&mut word).await.unwrap();
        assert!(presence.0.has_changed().is_ok(), "there may be more");
        assert_eq!(input.read(&mut word).await.unwrap(), 0);
        presence.gone().await;
    }
}
