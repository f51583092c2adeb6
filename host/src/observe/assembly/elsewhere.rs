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

    /// Says of each row which agent it is, and keeps of those from elsewhere only what is not here already and what nobody tells
    /// of who is nearer to it.
    pub(super) fn list_once(&mut self, machine: &Machine) {
        for row in &mut self.rows {
            if let Some(process) = row.root.or(row.host) {
                row.agent.identity = Some(identity(machine, process));
            }
        }
        let is_here = |row: &Row| row.agent.origin != Origin::Elsewhere;
        if self.rows.iter().all(is_here) {
            return;
        }
        let here: HashSet<Identity> =
            self.rows.iter().filter(|row| is_here(row)).filter_map(|row| row.agent.identity).collect();
        let mut ways: HashMap<Identity, Vec<Vec<Instance>>> = HashMap::new();
        for row in self.rows.iter().filter(|row| !is_here(row)) {
            let Some(identity) = row.agent.identity else { continue };
            ways.entry(identity).or_default().push(row.agent.via.clone());
        }
        let mut first: HashSet<(Identity, Instance)> = HashSet::new();
        let mut is_listed = |row: &Row| match row.agent.identity {
            Some(identity) if !is_here(row) => {
                !here.contains(&identity)
                    && is_nearest(&row.agent.via, &ways[&identity], |origin| first.insert((identity, origin)))
            }
            _ => true,
        };
        let mut left: HashSet<String> = HashSet::new();
        self.rows.retain(|row| {
            let listed = is_listed(row);
            if !listed {
                left.insert(row.session.clone());
            }
            listed
        });
        // A session all of whose agents are listed in others says nothing.
        for row in &self.rows {
            left.remove(&row.session);
        }
        self.sessions.retain(|id, _| !left.contains(id) || !self.apart.contains_key(id));
    }
}

/// Whether an agent that has come by `way` is listed, of the `ways` by which the same has come. Identities are claimed, and not
/// proved: what a headcount tells of its own agents nobody else hides, and what was passed on only what comes a shorter way from
/// the same headcount. Of those ways that are equally long the `first` is listed.
fn is_nearest(way: &[Instance], ways: &[Vec<Instance>], mut first: impl FnMut(Instance) -> bool) -> bool {
    let [origin, _, ..] = way else { return true };
    let is_nearer = |other: &&Vec<Instance>| other.first() == Some(origin) && other.len() < way.len();
    !ways.iter().any(|other| is_nearer(&other)) && first(*origin)
}

fn identity(machine: &Machine, process: ProcessId) -> Identity {
    let (pid, start) = (process.pid.to_be_bytes(), process.start.to_be_bytes());
    Identity::of(&[machine.boot_id.as_bytes(), machine.pid_namespace.as_bytes(), &pid, &start])
}
