//! Runs in the registry.

use super::*;

fn agent(pid: u32) -> Registration {
    Registration {
        session_id: SessionId::parse("shop").unwrap(),
        session_name: None,
        root_path: None,
        agent_name: named("unused"),
        specialization: None,
        process: Some(RegisteredProcess { pid, start: 5, boot_id: "boot".into(), pid_namespace: "pid:[1]".into() }),
        owner: "me".into(),
        registered_by: "test".into(),
        registered_at_ms: 1000,
    }
}

fn named(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

fn new(tag: &str) -> NewRun<'_> {
    NewRun { tag, keeper: (6, 4), max_restarts: Some(5), kind: Some("claude") }
}

fn end(exit_code: i32, at_ms: u64, next_start_at_ms: Option<u64>) -> RunEnd {
    RunEnd { exit_code, at_ms, next_start_at_ms, ..RunEnd::default() }
}

/// A store with one run, `backend`, whose agent is process 7 and whose keeper is process 6.
fn one_run() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let begun = store.begin_run(agent(7), [named("backend")], new("tag"), |_| false).unwrap();
    assert_eq!(begun, Begun::As(named("backend")));
    (folder, store)
}

fn only(store: &Store) -> RunRecord {
    let [run] = <[RunRecord; 1]>::try_from(store.runs().unwrap()).unwrap();
    run
}

#[test]
fn a_run_is_recorded_from_its_start_to_its_end() {
    let (_folder, store) = one_run();
    let begun = only(&store);
    assert!(begun.running && begun.exit_code.is_none() && begun.restarts == 0);
    store.run_ended("tag", end(-9, 2000, Some(3000))).unwrap();
    let waiting = only(&store);
    assert_eq!((waiting.running, waiting.exit_code), (false, Some(-9)));
    assert_eq!((waiting.ended_at_ms, waiting.next_start_at_ms), (Some(2000), Some(3000)));
    store.run_started_again("tag", (8, 9), (66, 44), 3001).unwrap();
    let again = only(&store);
    assert_eq!((again.running, again.restarts, again.restarted_at_ms), (true, 1, Some(3001)));
    assert_eq!((again.next_start_at_ms, again.keeper_pid, again.keeper_start), (None, 66, 44));
    assert_eq!(store.list().unwrap()[0].process.as_ref().map(|process| (process.pid, process.start)), Some((8, 9)));
    store.run_kept_by("tag", (6, 4)).unwrap();
    store.run_ended("tag", RunEnd { request: Some(15), restarts_in_a_row: 1, ..end(143, 4000, None) }).unwrap();
    let ended = only(&store);
    assert_eq!((ended.running, ended.exit_code, ended.keeper_pid), (false, Some(143), 6));
    assert_eq!((ended.request, ended.restarts_in_a_row), (Some(15), 1));
    assert_eq!((ended.max_restarts, ended.kind.as_deref()), (Some(5), Some("claude")));
}

#[test]
fn a_name_is_kept_from_others_while_the_agent_or_its_keeper_lives() {
    let (_folder, store) = one_run();
    let second = |alive: u32| {
        store
            .begin_run(agent(17), [named("backend")], NewRun { keeper: (16, 4), ..new("second") }, |process| {
                process.pid == alive
            })
            .unwrap()
    };
    assert_eq!(second(7), Begun::Taken(7));
    assert_eq!(store.runs().unwrap().len(), 1);
    store.run_ended("tag", end(3, 2000, Some(3000))).unwrap();
    assert_eq!(second(6), Begun::Taken(6), "it is to be started again");
    assert_eq!(second(7), Begun::As(named("backend")), "its keeper is gone");
    assert_eq!(only(&store).tag, "second");
}

#[test]
fn the_first_free_name_is_taken() {
    let (_folder, store) = one_run();
    let names = ["backend", "backend-2", "backend-3"].map(named);
    let begun = store.begin_run(agent(8), names.clone(), new("second"), |_| true).unwrap();
    assert_eq!(begun, Begun::As(named("backend-2")));
    let begun = store.begin_run(agent(9), names, new("third"), |process| process.pid != 7).unwrap();
    assert_eq!(begun, Begun::As(named("backend")));
}

#[test]
fn who_has_lost_its_name_writes_to_nobody_elses_record() {
    let (_folder, store) = one_run();
    store.begin_run(agent(8), [named("backend")], new("second"), |_| false).unwrap();
    store.run_ended("tag", end(3, 2000, None)).unwrap();
    store.run_started_again("tag", (99, 99), (6, 4), 2000).unwrap();
    store.forget_run("tag").unwrap();
    let second = only(&store);
    assert_eq!((second.running, second.exit_code, second.restarts), (true, None, 0));
    assert_eq!(store.list().unwrap()[0].process.as_ref().map(|process| process.pid), Some(8));
}

#[test]
fn a_run_goes_with_its_registration() {
    let (_folder, store) = one_run();
    let session = SessionId::parse("shop").unwrap();
    assert!(store.unregister(&session, &named("backend")).unwrap());
    assert_eq!(store.runs().unwrap(), []);
    let (_folder, store) = one_run();
    store.register(&Registration { agent_name: named("backend"), ..agent(9) }).unwrap();
    assert_eq!(store.runs().unwrap(), [], "what is registered by hand was not run");
    let (_folder, store) = one_run();
    store.forget_run("tag").unwrap();
    assert_eq!(store.list().unwrap(), []);
}
