//! `list_clients`.

use super::arguments::{or_default, parse};
use super::server::{Done, Server};
use super::tools::Tool;
use crate::clients::{self, DEFAULT_LIMIT, MAX_LIMIT};
use crate::store::audit::Outcome;
use rmcp::model::{CallToolResult, JsonObject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What `list_clients` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// `active`, `ended` or `all`.
    #[serde(default, deserialize_with = "or_default")]
    state: clients::State,
    /// List this many clients at the most.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: Option<usize>,
    /// Where to go on: `next_cursor` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

pub(super) async fn call(server: &Server, arguments: Option<JsonObject>) -> Done {
    let arguments: Arguments = match parse(Tool::ListClients, arguments) {
        Ok(arguments) => arguments,
        Err(message) => return Done::failed(Outcome::Invalid, None, message),
    };
    let mut asked = clients::Asked {
        state: arguments.state,
        limit: arguments.limit.unwrap_or(DEFAULT_LIMIT),
        cursor: arguments.cursor,
    };
    loop {
        let done = list(server, asked.clone()).await;
        match server.fewer(size(&done.result), asked.limit) {
            None => return done,
            Some(limit) => asked.limit = limit,
        }
    }
}

/// Bytes of an answer: structure, and its text, in which quotation marks are escaped.
fn size(answer: &CallToolResult) -> usize {
    let texts = answer.content.iter().filter_map(|content| content.as_text()).map(|content| content.text.as_str());
    texts.map(|text| 2 * text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()).sum()
}

async fn list(server: &Server, asked: clients::Asked) -> Done {
    let (service, user) = (Arc::clone(&server.service), server.connection.user.clone());
    let list = move || {
        let setup = service.setup();
        clients::list(&setup.store, &setup.dirs.state, &*setup.clock, &user, &asked)
    };
    let found = tokio::task::spawn_blocking(list).await;
    match found {
        Ok(Ok(clients)) => Done::structured(None, &clients),
        Ok(Err(error)) => {
            let invalid = matches!(error, clients::ListError::Invalid(_));
            let outcome = if invalid { Outcome::Invalid } else { Outcome::Failed };
            Done::failed(outcome, None, error.to_string())
        }
        Err(error) => Done::failed(Outcome::Failed, None, error.to_string()),
    }
}
