//! Policies that change while a server runs.

use crate::mcp_client::{Client, MODERN};
use crate::world::{PATIENCE, World, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount::judge::digest;
use headcount_tests::misbehaving::{HONEST, LOOP_IN_DESCRIBE, PATCH, WASI_IMPORTS};
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
        // Whatever happens to its file, somebody judges.
        assert_eq!(
            (&policy["outcome"], &report["session_health"]),
            (&"verdict".into(), &"HEALTHY".into()),
            "{policy:#}"
        );
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
