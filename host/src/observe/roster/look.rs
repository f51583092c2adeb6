//! All rosters together: who is declared now, and which process each is.

use super::bind::{Bindings, Found};
use super::{DeclaredAgent, DeclaredSession, Elsewhere, Source};
use crate::names::{AgentName, SessionId};
use crate::observe::census::{Census, Known};
use crate::observe::facts::{ProcessState, Run, SourceState};
use crate::observe::ids;
use crate::observe::processes::ProcessId;
use crate::observe::runs;
use crate::observe::table::ProcessTable;
use std::collections::{HashMap, HashSet};
use std::fs;

/// All sources of declared agents.
pub struct Rosters {
    sources: Vec<Box<dyn Source>>,
    bindings: Bindings,
    states: Vec<SourceState>,
}

/// What is declared now.
#[derive(Debug, Default)]
pub struct Declared {
    /// The sessions, without their agents.
    pub sessions: Vec<DeclaredSession>,
    /// The agents of all sessions.
    pub agents: Vec<Place>,
}

/// A declared agent with its process.
#[derive(Debug)]
pub struct Place {
    /// The session that it is declared in.
    pub session: SessionId,
    /// Where that is, if not here.
    pub elsewhere: Option<Elsewhere>,
    /// What was declared.
    pub agent: DeclaredAgent,
    /// Its root process, where one was found.
    pub known: Option<Known>,
    /// The state of one without a process.
    pub state: ProcessState,
    /// What is to be known about how its process was found, or not.
    pub note: Option<String>,
    /// What is recorded of it, where it was run.
    pub run: Option<Run>,
}

impl Rosters {
    /// Rosters that have not been read yet; the first that says something counts.
    pub fn new(sources: Vec<Box<dyn Source>>) -> Self {
        Self { sources, bindings: Bindings::default(), states: Vec::new() }
    }

    /// What the sources were like at the last look.
    pub fn sources(&self) -> &[SourceState] {
        &self.states
    }

    /// Reads all sources. `listed`: the processes could be listed at least once.
    pub fn look(&mut self, table: &impl ProcessTable, census: &mut Census, listed: bool) -> Declared {
        self.bindings.begin();
        census.begin_declarations();
        self.states.clear();
        let me = census.me();
        let mut declared = Declared::default();
        let mut names: HashSet<(SessionId, AgentName)> = HashSet::new();
        let mut owners: HashMap<ProcessId, (SessionId, AgentName)> = HashMap::new();
        let read = self.sources.iter_mut().map(|source| ((source.name(), source.confined_to()), source.read()));
        let read: Vec<_> = read.collect();
        for session in read.iter().flat_map(|(_, (roster, _))| &roster.sessions).filter(|session| !session.joins) {
            declared.add_session(session);
        }
        for (number, ((name, confined_to), (roster, error))) in read.into_iter().enumerate() {
            let mut problems: Vec<String> = error.into_iter().collect();
            for session in &roster.sessions {
                let id = if session.joins { declared.join(session, &me) } else { session.id.clone() };
                for agent in &session.agents {
                    if session.elsewhere.is_none() && !names.insert((id.clone(), agent.name.clone())) {
                        problems.push(format!("session {id}: {} is declared before", agent.name));
                        continue;
                    }
                    let found = if listed {
                        let key = (number, session.id.clone(), agent.name.clone());
                        self.bindings.find(key, &agent.process, table, census.fresh())
                    } else {
                        Found::Unreadable("the processes cannot be listed".to_owned())
                    };
                    let at = (id.clone(), session.elsewhere.clone());
                    // The operator's rosters alone name no owner, and take up whose agents they like.
                    let takes_all = session.owner.is_none();
                    let mut place = Place::new(at, agent.clone(), found, takes_all, table, census);
                    let theirs = session.owner.as_deref().filter(|owner| *owner != me);
                    if let Some(why) = theirs.and_then(|owner| place.leave_to_owner(owner, &owners, census)) {
                        // A folder that another user can fill is no reason to complain to this one.
                        if !session.joins {
                            problems.push(format!("session {id}: {} {why}", agent.name));
                        }
                    }
                    if let Some(why) = place.give_way(&mut owners) {
                        problems.push(format!("session {id}: {} {why}", agent.name));
                    }
                    declared.agents.push(place);
                }
            }
            let error = (!problems.is_empty()).then(|| problems.join("\n"));
            self.states.push(SourceState { name, error, confined_to });
        }
        declared
    }
}

impl Declared {
    /// Takes out what is declared elsewhere.
    pub fn split_off_elsewhere(&mut self) -> Self {
        let sessions = self.sessions.extract_if(.., |session| session.elsewhere.is_some()).collect();
        let agents = self.agents.extract_if(.., |place| place.elsewhere.is_some()).collect();
        Self { sessions, agents }
    }

    /// The tags of the agents that were run, each with the agent's root.
    pub fn tags(&self) -> HashMap<String, ProcessId> {
        let tag = |place: &Place| Some((place.agent.run.as_ref()?.tag.clone(), place.known.as_ref()?.id));
        self.agents.iter().filter_map(tag).collect()
    }

    /// The session that shows the agents of one that only `joins`, which is made where there is none. Agents are shown to their
    /// own user alone, as those are that are found; `me` is the user of what nobody says an owner of.
    fn join(&mut self, new: &DeclaredSession, me: &str) -> SessionId {
        let owner = new.owner.as_deref().unwrap_or(me);
        let is_open = |session: &DeclaredSession| session.owner.as_deref().is_none_or(|its| its == owner);
        let is_there = |session: &&DeclaredSession| {
            let root = session.root_path.as_ref().filter(|_| new.root_path.is_some() && is_open(session));
            root.map(|root| fs::canonicalize(root).unwrap_or_else(|_| root.clone()))
                .is_some_and(|root| new.root_path == Some(root))
        };
        let here = || self.sessions.iter().filter(|session| session.elsewhere.is_none());
        let mut there = here().filter(is_there);
        if let Some(only) = there.next().filter(|_| there.next().is_none()) {
            return only.id.clone();
        }
        let of_id = |id: &str| here().find(|session| session.id.as_str() == id);
        let free = ids::free(new.id.as_str(), owner, |id| of_id(id).is_none_or(is_open));
        let id = SessionId::parse(&free).unwrap_or_else(|_| new.id.clone());
        self.add_session(&DeclaredSession { id: id.clone(), ..new.clone() });
        id
    }

    /// Takes up a session, or what the first source left unsaid about it. Whose it is says the first, and nobody else says
    /// anything about it.
    fn add_session(&mut self, new: &DeclaredSession) {
        match self.sessions.iter_mut().find(|session| session.id == new.id && session.elsewhere == new.elsewhere) {
            None => self.sessions.push(DeclaredSession { agents: Vec::new(), ..new.clone() }),
            Some(session) => {
                if session.owner == new.owner {
                    session.name = session.name.take().or_else(|| new.name.clone());
                    session.root_path = session.root_path.take().or_else(|| new.root_path.clone());
                }
                session.declared_at_ms = session.declared_at_ms.into_iter().chain(new.declared_at_ms).min();
            }
        }
    }
}

impl Place {
    fn new(
        (session, elsewhere): (SessionId, Option<Elsewhere>),
        agent: DeclaredAgent,
        found: Found,
        takes_all: bool,
        table: &impl ProcessTable,
        census: &mut Census,
    ) -> Self {
        let (known, state, note) = match found {
            Found::Process(id, note) => (Some(census.declare(id, takes_all, table).clone()), ProcessState::Gone, note),
            Found::Unreadable(why) => (None, ProcessState::Unreadable, Some(why)),
            Found::NotSeen(why) => (None, ProcessState::NotLocal, Some(why)),
            Found::Nothing(why) => (None, ProcessState::Gone, Some(why)),
        };
        let run = agent.run.as_ref().map(|record| runs::recorded(record, table));
        Self { session, elsewhere, agent, known, state, note, run }
    }

    /// Leaves a process to its user, where that is not `owner`, who declared it: it may have become another's since, or be part
    /// of another's agent.
    fn leave_to_owner(
        &mut self,
        owner: &str,
        owners: &HashMap<ProcessId, (SessionId, AgentName)>,
        census: &mut Census,
    ) -> Option<String> {
        // Of one that ended before it was seen it is not known whose it was.
        let known = self.known.as_ref().filter(|known| !known.owner.is_empty() && known.owner != owner)?;
        if !owners.contains_key(&known.id) {
            census.withdraw(known.id);
        }
        let why = "is a process of another user".to_owned();
        (self.known, self.state, self.note) = (None, ProcessState::NotLocal, Some(why.clone()));
        Some(why)
    }

    /// Takes its process for itself, or leaves it to whom it was declared for before, and says so: what a process uses
    /// is counted once, and who was declared is listed all the same.
    fn give_way(&mut self, owners: &mut HashMap<ProcessId, (SessionId, AgentName)>) -> Option<String> {
        let id = self.known.as_ref()?.id;
        let Some((session, name)) = owners.get(&id) else {
            owners.insert(id, (self.session.clone(), self.agent.name.clone()));
            return None;
        };
        let why = format!("is process {}, which is declared as {name} in session {session}", id.pid);
        (self.known, self.state, self.note) = (None, ProcessState::NotLocal, Some(why.clone()));
        Some(why)
    }
}
