//! The events that agents send by their hooks: `headcount hook` notes them, a file for each conversation, and they are
//! read here.
//!
//! A note belongs to the nearest ancestor of the process which sent it that runs an agent's program, by identity. Where that
//! one is no row, it is nobody's: an agent that another one drives does not speak for it. Nothing else ties a note to an
//! agent: neither the conversation's id nor the folder that it is about.

pub mod event;
pub mod meaning;
pub mod note;
mod open;
#[cfg(test)]
mod tests;

use super::{Calls, Conversation, Moment, Records, Subject, Testimony};
use crate::files::read_small;
use crate::observe::census::NO_KIND;
use crate::observe::facts::{Claim, Evidence, Gap, Source};
use crate::observe::processes::{Machine, ProcessId, may_live};
use meaning::{KINDS, meaning};
use note::{FOLDER, LARGEST, Note, Said, sender_in};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// So many notes are read, the newest.
const MOST: usize = 1000;

/// So many entries of the folder are looked at.
const MOST_LISTED: usize = 10_000;

/// The kinds of agents that tell by their hooks that they wait for a person, and by nothing else.
const ONLY_BY_HOOKS: [&str; 3] = ["codex", "gemini", "opencode"];

/// A folder that changed so shortly ago may change again without showing it: file systems' clocks are coarse.
const COARSE: Duration = Duration::from_secs(1);

/// Reads the notes.
#[derive(Debug)]
pub struct Hooks {
    folder: PathBuf,
    machine: Machine,
    /// When the folder had changed when it was read last, if it cannot have changed since without showing it.
    read: Option<Duration>,
    notes: HashMap<OsString, (Stamp, Option<Note>)>,
    /// Processes that run an agent's program, with a row or without.
    programs: HashSet<ProcessId>,
    /// Processes that a note names and that were agents once: whoever they have started does not speak for those above them.
    agents: HashSet<ProcessId>,
    /// Why the folder cannot be read, or not all of it.
    failure: Option<String>,
}

/// Files by name.
type Files = Vec<(OsString, Stamp)>;

/// What changes when a file does. A note is never written over: each is a file of its own that takes the last one's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Duration,
    length: u64,
    inode: u64,
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(found);
        #[cfg(not(unix))]
        let inode = 0;
        Self { modified: modified(found), length: found.len(), inode }
    }
}

impl Hooks {
    /// A reader of the notes below the state directory `state`, of agents on this `machine`.
    pub fn new(state: &Path, machine: Machine) -> Self {
        let (notes, programs, agents) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self { folder: state.join(FOLDER), machine, read: None, notes, programs, agents, failure: None }
    }

    /// Reads what has changed.
    fn refresh(&mut self, now: Moment) {
        let changed = match fs::metadata(&self.folder) {
            Ok(found) => modified(&found),
            Err(error) => return self.fail(error),
        };
        if self.read == Some(changed) {
            return;
        }
        let (files, left_out) = match list(&self.folder, &self.machine) {
            Ok(files) => files,
            Err(error) => return self.fail(error),
        };
        let mut before = std::mem::take(&mut self.notes);
        for (name, stamp) in files {
            let known = before.remove(&name).filter(|(seen, _)| *seen == stamp);
            let read = || (stamp, read_note(&self.folder.join(&name)));
            self.notes.insert(name.clone(), known.unwrap_or_else(read));
        }
        self.failure = left_out;
        self.read = (Duration::from_millis(now.unix_ms) > changed + COARSE).then_some(changed);
    }

    /// Which row a note belongs to. A sender that is gone may have been an agent that had none.
    fn owner(&self, note: &Note, whose: &HashMap<ProcessId, usize>) -> Option<usize> {
        let is_agent =
            |id: &ProcessId| whose.contains_key(id) || self.programs.contains(id) || self.agents.contains(id);
        let decides = |id: &&ProcessId| is_agent(id) || (note.sender == Some(**id) && !may_live(**id));
        whose.get(note.ancestors.iter().find(decides)?).copied()
    }

    /// The notes that belong to one of these agents, and to which.
    fn owned(&self, subjects: &[&Subject]) -> Vec<(usize, &Note)> {
        let whose: HashMap<ProcessId, usize> = (subjects.iter().enumerate())
            .flat_map(|(n, subject)| subject.processes.iter().map(move |(id, _)| (*id, n)))
            .collect();
        let notes = self.notes.values().filter_map(|(_, note)| note.as_ref());
        let of_this_machine = notes.filter(|note| note.machine == self.machine);
        let owned = of_this_machine.filter_map(|note| Some((self.owner(note, &whose)?, note)));
        owned.filter(|(n, note)| may_send(&subjects[*n].kind, &note.kind)).collect()
    }

    /// Whether a shell, or an interpreter, was an agent or only ran a hook cannot be seen any more once it is gone.
    fn remember_agents(&mut self, subjects: &[&Subject]) {
        let own = subjects.iter().flat_map(|subject| subject.processes.iter().map(|(id, _)| *id));
        let live: HashSet<ProcessId> = own.chain(self.programs.iter().copied()).collect();
        let named =
            self.notes.values().filter_map(|(_, note)| note.as_ref()).flat_map(|note| note.ancestors.iter().copied());
        self.agents = named.filter(|id| live.contains(id) || self.agents.contains(id)).collect();
    }

    /// Without a folder no agent has sent anything yet, which is no failure.
    fn fail(&mut self, error: io::Error) {
        self.notes.clear();
        self.read = None;
        self.failure = (error.kind() != ErrorKind::NotFound)
            .then(|| format!("the notes of hooks cannot be read: {}: {error}", self.folder.display()));
    }
}

impl Records for Hooks {
    /// All kinds: an agent that is declared need not be recognised.
    fn kinds(&self) -> Vec<&'static str> {
        meaning::KINDS.to_vec()
    }

    fn what(&self) -> &'static str {
        "events, where hooks are installed,"
    }

    /// Whoever sends events is heard.
    fn reads(&self, _kind: &str) -> bool {
        true
    }

    fn follows(&self, _kind: &str) -> bool {
        false
    }

    fn learn(&mut self, programs: &[ProcessId]) {
        self.programs.clear();
        self.programs.extend(programs);
    }

    /// That of the newest event: who leaves a conversation for another sends events of that one.
    fn conversations(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Option<String>> {
        self.refresh(now);
        let mut newest: Vec<Option<&Note>> = vec![None; subjects.len()];
        for (n, note) in self.owned(subjects) {
            if newest[n].is_none_or(|known| known.last.at_ms < note.last.at_ms) {
                newest[n] = Some(note);
            }
        }
        newest.into_iter().map(|note| note?.conversation.clone()).collect()
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.refresh(now);
        self.remember_agents(subjects);
        let mut found = vec![Testimony::default(); subjects.len()];
        for (n, note) in self.owned(subjects) {
            let said = evidence(note, &subjects[n].calls);
            match &note.conversation {
                Some(id) if subjects[n].open.contains(id) => found[n].conversations.push(Conversation {
                    id: id.clone(),
                    evidence: said,
                    ..Conversation::default()
                }),
                // It is about one that is closed, and says nothing of those that are open.
                Some(_) if subjects[n].open.len() > 1 => {}
                _ => {
                    found[n].broken_off |= meaning::breaks_off(&note.last.event) && !said.is_empty();
                    found[n].evidence.extend(said);
                }
            }
        }
        for (subject, found) in subjects.iter().zip(&mut found) {
            // In which order the files are listed says nothing.
            found.evidence.sort_by(|a, b| (a.at_ms, &a.word).cmp(&(b.at_ms, &b.word)));
            found.conversations.sort_by(|a, b| a.id.cmp(&b.id));
            if KINDS.contains(&&*subject.kind) {
                let gap = |reason| Gap::new("evidence", reason);
                found.unmeasured.extend(self.failure.clone().map(gap));
            }
            if ONLY_BY_HOOKS.contains(&&*subject.kind) && found.evidence.is_empty() && found.conversations.is_empty() {
                found.unmeasured.push(Gap::by_design("waiting", untold(&subject.kind)));
            }
        }
        found
    }
}

/// Why nobody knows whether an agent waits for a person, and what helps.
fn untold(kind: &str) -> String {
    format!("it records none of it, and no hook of it has told anything; `headcount hook install {kind}` has it told")
}

/// Whether an agent of one kind may send the events of another: only where it was not recognised.
fn may_send(agent: &str, events: &str) -> bool {
    agent == events || agent == NO_KIND
}

/// What a note says: since when it is so, and the last that was heard. A question that the transcript shows to be over is asked
/// no more: a permission that is denied sends no event.
pub(super) fn evidence(note: &Note, calls: &[Calls]) -> Vec<Evidence> {
    let calls = calls.iter().find(|calls| note.conversation.as_deref() == Some(&calls.conversation));
    let mut asked = note.open.questions.iter().filter(|asked| !calls.is_some_and(|calls| is_over(asked, calls)));
    let (first, last) = match asked.next() {
        Some(first) => (first, asked.next_back().unwrap_or(first)),
        None if note.open.questions.is_empty() => (&note.first, &note.last),
        None => return Vec::new(),
    };
    let statement = |said: &Said| {
        let of = meaning(&note.kind, &said.event)?;
        let word = match (of.claim, &said.event.about) {
            (Claim::Unknown, Some(about)) => format!("{} {about}", said.event.name),
            _ => said.event.name.clone(),
        };
        Some(Evidence { source: Source::Hook, claim: of.claim, word, detail: of.detail, at_ms: said.at_ms })
    };
    (first != last).then_some(first).into_iter().chain([last]).filter_map(statement).collect()
}

/// Whether a question is over: the transcript has gone on, and the call that it is about has come back. Of a question about no
/// certain call, all must have. A subagent's calls are in another transcript.
fn is_over(asked: &Said, calls: &Calls) -> bool {
    let came_back = match &asked.event.call {
        Some(call) => !calls.open.contains(call),
        None => calls.open.is_empty(),
    };
    came_back && asked.event.subagent.is_none() && asked.at_ms < calls.last_ms
}

/// The files that may be notes, and what is left out of them. Where there are too many, those of senders that live come
/// first, then those of which it is not known, each the newest first.
fn list(folder: &Path, machine: &Machine) -> io::Result<(Files, Option<String>)> {
    let mut files = Vec::new();
    let mut entries = fs::read_dir(folder)?;
    for entry in entries.by_ref().take(MOST_LISTED) {
        let entry = entry?;
        let name = entry.file_name();
        // It may be gone by now.
        if Path::new(&name).extension().is_some_and(|extension| extension == "json")
            && let Ok(found) = entry.metadata()
            && found.is_file()
        {
            files.push((name, Stamp::of(&found)));
        }
    }
    let not_listed = entries.next().is_some();
    let mut not_read = 0;
    if files.len() > MOST {
        let rank = |name: &OsString| {
            let sender = name.to_str().and_then(|name| sender_in(name, machine));
            sender.map_or(1, |sender| if may_live(sender) { 0 } else { 2 })
        };
        files.sort_by_cached_key(|(name, stamp)| (rank(name), Reverse(stamp.modified)));
        not_read = files[MOST..].iter().filter(|(name, _)| rank(name) < 2).count();
        files.truncate(MOST);
    }
    let left_out = match (not_listed, not_read) {
        (true, _) => Some(format!("of the notes of hooks only {MOST_LISTED} were looked at, there are more")),
        (false, 1..) => Some(format!("{not_read} of the notes of hooks were not read: more than {MOST} are there")),
        (false, 0) => None,
    };
    Ok((files, left_out))
}

/// A file that is no note says nothing.
pub fn read_note(file: &Path) -> Option<Note> {
    let bytes = read_small(file, LARGEST).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(note) => Some(note),
        Err(error) => {
            tracing::debug!(file = %file.display(), %error, "no note of a hook");
            None
        }
    }
}

fn modified(found: &Metadata) -> Duration {
    found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default()
}
