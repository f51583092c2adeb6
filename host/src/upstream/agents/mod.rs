//! Agents that an upstream server knows of: what it answers becomes facts, as far as it can be understood.
//!
//! `asking` calls the tool, `answer` finds the JSON in what comes back, `report` understands another headcount and `map` whatever
//! the configuration describes; both fill a `Listing`, of which `facts` makes what is declared. Nothing of it is trusted: all is
//! cleaned and bounded, ids are made valid, and who claims to be an agent that is here is not listed. `started` keeps a headcount
//! from starting itself without end.

mod answer;
mod asking;
mod facts;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod listing;
mod map;
mod report;
mod started;
#[cfg(test)]
mod tests;
mod when;

pub use listing::Listing;
pub use started::may_be_asked;

use super::Session;
use crate::clock::Moment;
use crate::config::{AgentsFrom, Join, Upstream};
use crate::names::{AgentName, Instance, SessionId};
use crate::observe::roster::Roster;
use crate::text::Wait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Takes agent lists out of what a server answers.
#[derive(Debug)]
pub struct Taker {
    upstream: Arc<str>,
    from: AgentsFrom,
    me: Instance,
    /// When an activity was first heard of which the server does not say since when it lasts, by the agent's place.
    heard: Mutex<HashMap<(SessionId, AgentName), FirstHeard>>,
}

/// A word, and when it was first heard, Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FirstHeard {
    word: String,
    at_ms: u64,
}

impl Taker {
    /// One for an upstream that has `agents_from`. `me` is which headcount this is.
    pub fn new(upstream: &Upstream, me: Instance) -> Option<Self> {
        let from = upstream.agents_from.clone()?;
        Some(Self { upstream: upstream.name.as_str().into(), from, me, heard: Mutex::default() })
    }

    /// How often it is to be asked.
    pub fn every(&self) -> Duration {
        self.from.every.0
    }

    /// Asks over the session, once or several times, and understands the answer.
    ///
    /// # Errors
    /// In words for `sources[]`, cleaned.
    pub async fn ask(&self, session: &Session) -> Result<Listing, String> {
        asking::ask(session, self).await
    }

    /// What is declared by a listing heard at `heard`, now: facts with their age, and `unknown` once it is too old.
    pub fn roster(&self, listing: &Listing, heard: Moment, now: Moment) -> Roster {
        facts::roster(self, listing, heard, now)
    }

    /// What is to be said of a listing heard at `heard` that is too old now.
    pub fn silence(&self, heard: Moment, now: Moment) -> Option<String> {
        let age = now.steady.saturating_sub(heard.steady);
        (age >= self.from.stale_after.0).then(|| format!("{} has not answered for {}", self.upstream, Wait(age)))
    }

    /// The upstream to whose own sessions its agents are confined: see
    /// [`Source::confined_to`](crate::observe::roster::Source::confined_to).
    pub fn confined_to(&self) -> Option<Arc<str>> {
        (self.from.sessions == Join::Own).then(|| Arc::clone(&self.upstream))
    }
}
