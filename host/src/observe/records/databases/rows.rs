//! Rows of databases whose form nobody promises, and JSON in them.

use super::super::value::{self, number, text, word};
use super::gap;
use crate::observe::facts::{Claim, Evidence, Gap, Source};
use crate::store::foreign::Row;
use serde_json::Value;

/// Times beyond this many are milliseconds, below it seconds.
const MILLISECONDS: u64 = 100_000_000_000;

/// A text of a row, as it is.
pub(super) fn word_of(row: &Row, column: &str) -> Option<String> {
    text(row, column).map(str::to_owned)
}

/// The JSON in a column; `None`: it is too large to be read, or none.
pub(super) fn json(row: &Row, column: &str) -> Option<Value> {
    value::json(text(row, column)?.as_bytes()).ok()
}

/// A time, Unix milliseconds.
pub(super) fn time(at: Option<u64>) -> Option<u64> {
    at.map(|at| if at > MILLISECONDS { at } else { at.saturating_mul(1000) })
}

/// A statement of a conversation.
pub(super) fn statement(claim: Claim, said: &str, detail: Option<&str>, at_ms: u64) -> Evidence {
    let detail = detail.map(word);
    Evidence { source: Source::Transcript, claim, word: word(said), detail, at_ms }
}

/// A number of tokens in a column, or the reason why there is none.
pub(super) fn tokens(row: &Row, column: &str, field: &'static str, gaps: &mut Vec<Gap>) -> Option<u64> {
    let why = match row.get(column) {
        None => format!("this version does not sum them up ({column})"),
        Some(Value::Null) => "none are recorded yet".to_owned(),
        Some(_) => match number(row, column) {
            Some(number) => return Some(number),
            None => format!("{column} is no number of tokens"),
        },
    };
    gaps.push(gap(field, &why));
    None
}

/// Numbers of tokens taken together, or the reason why they are not.
pub(super) fn sum(field: &'static str, numbers: &[u64], gaps: &mut Vec<Gap>) -> Option<u64> {
    let sum = numbers.iter().try_fold(0u64, |sum, number| sum.checked_add(*number));
    if sum.is_none() {
        gaps.push(gap(field, "they are more than can be counted"));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_spoils_no_message() {
        let data = r#"{"role": "assistant", "text": "cut \ud83d", "time": {"created": 1e400}}"#;
        let row = Row::from_iter([("data".to_owned(), data.into())]);
        let message = json(&row, "data").unwrap();
        assert_eq!((&message["role"], message["time"]["created"].as_u64()), (&"assistant".into(), None));
    }
}
