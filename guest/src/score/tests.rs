//! Status and score.

use super::*;
use crate::cases::{MINUTE, NOW, agent, agent_that, ended, said, trend};
use crate::{Claim, Evidence, Source};

fn judged(agent: &Agent) -> (Status, u8) {
    let verdict = assess(agent, NOW, &Settings::default()).verdict;
    (verdict.status, verdict.score)
}

fn says(claim: Claim) -> Vec<Evidence> {
    vec![said(Source::OwnRecord, claim, "word", 30 * MINUTE)]
}

fn full() -> Agent {
    let mut agent = agent("a");
    agent.metrics.fullest_fds = Some(1024);
    agent
}

#[test]
fn the_end_decides() {
    assert_eq!(judged(&ended("a", ProcessState::Gone, Some(1))), (Status::Failed, 0));
    assert_eq!(judged(&ended("a", ProcessState::Gone, None)), (Status::Failed, 0));
    assert_eq!(judged(&ended("a", ProcessState::Zombie, Some(-11))), (Status::Failed, 0));
    assert_eq!(judged(&ended("a", ProcessState::Gone, Some(0))), (Status::Offline, 100));
    assert_eq!(judged(&agent_that("a", says(Claim::Finished))), (Status::Offline, 100));
    assert_eq!(judged(&agent_that("a", says(Claim::Failed))), (Status::Failed, 0));
}

#[test]
fn a_failed_check_degrades_and_a_warning_only_costs() {
    assert_eq!(judged(&full()), (Status::Degraded, 75));
    assert_eq!(judged(&agent_that("a", says(Claim::Waiting))), (Status::Active, 90));
    assert_eq!(judged(&agent("a")), (Status::Active, 100));
}

#[test]
fn a_stall_degrades_even_where_it_costs_nothing() {
    let stalled = Agent { trend: Some(trend(30 * MINUTE)), ..agent_that("a", says(Claim::Working)) };
    assert_eq!(judged(&stalled), (Status::Degraded, 70));
    let free = Settings { stalled_weight: 0, ..Settings::default() };
    let verdict = assess(&stalled, NOW, &free).verdict;
    assert_eq!((verdict.status, verdict.score), (Status::Degraded, 100));
}

#[test]
fn what_is_not_known_is_unknown_unless_something_is_known_to_be_wrong() {
    assert_eq!(judged(&agent_that("a", says(Claim::Unknown))), (Status::Unknown, 50));
    assert_eq!(judged(&Agent { evidence: says(Claim::Unknown), ..full() }), (Status::Degraded, 25));
    assert_eq!(
        judged(&Agent { process: ProcessState::Unreadable, ..agent_that("a", says(Claim::Working)) }),
        (Status::Unknown, 50)
    );
    assert_eq!(
        judged(&Agent { process: ProcessState::NotLocal, ..agent_that("a", says(Claim::Working)) }),
        (Status::Active, 100)
    );
    let unknown_after = |claim| {
        let mut evidence = says(claim);
        evidence.push(said(Source::Hook, Claim::Unknown, "frobnicating", 0));
        judged(&agent_that("a", evidence))
    };
    assert_eq!(unknown_after(Claim::Failed), (Status::Failed, 0));
    assert_eq!(unknown_after(Claim::Finished), (Status::Unknown, 50));
}

#[test]
fn the_verdict_says_how_it_was_found() {
    let mut evidence = says(Claim::Waiting);
    evidence.push(said(Source::Hook, Claim::Unknown, "frobnicating", 1000));
    let verdict = assess(&agent_that("a", evidence), NOW, &Settings::default()).verdict;
    assert_eq!((verdict.activity, verdict.reason.as_str()), (Activity::Unknown, "unknown word \"frobnicating\""));
    assert_eq!(
        (verdict.since_ms, verdict.decided_by, verdict.inferred),
        (Some((NOW - 1000) as f64), Source::Hook, false)
    );
}

#[test]
fn no_score_is_below_zero() {
    let costly = Settings {
        known_weight: 100,
        waiting_too_long_weight: 100,
        fd_near_limit_weight: 100,
        thread_count_weight: 100,
        ..Settings::default()
    };
    let mut agent = Agent { evidence: says(Claim::Unknown), ..full() };
    agent.metrics.threads = Some(u32::MAX);
    assert_eq!(assess(&agent, NOW, &costly).verdict.score, 0);
}
