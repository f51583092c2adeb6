//! The parser of rollouts, Codex's transcripts: one line of JSON for each event, `{"timestamp", "type", "payload"}`.
//!
//! A rollout tells where a turn begins and ends. It never tells that an approval is asked for, so an open turn may be one
//! that waits for a person.

use crate::observe::facts::{Claim, Evidence, Source, Usage};
use crate::observe::records::event::{Open, time};
use crate::observe::records::follow::Parser;
use crate::observe::records::value::{count, json, without, word};
use crate::observe::records::{NO_APPROVALS, TURN_ENDED};
use serde_json::Value;

/// The kinds of lines that are known.
const KINDS: [&str; 6] =
    ["session_meta", "turn_context", "event_msg", "response_item", "compacted", "inter_agent_communication"];

/// What a rollout has said so far.
#[derive(Debug, Clone, Default)]
pub struct Rollout {
    statement: Option<Evidence>,
    usage: Usage,
    calls: Open,
    /// Whether any line was of a kind that is known.
    understood: bool,
    /// Whether anything was asked, said or done.
    touched: bool,
    /// When its last line was written, Unix milliseconds.
    last_ms: Option<u64>,
    /// Lines that were not understood.
    lost: u64,
}

impl Parser for Rollout {
    /// Turns of hours. What is older is summed up in what is younger.
    const END: Option<u64> = Some(2 << 20);

    fn line(&mut self, line: &[u8], now_ms: u64) {
        let event: Value = match json(line) {
            Ok(event) => event,
            Err(why) => {
                self.lost += u64::from(!why.breaks_off);
                // It says nothing about the others.
                if !self.understood {
                    self.strange("a line that is not JSON", now_ms);
                }
                return;
            }
        };
        let Some(kind) = event["type"].as_str() else { return self.strange("a line without a type", now_ms) };
        if !KINDS.contains(&kind) {
            // More kinds of lines come with new versions. Only where there is no other, it is another format.
            if !self.understood {
                self.strange(kind, now_ms);
            }
            return;
        }
        if !std::mem::replace(&mut self.understood, true) {
            // What came before was strange only as long as nothing else was known.
            self.statement = None;
        }
        self.last_ms = time(&event).or(self.last_ms);
        self.touched |= !matches!(kind, "session_meta" | "turn_context");
        let payload = &event["payload"];
        match (kind, payload["type"].as_str()) {
            _ if !payload.is_object() => self.strange(kind, now_ms),
            ("turn_context", _) => self.usage.model = payload["model"].as_str().map(word),
            ("event_msg", Some("token_count")) => self.count(&payload["info"]),
            ("event_msg", Some(name)) => self.turn(name, time(&event), now_ms),
            ("event_msg", None) => self.strange(kind, now_ms),
            ("response_item", Some(name)) => self.call(name, payload, time(&event).unwrap_or(now_ms)),
            _ => {}
        }
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

impl Rollout {
    /// What it says of its turn.
    pub fn statement(&self) -> Option<&Evidence> {
        self.statement.as_ref()
    }

    /// The calls that have not come back, by their ids, and when its last line was written. `None`: where its turn began is not
    /// read, there may be others.
    pub(super) fn calls(&self) -> Option<(Vec<String>, u64)> {
        let has_turn = self.statement.as_ref().is_some_and(|said| said.claim != Claim::Unknown);
        self.last_ms.filter(|_| has_turn).map(|last_ms| (self.calls.ids(), last_ms))
    }

    /// Whether nothing was asked, said or done in what was read.
    pub(super) fn is_untouched(&self) -> bool {
        self.understood && !self.touched && self.statement.is_none()
    }

    /// What it says of its work; `None`: nothing. A tool that was called when its process had not started, by `ran_at`, does
    /// not run.
    pub fn usage(&self, ran_at: impl Fn(u64) -> bool) -> Option<Usage> {
        let current_tool = self.calls.iter().rfind(|call| ran_at(call.at_ms)).map(|call| call.name.clone());
        let usage = Usage { current_tool, ..self.usage.clone() };
        (usage != Usage::default()).then_some(usage)
    }

    /// Where a turn begins and ends. All other events are of no concern.
    fn turn(&mut self, name: &str, at_ms: Option<u64>, now_ms: u64) {
        let (claim, detail) = match name {
            "task_started" | "turn_started" => (Claim::Working, Some(NO_APPROVALS)),
            "task_complete" | "turn_complete" => (Claim::Idle, Some(TURN_ENDED)),
            "turn_aborted" => (Claim::Idle, Some("aborted")),
            _ => return,
        };
        let Some(at_ms) = at_ms else { return self.strange(name, now_ms) };
        self.calls.clear();
        self.state(claim, name, detail, at_ms);
    }

    /// The beginnings and ends of tools' calls.
    fn call(&mut self, name: &str, payload: &Value, at_ms: u64) {
        let Some(id) = payload["call_id"].as_str() else { return };
        match (name, payload["name"].as_str()) {
            ("local_shell_call", _) => self.calls.begin(id, name, at_ms),
            (begin, Some(tool)) if begin.ends_with("_call") => self.calls.begin(id, tool, at_ms),
            (end, _) if end.ends_with("_output") => self.calls.end(id),
            _ => {}
        }
    }

    /// The tokens of the whole conversation, which Codex sums up itself, and how full the context was at the last call. The
    /// tokens of the cache are part of Codex's input.
    fn count(&mut self, info: &Value) {
        let total = |name: &str| count(&info["total_token_usage"][name]);
        let (input, read, written) =
            (total("input_tokens"), total("cached_input_tokens"), total("cache_write_input_tokens"));
        if input == Ok(None) {
            return;
        }
        let figures = [without(input, [read, written]), total("output_tokens"), read, written];
        self.lost += u64::from(figures.iter().any(Result::is_err));
        let [fresh, output, read, written] = figures.map(|figure| figure.unwrap_or_default());
        self.usage.input_tokens = fresh;
        self.usage.output_tokens = output;
        self.usage.cache_read_tokens = read;
        self.usage.cache_write_tokens = written;
        let window = info["model_context_window"].as_f64().filter(|window| *window > 0.0);
        let used = info["last_token_usage"]["total_tokens"].as_f64();
        self.usage.context_used_percent =
            window.zip(used).map(|(window, used)| (used / window * 100.0).clamp(0.0, 100.0));
    }

    /// A line of a form that is not known: whether a turn is open cannot be told from here on.
    fn strange(&mut self, what: &str, now_ms: u64) {
        self.state(Claim::Unknown, what, None, now_ms);
    }

    fn state(&mut self, claim: Claim, said: &str, detail: Option<&str>, at_ms: u64) {
        let detail = detail.map(str::to_owned);
        self.statement = Some(Evidence { source: Source::Transcript, claim, word: word(said), detail, at_ms });
    }
}

/// What a rollout's first line says of its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Whether it is the first line of a rollout.
    pub(super) is_meta: bool,
    /// Whether another conversation of the same process has started it.
    pub(super) is_subagent: bool,
    /// The id of the conversation that has started it.
    pub(super) parent: Option<String>,
    /// When it began, Unix milliseconds.
    pub(super) started_at_ms: Option<u64>,
}

impl Head {
    /// Of a line that is none, nothing is known.
    pub(super) fn new(first_line: &[u8]) -> Self {
        let meta: Value = json(first_line).unwrap_or_default();
        if meta["type"] != "session_meta" {
            return Self::default();
        }
        let subagent = &meta["payload"]["source"]["subagent"];
        let parent = subagent["thread_spawn"]["parent_thread_id"].as_str();
        Self {
            is_meta: true,
            is_subagent: !subagent.is_null(),
            parent: parent.map(str::to_owned),
            started_at_ms: time(&meta["payload"]).or_else(|| time(&meta)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a rollout of these lines says.
    fn rollout(lines: &[&str]) -> Rollout {
        let mut rollout = Rollout::default();
        for line in lines {
            rollout.line(line.as_bytes(), 7);
        }
        rollout
    }

    fn claim(lines: &[&str]) -> Option<(Claim, String, Option<String>, u64)> {
        rollout(lines).statement().map(|said| (said.claim, said.word.clone(), said.detail.clone(), said.at_ms))
    }

    const META: &str =
        r#"{"timestamp":"2026-09-06T10:00:00.000Z","type":"session_meta","payload":{"id":"u","source":"cli"}}"#;
    const STARTED: &str =
        r#"{"timestamp":"2026-09-06T10:00:01.000Z","type":"event_msg","payload":{"type":"task_started"}}"#;
    const CALL: &str = r#"{"timestamp":"2026-09-06T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"rm\"]}","call_id":"c1"}}"#;
    const OUTPUT: &str = r#"{"timestamp":"2026-09-06T10:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"ok"}}"#;
    const ABORTED: &str = r#"{"timestamp":"2026-09-06T10:00:04.000Z","type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}"#;
    const COMPLETE: &str =
        r#"{"timestamp":"2026-09-06T10:00:05.000Z","type":"event_msg","payload":{"type":"task_complete"}}"#;

    const BEGIN_MS: u64 = 1_788_688_800_000;

    #[test]
    fn an_open_turn_is_work_that_may_be_waiting() {
        assert_eq!(claim(&[META]), None);
        assert!(rollout(&[META]).is_untouched() && !rollout(&[]).is_untouched());
        assert!(!rollout(&[META, CALL]).is_untouched() && !rollout(&["{}"]).is_untouched());
        let open = (Claim::Working, "task_started".to_owned(), Some(NO_APPROVALS.to_owned()), BEGIN_MS + 1000);
        assert_eq!(claim(&[META, STARTED]), Some(open.clone()));
        assert_eq!(claim(&[META, STARTED, CALL, OUTPUT]), Some(open));
    }

    #[test]
    fn a_turn_that_has_ended_is_idleness() {
        let idle =
            |word: &str, detail: Option<&str>, ms| Some((Claim::Idle, word.to_owned(), detail.map(str::to_owned), ms));
        assert_eq!(claim(&[STARTED, COMPLETE]), idle("task_complete", Some("turn ended"), BEGIN_MS + 5000));
        assert_eq!(claim(&[STARTED, CALL, ABORTED]), idle("turn_aborted", Some("aborted"), BEGIN_MS + 4000));
        assert_eq!(rollout(&[STARTED, CALL, ABORTED]).usage(|_| true), None, "its call has ended, too");
    }

    #[test]
    fn a_tool_is_current_until_it_answers() {
        let tool = |lines: &[&str]| rollout(lines).usage(|_| true).and_then(|usage| usage.current_tool);
        assert_eq!(tool(&[STARTED, CALL]), Some("shell".to_owned()));
        assert_eq!(tool(&[STARTED, CALL, OUTPUT]), None);
        let local = r#"{"timestamp":"2026-09-06T10:00:02Z","type":"response_item","payload":{"type":"local_shell_call","call_id":"c2","action":{}}}"#;
        let custom = r#"{"timestamp":"2026-09-06T10:00:02Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"c3","input":"secret"}}"#;
        assert_eq!(tool(&[STARTED, local]), Some("local_shell_call".to_owned()));
        assert_eq!(tool(&[STARTED, CALL, custom]), Some("apply_patch".to_owned()));
        assert_eq!(
            tool(&[STARTED, CALL, custom, &custom.replace("_call\"", "_call_output\"")]),
            Some("shell".to_owned())
        );
    }

    #[test]
    fn which_calls_have_come_back_is_known_since_the_turn_began() {
        let calls = |lines: &[&str]| rollout(lines).calls();
        assert_eq!(calls(&[META, CALL]), None);
        assert_eq!(calls(&[STARTED, CALL]), Some((vec!["c1".to_owned()], BEGIN_MS + 2000)));
        assert_eq!(calls(&[STARTED, CALL, OUTPUT]), Some((vec![], BEGIN_MS + 3000)));
        assert_eq!(calls(&[STARTED, CALL, ABORTED]), Some((vec![], BEGIN_MS + 4000)));
    }

    #[test]
    fn a_tool_of_an_earlier_life_does_not_run() {
        let called_ms = BEGIN_MS + 2000;
        let tool = |started_ms: u64| {
            rollout(&[STARTED, CALL]).usage(|at_ms| at_ms >= started_ms).and_then(|usage| usage.current_tool)
        };
        assert_eq!((tool(called_ms), tool(called_ms + 1)), (Some("shell".to_owned()), None));
    }

    #[test]
    fn tokens_are_those_of_the_whole_conversation() {
        let context = r#"{"timestamp":"2026-09-06T10:00:01Z","type":"turn_context","payload":{"cwd":"/w","model":"gpt-5-codex"}}"#;
        let count = |total: &str, window: &str| {
            format!(
                r#"{{"timestamp":"2026-09-06T10:00:02Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{total},"last_token_usage":{{"total_tokens":68000}},"model_context_window":{window}}}}}}}"#
            )
        };
        let none =
            r#"{"timestamp":"2026-09-06T10:00:02Z","type":"event_msg","payload":{"type":"token_count","info":null}}"#;
        let total = r#"{"input_tokens":1000,"cached_input_tokens":600,"output_tokens":50,"reasoning_output_tokens":20,"total_tokens":1050}"#;
        let usage = rollout(&[context, none, &count(total, "272000"), none]).usage(|_| true).unwrap();
        let expected = Usage {
            model: Some("gpt-5-codex".to_owned()),
            input_tokens: Some(400),
            output_tokens: Some(50),
            cache_read_tokens: Some(600),
            context_used_percent: Some(25.0),
            ..Usage::default()
        };
        assert_eq!(usage, expected);
        for window in ["null", "0", "\"big\"", "-1"] {
            assert_eq!(
                rollout(&[&count(total, window)]).usage(|_| true).unwrap().context_used_percent,
                None,
                "{window}"
            );
        }
        assert_eq!(rollout(&[&count(r#"{"input":1}"#, "1")]).usage(|_| true), None, "a renamed field is not 0");
    }

    #[test]
    fn events_that_nobody_knows_change_nothing_and_forms_that_nobody_knows_are_told() {
        let unknown_event = STARTED.replace("task_started", "guardian_yawned");
        let unknown_line = r#"{"type":"world_state","state":{}}"#;
        let half = &STARTED[..40];
        assert_eq!(claim(&[STARTED, &unknown_event, unknown_line, half]).unwrap().0, Claim::Working);
        let told =
            |lines: &[&str]| claim(lines).filter(|(claim, ..)| *claim == Claim::Unknown).map(|(_, word, ..)| word);
        assert_eq!(told(&[STARTED, &STARTED.replace("payload", "data")]), Some("event_msg".to_owned()));
        assert_eq!(told(&[STARTED, r#"{"kind":"task_started"}"#]), Some("a line without a type".to_owned()));
        assert_eq!(told(&[&STARTED.replace("timestamp", "ts")]), Some("task_started".to_owned()));
        assert_eq!(told(&[&STARTED.replace("\"type\":\"task", "\"name\":\"task")]), Some("event_msg".to_owned()));
        assert_eq!(told(&[unknown_line]), Some("world_state".to_owned()));
        assert_eq!(told(&["\u{1}\u{2}"]), Some("a line that is not JSON".to_owned()));
        assert_eq!(claim(&[unknown_line, "\u{1}", CALL]), None);
        assert_eq!(claim(&["\u{1}", STARTED]).unwrap().0, Claim::Working);
    }

    #[test]
    fn half_a_character_costs_no_line_and_an_odd_figure_only_itself() {
        let surrogate = COMPLETE.replace("task_complete\"", r#"task_complete","last_agent_message":"\ud83d""#);
        assert_eq!(claim(&[STARTED, &surrogate]).unwrap().0, Claim::Idle);
        let count = |input: &str, cached: &str| {
            let line = format!(
                r#"{{"timestamp":"2026-09-06T10:00:02Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":5}}}}}}}}"#
            );
            let rollout = rollout(&[META, &line]);
            let usage = rollout.usage(|_| true).unwrap();
            assert_eq!(usage.output_tokens, Some(5));
            (usage.input_tokens, usage.cache_read_tokens, rollout.lost())
        };
        assert_eq!(count("9.0", "4"), (Some(5), Some(4), 0));
        assert_eq!(count("10", "50"), (None, Some(50), 1), "a part is no larger than all of it");
        assert_eq!(count("-1", "4"), (None, Some(4), 1));
        assert_eq!(count("10", "1e400"), (None, None, 1));
        assert_eq!(rollout(&[META, "{]", "{\"half", "\u{1}"]).lost(), 2);
    }

    #[test]
    fn a_subagent_says_that_it_is_one_and_whose() {
        let head = |line: &str| Head::new(line.as_bytes());
        let spawned = r#"{"subagent":{"thread_spawn":{"parent_thread_id":"p","depth":1}}}"#;
        let subagent = META.replace(r#""cli""#, spawned);
        let of = |parent: Option<&str>| Head {
            is_meta: true,
            is_subagent: true,
            parent: parent.map(str::to_owned),
            started_at_ms: Some(BEGIN_MS),
        };
        assert_eq!(head(&subagent), of(Some("p")));
        assert_eq!(head(&META.replace(r#""cli""#, r#"{"subagent":"review"}"#)), of(None));
        assert_eq!(head(META), Head { is_meta: true, started_at_ms: Some(BEGIN_MS), ..Head::default() });
        let earlier = META.replace(r#""id":"u""#, r#""timestamp":"2026-09-06T09:00:00Z""#);
        assert_eq!(
            head(&earlier).started_at_ms,
            Some(BEGIN_MS - 3_600_000),
            "that of the conversation, not of the line"
        );
        for no in [STARTED, "", "{", "[1]", &subagent.replace("session_meta", "event_msg")] {
            assert_eq!(head(no), Head::default(), "{no}");
        }
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..200, put in any::<u8>()) {
            let mut rollout = rollout(&[]);
            rollout.line(&line, 0);
            for known in [META, STARTED, CALL, OUTPUT, ABORTED, COMPLETE] {
                let mut bytes = known.as_bytes().to_vec();
                let place = at % bytes.len();
                bytes[place] = put;
                rollout.line(&bytes, 0);
            }
            let words = rollout.statement().map_or(0, |said| said.word.chars().count());
            prop_assert!(words <= 64);
        }
    }
}
