//! What the record of a run says of the agent's end. Whoever stands by an agent has seen it, and knows what comes of it.

use super::facts::{Claim, Evidence, Run, Source};
use super::processes::{Liveness, ProcessId};
use super::table::ProcessTable;
use crate::store::runs::RunRecord;
use crate::text::{Wait, ending};
use std::time::Duration;

/// What a record says now. One that was to be started again is not, where nobody is left who would.
pub fn recorded(record: &RunRecord, table: &impl ProcessTable) -> Run {
    let keeper = ProcessId { pid: record.keeper_pid, start: record.keeper_start };
    let is_kept = || matches!(table.state_of(keeper), Liveness::Alive | Liveness::Unreadable);
    let gave_up = record.next_start_at_ms.is_none();
    Run {
        restarts: record.restarts,
        restarted_at_ms: record.restarted_at_ms,
        exit_code: record.exit_code,
        ended_at_ms: record.ended_at_ms,
        request: record.request,
        next_start_at_ms: record.next_start_at_ms.filter(|_| is_kept()),
        restarts_in_a_row: record.restarts_in_a_row,
        // Whoever would have started it again has not given up, but is gone.
        max_restarts: record.max_restarts.filter(|_| gave_up || is_kept()),
        running: record.running,
    }
}

/// What is said of the end of an agent that has none of its own: that it was asked for, that it is made good, or that it is
/// for good; and when it was. `None`: it has not ended, or nobody has seen it.
pub fn end(run: &Run, now_ms: u64) -> Option<Evidence> {
    let (code, at_ms) = (run.exit_code?, run.ended_at_ms?);
    let said =
        |claim, word: &str, detail| Evidence { source: Source::Process, claim, word: word.to_owned(), detail, at_ms };
    let how = ending(code);
    Some(match (run.request, run.next_start_at_ms, run.max_restarts) {
        _ if run.running => return None,
        _ if code == 0 => said(Claim::Finished, "ended", None),
        (Some(signal), ..) => {
            let word = "ended on request";
            said(Claim::Finished, word, Some(format!("{word} (signal {signal})")))
        }
        (_, Some(next), Some(most)) => {
            let when = match next.saturating_sub(now_ms) {
                0 => "now".to_owned(),
                ms => format!("in {}", Wait(Duration::from_millis(ms))),
            };
            let detail = format!("{how}; starts again {when} (restart {} of {most})", run.restarts_in_a_row);
            said(Claim::Failed, "starts again", Some(detail))
        }
        (_, None, Some(most)) if most > 0 && run.restarts_in_a_row >= most => {
            let restarts = if most == 1 { "1 restart".to_owned() } else { format!("{most} restarts") };
            said(Claim::Failed, "gave up", Some(format!("gave up after {restarts}; {how}")))
        }
        _ => said(Claim::Failed, "ended", None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000;

    fn said(change: impl FnOnce(&mut Run)) -> Option<(Claim, String, Option<String>)> {
        let mut run = Run { exit_code: Some(4), ended_at_ms: Some(NOW_MS - 1), ..Run::default() };
        change(&mut run);
        end(&run, NOW_MS).map(|said| {
            assert_eq!((said.source, said.at_ms), (Source::Process, NOW_MS - 1));
            (said.claim, said.word, said.detail)
        })
    }

    #[test]
    fn an_end_says_what_comes_of_it() {
        let told = |claim, word: &str, detail: &str| Some((claim, word.to_owned(), Some(detail.to_owned())));
        let plain = |claim| Some((claim, "ended".to_owned(), None));
        assert_eq!(said(|_| {}), plain(Claim::Failed));
        assert_eq!(said(|run| run.exit_code = Some(0)), plain(Claim::Finished));
        assert_eq!(
            said(|run| (run.exit_code, run.request) = (Some(-2), Some(2))),
            told(Claim::Finished, "ended on request", "ended on request (signal 2)")
        );
        let waits = |run: &mut Run, next| {
            (run.next_start_at_ms, run.restarts_in_a_row, run.max_restarts) = (Some(next), 2, Some(5));
        };
        let words = "exit code 4; starts again in 4 s (restart 2 of 5)";
        assert_eq!(said(|run| waits(run, NOW_MS + 3001)), told(Claim::Failed, "starts again", words));
        let words = "exit code 4; starts again now (restart 2 of 5)";
        assert_eq!(said(|run| waits(run, NOW_MS - 1)), told(Claim::Failed, "starts again", words));
        let gave_up = |run: &mut Run| (run.restarts_in_a_row, run.max_restarts) = (5, Some(5));
        assert_eq!(said(gave_up), told(Claim::Failed, "gave up", "gave up after 5 restarts; exit code 4"));
        assert_eq!(said(|run| run.max_restarts = Some(0)), plain(Claim::Failed), "it was never started again");
    }

    #[test]
    fn nothing_is_said_of_an_end_that_nobody_has_seen() {
        assert_eq!(said(|run| run.running = true), None, "that was the end before");
        assert_eq!(said(|run| run.ended_at_ms = None), None);
    }
}
