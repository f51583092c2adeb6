//! Reads a TOML file of ours against the schema of its type: all that is wrong with it, each with its line.

use super::check::check;
use super::problem::{MOST_TOLD, Origin, Origins, Problem, Problems, entry, item};
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's content and where each part of it stands.
#[derive(Debug, Clone)]
pub struct Checked<T> {
    /// The content.
    pub value: T,
    /// Where each value stands: for rules that the schema cannot express, whose problems then name their line too.
    pub origins: Origins,
}

/// Reads `text`, the content of `file`, as a `T`.
///
/// The schema of `T` is the one list of keys, types and ranges; [`check`] says which of its keywords count.
///
/// # Errors
/// Everything that is wrong: the syntax first, because nothing else can be said of a text that is not TOML.
pub fn check_toml<T: DeserializeOwned + JsonSchema>(text: &str, file: &Path) -> Result<Checked<T>, Problems> {
    typed(parse(text, file)?)
}

/// A tree of settings as they were written.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// A JSON object.
    pub value: Value,
    /// Where each value stands.
    pub origins: Origins,
    /// What cannot be a setting at all; `null` stands in its place.
    pub problems: Vec<Problem>,
}

/// Makes a `T` of a tree, if nothing is wrong with it.
pub(super) fn typed<T>(document: Document) -> Result<Checked<T>, Problems>
where
    T: DeserializeOwned + JsonSchema,
{
    let Document { value, origins, mut problems } = document;
    problems.extend(check(schema_for!(T).as_value(), &value, &origins));
    if !problems.is_empty() {
        problems.sort_by_key(Problem::position);
        return Err(Problems(problems));
    }
    match serde_path_to_error::deserialize(value) {
        Ok(value) => Ok(Checked { value, origins }),
        // A type may be stricter than its schema; then its own words are the message.
        Err(error) => {
            let key = error.path().to_string();
            let key = if key == "." { "" } else { &key };
            Err(origins.problem(key, error.inner().to_string()).into())
        }
    }
}

/// Reads a text as TOML.
///
/// # Errors
/// What the syntax lacks.
pub(super) fn parse(text: &str, file: &Path) -> Result<Document, Problems> {
    let lines = Lines::of(text, file);
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let mut reader = Reader { lines, origins: Origins::default(), problems: vec![] };
        reader.origins.insert("", reader.lines.origin(0));
        let value = reader.table(root.into_inner(), "");
        return Ok(Document { value, origins: reader.origins, problems: reader.problems });
    }
    // Of a text that is no TOML the first errors are enough: the others mostly follow from them.
    let mut problems: Vec<_> = errors.iter().take(MOST_TOLD).map(|error| lines.problem(error)).collect();
    problems.dedup();
    Err(Problems(problems))
}

/// Turns TOML's values into JSON's, which lack dates and endless numbers: no setting of ours is one.
struct Reader<'t> {
    lines: Lines<'t>,
    origins: Origins,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn table(&mut self, table: DeTable<'_>, path: &str) -> Value {
        let mut entries = Map::new();
        for (name, value) in table {
            let path = entry(path, name.get_ref());
            self.origins.insert(&path, self.lines.origin(name.span().start));
            let value = self.value(value.into_inner(), &path);
            entries.insert(name.into_inner().into_owned(), value);
        }
        Value::Object(entries)
    }

    fn value(&mut self, value: DeValue<'_>, path: &str) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Boolean(is) => Value::Bool(is),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                self.number(parsed.ok().map(Into::into), &number.to_string(), path)
            }
            DeValue::Float(number) => {
                let parsed = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
                self.number(parsed, number.as_str(), path)
            }
            DeValue::Datetime(date) => {
                let message = format!("dates are not used here; write it as text: \"{date}\"");
                self.problems.push(self.origins.problem(path, message));
                Value::Null
            }
            DeValue::Array(items) => {
                let items = items.into_iter().enumerate();
                items.map(|(index, value)| self.item(value, &item(path, index))).collect()
            }
            DeValue::Table(table) => self.table(table, path),
        }
    }

    fn item(&mut self, value: Spanned<DeValue<'_>>, path: &str) -> Value {
        self.origins.insert(path, self.lines.origin(value.span().start));
        self.value(value.into_inner(), path)
    }

    fn number(&mut self, number: Option<serde_json::Number>, text: &str, path: &str) -> Value {
        number.map_or_else(
            || {
                let message = format!("wanted a number that fits into 64 bits, found {text}");
                self.problems.push(self.origins.problem(path, message));
                Value::Null
            },
            Value::Number,
        )
    }
}

/// Finds lines and columns.
struct Lines<'t> {
    text: &'t str,
    file: Arc<Path>,
    /// Where each line begins, in bytes.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str, file: &Path) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { text, file: file.into(), starts: starts.collect() }
    }

    /// The line's number from 0, its text up to `at`, and its text from there on.
    fn split(&self, at: usize) -> (usize, &'t str, &'t str) {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at) - 1;
        let rest = &self.text[at..];
        let rest = rest.split_once('\n').map_or(rest, |(rest, _)| rest).trim_end_matches('\r');
        (line, &self.text[self.starts[line]..at], rest)
    }

    fn origin(&self, at: usize) -> Origin {
        let (line, before, _) = self.split(at);
        Origin::File { file: self.file.clone(), line: line + 1, column: before.chars().count() + 1 }
    }

    fn problem(&self, error: &toml::de::Error) -> Problem {
        let span = error.span().unwrap_or_default();
        Problem {
            origin: self.origin(span.start),
            key: String::new(),
            message: format!("not TOML: {}", error.message().replace('\n', "; ")),
            excerpt: Some(self.excerpt(&span)),
        }
    }

    /// The line at a span's start, and marks under what of the span it holds. Of a long line it shows what is near, and
    /// nothing that a terminal obeys.
    fn excerpt(&self, span: &Range<usize>) -> String {
        const NEAR: usize = 60;
        let (line, before, rest) = self.split(span.start);
        let marked = self.text.get(span.clone()).map_or(0, |marked| marked.chars().count());
        let before: Vec<char> = before.chars().collect();
        let before: String = before[before.len().saturating_sub(NEAR)..].iter().collect();
        let rest: String = rest.chars().take(NEAR).collect();
        let marks = "^".repeat(marked.clamp(1, rest.chars().count().max(1)));
        let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let shown = format!("{before}{rest}").replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
        format!("{:>4} | {shown}\n     | {indent}{marks}", line + 1)
    }
}
