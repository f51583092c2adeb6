//! Large answers are written out once for each tick, but rmcp takes a tree of values, and making and writing such a tree for a
//! thousand agents takes longer than everything else together. So a stand-in goes through rmcp, and the prepared text
//! takes its place when the message is written.

use super::Flow;
use crate::report::Rendered;
use memchr::{memchr, memmem, memrchr};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio_util::bytes::Bytes;

/// Answers that may wait to be written unless told otherwise: more than any client has calls under way. One is left waiting
/// for ever only when its call is cancelled at the last moment.
const MAX_WAITING: usize = 1 << 16;

/// Digits of a stand-in's number.
const DIGITS: usize = 16;

/// How a stand-in ends.
const CLOSING: &str = "\":0}";

/// Keeps prepared answers until their stand-ins are written.
#[derive(Debug)]
pub struct Splicer {
    /// Answers that may wait.
    most: usize,
    flow: Arc<Flow>,
    /// How a stand-in begins: `{"~` and digits that nobody outside can know, so that no text of an agent's can pass for one.
    opening: String,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, Answer>,
}

/// An answer's beginning, with its age, and the rest.
type Answer = (String, Arc<Rendered>);

impl Splicer {
    /// One with which more answers may wait than a client asks for.
    pub fn new(flow: Arc<Flow>) -> Self {
        Self::keeping(MAX_WAITING, flow)
    }

    /// One with which so many answers may wait to be written; what is lost of them is counted in `flow`.
    pub fn keeping(most: usize, flow: Arc<Flow>) -> Self {
        let secret = || RandomState::new().hash_one(0u8);
        Self { most, flow, opening: format!("{{\"~{:016x}{:016x}", secret(), secret()), waiting: Mutex::default() }
    }

    /// A value that will be written as the report with its age. It is an object, because older clients get no other
    /// structured content.
    pub fn stand_in(&self, age_ms: u64, report: Arc<Rendered>) -> Value {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let n = waiting.next;
        waiting.next += 1;
        waiting.answers.insert(n, (Rendered::head(age_ms), report));
        if let Some(forgotten) = n.checked_sub(self.most as u64) {
            waiting.answers.remove(&forgotten);
        }
        let key = format!("{}{n:016x}", self.opening.trim_start_matches(['{', '"']));
        Value::Object(Map::from_iter([(key, Value::from(0))]))
    }

    /// Appends `message` to `out` with the answer in place of its stand-in.
    fn expand(&self, message: &[u8], out: &mut Vec<u8>) {
        match self.find(message) {
            None => out.extend_from_slice(message),
            Some((place, Some((head, report)))) => {
                out.extend_from_slice(&message[..place.start]);
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(report.tail().as_bytes());
                out.extend_from_slice(&message[place.end..]);
            }
            Some((_, None)) => out.extend_from_slice(&forgotten(message)),
        }
    }

    /// Appends the pieces of `message`, with the answer in place of its stand-in, to `out`. The report is not copied.
    pub fn pieces(&self, message: Bytes, out: &mut VecDeque<Bytes>) {
        match self.find(&message) {
            None => out.push_back(message),
            Some((place, Some((head, report)))) => out.extend([
                message.slice(..place.start),
                Bytes::from(head),
                Bytes::from_owner(Tail(report)),
                message.slice(place.end..),
            ]),
            Some((_, None)) => out.push_back(forgotten(&message).into()),
        }
    }

    /// Where a stand-in is, and the answer that it stands for, which is forgotten here then.
    fn find(&self, message: &[u8]) -> Option<(Range<usize>, Option<Answer>)> {
        let at = memmem::find(message, self.opening.as_bytes())?;
        let digits = message[at + self.opening.len()..].get(..DIGITS)?;
        let n = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let answer = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).answers.remove(&n);
        if answer.is_none() {
            self.flow.forgotten.add_one();
        }
        Some((at..at + self.opening.len() + DIGITS + CLOSING.len(), answer))
    }
}

/// The text of a report, as bytes that go with it.
struct Tail(Arc<Rendered>);

impl AsRef<[u8]> for Tail {
    fn as_ref(&self) -> &[u8] {
        self.0.tail().as_bytes()
    }
}

/// What a client is told whose answer is kept no more: that, and not what stood for it. What stands around the answer, as in
/// an event of a stream, stays.
fn forgotten(message: &[u8]) -> Vec<u8> {
    let start = memchr(b'{', message).unwrap_or_default();
    let end = memrchr(b'}', message).map_or(message.len(), |at| at + 1);
    let id = serde_json::from_slice::<Value>(&message[start..end]).map(|m| m["id"].clone()).unwrap_or_default();
    let error = json!({ "code": -32603, "message": "the answer is kept no more; ask again" });
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
    [&message[..start], error.as_bytes(), &message[end..]].concat()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::any_report;
    use tokio::io::AsyncWriteExt as _;

    fn message(splicer: &Splicer, age: u64) -> String {
        let report = Arc::new(Rendered::new(&any_report()).unwrap());
        format!(
            "{{\"id\":1,\"result\":{{\"structuredContent\":{},\"isError\":false}}}}\n",
            splicer.stand_in(age, report)
        )
    }

    #[tokio::test]
    async fn a_stand_in_is_written_as_the_report_with_its_age() {
        let splicer = Arc::new(Splicer::new(Arc::default()));
        let mut writer = SplicingWriter::new(Vec::new(), Arc::clone(&splicer));
        let sent = message(&splicer, 17);
        // In pieces, as a transport may write it.
        let (first, second) = sent.split_at(40);
        writer.write_all(first.as_bytes()).await.unwrap();
        writer.write_all(second.as_bytes()).await.unwrap();
        writer.write_all(b"{\"id\":2}\n").await.unwrap();
        writer.flush().await.unwrap();
        let written = String::from_utf8(writer.inner.clone()).unwrap();
        let (answer, rest) = written.split_once('\n').unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        let mut expected = serde_json::to_value(any_report()).unwrap();
        expected["age_ms"] = 17.into();
        assert_eq!(answer["result"]["structuredContent"], expected);
        assert_eq!(answer["result"]["isError"], false);
        assert_eq!(rest, "{\"id\":2}\n");
    }

    #[test]
    fn text_that_looks_like_a_stand_in_is_left_alone() {
        let splicer = Splicer::new(Arc::default());
        let mut out = Vec::new();
        let forged = b"{\"~00000000000000000000000000000000\":0}\n";
        splicer.expand(forged, &mut out);
        assert_eq!(out, forged);
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_for_long_gets_every_answer_all_the_same() {
        let splicer = Arc::new(Splicer::new(Arc::default()));
        let sent: Vec<String> = (0..5000).map(|age| message(&splicer, age)).collect();
        let mut writer = SplicingWriter::new(Vec::new(), splicer);
        writer.write_all(sent.concat().as_bytes()).await.unwrap();
        writer.flush().await.unwrap();
        let written = String::from_utf8(writer.inner.clone()).unwrap();
        assert!(written.lines().enumerate().all(|(n, line)| line.contains(&format!("{{\"age_ms\":{n},"))));
    }

    #[test]
    fn a_message_in_pieces_is_the_message() {
        let splicer = Splicer::new(Arc::default());
        let (sent, mut pieces) = (format!("data: {}\n", message(&splicer, 17)), VecDeque::new());
        splicer.pieces(sent.clone().into(), &mut pieces);
        let whole = pieces.iter().map(AsRef::<[u8]>::as_ref).collect::<Vec<_>>().concat();
        let json = whole.strip_prefix(b"data: ").unwrap();
        let answer: Value = serde_json::from_slice(json).unwrap();
        assert_eq!((&answer["result"]["structuredContent"]["age_ms"], pieces.len()), (&17.into(), 4));
        pieces.clear();
        splicer.pieces(sent.into(), &mut pieces);
        let again = String::from_utf8(pieces[0].to_vec()).unwrap();
        assert!(again.starts_with("data: {\"") && again.ends_with("}\n\n") && again.contains("-32603"), "{again}");
    }

    #[test]
    fn an_answer_that_was_forgotten_is_an_error_and_not_its_stand_in() {
        let splicer = Splicer::new(Arc::default());
        let first = message(&splicer, 0);
        let report = Arc::new(Rendered::new(&any_report()).unwrap());
        for _ in 0..MAX_WAITING {
            splicer.stand_in(0, Arc::clone(&report));
        }
        assert_eq!(splicer.waiting.lock().unwrap().answers.len(), MAX_WAITING);
        let mut out = Vec::new();
        splicer.expand(first.as_bytes(), &mut out);
        let error: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&1.into(), &(-32603).into()));
    }
}
