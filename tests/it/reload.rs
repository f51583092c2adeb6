//! Policies that change while a server runs.

use crate::mcp_client::{Client, MODERN};
use crate::world::{PATIENCE, World, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount::judge::digest;
use headcount_tests::misbehaving::{COMPILE_BOMB, HONEST, LOOP_IN_DESCRIBE, PATCH, WASI_IMPORTS};
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// What the report says of the policy once it is as wanted.
fn policy_once(client: &mut Client, wanted: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let report = client.structured("get_session_status", json!({"session_id": "s"}));
        let policy = report["policies"][1].clone();
        // Whatever happens to its file, somebody judges; only at first it may not be compiled yet.
        assert_eq!(report["session_health"], "HEALTHY", "{policy:#}");
        let waited_for = policy["outcome"] == "loading" && policy["digest"] == "";
        assert!(waited_for || policy["outcome"] == "verdict", "{policy:#}");
        if wanted(&policy) {
            return policy;
        }
        assert!(start.elapsed() < PATIENCE, "it stays {policy:#}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_takes_good_files_and_says_since_when_it_refuses_bad_ones() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    let file = world.write("policy.wasm", HONEST);
    let config = world.write("config.toml", "[[policy]]\npath = \"policy.wasm\"\n");
    let mut client = Client::start(&world, &[&roster], &[("HEADCOUNT_CONFIG", config.to_str().unwrap())]);
    client.greet(MODERN);
    let is = |bytes: &[u8]| {
        let digest = digest(bytes);
        move |policy: &Value| policy["digest"] == digest && policy["stale_since"] == Value::Null
    };
    policy_once(&mut client, is(HONEST));

    fs::write(&file, &PATCH[..1000]).unwrap();
    let stale = policy_once(&mut client, |policy| policy["stale_since"] != Value::Null);
    assert_eq!(stale["digest"], digest(HONEST));
    assert!(stale["stale_reason"].as_str().unwrap().contains("damaged"), "{stale:#}");
    let said = client.call("get_session_status", json!({"session_id": "s"}))["content"][0]["text"].clone();
    assert!(said.as_str().unwrap().contains("is stale since"), "{said}");

    // What is said from outside: what this server has, and that a new one would not get it.
    let listed = world.run(&["--config", config.to_str().unwrap(), "policy", "list", "--json"]);
    let list = listed.json();
    assert_eq!((listed.code, list["servers"].as_array().unwrap().len()), (Some(1), 1), "{list:#}");
    assert!(list["policies"][1]["refused"].as_str().unwrap().contains("damaged"), "{list:#}");
    let held = &list["servers"][0]["policies"][1];
    assert_eq!((&held["stale_since"], &held["digest"]), (&stale["stale_since"], &digest(HONEST).into()));

    fs::write(&file, PATCH).unwrap();
    policy_once(&mut client, is(PATCH));
    for bad in [WASI_IMPORTS, LOOP_IN_DESCRIBE] {
        fs::write(&file, bad).unwrap();
        policy_once(&mut client, |policy| policy["stale_since"] != Value::Null);
    }
    fs::remove_file(&file).unwrap();
    let gone = policy_once(&mut client, |policy| {
        policy["stale_reason"].as_str().is_some_and(|reason| reason.contains("cannot be read"))
    });
    assert_eq!(gone["digest"], digest(PATCH));
    fs::write(&file, HONEST).unwrap();
    policy_once(&mut client, is(HONEST));
    drop(client);
    let servers = || world.run(&["policy", "list", "--json"]).json()["servers"].clone();
    crate::world::until("the server is no longer listed", || servers() == json!([]));
}

/// A server whose only policy of its own is `policies/policy.wasm` beside the configuration.
fn serving(world: &World) -> (Client, headcount::demo::stand_in::StandIn) {
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    let config = world.write("config.toml", "[[policy]]\npath = \"policies/policy.wasm\"\n");
    let mut client = Client::start(world, &[&roster], &[("HEADCOUNT_CONFIG", config.to_str().unwrap())]);
    client.greet(MODERN);
    (client, idle)
}

/// Whether the policy of these bytes has the place.
fn has(bytes: &[u8]) -> impl Fn(&Value) -> bool {
    let digest = digest(bytes);
    move |policy| policy["digest"] == digest && policy["stale_since"] == Value::Null
}

#[test]
fn nobody_waits_for_a_policy_that_takes_long_to_compile() {
    let world = World::new();
    world.write("policies/policy.wasm", COMPILE_BOMB);
    let (mut client, _idle) = serving(&world);
    // It takes seconds to refuse it; those who ask meanwhile are answered by the others.
    let report = client.structured("get_session_status", json!({"session_id": "s"}));
    assert_eq!((&report["policies"][1]["outcome"], &report["session_health"]), (&"loading".into(), &"HEALTHY".into()));
    let refused = || {
        let listed = world.run(&["--config", "config.toml", "policy", "list", "--json"]).json();
        listed["policies"][1]["refused"].as_str().unwrap().to_owned()
    };
    // That it is refused is remembered: nothing is compiled for it again.
    crate::world::until("it is refused", || refused().ends_with("(before; `headcount policy check` tries again)"));
    assert!(refused().starts_with("compiling it took more than"), "{}", refused());
}

#[test]
fn a_policy_is_followed_wherever_its_name_leads() {
    let world = World::new();
    world.write("one/policy.wasm", HONEST);
    world.write("two/policy.wasm", PATCH);
    let link = |to: &str| {
        let new = world.path("new");
        std::os::unix::fs::symlink(world.path(to), &new).unwrap();
        fs::rename(new, world.path("policies")).unwrap();
    };
    link("one");
    let (mut client, _idle) = serving(&world);
    policy_once(&mut client, has(HONEST));
    link("two");
    policy_once(&mut client, has(PATCH));
    // The folder goes, and another takes its name.
    fs::rename(world.path("two"), world.path("three")).unwrap();
    policy_once(&mut client, |policy| policy["stale_since"] != Value::Null);
    world.write("two/policy.wasm", HONEST);
    policy_once(&mut client, has(HONEST));
}

#[test]
fn a_folder_that_never_rests_keeps_no_policy_from_being_loaded() {
    let world = World::new();
    let file = world.write("policies/policy.wasm", HONEST);
    let (mut client, _idle) = serving(&world);
    policy_once(&mut client, has(HONEST));
    let log = world.path("policies/log");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(50)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            fs::write(&log, "more").unwrap();
        }
    });
    fs::write(&file, PATCH).unwrap();
    policy_once(&mut client, has(PATCH));
    drop(stop);
    writer.join().unwrap();
}

#[test]
fn machine_code_that_is_changed_on_disk_while_a_server_runs_is_never_run() {
    let world = World::new();
    let file = world.write("policies/policy.wasm", HONEST);
    let (mut client, _idle) = serving(&world);
    policy_once(&mut client, has(HONEST));
    fs::write(&file, PATCH).unwrap();
    policy_once(&mut client, has(PATCH));
    // All that is kept compiled, the first policy's code among it.
    let modules = world.path(".cache/headcount/policies/modules");
    let folder = fs::read_dir(modules).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut changed = 0;
    for file in kept.filter(|file| file.extension().is_none()) {
        let mut bytes = fs::read(&file).unwrap();
        bytes.reverse();
        fs::write(&file, bytes).unwrap();
        changed += 1;
    }
    assert!(changed >= 3, "{changed}");
    fs::write(&file, HONEST).unwrap();
    policy_once(&mut client, has(HONEST));
}
