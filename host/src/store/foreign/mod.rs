//! Databases that somebody else has and writes: the one door to them, and for each kind what is asked of it.
//!
//! Whoever looks leaves no trace: nothing is written in them or beside them, and no write of theirs fails or waits. SQLite
//! by itself would make side files, lock, and clean up; so what is found decides how a database is read:
//!
//! | found | read |
//! |---|---|
//! | a write-ahead log with its index | as a reader of the log that may not write the index: `readonly_shm` |
//! | the same, left by a process that was killed | so too; SQLite makes an index of its own in memory |
//! | no log, or an empty one | as if nobody wrote, without locks: `immutable`. It counts only if nothing has changed meanwhile |
//! | a rollback journal at work, or an exclusive lock | not: busy |
//! | a log without its index | not: SQLite would have to make one |
//!
//! By itself it would also make a log that is missing and, run by root, take over files: see `guard`. All that is left is that
//! for root the times of change (not of writing) of root's own log and index are those of the look.
//!
//! A connection that is kept would keep the last process from cleaning up when it ends; so it is opened for one look. What
//! stands in a database is as hostile as any text: tables must be plain ones, and steps and sizes are bounded.

pub mod crush;
pub mod goose;
mod guard;
pub mod opencode;
mod opened;
#[cfg(test)]
mod tests;

pub use opened::{Opened, Row};

use super::database::uri;
use crate::files::{Stamp, open_itself};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// Why a database was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// There is none.
    #[error("is not there")]
    Missing,
    /// Not now; the next look may succeed though nothing seems to have changed.
    #[error("{0}")]
    Busy(&'static str),
    /// It is not what it should be, or may not be read.
    #[error("{0}")]
    Refused(String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            _ => Self::Refused(format!("cannot be read: {error}")),
        }
    }
}

/// What changes when a database does: its file, and the log beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    file: Stamp,
    log: Option<Stamp>,
}

/// File systems' clocks are coarse: what was written so shortly ago may be written again without showing it.
const COARSE_MS: u64 = 1000;

impl Stamps {
    /// The stamps of the database that has this path.
    ///
    /// # Errors
    /// It is missing, or it or its log is no plain file.
    pub fn of(path: &Path) -> Result<Self, Unread> {
        Ok(Self { file: Stamp::of_itself(path)?, log: beside(path, "-wal")? })
    }

    /// Whether what is written from now on, Unix milliseconds, is sure to change them.
    pub fn are_settled(&self, now_ms: u64) -> bool {
        let written = [Some(self.file), self.log].into_iter().flatten().map(|stamp| stamp.modified_ms());
        written.into_iter().all(|written| written.is_some_and(|at_ms| at_ms.saturating_add(COARSE_MS) < now_ms))
    }
}

/// The index of a database's write-ahead log, on which everybody has a lock who has the log open.
pub fn index_of(path: &Path) -> PathBuf {
    side(path, "-shm")
}

/// Reads a database: what `work` finds is of one moment.
///
/// # Errors
/// It is missing, cannot be read now, is no database that may be read, or what `work` says.
pub fn read<T>(path: &Path, work: impl FnOnce(&Opened) -> Result<T, Unread>) -> Result<T, Unread> {
    // A link in its own place is refused, here and by SQLite, which would refuse one in the folder's path too.
    let (folder, name) = path.parent().zip(path.file_name()).ok_or(Unread::Missing)?;
    let path = fs::canonicalize(folder)?.join(name);
    let (mut file, stamp) = open_itself(&path)?;
    guard::check(&path, &file)?;
    let header = Header::of(&mut file)?;
    let found = match header.has_log().then(|| log_of(&path, &file)).transpose()?.flatten() {
        Some(query) => Opened::open(&uri(&path, query)).and_then(|opened| opened.at_one_moment(work)),
        None => unchanging(&path, &mut file, &header, work),
    };
    if Stamp::of_itself(&path)?.id != stamp.id {
        return Err(Unread::Busy("was replaced while it was read"));
    }
    // What was put beside it meanwhile was perhaps read, too.
    guard::check(&path, &file)?;
    found
}

/// How a database with a write-ahead log is opened; `None`: there is nothing in the log.
///
/// Until `file` is closed, nobody removes the log: SQLite would make a new one in its place.
fn log_of(path: &Path, file: &File) -> Result<Option<&'static str>, Unread> {
    hold(file)?;
    if beside(path, "-wal")?.is_none_or(|log| log.size == 0) {
        return Ok(None);
    }
    match beside(path, "-shm")? {
        Some(_) => Ok(Some("mode=ro&readonly_shm=1")),
        None => Err(Unread::Refused("has a write-ahead log without an index, which cannot be read alone".to_owned())),
    }
}

/// Reads a database that nobody is writing, without any lock. What came of it does not count if somebody did.
fn unchanging<T>(
    path: &Path,
    file: &mut File,
    before: &Header,
    work: impl FnOnce(&Opened) -> Result<T, Unread>,
) -> Result<T, Unread> {
    if is_hot(path)? {
        return Err(Unread::Busy("is being written"));
    }
    let found = Opened::open(&uri(path, "mode=ro&immutable=1")).and_then(|opened| opened.at_one_moment(work));
    // Each transaction counts one up in the header, and has a journal or a log meanwhile.
    let log_is_empty = beside(path, "-wal")?.is_none_or(|log| log.size == 0);
    let is_same = Header::of(file)? == *before && !is_hot(path)? && log_is_empty;
    if is_same { found } else { Err(Unread::Busy("has changed while it was read")) }
}

/// The beginning of a database: its format, and how often it was changed.
#[derive(Debug, PartialEq, Eq)]
struct Header([u8; 100]);

impl Header {
    fn of(file: &mut File) -> Result<Self, Unread> {
        let mut bytes = [0; 100];
        file.rewind()?;
        match file.read_exact(&mut bytes) {
            Ok(()) if bytes.starts_with(b"SQLite format 3\0") => Ok(Self(bytes)),
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error.into()),
            _ => Err(Unread::Refused("is no SQLite database".to_owned())),
        }
    }

    /// Whether changes go to a write-ahead log first.
    fn has_log(&self) -> bool {
        const READ_VERSION: usize = 19;
        self.0[READ_VERSION] == 2
    }
}

/// Whether the rollback journal is at work. One that is done with is removed, emptied, or begins with zeros.
fn is_hot(path: &Path) -> Result<bool, Unread> {
    let mut first = [0];
    match open_itself(&side(path, "-journal")) {
        Ok((mut journal, _)) => Ok(journal.read(&mut first)? > 0 && first != [0]),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The stamp of one of the files that SQLite has beside a database.
fn beside(path: &Path, end: &str) -> Result<Option<Stamp>, Unread> {
    match Stamp::of_itself(&side(path, end)) {
        Ok(stamp) => Ok(Some(stamp)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn side(path: &Path, end: &str) -> PathBuf {
    let mut file = OsString::from(path);
    file.push(end);
    file.into()
}

/// Shares a database with those who have it open until `file` is closed, by the bytes that SQLite itself locks for that: as
/// long as anybody shares it, nobody turns or removes its log. Does not wait.
#[cfg(target_os = "linux")]
fn hold(file: &File) -> Result<(), Unread> {
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc::{F_RDLCK, SEEK_SET, flock};
    const SHARED_FIRST: i64 = 0x4000_0002;
    const SHARED_SIZE: i64 = 510;
    let lock =
        flock { l_type: F_RDLCK as _, l_whence: SEEK_SET as _, l_start: SHARED_FIRST, l_len: SHARED_SIZE, l_pid: 0 };
    // A lock of the open file, not of the process: SQLite lets go of its own when it closes the same file.
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => Ok(()),
        Err(Errno::EAGAIN | Errno::EACCES) => Err(Unread::Busy(opened::LOCKED)),
        Err(errno) => Err(Unread::Refused(format!("cannot be shared: {}", errno.desc()))),
    }
}

/// There is no such lock here. If the last process that has it open ends in this very moment, an empty log may be left.
#[cfg(not(target_os = "linux"))]
fn hold(_file: &File) -> Result<(), Unread> {
    Ok(())
}
