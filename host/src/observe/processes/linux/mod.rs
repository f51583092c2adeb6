//! The table on Linux: procfs, read in tiers.
//!
//! A process whose CPU clock has not moved has not run, and what has not run has changed next to nothing. So a look
//! asks every process's CPU clock (one system call) and reads `stat` only where it moved; the figures of [`Usage`] are
//! read only of processes that are measured and ran. What changes without running (a new parent, pages taken away)
//! is caught otherwise: the children of an ended process are read anew, and every process now and then.

mod abilities;
mod clock;
mod descriptors;
mod details;
mod fields;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod lineage;
mod own;
mod program;
mod rows;
mod stat;
#[cfg(test)]
mod tests;

pub use descriptors::{OpenFiles, sees_alike};

use super::row::{CpuReading, Measured, Rows, Usage};
use super::{Ability, ListError, Liveness, Machine, Options, ProcessId, ProcessState};
use crate::clock::{Clock, Moment};
use clock::Time;
use details::Reader;
use files::{Files, reason};
pub(super) use lineage::{identify, lineage, may_live};
use nix::errno::Errno;
use nix::unistd::{SysconfVar, sysconf};
pub(super) use own::own_cost;
use rows::{newcomer, renew, state};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The rows and how they are read.
pub(super) struct Table {
    clock: Arc<dyn Clock>,
    options: Options,
    machine: Machine,
    cores: u32,
    files: Result<Files, Errno>,
    time: Time,
    details: Reader,
    rows: Rows,
    /// Threads of the kernel's own by pid, and the last look that listed them.
    kernel: HashMap<u32, u64>,
    /// Listed processes that may not be looked at.
    closed: HashSet<u32>,
    listing: Vec<u32>,
    /// Processes that were in the table and have ended, as this look finds.
    ended: HashSet<u32>,
    /// How many looks there have been.
    look: u64,
    before: Option<Look>,
}

/// When a look was.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Its number.
    number: u64,
    at: Moment,
    /// Clock ticks since the boot, where they can be known.
    ticks: Option<u64>,
    /// Nanoseconds in one of them.
    tick: u64,
    /// When the system was booted, Unix milliseconds; `None`: cannot be known.
    booted_ms: Option<u64>,
}

/// The boot's time is reckoned from two clocks, and somewhat later or earlier each time. As long as it is as near as this to
/// what it was, it is the same: what has started first is to seem so, whichever look has found it.
const SAME_BOOT_MS: u64 = 250;

impl Look {
    /// When something has started so many ticks after the boot, Unix milliseconds. Without a time since the boot (a made-up
    /// tree) nothing better is known than "before now".
    fn started_at_ms(&self, start: u64) -> u64 {
        let since_boot_ms = start.saturating_mul(self.tick) / 1_000_000;
        let started = self.booted_ms.map(|booted| booted.saturating_add(since_boot_ms));
        started.map_or(self.at.unix_ms, |started| started.min(self.at.unix_ms))
    }
}

impl Table {
    pub(super) fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        let mut files = Files::open(&options.proc_root);
        let (machine, time) = match &mut files {
            Ok(files) => (files.machine(), Time::probe(files)),
            Err(_) => (Machine { boot_id: String::new(), pid_namespace: String::new() }, Time::none()),
        };
        let cores = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten().and_then(|cores| u32::try_from(cores).ok());
        let details = Reader::new(&options);
        Self {
            clock,
            options,
            machine,
            cores: cores.unwrap_or(1).max(1),
            files,
            time,
            details,
            rows: Rows::new(),
            kernel: HashMap::new(),
            closed: HashSet::new(),
            listing: Vec::new(),
            ended: HashSet::new(),
            look: 0,
            before: None,
        }
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(super) fn cores(&self) -> u32 {
        self.cores
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(super) fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// How many looks there have been.
    pub(super) fn look(&self) -> u64 {
        self.look
    }

    /// How many processes have not said yet what they run.
    pub(super) fn unread(&self) -> usize {
        self.details.open()
    }

    pub(super) fn refresh(&mut self) -> Result<(), ListError> {
        let mut listing = std::mem::take(&mut self.listing);
        let listed = self.list(&mut listing);
        if listed.is_ok() {
            self.look += 1;
            let at = self.clock.now();
            let ticks = self.files.as_mut().ok().and_then(|files| self.time.ticks_since_boot(files));
            let booted_ms = self.booted_ms(at, ticks);
            let now = Look { number: self.look, at, ticks, tick: self.time.tick, booted_ms };
            self.closed.clear();
            self.ended.clear();
            for &pid in &listing {
                self.visit(pid, now);
            }
            self.forget(&listing);
            self.before = Some(now);
            self.details.gather(&mut self.rows);
        }
        self.listing = listing;
        listed
    }

    fn booted_ms(&self, at: Moment, ticks: Option<u64>) -> Option<u64> {
        let since_boot_ms = ticks?.saturating_mul(self.time.tick) / 1_000_000;
        let booted_ms = at.unix_ms.saturating_sub(since_boot_ms);
        let known = self.before.and_then(|before| before.booted_ms);
        known.filter(|known| known.abs_diff(booted_ms) < SAME_BOOT_MS).or(Some(booted_ms))
    }

    fn list(&mut self, listing: &mut Vec<u32>) -> Result<(), ListError> {
        if self.files.is_err() {
            self.files = Files::open(&self.options.proc_root);
        }
        let listed = match &mut self.files {
            Ok(files) => files.list(listing).map_err(io::Error::from).and_then(|()| {
                // Only a made-up tree may leave us out; a machine without any process is none.
                if self.options.proc_root != Path::new("/proc") || files.shows_us(listing) {
                    Ok(())
                } else {
                    Err(io::Error::other("it does not even show this process: no procfs is mounted there"))
                }
            }),
            Err(errno) => Err((*errno).into()),
        };
        listed.map_err(|source| ListError { place: self.options.proc_root.display().to_string(), source })
    }

    /// Brings one listed process up to date.
    ///
    /// The clock and `stat` of one process are read together, and parents (who mostly have the lower pids) before
    /// their children: a child that ends in between is then missing here and appears in its parent's children's time
    /// at the next look, where [`counters`](super::counters) expects it; the other way round it would count twice.
    fn visit(&mut self, pid: u32, now: Look) {
        let due = due(pid, self.look, &self.options);
        if !due && let Some(seen) = self.kernel.get_mut(&pid) {
            *seen = self.look;
            return;
        }
        let at = self.clock.now().steady;
        let own = if self.time.cpu_clocks { clock::cpu_time(pid) } else { None };
        if let (Some(own), Some(row)) = (own, self.rows.get_mut(&pid)) {
            row.before = Some(row.cpu);
            row.newcomer = false;
            row.cpu.at = at;
            if own == row.cpu.own && !due {
                return;
            }
        }
        let Ok(files) = &mut self.files else { return };
        let stat = match files.stat(pid) {
            Ok(stat) => stat,
            Err(Errno::EACCES | Errno::EPERM) => {
                self.closed.insert(pid);
                if let Some(row) = self.rows.get_mut(&pid) {
                    row.process.state = ProcessState::Unreadable;
                }
                return;
            }
            // It has ended since it was listed. A line that cannot be understood is no process to us.
            Err(_) => {
                self.ended.extend(self.rows.remove(&pid).map(|_| pid));
                return;
            }
        };
        if stat.is_kernel_thread() {
            self.kernel.insert(pid, self.look);
            return;
        }
        let own = own.unwrap_or(stat.own_ticks.saturating_mul(self.time.tick));
        let cpu = CpuReading { own, waited: stat.waited_ticks.saturating_mul(self.time.tick), at };
        match self.rows.get_mut(&pid) {
            Some(row) if row.process.id.start == stat.start => {
                if !self.time.cpu_clocks {
                    row.before = Some(row.cpu);
                    row.newcomer = false;
                }
                if renew(row, &stat, cpu) {
                    self.details.ask(row.process.id, row.image);
                }
                row.ran = self.look;
            }
            _ => {
                self.kernel.remove(&pid);
                let row = newcomer(pid, &stat, cpu, &now, self.before.as_ref());
                self.details.ask(row.process.id, row.image);
                self.ended.extend(self.rows.insert(pid, row).map(|_| pid));
            }
        }
    }

    /// Drops what is listed no more. Children of the ended have a new parent, which no clock shows: they are read.
    fn forget(&mut self, listing: &[u32]) {
        let look = self.look;
        self.kernel.retain(|_, seen| *seen == look);
        let ended = &mut self.ended;
        self.rows.retain(|pid, _| listing.binary_search(pid).is_ok() || !ended.insert(*pid));
        let Ok(files) = &mut self.files else { return };
        if self.ended.is_empty() {
            return;
        }
        for (&pid, row) in &mut self.rows {
            if self.ended.contains(&row.process.parent)
                && let Ok(stat) = files.stat(pid)
                && stat.start == row.process.id.start
            {
                row.process.parent = stat.parent;
            }
        }
    }

    /// Reads the figures of one measured process, if it has run since they were read.
    pub(super) fn read_usage(&mut self, pid: u32) {
        let Some(row) = self.rows.get_mut(&pid) else {
            return;
        };
        if row.usage_of >= row.ran {
            return;
        }
        let Ok(files) = &mut self.files else { return };
        let memory = files.memory(pid);
        let full = row.usage_of == 0 || due(pid, self.look, &self.options);
        row.usage_of = self.look;
        if matches!(memory, Err(Errno::ENOENT | Errno::ESRCH)) {
            // It has ended since the last look: what it moved before is what is known of it.
            row.usage = Usage { resident: Ok(0), shared: Some(0), fds: Ok(0), ..row.usage };
            return;
        }
        let io = reason(files.io(pid));
        if row.process.state == ProcessState::Zombie {
            // The figures of its end, but nothing in memory and nothing open any more.
            row.usage = Usage { resident: Ok(0), shared: Some(0), io, fds: Ok(0), fd_limit: Ok(None) };
            return;
        }
        let fds = reason(files.fds(pid));
        let fd_limit = match (row.usage.fd_limit, fds) {
            (Ok(Some(limit)), Ok(open)) if !full && open < limit / 2 => Ok(Some(limit)),
            (Ok(None), _) if !full => Ok(None),
            _ => reason(files.fd_limit(pid)),
        };
        row.usage = Usage {
            resident: reason(memory.map(|memory| memory.resident)),
            shared: memory.map(|memory| memory.shared).ok(),
            io,
            fds,
            fd_limit,
        };
    }

    /// Reads one proportional set size.
    pub(super) fn read_pss(&mut self, pid: u32) -> Measured<u64> {
        match &mut self.files {
            Ok(files) => reason(files.pss(pid)),
            Err(errno) => Err(errno.desc()),
        }
    }

    /// CPU time of a process that procfs does not show.
    pub(super) fn hidden_cpu(&self, pid: u32) -> Option<CpuReading> {
        let own = self.time.cpu_clocks.then(|| clock::cpu_time(pid)).flatten()?;
        Some(CpuReading { own, waited: 0, at: self.clock.now().steady })
    }

    pub(super) fn state_of(&self, id: ProcessId) -> Liveness {
        // Not through `self.files`: this is asked now and then, and its buffer is for the samples.
        let found = Files::open(&self.options.proc_root).and_then(|mut files| {
            let (start, state) = files.stat(id.pid).map(|stat| (stat.start, state(&stat)))?;
            let group = files.thread_group(id.pid).unwrap_or(id.pid);
            Ok((start, state, group))
        });
        match found {
            Ok((start, _, group)) if start != id.start || group != id.pid => Liveness::Replaced,
            Ok((_, ProcessState::Zombie, _)) => Liveness::Zombie,
            Ok(_) => Liveness::Alive,
            Err(Errno::EACCES | Errno::EPERM) => Liveness::Unreadable,
            Err(_) if self.hidden_cpu(id.pid).is_some() => Liveness::Unreadable,
            Err(_) => Liveness::Gone,
        }
    }

    pub(super) fn abilities(&self) -> Vec<Ability> {
        abilities::probe(self)
    }
}

/// Whether it is a process's turn to be read whether or not it has run.
fn due(pid: u32, look: u64, options: &Options) -> bool {
    (u64::from(pid) + look).is_multiple_of(u64::from(options.refresh_every.max(1)))
}
