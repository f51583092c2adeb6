//! What ticks cost.

use super::{Tick, Watcher};
use crate::figures::Durations;
use crate::store::log::LogStats;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What the ticks of one monitor have cost so far.
#[derive(Debug, Default)]
pub struct Figures {
    /// How long observing took.
    pub observe: Durations,
    /// How long judging all sessions took.
    pub judge: Durations,
    processes: AtomicUsize,
    decisions: Mutex<LogStats>,
}

impl Figures {
    /// Notes a tick.
    pub(super) fn note(&self, tick: &Tick, watcher: &Watcher) {
        self.observe.note(tick.timings.observe);
        self.judge.note(tick.timings.judge);
        self.processes.store(watcher.processes(), Relaxed);
        *self.decisions.lock().unwrap_or_else(PoisonError::into_inner) = watcher.decided();
    }

    /// How many processes the latest tick has seen.
    pub fn processes(&self) -> usize {
        self.processes.load(Relaxed)
    }

    /// What had become of the decisions at the latest tick.
    pub fn decisions(&self) -> LogStats {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
