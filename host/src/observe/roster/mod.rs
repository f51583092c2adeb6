//! Rosters: who works in which session, because somebody said so.
//!
//! A roster comes from a [`Source`] (a file, the registry, a program that holds it in memory). [`Rosters`] reads them
//! all and says for each declared agent which process it is; what is wrong in one harms none of the others.

mod bind;
mod file;
mod look;
mod registry;
pub mod retained;
#[cfg(test)]
mod tests;

pub use file::FileSource;
#[doc(hidden)]
pub use file::read_text;
pub use look::{Declared, Place, Rosters};
pub use registry::RegistrySource;

use super::facts::{Evidence, Gap, Usage};
use super::processes::{Machine, ProcessId};
use crate::config::Join;
use crate::names::{AgentName, Identity, Instance, SessionId};
use crate::store::runs::RunRecord;
use regex::Regex;
use std::path::PathBuf;
use std::sync::Arc;

/// What one source declares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Roster {
    /// The declared sessions.
    pub sessions: Vec<DeclaredSession>,
}

/// A declared session. Several sources may declare agents of one session; the first that says something about the
/// session itself counts.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredSession {
    /// Its id. A session that was found by itself has one too, and can be declared by it.
    pub id: SessionId,
    /// What people call it; its id where nothing is said.
    pub name: Option<String>,
    /// The project's top folder. Agents that are found there by themselves join the session.
    pub root_path: Option<PathBuf>,
    /// Who declared it; the user that this program runs as where nothing is said.
    pub owner: Option<String>,
    /// When, Unix milliseconds.
    pub declared_at_ms: Option<u64>,
    /// Whether it only says where its agents belong: to what others declare for this id or, where `root_path` says more, for
    /// that folder; to a session of their own where nobody does, or it is another user's.
    pub joins: bool,
    /// Its agents.
    pub agents: Vec<DeclaredAgent>,
    /// Where it is, if not here. Then it takes up nobody but those that are declared in it, and nobody's id.
    pub elsewhere: Option<Elsewhere>,
}

/// Where a session is that is not here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Elsewhere {
    /// The upstream that tells of it.
    pub upstream: Arc<str>,
    /// Whether its agents are to be shown in a session that is here.
    pub join: Join,
}

/// A declared agent.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredAgent {
    /// What people call it; unique in its session. Its id is made of it.
    pub name: AgentName,
    /// What it is for.
    pub specialization: Option<String>,
    /// How its process is found.
    pub process: Locator,
    /// When it was declared, Unix milliseconds.
    pub declared_at_ms: Option<u64>,
    /// What is recorded of it, where `headcount run` started it.
    pub run: Option<RunRecord>,
    /// What the source knows of it besides.
    pub said: Said,
}

/// What a source knows of an agent beside who it is; empty where it only names it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// What people call it, where its declared name is only what tells it from others.
    pub called: Option<String>,
    /// Which agent it is, whoever else tells of it.
    pub identity: Option<Identity>,
    /// The headcounts that it was told through, from its own to the nearest.
    pub via: Vec<Instance>,
    /// Which program it is, where no process here shows it.
    pub kind: Option<String>,
    /// When it started, Unix milliseconds, where no process here shows it.
    pub created_at_ms: Option<u64>,
    /// How it ended, as [`Agent::exit_code`](super::facts::Agent::exit_code) has it.
    pub exit_code: Option<i32>,
    /// Dated statements about what it does.
    pub evidence: Vec<Evidence>,
    /// What is known of its work.
    pub usage: Option<Usage>,
    /// What the source could not say, and why.
    pub unmeasured: Vec<Gap>,
}

/// How a declared agent's root process is found.
#[derive(Debug, Clone)]
pub enum Locator {
    /// By its pid at the first look; the process found then is meant for good, not the next one with its pid.
    Pid {
        /// The pid.
        pid: u32,
        /// The raw start token that the process must have, where it is known.
        start: Option<u64>,
        /// Who wrote it down, and when.
        written: Written,
    },
    /// By the pid that a file holds, read again whenever the file changes.
    PidFile(PathBuf),
    /// By its command line, the slots joined by a space. The oldest that matches; another when that one has ended.
    Match(Regex),
    /// Not at all: it has no process on this machine.
    Elsewhere,
    /// This very process.
    Exactly {
        /// The machine, boot and pid namespace that the process was seen in.
        machine: Machine,
        /// The process.
        id: ProcessId,
    },
}

/// What is known of how a pid came to be written down; by it another process is told that has the pid by now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    /// When, Unix milliseconds: a process that started well after cannot be meant.
    pub at_ms: Option<u64>,
    /// By which user, where only that user's processes can be meant.
    pub uid: Option<u32>,
}

/// A pid means the same process however often it is written down.
impl PartialEq for Locator {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pid { pid, start, .. }, Self::Pid { pid: other, start: begun, .. }) => {
                pid == other && start == begun
            }
            (Self::PidFile(file), Self::PidFile(other)) => file == other,
            (Self::Match(regex), Self::Match(other)) => regex.as_str() == other.as_str(),
            (Self::Exactly { machine, id }, Self::Exactly { machine: other, id: its }) => machine == other && id == its,
            (Self::Elsewhere, Self::Elsewhere) => true,
            _ => false,
        }
    }
}

impl DeclaredSession {
    /// A session of this id without agents, about which nothing else is said.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            name: None,
            root_path: None,
            owner: None,
            declared_at_ms: None,
            joins: false,
            agents: Vec::new(),
            elsewhere: None,
        }
    }
}

/// A place that a roster comes from.
pub trait Source: Send {
    /// What it is called among the sources of a snapshot ("roster:FILE", "registry").
    fn name(&self) -> String;

    /// What it says now, and what is wrong with it. Asked at every look, so it keeps what has not changed; a source
    /// that cannot be read for a moment says what it said before.
    fn read(&mut self) -> (Arc<Roster>, Option<String>);

    /// The upstream to whose own sessions all of its agents are confined; no other session lacks anything when it fails. `None`:
    /// they may be in any session.
    fn confined_to(&self) -> Option<Arc<str>> {
        None
    }
}

/// A roster that is held in memory.
#[derive(Debug, Clone)]
pub struct Given {
    name: String,
    roster: Arc<Roster>,
}

impl Given {
    /// A source that always says `roster`.
    pub fn new(name: impl Into<String>, roster: Roster) -> Self {
        Self { name: name.into(), roster: Arc::new(roster) }
    }
}

impl Source for Given {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        (Arc::clone(&self.roster), None)
    }
}
