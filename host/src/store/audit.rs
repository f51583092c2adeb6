//! The audit log: who asked for a status, when, and what came of it; one JSON object a line in `audit.jsonl`.
//!
//! A query must never wait or fail for its sake: lines go through a bounded queue to a thread of their own, and what
//! cannot be kept is counted.

mod files;
#[cfg(test)]
mod tests;

use crate::config;
use files::Files;
use serde::{Serialize, Serializer};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines wait for the disk at most.
const QUEUE: usize = 1024;
/// How many lines are written while other processes wait.
const BATCH: usize = 64;
/// The longest text in a line, in characters.
const TEXT_MAX: usize = 256;
/// How long the end of the program waits for the last lines.
const FLUSH: Duration = Duration::from_secs(1);

/// One status query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    /// When it came, as Unix time in milliseconds; written as RFC 3339 in UTC.
    #[serde(rename = "time", serialize_with = "rfc3339")]
    pub unix_ms: u64,
    /// For whom: the OS user, or whom a token names.
    pub principal: String,
    /// The program that asked, as it calls itself.
    pub client: String,
    /// Which way it came.
    pub transport: Transport,
    /// What was called.
    pub tool: String,
    /// The session that was asked about, if one was.
    pub session: Option<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// How many agents the answer tells of.
    pub agents: u32,
    /// How long it took.
    pub micros: Micros,
}

/// Which way a query came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The command line.
    Cli,
    /// MCP over standard input and output.
    Stdio,
    /// MCP or REST over HTTP.
    Http,
}

/// What came of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered in full.
    Ok,
    /// It was answered, but something could not be observed.
    Partial,
    /// Its arguments were wrong.
    Invalid,
    /// There is no such session.
    NotFound,
    /// The caller withdrew it.
    Cancelled,
    /// It could not be answered.
    Failed,
}

/// How long the phases of a query took, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Micros {
    /// Gathering the facts.
    pub observe: u64,
    /// The policies.
    pub judge: u64,
    /// Assembling the report.
    pub report: u64,
    /// Everything, from call to answer.
    pub total: u64,
}

/// What became of the lines so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditStats {
    /// Lines on disk.
    pub written: u64,
    /// Lines that found the queue full, or nobody to write them.
    pub dropped: u64,
    /// Lines that the disk refused.
    pub failed: u64,
    /// What it said last.
    pub last_error: Option<String>,
}

/// The audit log of this process. Other processes may write to the same files.
#[derive(Debug)]
pub struct Audit {
    /// `None` when no log is kept.
    sender: Option<SyncSender<AuditLine>>,
    counts: Arc<Counts>,
    /// Ends when the writer does. Locked only so that threads can share the log.
    ended: Mutex<Receiver<()>>,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Audit {
    /// Starts a log in `dir`, which is made with the first line. It never fails: what is wrong stands in [`Audit::stats`].
    pub fn open(dir: &Path, settings: config::Audit) -> Self {
        let (sender, lines) = mpsc::sync_channel(QUEUE);
        let (alive, ended) = mpsc::channel();
        let counts = Arc::new(Counts::default());
        let log = Self { sender: settings.enabled.then_some(sender), counts, ended: Mutex::new(ended) };
        if settings.enabled {
            let files = Files::new(dir, settings.max_bytes, settings.keep);
            let counts = log.counts.clone();
            let writer = move || {
                write(&lines, &files, &counts);
                drop(alive);
            };
            // Without a writer the queue has no end to read it: every line counts as dropped.
            if let Err(error) = thread::Builder::new().name("audit".into()).spawn(writer) {
                log.counts.note(&error);
            }
        }
        log
    }

    /// Keeps a line. It returns at once and cannot fail.
    pub fn record(&self, mut line: AuditLine) {
        let Some(sender) = &self.sender else { return };
        for text in [&mut line.principal, &mut line.client, &mut line.tool] {
            tame(text);
        }
        line.session.as_mut().map(tame);
        if sender.try_send(line).is_err() {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// What became of the lines so far.
    pub fn stats(&self) -> AuditStats {
        let Counts { written, dropped, failed, last_error } = &*self.counts;
        AuditStats {
            written: written.load(Relaxed),
            dropped: dropped.load(Relaxed),
            failed: failed.load(Relaxed),
            last_error: last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl Drop for Audit {
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
fn write(lines: &Receiver<AuditLine>, files: &Files, counts: &Counts) {
    while let Ok(first) = lines.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(lines.try_iter().take(BATCH - 1)).collect();
        let mut written = 0;
        let result = files.append(&batch, &mut written);
        counts.written.fetch_add(written, Relaxed);
        if let Err(error) = result {
            counts.failed.fetch_add(batch.len() as u64 - written, Relaxed);
            counts.note(&error);
        }
    }
}

/// Makes a text short, and takes out the control characters that JSON lets pass.
fn tame(text: &mut String) {
    let tame = |c| if ('\u{7f}'..='\u{9f}').contains(&c) { char::REPLACEMENT_CHARACTER } else { c };
    let more = text.chars().nth(TEXT_MAX).map(|_| '…');
    *text = text.chars().take(TEXT_MAX).map(tame).chain(more).collect();
}

fn rfc3339<S: Serializer>(unix_ms: &u64, to: S) -> Result<S::Ok, S::Error> {
    let time = i64::try_from(*unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    // Past the year 9999 there is no such text.
    to.collect_str(&format_args!("{:.3}", time.unwrap_or(jiff::Timestamp::MAX)))
}
