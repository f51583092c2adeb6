//! When clients and grants that have ended are forgotten: now and then, by the thread that writes down what clients do.
//!
//! What is forgotten does not come back, and the wall clock may be wrong for a while. So none of its jumps ahead makes anything old: it
//! is believed as far as the steady clock has gone on since the look before, and the first look forgets nothing.

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
    /// What was believed last.
    believed: Option<Moment>,
    /// On the steady clock.
    next: Duration,
}

impl Forgetting {
    /// What has ended is remembered for `keep`; `state` has the leases of the servers that live.
    pub fn new(state: PathBuf, keep: Duration) -> Self {
        Self { state, keep, believed: None, next: Duration::ZERO }
    }

    /// Forgets a little, if it is time to. As long as there is more, it is time the next time, too.
    pub fn turn(&mut self, store: &Store, now: Moment) {
        // Where there is no database yet, none is made for this.
        if now.steady < self.next || !store.path().exists() {
            return;
        }
        let Some(now_ms) = self.believe(now) else {
            self.next = now.steady + PAUSE;
            return;
        };
        let oldest_ms = now_ms.saturating_sub(millis(self.keep));
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

    /// What the wall clock shows, as far as it can be believed; `None`: this is the first look at it.
    fn believe(&mut self, now: Moment) -> Option<u64> {
        let before = self.believed.replace(now)?;
        let passed = millis(now.steady.saturating_sub(before.steady));
        let unix_ms = now.unix_ms.min(before.unix_ms.saturating_add(passed));
        self.believed = Some(Moment { unix_ms, ..now });
        Some(unix_ms)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::store::clients::{Client, End, EndReason, NewClient, Wanted, Which};
    use std::collections::{BTreeMap, HashSet};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn a_wall_clock_that_jumps_ahead_makes_nothing_old() {
        let dir = tempfile::tempdir().unwrap();
        let (store, noon) = (Store::at(dir.path()), 1_800_000_000_000);
        let clock = ManualClock::at(noon);
        let client = Client {
            id: "one".into(),
            server: "s".into(),
            who: NewClient { user_id: "ada".into(), ..NewClient::default() },
            connected_at_ms: noon,
            last_activity_at_ms: noon,
            ended: None,
            calls: BTreeMap::new(),
            agents_registered: 0,
        };
        store.record_client(&client).unwrap();
        let over = crate::store::clients::Activity {
            at_ms: noon,
            ended: Some(End { at_ms: noon, reason: EndReason::Closed }),
            ..Default::default()
        };
        store.touch_clients([(&client.id, &over)]).unwrap();
        let is_known = || {
            let wanted = Wanted { whose: "ada".into(), id: None, which: Which::All, now_ms: 0, limit: 9, after: None };
            !store.clients(wanted, &HashSet::new()).unwrap().clients.is_empty()
        };
        // A server that starts while the clock is wrong, and then one that is at work meanwhile.
        let mut forgetting = Forgetting::new(dir.path().to_owned(), 30 * DAY);
        clock.set(noon + millis(400 * DAY));
        forgetting.turn(&store, clock.now());
        clock.set(noon);
        for _ in 0..3 {
            clock.advance(PAUSE);
            forgetting.turn(&store, clock.now());
        }
        clock.set(noon + millis(400 * DAY));
        for _ in 0..3 {
            clock.advance(PAUSE);
            forgetting.turn(&store, clock.now());
        }
        assert!(is_known());
        clock.set(noon);
        forgetting.turn(&store, clock.now());
        clock.advance(31 * DAY);
        forgetting.turn(&store, clock.now());
        assert!(!is_known(), "in its time");
    }
}
