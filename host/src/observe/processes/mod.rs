//! The process table, the trees in it, and their numbers.

mod identity;

pub use identity::{Machine, ProcessId};

use super::facts::{Gap, Metrics, ProcessState};
use crate::clock::Clock;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How the table is sampled.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where procfs is mounted; a test may point it at a made-up tree.
    pub proc_root: PathBuf,
    /// Every process is read anew at least every so many samples, whether or not it seems to have run.
    pub refresh_every: u32,
    /// How long one sample may spend on reading proportional set sizes.
    pub pss_budget: Duration,
    /// How long one sample waits for command lines, environments and links; what is late arrives with the next one.
    pub details_deadline: Duration,
}

/// One living process, or a zombie.
#[derive(Debug, Clone)]
pub struct Process {
    /// Which one.
    pub id: ProcessId,
    /// Its parent's pid.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// The kernel's name for it, at most 15 bytes, raw.
    pub comm: String,
    /// What it does.
    pub state: ProcessState,
    /// When it started, Unix milliseconds (derived; only for showing).
    pub started_at_ms: u64,
    /// What is read once, off the hot path.
    pub details: Details,
}

/// What is read once for each process, and again when it runs another program.
#[derive(Debug, Clone)]
pub enum Details {
    /// Not read yet.
    Pending,
    /// Read; each part may have been denied on its own.
    Read(Arc<Program>),
}

/// What a process runs, and where.
#[derive(Debug, Clone)]
pub struct Program {
    /// The executable's path, or why it cannot be known.
    pub exe: Result<PathBuf, String>,
    /// The command line's slots, exactly as given.
    pub argv: Result<Vec<String>, String>,
    /// The working directory, or why it cannot be known.
    pub cwd: Result<PathBuf, String>,
    /// Those variables of its environment that headcount looks at, or why they cannot be known.
    pub env: Result<Vec<(String, String)>, String>,
    /// The user it runs as.
    pub uid: Option<u32>,
}

/// What was found for one agent's root in one sample.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The root's state.
    pub state: ProcessState,
    /// How the root ended, where that could be seen.
    pub exit_code: Option<i32>,
    /// Figures over the tree.
    pub metrics: Metrics,
    /// CPU time that the tree has used since it was first seen; never falls.
    pub cpu_time: Duration,
    /// Bytes moved by system calls since the tree was first seen; never falls. `None`: may not be read.
    pub io_bytes: Option<u64>,
    /// What could not be measured, and why.
    pub unmeasured: Vec<Gap>,
}
