//! Which files a process holds open for writing. Such a descriptor ties a file to one very process, whatever folder either
//! is in.

use super::fields;
use super::files::Files;
use super::lineage::may_live;
use crate::clock::Moment;
use crate::files::read_small_text;
use crate::observe::processes::ProcessId;
use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag};
use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So many descriptors of a process are looked at.
const MOST: usize = 4096;

/// The largest `fdinfo` has some hundred bytes; what is wanted stands in its second line.
const FDINFO: usize = 4096;

/// So much of the list of all locks is read; each takes some 60 bytes.
const LOCKS: u64 = 4 << 20;

/// How long a list of a process's descriptors stands, as long as what was found in it is still so.
const LIST_FOR: Duration = Duration::from_secs(3);

/// Which files processes hold open.
pub struct OpenFiles {
    files: Result<Files, Errno>,
    held: HashMap<ProcessId, Held>,
}

/// The descriptors of a process that were wanted, with where they led.
struct Held {
    descriptors: Vec<(u32, PathBuf)>,
    at: Duration,
}

impl Default for OpenFiles {
    fn default() -> Self {
        Self { files: Files::open(Path::new("/proc")), held: HashMap::new() }
    }
}

impl fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFiles").field("processes", &self.held.len()).finish_non_exhaustive()
    }
}

impl OpenFiles {
    /// The regular files that this very process has opened for writing itself, among those whose path is `wanted`; a file
    /// once for each descriptor. The path leads to that file now. One that was opened lately may be missing.
    ///
    /// # Errors
    /// The process has ended, may not be looked at, or sees other files under the paths that it has.
    pub fn written_by(
        &mut self,
        process: ProcessId,
        now: Moment,
        wanted: impl Fn(&Path) -> bool,
    ) -> Result<Vec<PathBuf>, String> {
        let say = |errno: Errno| errno.desc().to_owned();
        let files = self.files.as_mut().map_err(|errno| errno.desc().to_owned())?;
        // Each descriptor costs a system call, and an agent may have hundreds that are of no concern.
        let stands = |held: &Held| {
            now.steady.saturating_sub(held.at) < LIST_FOR
                && held.descriptors.iter().all(|(fd, path)| target(files, process.pid, *fd).as_ref() == Some(path))
        };
        let known = self.held.remove(&process).filter(stands);
        let held = match known {
            Some(held) => held,
            None => Held { descriptors: list(files, process.pid, wanted).map_err(say)?, at: now.steady },
        };
        let regular = regular(files, process.pid, &held.descriptors);
        // All of it was read of whoever had the pid then.
        if files.stat(process.pid).map_err(say)?.start != process.start {
            return Err(say(Errno::ESRCH));
        }
        self.held.insert(process, held);
        regular
    }

    /// The processes that have a lock on a file, as those have that use it as a database. Locks that belong to an open file and
    /// not to a process name none, and where locks are not listed nobody is found.
    pub fn locked_by(&mut self, path: &Path) -> Vec<ProcessId> {
        let Ok(inode) = path.symlink_metadata().map(|found| found.ino()) else { return Vec::new() };
        let locks = read_small_text(Path::new("/proc/locks"), LOCKS).unwrap_or_default();
        let mut pids: Vec<u32> = locks.lines().filter_map(|line| holder(line, inode)).collect();
        pids.sort_unstable();
        pids.dedup();
        let Ok(files) = &mut self.files else { return Vec::new() };
        let process = |pid| Some(ProcessId { pid, start: files.stat(pid).ok()?.start });
        pids.into_iter().filter_map(process).collect()
    }

    /// Forgets the processes that are not `wanted` any more.
    pub fn retain(&mut self, wanted: impl Fn(ProcessId) -> bool) {
        self.held.retain(|process, _| wanted(*process));
    }
}

/// Who has the lock of a line like `1: POSIX  ADVISORY  READ 4242 08:01:1234 128 128`, if it is on this file. The device is
/// not looked at: some file systems have another one here than in a file's data.
fn holder(line: &str, inode: u64) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(4);
    let (pid, place) = (fields.next()?, fields.next()?);
    (place.rsplit(':').next()?.parse() == Ok(inode)).then(|| pid.parse().ok())?
}

/// Where a descriptor leads; `None`: it has been closed.
fn target(files: &Files, pid: u32, fd: u32) -> Option<PathBuf> {
    files.link_of(pid, &format!("fd/{fd}")).map(PathBuf::from).ok()
}

/// The descriptors that are open for writing and lead to what is wanted.
fn list(files: &mut Files, pid: u32, wanted: impl Fn(&Path) -> bool) -> Result<Vec<(u32, PathBuf)>, Errno> {
    let mut all = Vec::new();
    files.each_fd(pid, |fd| {
        if all.len() < MOST {
            all.push(fd);
        }
    })?;
    let all = all.into_iter().filter_map(|fd| Some((fd, target(files, pid, fd).filter(|path| wanted(path))?)));
    let all: Vec<_> = all.collect();
    Ok(all.into_iter().filter(|(fd, _)| is_writing(files, pid, *fd)).collect())
}

/// The paths of those that are regular files.
fn regular(files: &Files, pid: u32, descriptors: &[(u32, PathBuf)]) -> Result<Vec<PathBuf>, String> {
    let found = descriptors.iter().filter_map(|(fd, path)| Some((files.target(pid, &format!("fd/{fd}")).ok()?, path)));
    let regular = found.filter(|(found, _)| is_regular(found));
    regular
        .map(|(found, path)| match found.st_nlink {
            0 => Err(REMOVED.to_owned()),
            _ if leads_to(path, &found) => Ok(path.clone()),
            _ => Err(ELSEWHERE.to_owned()),
        })
        .collect()
}

/// What to say where a path means one file to a process and another one, or none, to this program.
const ELSEWHERE: &str = "the paths that it has lead elsewhere from here";

/// What to say of a file that has no name any more.
const REMOVED: &str = "one that it writes to was removed";

/// Whether a path means the same file to this process as to this program, or none to both.
///
/// # Errors
/// It does not, or that cannot be seen.
pub fn sees_alike(process: ProcessId, path: &Path) -> Result<(), String> {
    let place = Path::new("/proc").join(process.pid.to_string()).join("root");
    let file = |path: &Path| match path.metadata() {
        Ok(found) => Ok(Some((found.dev(), found.ino()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    let (here, there) = (file(path), file(&place.join(path.strip_prefix("/").unwrap_or(path))));
    match there {
        // All of it is of whoever had the pid then.
        _ if !may_live(process) => Ok(()),
        Err(why) => Err(format!("which files it sees cannot be known: {why}")),
        there if there == here => Ok(()),
        _ => Err(ELSEWHERE.to_owned()),
    }
}

fn is_writing(files: &mut Files, pid: u32, fd: u32) -> bool {
    fields::is_writing(&files.whole(pid, &format!("fdinfo/{fd}"), FDINFO).unwrap_or_default())
}

fn is_regular(found: &FileStat) -> bool {
    SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG
}

fn leads_to(path: &Path, target: &FileStat) -> bool {
    path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == (target.st_dev, target.st_ino))
}
