//! What was seen and judged at one moment.

use crate::clock::Moment;
use crate::judge::Judgement;
use crate::observe::facts::{Session, Snapshot, SourceState};
use crate::report::{self, Standing, View, clean};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// All sessions at one moment.
#[derive(Debug)]
pub struct Tick {
    /// When looking began, on the steady clock.
    pub begun: Duration,
    /// When the figures were read.
    pub at: Moment,
    /// The sessions, by id.
    pub sessions: Vec<Arc<Seen>>,
    /// Where agents and figures come from, and what failed; in every session's facts too, but there may be no session.
    pub sources: Vec<SourceState>,
    /// What it took.
    pub timings: Timings,
}

/// One session with what was made of it.
#[derive(Debug)]
pub struct Seen {
    /// What was observed.
    pub facts: Snapshot,
    /// What the policies made of it.
    pub judgement: Judgement,
    /// How long judging took.
    pub judging: Duration,
    /// Whether what its sources are and say was taken out, for whom that does not concern.
    pub is_withheld: bool,
    /// Found out when it is first asked for, for all who ask.
    standing: OnceLock<Standing>,
}

impl Seen {
    /// A session that was looked at and judged.
    pub fn new(facts: Snapshot, judgement: Judgement, judging: Duration) -> Self {
        Self { facts, judgement, judging, is_withheld: false, standing: OnceLock::new() }
    }

    /// Who needs somebody, and what matters to those who watch the session.
    pub fn standing(&self) -> &Standing {
        self.standing.get_or_init(|| Standing::of(&report::report(&self.facts, &self.judgement, &View::whole(), 0)))
    }
}

/// How long the parts of a tick took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timings {
    /// Reading processes and rosters.
    pub observe: Duration,
    /// Judging all sessions.
    pub judge: Duration,
}

impl Tick {
    /// The session with this id.
    pub fn session(&self, id: &str) -> Option<&Arc<Seen>> {
        self.sessions.iter().find(|seen| seen.facts.session.id == id)
    }

    /// The session with this id, or the only one with this name.
    pub fn find(&self, id_or_name: &str) -> Find<'_, Arc<Seen>> {
        Find::among(&self.sessions, |seen| &seen.facts.session, id_or_name)
    }
}

/// What a name stands for.
#[derive(Debug)]
pub enum Find<'a, S> {
    /// This session.
    One(&'a S),
    /// Nothing.
    None,
    /// Several sessions, with these ids.
    Several(Vec<&'a str>),
}

impl<'a, S> Find<'a, S> {
    /// The one of `sessions` with this id, or the only one with this name.
    pub fn among(sessions: &'a [S], session: impl Fn(&'a S) -> &'a Session, id_or_name: &str) -> Self {
        if let Some(one) = sessions.iter().find(|one| session(one).id == id_or_name) {
            return Self::One(one);
        }
        // As it is shown: nobody can type what was taken out of it.
        let mut named = sessions.iter().filter(|one| clean(&session(one).name) == id_or_name);
        match (named.next(), named.next()) {
            (Some(only), None) => Self::One(only),
            (None, _) => Self::None,
            (Some(first), Some(second)) => {
                let ids = [first, second].into_iter().chain(named).map(|one| session(one).id.as_str());
                Self::Several(ids.collect())
            }
        }
    }
}
