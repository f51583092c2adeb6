//! Agents that have ended.

use crate::world::{World, agent, start_of, state, until};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// A shell that is taken for Claude Code and has a child that sleeps. What is left of both is ended when it is dropped.
struct Claude(Child);

impl Claude {
    fn start(world: &World) -> Self {
        let program = world.path("bin/claude");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        headcount_tests::copy_of_shell(&program);
        let mut command = Command::new(&program);
        command.args(["-c", "sleep 1000 & wait"]).process_group(0).env("HOME", world.path(""));
        let it = Self(headcount_tests::spawn(command.env_remove("CLAUDE_CONFIG_DIR")));
        until("its child sleeps", || !crate::world::descendants(it.pid()).is_empty());
        it
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.pid().cast_signed())
    }
}

impl Drop for Claude {
    fn drop(&mut self) {
        let _ = killpg(self.id(), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[test]
fn case_02_a_zombie_is_dead_whatever_it_said_and_its_child_is_left_over() {
    let world = World::new();
    let claude = Claude::start(&world);
    let pid = claude.pid();
    let record =
        json!({"pid": pid, "procStart": start_of(pid).unwrap().to_string(), "sessionId": "s", "status": "busy"});
    world.write(&format!(".claude/sessions/{pid}.json"), record.to_string());
    let roster = world.roster("s", &[("it", pid)]);
    let (_, alive) = world.status("s", &roster);
    let was = agent(&alive, "it");
    assert_eq!((&was["activity"]["state"], &was["activity"]["decided_by"]), (&json!("working"), &json!("own_record")));
    let memory = was["metrics"]["memory_mb"].as_f64().unwrap();

    kill(claude.id(), Signal::SIGKILL).unwrap();
    until("it is a zombie", || state(pid) == Some('Z'));
    let (code, report) = world.status("s", &roster);
    let it = agent(&report, "it");
    assert_eq!((code, &it["status"], &it["activity"]["state"]), (Some(1), &json!("FAILED"), &json!("dead")), "{it:#}");
    assert!(it["activity"]["reason"].as_str().unwrap().ends_with("(zombie)"), "{it:#}");
    assert_eq!(report["session_metrics"]["active_agents"], 0);
    assert_eq!(it["metrics"]["process_count"], 1, "the child alone: {it:#}");
    assert!(it["metrics"]["memory_mb"].as_f64().unwrap() < memory, "{it:#}");
    let checks = it["health"]["check_results"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["name"] == "leftover-processes"), "{checks:#?}");
    assert_ne!(it["metrics"]["memory_mb"], Value::Null);
}
