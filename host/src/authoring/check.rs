//! Whether a file is a policy that works: everything that loading asks of it, and then a trial.

use super::trial::{Trial, answer, builtin, bytes};
use crate::judge::{Description, Judgement, LoadError, Outcome, Place, Policy, Step, Trust, digest, sample};
use crate::observe::facts::Snapshot;
use crate::report::{clean, no_verdict};
use crate::setup::Setup;
use serde::Serialize;
use serde_json::{Map, Value};

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub step: &'static str,
    /// Whether it is as it should be; null: not tried, because a step before it failed.
    pub ok: Option<bool>,
    /// What was found.
    pub detail: String,
}

/// Looks at the policy of a place. The findings have the order in which it was looked at.
///
/// # Errors
/// When WebAssembly cannot run here at all.
pub fn check(setup: &Setup, place: &Place) -> Result<Vec<Finding>, LoadError> {
    let mut findings = Findings::default();
    let runtime = setup.runtime()?;
    let loaded = bytes(place).and_then(|(bytes, trust)| {
        findings.passed("file", format!("{} bytes, SHA-256 {}", bytes.len(), digest(&bytes)));
        let mut passed = |step: Step, found: String| findings.passed(step.name(), found);
        Policy::load_by_steps(&runtime, &bytes, trust, &place.settings, place.limits, &mut passed)
    });
    match loaded {
        Err(outcome) => findings.failed(&outcome),
        Ok(policy) => {
            findings.add("settings-schema", schema(&policy.description, &place.settings));
            // Another file than the one that was looked at is not tried.
            let pinned = place.file.as_ref().map(|_| policy.digest.clone());
            let place = Place { pinned, ..place.clone() };
            let facts = sample::session(sample::TRIAL);
            if place.file.is_some() {
                let tried = Trial::new(setup, runtime.clone(), place.clone(), Some(builtin(setup, ""))).judge(&facts);
                findings.add("judgement", tried.map_err(|error| error.to_string()).and_then(|j| judged(&j, &facts)));
            }
            let alone = Trial::new(setup, runtime, place, None).judge(&facts);
            findings.add(
                "judgement-alone",
                alone.map_err(|error| error.to_string()).and_then(|j| judged_alone(&j, &facts)),
            );
        }
    }
    Ok(findings.0)
}

/// Why a component would be refused wherever it is configured, with which settings ever: it asks for something from outside,
/// speaks another version, or does not start.
///
/// # Errors
/// When WebAssembly cannot run here at all.
pub fn refused(setup: &Setup, component: &[u8]) -> Result<Option<Outcome>, LoadError> {
    let runtime = setup.runtime()?;
    let mut starts = false;
    let mut passed = |step, _| starts |= step == Step::Start;
    let limits = setup.config().limits.into();
    let loaded = Policy::load_by_steps(&runtime, component, Trust::Untrusted, "", limits, &mut passed);
    runtime.keep();
    Ok(loaded.err().filter(|_| !starts))
}

/// What was found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, step: &'static str, found: Result<String, String>) {
        let ok = Some(found.is_ok());
        self.0.push(Finding { step, ok, detail: clean(&found.unwrap_or_else(|why| why)) });
    }

    fn passed(&mut self, step: &'static str, found: String) {
        self.add(step, Ok(found));
    }

    /// The first step that has not passed is the one that failed; those after it have not been tried.
    fn failed(&mut self, outcome: &Outcome) {
        let loading = ["file"].into_iter().chain(Step::ALL.map(Step::name));
        let steps = loading.chain(["settings-schema", "judgement", "judgement-alone"]);
        let mut left = steps.skip(self.0.len());
        if let Some(step) = left.next() {
            self.add(step, Err(no_verdict(outcome).detail));
        }
        self.0.extend(left.map(|step| Finding { step, ok: None, detail: "not tried".into() }));
    }
}

fn judged(judgement: &Judgement, facts: &Snapshot) -> Result<String, String> {
    let memory = judgement.policies.last().map_or(0, |last| last.memory / 1024);
    match answer(judgement) {
        Ok(_) => Ok(format!("judged a sample of {} agents, with {memory} KiB of memory", facts.agents.len())),
        Err(outcome) => Err(outcome.to_string()),
    }
}

/// A policy may need a verdict to start from, and says so by declining.
fn judged_alone(judgement: &Judgement, facts: &Snapshot) -> Result<String, String> {
    match answer(judgement) {
        Err(Outcome::Declined(why)) => Ok(format!("declines without a policy before it: {why}")),
        _ => judged(judgement, facts),
    }
}

/// Looks at the settings' schema as far as people need it: which settings there are, and whether these are among them.
fn schema(description: &Description, settings: &str) -> Result<String, String> {
    let schema: Value = serde_json::from_str(&description.settings_schema)
        .map_err(|error| format!("it is no JSON, so nobody can know the settings: {error}"))?;
    let Value::Object(schema) = schema else {
        return Err(format!("wanted a JSON object, found {schema}"));
    };
    let names = match schema.get("type") {
        None => true,
        Some(Value::Array(names)) => names.contains(&"object".into()),
        Some(name) => name == "object",
    };
    if !names {
        return Err(format!("wanted the schema of an object, found type {}", schema["type"]));
    }
    let none = Map::new();
    let properties = match schema.get("properties") {
        None => &none,
        Some(Value::Object(properties)) => properties,
        Some(other) => return Err(format!("wanted an object of properties, found {other}")),
    };
    // The policy has accepted these settings already: that they are no object cannot be.
    let settings: Map<String, Value> = serde_json::from_str(settings).unwrap_or_default();
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if let Some(unknown) = settings.keys().find(|name| closed && !properties.contains_key(*name)) {
        return Err(format!("the policy accepts the setting `{unknown}`, and its schema has no such property"));
    }
    Ok(format!("a JSON schema with {} settings", properties.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(schema: &str) -> Description {
        Description { name: "p".into(), version: "1".into(), summary: String::new(), settings_schema: schema.into() }
    }

    #[test]
    fn a_schema_must_be_one_and_have_the_settings_that_are_accepted() {
        let closed = r#"{"type":"object","properties":{"a":{}},"additionalProperties":false}"#;
        assert_eq!(schema(&described(closed), r#"{"a":1}"#).unwrap(), "a JSON schema with 1 settings");
        assert_eq!(schema(&described("{}"), "").unwrap(), "a JSON schema with 0 settings");
        assert!(schema(&described(r#"{"type":["object","null"]}"#), "").is_ok());
        for (bad, wanted) in [
            (closed, "`b`"),
            ("", "no JSON"),
            ("[]", "wanted a JSON object, found []"),
            (r#"{"type":"array"}"#, "found type \"array\""),
            (r#"{"properties":[]}"#, "wanted an object of properties"),
        ] {
            let error = schema(&described(bad), r#"{"b":1}"#).unwrap_err();
            assert!(error.contains(wanted), "{bad}: {error}");
        }
    }
}
