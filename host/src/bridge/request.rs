//! The names of files in the session's folder, and what a request may be.

use super::strict::Strict;
use crate::upstream::JsonObject;
use serde_json::Value;

/// The longest id.
const ID_MAX: usize = 64;
/// Up to this length, what was meant as an id is told that it is none.
const STEM_MAX: usize = 128;
/// The longest name of a tool, in bytes.
const TOOL_MAX: usize = 256;
/// The largest request, in bytes.
pub const REQUEST_MAX: u64 = 1 << 20;
/// The tool that ends the session.
pub const CLOSE: &str = "close";

/// What names a request, and the response to it: hexadecimal digits and hyphens, and so no part of a path. It is none of
/// ours to guess: whoever asks makes one up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(String);

/// A file that has a meaning here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Somebody asks something.
    Request(Id),
    /// What was accepted, until its answer is there.
    Accepted(Id),
    /// An answer.
    Response(Id),
}

impl Entry {
    /// What a name means; `None`: nothing, so that the file is left alone.
    pub fn of(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        let (kind, id) = stem.split_once('-')?;
        let id = Id::parse(id)?;
        match kind {
            "request" => Some(Self::Request(id)),
            "accepted" => Some(Self::Accepted(id)),
            "response" => Some(Self::Response(id)),
            _ => None,
        }
    }
}

impl Id {
    /// An id, or what was meant as one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        ((1..=STEM_MAX).contains(&text.len()) && text.bytes().all(is_one)).then(|| Self(text.to_owned()))
    }

    /// Whether it may be used.
    pub fn is_valid(&self) -> bool {
        self.0.len() <= ID_MAX && !self.0.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    /// The name of the request.
    pub fn request(&self) -> String {
        format!("request-{}.json", self.0)
    }

    /// The name of the mark that it was accepted.
    pub fn accepted(&self) -> String {
        format!("accepted-{}.json", self.0)
    }

    /// The name of the response.
    pub fn response(&self) -> String {
        format!("response-{}.json", self.0)
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The tool to call.
    pub tool: String,
    /// What it is given.
    pub arguments: Option<JsonObject>,
}

impl Request {
    /// Reads what a request's file holds; `None`: no request, for whatever reason, none of which is told. Members that are not
    /// known are passed over: they can change nothing.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let Strict(Value::Object(mut members)) =
            serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).ok()?
        else {
            return None;
        };
        let Some(Value::String(tool)) = members.remove("tool") else { return None };
        let arguments = match members.remove("arguments") {
            None | Some(Value::Null) => None,
            Some(Value::Object(arguments)) => Some(arguments),
            Some(_) => return None,
        };
        let is_name = (1..=TOOL_MAX).contains(&tool.len()) && !tool.chars().any(char::is_control);
        is_name.then_some(Self { tool, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_mean_something_only_where_they_are_exactly_so() {
        let id = Id::parse("0a-f").unwrap();
        assert_eq!(Entry::of("request-0a-f.json"), Some(Entry::Request(id.clone())));
        assert_eq!(Entry::of("accepted-0a-f.json"), Some(Entry::Accepted(id.clone())));
        assert_eq!(Entry::of("response-0a-f.json"), Some(Entry::Response(id.clone())));
        assert_eq!(
            [id.request(), id.response()].map(|name| Entry::of(&name)),
            [Some(Entry::Request(id.clone())), Some(Entry::Response(id))]
        );
        for other in [
            "request-.json",
            "request-g.json",
            "request-a.json.tmp",
            "request-a.tmp.json",
            "request-../a.json",
            "Request-a.json",
            "request_a.json",
            " request-a.json",
            "status.json",
            ".request-a.json",
        ] {
            assert_eq!(Entry::of(other), None, "{other}");
        }
    }

    #[test]
    fn an_id_is_short_and_small() {
        let valid = |text: &str| Id::parse(text).is_some_and(|id| id.is_valid());
        assert!(valid("a") && valid(&"a".repeat(64)) && valid("7b0a3c1e-1111-4222-8333-444455556666"));
        for bad in ["A", &"a".repeat(65)] {
            assert!(Id::parse(bad).is_some() && !valid(bad), "{bad} is told that it is none");
        }
        assert!(Id::parse(&"a".repeat(129)).is_none());
    }

    #[test]
    fn a_request_has_a_tool_and_may_have_arguments() {
        let request = |tool: &str, arguments: Value| {
            Some(Request { tool: tool.to_owned(), arguments: arguments.as_object().cloned() })
        };
        for (text, wanted) in [
            (r#"{"tool":"a","arguments":{"b":[1]}}"#, request("a", json!({"b": [1]}))),
            ("\u{feff}{\"tool\":\"a\"}\r\n", request("a", Value::Null)),
            (r#"{"tool":"a","arguments":null,"allow":["b"]}"#, request("a", Value::Null)),
            ("\u{feff}\u{feff}{\"tool\":\"a\"}", None),
            (r#"{"tool":""}"#, None),
            (r#"{"tool":"a\n"}"#, None),
            (r#"{"tool":1}"#, None),
            (r#"{"tool":"a","arguments":[]}"#, None),
            (r#"{"tool":"a","tool":"b"}"#, None),
            (r#"{"tool":"a","arguments":{"x":1,"x":2}}"#, None),
            (r#"{"tool":"a"} {"tool":"a"}"#, None),
            (r#"{"tool":"a""#, None),
            (r#"["tool"]"#, None),
            ("", None),
        ] {
            assert_eq!(Request::parse(text.as_bytes()), wanted, "{text}");
        }
        assert_eq!(Request::parse(b"{\"tool\":\"\xff\"}"), None);
        let deep = format!(r#"{{"tool":"a","arguments":{{"x":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(Request::parse(deep.as_bytes()), None);
    }
}
