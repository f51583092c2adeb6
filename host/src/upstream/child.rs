//! A server that is a child process: a process group of its own, of which nothing is left when it is ended.
//!
//! The leader is waited for without being reaped until its group has been told to end: until then no other process can get
//! the group's number. What leaves the group (`setsid`) is beyond reach.

use super::Program;
use super::end::End;
use super::stderr;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// A server that runs. Dropped, it is killed with its group.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    group: Pid,
    end: End,
    reaped: bool,
}

/// Where its messages come from and go to.
pub type Pipes = (pipe::Receiver, pipe::Sender);

impl Child {
    /// Starts a server for the upstream `name`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Program, name: &Arc<str>) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(&program.command);
        command.args(&program.args).envs(&program.env).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn()?;
        let group = Pid::from_child(&process);
        let (mut process, end) = match End::of(group) {
            Ok(end) => (process, end),
            Err(error) => return Err(discard(process, group, error)),
        };
        let pipes = (process.stdout.take(), process.stdin.take(), process.stderr.take());
        let child = Self { process, group, end, reaped: false };
        let (Some(out), Some(into), Some(errors)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        stderr::follow(pipe::Receiver::from_owned_fd(errors.into())?, Arc::clone(name));
        Ok((child, (pipe::Receiver::from_owned_fd(out.into())?, pipe::Sender::from_owned_fd(into.into())?)))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// What becomes ready when it has ended.
    pub fn end(&self) -> End {
        self.end.clone()
    }

    /// Ends it, and waits until nothing of its group is left. Its input has been closed, which asks it to end by itself;
    /// if it does not within `grace`, its group is sent SIGTERM, and after as long again SIGKILL.
    pub async fn stop(mut self, grace: Duration) {
        let end = self.end();
        if timeout(grace, end.come()).await.is_err() {
            self.signal(Signal::TERM);
            // One that was stopped would hear of it only when it goes on.
            self.signal(Signal::CONT);
            if timeout(grace, end.come()).await.is_err() {
                self.signal(Signal::KILL);
                if timeout(grace, end.come()).await.is_err() {
                    // The kernel holds it. It is its own to end then, and nobody waits for that.
                    tracing::warn!("process {} cannot be killed", self.pid());
                    self.reaped = true;
                }
            }
        }
        self.finish();
    }

    /// Kills whatever is left of the group, and reaps the leader.
    fn finish(&mut self) {
        if !std::mem::replace(&mut self.reaped, true) {
            self.signal(Signal::KILL);
            // SIGKILL cannot be caught: this waits for the kernel alone.
            let _ = self.process.wait();
        }
    }

    /// That the group is there is certain as long as its leader is not reaped.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Ends what has been started in vain.
fn discard(mut process: std::process::Child, group: Pid, why: io::Error) -> io::Error {
    let _ = kill_process_group(group, Signal::KILL);
    let _ = process.wait();
    why
}
