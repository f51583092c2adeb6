//! Codes and refresh tokens, and what is given for them.

use super::requests::{Asked, take};
use crate::store::grants::{Digest, Grant, from_row as grant_from_row, insert as insert_grant};
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

/// How long access tokens that have expired are remembered, so that their holders are told what is the matter.
const EXPIRED_KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// What the owner has consented to; an authorization code stands for it until it is redeemed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// Who may redeem it.
    pub client_id: String,
    /// What the client calls itself, if it does.
    pub client_name: Option<String>,
    /// Where the code was sent.
    pub redirect_uri: String,
    /// What was consented to.
    pub scopes: String,
    /// The resource that it is for (RFC 8707).
    pub resource: String,
    /// The challenge that has to be answered (RFC 7636).
    pub challenge: String,
    /// Unix milliseconds.
    pub issued_at_ms: u64,
    /// The grant that came of it; `None`: none yet.
    pub grant_id: Option<String>,
}

/// An access token and a refresh token that are about to be given out.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The access token's digest.
    pub access: Digest,
    /// When it expires, Unix milliseconds.
    pub access_expires_at_ms: u64,
    /// What it permits of what the grant permits; `None`: all of it.
    pub access_scopes: Option<String>,
    /// The refresh token's digest.
    pub refresh: Digest,
    /// What the refresh tokens of a grant are known by when nothing else is known of them any more.
    pub family: Digest,
    /// The resource that both are for.
    pub resource: String,
    /// When the grant expires if nothing more is given out under it, Unix milliseconds.
    pub grant_expires_at_ms: u64,
    /// How many of each kind the grant has at the most; the oldest make room. Refresh tokens that did are as good as used ones.
    pub most: u32,
    /// The time now, Unix milliseconds.
    pub now_ms: u64,
}

/// What came of redeeming a code or a refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    /// The pair was given out under this grant.
    Given(Grant),
    /// There is no such thing.
    Unknown,
    /// It was redeemed before. Somebody has it who should not, so its grant, of this id, is revoked.
    Reused(String),
    /// Its grant has ended.
    Ended,
}

impl Store {
    /// Puts a code in the place of a request, once: it is for what the request wants of `scopes`. On the disk then. Returns
    /// whether there is a request of this id that was asked in `waiting`.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn consent(
        &self,
        request: &Digest,
        waiting: &Asked,
        code: &Digest,
        scopes: &str,
        now_ms: u64,
    ) -> Result<bool, StoreError> {
        self.write_durably(|connection| {
            let Some(asked) = take(connection, request, waiting)? else { return Ok(false) };
            let sql = "INSERT INTO oauth_code VALUES (:digest, :client, :name, :redirect, :scopes, :resource, :challenge, :now,
                NULL)";
            let values = named_params! {
                ":digest": code,
                ":client": asked.client_id,
                ":name": asked.client_name,
                ":redirect": asked.redirect_uri,
                ":scopes": scopes,
                ":resource": asked.resource,
                ":challenge": asked.challenge,
                ":now": now_ms.cast_signed(),
            };
            connection.execute(sql, values)?;
            Ok(true)
        })
    }

    /// What a code stands for.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure.
    pub fn consent_of(&self, code: &Digest) -> Result<Option<Consent>, StoreError> {
        let found = self.decide(|connection| {
            let sql = "SELECT * FROM oauth_code WHERE digest = ?1";
            connection.prepare_cached(sql)?.query_row([code], consent).optional()
        })?;
        Ok(found.flatten())
    }

    /// Redeems a code, once: takes up its grant and the first pair under it. All of it is on the disk then. Codes that were
    /// issued before `oldest_ms` are forgotten.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn redeem_code(
        &self,
        code: &Digest,
        grant: &Grant,
        pair: &Pair,
        oldest_ms: u64,
    ) -> Result<Redeemed, StoreError> {
        self.write_durably(|connection| {
            connection.execute("DELETE FROM oauth_code WHERE issued_at_ms < ?1", [oldest_ms.cast_signed()])?;
            let sql = "SELECT grant_id FROM oauth_code WHERE digest = ?1";
            match connection.query_row(sql, [code], |row| row.get::<_, Option<String>>(0)).optional()? {
                None => Ok(Redeemed::Unknown),
                Some(Some(grant_id)) => revoke(connection, grant_id, pair.now_ms),
                Some(None) => {
                    insert_grant(connection, grant)?;
                    let sql = "UPDATE oauth_code SET grant_id = ?2 WHERE digest = ?1";
                    connection.execute(sql, params![code, grant.id])?;
                    give(connection, &grant.id, pair)?;
                    Ok(Redeemed::Given(grant.clone()))
                }
            }
        })
    }

    /// The grant of a refresh token, and the resource that the token is for; `None` for that: it is not known any more, but that
    /// it was one of this family.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure.
    pub fn refreshes(&self, token: &Digest, family: &Digest) -> Result<Option<(Grant, Option<String>)>, StoreError> {
        let found = self.decide(|connection| {
            let found = find_refresh(connection, token, family)?;
            Ok(found.map(|(grant, kept)| (grant, kept.map(|kept| kept.resource))))
        })?;
        Ok(found.flatten())
    }

    /// Redeems a refresh token for a new pair under the same grant, which then lives on. All of it is on the disk then. One that
    /// was redeemed before is redeemed again only for so many milliseconds after that: clients refresh in parallel, and ask
    /// again for an answer that was lost. Otherwise, and when it is known by its family alone, the grant is revoked.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn redeem_refresh(&self, token: &Digest, pair: &Pair, grace_ms: u64) -> Result<Redeemed, StoreError> {
        self.write_durably(|connection| {
            let Some((mut grant, kept)) = find_refresh(connection, token, &pair.family)? else {
                return Ok(Redeemed::Unknown);
            };
            if grant.ended(pair.now_ms).is_some() {
                return Ok(Redeemed::Ended);
            }
            // A clock that was set back since makes nobody's token fresh again.
            let is_good = |kept: Kept| kept.used_at_ms.is_none_or(|at| pair.now_ms.abs_diff(at) <= grace_ms);
            if !kept.is_some_and(is_good) {
                return revoke(connection, grant.id, pair.now_ms);
            }
            let used = "DELETE FROM oauth_refresh WHERE grant_id = ?1 AND used_at_ms NOT BETWEEN ?2 AND ?3";
            let grace =
                [pair.now_ms.saturating_sub(grace_ms), pair.now_ms.saturating_add(grace_ms)].map(u64::cast_signed);
            connection.prepare_cached(used)?.execute(params![grant.id, grace[0], grace[1]])?;
            let sql = "UPDATE oauth_refresh SET used_at_ms = coalesce(used_at_ms, ?2) WHERE digest = ?1";
            connection.execute(sql, params![token, pair.now_ms.cast_signed()])?;
            give(connection, &grant.id, pair)?;
            grant.expires_at_ms = Some(pair.grant_expires_at_ms);
            Ok(Redeemed::Given(grant))
        })
    }
}

/// What is kept of a refresh token.
struct Kept {
    resource: String,
    used_at_ms: Option<u64>,
}

/// The grant of a refresh token, and what is kept of the token itself: nothing, once it was used or has made room.
fn find_refresh(
    connection: &Connection,
    token: &Digest,
    family: &Digest,
) -> rusqlite::Result<Option<(Grant, Option<Kept>)>> {
    let sql =
        "SELECT grant.*, resource, used_at_ms FROM oauth_refresh JOIN grant ON grant.id = grant_id WHERE digest = ?1";
    let row = |row: &Row<'_>| {
        let used_at_ms = row.get::<_, Option<i64>>("used_at_ms")?.map(i64::cast_unsigned);
        Ok((grant_from_row(row)?, Some(Kept { resource: row.get("resource")?, used_at_ms })))
    };
    if let Some(found) = connection.prepare_cached(sql)?.query_row([token], row).optional()? {
        return Ok(Some(found));
    }
    let sql = "SELECT grant.* FROM oauth_family JOIN grant ON grant.id = grant_id WHERE digest = ?1";
    let row = |row: &Row<'_>| Ok((grant_from_row(row)?, None));
    connection.prepare_cached(sql)?.query_row([family], row).optional()
}

/// Takes up a pair under a grant, which lives on for it.
fn give(connection: &Connection, grant_id: &str, pair: &Pair) -> rusqlite::Result<()> {
    let over = pair.now_ms.saturating_sub(EXPIRED_KEPT_MS).cast_signed();
    connection.execute("DELETE FROM token WHERE expires_at_ms < ?1", [over])?;
    for sql in [
        "DELETE FROM token WHERE digest IN
            (SELECT digest FROM token WHERE grant_id = ?1 ORDER BY expires_at_ms DESC LIMIT -1 OFFSET ?2)",
        "DELETE FROM oauth_refresh WHERE digest IN
            (SELECT digest FROM oauth_refresh WHERE grant_id = ?1 ORDER BY issued_at_ms DESC LIMIT -1 OFFSET ?2)",
    ] {
        connection.prepare_cached(sql)?.execute(params![grant_id, pair.most.saturating_sub(1)])?;
    }
    let sql = "INSERT INTO token VALUES (?1, ?2, ?3, ?4, ?5)";
    let expires = pair.access_expires_at_ms.cast_signed();
    connection.execute(sql, params![pair.access, grant_id, expires, pair.access_scopes, pair.resource])?;
    let sql = "INSERT INTO oauth_refresh VALUES (?1, ?2, ?3, ?4, NULL)";
    connection.execute(sql, params![pair.refresh, grant_id, pair.resource, pair.now_ms.cast_signed()])?;
    connection.execute("INSERT OR IGNORE INTO oauth_family VALUES (?1, ?2)", params![pair.family, grant_id])?;
    let sql = "UPDATE grant SET expires_at_ms = ?2, last_used_at_ms = ?3 WHERE id = ?1";
    let times = [pair.grant_expires_at_ms, pair.now_ms].map(u64::cast_signed);
    connection.execute(sql, params![grant_id, times[0], times[1]]).map(drop)
}

fn revoke(connection: &Connection, grant_id: String, now_ms: u64) -> rusqlite::Result<Redeemed> {
    let sql = "UPDATE grant SET revoked_at_ms = coalesce(revoked_at_ms, ?2) WHERE id = ?1";
    connection.execute(sql, params![grant_id, now_ms.cast_signed()])?;
    Ok(Redeemed::Reused(grant_id))
}

fn consent(row: &Row<'_>) -> rusqlite::Result<Consent> {
    Ok(Consent {
        client_id: row.get("client_id")?,
        client_name: row.get("client_name")?,
        redirect_uri: row.get("redirect_uri")?,
        scopes: row.get("scopes")?,
        resource: row.get("resource")?,
        challenge: row.get("challenge")?,
        issued_at_ms: row.get::<_, i64>("issued_at_ms")?.cast_unsigned(),
        grant_id: row.get("grant_id")?,
    })
}
