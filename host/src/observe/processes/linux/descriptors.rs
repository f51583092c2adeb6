//! Which files a process holds open for writing. Such a descriptor ties a file to one very process, whatever folder either
//! is in.

use super::files::Files;
use crate::observe::processes::ProcessId;
use nix::errno::Errno;
use nix::sys::stat::{FileStat, SFlag};
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// So many descriptors of a process are looked at.
const MOST: usize = 4096;

/// The largest `fdinfo` has some hundred bytes; what is wanted stands in its second line.
const FDINFO: usize = 4096;

/// Which files processes hold open.
pub struct OpenFiles(Result<Files, Errno>);

impl Default for OpenFiles {
    fn default() -> Self {
        Self(Files::open(Path::new("/proc")))
    }
}

impl fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenFiles").field(&self.0.as_ref().err()).finish()
    }
}

impl OpenFiles {
    /// The regular files that this very process has opened for writing itself, among those whose path is `wanted`; a file
    /// once for each descriptor. The path leads to that file now.
    ///
    /// # Errors
    /// The process has ended, may not be looked at, or sees other files under the paths that it has.
    pub fn written_by(&mut self, process: ProcessId, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
        let files = self.0.as_mut().map_err(|errno| errno.desc().to_owned())?;
        let say = |errno: Errno| errno.desc().to_owned();
        let mut held = Vec::new();
        for fd in descriptors(files, process.pid).map_err(say)? {
            // It may have been closed since.
            let Ok(target) = files.link_of(process.pid, &format!("fd/{fd}")).map(PathBuf::from) else { continue };
            if wanted(&target) && is_writing(files, process.pid, fd) {
                held.push((target, files.target(process.pid, &format!("fd/{fd}"))));
            }
        }
        // All of it was read of whoever had the pid then.
        if files.stat(process.pid).map_err(say)?.start != process.start {
            return Err(say(Errno::ESRCH));
        }
        let regular = held.into_iter().filter_map(|(path, target)| Some((path, target.ok().filter(is_regular)?)));
        regular
            .map(|(path, target)| if leads_to(&path, &target) { Ok(path) } else { Err(ELSEWHERE.to_owned()) })
            .collect()
    }
}

/// What to say where a path means one file to a process and another one, or none, to this program.
const ELSEWHERE: &str = "the paths that it has lead elsewhere from here";

fn descriptors(files: &Files, pid: u32) -> Result<Vec<u32>, Errno> {
    let mut descriptors = Vec::new();
    files.each_fd(pid, |fd| {
        if descriptors.len() < MOST {
            descriptors.push(fd);
        }
    })?;
    Ok(descriptors)
}

/// Whether a descriptor is open for writing: `flags` of its `fdinfo`, in octal digits, end with the access mode.
fn is_writing(files: &mut Files, pid: u32, fd: u32) -> bool {
    const ACCESS_MODE: u32 = 0o3;
    const READ_ONLY: u32 = 0o0;
    let text = files.whole(pid, &format!("fdinfo/{fd}"), FDINFO).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let flags = text.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS_MODE != READ_ONLY)
}

fn is_regular(found: &FileStat) -> bool {
    SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG
}

fn leads_to(path: &Path, target: &FileStat) -> bool {
    path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == (target.st_dev, target.st_ino))
}
