//! A home directory, the executable run in it, and what to wait for.

use headcount::demo::stand_in::{Behaviour, StandIn};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The executable.
pub const HEADCOUNT: &str = env!("CARGO_BIN_EXE_headcount");

/// How long anything may take on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A home directory of its own, removed afterwards.
pub struct World {
    dir: TempDir,
}

/// What came of running the executable.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None`: a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// What it printed, as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl World {
    pub fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("headcount-").tempdir().unwrap() }
    }

    /// A place in the home directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where the executable keeps its state.
    pub fn state(&self) -> PathBuf {
        self.path(".local/state/headcount")
    }

    /// Writes a file below the home directory.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A roster file with one session and the agents that have these names and pids.
    pub fn roster(&self, session: &str, agents: &[(&str, u32)]) -> PathBuf {
        let mut text = format!("[[session]]\nid = {session:?}\n");
        for (name, pid) in agents {
            writeln!(text, "[[session.agent]]\nname = {name:?}\npid = {pid}").unwrap();
        }
        self.write(&format!("{session}.toml"), text)
    }

    /// The executable with arguments, in an environment that says little but where home is. On a machine that is busy with
    /// other tests, reading what all processes run may take longer than people would wait for it.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(HEADCOUNT);
        command.args(args).env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        command.env("HEADCOUNT_SAMPLING_DETAILS_DEADLINE", "10s");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the executable to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        finish(self.command(args))
    }

    /// What is reported of an agent that was found by itself.
    pub fn found(&self, agent: &StandIn) -> Value {
        self.found_by_pid(agent.pid())
    }

    /// What is reported of the agent whose process this is.
    pub fn found_by_pid(&self, pid: u32) -> Value {
        let reports = self.run(&["status", "--json"]).json();
        let sessions = reports["reports"].as_array().unwrap();
        let agents = sessions.iter().flat_map(|report| report["agents"].as_array().unwrap());
        let found: Vec<&Value> = agents.filter(|found| found["process_id"] == pid).collect();
        assert_eq!(found.len(), 1, "{reports:#}");
        found[0].clone()
    }

    /// The report of one declared session, and the exit code.
    pub fn status(&self, session: &str, roster: &Path) -> (Option<i32>, Value) {
        let ran = self.run(&["status", session, "--json", "--roster", roster.to_str().unwrap()]);
        (ran.code, ran.json())
    }
}

/// What an agent has said of its work; how many servers it has is counted beside the looks, sooner or later.
pub fn without_servers(work: &Value) -> Value {
    let mut work = work.clone();
    work["mcp_servers"] = Value::Null;
    work
}

/// Runs a command to its end.
pub fn finish(mut command: Command) -> Ran {
    let mut child = command.spawn().unwrap();
    let reader = |pipe: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut pipe = pipe;
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        })
    };
    let stdout = reader(Box::new(child.stdout.take().unwrap()));
    let stderr = reader(Box::new(child.stderr.take().unwrap()));
    let code = ended(&mut child, PATIENCE);
    Ran { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// The exit code of a child that ends in time; one that does not is ended, and the test with it.
pub fn ended(child: &mut Child, patience: Duration) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if start.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it has not ended after {patience:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until something is so.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "after {PATIENCE:?} still not: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A stand-in that has come to behave as it should.
pub fn stand_in(behaviour: Behaviour) -> StandIn {
    let stand_in = StandIn::start(Path::new(HEADCOUNT), behaviour).unwrap();
    let pid = stand_in.pid();
    until(&format!("{behaviour:?} behaves so"), || match behaviour {
        Behaviour::Stopped => state(pid) == Some('T'),
        Behaviour::Crashing => state(pid) == Some('Z'),
        Behaviour::Crowded => count(pid, "task") >= 220 && count(pid, "fd") >= 245,
        Behaviour::Busy => descendants(pid).len() >= 2,
        _ => fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(HEADCOUNT.as_bytes())),
    });
    stand_in
}

fn count(pid: u32, folder: &str) -> usize {
    fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count)
}

/// The letter for a process's state; `None`: there is no such process.
pub fn state(pid: u32) -> Option<char> {
    stat(pid)?.first()?.chars().next()
}

/// The raw start of a process, which tells it from a later one with its pid.
pub fn start_of(pid: u32) -> Option<u64> {
    stat(pid)?.get(19)?.parse().ok()
}

/// The fields of a process's `stat` from the third on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// The processes below one, each with its start.
pub fn descendants(root: u32) -> Vec<(u32, u64)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let processes: Vec<(u32, u32, u64)> = pids
        .filter_map(|pid| {
            let stat = stat(pid)?;
            Some((pid, stat.get(1)?.parse().ok()?, stat.get(19)?.parse().ok()?))
        })
        .collect();
    let mut found: Vec<(u32, u64)> = Vec::new();
    loop {
        let is_below = |parent: u32| parent == root || found.iter().any(|(pid, _)| *pid == parent);
        let more: Vec<_> = processes
            .iter()
            .filter(|(pid, parent, start)| is_below(*parent) && !found.contains(&(*pid, *start)))
            .map(|(pid, _, start)| (*pid, *start))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// A process that is recognised as an agent of this kind, in a project of its own.
pub fn posing_as(kind: &str, world: &World, adjust: impl FnOnce(&mut Command)) -> StandIn {
    let project = world.path("project");
    headcount_tests::repository(&project);
    let adjust = |command: &mut Command| {
        command.arg0(kind).current_dir(&project).env("HOME", world.path(""));
        adjust(command);
    };
    let it = StandIn::start_with(Path::new(HEADCOUNT), Behaviour::Idle, adjust).unwrap();
    let runs = |line: Vec<u8>| line.starts_with(format!("{kind}\0").as_bytes());
    until("it runs", || fs::read(format!("/proc/{}/cmdline", it.pid())).is_ok_and(runs));
    it
}

/// The agent of this name in a report.
pub fn agent<'r>(report: &'r Value, name: &str) -> &'r Value {
    let agents = report["agents"].as_array().unwrap_or_else(|| panic!("no agents: {report:#}"));
    agents.iter().find(|agent| agent["agent_name"] == name).unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

/// A pid that no process has: beyond the highest that the kernel gives.
pub const NO_PID: u32 = 4_194_304 + 17;

/// Kilobytes of memory that a process has.
pub fn memory(pid: u32) -> i64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
