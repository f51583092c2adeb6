//! Policies that run into their deadline again and again are left alone for a while, so that they do not hold up every answer.

use super::Outcome;
use std::time::Duration;

/// How often in a row a policy may run into its deadline before it has to rest.
const IN_A_ROW: u32 = 3;
/// How many times as long it rests as it ran: it then takes a twentieth of the time at the most.
const TIMES: u32 = 20;
/// The longest rest.
const LONGEST: Duration = Duration::from_secs(60);

/// Whether one policy rests. Moments are on the steady clock.
#[derive(Debug, Default)]
pub(super) struct Rest {
    in_a_row: u32,
    until: Duration,
    pause: Duration,
}

impl Rest {
    /// For how long it is left alone, if it rests now.
    pub fn at(&self, now: Duration) -> Option<Duration> {
        (now < self.until).then_some(self.pause)
    }

    /// Notes how it fared until `now`, and how long it took.
    pub fn note(&mut self, outcome: Option<&Outcome>, now: Duration, took: Duration) {
        if !matches!(outcome, Some(Outcome::Deadline(_))) {
            self.in_a_row = 0;
            return;
        }
        self.in_a_row += 1;
        if self.in_a_row >= IN_A_ROW {
            self.pause = (took * TIMES).min(LONGEST);
            self.until = now + self.pause;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn one_that_is_late_three_times_in_a_row_rests() {
        let late = Outcome::Deadline(100 * MS);
        let mut rest = Rest::default();
        for outcome in [Some(&late), Some(&late), None, Some(&late), Some(&late)] {
            rest.note(outcome, 1000 * MS, 100 * MS);
            assert_eq!(rest.at(1000 * MS), None);
        }
        rest.note(Some(&late), 1000 * MS, 100 * MS);
        assert_eq!(rest.at(2999 * MS), Some(2000 * MS));
        assert_eq!(rest.at(3000 * MS), None);
        // Late once more, and it rests again at once; no longer than a minute.
        rest.note(Some(&late), 3000 * MS, 10_000 * MS);
        assert_eq!(rest.at(4000 * MS), Some(LONGEST));
    }
}
