//! Sessions of the HTTP transport that outlive the server: how each began, so that a new server can go on with it. A session is
//! found by the SHA-256 of its id, so that nobody gets into one for having read this.

use super::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};

impl Store {
    /// Keeps how a session of a grant has just begun. What was last used before `oldest_ms` is forgotten.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn keep_session(
        &self,
        id: &str,
        grant_id: &str,
        hello: &str,
        now_ms: u64,
        oldest_ms: u64,
    ) -> Result<(), StoreError> {
        self.write(|connection| {
            connection.execute("DELETE FROM transport_session WHERE used_at_ms < ?1", [oldest_ms.cast_signed()])?;
            let sql = "INSERT OR REPLACE INTO transport_session VALUES (?1, ?2, ?3, ?4)";
            connection.execute(sql, params![digest(id), grant_id, hello, now_ms.cast_signed()])?;
            Ok(())
        })
    }

    /// Notes when sessions were last used, by their ids.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn use_sessions(&self, used: &[(impl AsRef<str>, u64)]) -> Result<(), StoreError> {
        self.write(|connection| {
            let sql = "UPDATE transport_session SET used_at_ms = ?2 WHERE id = ?1";
            let mut update = connection.prepare_cached(sql)?;
            used.iter()
                .try_for_each(|(id, at_ms)| update.execute(params![digest(id.as_ref()), at_ms.cast_signed()]).map(drop))
        })
    }

    /// How a session began, if it is one of this grant's and was used since `since_ms`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn kept_session(&self, id: &str, grant_id: &str, since_ms: u64) -> Result<Option<String>, StoreError> {
        let found = self.read(|connection| {
            let sql = "SELECT hello FROM transport_session WHERE id = ?1 AND grant_id = ?2 AND used_at_ms >= ?3";
            let values = params![digest(id), grant_id, since_ms.cast_signed()];
            connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()
        })?;
        Ok(found.flatten())
    }

    /// Forgets a session: it is over.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn forget_session(&self, id: &str) -> Result<(), StoreError> {
        let forget = |connection: &Connection| {
            connection.execute("DELETE FROM transport_session WHERE id = ?1", params![digest(id)]).map(drop)
        };
        self.write(forget)
    }
}

fn digest(id: &str) -> [u8; 32] {
    Sha256::digest(id).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_by_its_own_grant_until_it_is_over_or_unused_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        assert_eq!(store.kept_session("a", "grt_1", 0).unwrap(), None, "there is no database yet");
        store.keep_session("a", "grt_1", "hello", 1000, 0).unwrap();
        store.keep_session("b", "grt_1", "hi", 2000, 0).unwrap();
        assert_eq!(store.kept_session("a", "grt_1", 0).unwrap().as_deref(), Some("hello"));
        assert_eq!(store.kept_session("a", "grt_2", 0).unwrap(), None);
        store.keep_session("c", "grt_2", "ho", 3000, 1500).unwrap();
        assert_eq!(store.kept_session("a", "grt_1", 0).unwrap(), None);
        assert_eq!(store.kept_session("b", "grt_1", 2001).unwrap(), None);
        store.use_sessions(&[("b", 2500), ("none", 2500)]).unwrap();
        assert_eq!(store.kept_session("b", "grt_1", 2001).unwrap().as_deref(), Some("hi"));
        store.forget_session("b").unwrap();
        assert_eq!(store.kept_session("b", "grt_1", 0).unwrap(), None);
        assert_eq!(store.kept_session("c", "grt_2", 0).unwrap().as_deref(), Some("ho"));
    }
}
