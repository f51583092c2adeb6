//! A bridge that is killed at every step of a request, and two programs that write at once: nothing runs twice, and everything
//! is answered.

use crate::bridge::Bridge;
use crate::world::{PATIENCE, World, start_of, state, until};
use nix::sys::signal::Signal;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc;
use std::thread;

/// A request leads to fewer events in the folder than this.
const STEPS: usize = 30;

/// Kills the bridge as soon as so much has happened in its folder since the request was put there; `false`: less has.
fn killed_at(step: usize, bridge: &Bridge) -> bool {
    let (tell, told) = mpsc::channel();
    let tell = move |event: notify::Result<Event>| drop(tell.send(event.unwrap()));
    let mut watcher = RecommendedWatcher::new(tell, notify::Config::default()).unwrap();
    watcher.watch(&bridge.dir, RecursiveMode::NonRecursive).unwrap();
    bridge.put("a", &json!({"tool": "grow", "arguments": {}}));
    for _ in 0..step {
        // The status that follows the answer is the last thing that happens.
        let event = told.recv_timeout(PATIENCE).unwrap();
        if bridge.response("a").is_some() && event.paths.iter().any(|path| path.ends_with("response-a.json")) {
            return false;
        }
    }
    bridge.signal(Signal::SIGKILL);
    true
}

#[test]
fn wherever_it_is_killed_the_next_one_answers_and_runs_nothing_again() {
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for step in 0..STEPS {
        let world = World::new();
        let journal = world.path("journal");
        let flags = ["--allow", "grow"];
        let manners = ["--journal", journal.to_str().unwrap()];
        let bridge = Bridge::ready(&world, &flags, &manners);
        if !killed_at(step, &bridge) {
            break;
        }
        assert_eq!(bridge.end().0, None);
        let next = Bridge::ready(&world, &[&flags[..], &["--resume"]].concat(), &manners);
        let answer = next.answer("a");
        let runs = fs::read_to_string(&journal).unwrap_or_default().lines().count();
        match answer["error"].as_str() {
            // It was run to its end before, or never begun and then run by the next.
            None => assert_eq!((runs, &answer["is_error"]), (1, &json!(false)), "killed at {step}: {answer}"),
            Some(error) => assert_eq!((error, runs <= 1), ("unknown_outcome", true), "killed at {step}: {runs} runs"),
        }
        *outcomes.entry(answer["error"].to_string()).or_default() += 1;
        let left = ["request-a.json", "accepted-a.json"].map(|name| next.dir.join(name).exists());
        assert_eq!(left, [false, false], "killed at {step}");
        assert_eq!(next.ask("b", &json!({"tool": "echo"}))["is_error"], false);
    }
    println!("killed at every step: {outcomes:?}");
    assert!(outcomes.values().sum::<usize>() > 5, "{outcomes:?}");
}

#[test]
fn one_that_is_killed_while_it_connects_has_called_nothing() {
    let world = World::new();
    let mut bridge = Bridge::start(&world, &[], &["--hangs"]);
    until("it says that it connects", || bridge.status().is_some_and(|status| status["state"] == "busy"));
    assert_eq!(bridge.status().unwrap()["pid"], bridge.pid());
    bridge.put("a", &json!({"tool": "pid"}));
    fs::write(bridge.dir.join("notes.txt"), "somebody's").unwrap();
    bridge.signal(Signal::SIGKILL);
    bridge.child.wait().unwrap();
    let next = Bridge::ready(&world, &["--resume"], &[]);
    assert_eq!(next.answer("a")["is_error"], false, "it has waited, and no more");
}

#[test]
fn the_server_ends_when_its_bridge_is_killed() {
    let world = World::new();
    let bridge = Bridge::ready(&world, &[], &[]);
    let answer = bridge.ask("a", &json!({"tool": "pid"}));
    let server: u32 = answer["text"][0].as_str().unwrap().parse().unwrap();
    let start = start_of(server).unwrap();
    bridge.signal(Signal::SIGKILL);
    until("its input ends it", || start_of(server) != Some(start) || state(server) == Some('Z'));
}

#[test]
fn of_two_bridges_for_one_folder_the_second_is_refused_and_the_first_goes_on() {
    let world = World::new();
    let first = Bridge::ready(&world, &[], &[]);
    let (code, said) = Bridge::start(&world, &["--resume"], &[]).end();
    assert_eq!((code, said.contains("is in use by another session")), (Some(2), true), "{said}");
    assert_eq!(first.ask("a", &json!({"tool": "echo"}))["is_error"], false);
    assert_eq!(first.status().unwrap()["pid"], first.pid());
}

#[test]
fn two_programs_write_at_once_and_each_request_is_answered_once() {
    let world = World::new();
    let journal = world.path("journal");
    let bridge = Bridge::ready(&world, &[], &["--journal", journal.to_str().unwrap()]);
    let each = 100;
    thread::scope(|scope| {
        for writer in ["a", "b"] {
            let bridge = &bridge;
            scope.spawn(move || {
                for n in 0..each {
                    bridge.put(
                        &format!("{writer}-{n:x}"),
                        &json!({"tool": "echo", "arguments": {"from": writer, "n": n}}),
                    );
                }
                for n in 0..each {
                    let id = format!("{writer}-{n:x}");
                    assert_eq!(bridge.answer(&id)["result"], json!({"from": writer, "n": n}));
                    fs::remove_file(bridge.dir.join(format!("response-{id}.json"))).unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), 2 * each);
    // Both take the same id: it is run, and whoever comes second is told.
    let same = |from: &str| json!({"tool": "echo", "arguments": {"from": from}});
    bridge.ask("c", &same("a"));
    bridge.put("c", &same("b"));
    let duplicate = || bridge.response("c").is_some_and(|response| response["error"] == "duplicate_request_id");
    until("the second is told", duplicate);
    let response: Value = bridge.answer("c");
    assert_eq!((&response["result"], &response["first"]["result"]), (&json!(null), &json!({"from": "a"})));
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), 2 * each + 1);
}
