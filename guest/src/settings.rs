//! The settings. One table is the source of their names, meanings, defaults and ranges, of the schema and the checks.
//!
//! Durations and sizes are strings, a whole number with its unit (`"90s"`, `"8GiB"`); all other settings are whole
//! numbers. A setting `X_weight` is what the check `X` costs in points when it fails, and 0 leaves that check out;
//! `X_warn` and `X_fail` are the values from which it warns and fails, and the first may not be above the second.

mod kind;

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use kind::{GIB, Kind, MIB, MINUTE, NEVER, SECOND};
use serde_json::Value;

use crate::Problem;
use crate::text::Clean;

/// One row of the table.
struct Key {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    default: u64,
    range: RangeInclusive<u64>,
    field: fn(&mut Settings) -> &mut u64,
}

macro_rules! settings {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ident = $default:expr $(, $range:expr)?;)+) => {
        /// Every threshold of the policy: durations in milliseconds, sizes in bytes, the others as they are written.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct Settings {
            $($(#[doc = $about])+ pub(crate) $name: u64,)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $($name: $default,)+ }
            }
        }

        static KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            about: concat!($($about),+),
            kind: Kind::$kind,
            default: $default,
            range: settings!(@range $kind $($range)?),
            field: |settings| &mut settings.$name,
        },)+];
    };
    (@range $kind:ident) => { Kind::$kind.range() };
    (@range $kind:ident $range:expr) => { $range };
}

settings! {
    /// For how long an agent that claims to work may be quiet, its claim that old, before it counts as stalled.
    stall_after: Duration = 10 * MINUTE;
    /// For how long a process must be quiet before it counts as idle, where no record says what the agent does.
    idle_after: Duration = 30 * SECOND;
    /// Percent of one core from which a process counts as working, where it was measured only once.
    busy_cpu: Cpu = 1;

    /// Mean CPU of an idle or waiting agent, in percent of one core, from which the check warns.
    cpu_runaway_warn: Cpu = 50;
    /// Mean CPU of an idle or waiting agent, in percent of one core, from which the check fails.
    cpu_runaway_fail: Cpu = 90;
    /// For how long an agent must have been watched, and idle or waiting all the while, before its CPU is judged.
    cpu_runaway_after: Duration = 5 * MINUTE;
    /// Points that a failure of cpu-runaway costs.
    cpu_runaway_weight: Points = 25;

    /// Memory of an agent's whole tree from which the check warns.
    memory_high_warn: Size = 4 * GIB;
    /// Memory of an agent's whole tree from which the check fails.
    memory_high_fail: Size = 8 * GIB;
    /// Points that a failure of memory-high costs.
    memory_high_weight: Points = 25;

    /// Growth of memory in a minute from which the check warns.
    memory_growth_warn: Size = 50 * MIB;
    /// Growth of memory in a minute from which the check fails.
    memory_growth_fail: Size = 200 * MIB;
    /// For how long an agent must have been watched before its growth is judged.
    memory_growth_after: Duration = 5 * MINUTE;
    /// Memory below which growth is not judged.
    memory_growth_above: Size = GIB;
    /// Points that a failure of memory-growth costs.
    memory_growth_weight: Points = 15;

    /// Open files of the fullest process, in percent of its own limit, from which the check warns.
    fd_near_limit_warn: Share = 80;
    /// Open files of the fullest process, in percent of its own limit, from which the check fails.
    fd_near_limit_fail: Share = 90;
    /// Points that a failure of fd-near-limit costs.
    fd_near_limit_weight: Points = 25;

    /// Threads of an agent's whole tree from which the check warns.
    thread_count_warn: Count = 1000;
    /// Threads of an agent's whole tree from which the check fails.
    thread_count_fail: Count = 4000;
    /// Points that a failure of thread-count costs.
    thread_count_weight: Points = 15;

    /// Ended children that the agent has not collected, from which the check warns.
    zombie_children_warn: Count = 10;
    /// Ended children that the agent has not collected, from which the check fails.
    zombie_children_fail: Count = 100;
    /// Points that a failure of zombie-children costs.
    zombie_children_weight: Points = 10;

    /// Points for processes that live on after their agent; the check warns, which costs half of it.
    leftover_processes_weight: Points = 10;

    /// Points that a stall costs.
    stalled_weight: Points = 30;

    /// For how long an agent may wait for input before the check warns.
    waiting_too_long_warn: Duration = 10 * MINUTE;
    /// For how long an agent may wait for input before the check fails.
    waiting_too_long_fail: Duration = NEVER;
    /// Points that a failure of waiting-too-long costs.
    waiting_too_long_weight: Points = 20;

    /// How near in time an agent's record and its events must be for their disagreement to count; it must have lasted as long, too.
    evidence_conflict_within: Duration = SECOND;
    /// Points for evidence that contradicts itself or the processes; the check warns, which costs half of it.
    evidence_conflict_weight: Points = 10;

    /// Points for an agent of which it is not known what it does; its score is what is left, so at most 50.
    known_weight: Points = 50, 50..=100;
    /// Points for each check that could not be made because its figure could not be measured.
    unmeasured_weight: Points = 5;

    /// Percent of the session's agents, those offline left out, above which failed ones make it critical.
    failed_share: Share = 50;
    /// Percent of the session's agents, those offline left out, above which degraded ones make it degraded.
    degraded_share: Share = 30;
}

impl Settings {
    /// Reads a JSON object of settings over the defaults; the empty string means none.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the paths.
    pub(crate) fn parse(json: &str) -> Result<Self, Vec<Problem>> {
        let mut settings = Settings::default();
        if json.is_empty() {
            return Ok(settings);
        }
        let given = match serde_json::from_str(json) {
            Ok(Value::Object(given)) => given,
            Ok(other) => {
                return Err(vec![problem("", format!("wanted an object, found {}", found(&other)))]);
            }
            Err(error) => return Err(vec![problem("", format!("not JSON: {error}"))]),
        };
        let mut problems = Vec::new();
        for (name, value) in &given {
            match KEYS.iter().find(|key| key.name == name) {
                None => problems.push(unknown(name)),
                Some(key) => match key.kind.read(value).filter(|value| key.range.contains(value)) {
                    Some(value) => *(key.field)(&mut settings) = value,
                    None => problems.push(problem(key.name, key.refusal(value))),
                },
            }
        }
        if problems.is_empty() {
            problems = settings.contradictions(|name| given.contains_key(name));
        }
        if problems.is_empty() {
            return Ok(settings);
        }
        problems.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Err(problems)
    }

    /// Pairs whose warning would come after the failure, each reported at the one that was `given`.
    fn contradictions(&mut self, given: impl Fn(&str) -> bool) -> Vec<Problem> {
        let mut problems = Vec::new();
        for warn in KEYS {
            let Some(check) = warn.name.strip_suffix("_warn") else {
                continue;
            };
            let Some(fail) = KEYS.iter().find(|key| key.name.strip_suffix("_fail") == Some(check)) else {
                continue;
            };
            let (first, second) = (*(warn.field)(self), *(fail.field)(self));
            if first > second {
                let (first, second) = (warn.kind.write(first), fail.kind.write(second));
                let at = if given(warn.name) { warn } else { fail };
                let default = if given(warn.name) && given(fail.name) { "" } else { ", one of them by default" };
                problems
                    .push(problem(at.name, format!("{} {first} is above {} {second}{default}", warn.name, fail.name)));
            }
        }
        problems
    }
}

impl Key {
    fn refusal(&self, value: &Value) -> String {
        let [from, to] = [self.range.start(), self.range.end()].map(|end| self.kind.write(*end));
        format!("wanted {} from {from} to {to}, found {}", self.kind.wanted(), found(value))
    }
}

/// A problem with the setting `name`; the empty name is the whole object.
fn problem(name: &str, message: String) -> Problem {
    let mut path = String::new();
    if !name.is_empty() {
        path.push('/');
        path.push_str(name);
    }
    Problem { path, message }
}

fn unknown(name: &str) -> Problem {
    /// A longer name is no slip of a finger, and comparing it would take long.
    const LONGEST: usize = 100;
    let distance = |key: &Key| strsim::osa_distance(key.name, name);
    // What differs in more than a third was meant otherwise.
    let is_near = |key: &&Key| name.len() <= LONGEST && distance(key) <= (key.name.len().max(name.len()) / 3).max(1);
    let message = match KEYS.iter().min_by_key(|key| distance(key)).filter(is_near) {
        Some(key) => format!("unknown setting; did you mean `{}`?", key.name),
        None => "unknown setting".to_owned(),
    };
    let name = Clean(name).to_string().replace('~', "~0").replace('/', "~1");
    Problem { path: format!("/{name}"), message }
}

/// A refused value as it was written, or what it is where it is large.
fn found(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("\"{}\"", Clean(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// `problems` as one line of text.
pub(crate) fn one_line(problems: &[Problem]) -> String {
    let mut line = "settings refused".to_owned();
    for (index, Problem { path, message }) in problems.iter().enumerate() {
        line.push_str(if index == 0 { ": " } else { "; " });
        line.push_str(path);
        line.push_str(if path.is_empty() { "" } else { ": " });
        line.push_str(message);
    }
    line
}

/// A JSON schema (draft 2020-12) of the settings.
pub(crate) fn schema() -> String {
    let mut schema = String::from(
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Settings of the built-in policy","description":"Durations and sizes have a unit. A weight is what a check costs in points when it fails; a warning costs half of it, and 0 leaves the check out.","type":"object","additionalProperties":false,"properties":{"#,
    );
    for (index, key) in KEYS.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let (about, default) = (key.about.trim_start(), key.kind.write(key.default));
        // Writing to a string cannot fail.
        let _ =
            write!(schema, r#"{comma}"{}":{{"description":"{about}","default":{default},{}}}"#, key.name, key.shape());
    }
    schema.push_str("}}");
    schema
}

impl Key {
    fn shape(&self) -> String {
        if self.kind.units().is_empty() {
            return format!(r#""type":"integer","minimum":{},"maximum":{}"#, self.range.start(), self.range.end());
        }
        let units: Vec<_> = self.kind.units().iter().map(|(unit, _)| *unit).collect();
        let never = if self.kind == Kind::Duration { "|never" } else { "" };
        format!(r#""type":"string","pattern":"^([0-9]+({}){never})$""#, units.join("|"))
    }
}

#[cfg(test)]
mod tests;
