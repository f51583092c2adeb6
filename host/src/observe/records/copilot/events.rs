//! The parser of Copilot's events: one line of JSON for each, `{"id", "parentId", "timestamp", "type", "data"}`.
//!
//! It is the only record of the kinds known here that tells when a person is asked. A question is answered when an event
//! with the same id says so, and over when its turn is; not when any other event comes.

use crate::observe::facts::{Claim, Evidence, Source, Usage};
use crate::observe::records::event::{Open, time};
use crate::observe::records::follow::Parser;
use crate::observe::records::value::{count, json, word};
use crate::observe::records::{CLOSED, TURN_ENDED};
use serde_json::Value;

/// The tool by which the model asks a person.
const ASKING_TOOL: &str = "ask_user";

/// What stands for a model before one is chosen.
const NO_MODEL: &str = "auto";

/// What a session has said so far.
#[derive(Debug, Clone, Default)]
pub struct Events {
    turn: Option<Evidence>,
    /// What a person was asked and has not answered.
    questions: Open,
    tools: Open,
    subagents: Open,
    model: Option<String>,
    output_tokens: Option<u64>,
    /// Whether it was read from its first event on.
    whole: bool,
    /// Whether any line had the form that is known.
    understood: bool,
    /// Lines that were not understood.
    lost: u64,
}

impl Parser for Events {
    /// Turns of hours. Only a session that is longer cannot be summed up.
    const END: Option<u64> = Some(4 << 20);

    fn line(&mut self, line: &[u8], now_ms: u64) {
        let event: Value = match json(line) {
            Ok(event) => event,
            Err(why) => {
                self.lost += u64::from(!why.breaks_off);
                if !self.understood {
                    self.state(Claim::Unknown, "a line that is not JSON", None, now_ms);
                }
                return;
            }
        };
        let Some(name) = event["type"].as_str() else {
            return self.state(Claim::Unknown, "a line without a type", None, now_ms);
        };
        self.understood = true;
        let Some(at_ms) = time(&event) else {
            return self.state(Claim::Unknown, name, None, now_ms);
        };
        self.event(name, &event["data"], at_ms);
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

impl Events {
    /// What it says of its turn and of what a person is asked, which the agent waits for whatever its turn is.
    pub fn statements(&self) -> impl Iterator<Item = Evidence> {
        let question = self.questions.iter().next().map(|question| Evidence {
            source: Source::OwnRecord,
            claim: Claim::Waiting,
            word: question.name.clone(),
            detail: Some(
                if question.name.starts_with("permission.") { "permission prompt" } else { "question" }.to_owned(),
            ),
            at_ms: question.at_ms,
        });
        self.turn.clone().into_iter().chain(question)
    }

    /// What it says of its work; `None`: nothing. What began when its process had not started, by `ran_at`, does not run.
    pub fn usage(&self, ran_at: impl Fn(u64) -> bool) -> Option<Usage> {
        let subagents = self.subagents.iter().filter(|subagent| ran_at(subagent.at_ms)).count();
        let usage = Usage {
            model: self.model.clone(),
            output_tokens: self.output_tokens.filter(|_| self.whole),
            current_tool: self.tools.iter().rfind(|tool| ran_at(tool.at_ms)).map(|tool| tool.name.clone()),
            subagents: u32::try_from(subagents).ok().filter(|_| self.understood),
            ..Usage::default()
        };
        (usage != Usage::default()).then_some(usage)
    }

    /// Whether what it sums up is all of it.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    fn event(&mut self, name: &str, data: &Value, at_ms: u64) {
        match name {
            "session.start" => self.whole = true,
            "session.resume" => self.forget_turn(),
            "assistant.turn_start" => self.turn(Claim::Working, name, None, at_ms),
            "assistant.turn_end" => self.turn(Claim::Idle, name, Some(TURN_ENDED), at_ms),
            "user.message" => self.questions.clear(),
            "abort" => {
                self.forget_turn();
                self.state(Claim::Idle, name, Some("aborted"), at_ms);
            }
            "session.shutdown" => {
                self.forget_turn();
                self.state(Claim::Finished, name, Some(CLOSED), at_ms);
            }
            "permission.requested" | "user_input.requested" | "elicitation.requested" => {
                self.questions.begin(id(data, "requestId"), name, at_ms);
            }
            "permission.completed" | "user_input.completed" | "elicitation.completed" => {
                self.questions.end(id(data, "requestId"));
            }
            "tool.execution_start" => self.begin_tool(id(data, "toolCallId"), data, at_ms),
            "tool.execution_complete" => {
                self.tools.end(id(data, "toolCallId"));
                self.questions.end(id(data, "toolCallId"));
            }
            "subagent.started" => self.subagents.begin(id(data, "toolCallId"), name, at_ms),
            "subagent.completed" | "subagent.failed" => self.subagents.end(id(data, "toolCallId")),
            "session.model_change" => self.choose(&data["newModel"]),
            "session.auto_mode_resolved" => self.choose(&data["chosenModel"]),
            "assistant.message" => {
                self.choose(&data["model"]);
                match count(&data["outputTokens"]) {
                    Ok(Some(tokens)) => {
                        self.output_tokens = Some(self.output_tokens.unwrap_or(0).saturating_add(tokens));
                    }
                    Ok(None) => {}
                    Err(_) => self.lost += 1,
                }
            }
            // More events come with new versions.
            _ => {}
        }
    }

    /// Whoever asked in the turn before waits no more. While subagents run, a turn may be one of theirs.
    fn turn(&mut self, claim: Claim, name: &str, detail: Option<&str>, at_ms: u64) {
        if self.subagents.iter().len() == 0 {
            self.questions.clear();
        }
        self.state(claim, name, detail, at_ms);
    }

    fn begin_tool(&mut self, id: &str, data: &Value, at_ms: u64) {
        let Some(tool) = data["toolName"].as_str() else { return };
        self.tools.begin(id, tool, at_ms);
        if tool == ASKING_TOOL {
            self.questions.begin(id, tool, at_ms);
        }
    }

    fn choose(&mut self, model: &Value) {
        if let Some(model) = model.as_str().filter(|model| !model.is_empty() && *model != NO_MODEL) {
            self.model = Some(word(model));
        }
    }

    /// Nothing is open any more: the turn was broken off, or its process has ended.
    fn forget_turn(&mut self) {
        self.turn = None;
        self.questions.clear();
        self.tools.clear();
        self.subagents.clear();
    }

    fn state(&mut self, claim: Claim, said: &str, detail: Option<&str>, at_ms: u64) {
        let detail = detail.map(str::to_owned);
        self.turn = Some(Evidence { source: Source::Transcript, claim, word: word(said), detail, at_ms });
    }
}

/// What an event is about. Without an id, all that have none are one.
fn id<'a>(data: &'a Value, key: &str) -> &'a str {
    data[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const BEGIN_MS: u64 = 1_788_688_800_000;

    /// The line of an event that happens so many seconds after the beginning.
    fn line(second: u8, name: &str, data: Value) -> String {
        json!({"id": "e", "timestamp": format!("2026-09-06T10:00:{second:02}.000Z"), "type": name, "data": data})
            .to_string()
    }

    fn events(lines: &[String]) -> Events {
        let mut events = Events::default();
        for line in lines {
            events.line(line.as_bytes(), 7);
        }
        events
    }

    /// Source, claim, detail and time of each statement.
    fn said(events: &Events) -> Vec<(Source, Claim, Option<String>, u64)> {
        events.statements().map(|said| (said.source, said.claim, said.detail, said.at_ms)).collect()
    }

    #[test]
    fn turns_begin_and_end() {
        let start = line(1, "assistant.turn_start", json!({"turnId": "0"}));
        let end = line(2, "assistant.turn_end", json!({"turnId": "0"}));
        let abort = line(3, "abort", json!({"reason": "user initiated"}));
        let shutdown = line(4, "session.shutdown", json!({}));
        let only = |lines: &[String]| said(&events(lines)).remove(0);
        assert_eq!(said(&events(&[line(0, "session.start", json!({}))])), []);
        assert_eq!(only(std::slice::from_ref(&start)), (Source::Transcript, Claim::Working, None, BEGIN_MS + 1000));
        assert_eq!(only(&[start.clone(), end.clone()]).1, Claim::Idle);
        let aborted = (Source::Transcript, Claim::Idle, Some("aborted".to_owned()), BEGIN_MS + 3000);
        assert_eq!(only(&[start.clone(), abort]), aborted);
        assert_eq!(only(&[start.clone(), end, shutdown]).1, Claim::Finished);
        assert_eq!(
            said(&events(&[start, line(5, "session.resume", json!({}))])),
            [],
            "that turn was another process's"
        );
    }

    #[test]
    fn a_person_is_waited_for_until_they_answer_that_very_question() {
        let start = line(1, "assistant.turn_start", json!({}));
        let ask = |second, id: &str| {
            line(second, "permission.requested", json!({"requestId": id, "permissionRequest": {"kind": "shell"}}))
        };
        let answer = |second, id: &str| line(second, "permission.completed", json!({"requestId": id}));
        let waiting = (Source::OwnRecord, Claim::Waiting, Some("permission prompt".to_owned()), BEGIN_MS + 2000);
        let asked = [start.clone(), ask(2, "a"), ask(3, "b")];
        assert_eq!(said(&events(&asked)).last(), Some(&waiting), "since the first question");
        let other = [&asked[..], &[answer(4, "b"), answer(5, "c")]].concat();
        assert_eq!(said(&events(&other)).last(), Some(&waiting));
        let answered = [&other[..], &[answer(6, "a")]].concat();
        assert_eq!(said(&events(&answered)), [(Source::Transcript, Claim::Working, None, BEGIN_MS + 1000)]);
        let broken_off = [&asked[..], &[line(7, "abort", json!({}))]].concat();
        assert_eq!(said(&events(&broken_off)).last().unwrap().1, Claim::Idle);
    }

    #[test]
    fn a_question_is_over_with_its_turn_also_where_no_answer_is_recorded() {
        let start = line(1, "assistant.turn_start", json!({}));
        let ask = line(2, "permission.requested", json!({"requestId": "a"}));
        let waits = |lines: &[&String]| {
            let lines: Vec<_> = lines.iter().map(|line| (*line).clone()).collect();
            said(&events(&lines)).iter().any(|(_, claim, ..)| *claim == Claim::Waiting)
        };
        assert!(waits(&[&start, &ask]));
        for over in ["assistant.turn_end", "assistant.turn_start", "user.message"] {
            assert!(!waits(&[&start, &ask, &line(3, over, json!({}))]), "{over}");
            assert!(waits(&[&start, &line(0, over, json!({})), &ask]), "{over}");
        }
        let beside = line(2, "subagent.started", json!({"toolCallId": "s"}));
        assert!(waits(&[&start, &beside, &ask, &line(3, "assistant.turn_end", json!({}))]), "it may be the subagent's");
    }

    #[test]
    fn a_tool_that_asks_is_a_question() {
        let call = json!({"toolCallId": "t", "toolName": "ask_user", "arguments": {"question": "secret"}});
        let asked = [
            line(1, "tool.execution_start", call),
            line(2, "tool.execution_start", json!({"toolCallId": "u", "toolName": "view"})),
        ];
        let question = (Source::OwnRecord, Claim::Waiting, Some("question".to_owned()), BEGIN_MS + 1000);
        assert_eq!(said(&events(&asked)), [question]);
        assert_eq!(events(&asked).usage(|_| true).unwrap().current_tool.as_deref(), Some("view"));
        let done = |id: &str| line(3, "tool.execution_complete", json!({"toolCallId": id, "success": true}));
        let answered = events(&[&asked[..], &[done("t"), done("u")]].concat());
        assert_eq!((said(&answered), answered.usage(|_| true).unwrap().current_tool), (vec![], None));
    }

    #[test]
    fn work_is_summed_up() {
        let lines = [
            line(0, "session.start", json!({"sessionId": "s"})),
            line(1, "session.model_change", json!({"newModel": "auto"})),
            line(1, "session.auto_mode_resolved", json!({"chosenModel": "gpt-5-mini"})),
            line(2, "assistant.message", json!({"content": "secret", "outputTokens": 40})),
            line(3, "assistant.message", json!({"model": "claude-haiku-4.5", "outputTokens": 2})),
            line(4, "subagent.started", json!({"toolCallId": "s"})),
        ];
        let expected = Usage {
            model: Some("claude-haiku-4.5".to_owned()),
            output_tokens: Some(42),
            subagents: Some(1),
            ..Usage::default()
        };
        assert_eq!(events(&lines).usage(|_| true), Some(expected));
        assert_eq!(events(&lines[..3]).usage(|_| true).unwrap().model.as_deref(), Some("gpt-5-mini"));
        let failed = line(5, "subagent.failed", json!({"toolCallId": "s"}));
        assert_eq!(events(&[&lines[..], &[failed]].concat()).usage(|_| true).unwrap().subagents, Some(0));
        assert_eq!(events(&[]).usage(|_| true), None);
        assert_eq!(events(&lines[1..]).usage(|_| true).unwrap().output_tokens, None, "there were more before");
    }

    #[test]
    fn what_began_in_an_earlier_life_does_not_run() {
        let all = events(&[
            line(1, "tool.execution_start", json!({"toolCallId": "t", "toolName": "bash"})),
            line(1, "subagent.started", json!({"toolCallId": "s"})),
        ]);
        let running = |started_ms: u64| {
            let usage = all.usage(|at_ms| at_ms >= started_ms).unwrap();
            (usage.current_tool, usage.subagents)
        };
        assert_eq!(running(BEGIN_MS + 1000), (Some("bash".to_owned()), Some(1)));
        assert_eq!(running(BEGIN_MS + 1001), (None, Some(0)));
    }

    #[test]
    fn forms_that_nobody_knows_are_told() {
        let start = line(1, "assistant.turn_start", json!({}));
        let told = |text: &str| said(&events(&[start.clone(), text.to_owned()])).remove(0).1;
        assert_eq!(told(&line(2, "some.future_event", json!([]))), Claim::Working);
        assert_eq!(told("{\"half"), Claim::Working);
        assert_eq!(told(&start.replace("timestamp", "time")), Claim::Unknown);
        assert_eq!(told("{}"), Claim::Unknown);
        assert_eq!(said(&events(&["binary".to_owned()])).remove(0).1, Claim::Unknown);
    }

    #[test]
    fn half_a_character_costs_no_line_and_what_is_not_understood_is_counted() {
        let half = |line: String| line.replace("HALF", r"\ud83d");
        let begin = [
            line(0, "session.start", json!({})),
            line(1, "assistant.turn_start", json!({})),
            line(2, "user_input.requested", json!({"requestId": "r"})),
            half(line(3, "user_input.completed", json!({"requestId": "r", "answer": "HALF"}))),
            half(line(4, "assistant.message", json!({"outputTokens": 7.0, "content": "HALF"}))),
        ];
        let whole = events(&begin);
        assert_eq!(said(&whole), [(Source::Transcript, Claim::Working, None, BEGIN_MS + 1000)]);
        assert_eq!((whole.usage(|_| true).unwrap().output_tokens, whole.lost()), (Some(7), 0));
        let odd = [line(5, "assistant.message", json!({"outputTokens": -1})), "{]".to_owned(), "{\"half".to_owned()];
        let odd = events(&[&begin[..], &odd].concat());
        assert_eq!((odd.usage(|_| true).unwrap().output_tokens, odd.lost()), (Some(7), 2));
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in proptest::collection::vec(any::<u8>(), 0..200), name in "[a-z._]{0,30}", data in "[\\[\\]{}\":,a-z0-9]{0,40}") {
            let mut events = Events::default();
            events.line(&line, 0);
            events.line(format!(r#"{{"timestamp":"2026-09-06T10:00:00Z","type":"{name}","data":{data}}}"#).as_bytes(), 0);
            for known in ["permission.requested", "permission.completed", "tool.execution_start", "assistant.message"] {
                events.line(format!(r#"{{"timestamp":"2026-09-06T10:00:00Z","type":"{known}","data":{data}}}"#).as_bytes(), 0);
            }
            prop_assert!(events.statements().count() <= 2);
        }
    }
}
