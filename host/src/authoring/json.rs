//! JSON that people write: what is wrong with it is said with the place, and with the word that was probably meant.

use crate::config::nearest;
use crate::report::clean;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::HashSet;
use std::fmt;

/// Reads `bytes` as JSON of this type, in which no key stands twice, and nothing after it.
///
/// # Errors
/// One line that says where it is wrong, and what was wanted there.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let Unique = read(bytes)?;
    read(bytes)
}

/// The same, of bytes that have been parsed as something else before.
///
/// # Errors
/// As [`parse`].
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        explain(&path, error.inner())
    })?;
    json.end().map_err(|error| explain(".", &error))?;
    Ok(value)
}

/// Any JSON in which no key stands twice. Most readers take the last of them, and people see the first.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self, M::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(M::Error::custom(format!("the key `{key}` stands there twice")));
            }
            keys.insert(key);
            map.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Self, S::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
}

/// serde names every key that there is, and not the one that was probably meant.
fn explain(path: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let said = match quoted.split_first() {
        Some((unknown, known)) if text.starts_with("unknown ") => {
            let what = if text.starts_with("unknown field") { "key" } else { "word" };
            match nearest(unknown, known.iter().copied()) {
                Some(near) => format!("unknown {what} `{unknown}`; did you mean `{near}`?"),
                None => format!("unknown {what} `{unknown}`; known are {}", known.join(", ")),
            }
        }
        _ => text.to_owned(),
    };
    let path = if matches!(path, "." | "?") { String::new() } else { format!("{}: ", clean(path)) };
    format!("line {}, column {}: {path}{}", error.line(), error.column(), clean(&said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(rename = "inner")]
        _inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(rename = "cpu_percent")]
        _cpu_percent: f64,
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_the_nearest_word() {
        for (text, wanted) in [
            (
                "{\"inner\":[\n{\"cpu_percnt\":1}]}",
                "line 2, column 13: inner[0].cpu_percnt: unknown key `cpu_percnt`; did you mean `cpu_percent`?",
            ),
            ("{\"other\":1}", "line 1, column 8: other: unknown key `other`; known are inner"),
            (
                "{\"inner\":[{\"cpu_percent\":\"much\"}]}",
                "inner[0].cpu_percent: invalid type: string \"much\", expected f64",
            ),
            ("{\"inner\":[]} 1", "trailing characters"),
            ("", "EOF while parsing"),
            ("{\"\\u001b[2J\":1}", "unknown key ``"),
        ] {
            let error = parse::<Outer>(text.as_bytes()).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
            assert!(!error.contains('\u{1b}'));
        }
        for (text, wanted) in [
            (r#"{"a":1,"a":1}"#, "line 1, column 10: the key `a` stands there twice"),
            ("{\"a\":[{},{\"b\":1,\n\"\\u0062\":2}]}", "line 2, column 8: a[1]: the key `b` stands there twice"),
        ] {
            assert_eq!(parse::<serde_json::Value>(text.as_bytes()).unwrap_err(), wanted);
        }
        let everything = r#"{"a":[null,true,-1,1,1.5e3,"x",{"a":{}}],"b":{"a":[]}}"#;
        assert!(parse::<serde_json::Value>(everything.as_bytes()).is_ok());
        let deep = "[".repeat(100_000);
        assert!(parse::<serde_json::Value>(deep.as_bytes()).unwrap_err().contains("recursion limit"));
        assert!(parse::<Outer>(b"{\"inner\":[{\"cpu_percent\":1}]}").is_ok());
    }
}
