//! Qwen's registry of sessions, which names each process by its boot, its namespace and its start; and the chat of the
//! session that it names. Neither says whether a turn is open, but the chat has what each answer of the model has used.

mod chat;
mod registry;

use super::follow::Followed;
use super::{Records, Subject, Testimony, homes};
use crate::clock::Moment;
use crate::files::{Stamp, read_small_itself};
use crate::observe::facts::Gap;
use crate::observe::processes::{Machine, ProcessId};
use chat::Chat;
use registry::SessionId;
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest record of the registry. It has a dozen short fields.
const MAX_RECORD: u64 = 64 << 10;

/// So many projects are looked through for a chat.
const MOST_PROJECTS: usize = 20_000;

/// How soon a chat that is not there is looked for again: it begins with the first question.
const RETRY: Duration = Duration::from_secs(5);

/// Reads the registry and the chats of Qwen.
#[derive(Debug)]
pub struct Qwen {
    home: Option<PathBuf>,
    machine: Machine,
    found: HashMap<ProcessId, Found>,
    chats: Followed<Chat>,
}

/// Where a session's chat was found.
#[derive(Debug)]
struct Found {
    session: SessionId,
    chats: Vec<PathBuf>,
    at: Duration,
}

impl Qwen {
    /// A reader for whom `home` is the home directory, on this machine.
    pub fn new(home: Option<PathBuf>, machine: Machine) -> Self {
        Self { home, machine, found: HashMap::new(), chats: Followed::default() }
    }

    fn testimony(&mut self, agent: &Subject, now: Moment) -> Result<Testimony, String> {
        let folder = homes::folder(agent, "QWEN_HOME", self.home.as_deref(), ".qwen")?;
        let (process, session) = self.registered(agent, &folder.join("sessions"))?;
        let chat = self.chat(process, &session, &folder.join("projects"), now)?;
        let usage = self.chats.read(&chat, now)?.usage();
        let unmeasured =
            vec![Gap { field: "evidence".into(), reason: "Qwen does not record whether it works or waits".to_owned() }];
        Ok(Testimony { evidence: Vec::new(), usage, unmeasured })
    }

    /// Which of the agent's processes is in the registry, and what session it has.
    fn registered(&self, agent: &Subject, registry: &Path) -> Result<(ProcessId, SessionId), String> {
        for (id, _) in &agent.processes {
            let file = registry.join(format!("{}.json", id.pid));
            let session = match read_small_itself(&file, MAX_RECORD) {
                Ok((bytes, _)) => registry::session(&bytes, *id, &self.machine),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => Err(format!("cannot be read: {error}")),
            };
            return session.map(|session| (*id, session)).map_err(|why| format!("its record in the registry {why}"));
        }
        Err("it is not in the registry of sessions: only interactive ones are".to_owned())
    }

    /// The only chat of a session.
    fn chat(&mut self, id: ProcessId, session: &SessionId, projects: &Path, now: Moment) -> Result<PathBuf, String> {
        let good = |found: &Found| {
            found.session == *session && (found.chats.len() == 1 || now.steady.saturating_sub(found.at) < RETRY)
        };
        if !self.found.get(&id).is_some_and(good) {
            let entries = fs::read_dir(projects).into_iter().flatten().flatten().take(MOST_PROJECTS);
            let chats = entries.map(|entry| entry.path().join("chats").join(session.file()));
            let chats = chats.filter(|chat| Stamp::of_itself(chat).is_ok()).collect();
            self.found.insert(id, Found { session: session.clone(), chats, at: now.steady });
        }
        match self.found.get(&id).map(|found| found.chats.as_slice()).unwrap_or_default() {
            [] => Err("its session has no chat yet".to_owned()),
            [chat] => Ok(chat.clone()),
            several => Err(format!("its session has {} chats; which one is meant is not decided", several.len())),
        }
    }
}

impl Records for Qwen {
    fn reads(&self, kind: &str) -> bool {
        kind == "qwen"
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.chats.begin();
        let live = |id: &ProcessId| subjects.iter().any(|subject| subject.processes.iter().any(|(own, _)| own == id));
        self.found.retain(|id, _| live(id));
        subjects.iter().map(|agent| self.testimony(agent, now).into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{now, subject, undecided};
    use super::*;
    use serde_json::json;

    /// A home directory, and a reader of what Qwen keeps there.
    struct Stage {
        home: tempfile::TempDir,
        reader: Qwen,
    }

    impl Stage {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let machine = Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[9]".to_owned() };
            let reader = Qwen::new(Some(home.path().to_owned()), machine);
            Self { home, reader }
        }

        fn write(&self, name: &str, content: &str) {
            let path = self.home.path().join(".qwen").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// Registers the process with pid 4242 and this start.
        fn register(&self, start: u64) {
            let record = json!({
                "schemaVersion": 1, "pid": 4242, "procStart": format!("boot:{start}"), "pidNs": 9, "sessionId": "s-1",
                "ipcToken": "secret",
            });
            self.write("sessions/4242.json", &record.to_string());
        }

        /// What is found of that process, which started at 77, so many seconds after the beginning.
        fn look(&mut self, second: u64) -> Testimony {
            self.reader.read(&[&subject("qwen", Ok(vec![]))], now(second)).remove(0)
        }
    }

    const ANSWER: &str = "{\"type\":\"assistant\",\"model\":\"qwen3\",\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":3}}\n";

    #[test]
    fn a_chat_is_that_of_the_session_that_the_process_has_registered() {
        let mut stage = Stage::new();
        assert!(undecided(&stage.look(0)).contains("not in the registry"));
        stage.register(77);
        assert!(undecided(&stage.look(1)).contains("no chat yet"));
        stage.write("projects/-w-app/chats/other.jsonl", ANSWER);
        stage.write("projects/-w-app/chats/s-1.jsonl", &ANSWER.repeat(2));
        let said = stage.look(7);
        let usage = said.usage.unwrap();
        assert_eq!(
            (usage.model.as_deref(), usage.input_tokens, usage.output_tokens),
            (Some("qwen3"), Some(18), Some(6))
        );
        assert_eq!(said.evidence, []);
        assert_eq!(&*said.unmeasured[0].field, "evidence");
    }

    #[test]
    fn a_record_of_an_earlier_process_is_not_its_own() {
        let mut stage = Stage::new();
        stage.register(76);
        stage.write("projects/-w-app/chats/s-1.jsonl", ANSWER);
        assert!(undecided(&stage.look(0)).contains("earlier process"));
    }

    #[test]
    fn a_session_with_two_chats_has_said_nothing() {
        let mut stage = Stage::new();
        stage.register(77);
        stage.write("projects/-w-a/chats/s-1.jsonl", ANSWER);
        stage.write("projects/-w-b/chats/s-1.jsonl", ANSWER);
        assert!(undecided(&stage.look(0)).contains("2 chats"));
    }
}
