//! Sessions as resources: `headcount://session/{id}` is the report of one, as JSON.

use super::page::Form;
use super::server::{Done, Server};
use crate::names::SessionId;
use crate::query::{self, QueryError};
use crate::report::{self, MAX_LIMIT, Rendered, View, word};
use crate::store::audit::Outcome;
use rmcp::model::{ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What the address of a session begins with; its id follows.
const PREFIX: &str = "headcount://session/";

const JSON: &str = "application/json";

/// The session that an address is of, by the address's form; there may be no such session.
pub(super) fn session_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(PREFIX).filter(|id| SessionId::parse(id).is_ok())
}

/// There is no such resource; which one it would be is told as data, too.
pub(super) fn missing(message: String, uri: &str) -> ErrorData {
    ErrorData::resource_not_found(message, Some(json!({ "uri": report::clean(uri) })))
}

/// All sessions.
pub(super) async fn list(server: &Server) -> Result<ListResourcesResult, ErrorData> {
    let tick = server.tick().await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let sessions = report::sessions(tick.sessions.iter().map(|s| (&s.facts, &s.judgement)), &tick.sources).sessions;
    let resource = |row: report::SessionRow| {
        let agents = if row.agent_count == 1 { "1 agent".to_owned() } else { format!("{} agents", row.agent_count) };
        Resource::new(format!("{PREFIX}{}", row.session_id), row.session_id)
            .with_title(row.session_name)
            .with_description(format!("{agents}, {}", word(&row.session_health)))
            .with_mime_type(JSON)
    };
    Ok(ListResourcesResult::with_all_items(sessions.into_iter().map(resource).collect()))
}

/// The form of a session's address.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{PREFIX}{{id}}"), "session")
        .with_title("Session")
        .with_description(
            "Who is working in a session, what each agent is doing, what it costs this machine, and whether it is healthy: the same \
             report as get_session_status gives. A subscriber is told when agents come and go, or when what one does, its status, \
             health or checks change; not when figures move.",
        )
        .with_mime_type(JSON)
}

/// One session's report.
pub(super) async fn read(server: &Server, uri: String) -> Done<Result<ReadResourceResult, ErrorData>> {
    let failed = |outcome, session, error| Done {
        result: Err(error),
        tick: None,
        session,
        outcome,
        agents: 0,
        report: Duration::ZERO,
    };
    let Some(id) = session_of(&uri) else {
        let message = format!("there is no resource `{}`; there are {PREFIX}{{id}}", report::clean(&uri));
        return failed(Outcome::Invalid, None, missing(message, &uri));
    };
    let session = Some(id.to_owned());
    let tick = match server.tick().await {
        Ok(tick) => tick,
        Err(error) => return failed(Outcome::Failed, session, ErrorData::internal_error(error.to_string(), None)),
    };
    let Some(seen) = tick.session(id) else {
        let why =
            query::find(&tick, id).err().as_ref().map_or_else(|| format!("`{id}` is a name"), QueryError::to_string);
        return failed(Outcome::NotFound, session, missing(why, &uri));
    };
    let started = server.service.steady();
    let all = View { limit: MAX_LIMIT, ..View::default() };
    let (age_ms, rendered) = match server.page(&tick, seen, all, Form::Text).await {
        Ok(written) => written,
        Err(error) => return failed(Outcome::Failed, session, ErrorData::internal_error(error.to_string(), None)),
    };
    let text = Rendered::head(age_ms) + rendered.tail();
    Done {
        result: Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(JSON)])),
        agents: rendered.agents,
        outcome: if rendered.partial { Outcome::Partial } else { Outcome::Ok },
        report: server.service.steady().saturating_sub(started),
        session,
        tick: Some(Arc::clone(&tick)),
    }
}
