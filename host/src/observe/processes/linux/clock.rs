//! What the kernel keeps of time: each process's CPU clock, ticks, and the time since the boot.

use super::files::Files;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use std::time::Duration;

/// Nanoseconds of CPU time that a process has used, all its threads together; `None` if there is no such process.
///
/// The clock of clock_getcpuclockid(3), without asking it first whether the process exists: the upper bits are the
/// pid, inverted, and the lower three mean "the scheduler's clock of a whole process" (`CPUCLOCK_SCHED` in the
/// kernel's `posix-timers.h`). It costs a tenth of reading `stat`, counts nanoseconds instead of ticks, may be read
/// for every user's processes, and has not moved if the process has not run.
pub(super) fn cpu_time(pid: u32) -> Option<u64> {
    let pid = i32::try_from(pid).ok().filter(|&pid| pid > 0)?;
    nanoseconds(ClockId::from_raw((!pid << 3) | 2))
}

/// Nanoseconds since the boot, on the clock that start times are counted on.
pub(super) fn since_boot() -> Option<u64> {
    nanoseconds(ClockId::CLOCK_BOOTTIME)
}

fn nanoseconds(clock: ClockId) -> Option<u64> {
    let time: Duration = clock_gettime(clock).ok()?.into();
    u64::try_from(time.as_nanos()).ok()
}

/// How time is counted here.
pub(super) struct Time {
    /// Nanoseconds in one clock tick of `stat`.
    pub(super) tick: u64,
    /// Whether processes' CPU clocks can be read: not in a made-up tree, nor where the kernel has none.
    pub(super) cpu_clocks: bool,
    live: bool,
}

impl Time {
    /// Tries what works.
    pub(super) fn probe(files: &Files) -> Self {
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok());
        let live = files.is_live();
        Self {
            tick: 1_000_000_000 / per_second.filter(|&ticks| ticks > 0).unwrap_or(100),
            cpu_clocks: live && cpu_time(std::process::id()).is_some_and(|used| used > 0),
            live,
        }
    }

    /// Where there is no procfs (yet).
    pub(super) fn none() -> Self {
        Self { tick: 10_000_000, cpu_clocks: false, live: false }
    }

    /// Clock ticks since the boot. Not from `/proc/uptime` where it can be helped: containers replace that file.
    pub(super) fn ticks_since_boot(&self, files: &mut Files) -> Option<u64> {
        let nanoseconds = if self.live {
            since_boot()?
        } else {
            u64::try_from(Duration::try_from_secs_f64(files.uptime()?).ok()?.as_nanos()).ok()?
        };
        Some(nanoseconds / self.tick)
    }
}
