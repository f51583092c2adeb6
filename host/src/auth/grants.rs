//! Giving grants and ending them.

use super::view::{Grants, grants};
use super::{Scopes, Token};
use crate::clock::Clock;
use crate::names::{BadName, line};
use crate::store::grants::Grant;
use crate::store::{Store, StoreError, Whose};
use crate::text::{clean, hex};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// What the id of a grant begins with.
const PREFIX: &str = "grt_";

/// The longest name of a token, in characters.
const NAME_MAX: usize = 64;

/// Why a grant was not given, shown or ended.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The name cannot be one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// It would be taken for an id or a secret.
    #[error("a name does not begin like a token or the id of a grant")]
    Misleading,
    /// It is a secret, which no error repeats.
    #[error("this is a token itself, which does not belong on a command line; say its name or id")]
    Secret,
    /// Another token has it.
    #[error("there is a token {0:?} already; revoke it first, or choose another name")]
    Taken(String),
    /// There is no such token.
    #[error("no token has the name or id {0:?}; `headcount token list --all` shows all")]
    NoToken(String),
    /// It was given to a client, and is no token that somebody has made.
    #[error("this is the grant of a client, and no token; `headcount grants revoke {0}` ends it")]
    NotAToken(String),
    /// The system gives no random bytes.
    #[error("no token can be made: {0}")]
    Random(#[from] getrandom::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token that is wanted.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Whose.
    pub user_id: String,
    /// What to call it; see [`parse_name`].
    pub name: String,
    /// What it permits.
    pub scopes: Scopes,
    /// For how long it holds; `None`: until it is revoked.
    pub lifetime: Option<Duration>,
}

/// The name of a token: one line of 1 to 64 characters, blanks at its ends removed.
///
/// # Errors
/// When it cannot be one. The text is not in the error, because it may be a token by mistake.
pub fn parse_name(text: &str) -> Result<String, GrantError> {
    let name = line("the token's name", text, NAME_MAX)?;
    if name.is_empty() {
        return Err(BadName::Empty("the token's name").into());
    }
    // What is not shown could not be typed either.
    if clean(name) != name {
        return Err(BadName::Control("the token's name").into());
    }
    if name.starts_with(PREFIX) || name.starts_with("hct_") {
        return Err(GrantError::Misleading);
    }
    Ok(name.to_owned())
}

/// Gives a grant, and the token that shows it. Both are on the disk then.
///
/// # Errors
/// When the name cannot be used, or nothing can be written.
pub fn create_token(store: &Store, clock: &dyn Clock, new: NewToken) -> Result<(Grant, Token), GrantError> {
    let name = parse_name(&new.name)?;
    let now_ms = clock.now().unix_ms;
    let lifetime_ms = new.lifetime.map(|lifetime| u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX));
    let grant = Grant {
        id: new_id()?,
        user_id: new.user_id,
        name,
        client_id: None,
        scopes: new.scopes.to_string(),
        created_at_ms: now_ms,
        // What is too large for the database is beyond all times.
        expires_at_ms: lifetime_ms.and_then(|ms| now_ms.checked_add(ms)).filter(|at| i64::try_from(*at).is_ok()),
        last_used_at_ms: None,
        revoked_at_ms: None,
    };
    let token = Token::generate()?;
    if !store.add_grant(&grant, &token.digest())? {
        return Err(GrantError::Taken(grant.name));
    }
    Ok((grant, token))
}

/// An id that no grant has.
pub(super) fn new_id() -> Result<String, getrandom::Error> {
    random_id(PREFIX)
}

/// An id that nothing else has.
pub(super) fn random_id(prefix: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0; 10];
    getrandom::fill(&mut bytes)?;
    Ok(prefix.to_owned() + &hex(&bytes))
}

/// The id of a grant that somebody else has given: of one that is named by just these words.
pub(super) fn id_of(words: &[&str]) -> String {
    let mut digest = Sha256::new();
    for word in words {
        // With its length, lest words that lie side by side be taken for others.
        digest.update((word.len() as u64).to_be_bytes());
        digest.update(word);
    }
    PREFIX.to_owned() + &hex(&digest.finalize()[..16])
}

/// The grants of those who are meant, the newest first: those that are alive, or `all`.
///
/// # Errors
/// When the database cannot be read.
pub fn list<'w>(
    store: &Store,
    clock: &dyn Clock,
    whose: impl Into<Whose<'w>>,
    all: bool,
) -> Result<Grants, StoreError> {
    let now_ms = clock.now().unix_ms;
    let found = if all { store.grants(whose)? } else { store.living_grants(whose, now_ms)? };
    Ok(grants(&found, now_ms))
}

/// Revokes a grant of those who are meant by its id, and returns it as it is then; `None`: they have no such grant. The
/// revocation is on the disk when this returns, and each [`Gate`](super::Gate) obeys it. Done twice, it is as if it were done once.
///
/// # Errors
/// When the database cannot be written.
pub fn revoke<'w>(
    store: &Store,
    clock: &dyn Clock,
    whose: impl Into<Whose<'w>>,
    id: &str,
) -> Result<Option<Grant>, StoreError> {
    store.revoke_grant(whose, id, clock.now().unix_ms)
}

/// Revokes the grant of a token, by its id or name; of several that had a name, the one that holds, else the newest. Done twice,
/// it is as if it were done once.
///
/// # Errors
/// When there is no such token, or the database cannot be written.
pub fn revoke_token(store: &Store, clock: &dyn Clock, user_id: &str, which: &str) -> Result<Grant, GrantError> {
    if Token::parse(which).is_some() {
        return Err(GrantError::Secret);
    }
    let now_ms = clock.now().unix_ms;
    let mut tokens = store.grants(user_id)?;
    tokens.retain(|grant| grant.client_id.is_none());
    let holds = |grant: &&Grant| grant.id == which || (grant.name == which && grant.ended(now_ms).is_none());
    let named = || tokens.iter().find(|grant| grant.name == which);
    let revoked = match tokens.iter().find(holds).or_else(named) {
        Some(grant) => revoke(store, clock, user_id, &grant.id)?,
        None if store.grant(which)?.is_some() => return Err(GrantError::NotAToken(which.to_owned())),
        None => None,
    };
    revoked.ok_or_else(|| GrantError::NoToken(which.to_owned()))
}
