//! The prompts.

use crate::content::PNG;
use crate::input::{Given, ask};
use rmcp::model::{
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument,
    PromptMessage, ResourceContents, Role,
};

/// All of them.
pub fn list() -> Vec<Prompt> {
    let argument = |name: &str| PromptArgument::new(name).with_description("What to put in").with_required(true);
    let prompt = |name: &str, description: &str, arguments: &[&str]| {
        let arguments: Vec<PromptArgument> = arguments.iter().map(|name| argument(name)).collect();
        Prompt::new(name, Some(description), (!arguments.is_empty()).then_some(arguments))
    };
    vec![
        prompt("test_simple_prompt", "A text", &[]),
        prompt("test_prompt_with_arguments", "A text with two words put in", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", "A resource, and what to do with it", &["resourceUri"]),
        prompt("test_prompt_with_image", "A picture, and what to do with it", &[]),
        prompt("test_input_required_result_prompt", "A text about something that the user is asked for", &[]),
    ]
}

/// One of them, with its arguments put in.
///
/// # Errors
/// When there is no such prompt, or an argument is missing.
pub fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name)?.as_str());
        value.ok_or_else(|| ErrorData::invalid_params(format!("the argument {name} is missing"), None))
    };
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![ContentBlock::text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            vec![ContentBlock::text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let text = "Embedded resource content for testing.";
            let resource = ResourceContents::text(text, argument("resourceUri")?);
            vec![ContentBlock::resource(resource), ContentBlock::text("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            vec![ContentBlock::image(PNG, "image/png"), ContentBlock::text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            let given = Given(request.input_responses.as_ref());
            let Some(context) = given.entered("user_context", "context") else {
                let question = ask::form("What context should the prompt use?", "context", "string");
                return Ok(ask::all([("user_context", question)], None)?.into());
            };
            vec![ContentBlock::text(format!("Prompt with context: {context}"))]
        }
        other => return Err(ErrorData::invalid_params(format!("there is no prompt {other}"), None)),
    };
    let messages = messages.into_iter().map(|content| PromptMessage::new(Role::User, content));
    Ok(GetPromptResult::new(messages.collect()).into())
}
