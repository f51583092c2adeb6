//! What the user has set: the only reader of the configuration file, the environment and their defaults.

mod check;
mod problem;
mod span;
#[cfg(test)]
mod tests;
mod toml;
mod types;

pub use problem::{Origin, Origins, Problem, Problems};
pub use span::Span;
pub use toml::{Checked, check_toml};
pub use types::{Audit, Config, Kind, Policy, Sampling, Sessions, Worktrees};
