//! The parser of one record of Qwen's own list of sessions, `sessions/PID.json`. It holds a token by which that can be talked to:
//! only what is needed here is taken out of it.

use crate::observe::processes::{Machine, ProcessId};
use crate::observe::records::value::{Id, json};
use serde_json::Value;

/// The version of records that is known.
const SCHEMA: u64 = 1;

/// The session of a record, if the record is of this very process.
///
/// # Errors
/// It is not, or that cannot be known: how the sentence ends that begins with the record.
pub fn session(record: &[u8], process: ProcessId, machine: &Machine) -> Result<Id, String> {
    let record: Value = json(record).map_err(|_| "is not JSON".to_owned())?;
    if record["schemaVersion"].as_u64() != Some(SCHEMA) {
        return Err(format!("has a schemaVersion that is not {SCHEMA}"));
    }
    if record["pid"].as_u64() != Some(u64::from(process.pid)) {
        return Err("names another process than its file does (pid)".to_owned());
    }
    if machine.pid_namespace != format!("pid:[{}]", record["pidNs"].as_u64().ok_or("has no pidNs")?) {
        return Err("is of another pid namespace (pidNs)".to_owned());
    }
    let start = record["procStart"].as_str().ok_or("has no procStart")?;
    if start != format!("{}:{}", machine.boot_id, process.start) {
        return Err("is of an earlier process with this pid (procStart)".to_owned());
    }
    record["sessionId"].as_str().and_then(Id::new).ok_or_else(|| "has no sessionId that could be one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const PROCESS: ProcessId = ProcessId { pid: 41337, start: 8_895_124 };

    fn machine() -> Machine {
        Machine { boot_id: "a1b2c3d4-boot".to_owned(), pid_namespace: "pid:[4026531836]".to_owned() }
    }

    /// What is made of a record with one field changed.
    fn with(key: &str, value: Value) -> Result<Id, String> {
        let mut record = json!({
            "schemaVersion": 1, "pid": 41337, "procStart": "a1b2c3d4-boot:8895124", "pidNs": 4_026_531_836_u64,
            "sessionId": "8e016be8-5b48-4c13-ad22-1f5326ae64ac", "cwd": "/w", "ipcToken": "secret",
        });
        record[key] = value;
        session(record.to_string().as_bytes(), PROCESS, &machine())
    }

    #[test]
    fn a_record_counts_only_for_the_very_process_that_it_names() {
        assert_eq!(with("kind", json!("tui")).unwrap().as_str(), "8e016be8-5b48-4c13-ad22-1f5326ae64ac");
        for (key, value, why) in [
            ("schemaVersion", json!(2), "schemaVersion"),
            ("pid", json!(41338), "another process"),
            ("pid", json!("41337"), "another process"),
            ("pidNs", json!(4_026_531_837_u64), "another pid namespace"),
            ("pidNs", Value::Null, "has no pidNs"),
            ("procStart", json!("a1b2c3d4-boot:8895125"), "earlier process"),
            ("procStart", json!("other-boot:8895124"), "earlier process"),
            ("procStart", Value::Null, "has no procStart"),
            ("sessionId", json!("../../etc/passwd"), "no sessionId"),
            ("sessionId", json!(""), "no sessionId"),
            ("sessionId", json!("x".repeat(65)), "no sessionId"),
        ] {
            let error = with(key, value.clone()).unwrap_err();
            assert!(error.contains(why), "{key} {value}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_record_breaks_it(record in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(session(&record, PROCESS, &machine()).is_err());
        }
    }
}
