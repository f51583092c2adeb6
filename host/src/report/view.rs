//! Which part of a session a caller wants to see.

use super::{ActivityState, AgentStatus};
use serde::Serialize;
use std::str::FromStr;

/// Agents on one page where the caller does not say.
pub const DEFAULT_LIMIT: usize = 200;
/// Agents on one page at the most.
pub const MAX_LIMIT: usize = 5000;

/// Which agents to list and what of each. Totals, health and advice are of the whole session whatever is listed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// Whether to show figures.
    pub metrics: bool,
    /// Whether to show how each agent fared.
    pub health: bool,
    /// Lists only agents that match one of these; empty = all.
    pub only: Vec<Filter>,
    /// Agents on one page, 1 to [`MAX_LIMIT`] for those who ask.
    pub limit: usize,
    /// Where the page starts: the `next_cursor` of the one before.
    pub cursor: Option<Cursor>,
}

impl Default for View {
    fn default() -> Self {
        Self { metrics: true, health: true, only: Vec::new(), limit: DEFAULT_LIMIT, cursor: None }
    }
}

/// Why a view cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// Not a word of either list.
    #[error("`{0}` is neither a status nor an activity; the statuses are {statuses}, the activities {activities}", statuses = words(AgentStatus::ALL), activities = words(ActivityState::ALL))]
    Filter(String),
    /// Beyond the range.
    #[error("limit is {0}; it can be 1 to {MAX_LIMIT}")]
    Limit(u64),
    /// Not one of ours.
    #[error("`{0}` is not a cursor; take `next_cursor` of the page before as it is")]
    Cursor(String),
}

impl View {
    /// Everything but figures: for what is found out of a report, and not shown.
    pub fn whole() -> Self {
        Self { metrics: false, limit: usize::MAX, ..Self::default() }
    }

    /// Checks a page size.
    ///
    /// # Errors
    /// [`ViewError::Limit`] outside 1 to [`MAX_LIMIT`].
    pub fn check_limit(limit: u64) -> Result<usize, ViewError> {
        usize::try_from(limit).ok().filter(|n| (1..=MAX_LIMIT).contains(n)).ok_or(ViewError::Limit(limit))
    }
}

/// A status or an activity that an agent must have to be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    /// It must have this status.
    Status(AgentStatus),
    /// It must do this.
    Activity(ActivityState),
    /// The one word that is in both lists: neither what it does nor its status is known.
    Unknown,
}

impl Filter {
    /// Every word that can be asked for, in small letters.
    pub fn words() -> Vec<String> {
        let statuses = AgentStatus::ALL.iter().map(|s| word(s).to_lowercase());
        let activities = ActivityState::ALL.iter().map(word).filter(|w| w != "unknown");
        statuses.chain(activities).collect()
    }

    /// Whether an agent with this status and activity is meant.
    pub fn matches(self, status: AgentStatus, activity: ActivityState) -> bool {
        match self {
            Self::Status(wanted) => wanted == status,
            Self::Activity(wanted) => wanted == activity,
            Self::Unknown => status == AgentStatus::Unknown || activity == ActivityState::Unknown,
        }
    }
}

impl FromStr for Filter {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<Self, ViewError> {
        let status = AgentStatus::ALL.iter().find(|s| word(s).eq_ignore_ascii_case(text));
        let activity = ActivityState::ALL.iter().find(|a| word(a).eq_ignore_ascii_case(text));
        match (status, activity) {
            (Some(_), Some(_)) => Ok(Self::Unknown),
            (Some(status), None) => Ok(Self::Status(*status)),
            (None, Some(activity)) => Ok(Self::Activity(*activity)),
            (None, None) => Err(ViewError::Filter(super::clean(text))),
        }
    }
}

/// A place in a session's list of agents that stays valid when agents come and go: after whom the page begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor {
    created_at_ms: u64,
    agent_id: String,
}

impl Cursor {
    /// The place of one agent. Cursors have the order of the list.
    pub fn at(agent: &crate::observe::facts::Agent) -> Self {
        let (created_at_ms, agent_id) = agent.place();
        Self { created_at_ms, agent_id: agent_id.to_owned() }
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.created_at_ms, self.agent_id)
    }
}

impl FromStr for Cursor {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<Self, ViewError> {
        // Views are kept for a while, so a cursor may not be a megabyte; ours have a kind's or an agent's name in them.
        let parsed =
            text.split_once(':').filter(|_| text.len() <= 512).and_then(|(ms, id)| Some((ms.parse().ok()?, id)));
        match parsed {
            Some((created_at_ms, id)) if !id.is_empty() => Ok(Self { created_at_ms, agent_id: id.to_owned() }),
            _ => Err(ViewError::Cursor(super::clean(text))),
        }
    }
}

/// A word as the report spells it.
pub fn word(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(serde_json::Value::String(text)) => text,
        other => unreachable!("words are strings, not {other:?}"),
    }
}

fn words(all: &[impl Serialize]) -> String {
    all.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_both_lists_are_understood_in_any_case() {
        assert_eq!("failed".parse::<Filter>().unwrap(), Filter::Status(AgentStatus::Failed));
        assert_eq!("WAITING_FOR_INPUT".parse::<Filter>().unwrap(), Filter::Activity(ActivityState::WaitingForInput));
        assert_eq!("unknown".parse::<Filter>().unwrap(), Filter::Unknown);
        let error = "broken".parse::<Filter>().unwrap_err().to_string();
        assert!(error.contains("ACTIVE") && error.contains("waiting_for_input"), "{error}");
    }

    #[test]
    fn cursors_come_back_as_they_were() {
        let cursor = Cursor { created_at_ms: 17, agent_id: "claude-1:2-ab".into() };
        assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        for bad in ["", "x", "12", "12:", ":a", "-1:a", &format!("1:{}", "a".repeat(511))] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }
}
