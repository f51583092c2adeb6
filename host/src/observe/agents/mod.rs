//! Agents among the processes: which processes are agents, and which of them are one agent together.

mod chain;
mod command;
mod kinds;
#[cfg(test)]
mod tests;

pub use chain::{Heads, are_of_two, wraps};
pub use kinds::{KindError, Kinds, Recognised};

use super::facts::ProcessState;
use super::processes::{Details, Process, ProcessId, Program};
use std::collections::HashMap;
use std::sync::Arc;

/// A process that was recognised as an agent, or as part of starting one.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Which process.
    pub id: ProcessId,
    /// Its parent's pid.
    pub parent: u32,
    /// What it was recognised by.
    pub program: Arc<Program>,
    /// What it was recognised as.
    pub recognised: Recognised,
}

/// Looks at every process once, and again only when it runs another program.
#[derive(Debug)]
pub struct Recogniser {
    kinds: Kinds,
    seen: HashMap<u32, Seen>,
    looks: u64,
}

/// What is remembered of a process.
#[derive(Debug)]
struct Seen {
    id: ProcessId,
    /// The program that the answer is about. Held, not compared by address alone: an address is used again.
    program: Option<Arc<Program>>,
    recognised: Option<Recognised>,
    /// Whether it runs an agent's program, be it one or not.
    runs_agent: bool,
    /// The look that saw it last.
    look: u64,
}

/// What one look at the table found.
#[derive(Debug, Default)]
pub struct Look {
    /// Every recognised process, in the table's order.
    pub sightings: Vec<Sighting>,
    /// All processes that run an agent's program, also those that are no agents: servers, and those that another drives.
    pub programs: Vec<ProcessId>,
    /// Processes that run a program which no look before saw them run.
    pub fresh: Vec<ProcessId>,
}

impl Recogniser {
    /// A recogniser that has seen nothing yet.
    pub fn new(kinds: Kinds) -> Self {
        Self { kinds, seen: HashMap::new(), looks: 0 }
    }

    /// Goes through the table.
    pub fn look<'a>(&mut self, processes: impl IntoIterator<Item = &'a Process>) -> Look {
        self.looks += 1;
        let mut look = Look::default();
        let mut count = 0;
        for process in processes {
            count += 1;
            let seen = self.seen.entry(process.id.pid).or_insert_with(|| Seen::new(process.id));
            if seen.id != process.id {
                *seen = Seen::new(process.id);
            }
            seen.look = self.looks;
            if seen.update(process, &self.kinds) {
                look.fresh.push(process.id);
            }
            if seen.runs_agent {
                look.programs.push(process.id);
            }
            if let (Some(recognised), Some(program)) = (&seen.recognised, &seen.program) {
                look.sightings.push(Sighting {
                    id: process.id,
                    parent: process.parent,
                    program: Arc::clone(program),
                    recognised: recognised.clone(),
                });
            }
        }
        if self.seen.len() > count {
            self.seen.retain(|_, seen| seen.look == self.looks);
        }
        look
    }
}

impl Seen {
    fn new(id: ProcessId) -> Self {
        Self { id, program: None, recognised: None, runs_agent: false, look: 0 }
    }

    /// Looks again if the process runs another program than last time; `true` if so. A zombie shows nothing any more
    /// and stays what it was; details that are not read yet change nothing either.
    fn update(&mut self, process: &Process, kinds: &Kinds) -> bool {
        let Details::Read(program) = &process.details else { return false };
        let same = self.program.as_ref().is_some_and(|known| Arc::ptr_eq(known, program));
        if same || process.state == ProcessState::Zombie {
            return false;
        }
        self.program = Some(Arc::clone(program));
        self.recognised = kinds.recognise(program, &process.comm);
        self.runs_agent = self.recognised.is_some() || kinds.is_program(program);
        true
    }
}
