//! Several processes, one agent: launchers, shims and re-execs.
//!
//! Some agents start themselves a second time with other options for their interpreter, some are started by a script
//! that waits for the real program, and version managers put a shim before both. Each such chain is one agent, and
//! its topmost process is the row. An agent that another agent runs as a tool is none of that: a shell stands
//! between them, or it was given something else to do.

use super::Sighting;
use super::command::file_name;
use crate::observe::processes::{ProcessId, Program};
use std::collections::HashMap;

/// For every process of a chain, the topmost one.
#[derive(Debug, Default)]
pub struct Heads(HashMap<ProcessId, ProcessId>);

impl Heads {
    /// Puts the sightings together to chains.
    pub fn new(sightings: &[Sighting]) -> Self {
        let by_pid: HashMap<u32, &Sighting> = sightings.iter().map(|sighting| (sighting.id.pid, sighting)).collect();
        let mut heads = HashMap::new();
        for sighting in sightings {
            let mut head = sighting;
            // A table that is read while processes come and go can show a circle of parents.
            for _ in 0..sightings.len() {
                match by_pid.get(&head.parent) {
                    Some(parent) if continues(parent, head) => head = parent,
                    _ => break,
                }
            }
            heads.insert(sighting.id, head.id);
        }
        Self(heads)
    }

    /// The topmost process of the chain that this one belongs to; itself where it belongs to none.
    pub fn head(&self, of: ProcessId) -> ProcessId {
        self.0.get(&of).copied().unwrap_or(of)
    }

    /// Whether this process is an agent's row.
    pub fn is_head(&self, id: ProcessId) -> bool {
        self.head(id) == id
    }
}

/// Whether `child` is the same agent as its parent.
fn continues(parent: &Sighting, child: &Sighting) -> bool {
    parent.id != child.id
        && !are_of_two(&parent.program, &child.program)
        && parent.recognised.kind == child.recognised.kind
        && (parent.recognised.launcher || (given(parent) == given(child) && same_folder(parent, child)))
}

/// What the agent was given, without its interpreter and that one's options. `None`: cannot be read, equals nothing.
fn given(sighting: &Sighting) -> Option<&[String]> {
    sighting.program.argv.as_ref().ok()?.get(sighting.recognised.args_from..)
}

/// Whether two programs are run by different users, as far as that is known: then they are no one's one agent.
pub fn are_of_two(one: &Program, other: &Program) -> bool {
    matches!((one.uid, other.uid), (Some(one), Some(other)) if one != other)
}

fn same_folder(parent: &Sighting, child: &Sighting) -> bool {
    match (&parent.program.cwd, &child.program.cwd) {
        (Ok(parent), Ok(child)) => parent == child,
        _ => true,
    }
}

/// Whether a program that is no agent itself only runs this one: its command line ends with the agent's, as that of
/// `timeout 600 claude -p …` or `headcount run … -- claude -p …` does.
pub fn wraps(wrapper: &Program, agent: &Sighting) -> bool {
    let (Ok(outer), Ok(inner)) = (&wrapper.argv, &agent.program.argv) else { return false };
    let Some(given) = given(agent) else { return false };
    let Some(named_at) = outer.len().checked_sub(given.len() + 1).filter(|at| *at > 0) else { return false };
    // The kernel puts a script's interpreter before it, so the name is the script's or the program's.
    let command = &inner[..inner.len() - given.len()];
    outer[named_at + 1..] == *given
        && [command.first(), command.last()]
            .into_iter()
            .flatten()
            .any(|slot| file_name(slot) == file_name(&outer[named_at]))
}
