//! Real processes that only look like agents. Only what these tests start is looked at.

use super::world::names;
use crate::clock::SystemClock;
use crate::config::{Config, Span};
use crate::observe::Observer;
use crate::observe::facts::{ProcessState, Snapshot};
use crate::observe::processes::{Options, Sampler};
use crate::observe::roster::FileSource;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A folder with programs that look like agents, and what runs of them.
struct Stage {
    disk: PathBuf,
    running: Vec<Child>,
    _removed_when_dropped: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(disk.join("bin")).unwrap();
        for name in ["claude", "codex"] {
            headcount_tests::copy_of_shell(&disk.join("bin").join(name));
        }
        headcount_tests::repository(&disk.join("shop"));
        Self { disk, running: Vec::new(), _removed_when_dropped: folder }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.disk.join("bin").join(name)
    }

    /// Runs a script by a program in a folder of the stage.
    fn run(&mut self, program: &str, script: &str, folder: &str) -> u32 {
        let mut command = Command::new(self.program(program));
        command.args(["-c", script]).current_dir(self.disk.join(folder)).process_group(0).stdout(Stdio::null());
        let child = headcount_tests::spawn(&mut command);
        let pid = child.id();
        self.running.push(child);
        pid
    }

    /// Ends everything that runs.
    fn clear(&mut self) {
        for mut child in self.running.drain(..) {
            // It may have ended by itself.
            let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
            child.wait().unwrap();
        }
    }

    fn observer(&self, rosters: &[PathBuf]) -> Observer {
        let clock = Arc::new(SystemClock::default());
        let sampler = Sampler::new(clock.clone(), Options::default());
        let source = |file: &PathBuf| Box::new(FileSource::new(file.clone())) as _;
        let mut config = Config::default();
        config.sampling.keep_ended = Span::from_millis(60_000);
        Observer::new(clock, sampler, &config, rosters.iter().map(source).collect(), Default::default()).unwrap()
    }

    /// Looks until the stage's sessions are as wanted: a process needs a moment to become what it shall be.
    fn look(&self, observer: &mut Observer, wanted: impl Fn(&[Snapshot]) -> bool) -> Vec<Snapshot> {
        let start = Instant::now();
        loop {
            let mut seen = observer.observe();
            seen.retain(|snapshot| Path::new(&snapshot.session.root_path).starts_with(&self.disk));
            if wanted(&seen) {
                return seen;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{seen:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.clear();
    }
}

#[test]
fn running_agents_are_found_in_their_project() {
    let mut stage = Stage::new();
    fs::create_dir_all(stage.disk.join("shop/src")).unwrap();
    let codex = stage.program("codex");
    let nested = format!("sh -c '{} -c \"sleep 1000 & wait\" & wait' & wait", codex.display());
    let claude = stage.run("claude", &nested, "shop/src");
    let mut observer = stage.observer(&[]);
    let seen = stage.look(&mut observer, |seen| names(seen) == [["claude", "codex"]]);
    let found = &seen[0].agents[0];
    assert_eq!((found.process_id, found.kind.as_str()), (Some(claude), "claude"));
    assert_eq!(Path::new(&seen[0].session.root_path), stage.disk.join("shop"));
    // Each is a shell and what it started; the last of them may take its time to start.
    let counts = |seen: &[Snapshot]| seen[0].agents.iter().map(|agent| agent.metrics.processes).collect::<Vec<_>>();
    let both = stage.look(&mut observer, |seen| counts(seen) == [Some(2), Some(2)]);
    let ids: Vec<_> = both[0].agents.iter().map(|agent| agent.id.clone()).collect();
    stage.clear();
    let ended = |seen: &[Snapshot]| seen[0].agents.iter().all(|agent| agent.process == ProcessState::Gone);
    let after = stage.look(&mut observer, ended);
    assert_eq!(after[0].agents.iter().map(|agent| agent.id.clone()).collect::<Vec<_>>(), ids);
}

#[test]
fn a_roster_finds_processes_by_pid_file_and_command() {
    let mut stage = Stage::new();
    let by_pid = stage.run("claude", "sleep 1001 & wait", "shop");
    let by_file = stage.run("codex", "sleep 1002 & wait", "shop");
    fs::write(stage.disk.join("codex.pid"), format!("{by_file}\n")).unwrap();
    let mut other = Command::new("/bin/sh");
    other.args(["-c", "sleep 1003 & wait", "a-mark-of-this-test"]).process_group(0);
    let other = headcount_tests::spawn(&mut other);
    let by_command = other.id();
    stage.running.push(other);
    let roster = format!(
        "[[session]]\nid = \"team\"\nroot_path = \"shop\"\n\
         [[session.agent]]\nname = \"one\"\npid = {by_pid}\n\
         [[session.agent]]\nname = \"two\"\npid_file = \"codex.pid\"\n\
         [[session.agent]]\nname = \"three\"\nmatch = \"a-mark-of-this-test$\"\n"
    );
    let file = stage.disk.join("team.toml");
    fs::write(&file, roster).unwrap();
    let mut observer = stage.observer(&[file]);
    let all_live = |seen: &[Snapshot]| seen.len() == 1 && seen[0].agents.iter().all(|agent| agent.process_id.is_some());
    let seen = stage.look(&mut observer, all_live);
    let mut found: Vec<_> = seen[0].agents.iter().map(|agent| (agent.name.as_str(), agent.process_id)).collect();
    found.sort_unstable();
    assert_eq!(found, [("one", Some(by_pid)), ("three", Some(by_command)), ("two", Some(by_file))]);
    assert_eq!(seen[0].session.id, "team");
}
