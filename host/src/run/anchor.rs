//! What makes Ctrl-Z work for an agent that has a terminal of its own.
//!
//! The kernel stops no process group that is orphaned: one of whose members none has a parent in the same session and another
//! group, because nobody could continue it. The agent leads its session, and its parent is outside, lest the terminal be
//! taken from the agent when the leader is killed. So a process of the agent's session that is none of its children starts
//! another one in the agent's group: both only sleep until the agent ends. If one is killed, only Ctrl-Z does not work any more.

use super::stage::PROGRAM;
use crate::observe::processes::{AGENT_TAG, NOBODYS_TAG};
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The three processes that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Starts the next and ends, so that the next is no child of the agent's.
    Starter,
    /// The parent, in the agent's session.
    Parent,
    /// The child, in the agent's process group.
    Member,
}

impl Part {
    /// All of them, with the words for them on the command line.
    pub const ALL: [(&'static str, Self); 3] =
        [("starter", Self::Starter), ("parent", Self::Parent), ("member", Self::Member)];

    /// Its word on the command line.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, part)| *part == self).map_or("", |(word, _)| word)
    }
}

/// Drops anchor for the agent that this process is about to become.
///
/// # Errors
/// When nothing can be started.
pub fn drop_anchor() -> io::Result<()> {
    command(Part::Starter, std::process::id()).status()?;
    Ok(())
}

/// Is one part of the anchor of this agent.
///
/// # Errors
/// When the system refuses.
pub fn run(part: Part, agent: u32) -> io::Result<()> {
    super::line::close_callers()?;
    match part {
        Part::Starter => {
            command(Part::Parent, agent).process_group(0).spawn()?;
        }
        Part::Parent => {
            // Nothing but the agent's end is its business.
            SigSet::all().thread_block()?;
            let agent_id = Pid::from_raw(agent.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
            let its_end = pidfd_open(agent_id, PidfdFlags::empty())?;
            command(Part::Member, agent).process_group(agent.cast_signed()).spawn()?;
            super::line::wait(&mut [PollFd::new(&its_end, PollFlags::IN)], None)?;
        }
        Part::Member => {
            SigSet::all().thread_block()?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // If its parent has ended already, it is another's by now: then the agent's end is all that is left to wait for.
            if let (Some(parent), Some(agent)) = (rustix::process::getppid(), Pid::from_raw(agent.cast_signed())) {
                let [parent, agent] =
                    [pidfd_open(parent, PidfdFlags::empty())?, pidfd_open(agent, PidfdFlags::empty())?];
                super::line::wait(&mut [&parent, &agent].map(|end| PollFd::new(end, PollFlags::IN)), None)?;
            }
        }
    }
    Ok(())
}

fn command(part: Part, agent: u32) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg0("headcount").args(["anchor", part.word(), &agent.to_string()]).env(AGENT_TAG, NOBODYS_TAG);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
