//! Grants on disk, and the tokens that show them. Of a token only its digest is kept.

use super::{Store, StoreError, Whose};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use std::collections::{BTreeSet, HashSet};

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

/// A grant, and what the token that shows it has of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The grant.
    pub grant: Grant,
    /// When the token expires, Unix milliseconds; `None`: with the grant.
    pub expires_at_ms: Option<u64>,
    /// What the token permits of what the grant permits; `None`: all of it.
    pub scopes: Option<String>,
    /// The resource that the token is for (RFC 8707); `None`: every server of the user's.
    pub resource: Option<String>,
}

impl Grant {
    /// When it has ended, Unix milliseconds, and how; `None`: it is alive.
    pub fn ended(&self, now_ms: u64) -> Option<(u64, GrantEnd)> {
        ended(self.expires_at_ms, self.revoked_at_ms, now_ms)
    }

    /// Whether there is nothing to add to it from what its giver says of it now. To what was revoked nothing is added.
    pub fn covers(&self, given: &Self) -> bool {
        let is_as_long = self.expires_at_ms.is_none_or(|at| given.expires_at_ms.is_some_and(|other| other <= at));
        self.revoked_at_ms.is_some() || (is_as_long && names(&given.scopes).is_subset(&names(&self.scopes)))
    }
}

fn names(scopes: &str) -> BTreeSet<&str> {
    scopes.split(' ').filter(|name| !name.is_empty()).collect()
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
            connection.execute("INSERT INTO token (digest, grant_id) VALUES (?1, ?2)", params![token, grant.id])?;
            Ok(true)
        })
    }

    /// Takes up a grant that somebody else has given, or what is new of it: it holds for as long, and permits as much, as its
    /// giver has said at any time. Returns it as it is on the disk then. One that was revoked stays as it is.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn take_up_grant(&self, given: &Grant) -> Result<Grant, StoreError> {
        self.write_durably(|connection| {
            let Some(known) = by_id(connection, &given.id)? else {
                insert(connection, given)?;
                connection.execute("UPDATE grant SET is_others = 1 WHERE id = ?1", [&given.id])?;
                return Ok(given.clone());
            };
            if known.covers(given) {
                return Ok(known);
            }
            let scopes: Vec<&str> = names(&known.scopes).union(&names(&given.scopes)).copied().collect();
            let expires_at_ms = known.expires_at_ms.zip(given.expires_at_ms).map(|(known, given)| known.max(given));
            let sql = "UPDATE grant SET scopes = ?2, expires_at_ms = ?3 WHERE id = ?1 RETURNING *";
            let values = params![given.id, scopes.join(" "), expires_at_ms.map(u64::cast_signed)];
            connection.query_row(sql, values, from_row)
        })
    }

    /// Revokes a grant, if it is one of those that are meant. That is on the disk then, and what was revoked before stays so.
    /// Returns the grant; `None`: there is none of this id among them.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn revoke_grant<'w>(
        &self,
        whose: impl Into<Whose<'w>>,
        id: &str,
        now_ms: u64,
    ) -> Result<Option<Grant>, StoreError> {
        let whose = whose.into();
        self.write_durably(|connection| {
            let sql = format!(
                "UPDATE grant SET revoked_at_ms = coalesce(revoked_at_ms, ?3) WHERE {} AND id = ?2 RETURNING *",
                whose.is_in("user_id", "?1")
            );
            connection.query_row(&sql, params![whose.user(), id, now_ms.cast_signed()], from_row).optional()
        })
    }

    /// The grants of those who are meant, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are no grants.
    pub fn grants<'w>(&self, whose: impl Into<Whose<'w>>) -> Result<Vec<Grant>, StoreError> {
        let whose = whose.into();
        let found = self.decide(|connection| {
            let mine = whose.is_in("user_id", "?1");
            let sql = format!("SELECT * FROM grant WHERE {mine} ORDER BY created_at_ms DESC, id DESC");
            connection.prepare_cached(&sql)?.query_map([whose.user()], from_row)?.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Those of them that are alive at `now_ms`.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are no grants.
    pub fn living_grants<'w>(&self, whose: impl Into<Whose<'w>>, now_ms: u64) -> Result<Vec<Grant>, StoreError> {
        let whose = whose.into();
        let found = self.decide(|connection| {
            let sql = format!(
                "SELECT * FROM grant WHERE {} AND revoked_at_ms IS NULL
                AND (expires_at_ms IS NULL OR expires_at_ms > ?2) ORDER BY created_at_ms DESC, id DESC",
                whose.is_in("user_id", "?1")
            );
            connection.prepare_cached(&sql)?.query_map(params![whose.user(), now_ms.cast_signed()], from_row)?.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The grant that a token shows, as it is on the disk now.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure. Where there is none yet, no token shows anything.
    pub fn grant_of(&self, token: &Digest) -> Result<Option<Shown>, StoreError> {
        let found = self.decide(|connection| {
            let sql =
                "SELECT grant.*, token.expires_at_ms AS token_expires_at_ms, token.scopes AS token_scopes, resource
                FROM token JOIN grant ON grant.id = grant_id WHERE digest = ?1";
            connection.prepare_cached(sql)?.query_row([token], shown).optional()
        })?;
        Ok(found.flatten())
    }

    /// A grant by its id, as it is on the disk now.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure. Where there is none yet, there is no grant.
    pub fn grant(&self, id: &str) -> Result<Option<Grant>, StoreError> {
        Ok(self.decide(|connection| by_id(connection, id))?.flatten())
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

fn by_id(connection: &Connection, id: &str) -> rusqlite::Result<Option<Grant>> {
    connection.prepare_cached("SELECT * FROM grant WHERE id = ?1")?.query_row([id], from_row).optional()
}

pub(super) fn insert(connection: &Connection, grant: &Grant) -> rusqlite::Result<()> {
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

fn shown(row: &Row<'_>) -> rusqlite::Result<Shown> {
    Ok(Shown {
        grant: from_row(row)?,
        expires_at_ms: row.get::<_, Option<i64>>("token_expires_at_ms")?.map(i64::cast_unsigned),
        scopes: row.get("token_scopes")?,
        resource: row.get("resource")?,
    })
}

/// SQLite's integers are signed: the same 64 bits.
pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Grant> {
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
