//! The parser of Cursor's transcripts: one line of JSON for each message, without a time, and one where a turn has ended.
//!
//! A call of a tool is written when the tool has run, and nothing of what a person is asked: an open turn may wait.

use crate::observe::facts::Claim;
use crate::observe::records::follow::Parser;
use crate::observe::records::value::{json, word};
use crate::observe::records::{NO_APPROVALS, TURN_ENDED};
use serde_json::Value;

/// What a transcript has said so far.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    last: Option<Last>,
    /// Whether any line told of the end of a turn: older versions write none.
    tells_ends: bool,
}

/// What the last line says of the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Last {
    pub claim: Claim,
    pub word: String,
    pub detail: Option<String>,
}

impl Last {
    fn new(claim: Claim, said: &str, detail: Option<&str>) -> Self {
        Self { claim, word: word(said), detail: detail.map(word) }
    }
}

impl Parser for Transcript {
    /// Turns of hours. Nothing is summed up.
    const END: Option<u64> = Some(2 << 20);

    fn line(&mut self, line: &[u8], _now_ms: u64) {
        let Ok(record) = json::<Value>(line) else {
            self.last = Some(Last::new(Claim::Unknown, "a line that is not JSON", None));
            return;
        };
        let open = |role| Some(Last::new(Claim::Working, role, Some(NO_APPROVALS)));
        self.last = match (record["type"].as_str(), record["role"].as_str()) {
            (Some("turn_ended"), _) => {
                self.tells_ends = true;
                let how = record["status"].as_str().filter(|status| *status != "success");
                Some(Last::new(Claim::Idle, "turn_ended", Some(how.unwrap_or(TURN_ENDED))))
            }
            (_, Some("user")) => open("user"),
            // Where ends are not told, this may be one.
            (_, Some("assistant")) => open("assistant").filter(|_| self.tells_ends),
            (Some(other), _) | (_, Some(other)) => Some(Last::new(Claim::Unknown, other, None)),
            (None, None) => Some(Last::new(Claim::Unknown, "a line without a role", None)),
        };
    }

    /// One that is not understood makes the turn unknown, and nothing is summed up.
    fn lost(&self) -> u64 {
        0
    }
}

impl Transcript {
    /// What the last line says of the turn, if it says anything.
    pub fn last(&self) -> Option<&Last> {
        self.last.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const USER: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"secret"}]}}"#;
    const ASSISTANT: &str = r#"{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Shell","input":{"command":"secret"}}]}}"#;
    const ENDED: &str = r#"{"type":"turn_ended","status":"success"}"#;
    const ABORTED: &str = r#"{"type":"turn_ended","status":"aborted","error":"secret"}"#;

    fn last(lines: &[&str]) -> Option<(Claim, String, Option<String>)> {
        let mut transcript = Transcript::default();
        lines.iter().for_each(|line| transcript.line(line.as_bytes(), 0));
        transcript.last().map(|last| (last.claim, last.word.clone(), last.detail.clone()))
    }

    fn is(claim: Claim, word: &str, detail: Option<&str>) -> Option<(Claim, String, Option<String>)> {
        Some((claim, word.to_owned(), detail.map(str::to_owned)))
    }

    #[test]
    fn the_last_line_says_whether_a_turn_is_open() {
        assert_eq!(last(&[]), None);
        assert_eq!(last(&[USER]), is(Claim::Working, "user", Some(NO_APPROVALS)));
        assert_eq!(last(&[USER, ASSISTANT, ENDED]), is(Claim::Idle, "turn_ended", Some("turn ended")));
        assert_eq!(last(&[USER, ASSISTANT, ABORTED]), is(Claim::Idle, "turn_ended", Some("aborted")));
        assert_eq!(last(&[ENDED, USER, ASSISTANT]), is(Claim::Working, "assistant", Some(NO_APPROVALS)));
    }

    #[test]
    fn where_no_end_was_ever_told_an_answer_may_be_one() {
        assert_eq!(last(&[USER, ASSISTANT]), None);
        assert_eq!(last(&[USER, ASSISTANT, USER]), is(Claim::Working, "user", Some(NO_APPROVALS)));
    }

    #[test]
    fn what_is_not_known_is_told() {
        assert_eq!(last(&[USER, r#"{"type":"yawned"}"#]), is(Claim::Unknown, "yawned", None));
        assert_eq!(last(&[USER, r#"{"role":"critic"}"#]), is(Claim::Unknown, "critic", None));
        assert_eq!(last(&["[]"]), is(Claim::Unknown, "a line without a role", None));
        assert_eq!(last(&["{"]), is(Claim::Unknown, "a line that is not JSON", None));
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..200, put in any::<u8>()) {
            let mut transcript = Transcript::default();
            transcript.line(&line, 0);
            for known in [USER, ASSISTANT, ENDED, ABORTED] {
                let mut bytes = known.as_bytes().to_vec();
                let at = at % bytes.len();
                bytes[at] = put;
                transcript.line(&bytes, 0);
                let said = transcript.last().map(|last| format!("{}{:?}", last.word, last.detail)).unwrap_or_default();
                prop_assert!(!said.contains("secret") && said.chars().count() < 500);
            }
        }
    }
}
