//! `headcount register` and `headcount unregister`, end to end.

use crate::world::{HEADCOUNT, NO_PID, World, agent, stand_in, until};
use headcount::demo::stand_in::{Behaviour, StandIn};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

#[test]
fn a_registered_agent_is_seen_until_it_is_unregistered() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let pid = idle.pid().to_string();
    let register = || {
        let args = [
            "register",
            "--session",
            "shop-rewrite",
            "--name",
            "Backend dev",
            "--specialization",
            "backend",
            "--pid",
            &pid,
        ];
        world.run(&[&args[..], &["--session-name", "Shop rewrite", "--json"]].concat())
    };
    let first = register();
    assert_eq!((first.code, &first.json()["replaced"]), (Some(0), &false.into()), "{}", first.stderr);
    assert_eq!(register().json()["replaced"], true, "twice is once");
    let report = world.run(&["status", "Shop rewrite", "--json"]).json();
    assert_eq!((&report["session_id"], &report["agent_count"]), (&"shop-rewrite".into(), &1.into()));
    let it = agent(&report, "Backend dev");
    assert_eq!((&it["specialization"], &it["process_id"]), (&"backend".into(), &idle.pid().into()));
    assert_eq!(it["agent_id"], first.json()["agent_id"]);

    let unregister = || world.run(&["unregister", "--session", "shop-rewrite", "--name", "Backend dev"]);
    assert_eq!(unregister().code, Some(0));
    assert_eq!(world.run(&["status", "shop-rewrite"]).code, Some(2), "its session went with it");
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
    let report = ran.json();
    assert_eq!((ran.code, &agent(&report, "it")["status"]), (Some(1), &"FAILED".into()));
    let action = report["attention"][0]["action"].as_str().unwrap();
    assert!(action.ends_with("or remove it: headcount unregister --session s --name it"), "{action}");
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
        (["--session", "../etc", "--name", "x"], 2, "no session id"),
        (["--session", "a\u{1b}[2Jb", "--name", "x"], 64, "control character"),
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

#[test]
fn a_session_may_be_meant_by_its_name() {
    let world = World::new();
    let project = world.path("Registered project");
    std::fs::create_dir(&project).unwrap();
    // The session is found by itself; only its agents are declared.
    let adjust = |command: &mut std::process::Command| {
        command.arg0("claude").current_dir(&project);
    };
    let _claude = StandIn::start_with(Path::new(HEADCOUNT), Behaviour::Idle, adjust).unwrap();
    let root = std::fs::canonicalize(&project).unwrap();
    let session = || {
        let all = world.run(&["sessions", "--json"]).json();
        let all = all["sessions"].as_array().unwrap().clone();
        all.into_iter().find(|session| session["root_path"] == root.to_str().unwrap())
    };
    until("it is found", || session().is_some());
    let id = session().unwrap()["session_id"].as_str().unwrap().to_owned();
    let ran = world.run(&["register", "--session", "Registered project", "--name", "remote"]);
    assert!(ran.stdout.ends_with(&format!("in session {id}\n")), "{ran:#?}");
    let ran = world.run(&["run", "--session", "Registered project", "--name", "run", "--", "/bin/sh", "-c", "exit 0"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let report = world.run(&["status", "Registered project", "--json"]).json();
    assert_eq!((&report["session_id"], &report["agent_count"]), (&id.as_str().into(), &3.into()), "{report:#}");
    let unregister = |session, name| world.run(&["unregister", "--session", session, "--name", name]);
    let ran = unregister("Registered project", "nobody");
    let said = format!("headcount: session {id} has no registered agent nobody; it has remote, run\n");
    assert_eq!((ran.code, ran.stderr), (Some(2), said));
    assert_eq!(unregister("Registered project", "remote").code, Some(0));
    let ran = unregister("other", "remote");
    assert!(ran.stderr.ends_with(&format!("agent remote; others have: {id}\n")), "{ran:#?}");
}

#[test]
fn a_name_that_several_sessions_have_is_no_session() {
    let world = World::new();
    for id in ["one", "two"] {
        let args = ["register", "--session", id, "--name", "it", "--session-name", "Shop"];
        assert_eq!(world.run(&args).code, Some(0));
    }
    for command in [&["register"][..], &["unregister"], &["run"]] {
        let rest = ["--session", "Shop", "--name", "x"];
        let what: &[&str] = if command == ["run"] { &["--", "/bin/sh", "-c", "exit 0"] } else { &[] };
        let ran = world.run(&[command, &rest, what].concat());
        // What goes wrong before an agent runs is no exit code of its own.
        let code = if command == ["run"] { 125 } else { 2 };
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert!(ran.stderr.contains("several sessions are named `Shop`; name one by its id: one, two"), "{ran:#?}");
    }
}
