//! The runs: agents that `headcount run` started, how each ended, and when it was or will be started again.
//!
//! A run belongs to a registration, and goes with it. It is known by its tag, so that who keeps an agent whose name
//! was given to another since writes to nobody else's record.

use super::registry::{KEPT_MS, RegisteredProcess, Registration, forget_empty_sessions, in_own, name, prune, replace};
use super::{Store, StoreError};
use crate::names::{AgentName, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use serde::{Deserialize, Serialize};

/// What is recorded of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The session of its registration.
    pub session_id: SessionId,
    /// The agent's name.
    pub agent_name: AgentName,
    /// What all processes of the run carry in their environment, and no others.
    pub tag: String,
    /// The pid of who waits for the agent and starts it again.
    pub keeper_pid: u32,
    /// That process's raw start token.
    pub keeper_start: u64,
    /// Whether the registered process is not known to have ended.
    pub running: bool,
    /// How often it was started again.
    pub restarts: u32,
    /// When it was last started again, Unix milliseconds.
    pub restarted_at_ms: Option<u64>,
    /// How it last ended: its exit code, or minus the signal's number.
    pub exit_code: Option<i32>,
    /// When it last ended, Unix milliseconds.
    pub ended_at_ms: Option<u64>,
    /// The number of the signal by which that end was asked for, where it was.
    pub request: Option<i32>,
    /// When it is to be started again, Unix milliseconds.
    pub next_start_at_ms: Option<u64>,
    /// How many restarts there were in a row, the one to come included.
    pub restarts_in_a_row: u32,
    /// How many there may be; `None`: it is not started again.
    pub max_restarts: Option<u32>,
    /// What kind of agent it is, by its command.
    pub kind: Option<String>,
}

/// What is known of a run before its agent has started.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// What all its processes are to carry in their environment.
    pub tag: &'a str,
    /// Who waits for its agent.
    pub keeper: Keeper,
    /// How many restarts in a row there may be; `None`: it is not started again.
    pub max_restarts: Option<u32>,
    /// What kind of agent it is, by its command.
    pub kind: Option<&'a str>,
}

/// How the agent of a run has ended, and what comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunEnd {
    /// Its exit code, or minus the signal's number.
    pub exit_code: i32,
    /// When, Unix milliseconds.
    pub at_ms: u64,
    /// The number of the signal by which its end was asked for, where it was.
    pub request: Option<i32>,
    /// When it is to be started again, Unix milliseconds, if it is.
    pub next_start_at_ms: Option<u64>,
    /// How many restarts there were in a row, the one to come included.
    pub restarts_in_a_row: u32,
}

/// Who waits for the agent of a run: a pid and its raw start token.
pub type Keeper = (u32, u64);

/// What became of a new run.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is registered under this name.
    As(AgentName),
    /// Somebody who lives has the name: this process.
    Taken(u32),
}

impl Store {
    /// Registers the agent of a new run under the first of `names` that nobody has who `lives`, with what is registered of
    /// `agent` otherwise. Where none is free: who has the last.
    ///
    /// # Errors
    /// When the session is another owner's, a text is too long or holds control characters, or the database cannot be written.
    pub fn begin_run(
        &self,
        agent: Registration,
        names: impl IntoIterator<Item = AgentName>,
        run: NewRun<'_>,
        lives: impl Fn(&RegisteredProcess) -> bool,
    ) -> Result<Begun, StoreError> {
        let mut agent = agent;
        agent.check()?;
        self.write(|connection| {
            if let Some(process) = &agent.process {
                prune(connection, &process.boot_id, agent.registered_at_ms.saturating_sub(KEPT_MS))?;
            }
            let mut taken = 0;
            for free in names {
                match holder(connection, &agent.session_id, &free)?.filter(&lives) {
                    Some(process) => taken = process.pid,
                    None => {
                        agent.agent_name = free;
                        return in_own(connection, &agent, || begin(connection, &agent, run));
                    }
                }
            }
            Ok(Ok(Begun::Taken(taken)))
        })?
    }

    /// Notes that the agent of a run was started again.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn run_started_again(
        &self,
        tag: &str,
        (pid, start): (u32, u64),
        keeper: Keeper,
        at_ms: u64,
    ) -> Result<(), StoreError> {
        self.write(|connection| {
            let sql = "UPDATE agent SET pid = ?2, start = ?3
                WHERE (session_id, name) = (SELECT session_id, name FROM run WHERE tag = ?1)";
            connection.execute(sql, params![tag, pid, start.cast_signed()])?;
            let sql =
                "UPDATE run SET running = TRUE, restarts = restarts + 1, restarted_at_ms = ?2, next_start_at_ms = NULL,
                keeper_pid = ?3, keeper_start = ?4 WHERE tag = ?1";
            connection.execute(sql, params![tag, at_ms.cast_signed(), keeper.0, keeper.1.cast_signed()])?;
            Ok(())
        })
    }

    /// Notes how the agent of a run has ended, and when it is to be started again, if so.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn run_ended(&self, tag: &str, end: RunEnd) -> Result<(), StoreError> {
        self.write(|connection| {
            let sql = "UPDATE run SET running = FALSE, exit_code = :code, ended_at_ms = :at, request = :request,
                next_start_at_ms = :next, restarts_in_a_row = :in_a_row WHERE tag = :tag";
            connection.execute(
                sql,
                named_params! {
                    ":tag": tag,
                    ":code": end.exit_code,
                    ":at": end.at_ms.cast_signed(),
                    ":request": end.request,
                    ":next": end.next_start_at_ms.map(u64::cast_signed),
                    ":in_a_row": end.restarts_in_a_row,
                },
            )?;
            Ok(())
        })
    }

    /// Notes that the run goes on without a further start, kept by another process.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn run_kept_by(&self, tag: &str, keeper: Keeper) -> Result<(), StoreError> {
        self.write(|connection| {
            let sql = "UPDATE run SET keeper_pid = ?2, keeper_start = ?3 WHERE tag = ?1";
            connection.execute(sql, params![tag, keeper.0, keeper.1.cast_signed()])?;
            Ok(())
        })
    }

    /// Forgets a run whose agent could not be started.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn forget_run(&self, tag: &str) -> Result<(), StoreError> {
        self.write(|connection| {
            let sql = "DELETE FROM agent WHERE (session_id, name) = (SELECT session_id, name FROM run WHERE tag = ?1)";
            connection.execute(sql, params![tag])?;
            forget_empty_sessions(connection)?;
            Ok(())
        })
    }

    /// What is recorded of all runs, by session and name.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are no runs.
    pub fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        let rows = self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT * FROM run ORDER BY session_id, name")?;
            statement.query_map([], record)?.collect()
        })?;
        Ok(rows.unwrap_or_default())
    }
}

/// The process that keeps a name from being given away: the agent's own, or where that has ended and is to be started again,
/// its keeper's.
fn holder(
    connection: &Connection,
    session: &SessionId,
    agent: &AgentName,
) -> rusqlite::Result<Option<RegisteredProcess>> {
    let sql = "SELECT iif(next_start_at_ms IS NULL, pid, keeper_pid) AS pid, iif(next_start_at_ms IS NULL, start, keeper_start) AS start,
            boot_id, pid_namespace
        FROM agent LEFT JOIN run USING (session_id, name) WHERE session_id = ?1 AND name = ?2 AND pid IS NOT NULL";
    let process = |row: &Row<'_>| {
        Ok(RegisteredProcess {
            pid: row.get("pid")?,
            start: row.get::<_, i64>("start")?.cast_unsigned(),
            boot_id: row.get("boot_id")?,
            pid_namespace: row.get("pid_namespace")?,
        })
    };
    connection.query_row(sql, params![session.as_str(), agent.as_str()], process).optional()
}

fn begin(connection: &Connection, agent: &Registration, run: NewRun<'_>) -> rusqlite::Result<Begun> {
    replace(connection, agent)?;
    let sql = "INSERT INTO run (session_id, name, tag, keeper_pid, keeper_start, running, max_restarts, kind)
        VALUES (:session, :name, :tag, :keeper_pid, :keeper_start, TRUE, :max_restarts, :kind)";
    connection.execute(
        sql,
        named_params! {
            ":session": agent.session_id.as_str(),
            ":name": agent.agent_name.as_str(),
            ":tag": run.tag,
            ":keeper_pid": run.keeper.0,
            ":keeper_start": run.keeper.1.cast_signed(),
            ":max_restarts": run.max_restarts,
            ":kind": run.kind,
        },
    )?;
    Ok(Begun::As(agent.agent_name.clone()))
}

fn record(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let time = |column: &str| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
    };
    Ok(RunRecord {
        session_id: name(row, "session_id", SessionId::parse)?,
        agent_name: name(row, "name", AgentName::parse)?,
        tag: row.get("tag")?,
        keeper_pid: row.get("keeper_pid")?,
        keeper_start: row.get::<_, i64>("keeper_start")?.cast_unsigned(),
        running: row.get("running")?,
        restarts: row.get("restarts")?,
        restarted_at_ms: time("restarted_at_ms")?,
        exit_code: row.get("exit_code")?,
        ended_at_ms: time("ended_at_ms")?,
        request: row.get("request")?,
        next_start_at_ms: time("next_start_at_ms")?,
        restarts_in_a_row: row.get("restarts_in_a_row")?,
        max_restarts: row.get("max_restarts")?,
        kind: row.get("kind")?,
    })
}

#[cfg(test)]
mod tests;
