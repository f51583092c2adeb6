//! Holds a session to a budget of memory and tokens.
//!
//! It stands behind another policy in the chain, takes that one's verdict and adds to it: one check for each limit that is
//! set. A sum over its limit fails, costs points and makes the session degraded. What was not measured does not count as
//! nothing: where it might make the difference, the check says that it does not know.
//!
//! Amounts are doubles all along, and whole tenths when they are shown: so this policy says the same, to the letter, in
//! whatever language it is written.

mod bindings;
mod support;

use bindings::exports::headcount::policy::policy::{
    Advice, Agent, Check, Description, Guest, Outcome, Problem, ProcessState, SessionVerdict, Snapshot, Usage,
};
use support::{Value, degrade_session, one_line, problem, settings};

/// Bytes in a gigabyte.
const GB: f64 = 1e9;
/// Tokens in a million.
const MILLION: f64 = 1e6;
/// Points that a failed check costs.
const COST: u8 = 25;
/// The largest limit that can be set: beyond it a limit is a slip of the keyboard.
const LARGEST: f64 = 1e6;

/// What `bindings` exports.
pub struct Policy;

impl Guest for Policy {
    fn describe() -> Description {
        Description {
            name: "budget".into(),
            version: "0.1.0".into(),
            summary: "Holds a session to a budget of memory and tokens.".into(),
            settings_schema: SCHEMA.into(),
        }
    }

    fn validate_settings(json: String) -> Vec<Problem> {
        Limits::read(&json).err().unwrap_or_default()
    }

    fn judge(facts: Snapshot, so_far: Option<SessionVerdict>, settings: String) -> Result<SessionVerdict, String> {
        let limits = Limits::read(&settings).map_err(|problems| one_line(&problems))?;
        let mut verdict = so_far.ok_or("it needs the verdict of a policy before it")?;
        if let Some(limit) = limits.memory {
            let found = memory(&facts.agents, limit);
            add(&mut verdict, found, "end agents that are no longer needed, or raise memory_gb");
        }
        if let Some(limit) = limits.tokens {
            let found = tokens(&facts.agents, limit);
            add(&mut verdict, found, "end or pause agents, or raise tokens_millions");
        }
        Ok(verdict)
    }
}

/// What the settings look like, as a JSON schema.
const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "memory_gb": {
      "description": "Memory that all agents together may use, in GB (1000000000 bytes).",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000
    },
    "tokens_millions": {
      "description": "Tokens that all agents together may use, in millions: input, output and those written to a cache.",
      "type": "number", "exclusiveMinimum": 0, "maximum": 1000000
    }
  },
  "minProperties": 1,
  "additionalProperties": false
}"#;

/// The limits that are set, in bytes and tokens.
#[derive(Default)]
struct Limits {
    memory: Option<f64>,
    tokens: Option<f64>,
}

impl Limits {
    fn read(json: &str) -> Result<Self, Vec<Problem>> {
        let mut limits = Limits::default();
        let mut problems = Vec::new();
        for (name, value) in settings(json).map_err(|problem| vec![problem])? {
            let (limit, unit) = match name.as_str() {
                "memory_gb" => (&mut limits.memory, GB),
                "tokens_millions" => (&mut limits.tokens, MILLION),
                _ => {
                    problems.push(problem(&name, "is no setting; there are memory_gb and tokens_millions"));
                    continue;
                }
            };
            match value {
                // Whole bytes and tokens.
                Value::Number(number) if number > 0.0 && number <= LARGEST => {
                    *limit = Some((number * unit + 0.5).floor());
                }
                _ => problems.push(problem(&name, "must be a number above 0 and at most 1000000")),
            }
        }
        if problems.is_empty() && limits.memory.is_none() && limits.tokens.is_none() {
            problems.push(Problem { path: String::new(), message: "set memory_gb, tokens_millions or both".into() });
        }
        if problems.is_empty() { Ok(limits) } else { Err(problems) }
    }
}

/// The memory of all agents against its limit. `None`: it is within.
fn memory(agents: &[Agent], limit: f64) -> Option<Check> {
    let sum = agents.iter().filter_map(|agent| agent.metrics.memory_bytes).fold(0.0, |sum, bytes| sum + bytes as f64);
    // An agent that has ended, or runs on another machine, uses no memory here: there is nothing to measure.
    let is_here =
        |agent: &Agent| !matches!(agent.process, ProcessState::Gone | ProcessState::Zombie | ProcessState::NotLocal);
    let unmeasured = agents.iter().filter(|agent| agent.metrics.memory_bytes.is_none() && is_here(agent)).count();
    let (used, allowed) = (tenths(sum, GB), tenths(limit, GB));
    let (outcome, detail) = if sum > limit {
        (Outcome::Fail, format!("{used} GB of memory in use (limit {allowed} GB)"))
    } else if unmeasured > 0 {
        let of = agents.len();
        let detail = format!(
            "{used} GB of memory in use (limit {allowed} GB), but that of {unmeasured} of {of} agents was not measured"
        );
        (Outcome::Unknown, detail)
    } else {
        return None;
    };
    Some(Check { name: "memory-budget".into(), outcome, detail, value: Some(sum), limit: Some(limit) })
}

/// The tokens of all agents that tell theirs against the limit. `None`: they are within.
fn tokens(agents: &[Agent], limit: f64) -> Option<Check> {
    let counts: Vec<f64> = agents.iter().filter_map(|agent| used_tokens(agent.usage.as_ref()?)).collect();
    let sum = counts.iter().fold(0.0, |sum, count| sum + count);
    let (used, allowed) = (tenths(sum, MILLION), tenths(limit, MILLION));
    let (outcome, detail, value) = if sum > limit {
        (Outcome::Fail, format!("{used} million tokens used (limit {allowed} million)"), Some(sum))
    } else if counts.is_empty() && !agents.is_empty() {
        let of = agents.len();
        let detail = format!("tokens of {of} of {of} agents were not measured (limit {allowed} million)");
        (Outcome::Unknown, detail, None)
    } else {
        return None;
    };
    Some(Check { name: "token-budget".into(), outcome, detail, value, limit: Some(limit) })
}

/// What an agent says that it has used; `None` where it says nothing of tokens. Tokens read from a cache cost next to
/// nothing and are left out.
fn used_tokens(usage: &Usage) -> Option<f64> {
    let told = [usage.input_tokens, usage.output_tokens, usage.cache_write_tokens];
    told.iter().flatten().map(|&count| count as f64).reduce(|sum, count| sum + count)
}

/// Adds a check to the verdict, and what follows from it. One that passed is only counted.
fn add(verdict: &mut SessionVerdict, check: Option<Check>, action: &str) {
    let Some(mut check) = check else {
        verdict.checks_passed += 1;
        return;
    };
    if check.outcome == Outcome::Fail {
        let why = format!("{}: {}", check.name, check.detail);
        verdict.advice.push(Advice { agent: None, why, action: action.into() });
        check.detail += &format!(", −{COST}");
        verdict.score = verdict.score.saturating_sub(COST);
        degrade_session(verdict);
    }
    verdict.checks.push(check);
}

/// So many units with one decimal, rounded down.
fn tenths(amount: f64, unit: f64) -> String {
    let tenths = (amount / (unit / 10.0)) as u64;
    format!("{}.{}", tenths / 10, tenths % 10)
}
