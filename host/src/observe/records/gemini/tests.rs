//! Chats are those of the agent whose hooks have named them.

use super::super::tests::{home, now, subject, undecided};
use super::*;
use crate::observe::facts::Claim;
use serde_json::{Value, json};
use std::fs;

const ID: &str = "1f2e3d4c-0000-4000-8000-000000000001";

/// A home directory with chats, and a reader of them.
struct Stage {
    home: tempfile::TempDir,
    reader: Gemini,
}

impl Stage {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), reader: Gemini::default() }
    }

    fn write(&self, project: &str, name: &str, content: &str) -> PathBuf {
        let folder = self.home.path().join(".gemini/tmp").join(project).join("chats");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), content).unwrap();
        folder.join(name)
    }

    /// A chat of this conversation that grows, with these messages.
    fn chat(&self, project: &str, id: &str, messages: &[Value]) -> PathBuf {
        let header = json!({"sessionId": id, "projectHash": "h", "startTime": "2026-09-06T10:00:00Z"});
        let lines: String = [&[header], messages].concat().iter().map(|line| format!("{line}\n")).collect();
        self.write(project, &format!("session-2026-09-06T10-00-{}.jsonl", &id[..8]), &lines)
    }

    fn agent(&self, conversation: Option<&str>) -> Subject {
        Subject { conversation: conversation.map(str::to_owned), ..subject("gemini", home(self.home.path())) }
    }

    /// What is found of an agent in this conversation, so many seconds after the beginning.
    fn look(&mut self, conversation: Option<&str>, second: u64) -> Testimony {
        let agent = self.agent(conversation);
        self.reader.read(&[&agent], now(second)).remove(0)
    }
}

fn message(id: &str, kind: &str) -> Value {
    let tokens = json!({"input": 10, "cached": 4, "output": 2, "total": 12});
    json!({"id": id, "timestamp": "2026-09-06T10:00:09Z", "type": kind, "content": "secret", "tokens": tokens,
        "model": "gemini-3-pro"})
}

#[test]
fn a_chat_is_that_of_the_agent_whose_hooks_have_told_its_id() {
    let mut stage = Stage::new();
    stage.chat("shop", ID, &[message("1", "gemini"), message("2", "user")]);
    let other = ID.replace("0001", "0002");
    stage.chat("other", &other, &[message("1", "gemini")]);
    assert!(undecided(&stage.look(None, 0)).contains("headcount hook install gemini"));
    let said = stage.look(Some(ID), 1);
    assert_eq!(said.evidence.iter().map(|said| said.claim).collect::<Vec<_>>(), [Claim::Working]);
    let usage = said.usage.unwrap();
    assert_eq!((usage.model.as_deref(), usage.input_tokens), (Some("gemini-3-pro"), Some(6)));
    let said = stage.look(Some(&other), 2);
    assert_eq!(said.evidence, []);
    assert_eq!(&*said.unmeasured[0].reason, "Gemini does not record where a turn ends");
    for unknown in ["1f2e3d4c-else", "../../etc", "", "1f2e"] {
        let said = stage.look(Some(unknown), 3);
        assert!(said.evidence.is_empty() && said.usage.is_none(), "{unknown}: {said:?}");
    }
}

#[test]
fn a_chat_that_comes_late_or_in_another_form_is_found() {
    let mut stage = Stage::new();
    assert!(undecided(&stage.look(Some(ID), 0)).contains("no record yet"));
    let whole = json!({"sessionId": ID, "projectHash": "h", "messages": [message("1", "gemini")]}).to_string();
    let old = stage.write("hash", "session-2026-09-06T10-00-1f2e3d4c.json", &whole);
    assert!(undecided(&stage.look(Some(ID), 1)).contains("no record yet"), "it is not looked for all the time");
    assert_eq!(stage.look(Some(ID), 6).usage.unwrap().output_tokens, Some(2));
    fs::write(old, whole.replace("\"output\":2", "\"output\":200")).unwrap();
    assert_eq!(stage.look(Some(ID), 7).usage.unwrap().output_tokens, Some(200));
    stage.chat("hash", ID, &[message("1", "gemini"), message("2", "gemini")]);
    assert_eq!(stage.look(Some(ID), 8).usage.unwrap().output_tokens, Some(4), "it was gone on with");
    assert!(stage.reader.rewritten.is_empty());
}

#[test]
fn what_is_not_decided_is_said() {
    let mut stage = Stage::new();
    stage.chat("a", ID, &[message("1", "user")]);
    let (one, mut two) = (stage.agent(Some(ID)), stage.agent(Some(ID)));
    two.processes[0].0.pid += 1;
    let said = stage.reader.read(&[&one, &two], now(0));
    assert!(said.iter().all(|said| undecided(said).contains("its conversation is that of process")), "{said:?}");
    assert_eq!(stage.look(Some(ID), 1).evidence.len(), 1);
    stage.chat("b", ID, &[message("1", "user")]);
    let copied = stage.look(Some(ID), 70);
    assert!(undecided(&copied).contains("has 2 records"), "{copied:?}");
}

#[test]
fn a_turn_of_an_earlier_life_is_no_work_and_a_large_chat_is_not_read() {
    let mut stage = Stage::new();
    stage.chat("a", ID, &[message("1", "user")]);
    let mut later = stage.agent(Some(ID));
    later.started_at_ms += 3_600_000;
    assert_eq!(stage.reader.read(&[&later], now(0))[0].evidence, []);
    let other = ID.replace("1f2e3d4c", "aaaabbbb");
    let large = format!("{{\"sessionId\":\"{other}\",\"messages\":[],\"x\":\"{}\"}}", "x".repeat(9 << 20));
    stage.write("a", "session-2026-09-06T10-00-aaaabbbb.json", &large);
    assert!(undecided(&stage.look(Some(&other), 1)).contains("no record yet"));
}
