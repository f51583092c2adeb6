//! What a process runs, and where: the files of procfs that may keep a reader waiting.

use super::files::Files;
use crate::observe::processes::{KEPT_VARIABLES, Program};
use nix::errno::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The most that is read of a command line. Prompts in it can be long, and nobody looks at their end.
const COMMAND_LINE: usize = 64 << 10;

/// The most that is read of an environment: the kernel's own bound for arguments and environment together is a quarter
/// of the stack, 2 MiB unless raised.
const ENVIRONMENT: usize = 8 << 20;

/// Reads it all. `cmdline` and `environ` take the lock of the process's memory map, and hang with a process that hangs
/// while it holds that lock.
pub(super) fn read(files: &mut Files, pid: u32) -> Program {
    let argv = files.whole(pid, "cmdline", COMMAND_LINE);
    Program {
        exe: target(files, pid, "exe").map_err(say),
        argv: argv.map(|bytes| slots(&bytes)).map_err(say),
        cwd: target(files, pid, "cwd").map_err(say),
        env: files.whole(pid, "environ", ENVIRONMENT).map(|bytes| kept(&bytes)).map_err(say),
        uid: files.user(pid).ok(),
    }
}

/// A program of which nothing can be said, for one reason.
pub(super) fn unknown(reason: &str) -> Program {
    let reason = || reason.to_owned();
    Program { exe: Err(reason()), argv: Err(reason()), cwd: Err(reason()), env: Err(reason()), uid: None }
}

fn say(errno: Errno) -> String {
    errno.desc().to_owned()
}

/// Where a link points. The kernel appends " (deleted)" to the path of what is deleted; a file may also be named so.
/// The file itself, through the link, says which it is.
fn target(files: &Files, pid: u32, link: &str) -> Result<PathBuf, Errno> {
    const DELETED: &[u8] = b" (deleted)";
    let target = files.link_of(pid, link)?;
    match target.as_bytes().strip_suffix(DELETED) {
        Some(path) if files.is_deleted(pid, link) => Ok(PathBuf::from(OsStr::from_bytes(path))),
        _ => Ok(PathBuf::from(target)),
    }
}

/// The slots of a command line.
pub(super) fn slots(line: &[u8]) -> Vec<String> {
    split(line).map(|slot| String::from_utf8_lossy(slot).into_owned()).collect()
}

/// The slots between NULs. The last one has its own NUL, unless the process has written over it.
fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    whole.split(|&byte| byte == 0).filter(move |_| !bytes.is_empty())
}

pub(super) fn kept(environment: &[u8]) -> Vec<(String, String)> {
    split(environment)
        .filter_map(|slot| {
            let equals = slot.iter().position(|&byte| byte == b'=')?;
            let name = std::str::from_utf8(&slot[..equals]).ok().filter(|name| KEPT_VARIABLES.contains(name))?;
            Some((name.to_owned(), String::from_utf8_lossy(&slot[equals + 1..]).into_owned()))
        })
        .collect()
}
