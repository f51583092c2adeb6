//! When a server that could not be reached is tried again: later each time, and never at the moment when all others try.

use std::time::Duration;

/// The wait after the first failure.
pub const FIRST: Duration = Duration::from_millis(250);
/// The longest wait.
pub const LONGEST: Duration = Duration::from_secs(30);

/// How long to wait after so many failures in a row; `chance` is anything, and spreads half of the wait.
pub fn delay(failures: u32, chance: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let whole = FIRST.saturating_mul(2_u32.checked_pow(doublings).unwrap_or(u32::MAX)).min(LONGEST);
    whole / 2 + (whole / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_until_they_are_the_longest() {
        let waits: Vec<u64> = (0..9).map(|n| u64::try_from(delay(n, u32::MAX).as_millis()).unwrap()).collect();
        assert_eq!(waits, [0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn chance_takes_half_of_the_wait_at_most(failures in 1..u32::MAX, chance in any::<u32>()) {
            let most = delay(failures, u32::MAX);
            prop_assert!(delay(failures, chance) <= most && most <= LONGEST);
            prop_assert!(delay(failures, chance) >= most / 2 - Duration::from_nanos(1));
        }
    }
}
