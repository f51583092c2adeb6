//! What Goose's sessions say. A message is recorded when it is whole, so what comes next follows from the last one: an answer
//! without calls of tools is the end of a turn, everything else is in the midst of one.

use super::super::value::{number, word};
use super::super::{NO_PERMISSIONS, TURN_ENDED};
use super::super::{home_of, variable};
use super::rows::{json, statement, sum, time, tokens, word_of};
use super::{Kind, Said, Turn, gap};
use crate::observe::facts::{Claim, Evidence, Gap, Usage};
use crate::observe::processes::Program;
use crate::store::foreign::{Opened, Row, Unread, goose};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Goose's way.
#[derive(Debug)]
pub(super) struct Goose;

impl Kind for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn is_database(&self, path: &Path) -> bool {
        path.ends_with("sessions/sessions.db")
    }

    fn place(&self, program: &Program) -> Result<PathBuf, String> {
        let data = match variable(program, "GOOSE_PATH_ROOT")? {
            Some(root) => Path::new(root).join("data"),
            None => home_of(program, "XDG_DATA_HOME", ".local/share")?.join("goose"),
        };
        Ok(data.join("sessions/sessions.db"))
    }

    fn options(&self) -> &'static [&'static str] {
        &["--session-id", "--id"]
    }

    fn session(&self, db: &Opened, id: &str) -> Result<Option<Row>, Unread> {
        goose::session(db, id)
    }

    fn parent(&self) -> &'static str {
        "parent_session_id"
    }

    fn gone_on_with(&self, db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread> {
        goose::gone_on_with(db, since_ms)
    }

    fn said(&self, db: &Opened, session: &Row, id: &str, _turn: &mut Turn) -> Result<Said, Unread> {
        Ok(said(session, &goose::messages(db, id)?))
    }
}

fn said(session: &Row, messages: &[Row]) -> Said {
    let mut gaps = Vec::new();
    let statement = turn(messages).unwrap_or_else(|why| {
        gaps.push(gap("evidence", &why));
        None
    });
    let usage = Usage { current_tool: running(messages), ..used(session, &mut gaps) };
    Said { statement, usage, gaps }
}

/// What the last message says of the turn.
///
/// # Errors
/// There is none, or it is not understood.
fn turn(messages: &[Row]) -> Result<Option<Evidence>, String> {
    let newest = messages.first().ok_or("no message of its conversation is recorded")?;
    let role = word_of(newest, "role").ok_or("its last message has no role")?;
    let at_ms = time(number(newest, "created_timestamp")).ok_or("its last message has no time")?;
    let open = |said: &str| Some(statement(Claim::Working, said, Some(NO_PERMISSIONS), at_ms));
    match role.as_str() {
        "user" => Ok(open("user")),
        "assistant" => {
            let content =
                json(newest, "content_json").ok_or("its last message is too large to be read, or is not understood")?;
            let content = content.as_array().ok_or("the content of its last message is no list")?;
            let calls = content.iter().any(|item| item["type"] == "toolRequest");
            Ok(if calls {
                open("toolRequest")
            } else {
                Some(statement(Claim::Idle, "assistant", Some(TURN_ENDED), at_ms))
            })
        }
        other => Ok(Some(statement(Claim::Unknown, other, None, at_ms))),
    }
}

/// The tool that was called last and has not answered.
fn running(messages: &[Row]) -> Option<String> {
    let contents: Vec<Value> = messages.iter().filter_map(|message| json(message, "content_json")).collect();
    let items = || contents.iter().filter_map(Value::as_array).flatten();
    let answered: Vec<&str> =
        items().filter(|item| item["type"] == "toolResponse").filter_map(|item| item["id"].as_str()).collect();
    let is_open =
        |item: &&Value| item["type"] == "toolRequest" && item["id"].as_str().is_some_and(|id| !answered.contains(&id));
    items().find(is_open).and_then(|call| call["toolCall"]["value"]["name"].as_str()).map(word)
}

/// The sums of a session. The tokens of the cache are part of Goose's input.
fn used(session: &Row, gaps: &mut Vec<Gap>) -> Usage {
    let model = json(session, "model_config_json").unwrap_or_default();
    let window = model["context_limit"].as_f64().filter(|window| *window > 0.0);
    let context = session.get("total_tokens").and_then(Value::as_f64);
    let input = tokens(session, "accumulated_input_tokens", "input-tokens", gaps);
    let read = tokens(session, "accumulated_cache_read_tokens", "cache-read-tokens", gaps);
    let written = tokens(session, "accumulated_cache_write_tokens", "cache-write-tokens", gaps);
    // Where the cache is not counted, nothing can be taken off.
    let cached: Vec<u64> = [read, written].into_iter().flatten().collect();
    let cached = input.and_then(|_| sum("input-tokens", &cached, gaps));
    let anew = input.zip(cached).map(|(input, cached)| input.checked_sub(cached));
    if anew == Some(None) {
        gaps.push(gap("input-tokens", "it counts more of them in the cache than there are"));
    }
    Usage {
        model: model["model_name"].as_str().map(word),
        input_tokens: anew.flatten(),
        output_tokens: tokens(session, "accumulated_output_tokens", "output-tokens", gaps),
        cache_read_tokens: read,
        cache_write_tokens: written,
        context_used_percent: window.zip(context).map(|(window, used)| (used / window * 100.0).clamp(0.0, 100.0)),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(role: &str, content: &Value) -> Row {
        json!({"role": role, "created_timestamp": 1_788_688_800, "content_json": content.to_string()})
            .as_object()
            .unwrap()
            .clone()
    }

    #[test]
    fn the_last_message_says_what_comes_next() {
        let at_ms = 1_788_688_800_000;
        let call = json!([{"type": "text", "text": "secret"}, {"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "developer__shell"}}}]);
        let answer = json!([{"type": "toolResponse", "id": "c", "toolResult": "secret"}]);
        for (messages, claim, said, tool) in [
            (vec![message("user", &json!([{"type": "text"}]))], Claim::Working, "user", None),
            (vec![message("assistant", &call)], Claim::Working, "toolRequest", Some("developer__shell")),
            (vec![message("user", &answer), message("assistant", &call)], Claim::Working, "user", None),
            (vec![message("assistant", &json!([{"type": "text"}]))], Claim::Idle, "assistant", None),
            (vec![message("critic", &json!([]))], Claim::Unknown, "critic", None),
        ] {
            let found = turn(&messages).unwrap().unwrap();
            assert_eq!((found.claim, found.word.as_str(), found.at_ms), (claim, said, at_ms));
            assert_eq!(running(&messages).as_deref(), tool);
        }
        let mut strange = message("assistant", &json!({}));
        assert!(turn(&[strange.clone()]).unwrap_err().contains("no list"));
        strange.insert("content_json".to_owned(), Value::Null);
        assert!(turn(&[strange.clone()]).unwrap_err().contains("too large"));
        strange.insert("created_timestamp".to_owned(), "noon".into());
        assert!(turn(&[strange]).unwrap_err().contains("no time"));
        assert!(turn(&[]).unwrap_err().contains("no message"));
    }

    #[test]
    fn sums_are_those_of_the_session() {
        let model = json!({"model_name": "big-model", "context_limit": 1000}).to_string();
        let session = json!({
            "model_config_json": model, "total_tokens": 250, "accumulated_input_tokens": 900, "accumulated_output_tokens": 50,
            "accumulated_cache_read_tokens": 600, "accumulated_cache_write_tokens": 100,
        });
        let mut gaps = Vec::new();
        let usage = used(session.as_object().unwrap(), &mut gaps);
        let expected = Usage {
            model: Some("big-model".to_owned()),
            input_tokens: Some(200),
            output_tokens: Some(50),
            cache_read_tokens: Some(600),
            cache_write_tokens: Some(100),
            context_used_percent: Some(25.0),
            ..Usage::default()
        };
        assert_eq!((usage, gaps), (expected, vec![]));
        let older = json!({"accumulated_input_tokens": null, "accumulated_output_tokens": 5});
        let mut gaps = Vec::new();
        let usage = used(older.as_object().unwrap(), &mut gaps);
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.context_used_percent), (None, Some(5), None));
        let fields: Vec<&str> = gaps.iter().map(|gap| &*gap.field).collect();
        assert_eq!(fields, ["input-tokens", "cache-read-tokens", "cache-write-tokens"]);
        for (read, written) in [(8, 0), (u64::MAX, 1)] {
            let strange = json!({
                "accumulated_input_tokens": 7, "accumulated_output_tokens": 5, "accumulated_cache_read_tokens": read,
                "accumulated_cache_write_tokens": written,
            });
            let mut gaps = Vec::new();
            assert_eq!(used(strange.as_object().unwrap(), &mut gaps).input_tokens, None);
            assert_eq!(gaps.iter().map(|gap| &*gap.field).collect::<Vec<_>>(), ["input-tokens"], "never 0");
        }
    }
}
