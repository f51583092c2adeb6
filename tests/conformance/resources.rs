//! The resources, and what can be read of them.

use crate::content::PNG;
use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// The one that can be subscribed to.
pub const WATCHED: &str = "test://watched-resource";

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

/// What stands before and behind the id of one that is made of the template.
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// All that are there by themselves.
pub fn list() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, kind: &str| {
        Resource::new(uri, name).with_description(format!("A {name}")).with_mime_type(kind)
    };
    vec![
        resource(TEXT, "text that stays as it is", "text/plain"),
        resource(BINARY, "picture that stays as it is", "image/png"),
        resource(WATCHED, "text that can be watched", "text/plain"),
    ]
}

/// The one template.
pub fn templates() -> Vec<ResourceTemplate> {
    let (before, behind) = TEMPLATE;
    let template = ResourceTemplate::new(format!("{before}{{id}}{behind}"), "data by id");
    vec![template.with_description("Data that names its id").with_mime_type("application/json")]
}

/// What is in a resource.
///
/// # Errors
/// When there is none of this name.
pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (before, behind) = TEMPLATE;
    let id = uri.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
    let contents = match (uri, id) {
        (TEXT, _) => ResourceContents::text("This is the content of the static text resource.", uri),
        (BINARY, _) => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        (WATCHED, _) => ResourceContents::text("Nothing has happened.", uri),
        (_, Some(id)) => {
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
        _ => return Err(missing(uri)),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// There is no such resource.
pub fn missing(uri: &str) -> ErrorData {
    ErrorData::invalid_params("there is no such resource", Some(json!({ "uri": uri })))
}
