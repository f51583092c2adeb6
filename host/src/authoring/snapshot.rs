//! Snapshots: the facts of one session in a file, so that a policy can be tried on them again and again.

use super::cases::SNAPSHOT;
use super::json::{parse, read};
use crate::files::{read_small, replace_private};
use crate::judge::digest;
use crate::names::SessionId;
use crate::observe::facts::Snapshot;
use crate::report::{DECISION_SCHEMA, clean, clean_facts};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The name and version of the format.
pub const SCHEMA: &str = "headcount.snapshot/1";
/// Largest file: some ten thousand agents.
const MAX_FILE: u64 = 64 << 20;

/// What a snapshot's file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile {
    schema: String,
    /// Whether a policy is to judge these facts alone, and not after the built-in policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The facts.
    pub facts: Snapshot,
    /// Who has judged these facts before, where they are from the decision log.
    #[serde(skip)]
    pub judged_by: Vec<Judge>,
}

/// A policy that has judged, and with which settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Judge {
    /// SHA-256 of its file.
    pub digest: String,
    /// Its settings, a JSON object; empty = none.
    pub settings: String,
}

/// Why a file is no snapshot.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", clean(&file.display().to_string()))]
pub struct BadSnapshot {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// What tells a snapshot from a decision. The rest is passed over.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

/// A line of the decision log. All else is passed over.
#[derive(Deserialize)]
struct Decision {
    facts: Snapshot,
    #[serde(default)]
    policies: Vec<Judge>,
}

impl SnapshotFile {
    /// Reads a snapshot, or a file with one line of the decision log. `-` is standard input, and a folder is a case.
    ///
    /// # Errors
    /// When it cannot be read, is something else, or holds facts that headcount could never have gathered.
    pub fn read(file: &Path) -> Result<Self, BadSnapshot> {
        let file = if file.is_dir() { &file.join(SNAPSHOT) } else { file };
        let bytes = if file == Path::new("-") { from_stdin() } else { read_small(file, MAX_FILE) };
        let read = bytes.map_err(|error| error.to_string()).and_then(|bytes| Self::parse(&bytes));
        read.map_err(|what| BadSnapshot { file: file.to_owned(), what })
    }

    /// A snapshot of facts that have just been gathered.
    pub fn of(facts: Snapshot) -> Self {
        Self { schema: SCHEMA.into(), alone: false, facts, judged_by: Vec::new() }
    }

    /// With which settings the policy of these bytes has judged the facts before.
    pub fn settings_of(&self, policy: &[u8]) -> Option<&str> {
        let digest = digest(policy);
        self.judged_by.iter().find(|judge| judge.digest == digest).map(|judge| judge.settings.as_str())
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let head: Head = parse(bytes).map_err(|what| {
            let several = what.ends_with("trailing characters");
            what + if several { "; wanted one snapshot, or one line of the decision log" } else { "" }
        })?;
        let mut snapshot = match head.schema.as_deref() {
            Some(SCHEMA) => read(bytes)?,
            Some(DECISION_SCHEMA) => {
                let Decision { facts, policies } = read(bytes)?;
                Self { judged_by: policies, ..Self::of(facts) }
            }
            Some(other) => return Err(format!("wanted the schema {SCHEMA}, found {}", clean(other))),
            None => {
                return Err(format!("wanted the schema {SCHEMA}, found none; `headcount status --record` writes one"));
            }
        };
        consistent(&snapshot.facts)?;
        // As whoever looks does it: no policy gets to see more.
        clean_facts(&mut snapshot.facts);
        Ok(snapshot)
    }
}

fn from_stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// What no observer makes would only show that a policy copes with nonsense. Ids are shown as they are, so they are plain.
fn consistent(facts: &Snapshot) -> Result<(), String> {
    SessionId::parse(&facts.session.id).map_err(|error| format!("facts.session.id: {error}"))?;
    let mut seen = HashSet::new();
    for (n, agent) in facts.agents.iter().enumerate() {
        if agent.id.is_empty() || clean(&agent.id) != agent.id {
            return Err(format!("facts.agents[{n}].id: wanted a short text of plain characters"));
        }
        if !seen.insert(agent.id.as_str()) {
            return Err(format!(
                "facts.agents[{n}].id: {:?} stands there twice, and every agent has its own",
                agent.id
            ));
        }
    }
    Ok(())
}

/// Writes facts that have been judged to a file, for this user alone (0600). The file is there whole or not at all.
///
/// # Errors
/// When it cannot be written, or something else than a file has its name.
pub fn record(file: &Path, facts: &Snapshot) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(&SnapshotFile::of(facts.clone()))?;
    text.push(b'\n');
    replace_private(file, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judgement;
    use crate::judge::sample;
    use crate::report;
    use serde_json::Value;
    use std::fs;

    fn parsed(change: impl FnOnce(&mut Value)) -> Result<SnapshotFile, String> {
        let mut json = serde_json::json!({ "schema": SCHEMA, "facts": sample::session(3) });
        change(&mut json);
        SnapshotFile::parse(json.to_string().as_bytes())
    }

    #[test]
    fn what_is_recorded_is_read_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.json");
        let facts = sample::session(10);
        record(&file, &facts).unwrap();
        record(&file, &facts).unwrap();
        assert_eq!(SnapshotFile::read(&file).unwrap().facts, facts);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn no_text_of_an_agent_is_read_as_it_was_written() {
        let mut facts = sample::session(1);
        let agent = &mut facts.agents[0];
        let hostile = format!("a\u{1b}]0;x\u{7}\u{202e}b{}", "x".repeat(1000));
        agent.name = hostile.clone();
        agent.specialization = Some(hostile.clone());
        facts.session.root_path = hostile.clone();
        facts.sources[0].error = Some(hostile);
        let read = parsed(|json| json["facts"] = serde_json::to_value(&facts).unwrap()).unwrap();
        let text = serde_json::to_string(&read.facts).unwrap();
        assert!(!text.contains("\\u001b") && !text.contains('\u{202e}') && !text.contains(&"x".repeat(257)), "{text}");
        assert_eq!(text.matches("\"abxx").count(), 4);
    }

    #[test]
    fn a_line_of_the_decision_log_is_a_snapshot_too() {
        let (facts, judgement) = (sample::session(3), Judgement::default());
        let line = serde_json::to_vec(&report::Decision::new(&facts, &judgement).unwrap()).unwrap();
        let read = SnapshotFile::parse(&line);
        assert_eq!(read.unwrap().facts, facts);
    }

    #[test]
    fn what_is_no_snapshot_is_refused_with_the_place() {
        let refused = |wanted: &str, change: &dyn Fn(&mut Value)| {
            let error = parsed(change).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        };
        refused("wanted the schema headcount.snapshot/1, found headcount.report/1", &|json| {
            json["schema"] = "headcount.report/1".into();
        });
        refused("found none", &|json| drop(json.as_object_mut().unwrap().remove("schema")));
        refused("facts.agents[1].metrics.cpu_percnt: unknown key `cpu_percnt`; did you mean `cpu_percent`?", &|json| {
            json["facts"]["agents"][1]["metrics"]["cpu_percnt"] = 1.into();
        });
        refused("facts.agents[0].process: unknown word `sleping`; did you mean `sleeping`?", &|json| {
            json["facts"]["agents"][0]["process"] = "sleping".into();
        });
        refused("stands there twice", &|json| {
            json["facts"]["agents"][1]["id"] = json["facts"]["agents"][0]["id"].clone()
        });
        refused("facts.agents[2].id: wanted a short text", &|json| {
            json["facts"]["agents"][2]["id"] = "\u{1b}[2J".into()
        });
        refused("facts.session.id", &|json| json["facts"]["session"]["id"] = "../x".into());
    }

    #[test]
    fn several_lines_of_the_decision_log_are_told_from_one() {
        let error = SnapshotFile::parse(b"{\"schema\":\"headcount.decision/1\"}\n{}").unwrap_err();
        assert!(error.contains("one line of the decision log"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_neither_read_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        crate::files::make_pipe(&pipe);
        assert!(SnapshotFile::read(&pipe).unwrap_err().to_string().contains("not a regular file"));
        assert!(record(&pipe, &sample::session(1)).is_err());
    }
}
