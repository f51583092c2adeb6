//! `headcount upstream`: what it prints, how it exits, and that it leaves nothing behind.

use crate::world::{HEADCOUNT, PATIENCE, World, ended};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A world with a server that works, one that hangs, and one that is not there.
fn world() -> World {
    let world = World::new();
    let config = format!(
        r#"
        [[upstream]]
        name = "good"
        command = "{HEADCOUNT}"
        args = ["stand-in-server"]
        allow = ["echo", "fail", "die"]

        [[upstream]]
        name = "hanging"
        command = "sh"
        args = ["-c", "echo $$ > pid; exec {HEADCOUNT} stand-in-server --hangs --stays"]
        close_grace = "100ms"

        [[upstream]]
        name = "gone"
        url = "http://127.0.0.1:9/mcp"
        token_env = "TOKEN_OF_NOBODY"
        "#
    );
    world.write(".config/headcount/config.toml", config);
    world
}

fn hanging_pid(world: &World) -> Option<i32> {
    fs::read_to_string(world.path("pid")).ok()?.trim().parse().ok()
}

#[test]
fn all_servers_are_seen_at_once_and_each_says_how_it_is() {
    let world = world();
    let ran = world.run(&["upstream", "list", "--timeout", "10s", "--json"]);
    let listed = ran.json();
    assert_eq!((ran.code, &listed["schema"]), (Some(1), &json!("headcount.upstreams/1")), "{ran:#?}");
    let of = |n: usize| &listed["upstreams"][n];
    assert_eq!(
        (&of(0)["state"], &of(0)["tools"], &of(0)["server"]),
        (&json!("ready"), &json!(3), &json!("stand-in 1"))
    );
    assert_eq!((&of(1)["state"], &of(1)["last_error"]), (&json!("unknown"), &json!("no answer within 10 s")));
    assert_eq!(of(2)["state"], "failed");
    assert!(of(2)["last_error"].as_str().unwrap().contains("TOKEN_OF_NOBODY"), "{listed:#}");
    assert!(!Path::new(&format!("/proc/{}", hanging_pid(&world).unwrap())).exists(), "it is left behind");
    let table = world.run(&["upstream", "list", "--timeout", "1s"]).stdout;
    assert!(["NAME", "good", "hanging", "unknown", "failed"].iter().all(|word| table.contains(word)), "{table}");
}

#[test]
fn tools_are_listed_and_called_and_resources_read() {
    let world = world();
    let tools = world.run(&["upstream", "tools", "good", "--json"]).json();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 3);
    let called = world.run(&["upstream", "call", "good", "echo", r#"{"a": "b"}"#, "--json"]);
    assert_eq!((called.code, &called.json()["result"]["structuredContent"]), (Some(0), &json!({"a": "b"})));
    let file = world.write("arguments.json", r#"{"a": "c"}"#);
    let called = world.run(&["upstream", "call", "good", "echo", &format!("@{}", file.display())]);
    assert_eq!((called.code, called.stdout.trim()), (Some(0), r#"{"a":"c"}"#));
    assert_eq!(world.run(&["upstream", "call", "good", "fail"]).code, Some(1));
    let died = world.run(&["upstream", "call", "good", "die", r#"{"n": 9}"#]);
    let told =
        "headcount: upstream good: call of die: the server has ended: exit code 9; whether it was done is not known";
    assert_eq!((died.code, died.stderr.trim()), (Some(2), told));
    let read = world.run(&["upstream", "read", "good", "stand-in://pid"]);
    assert!(read.stdout.trim().parse::<u32>().is_ok(), "{read:#?}");
    for (args, told) in [
        (&["call", "goood", "echo"][..], "no upstream server is called goood; did you mean good?"),
        (&["call", "good", "pid"], "the tool is not allowed; allowed are die, echo, fail"),
        (&["call", "good", "echo", "[1]"], "the arguments are no JSON object"),
        (&["read", "good", "x"], "the server refuses"),
    ] {
        let ran = world.run(&[&["upstream"], args].concat());
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(told), "{ran:#?}");
    }
}

#[test]
fn who_is_ended_while_it_waits_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let world = world();
        let mut child = world.command(&["upstream", "tools", "hanging"]).spawn().unwrap();
        let start = Instant::now();
        let pid = loop {
            if let Some(pid) = hanging_pid(&world) {
                break pid;
            }
            assert!(start.elapsed() < PATIENCE, "it is not started");
            thread::sleep(Duration::from_millis(10));
        };
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        assert_eq!(ended(&mut child, PATIENCE), Some(130));
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it is left behind");
    }
}

#[test]
fn the_doctor_has_a_line_for_each() {
    let world = World::new();
    let config = format!("[[upstream]]\nname = \"good\"\ncommand = \"{HEADCOUNT}\"\nargs = [\"stand-in-server\"]\n");
    world.write(".config/headcount/config.toml", config);
    let findings = world.run(&["doctor", "--json"]).json();
    let of_upstream = |f: &&serde_json::Value| f["part"] == "upstream";
    let found: Vec<_> = findings["findings"].as_array().unwrap().iter().filter(of_upstream).collect();
    assert_eq!(found.len(), 1, "{findings:#}");
    assert_eq!((&found[0]["name"], &found[0]["works"]), (&json!("good"), &json!(true)));
    assert_eq!(found[0]["detail"], "stand-in 1, protocol 2026-07-28, 12 tools");
}
