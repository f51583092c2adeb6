//! The ledger of MCP clients: who is connected, since when, what it has called. It knows no transport: surfaces record a
//! client, touch it at each call and end it, and ask for the list.
//!
//! Whether a client has ended is derived, not only told: a server that is killed ends nothing, so each server has a lease for
//! as long as it lives, and what it has not ended is over with it. So is, with its grant, what worked under one.

mod forgetting;
mod ledger;
mod list;
mod view;

pub use crate::store::clients::NewClient;
pub use ledger::{LONGEST, Ledger, LedgerError, Losses};
pub use list::{Asked, DEFAULT_LIMIT, ListError, MAX_LIMIT, State, connected, list, one};
pub use view::{ClientRow, Clients};
