//! The facts of one agent one by one: where each stands, how people read it, and the agent without it.

use crate::observe::facts::Agent;
use crate::report::clean;
use serde_json::{Map, Value};

/// What no policy sees, and what an agent cannot be without.
const KEPT: [&str; 3] = ["id", "process_id", "terminal"];

/// One fact, and the agent without it.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    /// Where it stands, as in `metrics.memory_bytes`.
    pub path: String,
    /// What it is.
    pub value: Value,
    /// The agent without it.
    pub without: Agent,
}

/// All facts of an agent that can be taken away. What holds others comes after what it holds.
pub(super) fn facts(agent: &Agent) -> serde_json::Result<Vec<Fact>> {
    let json = serde_json::to_value(agent)?;
    let mut facts = Vec::new();
    for (name, value) in json.as_object().into_iter().flatten().filter(|(name, _)| !KEPT.contains(&name.as_str())) {
        walk(&json, name, &[name], value, &mut facts);
    }
    Ok(facts)
}

fn walk(agent: &Value, path: &str, keys: &[&str], value: &Value, facts: &mut Vec<Fact>) {
    match value {
        Value::Null => return,
        Value::Array(items) => {
            for n in 0..items.len() {
                let mut fewer = items.clone();
                let value = fewer.remove(n);
                try_without(agent, format!("{path}[{n}]"), keys, value, fewer.into(), facts);
            }
            if items.len() > 1 {
                try_without(agent, path.to_owned(), keys, value.clone(), Value::Array(vec![]), facts);
            }
            return;
        }
        Value::Object(members) => {
            for (name, member) in members {
                walk(agent, &format!("{path}.{name}"), &[keys, &[name]].concat(), member, facts);
            }
        }
        _ => {}
    }
    if !try_without(agent, path.to_owned(), keys, value.clone(), Value::Null, facts)
        && let Some(other) = instead(path, value)
    {
        try_without(agent, path.to_owned(), keys, value.clone(), other, facts);
    }
}

/// Notes the fact if an agent can be without it.
fn try_without(agent: &Value, path: String, keys: &[&str], value: Value, other: Value, facts: &mut Vec<Fact>) -> bool {
    let mut json = agent.clone();
    let place = keys.iter().try_fold(&mut json, |json, key| json.get_mut(key));
    let Some(place) = place.filter(|there| **there != other) else { return false };
    *place = other;
    match serde_json::from_value(json) {
        Ok(without) => {
            facts.push(Fact { path, value, without });
            true
        }
        Err(_) => false,
    }
}

/// What stands for a fact that cannot be missing.
fn instead(path: &str, value: &Value) -> Option<Value> {
    let other = |usual: &str, otherwise: &str| if value == usual { otherwise.into() } else { usual.into() };
    match (path, value) {
        ("process", _) => Some(other("sleeping", "running")),
        ("metrics.memory_method", _) => Some(other("pss", "resident")),
        ("metrics", _) => Some(Value::Object(Map::new())),
        (_, Value::Number(_)) => Some(0.into()),
        (_, Value::String(_)) => Some("".into()),
        _ => None,
    }
}

/// A fact as people read it.
pub(super) fn shown(path: &str, value: &Value, now_ms: u64) -> String {
    if matches!(path, "evidence" | "unmeasured" | "metrics" | "trend" | "usage") {
        return "all of it".to_owned();
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(clean);
    if path.starts_with("evidence[") {
        let said = text("detail").or(text("word")).unwrap_or_default();
        let at = value.get("at_ms").and_then(Value::as_u64).unwrap_or_default();
        let (source, claim) = (text("source").unwrap_or_default(), text("claim").unwrap_or_default());
        return format!("{source} {claim} {said:?} {} ago", span(now_ms.saturating_sub(at)));
    }
    if path.starts_with("unmeasured[") {
        return format!("{}: {}", text("field").unwrap_or_default(), text("reason").unwrap_or_default());
    }
    let plain = clean(&value.to_string());
    match value.as_f64() {
        Some(_) if path.ends_with("_at_ms") => {
            format!("{plain} ({} ago)", span(now_ms.saturating_sub(value.as_u64().unwrap_or_default())))
        }
        Some(ms) if path.ends_with("_ms") => format!("{plain} ({})", span(ms as u64)),
        Some(bytes) if path.ends_with("bytes_per_minute") => format!("{plain} ({} a minute)", size(bytes)),
        Some(bytes) if path.ends_with("_bytes") => format!("{plain} ({})", size(bytes)),
        _ => value.as_str().map_or(plain, clean),
    }
}

fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

fn size(bytes: f64) -> String {
    let mib = bytes / f64::from(1 << 20);
    if mib.abs() >= 1024.0 { format!("{:.1} GiB", mib / 1024.0) } else { format!("{mib:.1} MiB") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::sample;
    use crate::observe::facts::{Metrics, ProcessState};
    use serde_json::json;

    #[test]
    fn each_fact_of_an_agent_can_be_taken_away() {
        let agent = &sample::session(1).agents[0];
        let facts = facts(agent).unwrap();
        let without = |path: &str| {
            let fact = facts.iter().find(|fact| fact.path == path).unwrap_or_else(|| panic!("no {path}"));
            assert_ne!(&fact.without, agent, "{path}");
            &fact.without
        };
        assert_eq!(without("metrics.memory_bytes").metrics.memory_bytes, None);
        assert_eq!(without("evidence[0]").evidence, []);
        assert_eq!(without("process").process, ProcessState::Running);
        assert_eq!(without("trend.window_ms").trend.unwrap().window_ms, 0);
        assert_eq!(without("trend").trend, None);
        assert_eq!(without("usage.input_tokens").usage.as_ref().unwrap().input_tokens, None);
        assert_eq!(without("metrics").metrics, Metrics::default());
        assert_eq!(without("kind").kind, "");
        // What is not there, or is 0 already, is no fact; neither is what no policy sees.
        for none in ["trend.quiet_ms", "exit_code", "id", "process_id", "evidence"] {
            assert!(facts.iter().all(|fact| fact.path != none), "{none}");
        }
    }

    #[test]
    fn facts_are_shown_as_people_read_them() {
        let evidence =
            json!({"source": "own_record", "claim": "waiting", "word": "w", "detail": "permission", "at_ms": 60_000});
        for (path, value, wanted) in [
            ("metrics.memory_bytes", json!(13_958_643_712_u64), "13958643712 (13.0 GiB)"),
            ("trend.memory_bytes_per_minute", json!(2_097_152.5), "2097152.5 (2.0 MiB a minute)"),
            ("trend.quiet_ms", json!(720_000), "720000 (12 min)"),
            ("created_at_ms", json!(0), "0 (15 min ago)"),
            ("evidence[0]", evidence, "own_record waiting \"permission\" 14 min ago"),
            ("unmeasured[1]", json!({"field": "threads", "reason": "no\u{1b}[2J right"}), "threads: no right"),
            ("process", json!("stopped"), "stopped"),
            ("trend", json!({"quiet_ms": 1}), "all of it"),
            ("metrics.cpu_percent", json!(181.5), "181.5"),
        ] {
            assert_eq!(shown(path, &value, 900_000), wanted);
        }
    }
}
