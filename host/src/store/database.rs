//! The one SQLite file: when it is opened, how its schema grows, and what can be wrong with it.

use super::private;
use super::schema::MIGRATIONS;
use crate::config::make_private;
use crate::figures::Count;
use crate::files::regular_or_missing;
use crate::names::{BadName, SessionId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io, thread};

/// What the database is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Reading,
    /// What is read decides who may do what: never from a file that others may have changed unseen.
    Deciding,
    Writing,
}

impl Use {
    /// How long it waits for those who use the database too. A reader comes again in a moment, and knows what it read
    /// before; what a writer brings would be lost.
    fn patience(self) -> Duration {
        match self {
            Self::Reading | Self::Deciding => Duration::from_millis(100),
            Self::Writing => Duration::from_secs(2),
        }
    }
}

/// The version of the newest schema.
const VERSION: u32 = MIGRATIONS.len() as u32;

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The session is another user's.
    #[error("session {session} belongs to {owner}; choose another id")]
    Owned {
        /// Its id.
        session: SessionId,
        /// Whose it is.
        owner: String,
    },
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
    /// How long a writer waits, where it is not to be as long as usual.
    patience: Option<Duration>,
    /// Whether a reader waits as long as a writer.
    reads_once: bool,
    open: Mutex<Option<Open>>,
    failures: Arc<Count>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// `None`: it does not notice what others write, and is not used again.
    file: Option<FileId>,
    writes: bool,
    /// The state of the database when [`Store::has_changed`] was last asked. Each connection counts for itself.
    seen: Option<i64>,
}

/// Which file a path names, as long as it is open.
type FileId = (u64, u64);

impl Store {
    /// The database `headcount.db` in `dir`.
    pub fn at(dir: &Path) -> Self {
        Self { dir: dir.into(), patience: None, reads_once: false, open: Mutex::default(), failures: Arc::default() }
    }

    /// The same for a writer who tries again later, and waits for others only so long at each step.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// The same for a reader who looks once and has nothing to show without it: one that waits as a writer does.
    #[must_use]
    pub fn reading_once(self) -> Self {
        Self { reads_once: true, ..self }
    }

    fn patience(&self, purpose: Use) -> Duration {
        match purpose {
            Use::Writing => self.patience.unwrap_or_else(|| purpose.patience()),
            _ if self.reads_once => Use::Writing.patience(),
            _ => purpose.patience(),
        }
    }

    /// The database's file.
    pub fn path(&self) -> PathBuf {
        self.dir.join("headcount.db")
    }

    /// The same database through a connection of its own, for who must not wait until others have written.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { failures: Arc::clone(&self.failures), ..Self::at(&self.dir) }
    }

    /// How often it could not be used, through whichever connection.
    pub fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// Runs `work` in one transaction that writes. The last of them may be lost with the machine's power, not with the process.
    pub(super) fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.transact("normal", work)
    }

    /// As [`Store::write`], but what was written has reached the disk before this returns.
    pub(super) fn write_durably<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.transact("full", work)
    }

    fn transact<T>(
        &self,
        synchronous: &str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.with(Use::Writing, |open| {
            open.connection.pragma_update(None, "synchronous", synchronous)?;
            let transaction = open.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
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
        self.look(Use::Reading, |open| work(&open.connection))
    }

    /// Makes the database where there is none yet.
    ///
    /// # Errors
    /// When it cannot be made or read.
    pub fn make(&self) -> Result<(), StoreError> {
        match self.decide(|_| Ok(()))? {
            Some(()) => Ok(()),
            None => self.write(|_| Ok(())),
        }
    }

    /// As [`Store::read`], but sure to see all that was written before: where it cannot be, it fails.
    pub(super) fn decide<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.look(Use::Deciding, |open| work(&open.connection))
    }

    /// Whether anybody may have written through another connection since this was last asked. It costs next to nothing.
    ///
    /// # Errors
    /// When the database cannot be read, or not for sure. It has changed then when it can be again.
    pub fn has_changed(&self) -> Result<bool, StoreError> {
        let changed = self.look(Use::Deciding, |open| {
            let now = open.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
            Ok(open.seen.replace(now) != Some(now))
        })?;
        Ok(changed.unwrap_or(true))
    }

    fn look<T>(
        &self,
        purpose: Use,
        work: impl FnOnce(&mut Open) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let path = self.path();
        match file_id(&path) {
            Ok(file) => self.with_file(&path, Some(file), purpose, work).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.check_dir(purpose).map(|()| None),
            Err(source) => {
                self.failures.add_one();
                Err(StoreError::Unreachable { path, source })
            }
        }
    }

    /// Where there can be no directory, that there is no database says nothing of what is permitted.
    fn check_dir(&self, purpose: Use) -> Result<(), StoreError> {
        if purpose == Use::Reading || self.dir.is_dir() {
            return Ok(());
        }
        make_private(&self.dir).map_err(|source| {
            self.failures.add_one();
            StoreError::Unreachable { path: self.dir.clone(), source }
        })
    }

    fn with<T>(&self, purpose: Use, work: impl FnOnce(&mut Open) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let path = self.path();
        self.with_file(&path, file_id(&path).ok(), purpose, work)
    }

    /// The same; `file` is the one that is there now.
    fn with_file<T>(
        &self,
        path: &Path,
        file: Option<FileId>,
        purpose: Use,
        work: impl FnOnce(&mut Open) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.try_with_file(path, file, purpose, work).inspect_err(|_| self.failures.add_one())
    }

    fn try_with_file<T>(
        &self,
        path: &Path,
        file: Option<FileId>,
        purpose: Use,
        work: impl FnOnce(&mut Open) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut slot = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match slot.take() {
            Some(open) if (open.writes || purpose != Use::Writing) && open.file.is_some() && open.file == file => open,
            _ => open(&self.dir, path, purpose, self.patience(purpose))?,
        };
        let waiting = open.connection.busy_timeout(self.patience(purpose));
        let done = waiting.and_then(|()| work(&mut open)).map_err(|source| failure(path, source))?;
        // Only now: after a failure the next use begins afresh.
        *slot = Some(open);
        Ok(done)
    }
}

fn open(dir: &Path, path: &Path, purpose: Use, patience: Duration) -> Result<Open, StoreError> {
    // A pipe in the place of any of SQLite's files would be waited for without end.
    for side in ["", "-wal", "-shm", "-journal"] {
        let mut file = OsString::from(path);
        file.push(side);
        refuse_special(Path::new(&file))?;
    }
    if purpose == Use::Writing {
        return open_to_write(dir, path, patience);
    }
    let failed = |source| failure(path, source);
    let (found, file) = match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(error) if purpose == Use::Reading && needs_writing(&error) => (connect_unchanging(path), None),
        found => (found, file_id(path).ok()),
    };
    let (connection, version) = found.map_err(failed)?;
    match version {
        VERSION => Ok(Open { connection, file, writes: false, seen: None }),
        found if found > VERSION => Err(StoreError::Newer { path: path.into(), found, known: VERSION }),
        _ => {
            drop(connection);
            open_to_write(dir, path, patience)
        }
    }
}

/// Opens the database without the right to write, and says which version it has.
fn connect(path: impl AsRef<Path>, flags: OpenFlags) -> rusqlite::Result<(Connection, u32)> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Use::Reading.patience())?;
    keep_plans(&connection)?;
    let version = version(&connection)?;
    Ok((connection, version))
}

/// Opens a database that nothing can be written beside, as on a full disk or one that is mounted for reading only. What
/// stands in the write-ahead log alone is not seen then, nor what others change meanwhile.
fn connect_unchanging(path: &Path) -> rusqlite::Result<(Connection, u32)> {
    connect(uri(path, "immutable=1"), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

/// The address of a file, with what SQLite is to know of it.
pub(super) fn uri(path: &Path, query: &str) -> String {
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(byte.into()),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri + "?" + query
}

/// Whether SQLite could not read because even a reader of a write-ahead log writes beside it.
fn needs_writing(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    matches!(error.sqlite_error_code(), Some(CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure))
}

/// Refuses what is there and is no plain file.
fn refuse_special(path: &Path) -> Result<(), StoreError> {
    regular_or_missing(path).map_err(|source| StoreError::Unreachable { path: path.into(), source })
}

fn open_to_write(dir: &Path, path: &Path, patience: Duration) -> Result<Open, StoreError> {
    let unreachable = |source| StoreError::Unreachable { path: path.into(), source };
    make_private(dir).map_err(unreachable)?;
    let turns = dir.join("headcount.lock");
    refuse_special(&turns)?;
    // SQLite does not wait while another process turns a new file into a write-ahead log, so they take turns.
    let turn = private().append(true).open(turns).map_err(unreachable)?;
    lock(&turn, patience).map_err(unreachable)?;
    // Made by us first, because SQLite would let others read it; its side files take over the mode. One that is there is not
    // opened: with any handle that a process closes, it gives up the locks of all its connections to that file.
    if !path.try_exists().map_err(unreachable)? {
        private().append(true).open(path).map_err(unreachable)?;
    }
    let failed = |source| failure(path, source);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(patience).map_err(failed)?;
    keep_plans(&connection).map_err(failed)?;
    let found = prepare(&mut connection).map_err(failed)?;
    if found > VERSION {
        return Err(StoreError::Newer { path: path.into(), found, known: VERSION });
    }
    Ok(Open { connection, file: file_id(path).ok(), writes: true, seen: None })
}

/// Locks a file until it is closed, but waits for its owner no longer than `patience`.
fn lock(file: &File, patience: Duration) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..patience.as_millis() / PAUSE.as_millis() {
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

/// Has statements that are kept stay as they were prepared. Otherwise SQLite, as it is built here, prepares one anew for each value
/// that is bound, lest another index would serve that better: that takes longer than all the rest of looking up a token.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// How many steps of the schema were taken.
fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn failure(path: &Path, source: rusqlite::Error) -> StoreError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path: path.into() },
        _ => StoreError::Failed { path: path.into(), source },
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).map(|data| (data.dev(), data.ino()))
}

/// Where an open file cannot be removed, a path that exists names the same file.
#[cfg(not(unix))]
fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|_| (0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_connection_keeps_its_locks_when_another_is_opened() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        store.write(|_| Ok(())).unwrap();
        let reader = store.another();
        reader.read(|_| Ok(())).unwrap();
        let file = format!(":{} ", fs::metadata(store.path()).unwrap().ino());
        let is_locked = || fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| lock.contains(&file));
        drop(store);
        assert!(is_locked());
        reader.another().write(|_| Ok(())).unwrap();
        assert!(is_locked());
    }

    #[test]
    fn a_durable_write_reaches_the_disk_before_it_returns() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let level =
            |connection: &Connection| connection.pragma_query_value(None, "synchronous", |row| row.get::<_, u8>(0));
        let (normal, full) = (1, 2);
        for _ in 0..2 {
            assert_eq!(store.write(level).unwrap(), normal);
            assert_eq!(store.write_durably(level).unwrap(), full);
        }
    }

    #[test]
    fn a_database_is_read_where_nothing_can_be_written_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("a ?#%20ü");
        let store = Store::at(&odd);
        store.write(|connection| connection.execute("INSERT INTO session VALUES ('shop', NULL, NULL)", [])).unwrap();
        drop(store);
        let (connection, version) = connect_unchanging(&odd.join("headcount.db")).unwrap();
        let count = connection.query_row("SELECT count(*) FROM session", [], |row| row.get::<_, u32>(0)).unwrap();
        assert_eq!((version, count), (VERSION, 1));
        assert!(connection.execute("DELETE FROM session", []).is_err());
    }
}
