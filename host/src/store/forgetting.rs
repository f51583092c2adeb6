//! Forgetting clients and grants that have ended long ago, a little at a time: nobody waits long for the database meanwhile.

use super::clients::EndReason;
use super::{Store, StoreError};
use rusqlite::{Connection, params};
use std::collections::HashSet;

impl Store {
    /// Forgets clients and grants that ended before `oldest_ms`; on the way it ends the clients of servers that live no more, by
    /// `living`. It does so with `most` of each at the most, and returns whether that was all. A grant goes with all of its clients,
    /// so that none is left whose end nobody could tell.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn forget(&self, living: &HashSet<String>, oldest_ms: u64, most: usize) -> Result<bool, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.write(|connection| {
            let buried = bury(connection, living, most)?;
            let clients = forget_clients(connection, oldest_ms, most)?;
            let grants = forget_grants(connection, oldest_ms, most)?;
            Ok(buried && clients && grants)
        })
    }
}

/// Ends the clients of servers that live no more, when they were last heard.
fn bury(connection: &Connection, living: &HashSet<String>, most: i64) -> rusqlite::Result<bool> {
    let mut open = connection.prepare_cached("SELECT DISTINCT server FROM client WHERE ended_at_ms IS NULL")?;
    let servers: Vec<String> = open.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let sql = "UPDATE client SET ended_at_ms = last_activity_at_ms, ended_reason = ?1 WHERE rowid IN
        (SELECT rowid FROM client WHERE server = ?2 AND ended_at_ms IS NULL LIMIT ?3)";
    let mut left = most;
    for server in servers.iter().filter(|server| !living.contains(*server)) {
        left -= changed(connection.execute(sql, params![EndReason::ServerStopped.as_str(), server, left])?);
    }
    Ok(left > 0)
}

fn forget_clients(connection: &Connection, oldest_ms: u64, most: i64) -> rusqlite::Result<bool> {
    let sql = format!("DELETE FROM client WHERE rowid IN ({ENDED_CLIENTS})");
    Ok(changed(connection.execute(&sql, params![oldest_ms.cast_signed(), most])?) < most)
}

/// A grant whose tokens are given here is as good as revoked once all of it is forgotten. Where others give tokens out, they may give
/// out new ones for a grant that was revoked here: that has to be known for good.
fn forget_grants(connection: &Connection, oldest_ms: u64, most: i64) -> rusqlite::Result<bool> {
    let mut ended = connection.prepare_cached(ENDED_GRANTS)?;
    let ids = ended.query_map(params![oldest_ms.cast_signed(), most], |row| row.get(0))?;
    let ids: Vec<String> = ids.collect::<rusqlite::Result<_>>()?;
    let clients = "DELETE FROM client WHERE rowid IN (SELECT rowid FROM client WHERE grant_id = ?1 LIMIT ?2)";
    let mut left = most;
    for id in &ids {
        left -= changed(connection.execute(clients, params![id, left])?);
        if left == 0 {
            return Ok(false);
        }
        connection.execute("DELETE FROM grant WHERE id = ?1", [id])?;
    }
    Ok(changed(ids.len()) < most)
}

/// The clients that may be forgotten.
const ENDED_CLIENTS: &str =
    "SELECT rowid FROM client WHERE ended_at_ms IS NOT NULL AND last_activity_at_ms < ?1 LIMIT ?2";

/// The grants that may be forgotten.
const ENDED_GRANTS: &str = "SELECT id FROM grant
    WHERE coalesce(min(revoked_at_ms, expires_at_ms), revoked_at_ms, expires_at_ms) < ?1
        AND (revoked_at_ms IS NULL OR NOT is_others)
    LIMIT ?2";

fn changed(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
