//! The JSON in what a tool returns.

use super::super::CallToolResult;
use crate::text::clean;
use serde_json::Value;
use std::borrow::Cow;

/// So many keys are named of what is there.
const NAMED: usize = 12;

/// What a tool has returned: its structured content, or the first text that is a JSON object or list.
///
/// # Errors
/// In words, when the tool says that it has failed, or there is no JSON.
pub fn json(result: &CallToolResult) -> Result<Cow<'_, Value>, String> {
    let mut texts = result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str());
    if result.is_error == Some(true) {
        return Err(match texts.next().map(clean) {
            Some(text) if !text.trim().is_empty() => format!("the tool has failed: {text}"),
            _ => "the tool has failed".into(),
        });
    }
    if let Some(content) = &result.structured_content {
        return Ok(Cow::Borrowed(content));
    }
    let is_tree = |value: &Value| value.is_object() || value.is_array();
    let found = texts.find_map(|text| serde_json::from_str(text).ok().filter(is_tree));
    found
        .map(Cow::Owned)
        .ok_or_else(|| "the answer holds no JSON: no structured content, and no text that is one".into())
}

/// What stands in a value, in words that hold none of its content: keys alone.
pub fn form(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "true or false".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "text".into(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(entries) if entries.is_empty() => "an empty object".into(),
        Value::Object(entries) => {
            let short = |key: &String| clean(key).chars().take(40).collect::<String>();
            let mut keys: Vec<_> = entries.keys().take(NAMED).map(short).collect();
            if entries.len() > NAMED {
                keys.push("…".into());
            }
            format!("an object with {}", keys.join(", "))
        }
    }
}
