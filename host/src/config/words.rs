//! What the checker says: what was wanted, what was found, and which word may have been meant.

use super::auth::is_url;
use super::size::Size;
use super::span::Span;
use crate::names::https_url;
use serde_json::Value;
use std::fmt::Display;
use std::str::FromStr;

/// The candidate that `name` is most likely a misspelling of, if it is near enough to be one.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let distance = |candidate: &str| strsim::osa_distance(name, candidate);
    let near = candidates.min_by_key(|candidate| distance(candidate))?;
    (distance(near) <= (near.len().max(name.len()) / 3).max(1)).then_some(near)
}

pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

pub(super) fn has_type(types: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    match types {
        Value::Null => true,
        Value::Array(types) => types.iter().any(is),
        one => is(one),
    }
}

pub(super) fn wanted(schema: &Value, value: &Value) -> String {
    let name = |name: &str| match name {
        "string" if schema["format"] == "span" => "a length of time such as \"250ms\"",
        "string" if schema["format"] == "size" => "an amount of memory such as \"48MiB\"",
        "string" => "text in quotes",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "a table",
        _ => "something else",
    };
    let types = schema["type"].as_str().into_iter().chain(texts(&schema["type"]));
    let types: Vec<_> = types.filter(|one| *one != "null").map(name).collect();
    format!("wanted {}, found {}", types.join(" or "), found(value))
}

pub(super) fn found(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a table".into(),
        other => other.to_string(),
    }
}

/// A text as it may stand in a message: short, and with nothing that a terminal obeys.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// Of an amount that is written as text.
fn amount_fault<T: FromStr + PartialOrd + Display>(schema: &Value, text: &str) -> Option<String> {
    let Ok(amount) = text.parse::<T>() else {
        return Some(wanted(schema, &Value::String(text.into())));
    };
    let bound = |keyword| schema[keyword].as_str()?.parse::<T>().ok();
    if let Some(least) = bound("x-least").filter(|least| amount < *least) {
        return Some(format!("wanted at least {least}, found {text:?}"));
    }
    bound("x-most").filter(|most| amount > *most).map(|most| format!("wanted at most {most}, found {text:?}"))
}

/// What keeps a text from being of its schema's format.
pub(super) fn text_fault(schema: &Value, text: &str) -> Option<String> {
    match schema["format"].as_str() {
        Some("glob") => globset::Glob::new(text)
            .err()
            .map(|error| format!("wanted a glob, found {}: {}", quoted(text), error.kind())),
        Some("regex") => regex::Regex::new(text).err().map(|error| {
            // The last line of the regex crate's drawing is what it has to say.
            let error = error.to_string();
            let said = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("wanted a regular expression, found {}: {said}", quoted(text))
        }),
        Some("sha256") => {
            let digits = text.strip_prefix("sha256:").unwrap_or(text);
            let is_one = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let wanted = "wanted a SHA-256 of 64 hexadecimal digits, as `headcount policy check FILE` prints it";
            (!is_one).then(|| format!("{wanted}, found {}", quoted(text)))
        }
        Some("grant-id") => {
            let digits = text.strip_prefix("grt_").unwrap_or_default();
            let is_one = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let wanted = "wanted the id of a grant, grt_ and hexadecimal digits, as `headcount grants list` shows it";
            (!is_one).then(|| format!("{wanted}, found {}", quoted(text)))
        }
        Some("https-or-file") if !is_url(text) => None,
        Some("https" | "https-or-file") => {
            // What was found may hold a password.
            https_url(text).err().map(|why| format!("wanted an https URL: {why}"))
        }
        Some("span") => amount_fault::<Span>(schema, text),
        Some("size") => amount_fault::<Size>(schema, text),
        _ => None,
    }
}
