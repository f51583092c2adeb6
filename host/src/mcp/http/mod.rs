//! MCP over HTTP, without the HTTP server: what becomes of a request whose sender is known. rmcp speaks the protocol, in both
//! of its eras; here stands who may do how much of it, and which client has ended when.
//!
//! Each grant has a guest of its own, with its own sessions: an id of another's session is unknown there, as it should be.

mod body;
mod endpoint;
mod guest;
mod handler;
mod memory;
mod message;
mod room;
mod sessions;

pub use body::Body;
pub use endpoint::{Endpoint, Open};
pub use guest::Refusal;
pub use room::Room;
pub(super) use sessions::Session;
