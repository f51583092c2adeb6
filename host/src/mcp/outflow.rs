//! Whether a client takes what it is sent. One that has closed its end and reads nothing keeps no server alive.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::sleep;

/// In so many looks in a row nothing must have been taken.
const LOOKS: u32 = 8;

/// What a client takes, as it is seen while something is written to it.
#[derive(Debug, Default)]
pub struct Outflow {
    taken: AtomicU64,
    /// Whether the last that was offered is still to be taken.
    waits: AtomicBool,
}

impl Outflow {
    /// Waits until something was offered and nothing of it taken for that long.
    pub async fn is_stuck_for(&self, patience: Duration) {
        let (mut taken, mut looks) = (self.taken.load(Relaxed), 0);
        while looks < LOOKS {
            sleep(patience / LOOKS).await;
            let before = std::mem::replace(&mut taken, self.taken.load(Relaxed));
            looks = if self.waits.load(Relaxed) && taken == before { looks + 1 } else { 0 };
        }
    }
}

/// A writer that tells how much of what it writes is taken.
#[derive(Debug)]
pub struct Told<W> {
    inner: W,
    outflow: Arc<Outflow>,
}

impl<W> Told<W> {
    /// A writer to `inner`.
    pub fn new(inner: W, outflow: Arc<Outflow>) -> Self {
        Self { inner, outflow }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Told<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.outflow.waits.store(wrote.is_pending(), Relaxed);
        if let Poll::Ready(Ok(n)) = &wrote {
            self.outflow.taken.fetch_add(*n as u64, Relaxed);
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        if flushed.is_pending() {
            self.outflow.waits.store(true, Relaxed);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    const PATIENCE: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn who_takes_nothing_is_told_from_who_is_offered_nothing() {
        let (mut client, server) = tokio::io::duplex(4);
        let outflow = Arc::new(Outflow::default());
        let mut writer = Told::new(server, Arc::clone(&outflow));
        writer.write_all(b"1234").await.unwrap();
        let stuck = async |outflow: &Outflow| timeout(10 * PATIENCE, outflow.is_stuck_for(PATIENCE)).await.is_ok();
        assert!(!stuck(&outflow).await, "all was taken");
        let writing = tokio::spawn(async move { writer.write_all(b"5678").await });
        timeout(Duration::from_secs(30), outflow.is_stuck_for(PATIENCE)).await.unwrap();
        let mut word = [0; 8];
        client.read_exact(&mut word).await.unwrap();
        writing.await.unwrap().unwrap();
        assert!(!stuck(&outflow).await, "it was taken late");
    }
}
