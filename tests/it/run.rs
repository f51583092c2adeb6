//! `headcount run` where there is no terminal.

use crate::world::{PATIENCE, Ran, World, agent, descendants, ended, finish, start_of, state, until};
use headcount::store::Store;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NAMED: [&str; 4] = ["--session", "s", "--name", "it"];

pub fn command(world: &World, options: &[&str], script: &str) -> Command {
    let mut command = world.command(&[&["run"], &NAMED[..], options, &["--", "sh", "-c", script]].concat());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

pub fn run(world: &World, options: &[&str], script: &str) -> Ran {
    finish(command(world, options, script))
}

/// A run that goes on until the test ends it, or is over.
pub struct Running(pub Child);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The keeper, which is the front's only child.
    pub fn keeper(&self) -> u32 {
        child_of(self.pid())
    }

    pub fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it has not ended");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of a test that has failed nothing is to be left.
        for (pid, _) in descendants(self.pid()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child of a process that is no witness.
pub fn child_of(pid: u32) -> u32 {
    let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_witness =
        |child: &&str| fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name == "witness\n");
    let find = || children().split_whitespace().find(|child| !is_witness(child)).map(|child| child.parse().unwrap());
    until("it has a child", || find().is_some());
    find().unwrap()
}

pub fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

fn report(world: &World) -> Value {
    world.run(&["status", "s", "--json"]).json()
}

pub fn it(world: &World) -> Value {
    agent(&report(world), "it").clone()
}

/// The pid that an agent has written to a file.
pub fn pid_in(world: &World, name: &str) -> u32 {
    let read = || fs::read_to_string(world.path(name)).ok()?.strip_suffix('\n')?.parse().ok();
    until("its pid is written", || read().is_some());
    read().unwrap()
}

pub fn lines(world: &World, name: &str) -> usize {
    fs::read_to_string(world.path(name)).unwrap_or_default().lines().count()
}

/// A script that writes its pid and ends with 4 once there is a file `end`.
const UNTIL_END: &str = "echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done; exit 4";

#[test]
fn it_ends_as_the_agent_does_and_how_is_recorded() {
    let world = World::new();
    for (script, code, signal, status, reason) in [
        ("exit 0", Some(0), None, "OFFLINE", "ended with exit code 0"),
        ("exit 3", Some(3), None, "FAILED", "ended with exit code 3"),
        ("kill -TERM $$", None, Some(15), "OFFLINE", "ended on request (signal 15)"),
        ("exit 130", Some(130), None, "OFFLINE", "ended on request (signal 2)"),
        ("kill -KILL $$", None, Some(9), "FAILED", "ended by signal 9"),
    ] {
        let mut run = Running::start(command(&world, &["--specialization", "tests"], script));
        let ended = run.end();
        assert_eq!((ended.code(), ended.signal()), (code, signal), "{script}");
        let found = it(&world);
        assert_eq!((&found["status"], &found["activity"]["reason"]), (&status.into(), &reason.into()), "{found:#}");
        assert_eq!(found["run"]["last_exit"]["code"], json!(code));
        assert_eq!(found["run"]["last_exit"]["signal"], json!(signal));
        assert_eq!(found["activity"]["since"], found["run"]["last_exit"]["at"], "{found:#}");
        assert_eq!(found["specialization"], "tests");
        assert_eq!(found["metrics"]["unmeasured"], json!({}), "{found:#}");
    }
    assert_eq!(world.run(&["unregister", "--session", "s", "--name", "it"]).code, Some(0));
    assert_eq!(Store::at(&world.state()).runs().unwrap(), []);
}

#[test]
fn what_cannot_be_executed_is_said_and_not_registered() {
    let world = World::new();
    world.write("no-program", "");
    for (program, code, said) in [
        ("no-such-command", 127, "headcount: no-such-command: command not found\n"),
        ("./no-program", 126, "headcount: ./no-program: may not be executed\n"),
    ] {
        let ran = world.run(&[&["run"], &NAMED[..], &["--", program]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), said));
    }
    assert_eq!(world.run(&["status", "s"]).code, Some(2), "there is no such session");
    assert_eq!(world.run(&["run"]).code, Some(64));
}

#[test]
fn bytes_pass_as_they_are() {
    let world = World::new();
    let mut command = command(&world, &[], "cat; echo -n also >&2");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let sent: Vec<u8> = (0..10_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut to = child.stdin.take().unwrap();
    let written = sent.clone();
    let writer = thread::spawn(move || to.write_all(&written).unwrap());
    let (mut got, mut also) = (Vec::new(), String::new());
    child.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut also).unwrap();
    writer.join().unwrap();
    assert_eq!(ended(&mut child, PATIENCE), Some(0));
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    assert_eq!(also, "also");
}

#[test]
fn it_is_nothing_between_an_agent_and_its_pipes() {
    let world = World::new();
    // The reader sees the end although the agent lives on, and the writer that nobody reads any more.
    let script = "exec <&- >&-; until test -e end; do sleep 0.02; done";
    let mut child = command(&world, &[], script).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(child.stdout.take().unwrap().read(&mut [0]).unwrap(), 0);
    let mut to = child.stdin.take().unwrap();
    let error = loop {
        if let Err(error) = to.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    world.write("end", "");
    assert_eq!(ended(&mut child, PATIENCE), Some(0));
}

#[test]
fn the_agent_starts_as_without_it() {
    let world = World::new();
    let script =
        "umask; pwd; cat; kill -HUP $$; echo $HEADCOUNT_AGENT; sed -n 's/^Sig\\(Blk\\|Ign\\)://p' /proc/self/status";
    let said_through = |through: &[&str]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 027; trap '' HUP; exec \"$@\"", "sh"]).args(through).args(["sh", "-c", script]);
        shell.env("HOME", world.path("")).env_remove("HEADCOUNT_STATE_DIR").env("HEADCOUNT_AGENT", "none of ours");
        shell.current_dir(world.path("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = finish(shell);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (with, without) = (said_through(&[crate::world::HEADCOUNT, "run", "--"]), said_through(&["env"]));
    assert_eq!((with.len(), &with[0]), (5, &"0027".to_owned()), "{with:?}");
    assert!(with[2].starts_with("run-"), "{with:?}");
    assert_eq!((&with[..2], &with[3..]), (&without[..2], &without[3..]));
}

/// Who ignores SIGCHLD has its children ignore it too, and then the kernel tells nobody how they end.
#[test]
fn it_does_not_matter_that_the_caller_ignores_its_children() {
    let world = World::new();
    let mut shell = Command::new("sh");
    let script = "trap '' CHLD; exec \"$@\"";
    shell.args(["-c", script, "sh", crate::world::HEADCOUNT, "run"]).args(NAMED).args(["--", "sh", "-c", "exit 3"]);
    shell.env("HOME", world.path("")).env_remove("HEADCOUNT_STATE_DIR").current_dir(world.path(""));
    let mut run = Running::start(shell);
    assert_eq!(run.end().code(), Some(3));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 3);
}

#[test]
fn an_agent_outlives_the_front_and_its_end_is_recorded() {
    let world = World::new();
    let mut run = Running::start(command(&world, &[], UNTIL_END));
    let pid = pid_in(&world, "pid");
    send(run.pid(), Signal::SIGKILL);
    assert_eq!(run.end().signal(), Some(9));
    let found = it(&world);
    assert_eq!((&found["status"], &found["process_id"]), (&"ACTIVE".into(), &pid.into()), "{found:#}");
    world.write("end", "");
    until("its end is recorded", || it(&world)["run"]["last_exit"]["code"] == 4);
}

#[test]
fn an_agent_outlives_the_keeper_and_its_end_is_recorded() {
    let world = World::new();
    let mut run = Running::start(command(&world, &[], UNTIL_END));
    let pid = pid_in(&world, "pid");
    send(run.keeper(), Signal::SIGKILL);
    until("it is the front's", || child_of(run.pid()) == pid);
    assert_eq!(it(&world)["status"], "ACTIVE");
    world.write("end", "");
    assert_eq!(run.end().code(), Some(4));
    assert_eq!(it(&world)["run"]["last_exit"]["code"], 4);
}

#[test]
fn without_both_the_agent_lives_on_and_how_it_ends_is_not_known() {
    let world = World::new();
    let mut run = Running::start(command(&world, &[], UNTIL_END));
    let pid = pid_in(&world, "pid");
    let keeper = run.keeper();
    send(run.pid(), Signal::SIGKILL);
    send(keeper, Signal::SIGKILL);
    run.end();
    assert_eq!(it(&world)["status"], "ACTIVE");
    world.write("end", "");
    until("it has ended", || matches!(state(pid), None | Some('Z')));
    until("nobody knows how", || it(&world)["activity"]["reason"] == "ended, exit code unknown");
    assert_eq!(it(&world)["status"], "FAILED");
}

#[test]
fn who_fails_is_started_again_and_not_for_ever() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "100ms", "--max-restarts", "2"];
    let mut run = Running::start(command(&world, &options, "echo . >>starts; exit 3"));
    assert_eq!(run.end().code(), Some(3));
    assert_eq!(lines(&world, "starts"), 3);
    let found = it(&world);
    assert_eq!((&found["status"], &found["run"]["restarts"]), (&"FAILED".into(), &2.into()));
    let table = world.run(&["status", "s"]).stdout;
    assert!(
        table.contains("gave up after 2 restarts; exit code 3") && table.contains(" → read its last output"),
        "{table}"
    );
    for script in ["echo . >>ends; exit 0", "echo . >>ends; kill -TERM $$"] {
        Running::start(command(&world, &options, script)).end();
    }
    assert_eq!(lines(&world, "ends"), 2, "who ends well, or was asked to, has not failed");
    let ran = self::run(&world, &options, "exit 3");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""), "only in a terminal is said what is waited for");
}

#[test]
fn while_it_waits_to_be_started_again_that_is_said() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "1h"];
    let mut run = Running::start(command(&world, &options, "echo . >>starts; exit 3"));
    until("it waits", || world.run(&["status", "s"]).code == Some(1) && !it(&world)["run"]["next_start_at"].is_null());
    let found = it(&world);
    assert_eq!((&found["status"], &found["activity"]["state"]), (&"DEGRADED".into(), &"dead".into()), "{found:#}");
    let table = world.run(&["status", "s"]).stdout;
    assert!(table.contains("exit code 3; starts again in 60 min (restart 1 of 5)"), "{table}");
    assert!(!table.contains('!'), "it mends itself: {table}");
    assert_eq!(world.run(&["status", "s", "--attention"]).code, Some(0));
    let second = self::run(&world, &[], "exit 0");
    assert_eq!(second.code, Some(64), "its name is kept: {}", second.stderr);
    send(run.pid(), Signal::SIGTERM);
    assert_eq!(run.end().signal(), Some(15));
    let found = it(&world);
    assert_eq!((found["run"]["next_start_at"].is_null(), lines(&world, "starts")), (true, 1));
    assert_eq!(
        (&found["status"], &found["activity"]["reason"]),
        (&"OFFLINE".into(), &"ended on request (signal 15)".into())
    );
}

#[test]
fn who_was_asked_to_end_has_not_failed() {
    let world = World::new();
    let script = "trap 'exit 4' TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.02; done";
    let mut run = Running::start(command(&world, &["--restart", "on-failure"], script));
    pid_in(&world, "pid");
    send(run.pid(), Signal::SIGTERM);
    assert_eq!(run.end().code(), Some(4));
    let ran = world.run(&["status", "s", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let report = ran.json();
    let found = agent(&report, "it");
    assert_eq!((&found["status"], &found["activity"]["state"]), (&"OFFLINE".into(), &"finished".into()), "{found:#}");
    assert_eq!(found["activity"]["reason"], "ended on request (signal 15)");
    assert_eq!(report["attention"], json!([]));
}

#[test]
fn whoever_is_left_starts_it_again() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "100ms", "--max-restarts", "1"];
    let script = "echo . >>starts; echo $$ >pid.new; mv pid.new pid; until test -e end; do sleep 0.02; done; exit 4";
    let mut run = Running::start(command(&world, &options, script));
    let first = pid_in(&world, "pid");
    send(run.keeper(), Signal::SIGKILL);
    until("it is the front's", || child_of(run.pid()) == first);
    world.write("end", "");
    assert_eq!(run.end().code(), Some(4));
    assert_eq!((lines(&world, "starts"), &it(&world)["run"]["restarts"]), (2, &1.into()));
    let mut run =
        Running::start(command(&world, &options, "echo . >>starts; until test -e more; do sleep 0.02; done; exit 4"));
    until("it has begun", || lines(&world, "starts") == 3);
    send(run.pid(), Signal::SIGKILL);
    run.end();
    world.write("more", "");
    until("it has failed again", || it(&world)["run"]["restarts"] == 1 && it(&world)["run"]["last_exit"]["code"] == 4);
    until("it was started again", || lines(&world, "starts") == 4);
}

#[test]
fn where_nobody_is_left_who_would_start_it_again_that_is_not_said() {
    let world = World::new();
    let options = ["--restart", "on-failure", "--backoff", "1h"];
    let mut run = Running::start(command(&world, &options, "exit 3"));
    until("it waits", || world.run(&["status", "s"]).code == Some(1) && !it(&world)["run"]["next_start_at"].is_null());
    let keeper = run.keeper();
    send(run.pid(), Signal::SIGKILL);
    send(keeper, Signal::SIGKILL);
    run.end();
    until("it waits no more", || it(&world)["run"]["next_start_at"].is_null());
    assert_eq!(self::run(&world, &[], "exit 0").code, Some(0), "its name is free");
}

#[test]
fn a_signal_comes_once_whoever_it_was_sent_to() {
    let world = World::new();
    let script = "trap 'echo . >>caught' TERM; echo $$ >pid; until test -e end; do sleep 0.02; done; exit 4";
    let mut run = Running::start(command(&world, &[], script));
    pid_in(&world, "pid");
    send(run.pid(), Signal::SIGTERM);
    until("it is passed on", || lines(&world, "caught") == 1);
    kill(Pid::from_raw(-run.pid().cast_signed()), Signal::SIGTERM).unwrap();
    until("it has come to all", || lines(&world, "caught") >= 2);
    world.write("end", "");
    assert_eq!(run.end().code(), Some(4));
    assert_eq!(lines(&world, "caught"), 2);
}

#[test]
fn a_name_belongs_to_who_lives() {
    let world = World::new();
    let mut first = Running::start(command(&world, &[], UNTIL_END));
    let pid = pid_in(&world, "pid");
    let second = run(&world, &[], "echo never >>never");
    let said = format!("headcount: session s has an agent it that lives: process {pid}; choose another --name\n");
    assert_eq!((second.code, second.stderr), (Some(64), said));
    assert!(!world.path("never").exists());
    assert_eq!(it(&world)["process_id"], pid);
    world.write("end", "");
    first.end();
    assert_eq!(run(&world, &[], "exit 0").code, Some(0));
    assert_eq!(it(&world)["status"], "OFFLINE");
}

#[test]
fn a_name_and_a_session_need_not_be_chosen() {
    let world = World::new();
    let project = world.path("project");
    headcount_tests::repository(&project);
    let program = world.write("bin/claude", "#!/bin/sh\nuntil test -e end; do sleep 0.02; done\n");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let start = || {
        let mut command = world.command(&["run", "--", program.to_str().unwrap()]);
        command.current_dir(&project).env("PATH", std::env::var_os("PATH").unwrap());
        Running::start(command)
    };
    // While the database is being made, it cannot be read.
    let registered = || Store::at(&world.state()).list().map_or(0, |all| all.len());
    let mut first = start();
    until("it is registered", || registered() == 1);
    let mut second = start();
    until("so is the second", || registered() == 2);
    let reports = world.run(&["status", "--json"]).json();
    let root = fs::canonicalize(&project).unwrap();
    let sessions = reports["reports"].as_array().unwrap();
    let session = sessions.iter().find(|report| report["root_path"] == root.to_str().unwrap()).unwrap();
    assert_eq!((&session["session_name"], &session["agent_count"]), (&"project".into(), &2.into()), "{session:#}");
    for name in ["claude", "claude-2"] {
        assert_eq!(agent(session, name)["kind"], "claude");
    }
    let id = session["session_id"].as_str().unwrap();
    fs::write(project.join("end"), "").unwrap();
    assert_eq!((first.end().code(), second.end().code()), (Some(0), Some(0)));
    let ended = world.run(&["status", id, "--json"]).json();
    for name in ["claude", "claude-2"] {
        assert_eq!(agent(&ended, name)["kind"], "claude", "it stays what it was");
    }
}

#[test]
fn a_store_that_cannot_be_written_stops_no_agent() {
    let world = World::new();
    let file = world.write("file", "");
    let mut command = command(&world, &[], "echo out; exit 3");
    command.env("HEADCOUNT_STATE_DIR", file.join("state"));
    let ran = finish(command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "out\n"));
    assert!(ran.stderr.starts_with("headcount: the run is not recorded: "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn what_an_agent_leaves_behind_stays_in_its_row() {
    let world = World::new();
    // Its parent ends at once, and it is in a session of its own: only the tag tells whose it is.
    let script = "(setsid sh -c 'echo $$ >orphan.new; mv orphan.new orphan; exec sleep 600' &) ; until test -e end; do sleep 0.02; done";
    let mut run = Running::start(command(&world, &[], script));
    let orphan = pid_in(&world, "orphan");
    until("it has lost its parent", || state(orphan) == Some('S'));
    let counted = |world: &World| it(world)["metrics"]["process_count"].as_u64().unwrap();
    until("the agent, what it waits with and the orphan are counted", || counted(&world) >= 2);
    world.write("end", "");
    assert_eq!(run.end().code(), Some(0));
    let found = it(&world);
    assert_eq!((&found["status"], counted(&world)), (&"OFFLINE".into(), 1), "{found:#}");
    let checks = found["health"]["check_results"].to_string();
    assert!(checks.contains("leftover-processes"), "{checks}");
    send(orphan, Signal::SIGKILL);
}

#[test]
fn an_agent_that_runs_another_is_counted_without_it() {
    let world = World::new();
    let inner = "(setsid sh -c \"echo \\$\\$ >orphan.new; mv orphan.new orphan; exec sleep 600\" &); until test -e end; do sleep 0.02; done";
    let outer = format!("{} run --session s --name inner -- sh -c '{inner}'; exit 5", crate::world::HEADCOUNT);
    let mut run = Running::start(command(&world, &[], &outer));
    let orphan = pid_in(&world, "orphan");
    until("both are registered", || report(&world)["agent_count"] == 2);
    let seen = report(&world);
    let count = |name: &str| agent(&seen, name)["metrics"]["process_count"].as_u64().unwrap();
    // The shell with the front and the keeper that it has started; the other shell, its orphan, and what it waits with.
    assert_eq!(count("it"), 3, "{seen:#}");
    assert!((2..=3).contains(&count("inner")), "{seen:#}");
    assert!(start_of(orphan).is_some());
    world.write("end", "");
    assert_eq!(run.end().code(), Some(5));
    let seen = report(&world);
    assert_eq!(agent(&seen, "inner")["metrics"]["process_count"], 1, "{seen:#}");
    assert_eq!(agent(&seen, "it")["metrics"]["process_count"], 0, "{seen:#}");
    send(orphan, Signal::SIGKILL);
}
