//! The files of procfs that are read at every sample: one open directory, short relative paths, one buffer.

use super::fields;
use super::stat::{self, Stat};
use crate::observe::processes::Machine;
use crate::observe::processes::row::{Io, Measured};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, fstatat};
use nix::unistd::{SysconfVar, sysconf};
use std::ffi::{CStr, OsString};
use std::io::Write as _;
use std::path::Path;

/// The largest of these files, `limits` and `smaps_rollup`, have less than 2 KiB.
const BUFFER: usize = 4096;

/// procfs, open.
pub(super) struct Files {
    proc: Dir,
    buffer: Box<[u8; BUFFER]>,
    page_size: u64,
    /// Whether `st_size` of `/proc/PID/fd` is the number of open descriptors (since Linux 6.2).
    fd_size_is_count: bool,
}

/// Pages in memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// All.
    pub(super) resident: u64,
    /// Those of files and shared memory.
    pub(super) shared: u64,
}

impl Files {
    /// Opens procfs.
    ///
    /// # Errors
    /// It is not there or not to be read.
    pub(super) fn open(root: &Path) -> Result<Self, Errno> {
        let proc = Dir::open(root, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        // This program has descriptors open, at least `proc`: 0 says that the size means nothing here.
        let fd_size_is_count = fstatat(&proc, c"self/fd", AtFlags::empty()).is_ok_and(|found| found.st_size > 0);
        let page_size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|size| u64::try_from(size).ok());
        Ok(Self { proc, buffer: Box::new([0; BUFFER]), page_size: page_size.unwrap_or(4096), fd_size_is_count })
    }

    /// Whether this procfs shows this very process, under the pid it has: only then do pids mean to system calls
    /// what they mean here.
    pub(super) fn is_live(&self) -> bool {
        readlinkat(&self.proc, c"self").is_ok_and(|target| target.to_str() == Some(&std::process::id().to_string()))
    }

    /// Whether this very process, under whatever pid it has here, is among those `listed`.
    pub(super) fn shows_us(&self, listed: &[u32]) -> bool {
        self.us().is_some_and(|us| listed.binary_search(&us).is_ok())
    }

    /// This very process, under the pid it has here.
    pub(super) fn us(&self) -> Option<u32> {
        readlinkat(&self.proc, c"self").ok().and_then(|target| target.to_str().and_then(pid_of))
    }

    /// What all processes here have in common.
    pub(super) fn machine(&mut self) -> Machine {
        let boot_id = self.line(c"sys/kernel/random/boot_id");
        Machine { boot_id, pid_namespace: self.link(c"self/ns/pid") }
    }

    /// Whether descriptors are counted without a listing.
    pub(super) fn fd_size_is_count(&self) -> bool {
        self.fd_size_is_count
    }

    /// The pids of all processes (not threads), ascending, into `pids`.
    ///
    /// # Errors
    /// The directory cannot be read. `pids` is incomplete then.
    pub(super) fn list(&mut self, pids: &mut Vec<u32>) -> Result<(), Errno> {
        pids.clear();
        for entry in self.proc.iter() {
            let name = entry?;
            if let Some(pid) = name.file_name().to_str().ok().and_then(pid_of) {
                pids.push(pid);
            }
        }
        // procfs lists in this order; a made-up tree does not.
        pids.sort_unstable();
        Ok(())
    }

    /// `/proc/PID/stat`. `Err(EINVAL)` for a line of another form.
    pub(super) fn stat(&mut self, pid: u32) -> Result<Stat<'_>, Errno> {
        let line = self.read(pid, "stat")?;
        stat::parse(line).ok_or(Errno::EINVAL)
    }

    /// `/proc/PID/statm`.
    pub(super) fn memory(&mut self, pid: u32) -> Result<Memory, Errno> {
        let page_size = self.page_size;
        let pages = fields::pages(self.read(pid, "statm")?).ok_or(Errno::EINVAL)?;
        let bytes = |pages: u64| pages.saturating_mul(page_size);
        Ok(Memory { resident: bytes(pages.resident), shared: bytes(pages.shared) })
    }

    /// `/proc/PID/io`.
    pub(super) fn io(&mut self, pid: u32) -> Result<Io, Errno> {
        fields::io(self.read(pid, "io")?).ok_or(Errno::EINVAL)
    }

    /// How many descriptors are open.
    ///
    /// By the directory's size where that is the number: at a tenth of a listing's cost, and without the right to
    /// list it.
    pub(super) fn fds(&mut self, pid: u32) -> Result<u32, Errno> {
        if self.fd_size_is_count {
            let size = self.target(pid, "fd")?.st_size;
            return u32::try_from(size).map_err(|_| Errno::EINVAL);
        }
        let mut count = 0;
        self.each_fd(pid, |_| count += 1)?;
        Ok(count)
    }

    /// Every open descriptor.
    pub(super) fn each_fd(&self, pid: u32, mut act: impl FnMut(u32)) -> Result<(), Errno> {
        let mut name = [0; NAME];
        let how = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(&self.proc, path(&mut name, pid, "fd"), how, Mode::empty())?;
        for entry in listing.iter() {
            // `.` and `..` are no numbers.
            entry?.file_name().to_str().ok().and_then(pid_of).into_iter().for_each(&mut act);
        }
        Ok(())
    }

    /// What a file or a link of a process leads to.
    pub(super) fn target(&self, pid: u32, link: &str) -> Result<FileStat, Errno> {
        let mut name = [0; NAME];
        fstatat(&self.proc, path(&mut name, pid, link), AtFlags::empty())
    }

    /// How many descriptors may be open, `None` for no limit: the soft limit in `/proc/PID/limits`.
    pub(super) fn fd_limit(&mut self, pid: u32) -> Result<Option<u32>, Errno> {
        fields::fd_limit(self.read(pid, "limits")?).ok_or(Errno::EINVAL)
    }

    /// The proportional set size, bytes: `Pss:` of `/proc/PID/smaps_rollup`. Costs about 4 µs for each MiB in memory
    /// and holds the process's memory map meanwhile.
    pub(super) fn pss(&mut self, pid: u32) -> Result<u64, Errno> {
        fields::pss(self.read(pid, "smaps_rollup")?).ok_or(Errno::EINVAL)
    }

    /// The process of which this id is a thread, if the id is a thread's: `/proc/TID` can be read though it is not
    /// listed.
    pub(super) fn thread_group(&mut self, pid: u32) -> Result<u32, Errno> {
        fields::thread_group(self.read(pid, "status")?).ok_or(Errno::EINVAL)
    }

    /// Seconds since the boot, as `/proc/uptime` has them.
    pub(super) fn uptime(&mut self) -> Option<f64> {
        fields::uptime(self.read_at(c"uptime").ok()?)
    }

    /// A short file of procfs itself, without the line's end; empty if it cannot be read.
    pub(super) fn line(&mut self, path: &CStr) -> String {
        let text = self.read_at(path).unwrap_or_default();
        String::from_utf8_lossy(text.trim_ascii()).into_owned()
    }

    /// Where a link of procfs itself points; empty if it cannot be read.
    pub(super) fn link(&self, path: &CStr) -> String {
        readlinkat(&self.proc, path).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The real user id of `/proc/PID/status`. Not the owner of `/proc/PID`, which is root for every process that may not
    /// be dumped.
    pub(super) fn user(&mut self, pid: u32) -> Result<u32, Errno> {
        fields::user(self.read(pid, "status")?).ok_or(Errno::EINVAL)
    }

    /// A file of any length, up to `most` bytes of it.
    pub(super) fn whole(&mut self, pid: u32, file: &str, most: usize) -> Result<Vec<u8>, Errno> {
        let mut name = [0; NAME];
        let how = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = openat(&self.proc, path(&mut name, pid, file), how, Mode::empty())?;
        let mut bytes = Vec::new();
        loop {
            let length = nix::unistd::read(&file, &mut self.buffer[..])?;
            bytes.extend_from_slice(&self.buffer[..length.min(most - bytes.len())]);
            if length == 0 || bytes.len() == most {
                return Ok(bytes);
            }
        }
    }

    /// Where a link of a process points, as the kernel writes it.
    pub(super) fn link_of(&self, pid: u32, link: &str) -> Result<OsString, Errno> {
        let mut name = [0; NAME];
        readlinkat(&self.proc, path(&mut name, pid, link))
    }

    /// Whether what a link of a process points to has no name any more.
    pub(super) fn is_deleted(&self, pid: u32, link: &str) -> bool {
        self.target(pid, link).is_ok_and(|found| found.st_nlink == 0)
    }

    fn read(&mut self, pid: u32, file: &str) -> Result<&[u8], Errno> {
        let mut name = [0; NAME];
        let path = path(&mut name, pid, file);
        self.read_at(path)
    }

    /// procfs makes each of these files whole at the first read, so one read is the file.
    fn read_at(&mut self, path: &CStr) -> Result<&[u8], Errno> {
        let file = openat(&self.proc, path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        let length = nix::unistd::read(&file, &mut self.buffer[..])?;
        Ok(&self.buffer[..length])
    }
}

/// What the system says of a refusal, for people.
pub(super) fn reason<T>(result: Result<T, Errno>) -> Measured<T> {
    result.map_err(Errno::desc)
}

/// Room for ten digits, the longest file name and two more bytes; or for two numbers and `/fdinfo/`.
const NAME: usize = 32;

/// `PID/FILE` as a C string, on the stack.
fn path<'a>(name: &'a mut [u8; NAME], pid: u32, file: &str) -> &'a CStr {
    let mut rest = &mut name[..];
    // The longest is `4294967295/smaps_rollup` and its NUL: 24 bytes. A path cut short would not be found.
    let _ = write!(rest, "{pid}/{file}\0");
    CStr::from_bytes_until_nul(name).unwrap_or_default()
}

fn pid_of(name: &str) -> Option<u32> {
    name.starts_with(|first: char| first.is_ascii_digit()).then(|| name.parse().ok()).flatten()
}
