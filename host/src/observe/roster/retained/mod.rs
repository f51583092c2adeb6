//! Retained MCP sessions: one connection kept for programs that work through files, in a folder that says how it stands.

mod status;

pub use status::{RetainedState, RetainedStatus, STATUS_FILE};
