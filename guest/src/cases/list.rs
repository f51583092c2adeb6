//! The cases themselves.

use super::{MINUTE, agent, agent_that, crowd, ended, gap, no_metrics, said, said_more, snapshot, trend};
use crate::{Agent, Claim, Evidence, Metrics, ProcessState, Snapshot, Source, SourceState, Trend};

/// All cases: a name, the facts and the settings.
#[must_use]
pub fn all() -> Vec<(&'static str, Snapshot, String)> {
    use Claim::{Failed, Finished, Idle, Unknown, Waiting, Working};
    use Source::{Hook, OwnRecord, Process, Transcript, Upstream};

    let one = |name, agent: Agent| (name, snapshot(vec![agent]), String::new());
    let with = |id, change: &dyn Fn(&mut Agent)| {
        let mut agent = agent(id);
        change(&mut agent);
        agent
    };
    let not_local = |evidence| {
        with("remote", &|it| {
            it.process = ProcessState::NotLocal;
            it.metrics = no_metrics();
            it.trend = None;
            it.evidence = Vec::clone(&evidence);
        })
    };
    let permission = |age_ms| said_more(OwnRecord, Waiting, "waiting", "permission prompt", age_ms);
    let witnessed = |code, end: Evidence| Agent {
        evidence: vec![said(OwnRecord, Working, "busy", 1000), end],
        ..ended("a", ProcessState::Gone, code)
    };
    let runaway = |claim, word| {
        with("a", &|it| {
            it.evidence = vec![said(OwnRecord, claim, word, 30 * MINUTE)];
            it.trend = Some(Trend { cpu_percent_mean: Some(97.6), ..trend(0) });
        })
    };

    let mut cases = vec![
        ("no agents", snapshot(Vec::new()), String::new()),
        // The process decides.
        one(
            "gone, exit unknown, record says busy",
            Agent { evidence: vec![said(OwnRecord, Working, "busy", 1000)], ..ended("a", ProcessState::Gone, None) },
        ),
        one("gone with exit 0", ended("a", ProcessState::Gone, Some(0))),
        one("gone with exit 3", ended("a", ProcessState::Gone, Some(3))),
        one(
            "killed while waiting",
            Agent { evidence: vec![permission(MINUTE)], ..ended("a", ProcessState::Gone, Some(-9)) },
        ),
        one("zombie with a surviving child", {
            let mut agent = Agent {
                evidence: vec![said(OwnRecord, Working, "busy", 1000)],
                ..ended("a", ProcessState::Zombie, None)
            };
            agent.metrics =
                Metrics { processes: Some(1), cpu_percent: Some(3.0), memory_bytes: Some(20 << 20), ..no_metrics() };
            agent
        }),
        one(
            "ended on request",
            witnessed(Some(-2), said_more(Process, Finished, "ended on request", "ended on request (signal 2)", 5000)),
        ),
        one(
            "asked to end, with an exit code of its own",
            witnessed(Some(4), said_more(Process, Finished, "ended on request", "ended on request (signal 15)", 5000)),
        ),
        one(
            "starts again by itself",
            witnessed(
                Some(4),
                said_more(Process, Failed, "starts again", "exit code 4; starts again in 4 s (restart 2 of 5)", 5000),
            ),
        ),
        one(
            "given up",
            witnessed(Some(4), said_more(Process, Failed, "gave up", "gave up after 5 restarts; exit code 4", 5000)),
        ),
        one("seen to have ended well", witnessed(Some(0), said(Process, Finished, "ended", 5000))),
        one("seen to have ended badly", witnessed(Some(3), said(Process, Failed, "ended", 5000))),
        one("a guess of its end", witnessed(Some(3), said(Process, Finished, "shell prompt", 5000))),
        one(
            "its own record says it was asked to end",
            Agent {
                evidence: vec![said(OwnRecord, Finished, "ended on request", 5000)],
                ..ended("a", ProcessState::Gone, Some(-15))
            },
        ),
        // What agents say.
        one("waits for a permission", agent_that("a", vec![permission(2 * MINUTE)])),
        one("waits for half an hour", agent_that("a", vec![permission(30 * MINUTE)])),
        one(
            "answered",
            agent_that("a", vec![permission(MINUTE), said_more(OwnRecord, Working, "busy", "at work", 500)]),
        ),
        one(
            "blocked later than its work began",
            agent_that(
                "a",
                vec![
                    said(OwnRecord, Working, "working", 20 * MINUTE),
                    said_more(OwnRecord, Waiting, "blocked", "needs an answer", 4 * MINUTE),
                ],
            ),
        ),
        one(
            "background shell",
            agent_that(
                "a",
                vec![
                    said(OwnRecord, Working, "busy", MINUTE),
                    said_more(OwnRecord, Idle, "shell", "background shell", 1000),
                ],
            ),
        ),
        one(
            "unknown word after work",
            agent_that(
                "a",
                vec![said(OwnRecord, Working, "busy", MINUTE), said(OwnRecord, Unknown, "frobnicating", 1000)],
            ),
        ),
        one(
            "unknown word over a long wait",
            agent_that("a", vec![permission(30 * MINUTE), said(Hook, Unknown, "frobnicating", 1000)]),
        ),
        one(
            "event newer than the record",
            agent_that(
                "a",
                vec![said(OwnRecord, Working, "busy", MINUTE), said(Hook, Waiting, "PermissionRequest", 1000)],
            ),
        ),
        one(
            "event and record at the same time",
            agent_that("a", vec![said(Hook, Idle, "Stop", 5000), said(OwnRecord, Working, "busy", 5000)]),
        ),
        one(
            "interrupted, as only the record tells",
            agent_that("a", vec![said(Hook, Working, "PreToolUse", MINUTE), said(OwnRecord, Idle, "idle", 5000)]),
        ),
        one(
            "permission granted, as only the record tells",
            agent_that(
                "a",
                vec![
                    said_more(Hook, Waiting, "PermissionRequest", "permission: Bash", MINUTE),
                    said(OwnRecord, Working, "busy", 5000),
                ],
            ),
        ),
        one(
            "interrupted, as only the transcript tells",
            agent_that(
                "a",
                vec![said(Hook, Working, "PreToolUse", MINUTE), said(Transcript, Idle, "turn_aborted", 5000)],
            ),
        ),
        one(
            "a tool that ended in silence",
            with("a", &|it| {
                it.evidence = vec![said(Hook, Working, "PreToolUse", 14 * MINUTE)];
                it.trend = Some(Trend { cpu_percent_mean: Some(0.0), ..trend(14 * MINUTE) });
            }),
        ),
        one(
            "record older than the transcript",
            agent_that(
                "a",
                vec![said(OwnRecord, Idle, "idle", 5 * MINUTE), said(Transcript, Working, "task_started", 1000)],
            ),
        ),
        one("open turn", agent_that("a", vec![said(Transcript, Working, "task_started", MINUTE)])),
        one(
            "turn aborted",
            agent_that(
                "a",
                vec![
                    said(Transcript, Working, "task_started", MINUTE),
                    said_more(Transcript, Idle, "turn_aborted", "aborted", 1000),
                ],
            ),
        ),
        one("says it has failed", agent_that("a", vec![said_more(Hook, Failed, "StopFailure", "rate limited", 1000)])),
        one("finished and still there", agent_that("a", vec![said(Hook, Finished, "SessionEnd", 1000)])),
        one("finished and busy", runaway(Finished, "done")),
        one(
            "hostile words",
            agent_that("a", vec![said_more(Hook, Waiting, "x", "a\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}b", 1000)]),
        ),
        one(
            "a clock that is ahead",
            agent_that("a", vec![Evidence { at_ms: u64::MAX, ..said(Transcript, Working, "task_started", 0) }]),
        ),
        one("elsewhere, said to work", not_local(vec![said(Upstream, Working, "active", 1000)])),
        one("elsewhere, nothing said", not_local(Vec::new())),
        one("elsewhere, said to wait for long", not_local(vec![said(Upstream, Waiting, "blocked", 30 * MINUTE)])),
        one("elsewhere, done", not_local(vec![said(Upstream, Finished, "finished", MINUTE)])),
        one("elsewhere, failed", not_local(vec![said_more(Upstream, Failed, "failed", "out of tokens", MINUTE)])),
        one(
            "elsewhere, found dead",
            not_local(vec![said_more(Upstream, Failed, "dead", "ended with exit code 3", MINUTE)]),
        ),
        one(
            "elsewhere, starts again by itself",
            not_local(vec![said_more(Upstream, Failed, "starts again", "exit code 4; starts again in 4 s", MINUTE)]),
        ),
        one(
            "elsewhere, found to stall",
            not_local(vec![said_more(Upstream, Working, "stalled", "claims to work, but no CPU for 12 min", MINUTE)]),
        ),
        one(
            "elsewhere, found degraded at work",
            not_local(vec![
                said_more(Upstream, Working, "working", "running a tool", MINUTE),
                said_more(Upstream, Working, "degraded", "memory-growth: grows by 90 MB a minute", MINUTE),
            ]),
        ),
        one("elsewhere, in a word of its own", not_local(vec![said(Upstream, Unknown, "frobnicating", MINUTE)])),
        one("elsewhere, and silent for long", {
            let mut agent = not_local(Vec::new());
            agent.unmeasured = vec![gap("process", "process 7 at u"), gap("activity", "u has not answered for 3 min")];
            agent
        }),
        one("here, and stalled by its own record", agent_that("a", vec![said(OwnRecord, Working, "stalled", 1000)])),
        one("a guess from the terminal", agent_that("a", vec![said(Process, Waiting, "prompt", 1000)])),
        // Silence.
        one(
            "long turn with a busy child",
            with("a", &|it| {
                it.evidence = vec![said(OwnRecord, Working, "busy", 14 * MINUTE)];
                it.trend = Some(Trend { cpu_percent_mean: Some(60.0), ..trend(0) });
            }),
        ),
        one(
            "long turn with nothing to see",
            with("a", &|it| {
                it.evidence = vec![said(OwnRecord, Working, "busy", 14 * MINUTE)];
                it.trend = Some(Trend { cpu_percent_mean: Some(0.0), ..trend(14 * MINUTE) });
            }),
        ),
        one(
            "just begun after a long quiet",
            with("a", &|it| {
                it.evidence = vec![said(OwnRecord, Working, "busy", 5000)];
                it.trend = Some(trend(40 * MINUTE));
            }),
        ),
        one(
            "long turn, never watched",
            with("a", &|it| {
                it.evidence = vec![said(OwnRecord, Working, "busy", 60 * MINUTE)];
                it.trend = None;
            }),
        ),
        // No evidence.
        one("seen at work", agent("a")),
        one("quiet for 12 minutes", with("a", &|it| it.trend = Some(trend(12 * MINUTE)))),
        one("watched for a moment", with("a", &|it| it.trend = Some(Trend { window_ms: 300, ..trend(300) }))),
        one("measured once, busy", with("a", &|it| it.trend = None)),
        one(
            "measured once, quiet",
            with("a", &|it| {
                it.trend = None;
                it.metrics.cpu_percent = Some(0.0);
            }),
        ),
        one(
            "not measured",
            with("a", &|it| {
                it.trend = None;
                it.metrics.cpu_percent = None;
                it.unmeasured = vec![gap("cpu-percent", "needs two samples")];
            }),
        ),
        one("stopped by a signal", with("a", &|it| it.process = ProcessState::Stopped)),
        one(
            "stopped while it says it works",
            with("a", &|it| {
                it.process = ProcessState::Stopped;
                it.evidence = vec![said(OwnRecord, Working, "busy", 1000)];
            }),
        ),
        one(
            "unreadable",
            with("a", &|it| {
                it.process = ProcessState::Unreadable;
                it.metrics = no_metrics();
                it.trend = None;
                it.unmeasured =
                    ["cpu-percent", "memory-bytes", "threads"].map(|field| gap(field, "permission denied")).into();
            }),
        ),
        // Figures.
        one("idle and busy", runaway(Idle, "idle")),
        one(
            "much memory, growing",
            with("a", &|it| {
                it.metrics.memory_bytes = Some(9 << 30);
                it.trend = Some(Trend { memory_bytes_per_minute: Some(f64::from(60 << 20)), ..trend(0) });
            }),
        ),
        one("descriptors run out", with("a", &|it| it.metrics.fullest_fds = Some(1012))),
        one(
            "many threads, many zombies",
            with("a", &|it| {
                it.metrics.threads = Some(5000);
                it.metrics.zombies = Some(12);
            }),
        ),
        one(
            "some figures could not be had",
            with("a", &|it| {
                it.metrics.fullest_fds = None;
                it.metrics.memory_bytes = None;
                it.unmeasured = vec![gap("fullest-fds", "permission denied"), gap("memory-bytes", "permission denied")];
            }),
        ),
        one(
            "figures that are none",
            with("a", &|it| {
                it.metrics.cpu_percent = Some(f64::NAN);
                it.trend = Some(Trend {
                    cpu_percent_mean: Some(f64::INFINITY),
                    memory_bytes_per_minute: Some(f64::NAN),
                    ..trend(0)
                });
            }),
        ),
        // Sessions and settings.
        ("a crowd", crowd(40), String::new()),
        (
            "most have failed",
            snapshot(vec![ended("a", ProcessState::Gone, Some(1)), ended("b", ProcessState::Gone, None), agent("c")]),
            String::new(),
        ),
        (
            "a patient operator",
            snapshot(vec![agent_that("a", vec![permission(30 * MINUTE)])]),
            r#"{"waiting_too_long_warn":"2h"}"#.to_owned(),
        ),
        (
            "a strict operator",
            snapshot(vec![agent_that("a", vec![permission(30 * MINUTE)])]),
            r#"{"waiting_too_long_fail":"20m","degraded_share":0}"#.to_owned(),
        ),
        (
            "refused settings",
            snapshot(vec![agent("a")]),
            r#"{"stall_afer":"10m","fd_near_limit_warn":101,"idle_after":30}"#.to_owned(),
        ),
    ];
    let mut sources = snapshot(vec![agent("a")]);
    sources.sources.push(SourceState { name: "roster".to_owned(), error: Some("line 3: unknown key".to_owned()) });
    cases.push(("a source has failed", sources, String::new()));
    cases
}
