//! Rows of databases whose form nobody promises, and JSON in them.

use super::super::value::{number, text, word};
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
    serde_json::from_str(text(row, column)?).ok()
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
