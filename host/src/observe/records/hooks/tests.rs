//! Which agent a note belongs to, and what is made of it by the policy.

use super::event::Event;
use super::note::{Change, change, file_name};
use super::*;
use crate::clock::{Clock as _, SystemClock};
use crate::observe::facts::Claim;
use crate::observe::processes::{Ancestor, Lineage, Program};
use std::sync::Arc;

/// A state directory with notes.
struct Desk {
    state: tempfile::TempDir,
    reader: Hooks,
}

fn machine() -> Machine {
    Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() }
}

fn id(pid: u32) -> ProcessId {
    ProcessId { pid, start: u64::from(pid) * 10 }
}

/// An agent with these processes.
fn subject(kind: &str, pids: &[u32]) -> Subject {
    let unknown = || Err("unknown".to_owned());
    let program = Arc::new(Program {
        exe: unknown().map(|()| PathBuf::new()),
        argv: Err(String::new()),
        cwd: Err(String::new()),
        env: Err(String::new()),
        uid: None,
    });
    let processes = pids.iter().map(|&pid| (id(pid), Arc::clone(&program))).collect();
    Subject {
        kind: kind.into(),
        processes,
        started_at_ms: 0,
        conversation: None,
        open: Vec::new(),
        children: vec![],
        calls: vec![],
    }
}

fn event(name: &str, conversation: &str) -> Event {
    Event { name: name.into(), conversation: Some(conversation.into()), ..Event::default() }
}

impl Desk {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir(state.path().join(FOLDER)).unwrap();
        let reader = Hooks::new(state.path(), machine());
        Self { state, reader }
    }

    fn folder(&self) -> PathBuf {
        self.state.path().join(FOLDER)
    }

    /// Notes an event that a process with these ancestors has sent.
    fn send(&self, kind: &str, event: Event, at_ms: u64, ancestors: &[u32]) {
        self.send_from(machine(), kind, event, at_ms, ancestors);
    }

    fn send_from(&self, machine: Machine, kind: &str, event: Event, at_ms: u64, ancestors: &[u32]) {
        // None of the tests' processes is there; a shell that is gone is no sender, though.
        let comm = |pid| if pid == 99 { "sh" } else { "node" }.to_owned();
        let ancestors = ancestors.iter().map(|&pid| Ancestor { id: id(pid), comm: comm(pid) }).collect();
        let from = Lineage { machine, ancestors };
        let file = self.folder().join(file_name(kind, &event, &from));
        let Change::Write(note) = change(read_note(&file).as_ref(), kind, event, at_ms, from) else {
            panic!("is noted")
        };
        // As the writer does it: a new file takes the old one's place.
        let new = self.folder().join("new");
        fs::write(&new, serde_json::to_vec(&note).unwrap()).unwrap();
        fs::rename(new, file).unwrap();
    }

    /// The words that are heard of each of the agents.
    fn hear(&mut self, subjects: &[Subject]) -> Vec<Vec<String>> {
        let subjects: Vec<&Subject> = subjects.iter().collect();
        let found = self.reader.read(&subjects, SystemClock::default().now());
        found.into_iter().map(|said| said.evidence.into_iter().map(|evidence| evidence.word).collect()).collect()
    }
}

#[test]
fn a_note_belongs_to_the_nearest_agent_that_its_sender_descends_from() {
    let mut desk = Desk::new();
    desk.send("codex", event("Stop", "a"), 1, &[99, 52, 42, 1]);
    let agents = [subject("claude", &[42]), subject("codex", &[51, 52])];
    assert_eq!(desk.hear(&agents), [vec![], vec!["Stop".to_owned()]]);
    assert_eq!(desk.hear(&agents[..1]), [Vec::<String>::new()], "one that is no row speaks for nobody else");
    let declared = [subject("process", &[52])];
    assert_eq!(desk.hear(&declared), [["Stop"]], "one that was not recognised may be of any kind");
}

#[test]
fn what_would_tell_that_an_agent_waits_is_said_until_it_tells_anything() {
    let mut desk = Desk::new();
    let gaps = |desk: &mut Desk, kind| {
        let said = desk.reader.read(&[&subject(kind, &[42])], SystemClock::default().now()).remove(0);
        said.unmeasured.into_iter().map(|gap| (gap.field.into_owned(), gap.by_design)).collect::<Vec<_>>()
    };
    assert_eq!(gaps(&mut desk, "codex"), [("waiting".to_owned(), true)]);
    for other in ["claude", "cursor", "amp"] {
        assert_eq!(gaps(&mut desk, other), [], "{other}");
    }
    desk.send("codex", event("Stop", "a"), 1, &[42]);
    assert_eq!(gaps(&mut desk, "codex"), []);
}

#[test]
fn what_is_about_one_of_several_conversations_is_said_of_no_other() {
    let mut desk = Desk::new();
    desk.send("codex", event("PermissionRequest", "b"), 1, &[42]);
    desk.send("codex", event("Stop", "closed"), 2, &[42]);
    let several = Subject { open: vec!["a".to_owned(), "b".to_owned()], ..subject("codex", &[42]) };
    let said = desk.reader.read(&[&several], SystemClock::default().now()).remove(0);
    let of: Vec<_> = said.conversations.iter().map(|of| (of.id.as_str(), of.evidence[0].word.as_str())).collect();
    assert_eq!((of, said.evidence.len()), (vec![("b", "PermissionRequest")], 0));
    let one = Subject { open: vec!["b".to_owned()], ..several };
    assert_eq!(desk.hear(&[one]), [["Stop"]], "one that keeps no record is the agent's");
}

#[test]
fn an_agent_without_a_row_speaks_for_nobody_whether_it_lives_or_not() {
    let mut desk = Desk::new();
    let alive = crate::observe::processes::lineage().unwrap().ancestors[0].id;
    let inner = |alive: ProcessId| {
        let ancestor = |id, comm: &str| Ancestor { id, comm: comm.to_owned() };
        let ancestors = vec![ancestor(id(99), "sh"), ancestor(alive, "node"), ancestor(id(42), "claude")];
        Lineage { machine: machine(), ancestors }
    };
    for (n, (sender, programs, heard)) in
        [(alive, vec![], 1), (alive, vec![alive], 0), (id(43), vec![], 0)].into_iter().enumerate()
    {
        let event = event("SessionEnd", &n.to_string());
        let Change::Write(note) = change(None, "claude", event, 1, inner(sender)) else { panic!("is noted") };
        fs::write(desk.folder().join("one.json"), serde_json::to_vec(&note).unwrap()).unwrap();
        desk.reader.learn(&programs);
        desk.reader.read = None;
        desk.reader.notes.clear();
        assert_eq!(desk.hear(&[subject("claude", &[42])])[0].len(), heard, "{n}");
        for kind in ["copilot", "qwen", "aider", "goose", "codex"] {
            assert_eq!(desk.hear(&[subject(kind, &[42])])[0].len(), 0, "{kind} {n}");
        }
    }
}

#[test]
fn a_pid_alone_is_nobody() {
    let mut desk = Desk::new();
    desk.send("claude", event("Stop", "a"), 1, &[42]);
    let mut other = subject("claude", &[42]);
    other.processes[0].0.start += 1;
    assert_eq!(desk.hear(&[other]), [Vec::<String>::new()]);
    let restarted = Machine { boot_id: "another".to_owned(), ..machine() };
    desk.send_from(restarted, "claude", event("Stop", "b"), 1, &[43]);
    let contained = Machine { pid_namespace: "pid:[2]".to_owned(), ..machine() };
    desk.send_from(contained, "claude", event("Stop", "c"), 1, &[44]);
    let agents = [subject("claude", &[43]), subject("claude", &[44])];
    assert_eq!(desk.hear(&agents), [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn what_changes_is_read_and_what_is_gone_is_forgotten() {
    let mut desk = Desk::new();
    let agent = [subject("claude", &[42])];
    assert_eq!(desk.hear(&agent), [Vec::<String>::new()]);
    desk.send("claude", event("UserPromptSubmit", "a"), 1, &[42]);
    assert_eq!(desk.hear(&agent), [["UserPromptSubmit"]]);
    desk.send("claude", event("PostToolUse", "a"), 2, &[42]);
    assert_eq!(desk.hear(&agent), [["UserPromptSubmit", "PostToolUse"]]);
    desk.send("claude", event("Stop", "a"), 3, &[42]);
    assert_eq!(desk.hear(&agent), [["Stop"]]);
    fs::remove_dir_all(desk.folder()).unwrap();
    assert_eq!(desk.hear(&agent), [Vec::<String>::new()]);
}

#[test]
fn a_folder_that_has_not_changed_is_not_read_again() {
    let mut desk = Desk::new();
    let agent = [subject("claude", &[42])];
    desk.send("claude", event("Stop", "a"), 1, &[42]);
    let later = Moment { unix_ms: SystemClock::default().now().unix_ms + 10_000, steady: Duration::ZERO };
    desk.reader.refresh(later);
    assert!(desk.reader.read.is_some());
    desk.reader.notes.clear();
    assert_eq!(desk.hear(&agent), [Vec::<String>::new()], "what was known counts");
    desk.send("claude", event("Stop", "b"), 1, &[42]);
    assert_eq!(desk.hear(&agent), [["Stop", "Stop"]]);
}

#[test]
fn what_is_no_note_says_nothing() {
    let mut desk = Desk::new();
    let folder = desk.folder();
    fs::write(folder.join("bad.json"), "{").unwrap();
    fs::write(folder.join("other.json"), "{\"kind\": \"claude\"}").unwrap();
    fs::write(folder.join("large.json"), vec![b' '; usize::try_from(LARGEST).unwrap() + 1]).unwrap();
    fs::create_dir(folder.join("folder.json")).unwrap();
    #[cfg(unix)]
    crate::files::make_pipe(&folder.join("pipe.json"));
    desk.send("claude", event("Stop", "a"), 1, &[42]);
    assert_eq!(desk.hear(&[subject("claude", &[42])]), [["Stop"]]);
}

#[test]
fn of_very_many_notes_those_of_living_senders_are_read_and_what_is_left_out_is_said() {
    let mut desk = Desk::new();
    // Whatever has started these tests, here it is an agent.
    let alive = crate::observe::processes::lineage().unwrap().ancestors.remove(0).id;
    let alive = Ancestor { id: alive, comm: "claude".to_owned() };
    let from = |ancestor| Lineage { machine: machine(), ancestors: vec![ancestor] };
    let asked = event("PermissionRequest", "a");
    let Change::Write(note) = change(None, "claude", asked.clone(), 1, from(alive.clone())) else { panic!("is noted") };
    let mine = desk.folder().join(file_name("claude", &asked, &from(alive.clone())));
    fs::write(mine, serde_json::to_vec(&note).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let ended = Ancestor { id: ProcessId { start: alive.id.start + 1, ..alive.id }, comm: "node".to_owned() };
    for n in 0..MOST {
        let name = file_name("claude", &event("Stop", &n.to_string()), &from(ended.clone()));
        fs::write(desk.folder().join(name), "{}").unwrap();
    }
    let agent = Subject {
        processes: vec![(alive.id, subject("claude", &[1]).processes.remove(0).1)],
        ..subject("claude", &[])
    };
    let mut hear = || desk.reader.read(&[&agent], SystemClock::default().now()).remove(0);
    let said = hear();
    assert_eq!((said.evidence[0].word.as_str(), said.unmeasured.len()), ("PermissionRequest", 0));
    let folder = desk.state.path().join(FOLDER);
    for n in 0..MOST {
        fs::write(folder.join(format!("{n}.json")), "{}").unwrap();
    }
    let said = hear();
    assert_eq!(said.evidence[0].word, "PermissionRequest");
    assert_eq!(said.unmeasured[0].reason, "1 of the notes of hooks were not read: more than 1000 are there");
}

#[test]
fn a_folder_that_cannot_be_read_is_told_of_agents_that_could_have_sent_something() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join(FOLDER), "a file").unwrap();
    let mut reader = Hooks::new(state.path(), machine());
    let (claude, aider) = (subject("claude", &[42]), subject("aider", &[43]));
    let found = reader.read(&[&claude, &aider], SystemClock::default().now());
    assert!(found[0].unmeasured[0].reason.contains("cannot be read"), "{found:#?}");
    assert_eq!(found[1], Testimony::default());
}

#[test]
fn an_agent_is_in_the_conversation_of_its_newest_event() {
    let mut desk = Desk::new();
    for (conversation, at_ms, agent) in [("a", 5, 42), ("b", 9, 42), ("c", 7, 43)] {
        desk.send("opencode", event("session.idle", conversation), at_ms, &[agent]);
    }
    let agents = [subject("opencode", &[42]), subject("opencode", &[43]), subject("opencode", &[44])];
    let found = desk.reader.conversations(&agents.each_ref(), SystemClock::default().now());
    assert_eq!(found, [Some("b".to_owned()), Some("c".to_owned()), None]);
}

#[test]
fn evidence_has_the_events_word_and_time() {
    let mut desk = Desk::new();
    let asked = Event { tool: Some("Bash".into()), ..event("PermissionRequest", "a") };
    desk.send("claude", asked, 1234, &[42]);
    let status = Event { about: Some("frobnicating".into()), ..event("session.status", "b") };
    desk.send("opencode", status, 5, &[43]);
    let agents = [subject("claude", &[42]), subject("opencode", &[43])];
    let found = desk.reader.read(&[&agents[0], &agents[1]], SystemClock::default().now());
    let evidence = |claim, word: &str, detail: Option<&str>, at_ms| Evidence {
        source: Source::Hook,
        claim,
        word: word.to_owned(),
        detail: detail.map(str::to_owned),
        at_ms,
    };
    let asked = evidence(Claim::Waiting, "PermissionRequest", Some("permission: Bash"), 1234);
    assert_eq!(found[0].evidence, [asked]);
    assert_eq!(found[1].evidence, [evidence(Claim::Unknown, "session.status frobnicating", None, 5)]);
}

#[test]
fn an_agent_that_looks_like_a_shell_speaks_for_nobody_else_when_it_has_ended() {
    let mut desk = Desk::new();
    let (inner, outer) = (subject("claude", &[99]), subject("claude", &[42]));
    desk.send("claude", event("PermissionRequest", "inner"), 1, &[99, 42]);
    assert_eq!(desk.hear(&[inner, outer.clone()]), [vec!["PermissionRequest".to_owned()], vec![]]);
    assert_eq!(desk.hear(std::slice::from_ref(&outer)), [Vec::<String>::new()]);
    for note in fs::read_dir(desk.folder()).unwrap() {
        fs::remove_file(note.unwrap().path()).unwrap();
    }
    desk.hear(&[outer]);
    assert!(desk.reader.agents.is_empty(), "whom no note names is forgotten");
}

#[test]
fn a_question_ends_with_its_own_call_in_its_own_conversation() {
    let desk = Desk::new();
    let asks = Event { call: Some("c1".to_owned()), ..event("PermissionRequest", "mine") };
    desk.send("codex", asks, 1000, &[42]);
    let file = fs::read_dir(desk.folder()).unwrap().next().unwrap().unwrap();
    let note = read_note(&file.path()).unwrap();
    let calls = |conversation: &str, open: &[&str], last_ms| Calls {
        conversation: conversation.to_owned(),
        open: open.iter().map(ToString::to_string).collect(),
        last_ms,
    };
    let other = calls("other", &[], 2000);
    let waits = |mine: Calls| !evidence(&note, &[other.clone(), mine]).is_empty();
    assert!(waits(calls("mine", &["c1"], 2000)) && waits(calls("mine", &[], 500)));
    assert!(!waits(calls("mine", &["c2"], 2000)));
    assert!(!evidence(&note, &[other]).is_empty());
}
