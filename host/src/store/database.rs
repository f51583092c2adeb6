//! The one SQLite file: when it is opened, how its schema grows, and what can be wrong with it.

use super::private;
use crate::config::make_private;
use crate::names::BadName;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io, thread};

/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(2);

/// Each step of the schema, in order. Steps are only ever added: how many were taken stands in the file (`user_version`).
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        name TEXT,
        root_path TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE agent (
        session_id TEXT NOT NULL REFERENCES session (id),
        name TEXT NOT NULL,
        specialization TEXT,
        pid INTEGER,
        start INTEGER,
        boot_id TEXT,
        pid_namespace TEXT,
        owner TEXT NOT NULL,
        registered_by TEXT NOT NULL,
        registered_at_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, name),
        CHECK ((pid IS NULL) = (start IS NULL) AND (pid IS NULL) = (boot_id IS NULL) AND (pid IS NULL) = (pid_namespace IS NULL))
    ) STRICT, WITHOUT ROWID;
"];

/// The version of the newest schema.
const VERSION: u32 = MIGRATIONS.len() as u32;

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its file or directory cannot be made or reached.
    #[error("cannot reach {}: {source}", path.display())]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It holds something else, or is broken.
    #[error("{} is no database or is damaged; once it is moved away, a new one is begun", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A newer headcount has written it.
    #[error("{} is of version {found}, this headcount knows those up to {known}: use the newer one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that is known here.
        known: u32,
    },
    /// Anything else that SQLite says.
    #[error("cannot use {}: {source}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// What was to be stored is not allowed.
    #[error(transparent)]
    Invalid(#[from] BadName),
}

/// The database in the state directory. Making one touches nothing; the first use opens the file, and so does the first
/// use after the file was replaced or failed.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    file: Option<FileId>,
}

/// Which file a path names, as long as it is open.
type FileId = (u64, u64);

impl Store {
    /// The database `headcount.db` in `dir`.
    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.into(), open: Mutex::default() }
    }

    /// The database's file.
    pub fn path(&self) -> PathBuf {
        self.dir.join("headcount.db")
    }

    /// Runs `work` in one transaction that writes.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    /// Runs `work`, which only reads. Where there is no database yet, none is made: `None`.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let path = self.path();
        match path.try_exists() {
            Ok(true) => self.with(|connection| work(connection)).map(Some),
            Ok(false) => Ok(None),
            Err(source) => Err(StoreError::Unreachable { path, source }),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let path = self.path();
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match slot.take() {
            Some(open) if open.file.is_some() && open.file == file_id(&path) => open,
            _ => open(&self.dir, &path)?,
        };
        let done = work(&mut open.connection).map_err(|source| failure(&path, source))?;
        // Only now: after a failure the next use begins afresh.
        *slot = Some(open);
        Ok(done)
    }
}

fn open(dir: &Path, path: &Path) -> Result<Open, StoreError> {
    let unreachable = |source| StoreError::Unreachable { path: path.into(), source };
    make_private(dir).map_err(unreachable)?;
    // SQLite does not wait while another process turns a new file into a write-ahead log, so they take turns.
    let turn = private().append(true).open(dir.join("headcount.lock")).map_err(unreachable)?;
    lock(&turn).map_err(unreachable)?;
    // Made by us first, because SQLite would let others read it; its side files take over the mode.
    private().append(true).open(path).map_err(unreachable)?;
    let failed = |source| failure(path, source);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let found = prepare(&mut connection).map_err(failed)?;
    if found > VERSION {
        return Err(StoreError::Newer { path: path.into(), found, known: VERSION });
    }
    Ok(Open { connection, file: file_id(path) })
}

/// Locks a file until it is closed, but waits for its owner no longer than [`BUSY`].
fn lock(file: &File) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..BUSY.as_millis() / PAUSE.as_millis() {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"))
}

/// Sets the connection up and brings the schema up to date. Returns the version found, which may be newer than ours; then
/// nothing was changed.
fn prepare(connection: &mut Connection) -> rusqlite::Result<u32> {
    let version =
        |connection: &Connection| connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
    let found = version(connection)?;
    if found > VERSION {
        return Ok(found);
    }
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if found < VERSION {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read again: another process may have been faster.
        let found = version(&transaction)?;
        for step in MIGRATIONS.iter().skip(found as usize) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "user_version", VERSION.max(found))?;
        transaction.commit()?;
    }
    Ok(found)
}

fn failure(path: &Path, source: rusqlite::Error) -> StoreError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path: path.into() },
        _ => StoreError::Failed { path: path.into(), source },
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

/// Where an open file cannot be removed, a path that exists names the same file.
#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|_| (0, 0))
}
