//! How far a search goes, with a policy that needs no sandbox and clocks that tests turn.

use super::*;
use crate::clock::{ManualClock, Moment};
use crate::judge::sample;
use crate::judge::{Judge, Limits, Place, Runtime};
use crate::observe::facts::{Agent, Evidence, ProcessState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock on which each look takes this many milliseconds.
struct Ticking(u64, AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Moment {
        let ms = self.1.fetch_add(self.0, Ordering::Relaxed);
        Moment { unix_ms: ms, steady: Duration::from_millis(ms) }
    }
}

/// A session, and what the built-in policy says of it.
fn judged(agents: usize, change: impl Fn(usize, &mut Agent)) -> (Snapshot, Verdict) {
    let runtime = Runtime::new(None, None, 0).unwrap();
    // A deadline that a busy machine keeps.
    let limits = Limits { deadline: Duration::from_secs(30), ..Limits::default() };
    let judge = Judge::on(runtime, vec![Place { limits, ..Place::builtin() }], Arc::new(ManualClock::at(0)));
    let mut facts = sample::session(agents);
    facts.agents.iter_mut().enumerate().for_each(|(n, agent)| change(n, agent));
    let verdict = judge.judge(&facts).verdict.unwrap();
    (facts, verdict)
}

/// A piece of evidence.
fn said() -> Evidence {
    sample::session(1).agents[0].evidence[0].clone()
}

/// A verdict in which the agents have these statuses and scores.
fn verdict(statuses: &[(Status, u8)]) -> (Snapshot, Verdict) {
    let (facts, mut verdict) = judged(statuses.len(), |_, _| {});
    for (agent, (status, score)) in verdict.agents.iter_mut().zip(statuses) {
        (agent.status, agent.score) = (*status, *score);
    }
    (facts, verdict)
}

/// Explains a verdict to which the policy sticks, whatever it is asked.
fn explained((facts, verdict): &(Snapshot, Verdict), clock: &dyn Clock) -> Explanation {
    explain(&|_| Some(verdict.clone()), clock, facts, verdict).unwrap()
}

#[test]
fn the_worst_agents_come_first() {
    use Status::{Active, Degraded, Failed, Unknown};
    let case = verdict(&[(Unknown, 5), (Active, 0), (Failed, 70), (Degraded, 80), (Degraded, 20), (Failed, 60)]);
    let explanation = explained(&case, &ManualClock::at(0));
    let order: Vec<_> = explanation.agents.iter().map(|agent| &agent.agent_id).collect();
    let id = |n: usize| &case.0.agents[n].id;
    let wanted: Vec<_> = [5, 2, 4, 3, 0].into_iter().map(id).collect();
    assert_eq!(order, wanted, "what there is to explain of the second?");
    assert_eq!((explanation.stopped, explanation.complete), (None, true));
}

#[test]
fn more_agents_than_are_explained_are_left_out() {
    let explanation = explained(&verdict(&[(Status::Failed, 0); 30]), &ManualClock::at(0));
    assert_eq!((explanation.agents.len(), explanation.agents_left_out), (20, 10));
    assert_eq!((explanation.stopped, explanation.complete), (Some(Stopped::Agents), false));
    assert!(explanation.judgements < 2000 && explanation.session_facts_left_out == 0);
}

#[test]
fn judgements_are_counted_and_an_agent_with_many_facts_leaves_some_to_the_others() {
    let many = |n: usize, agent: &mut Agent| {
        agent.evidence = vec![said(); if n == 0 { 5000 } else { 290 }];
    };
    let (facts, mut verdict) = judged(10, many);
    verdict.agents.iter_mut().for_each(|agent| agent.status = Status::Failed);
    verdict.agents[0].score = 0;
    let explanation = explained(&(facts, verdict), &ManualClock::at(0));
    assert_eq!((explanation.judgements, explanation.stopped), (2000, Some(Stopped::Judgements)));
    assert!(explanation.agents[0].facts_left_out > 4700 && explanation.agents.len() > 5);
    assert_eq!(explanation.session_facts_left_out, 0, "the session is not starved by its agents");
    assert_eq!(explanation.agents.len() + explanation.agents_left_out, 10);
}

#[test]
fn it_ends_when_its_time_is_up() {
    let case = verdict(&[(Status::Failed, 0); 10]);
    let clock = Ticking(100, AtomicU64::default());
    let explanation = explained(&case, &clock);
    assert_eq!((explanation.stopped, explanation.complete), (Some(Stopped::Time), false));
    assert!(clock.now().steady < Duration::from_secs(22), "{:?}", clock.now().steady);
    let last = explanation.agents.last().unwrap();
    assert!(last.facts_left_out > 0 && explanation.agents_left_out > 0, "what was found until then is said");
}

#[test]
fn too_many_facts_of_one_agent_make_an_explanation_incomplete() {
    let case = judged(1, |_, agent| {
        agent.evidence = vec![said(); 400];
        agent.process = ProcessState::Stopped;
    });
    let explanation = explained(&case, &ManualClock::at(0));
    assert!(explanation.agents[0].facts_left_out > 100, "{explanation:#?}");
    assert_eq!((explanation.stopped, explanation.complete), (None, false));
}
