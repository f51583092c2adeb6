//! `jobs/<id>/state.json`: what is said of a conversation that runs in the background.

use crate::observe::facts::{Claim, Evidence, Source};
use crate::observe::records::value::{Id, object, text, time};

/// What such a record says, as far as it is of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The conversations that may be the job's.
    sessions: [Option<Id>; 2],
    /// Whether it waits for a person.
    pub blocked: bool,
    /// When the record was written, Unix milliseconds.
    pub updated_ms: Option<u64>,
}

/// How a job that has never had anything to do says so; it asks nobody anything.
const NEVER_BEGUN: &str = "send a prompt to start";

/// Reads one record.
///
/// Whether a job is blocked stands in `tempo`. Its `state` is how its last turn came out: it stays `working` while the job
/// asks a question, and `blocked` when the question was answered, so that it counts only in records without a tempo. The
/// question itself, and all other text, is left out: it repeats prompts.
///
/// # Errors
/// It is no JSON object.
pub fn parse(bytes: &[u8]) -> Result<Job, String> {
    let record = object(bytes)?;
    let state = text(&record, "state");
    let is_over = matches!(state, Some("done" | "stopped" | "failed" | "crashed"));
    let needs = text(&record, "needs");
    let asks = match text(&record, "tempo") {
        Some(tempo) => tempo == "blocked",
        None => state == Some("blocked") || needs.is_some(),
    };
    Ok(Job {
        sessions: ["sessionId", "resumeSessionId"].map(|key| text(&record, key).and_then(Id::new)),
        blocked: asks && !is_over && needs != Some(NEVER_BEGUN),
        updated_ms: time(&record, "updatedAt"),
    })
}

impl Job {
    /// Whether it may be the job of this conversation. A record that names none is taken at its id's word.
    pub fn is_of(&self, session: Option<&Id>) -> bool {
        let mut named = self.sessions.iter().flatten().peekable();
        named.peek().is_none() || session.is_none_or(|session| named.any(|id| id == session))
    }

    /// What a blocked job says, since then.
    pub fn evidence(since_ms: u64) -> Evidence {
        Evidence {
            source: Source::OwnRecord,
            claim: Claim::Waiting,
            word: "blocked".to_owned(),
            detail: Some("its background job needs input".to_owned()),
            at_ms: since_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocked(record: &str) -> bool {
        parse(record.as_bytes()).unwrap().blocked
    }

    #[test]
    fn the_tempo_says_whether_a_job_is_blocked() {
        assert!(blocked(
            r#"{"state": "working", "tempo": "blocked", "needs": "which one?", "block": {"questions": []}}"#
        ));
        assert!(blocked(r#"{"state": "blocked"}"#));
        assert!(blocked(r#"{"state": "working", "needs": "approve plan"}"#));
        assert!(!blocked(r#"{"state": "blocked", "tempo": "active", "needs": "which one?"}"#), "it was answered");
        assert!(!blocked(r#"{"state": "blocked", "tempo": "idle"}"#));
        assert!(!blocked(r#"{"state": "done", "tempo": "blocked"}"#));
        assert!(!blocked(r#"{"tempo": "blocked", "needs": "send a prompt to start"}"#));
        assert!(!blocked("{}"));
    }

    #[test]
    fn a_job_is_matched_by_the_conversations_that_it_names() {
        let id = |text| Id::new(text).unwrap();
        let job = parse(br#"{"sessionId": "a", "resumeSessionId": "b", "updatedAt": "1970-01-01T00:00:02Z"}"#).unwrap();
        assert_eq!(job.updated_ms, Some(2000));
        assert!(job.is_of(Some(&id("a"))) && job.is_of(Some(&id("b"))) && job.is_of(None));
        assert!(!job.is_of(Some(&id("c"))));
        assert!(parse(b"{}").unwrap().is_of(Some(&id("c"))));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
