//! What any other server tells, read as the configuration describes it.

use super::Taker;
use super::answer::form;
use super::listing::{Listing, Statement, ToldAgent};
use super::when::unix_ms;
use crate::config::{AgentMap, Meaning};
use crate::observe::facts::Claim;
use serde_json::Value;

/// Takes up the agents of an answer.
///
/// # Errors
/// Which pointer finds nothing, and what is there instead: keys, and none of what they hold.
pub fn take(answer: &Value, map: &AgentMap, taker: &Taker, listing: &mut Listing) -> Result<(), String> {
    let list = match answer.pointer(&map.agents) {
        Some(Value::Array(list)) => list,
        Some(other) => return Err(format!("{} wanted a list, found {}", shown("agents", &map.agents), form(other))),
        None => return Err(nothing("agents", &map.agents, answer)),
    };
    complain(list, map, listing)?;
    for element in list {
        if listing.is_full() {
            break;
        }
        let Some(id) = text(element, Some(&map.id)) else {
            listing.leave_out(format!("{} finds no id in one of the agents", shown("id", &map.id)));
            continue;
        };
        let [name, session_id, session_name, root_path] =
            [&map.name, &map.session_id, &map.session_name, &map.root_path].map(|at| text(element, at.as_ref()));
        let session_name = session_name.or_else(|| session_id.clone()).or_else(|| taker.from.session.clone());
        let session = session_id.or_else(|| session_name.clone());
        let said = session.as_deref().unwrap_or(&taker.upstream);
        let place = listing.session(said, &taker.upstream, session_name.as_deref(), root_path.as_deref(), None);
        let Some(place) = place else { continue };
        listing.agent(place, &taker.upstream, told(element, map, id, name, &taker.upstream));
    }
    Ok(())
}

fn told(element: &Value, map: &AgentMap, id: String, name: Option<String>, upstream: &str) -> ToldAgent {
    let time = |at: &Option<String>| element.pointer(at.as_deref()?).and_then(unix_ms);
    let pid = text(element, map.pid.as_ref()).and_then(|pid| pid.parse::<u32>().ok());
    let process = match pid {
        Some(pid) => format!("process {pid} at {upstream}"),
        None => format!("known from {upstream}"),
    };
    let activity = match text(element, map.activity.as_ref()) {
        Some(word) => Ok(Statement {
            claim: claim(&word, map),
            word,
            detail: text(element, map.reason.as_ref()),
            since_ms: time(&map.since),
        }),
        None => Err(format!("{upstream} does not say what it does")),
    };
    ToldAgent {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        specialization: text(element, map.specialization.as_ref()),
        kind: text(element, map.kind.as_ref()),
        created_at_ms: time(&map.created_at),
        process,
        activity,
        degraded: None,
        usage: None,
        identity: None,
        via: Vec::new(),
    }
}

/// What a word means: what the configuration says, or what it says by itself.
fn claim(word: &str, map: &AgentMap) -> Claim {
    let named = map.words.get(word).copied().or_else(|| {
        let alike = |(name, _): &(&String, &Meaning)| name.eq_ignore_ascii_case(word);
        map.words.iter().find(alike).map(|(_, meaning)| *meaning)
    });
    match named {
        Some(Meaning::Working) => Claim::Working,
        Some(Meaning::Waiting) => Claim::Waiting,
        Some(Meaning::Idle) => Claim::Idle,
        Some(Meaning::Finished) => Claim::Finished,
        Some(Meaning::Failed) => Claim::Failed,
        None => match word.to_ascii_lowercase().as_str() {
            "working" => Claim::Working,
            "waiting" => Claim::Waiting,
            "idle" => Claim::Idle,
            "finished" => Claim::Finished,
            "failed" => Claim::Failed,
            _ => Claim::Unknown,
        },
    }
}

/// A text, or a number as text, where a pointer finds one.
fn text(element: &Value, at: Option<&String>) -> Option<String> {
    match element.pointer(at?)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Says which pointers find nothing in any of the agents: without an id none can be listed, all else they can lack.
fn complain(list: &[Value], map: &AgentMap, listing: &mut Listing) -> Result<(), String> {
    let Some(first) = list.first() else { return Ok(()) };
    let is_lost = |at: &str| list.iter().all(|element| element.pointer(at).is_none());
    if is_lost(&map.id) {
        return Err(nothing("id", &map.id, first));
    }
    let optional = [
        ("name", &map.name),
        ("specialization", &map.specialization),
        ("kind", &map.kind),
        ("activity", &map.activity),
        ("reason", &map.reason),
        ("since", &map.since),
        ("created_at", &map.created_at),
        ("pid", &map.pid),
        ("session_id", &map.session_id),
        ("session_name", &map.session_name),
        ("root_path", &map.root_path),
    ];
    for (key, at) in optional.into_iter().filter_map(|(key, at)| Some((key, at.as_deref()?))) {
        if is_lost(at) {
            listing.remark(nothing(key, at, first));
        }
    }
    Ok(())
}

fn shown(key: &str, at: &str) -> String {
    format!("`agents_from.map.{key}` {at:?}")
}

/// That a pointer finds nothing, and what stands at the last place that it leads to.
fn nothing(key: &str, at: &str, value: &Value) -> String {
    let places = at.match_indices('/').map(|(end, _)| &at[..end]);
    let reached = places.rev().find_map(|place| Some((place, value.pointer(place)?)));
    match reached {
        Some((place, there)) if !place.is_empty() => {
            format!("{} finds nothing: at {place:?} is {}", shown(key, at), form(there))
        }
        _ => format!("{} finds nothing: there is {}", shown(key, at), form(value)),
    }
}
