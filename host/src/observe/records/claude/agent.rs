//! One Claude Code agent: which record is its own, and what it says together with the job and the transcript that it names.

use super::conversation::Conversation;
use super::jobs::{self, Job};
use super::session_file::{self, Session};
use crate::clock::Moment;
use crate::observe::facts::{ACTIVITY, Claim, Evidence, Gap};
use crate::observe::processes::{ProcessId, Program, sees_alike};
use crate::observe::records::folder::Folder;
use crate::observe::records::small::Small;
use crate::observe::records::tail::Budget;
use crate::observe::records::{Subject, Testimony, home_of};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest record that Claude Code itself takes for one.
const LARGEST_SESSION: u64 = 256 << 10;

/// The largest record of a job: it has the question and the last answer in it.
const LARGEST_JOB: u64 = 4 << 20;

/// How many projects are looked through for a transcript that is not where it should be.
const MOST_PROJECTS: usize = 4_096;

/// How soon that is done again.
const SEARCH_EVERY: Duration = Duration::from_secs(30);

/// A parked conversation's transcript ends a little before or after the record says so.
const PARKING_MS: u64 = 2_000;

/// Dates before this one, of the year 2001, are given in another unit, or are none.
const EARLIEST_MS: u64 = 1_000_000_000_000;

/// One agent, and its files.
#[derive(Debug)]
pub struct Agent {
    /// The record of each of its processes.
    records: HashMap<ProcessId, Small<Session>>,
    own: Option<Own>,
    /// Why it has no record of its own.
    without: String,
    job: Option<Small<Job>>,
    /// Since when its job waits for a person; `Err`: why that cannot be said.
    blocked_since: Result<Option<u64>, String>,
    conversation: Option<Conversation>,
    /// What there is to find where a transcript is missing.
    search: Option<Folder>,
    /// Why no transcript is its own, where that cannot be decided.
    undecided: Option<String>,
}

/// The record that is an agent's own.
#[derive(Debug)]
struct Own {
    session: Session,
    written_ms: Option<u64>,
    since: Since,
}

/// Since when a record says what it says.
#[derive(Debug, Clone, Copy)]
struct Since {
    at_ms: u64,
    /// Whether it tells so itself. If not, it is when that was seen first: another look may have seen it at another time.
    told: bool,
}

impl Since {
    /// Of a record that says something new. A date that lies ahead, or before its process, tells nothing.
    fn first(session: &Session, written_ms: Option<u64>, subject: &Subject, now: Moment) -> Self {
        let may_be = |at_ms: &u64| *at_ms <= now.unix_ms && subject.ran_at(*at_ms);
        let told = session.status_updated_ms.filter(may_be);
        let written = || [session.updated_ms, written_ms].into_iter().flatten().find(may_be);
        Self { at_ms: told.or_else(written).unwrap_or(now.unix_ms), told: told.is_some() }
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            records: HashMap::new(),
            own: None,
            without: String::new(),
            job: None,
            blocked_since: Ok(None),
            conversation: None,
            search: None,
            undecided: None,
        }
    }
}

impl Agent {
    /// Looks at its records.
    pub fn look(&mut self, subject: &Subject, now: Moment) {
        match self.own_record(subject, now) {
            Ok((home, mut own)) => {
                let known = self.own.as_ref().filter(|known| own.session.repeats(&known.session));
                own.since = known.map_or(own.since, |known| known.since);
                self.blocked_since = self.blocked_since(&home, &own.session, now);
                self.find_conversation(&home, &own.session, now);
                self.own = Some(own);
            }
            Err(why) => *self = Self { records: std::mem::take(&mut self.records), without: why, ..Self::default() },
        }
    }

    /// The first record that one of its processes has written, and the folder that all records are in.
    fn own_record(&mut self, subject: &Subject, now: Moment) -> Result<(PathBuf, Own), String> {
        let mut why_not: Option<String> = None;
        self.records.retain(|id, _| subject.processes.iter().any(|(process, _)| process == id));
        for (id, program) in &subject.processes {
            match self.record_of(*id, program, subject, now) {
                Ok(found) => return Ok(found),
                Err(why) => why_not = why_not.or(why),
            }
        }
        Err(why_not.unwrap_or_else(|| "it keeps no record of its process".to_owned()))
    }

    /// The record of one process; `Err(None)`: there is none.
    fn record_of(
        &mut self,
        id: ProcessId,
        program: &Program,
        subject: &Subject,
        now: Moment,
    ) -> Result<(PathBuf, Own), Option<String>> {
        let home = home_of(program, "CLAUDE_CONFIG_DIR", ".claude")?;
        let path = home.join("sessions").join(format!("{}.json", id.pid));
        let file = self.records.entry(id).or_insert_with(|| Small::new(path.clone(), LARGEST_SESSION));
        if file.path() != path {
            *file = Small::new(path, LARGEST_SESSION);
        }
        let session = match file.read(session_file::parse) {
            Err(why) if why.missing => return Err(None),
            session => session.map_err(|why| format!("the record of its process: {why}"))?.clone(),
        };
        session.belongs_to(id)?;
        sees_alike(id, file.path())?;
        let written_ms = file.modified_ms();
        let since = Since::first(&session, written_ms, subject, now);
        Ok((home, Own { session, written_ms, since }))
    }

    /// Since when its background job waits for a person, if it is one and does.
    fn blocked_since(&mut self, home: &Path, session: &Session, now: Moment) -> Result<Option<u64>, String> {
        let known = self.job.take();
        if !session.background {
            return Ok(None);
        }
        let id = session.job.as_ref().ok_or("its background job is not named")?;
        let path = home.join("jobs").join(id.as_str()).join("state.json");
        let known = known.filter(|file| file.path() == path);
        let before = known.as_ref().and_then(|_| self.blocked_since.clone().ok()?);
        let file = self.job.insert(known.unwrap_or_else(|| Small::new(path, LARGEST_JOB)));
        let job = file.read(jobs::parse).map_err(|why| format!("the record of its background job: {why}"))?.clone();
        if !job.is_of(session.id.as_ref()) {
            return Err("the record of its background job is of another conversation".to_owned());
        }
        // Later writings change nothing about when it was asked.
        let may_be = |at_ms: &u64| (EARLIEST_MS..=now.unix_ms).contains(at_ms);
        let written = || [job.updated_ms, file.modified_ms()].into_iter().flatten().find(may_be);
        let asked = || before.or_else(written).unwrap_or(now.unix_ms);
        Ok(job.blocked.then(asked))
    }

    /// Where the transcript of its conversation is: below the folder that it works in, or else, because conversations move
    /// and long names are cut, the only one of that name anywhere.
    fn find_conversation(&mut self, home: &Path, session: &Session, now: Moment) {
        let Some(id) = &session.id else {
            (self.conversation, self.undecided) = (None, Some("its record names no conversation".to_owned()));
            return;
        };
        let is_its = |known: &&Conversation| known.path().file_stem().is_some_and(|stem| stem == id.as_str());
        let known = self.conversation.as_ref().filter(is_its);
        if known.is_some_and(|known| !known.is_missing()) {
            return;
        }
        let (projects, file) = (home.join("projects"), format!("{}.jsonl", id.as_str()));
        if known.is_some() {
            return self.search_for(&projects, &file, now);
        }
        let folder = session.cwd.as_deref().map(folder_name).unwrap_or_default();
        let expected = projects.join(folder).join(file);
        (self.conversation, self.search, self.undecided) = (Some(Conversation::new(expected)), None, None);
    }

    fn search_for(&mut self, projects: &Path, file: &str, now: Moment) {
        let search = self.search.get_or_insert_with(|| Folder::new(projects.to_owned(), MOST_PROJECTS, SEARCH_EVERY));
        let has_it =
            |project: &str| fs::symlink_metadata(projects.join(project).join(file)).is_ok_and(|found| found.is_file());
        match search.names(now, has_it) {
            Ok([]) => self.undecided = None,
            Ok([only]) => self.conversation = Some(Conversation::new(projects.join(only).join(file))),
            Ok(several) => self.undecided = Some(format!("{} transcripts have its id", several.len())),
            Err(why) => self.undecided = Some(format!("its transcript is not found: {why}")),
        }
    }

    /// Reads what goes on now.
    pub fn glance(&mut self, budget: &mut Budget, now: Moment) {
        if let Some(conversation) = &mut self.conversation {
            conversation.glance(budget, now);
        }
    }

    /// Looks further back for what goes on now, where the end of its transcript does not show it.
    pub fn look_further(&mut self, budget: &mut Budget, now: Moment) {
        if let Some(conversation) = &mut self.conversation {
            conversation.look_further(budget, now);
        }
    }

    /// Reads what goes on now with the agents inside it. `started_at_ms` is when its process started.
    pub fn glance_inside(&mut self, budget: &mut Budget, now: Moment, started_at_ms: u64) {
        if let Some(conversation) = &mut self.conversation {
            conversation.glance_inside(budget, now, started_at_ms);
        }
    }

    /// Whether its transcripts are not read to the end.
    pub fn is_behind(&self) -> bool {
        self.conversation.as_ref().is_some_and(Conversation::is_behind)
    }

    /// How much of them is left.
    pub fn behind(&self) -> u64 {
        self.conversation.as_ref().map_or(0, Conversation::behind)
    }

    /// Reads on in its transcripts.
    pub fn read_on(&mut self, budget: &mut Budget, now: Moment) {
        if let Some(conversation) = &mut self.conversation {
            conversation.read_on(budget, now);
        }
    }

    /// The transcript of its conversation.
    pub fn transcript(&self) -> Option<&Path> {
        self.conversation.as_ref().map(Conversation::path)
    }

    /// What it says, all in all. `started_at_ms` is when its process started; `shared` why its conversation is not its own, or
    /// not its alone.
    pub fn testimony(&self, started_at_ms: u64, shared: Option<&str>) -> Testimony {
        let mut said = Testimony::default();
        let gap = |field: &'static str, reason: String| Gap::new(field, reason);
        let Some(own) = &self.own else {
            said.unmeasured = ["evidence", "usage"].map(|field| gap(field, self.without.clone())).into();
            return said;
        };
        match self.own_evidence(own) {
            Ok(Some((evidence, told))) => {
                said.evidence.push(evidence);
                let undated = || gap("since", "its record does not say since when".to_owned());
                said.unmeasured.extend((!told).then(undated));
            }
            Ok(None) => {}
            Err(why) => said.unmeasured.push(gap("evidence", why)),
        }
        said.unmeasured.extend(self.blocked_since.as_ref().err().map(|why| gap("evidence", why.clone())));
        let lost = match (&self.conversation, &self.undecided) {
            _ if shared.is_some() => {
                let fields = if said.evidence.is_empty() { &["evidence", "usage"][..] } else { &["usage"] };
                fields.iter().flat_map(|field| shared.map(|why| gap(field, why.to_owned()))).collect()
            }
            (Some(conversation), undecided) if undecided.is_none() || !conversation.is_missing() => {
                said.evidence.extend(conversation.evidence(started_at_ms));
                said.calls.extend(conversation.calls(started_at_ms));
                let doubt = conversation.doubt().filter(|_| said.evidence.is_empty());
                let unread =
                    doubt.into_iter().flat_map(|why| ["evidence", ACTIVITY].map(|field| gap(field, why.to_owned())));
                said.unmeasured.extend(unread);
                let (usage, lost) = conversation.usage(started_at_ms);
                said.usage = usage;
                lost
            }
            (_, undecided) => undecided.iter().map(|why| gap("usage", why.clone())).collect(),
        };
        said.unmeasured.extend(lost);
        said
    }

    /// What its own record says, or its job's: the one that knows of the question; and whether it tells since when.
    fn own_evidence(&self, own: &Own) -> Result<Option<(Evidence, bool)>, String> {
        let said = own.session.evidence(own.since.at_ms);
        let dated = |said: Evidence| (said, own.since.told);
        let blocked = self.blocked_since.as_ref().copied().unwrap_or_default();
        match (said, blocked) {
            (Some(said), _) if said.claim == Claim::Waiting => Ok(Some(dated(said))),
            // Its date is that of the writing.
            (_, Some(since_ms)) => Ok(Some((Job::evidence(since_ms), false))),
            (Some(said), None) if own.session.parked && said.claim == Claim::Working => {
                Ok(self.parked(own, said).map(dated))
            }
            (None, None) => Err("the record of its process has no status".to_owned()),
            (said, None) => Ok(said.map(dated)),
        }
    }

    /// What a record is worth that says "busy" while its conversation was parked: the word stays when the turn has gone on
    /// to the background. Only if the transcript goes on, too, there is a new turn, and that speaks for itself.
    fn parked(&self, own: &Own, busy: Evidence) -> Option<Evidence> {
        let parked_ms = own.session.updated_ms.or(own.written_ms).unwrap_or(busy.at_ms);
        let last_ms = self.conversation.as_ref().and_then(Conversation::last_ms);
        let goes_on = last_ms.is_some_and(|last| last > parked_ms.saturating_add(PARKING_MS));
        let detail = Some("its turn was parked in the background".to_owned());
        (!goes_on).then_some(Evidence { claim: Claim::Idle, detail, at_ms: parked_ms, ..busy })
    }
}

/// The name of a project's folder: its path, with `-` for all that is neither letter nor digit.
fn folder_name(cwd: &Path) -> String {
    cwd.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
