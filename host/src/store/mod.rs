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

/// Whose grants or clients are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// Those of one user.
    User(&'a str),
    /// All: for who owns the database.
    Everybody,
}

impl<'a> From<&'a str> for Whose<'a> {
    fn from(user_id: &'a str) -> Self {
        Self::User(user_id)
    }
}

impl<'a> From<&'a String> for Whose<'a> {
    fn from(user_id: &'a String) -> Self {
        Self::User(user_id)
    }
}

impl<'a> Whose<'a> {
    /// The user, if one is meant.
    fn user(self) -> Option<&'a str> {
        match self {
            Self::User(user_id) => Some(user_id),
            Self::Everybody => None,
        }
    }

    /// That a column holds who is meant, in SQL, where `user` stands for the value of [`user`](Self::user). Two texts rather than
    /// one with OR, for which no index would be used.
    fn is_in(self, column: &str, user: &str) -> String {
        match self {
            Self::User(_) => format!("{column} = {user}"),
            Self::Everybody => format!("{user} IS NULL"),
        }
    }
}

/// How a file is opened that only this user may read or write; made with mode 0600 where it is missing.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
