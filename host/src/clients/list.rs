//! Asking for the list.

use super::view::{ClientRow, Clients, clients};
use crate::clock::Clock;
use crate::store::clients::{Cursor, Wanted, Which};
use crate::store::{Store, StoreError, Whose, lease};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How many clients a page has unless told otherwise.
pub const DEFAULT_LIMIT: usize = 200;

/// How many it has at the most.
pub const MAX_LIMIT: usize = 5000;

/// Which clients are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Those that are connected.
    #[default]
    Active,
    /// Those that have ended.
    Ended,
    /// All that are remembered.
    All,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Which clients.
    pub state: State,
    /// How many at the most.
    pub limit: usize,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It was asked for wrongly.
    #[error("{0}")]
    Invalid(String),
    /// Which servers live cannot be read.
    #[error("which servers run cannot be read: {0}")]
    Leases(#[from] std::io::Error),
    /// The ledger cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The clients of those who are meant, from the database and the leases of the state directory `state`.
///
/// # Errors
/// What was asked for makes no sense, or nothing can be read.
pub fn list<'w>(
    store: &Store,
    state: &Path,
    clock: &dyn Clock,
    whose: impl Into<Whose<'w>>,
    asked: &Asked,
) -> Result<Clients, ListError> {
    if !(1..=MAX_LIMIT).contains(&asked.limit) {
        return Err(ListError::Invalid(format!("limit is {}; it can be 1 to {MAX_LIMIT}", asked.limit)));
    }
    let cursor = |text: &String| {
        Cursor::parse(text).ok_or_else(|| ListError::Invalid("the cursor is none that an answer has given".to_owned()))
    };
    let after = asked.cursor.as_ref().map(cursor).transpose()?;
    let which = match asked.state {
        State::Active => Which::Active,
        State::Ended => Which::Ended,
        State::All => Which::All,
    };
    let now_ms = clock.now().unix_ms;
    let whose = whose.into();
    let wanted = Wanted { whose, id: None, which, now_ms, limit: asked.limit, after: after.as_ref() };
    Ok(clients(&store.clients(wanted, &lease::living(state)?)?))
}

/// How many clients of a user are connected: by the way they came and the revision of the protocol.
///
/// # Errors
/// Nothing can be read.
pub fn connected(
    store: &Store,
    state: &Path,
    clock: &dyn Clock,
    user_id: &str,
) -> Result<Vec<(String, String, u64)>, ListError> {
    Ok(store.connected(user_id, clock.now().unix_ms, &lease::living(state)?)?)
}

/// One client of a user's, also where it has ended; `None`: the user has no such client.
///
/// # Errors
/// Nothing can be read.
pub fn one(
    store: &Store,
    state: &Path,
    clock: &dyn Clock,
    user_id: &str,
    id: &str,
) -> Result<Option<ClientRow>, ListError> {
    let wanted = Wanted {
        whose: user_id.into(),
        id: Some(id),
        which: Which::All,
        now_ms: clock.now().unix_ms,
        limit: 1,
        after: None,
    };
    Ok(clients(&store.clients(wanted, &lease::living(state)?)?).sessions.pop())
}
