//! The agents of one upstream, for who looks at all agents.

use super::kept::Kept;
use crate::observe::roster::{Roster, Source};
use std::sync::Arc;

/// The agents of one upstream. Reading it waits for nobody, and takes up anew only what has changed.
pub struct AgentSource {
    all: Arc<[Kept]>,
    place: usize,
    /// The answer that the roster is made of, and whether it was too old then and what was said of that.
    made_of: (u64, Option<String>),
    roster: Arc<Roster>,
}

impl AgentSource {
    /// The agents of the upstream at this place.
    pub fn new(all: Arc<[Kept]>, place: usize) -> Self {
        Self { all, place, made_of: (0, None), roster: Arc::default() }
    }
}

impl Source for AgentSource {
    fn name(&self) -> String {
        format!("upstream:{}", self.all[self.place].name())
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        let kept = &self.all[self.place];
        kept.look();
        let now = kept.now();
        let (last, error) = {
            let heard = kept.heard();
            (heard.last().map(|(listing, at, nth)| (Arc::clone(listing), at, nth)), heard.error(now))
        };
        let Some((listing, at, nth)) = last else { return (Arc::clone(&self.roster), error) };
        let silence = kept.taker().silence(at, now);
        if self.made_of != (nth, silence.clone()) {
            self.roster = Arc::new(kept.taker().roster(&listing, at, now));
            self.made_of = (nth, silence);
        }
        (Arc::clone(&self.roster), error.or_else(|| listing.left_out()))
    }

    fn confined_to(&self) -> Option<Arc<str>> {
        self.all[self.place].taker().confined_to()
    }
}
