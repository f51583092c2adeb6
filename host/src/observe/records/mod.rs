//! What agents say of themselves: their own records, and the events that they send. One file or folder for each kind of
//! agent, each a parser over bytes that knows no files, and a thin reader.
//!
//! Everything is read and nothing written. Records are matched to processes by identity, never by folder or by which file is
//! newest; what cannot be decided is said, and no claim is made. Prompts, tool inputs and command lines never leave a reader.

pub mod claude;
mod codex;
mod copilot;
mod event;
pub mod folder;
mod follow;
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
pub mod hooks;
mod qwen;
pub mod small;
pub mod tail;
#[cfg(test)]
mod tests;
mod value;

pub use codex::Codex;
pub use copilot::Copilot;
pub use gemini::Gemini;
pub use qwen::Qwen;

use super::facts::{Evidence, Gap, Usage};
use super::processes::{ProcessId, Program};
use crate::clock::Moment;
use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
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
    /// The id of the conversation that it is in, where its own events have said so: for records that name no process.
    pub conversation: Option<String>,
}

/// How far a process's start may be off: it is reckoned from the boot, whose time drifts.
const START_SLACK_MS: u64 = 2000;

impl Subject {
    /// Whether what happened then may be its own doing. A record that an agent goes on with tells of earlier processes, too.
    pub fn ran_at(&self, at_ms: u64) -> bool {
        at_ms.saturating_add(START_SLACK_MS) >= self.started_at_ms
    }
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

impl From<Result<Testimony, String>> for Testimony {
    /// Of an agent whose records cannot be found or read, nothing is said but why.
    fn from(found: Result<Self, String>) -> Self {
        found.unwrap_or_else(|why| {
            let gap = |field: &'static str| Gap { field: field.into(), reason: why.clone() };
            Self { unmeasured: ["evidence", "usage"].map(gap).into(), ..Self::default() }
        })
    }
}

/// A reader of records.
pub trait Records: Debug + Send {
    /// Whether it reads the records of this kind.
    fn reads(&self, kind: &str) -> bool;

    /// Learns, before it reads, which processes run an agent's program. Those that are none of the agents' speak for none.
    fn learn(&mut self, _programs: &[ProcessId]) {}

    /// The conversation that each of the agents is in, where this reader knows it. Asked before anybody reads.
    fn conversations(&mut self, subjects: &[&Subject], _now: Moment) -> Vec<Option<String>> {
        vec![None; subjects.len()]
    }

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
    /// `programs` are all processes that run an agent's program.
    pub fn read(
        &mut self,
        mut subjects: Vec<Subject>,
        programs: &[ProcessId],
        now: Moment,
    ) -> HashMap<ProcessId, Testimony> {
        for reader in &mut self.0 {
            reader.learn(programs);
            let (at, theirs): (Vec<_>, Vec<_>) =
                subjects.iter().enumerate().filter(|(_, subject)| reader.reads(&subject.kind)).unzip();
            for (at, known) in at.into_iter().zip(reader.conversations(&theirs, now)) {
                subjects[at].conversation = known.or(subjects[at].conversation.take());
            }
        }
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

/// The folder in which a program keeps its records: what `variable` of its environment names, else `below_home` in the home
/// that it was started with. This program's own environment says nothing of it.
///
/// # Errors
/// Its environment may not be read, or names neither.
fn home_of(program: &Program, variable: &str, below_home: &str) -> Result<PathBuf, String> {
    let unknown = |why: &str| format!("where it keeps its records is not known: {why}");
    let env = program.env.as_ref().map_err(|why| unknown(why))?;
    let value = |name: &str| env.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value);
    let folder = match (value(variable), value("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(home).join(below_home),
        (None, None) => return Err(unknown("it has no home")),
    };
    match &program.cwd {
        _ if folder.is_absolute() => Ok(folder),
        Ok(cwd) => Ok(cwd.join(folder)),
        Err(why) => Err(unknown(why)),
    }
}
