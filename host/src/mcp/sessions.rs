//! `list_sessions`.

use super::arguments::parse;
use super::server::{Done, Server};
use super::tools::Tool;
use crate::report;
use crate::store::audit::Outcome;
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `list_sessions` takes nothing.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {}

pub(super) async fn call(server: &Server, arguments: Option<JsonObject>, context: &RequestContext<RoleServer>) -> Done {
    if let Err(message) = parse::<Arguments>(Tool::ListSessions, arguments) {
        return Done::failed(Outcome::Invalid, None, message);
    }
    match server.tick_for(context).await {
        Ok(tick) => {
            let sessions = report::sessions(tick.sessions.iter().map(|s| (&s.facts, &s.judgement)), &tick.sources);
            Done { tick: Some(tick), ..Done::structured(None, &sessions) }
        }
        Err(error) => Done::failed(Outcome::Failed, None, error.to_string()),
    }
}
