//! Warns of agents whose memory grows and grows, and says when it will be too much.
//!
//! It shows how a policy looks ahead, with no clock and no memory of its own: the host keeps the history, and every
//! snapshot has its slope. A growth above a limit for long enough is a warning. Where that growth reaches a ceiling soon,
//! the check fails, the agent is degraded, and somebody is told how long there is. A slope that was not measured is no
//! slope: nothing is said of that agent.

mod bindings;
mod support;

use bindings::exports::headcount::policy::policy::{
    Advice, Agent, Check, Description, Guest, Outcome, Problem, SessionVerdict, Snapshot,
};
use support::{Value, degrade, degrade_session, one_line, problem, settings};

const MB: f64 = 1e6;
const GB: f64 = 1e9;
/// Milliseconds in a minute.
const MINUTE: f64 = 60_000.0;

/// What `bindings` exports.
pub struct Policy;

impl Guest for Policy {
    fn describe() -> Description {
        Description {
            name: "leak".into(),
            version: "0.1.0".into(),
            summary: "Warns of agents whose memory keeps growing, and says when it reaches a ceiling.".into(),
            settings_schema: SCHEMA.into(),
        }
    }

    fn validate_settings(json: String) -> Vec<Problem> {
        Limits::read(&json).err().unwrap_or_default()
    }

    fn judge(facts: Snapshot, so_far: Option<SessionVerdict>, settings: String) -> Result<SessionVerdict, String> {
        let limits = Limits::read(&settings).map_err(|problems| one_line(&problems))?;
        let mut verdict = so_far.ok_or("it needs the verdict of a policy before it")?;
        for (index, agent) in facts.agents.iter().enumerate() {
            // Watched for too short a time, or not measured: there is nothing to hold against it.
            let Some(slope) = slope(agent, &limits) else { continue };
            let Some(check) = check(agent, slope, &limits) else {
                verdict.agents[index].checks_passed += 1;
                continue;
            };
            if check.outcome == Outcome::Fail {
                let why = format!("{}: {}", check.name, check.detail);
                let action = "save its work and start it again, before memory runs out".into();
                verdict.advice.push(Advice { agent: u32::try_from(index).ok(), why, action });
                degrade(&mut verdict, index);
                degrade_session(&mut verdict);
            }
            verdict.agents[index].checks.push(check);
        }
        Ok(verdict)
    }
}

/// What the settings look like, as a JSON schema.
const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "mb_per_minute": {
      "description": "By how many MB (1000000 bytes) an agent's memory may grow in a minute.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "default": 50
    },
    "window_minutes": {
      "description": "For how many minutes an agent must have been watched.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "default": 5
    },
    "ceiling_gb": {
      "description": "The memory that one agent may reach, in GB (1000000000 bytes). Without it growth is only warned of.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000
    },
    "horizon_minutes": {
      "description": "The check fails where the ceiling is reached within so many minutes.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "default": 60
    }
  },
  "additionalProperties": false
}"#;

/// The settings, in bytes and minutes.
struct Limits {
    bytes_per_minute: f64,
    window: f64,
    ceiling: Option<f64>,
    horizon: f64,
}

impl Limits {
    fn read(json: &str) -> Result<Self, Vec<Problem>> {
        let mut limits = Limits { bytes_per_minute: 50.0 * MB, window: 5.0, ceiling: None, horizon: 60.0 };
        let mut problems = Vec::new();
        for (name, value) in settings(json).map_err(|problem| vec![problem])? {
            let number = match value {
                Value::Number(number) if number > 0.0 && number <= 1e6 => Some(number),
                _ => None,
            };
            match (name.as_str(), number) {
                ("mb_per_minute", Some(number)) => limits.bytes_per_minute = number * MB,
                ("window_minutes", Some(number)) => limits.window = number,
                ("ceiling_gb", Some(number)) => limits.ceiling = Some(number * GB),
                ("horizon_minutes", Some(number)) => limits.horizon = number,
                ("mb_per_minute" | "window_minutes" | "ceiling_gb" | "horizon_minutes", None) => {
                    problems.push(problem(&name, "must be a number above 0 and at most 1000000"));
                }
                _ => {
                    let there_are =
                        "is no setting; there are mb_per_minute, window_minutes, ceiling_gb, horizon_minutes";
                    problems.push(problem(&name, there_are));
                }
            }
        }
        if problems.is_empty() { Ok(limits) } else { Err(problems) }
    }
}

/// By how many bytes an agent's memory grows in a minute, if it was watched for long enough.
fn slope(agent: &Agent, limits: &Limits) -> Option<f64> {
    let trend = agent.trend.as_ref().filter(|trend| trend.window_ms as f64 >= limits.window * MINUTE)?;
    trend.memory_bytes_per_minute.filter(|slope| slope.is_finite())
}

/// An agent's growth against the limits. `None`: it does not grow too fast.
fn check(agent: &Agent, slope: f64, limits: &Limits) -> Option<Check> {
    if slope <= limits.bytes_per_minute {
        return None;
    }
    let (grows, limit) = (in_words(slope), in_words(limits.bytes_per_minute));
    let mut detail = format!("memory grows by {grows} a minute (limit {limit})");
    let mut outcome = Outcome::Warn;
    if let (Some(ceiling), Some(bytes)) = (limits.ceiling, agent.metrics.memory_bytes) {
        let minutes = ((ceiling - bytes as f64) / slope).max(0.0);
        if minutes <= limits.horizon {
            outcome = Outcome::Fail;
        }
        let ceiling = in_words(ceiling);
        detail += &match minutes as u64 {
            0 => format!(", and {ceiling} is reached"),
            minutes => format!(", and {ceiling} is reached in {minutes} min"),
        };
    }
    Some(Check { name: "leak".into(), outcome, detail, value: Some(slope), limit: Some(limits.bytes_per_minute) })
}

/// Bytes as people read them, rounded down: `812 MB`, `12.4 GB`.
fn in_words(bytes: f64) -> String {
    if bytes < GB {
        return format!("{} MB", (bytes / MB) as u64);
    }
    let tenths = (bytes / (GB / 10.0)) as u64;
    format!("{}.{} GB", tenths / 10, tenths % 10)
}
