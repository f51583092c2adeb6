//! `status.json`: how a retained session says that it stands.

use crate::observe::processes::{Machine, ProcessId};
use serde::{Deserialize, Serialize};

/// The file's name in the session's folder.
pub const STATUS_FILE: &str = "status.json";

/// How a retained session stands. The first five members are all that older programs write; a member that is not known is
/// passed over, because later ones may write more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetainedStatus {
    /// Where the connection is.
    pub state: RetainedState,
    /// The process that keeps it.
    pub pid: u32,
    /// `ready`: the tools that may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// `ready`: how many more there are than are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_tools: Option<usize>,
    /// `busy`: the one that is being called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_tool: Option<String>,
    /// `failed`: why, as one of few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the server says of itself: name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The raw start token of `pid`: by it the process is known from a later one with its pid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// The boot that `pid` and `start` are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The pid namespace that `pid` is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<String>,
    /// Since when it is in this state, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// When the process last said that it lives, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// Whether there is a connection now: one that was lost is made again for the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<bool>,
}

/// Where the connection of a retained session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetainedState {
    /// It waits for requests.
    Ready,
    /// It has called a tool.
    Busy,
    /// It was ended.
    Closed,
    /// It has come to nothing.
    Failed,
}

impl RetainedStatus {
    /// The process that keeps it, where the file says which one exactly.
    pub fn process(&self) -> Option<(Machine, ProcessId)> {
        let machine = Machine { boot_id: self.boot_id.clone()?, pid_namespace: self.pid_namespace.clone()? };
        Some((machine, ProcessId { pid: self.pid, start: self.start? }))
    }
}
