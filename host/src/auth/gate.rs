//! Who is let in.

use super::issuer::Issuers;
use super::trouble::Trouble;
use super::watch::Watch;
use super::{Scope, Scopes, Token};
use crate::clock::Clock;
use crate::store::Store;
use crate::store::grants::{Grant, GrantEnd, Shown};
use std::fmt::Display;
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
    /// It is another issuer's, and not one that lets in here.
    #[error("the token is not valid: {0}")]
    Refused(&'static str),
    /// It is a good one, but for another resource than it was shown to (RFC 8707).
    #[error("the token is for another address of this server")]
    Elsewhere,
    /// It is a good one of another issuer's, for somebody who is nobody here.
    #[error("the token's user is not known here")]
    Stranger,
    /// It is a good one of another issuer's, that permits nothing here.
    #[error("the token permits nothing here: it has none of this server's scopes")]
    Scopeless,
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
    /// Cancelled as soon as the token has expired, too: streams end then, whose client comes again with a new one. What was
    /// asked before goes on to its end.
    pub expired: CancellationToken,
    /// The resource that its token is for (RFC 8707): nothing else may be reached by it. `None`: every server of the user's.
    pub resource: Option<String>,
}

/// Lets those in who show a grant that is alive.
pub struct Gate {
    store: Arc<Store>,
    reader: Arc<Store>,
    clock: Arc<dyn Clock>,
    watch: Watch,
    issuers: Issuers,
    /// With reading the ledger, with writing it, and with watching over grants.
    reading: Trouble,
    writing: Trouble,
    watching: Trouble,
}

impl Gate {
    /// The gate to what `store` keeps grants for. Nothing is opened and nobody is watched until somebody asks.
    pub fn open(store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        // Others write through `store`, and a request must not wait for them.
        let reader = Arc::new(store.another());
        let watch = Watch::new(Arc::clone(&reader), Arc::clone(&clock));
        let issuers = Issuers::new(&[], Arc::clone(&clock));
        let trouble = |what| Trouble::new(format!("whether tokens hold cannot be told: {what}"), Arc::clone(&clock));
        let [reading, writing, watching] =
            ["the ledger cannot be read", "the ledger cannot be written", "nobody watches over grants"].map(trouble);
        Self { store, reader, clock, watch, issuers, reading, writing, watching }
    }

    /// The same, to which tokens of these issuers open too.
    #[must_use]
    pub fn trusting(self, issuers: Issuers) -> Self {
        Self { issuers, ..self }
    }

    /// The issuers whose tokens open it, beside this machine's own.
    pub fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// Lets in who shows this token: the credentials of `Authorization: Bearer` alone, without the word before. That the grant
    /// is alive is read anew each time, so that one that was revoked before this is called lets nobody in.
    ///
    /// # Errors
    /// Who shows none that is alive, and all while that cannot be told.
    pub async fn admit(&self, bearer: Option<&str>) -> Result<Admitted, Denied> {
        let bearer = bearer.ok_or(Denied::Missing)?;
        let mut shown = match Token::parse(bearer) {
            // It waits for nothing but a look at the database, of some microseconds: moving that to another thread would take
            // longer.
            Some(token) => told(&self.reading, self.reader.grant_of(&token.digest()))?.ok_or(Denied::Invalid)?,
            None if self.issuers.is_empty() => return Err(Denied::Invalid),
            None => {
                let verified = self.issuers.verify(bearer).await?;
                let grant = self.taken_up(&verified.grant).await?;
                // Of several tokens for one grant each permits what it says itself.
                let expires_at_ms = Some(verified.expires_at_ms);
                Shown { grant, expires_at_ms, scopes: Some(verified.scopes.to_string()), resource: None }
            }
        };
        let now = self.clock.now();
        match shown.grant.ended(now.unix_ms) {
            Some((_, GrantEnd::Expired)) => return Err(Denied::Expired),
            Some((_, GrantEnd::Revoked)) => return Err(Denied::Revoked),
            None if shown.expires_at_ms.is_some_and(|at| at <= now.unix_ms) => return Err(Denied::Expired),
            None => {}
        }
        let watched = self.watch.over(&shown.grant, shown.expires_at_ms, now);
        let watched = told(&self.watching, watched)?;
        if watched.note_use {
            self.note_use(shown.grant.id.clone(), now.unix_ms);
        }
        let resource = shown.resource.take();
        Ok(Admitted { principal: Principal::from(shown), ended: watched.ended, expired: watched.expired, resource })
    }

    /// A grant that an issuer has given, as it is in the ledger: there since it was first shown, so that it can be revoked here,
    /// and known to hold for as long and permit as much as any of its tokens.
    async fn taken_up(&self, given: &Grant) -> Result<Grant, Denied> {
        let known = told(&self.reading, self.reader.grant(&given.id))?;
        if let Some(known) = known.filter(|known| known.covers(given)) {
            return Ok(known);
        }
        let (store, given) = (Arc::clone(&self.store), given.clone());
        let taken_up = tokio::task::spawn_blocking(move || store.take_up_grant(&given)).await;
        told(
            &self.writing,
            taken_up.map_err(|error| error.to_string()).and_then(|it| it.map_err(|error| error.to_string())),
        )
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

/// What has come of it, if it has come to anything.
fn told<T, E: Display>(trouble: &Trouble, found: Result<T, E>) -> Result<T, Denied> {
    match found {
        Ok(found) => {
            trouble.works();
            Ok(found)
        }
        Err(error) => {
            let why = error.to_string();
            trouble.fails(&why);
            Err(Denied::Unavailable(why))
        }
    }
}

#[cfg(test)]
mod tests;
