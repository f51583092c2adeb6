//! Wakes somebody when an agent waits for input for too long.
//!
//! It shows how a policy changes what is said of single agents. Whether an agent waits, and since when, the policies before
//! it have found out; this one only says how long is too long, and then makes the agent degraded, the session critical
//! and the agent's advice the first that is read. Scores are left as they are: they tell how agents fare, not who sleeps.

mod bindings;
mod support;

use bindings::exports::headcount::policy::policy::{
    Activity, Advice, AgentVerdict, Check, Description, Guest, Health, Outcome, Problem, SessionVerdict, Snapshot,
};
use support::{Value, degrade, one_line, problem, settings};

/// Milliseconds in a minute.
const MINUTE: f64 = 60_000.0;

/// What `bindings` exports.
pub struct Policy;

impl Guest for Policy {
    fn describe() -> Description {
        Description {
            name: "night-watch".into(),
            version: "0.1.0".into(),
            summary: "Makes a session critical in which an agent waits for input for too long.".into(),
            settings_schema: SCHEMA.into(),
        }
    }

    fn validate_settings(json: String) -> Vec<Problem> {
        limit(&json).err().unwrap_or_default()
    }

    fn judge(facts: Snapshot, so_far: Option<SessionVerdict>, settings: String) -> Result<SessionVerdict, String> {
        let limit = limit(&settings).map_err(|problems| one_line(&problems))?;
        let mut verdict = so_far.ok_or("it needs the verdict of a policy before it")?;
        let mut urgent = Vec::new();
        for index in 0..verdict.agents.len() {
            let agent = &mut verdict.agents[index];
            if agent.activity != Activity::WaitingForInput {
                continue;
            }
            match check(agent, facts.now_ms, limit) {
                None => agent.checks_passed += 1,
                Some(check) if check.outcome == Outcome::Fail => {
                    urgent.push(advice(index, agent, &check));
                    agent.checks.push(check);
                    degrade(&mut verdict, index);
                }
                Some(unknown) => agent.checks.push(unknown),
            }
        }
        if !urgent.is_empty() {
            verdict.health = Health::Critical;
            // Each agent has one advice: what was said of these before is said again here.
            verdict.advice.retain(|old| urgent.iter().all(|new| old.agent != new.agent));
            verdict.advice.splice(0..0, urgent);
        }
        Ok(verdict)
    }
}

/// What the settings look like, as a JSON schema.
const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "after_minutes": {
      "description": "For how many minutes an agent may wait for input.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "default": 15
    }
  },
  "additionalProperties": false
}"#;

/// For how many minutes an agent may wait.
fn limit(json: &str) -> Result<f64, Vec<Problem>> {
    let mut limit = 15.0;
    let mut problems = Vec::new();
    for (name, value) in settings(json).map_err(|problem| vec![problem])? {
        match (name.as_str(), value) {
            ("after_minutes", Value::Number(minutes)) if minutes > 0.0 && minutes <= 1e6 => limit = minutes,
            ("after_minutes", _) => problems.push(problem(&name, "must be a number above 0 and at most 1000000")),
            _ => problems.push(problem(&name, "is no setting; there is after_minutes")),
        }
    }
    if problems.is_empty() { Ok(limit) } else { Err(problems) }
}

/// How long an agent has waited against the limit. `None`: not too long.
fn check(agent: &AgentVerdict, now_ms: u64, limit: f64) -> Option<Check> {
    let waited = agent.since_ms.map(|since| ((now_ms as f64 - since) / MINUTE).max(0.0));
    let (outcome, detail) = match waited {
        None => (Outcome::Unknown, "waits for input, since when is not known".into()),
        Some(waited) if waited > limit => {
            (Outcome::Fail, format!("has waited for input for {} min (limit {limit} min)", waited as u64))
        }
        Some(_) => return None,
    };
    Some(Check { name: "night-watch".into(), outcome, detail, value: waited, limit: Some(limit) })
}

/// Who is to be woken, and for what.
fn advice(index: usize, agent: &AgentVerdict, check: &Check) -> Advice {
    let why =
        if agent.reason.is_empty() { check.detail.clone() } else { format!("{}: {}", check.detail, agent.reason) };
    Advice { agent: u32::try_from(index).ok(), why, action: "answer it now; nothing goes on until then".into() }
}
