//! The body of an answer: what rmcp writes, with prepared reports in place of their stand-ins. Nothing of a report is copied.

use super::super::splice::Splicer;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use std::any::Any;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_util::bytes::Bytes;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The body of an answer.
pub struct Body {
    inner: BoxBody<Bytes, Infallible>,
    splicer: Arc<Splicer>,
    /// Pieces that are still to be sent.
    pieces: VecDeque<Bytes>,
    /// How many bytes it has in all, where that is known.
    length: Option<u64>,
    /// It ends with the first of these, whatever is still to come.
    until: Vec<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// What it takes up as long as it is sent.
    _kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl Body {
    /// The body that rmcp writes, until one of `until` is cancelled; `kept` goes with it.
    pub(super) fn new(
        inner: BoxBody<Bytes, Infallible>,
        splicer: Arc<Splicer>,
        until: impl IntoIterator<Item = CancellationToken>,
        kept: Vec<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        let until = until.into_iter().map(|until| Box::pin(until.cancelled_owned())).collect();
        Self { inner, splicer, pieces: VecDeque::new(), length: None, until, _kept: kept }
    }

    /// The same, all of it ready: it is then known how long it is. For what does not come bit by bit.
    pub(super) async fn whole(mut self) -> Self {
        while let Some(Ok(frame)) = self.inner.frame().await {
            if let Ok(message) = frame.into_data() {
                self.splicer.pieces(message, &mut self.pieces);
            }
        }
        self.length = Some(self.pieces.iter().map(|piece| piece.len() as u64).sum());
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        loop {
            if let Some(piece) = this.pieces.pop_front() {
                this.length = this.length.map(|left| left - piece.len() as u64);
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if this.length.is_some() || this.until.iter_mut().any(|until| until.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(None);
            }
            let Some(Ok(frame)) = ready!(Pin::new(&mut this.inner).poll_frame(cx)) else { return Poll::Ready(None) };
            // rmcp writes each message, and each event, as one frame.
            match frame.into_data() {
                Ok(message) => this.splicer.pieces(message, &mut this.pieces),
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
