//! `headcount register` and `headcount unregister`, end to end.

use crate::world::{NO_PID, World, agent, stand_in};
use headcount::demo::stand_in::Behaviour;

#[test]
fn a_registered_agent_is_seen_until_it_is_unregistered() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let pid = idle.pid().to_string();
    let register = || {
        let args =
            ["register", "--session", "shop", "--name", "Backend dev", "--specialization", "backend", "--pid", &pid];
        world.run(&[&args[..], &["--session-name", "Shop rewrite", "--json"]].concat())
    };
    let first = register();
    assert_eq!((first.code, &first.json()["replaced"]), (Some(0), &false.into()), "{}", first.stderr);
    assert_eq!(register().json()["replaced"], true, "twice is once");
    let report = world.run(&["status", "Shop rewrite", "--json"]).json();
    assert_eq!((&report["session_id"], &report["agent_count"]), (&"shop".into(), &1.into()));
    let it = agent(&report, "Backend dev");
    assert_eq!((&it["specialization"], &it["process_id"]), (&"backend".into(), &idle.pid().into()));
    assert_eq!(it["agent_id"], first.json()["agent_id"]);

    let unregister = || world.run(&["unregister", "--session", "shop", "--name", "Backend dev"]);
    assert_eq!(unregister().code, Some(0));
    assert_eq!(world.run(&["status", "shop"]).code, Some(2), "its session went with it");
    let again = unregister();
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("no registered agent Backend dev"), "{}", again.stderr);
}

#[test]
fn a_registered_agent_that_ends_is_dead_and_stays_listed() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let pid = idle.pid().to_string();
    assert_eq!(world.run(&["register", "--session", "s", "--name", "it", "--pid", &pid]).code, Some(0));
    drop(idle);
    let ran = world.run(&["status", "s", "--json"]);
    assert_eq!((ran.code, &agent(&ran.json(), "it")["status"]), (Some(1), &"FAILED".into()));
}

#[test]
fn an_agent_that_runs_elsewhere_is_registered_without_a_process() {
    let world = World::new();
    assert_eq!(world.run(&["register", "--session", "s", "--name", "remote"]).code, Some(0));
    let report = world.run(&["status", "s", "--json"]).json();
    let it = agent(&report, "remote");
    assert_eq!((&it["process_id"], &it["status"]), (&serde_json::Value::Null, &"UNKNOWN".into()), "{it:#}");
}

#[test]
fn what_cannot_be_registered_is_refused_with_the_reason() {
    let world = World::new();
    let pid = NO_PID.to_string();
    for (args, code, said) in [
        (["--session", "../etc", "--name", "x"], 64, "no session id"),
        (["--session", "s", "--name", " "], 64, "name is empty"),
        (["--session", "s", "--name", "a\u{1b}[2Jb"], 64, "control character"),
    ] {
        let ran = world.run(&[&["register"], &args[..]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{args:?}");
        assert!(ran.stderr.contains(said) && !ran.stderr.contains('\u{1b}'), "{args:?}: {}", ran.stderr);
    }
    let ran = world.run(&["register", "--session", "s", "--name", "x", "--pid", &pid]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(&format!("no process {pid}")), "{}", ran.stderr);
    assert_eq!(world.run(&["status", "s"]).code, Some(2), "nothing was registered");
}
