//! Who judges: the chain of policies, and what each may use.

use super::size::Size;
use super::span::Span;
use super::types::Glob;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One policy of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// A component's file, or `builtin`. One that is not absolute stands beside the configuration file; `~/` is the home directory.
    #[schemars(length(min = 1))]
    pub path: PathBuf,
    /// Whether it judges. The built-in policy does, and comes first, unless it is named here and disabled.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// What the policy takes as settings.
    #[serde(default)]
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// The SHA-256 that its file must have, in hexadecimal. Another file is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "sha256"))]
    pub digest: Option<String>,
    /// Whether its verdict counts.
    #[serde(default)]
    pub mode: Mode,
    /// What a failure of it means. In `shadow` mode it means nothing.
    #[serde(default)]
    pub on_error: OnError,
    /// What it may use, where that is not what `[limits]` says.
    #[serde(default)]
    pub limits: OwnLimits,
    /// Globs over the ids and names of the sessions that it judges; empty = all.
    #[serde(default)]
    #[schemars(with = "Vec<Glob>")]
    pub sessions: Vec<String>,
}

/// Whether a policy's verdict counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It does: the next policy gets it, and the last one's is the report's.
    #[default]
    Enforce,
    /// It is shown beside the report, and changes nothing.
    Shadow,
}

/// What a policy's failure means for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The verdict of the policies before it stands.
    #[default]
    Open,
    /// Nobody can say how the session is: its health is UNKNOWN, with the reason.
    Closed,
}

/// What each policy may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Time for one judgement of one session (10 ms to 1 min).
    #[schemars(extend("x-least" = "10ms", "x-most" = "1m"))]
    pub deadline: Span,
    /// Time for what happens when it is loaded: each of its start, `describe` and `validate-settings` (10 ms to 1 min).
    #[schemars(extend("x-least" = "10ms", "x-most" = "1m"))]
    pub load: Span,
    /// Memory, all its memories together (64 KiB to 1 GiB).
    #[schemars(extend("x-least" = "64KiB", "x-most" = "1GiB"))]
    pub memory: Size,
    /// What its answer may take up in headcount (64 KiB to 256 MiB).
    #[schemars(extend("x-least" = "64KiB", "x-most" = "256MiB"))]
    pub result: Size,
}

/// What one policy may use; what is left out is as in `[limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OwnLimits {
    /// Time for one judgement of one session (10 ms to 1 min).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "10ms", "x-most" = "1m"))]
    pub deadline: Option<Span>,
    /// Time for each of its start, `describe` and `validate-settings` (10 ms to 1 min).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "10ms", "x-most" = "1m"))]
    pub load: Option<Span>,
    /// Memory, all its memories together (64 KiB to 1 GiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "64KiB", "x-most" = "1GiB"))]
    pub memory: Option<Size>,
    /// What its answer may take up in headcount (64 KiB to 256 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "64KiB", "x-most" = "256MiB"))]
    pub result: Option<Size>,
}

impl Default for Limits {
    /// Ten times what a thousand agents take; an interpreter's start; twice its memory.
    fn default() -> Self {
        Self {
            deadline: Span::from_millis(250),
            load: Span::from_millis(2_000),
            memory: Size::from_mib(48),
            result: Size::from_mib(32),
        }
    }
}

impl Limits {
    /// These, but as `own` says where it says anything.
    #[must_use]
    pub fn with(self, own: OwnLimits) -> Self {
        Self {
            deadline: own.deadline.unwrap_or(self.deadline),
            load: own.load.unwrap_or(self.load),
            memory: own.memory.unwrap_or(self.memory),
            result: own.result.unwrap_or(self.result),
        }
    }
}

impl Policy {
    /// What stands in the place of a file for the built-in policy.
    pub const BUILTIN: &str = "builtin";

    /// A policy with the defaults.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            enabled: true,
            settings: serde_json::Map::new(),
            digest: None,
            mode: Mode::default(),
            on_error: OnError::default(),
            limits: OwnLimits::default(),
            sessions: Vec::new(),
        }
    }

    /// The built-in policy with its defaults.
    pub fn builtin() -> Self {
        Self::at(Self::BUILTIN)
    }

    /// Whether the built-in policy is meant.
    pub fn is_builtin(&self) -> bool {
        self.path.as_os_str() == Self::BUILTIN
    }
}

fn yes() -> bool {
    true
}
