//! What is asked of OpenCode's database: sessions, their messages, and the parts of a message. Times are Unix milliseconds.

use super::{Opened, Row, Unread};

/// So many of a session's last messages are looked at: the newest answer is among them.
const MESSAGES: u32 = 8;

/// So many of a message's last parts are looked at.
const PARTS: u32 = 200;

/// So many at most [`messages_after`] finds.
pub const SUMMED: u32 = 8;

/// The session with this id: `id`, `parent_id`, and what it has used where this version of OpenCode sums it up.
///
/// # Errors
/// The database cannot be read, or has no such table.
pub fn session(db: &Opened, id: &str) -> Result<Option<Row>, Unread> {
    let sums = ["tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"];
    let known = db.table("session", &["id", "parent_id", "time_updated"])?;
    let columns: Vec<&str> = sums.into_iter().filter(|name| known.iter().any(|column| column == name)).collect();
    let sums: String = columns.iter().map(|name| format!(", {name}")).collect();
    let sql = format!(
        "SELECT substr(id, 1, 128) AS id, substr(parent_id, 1, 128) AS parent_id{sums} FROM session WHERE id = ?1"
    );
    Ok(db.rows(&sql, [id])?.pop())
}

/// The `id` of sessions that no other one has begun and that were gone on with since then.
///
/// # Errors
/// As [`session`].
pub fn gone_on_with(db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread> {
    db.table("session", &["id", "parent_id", "time_updated"])?;
    let sql = "SELECT substr(id, 1, 128) AS id FROM session WHERE parent_id IS NULL AND time_updated >= ?1 LIMIT 100";
    db.rows(sql, [i64::try_from(since_ms).unwrap_or(i64::MAX)])
}

/// The last messages of a session, the newest first: `id`, `time_created`, and `data`, which is JSON and nothing where it is
/// large.
///
/// # Errors
/// As [`session`].
pub fn messages(db: &Opened, session: &str) -> Result<Vec<Row>, Unread> {
    db.table("message", &["id", "session_id", "time_created", "data"])?;
    // Their content is not looked at before it is known which ones are meant.
    let sql = "SELECT substr(id, 1, 128) AS id, time_created, CASE WHEN octet_length(data) <= 262144 THEN data END AS data
        FROM message WHERE id IN (SELECT id FROM message WHERE session_id = ?1 ORDER BY time_created DESC, id DESC LIMIT ?2)
        ORDER BY time_created DESC, id DESC";
    db.rows(sql, (session, MESSAGES))
}

/// The last parts of a message, the newest first: `data`, which is JSON and nothing where it is large.
///
/// # Errors
/// As [`session`].
pub fn parts(db: &Opened, message: &str) -> Result<Vec<Row>, Unread> {
    db.table("part", &["id", "message_id", "data"])?;
    let sql = "SELECT CASE WHEN octet_length(data) <= 262144 THEN data END AS data
        FROM part WHERE message_id = ?1 ORDER BY id DESC LIMIT ?2";
    db.rows(sql, (message, PARTS))
}

/// How many messages of a session there are up to this one.
///
/// # Errors
/// As [`session`].
pub fn messages_up_to(db: &Opened, session: &str, last: &str) -> Result<u64, Unread> {
    db.table("message", &["id", "session_id"])?;
    let found =
        db.rows("SELECT count(*) AS messages FROM message WHERE session_id = ?1 AND id <= ?2", [session, last])?;
    Ok(found.first().and_then(|row| row["messages"].as_u64()).unwrap_or_default())
}

/// The next messages of a session after this one, the oldest first: `id`, and `data`, which is JSON and nothing where it is
/// large.
///
/// # Errors
/// As [`session`].
pub fn messages_after(db: &Opened, session: &str, after: &str) -> Result<Vec<Row>, Unread> {
    db.table("message", &["id", "session_id", "data"])?;
    let sql = "SELECT id, CASE WHEN octet_length(data) <= 1048576 THEN data END AS data
        FROM message WHERE session_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    db.rows(sql, (session, after, SUMMED))
}
