//! Grants on disk, and the tokens that show them. Of a token only its digest is kept.

use super::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use std::collections::HashSet;

/// The SHA-256 of a token. A token is 256 random bits, so that nobody finds it by trying, however fast the hash is: a slow
/// one would only make each request slow.
pub type Digest = [u8; 32];

/// A permission to use a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its id. Nobody may do anything for knowing it.
    pub id: String,
    /// Whose grant it is.
    pub user_id: String,
    /// What people call it.
    pub name: String,
    /// The OAuth client that it was given to; `None`: a token of the user's own.
    pub client_id: Option<String>,
    /// What it permits: the scopes' names with a space between.
    pub scopes: String,
    /// Unix milliseconds.
    pub created_at_ms: u64,
    /// Unix milliseconds; `None`: it does not expire.
    pub expires_at_ms: Option<u64>,
    /// Unix milliseconds, to the minute; `None`: it never was.
    pub last_used_at_ms: Option<u64>,
    /// Unix milliseconds; `None`: it was not.
    pub revoked_at_ms: Option<u64>,
}

/// How a grant has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantEnd {
    /// Its time was over.
    Expired,
    /// Somebody has revoked it.
    Revoked,
}

impl Grant {
    /// When it has ended, Unix milliseconds, and how; `None`: it is alive.
    pub fn ended(&self, now_ms: u64) -> Option<(u64, GrantEnd)> {
        ended(self.expires_at_ms, self.revoked_at_ms, now_ms)
    }
}

/// When a grant has ended, and how: by what comes first.
pub(super) fn ended(expires_at_ms: Option<u64>, revoked_at_ms: Option<u64>, now_ms: u64) -> Option<(u64, GrantEnd)> {
    let expired = expires_at_ms.filter(|at| *at <= now_ms).map(|at| (at, GrantEnd::Expired));
    let revoked = revoked_at_ms.map(|at| (at, GrantEnd::Revoked));
    expired.into_iter().chain(revoked).min_by_key(|(at, _)| *at)
}

impl Store {
    /// Takes up a grant and the token that shows it. Both are on the disk then. Returns whether they are: not where the user has
    /// another grant of this name that is alive.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn add_grant(&self, grant: &Grant, token: &Digest) -> Result<bool, StoreError> {
        self.write_durably(|connection| {
            let mut namesakes = connection
                .prepare_cached("SELECT * FROM grant WHERE user_id = ?1 AND name = ?2 AND client_id IS NULL")?;
            let mut namesakes = namesakes.query(params![grant.user_id, grant.name])?;
            while let Some(row) = namesakes.next()? {
                if from_row(row)?.ended(grant.created_at_ms).is_none() {
                    return Ok(false);
                }
            }
            insert(connection, grant)?;
            connection.execute("INSERT INTO token VALUES (?1, ?2)", params![token, grant.id])?;
            Ok(true)
        })
    }

    /// Revokes a grant of this user's. That is on the disk then, and what was revoked before stays so. Returns the grant;
    /// `None`: the user has none of this id.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn revoke_grant(&self, user_id: &str, id: &str, now_ms: u64) -> Result<Option<Grant>, StoreError> {
        self.write_durably(|connection| {
            let sql = "UPDATE grant SET revoked_at_ms = coalesce(revoked_at_ms, ?3) WHERE user_id = ?1 AND id = ?2
                RETURNING *";
            connection.query_row(sql, params![user_id, id, now_ms.cast_signed()], from_row).optional()
        })
    }

    /// The grants of a user, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are no grants.
    pub fn grants(&self, user_id: &str) -> Result<Vec<Grant>, StoreError> {
        let found = self.decide(|connection| {
            let sql = "SELECT * FROM grant WHERE user_id = ?1 ORDER BY created_at_ms DESC, id DESC";
            connection.prepare_cached(sql)?.query_map([user_id], from_row)?.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Those of them that are alive at `now_ms`.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are no grants.
    pub fn living_grants(&self, user_id: &str, now_ms: u64) -> Result<Vec<Grant>, StoreError> {
        let found = self.decide(|connection| {
            let sql = "SELECT * FROM grant WHERE user_id = ?1 AND revoked_at_ms IS NULL
                AND (expires_at_ms IS NULL OR expires_at_ms > ?2) ORDER BY created_at_ms DESC, id DESC";
            connection.prepare_cached(sql)?.query_map(params![user_id, now_ms.cast_signed()], from_row)?.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The grant that a token shows, as it is on the disk now.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure. Where there is none yet, no token shows anything.
    pub fn grant_of(&self, token: &Digest) -> Result<Option<Grant>, StoreError> {
        let found = self.decide(|connection| {
            let sql = "SELECT grant.* FROM token JOIN grant ON grant.id = grant_id WHERE digest = ?1";
            connection.prepare_cached(sql)?.query_row([token], from_row).optional()
        })?;
        Ok(found.flatten())
    }

    /// Those of the grants that are there and were not revoked. When they expire is known to who asks.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure.
    pub fn unrevoked<'i>(&self, ids: impl IntoIterator<Item = &'i String>) -> Result<HashSet<&'i String>, StoreError> {
        let found = self.decide(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT 1 FROM grant WHERE id = ?1 AND revoked_at_ms IS NULL")?;
            let mut found = HashSet::new();
            for id in ids {
                if statement.exists([id])? {
                    found.insert(id);
                }
            }
            Ok(found)
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Notes that a grant was used.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn note_use(&self, id: &str, at_ms: u64) -> Result<(), StoreError> {
        let sql = "UPDATE grant SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?2) WHERE id = ?1";
        self.write(|connection| connection.execute(sql, params![id, at_ms.cast_signed()])).map(drop)
    }
}

fn insert(connection: &Connection, grant: &Grant) -> rusqlite::Result<()> {
    let sql = "INSERT INTO grant (id, user_id, name, client_id, scopes, created_at_ms, expires_at_ms)
        VALUES (:id, :user, :name, :client, :scopes, :created, :expires)";
    let values = named_params! {
        ":id": grant.id,
        ":user": grant.user_id,
        ":name": grant.name,
        ":client": grant.client_id,
        ":scopes": grant.scopes,
        ":created": grant.created_at_ms.cast_signed(),
        ":expires": grant.expires_at_ms.map(u64::cast_signed),
    };
    connection.execute(sql, values).map(drop)
}

/// SQLite's integers are signed: the same 64 bits.
fn from_row(row: &Row<'_>) -> rusqlite::Result<Grant> {
    let time = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(i64::cast_unsigned));
    Ok(Grant {
        id: row.get("id")?,
        user_id: row.get("user_id")?,
        name: row.get("name")?,
        client_id: row.get("client_id")?,
        scopes: row.get("scopes")?,
        created_at_ms: row.get::<_, i64>("created_at_ms")?.cast_unsigned(),
        expires_at_ms: time("expires_at_ms")?,
        last_used_at_ms: time("last_used_at_ms")?,
        revoked_at_ms: time("revoked_at_ms")?,
    })
}

#[cfg(test)]
mod tests;
