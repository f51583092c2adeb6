//! Agents that behave well and badly, and what is said of them.

use crate::world::{HEADCOUNT, NO_PID, World, agent, stand_in, start_of, until};
use headcount::demo::stand_in::{Behaviour, StandIn};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

/// What is said of one agent that behaves so, and the exit code.
fn said_of(behaviour: Behaviour) -> (Option<i32>, Value) {
    let world = World::new();
    let stand_in = stand_in(behaviour);
    let roster = world.roster("s", &[("it", stand_in.pid())]);
    let (code, report) = world.status("s", &roster);
    (code, agent(&report, "it").clone())
}

#[test]
fn a_busy_agent_is_measured_with_all_its_processes() {
    let (code, agent) = said_of(Behaviour::Busy);
    assert_eq!((code, &agent["status"]), (Some(0), &"ACTIVE".into()), "{agent:#}");
    let metrics = &agent["metrics"];
    assert!(metrics["process_count"].as_u64().unwrap() >= 3, "{metrics:#}");
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    let cpu = metrics["cpu_percent"].as_f64().unwrap();
    // How much two computing processes get depends on what else runs here.
    assert!(cpu > 10.0 && cpu < cores.max(2.0) * 100.0 + 20.0, "{metrics:#}");
}

#[test]
fn an_agent_near_its_limit_of_files_is_degraded_before_it_breaks() {
    let (code, agent) = said_of(Behaviour::Crowded);
    assert_eq!((code, &agent["status"]), (Some(1), &"DEGRADED".into()), "{agent:#}");
    let checks = agent["health"]["check_results"].as_array().unwrap();
    let check = checks.iter().find(|c| c["name"] == "fd-near-limit").unwrap_or_else(|| panic!("{checks:#?}"));
    assert_eq!((&check["outcome"], &agent["health"]["status"]), (&"fail".into(), &"DEGRADED".into()));
    assert!(agent["metrics"]["thread_count"].as_u64().unwrap() >= 220);
}

#[test]
fn a_stopped_agent_is_stalled() {
    let (code, agent) = said_of(Behaviour::Stopped);
    assert_eq!((code, &agent["activity"]["state"]), (Some(1), &"stalled".into()), "{agent:#}");
    assert_eq!(agent["status"], "DEGRADED");
}

#[test]
fn a_stopped_agent_is_named_alike_everywhere_and_what_to_do_can_be_typed() {
    let world = World::new();
    let stand_in = stand_in(Behaviour::Stopped);
    let pid = stand_in.pid();
    let args = [
        "register",
        "--session",
        "stopped-one",
        "--name",
        "it",
        "--pid",
        &pid.to_string(),
        "--specialization",
        "tests",
    ];
    assert_eq!(world.run(&args).code, Some(0));
    let action = format!("fg in its terminal, or kill -CONT {pid}");
    for command in [&["status", "stopped-one"][..], &["status", "stopped-one", "--attention"], &["wait", "stopped-one"]]
    {
        let said = world.run(command).stdout;
        let line = said.lines().find(|line| line.trim_start().starts_with("! ")).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(&format!("! it (tests) {pid}")) && line.contains(&action), "{line}");
    }
}

#[test]
fn an_agent_that_crashed_has_failed_with_its_exit_code() {
    let (code, agent) = said_of(Behaviour::Crashing);
    assert_eq!((code, &agent["status"], &agent["activity"]["state"]), (Some(1), &"FAILED".into(), &"dead".into()));
    let reason = agent["activity"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("ended with exit code 3"), "{reason}");
}

#[test]
fn an_agent_that_was_killed_has_failed() {
    let world = World::new();
    let mut idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    assert_eq!(world.status("s", &roster).0, Some(0));
    idle.kill().unwrap();
    until("it is a zombie", || crate::world::state(idle.pid()) == Some('Z'));
    let (code, report) = world.status("s", &roster);
    let it = agent(&report, "it");
    assert_eq!((code, &it["status"], &it["activity"]["state"]), (Some(1), &"FAILED".into(), &"dead".into()));
    idle.wait().unwrap();
    let (code, report) = world.status("s", &roster);
    let it = agent(&report, "it");
    assert_eq!((code, &it["status"], &it["activity"]["state"]), (Some(1), &"FAILED".into(), &"dead".into()));
    assert_eq!(it["metrics"]["memory_mb"], Value::Null);
}

#[test]
fn another_process_with_an_agents_pid_is_not_that_agent() {
    let world = World::new();
    let other = stand_in(Behaviour::Idle);
    let pid = other.pid();
    let roster = |start| {
        let text = format!("[[session]]\nid = \"s\"\n[[session.agent]]\nname = \"it\"\npid = {pid}\nstart = {start}\n");
        world.write("roster.toml", text)
    };
    let start = start_of(pid).unwrap();
    let (code, report) = world.status("s", &roster(start - 1));
    let it = agent(&report, "it");
    assert_eq!((code, &it["activity"]["state"]), (Some(1), &"dead".into()), "{it:#}");
    assert_eq!(it["metrics"]["memory_mb"], Value::Null, "nothing of the other's");
    let (code, report) = world.status("s", &roster(start));
    assert_eq!((code, &agent(&report, "it")["status"]), (Some(0), &"ACTIVE".into()));
}

#[test]
fn a_pid_that_nobody_has_is_a_dead_agent() {
    let world = World::new();
    let (code, report) = world.status("s", &world.roster("s", &[("it", NO_PID)]));
    let it = agent(&report, "it");
    assert_eq!((code, &it["status"], &it["activity"]["state"]), (Some(1), &"FAILED".into(), &"dead".into()));
    assert_eq!(report["session_health"], "CRITICAL", "all of one agent");
}

#[test]
fn an_agent_is_found_by_what_it_runs_in_the_session_of_its_project() {
    let world = World::new();
    let project = world.path("shop");
    headcount_tests::repository(&project);
    fs::create_dir_all(project.join("src")).unwrap();
    let adjust = |command: &mut std::process::Command| {
        command.arg0("claude").current_dir(project.join("src"));
    };
    let claude = StandIn::start_with(Path::new(HEADCOUNT), Behaviour::Idle, adjust).unwrap();
    until("it runs", || fs::read(format!("/proc/{}/cmdline", claude.pid())).is_ok_and(|l| l.starts_with(b"claude\0")));
    let reports = world.run(&["status", "--json"]).json();
    let root = fs::canonicalize(&project).unwrap();
    let report = reports["reports"].as_array().unwrap().iter().find(|r| r["root_path"] == root.to_str().unwrap());
    let report = report.unwrap_or_else(|| panic!("{reports:#}"));
    let id = report["session_id"].as_str().unwrap();
    assert!(id.starts_with("shop-") && id.len() == 11, "{id}");
    let agent = &report["agents"][0];
    assert_eq!((&agent["kind"], &agent["process_id"]), (&"claude".into(), &claude.pid().into()));
    assert_eq!(world.run(&["status", id, "--json"]).json()["agents"][0]["agent_id"], agent["agent_id"]);
}
