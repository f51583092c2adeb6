//! Which process a declared agent is: found once, then meant for good.

use super::{Locator, Written};
use crate::files::{Stamp, read_small_text};
use crate::names::{AgentName, SessionId};
use crate::observe::facts::ProcessState;
use crate::observe::processes::{Details, Liveness, Process, ProcessId};
use crate::observe::table::ProcessTable;
use regex::Regex;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// A process may seem to start so long after it did: start times are derived from a boot time that drifts.
const DRIFT_MS: u64 = 60_000;

/// A pid file holds a number and a line's end; what is much longer is something else.
const LONGEST_PID_FILE: u64 = 4 << 10;

/// Where an agent is declared: the source's number, the session, the agent.
pub type Key = (usize, SessionId, AgentName);

/// The process of a declared agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This one, which may have ended since; and what is to be known about the choice.
    Process(ProcessId, Option<String>),
    /// It is alive, but this user may not see which process it is.
    Unreadable(String),
    /// None was ever seen here: whether it is alive cannot be said.
    NotSeen(String),
    /// The one that was declared is none any more.
    Nothing(String),
}

/// What was found for every declared agent so far.
#[derive(Debug, Default)]
pub struct Bindings {
    bound: HashMap<Key, Binding>,
    looks: u64,
}

/// What was found for one declared agent.
#[derive(Debug)]
struct Binding {
    locator: Locator,
    found: Found,
    /// The pid file that `found` was read from.
    stamp: Option<Stamp>,
    /// Whether every process was looked at since the last match ended: then only new ones can match.
    searched: bool,
    look: u64,
}

impl Bindings {
    /// Begins a new look at all declared agents, and forgets those that the last look did not ask for.
    pub fn begin(&mut self) {
        let last = self.looks;
        self.bound.retain(|_, binding| binding.look == last);
        self.looks += 1;
    }

    /// The process of one declared agent. `fresh` are the processes that run a program which no look before saw.
    pub fn find(&mut self, key: Key, locator: &Locator, table: &impl ProcessTable, fresh: &[ProcessId]) -> Found {
        let binding = match self.bound.remove(&key).filter(|known| known.locator == *locator) {
            Some(known) => known.again(table, fresh),
            None => Binding::first(locator.clone(), table),
        };
        let found = binding.found.clone();
        self.bound.insert(key, Binding { look: self.looks, ..binding });
        found
    }
}

impl Binding {
    fn first(locator: Locator, table: &impl ProcessTable) -> Self {
        let mut stamp = None;
        let found = match &locator {
            Locator::Pid { pid, start, written } => by_pid(table, *pid, *start, *written),
            Locator::PidFile(file) => {
                let now = Stamp::of(file).ok();
                match by_file(table, file, now) {
                    Ok(found) => {
                        stamp = now;
                        found
                    }
                    Err(why) => Found::NotSeen(why),
                }
            }
            Locator::Match(pattern) => by_command(pattern, table.processes()),
            Locator::Elsewhere => Found::NotSeen("it has no process on this machine".to_owned()),
            Locator::Exactly { machine, id } => {
                let here = table.machine();
                if machine.boot_id != here.boot_id {
                    Found::Nothing("the machine was started anew since".to_owned())
                } else if machine.pid_namespace != here.pid_namespace {
                    Found::Unreadable("declared in another pid namespace".to_owned())
                } else {
                    Found::Process(*id, None)
                }
            }
        };
        Self { searched: !matches!(found, Found::Process(..)), locator, found, stamp, look: 0 }
    }

    fn again(mut self, table: &impl ProcessTable, fresh: &[ProcessId]) -> Self {
        match &self.locator {
            // The first look decides: what has the pid later is another process.
            Locator::Pid { .. } | Locator::Exactly { .. } | Locator::Elsewhere => {}
            Locator::PidFile(file) => {
                let stamp = Stamp::of(file).ok();
                if stamp.is_none() || stamp != self.stamp {
                    self.stamp = follow(&mut self.found, table, file, stamp);
                }
            }
            Locator::Match(_) if matches!(self.found, Found::Process(id, _) if is_alive(table, id)) => {}
            Locator::Match(pattern) => {
                let found = if self.searched {
                    by_command(pattern, fresh.iter().filter_map(|id| table.get(id.pid)))
                } else {
                    by_command(pattern, table.processes())
                };
                self.searched = !matches!(found, Found::Process(..));
                if !self.searched {
                    self.found = found;
                }
            }
        }
        self
    }
}

/// Reads a pid file that is another one now, or was not understood when it was read last. Returns the stamp of one that
/// was understood.
fn follow(found: &mut Found, table: &impl ProcessTable, file: &Path, stamp: Option<Stamp>) -> Option<Stamp> {
    match (by_file(table, file, stamp), &mut *found) {
        (Ok(now), _) => {
            *found = now;
            return stamp;
        }
        // A daemon that ends takes its pid file away, and one that starts writes it in two steps: what is known of its
        // process still holds, be it alive or not.
        (Err(why), Found::Process(_, note)) => *note = Some(why),
        (Err(why), Found::NotSeen(before)) => *before = why,
        (Err(_), Found::Nothing(_) | Found::Unreadable(_)) => {}
    }
    None
}

/// The process that has the pid now, unless it cannot be the one that was meant when the pid was written down.
fn by_pid(table: &impl ProcessTable, pid: u32, start: Option<u64>, written: Written) -> Found {
    let Some(process) = table.get(pid) else {
        return match table.state_of(ProcessId { pid, start: start.unwrap_or_default() }) {
            Liveness::Unreadable => Found::Unreadable(format!("process {pid} may not be seen by this user")),
            _ => Found::Nothing(format!("there is no process {pid}")),
        };
    };
    if start.is_some_and(|start| start != process.id.start) {
        return Found::Nothing(format!("process {pid} is another one: its start is {}", process.id.start));
    }
    let is_younger = written.at_ms.is_some_and(|written| process.started_at_ms > written.saturating_add(DRIFT_MS));
    if start.is_none() && is_younger {
        return Found::Nothing(format!("process {pid} is another one: it started after its pid was written down"));
    }
    let user = match &process.details {
        Details::Read(program) => program.uid,
        Details::Pending => None,
    };
    if written.uid.is_some_and(|writer| user.is_some_and(|user| user != writer)) {
        return Found::Nothing(format!("process {pid} is another one: it is of another user"));
    }
    Found::Process(process.id, None)
}

/// The process whose pid a file holds, or why it says nothing.
fn by_file(table: &impl ProcessTable, file: &Path, stamp: Option<Stamp>) -> Result<Found, String> {
    let read = read_small_text(file, LONGEST_PID_FILE).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    });
    let pid = read.and_then(|text| text.trim().parse().map_err(|_| "holds no pid".to_owned()));
    let pid = pid.map_err(|why| format!("pid file {}: {why}", file.display()))?;
    let written = Written { at_ms: stamp.and_then(|stamp| stamp.modified_ms()), uid: None };
    Ok(by_pid(table, pid, None, written))
}

/// The oldest process whose command line matches. This program itself is not meant: the pattern may stand in its own.
fn by_command<'a>(pattern: &Regex, among: impl Iterator<Item = &'a Process>) -> Found {
    let matches = |process: &&Process| {
        let Details::Read(program) = &process.details else { return false };
        process.id.pid != std::process::id()
            && process.state != ProcessState::Zombie
            && program.argv.as_ref().is_ok_and(|argv| !argv.is_empty() && pattern.is_match(&argv.join(" ")))
    };
    let mut found: Vec<ProcessId> = among.filter(matches).map(|process| process.id).collect();
    found.sort_unstable_by_key(|id| (id.start, id.pid));
    match found.as_slice() {
        [] => Found::NotSeen("no process matches".to_owned()),
        [only] => Found::Process(*only, None),
        [oldest, others @ ..] => {
            let count = others.len() + 1;
            Found::Process(*oldest, Some(format!("{count} processes match; this is the oldest")))
        }
    }
}

fn is_alive(table: &impl ProcessTable, id: ProcessId) -> bool {
    matches!(table.state_of(id), Liveness::Alive | Liveness::Unreadable)
}
