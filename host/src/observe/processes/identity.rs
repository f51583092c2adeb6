//! Which process this is. A pid alone never says so: pids are used again.

use std::fmt;

/// A process of this machine for as long as it is up: the pid and the kernel's own start token.
///
/// Raw start ticks, never a time made from them: the boot time they count from drifts on WSL2, in containers and
/// after a clock step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// The process id, as this pid namespace numbers it.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat` on Linux, raw; seconds since 1970 elsewhere.
    pub start: u64,
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start)
    }
}

/// The half of an identity that all processes seen from here share. What is kept longer than one run of this
/// program (the registry) must keep it too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Machine {
    /// `/proc/sys/kernel/random/boot_id`; empty where there is none.
    pub boot_id: String,
    /// The pid namespace, as `readlink /proc/self/ns/pid` names it; empty where there is none.
    pub pid_namespace: String,
}
