//! The audit log: who asked for what, when, and what came of it, and who was sent away, in `audit.jsonl`.

#[cfg(test)]
mod tests;

use super::log::{Keeping, Log, LogStats};
use crate::config;
use serde::{Serialize, Serializer};
use std::path::Path;

/// The longest text in a line, in characters.
const TEXT_MAX: usize = 256;
/// How many lines wait for the disk at most.
const QUEUE: usize = 1024;

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
    pub tool: &'static str,
    /// The session that was asked about, if one was.
    pub session: Option<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// How many agents the answer tells of.
    pub agents: u32,
    /// How long it took.
    pub micros: Micros,
}

/// Requests that were refused before they asked for anything: one, or how many where there were too many to tell of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedLine {
    /// When it came, or until when these have come, as Unix time in milliseconds; written as RFC 3339 in UTC.
    #[serde(rename = "time", serialize_with = "rfc3339")]
    pub unix_ms: u64,
    /// Which way they came.
    pub transport: Transport,
    /// Why, in a word of this program's.
    pub refused: &'static str,
    /// How many.
    pub times: u64,
    /// Which one.
    #[serde(flatten)]
    pub request: Option<RefusedRequest>,
}

/// One request that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedRequest {
    /// Whom its token names; `None`: nobody, or nobody that can be told.
    pub principal: Option<String>,
    /// The program that asked, as it calls itself.
    pub client: String,
    /// How it was asked.
    pub method: &'static str,
    /// What it was sent to, as the table of addresses has it.
    pub route: &'static str,
    /// The status of the answer.
    pub status: u16,
}

/// A line of the log.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Query(AuditLine),
    Refused(RefusedLine),
}

/// Which way a query came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered in full.
    Ok,
    /// It was answered, but something could not be observed.
    Partial,
    /// Its arguments were wrong.
    Invalid,
    /// The caller may not ask this.
    Denied,
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

/// The audit log of this process. Other processes may write to the same files.
#[derive(Debug)]
pub struct Audit(Log<Line>);

impl Audit {
    /// Starts a log in `dir`, which is made with the first line. It never fails: what is wrong stands in [`Audit::stats`].
    pub fn open(dir: &Path, config::Audit { enabled, max_bytes, keep }: config::Audit) -> Self {
        Self(Log::open(dir, Keeping { name: "audit", enabled, max_bytes, keep, queue: QUEUE }))
    }

    /// Keeps a line. It returns at once and cannot fail.
    pub fn record(&self, mut line: AuditLine) {
        for text in [&mut line.principal, &mut line.client] {
            tame(text);
        }
        line.session.as_mut().map(tame);
        self.0.record(Line::Query(line));
    }

    /// Keeps a line on what was refused. It returns at once and cannot fail.
    pub fn record_refused(&self, mut line: RefusedLine) {
        if let Some(request) = &mut line.request {
            tame(&mut request.client);
            request.principal.as_mut().map(tame);
        }
        self.0.record(Line::Refused(line));
    }

    /// What became of the lines so far.
    pub fn stats(&self) -> LogStats {
        self.0.stats()
    }
}

/// Makes a text short, and takes out the control characters that JSON lets pass.
fn tame(text: &mut String) {
    let tame = |c| if ('\u{7f}'..='\u{9f}').contains(&c) { char::REPLACEMENT_CHARACTER } else { c };
    let more = text.chars().nth(TEXT_MAX).map(|_| '…');
    *text = text.chars().take(TEXT_MAX).map(tame).chain(more).collect();
}

/// A moment as text.
///
/// # Errors
/// Those of the serializer.
pub fn rfc3339<S: Serializer>(unix_ms: &u64, to: S) -> Result<S::Ok, S::Error> {
    let time = i64::try_from(*unix_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    // Past the year 9999 there is no such text.
    to.collect_str(&format_args!("{:.3}", time.unwrap_or(jiff::Timestamp::MAX)))
}
