//! The agents that run inside a conversation. They are threads of its process, and each has a transcript.

use super::thread::{Thread, Whose};
use super::transcript::Tokens;
use super::turn::{DRIFT_MS, Ledger};
use crate::clock::Moment;
use crate::observe::records::folder::Folder;
use crate::observe::records::tail::{Budget, Unreadable};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How many files the folder may have; each agent has two.
const MOST_FILES: usize = 4_000;

/// How soon the folder is listed again, and those that have nothing to do are looked at again.
const EVERY: Duration = Duration::from_secs(5);

/// The transcripts of those agents.
#[derive(Debug)]
pub struct Inside {
    folder: Folder,
    /// Why it is not known which there are.
    failed: Option<Unreadable>,
    threads: BTreeMap<String, Thread>,
    /// When those that have nothing to do are looked at again, on the steady clock.
    due: Duration,
}

impl Inside {
    /// Those with transcripts in this folder; nothing is read yet.
    pub fn new(folder: PathBuf) -> Self {
        let folder = Folder::new(folder, MOST_FILES, EVERY);
        Self { folder, failed: None, threads: BTreeMap::new(), due: Duration::ZERO }
    }

    /// Reads what goes on now. Those that were written before the process started do nothing in it.
    pub fn glance(&mut self, budget: &mut Budget, now: Moment, started_at_ms: u64, ledger: &mut Ledger) {
        self.list(now);
        let all = now.steady >= self.due;
        if all {
            self.due = now.steady + EVERY;
        }
        for thread in self.threads.values_mut() {
            let is_due = all || !thread.is_known() || thread.turn().is_open_since(started_at_ms);
            if is_due && is_of(thread, started_at_ms) {
                thread.glance(budget, now, ledger);
            }
        }
    }

    /// Reads on in all of them, also in those from before the process: what they have cost is the conversation's.
    pub fn read_on(&mut self, budget: &mut Budget, now: Moment, ledger: &mut Ledger) {
        for thread in self.threads.values_mut().filter(|thread| thread.is_behind()) {
            thread.read_on(budget, now, ledger);
        }
    }

    fn list(&mut self, now: Moment) {
        let path = self.folder.path().to_owned();
        match self.folder.names(now, |name| name.starts_with("agent-") && name.ends_with(".jsonl")) {
            Ok(names) => {
                self.failed = None;
                self.threads.retain(|name, _| names.binary_search(name).is_ok());
                for name in names {
                    let new = || Thread::new(path.join(name), Whose::Inside);
                    self.threads.entry(name.clone()).or_insert_with(new);
                }
            }
            Err(why) => self.failed = Some(why),
        }
    }

    /// Whether not all of them are read.
    pub fn is_behind(&self) -> bool {
        self.threads.values().any(Thread::is_behind)
    }

    /// Whether another one has taken the place of any of their transcripts.
    pub fn is_replaced(&self) -> bool {
        self.threads.values().any(Thread::is_replaced)
    }

    /// How much is to be read until all of them are.
    pub fn behind(&self) -> u64 {
        self.threads.values().filter(|thread| thread.is_behind()).map(Thread::behind).fold(0, u64::saturating_add)
    }

    /// How many lines were not understood.
    pub fn lost(&self) -> u64 {
        self.threads.values().map(Thread::lost).sum()
    }

    /// How many of them work.
    ///
    /// # Errors
    /// Their folder cannot be listed, or not all of those that may be at work are read.
    pub fn open(&self, started_at_ms: u64) -> Result<u32, Unreadable> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let mut open = 0;
        for thread in self.threads.values() {
            if !thread.is_known() && is_of(thread, started_at_ms) {
                return Err(Unreadable::because("still reading"));
            }
            open += u32::from(thread.turn().is_open_since(started_at_ms));
        }
        Ok(open)
    }

    /// What their messages without an id have cost; the others stand in the ledger.
    ///
    /// # Errors
    /// Not all of them are read, so that the ledger is not whole either.
    pub fn unnamed(&self) -> Result<Tokens, Unreadable> {
        if let Some(why) = self.failed.as_ref().or_else(|| self.threads.values().find_map(Thread::unreadable)) {
            return Err(why.clone());
        }
        if !self.threads.values().all(Thread::is_through) {
            return Err(Unreadable::because(format!("still reading, {} KiB to go", self.behind() >> 10)));
        }
        Ok(self.threads.values().fold(Tokens::default(), |sum, thread| sum.plus(thread.sums().unnamed)))
    }
}

/// Whether something was written to it since the process started.
fn is_of(thread: &Thread, started_at_ms: u64) -> bool {
    thread.written_ms().is_some_and(|at| at.saturating_add(DRIFT_MS) >= started_at_ms)
}
