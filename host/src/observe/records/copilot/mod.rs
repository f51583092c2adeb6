//! Copilot's sessions. A folder for each below `session-state`, with the events in it and a lock that is named after the
//! process which has the session.
//!
//! Locks outlive processes that were ended by force, and one that was refused a session may keep a lock on it: a lock counts
//! only if it is younger than the process, and a process with several has said nothing that can be decided.

pub(super) mod events;

use super::folder::Folder;
use super::follow::Followed;
use super::{Records, Subject, Testimony, gap, home_of, shared};
use crate::clock::Moment;
use crate::files::Stamp;
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
    /// The sessions that each process has locked, and until when no others are looked for, on the steady clock.
    locked: HashMap<ProcessId, (Duration, Vec<PathBuf>)>,
    events: Followed<Events>,
}

impl Copilot {
    /// The events of the only session that one of the agent's processes has locked.
    fn session(&mut self, agent: &Subject, now: Moment) -> Result<PathBuf, String> {
        match self.locked(agent, now)?.as_slice() {
            [] => Err("no conversation has a lock of this process".to_owned()),
            [session] => Ok(session.join("events.jsonl")),
            several => {
                Err(format!("it has locks on {} conversations; which one is meant is not decided", several.len()))
            }
        }
    }

    fn testimony(&mut self, agent: &Subject, session: &Path, now: Moment) -> Result<Testimony, String> {
        let said = self.events.read(session, now)?;
        let events = said.parser;
        let mut unmeasured = said.gaps(events.statements().next().is_some());
        unmeasured.push(gap("input-tokens", "Copilot records them when a conversation ends"));
        if said.whole && !events.is_whole() {
            unmeasured.push(gap("output-tokens", "its record is too long to be summed up from its beginning"));
        }
        let evidence = events.statements().filter(|said| agent.ran_at(said.at_ms)).collect();
        let usage = events.usage(|at_ms| agent.ran_at(at_ms)).filter(|_| said.whole);
        Ok(Testimony { evidence, usage, unmeasured, ..Testimony::default() })
    }

    /// The sessions that one of the agent's processes has locked.
    fn locked(&mut self, agent: &Subject, now: Moment) -> Result<Vec<PathBuf>, String> {
        let mut locked = Vec::new();
        for (id, program) in &agent.processes {
            let folder = home_of(program, "COPILOT_HOME", ".copilot")?.join("session-state");
            let is_locked = |session: &PathBuf| is_locked(session, id.pid, agent);
            // There may be thousands of sessions: all of them are looked through now and then, or when a lock is gone.
            let known = self.locked.get(id).filter(|(until, known)| now.steady < *until && known.iter().all(is_locked));
            if let Some((_, known)) = known {
                locked.extend_from_slice(known);
                continue;
            }
            let new = || Folder::new(folder.clone(), MOST_SESSIONS, LIST_FOR);
            let sessions = self.sessions.entry(folder.clone()).or_insert_with(new).names(now, |_| true);
            let sessions = sessions.map_err(|why| format!("its conversations cannot be listed: {why}"))?;
            let found: Vec<_> = sessions.iter().map(|session| folder.join(session)).filter(is_locked).collect();
            locked.extend_from_slice(&found);
            self.locked.insert(*id, (now.steady + LIST_FOR, found));
        }
        Ok(locked)
    }
}

impl Records for Copilot {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["copilot"]
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.events.begin();
        if subjects.is_empty() {
            self.sessions.clear();
        }
        let live = |id: &ProcessId| subjects.iter().any(|agent| agent.processes.iter().any(|(own, _)| own == id));
        self.locked.retain(|id, _| live(id));
        let mut sessions: Vec<_> = subjects.iter().map(|agent| agent.sees(self.session(agent, now)?)).collect();
        let all = sessions.iter().enumerate().filter_map(|(at, path)| Some((at, path.as_deref().ok()?)));
        for (at, why) in shared(subjects, all) {
            sessions[at] = Err(why);
        }
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
        assert!(undecided(&stage.look(0)).contains("no conversation has a lock"));
        stage.session("other", &["assistant.turn_start"], 4243);
        stage.session("mine", &["assistant.turn_start", "permission.requested"], 4242);
        assert!(undecided(&stage.look(1)).contains("no conversation has a lock"), "the list of sessions still stands");
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
        assert!(undecided(&stage.look(0)).contains("no conversation has a lock"));
    }

    #[test]
    fn a_process_with_two_locks_has_said_nothing() {
        let mut stage = Stage::new();
        stage.session("a", &["assistant.turn_start"], 4242);
        stage.session("b", &["assistant.turn_end"], 4242);
        assert!(undecided(&stage.look(0)).contains("locks on 2 conversations"));
    }

    #[test]
    fn a_session_that_is_known_is_no_more_looked_for_until_its_lock_is_gone() {
        let mut stage = Stage::new();
        let lock = stage.session("a", &["assistant.turn_start"], 4242);
        assert_eq!(stage.look(0).evidence.len(), 1);
        let other = stage.session("b", &["assistant.turn_end"], 4242);
        assert_eq!(stage.look(1).evidence.len(), 1, "others are not looked through at each look");
        assert!(undecided(&stage.look(5)).contains("locks on 2 conversations"), "but soon");
        fs::remove_file(lock).unwrap();
        assert_eq!(stage.look(6).evidence[0].claim, Claim::Idle, "a lock that is gone is seen at once");
        fs::remove_file(other).unwrap();
        assert!(undecided(&stage.look(7)).contains("no conversation has a lock"));
    }

    #[test]
    fn a_session_that_two_processes_have_locked_is_shown_of_neither() {
        let mut stage = Stage::new();
        stage.session("a", &["assistant.turn_start"], 4242);
        stage.session("a", &["assistant.turn_start"], 4243);
        let one = stage.agent();
        let mut two = stage.agent();
        two.processes[0].0.pid = 4243;
        let said = stage.reader.read(&[&one, &two], now(0));
        let why = said.iter().map(undecided).collect::<Vec<_>>();
        assert_eq!(why, [4243, 4242].map(|pid| format!("its conversation is that of process {pid} too")));
        assert_eq!(stage.reader.read(&[&one], now(1))[0].evidence.len(), 1, "alone it is its own");
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
