//! How often something may be done: a bucket of tokens that fills by itself.

use crate::clock::Clock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A bucket of tokens.
pub struct Bucket {
    clock: Arc<dyn Clock>,
    /// Tokens that come in a second.
    rate: f64,
    /// Tokens that it holds.
    size: f64,
    level: Mutex<Level>,
}

struct Level {
    tokens: f64,
    /// When that was so, on the steady clock.
    at: Duration,
}

impl Bucket {
    /// A full bucket of this size, into which so many tokens come in a second.
    pub fn new(clock: Arc<dyn Clock>, rate: impl Into<f64>, size: impl Into<f64>) -> Self {
        let (rate, size) = (rate.into(), size.into());
        let level = Mutex::new(Level { tokens: size, at: clock.now().steady });
        Self { clock, rate, size, level }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// How long to wait for one, where there is none.
    pub fn take(&self) -> Result<(), Duration> {
        let mut level = self.level();
        if level.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - level.tokens) / self.rate));
        }
        level.tokens -= 1.0;
        Ok(())
    }

    /// Whether it holds as many as it can: as if nobody had ever taken one.
    pub fn is_full(&self) -> bool {
        self.level().tokens >= self.size
    }

    /// What it holds now.
    fn level(&self) -> MutexGuard<'_, Level> {
        let now = self.clock.now().steady;
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let came = now.saturating_sub(level.at).as_secs_f64() * self.rate;
        *level = Level { tokens: (level.tokens + came).min(self.size), at: now };
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_bucket_gives_what_it_holds_and_then_what_comes() {
        let clock = Arc::new(ManualClock::at(0));
        let bucket = Bucket::new(Arc::clone(&clock) as Arc<dyn Clock>, 2, 3);
        assert!(bucket.is_full());
        assert_eq!((0..5).filter(|_| bucket.take().is_ok()).count(), 3);
        assert!(!bucket.is_full());
        assert_eq!(bucket.take(), Err(Duration::from_millis(500)));
        clock.advance(Duration::from_millis(500));
        assert_eq!((bucket.take().is_ok(), bucket.take().is_ok()), (true, false));
        clock.advance(Duration::from_secs(3600));
        assert_eq!((0..5).filter(|_| bucket.take().is_ok()).count(), 3, "it holds no more than its size");
    }
}
