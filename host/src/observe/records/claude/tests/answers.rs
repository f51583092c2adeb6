//! Questions that hooks have told of, and answers that fire none: who is heard of both together.

use super::*;
use crate::observe::processes::{Ancestor, Lineage, Machine};
use crate::observe::records::Readers;
use crate::observe::records::hooks::Hooks;
use crate::observe::records::hooks::event::Event;
use crate::observe::records::hooks::note::{Change, FOLDER, Note, change, file_name};

const DENIED: &str =
    r#""type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true}]}"#;
const BESIDE: &str = r#""type":"assistant","message":{"id":"m1","model":"opus","stop_reason":"tool_use",
    "content":[{"type":"tool_use","id":"t2","name":"Read"}]}"#;
const READ: &str = r#""type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}"#;

fn machine() -> Machine {
    Machine { boot_id: "boot".to_owned(), pid_namespace: "pid:[1]".to_owned() }
}

/// What the agent of `scene` and its hooks say together after these events, each so many seconds after the start.
fn heard(scene: &mut Scene, events: &[(u64, Event)]) -> Vec<(Source, Claim)> {
    let mut note: Option<Box<Note>> = None;
    let agent = scene.agents[0].processes[0].0;
    let from = || Lineage { machine: machine(), ancestors: vec![Ancestor { id: agent, comm: "claude".to_owned() }] };
    for (second, event) in events {
        let event = Event { conversation: Some("s-7".to_owned()), ..event.clone() };
        if let Change::Write(new) = change(note.as_deref(), "claude", event, START + second * 1000, from()) {
            note = Some(new);
        }
    }
    let event = Event { conversation: Some("s-7".to_owned()), ..Event::default() };
    let file = scene.path(FOLDER).join(file_name("claude", &event, &from()));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, serde_json::to_vec(&note).unwrap()).unwrap();
    let hooks = Hooks::new(&scene.path(""), machine());
    let claude = std::mem::take(&mut scene.claude);
    let found = Readers::new(vec![Box::new(claude), Box::new(hooks)]).read(scene.agents.clone(), &[], scene.now);
    let mut evidence = found[&agent].evidence.clone();
    evidence.sort_by_key(|said| said.at_ms);
    evidence.iter().map(|said| (said.source, said.claim)).collect()
}

fn event(name: &str, tool: &str, call: Option<&str>) -> Event {
    Event { name: name.into(), tool: Some(tool.into()), call: call.map(Into::into), ..Event::default() }
}

/// A permission that is asked for at the 7th second, for the call `t1` if that is told.
fn asks(call: Option<&str>) -> Vec<(u64, Event)> {
    vec![(7, event("PermissionRequest", "Bash", call))]
}

/// An agent whose transcript has these lines from the 5th second on.
fn wrote(lines: &[&str]) -> Scene {
    let scene = one();
    scene.session(7, &json!({}));
    scene.tell(TRANSCRIPT, 5, lines);
    scene
}

const WAITS: (Source, Claim) = (Source::Hook, Claim::Waiting);

#[test]
fn a_permission_that_was_denied_is_asked_for_no_more_though_no_event_says_so() {
    for call in [Some("t1"), None] {
        assert!(heard(&mut wrote(&[PROMPT, CALL]), &asks(call)).contains(&WAITS), "nobody has answered");
        let said = heard(&mut wrote(&[PROMPT, CALL, "\"type\":\"progress\"", DENIED]), &asks(call));
        assert_eq!(said, [(Source::Transcript, Claim::Working); 2], "it goes on without");
    }
}

#[test]
fn what_came_back_before_the_question_or_beside_it_is_no_answer() {
    for (lines, why) in [
        (&[PROMPT, DENIED][..], "the transcript is older than the question"),
        (&[PROMPT, CALL, BESIDE, READ], "another call came back"),
    ] {
        assert!(heard(&mut wrote(lines), &asks(Some("t1"))).contains(&WAITS), "{why}");
    }
    assert!(heard(&mut wrote(&[PROMPT, CALL, BESIDE, READ]), &asks(None)).contains(&WAITS), "one is still open");
    let inside = Event { subagent: Some("a".into()), ..event("PermissionRequest", "Bash", Some("t9")) };
    let said = heard(&mut wrote(&[PROMPT, CALL, BESIDE, DENIED, READ]), &[(7, inside)]);
    assert!(said.contains(&WAITS), "a subagent's call is in another transcript");
}

#[test]
fn of_two_questions_the_one_that_is_open_is_asked() {
    let both = [asks(Some("t1")), vec![(8, event("PermissionRequest", "Read", Some("t2")))]].concat();
    let said = heard(&mut wrote(&[PROMPT, CALL, BESIDE, DENIED, DENIED]), &both);
    assert_eq!(said.iter().filter(|said| **said == WAITS).count(), 1);
    let said = heard(&mut wrote(&[PROMPT, CALL, BESIDE, DENIED, READ]), &both);
    assert_eq!(said.iter().filter(|said| **said == WAITS).count(), 0);
}

#[test]
fn its_own_record_that_is_newer_is_the_last_that_is_said() {
    let mut scene = wrote(&[PROMPT, CALL]);
    for (second, last) in [(6, WAITS), (9, (Source::OwnRecord, Claim::Working))] {
        scene.session(7, &json!({"status": "busy", "statusUpdatedAt": START + second * 1000}));
        assert_eq!(heard(&mut scene, &asks(Some("t1"))).last(), Some(&last));
    }
}

#[test]
fn a_conversation_that_was_left_answers_nothing() {
    let mut scene = wrote(&[PROMPT, CALL, DENIED, DENIED]);
    scene.session(7, &json!({"sessionId": "s-8"}));
    scene.tell("projects/-w-app/s-8.jsonl", 9, &[PROMPT]);
    assert!(heard(&mut scene, &asks(Some("t1"))).contains(&WAITS));
}
