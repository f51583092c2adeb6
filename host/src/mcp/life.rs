//! Whether something is in use, and since when it is not: what nobody uses for long is ended.

use crate::clock::Clock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The use that is made of something.
pub(super) struct Life {
    clock: Arc<dyn Clock>,
    using: Mutex<Using>,
}

struct Using {
    now: usize,
    /// On the steady clock.
    last: Duration,
}

/// One use; it is over when this is dropped.
pub(super) struct Held(Arc<Life>);

impl Life {
    /// Something that was used just now.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let last = clock.now().steady;
        Arc::new(Self { clock, using: Mutex::new(Using { now: 0, last }) })
    }

    /// Uses it.
    pub fn hold(self: &Arc<Self>) -> Held {
        self.using().now += 1;
        Held(Arc::clone(self))
    }

    /// For how long nobody has used it; `None`: somebody does.
    pub fn unused_for(&self) -> Option<Duration> {
        let now = self.clock.now().steady;
        let using = self.using();
        (using.now == 0).then(|| now.saturating_sub(using.last))
    }

    fn using(&self) -> MutexGuard<'_, Using> {
        self.using.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let now = self.0.clock.now().steady;
        let mut using = self.0.using();
        using.now -= 1;
        using.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn what_is_in_use_is_not_idle_and_the_last_use_counts() {
        let clock = Arc::new(ManualClock::at(0));
        let life = Life::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let pass = || clock.advance(Duration::from_secs(1));
        pass();
        assert_eq!(life.unused_for(), Some(Duration::from_secs(1)));
        let (one, other) = (life.hold(), life.hold());
        pass();
        drop(one);
        pass();
        assert_eq!(life.unused_for(), None);
        drop(other);
        assert_eq!(life.unused_for(), Some(Duration::ZERO));
        pass();
        clock.set(3_600_000);
        assert_eq!(life.unused_for(), Some(Duration::from_secs(1)), "what the wall clock shows means nothing");
    }
}
