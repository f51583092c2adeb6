//! The decision log: what the policies made of what, in `decisions.jsonl`. Off unless it is configured.

use super::Seen;
use crate::config;
use crate::report::Decision;
use crate::store::log::{Keeping, Log, LogStats};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use std::path::Path;
use std::sync::Arc;

/// How many decisions wait for the disk at most; each holds its facts.
const QUEUE: usize = 64;

/// The decision log of this process.
#[derive(Debug)]
pub struct Decisions(Log<Line>);

/// A decision, written out on the log's own thread.
#[derive(Debug)]
struct Line(Arc<Seen>);

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Decision::new(&self.0.facts, &self.0.judgement).map_err(S::Error::custom)?.serialize(to)
    }
}

impl Decisions {
    /// Starts a log in `dir`. It never fails: what is wrong stands in [`Decisions::stats`].
    pub fn open(dir: &Path, config::Decisions { enabled, max_bytes, keep }: config::Decisions) -> Self {
        Self(Log::open(dir, Keeping { name: "decisions", enabled, max_bytes, keep, queue: QUEUE }))
    }

    /// Keeps a decision. It returns at once and cannot fail.
    pub fn record(&self, seen: &Arc<Seen>) {
        self.0.record(Line(Arc::clone(seen)));
    }

    /// What became of the decisions so far.
    pub fn stats(&self) -> LogStats {
        self.0.stats()
    }
}
