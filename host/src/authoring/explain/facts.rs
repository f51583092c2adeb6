//! The facts of one agent one by one: where each stands, how people read it, and the agent without it. That one is made when it
//! is asked for: an agent may have thousands of facts.

use crate::observe::facts::Agent;
use crate::report::clean;
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// What no policy sees, and what an agent cannot be without.
const KEPT: [&str; 3] = ["id", "process_id", "terminal"];

/// Facts of one agent that are tried at the most.
const MAX_FACTS: usize = 300;

/// One fact of an agent, as a place in its JSON.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    /// Where it stands, as in `metrics.memory_bytes`.
    pub path: String,
    pointer: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What is no list.
    Value,
    /// The nth item of the list.
    Item(usize),
    /// The list as a whole.
    List,
}

/// All facts of an agent that may be taken away, and how many are left out because they are too many: then the last items of
/// its lists are. What holds others comes after what it holds, and lists come last, because they may be long.
pub(super) fn facts(agent: &Value) -> (Vec<Fact>, usize) {
    let mut facts = Vec::new();
    for (name, value) in agent.as_object().into_iter().flatten().filter(|(name, _)| !KEPT.contains(&name.as_str())) {
        walk(name, &format!("/{name}"), value, &mut facts);
    }
    facts.sort_by_key(|fact| fact.kind != Kind::Value);
    let is_item = |fact: &Fact| matches!(fact.kind, Kind::Item(_));
    let left_out = facts.len().saturating_sub(MAX_FACTS);
    let mut room = facts.iter().filter(|fact| is_item(fact)).count().saturating_sub(left_out);
    facts.retain(|fact| {
        let fits = !is_item(fact) || room > 0;
        room -= usize::from(fits && is_item(fact));
        fits
    });
    (facts, left_out)
}

fn walk(path: &str, pointer: &str, value: &Value, facts: &mut Vec<Fact>) {
    let fact = |path: String, kind| Fact { path, pointer: pointer.to_owned(), kind };
    match value {
        Value::Null => {}
        Value::Array(items) => {
            facts.extend((0..items.len()).map(|n| fact(format!("{path}[{n}]"), Kind::Item(n))));
            if items.len() > 1 {
                facts.push(fact(path.to_owned(), Kind::List));
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                walk(&format!("{path}.{name}"), &format!("{pointer}/{name}"), member, facts);
            }
            facts.push(fact(path.to_owned(), Kind::Value));
        }
        _ => facts.push(fact(path.to_owned(), Kind::Value)),
    }
}

impl Fact {
    /// What it is.
    pub fn value<'a>(&self, agent: &'a Value) -> &'a Value {
        let there = agent.pointer(&self.pointer).unwrap_or(&Value::Null);
        if let Kind::Item(n) = self.kind { &there[n] } else { there }
    }

    /// The agent without it; `None`: an agent cannot be without. The JSON is changed meanwhile, because a copy may be large.
    pub fn without(&self, agent: &mut Value) -> Option<Agent> {
        match self.kind {
            Kind::Value => {
                let otherwise = instead(&self.path, self.value(agent));
                [Some(Value::Null), otherwise].into_iter().flatten().find_map(|other| self.with(agent, other))
            }
            Kind::List => self.with(agent, Value::Array(Vec::new())),
            Kind::Item(n) => {
                let item = agent.pointer_mut(&self.pointer)?.as_array_mut()?.remove(n);
                let without = Agent::deserialize(&*agent).ok();
                agent.pointer_mut(&self.pointer)?.as_array_mut()?.insert(n, item);
                without
            }
        }
    }

    /// The agent with something else in its place.
    fn with(&self, agent: &mut Value, other: Value) -> Option<Agent> {
        let there = agent.pointer_mut(&self.pointer).filter(|there| **there != other)?;
        let before = std::mem::replace(there, other);
        let with = Agent::deserialize(&*agent).ok();
        *agent.pointer_mut(&self.pointer)? = before;
        with
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
        let json = serde_json::to_value(agent).unwrap();
        let facts = facts(&json).0;
        let found = |path: &str| {
            let mut changed = json.clone();
            let without = facts.iter().find(|fact| fact.path == path)?.without(&mut changed);
            assert_eq!(changed, json, "{path}");
            without
        };
        let without = |path: &str| {
            let without = found(path).unwrap_or_else(|| panic!("no {path}"));
            assert_ne!(&without, agent, "{path}");
            without
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
            assert_eq!(found(none), None, "{none}");
        }
    }

    #[test]
    fn of_too_many_facts_the_last_items_of_lists_are_left_out() {
        let mut agent = serde_json::to_value(&sample::session(1).agents[0]).unwrap();
        let all = facts(&agent);
        assert_eq!(all.1, 0);
        agent["evidence"] = vec![agent["evidence"][0].clone(); 5000].into();
        let (some, left_out) = facts(&agent);
        let has = |path: &str| some.iter().any(|fact| fact.path == path);
        assert_eq!((some.len(), left_out), (300, all.0.len() + 5000 - 300));
        assert!(has("evidence[0]") && has("evidence") && !has("evidence[4999]") && has("usage.input_tokens"));
        let first = some.iter().find(|fact| fact.path == "evidence[0]").unwrap();
        assert_eq!(first.without(&mut agent).unwrap().evidence.len(), 4999);
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
