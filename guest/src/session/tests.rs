//! Health, totals, the session's checks and advice.

use super::*;
use crate::cases::{MINUTE, agent, agent_that, ended, no_metrics, said, said_more, snapshot, trend};
use crate::{Claim, Metrics, Source};

fn judged(agents: Vec<Agent>) -> SessionVerdict {
    judge(&snapshot(agents), &Settings::default())
}

fn failed() -> Agent {
    ended("failed", ProcessState::Gone, Some(1))
}

fn offline() -> Agent {
    ended("offline", ProcessState::Gone, Some(0))
}

fn degraded() -> Agent {
    let mut agent = agent("degraded");
    agent.metrics.threads = Some(5000);
    agent
}

fn unknown() -> Agent {
    agent_that("unknown", vec![said(Source::OwnRecord, Claim::Unknown, "frobnicating", 0)])
}

fn waiting() -> Agent {
    agent_that("waiting", vec![said_more(Source::OwnRecord, Claim::Waiting, "waiting", "permission prompt", 0)])
}

fn stalled() -> Agent {
    Agent {
        trend: Some(trend(20 * MINUTE)),
        ..agent_that("stalled", vec![said(Source::Hook, Claim::Working, "PreToolUse", 20 * MINUTE)])
    }
}

/// Agents by kind: how many are well, degraded, failed, unknown and offline.
fn health_of(well: usize, bad: usize, dead: usize, dark: usize, over: usize) -> (Health, u8) {
    let many = |count, agent: fn() -> Agent| std::iter::repeat_with(agent).take(count);
    let agents = many(well, || agent("well"))
        .chain(many(bad, degraded))
        .chain(many(dead, failed))
        .chain(many(dark, unknown))
        .chain(many(over, offline));
    let verdict = judged(agents.collect());
    (verdict.health, verdict.score)
}

#[test]
fn health_is_by_shares_of_those_that_are_not_offline() {
    assert_eq!(health_of(0, 0, 0, 0, 0), (Health::Empty, 100));
    assert_eq!(health_of(3, 0, 0, 0, 0), (Health::Healthy, 100));
    assert_eq!(health_of(0, 0, 0, 0, 3), (Health::Healthy, 100));
    // 3 of 10 is not above 30 %.
    assert_eq!(health_of(7, 3, 0, 0, 0), (Health::Healthy, 95));
    assert_eq!(health_of(6, 3, 0, 0, 5), (Health::Degraded, 95));
    assert_eq!(health_of(9, 0, 1, 0, 0), (Health::Degraded, 90));
    // 1 of 2 is not above 50 %.
    assert_eq!(health_of(1, 0, 1, 0, 0), (Health::Degraded, 50));
    assert_eq!(health_of(1, 0, 2, 0, 9), (Health::Critical, 33));
    assert_eq!(health_of(0, 0, 0, 2, 1), (Health::Unknown, 50));
    assert_eq!(health_of(1, 0, 0, 9, 0), (Health::Healthy, 55));
}

#[test]
fn the_shares_are_settings() {
    let facts = snapshot(vec![agent("a"), agent("b"), failed(), degraded()]);
    let health = |failed_share, degraded_share| {
        judge(&facts, &Settings { failed_share, degraded_share, ..Settings::default() }).health
    };
    assert_eq!(health(50, 30), Health::Degraded);
    assert_eq!(health(24, 30), Health::Critical);
    assert_eq!(health(25, 0), Health::Degraded);
}

#[test]
fn the_shares_stand_among_the_checks() {
    let verdict = judged(vec![agent("a"), agent("b"), failed(), degraded(), offline()]);
    let texts: Vec<_> = verdict
        .checks
        .iter()
        .map(|check| (check.name.as_str(), check.outcome, check.detail.as_str(), check.value, check.limit))
        .collect();
    let expected = [
        ("failed-share", Outcome::Warn, "1 of 4 agents failed (of those not offline)", Some(25.0), Some(50.0)),
        ("degraded-share", Outcome::Warn, "1 of 4 agents are degraded (of those not offline)", Some(25.0), Some(30.0)),
    ];
    assert_eq!((texts.as_slice(), verdict.checks_passed), (expected.as_slice(), 1));
    assert_eq!(judged(vec![failed()]).checks[0].outcome, Outcome::Fail);
    assert_eq!(judged(vec![]).checks_passed, 3);
}

#[test]
fn a_failed_source_is_named() {
    let mut facts = snapshot(vec![agent("a")]);
    let source =
        |name: &str, error: Option<&str>| SourceState { name: name.to_owned(), error: error.map(str::to_owned) };
    facts.sources = vec![source("processes", None), source("roster", Some("line 3:\u{1b}[2J unknown key"))];
    let check = judge(&facts, &Settings::default()).checks.remove(0);
    assert_eq!(
        (check.name.as_str(), check.outcome, check.detail.as_str()),
        ("sources", Outcome::Warn, "roster: line 3: unknown key")
    );
    facts.sources.extend((0..9).map(|_| source("up", Some("down"))));
    let check = judge(&facts, &Settings::default()).checks.remove(0);
    assert_eq!(
        (check.detail.as_str(), check.value),
        ("roster: line 3: unknown key; up: down; up: down; 7 more", Some(10.0))
    );
}

#[test]
fn advice_is_for_each_agent_that_needs_somebody_the_most_urgent_first() {
    let advice =
        judged(vec![agent("well"), degraded(), stalled(), failed(), waiting(), unknown(), offline(), waiting()]).advice;
    let texts: Vec<_> = advice.iter().map(|it| (it.agent, it.why.as_str(), it.action.as_str())).collect();
    let expected = [
        (Some(4), "waits for input: permission prompt", "answer it in its terminal"),
        (Some(7), "waits for input: permission prompt", "answer it in its terminal"),
        (Some(3), "failed: ended with exit code 1", "read its last output, then start it again or remove it"),
        (
            Some(2),
            "stalled: claims to work, but no CPU or IO for 20 min",
            "look at its terminal; interrupt it or start it again",
        ),
        (
            Some(1),
            "thread-count: 5000 threads (limit 4000)",
            "look for a program in its tree that starts threads without end",
        ),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn advice_goes_by_what_is_wrong_where_the_activity_is_not_understood() {
    let mut failed = agent_that("a", vec![said_more(Source::Hook, Claim::Failed, "StopFailure", "rate limited", 1000)]);
    failed.evidence.push(said(Source::Hook, Claim::Unknown, "frobnicating", 0));
    assert_eq!(judged(vec![failed]).advice[0].why, "failed: rate limited");
    let mut wordless = waiting();
    (wordless.evidence[0].word, wordless.evidence[0].detail) = (String::new(), Some(String::new()));
    assert_eq!(judged(vec![wordless]).advice[0].why, "waits for input");
}

#[test]
fn totals_are_of_what_was_measured() {
    let mut partly = agent("partly");
    partly.metrics.memory_bytes = None;
    let totals = judged(vec![agent("a"), partly, waiting()]).totals;
    assert_eq!(
        (totals.cpu_percent, totals.memory_bytes, totals.file_descriptors),
        (37.5, 2.0 * 300.0 * 1024.0 * 1024.0, 270.0)
    );
    assert_eq!((totals.threads, totals.processes, totals.waiting, totals.unmeasured), (72.0, 9.0, 1, 1));
}

#[test]
fn the_dead_count_only_by_what_they_left_behind() {
    let mut dead = failed();
    dead.metrics = Metrics { cpu_percent: Some(50.0), memory_bytes: Some(1 << 20), processes: Some(0), ..no_metrics() };
    let totals = judged(vec![dead.clone()]).totals;
    assert_eq!((totals.cpu_percent, totals.memory_bytes, totals.unmeasured), (0.0, 0.0, 0));
    dead.metrics.processes = Some(1);
    let totals = judged(vec![dead]).totals;
    assert_eq!(
        (totals.cpu_percent, totals.memory_bytes, totals.processes, totals.unmeasured),
        (50.0, 1_048_576.0, 1.0, 0)
    );
}

#[test]
fn what_an_agent_elsewhere_needs_is_done_where_it_runs() {
    for claim in [Claim::Waiting, Claim::Failed] {
        let action = |process, source| {
            let evidence = vec![said(source, claim, "so", 1000)];
            judged(vec![Agent { process, ..agent_that("a", evidence) }]).advice[0].action.clone()
        };
        assert_eq!(action(ProcessState::NotLocal, Source::Upstream), "see to it where it runs");
        assert!(action(ProcessState::Sleeping, Source::Hook).contains(" its "));
    }
}

#[test]
fn an_agent_elsewhere_is_not_missing_here() {
    let elsewhere = Agent { process: ProcessState::NotLocal, metrics: no_metrics(), trend: None, ..agent("a") };
    let unreadable = Agent { process: ProcessState::Unreadable, ..elsewhere.clone() };
    assert_eq!(judged(vec![elsewhere, unreadable]).totals.unmeasured, 1);
}

#[test]
fn numbers_that_are_none_do_not_spoil_the_sums() {
    let cpu = |percent| {
        let mut agent = agent("a");
        agent.metrics.cpu_percent = Some(percent);
        agent
    };
    let totals = judged(vec![cpu(f64::NAN), cpu(f64::INFINITY), cpu(-1.0), cpu(2.0)]).totals;
    assert_eq!((totals.cpu_percent, totals.unmeasured), (2.0, 3));
    assert_eq!(judged(vec![cpu(0.0)]).totals.unmeasured, 0);
    assert_eq!(judged(vec![cpu(f64::MAX), cpu(f64::MAX)]).totals.cpu_percent, f64::MAX);
    // Zero, not minus zero.
    assert_eq!(judged(vec![]).totals.cpu_percent.to_bits(), 0);
}
