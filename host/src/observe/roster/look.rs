//! All rosters together: who is declared now, and which process each is.

use super::bind::{Bindings, Found};
use super::{DeclaredAgent, DeclaredSession, Elsewhere, Source};
use crate::names::{AgentName, SessionId};
use crate::observe::census::{Census, Known};
use crate::observe::facts::{ProcessState, Run, SourceState};
use crate::observe::processes::ProcessId;
use crate::observe::runs;
use crate::observe::table::ProcessTable;
use std::collections::{HashMap, HashSet};

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
        for (number, source) in self.sources.iter_mut().enumerate() {
            let (roster, error) = source.read();
            let mut problems: Vec<String> = error.into_iter().collect();
            for session in &roster.sessions {
                declared.add_session(session);
                for agent in &session.agents {
                    if session.elsewhere.is_none() && !names.insert((session.id.clone(), agent.name.clone())) {
                        problems.push(format!("session {}: {} is declared before", session.id, agent.name));
                        continue;
                    }
                    let found = if listed {
                        let key = (number, session.id.clone(), agent.name.clone());
                        self.bindings.find(key, &agent.process, &roster, table, census.fresh())
                    } else {
                        Found::Unreadable("the processes cannot be listed".to_owned())
                    };
                    let mut place = Place::new(session, agent.clone(), found, table, census);
                    let theirs = session.owner.as_deref().filter(|owner| *owner != me);
                    if let Some(why) = theirs.and_then(|owner| place.leave_to_owner(owner, &owners, census)) {
                        problems.push(format!("session {}: {} {why}", session.id, agent.name));
                    }
                    if let Some(why) = place.give_way(&mut owners) {
                        problems.push(format!("session {}: {} {why}", session.id, agent.name));
                    }
                    declared.agents.push(place);
                }
            }
            let error = (!problems.is_empty()).then(|| problems.join("\n"));
            self.states.push(SourceState { name: source.name(), error, confined_to: source.confined_to() });
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
        session: &DeclaredSession,
        agent: DeclaredAgent,
        found: Found,
        table: &impl ProcessTable,
        census: &mut Census,
    ) -> Self {
        let (known, state, note) = match found {
            Found::Process(id, note) => (Some(census.declare(id, table).clone()), ProcessState::Gone, note),
            Found::Unreadable(why) => (None, ProcessState::Unreadable, Some(why)),
            Found::NotSeen(why) => (None, ProcessState::NotLocal, Some(why)),
            Found::Nothing(why) => (None, ProcessState::Gone, Some(why)),
        };
        let run = agent.run.as_ref().map(|record| runs::recorded(record, table));
        let (session, elsewhere) = (session.id.clone(), session.elsewhere.clone());
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
