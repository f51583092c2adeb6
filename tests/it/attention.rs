//! Waiting for the one who needs somebody: `wait_for_attention`, `headcount wait` and `headcount status --attention`.

use crate::mcp_client::{Client, MODERN};
use crate::world::{NO_PID, PATIENCE, World, ended, finish, stand_in, until};
use headcount::demo::stand_in::{Behaviour, StandIn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ERAS: [&str; 2] = ["2025-11-25", MODERN];

/// A world with a session `tended` of one agent that is well.
fn tended() -> (World, StandIn, std::path::PathBuf) {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("tended", &[("writer", idle.pid())]);
    (world, idle, roster)
}

/// Begins to wait for something in `tended` that is not there yet; the request's id.
fn wait_for(client: &mut Client, since: &Value) -> u64 {
    let arguments = json!({"session_id": "tended", "since": since, "timeout_s": 60});
    let id = client.send(
        "tools/call",
        json!({"name": "wait_for_attention", "arguments": arguments, "_meta": {"progressToken": 1}}),
    );
    // Progress is told once it waits.
    assert_eq!(client.next().unwrap()["method"], "notifications/progress");
    id
}

/// What came of waiting.
fn told(client: &mut Client, id: u64) -> Value {
    client.answer(id)["result"]["structuredContent"].take()
}

/// Who needs somebody, and why, in a structured answer.
fn needs(answer: &Value) -> Vec<(&str, &str)> {
    let needs = answer["needs"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let text = |need: &'_ Value, key: &str| need[key].as_str().unwrap_or("-").to_owned();
    needs.iter().for_each(|need| assert!(text(need, "why").len() > 3 && text(need, "action").len() > 3, "{need:#}"));
    needs.iter().map(|need| (need["agent_name"].as_str().unwrap_or("-"), need["kind"].as_str().unwrap())).collect()
}

fn signal(agent: &StandIn, signal: Signal) {
    kill(Pid::from_raw(agent.pid().try_into().unwrap()), signal).unwrap();
}

/// What each line of the audit log says of `key`.
fn audited(world: &World, key: &str) -> Vec<Value> {
    let log = fs::read_to_string(world.state().join("audit.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[key].take()).collect()
}

#[test]
fn who_needs_somebody_already_is_told_at_once_and_only_once() {
    for version in ERAS {
        let (world, idle, _) = tended();
        let roster = world.roster("tended", &[("writer", idle.pid()), ("gone", NO_PID)]);
        let mut client = Client::connect(&world, &[&roster], version);
        let result = client.call("wait_for_attention", json!({"session_id": "tended"}));
        let text = result["content"][0]["text"].as_str().unwrap();
        let told = &result["structuredContent"];
        assert_eq!(needs(told), [("gone", "failed")], "{version}");
        assert_eq!((&told["schema"], &told["timed_out"]), (&"headcount.attention/1".into(), &false.into()));
        assert!(text.contains("gone") && text.contains(told["mark"].as_str().unwrap()), "{text}");
        let again = json!({"session_id": "tended", "since": told["mark"], "timeout_s": 1});
        let nothing = client.structured("wait_for_attention", again);
        assert_eq!((needs(&nothing), &nothing["timed_out"]), (vec![], &true.into()), "{version}");
        assert_eq!(nothing["mark"], told["mark"], "{version}");
    }
}

#[test]
fn what_begins_is_told_within_two_seconds() {
    for version in ERAS {
        let (world, mut idle, roster) = tended();
        let mut client = Client::connect(&world, &[&roster], version);
        let mut mark = Value::Null;
        let mut told_after = |happen: &mut dyn FnMut(), kind: &str| {
            let id = wait_for(&mut client, &mark);
            let began = Instant::now();
            happen();
            let answer = told(&mut client, id);
            assert!(began.elapsed() < Duration::from_secs(2), "{version}, {kind}: {:?}", began.elapsed());
            assert_eq!(needs(&answer), [("writer", kind)], "{version}");
            mark = answer["mark"].clone();
        };
        told_after(&mut || signal(&idle, Signal::SIGSTOP), "stalled");
        told_after(&mut || idle.kill().unwrap(), "failed");
    }
}

#[test]
fn who_finishes_while_somebody_waits_is_told() {
    let (world, idle, roster) = tended();
    let mut brief = stand_in(Behaviour::Brief);
    until("it has ended", || crate::world::state(brief.pid()) == Some('Z'));
    let mut client = Client::connect(&world, &[&roster], MODERN);
    let id = wait_for(&mut client, &Value::Null);
    world.roster("tended", &[("writer", idle.pid()), ("brief", brief.pid())]);
    let answer = told(&mut client, id);
    assert_eq!(needs(&answer), [("brief", "finished")]);
    let later = client.structured("wait_for_attention", json!({"session_id": "tended", "timeout_s": 1}));
    assert_eq!((needs(&later), &later["timed_out"]), (vec![], &true.into()), "it is no news to who asks later");
    brief.wait().unwrap();
}

#[test]
fn an_agent_that_leaves_and_a_session_that_ends_are_told() {
    let (world, idle, roster) = tended();
    let agents = [("writer", idle.pid()), ("reader", std::process::id())];
    world.roster("tended", &agents);
    let mut client = Client::connect(&world, &[&roster], MODERN);
    let id = wait_for(&mut client, &Value::Null);
    world.roster("tended", &agents[..1]);
    assert_eq!(needs(&told(&mut client, id)), [("reader", "left")]);
    let id = wait_for(&mut client, &Value::Null);
    fs::write(&roster, "").unwrap();
    let answer = told(&mut client, id);
    assert_eq!((&answer["session_ended"], &answer["timed_out"], needs(&answer)), (&true.into(), &false.into(), vec![]));
    assert!(client.failure("wait_for_attention", json!({"session_id": "tended"})).contains("no session `tended`"));
}

#[test]
fn a_wrong_call_says_what_to_do() {
    let (world, _idle, roster) = tended();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    for (arguments, said) in [
        (json!({"session_id": "tedned"}), &["no session `tedned`", "tended"][..]),
        (json!({"session_id": "tended", "timeout_s": 0}), &["timeout_s", "1 to 3600"]),
        (json!({"session_id": "tended", "timeout_s": 3601}), &["timeout_s", "1 to 3600"]),
        (json!({"session_id": "tended", "timeout_s": "long"}), &["timeout_s", "wait_for_attention takes"]),
        (json!({"session_id": "tended", "since": "yesterday"}), &["since", "`mark`"]),
    ] {
        let text = client.failure("wait_for_attention", arguments.clone());
        assert!(said.iter().all(|part| text.contains(part)), "{arguments}: {text}");
    }
}

#[test]
fn those_who_want_to_know_are_told_that_it_still_waits() {
    for version in ["2024-11-05", MODERN] {
        let (world, _idle, roster) = tended();
        let mut client = Client::connect(&world, &[&roster], version);
        let arguments = json!({"session_id": "tended", "timeout_s": 11});
        let meta = json!({"progressToken": "mine"});
        let began = Instant::now();
        client.result("tools/call", json!({"name": "wait_for_attention", "arguments": arguments, "_meta": meta}));
        assert!(began.elapsed() >= Duration::from_secs(11), "{version}");
        let told: Vec<_> = client.notifications.iter().map(|n| &n["params"]).collect();
        assert!(told.iter().all(|p| p["progressToken"] == "mine" && p["total"] == 11.0), "{version}: {told:#?}");
        assert!(told[0]["message"].as_str().unwrap().contains("of 1 agents working"), "{version}: {told:#?}");
        let steps: Vec<f64> = told.iter().map(|p| p["progress"].as_f64().unwrap()).collect();
        assert!(steps.len() == 2 && steps[1] >= 9.9 && steps[0] < steps[1], "{version}: {steps:?}");
    }
}

#[test]
fn who_withdraws_the_call_or_goes_away_frees_it_at_once() {
    for version in ERAS {
        let (world, _idle, roster) = tended();
        let mut client = Client::connect(&world, &[&roster], version);
        let withdrawn = wait_for(&mut client, &Value::Null);
        client.cancel(withdrawn);
        until("it is noted", || {
            world.state().join("audit.jsonl").exists() && audited(&world, "outcome") == ["cancelled"]
        });
        wait_for(&mut client, &Value::Null);
        // Sooner than calls are cut off that are still under way.
        assert_eq!(client.close(Duration::from_secs(3)).0, Some(0), "{version}");
        assert_eq!(audited(&world, "outcome"), ["cancelled", "cancelled"], "{version}");
        assert_eq!(audited(&world, "session"), ["tended", "tended"], "{version}");
        let last = audited(&world, "micros").pop().unwrap();
        assert!(last["total"].as_u64().unwrap() < 10_000_000, "{version}: {last}");
    }
}

#[test]
fn fifty_who_wait_are_all_told_and_cost_nothing() {
    let (world, mut idle, roster) = tended();
    let mut client = Client::connect(&world, &[&roster], MODERN);
    let ids: Vec<u64> = (0..50).map(|_| wait_for(&mut client, &Value::Null)).collect();
    idle.kill().unwrap();
    let began = Instant::now();
    for _ in &ids {
        let answer = client.next().unwrap();
        assert!(ids.contains(&answer["id"].as_u64().unwrap()), "{answer:#}");
        assert_eq!(needs(&answer["result"]["structuredContent"]), [("writer", "failed")]);
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(client.close(PATIENCE).0, Some(0));
    let tools = audited(&world, "tool");
    assert_eq!((tools.len(), tools.iter().all(|tool| tool == "wait_for_attention")), (50, true));
}

/// `headcount wait tended` with these arguments more.
fn wait(world: &World, roster: &Path, more: &[&str]) -> Command {
    let mut command = world.command(&["wait", "tended", "--roster", roster.to_str().unwrap()]);
    command.args(more).env("HEADCOUNT_SAMPLING_TICK", "100ms");
    command
}

#[test]
fn the_command_waits_as_the_tool_does() {
    let (world, mut idle, roster) = tended();
    let over = finish(wait(&world, &roster, &["--timeout", "1s", "--json"]));
    assert_eq!((over.code, needs(&over.json()), &over.json()["timed_out"]), (Some(1), vec![], &true.into()));
    let child = wait(&world, &roster, &["--json"]).spawn().unwrap();
    until("it waits", || fs::read_dir(format!("/proc/{}/task", child.id())).is_ok_and(|tasks| tasks.count() > 1));
    idle.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), needs(&told)), (Some(0), vec![("writer", "failed")]));
    let mark = told["mark"].as_str().unwrap();
    idle.wait().unwrap();
    let nothing = finish(wait(&world, &roster, &["--timeout", "1s", "--since", mark]));
    assert_eq!(nothing.code, Some(1), "another process knows by the mark: {nothing:#?}");
    assert!(nothing.stdout.contains("nobody has come to need attention"), "{}", nothing.stdout);
    assert!(nothing.stdout.contains("\n1 still needs attention since before.\n"), "{}", nothing.stdout);
    let now = finish(wait(&world, &roster, &[]));
    assert!(now.code == Some(0) && now.stdout.contains("! writer") && now.stdout.contains(mark), "{now:#?}");
    assert_eq!(finish(wait(&world, Path::new("/dev/null"), &[])).code, Some(2), "no such session");
    for wrong in [["--timeout", "2h"], ["--timeout", "soon"], ["--since", "today"]] {
        assert_eq!(finish(wait(&world, &roster, &wrong)).code, Some(64), "{wrong:?}");
    }
    assert_eq!(audited(&world, "outcome"), ["ok", "ok", "ok", "ok", "not_found"]);
}

#[test]
fn ctrl_c_ends_the_command() {
    let (world, _idle, roster) = tended();
    let mut child = wait(&world, &roster, &[]).stdout(Stdio::null()).spawn().unwrap();
    let caught = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        u64::from_str_radix(mask, 16).unwrap() & 2 != 0
    };
    until("it waits for Ctrl-C too", caught);
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(ended(&mut child, PATIENCE), Some(130));
    assert_eq!(audited(&world, "outcome"), ["cancelled"]);
}

#[test]
fn status_shows_only_those_who_need_somebody() {
    let (world, _idle, roster) = tended();
    let other = stand_in(Behaviour::Idle);
    let docs = world.roster("docs", &[("reader", other.pid()), ("gone", NO_PID)]);
    let ask = |more: &[&str]| {
        let rosters =
            ["status", "--attention", "--roster", roster.to_str().unwrap(), "--roster", docs.to_str().unwrap()];
        world.run(&[&rosters, more].concat())
    };
    let well = ask(&["tended"]);
    assert_eq!((well.code, well.stdout.as_str()), (Some(0), "Nobody needs you.\n"));
    let well = ask(&["tended", "--json"]);
    assert_eq!((well.code, needs(&well.json())), (Some(0), vec![]));
    let needed = ask(&["docs"]);
    assert!(needed.code == Some(1) && needed.stdout.contains("! gone"), "{needed:#?}");
    assert!(!needed.stdout.contains("reader"), "{}", needed.stdout);
    let needed = ask(&["docs", "--json"]);
    assert_eq!((needed.code, needs(&needed.json())), (Some(1), vec![("gone", "failed")]));
    let all = ask(&["--json"]);
    let sessions = all.json()["sessions"].take();
    let ids: Vec<_> = sessions.as_array().unwrap().iter().map(|session| &session["session_id"]).collect();
    assert!(all.code == Some(1) && ids.contains(&&"docs".into()) && !ids.contains(&&"tended".into()), "{ids:?}");
    assert_eq!(ask(&["tended", "--only", "failed"]).code, Some(64));
    let unread = world.write("unread.toml", "[[sess");
    let unknown = ask(&["tended", "--roster", unread.to_str().unwrap()]);
    assert!(unknown.code == Some(1) && unknown.stdout.contains("is not known"), "{unknown:#?}");
    let nobody_judges = world.write("nobody.toml", "[[policy]]\npath = \"builtin\"\nenabled = false\n");
    let unknown = ask(&["tended", "--config", nobody_judges.to_str().unwrap()]);
    assert!(unknown.code == Some(1) && unknown.stdout.contains("is not known"), "{unknown:#?}");
}
