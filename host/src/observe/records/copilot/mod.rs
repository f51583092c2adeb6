//! Copilot's sessions. A folder for each below `session-state`, with the events in it and a lock that is named after the
//! process which has the session.
//!
//! Locks outlive processes that were ended by force, and one that was refused a session may keep a lock on it: a lock counts
//! only if it is younger than the process, and a process with several has said nothing that can be decided.

pub(super) mod events;

use super::folder::Folder;
use super::follow::Followed;
use super::{Records, Subject, Testimony, home_of};
use crate::clock::Moment;
use crate::files::Stamp;
use crate::observe::facts::Gap;
use crate::observe::processes::ProcessId;
use events::Events;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So many sessions are looked through for a lock.
const MOST_SESSIONS: usize = 20_000;

/// How long a list of sessions stands.
const LIST_FOR: Duration = Duration::from_secs(5);

/// Reads the events of Copilot.
#[derive(Debug, Default)]
pub struct Copilot {
    /// The folders of sessions, by where they are.
    sessions: HashMap<PathBuf, Folder>,
    /// The sessions that each agent has locked, by its root, and when they were looked for: there may be thousands.
    found: HashMap<ProcessId, (Vec<Lock>, Duration)>,
    events: Followed<Events>,
}

/// A session's folder, and the process that is to have it locked.
type Lock = (PathBuf, u32);

impl Copilot {
    /// The events of the only session that one of the agent's processes has locked.
    fn session(&mut self, agent: &Subject, now: Moment) -> Result<PathBuf, String> {
        let Some((root, _)) = agent.processes.first() else { return Err("it has no process".to_owned()) };
        let stands = |(locks, at): &(Vec<Lock>, Duration)| {
            now.steady.saturating_sub(*at) < LIST_FOR
                && locks.iter().all(|(session, pid)| is_locked(session, *pid, agent))
        };
        let found = match self.found.remove(root).filter(stands) {
            Some(found) => found,
            None => (self.locked(agent, now)?, now.steady),
        };
        match self.found.entry(*root).insert_entry(found).get().0.as_slice() {
            [] => Err("no session has a lock of this process".to_owned()),
            [(session, _)] => Ok(session.join("events.jsonl")),
            several => Err(format!("it has locks on {} sessions; which one is meant is not decided", several.len())),
        }
    }

    fn testimony(&mut self, agent: &Subject, session: &Path, now: Moment) -> Result<Testimony, String> {
        let said = self.events.read(session, now)?;
        let events = said.parser;
        let mut unmeasured = said.gaps(events.statements().next().is_some());
        unmeasured.push(gap("input-tokens", "Copilot records them when a session ends"));
        if said.whole && !events.is_whole() {
            unmeasured.push(gap("output-tokens", "its record is too long to be summed up from its beginning"));
        }
        let evidence = events.statements().filter(|said| agent.ran_at(said.at_ms)).collect();
        Ok(Testimony { evidence, usage: events.usage(|at_ms| agent.ran_at(at_ms)).filter(|_| said.whole), unmeasured })
    }

    /// Looks through all sessions for those that one of the agent's processes has locked.
    fn locked(&mut self, agent: &Subject, now: Moment) -> Result<Vec<Lock>, String> {
        let mut locked = Vec::new();
        for (id, program) in &agent.processes {
            let folder = home_of(program, "COPILOT_HOME", ".copilot")?.join("session-state");
            let new = || Folder::new(folder.clone(), MOST_SESSIONS, LIST_FOR);
            let sessions = self.sessions.entry(folder.clone()).or_insert_with(new).names(now, |_| true);
            let sessions = sessions.map_err(|why| format!("its sessions cannot be listed: {why}"))?;
            let sessions = sessions.iter().map(|session| folder.join(session));
            let mine = sessions.filter(|session| is_locked(session, id.pid, agent));
            locked.extend(mine.map(|session| (session, id.pid)));
        }
        Ok(locked)
    }
}

impl Records for Copilot {
    fn reads(&self, kind: &str) -> bool {
        kind == "copilot"
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.events.begin();
        self.found.retain(|root, _| subjects.iter().any(|agent| agent.processes.iter().any(|(id, _)| id == root)));
        if subjects.is_empty() {
            self.sessions.clear();
        }
        let sessions: Vec<_> = subjects.iter().map(|agent| self.session(agent, now)).collect();
        let mut order: Vec<_> = (0..subjects.len()).collect();
        order.sort_by_cached_key(|at| sessions[*at].as_ref().map_or(0, |path| self.events.behind(path)));
        let mut said = vec![Testimony::default(); subjects.len()];
        for at in order {
            let session = sessions[at].clone();
            said[at] = session.and_then(|session| self.testimony(subjects[at], &session, now)).into();
        }
        said
    }
}

fn gap(field: &'static str, reason: &str) -> Gap {
    Gap { field: field.into(), reason: reason.to_owned() }
}

/// Whether a session has a lock of the agent's process with this pid, made since the agent started.
fn is_locked(session: &Path, pid: u32, agent: &Subject) -> bool {
    let lock = Stamp::of_itself(&session.join(format!("inuse.{pid}.lock")));
    lock.ok().and_then(|lock| lock.modified_ms()).is_some_and(|made_ms| agent.ran_at(made_ms))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{home, now, subject, undecided};
    use super::*;
    use crate::observe::facts::{Claim, Usage};
    use std::fs;
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
            let reader = Copilot::default();
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

        fn agent(&self) -> Subject {
            subject("copilot", home(self.home.path()))
        }

        /// What is found of the agent with pid 4242 so many seconds after the beginning.
        fn look(&mut self, second: u64) -> Testimony {
            self.reader.read(&[&self.agent()], now(second)).remove(0)
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
        let before = SystemTime::UNIX_EPOCH + Duration::from_millis(stage.agent().started_at_ms - 60_000);
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
    fn a_lock_that_is_gone_is_missed_at_once_and_sessions_are_looked_through_only_now_and_then() {
        let mut stage = Stage::new();
        let lock = stage.session("a", &["assistant.turn_start"], 4242);
        assert_eq!(stage.look(0).evidence.len(), 1);
        let other = stage.session("b", &["assistant.turn_end"], 4242);
        assert_eq!(stage.look(4).evidence[0].claim, Claim::Working, "the other one is not seen yet");
        assert!(undecided(&stage.look(5)).contains("locks on 2 sessions"));
        fs::remove_file(lock).unwrap();
        assert_eq!(stage.look(6).evidence[0].claim, Claim::Idle);
        fs::remove_file(other).unwrap();
        assert!(undecided(&stage.look(7)).contains("no session has a lock"));
    }

    #[test]
    fn what_happened_before_the_process_started_is_not_its_doing() {
        let mut stage = Stage::new();
        stage.session("resumed", &["assistant.turn_start", "permission.requested"], 4242);
        let mut later = stage.agent();
        later.started_at_ms += 3_600_000;
        assert_eq!(stage.reader.read(&[&later], now(0))[0].evidence, []);
    }

    #[test]
    fn an_environment_that_is_closed_is_the_reason() {
        let closed = subject("copilot", Err("permission denied".to_owned()));
        let said = Copilot::default().read(&[&closed], now(0)).remove(0);
        assert!(undecided(&said).contains("permission denied"), "{said:?}");
    }
}
