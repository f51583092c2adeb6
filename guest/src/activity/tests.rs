//! Each rule of the order of evidence, and the cases that users of such tools have reported.

use super::*;
use crate::cases::{MINUTE, NOW, agent, agent_that, ended, gap, no_metrics, said, said_more, trend};

use Claim::{Failed, Finished, Idle, Unknown, Waiting, Working};
use Source::{Hook, OwnRecord, Process, Transcript, Upstream};

/// What is shown of an agent: activity, reason, age in milliseconds, decided by, inferred.
fn shown(agent: &Agent) -> (Activity, String, Option<u64>, Source, bool) {
    let finding = find(agent, NOW, &Settings::default());
    let state = finding.unknown_word.map_or(finding.known, |word| unknown(agent, word, NOW));
    (state.activity, state.why.to_string(), state.since_ms.map(|ms| NOW - ms), state.decided_by, state.inferred)
}

fn is(
    activity: Activity,
    why: &str,
    age_ms: impl Into<Option<u64>>,
    by: Source,
    inferred: bool,
) -> (Activity, String, Option<u64>, Source, bool) {
    (activity, why.to_owned(), age_ms.into(), by, inferred)
}

#[test]
fn an_ended_process_beats_every_record() {
    for process in [ProcessState::Gone, ProcessState::Zombie] {
        for claim in [Working, Waiting, Idle, Finished, Failed, Unknown] {
            let evidence = vec![said(OwnRecord, claim, "word", 0)];
            let agent = Agent { evidence, ..ended("a", process, None) };
            assert_eq!(shown(&agent).0, Activity::Dead);
        }
    }
    let unseen =
        Agent { unmeasured: vec![gap("process", "there is no process 7")], ..ended("a", ProcessState::Gone, None) };
    assert_eq!(shown(&unseen).1, "ended, exit code unknown: there is no process 7");
    let zombie = ended("a", ProcessState::Zombie, None);
    assert_eq!(shown(&zombie), is(Activity::Dead, "ended, exit code unknown (zombie)", None, Process, false));
}

#[test]
fn an_exit_code_tells_the_end() {
    let reason = |code| shown(&ended("a", ProcessState::Gone, Some(code)));
    assert_eq!(reason(0), is(Activity::Finished, "ended with exit code 0", None, Process, false));
    assert_eq!(reason(3), is(Activity::Dead, "ended with exit code 3", None, Process, false));
    assert_eq!(reason(-9), is(Activity::Dead, "ended by signal 9", None, Process, false));
    assert_eq!(reason(i32::MIN).1, "ended by signal 2147483648");
}

#[test]
fn who_stands_by_an_agent_tells_what_comes_of_its_end() {
    let told = |code, claim, word, detail| Agent {
        evidence: vec![said(OwnRecord, Working, "busy", 0), said_more(Process, claim, word, detail, 5000)],
        ..ended("a", ProcessState::Gone, Some(code))
    };
    let asked = "ended on request (signal 2)";
    assert_eq!(
        shown(&told(4, Finished, "ended on request", asked)),
        is(Activity::Finished, asked, 5000, Process, false)
    );
    let again = "exit code 4; starts again in 4 s (restart 2 of 5)";
    let agent = told(4, Failed, STARTS_AGAIN, again);
    assert_eq!(shown(&agent), is(Activity::Dead, again, 5000, Process, false));
    assert!(!find(&agent, NOW, &Settings::default()).known.failed, "it mends itself");
    let agent = told(4, Failed, "gave up", "gave up after 5 restarts; exit code 4");
    assert!(find(&agent, NOW, &Settings::default()).known.failed);
    let plain =
        Agent { evidence: vec![said(Process, Failed, "ended", 5000)], ..ended("a", ProcessState::Gone, Some(3)) };
    assert_eq!(shown(&plain), is(Activity::Dead, "ended with exit code 3", 5000, Process, false));
}

#[test]
fn an_exit_code_of_a_living_process_counts_for_nothing() {
    let agent = Agent { exit_code: Some(1), ..agent("a") };
    assert_eq!(shown(&agent).0, Activity::Working);
}

#[test]
fn the_newest_of_record_and_event_counts() {
    let record_then_event =
        agent_that("a", vec![said(OwnRecord, Working, "busy", 2000), said(Hook, Waiting, "PermissionRequest", 1000)]);
    assert_eq!(shown(&record_then_event), is(Activity::WaitingForInput, "PermissionRequest", 1000, Hook, false));
    let event_then_record =
        agent_that("a", vec![said(OwnRecord, Working, "busy", 1000), said(Hook, Waiting, "PermissionRequest", 2000)]);
    assert_eq!(shown(&event_then_record), is(Activity::Working, "busy", 1000, OwnRecord, false));
}

#[test]
fn at_equal_times_the_record_counts_wherever_it_stands() {
    let (record, event) = (said(OwnRecord, Working, "busy", 1000), said(Hook, Idle, "Stop", 1000));
    for evidence in [vec![record.clone(), event.clone()], vec![event, record]] {
        assert_eq!(shown(&agent_that("a", evidence)).3, OwnRecord);
    }
}

#[test]
fn of_statements_of_one_source_at_one_time_the_first_counts() {
    let (waiting, idle) = (said(Hook, Waiting, "first", 1000), said(Hook, Idle, "first", 1000));
    assert_eq!(shown(&agent_that("a", vec![waiting.clone(), idle.clone()])).0, Activity::WaitingForInput);
    assert_eq!(shown(&agent_that("a", vec![idle, waiting])).0, Activity::Idle);
}

#[test]
fn a_transcript_counts_only_where_record_and_events_are_silent() {
    let transcript = said(Transcript, Working, "task_started", 0);
    let both = agent_that("a", vec![transcript.clone(), said(Hook, Idle, "Stop", 5 * MINUTE)]);
    assert_eq!(shown(&both), is(Activity::Idle, "Stop", 5 * MINUTE, Hook, false));
    let alone = shown(&agent_that("a", vec![transcript]));
    assert_eq!(alone, is(Activity::Working, "open turn", 0, Transcript, true));
}

#[test]
fn of_an_open_turn_no_more_is_said_than_its_own_transcript_says() {
    for (detail, shown_as) in
        [("", "open turn"), ("approvals are not recorded", "open turn; approvals are not recorded")]
    {
        let turn = said_more(Transcript, Working, "task_started", detail, 1000);
        assert_eq!(shown(&agent_that("a", vec![turn])), is(Activity::Working, shown_as, 1000, Transcript, true));
    }
}

#[test]
fn an_upstream_counts_only_where_the_agent_is_silent() {
    let upstream = said(Upstream, Idle, "idle", 0);
    let both = agent_that("a", vec![upstream.clone(), said(Transcript, Working, "task_started", MINUTE)]);
    assert_eq!(shown(&both).3, Transcript);
    assert_eq!(shown(&agent_that("a", vec![upstream])), is(Activity::Idle, "idle", 0, Upstream, false));
}

#[test]
fn an_aborted_turn_is_idle() {
    let agent = agent_that(
        "a",
        vec![
            said(Transcript, Working, "task_started", MINUTE),
            said_more(Transcript, Idle, "turn_aborted", "aborted", 1000),
        ],
    );
    assert_eq!(shown(&agent), is(Activity::Idle, "aborted", 1000, Transcript, false));
}

#[test]
fn what_no_event_tells_the_record_tells() {
    let after = |event: Evidence, record: Evidence| shown(&agent_that("a", vec![event, record]));
    let uses_a_tool = || said(Hook, Working, "PreToolUse", MINUTE);
    let interrupted = after(uses_a_tool(), said(OwnRecord, Idle, "idle", 5000));
    assert_eq!(interrupted, is(Activity::Idle, "idle", 5000, OwnRecord, false));
    let asks = said_more(Hook, Waiting, "PermissionRequest", "permission: Bash", MINUTE);
    let granted = after(asks, said(OwnRecord, Working, "busy", 5000));
    assert_eq!(granted, is(Activity::Working, "busy", 5000, OwnRecord, false));
    let silent_end = after(uses_a_tool(), said_more(OwnRecord, Idle, "shell", "background shell", MINUTE));
    assert_eq!(silent_end, is(Activity::Idle, "background shell", MINUTE, OwnRecord, false));
}

#[test]
fn an_event_from_before_the_end_of_a_turn_counts_no_more() {
    let after = |claim, word, end_age_ms| {
        let end = said_more(Transcript, Idle, "turn_aborted", "aborted", end_age_ms);
        shown(&agent_that("a", vec![said(Hook, claim, word, 10_000), end]))
    };
    for (claim, word) in [(Working, "PreToolUse"), (Waiting, "PermissionRequest")] {
        assert_eq!(after(claim, word, 5000), is(Activity::Idle, "aborted", 5000, Transcript, false));
        assert_eq!(after(claim, word, 10_000).3, Hook, "at the same moment");
        assert_eq!(after(claim, word, 15_000).3, Hook, "the end of the turn before");
    }
    let next_turn = vec![
        said(Hook, Waiting, "PermissionRequest", 10_000),
        said(Transcript, Idle, "task_complete", 5000),
        said(Transcript, Working, "task_started", 4000),
    ];
    assert_eq!(shown(&agent_that("a", next_turn)).3, Hook, "only where the transcript says nothing after it");
    let record = vec![said(OwnRecord, Waiting, "waiting", 10_000), said(Transcript, Idle, "end_turn", 5000)];
    assert_eq!(shown(&agent_that("a", record)).3, OwnRecord);
}

#[test]
fn background_work_is_told_with_what_it_is() {
    let stop = said_more(Hook, Working, "Stop", "2 background tasks", 1000);
    assert_eq!(shown(&agent_that("a", vec![stop])), is(Activity::Working, "2 background tasks", 1000, Hook, false));
}

#[test]
fn waiting_does_not_expire() {
    let mut agent = agent_that("a", vec![said_more(OwnRecord, Waiting, "waiting", "permission prompt", 0)]);
    agent.evidence[0].at_ms = 0;
    agent.trend = Some(trend(NOW));
    assert_eq!(shown(&agent), is(Activity::WaitingForInput, "permission prompt", NOW, OwnRecord, false));
}

#[test]
fn an_answered_prompt_leaves_no_reason_behind() {
    let waiting = said_more(OwnRecord, Waiting, "waiting", "permission prompt", 2000);
    let answered = said_more(OwnRecord, Working, "busy", "at work", 1000);
    let agent = agent_that("a", vec![waiting, answered]);
    assert_eq!(shown(&agent), is(Activity::Working, "at work", 1000, OwnRecord, false));
}

#[test]
fn waiting_counts_from_the_block_not_from_the_work_before() {
    let agent = agent_that(
        "a",
        vec![
            said(OwnRecord, Working, "working", 20 * MINUTE),
            said_more(OwnRecord, Waiting, "blocked", "needs an answer", 4 * MINUTE),
        ],
    );
    assert_eq!(shown(&agent), is(Activity::WaitingForInput, "needs an answer", 4 * MINUTE, OwnRecord, false));
}

#[test]
fn an_activity_lasts_since_the_first_of_an_unbroken_run_of_statements() {
    let agent = agent_that(
        "a",
        vec![
            said(Hook, Idle, "Stop", 60_000),
            said(OwnRecord, Working, "busy", 50_000),
            said(Hook, Idle, "Stop", 40_000),
            said(Hook, Working, "UserPromptSubmit", 30_000),
            said(OwnRecord, Unknown, "frobnicating", 25_000),
            said(OwnRecord, Working, "busy", 20_000),
            said(Transcript, Idle, "task_complete", 15_000),
            said(Hook, Working, "PreToolUse", 10_000),
        ],
    );
    assert_eq!(shown(&agent), is(Activity::Working, "PreToolUse", 30_000, Hook, false));
}

#[test]
fn a_change_at_the_same_moment_ends_the_run() {
    let change = [said(Hook, Idle, "Stop", 20_000), said(Hook, Working, "UserPromptSubmit", 20_000)];
    let agent = agent_that("a", [&change[..], &[said(Hook, Working, "PreToolUse", 10_000)]].concat());
    assert_eq!(shown(&agent), is(Activity::Working, "PreToolUse", 10_000, Hook, false));
}

#[test]
fn an_unknown_word_keeps_no_older_work() {
    let agent =
        agent_that("a", vec![said(OwnRecord, Working, "busy", 2000), said(OwnRecord, Unknown, "frobnicating", 1000)]);
    assert_eq!(shown(&agent), is(Activity::Unknown, "unknown word \"frobnicating\"", 1000, OwnRecord, false));
}

#[test]
fn an_unknown_word_of_a_lower_rank_is_passed_over() {
    let agent =
        agent_that("a", vec![said(OwnRecord, Working, "busy", 2000), said(Transcript, Unknown, "frobnicating", 1000)]);
    assert_eq!(shown(&agent).0, Activity::Working);
}

#[test]
fn a_known_word_after_an_unknown_one_counts() {
    let agent = agent_that(
        "a",
        vec![
            said(OwnRecord, Unknown, "frobnicating", 2000),
            said_more(OwnRecord, Idle, "shell", "background shell", 1000),
        ],
    );
    assert_eq!(shown(&agent), is(Activity::Idle, "background shell", 1000, OwnRecord, false));
}

#[test]
fn a_long_turn_that_can_be_seen_is_work() {
    let mut agent = agent_that("a", vec![said(OwnRecord, Working, "busy", 14 * MINUTE)]);
    agent.trend = Some(trend(0));
    assert_eq!(shown(&agent), is(Activity::Working, "busy", 14 * MINUTE, OwnRecord, false));
}

#[test]
fn claimed_work_without_a_trace_is_a_stall() {
    for source in [OwnRecord, Hook, Transcript, Upstream] {
        let mut agent = agent_that("a", vec![said(source, Working, "busy", 14 * MINUTE)]);
        agent.trend = Some(trend(12 * MINUTE));
        assert_eq!(
            shown(&agent),
            is(Activity::Stalled, "claims to work, but no CPU or IO for 12 min", 12 * MINUTE, Process, true)
        );
    }
}

#[test]
fn a_stall_needs_the_limit_reached_by_the_silence_and_by_the_claim() {
    let activity = |age_ms, quiet_ms| {
        let mut agent = agent_that("a", vec![said(OwnRecord, Working, "busy", age_ms)]);
        agent.trend = Some(trend(quiet_ms));
        shown(&agent).0
    };
    let limit = 10 * MINUTE;
    assert_eq!(activity(limit, limit), Activity::Stalled);
    assert_eq!(activity(limit - 1, limit), Activity::Working);
    assert_eq!(activity(limit, limit - 1), Activity::Working);
}

#[test]
fn without_a_trend_no_stall_can_be_said() {
    for trend in [None, Some(Trend { window_ms: 0, ..trend(60 * MINUTE) })] {
        let mut agent = agent_that("a", vec![said(OwnRecord, Working, "busy", 60 * MINUTE)]);
        agent.trend = trend;
        assert_eq!(shown(&agent).0, Activity::Working);
    }
}

#[test]
fn a_stopped_process_does_not_work_whatever_it_says() {
    let stopped = |evidence| shown(&Agent { process: ProcessState::Stopped, evidence, ..agent("a") });
    let expected = is(Activity::Stalled, "stopped by a signal; SIGCONT continues it", None, Process, false);
    assert_eq!(stopped(vec![]), expected);
    assert_eq!(stopped(vec![said(OwnRecord, Working, "busy", 0)]), expected);
    assert_eq!(stopped(vec![said(OwnRecord, Waiting, "waiting", 0)]), expected);
    assert_eq!(stopped(vec![said(OwnRecord, Idle, "idle", 0)]), expected);
    assert_eq!(stopped(vec![said(OwnRecord, Finished, "done", 0)]).0, Activity::Finished);
}

#[test]
fn without_evidence_the_processes_decide() {
    let seen = |trend| shown(&Agent { trend: Some(trend), ..agent("a") });
    assert_eq!(seen(trend(0)), is(Activity::Working, "CPU or IO just now", None, Process, true));
    assert_eq!(seen(trend(12_000)), is(Activity::Working, "CPU or IO 12 s ago", None, Process, true));
    assert_eq!(seen(trend(30_000)), is(Activity::Idle, "no CPU or IO for 30 s", 30_000, Process, true));
    assert_eq!(seen(trend(12 * MINUTE)), is(Activity::Idle, "no CPU or IO for 12 min", 12 * MINUTE, Process, true));
    let moment = Trend { window_ms: 300, ..trend(300) };
    assert_eq!(seen(moment), is(Activity::Idle, "no CPU or IO in the 300 ms watched", 300, Process, true));
}

#[test]
fn a_single_measurement_is_said_to_be_one() {
    let once = |cpu| {
        let mut agent = Agent { trend: None, ..agent("a") };
        agent.metrics.cpu_percent = cpu;
        agent.unmeasured = vec![gap("cpu-percent", "needs two samples")];
        shown(&agent)
    };
    assert_eq!(once(Some(1.0)), is(Activity::Working, "1 % CPU, measured once", None, Process, true));
    assert_eq!(once(Some(0.9)), is(Activity::Idle, "no CPU, measured once", None, Process, true));
    assert_eq!(once(Some(f64::NAN)), is(Activity::Unknown, "not measured: needs two samples", None, Process, false));
    assert_eq!(once(None), is(Activity::Unknown, "not measured: needs two samples", None, Process, false));
}

#[test]
fn silence_is_not_idleness() {
    let unmeasured = |process| shown(&Agent { process, metrics: no_metrics(), trend: None, ..agent("a") });
    assert_eq!(unmeasured(ProcessState::Sleeping).1, "not measured yet");
    assert_eq!(
        unmeasured(ProcessState::Unreadable),
        is(Activity::Unknown, "its process cannot be read", None, Process, false)
    );
    assert_eq!(unmeasured(ProcessState::NotLocal).0, Activity::Unknown);
    let unseen = Agent { unmeasured: vec![gap("process", "no process matches")], ..agent("a") };
    let unseen = Agent { process: ProcessState::NotLocal, metrics: no_metrics(), trend: None, ..unseen };
    assert_eq!(shown(&unseen), is(Activity::Unknown, "no process matches", None, Process, false));
}

#[test]
fn who_is_quiet_while_the_records_are_read_is_not_idle_for_that() {
    let unread = || Agent { unmeasured: vec![gap("activity", "its record is still being read")], ..agent("a") };
    let unknown = is(Activity::Unknown, "not measured: its record is still being read", None, Process, false);
    assert_eq!(shown(&unread()), unknown);
    let elsewhere = Agent { process: ProcessState::NotLocal, metrics: no_metrics(), trend: None, ..unread() };
    assert_eq!(shown(&elsewhere), unknown);
    let told = Agent { evidence: vec![said(Hook, Idle, "Stop", 1000)], ..unread() };
    assert_eq!(shown(&told).0, Activity::Idle, "what is told counts");
    assert_eq!(shown(&Agent { process: ProcessState::Stopped, ..unread() }).0, Activity::Stalled);
}

#[test]
fn a_statement_from_the_future_is_one_of_now() {
    let ahead = Evidence { at_ms: u64::MAX, ..said(Hook, Idle, "Stop", 0) };
    let agent = agent_that("a", vec![ahead, said(OwnRecord, Working, "busy", 0)]);
    assert_eq!(shown(&agent), is(Activity::Working, "busy", 0, OwnRecord, false));
}

#[test]
fn an_end_that_is_dated_ahead_hides_no_question() {
    let ahead = Evidence { at_ms: NOW + 60 * MINUTE, ..said(Transcript, Idle, "end_turn", 0) };
    let asks = said(Hook, Waiting, "PermissionRequest", 1000);
    let agent = agent_that("a", vec![asks, ahead]);
    assert_eq!(shown(&agent), is(Activity::WaitingForInput, "PermissionRequest", 1000, Hook, false));
    let asks_ahead = Evidence { at_ms: NOW + MINUTE, ..said(Hook, Waiting, "PermissionRequest", 0) };
    let agent = agent_that("a", vec![asks_ahead, said(Transcript, Idle, "end_turn", 0)]);
    assert_eq!(shown(&agent), is(Activity::WaitingForInput, "PermissionRequest", 0, Hook, false));
}

#[test]
fn words_of_agents_are_cut_and_cleaned() {
    let agent =
        agent_that("a", vec![said_more(Hook, Waiting, "x", &format!("\u{1b}]0;t\u{7}{}", "y".repeat(5000)), 0)]);
    let reason = shown(&agent).1;
    assert_eq!(reason, format!("{}…", "y".repeat(200)));
}
