//! The agents that are known: when each was first seen, and what was settled then for as long as it lives.

use super::agents::{Heads, Kinds, Look, Recogniser, Sighting, are_of_two, wraps};
use super::facts::{ProcessState, Terminal};
use super::ids;
use super::processes::{Details, Liveness, ProcessId};
use super::sessions::{Owners, Places, terminal_of};
use super::table::ProcessTable;
use crate::config::Worktrees;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The kind of an agent that only a roster names.
pub const NO_KIND: &str = "process";

/// An agent's root process, with what was settled when it was first seen.
#[derive(Debug, Clone)]
pub struct Known {
    /// Which process.
    pub id: ProcessId,
    /// What kind of agent.
    pub kind: Arc<str>,
    /// Why the kind is not certain, where it is not.
    pub doubt: Option<String>,
    /// Its name, unique in its folder.
    pub name: String,
    /// The project's top folder, or why there is none.
    pub root: Result<PathBuf, String>,
    /// The id of the session that it belongs to unless one is declared.
    pub session: String,
    /// The user whose process it is.
    pub owner: String,
    /// When it started, Unix milliseconds.
    pub created_at_ms: Option<u64>,
    /// The terminal it runs in.
    pub terminal: Option<Terminal>,
    /// Whether it was found by itself.
    discovered: bool,
    /// Whether all of this is final: its program was read and its file system has answered.
    settled: bool,
    /// When it was first seen to have ended, on the steady clock.
    ended: Option<Duration>,
}

impl Known {
    /// A process of which nothing is known but which it is.
    fn bare(id: ProcessId) -> Self {
        Self {
            id,
            kind: NO_KIND.into(),
            doubt: None,
            name: NO_KIND.to_owned(),
            root: Err("nothing is known of it".to_owned()),
            session: String::new(),
            owner: String::new(),
            created_at_ms: None,
            terminal: None,
            discovered: false,
            settled: false,
            ended: None,
        }
    }
}

/// All known agents.
#[derive(Debug)]
pub struct Census {
    recogniser: Recogniser,
    places: Places,
    keep_ended: Duration,
    owners: Owners,
    look: Look,
    heads: Heads,
    known: BTreeMap<ProcessId, Known>,
    /// Processes that are part of another one's row, and which.
    parts: HashMap<ProcessId, ProcessId>,
    /// Rows that are declared now.
    declared: BTreeSet<ProcessId>,
}

impl Census {
    /// A census that knows nobody yet. `keep_ended`: for how long those found by themselves stay after their end.
    pub fn new(kinds: Kinds, worktrees: Worktrees, keep_ended: Duration) -> Self {
        Self {
            recogniser: Recogniser::new(kinds),
            places: Places::new(worktrees),
            keep_ended,
            owners: Owners::default(),
            look: Look::default(),
            heads: Heads::default(),
            known: BTreeMap::new(),
            parts: HashMap::new(),
            declared: BTreeSet::new(),
        }
    }

    /// Looks for agents among the processes, and takes up those that are new.
    pub fn look(&mut self, table: &impl ProcessTable) {
        self.places.begin();
        // A part that outlives the whole is an agent of its own.
        self.parts.retain(|part, whole| !has_ended(*whole, table) || has_ended(*part, table));
        self.look = self.recogniser.look(table.processes());
        self.heads = Heads::new(&self.look.sightings);
        let is_new = |sighting: &&Sighting| {
            self.heads.is_head(sighting.id) && !self.is_discovered(sighting) && !has_ended(sighting.id, table)
        };
        let mut new: Vec<Sighting> = self.look.sightings.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return;
        }
        // The oldest gets the plain name.
        new.sort_by_key(|sighting| (sighting.id.start, sighting.id.pid));
        for sighting in &new {
            self.known.remove(&sighting.id);
        }
        let mut names = Names::of(self.known.values());
        for sighting in new {
            let Some(mut known) = self.settle(sighting.id, Arc::clone(&sighting.recognised.kind), table) else {
                continue;
            };
            known.doubt.clone_from(&sighting.recognised.doubt);
            known.discovered = true;
            known.name = names.free(&known.session, &known.kind);
            self.known.insert(known.id, known);
        }
    }

    /// Processes that run a program which no look before saw them run.
    pub fn fresh(&self) -> &[ProcessId] {
        &self.look.fresh
    }

    /// All processes that run an agent's program, also those that are no agents.
    pub fn programs(&self) -> &[ProcessId] {
        &self.look.programs
    }

    /// The user that this program runs as.
    pub fn me(&mut self) -> String {
        self.owners.me()
    }

    /// Begins a new reading of the rosters: nobody is declared.
    pub fn begin_declarations(&mut self) {
        self.declared.clear();
    }

    /// Takes up a process that is declared, and says which row it is: its own, or that of the agent it is part of. An agent that it
    /// only runs is part of it, unless that is another user's: `takes_all` where it may be.
    pub fn declare(&mut self, id: ProcessId, takes_all: bool, table: &impl ProcessTable) -> &Known {
        let root = self.parts.get(&id).copied().unwrap_or_else(|| self.heads.head(id));
        if root != id {
            self.parts.insert(id, root);
        }
        self.declared.insert(root);
        if self.known.get(&root).is_none_or(|known| !known.settled && !has_ended(root, table)) {
            let known = self.settle(root, NO_KIND.into(), table).unwrap_or_else(|| Known::bare(root));
            self.known.insert(root, known);
        }
        if let Some(child) = self.wrapped_by(root, table) {
            let (id, kind) = (child.id, Arc::clone(&child.recognised.kind));
            if takes_all || !Self::is_anothers(root, child, table) {
                self.parts.insert(id, root);
                self.known.entry(root).and_modify(|known| known.kind = kind);
            } else {
                self.parts.remove(&id);
            }
        }
        &self.known[&root]
    }

    /// Takes back that a row is declared.
    pub fn withdraw(&mut self, root: ProcessId) {
        self.declared.remove(&root);
    }

    /// The recognised processes that are one agent with this root, beside the root itself.
    pub fn parts_of(&self, root: ProcessId) -> impl Iterator<Item = ProcessId> {
        let sightings = self.look.sightings.iter().map(|sighting| sighting.id);
        sightings.filter(move |&id| id != root && (self.heads.head(id) == root || self.parts.get(&id) == Some(&root)))
    }

    /// Those that were found by themselves and are no part of a declared row.
    pub fn undeclared(&self) -> impl Iterator<Item = &Known> {
        self.known.values().filter(|known| {
            let row = self.parts.get(&known.id).unwrap_or(&known.id);
            !self.declared.contains(&known.id) && !self.declared.contains(row)
        })
    }

    /// Forgets those that are neither declared nor alive nor ended lately. `now` is on the steady clock.
    pub fn sweep(&mut self, table: &impl ProcessTable, now: Duration) {
        let Self { known, heads, declared, parts, look, keep_ended, .. } = self;
        let heads: BTreeSet<ProcessId> =
            look.sightings.iter().map(|sighting| sighting.id).filter(|id| heads.is_head(*id)).collect();
        known.retain(|id, known| {
            if has_ended(*id, table) {
                let ended = *known.ended.get_or_insert(now);
                declared.contains(id) || (known.discovered && now.saturating_sub(ended) < *keep_ended)
            } else {
                // One that lives and is no agent now has become another program, or is part of another agent.
                declared.contains(id) || heads.contains(id)
            }
        });
        parts.retain(|_, root| known.contains_key(root));
    }

    fn is_discovered(&self, sighting: &Sighting) -> bool {
        self.known
            .get(&sighting.id)
            .is_some_and(|known| known.discovered && known.settled && known.kind == sighting.recognised.kind)
    }

    /// What is settled about a process at first sight. `None`: it has not been read yet, or is no more.
    fn settle(&mut self, id: ProcessId, kind: Arc<str>, table: &impl ProcessTable) -> Option<Known> {
        let process = table.get(id.pid).filter(|process| process.id == id)?;
        let Details::Read(program) = &process.details else { return None };
        let (root, settled) = match &program.cwd {
            Ok(folder) => match self.places.top(folder) {
                Some(top) => (Ok(top), true),
                None => (Err("its file system does not answer".to_owned()), false),
            },
            Err(why) => (Err(why.clone()), true),
        };
        let owner = self.owners.name(program.uid);
        let other = (owner != self.owners.me()).then_some(owner.as_str());
        Some(Known {
            name: kind.to_string(),
            kind,
            session: root.as_ref().map_or_else(|_| ids::unplaced_id(&owner), |root| ids::session_id(root, other)),
            root: root.map_err(|why| format!("the working directory is not known: {why}")),
            owner,
            created_at_ms: Some(process.started_at_ms),
            terminal: terminal_of(process, program),
            settled,
            ..Known::bare(id)
        })
    }

    /// Whether an agent is run as another user than `root`, as far as that is known.
    fn is_anothers(root: ProcessId, agent: &Sighting, table: &impl ProcessTable) -> bool {
        let details = table.get(root.pid).map(|process| &process.details);
        matches!(details, Some(Details::Read(program)) if are_of_two(program, &agent.program))
    }

    /// The agent that `root`, which is none itself, only runs.
    fn wrapped_by(&self, root: ProcessId, table: &impl ProcessTable) -> Option<&Sighting> {
        if has_ended(root, table) || self.known.get(&root).is_some_and(|known| known.discovered) {
            return None;
        }
        let Details::Read(program) = &table.get(root.pid)?.details else { return None };
        self.look.sightings.iter().find(|child| child.parent == root.pid && wraps(program, child))
    }
}

fn has_ended(id: ProcessId, table: &impl ProcessTable) -> bool {
    match table.get(id.pid) {
        Some(process) if process.id == id => process.state == ProcessState::Zombie,
        _ => !matches!(table.state_of(id), Liveness::Alive | Liveness::Unreadable),
    }
}

/// The names that are taken in each session, while newcomers get theirs.
#[derive(Default)]
struct Names {
    taken: HashSet<(String, String)>,
    /// For each session and kind, the lowest number that may be free.
    lowest: HashMap<(String, Arc<str>), usize>,
}

impl Names {
    fn of<'a>(known: impl Iterator<Item = &'a Known>) -> Self {
        Self { taken: known.map(|known| (known.session.clone(), known.name.clone())).collect(), lowest: HashMap::new() }
    }

    /// `claude`, or `claude-2` where a `claude` works in the same session already, and so on.
    fn free(&mut self, session: &str, kind: &Arc<str>) -> String {
        let number = self.lowest.entry((session.to_owned(), Arc::clone(kind))).or_insert(1);
        loop {
            let name = if *number == 1 { kind.to_string() } else { format!("{kind}-{number}") };
            *number += 1;
            if self.taken.insert((session.to_owned(), name.clone())) {
                return name;
            }
        }
    }
}
