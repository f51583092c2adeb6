//! Copilot's sessions. A folder for each below `session-state`, with the events in it and a lock that is named after the
//! process which has the session.
//!
//! Locks outlive processes that were ended by force, and one that was refused a session may keep a lock on it: a lock counts
//! only if it is younger than the process, and a process with several has said nothing that can be decided.

mod events;

use super::follow::Followed;
use super::{Records, Subject, Testimony, homes};
use crate::clock::Moment;
use crate::files::Stamp;
use crate::observe::facts::Gap;
use events::Events;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So many sessions are looked through for a lock. Nobody has more.
const MOST_SESSIONS: usize = 20_000;

/// How long a list of sessions stands.
const LIST_FOR: Duration = Duration::from_secs(5);

/// Reads the events of Copilot.
#[derive(Debug)]
pub struct Copilot {
    home: Option<PathBuf>,
    lists: HashMap<PathBuf, List>,
    events: Followed<Events>,
}

/// The sessions in a folder, and when they were listed.
#[derive(Debug)]
struct List {
    sessions: Vec<PathBuf>,
    at: Duration,
}

impl Copilot {
    /// A reader for whom `home` is the home directory.
    pub fn new(home: Option<PathBuf>) -> Self {
        Self { home, lists: HashMap::new(), events: Followed::default() }
    }

    fn testimony(&mut self, agent: &Subject, now: Moment) -> Result<Testimony, String> {
        let folder = homes::folder(agent, "COPILOT_HOME", self.home.as_deref(), ".copilot")?.join("session-state");
        let sessions = self.sessions(&folder, now)?;
        let locked: Vec<&PathBuf> = sessions.iter().filter(|session| is_locked(session, agent)).collect();
        let session = match locked.as_slice() {
            [] => return Err("no session has a lock of this process".to_owned()),
            [session] => session.join("events.jsonl"),
            several => {
                return Err(format!("it has locks on {} sessions; which one is meant is not decided", several.len()));
            }
        };
        let events = self.events.read(&session, now)?;
        let mut unmeasured = vec![gap("input-tokens", "Copilot records them when a session ends")];
        if !events.is_whole() {
            unmeasured.push(gap("output-tokens", "its record is too long to be summed up from its beginning"));
        }
        let evidence = events.statements().filter(|said| agent.ran_at(said.at_ms)).collect();
        Ok(Testimony { evidence, usage: events.usage(), unmeasured })
    }

    /// The folders of all sessions.
    fn sessions(&mut self, folder: &Path, now: Moment) -> Result<&[PathBuf], String> {
        let fresh = |list: &List| now.steady.saturating_sub(list.at) < LIST_FOR;
        if !self.lists.get(folder).is_some_and(fresh) {
            let entries = fs::read_dir(folder).map_err(|error| format!("its sessions cannot be listed: {error}"))?;
            let sessions = entries.flatten().take(MOST_SESSIONS).map(|entry| entry.path()).collect();
            self.lists.insert(folder.to_owned(), List { sessions, at: now.steady });
        }
        Ok(self.lists.get(folder).map(|list| list.sessions.as_slice()).unwrap_or_default())
    }
}

impl Records for Copilot {
    fn reads(&self, kind: &str) -> bool {
        kind == "copilot"
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.events.begin();
        if subjects.is_empty() {
            self.lists.clear();
        }
        subjects.iter().map(|agent| self.testimony(agent, now).into()).collect()
    }
}

fn gap(field: &'static str, reason: &str) -> Gap {
    Gap { field: field.into(), reason: reason.to_owned() }
}

/// Whether a session has a lock of one of the agent's processes, made since the agent started.
fn is_locked(session: &Path, agent: &Subject) -> bool {
    let made_since = |lock: Stamp| lock.modified_ms().is_some_and(|made_ms| agent.ran_at(made_ms));
    agent
        .processes
        .iter()
        .any(|(id, _)| Stamp::of_itself(&session.join(format!("inuse.{}.lock", id.pid))).is_ok_and(made_since))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{now, subject, undecided};
    use super::*;
    use crate::observe::facts::{Claim, Usage};
    use std::time::SystemTime;

    /// A home directory with sessions, and a reader of them.
    struct Stage {
        home: tempfile::TempDir,
        reader: Copilot,
    }

    impl Stage {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            fs::create_dir_all(home.path().join(".copilot/session-state")).unwrap();
            let reader = Copilot::new(Some(home.path().to_owned()));
            Self { home, reader }
        }

        /// A session with these events and a lock of the process with this pid.
        fn session(&self, name: &str, events: &[&str], pid: u32) -> PathBuf {
            let folder = self.home.path().join(".copilot/session-state").join(name);
            fs::create_dir_all(&folder).unwrap();
            let line = |event: &&str| {
                format!("{{\"timestamp\":\"2026-09-06T10:00:09Z\",\"type\":\"{event}\",\"data\":{{}}}}\n")
            };
            fs::write(folder.join("events.jsonl"), events.iter().map(line).collect::<String>()).unwrap();
            let lock = folder.join(format!("inuse.{pid}.lock"));
            fs::write(&lock, pid.to_string()).unwrap();
            lock
        }

        /// What is found of the agent with pid 4242 so many seconds after the beginning.
        fn look(&mut self, second: u64) -> Testimony {
            self.reader.read(&[&subject("copilot", Ok(vec![]))], now(second)).remove(0)
        }
    }

    #[test]
    fn a_session_is_that_of_the_process_that_has_locked_it() {
        let mut stage = Stage::new();
        assert!(undecided(&stage.look(0)).contains("no session has a lock"));
        stage.session("other", &["assistant.turn_start"], 4243);
        stage.session("mine", &["assistant.turn_start", "permission.requested"], 4242);
        assert!(undecided(&stage.look(1)).contains("no session has a lock"), "the list of sessions still stands");
        let said = stage.look(6);
        assert_eq!(said.evidence.iter().map(|said| said.claim).collect::<Vec<_>>(), [Claim::Working, Claim::Waiting]);
        assert_eq!(said.usage, Some(Usage { subagents: Some(0), ..Usage::default() }));
        stage.session("mine", &["assistant.turn_start", "assistant.turn_end"], 4242);
        assert_eq!(stage.look(7).evidence[0].claim, Claim::Idle);
    }

    #[test]
    fn a_lock_that_is_older_than_the_process_is_another_ones() {
        let mut stage = Stage::new();
        let lock = stage.session("old", &["assistant.turn_start"], 4242);
        let before =
            SystemTime::UNIX_EPOCH + Duration::from_millis(subject("copilot", Ok(vec![])).started_at_ms - 60_000);
        fs::File::options().write(true).open(lock).unwrap().set_modified(before).unwrap();
        assert!(undecided(&stage.look(0)).contains("no session has a lock"));
    }

    #[test]
    fn a_process_with_two_locks_has_said_nothing() {
        let mut stage = Stage::new();
        stage.session("a", &["assistant.turn_start"], 4242);
        stage.session("b", &["assistant.turn_end"], 4242);
        assert!(undecided(&stage.look(0)).contains("locks on 2 sessions"));
    }

    #[test]
    fn what_happened_before_the_process_started_is_not_its_doing() {
        let mut stage = Stage::new();
        stage.session("resumed", &["assistant.turn_start", "permission.requested"], 4242);
        let mut later = subject("copilot", Ok(vec![]));
        later.started_at_ms += 3_600_000;
        assert_eq!(stage.reader.read(&[&later], now(0))[0].evidence, []);
    }

    #[test]
    fn without_sessions_the_reason_is_said() {
        let mut reader = Copilot::new(Some("/nowhere".into()));
        let said = reader.read(&[&subject("copilot", Ok(vec![]))], now(0)).remove(0);
        assert!(undecided(&said).contains("cannot be listed"), "{said:?}");
    }
}
