//! Questions that every surface can ask, and why one cannot be answered. Session ids are looked at before anything is looked up.

use crate::figures::{Count, Durations, Each};
use crate::monitor::{Ended, Find, Seen, Tick};
use crate::names::{self, BadName};
use crate::observe::facts::SourceState;
use crate::report::{self, ViewError};
use crate::store::audit::{AuditLine, Micros, Outcome, Transport};
use std::sync::Arc;
use std::time::Duration;

/// Why a question cannot be answered; each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// Not the form of an id or a name.
    #[error("`session_id`: {0}")]
    BadName(#[from] BadName),
    /// No such session.
    #[error("there is no session `{asked}`; {}{}", listed(.known), not_read(.unread))]
    Unknown {
        /// What was asked for.
        asked: String,
        /// Some of the ids that there are.
        known: Vec<String>,
        /// What could not be read, and may have it.
        unread: Vec<String>,
    },
    /// A name that several sessions have.
    #[error("several sessions are named `{asked}`; ask for one by its id: {}", ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// A view that cannot be shown.
    #[error(transparent)]
    View(#[from] ViewError),
    /// Nobody looks any more.
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl QueryError {
    /// What the audit log calls it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::BadName(_) | Self::View(_) => Outcome::Invalid,
            Self::Unknown { .. } | Self::Ambiguous { .. } => Outcome::NotFound,
            Self::Ended(_) => Outcome::Failed,
        }
    }
}

/// The session with this id, or the only one with this name.
///
/// # Errors
/// [`QueryError::BadName`] before any look-up, [`QueryError::Unknown`] or [`QueryError::Ambiguous`] after it.
pub fn find<'t>(tick: &'t Tick, asked: &str) -> Result<&'t Arc<Seen>, QueryError> {
    const NAMED: usize = 8;
    names::check_session_name(asked)?;
    match tick.find(asked) {
        Find::One(seen) => Ok(seen),
        Find::Several(ids) => Err(QueryError::Ambiguous {
            asked: report::clean(asked),
            ids: ids.into_iter().map(str::to_owned).collect(),
        }),
        Find::None => Err(QueryError::Unknown {
            asked: report::clean(asked),
            known: tick.sessions.iter().take(NAMED).map(|s| s.facts.session.id.clone()).collect(),
            unread: tick.sources.iter().filter_map(unread).collect(),
        }),
    }
}

fn listed(ids: &[String]) -> String {
    if ids.is_empty() { "no session is seen here at all".to_owned() } else { format!("there are {}", ids.join(", ")) }
}

fn unread(source: &SourceState) -> Option<String> {
    source.error.as_ref().map(|error| format!("{}: {}", report::clean(&source.name), report::clean(error)))
}

fn not_read(unread: &[String]) -> String {
    if unread.is_empty() { String::new() } else { format!("; not read, and it may be there: {}", unread.join("; ")) }
}

/// The query that is looked at by the parts that it takes, by its names in MCP and REST.
pub const STATUS: [&str; 2] = ["get_session_status", "GET /v1/sessions/{id}/status"];

/// How queries fared, as the audit log has it.
#[derive(Debug, Default)]
pub struct Queries {
    /// How many there were: by what was called, the way it came, and what came of it.
    pub all: Each<(&'static str, Transport, Outcome), Count>,
    /// How long those of [`STATUS`] took, from call to answer.
    pub status: Each<(Transport, Outcome), Durations>,
    /// How long the parts of those took. The first two were taken by the tick that they were answered from, which they may have
    /// in common.
    pub parts: Each<&'static str, Durations>,
}

impl Queries {
    /// Notes one that was answered.
    pub fn note(&self, line: &AuditLine) {
        self.all.note((line.tool, line.transport, line.outcome), Count::add_one);
        if !STATUS.contains(&line.tool) {
            return;
        }
        let Micros { observe, judge, report, total } = line.micros;
        self.status.note((line.transport, line.outcome), |took| took.note(Duration::from_micros(total)));
        if matches!(line.outcome, Outcome::Ok | Outcome::Partial) {
            for (part, micros) in [("observe", observe), ("judge", judge), ("report", report)] {
                self.parts.note(part, |took| took.note(Duration::from_micros(micros)));
            }
        }
    }
}

/// What a tick and an answer took, as the audit log notes it.
pub fn micros(tick: Option<&Tick>, report: Duration, total: Duration) -> Micros {
    let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
    let timings = tick.map(|t| t.timings).unwrap_or_default();
    Micros {
        observe: micros(timings.observe),
        judge: micros(timings.judge),
        report: micros(report),
        total: micros(total),
    }
}
