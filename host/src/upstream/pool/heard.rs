//! What an upstream has answered so far, and what is to be said of it meanwhile.

use super::super::agents::Listing;
use super::super::view::Agents;
use crate::clock::Moment;
use crate::report;
use crate::text::Wait;
use std::sync::Arc;
use std::time::Duration;

/// For how long an answer is nothing to speak of, where there is an earlier one.
const USUAL: Duration = Duration::from_secs(5);

/// What an upstream has answered so far. It keeps the last answer that was one, whatever comes after it.
#[derive(Debug)]
pub struct Heard<L> {
    /// The last answer, and when it came.
    last: Option<(Arc<L>, Moment)>,
    /// How many there were, which tells each from all others.
    answers: u64,
    /// Why the last question came to nothing.
    error: Option<String>,
    /// Since when an answer is waited for.
    asked: Option<Moment>,
    /// For how long somebody has waited for the first one in vain.
    in_vain: Option<Duration>,
}

impl<L> Default for Heard<L> {
    fn default() -> Self {
        Self { last: None, answers: 0, error: None, asked: None, in_vain: None }
    }
}

impl<L> Heard<L> {
    /// It is asked.
    pub fn ask(&mut self, now: Moment) {
        self.asked = Some(now);
    }

    /// It has answered, or failed to.
    pub fn hear(&mut self, answer: Result<L, String>, now: Moment) {
        self.asked = None;
        match answer {
            Ok(answer) => {
                self.last = Some((Arc::new(answer), now));
                self.answers += 1;
                self.error = None;
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Somebody has waited so long for the first answer, and waits no more.
    pub fn give_up(&mut self, patience: Duration) {
        self.in_vain = Some(patience);
    }

    /// Whether nothing is known of it: neither an answer nor why there is none.
    pub fn is_silent(&self) -> bool {
        self.last.is_none() && self.error.is_none()
    }

    /// The last answer, when it came, and its number.
    pub fn last(&self) -> Option<(&Arc<L>, Moment, u64)> {
        self.last.as_ref().map(|(answer, heard)| (answer, *heard, self.answers))
    }

    /// Why there is no answer that counts, as far as anything is to be said of that. The words stay the same as long as nothing
    /// happens, because whoever watches is told of each change.
    pub fn error(&self, now: Moment) -> Option<String> {
        match (&self.error, &self.last, self.asked) {
            (Some(error), ..) => Some(error.clone()),
            (None, None, _) => Some(match self.in_vain {
                Some(patience) => format!("no answer within {} yet", Wait(patience)),
                None => "no answer yet".to_owned(),
            }),
            (None, Some(_), Some(asked)) if now.steady.saturating_sub(asked.steady) >= USUAL => {
                Some(format!("no answer since {}", report::time(asked.unix_ms)))
            }
            _ => None,
        }
    }
}

impl Heard<Listing> {
    /// What was told of agents.
    pub fn agents(&self, now: Moment) -> Agents {
        let last = self.last.as_ref();
        Agents {
            count: last.map(|(listing, _)| listing.agents()),
            heard_at: last.map(|(_, heard)| report::time(heard.unix_ms)),
            error: self.error(now).or_else(|| last?.0.left_out()),
            note: last.and_then(|(listing, _)| listing.note()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};

    #[test]
    fn a_failure_leaves_the_last_answer_and_is_told_until_the_next_one() {
        let clock = ManualClock::at(1_000);
        let mut heard = Heard::default();
        assert!(heard.is_silent());
        assert_eq!(heard.error(clock.now()).as_deref(), Some("no answer yet"));
        heard.ask(clock.now());
        heard.give_up(Duration::from_secs(2));
        assert_eq!(heard.error(clock.now()).as_deref(), Some("no answer within 2 s yet"));
        heard.hear(Ok("list"), clock.now());
        let first = clock.now();
        assert_eq!((heard.error(first), heard.is_silent()), (None, false));
        clock.advance(Duration::from_secs(60));
        heard.ask(clock.now());
        heard.hear(Err("refused".into()), clock.now());
        heard.ask(clock.now());
        assert_eq!(heard.error(clock.now()).as_deref(), Some("refused"), "also while it is asked again");
        assert_eq!(heard.last(), Some((&Arc::new("list"), first, 1)));
        heard.hear(Ok("list"), clock.now());
        assert_eq!((heard.error(clock.now()), heard.last().unwrap().2), (None, 2));
    }

    #[test]
    fn one_that_answers_no_more_is_told_of_by_when_it_was_asked() {
        let clock = ManualClock::at(1_000);
        let mut heard = Heard::default();
        heard.hear(Ok(()), clock.now());
        heard.ask(clock.now());
        clock.advance(USUAL.checked_sub(Duration::from_millis(1)).unwrap());
        assert_eq!(heard.error(clock.now()), None);
        clock.advance(Duration::from_millis(1));
        let told = heard.error(clock.now());
        assert_eq!(told.as_deref(), Some("no answer since 1970-01-01T00:00:01.000Z"));
        clock.advance(Duration::from_secs(60));
        assert_eq!(heard.error(clock.now()), told, "the words stay");
        heard.hear(Err("no answer within 1 min".into()), clock.now());
        assert_eq!(heard.error(clock.now()).as_deref(), Some("no answer within 1 min"));
    }
}
