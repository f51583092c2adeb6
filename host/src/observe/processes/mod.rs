//! The process table, the trees in it, and their numbers.
//!
//! A table (`linux`: procfs; `portable`: sysinfo, everywhere else) says what processes there are and what each has
//! used. Over its rows, and without knowing where they come from, `tree` says which process belongs to which agent,
//! `accounts` and `counters` keep sums that survive the end of those who made them, `memory` counts shared pages once,
//! `figures` sums up the rest, and `measure` makes one [`Reading`] for each agent of it all.

mod accounts;
mod counters;
mod figures;
mod identity;
#[cfg(target_os = "linux")]
mod linux;
mod measure;
mod memory;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "compiled here for its tests only"))]
mod portable;
mod row;
mod tree;

#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use linux::fuzzing;
#[cfg(not(target_os = "linux"))]
use portable as system;
use system::Table;
pub use system::{OpenFiles, sees_alike};

pub use identity::{Ancestor, Lineage, Machine, ProcessId};
pub use row::terminal_name;

use super::facts::{Gap, Metrics, ProcessState};
use crate::clock::Clock;
use measure::Forest;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The variable that marks the processes of one agent, and that its children inherit: it finds those that have cut
/// every other tie (a new session, a dead parent).
pub const AGENT_TAG: &str = "HEADCOUNT_AGENT";

/// The tag of those that stand by an agent and are none of its processes, though they are in its session.
pub const NOBODYS_TAG: &str = "none";

/// The variables of a process's environment that are kept. All others are dropped where they are read: environments
/// hold secrets.
pub const KEPT_VARIABLES: [&str; 16] = [
    AGENT_TAG,
    "ITERM_SESSION_ID",
    "TERM_PROGRAM",
    "TMUX",
    "TMUX_PANE",
    "HOME",
    "AIDER_CHAT_HISTORY_FILE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "OPENCODE_DB",
    "QWEN_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// How the table is sampled.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where procfs is mounted; a test may point it at a made-up tree.
    pub proc_root: PathBuf,
    /// Every process is read anew at least every so many samples, whether or not it seems to have run.
    pub refresh_every: u32,
    /// How long one sample may spend on reading proportional set sizes.
    pub pss_budget: Duration,
    /// How long a sample waits for a process that does not say what it runs; what is late arrives with the next one.
    pub details_deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            proc_root: PathBuf::from("/proc"),
            refresh_every: 30,
            pss_budget: Duration::from_millis(2),
            details_deadline: Duration::from_millis(200),
        }
    }
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
    /// Its controlling terminal's device number, 0 for none; [`terminal_name`] makes a path of it.
    pub tty_nr: u32,
    /// The kernel's name for it, at most 15 bytes; bytes that are no UTF-8 are replaced, control bytes are not.
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
    /// The executable's path, or why it cannot be known. Where the file is deleted, the path it had.
    pub exe: Result<PathBuf, String>,
    /// The command line's slots as given, up to 64 KiB of them; bytes that are no UTF-8 are replaced.
    pub argv: Result<Vec<String>, String>,
    /// The working directory, or why it cannot be known. Where it is deleted, the path it had.
    pub cwd: Result<PathBuf, String>,
    /// Those of [`KEPT_VARIABLES`] that it was started with, or why they cannot be known.
    pub env: Result<Vec<(String, String)>, String>,
    /// The user it runs as.
    pub uid: Option<u32>,
}

/// What was found for one agent's root in one sample.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The root's state.
    pub state: ProcessState,
    /// How the root ended, where that could be seen: its exit code, or minus the number of the signal.
    pub exit_code: Option<i32>,
    /// Figures over the tree. After the root's end: over what it left behind.
    pub metrics: Metrics,
    /// CPU time that the tree has used since it was first seen; never falls.
    pub cpu_time: Duration,
    /// Bytes moved by system calls since the tree was first seen; never falls. `None`: may not be read.
    pub io_bytes: Option<u64>,
    /// What could not be measured, and why.
    pub unmeasured: Vec<Gap>,
}

/// Whether one very process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It is.
    Alive,
    /// It has ended, but its parent has not yet asked how.
    Zombie,
    /// It has ended.
    Gone,
    /// It has ended, and another process has its pid.
    Replaced,
    /// A process with its pid is alive, but this user may not see which one it is.
    Unreadable,
}

/// One thing that can be seen of processes, or not, on this machine by this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// What, in a few words.
    pub name: &'static str,
    /// Whether it works.
    pub works: bool,
    /// How far it works, or why it does not and what would help.
    pub detail: String,
}

/// The processes of the machine could not be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the processes in {place}: {source}")]
pub struct ListError {
    /// Where the list was sought.
    pub place: String,
    /// What the system said.
    pub source: std::io::Error,
}

/// Where this very process comes from, at the cost of reading its ancestors and nothing else.
///
/// # Errors
/// The processes cannot be looked at.
pub fn lineage() -> std::io::Result<Lineage> {
    system::lineage()
}

/// Which process has this pid now, and the machine it is on, at the cost of reading nothing else.
///
/// # Errors
/// There is none, or it may not be looked at.
#[cfg(target_os = "linux")]
pub fn identify(pid: u32) -> std::io::Result<(ProcessId, Machine)> {
    system::identify(pid)
}

/// What this very process has cost so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCost {
    /// CPU time of all its threads.
    pub cpu: Duration,
    /// Its memory that is in RAM.
    pub resident_bytes: u64,
    /// Its address space.
    pub virtual_bytes: u64,
    /// Its threads.
    pub threads: u64,
    /// Files that it has open.
    pub open_files: u64,
    /// How many it may have open.
    pub most_files: u64,
    /// For how long it has run.
    pub age: Duration,
}

/// What this very process has cost so far.
///
/// # Errors
/// It cannot be read.
#[cfg(target_os = "linux")]
pub fn own_cost() -> std::io::Result<OwnCost> {
    system::own_cost()
}

/// Whether one very process lives, asked without a table. What cannot be known counts as alive.
pub fn may_live(id: ProcessId) -> bool {
    system::may_live(id)
}

/// The process table and the trees that are measured in it.
///
/// One for the whole program: two samplers see the same machine twice, at twice the cost.
pub struct Sampler {
    table: Table,
    forest: Forest,
}

impl Sampler {
    /// A sampler that has not looked yet.
    pub fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        let forest = Forest::new(Arc::clone(&clock), options.pss_budget);
        Self { table: Table::new(clock, options), forest }
    }

    /// What every process seen from here has in common.
    pub fn machine(&self) -> &Machine {
        self.table.machine()
    }

    /// Logical CPUs of the machine.
    pub fn cores(&self) -> u32 {
        self.table.cores()
    }

    /// One look at the table: lists the processes, reads again what ran since the last look, forgets what ended, and
    /// gathers what newcomers run until [`Options::details_deadline`].
    ///
    /// # Errors
    /// The processes cannot be listed. What was known before stays as it was.
    pub fn refresh(&mut self) -> Result<(), ListError> {
        self.table.refresh()
    }

    /// All processes that the last look found, in the order of their pids; no kernel threads.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.table.rows().values().map(|row| &row.process)
    }

    /// The process that had this pid at the last look.
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.table.rows().get(&pid).map(|row| &row.process)
    }

    /// How many processes have not said yet what they run: who is an agent among them shows with a later look.
    pub fn unread(&self) -> usize {
        self.table.unread()
    }

    /// Whether this very process is alive now, also when the table does not show it.
    pub fn state_of(&self, id: ProcessId) -> Liveness {
        self.table.state_of(id)
    }

    /// Says which processes belong to which of the agents' roots, and measures each tree; in the order of `roots`.
    ///
    /// A root below another root is a tree of its own and not part of the other. Processes stay with their agent when
    /// their parent ends, and when the root ends: it still gets its reading, over what is left of its tree. Figures
    /// are of the last [`refresh`](Self::refresh); what a root was not asked for in one sample is forgotten.
    pub fn measure(&mut self, roots: &[ProcessId]) -> Vec<Reading> {
        self.forest.measure(&mut self.table, roots)
    }

    /// Learns which tags are recorded as whose, until it is told otherwise: a process that carries one belongs to that root
    /// unless a nearer root is above it, also when nothing else is left of the tree.
    pub fn know_tags(&mut self, tags: HashMap<String, ProcessId>) {
        self.forest.know_tags(tags);
    }

    /// What can be seen here and what not.
    pub fn abilities(&self) -> Vec<Ability> {
        self.table.abilities()
    }
}
