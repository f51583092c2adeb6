//! What a conversation has used, where nobody has summed it up: by its answers, and never one of them twice.

use super::super::value::{json, text};
use crate::store::foreign::opencode::{self, SUMMED};
use crate::store::foreign::{Opened, Row, Unread};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// The tokens, by the columns that a session of OpenCode's has for its sums.
const COLUMNS: [&str; 5] =
    ["tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"];

/// What counts of a message. Only that is taken from it: most of one is text.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: Value,
    #[serde(default)]
    tokens: Value,
}

impl Message {
    fn is_answer(&self) -> bool {
        self.role == "assistant"
    }

    /// Its tokens, in the order of the columns.
    fn tokens(&self) -> [&Value; COLUMNS.len()] {
        ["/input", "/output", "/reasoning", "/cache/read", "/cache/write"]
            .map(|place| self.tokens.pointer(place).unwrap_or(&Value::Null))
    }
}

/// Sums over the first messages of a conversation, in the order of their ids, which is that of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// The last message of them.
    last: String,
    messages: u64,
    tokens: [Value; COLUMNS.len()],
    /// Whether there were such as could not be read.
    misses_some: bool,
}

/// What is known of the sums of a conversation.
#[derive(Debug, PartialEq)]
pub(super) enum Sum {
    /// All of it, as a session has it.
    Whole(Row),
    /// Not all of it could be read.
    Holed,
    /// The next look goes on with it.
    Unfinished,
}

impl Sums {
    /// Goes on with the sums of a conversation of OpenCode's, until the database has been open for so long.
    ///
    /// Kept is what stands before the newest answer: that one alone still grows. If there are not as many messages before it
    /// as were summed up, some were taken back, and all begins anew.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) fn go_on(&mut self, db: &Opened, session: &str, until: Duration) -> Result<Sum, Unread> {
        if self.messages != opencode::messages_up_to(db, session, &self.last)? {
            *self = Self::default();
        }
        let (mut all, begun) = (self.clone(), self.messages);
        loop {
            let messages = opencode::messages_after(db, session, &all.last)?;
            for row in &messages {
                let message: Option<Message> = text(row, "data").and_then(|data| json(data.as_bytes()).ok());
                if message.as_ref().is_some_and(Message::is_answer) {
                    self.clone_from(&all);
                }
                all.add(text(row, "id").unwrap_or_default(), message);
            }
            if messages.len() < SUMMED as usize {
                return Ok(all.whole());
            }
            // Without a step forward the next look would come no further.
            if db.open_for() >= until && self.messages > begun {
                return Ok(Sum::Unfinished);
            }
        }
    }

    fn add(&mut self, id: &str, message: Option<Message>) {
        id.clone_into(&mut self.last);
        self.messages += 1;
        self.misses_some |= message.is_none();
        if let Some(answer) = message.filter(Message::is_answer) {
            for (sum, more) in self.tokens.iter_mut().zip(answer.tokens()) {
                *sum = plus(sum, more);
            }
        }
    }

    fn whole(self) -> Sum {
        if self.misses_some {
            return Sum::Holed;
        }
        Sum::Whole(COLUMNS.map(str::to_owned).into_iter().zip(self.tokens).collect())
    }
}

/// The sum of two numbers; nothing is none, and with what is no number, or with more than can be counted, the sum is no number.
fn plus(sum: &Value, more: &Value) -> Value {
    match (sum, more) {
        (known, Value::Null) | (Value::Null, known) => known.clone(),
        _ => {
            sum.as_u64().zip(more.as_u64()).and_then(|(a, b)| a.checked_add(b)).map_or("uncounted".into(), Value::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_counted_is_no_number() {
        let (none, huge) = (Value::Null, Value::from(u64::MAX));
        assert_eq!(plus(&none, &none), none);
        assert_eq!((plus(&none, &7.into()), plus(&3.into(), &none)), (7.into(), 3.into()));
        assert_eq!(plus(&3.into(), &4.into()), 7);
        for (a, b) in
            [(huge.clone(), 1.into()), (3.into(), "many".into()), (3.into(), (-3).into()), (3.into(), 0.5.into())]
        {
            assert_eq!(plus(&a, &b).as_u64(), None, "{a} + {b}");
        }
    }
}
