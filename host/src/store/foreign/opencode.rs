//! What is asked of OpenCode's database: sessions, their messages, and the parts of a message. Times are Unix milliseconds.

use super::{Opened, Row, Unread};

/// So many of a session's last messages are looked at: the newest answer is among them.
const MESSAGES: u32 = 8;

/// So many of a message's last parts are looked at.
const PARTS: u32 = 200;

/// So many messages are summed up where a session has no sums of its own.
pub const SUMMED: u32 = 5000;

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

/// What the messages of a session have used, by the names that a session has for its sums, and how many `messages` say so.
///
/// # Errors
/// As [`session`].
pub fn spent(db: &Opened, session: &str) -> Result<Option<Row>, Unread> {
    db.table("message", &["session_id", "data"])?;
    let sql = "SELECT count(*) AS messages,
            sum(data ->> '$.tokens.input') AS tokens_input, sum(data ->> '$.tokens.output') AS tokens_output,
            sum(data ->> '$.tokens.reasoning') AS tokens_reasoning,
            sum(data ->> '$.tokens.cache.read') AS tokens_cache_read,
            sum(data ->> '$.tokens.cache.write') AS tokens_cache_write
        FROM (SELECT CASE WHEN octet_length(data) <= 262144 AND json_valid(data) THEN data END AS data
            FROM message WHERE session_id = ?1 LIMIT ?2)
        WHERE data ->> '$.role' = 'assistant'";
    Ok(db.rows(sql, (session, SUMMED))?.pop())
}
