//! What is kept on disk: the registry of declared agents, the runs, the ledger of clients, grants, the authorization server's book, sessions of the HTTP transport,
//! the logs, and what running servers say of themselves; and the one door to databases that others keep, since SQL is spoken
//! nowhere else.

pub mod audit;
pub mod clients;
mod database;
pub mod foreign;
mod forgetting;
pub mod grants;
pub mod lease;
pub mod log;
pub mod oauth;
pub mod registry;
pub mod runs;
mod schema;
pub mod serving;
pub mod transport;

pub use database::{Store, StoreError};

use std::fs::OpenOptions;

/// How a file is opened that only this user may read or write; made with mode 0600 where it is missing.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
