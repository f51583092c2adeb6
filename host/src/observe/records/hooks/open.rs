//! What is open in a conversation: questions that nobody has answered yet, and calls of tools that run.
//!
//! Tools run beside each other, and one that goes on is no answer to another one's question. A question is over when its
//! own call is, when it is answered by name, or when its turn ends or a new one begins.

use super::event::Event;
use super::meaning::{self, Meaning};
use super::note::Said;
use crate::observe::facts::Claim;
use serde::{Deserialize, Serialize};

/// So many questions and so many calls are kept, the newest.
const MOST: usize = 16;

/// Tools that are questions themselves: more than one event tells of the same.
const QUESTIONS: [&str; 2] = ["AskUserQuestion", "ExitPlanMode"];

/// Questions and calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The questions, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Said>,
    /// The events that began the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Event>,
}

impl Open {
    /// Takes up what an event asks, answers, begins or ends.
    pub fn take(&mut self, said: &Said, meaning: &Meaning) {
        let event = &said.event;
        match (meaning.claim, event.name.replace(".v2.", ".").as_str()) {
            (Claim::Waiting, _) if !meaning::breaks_off(event) => self.ask(said),
            // Some of it may run on in the background.
            (Claim::Working, "Stop" | "PostToolBatch") => self.end(event),
            (Claim::Waiting | Claim::Idle | Claim::Finished, _)
            | (_, "UserPromptSubmit" | "BeforeAgent" | "BeforeModel" | "AfterModel") => match event.subagent {
                Some(_) => self.end(event),
                None => *self = Self::default(),
            },
            (_, "PreToolUse") => push(&mut self.calls, event.clone()),
            // Gemini's tools run only once they may.
            (_, "BeforeTool") => self.answer(|question| question.tool.is_none()),
            (_, "permission.replied" | "question.replied" | "question.rejected" | "ElicitationResult") => {
                self.reply(event);
            }
            // OpenCode tells of answers.
            (_, "tool.execute.after") => {}
            (_, "PermissionDenied") => self.end_call(event),
            _ if meaning::ends_tool(event) => self.end_call(event),
            _ => {}
        }
    }

    /// What this agent or subagent had open is over.
    fn end(&mut self, event: &Event) {
        self.questions.retain(|question| question.event.subagent != event.subagent);
        self.calls.retain(|call| call.subagent != event.subagent);
    }

    fn ask(&mut self, said: &Said) {
        let mut said = said.clone();
        let event = &mut said.event;
        // A prompt is announced a second time, and without the tool's name.
        if event.tool.is_none() && event.call.is_none() && !self.questions.is_empty() {
            return;
        }
        if event.call.is_none() {
            event.call = self.only_call(event);
        }
        let is_question = event.tool.as_deref().is_some_and(|tool| QUESTIONS.contains(&tool));
        let is_same = |other: &Said| {
            let other = &other.event;
            let unsure = other.call.is_none() || event.call.is_none();
            same_tool(other, event) && if unsure { is_question } else { other.call == event.call }
        };
        if !self.questions.iter().any(is_same) {
            push(&mut self.questions, said);
        }
    }

    /// The id of the only call that a question can be about: one of its tool that no other question is about.
    fn only_call(&self, event: &Event) -> Option<String> {
        let is_asked = |call: &Event| self.questions.iter().any(|question| question.event.call == call.call);
        let mut calls =
            self.calls.iter().filter(|call| same_tool(call, event) && call.call.is_some() && !is_asked(call));
        let call = calls.next()?;
        calls.next().is_none().then(|| call.call.clone()).flatten()
    }

    /// A call is over: its question is, too. Where that cannot be told by an id, a question of the tool is answered as soon
    /// as fewer of its calls run than questions are open.
    fn end_call(&mut self, event: &Event) {
        let exact = |call: &Event| call.call.is_some() && call.call == event.call;
        let unsure = |call: &Event| same_tool(call, event) && (call.call.is_none() || event.call.is_none());
        let ended = self.calls.iter().position(exact).or_else(|| self.calls.iter().position(unsure));
        ended.map(|at| self.calls.remove(at));
        if self.questions.iter().any(|question| exact(&question.event)) {
            return self.answer(exact);
        }
        let running = self.calls.iter().filter(|call| same_tool(call, event)).count();
        let asked = self.questions.iter().filter(|question| same_tool(&question.event, event)).count();
        if running < asked {
            return self.answer(unsure);
        }
        self.answer(|question| {
            question.tool.is_none() && question.call.is_none() && question.subagent == event.subagent
        });
    }

    /// An answer that says which question it is for, if by anything, then by its id.
    fn reply(&mut self, event: &Event) {
        match event.call {
            Some(_) if self.questions.iter().any(|question| question.event.call == event.call) => {
                self.answer(|question| question.call == event.call);
            }
            Some(_) => self.answer(|question| question.call.is_none()),
            None => self.answer(|_| true),
        }
    }

    /// The oldest such question is answered.
    fn answer(&mut self, is_it: impl Fn(&Event) -> bool) {
        let at = self.questions.iter().position(|question| is_it(&question.event));
        at.map(|at| self.questions.remove(at));
    }
}

fn same_tool(a: &Event, b: &Event) -> bool {
    a.tool == b.tool && a.subagent == b.subagent
}

fn push<T>(all: &mut Vec<T>, new: T) {
    if all.len() == MOST {
        all.remove(0);
    }
    all.push(new);
}

#[cfg(test)]
mod tests {
    use super::super::meaning::meaning;
    use super::*;

    /// What is asked after these events, each `NAME`, `NAME(TOOL)` or `NAME(TOOL)#CALL`.
    fn asked(kind: &str, events: &[&str]) -> Vec<String> {
        let mut open = Open::default();
        for (at_ms, text) in events.iter().enumerate() {
            let (text, call) = text.split_once('#').map_or((*text, None), |(text, call)| (text, Some(call.to_owned())));
            let (name, tool) = text.split_once('(').map_or((text, None), |(name, tool)| (name, tool.strip_suffix(')')));
            let event = Event { name: name.into(), tool: tool.map(Into::into), call, ..Event::default() };
            let means = meaning(kind, &event).unwrap_or_else(|| panic!("{text}"));
            open.take(&Said { event, at_ms: at_ms as u64 }, &means);
        }
        open.questions.iter().map(|question| question.event.tool.clone().unwrap_or_default()).collect()
    }

    #[test]
    fn a_tool_beside_the_one_that_asks_is_no_answer() {
        let ask = ["PreToolUse(Bash)#1", "PermissionRequest(Bash)"];
        for beside in [
            &["PreToolUse(Read)#2", "PostToolUse(Read)#2"][..],
            &["PreToolUse(Bash)#2", "PostToolUse(Bash)#2"],
            &["PreToolUse(Bash)#2", "PostToolUseFailure(Bash)#2"],
        ] {
            assert_eq!(asked("claude", &[&ask[..], beside].concat()), ["Bash"], "{beside:?}");
        }
        for answer in ["PostToolUse(Bash)#1", "PostToolUse(Bash)", "Stop", "UserPromptSubmit", "SessionEnd"] {
            assert!(asked("claude", &[&ask[..], &[answer]].concat()).is_empty(), "{answer}");
        }
    }

    #[test]
    fn without_ids_calls_are_counted() {
        let two = ["PreToolUse(Bash)", "PreToolUse(Bash)", "PermissionRequest(Bash)"];
        assert_eq!(asked("claude", &two), ["Bash"]);
        assert_eq!(asked("claude", &[&two[..], &["PostToolUse(Bash)"]].concat()), ["Bash"], "the other may go on");
        assert!(asked("claude", &[&two[..], &["PostToolUse(Bash)"; 2]].concat()).is_empty());
    }

    #[test]
    fn of_several_questions_only_the_answered_one_is_over() {
        let both = ["PreToolUse(Bash)#1", "PermissionRequest(Bash)", "PreToolUse(Edit)#2", "PermissionRequest(Edit)"];
        assert_eq!(asked("claude", &both), ["Bash", "Edit"]);
        assert_eq!(asked("claude", &[&both[..], &["PostToolUse(Edit)#2"]].concat()), ["Bash"]);
        assert_eq!(asked("claude", &[&both[..], &["PostToolUse(Bash)#1"]].concat()), ["Edit"]);
        let same = ["PermissionRequest(Bash)#1", "PermissionRequest(Bash)#2", "PostToolUse(Bash)#2"];
        assert_eq!(asked("claude", &same), ["Bash"]);
        let twice = ["permission.asked(bash)#a", "permission.asked(edit)#b", "permission.replied#a"];
        assert_eq!(asked("opencode", &twice), ["edit"]);
        assert_eq!(asked("opencode", &[&twice[..], &["session.status"]].concat()), ["edit"]);
    }

    #[test]
    fn a_question_that_is_told_of_twice_is_one() {
        let told = ["PreToolUse(AskUserQuestion)#1", "PermissionRequest(AskUserQuestion)", "Elicitation"];
        assert_eq!(asked("claude", &told), ["AskUserQuestion"]);
        assert!(asked("claude", &[&told[..], &["PostToolUse(AskUserQuestion)#1"]].concat()).is_empty());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let many: Vec<String> = (0..40).map(|n| format!("PermissionRequest(Bash)#{n}")).collect();
        assert_eq!(asked("claude", &many.iter().map(String::as_str).collect::<Vec<_>>()).len(), MOST);
    }
}
