//! What agents say of themselves: their own records, and the events that they send. One file for each kind of agent,
//! each a parser over bytes that knows no files, and a thin reader.
//!
//! Everything is read and nothing written. Records are matched to processes by identity, never by folder or by which file is
//! newest; what cannot be decided is said, and no claim is made. Prompts, tool inputs and command lines never leave a reader.

pub mod claude;
pub mod folder;
pub mod small;
pub mod tail;

use super::facts::{Evidence, Gap, Usage};
use super::processes::{ProcessId, Program};
use crate::clock::Moment;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// An agent whose records are wanted.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What kind it is.
    pub kind: Arc<str>,
    /// Its processes: the root first, then what belongs to the same agent, as the program behind a launcher.
    pub processes: Vec<(ProcessId, Arc<Program>)>,
    /// When its root started, Unix milliseconds.
    pub started_at_ms: u64,
}

/// What was found of one agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Testimony {
    /// Dated statements about what it does.
    pub evidence: Vec<Evidence>,
    /// What it has used.
    pub usage: Option<Usage>,
    /// What could not be found, and why.
    pub unmeasured: Vec<Gap>,
}

/// A reader of records.
pub trait Records: Debug + Send {
    /// Whether it reads the records of this kind.
    fn reads(&self, kind: &str) -> bool;

    /// One testimony for each of the agents, all of kinds that it reads. Called once each tick, on the thread that ticks: what
    /// has not changed is not read again. An agent that is not among them any more is forgotten.
    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony>;
}

/// All readers.
#[derive(Debug, Default)]
pub struct Readers(Vec<Box<dyn Records>>);

impl Readers {
    /// These readers.
    pub fn new(readers: Vec<Box<dyn Records>>) -> Self {
        Self(readers)
    }

    /// What all of them find of the agents that live, by root. Also where there is nobody, so that readers can forget.
    pub fn read(&mut self, subjects: &[Subject], now: Moment) -> HashMap<ProcessId, Testimony> {
        let mut found: HashMap<ProcessId, Testimony> = HashMap::new();
        for reader in &mut self.0 {
            let theirs: Vec<&Subject> = subjects.iter().filter(|subject| reader.reads(&subject.kind)).collect();
            for (subject, said) in theirs.iter().zip(reader.read(&theirs, now)) {
                let Some((root, _)) = subject.processes.first() else { continue };
                let all = found.entry(*root).or_default();
                all.evidence.extend(said.evidence);
                all.unmeasured.extend(said.unmeasured);
                all.usage = said.usage.or(all.usage.take());
            }
        }
        found
    }
}
