//! Requests for authorization that wait for the owner's consent. What stands here for some minutes is the owner's to read: the
//! code that is typed in is in it.

use crate::store::grants::Digest;
use crate::store::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use std::ops::RangeInclusive;

/// A request for authorization (RFC 6749, section 4.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The digest of what the browser knows it by.
    pub id: Digest,
    /// Who asks.
    pub client_id: String,
    /// What the client calls itself, if it does.
    pub client_name: Option<String>,
    /// Where the answer is sent.
    pub redirect_uri: String,
    /// What the client wants back with it.
    pub state: Option<String>,
    /// What it wants: the scopes' names with a space between.
    pub scopes: String,
    /// What it wants it for (RFC 8707).
    pub resource: String,
    /// The challenge that is answered when the code is redeemed (RFC 7636).
    pub challenge: String,
    /// The one-time code that is shown to the owner alone.
    pub user_code: String,
    /// How many codes were tried.
    pub tries: u32,
    /// Unix milliseconds.
    pub asked_at_ms: u64,
}

/// Forgets one request, but not the newest, which has this id.
const MAKE_ROOM: &str = "DELETE FROM oauth_request WHERE id =
    (SELECT id FROM oauth_request AS one WHERE id <> ?1
    ORDER BY (SELECT count(*) FROM oauth_request WHERE client_id = one.client_id) DESC, asked_at_ms, id LIMIT 1)";

/// When requests were asked that wait still, Unix milliseconds. What was asked far in the future was so by a clock that was wrong.
pub type Asked = RangeInclusive<u64>;

fn bounds(waiting: &Asked) -> [i64; 2] {
    [*waiting.start(), *waiting.end()].map(u64::cast_signed)
}

impl Store {
    /// Takes up a request; those that were not asked in `waiting` are forgotten. No more than `most` wait at a time: room is
    /// made by the oldest of the client that has the most of them, so that one client does not drive out others.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn add_request(&self, request: &Request, waiting: &Asked, most: u32) -> Result<(), StoreError> {
        self.write(|connection| {
            let sql = "DELETE FROM oauth_request WHERE asked_at_ms NOT BETWEEN ?1 AND ?2";
            connection.execute(sql, bounds(waiting))?;
            insert(connection, request)?;
            let waiting: u32 = connection.query_row("SELECT count(*) FROM oauth_request", [], |row| row.get(0))?;
            if waiting > most {
                connection.execute(MAKE_ROOM, [&request.id])?;
            }
            Ok(())
        })
    }

    /// Those that were asked in `waiting`, the oldest first.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, nobody waits.
    pub fn requests(&self, waiting: &Asked) -> Result<Vec<Request>, StoreError> {
        let found = self.read(|connection| {
            let sql = "SELECT * FROM oauth_request WHERE asked_at_ms BETWEEN ?1 AND ?2 ORDER BY asked_at_ms, id";
            connection.prepare_cached(sql)?.query_map(bounds(waiting), from_row)?.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The request of this id. `None`: there is none that was asked in `waiting`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn request(&self, id: &Digest, waiting: &Asked) -> Result<Option<Request>, StoreError> {
        let found = self.read(|connection| {
            let sql = "SELECT * FROM oauth_request WHERE id = ?1 AND asked_at_ms BETWEEN ?2 AND ?3";
            let [from, to] = bounds(waiting);
            connection.prepare_cached(sql)?.query_row(params![id, from, to], from_row).optional()
        })?;
        Ok(found.flatten())
    }

    /// A request that a code is about to be tried for; the try counts, whatever comes of it. `None`: there is none of this id
    /// that was asked in `waiting`, or so many codes were tried that none more may be.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn try_request(&self, id: &Digest, waiting: &Asked, most_tries: u32) -> Result<Option<Request>, StoreError> {
        self.write(|connection| {
            let sql = "UPDATE oauth_request SET tries = tries + 1 WHERE id = ?1 AND asked_at_ms BETWEEN ?2 AND ?3
                    AND tries < ?4 RETURNING *";
            let [from, to] = bounds(waiting);
            connection.query_row(sql, params![id, from, to, most_tries], from_row).optional()
        })
    }

    /// Forgets a request, and returns it; `None`: there is none of this id that was asked in `waiting`.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn take_request(&self, id: &Digest, waiting: &Asked) -> Result<Option<Request>, StoreError> {
        self.write(|connection| take(connection, id, waiting))
    }
}

/// Takes a request out, so that it is answered once.
pub(super) fn take(connection: &Connection, id: &Digest, waiting: &Asked) -> rusqlite::Result<Option<Request>> {
    let sql = "DELETE FROM oauth_request WHERE id = ?1 AND asked_at_ms BETWEEN ?2 AND ?3 RETURNING *";
    let [from, to] = bounds(waiting);
    connection.query_row(sql, params![id, from, to], from_row).optional()
}

fn insert(connection: &Connection, request: &Request) -> rusqlite::Result<()> {
    let sql = "INSERT INTO oauth_request VALUES (:id, :client, :name, :redirect, :state, :scopes, :resource, :challenge, :code,
        :tries, :asked)";
    let values = named_params! {
        ":id": request.id,
        ":client": request.client_id,
        ":name": request.client_name,
        ":redirect": request.redirect_uri,
        ":state": request.state,
        ":scopes": request.scopes,
        ":resource": request.resource,
        ":challenge": request.challenge,
        ":code": request.user_code,
        ":tries": request.tries,
        ":asked": request.asked_at_ms.cast_signed(),
    };
    connection.execute(sql, values).map(drop)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Request> {
    Ok(Request {
        id: row.get("id")?,
        client_id: row.get("client_id")?,
        client_name: row.get("client_name")?,
        redirect_uri: row.get("redirect_uri")?,
        state: row.get("state")?,
        scopes: row.get("scopes")?,
        resource: row.get("resource")?,
        challenge: row.get("challenge")?,
        user_code: row.get("user_code")?,
        tries: row.get("tries")?,
        asked_at_ms: row.get::<_, i64>("asked_at_ms")?.cast_unsigned(),
    })
}
