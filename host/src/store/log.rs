//! Logs: one JSON object a line in `NAME.jsonl`, in files that are closed at a size and of which only some are kept.
//!
//! What is logged must never wait or fail for its sake: lines go through a bounded queue to a thread of their own, and what
//! cannot be kept is counted.

mod files;

use files::Files;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines are written while other processes wait.
pub(super) const BATCH: usize = 64;
/// For how long lines are gathered before they are written. Meanwhile they wake nobody.
const GATHER: Duration = Duration::from_millis(20);
/// How long the end of the program waits for the last lines.
pub(super) const FLUSH: Duration = Duration::from_secs(1);

/// What is kept of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Its files are `NAME.jsonl` and so on.
    pub name: &'static str,
    /// Whether it is kept at all.
    pub enabled: bool,
    /// A file is closed before it would grow beyond so many bytes.
    pub max_bytes: u64,
    /// How many closed files are kept.
    pub keep: u32,
    /// How many lines wait for the disk at most.
    pub queue: usize,
}

/// What became of the lines so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogStats {
    /// Lines on disk.
    pub written: u64,
    /// Lines that found the queue full, or nobody to write them.
    pub dropped: u64,
    /// Lines that the disk refused.
    pub failed: u64,
    /// What it said last.
    pub last_error: Option<String>,
}

/// A log of this process. Other processes may write to the same files.
#[derive(Debug)]
pub struct Log<T> {
    /// `None` when no log is kept.
    sender: Option<Sending<T>>,
    counts: Arc<Counts>,
    /// Ends when the writer does. Locked only so that threads can share the log.
    ended: Mutex<Receiver<()>>,
}

/// The way to the writer.
#[derive(Debug)]
struct Sending<T> {
    lines: SyncSender<T>,
    /// Goes last: who hears that it has gone finds all lines in the queue.
    _open: Sender<()>,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl<T: Serialize + Send + 'static> Log<T> {
    /// Starts a log in `dir`, which is made with the first line. It never fails: what is wrong stands in [`Log::stats`].
    pub fn open(dir: &Path, keeping: Keeping) -> Self {
        let (sender, lines) = mpsc::sync_channel(keeping.queue);
        let (open, is_open) = mpsc::channel();
        let (alive, ended) = mpsc::channel();
        let counts = Arc::new(Counts::default());
        let sender = keeping.enabled.then_some(Sending { lines: sender, _open: open });
        let log = Self { sender, counts, ended: Mutex::new(ended) };
        if keeping.enabled {
            let files = Files::new(dir, keeping);
            let counts = log.counts.clone();
            let writer = move || {
                write(&lines, &is_open, &files, &counts);
                drop(alive);
            };
            // Without a writer the queue has no end to read it: every line counts as dropped.
            if let Err(error) = thread::Builder::new().name(keeping.name.into()).spawn(writer) {
                log.counts.note(&error);
            }
        }
        log
    }

    /// Keeps a line. It returns at once and cannot fail.
    pub fn record(&self, line: T) {
        if let Some(sender) = &self.sender
            && sender.lines.try_send(line).is_err()
        {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// What became of the lines so far.
    pub fn stats(&self) -> LogStats {
        let Counts { written, dropped, failed, last_error } = &*self.counts;
        LogStats {
            written: written.load(Relaxed),
            dropped: dropped.load(Relaxed),
            failed: failed.load(Relaxed),
            last_error: last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl<T> Drop for Log<T> {
    /// Lets the writer finish, but waits no longer than a second: a stuck disk must not keep the program.
    fn drop(&mut self) {
        if self.sender.take().is_some() {
            // Either way there is nothing left to do: the writer has ended, or is too slow.
            let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = ended.recv_timeout(FLUSH);
        }
    }
}

impl Counts {
    fn note(&self, error: &io::Error) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }
}

/// The writer: it ends when the log is dropped and the queue is empty.
fn write<T: Serialize>(lines: &Receiver<T>, is_open: &Receiver<()>, files: &Files, counts: &Counts) {
    while let Ok(first) = lines.recv() {
        // Until then, or until the log is dropped.
        let _ = is_open.recv_timeout(GATHER);
        let mut rest = std::iter::once(first).chain(lines.try_iter()).peekable();
        while rest.peek().is_some() {
            let batch: Vec<_> = rest.by_ref().take(BATCH).collect();
            let mut written = 0;
            let result = files.append(&batch, &mut written);
            counts.written.fetch_add(written, Relaxed);
            if let Err(error) = result {
                counts.failed.fetch_add(batch.len() as u64 - written, Relaxed);
                counts.note(&error);
            }
        }
    }
}
