//! Something that has to work and now and then does not, as the log tells of it: once when it fails, or fails for another reason, and
//! once when it works again. Whoever asks meanwhile may be many.

use crate::clock::Clock;
use crate::text::Wait;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether something works.
pub(super) struct Trouble {
    /// What is said of it where it does not.
    what: String,
    clock: Arc<dyn Clock>,
    is_there: AtomicBool,
    now: Mutex<Option<Failing>>,
}

struct Failing {
    why: String,
    /// On the steady clock.
    since: Duration,
}

impl Trouble {
    /// None so far; `what` says what is so while there is.
    pub fn new(what: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self { what: what.into(), clock, is_there: AtomicBool::new(false), now: Mutex::default() }
    }

    /// It does not work, for this reason. Returns whether that was logged.
    pub fn fails(&self, why: &str) -> bool {
        let mut failing = self.failing();
        let since = failing.as_ref().map_or_else(|| self.clock.now().steady, |known| known.since);
        if failing.as_ref().is_some_and(|known| known.why == why) {
            return false;
        }
        *failing = Some(Failing { why: why.to_owned(), since });
        self.is_there.store(true, Ordering::Relaxed);
        match self.lasted(since) {
            Duration::ZERO => tracing::error!("{}: {why}", self.what),
            lasted => tracing::error!("{}, for {} now: {why}", self.what, Wait(lasted)),
        }
        true
    }

    /// It works. For how long it did not, where that is over now.
    pub fn works(&self) -> Option<Duration> {
        if !self.is_there.load(Ordering::Relaxed) {
            return None;
        }
        let over = self.failing().take()?;
        self.is_there.store(false, Ordering::Relaxed);
        let lasted = self.lasted(over.since);
        tracing::warn!("it is over, after {}, that {}", Wait(lasted), self.what);
        Some(lasted)
    }

    fn lasted(&self, since: Duration) -> Duration {
        self.clock.now().steady.saturating_sub(since)
    }

    fn failing(&self) -> MutexGuard<'_, Option<Failing>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn each_change_is_told_once_with_how_long_it_has_lasted() {
        let clock = Arc::new(ManualClock::at(0));
        let trouble = Trouble::new("nothing goes", Arc::clone(&clock) as Arc<dyn Clock>);
        assert_eq!(trouble.works(), None);
        assert!(trouble.fails("no disk"));
        assert_eq!((0..1000).filter(|_| trouble.fails("no disk")).count(), 0);
        clock.advance(Duration::from_secs(60));
        assert!(trouble.fails("no power"));
        clock.advance(Duration::from_secs(30));
        assert_eq!((trouble.works(), trouble.works()), (Some(Duration::from_secs(90)), None));
        assert!(trouble.fails("no power"), "it is news again");
    }
}
