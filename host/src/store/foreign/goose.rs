//! What is asked of Goose's database: sessions and their messages.

use super::{Opened, Row, Unread};

/// So many of a session's last messages are looked at.
const MESSAGES: u32 = 16;

/// What a session has beside its id, in versions of Goose that know it.
const BESIDE: [&str; 8] = [
    "parent_session_id",
    "total_tokens",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_cache_read_tokens",
    "accumulated_cache_write_tokens",
    "provider_name",
    "model_config_json",
];

/// The session with this id: `id`, and of the rest what this version of Goose has.
///
/// # Errors
/// The database cannot be read, or has no such table.
pub fn session(db: &Opened, id: &str) -> Result<Option<Row>, Unread> {
    let known = db.table("sessions", &["id", "updated_at"])?;
    let columns = BESIDE.into_iter().filter(|name| known.iter().any(|column| column == name));
    let beside: String =
        columns.map(|name| format!(", CASE WHEN octet_length({name}) <= 65536 THEN {name} END AS {name}")).collect();
    let sql = format!("SELECT substr(id, 1, 128) AS id{beside} FROM sessions WHERE id = ?1");
    Ok(db.rows(&sql, [id])?.pop())
}

/// The `id` of sessions that no other one has begun and that were gone on with since then, Unix milliseconds.
///
/// # Errors
/// As [`session`].
pub fn gone_on_with(db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread> {
    let known = db.table("sessions", &["id", "updated_at"])?;
    let has = |name: &str| known.iter().any(|column| column == name);
    let own = if has("session_type") { " AND session_type NOT IN ('sub_agent', 'hidden')" } else { "" };
    let top = if has("parent_session_id") { " AND parent_session_id IS NULL" } else { "" };
    // The times are texts, of seconds.
    let sql =
        format!("SELECT substr(id, 1, 128) AS id FROM sessions WHERE unixepoch(updated_at) >= ?1{own}{top} LIMIT 100");
    db.rows(&sql, [i64::try_from(since_ms / 1000).unwrap_or(i64::MAX)])
}

/// The last messages of a session, the newest first: `role`, `created_timestamp` in seconds or milliseconds, and
/// `content_json`, which is nothing where it is large.
///
/// # Errors
/// As [`session`].
pub fn messages(db: &Opened, session: &str) -> Result<Vec<Row>, Unread> {
    db.table("messages", &["id", "session_id", "role", "created_timestamp", "content_json"])?;
    let sql = "SELECT substr(role, 1, 64) AS role, created_timestamp,
            CASE WHEN octet_length(content_json) <= 262144 THEN content_json END AS content_json
        FROM messages WHERE id IN (SELECT id FROM messages WHERE session_id = ?1 ORDER BY id DESC LIMIT ?2)
        ORDER BY id DESC";
    db.rows(sql, (session, MESSAGES))
}
