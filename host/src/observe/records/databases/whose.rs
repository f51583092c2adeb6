//! Which agent has which conversation, and in which database.

use super::super::value::Id;
use super::super::{START_SLACK_MS, Subject};
use super::{KINDS, Kind, kind_of};
use crate::clock::Moment;
use crate::observe::processes::{OpenFiles, ProcessId};
use crate::store::foreign;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The databases that processes hold open for writing.
type Held = HashMap<ProcessId, Result<BTreeSet<PathBuf>, String>>;

/// What an agent's conversation is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    /// It alone holds the database: what was gone on with since then, Unix milliseconds.
    Held(u64),
    /// Its command line names it.
    Argued(String),
    /// Its hooks have told it.
    Told(String),
}

impl Ask {
    /// How good a reason it is; more is better.
    pub(super) fn strength(&self) -> u8 {
        match self {
            Self::Held(_) => 0,
            Self::Argued(_) => 1,
            Self::Told(_) => 2,
        }
    }
}

/// Knows who holds what.
#[derive(Debug, Default)]
pub(super) struct Whose {
    files: OpenFiles,
    /// Processes that run an agent's program, with a row or without.
    programs: Vec<ProcessId>,
    /// Those that have shared a database with another process: some of what was gone on with since may be the other's.
    shared: HashSet<ProcessId>,
}

impl Whose {
    /// Learns which processes run an agent's program.
    pub(super) fn learn(&mut self, programs: &[ProcessId]) {
        self.programs.clear();
        self.programs.extend_from_slice(programs);
    }

    /// Where each agent's conversation stands and what it is found by, or why that is not decided.
    pub(super) fn asked(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Result<(PathBuf, Ask), String>> {
        let held = self.held(subjects, now);
        subjects.iter().map(|agent| self.ask(agent, &held)).collect()
    }

    /// Which databases are held open for writing, and by which processes: those that run an agent's program, and those that
    /// have a lock on one of the databases, as whoever uses one has.
    fn held(&mut self, subjects: &[&Subject], now: Moment) -> Held {
        let mut held = Held::new();
        let own = subjects.iter().flat_map(|agent| agent.processes.iter().map(|(process, _)| *process));
        let programs = self.programs.iter().copied().filter(|_| !subjects.is_empty());
        look_at(&mut self.files, own.chain(programs), &mut held, now);
        let places: BTreeSet<&PathBuf> = held.values().flatten().flatten().collect();
        let locked = places.into_iter().flat_map(|place| [place.clone(), foreign::index_of(place)]);
        let users: Vec<ProcessId> = locked.flat_map(|path| self.files.locked_by(&path)).collect();
        look_at(&mut self.files, users.into_iter(), &mut held, now);
        self.files.retain(|process| held.contains_key(&process));
        self.shared.retain(|process| held.contains_key(process));
        held
    }

    /// Where an agent's conversation stands, and what it is found by.
    fn ask(&mut self, agent: &Subject, held: &Held) -> Result<(PathBuf, Ask), String> {
        let kind = kind_of(&agent.kind).ok_or("its kind keeps no database")?;
        let named = named(kind, agent);
        let is_own = |process: &ProcessId| agent.processes.iter().any(|(own, _)| own == process);
        let own = agent.processes.iter().filter_map(|(process, _)| held.get(process));
        let places: BTreeSet<&PathBuf> =
            own.clone().flatten().flatten().filter(|place| kind.is_database(place)).collect();
        let place = match (places.first(), places.len(), &named) {
            (Some(place), 1, _) => (*place).clone(),
            (None, _, Some(_)) => place(kind, agent)?,
            (None, ..) => return Err(holds_none(kind, agent, own.filter_map(|held| held.as_ref().err()).next())),
            (_, several, _) => {
                return Err(format!("it has {several} databases open; which one is meant is not decided"));
            }
        };
        let Some((root, _)) = agent.processes.first() else { return Err("it has no process".to_owned()) };
        if held
            .iter()
            .any(|(process, places)| !is_own(process) && places.as_ref().is_ok_and(|places| places.contains(&place)))
        {
            self.shared.insert(*root);
        }
        match named {
            Some(ask) => Ok((place, ask)),
            None if self.shared.contains(root) => {
                Err(undecided(kind, "another process has its database open too, or had"))
            }
            None => Ok((place, Ask::Held(agent.started_at_ms.saturating_sub(START_SLACK_MS)))),
        }
    }
}

/// Where an agent keeps its database if it does not hold it open.
fn place(kind: &dyn Kind, agent: &Subject) -> Result<PathBuf, String> {
    let (_, program) = agent.processes.last().ok_or("it has no process")?;
    kind.place(program)
}

/// Why an agent whose conversation nobody names has no database open.
fn holds_none(kind: &dyn Kind, agent: &Subject, failure: Option<&String>) -> String {
    if let Some(why) = failure {
        return format!("its open files cannot be read: {why}");
    }
    let without = place(kind, agent).ok().and_then(|place| kind.without(&place));
    without.map_or_else(|| undecided(kind, "it has no database open"), str::to_owned)
}

/// Adds the databases that these processes hold open for writing.
fn look_at(files: &mut OpenFiles, processes: impl Iterator<Item = ProcessId>, held: &mut Held, now: Moment) {
    let is_wanted = |path: &Path| KINDS.iter().any(|kind| kind.is_database(path));
    for process in processes {
        let mut written = || files.written_by(process, now, is_wanted).map(|paths| paths.into_iter().collect());
        held.entry(process).or_insert_with(&mut written);
    }
}

/// The conversation that an agent's hooks or its command line name.
fn named(kind: &dyn Kind, agent: &Subject) -> Option<Ask> {
    let told = agent.conversation.as_deref().and_then(Id::new).map(|id| Ask::Told(id.as_str().to_owned()));
    told.or_else(|| {
        let lines = agent.processes.iter().filter_map(|(_, program)| program.argv.as_ref().ok());
        lines.filter_map(|line| argued(line, kind.options())).next().map(Ask::Argued)
    })
}

/// The id that follows one of `options` on a command line. A fork begins a conversation of its own.
fn argued(line: &[String], options: &[&str]) -> Option<String> {
    let slots = || line.iter().skip(1).map(String::as_str).take_while(|slot| *slot != "--");
    if slots().any(|slot| slot == "--fork") {
        return None;
    }
    let next = slots().skip(1).chain([""]);
    let id = slots().zip(next).find_map(|(slot, next)| match slot.split_once('=') {
        Some((name, value)) => options.contains(&name).then_some(value),
        None => options.contains(&slot).then_some(next),
    })?;
    Id::new(id).map(|id| id.as_str().to_owned())
}

/// Why it is not decided which conversation an agent has, and what would help.
pub(super) fn undecided(kind: &dyn Kind, why: &str) -> String {
    let name = kind.name();
    if super::super::hooks::meaning::KINDS.contains(&name) {
        format!("{why}; which conversation is its own is told by hooks: headcount hook install {name}")
    } else {
        format!("{why}; which conversation is its own is not decided")
    }
}
