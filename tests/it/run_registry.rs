//! `headcount run` and a registry that cannot be written for a while, and what is not the agent's.

use crate::run::{Running, command, it, pid_in, run};
use crate::world::{World, until};
use rusqlite::Connection;
use std::fs;
use std::process::Stdio;

/// Somebody who keeps all others from writing.
fn lock(world: &World) -> Connection {
    assert_eq!(run(world, &[], "exit 0").code, Some(0), "the registry is made");
    let connection = Connection::open(world.state().join("headcount.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[test]
fn an_agent_that_could_not_be_registered_is_later() {
    let world = World::new();
    let locked = lock(&world);
    let script = "echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done; exit 3";
    let mut running = Running::start(command(&world, &[], script));
    let pid = pid_in(&world, "pid");
    locked.execute_batch("ROLLBACK").unwrap();
    until("it is registered", || it(&world)["process_id"] == pid && it(&world)["status"] == "ACTIVE");
    world.write("end", "");
    assert_eq!(running.end().code(), Some(3));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 3);
}

#[test]
fn all_that_could_not_be_recorded_is_later() {
    let world = World::new();
    let locked = lock(&world);
    let options = ["--restart", "on-failure", "--backoff", "100ms", "--max-restarts", "1"];
    let ran = run(&world, &options, "echo . >>starts; exit 4");
    assert_eq!((ran.code, fs::read_to_string(world.path("starts")).unwrap().as_str()), (Some(4), ".\n.\n"));
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    locked.execute_batch("ROLLBACK").unwrap();
    until("its end is recorded", || it(&world)["run"]["last_exit"]["code"] == 4);
    assert_eq!(it(&world)["run"]["restarts"], 1);
}

#[test]
fn who_takes_over_writes_what_the_keeper_could_not() {
    let world = World::new();
    let locked = lock(&world);
    let script = "echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done; exit 3";
    let mut running = Running::start(command(&world, &[], script));
    let pid = pid_in(&world, "pid");
    crate::run::send(running.keeper(), nix::sys::signal::Signal::SIGKILL);
    until("it is the front's", || crate::run::child_of(running.pid()) == pid);
    locked.execute_batch("ROLLBACK").unwrap();
    until("it is registered", || it(&world)["process_id"] == pid);
    world.write("end", "");
    assert_eq!(running.end().code(), Some(3));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 3);
}

#[test]
fn who_is_taken_off_the_list_and_kept_is_said_to_go_on() {
    let world = World::new();
    let script = "echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done";
    let mut running = Running::start(command(&world, &[], script));
    pid_in(&world, "pid");
    let unregister = ["unregister", "--session", "s", "--name", "it"];
    let done = world.run(&unregister);
    assert_eq!(done.code, Some(0));
    assert!(done.stderr.contains("still stands by it"), "{}", done.stderr);
    world.write("end", "");
    running.end();
    run(&world, &[], "exit 0");
    assert_eq!(world.run(&unregister).stderr, "");
}

#[test]
fn wrong_usage_and_troubles_of_its_own_are_told_from_the_agents() {
    let world = World::new();
    for wrong in
        [&["run", "-x"][..], &["run", "--backoff", "99ms", "--", "true"], &["run", "--nmae", "x", "--", "true"]]
    {
        assert_eq!(world.run(wrong).code, Some(64), "{wrong:?}");
    }
    assert_eq!(world.run(&["run", "--", "-x"]).code, Some(127));
    let config = world.write("broken.toml", "no = ");
    let broken = world.run(&["--config", config.to_str().unwrap(), "run", "--", "true"]);
    assert_eq!(broken.code, Some(125), "{}", broken.stderr);
}

/// A descriptor that the agent has closed is open nowhere: whoever reads at its other end goes on.
#[test]
fn what_the_caller_has_open_only_the_agent_keeps() {
    let world = World::new();
    let script = "exec 7>&-; echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done";
    let run = command(&world, &[], script);
    let mut outer = std::process::Command::new("sh");
    outer.args(["-c", "exec \"$@\" 7>&1 >/dev/null", "sh"]).arg(run.get_program()).args(run.get_args());
    outer.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(run.get_current_dir().unwrap_or(std::path::Path::new("/")));
    let mut child = outer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let running = Running(child);
    let pid = pid_in(&world, "pid");
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    assert!(crate::world::start_of(pid).is_some(), "it lives");
    world.write("end", "");
    let mut running = running;
    assert_eq!(running.end().code(), Some(0));
}
