//! One line of `projects/<folder>/<session>.jsonl`. Prompts, answers and what tools are given are looked at no further than
//! is needed to tell what kind of line it is.

use crate::observe::records::value::{self, NotUnderstood, date, word};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// What is of use in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it was written, Unix milliseconds.
    pub at_ms: Option<u64>,
    /// Whether it belongs to a subagent, and only stands in this file.
    pub aside: bool,
    /// What it is.
    pub what: What,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A piece of what the model answered.
    Answer(Answer),
    /// Somebody asks for something: a turn begins.
    Prompt,
    /// These calls of tools have come back.
    Results(Vec<String>),
    /// The turn is over.
    TurnEnd(&'static str),
    /// Nothing that says anything of its work.
    Other,
}

/// A piece of what the model answered: each block is a line, and they share an id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The message's id.
    pub id: Option<String>,
    /// The model; `None` for messages that no model has made.
    pub model: Option<String>,
    /// Why the model stopped.
    pub stop: Option<String>,
    /// What the whole message has cost.
    pub tokens: Option<Tokens>,
    /// Whether something stands in the place of one of its figures that is none.
    pub odd: bool,
    /// Tools that are called: id and name.
    pub calls: Vec<(String, String)>,
}

/// Numbers of tokens. A figure that the record does not have is not known, and no zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Sent to the model.
    pub input: Option<u64>,
    /// Came back.
    pub output: Option<u64>,
    /// Read from the cache.
    pub cache_read: Option<u64>,
    /// Written to the cache.
    pub cache_write: Option<u64>,
}

impl Tokens {
    /// Those that a message tells, and whether something is told that is no number of tokens.
    fn of(usage: &Value) -> (Option<Self>, bool) {
        let count = |name: &str| value::count(&usage[name]);
        let figures =
            ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"].map(count);
        let odd = figures.iter().any(Result::is_err);
        let [input, output, cache_read, cache_write] = figures.map(Result::unwrap_or_default);
        (usage.is_object().then_some(Self { input, output, cache_read, cache_write }), odd)
    }
}

/// Messages that the program itself has written in the model's name.
const NO_MODEL: &str = "<synthetic>";

/// The longest id of a call that is kept, in characters: as long as those of the agent's events may be.
const LONGEST_ID: usize = 512;

fn id(text: &str) -> String {
    text.chars().take(LONGEST_ID).collect()
}

/// Reads one line.
///
/// # Errors
/// It is no JSON object, or a message that is not as messages were so far.
pub fn parse(line: &[u8]) -> Result<Line, NotUnderstood> {
    let raw: RawLine = match value::json(line) {
        Ok(raw) => raw,
        // Only messages matter; of all other lines it is enough that they are some.
        Err(error) => match value::json::<JustType>(line)?.kind.as_ref().and_then(Value::as_str) {
            Some("assistant" | "user") => return Err(error),
            _ => return Ok(Line { at_ms: None, aside: false, what: What::Other }),
        },
    };
    let at_ms = raw.timestamp.as_str().and_then(date);
    Ok(Line { at_ms, aside: raw.is_sidechain == true, what: raw.what() })
}

#[derive(Deserialize)]
struct JustType {
    #[serde(rename = "type")]
    kind: Option<Value>,
}

/// What is of another type than expected is as good as not there: the rest of the line still is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLine {
    #[serde(rename = "type")]
    kind: Option<Value>,
    #[serde(default)]
    subtype: Value,
    #[serde(default)]
    timestamp: Value,
    #[serde(default)]
    is_sidechain: Value,
    #[serde(default)]
    is_meta: Value,
    #[serde(default)]
    is_compact_summary: Value,
    message: Option<RawMessage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawMessage {
    id: Value,
    model: Value,
    stop_reason: Value,
    usage: Value,
    content: Content,
}

impl RawLine {
    fn what(self) -> What {
        let message = self.message.unwrap_or_default();
        match (self.kind.as_ref().and_then(Value::as_str), self.subtype.as_str()) {
            (Some("assistant"), _) => What::Answer(message.answer()),
            (Some("user"), _) => {
                let results: Vec<String> =
                    message.content.blocks.iter().filter_map(|b| b.tool_use_id.as_str().map(id)).collect();
                match message.content.text {
                    Some(Text::Interruption) => What::TurnEnd("interrupted"),
                    _ if !results.is_empty() => What::Results(results),
                    Some(Text::Prompt) if self.is_meta != true && self.is_compact_summary != true => What::Prompt,
                    _ => What::Other,
                }
            }
            (Some("system"), Some("turn_duration")) => What::TurnEnd("turn_duration"),
            (Some("system"), Some("stop_hook_summary")) => What::TurnEnd("stop_hook_summary"),
            _ => What::Other,
        }
    }
}

impl RawMessage {
    fn answer(self) -> Answer {
        let calls = self.content.blocks.iter().filter(|block| block.kind == "tool_use");
        let (tokens, odd) = Tokens::of(&self.usage);
        Answer {
            id: self.id.as_str().map(str::to_owned),
            model: self.model.as_str().filter(|model| *model != NO_MODEL).map(word),
            stop: self.stop_reason.as_str().map(word),
            tokens,
            odd,
            calls: calls.filter_map(|call| Some((id(call.id.as_str()?), word(call.name.as_str()?)))).collect(),
        }
    }
}

/// A message's content: a text, or blocks.
#[derive(Default)]
struct Content {
    /// What kind of text it has, if any.
    text: Option<Text>,
    blocks: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    name: Value,
    #[serde(default)]
    tool_use_id: Value,
    text: Option<Text>,
}

/// What a text is; the text itself is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Prompt,
    /// Written where a person has stopped the agent.
    Interruption,
    /// A command to the program, or its output, that no model sees a question in.
    Command,
}

/// How texts begin that the program writes in the user's name.
const COMMANDS: [&str; 4] = ["<command-", "<local-command-", "<bash-", "Caveat: "];

impl Text {
    fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with("[Request interrupted by user") {
            Self::Interruption
        } else if COMMANDS.iter().any(|begin| text.starts_with(begin)) {
            Self::Command
        } else {
            Self::Prompt
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Kept)?.text.ok_or_else(|| serde::de::Error::custom("no text"))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Kept)
    }
}

/// Reads a content in whatever form, without keeping its texts.
struct Kept;

impl<'de> Visitor<'de> for Kept {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content { text: Some(Text::of(text)), blocks: Vec::new() })
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(block) = seq.next_element::<Block>()? {
            if content.text.is_none() || block.text == Some(Text::Interruption) {
                content.text = block.text.or(content.text);
            }
            content.blocks.push(block);
        }
        Ok(content)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn what(line: &str) -> What {
        parse(line.as_bytes()).unwrap().what
    }

    fn user(content: &str) -> What {
        what(&format!(r#"{{"type": "user", "message": {{"role": "user", "content": {content}}}}}"#))
    }

    #[test]
    fn an_answer_has_its_model_its_tokens_and_its_calls() {
        let line = parse(
            br#"{"type":"assistant","timestamp":"1970-01-01T00:00:01Z","sessionId":"s","message":{"id":"m1","model":"m",
                "stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":3,"cache_read_input_tokens":0,"speed":"x"},
                "content":[{"type":"text","text":"secret"},{"type":"tool_use","id":"t1","name":"Bash","input":{"a":["secret"]}}]}}"#,
        )
        .unwrap();
        assert_eq!((line.at_ms, line.aside), (Some(1000), false));
        let tokens = Tokens { input: Some(9), output: Some(3), cache_read: Some(0), cache_write: None };
        let answer = Answer {
            id: Some("m1".to_owned()),
            model: Some("m".to_owned()),
            stop: Some("tool_use".to_owned()),
            tokens: Some(tokens),
            odd: false,
            calls: vec![("t1".to_owned(), "Bash".to_owned())],
        };
        assert_eq!(line.what, What::Answer(answer));
        assert!(!format!("{line:?}").contains("secret"));
    }

    #[test]
    fn what_is_kept_of_a_call_is_short() {
        let long = "x".repeat(100_000);
        let call = format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{long}","name":"{long}"}}]}}}}"#
        );
        let What::Answer(answer) = what(&call) else { panic!("is an answer") };
        assert_eq!(answer.calls, [(id(&long), word(&long))]);
        assert_eq!(id(&long).len(), LONGEST_ID);
        let result = user(&format!(r#"[{{"type":"tool_result","tool_use_id":"{long}"}}]"#));
        assert_eq!(result, What::Results(vec![id(&long)]), "it still ends its call");
    }

    #[test]
    fn only_what_is_asked_begins_a_turn() {
        for prompt in [r#""fix it""#, r#"[{"type": "image"}, {"type": "text", "text": "like this"}]"#] {
            assert_eq!(user(prompt), What::Prompt);
        }
        for aside in [r#""<command-name>/clear</command-name>""#, r#""<local-command-stdout>ok""#, "null", "{}", "[]"] {
            assert_eq!(user(aside), What::Other, "{aside}");
        }
        let noted = r#"{"type": "user", "isMeta": true, "message": {"content": "a reminder"}}"#;
        assert_eq!(what(noted), What::Other);
        assert_eq!(what(&noted.replace("isMeta", "isCompactSummary")), What::Other);
        let results = r#"[{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}]"#;
        assert_eq!(user(results), What::Results(vec!["t1".to_owned()]));
    }

    #[test]
    fn a_turn_ends_in_several_ways() {
        for text in
            [r#""[Request interrupted by user]""#, r#"[{"text": "[Request interrupted by user for tool use]"}]"#]
        {
            assert_eq!(user(text), What::TurnEnd("interrupted"));
        }
        for subtype in ["turn_duration", "stop_hook_summary"] {
            assert_eq!(what(&format!(r#"{{"type": "system", "subtype": "{subtype}"}}"#)), What::TurnEnd(subtype));
        }
        assert_eq!(what(r#"{"type": "system", "subtype": "compact_boundary"}"#), What::Other);
    }

    #[test]
    fn a_line_of_a_kind_that_nobody_knows_is_no_fault_but_a_strange_message_is() {
        assert_eq!(what(r#"{"type": "progress", "message": 7, "timestamp": []}"#), What::Other);
        assert_eq!(what("{}"), What::Other);
        assert!(!parse(br#"{"type": "assistant", "message": {"content": 7}}"#).unwrap_err().breaks_off);
        assert!(parse(br#"{"type": "assistant", "message": {"con"#).unwrap_err().breaks_off);
        for garbage in [&b"\xff\xfe"[..], b"[]", b"{", b"null", b"\0\0"] {
            assert!(parse(garbage).is_err());
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
        assert!(parse(format!(r#"{{"type": "user", "message": {{"content": {deep}"#).as_bytes()).is_err());
    }

    #[test]
    fn what_is_of_another_form_spoils_nothing_else_of_its_line() {
        let end = |text: &str, usage: &str| {
            let line = format!(
                r#"{{"type":"assistant","isSidechain":"no","message":{{"id":"m","model":7,"stop_reason":"end_turn",
                "content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":{usage},"output_tokens":3}}}}}}"#
            );
            let What::Answer(answer) = what(&line) else { panic!("is an answer") };
            assert_eq!((answer.stop.as_deref(), answer.tokens.unwrap().output), (Some("end_turn"), Some(3)), "{line}");
            (answer.tokens.unwrap().input, answer.odd)
        };
        assert_eq!(end(r"\ud83d", "9"), (Some(9), false), "half a character");
        assert_eq!(end("x", "9.0"), (Some(9), false));
        assert_eq!(end("x", "null"), (None, false));
        for odd in ["-1", "9.5", "1e400", "\"secret\"", "[]"] {
            assert_eq!(end("x", odd), (None, true), "{odd}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC*") {
            let _ = parse(&bytes);
            let texts = serde_json::json!({"type": text, "timestamp": text, "message": {"content": text, "model": text}});
            prop_assert!(parse(texts.to_string().as_bytes()).is_ok());
        }
    }
}
