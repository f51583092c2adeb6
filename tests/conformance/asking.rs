//! Tools that say something to the client while they are at work, or ask it, as the revisions before 2026-07-28 have it.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ClientCapabilities, ContentBlock, CreateMessageRequestParams, ElicitRequestParams, ErrorData,
    JsonObject, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, SamplingMessage,
};
use rmcp::service::{RequestContext, ServiceError};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Between two of what the suite wants to see one after the other.
const PAUSE: Duration = Duration::from_millis(50);

type Context = RequestContext<RoleServer>;

/// Says how far it has come.
pub async fn progress(context: &Context) -> Result<CallToolResult, ErrorData> {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, done).with_total(100.0);
            context.peer.notify_progress(progress).await.map_err(|error| failed(&error))?;
        }
        sleep(PAUSE).await;
    }
    Ok(text("It has come to its end"))
}

/// Logs what it does, where the client wants that.
pub async fn logging(context: &Context, wanted: bool) -> Result<CallToolResult, ErrorData> {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            let sent = context.peer.notify_logging_message(message).await;
            sent.map_err(|error| failed(&error))?;
        }
        sleep(PAUSE).await;
    }
    Ok(text("It has logged what it did"))
}

/// Asks the client's model.
pub async fn sampling(context: &Context, arguments: &JsonObject) -> Result<CallToolResult, ErrorData> {
    if client(context).sampling.is_none() {
        return Ok(error("the client has no model to ask"));
    }
    let question = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(word(arguments, "prompt")?)], 100);
    let said = context.peer.create_message(question).await.map_err(|error| failed(&error))?;
    let said = serde_json::to_value(said.message).map_err(|error| internal(&error))?;
    Ok(text(format!("LLM response: {}", said["content"]["text"].as_str().unwrap_or("none in words"))))
}

/// Asks the user what the tool is for.
pub async fn elicitation(context: &Context, tool: &str, arguments: &JsonObject) -> Result<CallToolResult, ErrorData> {
    let (message, properties, required) = match tool {
        "test_elicitation" => {
            let field = |what| json!({ "type": "string", "description": what });
            let fields = json!({ "username": field("User's response"), "email": field("User's email address") });
            (word(arguments, "message")?, fields, json!(["username", "email"]))
        }
        "test_elicitation_sep1034_defaults" => ("Please look at what is there already", defaults(), json!([])),
        _ => ("Please choose", choices(), json!([])),
    };
    if client(context).elicitation.is_none() {
        return Ok(error("the client has no user to ask"));
    }
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let question = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let question: ElicitRequestParams = serde_json::from_value(question).map_err(|error| internal(&error))?;
    let answer = context.peer.create_elicitation(question).await.map_err(|error| failed(&error))?;
    let answer = serde_json::to_value(answer).map_err(|error| internal(&error))?;
    Ok(text(format!("User response: action={}, content={}", answer["action"], answer["content"])))
}

/// A field of each primitive type with what it begins with.
fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

/// A field for each way to have the user choose.
fn choices() -> Value {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = |of: &str| {
        let choice = |n: usize, nth: &str| json!({ "const": format!("value{n}"), "title": format!("{nth} {of}") });
        json!([choice(1, "First"), choice(2, "Second"), choice(3, "Third")])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}

fn client(context: &Context) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

fn word<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    let word = arguments.get(name).and_then(Value::as_str);
    word.ok_or_else(|| ErrorData::invalid_params(format!("the argument {name} is missing"), None))
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.into())])
}

fn error(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn failed(error: &ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn internal(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
