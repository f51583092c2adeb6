//! Changes to a JSON text that leave all the rest of it as it is, to the byte: its order, its spaces, its numbers.

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use std::collections::HashSet;
use std::ops::Range;

/// A value's place in a text.
#[derive(Debug)]
pub struct Place {
    /// From its first byte to the one after its last.
    pub at: Range<usize>,
    /// What is in it.
    pub inside: Inside,
}

/// What is in a value.
#[derive(Debug)]
pub enum Inside {
    /// Members, each with its key and the place where the key begins.
    Object(Vec<(usize, String, Place)>),
    /// Items.
    Array(Vec<Place>),
    /// Nothing that can be changed here.
    Scalar,
}

impl Place {
    /// Finds the places of a text.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn of(text: &str) -> serde_json::Result<Self> {
        // From here on the text is known to be right.
        serde_json::from_str::<Value>(text)?;
        Ok(Scanner { text, at: 0 }.value())
    }

    /// The member of this name; of several the last, which counts for those who read it.
    pub fn member(&self, key: &str) -> Option<&Self> {
        let Inside::Object(members) = &self.inside else { return None };
        members.iter().rev().find(|(_, name, _)| name == key).map(|(_, _, value)| value)
    }

    /// A key that stands twice in one object, if any does: which one counts is for each reader to say.
    pub fn repeated(&self) -> Option<&str> {
        match &self.inside {
            Inside::Object(members) => {
                let mut keys = HashSet::new();
                let twice = members.iter().find(|(_, key, _)| !keys.insert(key)).map(|(_, key, _)| key.as_str());
                twice.or_else(|| members.iter().find_map(|(_, _, value)| value.repeated()))
            }
            Inside::Array(items) => items.iter().find_map(Self::repeated),
            Inside::Scalar => None,
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.elements().is_empty()
    }

    /// The items of a list.
    pub fn items(&self) -> Option<&[Self]> {
        let Inside::Array(items) = &self.inside else { return None };
        Some(items)
    }

    /// Where the elements are, keys included.
    fn elements(&self) -> Vec<Range<usize>> {
        match &self.inside {
            Inside::Object(members) => members.iter().map(|(start, _, value)| *start..value.at.end).collect(),
            Inside::Array(items) => items.iter().map(|item| item.at.clone()).collect(),
            Inside::Scalar => Vec::new(),
        }
    }
}

/// Adds an element at the end of the object or list at `to`: a member where there is a `key`. It is laid out as the text.
pub fn append(text: &str, to: &Place, key: Option<&str>, value: &Value) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let elements = to.elements();
    let outer = line_indent(text, to.at.start);
    let has_lines =
        |first: Option<&Range<usize>>, start: usize| first.map(|first| text[start..first.start].contains('\n'));
    let root = Place::of(text).ok();
    let root_has_lines = || root.as_ref().and_then(|root| has_lines(root.elements().first(), root.at.start));
    let lines = has_lines(elements.first(), to.at.start).or_else(root_has_lines).unwrap_or(true);
    let unit = root.and_then(|root| Some(line_indent(text, root.elements().first()?.start).to_owned()));
    let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or_else(|| "  ".to_owned());
    let indent = match elements.first() {
        Some(first) if lines => line_indent(text, first.start).to_owned(),
        _ => format!("{outer}{unit}"),
    };
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let value =
        if lines { pretty(value, &unit).replace('\n', &format!("{newline}{indent}")) } else { value.to_string() };
    let (at, new) = match elements.last() {
        Some(last) if lines => (last.end, format!(",{newline}{indent}{key}{value}")),
        Some(last) => (last.end, format!(", {key}{value}")),
        None if lines => (to.at.start + 1, format!("{newline}{indent}{key}{value}{newline}{outer}")),
        None => (to.at.start + 1, format!("{key}{value}")),
    };
    [&text[..at], &new, &text[at..]].concat()
}

/// Takes an element away again: what [`append`] added is gone without a trace.
pub fn remove(text: &str, from: &Place, index: usize) -> String {
    let elements = from.elements();
    let Some(element) = elements.get(index) else { return text.to_owned() };
    let gone = match (index.checked_sub(1).and_then(|before| elements.get(before)), elements.get(index + 1)) {
        (Some(before), _) => before.end..element.end,
        (None, Some(after)) => element.start..after.start,
        (None, None) => {
            let outer = line_indent(text, from.at.start);
            let rest = &text[element.end..from.at.end];
            let own = ["\r\n", "\n"].map(|newline| format!("{newline}{outer}"));
            let on_its_own_line = text[from.at.start..element.start].contains('\n');
            let own = own.iter().find(|own| on_its_own_line && rest.starts_with(own.as_str())).map_or(0, String::len);
            from.at.start + 1..element.end + own
        }
    };
    [&text[..gone.start], &text[gone.end..]].concat()
}

/// The blanks at the beginning of the line.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn pretty(value: &Value, unit: &str) -> String {
    let mut bytes = Vec::new();
    let layout = PrettyFormatter::with_indent(unit.as_bytes());
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, layout));
    written.ok().and_then(|()| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_string())
}

/// Goes through a text that is known to be JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn value(&mut self) -> Place {
        self.blanks();
        let start = self.at;
        let inside = match self.byte() {
            Some(b'{') => Inside::Object(self.elements(|scanner| {
                scanner.blanks();
                let start = scanner.at;
                let key = serde_json::from_str(scanner.scalar()).unwrap_or_default();
                scanner.blanks();
                scanner.at += 1;
                (start, key, scanner.value())
            })),
            Some(b'[') => Inside::Array(self.elements(Self::value)),
            _ => {
                self.scalar();
                Inside::Scalar
            }
        };
        Place { at: start..self.at, inside }
    }

    /// What stands between brackets and commas.
    fn elements<T>(&mut self, element: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut all = Vec::new();
        self.at += 1;
        self.blanks();
        if !matches!(self.byte(), Some(b'}' | b']')) {
            loop {
                all.push(element(self));
                self.blanks();
                if self.byte() != Some(b',') {
                    break;
                }
                self.at += 1;
            }
        }
        self.at += 1;
        all
    }

    /// A string, number or word.
    fn scalar(&mut self) -> &str {
        let start = self.at;
        if self.byte() == Some(b'"') {
            self.at += 1;
            while let Some(byte) = self.byte().filter(|byte| *byte != b'"') {
                self.at += if byte == b'\\' { 2 } else { 1 };
            }
            self.at += 1;
        } else {
            while self.byte().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                self.at += 1;
            }
        }
        &self.text[start..self.at]
    }

    fn blanks(&mut self) {
        while self.byte().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn with_member(text: &str) -> String {
        append(text, &Place::of(text).unwrap(), Some("new"), &json!([{"a": 1}]))
    }

    #[test]
    fn a_member_is_laid_out_as_the_text_is() {
        for (text, with) in [
            ("{}\n", "{\n  \"new\": [\n    {\n      \"a\": 1\n    }\n  ]\n}\n"),
            ("{\"b\":2}", "{\"b\":2, \"new\": [{\"a\":1}]}"),
            ("{\n\t\"b\": 2\n}\n", "{\n\t\"b\": 2,\n\t\"new\": [\n\t\t{\n\t\t\t\"a\": 1\n\t\t}\n\t]\n}\n"),
            (
                "{\r\n    \"b\": 2\r\n}",
                "{\r\n    \"b\": 2,\r\n    \"new\": [\r\n        {\r\n            \"a\": 1\r\n        }\r\n    ]\r\n}",
            ),
        ] {
            assert_eq!(with_member(text), with);
        }
    }

    #[test]
    fn what_was_added_is_gone_without_a_trace() {
        let texts = [
            "{}",
            "{ }",
            "{\n}",
            "{\n\n  }\n",
            "  {\"a\":1}  ",
            "{\"a\": [1, 2], \"b\": {}}",
            "{\n  \"a\": \"}\\\"]\"\n}\n",
            "{\"a\":\n1\n,\"b\":2\n}",
            "\n{ \"é\" : 1.50 , \"b\" : null }\n",
            "{\r\n\t\"a\": {\r\n\t}\r\n}\r\n",
        ];
        for text in texts {
            let with = with_member(text);
            let place = Place::of(&with).unwrap();
            let Inside::Object(members) = &place.inside else { panic!("an object") };
            assert_eq!(members.last().unwrap().1, "new");
            assert_eq!(remove(&with, &place, members.len() - 1), text, "{with}");
        }
    }

    #[test]
    fn any_element_can_be_taken_away() {
        let text = "{\"a\": [1, {\"x\": []}, \"]\"] , \"b\": 2}";
        let place = Place::of(text).unwrap();
        let list = place.member("a").unwrap();
        for (index, left) in
            [(0, "[{\"x\": []}, \"]\"]"), (1, "[1, \"]\"]"), (2, "[1, {\"x\": []}]"), (3, "[1, {\"x\": []}, \"]\"]")]
        {
            assert_eq!(remove(text, list, index), format!("{{\"a\": {left} , \"b\": 2}}"));
        }
        assert_eq!(remove(text, &place, 0), "{\"b\": 2}");
    }

    #[test]
    fn what_is_no_json_has_no_places() {
        for text in ["", "{", "{} x", "{// why\n}", "{'a': 1}", "{\"a\": 1,}"] {
            assert!(Place::of(text).is_err(), "{text}");
        }
    }

    /// A JSON value with blanks anywhere.
    fn json_text() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            Just("1.50".to_owned()),
            Just("null".to_owned()),
            "[a-z\u{e9}]{0,4}".prop_map(|s| json!(s).to_string()),
            Just("\"\\\\\\\"}]\"".to_owned())
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            let blank = || prop_oneof![Just(""), Just(" "), Just("\n"), Just("\n  ")];
            prop_oneof![
                (prop::collection::vec(inner.clone(), 0..4), blank())
                    .prop_map(|(items, b)| format!("[{b}{}{b}]", items.join(&format!("{b},{b}")))),
                (prop::collection::vec(("[a-d]", inner), 0..4), blank()).prop_map(|(members, b)| {
                    let members: Vec<_> =
                        members.iter().map(|(key, value)| format!("\"{key}\"{b}:{b}{value}")).collect();
                    format!("{{{b}{}{b}}}", members.join(&format!("{b},{b}")))
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn adding_changes_nothing_else_and_can_be_undone(text in json_text()) {
            let place = Place::of(&text).unwrap();
            let (key, count) = match &place.inside {
                Inside::Object(members) => (Some("new"), members.len()),
                Inside::Array(items) => (None, items.len()),
                Inside::Scalar => return Ok(()),
            };
            let with = append(&text, &place, key, &json!({"x": [1]}));
            let mut expected: Value = serde_json::from_str(&text).unwrap();
            match &mut expected {
                Value::Object(members) => { members.insert("new".into(), json!({"x": [1]})); }
                Value::Array(items) => items.push(json!({"x": [1]})),
                _ => unreachable!(),
            }
            prop_assert_eq!(serde_json::from_str::<Value>(&with).unwrap(), expected);
            prop_assert_eq!(remove(&with, &Place::of(&with).unwrap(), count), text);
        }
    }
}
