//! What Crush's sessions say. The last part of a finished answer is its end, with the reason; an answer that ends in calls of
//! tools is followed by another one.

use super::super::value::{number, word};
use super::super::{NO_PERMISSIONS, TURN_ENDED};
use super::rows::{json, statement, time, word_of};
use super::{Kind, Said, Turn, gap};
use crate::observe::facts::{Claim, Evidence, Usage};
use crate::observe::processes::Program;
use crate::store::foreign::{Opened, Row, Unread, crush};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Why there are no sums.
const LAST_ONLY: &str = "Crush records those of the last answer alone";

/// Crush's way.
#[derive(Debug)]
pub(super) struct Crush;

impl Kind for Crush {
    fn name(&self) -> &'static str {
        "crush"
    }

    fn is_database(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == "crush.db")
    }

    /// That of its project, unless its settings say another place.
    fn place(&self, program: &Program) -> Result<PathBuf, String> {
        program.cwd.as_ref().map(|cwd| cwd.join(".crush/crush.db")).map_err(|why| super::super::no_place(why))
    }

    fn options(&self) -> &'static [&'static str] {
        &["-s", "--session"]
    }

    fn session(&self, db: &Opened, id: &str) -> Result<Option<Row>, Unread> {
        crush::session(db, id)
    }

    fn parent(&self) -> &'static str {
        "parent_session_id"
    }

    fn gone_on_with(&self, db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread> {
        crush::gone_on_with(db, since_ms)
    }

    fn said(&self, db: &Opened, _session: &Row, id: &str, _turn: &mut Turn) -> Result<Said, Unread> {
        Ok(said(&crush::messages(db, id)?))
    }
}

fn said(messages: &[Row]) -> Said {
    let mut gaps = ["input-tokens", "output-tokens", "cache-read-tokens", "cache-write-tokens"]
        .map(|field| gap(field, LAST_ONLY))
        .to_vec();
    let statement = turn(messages).unwrap_or_else(|why| {
        gaps.push(gap("evidence", &why));
        None
    });
    let model = messages.iter().filter(|message| is_answer(message)).find_map(|answer| word_of(answer, "model"));
    Said { statement, usage: Usage { model, current_tool: running(messages), ..Usage::default() }, gaps }
}

/// What the last message says of the turn.
///
/// # Errors
/// There is none, or it is not understood.
fn turn(messages: &[Row]) -> Result<Option<Evidence>, String> {
    let newest = messages.first().ok_or("no message of its conversation is recorded")?;
    let role = word_of(newest, "role").ok_or("its last message has no role")?;
    let at_ms = time(number(newest, "created_at")).ok_or("its last message has no time")?;
    let open = |said: &str, at_ms| Ok(Some(statement(Claim::Working, said, Some(NO_PERMISSIONS), at_ms)));
    match role.as_str() {
        // A question whose answer has not begun may have failed before there was one.
        "user" | "system" => Ok(None),
        "tool" => open("tool", at_ms),
        "assistant" => {
            let parts =
                json(newest, "parts").ok_or("its last message is too large to be read, or is not understood")?;
            let parts = parts.as_array().ok_or("the parts of its last message are no list")?;
            let Some(finish) = parts.iter().find(|part| part["type"] == "finish") else {
                return open("unfinished", at_ms);
            };
            let reason = finish["data"]["reason"].as_str().ok_or("its last message has no reason of its end")?;
            let at_ms = time(finish["data"]["time"].as_u64()).unwrap_or(at_ms);
            if reason == "tool_use" { open(reason, at_ms) } else { Ok(Some(ended(reason, at_ms))) }
        }
        other => Ok(Some(statement(Claim::Unknown, other, None, at_ms))),
    }
}

/// What an answer says that is the last of its turn.
fn ended(reason: &str, at_ms: u64) -> Evidence {
    let failed = format!("failed: {reason}");
    let (claim, detail) = match reason {
        "end_turn" | "unknown" => (Claim::Idle, Some(TURN_ENDED)),
        "canceled" => (Claim::Idle, Some("aborted")),
        "max_tokens" | "error" | "permission_denied" | "content_filter" => (Claim::Idle, Some(failed.as_str())),
        _ => (Claim::Unknown, None),
    };
    statement(claim, reason, detail, at_ms)
}

fn is_answer(message: &Row) -> bool {
    message.get("role").is_some_and(|role| role == "assistant")
}

/// The tool that the last answer has called and that has given no result; none where that is not known of all.
fn running(messages: &[Row]) -> Option<String> {
    let since: Vec<Value> = messages
        .iter()
        .take_while(|message| !is_answer(message))
        .map(|message| json(message, "parts"))
        .collect::<Option<_>>()?;
    let results = since.iter().filter_map(Value::as_array).flatten().filter(|part| part["type"] == "tool_result");
    let done: Vec<&Value> = results.map(|result| &result["data"]["tool_call_id"]).collect();
    let answer = json(messages.iter().find(|message| is_answer(message))?, "parts")?;
    let calls = answer.as_array()?.iter().filter(|part| part["type"] == "tool_call");
    let mut open = calls.map(|call| &call["data"]).filter(|call| !done.contains(&&call["id"]));
    open.find_map(|call| call["name"].as_str()).map(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(role: &str, parts: &Value) -> Row {
        json!({"role": role, "model": "big-model", "created_at": 1_788_688_800, "parts": parts.to_string()})
            .as_object()
            .unwrap()
            .clone()
    }

    fn finish(reason: &str) -> Value {
        json!({"type": "finish", "data": {"reason": reason, "time": 1_788_688_809, "message": "secret"}})
    }

    #[test]
    fn the_end_of_the_last_answer_says_whether_a_turn_is_open() {
        let text = json!({"type": "text", "data": {"text": "secret"}});
        let call = json!({"type": "tool_call", "data": {"id": "c", "name": "bash", "input": "secret"}});
        let result = json!({"type": "tool_result", "data": {"tool_call_id": "c", "content": "secret"}});
        let working = [
            (vec![message("assistant", &json!([text]))], "unfinished", None),
            (vec![message("assistant", &json!([call]))], "unfinished", Some("bash")),
            (vec![message("assistant", &json!([call, finish("tool_use")]))], "tool_use", Some("bash")),
            (
                vec![message("tool", &json!([result])), message("assistant", &json!([call, finish("tool_use")]))],
                "tool",
                None,
            ),
        ];
        for (messages, said, tool) in working {
            let found = turn(&messages).unwrap().unwrap();
            assert_eq!((found.claim, found.word.as_str(), running(&messages).as_deref()), (Claim::Working, said, tool));
        }
        for (reason, claim, detail) in [
            ("end_turn", Claim::Idle, Some("turn ended")),
            ("canceled", Claim::Idle, Some("aborted")),
            ("error", Claim::Idle, Some("failed: error")),
            ("frobnicated", Claim::Unknown, None),
        ] {
            let found = turn(&[message("assistant", &json!([text, finish(reason)]))]).unwrap();
            assert_eq!(found, Some(statement(claim, reason, detail, 1_788_688_809_000)));
        }
        assert_eq!(turn(&[message("user", &json!([text]))]), Ok(None));
    }

    #[test]
    fn what_is_of_another_form_is_named_and_sums_are_never_guessed() {
        for (message, why) in [
            (message("assistant", &json!({})), "no list"),
            (message("assistant", &json!([{"type": "finish"}])), "no reason"),
            (Row::new(), "no role"),
        ] {
            assert!(turn(&[message]).unwrap_err().contains(why));
        }
        let said = said(&[]);
        assert_eq!((said.usage.input_tokens, said.gaps.len()), (None, 5));
        assert_eq!(said.gaps[0].reason, LAST_ONLY);
    }
}
