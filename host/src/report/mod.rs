//! The one view model: facts and verdict as every surface shows them. Nothing here judges; what is not measured is
//! `null`, with the reason beside it.

mod assemble;
mod attention;
mod decision;
mod facts;
mod mark;
mod policies;
mod rendered;
mod run;
mod sessions;
mod summary;
#[cfg(test)]
pub(crate) mod tests;
mod verdict;
mod view;

pub use crate::text::clean;
pub(crate) use assemble::time;
pub use assemble::{report, source};
pub use attention::{ATTENTION_SCHEMA, AttentionReport, Need, NeedKind, Standing};
pub use decision::{DECISION_SCHEMA, Decision, Judged};
pub use facts::clean_facts;
pub use mark::{BadMark, Mark};
pub use policies::{PolicyReport, PolicyRow, ShadowAgent, ShadowReport, policy_rows};
pub use rendered::Rendered;
pub use run::RunReport;
pub use sessions::{Numbers, SessionRow, Sessions, sessions};
pub use summary::summary;
pub use verdict::{AgentVerdictView, NoVerdictView, ProblemView, VerdictView, no_verdict, verdict};
pub use view::{Cursor, DEFAULT_LIMIT, Filter, MAX_LIMIT, View, ViewError, word};

use crate::names::{Identity, Instance};
use crate::observe::facts::Usage;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The name and version of the report's format.
pub const SCHEMA: &str = "headcount.report/1";

/// What is known of one session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Report")]
pub struct Report {
    /// How old the figures are, in milliseconds. First, so that it can be renewed in a report that is already text.
    pub age_ms: u64,
    /// `headcount.report/1`.
    pub schema: &'static str,
    /// Which headcount has looked: the same for all of one machine, pid namespace and state directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// Whether the session could be looked at. Parts may be missing all the same: see `partial`.
    pub success: bool,
    /// The session's id.
    pub session_id: String,
    /// Its name.
    pub session_name: String,
    /// The project's top folder; empty where it is not known.
    pub root_path: String,
    /// When its first agent started or it was declared, RFC 3339 in UTC.
    pub created_at: Option<String>,
    /// When the figures were read, RFC 3339 in UTC.
    pub observed_at: String,
    /// Agents of the whole session.
    pub agent_count: usize,
    /// Whether something that should be there could not be measured or read: see `unmeasured` of the agents, `sources` and
    /// `policies`. What such agents never record, or nobody reads by design, has a reason there and is not meant.
    pub partial: bool,
    /// Whether `agents` leaves some out: see `next_cursor`.
    pub truncated: bool,
    /// What to ask for the next page with.
    pub next_cursor: Option<String>,
    /// Figures of the whole session; null where no policy came to a verdict.
    pub session_metrics: Option<SessionMetrics>,
    /// The session's health.
    pub session_health: SessionHealth,
    /// 0 (worst) to 100; null where no policy came to a verdict, or one that must has failed.
    pub session_score: Option<u8>,
    /// Checks of the whole session that did not pass.
    pub session_checks: Vec<CheckResult>,
    /// Who needs somebody, most urgent first.
    pub attention: Vec<Attention>,
    /// Its agents, oldest first.
    pub agents: Vec<AgentReport>,
    /// Where agents and figures come from.
    pub sources: Vec<SourceReport>,
    /// Who judged.
    pub policies: Vec<PolicyReport>,
    /// What the policies in shadow mode would say. Nothing else in the report follows from it.
    pub shadow: Vec<ShadowReport>,
}

/// One agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentReport {
    /// Stays the same as long as the agent lives.
    pub agent_id: String,
    /// What people call it.
    pub agent_name: String,
    /// What it is for, where somebody said so.
    pub specialization: Option<String>,
    /// Which program it is.
    pub kind: String,
    /// Whether it can be relied upon.
    pub status: AgentStatus,
    /// When it started, RFC 3339 in UTC.
    pub created_at: Option<String>,
    /// The root of its process tree.
    pub process_id: Option<u32>,
    /// Which agent it is, whichever headcount tells of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Only of one that an upstream server tells of: the headcounts through which it is known, from its own to the nearest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub via: Vec<Instance>,
    /// Its tab in iTerm2.
    pub iterm_tab_id: Option<String>,
    /// The terminal it runs in.
    pub terminal: Option<TerminalReport>,
    /// What it does.
    pub activity: ActivityReport,
    /// What its own records say of its work; null where it keeps none that can be read.
    pub work: Option<Usage>,
    /// What is recorded of it; only where `headcount run` started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// Figures over its whole process tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsReport>,
    /// How it fared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthReport>,
}

impl AgentReport {
    /// What it is called where it is shown: its name, what it is for, and its process.
    pub fn label(&self) -> String {
        let specialization = self.specialization.as_deref().map(|s| format!(" ({s})")).unwrap_or_default();
        let pid = self.process_id.map(|pid| format!(" {pid}")).unwrap_or_default();
        format!("{}{specialization}{pid}", self.agent_name)
    }
}

/// A terminal program and its own name for the tab or pane.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TerminalReport {
    /// `iterm2`, `tmux` or `tty`.
    pub app: String,
    /// The program's id for it.
    pub id: String,
}

/// What an agent does, and how that is known.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ActivityReport {
    /// In one word.
    pub state: ActivityState,
    /// In some more.
    pub reason: String,
    /// Since when, RFC 3339 in UTC.
    pub since: Option<String>,
    /// The kind of evidence that decided.
    pub decided_by: DecidedBy,
    /// Whether no record or event says so, and it was concluded from processes or silence.
    pub inferred: bool,
    /// Whether its record does not say since when: then `since` is when this process saw it first.
    #[serde(skip)]
    pub(crate) undated: bool,
}

/// Figures over an agent's process tree; null = not measured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MetricsReport {
    /// Percent of one core: 200 = two cores busy.
    pub cpu_percent: Option<f64>,
    /// Mebibytes.
    pub memory_mb: Option<f64>,
    /// `pss`, `estimate` (own pages, and the largest shared part once) or `resident` (an upper bound).
    pub memory_method: &'static str,
    /// Open descriptors.
    pub file_descriptors: Option<u32>,
    /// Threads.
    pub thread_count: Option<u32>,
    /// Living processes.
    pub process_count: Option<u32>,
    /// Mebibytes read from storage since the tree was first seen.
    pub read_mb: Option<f64>,
    /// Mebibytes written to storage since the tree was first seen.
    pub written_mb: Option<f64>,
    /// Why a figure is null, here or in `work`, or why nothing tells what the agent does.
    pub unmeasured: BTreeMap<String, String>,
    /// Those of them that such an agent could have: all but what it never records, or nobody reads by design.
    #[serde(skip)]
    pub(crate) expected: BTreeSet<String>,
}

/// How an agent fared.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HealthReport {
    /// In one word.
    pub status: HealthStatus,
    /// 0 (worst) to 100; null where no policy came to a verdict.
    pub score: Option<u8>,
    /// When it was judged, RFC 3339 in UTC.
    pub last_check: String,
    /// Checks that did not pass.
    pub check_results: Vec<CheckResult>,
}

/// One thing looked at.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// In a sentence.
    pub detail: String,
    /// What was seen.
    pub value: Option<f64>,
    /// What it was held against.
    pub limit: Option<f64>,
}

/// Figures of a whole session: sums over the agents that could be measured, and how many agents are what.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionMetrics {
    /// Percent of one core.
    pub total_cpu_percent: f64,
    /// Mebibytes.
    pub total_memory_mb: f64,
    /// Open descriptors.
    pub total_file_descriptors: u64,
    /// Threads.
    pub total_threads: u64,
    /// Living processes.
    pub total_processes: u64,
    /// Agents at work or ready for it.
    pub active_agents: u32,
    /// Agents that stall or fail a check.
    pub degraded_agents: u32,
    /// Agents that ended badly.
    pub failed_agents: u32,
    /// Agents that have finished.
    pub offline_agents: u32,
    /// Agents of which nothing is known.
    pub unknown_agents: u32,
    /// Agents that wait for a person.
    pub waiting_agents: u32,
    /// Agents that could not be measured fully; their missing figures are in no sum.
    pub unmeasured_agents: u32,
}

/// Somebody who needs somebody.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Attention {
    /// Whom it is about; null = the session.
    pub agent_id: Option<String>,
    /// Why.
    pub why: String,
    /// What to do.
    pub action: String,
}

/// A place that agents and figures come from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// Whether it could be read.
    pub ok: bool,
    /// Why not.
    pub error: Option<String>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident as $case:literal { $($(#[$word_doc:meta])* $word:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
        #[serde(rename_all = $case)]
        pub enum $name { $($(#[$word_doc])* $word),+ }

        impl $name {
            /// Every word there is.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];
        }
    };
}

words! {
    /// Whether an agent can be relied upon.
    AgentStatus as "UPPERCASE" {
        /// At work or ready for it.
        Active,
        /// Stalled, or failing a check.
        Degraded,
        /// Ended badly.
        Failed,
        /// Finished.
        Offline,
        /// Not known.
        Unknown,
    }
}

words! {
    /// What an agent does.
    ActivityState as "snake_case" {
        /// At work.
        Working,
        /// Waits for a person.
        WaitingForInput,
        /// Has nothing to do.
        Idle,
        /// Says it works, and does not.
        Stalled,
        /// Has ended well.
        Finished,
        /// Its process is gone.
        Dead,
        /// Not known.
        Unknown,
    }
}

words! {
    /// A session's health.
    SessionHealth as "UPPERCASE" {
        /// No agents.
        Empty,
        /// All is well.
        Healthy,
        /// Something failed, or much is degraded.
        Degraded,
        /// More than half failed.
        Critical,
        /// Not known.
        Unknown,
    }
}

words! {
    /// An agent's health.
    HealthStatus as "UPPERCASE" {
        /// No check failed.
        Healthy,
        /// A check failed.
        Degraded,
        /// It ended badly.
        Failed,
        /// Not known.
        Unknown,
    }
}

words! {
    /// How a check came out.
    CheckOutcome as "lowercase" {
        /// Well.
        Pass,
        /// Near the limit.
        Warn,
        /// Beyond it.
        Fail,
        /// Could not be checked.
        Unknown,
    }
}

words! {
    /// The kind of evidence that decided.
    DecidedBy as "snake_case" {
        /// The agent's own state record.
        OwnRecord,
        /// An event that it sent.
        Hook,
        /// Its transcript.
        Transcript,
        /// Its processes.
        Process,
        /// Another MCP server.
        Upstream,
    }
}
