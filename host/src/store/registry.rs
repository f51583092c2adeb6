//! The registry: agents that were declared by hand or by an orchestrator, until they are withdrawn.

use super::{Store, StoreError};
use crate::names::{AgentName, BadName, SESSION_NAME_MAX, SessionId, line};
use crate::text::clean;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params, types::Type};
use serde::Serialize;

/// How long a registration outlasts the boot in which its process ran, in milliseconds.
pub(super) const KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// One declared agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registration {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// What the session is called; whoever says so last counts for the whole session. At most 256 characters.
    pub session_name: Option<String>,
    /// The session's project root; as with its name. At most 4096 characters.
    pub root_path: Option<String>,
    /// The agent's name, its own within the session.
    pub agent_name: AgentName,
    /// What it is for. At most 256 characters.
    pub specialization: Option<String>,
    /// Its root process; an agent may have none, as when it runs on another machine.
    pub process: Option<RegisteredProcess>,
    /// The OS user for whom it was registered. At most 256 characters.
    pub owner: String,
    /// The client that registered it. At most 256 characters.
    pub registered_by: String,
    /// When, as Unix time in milliseconds.
    pub registered_at_ms: u64,
}

/// The whole identity of a process: a pid alone may be another process tomorrow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegisteredProcess {
    /// The process id within its namespace.
    pub pid: u32,
    /// The kernel's start token, raw.
    pub start: u64,
    /// The boot in which it runs. Under another boot it is known to be dead.
    pub boot_id: String,
    /// The pid namespace in which `pid` counts.
    pub pid_namespace: String,
}

/// What became of a registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registered {
    /// The agent's id.
    pub agent_id: String,
    /// Whether it took the place of an earlier registration of the same session and name.
    pub replaced: bool,
}

impl Registration {
    /// The agent's id: the same for each registration of its name.
    pub fn agent_id(&self) -> String {
        self.agent_name.agent_id()
    }

    /// Refuses texts that would make the registry a dump: everyone who asks for a status gets them.
    pub(super) fn check(&self) -> Result<(), BadName> {
        let texts = [
            ("the session's name", self.session_name.as_deref(), SESSION_NAME_MAX),
            ("the root path", self.root_path.as_deref(), 4096),
            ("the specialization", self.specialization.as_deref(), 256),
            ("the owner", Some(self.owner.as_str()), 256),
            ("the client's name", Some(self.registered_by.as_str()), 256),
        ];
        for (what, text, most) in texts {
            line(what, text.unwrap_or_default(), most)?;
        }
        Ok(())
    }
}

impl Store {
    /// Registers an agent, in the place of any that its session has by this name.
    ///
    /// Registrations whose processes ran under an earlier boot are forgotten here once they are 30 days old.
    ///
    /// # Errors
    /// When the session is another owner's, a text is too long or holds control characters, or the database cannot be written.
    pub fn register(&self, registration: &Registration) -> Result<Registered, StoreError> {
        registration.check()?;
        let replaced =
            self.write(|connection| in_own(connection, registration, || take_up(connection, registration)))??;
        Ok(Registered { agent_id: registration.agent_id(), replaced })
    }

    /// Withdraws an agent. Returns whether there was one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn unregister(&self, session: &SessionId, agent: &AgentName) -> Result<bool, StoreError> {
        self.write(|connection| {
            let sql = "DELETE FROM agent WHERE session_id = ?1 AND name = ?2";
            let removed = connection.execute(sql, params![session.as_str(), agent.as_str()])?;
            forget_empty_sessions(connection)?;
            Ok(removed > 0)
        })
    }

    /// Every declared agent, by session and name. Those of earlier boots are among them: the reader says that they are dead.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, none is declared.
    pub fn list(&self) -> Result<Vec<Registration>, StoreError> {
        let rows = self.read(|connection| {
            let sql =
                "SELECT session_id, session.name AS session_name, root_path, agent.name AS agent_name, specialization,
                    pid, start, boot_id, pid_namespace, owner, registered_by, registered_at_ms
                FROM agent JOIN session ON session.id = session_id ORDER BY session_id, agent.name";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], registration)?.collect()
        })?;
        Ok(rows.unwrap_or_default())
    }
}

/// Does what makes a session the owner's of `new`, unless it is another's. Whose a session is says its oldest registration.
pub(super) fn in_own<T>(
    connection: &Connection,
    new: &Registration,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<Result<T, StoreError>> {
    let sql = "SELECT owner FROM agent WHERE session_id = ?1 ORDER BY registered_at_ms, name LIMIT 1";
    let owner: Option<String> = connection.query_row(sql, [new.session_id.as_str()], |row| row.get(0)).optional()?;
    match owner.filter(|owner| *owner != new.owner) {
        Some(owner) => Ok(Err(StoreError::Owned { session: new.session_id.clone(), owner: clean(&owner) })),
        None => work().map(Ok),
    }
}

/// Takes up a registration, and forgets those that are too old. Returns whether there was one of this name.
fn take_up(connection: &Connection, new: &Registration) -> rusqlite::Result<bool> {
    if let Some(process) = &new.process {
        prune(connection, &process.boot_id, new.registered_at_ms.saturating_sub(KEPT_MS))?;
    }
    replace(connection, new)
}

/// Puts a registration in the place of any that its session has by this name. Returns whether there was one.
pub(super) fn replace(connection: &Connection, new: &Registration) -> rusqlite::Result<bool> {
    let session = "INSERT INTO session (id, name, root_path) VALUES (?1, ?2, ?3)
        ON CONFLICT (id) DO UPDATE SET name = coalesce(excluded.name, name), root_path = coalesce(excluded.root_path, root_path)";
    connection.execute(session, params![new.session_id.as_str(), new.session_name, new.root_path])?;
    let sql = "DELETE FROM agent WHERE session_id = ?1 AND name = ?2";
    let old = connection.execute(sql, params![new.session_id.as_str(), new.agent_name.as_str()])?;
    let sql = "INSERT INTO agent VALUES (:session, :name, :specialization, :pid, :start, :boot, :namespace, :owner, :by, :at)";
    let process = new.process.as_ref();
    connection.execute(
        sql,
        named_params! {
            ":session": new.session_id.as_str(),
            ":name": new.agent_name.as_str(),
            ":specialization": new.specialization,
            ":pid": process.map(|process| process.pid),
            // SQLite's integers are signed: the same 64 bits.
            ":start": process.map(|process| process.start.cast_signed()),
            ":boot": process.map(|process| &process.boot_id),
            ":namespace": process.map(|process| &process.pid_namespace),
            ":owner": new.owner,
            ":by": new.registered_by,
            ":at": new.registered_at_ms.cast_signed(),
        },
    )?;
    Ok(old > 0)
}

/// Forgets what ran under another boot than `running` and was registered before `oldest_ms`.
pub(super) fn prune(connection: &Connection, running: &str, oldest_ms: u64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM agent WHERE boot_id <> ?1 AND registered_at_ms < ?2";
    if connection.execute(sql, params![running, oldest_ms.cast_signed()])? > 0 {
        forget_empty_sessions(connection)?;
    }
    Ok(())
}

pub(super) fn forget_empty_sessions(connection: &Connection) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM session WHERE id NOT IN (SELECT session_id FROM agent)", [])
}

fn registration(row: &Row<'_>) -> rusqlite::Result<Registration> {
    let process = match row.get::<_, Option<u32>>("pid")? {
        None => None,
        Some(pid) => Some(RegisteredProcess {
            pid,
            start: row.get::<_, i64>("start")?.cast_unsigned(),
            boot_id: row.get("boot_id")?,
            pid_namespace: row.get("pid_namespace")?,
        }),
    };
    Ok(Registration {
        session_id: name(row, "session_id", SessionId::parse)?,
        session_name: row.get("session_name")?,
        root_path: row.get("root_path")?,
        agent_name: name(row, "agent_name", AgentName::parse)?,
        specialization: row.get("specialization")?,
        process,
        owner: row.get("owner")?,
        registered_by: row.get("registered_by")?,
        registered_at_ms: row.get::<_, i64>("registered_at_ms")?.cast_unsigned(),
    })
}

/// A name is checked on its way out too: others can write the file.
pub(super) fn name<T>(row: &Row<'_>, column: &str, parse: impl Fn(&str) -> Result<T, BadName>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let index = row.as_ref().column_index(column)?;
    parse(&text).map_err(|bad| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(bad)))
}

#[cfg(test)]
mod tests;
