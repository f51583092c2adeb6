//! Large answers are written out once for each tick, but rmcp takes a tree of values, and making and writing such a tree for a
//! thousand agents takes longer than everything else together. So a stand-in goes through rmcp, and the prepared text
//! takes its place when the message is written.

use crate::report::Rendered;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Answers that may wait to be written. One is only left waiting for ever when its call is cancelled at the last moment.
const MAX_WAITING: usize = 1024;

/// Keeps prepared answers until their stand-ins are written.
#[derive(Debug)]
pub struct Splicer {
    /// Nobody outside can know it, so no text of an agent's can pass for a stand-in.
    nonce: String,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, (String, Arc<Rendered>)>,
}

impl Default for Splicer {
    fn default() -> Self {
        let secret = || RandomState::new().hash_one(0u8);
        Self { nonce: format!("\"~{:016x}{:016x}", secret(), secret()), waiting: Mutex::default() }
    }
}

impl Splicer {
    /// A value that will be written as the report with its age.
    pub fn stand_in(&self, age_ms: u64, report: Arc<Rendered>) -> Value {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let n = waiting.next;
        waiting.next += 1;
        waiting.answers.insert(n, (Rendered::head(age_ms), report));
        if let Some(forgotten) = n.checked_sub(MAX_WAITING as u64) {
            waiting.answers.remove(&forgotten);
        }
        Value::String(format!("{}{n:016x}", &self.nonce[1..]))
    }

    /// Appends `message` to `out` with the answer in place of its stand-in.
    fn expand(&self, message: &[u8], out: &mut Vec<u8>) {
        let digits = self.nonce.len()..self.nonce.len() + 16;
        let found = message.windows(self.nonce.len()).position(|w| w == self.nonce.as_bytes()).and_then(|at| {
            let stand_in = &message[at..];
            let n = u64::from_str_radix(std::str::from_utf8(stand_in.get(digits.clone())?).ok()?, 16).ok()?;
            let answer = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&n)?;
            Some((at, answer))
        });
        let Some((at, (head, report))) = found else { return out.extend_from_slice(message) };
        out.extend_from_slice(&message[..at]);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(report.tail().as_bytes());
        // The closing quote goes with the stand-in.
        out.extend_from_slice(&message[at + digits.end + 1..]);
    }
}

/// A writer of JSON lines that puts answers in place of their stand-ins.
#[derive(Debug)]
pub struct SplicingWriter<W> {
    inner: W,
    splicer: Arc<Splicer>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    out: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> SplicingWriter<W> {
    /// A writer to `inner`.
    pub fn new(inner: W, splicer: Arc<Splicer>) -> Self {
        Self { inner, splicer, line: Vec::new(), out: Vec::new(), written: 0 }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let n = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.out[self.written..]))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += n;
        }
        self.out.clear();
        self.out.shrink_to(64 << 10);
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for SplicingWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        for piece in buf.split_inclusive(|&b| b == b'\n') {
            this.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                this.splicer.expand(&this.line, &mut this.out);
                this.line.clear();
            }
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
