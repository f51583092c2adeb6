//! When an agent that has failed is started again: later each time, but never later than after a minute.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest wait.
pub const LONGEST: Duration = Duration::from_secs(60);

/// Who has run for so long was well: what came before counts no more.
pub const GOOD_WHILE: Duration = Duration::from_secs(60);

/// Waits that double, and how many there may be in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    first: Duration,
    most: u32,
    in_a_row: u32,
}

impl Backoff {
    /// Waits of which the first takes so long; at most so many before a run that lasts a [`GOOD_WHILE`].
    pub fn new(first: Duration, most: u32) -> Self {
        Self { first, most, in_a_row: 0 }
    }

    /// How many restarts there may be in a row.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// How many there were in a row, the one to come included.
    pub fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    /// How long to wait after a run that lasted so long; `None`: not to start it again.
    pub fn next(&mut self, ran_for: Duration) -> Option<Duration> {
        if ran_for >= GOOD_WHILE {
            self.in_a_row = 0;
        }
        if self.in_a_row >= self.most {
            return None;
        }
        let factor = 2_u32.checked_pow(self.in_a_row).unwrap_or(u32::MAX);
        self.in_a_row += 1;
        // A first wait that is longer than the longest was asked for.
        Some(self.first.saturating_mul(factor).min(LONGEST.max(self.first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_until_they_are_a_minute() {
        let mut backoff = Backoff::new(SECOND, u32::MAX);
        let waits: Vec<u64> = (0..9).map(|_| backoff.next(SECOND).unwrap().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_good_while_makes_up_for_all_before() {
        let mut backoff = Backoff::new(SECOND, 2);
        assert_eq!([backoff.next(SECOND), backoff.next(SECOND)], [Some(SECOND), Some(2 * SECOND)]);
        assert_eq!(backoff.next(SECOND), None);
        assert_eq!(backoff.next(GOOD_WHILE), Some(SECOND));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn waits_never_shrink_and_end_after_the_most(first_ms in 0..200_000_u64, most in 0..70_u32) {
            let first = Duration::from_millis(first_ms);
            let mut backoff = Backoff::new(first, most);
            let waits: Vec<Duration> = std::iter::from_fn(|| backoff.next(Duration::ZERO)).collect();
            prop_assert_eq!(waits.len(), most as usize);
            prop_assert!(waits.iter().all(|wait| (first..=LONGEST.max(first)).contains(wait)));
            prop_assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
