//! Values in records whose format nobody promises: what is of another type than expected is not there.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::str;

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

/// Why a record, or a line of one, is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
// The parser's own message might quote what stands there.
#[error("is not understood (line {line})")]
pub struct NotUnderstood {
    /// It ends in its midst: a program that is killed while it writes leaves half a line.
    pub breaks_off: bool,
    line: usize,
}

/// Reads JSON as programs write it. What is no Unicode, an escape of half a character as JavaScript writes it, and a number
/// that is too large for any figure spoil nothing else.
///
/// # Errors
/// It is no JSON all the same, or of another form than expected.
pub fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NotUnderstood> {
    let read = serde_json::from_slice(bytes).or_else(|_| serde_json::from_slice(&mended(bytes)));
    read.map_err(|error| NotUnderstood { breaks_off: error.is_eof(), line: error.line() })
}

/// The same with nothing in it that the parser refuses though it is JSON, or was meant to be.
pub fn mended(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_bytes();
    let (mut mended, mut quoted) = (Vec::with_capacity(rest.len()), false);
    while let Some(byte) = rest.first() {
        quoted ^= *byte == b'"';
        let (taken, put) = match byte {
            b'\\' if quoted => escape(rest),
            b'-' | b'0'..=b'9' if !quoted => figure(rest),
            _ => (1, &rest[..1]),
        };
        mended.extend_from_slice(put);
        rest = &rest[taken..];
    }
    mended
}

/// How long the escape is that begins here, and what is put in its place: half a pair is no character.
fn escape(text: &[u8]) -> (usize, &[u8]) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let as_it_is = |length: usize| (length.min(text.len()), &text[..length.min(text.len())]);
    match (unit(0), unit(6)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => as_it_is(12),
        (Some(0xd800..=0xdfff), _) => (6, b"\\ufffd"),
        _ => as_it_is(2),
    }
}

/// How long the number is that begins here, and what is put in its place: the largest there is for one that is too large.
fn figure(text: &[u8]) -> (usize, &[u8]) {
    let length = text.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')).count();
    let number = str::from_utf8(&text[..length]).ok().and_then(|number| number.parse::<f64>().ok());
    (length, if number.is_some_and(f64::is_infinite) { b"1e308" } else { &text[..length] })
}

/// Reads an object.
///
/// # Errors
/// It is none, or no JSON.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    json(bytes).map_err(|error| error.to_string())
}

/// What stands in a figure's place and is none: it is not known, and no zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoFigure;

/// How many; `None`: it is not told.
pub type Figure = Result<Option<u64>, NoFigure>;

/// How many it says that there are, however the number is written.
///
/// # Errors
/// It is no number, or none of things that are counted.
pub fn count(value: &Value) -> Figure {
    /// Up to here each whole number has a value of its own.
    const EXACT: f64 = (1_u64 << 53) as f64;
    let whole = |number: f64| ((0.0..=EXACT).contains(&number) && number.fract() == 0.0).then_some(number as u64);
    match value {
        Value::Null => Ok(None),
        _ => value.as_u64().or_else(|| whole(value.as_f64()?)).map(Some).ok_or(NoFigure),
    }
}

/// What of a figure is left without those that are parts of it.
///
/// # Errors
/// One of them is none, or a part is larger than all of it.
pub fn without<const N: usize>(all: Figure, parts: [Figure; N]) -> Figure {
    let Some(all) = all? else { return Ok(None) };
    let rest = parts.into_iter().try_fold(all, |rest, part| rest.checked_sub(part?.unwrap_or(0)).ok_or(NoFigure));
    rest.map(Some)
}

/// A text that is not empty.
pub fn text<'r>(record: &'r Map<String, Value>, key: &str) -> Option<&'r str> {
    record.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// A whole number, or a text that is one.
pub fn number(record: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = record.get(key)?;
    count(value).unwrap_or_else(|_| value.as_str()?.trim().parse().ok())
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
    use proptest::prelude::*;
    use serde_json::json;

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

    #[test]
    fn what_the_parser_refuses_spoils_nothing_else() {
        let read = |text: &[u8]| super::json::<Value>(text).unwrap();
        for half in [&br#"\ud83d"#[..], br#"\uDE00"#, br#"\ud83d\ud83d"#, b"\xff\xfe", br#"\ud83d\n\"\\"#] {
            let line = [&br#"{"n": 7, "t": "a"#[..], half, br#" 1e999", "e": "\ud83d\ude00\\"}"#].concat();
            let read = read(&line);
            assert_eq!((&read["n"], &read["e"]), (&json!(7), &json!("\u{1f600}\\")), "{}", line.escape_ascii());
            assert!(read["t"].as_str().unwrap().starts_with("a\u{fffd}"), "{read}");
        }
        let numbers = read(br#"{"a": [1e400, -1e400, 9.0, -1, 5], "b": 3}"#);
        assert_eq!((&numbers["a"][4], &numbers["b"]), (&json!(5), &json!(3)));
        let counts: Vec<_> = numbers["a"].as_array().unwrap().iter().map(count).collect();
        assert_eq!(counts, [Err(NoFigure), Err(NoFigure), Ok(Some(9)), Err(NoFigure), Ok(Some(5))]);
        assert_eq!(
            [json!(null), json!(1.5), json!("7"), json!([])].map(|none| count(&none)),
            [Ok(None), Err(NoFigure), Err(NoFigure), Err(NoFigure)]
        );
        let broken = |text: &[u8]| super::json::<Value>(text).unwrap_err().breaks_off;
        assert!(broken(br#"{"a": "\ud83d"#) && broken(br#"{"a": "x\"#) && broken(br#"{"a": "\u12"#) && !broken(b"{]"));
    }

    #[test]
    fn a_part_is_no_larger_than_all_of_it() {
        assert_eq!(without(Ok(Some(9)), [Ok(Some(4)), Ok(None)]), Ok(Some(5)));
        assert_eq!(without(Ok(None), [Ok(Some(4))]), Ok(None));
        for no in [without(Ok(Some(9)), [Ok(Some(4)), Ok(Some(6))]), without(Ok(Some(9)), [Err(NoFigure)])] {
            assert_eq!(no, Err(NoFigure));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_sound_is_mended_to_itself(text in "\\PC*", number in any::<f64>(), bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let sound = json!({"text": text, text.clone(): [number, -7, true, null]}).to_string();
            prop_assert_eq!(mended(sound.as_bytes()), sound.into_bytes());
            let once = mended(&bytes);
            prop_assert_eq!(mended(&once), once);
        }
    }
}
