//! What is to be run, and what the processes that share the work tell each other of it.

use super::backoff::Backoff;
use super::ending::Ending;
use super::unwritten::Unwritten;
use crate::names::{AgentName, SessionId};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What is to be run, beside the command itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The state directory. Passed on beside the rest: a path need not be text.
    #[serde(skip)]
    pub state: PathBuf,
    /// The session that the agent belongs to.
    pub session: SessionId,
    /// What to call the session, and its top folder, where it was not chosen but is the folder's own.
    pub found: Option<(String, String)>,
    /// The agent's name.
    pub name: AgentName,
    /// What kind of agent it is, by its command.
    pub kind: Option<String>,
    /// Whether the name was chosen. One that was not gives way where somebody has it.
    pub chosen: bool,
    /// What the agent is for.
    pub specialization: Option<String>,
    /// The user.
    pub owner: String,
    /// What all its processes are to carry in their environment.
    pub tag: String,
    /// The signals that the user's command was started with blocked, and the agent is to be, too.
    pub blocked: Vec<i32>,
    /// The signals that the user's command was started with ignored: they say nothing of what the user wants.
    pub ignored: Vec<i32>,
    /// When it is started again; `None`: never.
    pub restart: Option<Backoff>,
    /// Whether it gets a terminal of its own; the caller's standard input and output are one then.
    pub terminal: bool,
    /// Whether the caller's standard error is that terminal, too.
    pub terminal_stderr: bool,
}

/// Where the run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing was started yet.
    Beginning,
    /// This process is, or is to become, the agent.
    Running(u32),
    /// It has failed, and is to be started again after so long.
    Waiting(Ending, Duration),
    /// It has ended for good.
    Over(Ending),
}

/// All that another process must know to go on where this one ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Where the run stands.
    pub phase: Phase,
    /// When it is started again.
    pub restart: Option<Backoff>,
    /// What the registry does not know of it yet.
    pub unwritten: Unwritten,
}

/// What is new of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// It stands so now.
    State(State),
    /// The agent was stopped by the signal with this number.
    Stopped(i32),
    /// It was continued.
    Continued,
    /// Nothing was started, and why: a sentence, and what to exit with.
    Refused(String, u8),
}

/// What the front says to the keeper of a signal: its number, and whether it is only to be noted because the agent has it
/// already, as a key of its terminal. One byte, so that none is lost in another, as signals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// The signal.
    pub signal: Signal,
    /// Whether the agent has it.
    pub is_key: bool,
}

const KEY: u8 = 0x80;

impl Hint {
    /// As it goes over the line.
    pub fn byte(self) -> u8 {
        u8::try_from(self.signal as i32).unwrap_or_default() | if self.is_key { KEY } else { 0 }
    }

    /// As it came over the line; `None`: no signal has this number.
    pub fn of(byte: u8) -> Option<Self> {
        let signal = Signal::try_from(i32::from(byte & !KEY)).ok()?;
        Some(Self { signal, is_key: byte & KEY != 0 })
    }
}
