//! How a session stands, for whoever watches it.

use super::connect::About;
use super::state::Phase;

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Where its connection is.
    pub phase: Phase,
    /// Since when, in Unix milliseconds.
    pub since: u64,
    /// What the server said of itself when it was last connected.
    pub about: Option<About>,
    /// How many tools may be called; `None` if it was never connected.
    pub tools: Option<usize>,
    /// How many calls of tools and resources were made, those that were refused here among them.
    pub calls: u64,
    /// How many of them failed: an answer that says that a tool has failed is an answer.
    pub failures: u64,
    /// How often a connection was made.
    pub connections: u64,
    /// What last went wrong with the connection, and when, in Unix milliseconds.
    pub last_error: Option<(String, u64)>,
}

impl Status {
    /// A session that has not been used since `now`.
    pub fn unused(now: u64) -> Self {
        Self {
            phase: Phase::Idle,
            since: now,
            about: None,
            tools: None,
            calls: 0,
            failures: 0,
            connections: 0,
            last_error: None,
        }
    }

    /// How often it was connected anew.
    pub fn reconnects(&self) -> u64 {
        self.connections.saturating_sub(1)
    }

    /// A connection was made.
    pub(super) fn connected(&mut self, about: About) {
        self.about = Some(about);
        self.connections += 1;
    }

    /// Takes over where the connection is, and tells whether that is new.
    pub(super) fn is(&mut self, phase: Phase, now: u64, tools: Option<usize>) -> bool {
        let changed = (self.phase, self.tools) != (phase, tools);
        if self.phase != phase {
            (self.phase, self.since) = (phase, now);
        }
        self.tools = tools;
        changed
    }
}
