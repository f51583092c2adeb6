//! How a session stands, for whoever watches it.

use super::connect::About;
use super::state::Phase;
use serde::{Deserialize, Serialize};

/// Whether a server can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// It is connected.
    Ready,
    /// It is not, and what went wrong last says why.
    Failed,
    /// Nothing is known: it has not answered yet, or nobody has asked.
    Unknown,
}

impl Reach {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Ready, Self::Failed, Self::Unknown];
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Where its connection is.
    pub phase: Phase,
    /// Whether the server can be used.
    pub reach: Reach,
    /// Since when that is so, in Unix milliseconds: attempts to connect that fail one after the other change nothing.
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
    /// Whether that was after it was last connected.
    failing: bool,
}

impl Status {
    /// A session that has not been used since `now`.
    pub fn unused(now: u64) -> Self {
        Self {
            phase: Phase::Idle,
            reach: Reach::Unknown,
            since: now,
            about: None,
            tools: None,
            calls: 0,
            failures: 0,
            connections: 0,
            last_error: None,
            failing: false,
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
        self.failing = false;
    }

    /// Something went wrong with the connection.
    pub(super) fn went_wrong(&mut self, why: &str, now: u64) {
        self.last_error = Some((why.to_owned(), now));
        self.failing = true;
    }

    /// Takes over where the connection is, and tells whether that is new.
    pub(super) fn is(&mut self, phase: Phase, now: u64, tools: Option<usize>) -> bool {
        let changed = (self.phase, self.tools) != (phase, tools);
        let reach = match phase {
            Phase::Ready => Reach::Ready,
            _ if self.failing => Reach::Failed,
            _ => Reach::Unknown,
        };
        if self.reach != reach {
            (self.reach, self.since) = (reach, now);
        }
        (self.phase, self.tools) = (phase, tools);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_again_and_again_fails_since_the_first_time() {
        let mut status = Status::unused(1);
        status.is(Phase::Connecting, 2, None);
        assert_eq!((status.reach, status.since), (Reach::Unknown, 1), "it may come");
        status.went_wrong("refused", 3);
        for (phase, now) in [(Phase::Idle, 3), (Phase::Waiting, 4), (Phase::Connecting, 5), (Phase::Idle, 6)] {
            status.is(phase, now, None);
            assert_eq!((status.reach, status.since), (Reach::Failed, 3));
        }
        status.connected(About { server: None, protocol: "x".into(), pid: None });
        status.is(Phase::Ready, 7, Some(1));
        assert_eq!((status.reach, status.since), (Reach::Ready, 7));
        status.went_wrong("cut", 8);
        status.is(Phase::Ending, 8, Some(1));
        assert_eq!((status.reach, status.since, status.reconnects()), (Reach::Failed, 8, 0));
    }
}
