//! A tool's arguments. What is wrong with them is told as the tool's own answer, so that a model can mend its call.

use super::tools::Tool;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The arguments as `T`.
///
/// # Errors
/// A sentence that names the argument, what is wrong with it, and what the tool takes.
pub fn parse<T: DeserializeOwned>(tool: Tool, arguments: Option<JsonObject>) -> Result<T, String> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("argument `{path}`: ") };
        format!("{place}{}. {} takes {}.", error.inner(), tool.name(), usage(tool))
    })
}

/// Many clients send null for what they leave out.
pub fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// The tool's arguments in words, from its schema.
fn usage(tool: Tool) -> String {
    let schema = tool.input_schema();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten().map(|(name, schema)| {
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("value"),
            _ => "value",
        };
        let need = if required.contains(&name.as_str()) { ", required" } else { "" };
        format!("`{name}` ({kind}{need})")
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { "no arguments".to_owned() } else { named.join(", ") }
}
