//! What the user has set: the only reader of the configuration file, the environment and their defaults.
//!
//! The types are the one list of what can be set: their schema says which keys there are and what each may hold, and
//! everything else here works from it. A key's way in: a layer (`toml` for the file, `layers` for variables and flags) puts it
//! into one tree together with its origin, `check` compares the tree with the schema, and serde makes the types of it.

mod access;
mod as_text;
mod auth;
mod bridge;
mod check;
mod environment;
mod headers;
mod layers;
mod load;
mod policies;
mod print;
mod problem;
mod retained;
pub mod service_manager;
mod size;
mod span;
#[cfg(test)]
mod tests;
mod toml;
mod types;
mod upstream_oauth;
mod upstreams;
mod words;

pub use access::{Access, EVERYBODY};
pub use auth::{Auth, Issuer, SigningAlgorithm};
pub use bridge::{Bridge, ErrorPattern};
#[cfg(test)]
pub(crate) use check::unheeded_keywords;
pub use environment::{Dirs, Environment, NoDirectory, STARTED_BY, command_line, make_private, temp_dir};
pub use headers::{header, header_name};
pub use layers::Flag;
pub use load::{LoadError, Loaded, load, schema};
pub use policies::{Limits, Mode, OnError, OwnLimits, Policy};
pub use problem::{Origin, Origins, Problem, Problems};
pub use retained::Retained;
pub use size::{NoSize, Size};
pub use span::Span;
pub use toml::{Checked, check_toml};
pub use types::{Audit, Config, Decisions, Kind, Sampling, Sessions, Worktrees};
pub use upstream_oauth::{Grant, OAuth, OAuthSetting};
pub use upstreams::{AgentMap, AgentsFrom, Handshake, Join, Meaning, Upstream, is_loopback};
pub use words::nearest;
