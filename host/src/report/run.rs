//! What is recorded of an agent that `headcount run` started.

use super::time;
use crate::config::Span;
use crate::observe::facts::Run;
use schemars::JsonSchema;
use serde::Serialize;

/// How an agent that `headcount run` started was started again, and how it ended before.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunReport {
    /// How often it was started again.
    pub restarts: u32,
    /// When it was last started again, RFC 3339 in UTC.
    pub restarted_at: Option<String>,
    /// How it last ended; null where it has not, or where nobody saw it.
    pub last_exit: Option<LastExit>,
    /// When it is to be started again, RFC 3339 in UTC; null where it runs, or nobody will.
    pub next_start_at: Option<String>,
    /// How long that still is, in milliseconds.
    #[serde(skip)]
    next_start_in_ms: Option<u64>,
}

/// How an agent ended: with an exit code, or by a signal.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LastExit {
    /// Its exit code.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// When, RFC 3339 in UTC.
    pub at: Option<String>,
}

impl RunReport {
    /// What is recorded, as it stands at `now_ms`.
    pub(super) fn new(run: Run, now_ms: u64) -> Self {
        let last_exit = run.exit_code.map(|code| LastExit {
            code: (code >= 0).then_some(code),
            signal: (code < 0).then(|| code.saturating_neg()),
            at: run.ended_at_ms.map(time),
        });
        Self {
            restarts: run.restarts,
            restarted_at: run.restarted_at_ms.map(time),
            last_exit,
            next_start_at: run.next_start_at_ms.map(time),
            next_start_in_ms: run.next_start_at_ms.map(|at| at.saturating_sub(now_ms)),
        }
    }

    /// The same in words; `None` where it runs for the first time, or has ended for the first and last.
    pub fn in_words(&self) -> Option<String> {
        let times = match self.restarts {
            0 => None,
            1 => Some("restarted once".to_owned()),
            n => Some(format!("restarted {n} times")),
        };
        let next = self.next_start_in_ms.map(|ms| match ms {
            0 => "starts again now".to_owned(),
            ms => format!("starts again in {}", Span::from_millis(ms.div_ceil(1000) * 1000)),
        });
        let last = self.last_exit.as_ref().filter(|_| self.restarts > 0 && next.is_none()).and_then(|last| {
            match (last.code, last.signal) {
                (Some(code), _) => Some(format!("last exit code {code}")),
                (None, signal) => signal.map(|signal| format!("last ended by signal {signal}")),
            }
        });
        let said: Vec<String> = [next, times, last].into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000;

    #[test]
    fn what_is_worth_saying_is_said() {
        let said = |run| RunReport::new(run, NOW_MS).in_words();
        let run = Run::default();
        assert_eq!(said(run), None);
        assert_eq!(said(Run { exit_code: Some(0), ended_at_ms: Some(NOW_MS), ..run }), None);
        let waits = Run { exit_code: Some(3), next_start_at_ms: Some(NOW_MS + 3001), ..run };
        assert_eq!(said(waits).as_deref(), Some("starts again in 4s"));
        assert_eq!(said(Run { restarts: 1, ..waits }).as_deref(), Some("starts again in 4s, restarted once"));
        let late = Run { next_start_at_ms: Some(NOW_MS - 1), ..waits };
        assert_eq!(said(late).as_deref(), Some("starts again now"));
        let again = Run { restarts: 2, exit_code: Some(-9), ..run };
        assert_eq!(said(again).as_deref(), Some("restarted 2 times, last ended by signal 9"));
        let again = Run { restarts: 1, exit_code: Some(3), ..run };
        assert_eq!(said(again).as_deref(), Some("restarted once, last exit code 3"));
    }

    #[test]
    fn an_exit_is_a_code_or_a_signal() {
        let last = |code| RunReport::new(Run { exit_code: Some(code), ..Run::default() }, NOW_MS).last_exit.unwrap();
        assert_eq!((last(3).code, last(3).signal), (Some(3), None));
        assert_eq!((last(-15).code, last(-15).signal), (None, Some(15)));
    }
}
