//! Who is at the other end: everything in which connections over stdio and over HTTP differ.

use super::callers::Callers;
use super::rows::Rows;
use super::splice::Splicer;
use crate::auth::{Scope, Scopes};
use crate::monitor::Sight;
use crate::store::audit::Transport;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The other end of a connection.
#[derive(Clone)]
pub(super) struct Connection {
    /// Which way it came.
    pub transport: Transport,
    /// For whom it asks.
    pub user: String,
    /// Which sessions it may see.
    pub sight: Sight,
    /// What it may do; `None`: everything.
    pub scopes: Option<Scopes>,
    /// Cancelled when it has gone, and hears nothing any more.
    pub gone: CancellationToken,
    /// Where its large answers wait.
    pub splicer: Arc<Splicer>,
    /// Its rows in the ledger.
    pub callers: Arc<Callers>,
    /// Calls that may be under way at a time.
    pub calls: Arc<Semaphore>,
}

impl Connection {
    /// One over stdin and stdout: whoever has started the server, and may do what its user may.
    pub fn stdio(user: String, splicer: Arc<Splicer>, rows: Arc<Rows>) -> Self {
        Self {
            transport: Transport::Stdio,
            user,
            sight: Sight::All,
            scopes: None,
            gone: CancellationToken::new(),
            splicer,
            callers: Arc::new(Callers::new(rows)),
            calls: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Whether it may do what needs `scope`.
    ///
    /// # Errors
    /// A sentence that names the scope, where it may not.
    pub fn check(&self, scope: Scope) -> Result<(), String> {
        if self.scopes.as_ref().is_none_or(|scopes| scopes.permit(scope)) {
            return Ok(());
        }
        Err(format!("the token does not permit this: it needs the scope {}", scope.as_str()))
    }
}
