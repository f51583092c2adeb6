//! The ancestors of this process, read one by one: for programs that live but for a moment and need no table.

use super::files::Files;
use crate::observe::processes::identity::MOST_ANCESTORS;
use crate::observe::processes::{Ancestor, Lineage, Machine, ProcessId};
use nix::errno::Errno;
use std::io;
use std::path::Path;

/// Where this very process comes from.
///
/// A parent that ends while this is read is followed by whoever took its child over; that one is no ancestor of the agent's
/// making, but it is one of this process, and nobody takes it for an agent.
pub(in crate::observe::processes) fn lineage() -> io::Result<Lineage> {
    let mut files = Files::open(Path::new("/proc"))?;
    let us = files.us().ok_or_else(|| io::Error::other("no procfs that shows this process is mounted on /proc"))?;
    let machine = files.machine();
    let mut parent = files.stat(us)?.parent;
    let mut ancestors = Vec::new();
    while parent != 0 && ancestors.len() < MOST_ANCESTORS {
        let Ok(stat) = files.stat(parent) else { break };
        let comm = String::from_utf8_lossy(stat.comm).into_owned();
        ancestors.push(Ancestor { id: ProcessId { pid: parent, start: stat.start }, comm });
        parent = stat.parent;
    }
    Ok(Lineage { machine, ancestors })
}

/// Which process has this pid now.
pub(in crate::observe::processes) fn identify(pid: u32) -> io::Result<(ProcessId, Machine)> {
    let mut files = Files::open(Path::new("/proc"))?;
    let start = files.stat(pid)?.start;
    Ok((ProcessId { pid, start }, files.machine()))
}

/// Whether one very process lives, as far as this user may know. One that has ended and was not waited for does not.
pub(in crate::observe::processes) fn may_live(id: ProcessId) -> bool {
    let lives = |mut files: Files| {
        let stat = files.stat(id.pid)?;
        Ok(stat.start == id.start && !matches!(stat.state, b'Z' | b'X'))
    };
    let found = Files::open(Path::new("/proc")).and_then(lives);
    found.unwrap_or_else(|error| !matches!(error, Errno::ENOENT | Errno::ESRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_descends_from_its_parent_and_so_on() {
        let lineage = lineage().unwrap();
        assert!(!lineage.machine.boot_id.is_empty() && lineage.machine.pid_namespace.starts_with("pid:"));
        let parent = u32::try_from(nix::unistd::getppid().as_raw()).unwrap();
        let first = &lineage.ancestors[0];
        assert_eq!(first.id.pid, parent);
        assert!(may_live(first.id) && !first.comm.is_empty());
        assert!(!may_live(ProcessId { start: first.id.start + 1, ..first.id }), "another one with its pid");
        let starts: Vec<u64> = lineage.ancestors.iter().map(|ancestor| ancestor.id.start).collect();
        assert!(starts.windows(2).all(|pair| pair[0] >= pair[1]), "each is older than what it started: {starts:?}");
    }

    #[test]
    fn a_process_that_has_ended_does_not_live() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let start = Files::open(Path::new("/proc")).unwrap().stat(pid).unwrap().start;
        let zombie = || Files::open(Path::new("/proc")).unwrap().stat(pid).unwrap().state == b'Z';
        while !zombie() {
            std::thread::yield_now();
        }
        assert!(!may_live(ProcessId { pid, start }), "nobody has waited for it");
        child.wait().unwrap();
        assert!(!may_live(ProcessId { pid, start }));
    }
}
