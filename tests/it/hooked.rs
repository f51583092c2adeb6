//! An agent that runs hooks: a shell that is taken for it.

use crate::world::{HEADCOUNT, World, start_of};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A shell of another name, which the kernel calls the process, too.
pub fn shell_called(world: &World, name: &str) -> PathBuf {
    let link = world.path("bin").join(name);
    fs::create_dir_all(world.path("bin")).unwrap();
    if !link.is_symlink() {
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    }
    link
}

/// A shell that is taken for an agent of this kind, and runs hooks as its children: a line to its stdin is an event.
pub struct Agent(Child);

impl Agent {
    pub fn start(world: &World, kind: &str) -> Self {
        Self::holding(world, kind, Path::new("/dev/null"), &[])
    }

    /// One that has a file open for writing, and these words at the end of its command line.
    pub fn holding(world: &World, kind: &str, file: &Path, words: &[&str]) -> Self {
        // The hooks in a shell of their own, as agents run them.
        Self::running(world, kind, &format!("sh -c '\"{HEADCOUNT}\" hook {kind}; :' 3>&-"), file, words)
    }

    /// One that passes each event to a command.
    pub fn running(world: &World, kind: &str, command_of_hooks: &str, held: &Path, words: &[&str]) -> Self {
        let project = world.path("shop");
        headcount_tests::repository(&project);
        let mut command = Command::new(shell_called(world, kind));
        let reading = format!("while read -r event; do printf %s \"$event\" | {command_of_hooks}; echo; done");
        let script = format!("exec 3>>'{}'; {reading}", held.display());
        command.arg0(kind).args(["-c", &script, kind]).args(words).current_dir(project);
        command.env_clear().env("HOME", world.path("")).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(headcount_tests::spawn(&mut command))
    }

    /// Sends an event and waits until it is noted.
    pub fn send(&mut self, event: &Value) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{event}").unwrap();
        let mut line = [0];
        std::io::Read::read_exact(self.0.stdout.as_mut().unwrap(), &mut line).unwrap();
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Writes the record of its process that a Claude has: its status from now on.
    pub fn records(&self, world: &World, status: &str) {
        let (pid, now) = (self.0.id(), jiff::Timestamp::now().as_millisecond());
        let start = start_of(pid).unwrap().to_string();
        let record =
            json!({"pid": pid, "procStart": start, "status": status, "updatedAt": now, "statusUpdatedAt": now});
        world.write(&format!(".claude/sessions/{pid}.json"), record.to_string());
    }

    /// What is said of its activity.
    pub fn activity(&self, world: &World) -> Value {
        let reports = world.run(&["status", "--json"]).json();
        let agents = reports["reports"].as_array().unwrap().iter().flat_map(|r| r["agents"].as_array().unwrap());
        let mine = agents.into_iter().find(|agent| agent["process_id"] == self.0.id());
        mine.unwrap_or_else(|| panic!("{reports:#}"))["activity"].clone()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It ends with its stdin.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
