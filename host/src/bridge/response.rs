//! What a request is answered, and the one table of what can go wrong. Of the server's own words nothing is passed on but what
//! a tool returns when it has done its work.

use crate::config::ErrorPattern as Pattern;
use crate::upstream::{CallToolResult, Failure, Outcome, UpstreamError};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// The largest response, in bytes.
pub const RESPONSE_MAX: usize = 8 << 20;
/// So much of what a tool says of its failure is searched, in bytes.
const SEARCHED_MAX: usize = 64 << 10;

/// What went wrong, as one of few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Category(Cow<'static, str>);

/// The categories that there are without any configuration.
impl Category {
    /// There is an answer to a request of this id already.
    pub const DUPLICATE_REQUEST_ID: Self = Self(Cow::Borrowed("duplicate_request_id"));
    /// The file is no request.
    pub const INVALID_REQUEST: Self = Self(Cow::Borrowed("invalid_request"));
    /// The server has no such tool.
    pub const UNKNOWN_TOOL: Self = Self(Cow::Borrowed("unknown_tool"));
    /// The tool neither says that it changes nothing, nor is it allowed by name.
    pub const NOT_ALLOWED: Self = Self(Cow::Borrowed("not_allowed"));
    /// No answer came in time: what the call has done has to be looked up.
    pub const TIMEOUT_RECHECK_STATE: Self = Self(Cow::Borrowed("timeout_recheck_state"));
    /// There is no connection, or it ended before the answer.
    pub const TRANSPORT_LOST: Self = Self(Cow::Borrowed("transport_lost"));
    /// The server refused, or answered with what is of no use.
    pub const REQUEST_FAILED: Self = Self(Cow::Borrowed("request_failed"));
    /// The session ended between accepting the request and its answer.
    pub const UNKNOWN_OUTCOME: Self = Self(Cow::Borrowed("unknown_outcome"));
    /// The tool says that it has failed, and no pattern of the configuration fits what it says.
    pub const TOOL_FAILED: Self = Self(Cow::Borrowed("tool_failed"));
    /// The tool has done its work, and returned more than is passed on.
    pub const RESULT_TOO_LARGE: Self = Self(Cow::Borrowed("result_too_large"));
}

/// Whether the tool has done what was asked, where the answer is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// It has not been called.
    No,
    /// It has answered.
    Yes,
    /// It may have.
    Unknown,
}

/// An answer. The first three members are all that older programs know of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Whether it tells of an error.
    pub is_error: bool,
    /// What the tool has returned, where that is structured.
    pub result: Value,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Category>,
    /// Where it is an error: whether the tool has been at work all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// The texts that the tool has returned, where nothing of it is structured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Vec<String>>,
    /// How many parts of what it returned are neither, and are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// `duplicate_request_id`: the answer that was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Box<Response>>,
}

impl Response {
    /// The answer that tells of an error.
    pub fn error(error: Category, done: Done) -> Self {
        let error = Some(error);
        Self { is_error: true, result: Value::Null, error, done: Some(done), text: None, left_out: None, first: None }
    }

    /// The answer that tells of nothing but success.
    pub fn success() -> Self {
        Self { is_error: false, error: None, done: None, ..Self::error(Category::TOOL_FAILED, Done::Yes) }
    }

    /// The answer to a second request of one id. The first answer stays in it: nobody takes it for the answer to another
    /// request unknowingly, and nobody has lost it.
    pub fn duplicate(first: Option<Self>) -> Self {
        let first = first.map(|first| first.first.unwrap_or_else(|| Self { first: None, ..first }.into()));
        Self { first, ..Self::error(Category::DUPLICATE_REQUEST_ID, Done::No) }
    }

    /// The answer that a call has led to.
    pub fn of(called: Result<CallToolResult, UpstreamError>, patterns: &Patterns) -> Self {
        match called {
            Ok(result) if result.is_error == Some(true) => Self::error(patterns.category(&result), Done::Yes),
            Ok(result) => Self::returned(result),
            Err(error) => {
                let (category, done) = judged(&error.failure);
                Self::error(category, done)
            }
        }
    }

    fn returned(result: CallToolResult) -> Self {
        if let Some(structured) = result.structured_content {
            return Self { result: structured, ..Self::success() };
        }
        let all = result.content.len();
        let text: Vec<_> = texts(&result).map(str::to_owned).collect();
        let left_out = Some(all - text.len()).filter(|left_out| *left_out > 0);
        Self { text: Some(text), left_out, ..Self::success() }
    }

    /// All of it as it stands in a file; `None`: it is too large.
    pub fn whole(&self) -> Option<Vec<u8>> {
        // All of it is text, numbers and lists: none of that is refused.
        serde_json::to_vec(self).ok().filter(|bytes| bytes.len() <= RESPONSE_MAX)
    }

    /// What stands in its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let too_large = || Self::error(Category::RESULT_TOO_LARGE, Done::Yes).whole().unwrap_or_default();
        self.whole().unwrap_or_else(too_large)
    }
}

/// What is known when no answer came: by which of our own reasons, and whether the tool may have been at work.
pub fn judged(failure: &Failure) -> (Category, Done) {
    let done = match failure.outcome() {
        Outcome::NotDone => Done::No,
        Outcome::Unknown => Done::Unknown,
    };
    let category = match failure {
        Failure::NotAllowed { .. } => Category::NOT_ALLOWED,
        Failure::Timeout { .. } => Category::TIMEOUT_RECHECK_STATE,
        Failure::Connect(_) | Failure::Backoff { .. } | Failure::Lost(_) | Failure::Closed => Category::TRANSPORT_LOST,
        Failure::QueueFull { .. } | Failure::Refused { .. } | Failure::Unsupported(_) => Category::REQUEST_FAILED,
    };
    (category, done)
}

fn texts(result: &CallToolResult) -> impl Iterator<Item = &str> {
    result.content.iter().filter_map(|content| content.as_text().map(|text| text.text.as_str()))
}

/// What the configuration makes of what tools say of their failures.
#[derive(Debug, Default)]
pub struct Patterns(Vec<(Regex, Category)>);

impl Patterns {
    /// The patterns that are configured so.
    ///
    /// # Errors
    /// When one is none, which `config check` says too.
    pub fn new(configured: &[Pattern]) -> Result<Self, regex::Error> {
        let pattern = |one: &Pattern| Ok((Regex::new(&one.pattern)?, Category(one.category.clone().into())));
        Ok(Self(configured.iter().map(pattern).collect::<Result<_, _>>()?))
    }

    /// The category of a tool's failure: that of the first pattern that fits.
    fn category(&self, result: &CallToolResult) -> Category {
        let mut said = String::new();
        for text in texts(result) {
            let room = SEARCHED_MAX.saturating_sub(said.len());
            said.push_str(&text[..text.floor_char_boundary(room)]);
            said.push('\n');
        }
        let found = self.0.iter().find(|(pattern, _)| pattern.is_match(&said));
        found.map_or(Category::TOOL_FAILED, |(_, category)| category.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    fn response(value: Value) -> Value {
        let configured = [("busy", "(?i)rate limit"), ("late", "limit")];
        let configured =
            configured.map(|(category, pattern)| Pattern { category: category.into(), pattern: pattern.into() });
        let patterns = Patterns::new(&configured).unwrap();
        serde_json::from_slice(&Response::of(Ok(result(value)), &patterns).to_bytes()).unwrap()
    }

    #[test]
    fn what_is_structured_is_the_result_else_the_texts_are_told_apart() {
        let text = json!([{"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "image/png"}]);
        assert_eq!(
            response(json!({"content": text, "structuredContent": {"a": 1}})),
            json!({"is_error": false, "result": {"a": 1}})
        );
        assert_eq!(
            response(json!({"content": text})),
            json!({"is_error": false, "result": null, "text": ["a"], "left_out": 1})
        );
    }

    #[test]
    fn of_a_failure_the_category_is_told_and_nothing_else() {
        let failed = |text: &str| {
            response(
                json!({"content": [{"type": "text", "text": text}], "isError": true, "structuredContent": {"a": text}}),
            )
        };
        let told = |category: &str| json!({"is_error": true, "result": null, "error": category, "done": "yes"});
        assert_eq!(failed("RATE LIMIT of s3cret"), told("busy"));
        assert_eq!(failed("the limit"), told("late"));
        assert_eq!(failed("else"), told("tool_failed"));
        assert_eq!(failed(&format!("{}limit", "ä".repeat(40 << 10))), told("tool_failed"), "so far nobody looks");
    }

    #[test]
    fn each_reason_has_a_category_and_says_whether_it_may_be_done() {
        let after = std::time::Duration::from_secs(1);
        for (failure, category, done) in [
            (Failure::Timeout { after, sent: true }, "timeout_recheck_state", Done::Unknown),
            (Failure::Timeout { after, sent: false }, "timeout_recheck_state", Done::No),
            (Failure::Lost("s3cret".into()), "transport_lost", Done::Unknown),
            (Failure::Connect("s3cret".into()), "transport_lost", Done::No),
            (Failure::Refused { code: -1, message: "s3cret".into() }, "request_failed", Done::No),
            (Failure::Unsupported("no"), "request_failed", Done::Unknown),
        ] {
            assert_eq!(judged(&failure), (Category(category.into()), done), "{failure:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_not_passed_on_and_said_to_be_done() {
        let large = response(json!({"content": [], "structuredContent": {"a": "x".repeat(RESPONSE_MAX)}}));
        assert_eq!((&large["error"], &large["done"]), (&json!("result_too_large"), &json!("yes")));
    }

    #[test]
    fn the_first_answer_stays_in_that_to_each_later_duplicate() {
        let first = Response { result: json!(1), ..Response::success() };
        let second = Response::duplicate(Some(first.clone()));
        assert_eq!(second.first.as_deref(), Some(&first));
        assert_eq!(Response::duplicate(Some(second.clone())), second);
        assert_eq!(Response::duplicate(None).first, None);
    }
}
