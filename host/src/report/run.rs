//! What is recorded of an agent that `headcount run` started.

use super::time;
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
    /// Whether it is not known to have ended.
    #[serde(skip)]
    running: bool,
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
    /// What is recorded.
    pub(super) fn new(run: Run) -> Self {
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
            running: run.running,
        }
    }

    /// The same in words, as far as what it does leaves that open; `None` where it runs for the first time, or has ended.
    pub fn in_words(&self) -> Option<String> {
        let times = match self.restarts {
            0 => return None,
            1 => "restarted once".to_owned(),
            n => format!("restarted {n} times"),
        };
        let last = self.last_exit.as_ref().filter(|_| self.running)?;
        Some(match (last.code, last.signal) {
            (Some(code), _) => format!("{times}, last exit code {code}"),
            (None, Some(signal)) => format!("{times}, last ended by signal {signal}"),
            (None, None) => times,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_saying_is_said() {
        let said = |run| RunReport::new(run).in_words();
        let run = Run { running: true, ..Run::default() };
        assert_eq!(said(run), None);
        let again = Run { restarts: 2, exit_code: Some(-9), ..run };
        assert_eq!(said(again).as_deref(), Some("restarted 2 times, last ended by signal 9"));
        let again = Run { restarts: 1, exit_code: Some(3), ..run };
        assert_eq!(said(again).as_deref(), Some("restarted once, last exit code 3"));
        assert_eq!(said(Run { running: false, ..again }), None, "what it does says how it ended");
    }

    #[test]
    fn an_exit_is_a_code_or_a_signal() {
        let last = |code| RunReport::new(Run { exit_code: Some(code), ..Run::default() }).last_exit.unwrap();
        assert_eq!((last(3).code, last(3).signal), (Some(3), None));
        assert_eq!((last(-15).code, last(-15).signal), (None, Some(15)));
    }
}
