//! What is asked of Crush's database: sessions and their messages. Times are Unix seconds.

use super::{Opened, Row, Unread};

/// So many of a session's last messages are looked at.
const MESSAGES: u32 = 16;

/// The session with this id: `id`, `parent_session_id`.
///
/// # Errors
/// The database cannot be read, or has no such table.
pub fn session(db: &Opened, id: &str) -> Result<Option<Row>, Unread> {
    db.table("sessions", &["id", "parent_session_id", "updated_at"])?;
    let sql = "SELECT substr(id, 1, 128) AS id, substr(parent_session_id, 1, 128) AS parent_session_id
        FROM sessions WHERE id = ?1";
    Ok(db.rows(sql, [id])?.pop())
}

/// The `id` of sessions that no other one has begun and that were gone on with since then, Unix milliseconds.
///
/// # Errors
/// As [`session`].
pub fn gone_on_with(db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread> {
    db.table("sessions", &["id", "parent_session_id", "updated_at"])?;
    let sql = "SELECT substr(id, 1, 128) AS id FROM sessions
        WHERE parent_session_id IS NULL AND updated_at >= ?1 LIMIT 100";
    db.rows(sql, [i64::try_from(since_ms / 1000).unwrap_or(i64::MAX)])
}

/// The last messages of a session, the newest first: `role`, `model`, `created_at`, and `parts`, which is JSON and nothing
/// where it is large.
///
/// # Errors
/// As [`session`].
pub fn messages(db: &Opened, session: &str) -> Result<Vec<Row>, Unread> {
    db.table("messages", &["id", "session_id", "role", "model", "created_at", "parts"])?;
    let sql = "SELECT substr(role, 1, 64) AS role, substr(model, 1, 64) AS model, created_at,
            CASE WHEN octet_length(parts) <= 1048576 THEN parts END AS parts
        FROM messages WHERE rowid IN
            (SELECT rowid FROM messages WHERE session_id = ?1 ORDER BY created_at DESC, rowid DESC LIMIT ?2)
        ORDER BY created_at DESC, rowid DESC";
    db.rows(sql, (session, MESSAGES))
}
