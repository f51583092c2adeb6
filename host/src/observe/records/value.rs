//! Values in records whose format nobody promises: what is of another type than expected is not there.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// The longest word that is taken from a record, in characters: a status, a model, a tool's name.
const LONGEST_WORD: usize = 64;

/// A word of a record, as it may be passed on.
pub fn word(text: &str) -> String {
    text.chars().take(LONGEST_WORD).collect()
}

/// A text, if it is one word: a name that a program has for something, which quotes nothing.
pub fn plain(text: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    ((1..=LONGEST_WORD).contains(&text.len()) && text.bytes().all(is_plain)).then_some(text)
}

/// An id that an agent has made and that may be part of a file's name: no dots, no slashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(String);

impl Id {
    /// `text`, if it is one.
    pub fn new(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        ((1..=64).contains(&text.len()) && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads an object.
///
/// # Errors
/// It is none, or no JSON.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    // The parser's own message might quote what stands there.
    serde_json::from_slice(bytes).map_err(|error| format!("is not understood (line {})", error.line()))
}

/// A text that is not empty.
pub fn text<'r>(record: &'r Map<String, Value>, key: &str) -> Option<&'r str> {
    record.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// A whole number, or a text that is one.
pub fn number(record: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = record.get(key)?;
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A time as Unix milliseconds: so given, or as a date.
pub fn time(record: &Map<String, Value>, key: &str) -> Option<u64> {
    number(record, key).or_else(|| date(text(record, key)?))
}

/// A date as Unix milliseconds.
pub fn date(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_another_type_is_not_there() {
        let record = object(br#"{"n": 7, "s": "8", "d": "1970-01-01T00:00:01.5Z", "x": [], "e": ""}"#).unwrap();
        let numbers = ["n", "s", "d", "x", "none"].map(|key| number(&record, key));
        assert_eq!(numbers, [Some(7), Some(8), None, None, None]);
        let times = ["n", "s", "d", "x", "none"].map(|key| time(&record, key));
        assert_eq!(times, [Some(7), Some(8), Some(1500), None, None]);
        let texts = ["n", "s", "e"].map(|key| text(&record, key));
        assert_eq!(texts, [None, Some("8"), None]);
        assert_eq!(date("1960-01-01T00:00:00Z"), None);
        assert_eq!(object(b"[\"secret\"]").unwrap_err(), "is not understood (line 1)");
    }
}
