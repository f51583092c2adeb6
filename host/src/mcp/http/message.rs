//! What must be known of a message before rmcp reads it: what it wants, and whether it is a message at all.

use super::super::tools::Tool;
use crate::auth::Scope;
use crate::text::clean;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::{Value, json};
use std::borrow::Cow;

/// What a message wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// A session of the older era.
    Initialize,
    /// Something that is done, and who may have it done.
    Call(Option<Scope>),
    /// A call that may wait for an hour.
    Wait,
    /// A stream of notifications.
    Listen,
    /// Anything else: it is small and needs no permission.
    Other,
}

/// Why a body is no message, as JSON-RPC says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoMessage {
    code: i32,
    message: String,
}

/// The parts of a message that say what it wants. A member that stands there twice is refused, for others might take the other one.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    name: Option<Value>,
}

impl Wish {
    /// What a body wants.
    ///
    /// # Errors
    /// When it is no message.
    pub fn of(body: &[u8]) -> Result<Self, NoMessage> {
        if body.trim_ascii_start().starts_with(b"[") {
            return Err(NoMessage {
                code: -32600,
                message: "batches are not served; send each message by itself".into(),
            });
        }
        let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
            let code = if error.classify() == Category::Data { -32600 } else { -32700 };
            NoMessage { code, message: format!("this is no JSON-RPC message: {error}") }
        })?;
        let name = envelope.params.and_then(|params| params.name);
        Ok(match envelope.method.as_deref() {
            Some("initialize") => Self::Initialize,
            Some("tools/call") => {
                let tool = name.as_ref().and_then(Value::as_str).and_then(Tool::named);
                if tool == Some(Tool::WaitForAttention) { Self::Wait } else { Self::Call(tool.map(Tool::scope)) }
            }
            Some("resources/list" | "resources/read" | "resources/subscribe") => Self::Call(Some(Scope::StatusRead)),
            Some("subscriptions/listen") => Self::Listen,
            _ => Self::Other,
        })
    }

    /// Whether something of it is kept for long.
    pub fn lasts(&self) -> bool {
        matches!(self, Self::Initialize | Self::Wait | Self::Listen)
    }

    /// What whoever sends it must be permitted.
    pub fn scope(&self) -> Option<Scope> {
        match self {
            Self::Call(scope) => *scope,
            Self::Wait => Some(Tool::WaitForAttention.scope()),
            Self::Listen => Some(Scope::StatusRead),
            Self::Initialize | Self::Other => None,
        }
    }
}

impl NoMessage {
    /// JSON that is no message of the protocol.
    pub fn unread() -> Self {
        Self { code: -32600, message: "this is no JSON-RPC message, or is nested too deeply".into() }
    }

    /// A request that is refused for this reason, which may repeat what its sender has said.
    pub fn refused(why: &str) -> Self {
        Self { code: -32600, message: clean(why) }
    }

    /// The answer to it.
    pub fn answer(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": self.code, "message": self.message } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_it_wants() {
        let wish = |body: &str| Wish::of(body.as_bytes()).unwrap();
        assert_eq!(wish(r#"{"method":"initialize","params":{}}"#), Wish::Initialize);
        let call = |name: &str| {
            wish(&format!(r#"{{"method":"tools/call","params":{{"name":{name},"arguments":{{"name":7}}}}}}"#))
        };
        assert_eq!(call(r#""register_agent""#), Wish::Call(Some(Scope::RosterWrite)));
        assert_eq!(call(r#""wait_for_attention""#), Wish::Wait);
        assert_eq!(Wish::Wait.scope(), Some(Scope::StatusRead));
        assert_eq!(call(r#""list\u005fclients""#), Wish::Call(Some(Scope::ClientsRead)), "however it is written");
        assert_eq!((call(r#""none""#), call("7")), (Wish::Call(None), Wish::Call(None)));
        assert_eq!(wish(r#"{"method":"subscriptions/listen"}"#).scope(), Some(Scope::StatusRead));
        assert_eq!(wish(r#"{"id":1,"result":{}}"#), Wish::Other);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let code = |body: &str| Wish::of(body.as_bytes()).unwrap_err().code;
        assert_eq!(
            [code(""), code("{"), code("\u{feff}{}"), code(&"[".repeat(1000))],
            [-32700, -32700, -32700, -32600]
        );
        assert_eq!([code(" []"), code("7"), code(r#"{"method":7}"#)], [-32600; 3]);
        let twice = r#"{"method":"ping","method":"tools/call","params":{"name":"list_clients"}}"#;
        let named_twice = r#"{"method":"tools/call","params":{"name":"list_sessions","name":"list_clients"}}"#;
        assert_eq!([code(twice), code(named_twice)], [-32600; 2], "the second might be what is done");
    }
}
