//! Checks settings against a JSON schema, which is thereby the only list of keys, types and ranges.

use super::problem::{Origin, Origins, Problem, entry, item};
use super::span::Span;
use super::words::{found, has_type, nearest, quoted, text_fault, texts, wanted};
use serde_json::{Map, Value};

/// Everything in which `value` differs from `schema`.
///
/// Of JSON Schema it knows `$ref`, `type`, `properties`, `additionalProperties`, `required`, `items`, `oneOf`, `anyOf`,
/// `const`, `enum`, `minimum`, `maximum`, `minLength`, `maxLength`, `pattern`, `minItems`, `maxItems`, `uniqueItems` and the
/// formats `regex`, `glob`, `sha256`, `grant-id`, `https`, `https-or-file`, `span` (a length of time) and `size` (of memory). Six keywords are ours, each put on a field by
/// `#[schemars(extend("…" = …))]`:
/// - `x-least` and `x-most`: the bounds of a span or size, as text;
/// - `x-not-below`: the name of a sibling span that this one must reach;
/// - `x-only-first`: what a table of the list may only hold where it is the first;
/// - `x-unique`: the key whose values must differ among a list's tables;
/// - `x-need-one`: the lists of a table of which at least one must hold something.
///
/// A `null` stands for a value whose problem is already reported; it is passed over.
pub(super) fn check(schema: &Value, value: &Value, origins: &Origins) -> Vec<Problem> {
    let mut checker = Checker { root: schema, origins, problems: vec![] };
    checker.value(schema, value, "");
    checker.problems
}

struct Checker<'a> {
    root: &'a Value,
    origins: &'a Origins,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    fn report(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(self.origins.problem(path, message));
    }

    fn value(&mut self, schema: &'a Value, value: &Value, path: &str) {
        if value.is_null() {
            return;
        }
        let schema = resolve(self.root, schema);
        for alternatives in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema[alternatives].as_array() {
                self.alternatives(alternatives, value, path);
            }
        }
        if !has_type(&schema["type"], value) {
            return self.report(path, wanted(schema, value));
        }
        if let Some(choices) = schema["enum"].as_array() {
            self.choice(choices.iter(), value, path);
        }
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Array(items) => self.list(schema, items, path),
            Value::Object(entries) => self.table(schema, entries, path),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// The alternative that fits best speaks for all of them.
    fn alternatives(&mut self, alternatives: &'a [Value], value: &Value, path: &str) {
        if alternatives.iter().all(|one| one.get("const").is_some()) {
            return self.choice(alternatives.iter().map(|one| &one["const"]), value, path);
        }
        let tried = alternatives.iter().filter(|one| one["type"] != "null").map(|one| {
            let mut checker = Checker { root: self.root, origins: self.origins, problems: vec![] };
            checker.value(one, value, path);
            checker.problems
        });
        self.problems.extend(tried.min_by_key(Vec::len).unwrap_or_default());
    }

    fn choice<'v>(&mut self, choices: impl Iterator<Item = &'v Value>, value: &Value, path: &str) {
        let choices: Vec<_> = choices.filter(|choice| !choice.is_null()).collect();
        if !choices.contains(&value) {
            let names: Vec<_> = choices.iter().map(ToString::to_string).collect();
            let hint = value.as_str().and_then(|text| nearest(text, choices.iter().filter_map(|c| c.as_str())));
            let hint = hint.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            self.report(path, format!("wanted {}, found {}{hint}", names.join(" or "), found(value)));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &str) {
        let length = text.chars().count() as u64;
        if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            self.report(path, format!("wanted at least {least} character(s), found {length}"));
        }
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            self.report(path, format!("wanted at most {most} characters, found {length}"));
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && !regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
        {
            self.report(path, format!("wanted text of the form {pattern}, found {}", quoted(text)));
        }
        if let Some(fault) = text_fault(schema, text) {
            self.report(path, fault);
        }
    }

    fn number(&mut self, schema: &Value, number: &serde_json::Number, path: &str) {
        // Bounds beyond 2^53 are rounded here; the type then refuses what does not fit.
        let value = number.as_f64().unwrap_or(f64::NAN);
        let most = schema["maximum"].as_f64().or(match schema["format"].as_str() {
            Some("uint32") => Some(u32::MAX.into()),
            Some("int32") => Some(i32::MAX.into()),
            _ => None,
        });
        if let Some(least) = schema["minimum"].as_f64().filter(|least| value < *least) {
            self.report(path, format!("wanted at least {least}, found {number}"));
        }
        if let Some(most) = most.filter(|most| value > *most) {
            self.report(path, format!("wanted at most {most}, found {number}"));
        }
    }

    fn list(&mut self, schema: &'a Value, items: &[Value], path: &str) {
        let length = items.len() as u64;
        if let Some(least) = schema["minItems"].as_u64().filter(|least| length < *least) {
            self.report(path, format!("wanted at least {least} item(s), found {length}"));
        }
        if let Some(most) = schema["maxItems"].as_u64().filter(|most| length > *most) {
            self.report(path, format!("wanted at most {most} items, found {length}"));
        }
        for (index, value) in items.iter().enumerate() {
            let here = item(path, index);
            self.value(&schema["items"], value, &here);
            let same = |one: &Value| !one.is_null() && one == value;
            if schema["uniqueItems"] == true && items[..index].iter().any(same) {
                self.report(&here, format!("{} stands in the list twice", found(value)));
            }
            for (key, first) in schema["x-only-first"].as_object().into_iter().flatten().filter(|_| index > 0) {
                if value.get(key) == Some(first) {
                    self.report(&entry(&here, key), format!("{} can only be the first", found(first)));
                }
            }
            if let Some(key) = schema["x-unique"].as_str()
                && let Some(name) = value.get(key)
                && let Some(first) = items[..index].iter().position(|one| one.get(key) == Some(name))
            {
                let first = self.origins.of(&entry(&item(path, first), key));
                self.report(&entry(&here, key), format!("{} is taken already, at {first}", found(name)));
            }
        }
    }

    fn table(&mut self, schema: &'a Value, entries: &Map<String, Value>, path: &str) {
        let known = schema["properties"].as_object();
        for (name, value) in entries {
            let path = entry(path, name);
            match known.and_then(|known| known.get(name)) {
                Some(schema) => {
                    self.value(schema, value, &path);
                    self.not_below(schema, entries, name, &path);
                }
                None if schema["additionalProperties"] == false => {
                    let message = self.unknown(name, known);
                    self.report(&path, message);
                }
                None => self.value(&schema["additionalProperties"], value, &path),
            }
        }
        for name in texts(&schema["required"]).filter(|name| !entries.contains_key(*name)) {
            self.report(&entry(path, name), "is missing");
        }
        let mut lists = texts(&schema["x-need-one"]).peekable();
        if lists.peek().is_some()
            && !lists.any(|list| entries.get(list).is_some_and(|list| *list != Value::Array(vec![])))
        {
            let lists: Vec<_> = texts(&schema["x-need-one"]).map(|list| format!("`{list}`")).collect();
            self.report(path, format!("wanted something in {}, found nothing", lists.join(" or ")));
        }
    }

    /// A span that must reach its sibling. The blame is on the one that was set.
    fn not_below(&mut self, schema: &Value, entries: &Map<String, Value>, name: &str, path: &str) {
        let Some(sibling) = schema["x-not-below"].as_str() else {
            return;
        };
        let span = |name: &str| entries.get(name)?.as_str()?.parse::<Span>().ok();
        if let (Some(this), Some(other)) = (span(name), span(sibling))
            && this.0 < other.0
        {
            let sibling_path = format!("{}{sibling}", &path[..path.len() - name.len()]);
            let message = format!("wanted at least `{sibling}` ({other}), found {this}");
            let mut problem = self.origins.problem(path, message);
            if problem.origin == Origin::Default {
                problem.origin = self.origins.of(&sibling_path);
            }
            self.problems.push(problem);
        }
    }

    /// What to say of an unknown key: the nearest one here, or the section in which it would be known.
    fn unknown(&self, name: &str, known: Option<&Map<String, Value>>) -> String {
        let names = || known.into_iter().flat_map(Map::keys).map(String::as_str);
        if let Some(near) = nearest(name, names()) {
            return format!("unknown key; did you mean `{near}`?");
        }
        let mut sections = known
            .into_iter()
            .flatten()
            .filter(|(_, section)| resolve(self.root, section)["properties"].get(name).is_some());
        if let Some((section, _)) = sections.next() {
            return format!("unknown key; did you mean `{section}.{name}`?");
        }
        let names: Vec<_> = names().map(|name| format!("`{name}`")).collect();
        format!("unknown key; known are {}", names.join(", "))
    }
}

/// What a schema's `$ref` points at, or the schema itself.
pub(super) fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema["$ref"].as_str();
    target.and_then(|target| root.pointer(target.trim_start_matches('#'))).unwrap_or(schema)
}

/// Keywords of a schema that would be silently passed over, each with what holds it.
#[cfg(test)]
pub(crate) fn unheeded_keywords(schema: &Value) -> Vec<String> {
    const HEEDED: &str = "$ref type properties additionalProperties required items oneOf anyOf const enum minimum maximum \
        minLength maxLength pattern minItems maxItems uniqueItems format x-least x-most x-not-below x-only-first x-unique x-need-one \
        $schema $defs title description default";
    let mut unheeded = vec![];
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        if !HEEDED.split_whitespace().any(|heeded| heeded == keyword) {
            unheeded.push(format!("{keyword} in {schema}"));
        }
        match value {
            Value::Object(_) if keyword == "x-only-first" => {}
            Value::Object(named) if ["properties", "$defs"].contains(&keyword.as_str()) => {
                unheeded.extend(named.values().flat_map(unheeded_keywords));
            }
            Value::Object(_) if keyword != "default" => unheeded.extend(unheeded_keywords(value)),
            Value::Array(all) if keyword.ends_with("Of") => {
                unheeded.extend(all.iter().flat_map(unheeded_keywords));
            }
            _ => {}
        }
    }
    unheeded
}
