//! What agents say of themselves: their own records, and the events that they send. One file or folder for each kind of
//! agent, each a parser over bytes that knows no files, and a thin reader.
//!
//! Everything is read and nothing written. Records are matched to processes by identity, never by folder or by which file is
//! newest; what cannot be decided is said, and no claim is made. Prompts, tool inputs and command lines never leave a reader.

mod aider;
pub mod claude;
mod codex;
mod copilot;
mod cursor;
mod databases;
mod event;
pub mod folder;
mod follow;
#[doc(hidden)]
pub mod fuzzing;
mod gemini;
pub mod hooks;
mod mcp_servers;
mod qwen;
pub mod small;
mod sought;
pub mod tail;
#[cfg(test)]
mod tests;
mod value;

pub use aider::Aider;
pub use codex::Codex;
pub use copilot::Copilot;
pub use cursor::Cursor;
pub use databases::Databases;
pub use gemini::Gemini;
pub use mcp_servers::McpServers;
pub use qwen::Qwen;

use super::census::NO_KIND;
use super::facts::{Claim, Evidence, Gap, Usage};
use super::processes::{ProcessId, Program, sees_alike};
use crate::clock::Moment;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use value::Id;

/// An agent whose records are wanted.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What kind it is.
    pub kind: Arc<str>,
    /// Its processes: the root first, then what belongs to the same agent, as the program behind a launcher.
    pub processes: Vec<(ProcessId, Arc<Program>)>,
    /// When its root started, Unix milliseconds.
    pub started_at_ms: u64,
    /// The id of the conversation that it is in, where its own events have said so: for records that name no process.
    pub conversation: Option<String>,
    /// The ids of the conversations that the readers before have found its processes to hold: what is said of one of these is
    /// said of no other.
    pub open: Vec<String>,
    /// What its processes have started that is none of them.
    pub children: Vec<Child>,
    /// What the readers before have found of its calls: for events of questions, whose answers may send none.
    pub calls: Vec<Calls>,
}

/// The calls of tools in the last turn of a conversation, by its transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// The conversation's id.
    pub conversation: String,
    /// Those that have not come back, by their ids.
    pub open: Vec<String>,
    /// When anything happened last that shows which of them have come back, Unix milliseconds.
    pub last_ms: u64,
}

/// A process that an agent has started.
#[derive(Debug, Clone)]
pub struct Child {
    /// What it runs.
    pub program: Arc<Program>,
    /// What those run that it has started.
    pub children: Vec<Arc<Program>>,
}

/// What is to be known of an open turn where a transcript has no requests for approval: it may be waiting for one.
const NO_APPROVALS: &str = "approvals are not recorded";

/// The same of agents that call them permissions.
const NO_PERMISSIONS: &str = "permissions are not recorded";

/// What agents do, in plain words beside those of their own, which not everybody knows.
const AT_WORK: &str = "at work";
const TURN_ENDED: &str = "turn ended";
const CLOSED: &str = "conversation closed";

/// How far a process's start may be off: it is reckoned from the boot, whose time drifts.
const START_SLACK_MS: u64 = 2000;

impl Subject {
    /// Its root process.
    fn root(&self) -> Option<ProcessId> {
        self.processes.first().map(|(root, _)| *root)
    }

    /// The same record, if it is the same file to the agent as to this program: nothing else ties a path to a process.
    ///
    /// # Errors
    /// It is not, or that cannot be seen.
    fn sees(&self, record: PathBuf) -> Result<PathBuf, String> {
        self.root().map_or(Ok(()), |root| sees_alike(root, &record)).map(|()| record)
    }

    /// Whether what happened then may be its own doing. A record that an agent goes on with tells of earlier processes, too.
    pub fn ran_at(&self, at_ms: u64) -> bool {
        at_ms.saturating_add(START_SLACK_MS) >= self.started_at_ms
    }
}

/// What was found of one agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Testimony {
    /// Dated statements about what it does.
    pub evidence: Vec<Evidence>,
    /// What it has used.
    pub usage: Option<Usage>,
    /// What could not be found, and why.
    pub unmeasured: Vec<Gap>,
    /// The conversations that its processes hold, where they can hold several. What is said above is said of no single one.
    pub conversations: Vec<Conversation>,
    /// The calls of tools of its conversations, where all of the last turn is known.
    pub calls: Vec<Calls>,
    /// Whether its own events say that an error has stopped it. Where its records say that it rests, they say only half of that.
    pub broken_off: bool,
}

/// What was found of one of the conversations that the same processes hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The agent's own id for it: letters, digits, `-` and `_`.
    pub id: String,
    /// When it began, Unix milliseconds.
    pub started_at_ms: Option<u64>,
    /// Dated statements about what is done in it.
    pub evidence: Vec<Evidence>,
    /// What it has used.
    pub usage: Option<Usage>,
    /// What could not be found, and why.
    pub unmeasured: Vec<Gap>,
}

impl From<Result<Testimony, String>> for Testimony {
    /// Of an agent whose records cannot be found or read, nothing is said but why.
    fn from(found: Result<Self, String>) -> Self {
        found.unwrap_or_else(|why| Self { unmeasured: nothing_for(&why), ..Self::default() })
    }
}

impl Testimony {
    /// Takes up what another reader has found of the same agent.
    fn add(&mut self, more: Self) {
        if more.broken_off {
            self.evidence.retain(|said| said.claim != Claim::Idle);
        }
        self.evidence.extend(more.evidence);
        self.unmeasured.extend(more.unmeasured);
        self.usage = Usage::either(more.usage, self.usage.take());
        for more in more.conversations {
            match self.conversations.iter_mut().find(|known| known.id == more.id) {
                Some(known) => known.add(more),
                None => self.conversations.push(more),
            }
        }
    }
}

impl Conversation {
    fn add(&mut self, more: Self) {
        self.evidence.extend(more.evidence);
        self.unmeasured.extend(more.unmeasured);
        self.usage = Usage::either(more.usage, self.usage.take());
        self.started_at_ms = self.started_at_ms.or(more.started_at_ms);
    }
}

/// What is said where nothing can be, for this reason.
fn nothing_for(why: &str) -> Vec<Gap> {
    ["evidence", "usage"].map(|field| gap(field, why)).into()
}

/// Why nothing of what an agent of this kind keeps is read.
fn unread(what: &str, kind: &str) -> String {
    if kind == NO_KIND {
        return format!("which kind of agent it is is not known, so that no {what} of it are looked for");
    }
    format!("headcount reads no {what} of {kind}")
}

/// A reader of records.
pub trait Records: Debug + Send {
    /// The kinds of agents whose records it can read.
    fn kinds(&self) -> Vec<&'static str>;

    /// What of them, for people.
    fn what(&self) -> &'static str {
        "activity and work"
    }

    /// Whether it reads the records of this kind.
    fn reads(&self, kind: &str) -> bool {
        self.kinds().contains(&kind)
    }

    /// Whether these say what an agent of this kind does and uses. It is not so of events, which need not be sent.
    fn follows(&self, kind: &str) -> bool {
        self.reads(kind)
    }

    /// Learns, before it reads, which processes run an agent's program. Those that are none of the agents' speak for none.
    fn learn(&mut self, _programs: &[ProcessId]) {}

    /// The conversation that each of the agents is in, where this reader knows it. Asked before anybody reads.
    fn conversations(&mut self, subjects: &[&Subject], _now: Moment) -> Vec<Option<String>> {
        vec![None; subjects.len()]
    }

    /// One testimony for each of the agents, all of kinds that it reads. Called once each tick, on the thread that ticks: what
    /// has not changed is not read again. An agent that is not among them any more is forgotten.
    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony>;
}

/// All readers, in an order in which one may learn from what those before it have found.
#[derive(Debug, Default)]
pub struct Readers {
    all: Vec<Box<dyn Records>>,
    /// Whether there are no others: then of a kind that none of them follows nobody reads any records.
    complete: bool,
}

impl Readers {
    /// These readers.
    pub fn new(readers: Vec<Box<dyn Records>>) -> Self {
        Self { all: readers, complete: false }
    }

    /// The same; there are no others. What nobody reads is said to be read by nobody.
    #[must_use]
    pub fn complete(self) -> Self {
        Self { complete: true, ..self }
    }

    /// What can be read, and of which kinds of agents, by name.
    pub fn scope(&self) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
        let mut scope: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for reader in &self.all {
            scope.entry(reader.what()).or_default().extend(reader.kinds());
        }
        scope
    }

    /// What all of them find of the agents that live, by root. Also where there is nobody, so that readers can forget.
    /// `programs` are all processes that run an agent's program.
    pub fn read(
        &mut self,
        mut subjects: Vec<Subject>,
        programs: &[ProcessId],
        now: Moment,
    ) -> HashMap<ProcessId, Testimony> {
        for reader in &mut self.all {
            reader.learn(programs);
            let (at, theirs): (Vec<_>, Vec<_>) =
                subjects.iter().enumerate().filter(|(_, subject)| reader.reads(&subject.kind)).unzip();
            for (at, known) in at.into_iter().zip(reader.conversations(&theirs, now)) {
                subjects[at].conversation = known.or(subjects[at].conversation.take());
            }
        }
        let mut found: HashMap<ProcessId, Testimony> = HashMap::new();
        for reader in &mut self.all {
            let (at, theirs): (Vec<_>, Vec<_>) =
                subjects.iter().enumerate().filter(|(_, subject)| reader.reads(&subject.kind)).unzip();
            for (at, said) in at.into_iter().zip(reader.read(&theirs, now)) {
                let subject = &mut subjects[at];
                let Some(root) = subject.root() else { continue };
                subject.open.extend(said.conversations.iter().map(|conversation| conversation.id.clone()));
                subject.calls.extend_from_slice(&said.calls);
                found.entry(root).or_default().add(said);
            }
        }
        for subject in subjects.iter().filter(|_| self.complete) {
            if let Some(root) = subject.root().filter(|_| !self.all.iter().any(|reader| reader.follows(&subject.kind)))
            {
                let found = found.entry(root).or_default();
                let fields = if found.evidence.is_empty() { &["evidence", "usage"][..] } else { &["usage"] };
                found
                    .unmeasured
                    .extend(fields.iter().map(|field| Gap::by_design(*field, unread("records", &subject.kind))));
            }
        }
        found
    }
}

/// The conversation that each of the agents is in, as far as `id_of` knows it; `untold` is the reason where it does not.
fn told_conversations(
    subjects: &[&Subject],
    id_of: impl Fn(&Subject) -> Option<Id>,
    untold: &str,
) -> Vec<Result<Id, String>> {
    let ids: Vec<Option<Id>> = subjects.iter().map(|agent| id_of(agent)).collect();
    let why = shared(subjects, ids.iter().enumerate().filter_map(|(at, id)| Some((at, id.as_ref()?))));
    let decide = |(at, id): (usize, Option<Id>)| match why.get(&at) {
        Some(why) => Err(why.clone()),
        None => id.ok_or_else(|| untold.to_owned()),
    };
    ids.into_iter().enumerate().map(decide).collect()
}

fn gap(field: &'static str, reason: &str) -> Gap {
    Gap::new(field, reason.to_owned())
}

/// The agents whose conversations are those of others too, and what is to be said of that: which of them has done what cannot
/// be seen, and no conversation is shown twice. `records` are the agents' by their places: files, or ids.
fn shared<R: Eq + Hash>(
    subjects: &[&Subject],
    records: impl IntoIterator<Item = (usize, R)>,
) -> HashMap<usize, String> {
    let mut owners: HashMap<R, Vec<usize>> = HashMap::new();
    for (agent, record) in records {
        owners.entry(record).or_default().push(agent);
    }
    let mut shared = HashMap::new();
    for owners in owners.values() {
        for agent in owners {
            let other = owners.iter().find_map(|other| subjects[*other].root().filter(|_| other != agent));
            let why = |other: ProcessId| format!("its conversation is that of process {} too", other.pid);
            shared.extend(other.map(|other| (*agent, why(other))));
        }
    }
    shared
}

/// The folder in which a program keeps its records: what the variable `name` of its environment names, else `below_home` in
/// the home that it was started with. This program's own environment says nothing of it.
///
/// # Errors
/// Its environment may not be read, or names neither.
fn home_of(program: &Program, name: &str, below_home: &str) -> Result<PathBuf, String> {
    let folder = match (variable(program, name)?, variable(program, "HOME")?) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(home).join(below_home),
        (None, None) => return Err(no_place("it has no home")),
    };
    match &program.cwd {
        _ if folder.is_absolute() => Ok(folder),
        Ok(cwd) => Ok(cwd.join(folder)),
        Err(why) => Err(no_place(why)),
    }
}

/// A variable of the environment that a program was started with; an empty one is as good as none.
///
/// # Errors
/// Its environment may not be read.
fn variable<'p>(program: &'p Program, name: &str) -> Result<Option<&'p str>, String> {
    let env = program.env.as_ref().map_err(|why| no_place(why))?;
    Ok(env.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str()))
}

fn no_place(why: &str) -> String {
    format!("where it keeps its records is not known: {why}")
}
