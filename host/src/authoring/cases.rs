//! Cases: what a policy is to make of a snapshot. A case is a folder with `snapshot.json`, `expected.json` and, if the
//! policy takes any, `settings.json`.

use super::difference::{Difference, differences};
use super::json::parse;
use super::snapshot::SnapshotFile;
use super::trial::{Trial, answer, builtin, place, settings_in};
use crate::files::{read_small, replace};
use crate::judge::{LoadError, Outcome, Runtime};
use crate::report::{clean, no_verdict, verdict};
use crate::setup::Setup;
use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// The file of a case that has its facts.
pub(super) const SNAPSHOT: &str = "snapshot.json";
/// The file of a case that has what its policy takes as settings.
pub const SETTINGS: &str = "settings.json";
const EXPECTED: &str = "expected.json";
/// Largest file of an expectation.
const MAX_EXPECTED: u64 = 64 << 20;

/// The cases in a folder, in the order of their names: each folder in it that is not hidden is one.
///
/// # Errors
/// When the folder cannot be read, or has none.
pub fn find(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = clean(&folder.display().to_string());
    let entries = fs::read_dir(folder).map_err(|error| anyhow!("the cases in {shown} cannot be read: {error}"))?;
    let mut cases = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| anyhow!("the cases in {shown} cannot be read: {error}"))?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.path().is_dir() {
            cases.push(entry.path());
        }
    }
    if cases.is_empty() {
        bail!(
            "there is no case in {shown}: make a folder there with a {SNAPSHOT} (by `headcount status --record`), then type `--update`"
        );
    }
    cases.sort();
    Ok(cases)
}

/// What came of one case.
#[derive(Debug, Serialize)]
pub struct Tested {
    /// The case's folder.
    pub name: String,
    /// How it came out.
    #[serde(flatten)]
    pub result: CaseResult,
}

/// How a case came out.
#[derive(Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum CaseResult {
    /// The policy says what was expected.
    Passed,
    /// It says something else.
    Failed {
        /// In what it differs.
        differences: Vec<Difference>,
    },
    /// The case could not be tried.
    Error {
        /// Why.
        error: String,
    },
    /// What is expected has been written anew.
    Updated {
        /// What that is, where it is no verdict.
        #[serde(skip_serializing_if = "Option::is_none")]
        no_verdict: Option<String>,
    },
    /// What is expected was already what the policy says, to the letter.
    Unchanged,
}

impl CaseResult {
    /// Whether nothing is to be mended.
    pub fn is_well(&self) -> bool {
        !matches!(self, Self::Failed { .. } | Self::Error { .. })
    }
}

/// Tries one policy on cases. Those with the same settings after one another load it once.
pub struct Tester<'a> {
    setup: &'a Setup,
    runtime: Runtime,
    policy: &'a Path,
    loaded: Option<(Map<String, Value>, bool, Trial)>,
}

impl<'a> Tester<'a> {
    /// For the policy in this file, or `builtin`.
    ///
    /// # Errors
    /// When WebAssembly cannot run here at all.
    pub fn new(setup: &'a Setup, policy: &'a Path) -> Result<Self, LoadError> {
        Ok(Self { setup, runtime: setup.runtime()?, policy, loaded: None })
    }

    /// Tries one case; where `update`, writes what the policy says as what is expected from now on.
    pub fn test(&mut self, case: &Path, update: bool) -> Tested {
        let name = clean(&case.file_name().unwrap_or(case.as_os_str()).to_string_lossy());
        let result = self.try_case(case, update);
        Tested { name, result: result.unwrap_or_else(|error| CaseResult::Error { error: format!("{error:#}") }) }
    }

    fn try_case(&mut self, case: &Path, update: bool) -> anyhow::Result<CaseResult> {
        let snapshot = SnapshotFile::read(&case.join(SNAPSHOT))?;
        let settings = case.join(SETTINGS);
        let settings = if settings.exists() { settings_in(&settings)? } else { Map::new() };
        let judgement = self.trial(settings, snapshot.alone)?.judge(&snapshot.facts)?;
        let answer = answer(&judgement);
        let (outcome, text) = match answer {
            Ok(found) => (&Outcome::Verdict, serde_json::to_string_pretty(&verdict(&snapshot.facts, found))?),
            Err(outcome) => (outcome, serde_json::to_string_pretty(&no_verdict(outcome))?),
        };
        let file = case.join(EXPECTED);
        let found = serde_json::from_str(&text)?;
        if update {
            return updated(&file, outcome, &found, &text);
        }
        let wanted = expected(&file)?;
        if !compares(&wanted) {
            bail!(
                "it compares nothing: write into {EXPECTED} what matters, or have `--update` write all that the policy says"
            );
        }
        Ok(compared(&wanted, &found))
    }

    /// The policy with these settings. One that cannot be loaded is not what a case may be about, unless by its settings.
    fn trial(&mut self, settings: Map<String, Value>, alone: bool) -> anyhow::Result<&Trial> {
        let known = matches!(&self.loaded, Some((with, is_alone, _)) if *with == settings && *is_alone == alone);
        if !known {
            let place = place(self.setup, self.policy, settings.clone())?;
            let before = (!alone).then(|| builtin(self.setup, ""));
            let trial = Trial::new(self.setup, self.runtime.clone(), place, before);
            self.loaded = Some((settings, alone, trial));
        }
        let (_, _, trial) = self.loaded.as_ref().context("a policy that was loaded just now")?;
        match trial.refused() {
            Some(outcome) if !matches!(outcome, Outcome::BadSettings(_)) => {
                bail!(
                    "the policy cannot be loaded: {}; `headcount policy check` says more",
                    no_verdict(&outcome).detail
                )
            }
            _ => Ok(trial),
        }
    }
}

fn expected(file: &Path) -> anyhow::Result<Value> {
    if !file.exists() {
        bail!("it has no {EXPECTED}; `--update` writes what the policy says now");
    }
    let shown = clean(&file.display().to_string());
    let bytes = read_small(file, MAX_EXPECTED).map_err(|error| anyhow!("{shown}: {error}"))?;
    let members: Map<String, Value> = parse(&bytes).map_err(|what| anyhow!("{shown}: {what}"))?;
    Ok(Value::Object(members))
}

/// Whether an expectation can fail at all.
fn compares(wanted: &Value) -> bool {
    match wanted {
        Value::Object(members) => members.iter().any(|(name, wanted)| name != "schema" && compares(wanted)),
        _ => true,
    }
}

fn outcome_of(expectation: &Value) -> Value {
    expectation.get("outcome").cloned().unwrap_or_else(|| "verdict".into())
}

/// Of a policy that came to nothing where a verdict was expected, or the other way round, no more is said than that.
fn compared(wanted: &Value, found: &Value) -> CaseResult {
    let (wanted_outcome, found_outcome) = (outcome_of(wanted), outcome_of(found));
    let differences = if wanted_outcome == found_outcome {
        differences(wanted, found)
    } else {
        let detail = found.get("detail").and_then(Value::as_str).map_or(String::new(), |detail| format!(": {detail}"));
        let message = format!("wanted {wanted_outcome}, found {found_outcome}{detail}");
        vec![Difference { path: "outcome".into(), message }]
    };
    if differences.is_empty() { CaseResult::Passed } else { CaseResult::Failed { differences } }
}

/// Writes what is expected from now on: in the members that were compared before, or all of it where nothing was expected.
/// A case that passes stays as it is. That a policy breaks is nobody's wish: it is expected only where somebody has written so.
fn updated(file: &Path, outcome: &Outcome, found: &Value, text: &str) -> anyhow::Result<CaseResult> {
    let before = if file.exists() { Some(expected(file)?).filter(compares) } else { None };
    if before.as_ref().is_some_and(|before| compared(before, found).is_well()) {
        return Ok(CaseResult::Unchanged);
    }
    if !matches!(outcome, Outcome::Verdict | Outcome::Declined(_) | Outcome::BadSettings(_)) {
        bail!("not written, because the policy came to no verdict: {}", no_verdict(outcome).detail);
    }
    let same_outcome = |before: &Value| outcome_of(before) == outcome_of(found);
    let (new, text) = match before.filter(same_outcome) {
        Some(before) => {
            let new = in_shape(&before, found);
            let text = serde_json::to_string_pretty(&new)?;
            (new, text)
        }
        None => (found.clone(), text.to_owned()),
    };
    let text = text + "\n";
    replace(file, text.as_bytes()).map_err(|error| anyhow!("{}: {error}", clean(&file.display().to_string())))?;
    let no_verdict = (*outcome != Outcome::Verdict).then(|| no_verdict(outcome));
    let no_verdict = no_verdict.map(|said| format!("{}: {}", said.outcome, said.detail));
    // What no verdict has stays wrong.
    Ok(match compared(&new, found) {
        CaseResult::Passed => CaseResult::Updated { no_verdict },
        wrong => wrong,
    })
}

/// Of `found` what `shape` has: members that it leaves out are left out, and those that only it has stay for somebody to mend.
/// Lists keep their shape item by item; what is new in them is taken whole.
fn in_shape(shape: &Value, found: &Value) -> Value {
    match (shape, found) {
        (Value::Object(members), Value::Object(there)) => {
            let kept = members.iter().map(|(name, member)| {
                let member = there.get(name).map_or_else(|| member.clone(), |found| in_shape(member, found));
                (name.clone(), member)
            });
            Value::Object(kept.collect())
        }
        (Value::Array(items), Value::Array(there)) => there
            .iter()
            .enumerate()
            .map(|(n, found)| items.get(n).map_or(found.clone(), |item| in_shape(item, found)))
            .collect(),
        _ => found.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_that_broke_is_not_compared_member_by_member() {
        let found = json!({"schema": "headcount.verdict/1", "outcome": "trap", "detail": "it broke"});
        let CaseResult::Failed { differences } = compared(&json!({"session_health": "HEALTHY", "agents": []}), &found)
        else {
            panic!("it differs")
        };
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].message, "wanted \"verdict\", found \"trap\": it broke");
        assert!(compared(&json!({"outcome": "trap"}), &found).is_well());
    }

    #[test]
    fn that_a_policy_breaks_is_never_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(EXPECTED);
        let written = |outcome: &Outcome| {
            let text = serde_json::to_string(&no_verdict(outcome)).unwrap();
            updated(&file, outcome, &serde_json::from_str(&text).unwrap(), &text)
        };
        let trap = Outcome::Trap("x".into());
        assert!(written(&trap).is_err());
        assert!(!file.exists());
        fs::write(&file, r#"{"outcome":"trap"}"#).unwrap();
        assert!(matches!(written(&trap).unwrap(), CaseResult::Unchanged));
        let declined = Outcome::Declined("no".into());
        assert!(
            matches!(written(&declined).unwrap(), CaseResult::Updated { no_verdict: Some(said) } if said == "declined: no")
        );
        assert!(matches!(written(&declined).unwrap(), CaseResult::Unchanged));
    }

    #[test]
    fn an_expectation_keeps_its_shape() {
        let found = json!({"a": 1, "b": {"c": 2, "d": 3}, "list": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]});
        let shape = json!({"b": {"c": 0}, "list": [{"x": 0}], "gone": 1});
        assert_eq!(in_shape(&shape, &found), json!({"b": {"c": 2}, "list": [{"x": 1}, {"x": 3, "y": 4}], "gone": 1}));
    }

    #[test]
    fn an_expectation_must_compare_something() {
        for nothing in [json!({}), json!({"schema": "headcount.verdict/1"}), json!({"totals": {"x": {}}})] {
            assert!(!compares(&nothing), "{nothing}");
        }
        for something in [json!({"agents": []}), json!({"schema": "x", "session_score": null})] {
            assert!(compares(&something), "{something}");
        }
    }

    #[test]
    fn an_update_mends_what_a_verdict_has_and_goes_on_to_fail_by_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(EXPECTED);
        let found = json!({"session_score": 5, "totals": {"active": 1}});
        let update = || updated(&file, &Outcome::Verdict, &found, &found.to_string()).unwrap();
        let written = || serde_json::from_slice::<Value>(&fs::read(&file).unwrap()).unwrap();
        fs::write(&file, r#"{"session_score":4,"totals":{"activ":1}}"#).unwrap();
        for _ in 0..2 {
            let CaseResult::Failed { differences } = update() else { panic!("nobody has mended `activ`") };
            assert_eq!(differences[0].message, "a verdict has no such member; did you mean `active`?");
            assert_eq!(written(), json!({"session_score": 5, "totals": {"activ": 1}}));
        }
        fs::write(&file, r#"{"schema":"headcount.verdict/1"}"#).unwrap();
        assert!(matches!(update(), CaseResult::Updated { no_verdict: None }));
        assert_eq!(written(), found, "what compares nothing is no shape to keep");
    }

    #[test]
    fn a_folder_without_cases_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        fs::create_dir(dir.path().join(".hidden")).unwrap();
        assert!(find(dir.path()).unwrap_err().to_string().contains("there is no case"));
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let names: Vec<_> = find(dir.path()).unwrap();
        assert_eq!(names, [dir.path().join("a"), dir.path().join("b")]);
    }
}
