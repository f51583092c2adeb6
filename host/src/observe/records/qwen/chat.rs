//! The parser of Qwen's chats: one line of JSON for each message, and in those of the model what it has used.

use crate::observe::facts::Usage;
use crate::observe::records::follow::Parser;
use crate::observe::records::value::word;
use serde_json::Value;

/// What a chat has said so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat(Usage);

impl Parser for Chat {
    const END: Option<u64> = None;

    fn line(&mut self, line: &[u8], _now_ms: u64) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        // What was copied from another session was counted there.
        if message["type"] != "assistant" || !message["forkedFrom"].is_null() {
            return;
        }
        let used = |name: &str| message["usageMetadata"][name].as_u64();
        let Some(prompt) = used("promptTokenCount") else { return };
        let cached = used("cachedContentTokenCount").unwrap_or(0);
        let answer = used("candidatesTokenCount").unwrap_or(0).saturating_add(used("thoughtsTokenCount").unwrap_or(0));
        let usage = &mut self.0;
        for (sum, more) in [
            // Tokens of the cache are part of the prompt.
            (&mut usage.input_tokens, prompt.saturating_sub(cached)),
            (&mut usage.output_tokens, answer),
            (&mut usage.cache_read_tokens, cached),
        ] {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        }
        // A subagent's model and context are not those of the session.
        if message["isSidechain"] != true {
            usage.model = message["model"].as_str().map(word);
            let window = message["contextWindowSize"].as_f64().filter(|window| *window > 0.0);
            usage.context_used_percent = window.map(|window| (prompt as f64 / window * 100.0).min(100.0));
        }
    }
}

impl Chat {
    /// What it says of its work; `None`: nothing.
    pub fn usage(&self) -> Option<Usage> {
        (self.0 != Usage::default()).then(|| self.0.clone())
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
