//! Qwen's own list of sessions, which names each process by its boot, its namespace and its start; and the chat of the
//! session that it names. Neither says whether a turn is open, but the chat has what each answer of the model has used.

pub(super) mod chat;
pub(super) mod registry;

use super::follow::Followed;
use super::small::Small;
use super::value::Id;
use super::{Records, Subject, Testimony, home_of, shared};
use crate::clock::Moment;
use crate::files::Stamp;
use crate::observe::facts::Gap;
use crate::observe::processes::{Machine, ProcessId};
use chat::Chat;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest record of the list. It has a dozen short fields.
const MAX_RECORD: u64 = 64 << 10;

/// So many projects are looked through for a chat.
const MOST_PROJECTS: usize = 20_000;

/// How soon a chat that is not there is looked for again: it begins with the first question.
const RETRY: Duration = Duration::from_secs(5);

/// Reads the list of sessions and the chats of Qwen.
#[derive(Debug)]
pub struct Qwen {
    machine: Machine,
    registered: HashMap<ProcessId, Registered>,
    chats: Followed<Chat>,
}

/// A process's record in that list, and where the chat of its session is.
#[derive(Debug)]
struct Registered {
    record: Small<Id>,
    found: Option<Found>,
}

/// The chats of a session, and when they were looked for.
#[derive(Debug)]
struct Found {
    session: Id,
    chats: Vec<PathBuf>,
    at: Duration,
}

impl Qwen {
    /// A reader for the processes of this machine.
    pub fn new(machine: Machine) -> Self {
        Self { machine, registered: HashMap::new(), chats: Followed::default() }
    }

    /// The chat of the session that one of the agent's processes has registered.
    fn chat(&mut self, agent: &Subject, now: Moment) -> Result<PathBuf, String> {
        for (process, program) in &agent.processes {
            let home = home_of(program, "QWEN_HOME", ".qwen")?;
            let new = || Registered::new(home.join("sessions").join(format!("{}.json", process.pid)));
            let registered = self.registered.entry(*process).or_insert_with(new);
            let Some(session) = registered.session(*process, &self.machine)? else { continue };
            return registered.chat(session, &home.join("projects"), now);
        }
        Err("Qwen's own list of sessions has no record of it: only interactive ones have".to_owned())
    }

    fn testimony(&mut self, chat: &Path, now: Moment) -> Result<Testimony, String> {
        let chat = self.chats.read(chat, now)?;
        let mut unmeasured = vec![Gap::by_design("evidence", "Qwen does not record whether it works or waits")];
        // Of a turn nothing would be said either way.
        unmeasured.extend(chat.gaps(true));
        Ok(Testimony { usage: chat.parser.usage(), unmeasured, ..Testimony::default() })
    }
}

impl Registered {
    fn new(record: PathBuf) -> Self {
        Self { record: Small::new(record, MAX_RECORD), found: None }
    }

    /// The session that the process has registered; `None`: it has none.
    fn session(&mut self, process: ProcessId, machine: &Machine) -> Result<Option<Id>, String> {
        match self.record.read(|bytes| registry::session(bytes, process, machine)) {
            Ok(session) => Ok(Some(session.clone())),
            Err(error) if error.missing => Ok(None),
            Err(error) => Err(format!("its record in Qwen's own list of sessions {error}")),
        }
    }

    /// The only chat of a session.
    fn chat(&mut self, session: Id, projects: &Path, now: Moment) -> Result<PathBuf, String> {
        let stands = |found: &Found| {
            found.session == session && (found.chats.len() == 1 || now.steady.saturating_sub(found.at) < RETRY)
        };
        let found = match self.found.take().filter(stands) {
            Some(found) => found,
            None => Found { chats: chats_of(&session, projects), session, at: now.steady },
        };
        match self.found.insert(found).chats.as_slice() {
            [] => Err("its conversation has no chat yet".to_owned()),
            [chat] => Ok(chat.clone()),
            several => Err(format!("its conversation has {} chats; which one is meant is not decided", several.len())),
        }
    }
}

/// The chats of a session, in whatever project.
fn chats_of(session: &Id, projects: &Path) -> Vec<PathBuf> {
    let projects = fs::read_dir(projects).into_iter().flatten().flatten().take(MOST_PROJECTS);
    let chats = projects.map(|project| project.path().join("chats").join(format!("{}.jsonl", session.as_str())));
    chats.filter(|chat| Stamp::of_itself(chat).is_ok()).collect()
}

impl Records for Qwen {
    fn kinds(&self) -> Vec<&'static str> {
        vec!["qwen"]
    }

    fn read(&mut self, subjects: &[&Subject], now: Moment) -> Vec<Testimony> {
        self.chats.begin();
        let live = |id: &ProcessId| subjects.iter().any(|subject| subject.processes.iter().any(|(own, _)| own == id));
        self.registered.retain(|id, _| live(id));
        let mut chats: Vec<_> = subjects.iter().map(|agent| agent.sees(self.chat(agent, now)?)).collect();
        let all = chats.iter().enumerate().filter_map(|(at, path)| Some((at, path.as_deref().ok()?)));
        for (at, why) in shared(subjects, all) {
            chats[at] = Err(why);
        }
        let mut order: Vec<_> = (0..subjects.len()).collect();
        order.sort_by_cached_key(|at| chats[*at].as_ref().map_or(0, |path| self.chats.behind(path)));
        let mut said = vec![Testimony::default(); subjects.len()];
        for at in order {
            let chat = chats[at].clone();
            said[at] = chat.and_then(|chat| self.testimony(&chat, now)).into();
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{home, now, subject, undecided};
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
            let reader = Qwen::new(machine);
            Self { home, reader }
        }

        fn write(&self, name: &str, content: &str) {
            let path = self.home.path().join(".qwen").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// Registers the process with pid 4242 and this start.
        fn register(&self, start: u64) {
            self.register_as(4242, start, "s-1");
        }

        fn register_as(&self, pid: u32, start: u64, session: &str) {
            let record = json!({
                "schemaVersion": 1, "pid": pid, "procStart": format!("boot:{start}"), "pidNs": 9, "sessionId": session,
                "ipcToken": "secret",
            });
            self.write(&format!("sessions/{pid}.json"), &record.to_string());
        }

        /// What is found of that process and of one more.
        fn look_at_both(&mut self, second: u64) -> Vec<Testimony> {
            let (one, mut two) = (subject("qwen", home(self.home.path())), subject("qwen", home(self.home.path())));
            two.processes[0].0.pid = 4243;
            self.reader.read(&[&one, &two], now(second))
        }

        /// What is found of that process, which started at 77, so many seconds after the beginning.
        fn look(&mut self, second: u64) -> Testimony {
            self.reader.read(&[&subject("qwen", home(self.home.path()))], now(second)).remove(0)
        }
    }

    const ANSWER: &str = "{\"type\":\"assistant\",\"model\":\"qwen3\",\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":3}}\n";

    #[test]
    fn a_chat_is_that_of_the_session_that_the_process_has_registered() {
        let mut stage = Stage::new();
        assert!(undecided(&stage.look(0)).contains("has no record of it"));
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
    fn how_many_lines_are_not_understood_is_said() {
        let mut stage = Stage::new();
        stage.register(77);
        stage.write("projects/-w-app/chats/s-1.jsonl", &format!("{ANSWER}{{]\n{}{{]\n", ANSWER.replace('9', "-9")));
        let said = stage.look(0);
        assert_eq!(said.usage.unwrap().input_tokens, Some(9));
        let gap = said.unmeasured.iter().find(|gap| gap.field == "usage").unwrap();
        assert_eq!(gap.reason, "3 lines of its record are not understood");
    }

    #[test]
    fn a_long_chat_keeps_no_short_one_waiting() {
        let mut stage = Stage::new();
        stage.register_as(4242, 77, "long");
        stage.register_as(4243, 77, "short");
        stage.write("projects/-w/chats/long.jsonl", &format!("{}\n", "x".repeat(9 << 20)));
        stage.write("projects/-w/chats/short.jsonl", ANSWER);
        let said = stage.look_at_both(0);
        let is_read = |gap: &Gap| &*gap.field == "usage" && gap.reason.contains("still being read");
        assert!(said[0].usage.is_none() && said[0].unmeasured.iter().any(is_read), "{:?}", said[0]);
        assert_eq!(said[1].usage.as_ref().unwrap().input_tokens, Some(9));
    }

    #[test]
    fn a_chat_that_two_processes_have_is_shown_of_neither() {
        let mut stage = Stage::new();
        stage.register_as(4242, 77, "s-1");
        stage.register_as(4243, 77, "s-1");
        stage.write("projects/-w/chats/s-1.jsonl", ANSWER);
        let said = stage.look_at_both(0);
        let why: Vec<_> = said.iter().map(undecided).collect();
        assert_eq!(why, [4243, 4242].map(|pid| format!("its conversation is that of process {pid} too")));
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
