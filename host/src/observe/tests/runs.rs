//! Agents of which a record says how they ended.

use super::world::*;
use crate::names::{AgentName, SessionId};
use crate::observe::facts::{Claim, ProcessState};
use crate::observe::processes::{Machine, ProcessId};
use crate::observe::roster::{DeclaredAgent, Locator};
use crate::store::runs::RunRecord;

/// An agent that was run as process 10 of this boot and namespace, with process 5 as its keeper; `record` says what became of it.
fn run(boot: &str, namespace: &str, record: impl FnOnce(&mut RunRecord)) -> DeclaredAgent {
    let process = Locator::Exactly {
        machine: Machine { boot_id: boot.to_owned(), pid_namespace: namespace.to_owned() },
        id: ProcessId { pid: 10, start: 1000 },
    };
    let mut run = RunRecord {
        session_id: SessionId::parse("shop").unwrap(),
        agent_name: AgentName::parse("backend").unwrap(),
        tag: "t".to_owned(),
        keeper_pid: 5,
        keeper_start: 500,
        running: true,
        restarts: 0,
        restarted_at_ms: None,
        exit_code: None,
        ended_at_ms: None,
        request: None,
        next_start_at_ms: None,
        restarts_in_a_row: 0,
        max_restarts: None,
        kind: None,
    };
    record(&mut run);
    DeclaredAgent { run: Some(run), ..agent("backend", process) }
}

fn scene(agent: DeclaredAgent) -> Scene {
    Scene::new(vec![roster("registry", vec![session("shop", vec![agent])])], |_, _| {})
}

#[test]
fn how_an_agent_ended_is_known_where_nothing_is_left_of_it() {
    for (boot, namespace) in [("boot", "pid:[1]"), ("earlier", "pid:[1]"), ("boot", "pid:[2]")] {
        let ended = |run: &mut RunRecord| (run.running, run.exit_code, run.ended_at_ms) = (false, Some(3), Some(7));
        let seen = scene(run(boot, namespace, ended)).look();
        let it = only(&seen);
        assert_eq!((it.process, it.exit_code), (ProcessState::Gone, Some(3)), "{boot} {namespace}");
        assert_eq!(gap(it, "exit-code"), None);
        assert_eq!(it.run.map(|run| (run.exit_code, run.ended_at_ms)), Some((Some(3), Some(7))));
    }
}

#[test]
fn of_its_end_is_said_when_it_was_and_of_its_kind_what_it_had_been() {
    let ended = |run: &mut RunRecord| {
        (run.running, run.exit_code, run.ended_at_ms, run.request) = (false, Some(4), Some(7), Some(15));
        run.kind = Some("claude".to_owned());
    };
    let mut scene = scene(run("boot", "pid:[1]", ended));
    let seen = scene.look();
    let it = only(&seen);
    assert_eq!(it.kind, "claude");
    let said: Vec<_> = it.evidence.iter().map(|said| (said.claim, said.detail.as_deref(), said.at_ms)).collect();
    assert_eq!(said, [(Claim::Finished, Some("ended on request (signal 15)"), 7)]);
    scene.world().start(10, 1, &["codex"], "/".as_ref());
    let seen = scene.look();
    assert_eq!((only(&seen).kind.as_str(), &only(&seen).evidence), ("codex", &vec![]), "it runs");
}

#[test]
fn an_end_that_nobody_recorded_is_not_the_one_before() {
    let again = |run: &mut RunRecord| (run.restarts, run.exit_code) = (1, Some(3));
    let seen = scene(run("boot", "pid:[1]", again)).look();
    assert_eq!((only(&seen).process, only(&seen).exit_code), (ProcessState::Gone, None));
}

#[test]
fn an_agent_that_runs_has_not_ended() {
    let mut scene = scene(run("boot", "pid:[1]", |run| (run.running, run.exit_code) = (false, Some(3))));
    scene.world().start(10, 1, &["claude"], "/".as_ref());
    let seen = scene.look();
    assert_eq!((only(&seen).process, only(&seen).exit_code), (ProcessState::Sleeping, None));
}

#[test]
fn it_is_started_again_only_where_somebody_is_left_who_will() {
    let waits = |run: &mut RunRecord| {
        (run.running, run.exit_code, run.next_start_at_ms) = (false, Some(3), Some(u64::MAX));
    };
    let mut scene = scene(run("boot", "pid:[1]", waits));
    let next = |scene: &mut Scene| only(&scene.look()).run.and_then(|run| run.next_start_at_ms);
    assert_eq!(next(&mut scene), None);
    scene.world().start(5, 1, &["headcount"], "/".as_ref());
    assert_eq!(next(&mut scene), Some(u64::MAX));
}
