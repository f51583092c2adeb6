//! The ledger of MCP clients on disk: a row for each, and how often it has called what.

use super::grants::{GrantEnd, ended};
use super::{Store, StoreError, Whose};
use rusqlite::{Connection, Row, named_params, params, params_from_iter, types::Value};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Who a client is: what is known of one that has just connected, and stays so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewClient {
    /// Whose client it is.
    pub user_id: String,
    /// The grant that it works under; `None`: it needs none, as over stdin.
    pub grant_id: Option<String>,
    /// Its OAuth client id, where it has one.
    pub client_id: Option<String>,
    /// What it calls itself; `None`: it has not said.
    pub name: Option<String>,
    /// Which version it says it is.
    pub version: Option<String>,
    /// The revision of the protocol that it speaks.
    pub protocol: String,
    /// Which way it came.
    pub transport: String,
}

/// One client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its id in the ledger. Nobody may do anything for knowing it.
    pub id: String,
    /// The server that it is connected to, by its lease.
    pub server: String,
    /// Who it is.
    pub who: NewClient,
    /// Unix milliseconds.
    pub connected_at_ms: u64,
    /// Unix milliseconds.
    pub last_activity_at_ms: u64,
    /// How it has ended; `None`: it has not.
    pub ended: Option<End>,
    /// Calls by tool, failed ones among them.
    pub calls: BTreeMap<String, Calls>,
    /// How many agents it has registered.
    pub agents_registered: u64,
}

/// Calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// All of them.
    pub all: u64,
    /// Those that came to nothing.
    pub failed: u64,
}

/// How a client has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// Why.
    pub reason: EndReason,
}

/// Why a client has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// It closed its end.
    Closed,
    /// It was not heard for long.
    Idle,
    /// The server that it was connected to is no more.
    ServerStopped,
    /// The time of the grant that it worked under was over.
    GrantExpired,
    /// The grant that it worked under was revoked.
    GrantRevoked,
}

impl EndReason {
    /// As it is kept and told.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Idle => "idle",
            Self::ServerStopped => "server_stopped",
            Self::GrantExpired => "grant_expired",
            Self::GrantRevoked => "grant_revoked",
        }
    }
}

/// What a client has done since it was last told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// When it was heard last, Unix milliseconds.
    pub at_ms: u64,
    /// Calls by tool.
    pub calls: BTreeMap<String, Calls>,
    /// Agents that it has registered.
    pub agents_registered: u64,
    /// How it has ended, if it has.
    pub ended: Option<End>,
}

impl Activity {
    /// Adds what it has done after that.
    pub fn add(&mut self, later: Self) {
        self.at_ms = self.at_ms.max(later.at_ms);
        for (tool, calls) in later.calls {
            let all = self.calls.entry(tool).or_default();
            all.all += calls.all;
            all.failed += calls.failed;
        }
        self.agents_registered += later.agents_registered;
        self.ended = self.ended.or(later.ended);
    }
}

/// Which clients are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that are connected.
    Active,
    /// Those that have ended.
    Ended,
    /// All that are remembered.
    All,
}

/// What is asked of the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Whose clients.
    pub whose: Whose<'a>,
    /// Only this one, by its id.
    pub id: Option<&'a str>,
    /// Which of them.
    pub which: Which,
    /// What time it is, for grants that expire; Unix milliseconds.
    pub now_ms: u64,
    /// How many at the most.
    pub limit: usize,
    /// After which one the page begins.
    pub after: Option<&'a Cursor>,
}

/// A page of the list, the newest client first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The clients.
    pub clients: Vec<Client>,
    /// Where the next page begins; `None`: this is the last.
    pub next: Option<Cursor>,
}

/// A place in the list: after this client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// When it connected, Unix milliseconds.
    pub connected_at_ms: u64,
    /// Its id.
    pub id: String,
}

impl Cursor {
    /// The place that a text names; `None`: it is no such text.
    pub fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        let is_id = (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        // What is too large for the database is no time that it has given out.
        let connected_at_ms = at.parse().ok().filter(|at| i64::try_from(*at).is_ok())?;
        is_id.then(|| Self { connected_at_ms, id: id.to_owned() })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.connected_at_ms, self.id)
    }
}

impl Store {
    /// Takes up a client.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn record_client(&self, client: &Client) -> Result<(), StoreError> {
        self.write(|connection| insert(connection, client))
    }

    /// Writes down what clients have done, by their ids. One that is not there any more has done nothing.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn touch_clients<'a>(
        &self,
        activities: impl IntoIterator<Item = (&'a String, &'a Activity)>,
    ) -> Result<(), StoreError> {
        self.write(|connection| activities.into_iter().try_for_each(|(id, activity)| touch(connection, id, activity)))
    }

    /// How many clients of a user are connected: by the way they came and the revision of the protocol.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are none.
    pub fn connected(
        &self,
        user_id: &str,
        now_ms: u64,
        living: &HashSet<String>,
    ) -> Result<Vec<(String, String, u64)>, StoreError> {
        let found = self.read(|connection| {
            let sql = format!(
                "SELECT transport, protocol, count(*) FROM client LEFT JOIN grant ON grant.id = grant_id
                WHERE client.user_id = ? AND {} GROUP BY transport, protocol",
                is_connected(living)
            );
            let mut values = vec![Value::from(user_id.to_owned())];
            values.extend(living.iter().cloned().map(Value::from));
            values.push(Value::from(now_ms.cast_signed()));
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, count(row, 2)?));
            connection.prepare_cached(&sql)?.query_map(params_from_iter(values), row)?.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// A page of the clients. Those of servers that live no more, by `living`, have ended with them, and those that worked under
    /// a grant with the grant.
    ///
    /// # Errors
    /// When the database cannot be read. Where there is none yet, there are none.
    pub fn clients(&self, wanted: Wanted<'_>, living: &HashSet<String>) -> Result<Page, StoreError> {
        let page = self.read(|connection| {
            let mut clients = select(connection, wanted, living)?;
            let next = (clients.len() > wanted.limit).then(|| {
                clients.truncate(wanted.limit);
                clients.last().map(|last| Cursor { connected_at_ms: last.connected_at_ms, id: last.id.clone() })
            });
            let mut calls =
                connection.prepare_cached("SELECT tool, calls, failures FROM client_call WHERE client = ?1")?;
            for client in &mut clients {
                let row = |row: &Row<'_>| Ok((row.get(0)?, Calls { all: count(row, 1)?, failed: count(row, 2)? }));
                client.calls = calls.query_map([&client.id], row)?.collect::<rusqlite::Result<_>>()?;
            }
            Ok(Page { clients, next: next.flatten() })
        })?;
        Ok(page.unwrap_or_default())
    }
}

fn insert(connection: &Connection, client: &Client) -> rusqlite::Result<()> {
    let sql = "INSERT INTO client (id, server, user_id, grant_id, client_id, name, version, protocol, transport,
            connected_at_ms, last_activity_at_ms)
        VALUES (:id, :server, :user, :grant, :client, :name, :version, :protocol, :transport, :connected, :last)";
    let values = named_params! {
        ":id": client.id,
        ":server": client.server,
        ":user": client.who.user_id,
        ":grant": client.who.grant_id,
        ":client": client.who.client_id,
        ":name": client.who.name,
        ":version": client.who.version,
        ":protocol": client.who.protocol,
        ":transport": client.who.transport,
        ":connected": client.connected_at_ms.cast_signed(),
        ":last": client.last_activity_at_ms.cast_signed(),
    };
    connection.execute(sql, values).map(drop)
}

fn touch(connection: &Connection, id: &str, activity: &Activity) -> rusqlite::Result<()> {
    let sql = "UPDATE client SET last_activity_at_ms = max(last_activity_at_ms, ?2), agents_registered = agents_registered + ?3,
            ended_at_ms = coalesce(ended_at_ms, ?4), ended_reason = coalesce(ended_reason, ?5) WHERE id = ?1";
    let ended = activity.ended.map(|end| (end.at_ms.cast_signed(), end.reason.as_str())).unzip();
    let (at, registered) = (activity.at_ms.cast_signed(), activity.agents_registered.cast_signed());
    if connection.execute(sql, params![id, at, registered, ended.0, ended.1])? == 0 {
        return Ok(());
    }
    let sql = "INSERT INTO client_call VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failures = failures + excluded.failures";
    let mut add = connection.prepare_cached(sql)?;
    for (tool, calls) in &activity.calls {
        add.execute(params![id, tool, calls.all.cast_signed(), calls.failed.cast_signed()])?;
    }
    Ok(())
}

/// The clients of a page, and one more where there is one.
fn select(connection: &Connection, wanted: Wanted<'_>, living: &HashSet<String>) -> rusqlite::Result<Vec<Client>> {
    let mut sql = format!(
        "SELECT client.*, expires_at_ms, revoked_at_ms FROM client LEFT JOIN grant ON grant.id = grant_id WHERE {}",
        wanted.whose.is_in("client.user_id", "?")
    );
    let mut values = vec![Value::from(wanted.whose.user().map(str::to_owned))];
    if let Some(id) = wanted.id {
        sql += " AND client.id = ?";
        values.push(Value::from(id.to_owned()));
    }
    if let Some(after) = wanted.after {
        sql += " AND (connected_at_ms, client.id) < (?, ?)";
        values.extend([Value::from(after.connected_at_ms.cast_signed()), Value::from(after.id.clone())]);
    }
    if wanted.which != Which::All {
        let not = if wanted.which == Which::Ended { "NOT " } else { "" };
        sql += &format!(" AND {not}{}", is_connected(living));
        values.extend(living.iter().cloned().map(Value::from));
        values.push(Value::from(wanted.now_ms.cast_signed()));
    }
    sql += " ORDER BY connected_at_ms DESC, client.id DESC LIMIT ?";
    values.push(Value::from(i64::try_from(wanted.limit).unwrap_or(i64::MAX - 1) + 1));
    let mut statement = connection.prepare(&sql)?;
    statement.query_map(params_from_iter(values), |row| client(row, living, wanted.now_ms))?.collect()
}

/// That a client has not ended. Its values are those who live, and the time.
fn is_connected(living: &HashSet<String>) -> String {
    let places = vec!["?"; living.len()].join(", ");
    format!(
        "(ended_at_ms IS NULL AND server IN ({places})
            AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?))"
    )
}

fn client(row: &Row<'_>, living: &HashSet<String>, now_ms: u64) -> rusqlite::Result<Client> {
    let server: String = row.get("server")?;
    let last_activity_at_ms = count(row, "last_activity_at_ms")?;
    let own_end = match row.get::<_, Option<i64>>("ended_at_ms")? {
        Some(at) => {
            let reason: Option<String> = row.get("ended_reason")?;
            let told =
                [EndReason::Closed, EndReason::Idle].into_iter().find(|told| reason.as_deref() == Some(told.as_str()));
            let reason = told.unwrap_or(EndReason::ServerStopped);
            Some(End { at_ms: at.cast_unsigned(), reason })
        }
        None if living.contains(&server) => None,
        None => Some(End { at_ms: last_activity_at_ms, reason: EndReason::ServerStopped }),
    };
    // Who loses its grant is sent away, and closes its end after that.
    let ended = grant_end(row, now_ms)?.into_iter().chain(own_end).min_by_key(|end| end.at_ms);
    Ok(Client {
        id: row.get("id")?,
        server,
        who: NewClient {
            user_id: row.get("user_id")?,
            grant_id: row.get("grant_id")?,
            client_id: row.get("client_id")?,
            name: row.get("name")?,
            version: row.get("version")?,
            protocol: row.get("protocol")?,
            transport: row.get("transport")?,
        },
        connected_at_ms: count(row, "connected_at_ms")?,
        last_activity_at_ms,
        ended,
        calls: BTreeMap::new(),
        agents_registered: count(row, "agents_registered")?,
    })
}

/// How the grant has ended that a client works under, if it has.
fn grant_end(row: &Row<'_>, now_ms: u64) -> rusqlite::Result<Option<End>> {
    let time = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(i64::cast_unsigned));
    let ended = ended(time("expires_at_ms")?, time("revoked_at_ms")?, now_ms);
    Ok(ended.map(|(at_ms, how)| {
        let reason = match how {
            GrantEnd::Expired => EndReason::GrantExpired,
            GrantEnd::Revoked => EndReason::GrantRevoked,
        };
        End { at_ms, reason }
    }))
}

/// SQLite's integers are signed: the same 64 bits.
fn count(row: &Row<'_>, column: impl rusqlite::RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

#[cfg(test)]
mod tests;
