//! The facts: what this machine shows of its agents. Nothing here decides what they mean.
//!
//! [`Observer`] puts them together: [`processes`] lists and measures, [`agents`] recognises, [`sessions`] says where
//! each agent works, [`records`] what agents say of themselves, [`roster`] what was declared, and the census keeps what was settled when an agent was first seen.

pub mod agents;
mod assembly;
mod census;
pub mod facts;
mod ids;
pub mod processes;
pub mod records;
pub mod roster;
mod runs;
mod seats;
pub mod sessions;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use agents::KindError;
pub use ids::{folder_name, free, is_found, session_id, unplaced_id};
pub use table::ProcessTable;

use crate::clock::{Clock, Moment};
use crate::config::Config;
use crate::names::Instance;
use agents::Kinds;
use assembly::Sessions;
use census::Census;
use facts::{Snapshot, SourceState};
use processes::{ListError, Sampler};
use records::Readers;
use roster::retained::RetainedSource;
use roster::{FileSource, Rosters, Source};
use std::sync::Arc;

/// A parser for fuzzing: its name, and what it lets out of bytes that come in these pieces, as text.
#[doc(hidden)]
pub type Parser = (&'static str, fn(&[&[u8]]) -> String);

/// Observes the agents of this machine.
pub struct Observer<T = Sampler> {
    clock: Arc<dyn Clock>,
    table: T,
    census: Census,
    rosters: Rosters,
    sessions: Sessions,
    readers: Readers,
    /// When the processes were last listed; `None`: they never were.
    listed: Option<Moment>,
    sources: Vec<SourceState>,
}

impl<T: ProcessTable> Observer<T> {
    /// An observer that has not looked yet. Rosters are those of the configuration and then `rosters`: where several
    /// say something about the same thing, the first counts.
    ///
    /// # Errors
    /// A kind of agent in the configuration that cannot be used.
    pub fn new(
        clock: Arc<dyn Clock>,
        table: T,
        config: &Config,
        rosters: Vec<Box<dyn Source>>,
        readers: Readers,
    ) -> Result<Self, KindError> {
        let files = config.rosters.iter().map(|file| Box::new(FileSource::new(file.clone())) as Box<dyn Source>);
        let (worktrees, machine) = (config.sessions.worktrees, table.machine());
        let retained = config.retained.iter().map(|setting| {
            let source = RetainedSource::new(setting.clone(), worktrees, machine.clone(), Arc::clone(&clock));
            Box::new(source) as Box<dyn Source>
        });
        let rosters = Rosters::new(files.chain(rosters).chain(retained).collect());
        let kinds = Kinds::new(&config.kinds)?;
        Ok(Self {
            clock,
            table,
            census: Census::new(kinds, worktrees, config.sampling.keep_ended.0),
            rosters,
            sessions: Sessions::default(),
            readers,
            listed: None,
            sources: Vec::new(),
        })
    }

    /// The same, as the headcount that this is: its reports say so.
    #[must_use]
    pub fn known_as(mut self, instance: Instance) -> Self {
        self.sessions.observed_by(instance);
        self
    }

    /// Looks once: all sessions by id, their agents in the order of their start.
    ///
    /// Never fails as a whole: what cannot be read is said in the snapshots' sources and agents, and the rest is there.
    /// While the processes cannot be listed, all figures are those of the last time that they could.
    pub fn observe(&mut self) -> Vec<Snapshot> {
        let failure = self.table.refresh().err();
        let now = self.clock.now();
        if failure.is_none() {
            self.listed = Some(now);
            self.census.look(&self.table);
        }
        let declared = self.rosters.look(&self.table, &mut self.census, self.listed.is_some());
        self.sources = self.rosters.sources().to_vec();
        let error = failure.as_ref().map(ListError::to_string).or_else(|| unread(self.table.unread()));
        self.sources.insert(0, SourceState { name: "processes".to_owned(), error, ..SourceState::default() });
        self.census.sweep(&self.table, now.steady);
        self.table.know_tags(declared.tags());
        self.sessions.gather(declared, &mut self.census);
        let subjects = self.sessions.subjects(&self.census, &self.table);
        self.sessions.hear(&self.readers.read(subjects, self.census.programs(), now));
        let at = self.listed.unwrap_or(now);
        self.sessions.snapshots(&mut self.table, at.unix_ms, &self.sources)
    }

    /// Where the facts of the last look came from, and what failed; also where there is no session to say it.
    pub fn sources(&self) -> &[SourceState] {
        &self.sources
    }

    /// What can be read of what agents say of themselves, and of which kinds.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The process table, for what it can say besides the sessions.
    pub fn table(&self) -> &T {
        &self.table
    }
}

/// What is to be said where not every process is known: an agent may be among those.
fn unread(processes: usize) -> Option<String> {
    (processes > 0).then(|| format!("{processes} of them have not said yet what they run; an agent may be among them"))
}
