//! What this very process costs.

use super::clock::{Time, since_boot};
use super::files::Files;
use crate::observe::processes::OwnCost;
use nix::sys::resource::{Resource, getrlimit};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What this process has cost so far.
pub(in crate::observe::processes) fn own_cost() -> io::Result<OwnCost> {
    let mut files = Files::open(Path::new("/proc"))?;
    let us = files.us().ok_or_else(|| io::Error::other("no procfs that shows this process is mounted on /proc"))?;
    let stat = files.stat(us)?;
    let (threads, begun) = (u64::from(stat.threads), stat.start.saturating_mul(Time::probe(&files).tick));
    let statm = fs::read_to_string("/proc/self/statm")?;
    let mut pages = statm.split(' ').map(|field| field.parse::<u64>().unwrap_or_default());
    let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096);
    let (size, resident) = (pages.next().unwrap_or_default() * page, pages.next().unwrap_or_default() * page);
    Ok(OwnCost {
        cpu: clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into(),
        resident_bytes: resident,
        virtual_bytes: size,
        threads,
        // Beside the one that this very look opens.
        open_files: (fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1),
        most_files: getrlimit(Resource::RLIMIT_NOFILE)?.0,
        age: Duration::from_nanos(since_boot().unwrap_or_default().saturating_sub(begun)),
    })
}
