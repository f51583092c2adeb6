//! What the user has set: the only reader of the configuration file, the environment and their defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How processes are sampled.
    pub sampling: Sampling,
    /// How agents are put together to sessions.
    pub sessions: Sessions,
    /// Roster files that are always read.
    pub rosters: Vec<PathBuf>,
    /// Kinds of agents beside the built-in ones; one with a built-in kind's name replaces it.
    #[serde(rename = "kind")]
    pub kinds: Vec<Kind>,
    /// The chain of policies; empty = the built-in one with its defaults.
    #[serde(rename = "policy")]
    pub policies: Vec<Policy>,
    /// The audit log.
    pub audit: Audit,
}

/// How processes are sampled. Durations as text: "250ms", "1s", "10m".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// Time between samples while somebody asks (at least 100 ms).
    pub tick: Span,
    /// Time between samples while nobody does.
    pub idle_tick: Span,
    /// How far back trends reach.
    pub window: Span,
    /// Noise floor: a tree that uses less, in percent of one core, counts as quiet if it is also below `quiet_io`.
    pub quiet_cpu_percent: f64,
    /// Noise floor: bytes moved by system calls in a second.
    pub quiet_io: u64,
    /// How long one sample may spend on reading proportional set sizes.
    pub pss_budget: Span,
    /// How long one sample waits for command lines, environments and links.
    pub details_deadline: Span,
    /// How long an agent that was found by itself stays in the report after it has ended.
    pub keep_ended: Span,
}

/// A length of time, written as in "250ms", "90s", "10m", "1h30m".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Span(
    #[serde(with = "span_text")]
    #[schemars(with = "String")]
    pub std::time::Duration,
);

/// How agents are put together to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// Whether the worktrees of one repository are one session.
    pub worktrees: Worktrees,
}

/// Whether the worktrees of one repository are one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Worktrees {
    /// One session, named after the main worktree: they work on one project.
    #[default]
    Together,
    /// A session each.
    Apart,
}

/// How a kind of agent is recognised. A process is one if any of `exe`, `program`, `script` or `module` matches and none of `exclude` does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Its name in reports.
    pub name: String,
    /// Globs over the executable's whole path.
    #[serde(default)]
    pub exe: Vec<String>,
    /// Globs over the file name of the command line's first slot.
    #[serde(default)]
    pub program: Vec<String>,
    /// Globs over the path of the script that an interpreter (node, bun, deno, python, …) runs.
    #[serde(default)]
    pub script: Vec<String>,
    /// Names of Python modules run with `-m`.
    #[serde(default)]
    pub module: Vec<String>,
    /// Slots of the command line, or runs of adjoining slots, that mean it is not an agent; each a glob over a whole slot.
    #[serde(default)]
    pub exclude: Vec<Vec<String>>,
    /// Globs over the script's or executable's path of a launcher: it and the agent that it starts are one.
    #[serde(default)]
    pub launcher: Vec<String>,
}

/// One policy of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// A component's file, or `builtin`.
    pub path: PathBuf,
    /// What the policy takes as settings.
    #[serde(default)]
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// The audit log of status queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// Whether it is kept.
    pub enabled: bool,
    /// A file is closed and a new one begun at this size, in bytes.
    pub max_bytes: u64,
    /// How many closed files are kept.
    pub keep: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            tick: Span::from_millis(1_000),
            idle_tick: Span::from_millis(10_000),
            window: Span::from_millis(600_000),
            quiet_cpu_percent: 2.0,
            quiet_io: 64 * 1024,
            pss_budget: Span::from_millis(5),
            details_deadline: Span::from_millis(50),
            keep_ended: Span::from_millis(60_000),
        }
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self { enabled: true, max_bytes: 8 << 20, keep: 4 }
    }
}

impl Span {
    /// A span of so many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(std::time::Duration::from_millis(ms))
    }
}

mod span_text {
    //! Spans as text, by jiff's friendly format.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{}ms", span.as_millis()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        let signed: jiff::SignedDuration = text.parse().map_err(D::Error::custom)?;
        Duration::try_from(signed).map_err(D::Error::custom)
    }
}
