//! The agents that run inside a conversation. They are threads of its process, and each has a transcript.

use super::conversation::Recent;
use super::turn::DRIFT_MS;
use crate::clock::Moment;
use crate::observe::records::folder::Folder;
use crate::observe::records::tail::{Budget, Unreadable};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How much of a transcript's end is read.
const PEEK: u64 = 64 << 10;

/// How many files the folder may have; each agent has two.
const MOST_FILES: usize = 4_000;

/// How soon the folder is listed again, and those that have nothing to do are looked at again.
const EVERY: Duration = Duration::from_secs(5);

/// The transcripts of those agents.
#[derive(Debug)]
pub struct Inside {
    folder: Folder,
    /// Why it is not known how many of them work.
    failed: Option<Unreadable>,
    transcripts: BTreeMap<String, Recent>,
    /// When those that have nothing to do are looked at again, on the steady clock.
    due: Duration,
}

impl Inside {
    /// Those with transcripts in this folder; nothing is read yet.
    pub fn new(folder: PathBuf) -> Self {
        let folder = Folder::new(folder, MOST_FILES, EVERY);
        Self { folder, failed: None, transcripts: BTreeMap::new(), due: Duration::ZERO }
    }

    /// Reads what goes on now. What was written before the process started is left alone: it is not this process that did.
    pub fn glance(&mut self, budget: &mut Budget, now: Moment, started_at_ms: u64) {
        self.list(now);
        let all = now.steady >= self.due;
        if all {
            self.due = now.steady + EVERY;
        }
        let is_of =
            |recent: &Recent| recent.written_ms().is_some_and(|at| at.saturating_add(DRIFT_MS) >= started_at_ms);
        for recent in self.transcripts.values_mut() {
            let is_due = all || recent.is_behind() || recent.turn.is_open_since(started_at_ms);
            if is_due && is_of(recent) {
                recent.read(budget, now);
                if recent.is_behind() {
                    self.failed = Some(Unreadable::because("still reading"));
                }
            }
        }
    }

    fn list(&mut self, now: Moment) {
        let path = self.folder.path().to_owned();
        match self.folder.names(now, |name| name.starts_with("agent-") && name.ends_with(".jsonl")) {
            Ok(names) => {
                self.failed = None;
                self.transcripts.retain(|name, _| names.binary_search(name).is_ok());
                for name in names {
                    let new = || Recent::inside(path.join(name), PEEK);
                    self.transcripts.entry(name.clone()).or_insert_with(new);
                }
            }
            Err(why) => self.failed = Some(why),
        }
    }

    /// How many of them work.
    ///
    /// # Errors
    /// Their folder cannot be listed, or not all are read.
    pub fn open(&self, started_at_ms: u64) -> Result<u32, Unreadable> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let open = self.transcripts.values().filter(|recent| recent.turn.is_open_since(started_at_ms)).count();
        Ok(u32::try_from(open).unwrap_or(u32::MAX))
    }
}
