//! Each check: when it passes, warns, fails, is unknown, is not made.

use super::*;
use crate::activity::find;
use crate::cases::{MINUTE, NOW, agent, agent_that, ended, gap, no_metrics, said, trend};
use crate::{Claim, Evidence, Source};

fn sheet_by(agent: &Agent, settings: &str) -> Sheet {
    let settings = Settings::parse(settings).unwrap();
    check(agent, &find(agent, NOW, &settings), NOW, &settings)
}

fn sheet(agent: &Agent) -> Sheet {
    sheet_by(agent, "")
}

/// The outcomes and details of what did not pass.
fn listed(agent: &Agent) -> Vec<(Outcome, String)> {
    sheet(agent).listed.into_iter().map(|check| (check.outcome, format!("{}: {}", check.name, check.detail))).collect()
}

fn is(outcome: Outcome, text: &str) -> Vec<(Outcome, String)> {
    vec![(outcome, text.to_owned())]
}

fn with(change: impl Fn(&mut Agent)) -> Agent {
    let mut agent = agent("a");
    change(&mut agent);
    agent
}

fn says(claim: Claim, age_ms: u64) -> Vec<Evidence> {
    vec![said(Source::OwnRecord, claim, "word", age_ms)]
}

#[test]
fn passing_checks_are_only_counted() {
    let sheet = sheet(&agent("a"));
    assert_eq!((sheet.listed.len(), sheet.points, sheet.worst.is_some()), (0, 0, false));
    // known, stalled, evidence-conflict, memory-high, memory-growth, fd-near-limit, thread-count, zombie-children.
    assert_eq!(sheet.passed, 8);
}

#[test]
fn an_agent_that_failed_loses_all() {
    assert_eq!(
        listed(&ended("a", ProcessState::Gone, Some(3))),
        is(Outcome::Fail, "exit: ended with exit code 3, −100")
    );
    assert_eq!(listed(&ended("a", ProcessState::Gone, Some(0))), []);
    assert_eq!(sheet(&ended("a", ProcessState::Gone, Some(0))).passed, 1);
    let says_so = agent_that("a", says(Claim::Failed, 0));
    assert_eq!(listed(&says_so), is(Outcome::Fail, "exit: word, −100"));
}

#[test]
fn what_the_dead_leave_behind_is_told_and_no_figure_held_against_them() {
    let mut agent = ended("a", ProcessState::Zombie, Some(0));
    agent.metrics = crate::Metrics { processes: Some(2), memory_bytes: Some(20 << 30), ..no_metrics() };
    assert_eq!(listed(&agent), is(Outcome::Warn, "leftover-processes: 2 of its processes live on, −5"));
    agent.metrics.processes = Some(0);
    assert_eq!((listed(&agent), sheet(&agent).passed), (vec![], 2));
}

#[test]
fn what_is_not_known_costs_half() {
    let word = agent_that("a", says(Claim::Unknown, 0));
    assert_eq!(listed(&word), is(Outcome::Unknown, "known: unknown word \"word\", −50"));
    let unreadable = with(|it| {
        (it.process, it.trend, it.metrics) = (ProcessState::Unreadable, None, no_metrics());
        it.unmeasured = ["cpu-percent", "memory-bytes", "threads"].map(|field| gap(field, "permission denied")).into();
    });
    // One reason for all, said once.
    assert_eq!(listed(&unreadable), is(Outcome::Unknown, "known: its process cannot be read, −50"));
    let working = Agent { evidence: says(Claim::Working, 0), ..unreadable };
    assert_eq!(listed(&working), is(Outcome::Unknown, "known: its process cannot be read, −50"));
}

#[test]
fn a_stall_fails() {
    let agent = Agent { trend: Some(trend(14 * MINUTE)), ..agent_that("a", says(Claim::Working, 14 * MINUTE)) };
    assert_eq!(listed(&agent), is(Outcome::Fail, "stalled: claims to work, but no CPU or IO for 14 min, −30"));
}

#[test]
fn waiting_warns_after_a_while_and_fails_only_by_request() {
    let waiting = |age_ms| agent_that("a", says(Claim::Waiting, age_ms));
    assert_eq!(listed(&waiting(10 * MINUTE - 1)), []);
    assert_eq!(
        listed(&waiting(10 * MINUTE)),
        is(Outcome::Warn, "waiting-too-long: asked for input 10 min ago (limit 10 min), −10")
    );
    assert_eq!(listed(&waiting(NOW))[0].0, Outcome::Warn);
    let check = &sheet_by(&waiting(30 * MINUTE), r#"{"waiting_too_long_fail":"20m"}"#).listed[0];
    assert_eq!((check.outcome, check.value, check.limit), (Outcome::Fail, Some(1800.0), Some(1200.0)));
    assert_eq!(check.detail, "asked for input 30 min ago (limit 20 min), −20");
}

#[test]
fn an_idle_agent_may_not_use_a_core() {
    let idle = |mean, age_ms| {
        let mut agent = agent_that("a", says(Claim::Idle, age_ms));
        agent.trend = Some(Trend { cpu_percent_mean: Some(mean), ..trend(0) });
        agent
    };
    let text = "cpu-runaway: 97 % CPU with no work claimed (limit 90 %), −25";
    assert_eq!(listed(&idle(97.6, 10 * MINUTE)), is(Outcome::Fail, text));
    assert_eq!(listed(&idle(50.0, 10 * MINUTE))[0].0, Outcome::Warn);
    assert_eq!(listed(&idle(49.9, 10 * MINUTE)), []);
    // It was at work for a part of the window, and rightly used CPU.
    assert_eq!(listed(&idle(97.6, 10 * MINUTE - 1)), []);
    let mut waiting = idle(97.6, 9 * MINUTE);
    waiting.evidence = says(Claim::Waiting, 9 * MINUTE);
    waiting.trend = Some(Trend { window_ms: 5 * MINUTE, cpu_percent_mean: Some(97.6), ..trend(0) });
    assert_eq!(listed(&waiting), is(Outcome::Fail, text));
    waiting.trend = Some(Trend { window_ms: 5 * MINUTE - 1, cpu_percent_mean: Some(97.6), ..trend(0) });
    assert_eq!(listed(&waiting), []);
}

#[test]
fn a_working_agent_may_use_all_cores() {
    let mut agent = agent_that("a", says(Claim::Working, 20 * MINUTE));
    agent.trend = Some(Trend { cpu_percent_mean: Some(800.0), ..trend(0) });
    assert_eq!(listed(&agent), []);
}

#[test]
fn a_finished_agent_that_uses_a_core_contradicts_itself() {
    let mut agent = agent_that("a", says(Claim::Finished, 20 * MINUTE));
    agent.trend = Some(Trend { cpu_percent_mean: Some(90.0), ..trend(0) });
    assert_eq!(listed(&agent), is(Outcome::Warn, "evidence-conflict: finished, but uses 90 % CPU (limit 90 %), −5"));
}

#[test]
fn record_and_event_of_one_moment_should_agree() {
    let both = |record_age, event_age| {
        agent_that(
            "a",
            vec![
                said(Source::OwnRecord, Claim::Working, "busy", record_age),
                said(Source::Hook, Claim::Idle, "Stop", event_age),
            ],
        )
    };
    let text = "evidence-conflict: its record says \"busy\", an event at the same time \"Stop\", −5";
    assert_eq!(listed(&both(5000, 4000)), is(Outcome::Warn, text));
    // One came after the other.
    assert_eq!(listed(&both(5001, 4000)), []);
    // The record may follow yet.
    assert_eq!(listed(&both(1000, 999)), []);
    let mut agree = both(5000, 4000);
    agree.evidence.push(said(Source::OwnRecord, Claim::Idle, "idle", 3500));
    assert_eq!(listed(&agree), []);
}

#[test]
fn much_memory() {
    let memory = |bytes| with(|it| it.metrics.memory_bytes = Some(bytes));
    assert_eq!(listed(&memory((4 << 30) - 1)), []);
    assert_eq!(listed(&memory(4 << 30)), is(Outcome::Warn, "memory-high: 4 GiB of memory (limit 4 GiB), −13"));
    assert_eq!(listed(&memory(9 << 30)), is(Outcome::Fail, "memory-high: 9 GiB of memory (limit 8 GiB), −25"));
    // Nobody is degraded for an estimate.
    let estimated = with(|it| {
        it.metrics.memory_bytes = Some(90 << 30);
        it.metrics.memory_method = crate::MemoryMethod::Estimate;
    });
    let detail = "memory-high: 90 GiB of memory, estimated (limit 8 GiB), −13";
    assert_eq!(listed(&estimated), is(Outcome::Warn, detail));
}

#[test]
fn growing_memory_counts_when_it_is_large_and_long_watched() {
    let growing = |mib: u32, memory, window_ms| {
        with(|it| {
            it.metrics.memory_bytes = Some(memory);
            it.trend = Some(Trend { window_ms, memory_bytes_per_minute: Some(f64::from(mib << 20)), ..trend(0) });
        })
    };
    let text = "memory-growth: 60 MiB more memory a minute (limit 50 MiB), −8";
    assert_eq!(listed(&growing(60, 1 << 30, 5 * MINUTE)), is(Outcome::Warn, text));
    assert_eq!(listed(&growing(200, 1 << 30, 5 * MINUTE))[0].0, Outcome::Fail);
    assert_eq!(listed(&growing(49, 1 << 30, 5 * MINUTE)), []);
    assert_eq!(listed(&growing(200, (1 << 30) - 1, 5 * MINUTE)), []);
    assert_eq!(listed(&growing(200, 1 << 30, 5 * MINUTE - 1)), []);
}

#[test]
fn shrinking_memory_is_no_growth() {
    let shrinking = with(|it| {
        it.metrics.memory_bytes = Some(2 << 30);
        it.trend = Some(Trend { memory_bytes_per_minute: Some(-1e12), ..trend(0) });
    });
    assert_eq!(listed(&shrinking), []);
}

#[test]
fn descriptors_are_held_against_the_fullest_process_own_limit() {
    let open = |open, all| {
        with(|it| {
            it.metrics.fullest_fds = Some(open);
            it.metrics.file_descriptors = Some(all);
        })
    };
    assert_eq!(
        listed(&open(1012, 1100)),
        is(Outcome::Fail, "fd-near-limit: 1012 of 1024 descriptors (limit 90 %), −25")
    );
    assert_eq!(listed(&open(820, 820)), is(Outcome::Warn, "fd-near-limit: 820 of 1024 descriptors (limit 80 %), −13"));
    // The tree's sum is nobody's limit.
    assert_eq!(listed(&open(500, 5000)), []);
    let check = &sheet(&open(1012, 1100)).listed[0];
    assert_eq!((check.value, check.limit), (Some(98.0), Some(90.0)));
    assert_eq!(listed(&with(|it| it.metrics.fd_limit = Some(0))), []);
}

#[test]
fn threads_and_zombies() {
    let many = with(|it| (it.metrics.threads, it.metrics.zombies) = (Some(4000), Some(10)));
    let expected = [
        (Outcome::Fail, "thread-count: 4000 threads (limit 4000), −15".to_owned()),
        (Outcome::Warn, "zombie-children: 10 ended children not collected (limit 10), −5".to_owned()),
    ];
    assert_eq!(listed(&many), expected);
}

#[test]
fn a_missing_figure_is_unknown_where_the_facts_say_why() {
    let mut agent = with(|it| (it.metrics.fullest_fds, it.metrics.threads) = (None, None));
    assert_eq!(listed(&agent), []);
    agent.unmeasured = vec![gap("fullest-fds", "permission\u{7} denied")];
    assert_eq!(listed(&agent), is(Outcome::Unknown, "fd-near-limit: not measured: permission denied, −5"));
    assert_eq!(sheet_by(&agent, r#"{"fd_near_limit_weight":0}"#).listed.len(), 0);
}

#[test]
fn figures_that_are_none_are_not_judged() {
    let agent = with(|it| {
        it.evidence = says(Claim::Idle, 30 * MINUTE);
        it.metrics.memory_bytes = Some(2 << 30);
        it.trend =
            Some(Trend { cpu_percent_mean: Some(f64::INFINITY), memory_bytes_per_minute: Some(f64::NAN), ..trend(0) });
    });
    assert_eq!(listed(&agent), []);
}

#[test]
fn an_unknown_word_hides_no_problem() {
    let mut agent = agent_that(
        "a",
        vec![
            said(Source::OwnRecord, Claim::Waiting, "waiting", 30 * MINUTE),
            said(Source::Hook, Claim::Unknown, "frobnicating", 0),
        ],
    );
    let names = |agent: &Agent| sheet(agent).listed.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&agent), ["known", "waiting-too-long"]);
    agent.evidence[0] = said(Source::OwnRecord, Claim::Working, "busy", 30 * MINUTE);
    agent.trend = Some(trend(30 * MINUTE));
    assert_eq!(names(&agent), ["known", "stalled"]);
}

#[test]
fn a_weight_of_zero_leaves_a_check_out() {
    let many = with(|it| it.metrics.threads = Some(4000));
    let sheet = sheet_by(&many, r#"{"thread_count_weight":0}"#);
    assert_eq!((sheet.listed.len(), sheet.passed, sheet.worst.is_some()), (0, 7, false));
}

#[test]
fn the_worst_failure_is_the_one_that_costs_most() {
    let both = with(|it| (it.metrics.threads, it.metrics.fullest_fds) = (Some(4000), Some(1024)));
    let alike = sheet_by(&both, r#"{"thread_count_weight":25}"#).worst.unwrap();
    assert_eq!(alike.rule.name, "fd-near-limit", "of equals the first");
    let worst = sheet(&both).worst.unwrap();
    assert_eq!((worst.rule.name, worst.index), ("fd-near-limit", 0));
    assert_eq!(&sheet(&both).listed[0].detail[..worst.said], "1024 of 1024 descriptors (limit 90 %)");
}
