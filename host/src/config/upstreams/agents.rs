//! Which of a server's answers says who works there, and how it is read.

use super::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// JSON pointers: RFC 6901.
const POINTER: &str = "^(/([^~/]|~[01])*)*$";

/// Agents that a server knows of. Another headcount's `list_sessions` and `get_session_status` are understood as they are; what
/// others answer needs a `map`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentsFrom {
    /// The tool that is called.
    #[schemars(length(min = 1, max = 256))]
    pub tool: String,
    /// What it is given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Where in the answer what stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<AgentMap>,
    /// How often it is asked (100 ms to 1 h).
    #[serde(default = "every")]
    #[schemars(extend("x-least" = "100ms", "x-most" = "1h"))]
    pub every: Span,
    /// How old an answer may be before nobody knows what its agents do (at least `every`).
    #[serde(default = "stale_after")]
    pub stale_after: Span,
    /// Which sessions its agents are in.
    #[serde(default)]
    pub sessions: Join,
    /// What the session is called of agents of which the answer says no session; the server's name if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub session: Option<String>,
}

impl AgentsFrom {
    /// The tool of another headcount that is called for each session of its list.
    pub const STATUS: &str = "get_session_status";

    /// Its tool that lists them.
    const SESSIONS: &str = "list_sessions";

    /// That an answer would be too old before the next one comes.
    pub(super) fn too_impatient(&self) -> Option<String> {
        let Self { every, stale_after, .. } = self;
        (stale_after.0 < every.0).then(|| format!("wanted at least `every` ({every}), found {stale_after}"))
    }

    /// Which tool it needs that is not among those that may be called, if only some may.
    pub(super) fn not_allowed(&self, allow: &[String]) -> Option<String> {
        let status = (self.map.is_none() && self.tool == Self::SESSIONS).then_some(Self::STATUS);
        let mut needed = [self.tool.as_str()].into_iter().chain(status);
        let missing = needed.find(|tool| !allow.is_empty() && allow.iter().all(|allowed| allowed != tool))?;
        Some(format!("needs {missing:?}, which is not in `allow`"))
    }
}

/// Which sessions a server's agents are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Join {
    /// Its own alone.
    #[default]
    Own,
    /// Where there is a session here with the same root path, that one.
    ByRootPath,
    /// Where there is exactly one session here with the same name, that one.
    ByName,
}

/// Where in an answer what stands: JSON pointers (RFC 6901). `agents` points into the answer, all others into each of the list's
/// elements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentMap {
    /// The list of agents; the answer itself if not set.
    #[serde(default)]
    #[schemars(regex(pattern = POINTER))]
    pub agents: String,
    /// What tells an agent from all others, and stays the same.
    #[schemars(regex(pattern = POINTER))]
    pub id: String,
    /// What people call it; its id if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub specialization: Option<String>,
    /// Which program it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub kind: Option<String>,
    /// The word for what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub activity: Option<String>,
    /// What it says beyond that word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub reason: Option<String>,
    /// Since when it does that: RFC 3339, or Unix seconds or milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub since: Option<String>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub created_at: Option<String>,
    /// Its process id there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub pid: Option<String>,
    /// What tells its session from all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub session_id: Option<String>,
    /// What people call its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub session_name: Option<String>,
    /// The project's top folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = POINTER))]
    pub root_path: Option<String>,
    /// What the server's own words for an activity mean. `working`, `waiting`, `idle`, `finished` and `failed` need no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, Meaning>,
}

/// What a server's word for an activity means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// At work.
    Working,
    /// Waits for a person.
    Waiting,
    /// Nothing to do.
    Idle,
    /// Done.
    Finished,
    /// Failed.
    Failed,
}

fn every() -> Span {
    Span::from_millis(5_000)
}

fn stale_after() -> Span {
    Span::from_millis(60_000)
}
