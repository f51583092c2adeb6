//! Records with a mark in every place where an agent's work stands: prompts, answers, inputs of tools, paths.

use serde_json::{Map, Value};

/// What must never come out. It is no word, so that no name can be made of it.
pub const MARK: &str = "my password: /hunter2";

/// Members that hold work in one of the records.
const WORK: [&str; 23] = [
    "arguments",
    "block",
    "command",
    "content",
    "cwd",
    "description",
    "detail",
    "input",
    "intent",
    "ipcToken",
    "last_agent_message",
    "message",
    "needs",
    "output",
    "parts",
    "prompt",
    "question",
    "result",
    "text",
    "thinking",
    "tool_input",
    "tool_response",
    "transcript_path",
];

/// The same record with the mark in it; `None`: no part of it is JSON, or the mark stands in it already, who knows where: a
/// fuzzer learns it.
pub fn with_secrets(bytes: &[u8]) -> Option<Vec<u8>> {
    if has_mark(bytes) || bytes.contains(&b'\\') && has_mark(&unescaped(bytes)) {
        return None;
    }
    if let Some(whole) = marked(bytes) {
        return Some(whole);
    }
    let mut lines = Vec::new();
    let mut any = false;
    for line in bytes.split(|&byte| byte == b'\n') {
        let with_mark = marked(line);
        any |= with_mark.is_some();
        lines.push(with_mark.unwrap_or_else(|| line.to_vec()));
    }
    any.then(|| lines.join(&b'\n'))
}

/// All that a parser makes of escapes.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map(|value| value.to_string()).unwrap_or_default();
    let lines = bytes.split(|&byte| byte == b'\n').map(json);
    std::iter::once(json(bytes)).chain(lines).collect::<String>().into_bytes()
}

/// Whether the mark stands in these bytes.
pub fn has_mark(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes())
}

fn marked(json: &[u8]) -> Option<Vec<u8>> {
    let mut object: Map<String, Value> = serde_json::from_slice(json).ok()?;
    mark_members(&mut object);
    serde_json::to_vec(&object).ok()
}

fn mark_members(object: &mut Map<String, Value>) {
    for (name, value) in object {
        match value {
            Value::String(text) if name == "waitingFor" => *text = format!("approve Bash: {MARK}"),
            // A message, and its content, may be built of members that are no work: those are gone through.
            Value::Object(inside) if name == "message" => mark_members(inside),
            Value::Array(blocks) if name == "content" => blocks.iter_mut().for_each(mark_block),
            value if WORK.contains(&name.as_str()) => mark_all(value),
            Value::Object(inside) => mark_members(inside),
            Value::Array(items) => {
                items.iter_mut().for_each(|item| item.as_object_mut().into_iter().for_each(mark_members))
            }
            _ => {}
        }
    }
}

fn mark_block(block: &mut Value) {
    match block {
        Value::Object(members) => mark_members(members),
        other => mark_all(other),
    }
}

/// Puts the mark in place of all text.
fn mark_all(value: &mut Value) {
    match value {
        Value::String(text) => MARK.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(mark_all),
        Value::Object(members) => members.values_mut().for_each(mark_all),
        _ => {}
    }
}
