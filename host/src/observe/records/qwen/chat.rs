//! The parser of Qwen's chats: one line of JSON for each message, and in those of the model what it has used.

use crate::observe::facts::Usage;
use crate::observe::records::follow::Parser;
use crate::observe::records::value::{NoFigure, count, json, without, word};
use serde_json::Value;

/// What a chat has said so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    usage: Usage,
    /// Lines that were not understood, or not all of them.
    lost: u64,
}

impl Parser for Chat {
    const END: Option<u64> = None;

    fn line(&mut self, line: &[u8], _now_ms: u64) {
        let message: Value = match json(line) {
            Ok(message) => message,
            Err(why) => return self.lost += u64::from(!why.breaks_off),
        };
        // What was copied from another session was counted there.
        if message["type"] != "assistant" || !message["forkedFrom"].is_null() {
            return;
        }
        match Used::of(&message["usageMetadata"]) {
            Ok(Some(used)) => self.answer(&message, used),
            Ok(None) => {}
            Err(_) => self.lost += 1,
        }
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

/// What one answer has used.
struct Used {
    prompt: u64,
    /// What of the prompt was not in the cache.
    fresh: u64,
    cached: u64,
    output: u64,
}

impl Used {
    /// `Ok(None)`: nothing is told.
    fn of(usage: &Value) -> Result<Option<Self>, NoFigure> {
        let used = |name: &str| count(&usage[name]);
        let (prompt, cached) = (used("promptTokenCount"), used("cachedContentTokenCount"));
        let Some((prompt, fresh)) = prompt?.zip(without(prompt, [cached])?) else { return Ok(None) };
        let [answer, thoughts] = ["candidatesTokenCount", "thoughtsTokenCount"].map(used);
        let output = answer?.unwrap_or(0).saturating_add(thoughts?.unwrap_or(0));
        Ok(Some(Self { prompt, fresh, cached: cached?.unwrap_or(0), output }))
    }
}

impl Chat {
    /// What it says of its work; `None`: nothing.
    pub fn usage(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then(|| self.usage.clone())
    }

    fn answer(&mut self, message: &Value, used: Used) {
        let usage = &mut self.usage;
        for (sum, more) in [
            (&mut usage.input_tokens, used.fresh),
            (&mut usage.output_tokens, used.output),
            (&mut usage.cache_read_tokens, used.cached),
        ] {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        }
        // A subagent's model and context are not those of the session.
        if message["isSidechain"] != true {
            usage.model = message["model"].as_str().map(word);
            let window = message["contextWindowSize"].as_f64().filter(|window| *window > 0.0);
            usage.context_used_percent = window.map(|window| (used.prompt as f64 / window * 100.0).min(100.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn answer(prompt: u64, cached: u64, output: u64) -> Value {
        json!({
            "type": "assistant", "model": "qwen3-coder-plus", "contextWindowSize": 1000, "message": {"parts": ["secret"]},
            "usageMetadata": {
                "promptTokenCount": prompt, "cachedContentTokenCount": cached, "candidatesTokenCount": output,
                "thoughtsTokenCount": 1, "totalTokenCount": prompt + output,
            },
        })
    }

    fn chat(messages: &[Value]) -> Option<Usage> {
        let mut chat = Chat::default();
        for message in messages {
            chat.line(message.to_string().as_bytes(), 0);
        }
        chat.usage()
    }

    #[test]
    fn tokens_are_summed_up_and_the_context_is_the_last_ones() {
        let mut copied = answer(7, 7, 7);
        copied["forkedFrom"] = json!({"sessionId": "s"});
        let mut subagent = answer(900, 0, 1);
        subagent["isSidechain"] = json!(true);
        subagent["model"] = json!("small");
        let user = json!({"type": "user", "message": {"parts": []}});
        let expected = Usage {
            model: Some("qwen3-coder-plus".to_owned()),
            input_tokens: Some(100 + 50 + 900),
            output_tokens: Some(11 + 21 + 2),
            cache_read_tokens: Some(200),
            context_used_percent: Some(25.0),
            ..Usage::default()
        };
        assert_eq!(chat(&[copied, user, answer(100, 0, 10), answer(250, 200, 20), subagent]), Some(expected));
    }

    #[test]
    fn what_is_not_there_is_not_0() {
        let mut renamed = answer(1, 1, 1);
        renamed["usageMetadata"] = json!({"prompt_tokens": 5});
        assert_eq!(chat(&[renamed, json!([]), json!({"type": "assistant"})]), None);
        let mut no_window = answer(1, 0, 1);
        no_window["contextWindowSize"] = json!(0);
        assert_eq!(chat(&[no_window]).unwrap().context_used_percent, None);
    }

    #[test]
    fn half_a_character_costs_no_line_and_an_odd_figure_is_counted_as_such() {
        let half = answer(100, 0, 10).to_string().replace("secret", r"\ud83d").replace("1000", "1000.0");
        let said = |odd: &str| {
            let mut chat = Chat::default();
            chat.line(half.as_bytes(), 0);
            chat.line(odd.as_bytes(), 0);
            (chat.usage().unwrap().input_tokens, chat.lost())
        };
        assert_eq!(said("{\"half"), (Some(100), 0));
        for odd in ["{]", &answer(1, 2, 0).to_string(), &half.replace(":100,", ":-1,")] {
            assert_eq!(said(odd), (Some(100), 1), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in proptest::collection::vec(any::<u8>(), 0..200), tokens in any::<u64>(), window in any::<f64>()) {
            let mut chat = Chat::default();
            chat.line(&line, 0);
            let message = json!({
                "type": "assistant", "contextWindowSize": window,
                "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": tokens, "thoughtsTokenCount": tokens},
            });
            for _ in 0..3 {
                chat.line(message.to_string().as_bytes(), 0);
            }
            let percent = chat.usage().and_then(|usage| usage.context_used_percent);
            prop_assert!(percent.is_none_or(|percent| (0.0..=100.0).contains(&percent)));
        }
    }
}
