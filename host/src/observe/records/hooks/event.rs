//! One event as an agent sends it: a JSON object, of which names, types and ids are taken and nothing else.
//!
//! Each agent spells them differently. Prompts, tool inputs and paths are skipped where they are read.

use crate::observe::records::value::mended;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest word that is taken, in bytes: names of tools of MCP servers are long.
const WORD: usize = 128;

/// The longest id that is taken, in bytes.
const ID: usize = 512;

/// What is kept of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its own name.
    pub name: String,
    /// The tool that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What more it says of itself in one word: a notification's type, a status, a reason, an error, a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The subagent that it comes from; `None`: from the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The id of the tool's call, or of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How many tasks run on in the background.
    #[serde(default)]
    pub tasks: usize,
    /// The conversation's id. It is the note's, and files are named after it.
    #[serde(skip)]
    pub conversation: Option<String>,
}

impl Event {
    /// Reads an event. What was read of one that breaks off counts: it may be cut for its size.
    /// `None`: it has no name that could be one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let read = |bytes: &[u8]| {
            let mut members = Members::default();
            let whole = Seed(&mut members).deserialize(&mut serde_json::Deserializer::from_slice(bytes));
            (members, whole)
        };
        let (mut members, mut whole) = read(bytes);
        if whole.is_err() {
            (members, whole) = read(&mended(bytes));
        }
        if let Err(error) = whole {
            // The error's text may quote the event.
            tracing::debug!(line = error.line(), column = error.column(), "an event breaks off");
        }
        let about = [members.notification, members.status, members.reason, members.error, members.source];
        Some(Self {
            name: members.name.or(members.r#type)?,
            tool: members.tool,
            about: about.into_iter().flatten().next(),
            subagent: members.subagent,
            call: members.call,
            tasks: members.tasks,
            conversation: members.conversation.or(members.session),
        })
    }
}

/// What an object has of what is looked for.
#[derive(Debug, Default)]
struct Members {
    name: Option<String>,
    r#type: Option<String>,
    tool: Option<String>,
    notification: Option<String>,
    status: Option<String>,
    reason: Option<String>,
    error: Option<String>,
    source: Option<String>,
    subagent: Option<String>,
    call: Option<String>,
    conversation: Option<String>,
    session: Option<String>,
    tasks: usize,
}

/// A value that may be of another type than expected.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose<T> {
    Expected(T),
    Other(IgnoredAny),
}

impl<T> Loose<T> {
    fn get(self) -> Option<T> {
        match self {
            Self::Expected(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

/// A background task.
#[derive(Deserialize)]
struct Task {
    status: Loose<String>,
}

/// Fills the members one by one, so that they are there also when a later one cannot be read.
struct Seed<'m>(&'m mut Members);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event as a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let found = self.0;
        while let Some(key) = map.next_key::<String>()? {
            let place = match key.as_str() {
                "hook_event_name" => &mut found.name,
                "type" => &mut found.r#type,
                "tool_name" => &mut found.tool,
                "notification_type" => &mut found.notification,
                "status" => &mut found.status,
                "reason" => &mut found.reason,
                "error" => &mut found.error,
                "source" => &mut found.source,
                "agent_id" => &mut found.subagent,
                "tool_use_id" | "call_id" | "request_id" => &mut found.call,
                "conversation_id" | "thread-id" | "thread_id" => &mut found.conversation,
                "session_id" | "sessionId" | "sessionID" => &mut found.session,
                "background_tasks" => {
                    let tasks = map.next_value::<Loose<Vec<Loose<Task>>>>()?.get().unwrap_or_default();
                    let status = |task: Loose<Task>| task.get()?.status.get();
                    found.tasks = tasks.into_iter().filter_map(status).filter(|status| status == "running").count();
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let is_id = key.ends_with("id") || key.ends_with("Id") || key.ends_with("ID");
            let takes = if is_id { is_short } else { is_word };
            *place = map.next_value::<Loose<String>>()?.get().filter(|text| takes(text));
        }
        Ok(())
    }
}

fn is_short(text: &str) -> bool {
    (1..=ID).contains(&text.len())
}

/// Whether a text is a name and no sentence, path or command.
fn is_word(text: &str) -> bool {
    (1..=WORD).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(event: &serde_json::Value) -> Option<Event> {
        Event::parse(event.to_string().as_bytes())
    }

    #[test]
    fn names_types_and_ids_are_taken_and_nothing_else() {
        let event = parse(&json!({
            "session_id": "s", "transcript_path": "/home/me/secret.jsonl", "cwd": "/srv/shop", "prompt": "my password is x",
            "hook_event_name": "PermissionRequest", "tool_name": "mcp__db__run", "tool_input": {"command": "rm -rf /"},
            "background_tasks": [{"id": "1", "status": "running"}, {"status": "done"}, {"status": 7}, "x"],
        }));
        let event = event.unwrap();
        assert_eq!((event.name.as_str(), event.tool.as_deref()), ("PermissionRequest", Some("mcp__db__run")));
        assert_eq!((event.tasks, event.conversation.as_deref()), (1, Some("s")));
        let kept = serde_json::to_string(&event).unwrap();
        assert_eq!(kept, r#"{"name":"PermissionRequest","tool":"mcp__db__run","tasks":1}"#);
    }

    #[test]
    fn each_spelling_of_an_id_is_known() {
        for key in ["session_id", "sessionId", "sessionID", "conversation_id", "thread-id", "thread_id"] {
            let event = parse(&json!({"type": "agent-turn-complete", key: "it"})).unwrap();
            assert_eq!(
                (event.name.as_str(), event.conversation.as_deref()),
                ("agent-turn-complete", Some("it")),
                "{key}"
            );
        }
    }

    #[test]
    fn what_is_no_word_is_not_taken() {
        for hostile in ["", "two words", "/a/path", "\u{1b}[2J", "日本", &"x".repeat(WORD + 1)] {
            assert_eq!(parse(&json!({"hook_event_name": hostile})), None, "{hostile:?}");
            let event = parse(&json!({"hook_event_name": "Stop", "tool_name": hostile, "reason": hostile})).unwrap();
            assert_eq!((event.tool, event.about), (None, None), "{hostile:?}");
        }
        for other in [json!(7), json!(null), json!(["Stop"]), json!({"a": "Stop"})] {
            assert_eq!(parse(&json!({"hook_event_name": other})), None);
            let event = parse(&json!({"hook_event_name": "Stop", "session_id": other, "background_tasks": other}));
            assert_eq!(event.map(|event| (event.conversation, event.tasks)), Some((None, 0)));
        }
    }

    #[test]
    fn an_event_that_breaks_off_says_what_it_has_said() {
        let whole = json!({"hook_event_name": "PostToolUse", "session_id": "s", "zzz": "x".repeat(5000)}).to_string();
        let event = Event::parse(&whole.as_bytes()[..whole.len() - 1000]).unwrap();
        assert_eq!((event.name.as_str(), event.conversation.as_deref()), ("PostToolUse", Some("s")));
        let half = br#"{"\ud83d": {"hook_event_name": "\ud83d"}, "tool_name": "\ud83d", "hook_event_name": "Stop", "session_id": "s"#;
        assert_eq!(Event::parse(half).map(|event| event.name), Some("Stop".to_owned()));
        // What follows is another matter.
        assert_eq!(Event::parse(b"{\"type\":\"a\"} and more").map(|event| event.name), Some("a".to_owned()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Event::parse(&bytes);
        }

        #[test]
        fn no_event_that_is_cut_or_damaged_panics(at in 0_usize..200, byte in any::<u8>()) {
            let mut event = json!({
                "session_id": "s", "hook_event_name": "Stop", "tool_name": "\u{e9}\\\"", "reason": "clear",
                "background_tasks": [{"status": "running"}, {"status": null}], "nested": [[[[{}]]]],
            }).to_string().into_bytes();
            let at = at.min(event.len() - 1);
            let _ = Event::parse(&event[..at]);
            event[at] = byte;
            let _ = Event::parse(&event);
        }
    }
}
