//! The only reader of clocks. Everything that needs the time is given a [`Clock`], so that tests can turn it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Unix time in milliseconds: for showing and for comparing with other programs' records. It may jump.
    pub unix_ms: u64,
    /// Time on a clock that never jumps, from an arbitrary start: for every difference of times.
    pub steady: Duration,
}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Moment;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX), steady: self.start.elapsed() }
    }
}

/// A clock that stands still until a test turns it.
#[derive(Debug)]
pub struct ManualClock(Mutex<Moment>);

impl ManualClock {
    /// A clock that shows `unix_ms` and a steady time of zero.
    pub fn at(unix_ms: u64) -> Self {
        Self(Mutex::new(Moment { unix_ms, steady: Duration::ZERO }))
    }

    /// Turns both clocks forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.steady += by;
        now.unix_ms += u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets the wall clock alone, as people and time servers do.
    pub fn set(&self, unix_ms: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unix_ms = unix_ms;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
