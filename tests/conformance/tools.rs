//! The tools: which there are, and who does what.

use crate::server::Fixtures;
use crate::{asking, content, input, tasks};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData, JsonObject,
    Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

/// Those that take nothing or one thing, and what each does.
const SIMPLE: [(&str, &str); 32] = [
    ("test_simple_text", "Answers with a text"),
    ("test_image_content", "Answers with a picture"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_multiple_content_types", "Answers with content of several kinds"),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Says how far it has come"),
    ("test_tool_with_logging", "Logs what it does"),
    ("test_logging_tool", "Logs what it does, where the request asks for that"),
    ("test_elicitation_sep1034_defaults", "Asks the user with a form that is filled in"),
    ("test_elicitation_sep1330_enums", "Asks the user to choose"),
    ("test_missing_capability", "Needs a client with a model"),
    ("test_streaming_elicitation", "Asks the user for a name"),
    ("test_trigger_tool_change", "Has the list of tools be another"),
    ("test_trigger_prompt_change", "Has the list of prompts be another"),
    ("test_input_required_result_elicitation", "Asks the user for a name"),
    ("test_input_required_result_sampling", "Asks the model"),
    ("test_input_required_result_list_roots", "Asks where the roots are"),
    ("test_input_required_result_request_state", "Asks the user to confirm"),
    ("test_input_required_result_tampered_state", "Asks the user to confirm, and believes nobody else"),
    ("test_input_required_result_multiple_inputs", "Asks everybody"),
    ("test_input_required_result_multi_round", "Asks the user twice"),
    ("test_input_required_result_capabilities", "Asks what can be asked"),
    ("test_sampling", "Asks the model with the words of the call"),
    ("test_elicitation", "Asks the user with the words of the call"),
    ("greet", "Greets by name"),
    ("slow_compute", "Takes as many seconds as are wanted"),
    ("failing_job", "Goes on for a while and fails"),
    ("protocol_error_job", "Goes on for a while and breaks"),
    ("confirm_delete", "Asks the user while it is at work"),
    ("multi_input", "Asks the user two things at a time while it is at work"),
    ("test_tool_with_task", "Asks the user for a name and goes on with it"),
];

/// All of them.
pub fn list() -> Vec<Tool> {
    let simple = SIMPLE.iter().map(|(name, what)| Tool::new(*name, *what, object(arguments(name))));
    let others = [
        Tool::new("json_schema_2020_12_tool", "Has a schema with much in it", object(rich_schema())),
        Tool::new("test_header_parameter", "Has an argument that stands in a header, too", object(header_schema())),
    ];
    simple.chain(others).collect()
}

/// Calls one.
///
/// # Errors
/// When there is no such tool, and what it says itself.
pub async fn call(
    fixtures: &Fixtures,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    if let Some(content) = content::of(&request.name) {
        return Ok(CallToolResult::success(content).into());
    }
    if let Some(answer) = input::call(&request, &client, fixtures.seal()) {
        return answer;
    }
    if let Some(answer) = tasks::call(fixtures.tasks(), &request, &client).await {
        return answer;
    }
    let arguments = request.arguments.unwrap_or_default();
    let text = |text: &str| CallToolResult::success(vec![ContentBlock::text(text)]);
    let answer = match &*request.name {
        "test_error_handling" => {
            let why = "This tool intentionally returns an error for testing";
            CallToolResult::error(vec![ContentBlock::text(why)])
        }
        "test_tool_with_progress" => asking::progress(context).await?,
        "test_tool_with_logging" | "test_logging_tool" => asking::logging(context, fixtures.logs(context)).await?,
        "test_sampling" => asking::sampling(context, &arguments).await?,
        name if name.starts_with("test_elicitation") => asking::elicitation(context, name, &arguments).await?,
        "test_missing_capability" if client.sampling.is_none() => {
            let needed = ClientCapabilities::builder().enable_sampling().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        "test_missing_capability" => text("The client has a model"),
        "test_streaming_elicitation" => {
            let question = input::ask::form("What is your name?", "name", "string");
            return Ok(input::ask::all([("user_name", question)], None)?.into());
        }
        "test_trigger_tool_change" | "test_trigger_prompt_change" => {
            fixtures.change(&request.name);
            text("Whoever listens was told")
        }
        "json_schema_2020_12_tool" | "test_header_parameter" => text("The arguments have come"),
        other => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
    };
    Ok(answer.into())
}

fn object(schema: Value) -> JsonObject {
    if let Value::Object(schema) = schema { schema } else { JsonObject::default() }
}

fn arguments(tool: &str) -> Value {
    let (name, kind) = match tool {
        "test_sampling" => ("prompt", "string"),
        "test_elicitation" => ("message", "string"),
        "greet" => ("name", "string"),
        "slow_compute" => ("seconds", "integer"),
        "confirm_delete" => ("filename", "string"),
        _ => return json!({ "type": "object", "properties": {} }),
    };
    json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] })
}

/// What of JSON Schema 2020-12 has to come through unchanged.
fn rich_schema() -> Value {
    let text = json!({ "type": "string" });
    let address = json!({
        "$anchor": "addressDef", "type": "object", "properties": { "street": text, "city": text },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": {
            "name": text, "address": { "$ref": "#/$defs/address" }, "phone": text, "email": text,
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn header_schema() -> Value {
    let region = json!({ "type": "string", "description": "Where it is", "x-mcp-header": "Region" });
    json!({ "type": "object", "properties": { "region": region }, "required": ["region"] })
}
