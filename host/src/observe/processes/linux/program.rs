//! What a process runs, and where: the files of procfs that may keep a reader waiting.

use crate::observe::processes::{KEPT_VARIABLES, Program};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most that is read of a command line. Prompts in it can be long, and nobody looks at their end.
const COMMAND_LINE: u64 = 64 << 10;

/// The most that is read of an environment: the kernel's own bound for arguments and environment together is a quarter
/// of the stack, 2 MiB unless raised.
const ENVIRONMENT: u64 = 8 << 20;

/// Reads it all. `cmdline` and `environ` take the lock of the process's memory map, and hang with a process that hangs
/// while it holds that lock.
pub(super) fn read(proc_root: &Path, pid: u32) -> Program {
    let home = proc_root.join(pid.to_string());
    Program {
        exe: target(&home.join("exe")).map_err(say),
        argv: slots(&home.join("cmdline"), COMMAND_LINE)
            .map(|bytes| split(&bytes).map(|slot| String::from_utf8_lossy(slot).into_owned()).collect())
            .map_err(say),
        cwd: target(&home.join("cwd")).map_err(say),
        env: slots(&home.join("environ"), ENVIRONMENT).map(|bytes| kept(&bytes)).map_err(say),
        uid: uid(&home.join("status")),
    }
}

/// A program of which nothing can be said, for one reason.
pub(super) fn unknown(reason: &str) -> Program {
    let reason = || reason.to_owned();
    Program { exe: Err(reason()), argv: Err(reason()), cwd: Err(reason()), env: Err(reason()), uid: None }
}

fn say(error: io::Error) -> String {
    error.to_string()
}

/// Where a link points. The kernel appends " (deleted)" to the path of what is deleted; a file may also be named so.
/// The file itself, through the link, says which it is.
fn target(link: &Path) -> io::Result<PathBuf> {
    const DELETED: &[u8] = b" (deleted)";
    let target = fs::read_link(link)?;
    match target.as_os_str().as_bytes().strip_suffix(DELETED) {
        Some(path) if fs::metadata(link).is_ok_and(|found| found.nlink() == 0) => {
            Ok(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
        }
        _ => Ok(target),
    }
}

fn slots(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The slots between NULs. The last one has its own NUL, unless the process has written over it.
fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    whole.split(|&byte| byte == 0).filter(move |_| !bytes.is_empty())
}

fn kept(environment: &[u8]) -> Vec<(String, String)> {
    split(environment)
        .filter_map(|slot| {
            let equals = slot.iter().position(|&byte| byte == b'=')?;
            let name = std::str::from_utf8(&slot[..equals]).ok().filter(|name| KEPT_VARIABLES.contains(name))?;
            Some((name.to_owned(), String::from_utf8_lossy(&slot[equals + 1..]).into_owned()))
        })
        .collect()
}

/// The real user id: the first number after `Uid:`. Not the owner of `/proc/PID`, which is root for every process that
/// may not be dumped.
fn uid(status: &Path) -> Option<u32> {
    let text = fs::read(status).ok()?;
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_whitespace().next()?.parse().ok()
}
