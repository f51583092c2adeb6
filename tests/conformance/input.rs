//! Tools that ask for input and are called again with it, as the revision 2026-07-28 has it.

use crate::seal::Seal;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorData, InputResponses};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// What the client has answered.
#[derive(Clone, Copy)]
pub struct Given<'a>(pub Option<&'a InputResponses>);

impl<'a> Given<'a> {
    fn answer(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key)
    }

    /// What the user has put into a field of a form.
    pub fn entered(self, key: &str, field: &str) -> Option<&'a Value> {
        let answer = self.answer(key).filter(|answer| answer["action"] == "accept")?;
        answer["content"].get(field)
    }

    /// What the model has said.
    fn sampled(self, key: &str) -> Option<&'a str> {
        self.answer(key)?["content"]["text"].as_str()
    }

    /// Where the client's roots are.
    fn roots(self, key: &str) -> Option<Vec<&'a str>> {
        let roots = self.answer(key)?["roots"].as_array()?;
        roots.iter().map(|root| root["uri"].as_str()).collect()
    }
}

/// What clients are asked.
pub mod ask {
    use rmcp::model::{ErrorData, InputRequest, InputRequests, InputRequiredResult};
    use serde_json::{Value, json};

    /// The user: to fill in a form with one field.
    pub fn form(message: &str, field: &str, kind: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
        json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
    }

    /// The model.
    pub fn model(question: &str) -> Value {
        let message = json!({ "role": "user", "content": { "type": "text", "text": question } });
        json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } })
    }

    /// The client: where its roots are.
    pub fn roots() -> Value {
        json!({ "method": "roots/list", "params": {} })
    }

    /// A question as it is sent.
    ///
    /// # Errors
    /// When it is none, which would be a defect.
    pub fn request(question: Value) -> Result<InputRequest, ErrorData> {
        serde_json::from_value(question).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// All these, and has the client keep `state`.
    ///
    /// # Errors
    /// When a question is none, which would be a defect.
    pub fn all<const N: usize>(
        questions: [(&str, Value); N],
        state: Option<String>,
    ) -> Result<InputRequiredResult, ErrorData> {
        let requests = questions.into_iter().map(|(key, question)| Ok((key.to_owned(), request(question)?)));
        Ok(InputRequiredResult::new(Some(requests.collect::<Result<InputRequests, ErrorData>>()?), state))
    }
}

/// Calls a tool that asks for input; `None`: it is another one.
pub fn call(
    request: &CallToolRequestParams,
    client: &ClientCapabilities,
    seal: &Seal,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let given = Given(request.input_responses.as_ref());
    let state = request.request_state.as_deref();
    let tool = request.name.strip_prefix("test_input_required_result_")?;
    Some(match tool {
        "elicitation" => elicitation(given),
        "sampling" => sampling(given),
        "list_roots" => list_roots(given),
        "request_state" | "tampered_state" => confirmed(given, state, seal),
        "multiple_inputs" => multiple_inputs(given, state, seal),
        "multi_round" => multi_round(given, state, seal),
        "capabilities" => capabilities(given, client),
        _ => return None,
    })
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

fn elicitation(given: Given) -> Result<CallToolResponse, ErrorData> {
    match given.entered("user_name", "name").and_then(Value::as_str) {
        Some(name) => Ok(text(format!("Hello, {name}!"))),
        None => Ok(ask::all([("user_name", ask::form("What is your name?", "name", "string"))], None)?.into()),
    }
}

fn sampling(given: Given) -> Result<CallToolResponse, ErrorData> {
    match given.sampled("capital_question") {
        Some(said) => Ok(text(said)),
        None => Ok(ask::all([("capital_question", ask::model("What is the capital of France?"))], None)?.into()),
    }
}

fn list_roots(given: Given) -> Result<CallToolResponse, ErrorData> {
    match given.roots("client_roots") {
        Some(roots) => Ok(text(format!("The roots are {}", roots.join(", ")))),
        None => Ok(ask::all([("client_roots", ask::roots())], None)?.into()),
    }
}

fn confirmed(given: Given, state: Option<&str>, seal: &Seal) -> Result<CallToolResponse, ErrorData> {
    let state = state.map(|state| seal.open(state)).transpose()?;
    let confirmed = given.entered("confirm", "ok").and_then(Value::as_bool);
    if confirmed == Some(true) && state.as_deref() == Some("confirm") {
        return Ok(text("state-ok: it was confirmed"));
    }
    let question = ask::form("Please confirm", "ok", "boolean");
    Ok(ask::all([("confirm", question)], Some(seal.seal("confirm")?))?.into())
}

fn multiple_inputs(given: Given, state: Option<&str>, seal: &Seal) -> Result<CallToolResponse, ErrorData> {
    let state = state.map(|state| seal.open(state)).transpose()?;
    let name = given.entered("user_name", "name").and_then(Value::as_str);
    if let (Some("all"), Some(name), Some(greeting), Some(roots)) =
        (state.as_deref(), name, given.sampled("greeting"), given.roots("client_roots"))
    {
        return Ok(text(format!("{greeting} {name} works in {}", roots.join(", "))));
    }
    let questions = [
        ("user_name", ask::form("What is your name?", "name", "string")),
        ("greeting", ask::model("Generate a greeting")),
        ("client_roots", ask::roots()),
    ];
    Ok(ask::all(questions, Some(seal.seal("all")?))?.into())
}

fn multi_round(given: Given, state: Option<&str>, seal: &Seal) -> Result<CallToolResponse, ErrorData> {
    let round = state.map(|state| seal.open(state)).transpose()?;
    let name = given.entered("step1", "name");
    match (round.as_deref(), name, given.entered("step2", "color")) {
        (Some("second"), _, Some(color)) => Ok(text(format!("The favorite color is {color}"))),
        (Some("first"), Some(_), _) | (Some("second"), _, None) => {
            let question = ask::form("Step 2: What is your favorite color?", "color", "string");
            Ok(ask::all([("step2", question)], Some(seal.seal("second")?))?.into())
        }
        _ => {
            let question = ask::form("Step 1: What is your name?", "name", "string");
            Ok(ask::all([("step1", question)], Some(seal.seal("first")?))?.into())
        }
    }
}

/// Asks only what the client can be asked.
fn capabilities(given: Given, client: &ClientCapabilities) -> Result<CallToolResponse, ErrorData> {
    if given.sampled("greeting").is_some() || given.entered("user_name", "name").is_some() {
        return Ok(text("That was to be asked"));
    }
    if client.sampling.is_some() {
        return Ok(ask::all([("greeting", ask::model("Generate a greeting"))], None)?.into());
    }
    if client.elicitation.is_some() {
        return Ok(ask::all([("user_name", ask::form("What is your name?", "name", "string"))], None)?.into());
    }
    Ok(text("There is nothing that the client can be asked"))
}
