//! The facts: all that was observed of a session at one moment. The Rust side of the records in `wit/policy.wit`,
//! with the few things more that a report shows and a policy does not need. As JSON they are what a snapshot file holds;
//! what may be missing there is what `none` stands for in the interface.

use crate::names::{Identity, Instance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Facts of one session at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// When the last figure was read, Unix milliseconds.
    pub now_ms: u64,
    /// Logical CPUs of the machine.
    pub cores: u32,
    /// The session itself.
    pub session: Session,
    /// Its agents, in a stable order.
    pub agents: Vec<Agent>,
    /// Where agents and numbers come from, and what failed.
    #[serde(default)]
    pub sources: Vec<SourceState>,
    /// Which headcount has observed it, where that is known. No policy sees it.
    #[serde(skip)]
    pub instance: Option<Instance>,
}

/// Agents that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The project's top folder; empty where it could not be found.
    pub root_path: String,
    /// The user whose processes these are, or who declared the session.
    pub owner: String,
    /// When its first agent started or it was declared, Unix milliseconds.
    pub created_at_ms: Option<u64>,
}

/// One agent: a process tree with a root, or something that a roster names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Stays the same as long as the agent lives.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it is for, where somebody said so.
    pub specialization: Option<String>,
    /// Which program it is ("claude", "codex", …; "process" where only a roster names it).
    pub kind: String,
    /// When its root process started or it was declared, Unix milliseconds.
    pub created_at_ms: Option<u64>,
    /// The root process, where there is one here.
    pub process_id: Option<u32>,
    /// The terminal it runs in.
    pub terminal: Option<Terminal>,
    /// The root process's state.
    pub process: ProcessState,
    /// How the root ended: exit code, or minus the signal's number.
    pub exit_code: Option<i32>,
    /// Figures over its process tree.
    #[serde(default)]
    pub metrics: Metrics,
    /// What trends are made of; `None` where there is no process to count. No policy sees it.
    #[serde(skip)]
    pub counters: Option<Counters>,
    /// The figures over time.
    pub trend: Option<Trend>,
    /// What its own records say of its work.
    pub usage: Option<Usage>,
    /// Dated statements about what it does.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// What could not be measured, and why.
    #[serde(default)]
    pub unmeasured: Vec<Gap>,
    /// How it is known of. No policy sees it.
    #[serde(skip)]
    pub origin: Origin,
    /// Which agent it is, whoever tells of it. No policy sees it.
    #[serde(skip)]
    pub identity: Option<Identity>,
    /// The headcounts through which it is known, from its own to the nearest. No policy sees it.
    #[serde(skip)]
    pub via: Vec<Instance>,
    /// What is recorded of it, where `headcount run` started it. No policy sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// How an agent is known of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Its process was found.
    #[default]
    Found,
    /// It is one of several conversations of a process.
    Conversation,
    /// A roster names it.
    Declared,
    /// It was registered, by hand, by an orchestrator or by `headcount run`.
    Registered,
    /// An upstream server tells of it.
    Elsewhere,
}

impl Agent {
    /// Its place in its session's list: the oldest comes first; one whose start is not known comes last.
    pub fn place(&self) -> (u64, &str) {
        (self.created_at_ms.unwrap_or(u64::MAX), &self.id)
    }
}

/// What is recorded of an agent that `headcount run` started: how it was started again and how it ended before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// How often it was started again.
    pub restarts: u32,
    /// When it was last started again, Unix milliseconds.
    pub restarted_at_ms: Option<u64>,
    /// How it last ended: exit code, or minus the signal's number.
    pub exit_code: Option<i32>,
    /// When it last ended, Unix milliseconds.
    pub ended_at_ms: Option<u64>,
    /// The number of the signal by which that end was asked for, where it was.
    pub request: Option<i32>,
    /// When it is to be started again, Unix milliseconds; `None` where it runs, or nobody will.
    pub next_start_at_ms: Option<u64>,
    /// How many restarts there were in a row, the one to come included.
    pub restarts_in_a_row: u32,
    /// How many there may be; `None`: it is not started again.
    pub max_restarts: Option<u32>,
    /// Whether it is not known to have ended.
    pub running: bool,
}

/// A terminal program and its own name for the tab or pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminal {
    /// "iterm2", "tmux" or "tty".
    pub app: Cow<'static, str>,
    /// The program's id for it, e.g. `%3` or `/dev/pts/4`.
    pub id: String,
}

/// The state of an agent's root process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// On a CPU or ready for one.
    Running,
    /// Waiting for something.
    Sleeping,
    /// Stopped by a signal or a tracer.
    Stopped,
    /// Waiting in the kernel, not to be interrupted.
    Uninterruptible,
    /// Ended, but its parent has not yet asked how.
    Zombie,
    /// Ended.
    Gone,
    /// Alive, but this user may not look at it.
    Unreadable,
    /// It has none of its own here: known from elsewhere, or one of several that share another agent's.
    NotLocal,
}

/// How a tree's memory was found; see `memory-method` in `wit/policy.wit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMethod {
    /// Proportional set size.
    Pss,
    /// Own pages summed and the largest shared part once.
    #[default]
    Estimate,
    /// Resident sizes summed: an upper bound.
    Resident,
}

/// Figures over an agent's process tree. `None` = not measured, with the reason in [`Agent::unmeasured`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Percent of one core since the sample before, waited children included.
    pub cpu_percent: Option<f64>,
    /// Bytes.
    pub memory_bytes: Option<u64>,
    /// How `memory_bytes` was found.
    pub memory_method: MemoryMethod,
    /// Threads of all living processes.
    pub threads: Option<u32>,
    /// Living processes; zombies are counted apart.
    pub processes: Option<u32>,
    /// Ended processes that nobody has waited for.
    pub zombies: Option<u32>,
    /// Open descriptors of all processes.
    pub file_descriptors: Option<u32>,
    /// Open descriptors of the process nearest to its own limit.
    pub fullest_fds: Option<u32>,
    /// That process's limit.
    pub fd_limit: Option<u32>,
    /// Bytes from storage since the tree was first seen.
    pub read_bytes: Option<u64>,
    /// Bytes to storage since the tree was first seen.
    pub written_bytes: Option<u64>,
}

/// What an agent's tree has used since it was first seen; never falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// CPU time.
    pub cpu_time: std::time::Duration,
    /// Bytes moved by system calls; `None`: may not be read.
    pub io_bytes: Option<u64>,
    /// Whether several agents share the processes: what these use is no single one's.
    pub shared: bool,
}

/// The figures over time; see `trend` in `wit/policy.wit`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trend {
    /// How far back samples reach.
    pub window_ms: u64,
    /// Mean over the window.
    pub cpu_percent_mean: Option<f64>,
    /// Least-squares slope.
    pub memory_bytes_per_minute: Option<f64>,
    /// Bytes moved by system calls in the window.
    pub io_bytes: Option<u64>,
    /// For how long neither CPU nor IO were above the noise floor.
    pub quiet_ms: u64,
}

impl Trend {
    /// What it says of each of several agents that share the processes: where nothing was done, none of them has done
    /// anything; but what was done may be another one's doing.
    #[must_use]
    pub fn of_each(self) -> Self {
        Self { cpu_percent_mean: None, io_bytes: None, ..self }
    }
}

/// What an agent's own records say of its work, counted since the agent's session began.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// The model's name.
    pub model: Option<String>,
    /// Tokens sent to the model.
    pub input_tokens: Option<u64>,
    /// Tokens that came back.
    pub output_tokens: Option<u64>,
    /// Tokens read from the model's cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to it.
    pub cache_write_tokens: Option<u64>,
    /// How full its context is.
    pub context_used_percent: Option<f64>,
    /// The tool that runs now.
    pub current_tool: Option<String>,
    /// Agents that run inside it.
    pub subagents: Option<u32>,
    /// MCP servers that it started.
    pub mcp_servers: Option<u32>,
}

impl Usage {
    /// Its fields, as gaps name them.
    const FIELDS: [&str; 9] = [
        "model",
        "input-tokens",
        "output-tokens",
        "cache-read-tokens",
        "cache-write-tokens",
        "context-used-percent",
        "current-tool",
        "subagents",
        "mcp-servers",
    ];

    /// Whether this is one of its fields.
    pub fn has(field: &str) -> bool {
        Self::FIELDS.contains(&field)
    }

    /// What either says; where both do, the first counts.
    pub fn either(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        let (Some(first), Some(second)) = (&first, &second) else { return first.or(second) };
        Some(first.clone().or(second.clone()))
    }

    fn or(self, other: Self) -> Self {
        Self {
            model: self.model.or(other.model),
            input_tokens: self.input_tokens.or(other.input_tokens),
            output_tokens: self.output_tokens.or(other.output_tokens),
            cache_read_tokens: self.cache_read_tokens.or(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.or(other.cache_write_tokens),
            context_used_percent: self.context_used_percent.or(other.context_used_percent),
            current_tool: self.current_tool.or(other.current_tool),
            subagents: self.subagents.or(other.subagents),
            mcp_servers: self.mcp_servers.or(other.mcp_servers),
        }
    }
}

/// What a statement says of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
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
    /// A word we do not know.
    Unknown,
}

/// Where a statement comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent's own state record.
    OwnRecord,
    /// An event it sent.
    Hook,
    /// Its transcript.
    Transcript,
    /// Its processes.
    Process,
    /// Another MCP server.
    Upstream,
}

/// One dated statement about what an agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Where from.
    pub source: Source,
    /// What it says.
    pub claim: Claim,
    /// The record's own word.
    pub word: String,
    /// More about it ("permission prompt").
    pub detail: Option<String>,
    /// When, Unix milliseconds.
    pub at_ms: u64,
}

/// The field of a gap where what would say what an agent does is there and not read yet: nothing else says it, least of all
/// that its processes rest.
pub const ACTIVITY: &str = "activity";

/// A fact that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The field, as in `wit/policy.wit` ("cpu-percent"), or [`ACTIVITY`].
    pub field: Cow<'static, str>,
    /// Why.
    pub reason: String,
    /// Whether it is never recorded by such agents, or never read by design: then nothing has failed. No policy sees it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_design: bool,
}

impl Gap {
    /// What could not be had this time.
    pub fn new(field: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into(), by_design: false }
    }

    /// What cannot be had of such an agent at all.
    pub fn by_design(field: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        Self { by_design: true, ..Self::new(field, reason) }
    }
}

/// A place that agents or numbers come from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState {
    /// "processes", "roster:FILE", "registry", …
    pub name: String,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// The upstream to whose own sessions alone it adds anything: they alone have it among their sources.
    #[serde(skip)]
    pub confined_to: Option<Arc<str>>,
}
