//! When clients and grants that have ended are forgotten: now and then, by the thread that writes down what clients do.

use crate::clock::Moment;
use crate::store::{Store, lease};
use std::path::PathBuf;
use std::time::Duration;

/// How often is looked whether there is anything to forget.
pub(super) const PAUSE: Duration = Duration::from_secs(60);

/// So much is forgotten at a time: whoever writes meanwhile waits some tens of milliseconds at the most.
const STEP: usize = 100;

/// What is to be forgotten, and when that is done next.
pub(super) struct Forgetting {
    state: PathBuf,
    keep: Duration,
    /// On the steady clock.
    next: Duration,
}

impl Forgetting {
    /// What has ended is remembered for `keep`; `state` has the leases of the servers that live.
    pub fn new(state: PathBuf, keep: Duration) -> Self {
        Self { state, keep, next: Duration::ZERO }
    }

    /// Forgets a little, if it is time to. As long as there is more, it is time the next time, too.
    pub fn turn(&mut self, store: &Store, now: Moment) {
        // Where there is no database yet, none is made for this.
        if now.steady < self.next || !store.path().exists() {
            return;
        }
        let keep_ms = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
        let oldest_ms = now.unix_ms.saturating_sub(keep_ms);
        let forgotten = lease::living(&self.state)
            .map_err(|error| error.to_string())
            .and_then(|living| store.forget(&living, oldest_ms, STEP).map_err(|error| error.to_string()));
        let is_all = forgotten.unwrap_or_else(|error| {
            tracing::warn!("what has ended long ago is still there: {error}");
            true
        });
        if is_all {
            self.next = now.steady + PAUSE;
        }
    }
}
