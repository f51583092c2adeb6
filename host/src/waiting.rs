//! Waiting until somebody in a session needs somebody, as the command line and MCP clients do it alike.

use crate::monitor::{Ended, Following, Monitor, Seen, Sight, Tick};
use crate::observe::facts::{Agent, Origin, SourceState};
use crate::query::{self, QueryError};
use crate::report::{AttentionReport, Mark, Need, SessionHealth, word};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;

/// Seconds that somebody waits who does not say how long.
pub const DEFAULT_SECONDS: u64 = 300;
/// Seconds that can be waited at the most; the least is one.
pub const MAX_SECONDS: u64 = 3600;

/// One who waits. It costs the monitor nothing but its faster pace, and ends when it is dropped.
#[derive(Debug)]
pub struct Waiting {
    following: Following,
    /// The session as it was last seen.
    last: Arc<Seen>,
    /// What the caller knows of already.
    known: Mark,
    /// Who has left since the look before.
    left: Vec<Need>,
    /// Who was there and is not, and may come back.
    missing: Vec<Missing>,
    /// In how many looks in a row, all of which could see everything, the session was not there.
    absent: u32,
}

/// An agent that was there and is not.
#[derive(Debug)]
struct Missing {
    /// What is to be told if it does not come back.
    need: Need,
    /// Its process, and when that started.
    process: Option<(u32, Option<u64>)>,
    /// In how many looks, all of which could see everything, it was not there.
    looks: u32,
}

/// In so many looks a session or an agent must not be there to have ended or left: a roster that is written anew is empty for
/// a moment, and a process that begins to run another program is nobody's.
const ENDED_AFTER: u32 = 2;

/// What came of waiting.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Waited")]
pub struct Waited {
    /// Who needs somebody. Given `since`, only those who have come to since then; after a wait, those who have come to in it.
    #[serde(flatten)]
    pub attention: AttentionReport,
    /// Whether nobody needed anybody in all that time.
    pub timed_out: bool,
    /// How many need somebody whom the mark knew of already: they are not among `needs`.
    pub still: usize,
    /// Whether the session has ended: none of its agents is left, and nobody declares it.
    pub session_ended: bool,
}

impl Waiting {
    /// Begins to wait. Without `since` all who need somebody now are found at once, but not those who have finished before.
    ///
    /// # Errors
    /// When there is no such session, or nobody looks.
    pub async fn begin(monitor: &Monitor, sight: &Sight, asked: &str, since: Option<Mark>) -> Result<Self, QueryError> {
        let (tick, following) = monitor.follow(sight).await?;
        let last = Arc::clone(query::find(&tick, asked)?);
        let known = since.unwrap_or_else(|| last.standing().quiet_mark());
        Ok(Self { following, last, known, left: Vec::new(), missing: Vec::new(), absent: 0 })
    }

    /// Waits until somebody needs somebody, or the session ends. It may be dropped half way and called again.
    ///
    /// # Errors
    /// When nobody looks any more.
    pub async fn until_needed(&mut self) -> Result<Waited, Ended> {
        loop {
            let mut needs = self.last.standing().begun_since(&self.known);
            needs.append(&mut self.left);
            if !needs.is_empty() {
                return Ok(self.answer(needs, false, false));
            }
            let tick = self.following.next().await?;
            let all_read = all_read(&tick, &self.last);
            let Some(seen) = tick.session(self.session_id()) else {
                self.absent = if all_read { self.absent + 1 } else { 0 };
                if self.absent >= ENDED_AFTER {
                    return Ok(self.answer(vec![], false, true));
                }
                continue;
            };
            self.absent = 0;
            self.left = self.left(seen, &tick, all_read);
            if self.missing.is_empty() {
                // What has passed and comes again has begun anew; what is missing may not have passed.
                self.known.keep_only(&seen.standing().mark());
            }
            self.last = Arc::clone(seen);
        }
    }

    /// Who has left for good, now that the session was `seen`.
    fn left(&mut self, seen: &Seen, tick: &Tick, all_read: bool) -> Vec<Need> {
        let process = |agent: &Agent| agent.process_id.map(|pid| (pid, agent.created_at_ms));
        let before = &self.last.facts.agents;
        let newly = seen.standing().left_since(self.last.standing()).into_iter().map(|need| {
            let agent = before.iter().find(|agent| Some(&agent.id) == need.agent_id.as_ref());
            let mut need = need;
            if let Some(agent) = agent {
                need.why = format!("{}: {}", need.why, why_left(agent, seen));
            }
            Missing { process: agent.and_then(process), need, looks: 0 }
        });
        self.missing.extend(newly);
        let anywhere = || tick.sessions.iter().flat_map(|session| &session.facts.agents);
        self.missing.retain_mut(|missing| {
            missing.looks += u32::from(all_read);
            let is_back = missing.need.agent_id.as_deref().is_some_and(|id| seen.standing().has(id));
            // One that was declared meanwhile, or is claimed by another session, is the same by another name.
            let is_renamed = missing.process.is_some() && anywhere().any(|agent| process(agent) == missing.process);
            !is_back && !is_renamed
        });
        let has_left = |missing: &mut Missing| missing.looks >= ENDED_AFTER;
        self.missing.extract_if(.., has_left).map(|missing| missing.need).collect()
    }

    /// The answer where the time is over.
    pub fn timed_out(&self) -> Waited {
        self.answer(vec![], true, false)
    }

    /// What there is to tell somebody who wants to know that it still waits.
    pub fn progress(&self) -> String {
        let (agents, working) = self.last.standing().counts();
        format!("{working} of {agents} agents working")
    }

    /// The session's id.
    pub fn session_id(&self) -> &str {
        &self.last.facts.session.id
    }

    fn answer(&self, needs: Vec<Need>, timed_out: bool, session_ended: bool) -> Waited {
        let standing = self.last.standing();
        let still = standing.pressing().iter().filter(|need| !needs.contains(need)).count();
        Waited { attention: standing.attention(needs), timed_out, still, session_ended }
    }
}

impl Waited {
    /// It in words. `since`: how the next call is given the mark.
    pub fn summary(&self, since: &str) -> String {
        let AttentionReport { session_id, session_health, needs, mark, .. } = &self.attention;
        let said = match needs.len() {
            _ if self.session_ended => "It has ended: none of its agents is left.",
            0 if *session_health == SessionHealth::Unknown => {
                "The time is over; whether anybody needs attention is not known."
            }
            0 => "The time is over, and nobody has come to need attention.",
            1 => "One needs attention:",
            _ => "Several need attention:",
        };
        let mut text = format!("Session {session_id}: {}. {said}\n", word(session_health));
        for need in needs {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "! {}: {}. {}", need.who(), need.why, need.action);
        }
        if !self.session_ended && self.still > 0 {
            let need = if self.still == 1 { "needs" } else { "need" };
            let _ = writeln!(text, "{} still {need} attention since before.", self.still);
        }
        if !self.session_ended {
            let _ = writeln!(text, "To wait for what begins after this, give {since} {mark}");
        }
        text
    }
}

/// Whether all was read that may say something of a session.
fn all_read(tick: &Tick, session: &Seen) -> bool {
    let concerns = |source: &&SourceState| session.facts.sources.iter().any(|known| known.name == source.name);
    tick.sources.iter().filter(concerns).all(|source| source.error.is_none())
}

/// Why an agent is there no more. A conversation of which the process is still there was closed.
fn why_left(agent: &Agent, seen: &Seen) -> &'static str {
    let host = |other: &&Agent| agent.id.strip_prefix(other.id.as_str()).is_some_and(|rest| rest.starts_with('-'));
    match agent.origin {
        Origin::Conversation if seen.facts.agents.iter().any(|other| host(&other)) => "its conversation is closed",
        Origin::Found | Origin::Conversation => "its process has ended",
        Origin::Elsewhere => "its upstream lists it no more",
        Origin::Declared | Origin::Registered => "it is declared no more",
    }
}

#[cfg(test)]
mod tests;
