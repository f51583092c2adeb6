//! What the registry is to know of a run and does not yet: kept, and passed on to whoever keeps the agent, until it is written.

use crate::store::runs::RunEnd;
use serde::{Deserialize, Serialize};

/// One thing that is to be written, as it was when it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// The agent was started as the process with this pid and raw start token.
    Begun {
        /// The pid.
        pid: u32,
        /// The start token.
        start: u64,
        /// Unix milliseconds.
        at_ms: u64,
    },
    /// The agent has ended.
    Ended(RunEnd),
    /// The agent was started again, so often; as this process the last time.
    StartedAgain {
        /// How often.
        times: u32,
        /// The pid.
        pid: u32,
        /// The start token.
        start: u64,
        /// Unix milliseconds.
        at_ms: u64,
    },
    /// Another process keeps it: the one that writes this.
    Kept,
    /// It could not be started.
    Forgotten,
}

/// Entries in the order in which they are to be written. However long nothing can be written, there are few.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten(Vec<Entry>);

impl Unwritten {
    /// Adds an entry. Of ends only the last counts, and starts are counted.
    pub fn push(&mut self, entry: Entry) {
        let mut entry = entry;
        match &mut entry {
            Entry::Ended(_) => self.0.retain(|old| !matches!(old, Entry::Ended(_))),
            Entry::StartedAgain { times, .. } => self.0.retain(|old| match old {
                Entry::StartedAgain { times: before, .. } => {
                    *times = times.saturating_add(*before);
                    false
                }
                _ => true,
            }),
            Entry::Kept => self.0.retain(|old| *old != Entry::Kept),
            Entry::Forgotten => {
                let is_unknown = self.0.iter().any(|old| matches!(old, Entry::Begun { .. }));
                self.0.clear();
                if is_unknown {
                    return;
                }
            }
            Entry::Begun { .. } => {}
        }
        self.0.push(entry);
    }

    /// What is to be written next.
    pub fn first(&self) -> Option<Entry> {
        self.0.first().cloned()
    }

    /// The first is written; one of the starts, where it is those.
    pub fn is_written(&mut self) {
        match self.0.first_mut() {
            Some(Entry::StartedAgain { times, .. }) if *times > 1 => *times -= 1,
            Some(_) => drop(self.0.remove(0)),
            None => {}
        }
    }

    /// Whether all is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let ended = (0..9_i32).prop_map(|code| Entry::Ended(RunEnd { exit_code: code, at_ms: 1, ..RunEnd::default() }));
        let again = (1..9_u32).prop_map(|pid| Entry::StartedAgain { times: 1, pid, start: 2, at_ms: 3 });
        prop::collection::vec(prop_oneof![ended, again, Just(Entry::Kept)], 0..40)
    }

    /// What is written in the end: how it last ended, as what it last ran, how often it was started, and whether it runs.
    fn outcome(entries: &[Entry]) -> (Option<i32>, Option<u32>, u32, bool) {
        entries.iter().fold((None, None, 0, true), |(code, process, count, runs), entry| match entry {
            Entry::Ended(end) => (Some(end.exit_code), process, count, false),
            Entry::StartedAgain { times, pid, .. } => (code, Some(*pid), count + times, true),
            _ => (code, process, count, runs),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_comes_late_says_the_same_and_is_short(entries in entries()) {
            let mut late = Unwritten::default();
            late.push(Entry::Begun { pid: 1, start: 2, at_ms: 3 });
            entries.iter().for_each(|entry| late.push(entry.clone()));
            prop_assert!(late.0.len() <= 4, "{:?}", late);
            let is_begun = matches!(late.first(), Some(Entry::Begun { .. }));
            prop_assert!(is_begun);
            let mut written = Vec::new();
            while let Some(entry) = late.first() {
                written.push(match entry {
                    Entry::StartedAgain { pid, start, at_ms, .. } => Entry::StartedAgain { times: 1, pid, start, at_ms },
                    other => other,
                });
                late.is_written();
            }
            prop_assert_eq!(outcome(&written), outcome(&entries));
        }
    }

    #[test]
    fn what_nobody_knows_of_need_not_be_forgotten() {
        let mut unwritten = Unwritten::default();
        unwritten.push(Entry::Begun { pid: 1, start: 2, at_ms: 3 });
        unwritten.push(Entry::Forgotten);
        assert!(unwritten.is_empty());
        unwritten.push(Entry::Forgotten);
        assert_eq!(unwritten.first(), Some(Entry::Forgotten));
    }
}
