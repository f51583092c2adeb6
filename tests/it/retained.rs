//! Retained MCP sessions, seen by their folders: a stand-in writes what the older program writes.

use crate::mcp_client::{Client, MODERN};
use crate::world::{PATIENCE, World, agent, descendants, ended, start_of, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Plays the older program: makes its folder, says how it stands in a file that it renames, and answers requests; a call of
/// `slow` does not come back. Below it is what stands in for its server.
const OLDER: &str = r#"
dir=$1
mkdir "$dir" || exit 1
say() { printf '%s' "$1" > "$dir/status.tmp"; mv "$dir/status.tmp" "$dir/status.json"; }
ready() { say "{\"state\": \"ready\", \"pid\": $$, \"tools\": [\"read_cell\", \"slow\"]}"; }
sleep 1000 & server=$!
trap 'kill $server; say "{\"state\": \"closed\", \"pid\": $$}"; exit 0' TERM
ready
while :; do
  for request in "$dir"/request-*.json; do
    [ -e "$request" ] || continue
    say "{\"state\": \"busy\", \"pid\": $$, \"active_tool\": \"slow\"}"
    rm "$request"
    while [ ! -e "$dir/answered" ]; do sleep 0.02; done
    ready
  done
  sleep 0.02
done
"#;

/// A stand-in for the older program, killed with its server when it is dropped.
struct Older {
    child: Child,
    dir: PathBuf,
    /// What it had started when it was ready: outlives it where it is killed.
    below: Vec<(u32, u64)>,
}

impl Older {
    fn start(dir: PathBuf) -> Self {
        fs::create_dir_all(dir.parent().unwrap()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", OLDER, "older"]).arg(&dir).stdin(Stdio::null());
        let mut older = Self { child: headcount_tests::spawn(&mut command), dir, below: Vec::new() };
        until("it is ready", || older.dir.join("status.json").exists());
        older.below = descendants(older.pid());
        older
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().try_into().unwrap()), signal).unwrap();
    }

    fn says(&self, state: &str) -> bool {
        let status: Value = serde_json::from_slice(&fs::read(self.dir.join("status.json")).unwrap()).unwrap();
        status["state"] == state
    }
}

impl Drop for Older {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for &(pid, start) in &self.below {
            if start_of(pid) == Some(start) {
                let _ = kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL);
            }
        }
    }
}

/// A home whose configuration shows retained sessions so.
fn configured(retained: &str) -> World {
    let world = World::new();
    world.write(".config/headcount/config.toml", retained);
    world
}

/// The only row of the session `shop`.
fn shown(world: &World) -> (Option<i32>, Value) {
    let ran = world.run(&["status", "shop", "--json"]);
    let report = ran.json();
    assert_eq!(report["agent_count"], 1, "{report:#}");
    (ran.code, report["agents"][0].clone())
}

fn activity(agent: &Value) -> Value {
    json!([agent["status"], agent["activity"]["state"], agent["activity"]["reason"], agent["activity"]["decided_by"]])
}

#[test]
fn a_session_of_the_older_program_is_seen_from_its_begin_to_its_end() {
    let world = configured("[[retained]]\ndir = '~/kept/sheets'\nsession = 'shop'\nname = 'sheets'\n");
    assert_eq!(world.run(&["status", "shop"]).code, Some(2), "there is none yet");
    let mut older = Older::start(world.path("kept/sheets"));
    let (code, agent) = shown(&world);
    assert_eq!((code, &agent["kind"], &agent["process_id"]), (Some(0), &json!("retained"), &json!(older.pid())));
    assert_eq!(activity(&agent), json!(["ACTIVE", "idle", "ready, 2 tools", "own_record"]));
    let processes = agent["metrics"]["process_count"].as_u64().unwrap();
    assert!(processes >= 2, "its server is its own: {agent:#}");
    world.write("kept/sheets/request-ab-12.json", r#"{"tool": "slow", "arguments": {"secret": "s3cret"}}"#);
    until("it is busy", || older.says("busy"));
    let (_, agent) = shown(&world);
    assert_eq!(activity(&agent), json!(["ACTIVE", "working", "calls slow", "own_record"]));
    assert_eq!(agent["work"]["current_tool"], "slow");
    world.write("kept/sheets/answered", "");
    until("it is ready again", || older.says("ready"));
    assert_eq!(activity(&shown(&world).1)[1], "idle");
    older.send(Signal::SIGTERM);
    assert_eq!(ended(&mut older.child, PATIENCE), Some(0));
    let (code, agent) = shown(&world);
    assert_eq!((code, activity(&agent)), (Some(0), json!(["OFFLINE", "finished", "closed", "process"])));
    fs::remove_dir_all(world.path("kept/sheets")).unwrap();
    assert_eq!(world.run(&["status", "shop"]).code, Some(2), "with its folder it is gone");
}

#[test]
fn one_that_was_killed_is_dead_whatever_its_file_says() {
    let world = configured("[[retained]]\nscan = '~/kept'\nsession = 'shop'\n");
    let mut older = Older::start(world.path("kept/sheets"));
    assert_eq!(activity(&shown(&world).1)[1], "idle");
    older.send(Signal::SIGKILL);
    older.child.wait().unwrap();
    assert!(older.says("ready"));
    let (code, agent) = shown(&world);
    let reason = format!("ended, exit code unknown: there is no process {}", older.pid());
    assert_eq!((code, activity(&agent)), (Some(1), json!(["FAILED", "dead", reason, "process"])));
    let needed = world.run(&["status", "--attention", "shop", "--json"]).json();
    assert_eq!((&needed["needs"][0]["agent_name"], &needed["needs"][0]["kind"]), (&json!("sheets"), &json!("failed")));
    world.write("kept/sheets/status.json", r#"{"state": "failed", "pid": 1, "error": "startup_failed"}"#);
    assert_eq!(activity(&shown(&world).1)[2], "failed: startup_failed");
}

#[test]
fn a_status_of_ours_is_of_that_very_process() {
    let world = configured("[[retained]]\ndir = '~/kept'\nsession = 'shop'\n");
    let me = std::process::id();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap().to_string_lossy().into_owned();
    let status = |start: u64, boot: &str, namespace: &str| {
        json!({ "state": "ready", "pid": me, "tools": [], "server": "sheets 1.2", "start": start, "boot_id": boot,
                "pid_namespace": namespace, "since_ms": 5, "heartbeat_ms": 5 })
        .to_string()
    };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let boot = boot.trim();
    let start = start_of(me).unwrap();
    world.write("kept/status.json", status(start, boot, &namespace));
    let (_, agent) = shown(&world);
    assert_eq!((&agent["activity"]["state"], &agent["specialization"]), (&json!("idle"), &json!("sheets 1.2")));
    let reason = agent["activity"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("ready, 0 tools; no heartbeat for "), "an old heartbeat ends nobody: {reason}");
    world.write("kept/status.json", status(start + 1, boot, &namespace));
    assert_eq!(activity(&shown(&world).1)[1], "dead", "another process has its pid");
    world.write("kept/status.json", status(start, "another", &namespace));
    let dead = activity(&shown(&world).1);
    assert_eq!(dead[2], "ended, exit code unknown: the machine was started anew since");
    world.write("kept/status.json", status(start, boot, "pid:[1]"));
    let (_, agent) = shown(&world);
    assert_eq!((&agent["activity"]["state"], &agent["status"]), (&json!("unknown"), &json!("UNKNOWN")));
    assert!(agent["activity"]["reason"].as_str().unwrap().contains("another pid namespace"), "{agent:#}");
}

#[test]
fn all_surfaces_show_them_and_what_cannot_be_read_is_said() {
    let world = configured("[[retained]]\nscan = '~/shop/kept'\n[[retained]]\ndir = 'later'\n");
    headcount_tests::repository(&world.path("shop"));
    let older = Older::start(world.path("shop/kept/sheets"));
    world.write("shop/kept/docs/status.json", r#"{"state": "closed", "pid": 1}"#);
    let sessions = world.run(&["sessions", "--json"]).json();
    let shop = path_of(&world, "shop");
    let its = sessions["sessions"].as_array().unwrap().iter().find(|one| one["root_path"] == *shop).unwrap();
    assert_eq!((&its["session_name"], &its["agent_count"]), (&json!("shop"), &json!(2)));
    let id = its["session_id"].as_str().unwrap();
    let table = world.run(&["status", id]).stdout;
    assert!(table.contains(&format!("sheets {}", older.pid())) && table.contains("ready, 2 tools"), "{table}");
    for (command, of) in [("config check", "stderr"), ("doctor", "stdout")] {
        let ran = world.run(&command.split(' ').collect::<Vec<_>>());
        let said = if of == "stderr" { &ran.stderr } else { &ran.stdout };
        assert!(ran.code == Some(0) && said.contains("/later: there is no such folder yet"), "{ran:#?}");
    }
    fs::write(world.path("shop/kept/sheets/status.json"), "{").unwrap();
    let report = world.run(&["status", id, "--json"]).json();
    let sources = report["sources"].as_array().unwrap();
    let failed = sources.iter().find(|source| source["ok"] == false).unwrap();
    assert_eq!(failed["name"], format!("retained:{shop}/kept"));
    assert!(failed["error"].as_str().unwrap().ends_with("sheets: status.json is not understood"), "{failed}");
    assert_eq!((world.run(&["doctor"]).code, &report["partial"]), (Some(1), &json!(true)));
}

/// A place in the home directory, links followed.
fn path_of(world: &World, name: &str) -> String {
    fs::canonicalize(world.path(name)).unwrap().display().to_string()
}

#[test]
fn a_server_keeps_what_it_knew_of_a_file_that_is_half_written() {
    let world = configured("[sampling]\ntick = '100ms'\n[[retained]]\nscan = '~/kept'\nsession = 'shop'\n");
    let older = Older::start(world.path("kept/sheets"));
    let mut client = Client::connect(&world, &[], MODERN);
    let mut look = || client.structured("get_session_status", json!({"session_id": "shop"}));
    assert_eq!(agent(&look(), "sheets")["activity"]["state"], "idle");
    fs::write(Path::new(&older.dir).join("status.json"), "{\"state\": \"bu").unwrap();
    let seen = loop {
        let report = look();
        if report["partial"] == true {
            break report;
        }
    };
    assert_eq!(agent(&seen, "sheets")["activity"]["reason"], "ready, 2 tools");
    assert_eq!(agent(&seen, "sheets")["process_id"], older.pid());
}
