//! The parser of Gemini's chats, in both of their forms: a file of lines that grows, and one object that is written anew.
//!
//! A message is written again when more of it is known, under the same id. Nothing says where a turn ends: after an answer, it
//! may have ended, a tool may run, or a person may be asked.

use crate::observe::facts::{Claim, Evidence, Source, Usage};
use crate::observe::records::event::{Open, time};
use crate::observe::records::follow::Parser;
use crate::observe::records::value::{Figure, NoFigure, count, json, object, text, without, word};
use crate::observe::records::{Calls, NO_APPROVALS};
use serde_json::Value;
use std::collections::VecDeque;

/// So many messages may still be written again; what older ones have cost is summed up.
const RECENT: usize = 64;

/// How the calls of tools end.
const ENDS: [&str; 3] = ["success", "error", "cancelled"];

/// What a chat has said so far.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    /// The id of its conversation.
    session: Option<String>,
    /// That a turn was begun, as long as nothing came after it.
    begun: Option<Evidence>,
    model: Option<String>,
    /// What the older messages have used, and the recent ones by their ids.
    older: Option<Tokens>,
    recent: VecDeque<(String, Tokens)>,
    calls: Open,
    /// When a call came back last, or was asked for something else, Unix milliseconds.
    answered_ms: Option<u64>,
    /// Lines or messages that were not understood, or not all of them.
    lost: u64,
}

/// What a message has used.
#[derive(Debug, Clone, Copy, Default)]
struct Tokens {
    input: u64,
    output: u64,
    cached: u64,
}

impl Parser for Chat {
    const END: Option<u64> = None;

    fn line(&mut self, line: &[u8], _now_ms: u64) {
        let record: Value = match json(line) {
            Ok(record) => record,
            Err(why) => return self.lost += u64::from(!why.breaks_off),
        };
        if record["$rewindTo"].is_string() {
            // What was taken back has been used all the same.
            self.begun = None;
            self.calls.clear();
        } else if record["id"].is_string() {
            self.message(&record);
        } else if let Some(session) = record["sessionId"].as_str().or_else(|| record["$set"]["sessionId"].as_str()) {
            self.session = Some(session.to_owned());
        }
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

impl Chat {
    /// The chat that is one object.
    ///
    /// # Errors
    /// It is none.
    pub fn whole(bytes: &[u8]) -> Result<Self, String> {
        let record = object(bytes)?;
        let mut chat = Self { session: text(&record, "sessionId").map(str::to_owned), ..Self::default() };
        let messages = record.get("messages").and_then(Value::as_array).ok_or("has no messages")?;
        messages.iter().for_each(|message| chat.message(message));
        Ok(chat)
    }

    /// The id of its conversation.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// That a turn was begun, if nothing has come of it yet.
    pub fn statement(&self) -> Option<&Evidence> {
        self.begun.as_ref()
    }

    /// What it says of its work; `None`: nothing. A tool that was called when its process had not started, by `ran_at`, does
    /// not run.
    pub fn usage(&self, ran_at: impl Fn(u64) -> bool) -> Option<Usage> {
        let recent = self.recent.iter().map(|(_, tokens)| *tokens);
        let used = self.older.into_iter().chain(recent).reduce(Tokens::and);
        let usage = Usage {
            model: self.model.clone(),
            input_tokens: used.map(|used| used.input),
            output_tokens: used.map(|used| used.output),
            cache_read_tokens: used.map(|used| used.cached),
            current_tool: self.calls.iter().rfind(|call| ran_at(call.at_ms)).map(|call| call.name.clone()),
            ..Usage::default()
        };
        (usage != Usage::default()).then_some(usage)
    }

    /// The calls of its last answer. They are written down when they come back, or with what is asked next: nothing else tells
    /// that one has.
    pub fn calls(&self) -> Option<Calls> {
        let conversation = self.session.clone()?;
        Some(Calls { conversation, open: self.calls.ids(), last_ms: self.answered_ms? })
    }

    fn message(&mut self, message: &Value) {
        let Some(id) = message["id"].as_str() else { return };
        self.begun = None;
        self.calls.clear();
        match message["type"].as_str() {
            Some("user") => {
                let begun = |at_ms| Evidence {
                    source: Source::Transcript,
                    claim: Claim::Working,
                    word: "user".to_owned(),
                    detail: Some(NO_APPROVALS.to_owned()),
                    at_ms,
                };
                self.begun = time(message).map(begun);
                self.answered_ms = self.answered_ms.max(time(message));
            }
            Some("gemini") => self.answer(id, message),
            _ => {}
        }
    }

    fn answer(&mut self, id: &str, message: &Value) {
        if let Some(model) = message["model"].as_str() {
            self.model = Some(word(model));
        }
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            let (Some(id), Some(name), Some(status)) =
                (call["id"].as_str(), call["name"].as_str(), call["status"].as_str())
            else {
                continue;
            };
            let at_ms = time(call).or_else(|| time(message));
            match at_ms {
                _ if ENDS.contains(&status) => self.answered_ms = self.answered_ms.max(at_ms),
                Some(at_ms) => self.calls.begin(id, name, at_ms),
                None => {}
            }
        }
        let tokens = match Tokens::of(&message["tokens"]) {
            Ok(Some(tokens)) => tokens,
            Ok(None) => return,
            Err(_) => return self.lost += 1,
        };
        let id = word(id);
        match self.recent.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = tokens,
            None => self.recent.push_back((id, tokens)),
        }
        if self.recent.len() > RECENT {
            let oldest = self.recent.pop_front().map(|(_, tokens)| tokens);
            self.older = self.older.into_iter().chain(oldest).reduce(Tokens::and);
        }
    }
}

impl Tokens {
    /// Tokens of the cache are part of Gemini's input; thoughts are no part of its output.
    fn of(tokens: &Value) -> Result<Option<Self>, NoFigure> {
        let figure = |name: &str| -> Figure { count(&tokens[name]) };
        let Some(input) = without(figure("input"), [figure("cached")])? else { return Ok(None) };
        let [cached, output, thoughts] = ["cached", "output", "thoughts"].map(figure);
        let output = output?.unwrap_or(0).saturating_add(thoughts?.unwrap_or(0));
        Ok(Some(Self { input, output, cached: cached?.unwrap_or(0) }))
    }

    fn and(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const BEGIN_MS: u64 = 1_788_688_800_000;

    fn header() -> Value {
        json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-09-06T10:00:00Z", "kind": "main"})
    }

    fn message(id: &str, kind: &str, more: &Value) -> Value {
        let mut message = json!({"id": id, "timestamp": "2026-09-06T10:00:00Z", "type": kind, "content": "secret"});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    }

    fn used(input: u64, cached: u64, output: u64) -> Value {
        json!({"model": "gemini-3-pro", "tokens": {"input": input, "cached": cached, "output": output, "thoughts": 1}})
    }

    fn call(status: &str) -> Value {
        json!({"toolCalls": [{"id": "c", "name": "run_shell_command", "args": {"command": "secret"}, "status": status,
            "timestamp": "2026-09-06T10:00:01Z"}]})
    }

    fn chat(lines: &[Value]) -> Chat {
        let mut chat = Chat::default();
        lines.iter().for_each(|line| chat.line(line.to_string().as_bytes(), 0));
        chat
    }

    #[test]
    fn a_prompt_begins_a_turn_and_nothing_tells_of_its_end() {
        let begun = |lines: &[Value]| chat(lines).statement().map(|said| (said.claim, said.at_ms));
        let (prompt, answer) = (message("1", "user", &json!({})), message("2", "gemini", &json!({})));
        assert_eq!(begun(&[header()]), None);
        assert_eq!(begun(&[header(), prompt.clone()]), Some((Claim::Working, BEGIN_MS)));
        assert_eq!(
            begun(&[prompt.clone(), json!({"$set": {"lastUpdated": "2026-09-06T10:00:09Z"}})]).unwrap().1,
            BEGIN_MS
        );
        assert_eq!(begun(&[prompt.clone(), answer]), None);
        assert_eq!(begun(&[prompt.clone(), message("2", "error", &json!({}))]), None);
        assert_eq!(begun(&[prompt.clone(), json!({"$rewindTo": "1"})]), None);
        let mut undated = prompt;
        undated["timestamp"] = json!("noon");
        assert_eq!(begun(&[undated]), None);
    }

    #[test]
    fn each_message_counts_once_and_what_was_taken_back_was_used() {
        let usage = |lines: &[Value]| {
            let usage = chat(lines).usage(|_| true)?;
            Some((usage.input_tokens, usage.cache_read_tokens, usage.output_tokens))
        };
        let tokens = |input, cached, output| Some((Some(input), Some(cached), Some(output)));
        let one = message("1", "gemini", &used(100, 40, 9));
        assert_eq!(usage(std::slice::from_ref(&one)), tokens(60, 40, 10));
        assert_eq!(usage(&[one.clone(), message("1", "gemini", &used(110, 40, 9))]), tokens(70, 40, 10));
        assert_eq!(
            usage(&[one.clone(), json!({"$rewindTo": "1"}), message("2", "gemini", &used(1, 0, 1))]),
            tokens(61, 40, 12)
        );
        let many: Vec<Value> = (0..1000).map(|n| message(&n.to_string(), "gemini", &used(2, 1, 1))).collect();
        assert_eq!(usage(&many), tokens(1000, 1000, 2000));
        assert_eq!(
            usage(&[message("1", "gemini", &json!({"tokens": {"prompt": 5}}))]),
            None,
            "a renamed field is not 0"
        );
        assert_eq!(chat(&[one]).usage(|_| true).unwrap().model, Some("gemini-3-pro".to_owned()));
    }

    #[test]
    fn half_a_character_costs_no_line_and_an_odd_figure_is_counted_as_such() {
        let half = message("1", "gemini", &used(100, 40, 9)).to_string().replace("secret", r"\ud83d");
        let said = |odd: &str| {
            let mut chat = chat(&[header()]);
            chat.line(half.as_bytes(), 0);
            chat.line(odd.as_bytes(), 0);
            (chat.usage(|_| true).unwrap().input_tokens, chat.lost())
        };
        assert_eq!(said("{\"half"), (Some(60), 0));
        for odd in ["{]", &message("2", "gemini", &used(1, 2, 0)).to_string(), &half.replace("100", "-1")] {
            assert_eq!(said(odd), (Some(60), 1), "{odd}");
        }
    }

    #[test]
    fn a_tool_runs_until_its_call_has_a_result() {
        let tool = |lines: &[Value]| chat(lines).usage(|_| true).and_then(|usage| usage.current_tool);
        let running = message("1", "gemini", &call("executing"));
        assert_eq!(tool(std::slice::from_ref(&running)), Some("run_shell_command".to_owned()));
        for end in ENDS {
            assert_eq!(tool(&[running.clone(), message("1", "gemini", &call(end))]), None);
        }
        assert_eq!(tool(&[running.clone(), message("2", "user", &json!({}))]), None);
        assert_eq!(chat(&[running]).usage(|at_ms| at_ms > BEGIN_MS + 1000), None, "one of an earlier life");
    }

    #[test]
    fn a_call_has_come_back_when_it_has_a_result_or_something_else_is_asked() {
        let calls =
            |lines: &[Value]| chat(&[&[header()], lines].concat()).calls().map(|calls| (calls.open, calls.last_ms));
        let (running, used) = (message("1", "gemini", &call("executing")), message("1", "gemini", &used(1, 0, 1)));
        assert_eq!(calls(&[running.clone(), used.clone()]), None, "an answer tells nothing of them");
        for end in ENDS {
            assert_eq!(calls(&[used.clone(), message("1", "gemini", &call(end))]), Some((vec![], BEGIN_MS + 1000)));
        }
        let asked = message("0", "user", &json!({}));
        assert_eq!(calls(&[running.clone(), asked.clone()]), Some((vec![], BEGIN_MS)));
        assert_eq!(calls(&[asked, running]), Some((vec!["c".to_owned()], BEGIN_MS)));
    }

    #[test]
    fn both_forms_say_the_same() {
        let messages = [message("1", "user", &json!({})), message("2", "gemini", &used(100, 40, 9))];
        let mut record = header();
        record["messages"] = json!(messages);
        let whole = Chat::whole(record.to_string().as_bytes()).unwrap();
        let lines = chat(&[&[header()], &messages[..]].concat());
        assert_eq!((whole.session(), lines.session()), (Some("s"), Some("s")));
        assert_eq!(whole.usage(|_| true), lines.usage(|_| true));
        for none in ["", "[]", "{}", "{\"messages\": 7}"] {
            assert!(Chat::whole(none.as_bytes()).is_err(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in any::<usize>(), put in any::<u8>()) {
            let mut chat = Chat::default();
            let mut known = [header(), message("1", "user", &json!({})), message("2", "gemini", &used(1, 2, 3)), message("3", "gemini", &call("executing"))].map(|line| line.to_string().into_bytes());
            for line in known.iter_mut().chain([&mut bytes.clone()]) {
                if !line.is_empty() {
                    let at = at % line.len();
                    line[at] = put;
                }
                chat.line(line, 0);
                let _ = Chat::whole(line);
            }
            let tool = chat.usage(|_| true).and_then(|usage| usage.current_tool).unwrap_or_default();
            prop_assert!(tool.chars().count() <= 64);
        }
    }
}
