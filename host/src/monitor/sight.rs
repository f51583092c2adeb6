//! Whose sessions somebody may see. What is not theirs does not exist for them, whatever they ask.

use super::Tick;
use std::sync::Arc;

/// What somebody may see of a tick. Everybody who asks the monitor has to say it, so that nobody sees more by an oversight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// All sessions: whoever runs on this machine as its user could see them anyway.
    All,
    /// The sessions that this user owns.
    Of(Arc<str>),
}

impl Sight {
    /// What of a tick is seen so. Where that is all, it is the tick itself.
    pub fn of(&self, tick: &Arc<Tick>) -> Arc<Tick> {
        let Self::Of(user) = self else { return Arc::clone(tick) };
        let is_theirs = |owner: &str| owner == &**user;
        if tick.sessions.iter().all(|seen| is_theirs(&seen.facts.session.owner)) {
            return Arc::clone(tick);
        }
        let theirs = tick.sessions.iter().filter(|seen| is_theirs(&seen.facts.session.owner)).cloned();
        Arc::new(Tick { sessions: theirs.collect(), sources: tick.sources.clone(), ..**tick })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::judge::Judgement;
    use crate::monitor::{Find, Seen, Timings};
    use crate::observe::facts::{Session, Snapshot};
    use std::time::Duration;

    fn seen(id: &str, owner: &str) -> Arc<Seen> {
        let session = Session {
            id: id.into(),
            name: "shop".into(),
            root_path: String::new(),
            owner: owner.into(),
            created_at_ms: None,
        };
        let facts = Snapshot { now_ms: 0, cores: 1, session, agents: vec![], sources: vec![] };
        Arc::new(Seen::new(facts, Judgement::default(), Duration::ZERO))
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_there() {
        let sessions = vec![seen("a", "ada"), seen("b", "bob"), seen("c", "ada")];
        let (begun, at) = (Duration::ZERO, ManualClock::at(0).now());
        let tick = Arc::new(Tick { begun, at, sessions, sources: vec![], timings: Timings::default() });
        let ids =
            |sight: &Sight| sight.of(&tick).sessions.iter().map(|s| s.facts.session.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&Sight::Of("ada".into())), ["a", "c"]);
        assert_eq!(ids(&Sight::Of("ad".into())), Vec::<String>::new());
        assert!(Arc::ptr_eq(&Sight::All.of(&tick), &tick));
        let bobs = Sight::Of("bob".into()).of(&tick);
        assert!(matches!(bobs.find("shop"), Find::One(_)), "the name of another's session makes none ambiguous");
        assert!(matches!(bobs.find("a"), Find::None));
    }
}
