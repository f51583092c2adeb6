//! OAuth clients that have registered (RFC 7591).

use crate::store::{Store, StoreError};
use rusqlite::{OptionalExtension as _, Row, params};

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id. It is no secret, and nobody may do anything for knowing it.
    pub id: String,
    /// What it calls itself, if it does.
    pub name: Option<String>,
    /// Where answers may be sent.
    pub redirect_uris: Vec<String>,
    /// Unix milliseconds.
    pub registered_at_ms: u64,
}

impl Store {
    /// Takes up a client, which is on the disk then. Of those that nobody has ever consented to, and none
    /// of whose requests waits, only the newest `most` stay.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn add_client(&self, client: &Client, most: u32) -> Result<(), StoreError> {
        let uris = serde_json::Value::from(client.redirect_uris.clone()).to_string();
        self.write_durably(|connection| {
            let sql = "INSERT INTO oauth_client VALUES (?1, ?2, ?3, ?4)";
            connection.execute(sql, params![client.id, client.name, uris, client.registered_at_ms.cast_signed()])?;
            let sql = "DELETE FROM oauth_client WHERE id IN (
                SELECT id FROM oauth_client AS unused
                WHERE NOT EXISTS (SELECT 1 FROM grant WHERE client_id = unused.id)
                    AND NOT EXISTS (SELECT 1 FROM oauth_request WHERE client_id = unused.id)
                    AND NOT EXISTS (SELECT 1 FROM oauth_code WHERE client_id = unused.id AND grant_id IS NULL)
                ORDER BY registered_at_ms DESC, rowid DESC LIMIT -1 OFFSET ?1)";
            connection.execute(sql, [most]).map(drop)
        })
    }

    /// The client of this id.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure.
    pub fn client(&self, id: &str) -> Result<Option<Client>, StoreError> {
        let found = self.decide(|connection| {
            let sql = "SELECT * FROM oauth_client WHERE id = ?1";
            connection.prepare_cached(sql)?.query_row([id], from_row).optional()
        })?;
        Ok(found.flatten())
    }
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Client> {
    Ok(Client {
        id: row.get("id")?,
        name: row.get("name")?,
        redirect_uris: texts(&row.get::<_, String>("redirect_uris")?)?,
        registered_at_ms: row.get::<_, i64>("registered_at_ms")?.cast_unsigned(),
    })
}

fn texts(json: &str) -> rusqlite::Result<Vec<String>> {
    let refused = |error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error));
    serde_json::from_str(json).map_err(refused)
}
