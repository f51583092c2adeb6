//! The settings and their defaults. Their schema, made of these types, is what files and variables are checked against.

use super::access::Access;
use super::auth::Auth;
use super::bridge::Bridge;
use super::policies::{Limits, Policy};
use super::retained::Retained;
use super::span::Span;
use super::upstreams::Upstream;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How processes are sampled.
    pub sampling: Sampling,
    /// How agents are put together to sessions.
    pub sessions: Sessions,
    /// Roster files that are always read. One that is not absolute stands beside the configuration file; `~/` is the home directory.
    #[schemars(extend("uniqueItems" = true))]
    pub rosters: Vec<PathBuf>,
    /// Retained MCP sessions that are shown among the agents.
    pub retained: Vec<Retained>,
    /// Kinds of agents beside the built-in ones; one with a built-in kind's name replaces it.
    #[serde(rename = "kind")]
    #[schemars(extend("x-unique" = "name"))]
    pub kinds: Vec<Kind>,
    /// The chain of policies. The built-in one comes first, with its defaults where it is not named.
    #[serde(rename = "policy")]
    #[schemars(extend("x-only-first" = { "path": "builtin" }))]
    pub policies: Vec<Policy>,
    /// What each policy may use that has no limits of its own.
    pub limits: Limits,
    /// MCP servers that headcount is a client of.
    #[serde(rename = "upstream")]
    #[schemars(extend("x-unique" = "name"))]
    pub upstreams: Vec<Upstream>,
    /// The file bridge.
    pub bridge: Bridge,
    /// The ledger of MCP clients.
    pub clients: Clients,
    /// Who may use a server over HTTP.
    pub auth: Auth,
    /// Who of them may see sessions of others.
    pub access: Vec<Access>,
    /// The audit log.
    pub audit: Audit,
    /// The decision log.
    pub decisions: Decisions,
}

/// How processes are sampled. Durations as text: "250ms", "1s", "10m".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// Time between samples while somebody asks (at least 100 ms).
    #[schemars(extend("x-least" = "100ms"))]
    pub tick: Span,
    /// Time between samples while nobody does (at least `tick`).
    #[schemars(extend("x-not-below" = "tick"))]
    pub idle_tick: Span,
    /// How far back trends reach (at least `tick`).
    #[schemars(extend("x-not-below" = "tick"))]
    pub window: Span,
    /// Noise floor: a tree that uses less, in percent of one core, counts as quiet if it is also below `quiet_io`.
    #[schemars(range(min = 0))]
    pub quiet_cpu_percent: f64,
    /// Noise floor: bytes moved by system calls in a second.
    #[schemars(range(max = 9_223_372_036_854_775_807_u64))]
    pub quiet_io: u64,
    /// How long one sample may spend on reading proportional set sizes.
    #[schemars(extend("x-least" = "1ms"))]
    pub pss_budget: Span,
    /// How long a sample waits for a process that does not say what it runs (command line, environment, links).
    #[schemars(extend("x-least" = "1ms"))]
    pub details_deadline: Span,
    /// How long a command that looks once waits for the first agents of upstream servers (at most 1 min).
    #[schemars(extend("x-most" = "1m"))]
    pub upstream_deadline: Span,
    /// How long an agent that was found by itself stays in the report after it has ended. With `0s` it leaves the list when
    /// it ends; one that somebody declared stays as long as it is declared.
    pub keep_ended: Span,
}

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
#[schemars(extend("x-need-one" = ["exe", "program", "script", "module"]))]
pub struct Kind {
    /// Its name in reports.
    #[schemars(regex(pattern = "^[a-z0-9-]+$"), length(max = 64))]
    pub name: String,
    /// Globs over the executable's whole path.
    #[serde(default)]
    #[schemars(with = "Vec<Glob>")]
    pub exe: Vec<String>,
    /// Globs over the file name of the command line's first slot.
    #[serde(default)]
    #[schemars(with = "Vec<Glob>")]
    pub program: Vec<String>,
    /// Globs over the path of the script that an interpreter (node, bun, deno, python, …) runs.
    #[serde(default)]
    #[schemars(with = "Vec<Glob>")]
    pub script: Vec<String>,
    /// Names of Python modules run with `-m`.
    #[serde(default)]
    pub module: Vec<String>,
    /// Slots of the command line, or runs of adjoining slots, that mean it is not an agent; each a glob over a whole slot.
    /// One that begins with a plain word counts only where no other plain word stands before it (`serve` is a server,
    /// `run serve` is a prompt), and nothing after `--` counts.
    #[serde(default)]
    #[schemars(with = "Vec<Vec<Glob>>")]
    pub exclude: Vec<Vec<String>>,
    /// Globs over the script's or executable's path of a launcher: it and the agent that it starts are one.
    #[serde(default)]
    #[schemars(with = "Vec<Glob>")]
    pub launcher: Vec<String>,
}

/// The ledger of MCP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Clients {
    /// For how long clients and grants that have ended are remembered; a grant whose tokens others give out, at least until it
    /// expires.
    pub keep: Span,
    /// A client over HTTP that was not heard for so long, and has no call or stream open, has ended (at least 1 s).
    #[schemars(extend("x-least" = "1s"))]
    pub idle: Span,
}

/// The audit log of status queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// Whether it is kept.
    pub enabled: bool,
    /// A file is closed and a new one begun at this size, in bytes (at least 16384).
    #[schemars(range(min = 16_384, max = 9_223_372_036_854_775_807_u64))]
    pub max_bytes: u64,
    /// How many closed files are kept (at least 1, at most 1000).
    #[schemars(range(min = 1, max = 1000))]
    pub keep: u32,
}

/// The log of what the policies made of what: enough to judge again and see the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Decisions {
    /// Whether it is kept.
    pub enabled: bool,
    /// A file is closed and a new one begun at this size, in bytes (at least 16384).
    #[schemars(range(min = 16_384, max = 9_223_372_036_854_775_807_u64))]
    pub max_bytes: u64,
    /// How many closed files are kept (at least 1, at most 1000).
    #[schemars(range(min = 1, max = 1000))]
    pub keep: u32,
}

impl Config {
    /// The policies in the order in which they judge, each with its place in [`Self::policies`] where it is named there.
    pub fn chain(&self) -> Vec<(Option<usize>, Policy)> {
        let named = self.policies.iter().cloned().enumerate().map(|(place, policy)| (Some(place), policy));
        let builtin = (!self.policies.iter().any(Policy::is_builtin)).then(|| (None, Policy::builtin()));
        builtin.into_iter().chain(named).filter(|(_, policy)| policy.enabled).collect()
    }
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
            details_deadline: Span::from_millis(200),
            upstream_deadline: Span::from_millis(2_000),
            keep_ended: Span::from_millis(0),
        }
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self { keep: Span::from_millis(30 * 24 * 60 * 60 * 1000), idle: Span::from_millis(30 * 60 * 1000) }
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self { enabled: true, max_bytes: 8 << 20, keep: 4 }
    }
}

impl Default for Decisions {
    fn default() -> Self {
        Self { enabled: false, max_bytes: 32 << 20, keep: 4 }
    }
}

/// The schema of a glob. The setting itself is text: who uses it decides how it matches.
pub(super) struct Glob;

impl JsonSchema for Glob {
    fn schema_name() -> Cow<'static, str> {
        "Glob".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "glob", "minLength": 1 })
    }
}
