//! Whose sessions somebody may see. What is not theirs does not exist for them, whatever they ask.

use super::{Seen, Tick};
use crate::auth::Principal;
use crate::config::Access;
use crate::observe::facts::SourceState;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What somebody may see of a tick. Everybody who asks the monitor has to say it, so that nobody sees more by an oversight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// All sessions: whoever runs on this machine as its user could see them anyway.
    All,
    /// The sessions that these users own; `None`: all. Sources belong to whom this server runs as: nobody else is told which
    /// files and servers those are, and in which words they have failed.
    Of {
        /// The users.
        users: Option<Arc<BTreeSet<String>>>,
        /// Whether it is the user that this server runs as who looks.
        is_ours: bool,
    },
}

impl Sight {
    /// What a principal sees: the sessions of its user, and of those whom the owner of this server, `me`, lets it see.
    pub fn granted(principal: &Principal, access: &[Access], me: &str) -> Self {
        let Principal { user_id, grant_id, client_id, .. } = principal;
        let is_ours = user_id == me;
        let mut users = BTreeSet::from([user_id.clone()]);
        for access in access.iter().filter(|access| access.applies(user_id, grant_id, client_id.as_deref())) {
            if access.sees_all() {
                return Self::Of { users: None, is_ours };
            }
            users.extend(access.sees.iter().cloned());
        }
        Self::Of { users: Some(Arc::new(users)), is_ours }
    }

    /// Whether what this user owns is seen.
    pub fn has(&self, owner: &str) -> bool {
        match self {
            Self::All | Self::Of { users: None, .. } => true,
            Self::Of { users: Some(users), .. } => users.contains(owner),
        }
    }

    /// What of a tick is seen so. Where that is all, it is the tick itself.
    pub fn of(&self, tick: &Arc<Tick>) -> Arc<Tick> {
        let withholds = matches!(self, Self::Of { is_ours: false, .. }) && tick.sources.iter().any(tells);
        if !withholds && tick.sessions.iter().all(|seen| self.has(&seen.facts.session.owner)) {
            return Arc::clone(tick);
        }
        let seen = tick.sessions.iter().filter(|seen| self.has(&seen.facts.session.owner));
        let sessions = seen.map(|seen| if withholds { withheld(seen) } else { Arc::clone(seen) }).collect();
        let mut sources = tick.sources.clone();
        if withholds {
            sources.iter_mut().for_each(withhold);
        }
        Arc::new(Tick { sessions, sources, ..**tick })
    }
}

/// What is said of a source whose words are withheld.
const WITHHELD: &str = "it could not be read; whoever runs this server is told why";

/// Whether a source's name or words are for whoever runs the server alone.
fn tells(source: &SourceState) -> bool {
    source.error.is_some() || source.name.contains(':')
}

/// Leaves of a source what kind it is, and whether it has failed.
fn withhold(source: &mut SourceState) {
    source.name.truncate(source.name.find(':').unwrap_or(source.name.len()));
    source.error = source.error.take().map(|_| WITHHELD.to_owned());
}

/// The session without what its sources are and say, which the built-in policy repeats.
fn withheld(seen: &Seen) -> Arc<Seen> {
    let (mut facts, mut judgement) = (seen.facts.clone(), seen.judgement.clone());
    facts.sources.iter_mut().for_each(withhold);
    let shown = judgement.policies.iter_mut().filter_map(|policy| policy.shadow.as_mut());
    let checks = judgement.verdict.iter_mut().chain(shown).flat_map(|verdict| &mut verdict.checks);
    checks.filter(|check| check.name == "sources").for_each(|check| WITHHELD.clone_into(&mut check.detail));
    let mut shown = Seen::new(facts, judgement, seen.judging);
    shown.is_withheld = true;
    Arc::new(shown)
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
        let facts = Snapshot { now_ms: 0, cores: 1, session, agents: vec![], sources: vec![], instance: None };
        Arc::new(Seen::new(facts, Judgement::default(), Duration::ZERO))
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_there() {
        let sessions = vec![seen("a", "ada"), seen("b", "bob"), seen("c", "ada")];
        let (begun, at) = (Duration::ZERO, ManualClock::at(0).now());
        let tick = Arc::new(Tick { begun, at, sessions, sources: vec![], timings: Timings::default() });
        let of = |user: &str| Sight::Of { users: Some(Arc::new(BTreeSet::from([user.to_owned()]))), is_ours: false };
        let ids =
            |sight: &Sight| sight.of(&tick).sessions.iter().map(|s| s.facts.session.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&of("ada")), ["a", "c"]);
        assert_eq!(ids(&of("ad")), Vec::<String>::new());
        assert!(Arc::ptr_eq(&Sight::All.of(&tick), &tick));
        let bobs = of("bob").of(&tick);
        assert!(matches!(bobs.find("shop"), Find::One(_)), "the name of another's session makes none ambiguous");
        assert!(matches!(bobs.find("a"), Find::None));
    }
    #[test]
    fn who_sees_more_is_whom_all_that_is_named_fits() {
        let principal = |user: &str, grant: &str, client: Option<&str>| Principal {
            user_id: user.into(),
            grant_id: grant.into(),
            client_id: client.map(str::to_owned),
            scopes: crate::auth::Scopes::default(),
        };
        let access = |user: Option<&str>, grant: Option<&str>, client: Option<&str>, sees: &[&str]| Access {
            user: user.map(str::to_owned),
            grant: grant.map(str::to_owned),
            client: client.map(str::to_owned),
            sees: sees.iter().map(|user| (*user).to_owned()).collect(),
        };
        let all = [
            access(Some("ada"), None, Some("desk"), &["bob", "eve"]),
            access(None, Some("g2"), None, &["carl"]),
            access(Some("root"), None, None, &["bob", "*"]),
        ];
        let seen = |principal: &Principal| match Sight::granted(principal, &all, "root") {
            Sight::All | Sight::Of { users: None, .. } => vec!["*".to_owned()],
            Sight::Of { users: Some(users), .. } => users.iter().cloned().collect(),
        };
        assert_eq!(seen(&principal("ada", "g1", None)), ["ada"]);
        assert_eq!(seen(&principal("ada", "g1", Some("phone"))), ["ada"]);
        assert_eq!(seen(&principal("ada", "g1", Some("desk"))), ["ada", "bob", "eve"]);
        assert_eq!(seen(&principal("ada", "g2", Some("desk"))), ["ada", "bob", "carl", "eve"]);
        assert_eq!(seen(&principal("bob", "g2", None)), ["bob", "carl"], "whoever's the grant is");
        assert_eq!(seen(&principal("root", "g3", None)), ["*"]);
    }
}
