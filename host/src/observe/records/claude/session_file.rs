//! `sessions/<pid>.json`: what a Claude Code process says of itself. It is written when the status changes, and outlives a
//! process that is killed.

use crate::observe::facts::{Claim, Evidence, Source};
use crate::observe::processes::ProcessId;
use crate::observe::records::AT_WORK;
use crate::observe::records::value::{Id, number, object, text, time, word};
use std::path::PathBuf;

/// What such a record says, as far as it is of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The process that wrote it.
    pid: Option<u64>,
    /// That process's raw start.
    start: Option<u64>,
    /// Its conversation; another one after `/clear`.
    pub id: Option<Id>,
    /// Where it works.
    pub cwd: Option<PathBuf>,
    /// Whether it runs in the background, as a job.
    pub background: bool,
    /// That job.
    pub job: Option<Id>,
    /// Whether its conversation was handed to a background job.
    pub parked: bool,
    status: Option<String>,
    waiting_for: Option<String>,
    /// When the status changed last, as it says, Unix milliseconds.
    pub status_updated_ms: Option<u64>,
    /// When the record was written, Unix milliseconds.
    pub updated_ms: Option<u64>,
}

/// Reads one record. What is missing or of another type than it was is not known; everything else still is.
///
/// # Errors
/// It is no JSON object.
pub fn parse(bytes: &[u8]) -> Result<Session, String> {
    let record = object(bytes)?;
    Ok(Session {
        pid: number(&record, "pid"),
        start: number(&record, "procStart"),
        id: text(&record, "sessionId").and_then(Id::new),
        cwd: text(&record, "cwd").map(PathBuf::from),
        background: text(&record, "kind") == Some("bg"),
        job: text(&record, "jobId").and_then(Id::new),
        parked: text(&record, "parkedJobId").is_some(),
        status: text(&record, "status").map(word),
        waiting_for: text(&record, "waitingFor").and_then(reason),
        status_updated_ms: time(&record, "statusUpdatedAt"),
        updated_ms: time(&record, "updatedAt"),
    })
}

/// What an agent does that is idle.
const AT_REST: &str = "nothing to do";

/// How it begins where a tool is to be approved; the tool's name follows.
const APPROVALS: [&str; 2] = ["approve ", "permission: "];

/// The longest name of a tool.
const LONGEST_TOOL: usize = 32;

/// So many words are what is waited for, as `permission prompt`; more are a sentence that is about something.
const MOST_WORDS: usize = 3;

/// What is waited for, in the record's own words, without what the agent wants to do: `approve Bash: delete /srv/x` is
/// `approve Bash`. Of anything else but a few plain words nothing is passed on: it may be whatever stands in a dialog.
fn reason(waiting_for: &str) -> Option<String> {
    let text = waiting_for.trim();
    let approval = |opening: &&str| {
        let tool = text.strip_prefix(opening)?.split(':').next()?.trim();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        ((1..=LONGEST_TOOL).contains(&tool.len()) && tool.bytes().all(is_name)).then(|| format!("{opening}{tool}"))
    };
    let is_plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-'));
    let plain = || {
        let words: Vec<&str> = text.split(' ').collect();
        let is_plain =
            (1..=MOST_WORDS).contains(&words.len()) && words.iter().all(|word| !word.is_empty() && is_plain(word));
        is_plain.then(|| word(text))
    };
    APPROVALS.iter().find_map(approval).or_else(plain)
}

impl Session {
    /// Whether this very process wrote it: pids are used again, and records stay.
    ///
    /// # Errors
    /// It did not, or that cannot be said.
    pub fn belongs_to(&self, process: ProcessId) -> Result<(), String> {
        match (self.pid, self.start) {
            (Some(pid), Some(start)) if pid == u64::from(process.pid) && start == process.start => Ok(()),
            (Some(_), Some(_)) => Err("its record belongs to another process".to_owned()),
            _ => Err("its record does not say which process it belongs to".to_owned()),
        }
    }

    /// Whether it says the same as `other`, however often it was written since.
    pub fn repeats(&self, other: &Self) -> bool {
        let said = |of: &Self| (of.pid, of.start, of.id.clone(), of.status_updated_ms);
        said(self) == said(other) && self.status == other.status && self.waiting_for == other.waiting_for
    }

    /// What it says of its work, since then; `None`: nothing.
    pub fn evidence(&self, at_ms: u64) -> Option<Evidence> {
        let status = self.status.as_ref()?;
        let (claim, detail) = match status.as_str() {
            // What it waited for last may still stand there when it waits no more.
            "busy" => (Claim::Working, Some(AT_WORK.to_owned())),
            "waiting" => (Claim::Waiting, self.waiting_for.clone()),
            "idle" => (Claim::Idle, Some(AT_REST.to_owned())),
            "shell" => (Claim::Idle, Some("background shell".to_owned())),
            _ => (Claim::Unknown, None),
        };
        Some(Evidence { source: Source::OwnRecord, claim, word: status.clone(), detail, at_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const ME: ProcessId = ProcessId { pid: 4242, start: 20_095_994 };

    fn session(more: &serde_json::Value) -> Session {
        let mut record = json!({"pid": 4242, "procStart": "20095994", "sessionId": "11111111-aa", "cwd": "/w/app",
            "kind": "interactive", "statusUpdatedAt": 5, "updatedAt": 9});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse(record.to_string().as_bytes()).unwrap()
    }

    fn said(more: &serde_json::Value) -> (Claim, String, Option<String>, u64) {
        let said = session(more).evidence(5).unwrap();
        (said.claim, said.word, said.detail, said.at_ms)
    }

    #[test]
    fn each_status_is_one_claim() {
        let owned = |text: &str| text.to_owned();
        for (status, claim, detail) in [
            ("busy", Claim::Working, Some("at work")),
            ("waiting", Claim::Waiting, Some("permission prompt")),
            ("idle", Claim::Idle, Some("nothing to do")),
            ("shell", Claim::Idle, Some("background shell")),
            ("frobnicating", Claim::Unknown, None),
        ] {
            let more = json!({"status": status, "waitingFor": "permission prompt"});
            assert_eq!(said(&more), (claim, owned(status), detail.map(owned), 5));
        }
        assert_eq!(session(&json!({})).evidence(5), None, "an SDK's has no status");
    }

    #[test]
    fn what_an_agent_asks_to_do_is_left_out() {
        let more = json!({"status": "waiting", "waitingFor": "approve Bash: rm -rf /srv/secret"});
        assert_eq!(said(&more).2.as_deref(), Some("approve Bash"));
        for (text, passed_on) in [
            ("permission prompt", Some("permission prompt")),
            ("permission: mcp__shop__buy", Some("permission: mcp__shop__buy")),
            ("some new-fangled thing", Some("some new-fangled thing")),
            ("frobnication", Some("frobnication")),
            ("approve Edit file /srv/secret", None),
            ("Allow Bash(cat /srv/secret/key.pem)?", None),
            ("/srv/secret/key.pem", None),
            ("may I delete the secret", None),
            ("two  blanks", None),
            (&format!("approve {}", "x".repeat(33)), Some(&word(&format!("approve {}", "x".repeat(33))))),
            (" ", None),
        ] {
            assert_eq!(said(&json!({"status": "waiting", "waitingFor": text})).2.as_deref(), passed_on, "{text}");
        }
        let long = said(&json!({"status": "x".repeat(100_000)})).1;
        assert_eq!(long.len(), 64);
    }

    #[test]
    fn a_record_that_is_written_once_more_says_nothing_new() {
        let waiting = session(&json!({"status": "waiting", "waitingFor": "permission prompt"}));
        let again = |more: &serde_json::Value| {
            let mut record = json!({"status": "waiting", "waitingFor": "permission prompt"});
            record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            session(&record).repeats(&waiting)
        };
        assert!(again(&json!({"updatedAt": 10})));
        for other in [json!({"status": "busy"}), json!({"waitingFor": "dialog open"}), json!({"statusUpdatedAt": 6})] {
            assert!(!again(&other), "{other}");
        }
        assert!(!again(&json!({"sessionId": "22"})) && !again(&json!({"procStart": "1"})));
    }

    #[test]
    fn a_record_counts_only_for_the_process_that_wrote_it() {
        assert_eq!(session(&json!({})).belongs_to(ME), Ok(()));
        assert_eq!(session(&json!({"procStart": 20_095_994, "pid": "4242"})).belongs_to(ME), Ok(()));
        let other = Err("its record belongs to another process".to_owned());
        assert_eq!(session(&json!({"procStart": "20095995"})).belongs_to(ME), other);
        assert_eq!(session(&json!({"pid": 4243})).belongs_to(ME), other);
        let unknown = Err("its record does not say which process it belongs to".to_owned());
        for start in [json!(null), json!("Fri Aug 14 03:18:33 2026"), json!(-1), json!(2.5)] {
            assert_eq!(session(&json!({"procStart": start})).belongs_to(ME), unknown);
        }
    }

    #[test]
    fn an_id_is_no_path() {
        for id in ["../../etc/passwd", "", "a/b", ".", &"x".repeat(65)] {
            assert_eq!(session(&json!({"sessionId": id, "jobId": id})).id, None, "{id}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC+") {
            let _ = parse(&bytes);
            let record = json!({"pid": text, "procStart": text, "status": text, "waitingFor": text, "updatedAt": text});
            let session = parse(record.to_string().as_bytes()).unwrap();
            prop_assert!(session.evidence(1).is_some_and(|said| said.word.chars().count() <= 64));
        }
    }
}
