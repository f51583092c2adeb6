//! The process table as a port: tests put a made-up one in its place.

use super::processes::{ListError, Liveness, Machine, Process, ProcessId, Reading, Sampler};
use std::collections::HashMap;

/// What is asked of the process table. [`Sampler`] says what each answer means.
pub trait ProcessTable {
    /// Looks at the processes anew.
    ///
    /// # Errors
    /// They cannot be listed; what was known before stays.
    fn refresh(&mut self) -> Result<(), ListError>;

    /// All processes of the last look.
    fn processes(&self) -> impl Iterator<Item = &Process>;

    /// The process that had this pid at the last look.
    fn get(&self, pid: u32) -> Option<&Process>;

    /// Whether this very process is alive now.
    fn state_of(&self, id: ProcessId) -> Liveness;

    /// Learns which tags are recorded as whose. A table that does not tell trees apart has no use for it.
    fn know_tags(&mut self, _tags: HashMap<String, ProcessId>) {}

    /// One reading for each root.
    fn measure(&mut self, roots: &[ProcessId]) -> Vec<Reading>;

    /// How many processes have not said yet what they run.
    fn unread(&self) -> usize;

    /// What all its processes have in common.
    fn machine(&self) -> &Machine;

    /// Logical CPUs.
    fn cores(&self) -> u32;
}

impl ProcessTable for Sampler {
    fn refresh(&mut self) -> Result<(), ListError> {
        Self::refresh(self)
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        Self::processes(self)
    }

    fn get(&self, pid: u32) -> Option<&Process> {
        Self::get(self, pid)
    }

    fn state_of(&self, id: ProcessId) -> Liveness {
        Self::state_of(self, id)
    }

    fn know_tags(&mut self, tags: HashMap<String, ProcessId>) {
        Self::know_tags(self, tags);
    }

    fn measure(&mut self, roots: &[ProcessId]) -> Vec<Reading> {
        Self::measure(self, roots)
    }

    fn unread(&self) -> usize {
        Self::unread(self)
    }

    fn machine(&self) -> &Machine {
        Self::machine(self)
    }

    fn cores(&self) -> u32 {
        Self::cores(self)
    }
}
