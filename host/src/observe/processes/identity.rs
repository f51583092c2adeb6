//! Which process this is. A pid alone never says so: pids are used again.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A process of this machine for as long as it is up: the pid and the kernel's own start token.
///
/// Raw start ticks, never a time made from them: the boot time they count from drifts on WSL2, in containers and
/// after a clock step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Machine {
    /// `/proc/sys/kernel/random/boot_id`; empty where there is none.
    pub boot_id: String,
    /// The pid namespace, as `readlink /proc/self/ns/pid` names it; empty where there is none.
    pub pid_namespace: String,
}

/// Where a process comes from: what started it, what started that, and so on. By it a process that lives but for a moment
/// says whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// What they all have in common.
    pub machine: Machine,
    /// The parent first, init or the first that may not be seen last.
    pub ancestors: Vec<Ancestor>,
}

/// A process that another one descends from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Which one.
    pub id: ProcessId,
    /// The kernel's name for it.
    pub comm: String,
}

/// So many ancestors are looked at; nothing real has more.
pub(super) const MOST_ANCESTORS: usize = 64;
