//! Questions that every surface can ask, and why one cannot be answered. Session ids are looked at before anything is looked up.

use crate::monitor::{Ended, Find, Seen, Tick};
use crate::names::{BadName, SessionId};
use crate::report::ViewError;
use std::sync::Arc;

/// Why a question cannot be answered; each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// Not the form of an id or a name.
    #[error("`session_id`: {0}")]
    BadName(#[from] BadName),
    /// No such session.
    #[error("there is no session `{asked}`; {}", known(.known, "list_sessions names those that there are"))]
    Unknown {
        /// What was asked for.
        asked: String,
        /// Some of the ids that there are.
        known: Vec<String>,
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
    /// Its kind in one word, for the audit log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BadName(_) => "bad-session-id",
            Self::Unknown { .. } => "unknown-session",
            Self::Ambiguous { .. } => "ambiguous-name",
            Self::View(_) => "bad-view",
            Self::Ended(_) => "no-sampler",
        }
    }
}

/// The session with this id, or the only one with this name.
///
/// # Errors
/// [`QueryError::BadName`] before any look-up, [`QueryError::Unknown`] or [`QueryError::Ambiguous`] after it.
pub fn find<'t>(tick: &'t Tick, asked: &str) -> Result<&'t Arc<Seen>, QueryError> {
    const NAMED: usize = 8;
    crate::names::check_session_name(asked)?;
    match tick.find(asked) {
        Find::One(seen) => Ok(seen),
        Find::Several(ids) => Err(QueryError::Ambiguous {
            asked: asked.to_owned(),
            ids: ids.into_iter().map(str::to_owned).collect(),
        }),
        Find::None => Err(QueryError::Unknown {
            asked: asked.to_owned(),
            known: tick.sessions.iter().take(NAMED).map(|s| s.facts.session.id.clone()).collect(),
        }),
    }
}

fn known(ids: &[String], more: &str) -> String {
    if ids.is_empty() { "no session is seen here at all".to_owned() } else { format!("there is {} ({more})", ids.join(", ")) }
}
