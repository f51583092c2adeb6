//! Agents that an upstream server knows of: what it answers is taken for facts, as far as it can be understood.

use crate::clock::Moment;
use crate::config::{AgentsFrom, Upstream};
use crate::names::Instance;
use crate::observe::roster::Roster;
use crate::upstream::Session;
use std::time::Duration;

/// Takes agent lists out of what a server answers.
#[derive(Debug)]
pub struct Taker {
    upstream: String,
    from: AgentsFrom,
    me: Instance,
}

/// What a server has answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    left_out: Option<String>,
}

impl Taker {
    /// One for an upstream that has `agents_from`. `me` is which headcount this is.
    pub fn new(upstream: &Upstream, me: Instance) -> Option<Self> {
        let from = upstream.agents_from.clone()?;
        Some(Self { upstream: upstream.name.clone(), from, me })
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
        let answer = session.call_tool(&self.from.tool, Some(self.from.arguments.clone())).await;
        answer.map_err(|error| error.failure.to_string())?;
        Err(format!("the answer is not understood by {}", self.me))
    }

    /// What is declared by a listing heard at `heard`, now: facts with their age, and `unknown` once it is too old.
    pub fn roster(&self, listing: &Listing, heard: Moment, now: Moment) -> Roster {
        let _ = (listing, self.silence(heard, now));
        Roster::default()
    }

    /// What is to be said of a listing heard at `heard` that is too old now.
    pub fn silence(&self, heard: Moment, now: Moment) -> Option<String> {
        let age = now.steady.saturating_sub(heard.steady);
        (age >= self.from.stale_after.0)
            .then(|| format!("{} has not answered for {}", self.upstream, crate::text::Wait(age)))
    }

    /// Whether its agents are in sessions of its own alone: then no other session lacks anything when it fails.
    pub fn is_apart(&self) -> bool {
        self.from.sessions == crate::config::Join::Own
    }
}

impl Listing {
    /// What of the answer is not taken up, and why.
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }
}
