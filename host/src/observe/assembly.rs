//! Puts sessions, agents and figures together.

mod elsewhere;

use super::census::{Census, Known, NO_KIND};
use super::facts::{Agent, Counters, Gap, Metrics, Origin, ProcessState, Session, Snapshot, SourceState, Usage};
use super::ids;
use super::processes::{Details, Process, ProcessId, Program, Reading};
use super::records::{Child, Conversation, Subject, Testimony};
use super::roster::{Declared, DeclaredSession, Place};
use super::runs;
use super::seats::{Seats, short_id};
use super::table::ProcessTable;
use crate::names::{Identity, Instance};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// The sessions that there are. Each is remembered as long as it has an agent or is declared, because its owner and
/// its creation are those of its oldest agent, which may end long before it does.
#[derive(Debug, Default)]
pub struct Sessions {
    sessions: BTreeMap<String, Session>,
    /// The agents of the present look.
    rows: Vec<Row>,
    seats: Seats,
    /// Those that are not here, with the upstream that tells of them.
    apart: HashMap<String, Arc<str>>,
    /// When those that are here, or were until lately, were last seen, Unix milliseconds.
    lately: HashMap<Identity, u64>,
    /// Which headcount observes.
    instance: Option<Instance>,
}

/// An agent that has no figures yet.
#[derive(Debug)]
struct Row {
    session: String,
    root: Option<ProcessId>,
    /// Where it has no process of its own: the root whose processes it shares.
    host: Option<ProcessId>,
    /// The upstream that tells of it, where one does.
    upstream: Option<Arc<str>>,
    agent: Agent,
}

impl Sessions {
    /// Says which headcount observes them.
    pub fn observed_by(&mut self, instance: Instance) {
        self.instance = Some(instance);
    }

    /// Takes up what is declared, and then those agents that are not.
    pub fn gather(&mut self, mut declared: Declared, census: &mut Census) {
        self.rows.clear();
        self.apart.clear();
        let elsewhere = declared.split_off_elsewhere();
        let mut before = std::mem::take(&mut self.sessions);
        let mut by_root: HashMap<PathBuf, Vec<&str>> = HashMap::new();
        let me = census.me();
        // The operator's rosters alone name no owner, and take up whose agents they like. What somebody has registered is for
        // agents of their own: nobody's comes into another's sight because its folder or its session's id was named.
        let mut open: HashSet<&str> = HashSet::new();
        for session in &declared.sessions {
            if let Some(root) = &session.root_path {
                let root = fs::canonicalize(root).unwrap_or_else(|_| root.clone());
                by_root.entry(root).or_default().push(session.id.as_str());
            }
            if session.owner.is_none() {
                open.insert(session.id.as_str());
            }
            let earliest = before.remove(session.id.as_str()).and_then(|known| known.created_at_ms);
            self.sessions.insert(session.id.to_string(), declared_session(session, &me, earliest));
        }
        for agent in declared.agents {
            if let Some(known) = &agent.known {
                self.complete(known, &open);
            }
            self.rows.push(declared_row(agent));
        }
        for known in census.undeclared() {
            let claims = known.root.as_deref().ok().and_then(|root| by_root.get(root)).into_iter().flatten();
            let mut claims = claims.filter(|session| self.admits(known, session, &open));
            // Agents in a folder that two sessions claim belong to neither for that.
            let claimed = claims.next().filter(|_| claims.next().is_none()).map(|session| (*session).to_owned());
            let own = || ids::free(&known.session, &known.owner, |id| self.admits(known, id, &open));
            let session = claimed.unwrap_or_else(own);
            if !self.sessions.contains_key(&session) {
                // One that was somebody else's until now has only had the same id.
                let same = before.remove(&session).filter(|before| before.owner == known.owner);
                self.sessions.insert(session.clone(), same.unwrap_or_else(|| discovered_session(&session, known)));
            }
            self.rows.push(discovered_row(&session, known));
        }
        for known in census.undeclared() {
            self.complete(known, &open);
        }
        self.take_up_elsewhere(elsewhere, &me, &mut before);
        for row in &self.rows {
            if let Some(session) = self.sessions.get_mut(&row.session) {
                session.created_at_ms = session.created_at_ms.into_iter().chain(row.agent.created_at_ms).min();
            }
        }
    }

    /// Whether an agent may be shown in the session of this id: it is its user's, or is yet to be.
    fn admits(&self, known: &Known, session: &str, open: &HashSet<&str>) -> bool {
        open.contains(session) || self.sessions.get(session).is_none_or(|session| session.owner == known.owner)
    }

    /// A session that was found by itself and has been declared by its id keeps its folder and its name, unless others were
    /// declared.
    fn complete(&mut self, known: &Known, open: &HashSet<&str>) {
        if !self.admits(known, &known.session, open) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&known.session).filter(|session| session.root_path.is_empty()) else {
            return;
        };
        let found = discovered_session(&known.session, known);
        session.root_path = found.root_path;
        if session.name == session.id {
            session.name = found.name;
        }
    }

    /// The agents that live here, for whoever reads what they say of themselves.
    pub fn subjects(&self, census: &Census, table: &impl ProcessTable) -> Vec<Subject> {
        if self.rows.iter().all(|row| row.root.is_none()) {
            return Vec::new();
        }
        let mut started: HashMap<u32, Vec<&Process>> = HashMap::new();
        for process in table.processes() {
            started.entry(process.parent).or_default().push(process);
        }
        let subject = |row: &Row| {
            let root = row.root?;
            let process = |id: ProcessId| table.get(id.pid).filter(|process| process.id == id);
            let with_program = |id: ProcessId| Some((id, Arc::clone(program(process(id)?)?)));
            let parts = census.parts_of(root).filter_map(with_program);
            let processes: Vec<_> = with_program(root).into_iter().chain(parts).collect();
            let started_at_ms = process(root)?.started_at_ms;
            Some(Subject {
                kind: row.agent.kind.as_str().into(),
                children: children(&processes, &started),
                processes,
                started_at_ms,
                conversation: None,
                open: Vec::new(),
                calls: vec![],
            })
        };
        self.rows.iter().filter_map(subject).filter(|subject| !subject.processes.is_empty()).collect()
    }

    /// Takes up what was found. A process that holds several conversations becomes several rows.
    pub fn hear(&mut self, said: &HashMap<ProcessId, Testimony>) {
        self.seats.retain(|process| said.contains_key(&process));
        let mut more = Vec::new();
        for row in &mut self.rows {
            let Some((root, said)) = row.root.and_then(|root| Some((root, said.get(&root)?))) else { continue };
            row.agent.evidence.extend(said.evidence.iter().cloned());
            row.agent.unmeasured.extend(said.unmeasured.iter().cloned());
            row.agent.usage = Usage::either(said.usage.clone(), row.agent.usage.take());
            let held = &said.conversations;
            let own = self.seats.own(root, held);
            if own.is_none() && !held.is_empty() {
                row.agent
                    .unmeasured
                    .push(gap("evidence", "the conversations that it holds have rows of their own".into()));
            }
            for conversation in held {
                if own == Some(conversation.id.as_str()) {
                    take_up(&mut row.agent, conversation);
                } else {
                    more.push(conversation_row(row, root, conversation, held));
                }
            }
        }
        self.rows.extend(more);
    }

    /// Measures the agents and gives out the sessions. `now_ms` is when the processes were listed.
    pub fn snapshots(&mut self, table: &mut impl ProcessTable, now_ms: u64, sources: &[SourceState]) -> Vec<Snapshot> {
        self.list_once(table.machine(), now_ms);
        let roots: Vec<ProcessId> = self.rows.iter().filter_map(|row| row.root).collect();
        let mut readings = table.measure(&roots).into_iter();
        let hosts: HashSet<ProcessId> = self.rows.iter().filter_map(|row| row.host).collect();
        let mut shared: HashMap<ProcessId, (ProcessState, Option<Counters>)> = HashMap::new();
        let mut agents: BTreeMap<String, Vec<Agent>> = BTreeMap::new();
        // Those that share others' processes come after those.
        for mut row in self.rows.drain(..) {
            if let Some(reading) = row.root.and_then(|_| readings.next()) {
                measured(&mut row.agent, reading);
            }
            if matches!(row.agent.process, ProcessState::Gone | ProcessState::Zombie) {
                row.agent.evidence.extend(row.agent.run.and_then(|run| runs::end(&run, now_ms)));
            }
            if let Some(root) = row.root.filter(|root| hosts.contains(root)) {
                row.agent.counters = row.agent.counters.map(|counters| Counters { shared: true, ..counters });
                shared.insert(root, (row.agent.process, row.agent.counters));
            }
            if let Some((process, counters)) = row.host.and_then(|host| shared.get(&host)) {
                row.agent.counters = *counters;
                // Whatever it says, it can neither work nor take an answer.
                if *process == ProcessState::Stopped {
                    row.agent.process = ProcessState::Stopped;
                }
            }
            agents.entry(row.session).or_default().push(row.agent);
        }
        let cores = table.cores();
        let snapshot = |session: &Session| {
            let mut agents = agents.remove(&session.id).unwrap_or_default();
            agents.sort_by(|a, b| a.place().cmp(&b.place()));
            let told_by = self.apart.get(&session.id);
            let concerns =
                |source: &&SourceState| source.confined_to.is_none() || source.confined_to.as_ref() == told_by;
            let sources = sources.iter().filter(concerns).cloned().collect();
            Snapshot { now_ms, cores, session: session.clone(), agents, sources, instance: self.instance }
        };
        self.sessions.values().map(snapshot).collect()
    }
}

fn program(process: &Process) -> Option<&Arc<Program>> {
    match &process.details {
        Details::Read(program) => Some(program),
        Details::Pending => None,
    }
}

/// What an agent's processes have started that is none of them.
fn children(own: &[(ProcessId, Arc<Program>)], started: &HashMap<u32, Vec<&Process>>) -> Vec<Child> {
    let of = |id: &ProcessId| {
        let start = id.start;
        // One that is older than its parent is another one's: the pid was used again.
        started.get(&id.pid).into_iter().flatten().filter(move |child| child.id.start >= start)
    };
    let others = own.iter().flat_map(|(id, _)| of(id)).filter(|child| own.iter().all(|(id, _)| *id != child.id));
    let child = |child: &&Process| {
        let children = of(&child.id).filter_map(|grandchild| program(grandchild).map(Arc::clone)).collect();
        Some(Child { program: Arc::clone(program(child)?), children })
    };
    others.filter_map(child).collect()
}

fn declared_session(declared: &DeclaredSession, me: &str, earliest: Option<u64>) -> Session {
    Session {
        id: declared.id.to_string(),
        name: declared.name.clone().unwrap_or_else(|| declared.id.to_string()),
        root_path: declared.root_path.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        owner: declared.owner.clone().unwrap_or_else(|| me.to_owned()),
        created_at_ms: declared.declared_at_ms.into_iter().chain(earliest).min(),
    }
}

fn discovered_session(id: &str, known: &Known) -> Session {
    let (name, root_path) = match &known.root {
        Ok(root) => (ids::folder_name(root), root.to_string_lossy().into_owned()),
        Err(_) => ("unplaced".to_owned(), String::new()),
    };
    Session { id: id.to_owned(), name, root_path, owner: known.owner.clone(), created_at_ms: known.created_at_ms }
}

fn discovered_row(session: &str, known: &Known) -> Row {
    let mut agent = blank(ids::agent_id(&known.kind, known.id), known.name.clone());
    describe(&mut agent, known);
    if let Err(why) = &known.root {
        agent.unmeasured.push(gap("session", why.clone()));
    }
    Row { session: session.to_owned(), root: Some(known.id), host: None, upstream: None, agent }
}

/// The row of a conversation that shares the processes of `row`, whose root is `host`.
fn conversation_row(row: &Row, host: ProcessId, conversation: &Conversation, held: &[Conversation]) -> Row {
    let Agent { id, name, .. } = &row.agent;
    let mut agent = blank(format!("{id}-{}", conversation.id), format!("{name}/{}", short_id(&conversation.id, held)));
    agent.specialization.clone_from(&row.agent.specialization);
    agent.kind.clone_from(&row.agent.kind);
    // One that is gone on with may be older than the process.
    agent.created_at_ms = conversation.started_at_ms.max(row.agent.created_at_ms);
    agent.terminal.clone_from(&row.agent.terminal);
    agent.process = ProcessState::NotLocal;
    agent.origin = Origin::Conversation;
    agent.unmeasured.push(gap("process", format!("its processes are shared: see {id}")));
    take_up(&mut agent, conversation);
    Row { session: row.session.clone(), root: None, host: Some(host), upstream: None, agent }
}

fn declared_row(Place { session, elsewhere, agent: declared, known, state, note, run }: Place) -> Row {
    let said = declared.said;
    let mut agent = blank(declared.name.agent_id(), said.called.unwrap_or_else(|| declared.name.to_string()));
    agent.run = run;
    // Only the registry knows when.
    agent.origin = match declared.declared_at_ms {
        _ if elsewhere.is_some() => Origin::Elsewhere,
        Some(_) => Origin::Registered,
        None => Origin::Declared,
    };
    (agent.identity, agent.via) = (said.identity, said.via);
    agent.specialization = declared.specialization;
    agent.process = state;
    if declared.run.as_ref().is_some_and(|record| !record.running) {
        // Its keeper has seen its end, also where nothing is to be seen of its process from here.
        agent.exit_code = run.and_then(|run| run.exit_code);
        agent.process = ProcessState::Gone;
    }
    // The source may know better why there is no process here.
    let note = note.filter(|_| said.unmeasured.iter().all(|gap| gap.field != "process"));
    agent.unmeasured.extend(note.map(|reason| gap("process", reason)));
    agent.unmeasured.extend(said.unmeasured);
    agent.evidence = said.evidence;
    agent.usage = said.usage;
    agent.exit_code = agent.exit_code.or(said.exit_code);
    if let Some(known) = &known {
        describe(&mut agent, known);
    }
    if agent.kind == NO_KIND
        && let Some(kind) = declared.run.and_then(|record| record.kind).or(said.kind)
    {
        // What it runs can be seen only while it does.
        agent.kind = kind;
    }
    agent.created_at_ms = agent.created_at_ms.or(said.created_at_ms).or(declared.declared_at_ms);
    Row { session: session.to_string(), root: known.map(|known| known.id), host: None, upstream: None, agent }
}

/// What was found of a conversation is said of the row that shows it.
fn take_up(agent: &mut Agent, conversation: &Conversation) {
    agent.evidence.extend(conversation.evidence.iter().cloned());
    agent.unmeasured.extend(conversation.unmeasured.iter().cloned());
    agent.usage = Usage::either(conversation.usage.clone(), agent.usage.take());
}

fn gap(field: &'static str, reason: String) -> Gap {
    Gap::new(field, reason)
}

fn blank(id: String, name: String) -> Agent {
    Agent {
        id,
        name,
        specialization: None,
        kind: NO_KIND.to_owned(),
        created_at_ms: None,
        process_id: None,
        terminal: None,
        process: ProcessState::Gone,
        exit_code: None,
        metrics: Metrics::default(),
        counters: None,
        trend: None,
        usage: None,
        evidence: Vec::new(),
        unmeasured: Vec::new(),
        origin: Default::default(),
        identity: None,
        via: Vec::new(),
        run: None,
    }
}

fn describe(agent: &mut Agent, known: &Known) {
    agent.kind = known.kind.to_string();
    agent.created_at_ms = known.created_at_ms;
    agent.process_id = Some(known.id.pid);
    agent.terminal.clone_from(&known.terminal);
    agent.unmeasured.extend(known.doubt.clone().map(|reason| gap("kind", reason)));
}

fn measured(agent: &mut Agent, reading: Reading) {
    let recorded = agent.exit_code.take().filter(|_| reading.state == ProcessState::Gone);
    agent.process = reading.state;
    agent.exit_code = reading.exit_code.or(recorded);
    agent.metrics = reading.metrics;
    agent.counters = Some(Counters { cpu_time: reading.cpu_time, io_bytes: reading.io_bytes, shared: false });
    let is_known = |gap: &Gap| gap.field == "exit-code" && agent.exit_code.is_some();
    agent.unmeasured.extend(reading.unmeasured.into_iter().filter(|gap| !is_known(gap)));
}
