//! The file bridge: how long answers are kept, and what is made of what tools say of their failures.

use super::span::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bridge {
    /// How long a response is kept that nobody fetches (at least 1 s).
    #[schemars(extend("x-least" = "1s"))]
    pub keep: Span,
    /// What a tool's failure is called by what the tool says of it. The first pattern that fits counts.
    #[serde(rename = "error")]
    #[schemars(length(max = 100))]
    pub errors: Vec<ErrorPattern>,
}

impl Default for Bridge {
    fn default() -> Self {
        Self { keep: Span::from_millis(60 * 60 * 1000), errors: Vec::new() }
    }
}

/// A kind of failure, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorPattern {
    /// What to call it.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), length(max = 64))]
    pub category: String,
    /// A regular expression that is searched for in the first 64 KiB of what the tool says.
    #[schemars(extend("format" = "regex"), length(min = 1, max = 1000))]
    pub pattern: String,
}
