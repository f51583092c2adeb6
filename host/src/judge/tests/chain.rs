//! Chains: each policy gets the verdict so far, and one that fails takes nothing away from those before it.

use super::*;
use crate::report::{self, SessionHealth, View};

fn report(judge: &Judge) -> report::Report {
    let facts = session(2);
    report::report(&facts, &judge.judge(&facts), &View::default(), 0)
}

#[test]
fn the_last_policy_has_the_last_word() {
    let report = report(&chain(vec![builtin(""), misbehaving("critical")]));
    assert_eq!(report.session_health, SessionHealth::Critical);
    let names: Vec<_> = report.policies.iter().map(|p| (p.name.as_str(), p.outcome)).collect();
    assert_eq!(names, [("built-in", "verdict"), ("misbehaving", "verdict")]);
}

#[test]
fn a_policy_that_fails_leaves_the_verdict_of_those_before_it() {
    let alone = report(&judge_of(builtin("")));
    let report = report(&chain(vec![builtin(""), misbehaving("panic"), misbehaving("nothing")]));
    assert_eq!(report.session_health, alone.session_health);
    assert_eq!(report.session_score, alone.session_score);
    let outcomes: Vec<_> = report.policies.iter().map(|p| p.outcome).collect();
    assert_eq!(outcomes, ["verdict", "trap", "verdict"]);
    let detail = report.policies[1].detail.as_deref().unwrap();
    assert!(detail.starts_with("it broke: it panicked: as asked, at tests/guest/src/lib.rs:"), "{detail}");
}

#[test]
fn where_the_only_policy_fails_the_facts_are_there_and_nothing_is_claimed_of_them() {
    let report = report(&judge_of(misbehaving("decline")));
    assert_eq!(report.session_health, SessionHealth::Unknown);
    assert_eq!((report.session_score, report.session_metrics.is_none(), report.partial), (None, true, true));
    assert_eq!(report.agents.len(), 2);
    for agent in &report.agents {
        assert_eq!(agent.status, report::AgentStatus::Unknown);
        assert_eq!(agent.activity.reason, "not judged: policy misbehaving: declined");
        assert_eq!(agent.metrics.as_ref().unwrap().cpu_percent, Some(1.5));
    }
}

#[test]
fn a_policy_that_could_not_be_loaded_keeps_its_place() {
    let report = report(&chain(vec![Err(Outcome::NotAPolicy("the file is empty".into())), builtin("")]));
    assert_eq!((report.policies[0].name.as_str(), report.policies[0].outcome), ("POLICY.wasm", "not-a-policy"));
    assert_eq!(report.policies[1].outcome, "verdict");
    assert_ne!(report.session_health, SessionHealth::Unknown);
}

#[test]
fn the_same_facts_are_judged_alike_every_time() {
    let judge = chain(vec![builtin(""), misbehaving("nothing")]);
    let facts = session(50);
    let first = format!("{:?}", judge.judge(&facts).verdict);
    assert!((0..5).all(|_| format!("{:?}", judge.judge(&facts).verdict) == first));
}

#[test]
fn one_that_is_late_again_and_again_is_left_alone_for_a_while() {
    let limits = Limits { deadline: Duration::from_millis(30), ..Limits::default() };
    let judge = chain(vec![builtin(""), load(MISBEHAVING_POLICY, r#"{"do":"loop"}"#, limits)]);
    let outcomes: Vec<_> = (0..5).map(|_| judge.judge(&session(1)).policies.remove(1).outcome).collect();
    assert!(outcomes[..3].iter().all(|outcome| *outcome == Outcome::Deadline(limits.deadline)), "{outcomes:?}");
    assert!(outcomes[3..].iter().all(|outcome| matches!(outcome, Outcome::Resting { .. })), "{outcomes:?}");
    let said = outcomes[3].to_string();
    assert!(said.contains("several times in a row, and is not asked for 1s"), "{said}");
}
