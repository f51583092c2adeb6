//! Who is let in.

use super::watch::Watch;
use super::{Scope, Scopes, Token};
use crate::clock::Clock;
use crate::store::grants::{GrantEnd, Shown};
use crate::store::{Store, StoreError};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Who does something, and under which grant: whatever way it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The user whose reach it has: sessions whose owner this is.
    pub user_id: String,
    /// The grant that it works under.
    pub grant_id: String,
    /// The OAuth client that the grant was given to; `None`: a token of the user's own.
    pub client_id: Option<String>,
    /// What the grant permits.
    pub scopes: Scopes,
}

impl Principal {
    /// Whether its grant permits this.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.permit(scope)
    }
}

impl From<Shown> for Principal {
    fn from(Shown { grant, scopes, .. }: Shown) -> Self {
        let granted = Scopes::of_text(&grant.scopes);
        let scopes = match scopes {
            None => granted,
            Some(narrowed) => Scopes::of_text(&narrowed).iter().filter(|scope| granted.permit(*scope)).collect(),
        };
        Self { user_id: grant.user_id, grant_id: grant.id, client_id: grant.client_id, scopes }
    }
}

/// Why somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// There is no token.
    #[error("a token is needed")]
    Missing,
    /// It is none that was given out.
    #[error("the token is not valid")]
    Invalid,
    /// The time of the token, or of its grant, is over.
    #[error("the token has expired")]
    Expired,
    /// The grant was revoked.
    #[error("the token was revoked")]
    Revoked,
    /// It cannot be told now, and says nothing of the token. What is the matter is for the server's own log.
    #[error("whether the token holds cannot be told: {0}")]
    Unavailable(String),
}

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Who it is.
    pub principal: Principal,
    /// Cancelled as soon as the grant has ended: what still goes on under it then has to end, too. Others that were let in
    /// under the same grant have tokens of their own.
    pub ended: CancellationToken,
    /// The resource that its token is for (RFC 8707): nothing else may be reached by it. `None`: every server of the user's.
    pub resource: Option<String>,
}

/// Lets those in who show a grant that is alive.
pub struct Gate {
    store: Arc<Store>,
    reader: Arc<Store>,
    clock: Arc<dyn Clock>,
    watch: Watch,
}

impl Gate {
    /// The gate to what `store` keeps grants for. Nothing is opened and nobody is watched until somebody asks.
    pub fn open(store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        // Others write through `store`, and a request must not wait for them.
        let reader = Arc::new(store.another());
        let watch = Watch::new(Arc::clone(&reader), Arc::clone(&clock));
        Self { store, reader, clock, watch }
    }

    /// Lets in who shows this token: the credentials of `Authorization: Bearer` alone, without the word before. That the grant
    /// is alive is read anew each time, so that one that was revoked before this is called lets nobody in.
    ///
    /// # Errors
    /// Who shows none that is alive, and all while the database cannot be read.
    // It waits for nothing but a look at the database, of some microseconds: moving that to another thread would take longer.
    #[expect(clippy::unused_async, reason = "other ways to show a grant have to ask somebody")]
    pub async fn admit(&self, bearer: Option<&str>) -> Result<Admitted, Denied> {
        let token = Token::parse(bearer.ok_or(Denied::Missing)?).ok_or(Denied::Invalid)?;
        let now = self.clock.now();
        let mut shown = self.reader.grant_of(&token.digest()).map_err(cannot_tell)?.ok_or(Denied::Invalid)?;
        match shown.grant.ended(now.unix_ms) {
            Some((_, GrantEnd::Expired)) => return Err(Denied::Expired),
            Some((_, GrantEnd::Revoked)) => return Err(Denied::Revoked),
            None if shown.expires_at_ms.is_some_and(|at| at <= now.unix_ms) => return Err(Denied::Expired),
            None => {}
        }
        let watched = self.watch.over(&shown.grant, now).map_err(|error| Denied::Unavailable(error.to_string()))?;
        if watched.note_use {
            self.note_use(shown.grant.id.clone(), now.unix_ms);
        }
        let resource = shown.resource.take();
        Ok(Admitted { principal: Principal::from(shown), ended: watched.ended, resource })
    }

    /// Writes down that a grant was used, without keeping the request waiting.
    fn note_use(&self, id: String, at_ms: u64) {
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = store.note_use(&id, at_ms) {
                tracing::warn!(%error, grant = id, "when a grant was used is not written down");
            }
        });
    }
}

fn cannot_tell(error: StoreError) -> Denied {
    Denied::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests;
