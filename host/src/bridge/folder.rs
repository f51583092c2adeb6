//! The session's folder, by its open descriptor: whatever happens to its path, what is read and written is in this very folder,
//! no link is followed out of it, and nothing of it is opened that is no plain file of this user's own.

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, fsync, open, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// What is being written, before it gets its name. There is one writer, so that there is one of it at most.
const NEW: &str = ".headcount-new";

/// So many things that stood in the way of one file are kept.
const ASIDE_MAX: u32 = 1000;

/// A folder of this user's alone, which this process has for itself as long as it holds it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    dir: OwnedFd,
    user: u32,
}

/// Why a folder cannot be used, or can no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is there already, and was not to be resumed.
    #[error("is there already: a session makes its own, and --resume goes on in one that it has left")]
    Exists,
    /// It is no folder, but a link or something else.
    #[error("is no folder")]
    NoFolder,
    /// It belongs to another user.
    #[error("belongs to another user")]
    Foreign,
    /// Others may read or write in it.
    #[error("is open to other users: a session has its folder for itself (0700)")]
    Shared,
    /// Another process has it.
    #[error("is in use by another session")]
    InUse,
    /// No session has left it.
    #[error("is not what a session has left: it holds other files, and no status.json")]
    NoSession,
    /// It is gone from where it was.
    #[error("was removed")]
    Removed,
    /// Something else is where it was.
    #[error("was replaced by another")]
    Replaced,
}

impl Unusable {
    /// The word for it in `status.json`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exists => "folder_exists",
            Self::NoFolder => "no_folder",
            Self::Foreign => "folder_foreign",
            Self::Shared => "folder_shared",
            Self::InUse => "folder_in_use",
            Self::NoSession => "no_session",
            Self::Removed => "folder_removed",
            Self::Replaced => "folder_replaced",
        }
    }
}

/// What changes when a file, or its content, does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which file it is, as long as it is there.
    pub inode: u64,
    size: i64,
    modified: (i64, i64),
    /// When anything of it last changed, its name among that: no program can set it.
    pub changed: (i64, i64),
}

/// What stands behind a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Missing,
    /// A plain file with this content.
    File(Vec<u8>, Stamp),
    /// A plain file that has other names.
    Linked(Stamp),
    /// What is never read.
    Unfit(Stamp),
}

/// Whether what is written has to outlast the machine's own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// It does.
    Synced,
    /// It has to outlast this process alone.
    Cached,
}

impl Folder {
    /// Makes it.
    ///
    /// # Errors
    /// When it is there already or cannot be made.
    pub fn make(path: &Path) -> io::Result<Result<Self, Unusable>> {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Err(Unusable::Exists)),
            Err(error) => return Err(error),
        }
        Self::open(path)
    }

    /// Opens one that is there, if nobody else has it or may look into it.
    ///
    /// # Errors
    /// When it cannot be used or opened.
    pub fn open(path: &Path) -> io::Result<Result<Self, Unusable>> {
        // A slash at the end would follow a link.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = match open(&path, flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Err(Unusable::NoFolder)),
            Err(error) => return Err(error.into()),
        };
        match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Err(Unusable::InUse)),
            Err(error) => return Err(error.into()),
        }
        let folder = Self { path, dir, user: geteuid().as_raw() };
        Ok(folder.check()?.map(|()| folder))
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is still there and this user's alone.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn check(&self) -> io::Result<Result<(), Unusable>> {
        let held = fstat(&self.dir)?;
        Ok(match rustix::fs::lstat(&self.path) {
            _ if held.st_nlink == 0 => Err(Unusable::Removed),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(Unusable::Removed),
            Err(error) => return Err(error.into()),
            Ok(there) if (there.st_dev, there.st_ino) != (held.st_dev, held.st_ino) => Err(Unusable::Replaced),
            Ok(_) if held.st_uid != self.user => Err(Unusable::Foreign),
            Ok(_) if held.st_mode & 0o077 != 0 => Err(Unusable::Shared),
            Ok(_) => Ok(()),
        })
    }

    /// The names of what is in it; those that are no UTF-8 are nobody's.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// What stands behind a name now, links not followed; `None`: nothing.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        match statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(Stamp::of(&found))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a plain file of at most `cap` bytes.
    ///
    /// # Errors
    /// When the system lacks something, and it may be read later.
    pub fn read(&self, name: &str, cap: u64) -> io::Result<Content> {
        // Opening a device may do something: what it is, is asked before it is opened, and again then.
        let found = match statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(Content::Missing),
            Err(error) => return Err(error.into()),
        };
        if let Some(content) = self.unfit(&found, cap) {
            return Ok(content);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Content::Missing),
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR)) => return Err(error.into()),
            Err(_) => return Ok(Content::Unfit(Stamp::of(&found))),
        };
        let found = fstat(&file)?;
        if let Some(content) = self.unfit(&found, cap) {
            return Ok(content);
        }
        let mut bytes = Vec::new();
        file.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
        let stamp = Stamp::of(&found);
        Ok(if bytes.len() as u64 > cap { Content::Unfit(stamp) } else { Content::File(bytes, stamp) })
    }

    fn unfit(&self, found: &Stat, cap: u64) -> Option<Content> {
        let is_plain = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_plain || found.st_uid != self.user || u64::try_from(found.st_size).is_ok_and(|size| size > cap) {
            return Some(Content::Unfit(Stamp::of(found)));
        }
        (found.st_nlink > 1).then(|| Content::Linked(Stamp::of(found)))
    }

    /// Puts a file there, or in the place of the one that is there: it is seen whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written. What was there is there still.
    pub fn write(&self, name: &str, bytes: &[u8], lasting: Lasting) -> io::Result<()> {
        if self.remove(NEW).is_err() {
            self.put_aside(NEW)?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.dir, NEW, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(bytes).and_then(|()| match lasting {
            Lasting::Synced => file.sync_all(),
            Lasting::Cached => Ok(()),
        });
        if let Err(error) = written {
            // On a full disk it is the first thing to be given back.
            let _ = self.remove(NEW);
            return Err(error);
        }
        self.rename(NEW, name)?;
        if lasting == Lasting::Synced {
            fsync(&self.dir)?;
        }
        Ok(())
    }

    /// Gives a file another name, at once and in the place of what has that name. A folder in its way is put aside.
    ///
    /// # Errors
    /// When it cannot be done.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        match renameat(&self.dir, from, &self.dir, to) {
            Err(Errno::ISDIR) => {
                self.put_aside(to)?;
                Ok(renameat(&self.dir, from, &self.dir, to)?)
            }
            done => Ok(done?),
        }
    }

    /// Gives what stands in the way of a file a name of its own.
    fn put_aside(&self, name: &str) -> io::Result<()> {
        let mut nth = 0;
        loop {
            let number = if nth == 0 { String::new() } else { format!("-{nth}") };
            match renameat(&self.dir, name, &self.dir, format!(".{name}.aside{number}")) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) if nth < ASIDE_MAX => nth += 1,
                done => return Ok(done?),
            }
        }
    }

    /// Removes what has this name, an empty folder too; none is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let removed = match unlinkat(&self.dir, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => unlinkat(&self.dir, name, AtFlags::REMOVEDIR),
            other => other,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what has this name if it is still this very file; another that came in its place stays.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub fn remove_this(&self, name: &str, inode: u64) -> io::Result<()> {
        if self.stamp(name)?.is_some_and(|found| found.inode == inode) {
            self.remove(name)?;
        }
        Ok(())
    }
}

impl Stamp {
    fn of(found: &Stat) -> Self {
        let nanos = |nanos: u64| i64::try_from(nanos).unwrap_or(0);
        Self {
            inode: found.st_ino,
            size: found.st_size,
            modified: (found.st_mtime, nanos(found.st_mtime_nsec)),
            changed: (found.st_ctime, nanos(found.st_ctime_nsec)),
        }
    }

    /// When its content was written, Unix milliseconds; before 1970 counts as 1970.
    pub fn modified_ms(&self) -> u64 {
        let (seconds, nanos) = self.modified;
        u64::try_from(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)).unwrap_or(0)
    }
}
