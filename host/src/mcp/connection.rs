//! Who is at the other end: everything in which connections over stdio and over HTTP differ.

use super::callers::Callers;
use super::rows::Rows;
use super::splice::Splicer;
use crate::auth::{Admitted, Scope};
use crate::monitor::Sight;
use crate::store::audit::Transport;
use http::request::Parts;
use rmcp::model::Extensions;
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
            gone: CancellationToken::new(),
            splicer,
            callers: Arc::new(Callers::new(rows)),
            calls: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Whether a request, which came with these extensions, may have done what needs `scope`. Over HTTP each says for itself by
    /// the token that it carries: those of one grant need not all permit the same.
    ///
    /// # Errors
    /// A sentence that names the scope, where it may not.
    pub fn check(&self, scope: Scope, extensions: &Extensions) -> Result<(), String> {
        let admitted = || extensions.get::<Parts>()?.extensions.get::<Admitted>();
        if self.transport == Transport::Stdio || admitted().is_some_and(|admitted| admitted.principal.may(scope)) {
            return Ok(());
        }
        Err(format!("the token does not permit this: it needs the scope {}", scope.as_str()))
    }
}
