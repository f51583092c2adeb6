//! Single settings given as text: by an environment variable or a flag.

use super::check::resolve;
use super::environment::{Environment, NOT_SETTINGS};
use super::problem::{Origin, Origins, Problem, Problems, entry};
use super::toml::Document;
use super::words::nearest;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One setting given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The flag as the user typed it, as in `--tick`.
    pub name: String,
    /// The setting's path, as in `sampling.tick`. A table or list cannot be set so.
    pub key: String,
    /// Its value as text.
    pub value: String,
}

/// The tree of the built-in defaults.
///
/// # Errors
/// When a default is nothing that JSON can say; the tests hold that none is.
pub(super) fn defaults(defaults: &impl Serialize) -> Result<Document, Problems> {
    let mut origins = Origins::default();
    let value = serde_json::to_value(defaults);
    let value = value.map_err(|error| origins.problem("", error.to_string()))?;
    default_origins(&value, "", &mut origins);
    Ok(Document { value, origins, problems: vec![] })
}

/// Says of each key that it is a default, lest it be held for a part of the file that sets its section.
fn default_origins(value: &Value, path: &str, origins: &mut Origins) {
    origins.insert(path, Origin::Default);
    for (name, value) in value.as_object().into_iter().flatten() {
        default_origins(value, &entry(path, name), origins);
    }
}

impl Document {
    /// Lays a higher layer over this one: tables are merged key by key, everything else is replaced.
    pub(super) fn overlay(&mut self, higher: Self) {
        merge(&mut self.value, higher.value);
        self.origins.extend(higher.origins);
        self.problems.extend(higher.problems);
    }

    /// Lays the environment's settings over: `HEADCOUNT_SAMPLING_TICK` is `sampling.tick`.
    pub(super) fn overlay_environment(&mut self, schema: &Value, environment: &Environment) {
        let settings = Settings::of(schema);
        for (name, text) in environment.texts() {
            let Some(stem) = name.strip_prefix("HEADCOUNT_") else {
                continue;
            };
            let origin = Origin::Variable(name.into());
            if let Some(key) = settings.by_variable.get(stem) {
                match text {
                    Some(text) => self.set(&settings, key, text, origin),
                    None => self.report(origin, key, "wanted text, found bytes that are not UTF-8"),
                }
            } else if !NOT_SETTINGS.contains(&name)
                && let Some(message) = settings.unknown_variable(stem)
            {
                self.report(origin, "", message);
            }
        }
    }

    /// Lays the command line's settings over.
    pub(super) fn overlay_flags(&mut self, schema: &Value, flags: &[Flag]) {
        let settings = Settings::of(schema);
        for Flag { name, key, value } in flags {
            let origin = Origin::Flag(name.clone());
            if settings.scalars.contains_key(key) {
                self.set(&settings, key, value, origin);
            } else {
                let near = nearest(key, settings.scalars.keys().map(String::as_str));
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                self.report(origin, key, format!("unknown key{hint}"));
            }
        }
    }

    /// Sets one scalar. Where its section is no table, that is the problem to report, and the checker does.
    fn set(&mut self, settings: &Settings<'_>, key: &str, text: &str, origin: Origin) {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let section = section.split('.').filter(|name| !name.is_empty());
        let mut table = self.value.as_object_mut();
        for name in section {
            table = table.and_then(|table| table.get_mut(name)?.as_object_mut());
        }
        if let Some(table) = table {
            table.insert(name.into(), scalar(settings.scalars[key], text));
            self.origins.insert(key, origin);
        }
    }

    fn report(&mut self, origin: Origin, key: &str, message: impl Into<String>) {
        let message = message.into();
        self.problems.push(Problem { origin, key: key.into(), message, excerpt: None });
    }
}

fn merge(lower: &mut Value, higher: Value) {
    match (lower, higher) {
        (Value::Object(lower), Value::Object(higher)) => {
            for (name, value) in higher {
                merge(lower.entry(name).or_insert(Value::Null), value);
            }
        }
        (lower, higher) => *lower = higher,
    }
}

/// A text as a value of the type that the schema asks for; as text where it is not one, for the checker to refuse.
fn scalar(schema: &Value, text: &str) -> Value {
    let parsed = match schema["type"].as_str() {
        Some("boolean") => text.parse().ok().map(Value::Bool),
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
        _ => None,
    };
    parsed.unwrap_or_else(|| text.into())
}

/// The settings that are single values, out of the schema.
struct Settings<'s> {
    /// Each one's schema, by its path.
    scalars: BTreeMap<String, &'s Value>,
    /// Each one's path, by its variable's name after `HEADCOUNT_`.
    by_variable: BTreeMap<String, String>,
    /// How the variables of a section, or of a list, begin.
    sections: Vec<String>,
}

impl<'s> Settings<'s> {
    fn of(schema: &'s Value) -> Self {
        let mut scalars = BTreeMap::new();
        collect(schema, schema, "", &mut scalars);
        let by_variable = scalars.keys().map(|key| (variable(key), key.clone())).collect();
        let sections = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        Self { sections: sections.map(|name| variable(name)).collect(), scalars, by_variable }
    }

    /// What to say of a variable that looks like a setting's but is none.
    fn unknown_variable(&self, stem: &str) -> Option<String> {
        if let Some(near) = nearest(stem, self.by_variable.keys().map(String::as_str)) {
            return Some(format!("sets nothing; did you mean HEADCOUNT_{near}?"));
        }
        let section = self.sections.iter().find(|section| {
            stem.strip_prefix(section.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })?;
        let known = self.by_variable.keys().filter(|name| name.starts_with(section.as_str()));
        let known: Vec<_> = known.map(|name| format!("HEADCOUNT_{name}")).collect();
        if known.is_empty() {
            return Some("lists are set in the configuration file, not by a variable".into());
        }
        Some(format!("sets nothing; known are {}", known.join(", ")))
    }
}

/// Collects the scalars below a table's schema.
fn collect<'s>(root: &'s Value, table: &'s Value, path: &str, scalars: &mut BTreeMap<String, &'s Value>) {
    for (name, schema) in table["properties"].as_object().into_iter().flatten() {
        let (path, schema) = (entry(path, name), resolve(root, schema));
        if schema["properties"].is_object() {
            collect(root, schema, &path, scalars);
        } else if schema["type"] != "array" && schema["type"] != "object" {
            scalars.insert(path, schema);
        }
    }
}

/// The name of a key's variable, after `HEADCOUNT_`.
fn variable(key: &str) -> String {
    key.to_ascii_uppercase().replace(['.', '-'], "_")
}
