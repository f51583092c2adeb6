//! A database of somebody else's that is open, and what may be asked of it.

use super::Unread;
use crate::clock::{Clock as _, SystemClock};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// What is said of a database that somebody has for himself.
pub(super) const LOCKED: &str = "is locked by whoever writes it";

/// So many steps of SQLite's machine a look may take; a million take some 50 ms.
const MOST_STEPS: u32 = 3_000_000;

/// So long a look may take, where the steps themselves are long: many rows may share one huge value.
const MOST_TIME: Duration = Duration::from_millis(250);

/// How often steps are counted.
const STRIDE: u32 = 500;

/// The longest value that SQLite takes up at all.
const LONGEST_VALUE: i32 = 4 << 20;

/// A row, by the names of its columns.
pub type Row = Map<String, Value>;

/// A database that is open for one look.
#[derive(Debug)]
pub struct Opened {
    connection: Connection,
    /// The columns of its tables, as far as they were asked for. Many agents are looked up in one look.
    tables: RefCell<HashMap<String, Vec<String>>>,
    /// Runs since it was opened.
    clock: SystemClock,
}

impl Opened {
    /// Opens what an address names.
    pub(super) fn open(uri: &str) -> Result<Self, Unread> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let clock = SystemClock::default();
        let mut connection = Connection::open_with_flags(uri, flags).map_err(unread)?;
        restrict(&mut connection).map_err(unread)?;
        Ok(Self { connection, tables: RefCell::default(), clock })
    }

    /// How long it has been open: what can be done bit by bit is left for the next look in time.
    pub fn open_for(&self) -> Duration {
        self.clock.now().steady
    }

    /// Does `work` in one transaction.
    pub(super) fn at_one_moment<T>(&self, work: impl FnOnce(&Self) -> Result<T, Unread>) -> Result<T, Unread> {
        let transaction = self.connection.unchecked_transaction().map_err(unread)?;
        let done = work(self)?;
        transaction.finish().map_err(unread)?;
        Ok(done)
    }

    /// The columns of a table. Whatever is more than a plain table could compute without end while it is read.
    fn columns(&self, table: &str) -> Result<Vec<String>, Unread> {
        let found = self.rows("SELECT type, rootpage FROM sqlite_schema WHERE name = ?1", [table])?;
        let is_plain = |row: &Row| row["type"] == "table" && row["rootpage"].as_i64().is_some_and(|page| page > 0);
        match found.as_slice() {
            [] => return Err(Unread::Refused(format!("has no table {table}"))),
            rows if !rows.iter().all(is_plain) => return Err(Unread::Refused(format!("has no plain table {table}"))),
            _ => {}
        }
        let columns = self.rows("SELECT name, hidden FROM pragma_table_xinfo(?1)", [table])?;
        if columns.iter().any(|column| column["hidden"] != 0) {
            return Err(Unread::Refused(format!("computes columns of its table {table}")));
        }
        Ok(columns.iter().filter_map(|column| column["name"].as_str().map(str::to_owned)).collect())
    }

    /// The columns of a table, all of `needed` among them.
    pub(super) fn table(&self, table: &str, needed: &[&str]) -> Result<Vec<String>, Unread> {
        let known = self.tables.borrow().get(table).cloned();
        let columns = known.map_or_else(|| self.columns(table), Ok)?;
        self.tables.borrow_mut().insert(table.to_owned(), columns.clone());
        match needed.iter().find(|name| !columns.iter().any(|column| column == *name)) {
            Some(missing) => Err(Unread::Refused(format!("has no column {table}.{missing}"))),
            None => Ok(columns),
        }
    }

    /// The rows that a query finds. Only tables that [`Opened::table`] has looked at may be asked for.
    pub(super) fn rows(&self, sql: &str, params: impl Params) -> Result<Vec<Row>, Unread> {
        self.try_rows(sql, params).map_err(unread)
    }

    fn try_rows(&self, sql: &str, params: impl Params) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let row = |row: &rusqlite::Row<'_>| {
            names.iter().enumerate().map(|(at, name)| Ok((name.clone(), value(row.get_ref(at)?)))).collect()
        };
        statement.query_map(params, row)?.collect()
    }
}

/// Takes from a connection whatever it needs not for a look.
fn restrict(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    for (what, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(what, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let (mut steps, clock) = (0, SystemClock::default());
    let end = clock.now().steady + MOST_TIME;
    let is_over = move || {
        steps += STRIDE;
        steps > MOST_STEPS || clock.now().steady > end
    };
    connection.progress_handler(STRIDE as i32, Some(is_over))?;
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON")
}

fn value(found: ValueRef<'_>) -> Value {
    match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
    }
}

/// What SQLite says, in words that quote nothing from the database.
fn unread(error: rusqlite::Error) -> Unread {
    let refused = |why: String| Unread::Refused(why);
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Unread::Busy(LOCKED),
        // Of a log that somebody begins or ends at this moment there is no index that could be read.
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => Unread::Busy("cannot be read at this moment"),
        Some(ErrorCode::OperationInterrupted) => refused("takes too long to be read".to_owned()),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => refused("is damaged".to_owned()),
        Some(ErrorCode::TooBig) => refused("has values that are too large".to_owned()),
        Some(code) => refused(format!("cannot be read: SQLite says {code:?}")),
        None => refused("cannot be read: it is of another form than expected".to_owned()),
    }
}
