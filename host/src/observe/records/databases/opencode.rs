//! What OpenCode's sessions say. An answer of the model is a message, which is finished when it has a time of completion;
//! what one turn takes may be several. Questions for permission are in its memory alone.

use super::super::value::{plain, word};
use super::super::{NO_PERMISSIONS, TURN_ENDED};
use super::super::{home_of, variable};
use super::rows::{json, statement, sum, tokens, word_of};
use super::sums::Sum;
use super::{Kind, Said, Turn, gap};
use crate::observe::facts::{Claim, Evidence, Gap, Usage};
use crate::observe::processes::Program;
use crate::store::foreign::opencode;
use crate::store::foreign::{Opened, Row, Unread};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The last time that its language knows, Unix milliseconds.
const LAST_TIME: f64 = 8.64e15;

/// OpenCode's way.
#[derive(Debug)]
pub(super) struct OpenCode;

impl Kind for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    /// Builds of other channels than the usual one have it in their name.
    fn is_database(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let channel = name.strip_prefix("opencode").and_then(|rest| rest.strip_suffix(".db"));
        channel.is_some_and(|channel| channel.is_empty() || channel.starts_with('-'))
    }

    fn place(&self, program: &Program) -> Result<PathBuf, String> {
        let data = home_of(program, "XDG_DATA_HOME", ".local/share")?.join("opencode");
        Ok(data.join(variable(program, "OPENCODE_DB")?.unwrap_or("opencode.db")))
    }

    fn options(&self) -> &'static [&'static str] {
        &["-s", "--session"]
    }

    fn without(&self, place: &Path) -> Option<&'static str> {
        let storage = place.with_file_name("storage");
        (!place.exists() && storage.is_dir())
            .then_some("it keeps records of an older form (storage/), which are not read")
    }

    fn session(&self, db: &Opened, id: &str) -> Result<Option<Row>, Unread> {
        opencode::session(db, id)
    }

    fn parent(&self) -> &'static str {
        "parent_id"
    }

    fn gone_on_with(&self, db: &Opened, since_ms: u64) -> Result<Vec<Row>, Unread> {
        opencode::gone_on_with(db, since_ms)
    }

    fn said(&self, db: &Opened, session: &Row, id: &str, turn: &mut Turn) -> Result<Said, Unread> {
        let messages = opencode::messages(db, id)?;
        let is_open = messages.first().and_then(|newest| json(newest, "data")).is_some_and(|newest| is_open(&newest));
        let parts = match messages.first().and_then(|newest| word_of(newest, "id")).filter(|_| is_open) {
            Some(message) => opencode::parts(db, &message)?,
            None => Vec::new(),
        };
        let sum = if session.contains_key("tokens_input") {
            Sum::Whole(session.clone())
        } else {
            turn.sums.entry(id.to_owned()).or_default().go_on(db, id, turn.until)?
        };
        turn.is_unfinished |= sum == Sum::Unfinished;
        Ok(said(&sum, &messages, &parts))
    }
}

/// What the newest message, its parts and the sums say.
fn said(sums: &Sum, messages: &[Row], parts: &[Row]) -> Said {
    let mut gaps = Vec::new();
    // One after the other, as far as they are needed: they may be large.
    let mut contents = messages.iter().map(|message| json(message, "data"));
    let newest = contents.next();
    let statement = turn(newest.as_ref().map(Option::as_ref)).unwrap_or_else(|why| {
        gaps.push(gap("evidence", &why));
        None
    });
    let mut answers = newest.into_iter().chain(contents).flatten().filter(|message| message["role"] == "assistant");
    let model = answers.find_map(|answer| answer["modelID"].as_str().map(word));
    let tools = running(parts);
    let subagents = tools.iter().filter(|tool| *tool == "task").count();
    let usage = Usage {
        model,
        current_tool: tools.first().cloned(),
        subagents: Some(u32::try_from(subagents).unwrap_or(u32::MAX)),
        ..used(sums, &mut gaps)
    };
    Said { statement, usage, gaps }
}

/// The tokens of a session's own answers. What the model has thought is part of what came back.
fn used(sums: &Sum, gaps: &mut Vec<Gap>) -> Usage {
    let sums = match sums {
        Sum::Whole(sums) => sums,
        Sum::Holed => {
            gaps.push(gap("usage", "messages of its conversation are too large to be read, or are not understood"));
            return Usage::default();
        }
        Sum::Unfinished => {
            gaps.push(gap("usage", "its conversation is still being summed up"));
            return Usage::default();
        }
    };
    let output = tokens(sums, "tokens_output", "output-tokens", gaps);
    let thought = output.and_then(|_| tokens(sums, "tokens_reasoning", "output-tokens", gaps));
    Usage {
        input_tokens: tokens(sums, "tokens_input", "input-tokens", gaps),
        output_tokens: output.zip(thought).and_then(|(output, thought)| sum("output-tokens", &[output, thought], gaps)),
        cache_read_tokens: tokens(sums, "tokens_cache_read", "cache-read-tokens", gaps),
        cache_write_tokens: tokens(sums, "tokens_cache_write", "cache-write-tokens", gaps),
        ..Usage::default()
    }
}

/// What the newest message says of the turn; `None`: nothing. A question without an answer that has begun may have failed
/// before there was one; and one step of a turn that has ended in calls of tools is not its end.
///
/// # Errors
/// There is no message, or it is not understood.
fn turn(newest: Option<Option<&Value>>) -> Result<Option<Evidence>, String> {
    let message = newest.ok_or("no message of its conversation is recorded")?;
    let message = message.ok_or("its last message is too large to be read, or is not understood")?;
    let role = message["role"].as_str().ok_or("its last message has no role")?;
    let time = |name: &str| match &message["time"][name] {
        Value::Null => Ok(None),
        time => time
            .as_f64()
            .filter(|at| (0.0..=LAST_TIME).contains(at))
            .map(|at| Some(at as u64))
            .ok_or(format!("the time \"{name}\" of its last message is none")),
    };
    let begun = time("created")?.ok_or("its last message has no time")?;
    let ended = time("completed")?;
    match (role, &message["error"], ended) {
        ("user", ..) => Ok(None),
        ("assistant", Value::Null, None) => {
            Ok(Some(statement(Claim::Working, "unfinished", Some(NO_PERMISSIONS), begun)))
        }
        ("assistant", Value::Null, Some(ended)) => finished(&message["finish"], ended),
        ("assistant", error, ended) => Ok(Some(broken(error, ended.unwrap_or(begun)))),
        (other, ..) => Ok(Some(statement(Claim::Unknown, other, None, begun))),
    }
}

/// What the reason says for which an answer has ended. After two of them OpenCode itself goes on with the next step.
fn finished(finish: &Value, at_ms: u64) -> Result<Option<Evidence>, String> {
    let word = match finish {
        Value::Null => "completed",
        word => word.as_str().ok_or("the end of its last message is no word")?,
    };
    let (claim, detail) = match word {
        "tool-calls" | "unknown" => return Ok(None),
        "completed" | "stop" => (Claim::Idle, Some(TURN_ENDED)),
        "length" | "content-filter" | "error" | "other" => (Claim::Idle, None),
        _ => (Claim::Unknown, None),
    };
    Ok(Some(statement(claim, word, detail, at_ms)))
}

/// An answer that has failed. What is no word may quote anything and is not passed on.
fn broken(error: &Value, at_ms: u64) -> Evidence {
    match error["name"].as_str().and_then(plain).unwrap_or("error") {
        name @ "MessageAbortedError" => statement(Claim::Idle, name, Some("aborted"), at_ms),
        "error" => statement(Claim::Idle, "error", Some("failed"), at_ms),
        name => statement(Claim::Idle, name, Some(&format!("failed: {name}")), at_ms),
    }
}

/// Whether it is an answer that is still being given.
fn is_open(message: &Value) -> bool {
    message["role"] == "assistant" && message["error"].is_null() && message["time"]["completed"].is_null()
}

/// The tools that run, by their parts: the newest first.
fn running(parts: &[Row]) -> Vec<String> {
    let parts = parts.iter().filter_map(|part| json(part, "data"));
    let is_at_work = |part: &Value| {
        part["type"] == "tool" && matches!(part["state"]["status"].as_str(), Some("pending" | "running"))
    };
    parts.filter(is_at_work).filter_map(|part| part["tool"].as_str().map(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(data: &Value) -> Row {
        Row::from_iter([("data".to_owned(), data.to_string().into())])
    }

    fn whole(sums: &Value) -> Sum {
        Sum::Whole(sums.as_object().unwrap().clone())
    }

    /// What is said of a turn with this newest message.
    fn turn_of(message: &Value) -> Result<Option<Evidence>, String> {
        turn(Some(Some(message)))
    }

    #[test]
    fn the_newest_message_says_whether_a_turn_is_open() {
        for (message, claim, said, detail, at_ms) in [
            (
                json!({"role": "assistant", "time": {"created": 5}}),
                Claim::Working,
                "unfinished",
                Some(NO_PERMISSIONS),
                5,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "finish": "stop"}),
                Claim::Idle,
                "stop",
                Some(TURN_ENDED),
                7,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": 7}}),
                Claim::Idle,
                "completed",
                Some(TURN_ENDED),
                7,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "finish": "length"}),
                Claim::Idle,
                "length",
                None,
                7,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "error": {"name": "MessageAbortedError"}}),
                Claim::Idle,
                "MessageAbortedError",
                Some("aborted"),
                7,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5}, "error": {"name": "APIError", "data": {"message": "secret"}}}),
                Claim::Idle,
                "APIError",
                Some("failed: APIError"),
                5,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5}, "error": {"name": "see /home/me\u{1b}[2J"}}),
                Claim::Idle,
                "error",
                Some("failed"),
                5,
            ),
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "finish": "frobnicated"}),
                Claim::Unknown,
                "frobnicated",
                None,
                7,
            ),
            (json!({"role": "oracle", "time": {"created": 5}}), Claim::Unknown, "oracle", None, 5),
        ] {
            assert_eq!(turn_of(&message), Ok(Some(statement(claim, said, detail, at_ms))), "{message}");
        }
        for nothing in [
            json!({"role": "user", "time": {"created": 5}}),
            json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "finish": "tool-calls"}),
            json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "finish": "unknown"}),
        ] {
            assert_eq!(turn_of(&nothing), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn what_is_of_another_form_is_named() {
        for (message, why) in [
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": "noon"}}),
                "\"completed\" of its last message is none",
            ),
            (json!({"role": "assistant", "time": {"created": 1e300}}), "\"created\" of its last message is none"),
            (
                json!({"role": "assistant", "time": {"created": 5, "completed": 7}, "finish": ["stop"]}),
                "the end of its last message is no word",
            ),
            (json!({"role": "assistant", "time": 5}), "has no time"),
            (json!({"time": {"created": 5}}), "has no role"),
            (json!([]), "has no role"),
        ] {
            let said = turn_of(&message).unwrap_err();
            assert!(said.contains(why), "{message}: {said}");
        }
        assert!(turn(Some(None)).unwrap_err().contains("too large"));
        assert!(turn(None).unwrap_err().contains("no message"));
        let sums = json!({"tokens_input": "many", "tokens_output": null, "tokens_cache_read": 3});
        let said = said(&whole(&sums), &[], &[]);
        let gaps: Vec<_> = said.gaps.iter().map(|gap| (&*gap.field, &*gap.reason)).collect();
        assert_eq!((said.usage.input_tokens, said.usage.cache_read_tokens), (None, Some(3)));
        assert!(gaps.contains(&("input-tokens", "tokens_input is no number of tokens")), "{gaps:?}");
        assert!(gaps.contains(&("output-tokens", "none are recorded yet")), "{gaps:?}");
        assert!(
            gaps.contains(&("cache-write-tokens", "this version does not sum them up (tokens_cache_write)")),
            "{gaps:?}"
        );
    }

    #[test]
    fn what_cannot_be_counted_is_said() {
        let sums = json!({"tokens_output": u64::MAX, "tokens_reasoning": 1});
        let said = said(&whole(&sums), &[], &[]);
        assert_eq!(said.usage.output_tokens, None);
        assert!(said.gaps.contains(&gap("output-tokens", "they are more than can be counted")), "{:?}", said.gaps);
    }

    #[test]
    fn work_is_that_of_the_answers() {
        let sums = json!({
            "tokens_input": 10, "tokens_output": 20, "tokens_reasoning": 3, "tokens_cache_read": 40, "tokens_cache_write": 0,
        });
        let messages = [
            json!({"role": "user", "time": {"created": 9}, "model": {"modelID": "asked"}}),
            json!({"role": "assistant", "time": {"created": 5}, "modelID": "big-model"}),
        ];
        let parts = [
            json!({"type": "tool", "tool": "bash", "state": {"status": "running", "input": "secret"}}),
            json!({"type": "tool", "tool": "task", "state": {"status": "pending"}}),
            json!({"type": "tool", "tool": "read", "state": {"status": "completed"}}),
            json!({"type": "text", "text": "secret"}),
        ];
        let said = said(&whole(&sums), &messages.each_ref().map(row), &parts.each_ref().map(row));
        let expected = Usage {
            model: Some("big-model".to_owned()),
            input_tokens: Some(10),
            output_tokens: Some(23),
            cache_read_tokens: Some(40),
            cache_write_tokens: Some(0),
            current_tool: Some("bash".to_owned()),
            subagents: Some(1),
            ..Usage::default()
        };
        assert_eq!((said.usage, said.gaps), (expected, vec![]));
    }

    #[test]
    fn a_database_is_known_by_its_name() {
        for (path, is_one) in [
            ("/d/opencode/opencode.db", true),
            ("/d/opencode/opencode-dev.db", true),
            ("/d/opencode/opencode.db-wal", false),
            ("/d/opencode/opencode2.db", false),
            ("/d/opencode.db/x", false),
        ] {
            assert_eq!(OpenCode.is_database(Path::new(path)), is_one, "{path}");
        }
    }
}
