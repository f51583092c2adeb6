//! Agents that are known from elsewhere: which session shows them, and that each is listed once.

use super::{Row, Sessions, declared_row, declared_session};
use crate::config::Join;
use crate::names::{Identity, Instance};
use crate::observe::facts::{Origin, Session};
use crate::observe::ids;
use crate::observe::processes::{Machine, ProcessId};
use crate::observe::roster::{Declared, DeclaredSession, Elsewhere};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Who was seen here is not taken from others for so long: what they have heard from here comes back over several of them, and
/// then tells of one who has ended meanwhile.
const LATELY_MS: u64 = 120_000;

impl Sessions {
    /// Takes up what is declared elsewhere. It comes after all that is here, so that it takes nobody's id and nobody's agents;
    /// only the user that runs this program shares a session with it, and only where the configuration says so.
    pub(super) fn take_up_elsewhere(&mut self, told: Declared, me: &str, before: &mut BTreeMap<String, Session>) {
        let mut shown: HashMap<(&str, &Elsewhere), String> = HashMap::new();
        for session in &told.sessions {
            let Some(elsewhere) = &session.elsewhere else { continue };
            let id = match self.joined(session, elsewhere.join, me) {
                Some(id) => id,
                None => self.apart(session, &elsewhere.upstream, me, before),
            };
            shown.insert((session.id.as_str(), elsewhere), id);
        }
        for place in told.agents {
            let Some(elsewhere) = place.elsewhere.clone() else { continue };
            let Some(id) = shown.get(&(place.session.as_str(), &elsewhere)).cloned() else { continue };
            let mut row = declared_row(place);
            (row.session, row.upstream) = (id, Some(elsewhere.upstream));
            self.rows.push(row);
        }
    }

    /// The session here that shows the agents of one elsewhere: the only one that fits.
    fn joined(&self, told: &DeclaredSession, join: Join, me: &str) -> Option<String> {
        let root = told.root_path.as_deref().map(|path| path.to_string_lossy());
        let fits = |session: &&Session| {
            session.owner == me
                && !self.apart.contains_key(&session.id)
                && match join {
                    Join::Own => false,
                    Join::ByRootPath => {
                        root.as_ref().is_some_and(|root| !root.is_empty() && session.root_path == **root)
                    }
                    Join::ByName => told.name.as_ref().is_some_and(|name| session.name == *name),
                }
        };
        let mut fitting = self.sessions.values().filter(fits);
        let first = fitting.next()?;
        fitting.next().is_none().then(|| first.id.clone())
    }

    /// A session of its own, under a name that makes none ambiguous that is here. Returns its id.
    fn apart(
        &mut self,
        told: &DeclaredSession,
        upstream: &Arc<str>,
        me: &str,
        before: &mut BTreeMap<String, Session>,
    ) -> String {
        let id = ids::free(told.id.as_str(), upstream, |id| !self.sessions.contains_key(id));
        let earliest = before.remove(&id).and_then(|known| known.created_at_ms);
        let mut session = declared_session(told, me, earliest);
        session.id.clone_from(&id);
        if told.name.is_some() {
            session.name = format!("{}@{upstream}", session.name);
        }
        self.apart.insert(id.clone(), Arc::clone(upstream));
        self.sessions.insert(id.clone(), session);
        id
    }

    /// Says of each row which agent it is, and keeps of those from elsewhere only what is not here already, and what none tells
    /// of through whom it has come.
    pub(super) fn list_once(&mut self, machine: &Machine, now_ms: u64) {
        for row in &mut self.rows {
            if let Some(process) = row.root.or(row.host) {
                row.agent.identity = Some(identity(machine, process));
            }
        }
        let is_here = |row: &Row| row.agent.origin != Origin::Elsewhere;
        let here = self.rows.iter().filter(|row| is_here(row)).filter_map(|row| row.agent.identity);
        self.lately.extend(here.map(|identity| (identity, now_ms)));
        self.lately.retain(|_, seen_ms| now_ms.saturating_sub(*seen_ms) < LATELY_MS);
        if self.rows.iter().all(is_here) {
            return;
        }
        let tellings = Tellings::of(self.rows.iter().filter(|row| !is_here(row)));
        let gives_way =
            |row: &Row, identity: Identity| self.lately.contains_key(&identity) || tellings.gives_way(row, identity);
        let is_listed = |row: &Row| is_here(row) || row.agent.identity.is_none_or(|identity| !gives_way(row, identity));
        let gone: Vec<bool> = self.rows.iter().map(|row| !is_listed(row)).collect();
        let mut gone = gone.into_iter();
        let mut left: HashSet<String> = HashSet::new();
        self.rows.retain(|row| {
            let is_gone = gone.next() == Some(true);
            if is_gone {
                left.insert(row.session.clone());
            }
            !is_gone
        });
        // A session all of whose agents are listed in others says nothing.
        for row in &self.rows {
            left.remove(&row.session);
        }
        self.sessions.retain(|id, _| !left.contains(id) || !self.apart.contains_key(id));
    }
}

/// The upstream that tells of an agent, and the headcounts that it was told through.
type Way = (Option<Arc<str>>, Vec<Instance>);

/// Who tells of which agents that are elsewhere. Nothing proves an identity, so that a telling gives way only to those who are
/// on its own way: who lies about an agent can hide what is told on that one's word, and nothing of anybody else.
struct Tellings {
    ways: HashMap<Identity, Vec<Way>>,
    /// Headcounts that several upstreams say to be: none of them is believed.
    doubtful: HashSet<Instance>,
}

impl Tellings {
    fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut ways: HashMap<Identity, Vec<Way>> = HashMap::new();
        let mut tellers: HashMap<Instance, &Option<Arc<str>>> = HashMap::new();
        let mut doubtful = HashSet::new();
        for row in rows {
            let Some((identity, teller)) = row.agent.identity.zip(row.agent.via.last().copied()) else { continue };
            if *tellers.entry(teller).or_insert(&row.upstream) != &row.upstream {
                doubtful.insert(teller);
            }
            let ways = ways.entry(identity).or_default();
            let way = (row.upstream.clone(), row.agent.via.clone());
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        Self { ways, doubtful }
    }

    /// Whether the same agent is told of by one through whom this telling has come, or by the same upstream on a shorter way.
    fn gives_way(&self, row: &Row, identity: Identity) -> bool {
        let via = &row.agent.via;
        self.ways.get(&identity).into_iter().flatten().any(|(upstream, way)| {
            let is_known = || way.last().is_some_and(|teller| !self.doubtful.contains(teller));
            way.len() < via.len() && (*upstream == row.upstream || (via.starts_with(way) && is_known()))
        })
    }
}

fn identity(machine: &Machine, process: ProcessId) -> Identity {
    let (pid, start) = (process.pid.to_be_bytes(), process.start.to_be_bytes());
    Identity::of(&[machine.boot_id.as_bytes(), machine.pid_namespace.as_bytes(), &pid, &start])
}
