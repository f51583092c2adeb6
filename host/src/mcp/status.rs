//! `get_session_status`.

use super::arguments::{or_default, parse};
use super::page::Form;
use super::server::{Done, Progress, Server, knows_structure};
use super::tools::Tool;
use crate::query;
use crate::report::{self, Filter, Rendered, View, ViewError};
use crate::store::audit::Outcome;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use rmcp::{RoleServer, service::RequestContext};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// What `get_session_status` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The session's id as list_sessions gives it, or its name where that is unique.
    session_id: String,
    /// Whether to show each agent's figures.
    #[serde(default = "yes")]
    include_metrics: bool,
    /// Whether to show how each agent fared in the checks.
    #[serde(default = "yes")]
    include_health: bool,
    /// List only agents with one of these statuses (ACTIVE, DEGRADED, FAILED, OFFLINE, UNKNOWN) or activities (working,
    /// waiting_for_input, idle, stalled, finished, dead, unknown). Totals, health and attention are of the whole session all the same.
    #[serde(default, deserialize_with = "or_default")]
    only: Vec<String>,
    /// List this many agents at the most.
    #[serde(default = "default_limit", deserialize_with = "or_limit")]
    #[schemars(range(min = 1, max = report::MAX_LIMIT))]
    limit: u64,
    /// Where to go on: `next_cursor` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

fn yes() -> bool {
    true
}

fn default_limit() -> u64 {
    report::DEFAULT_LIMIT as u64
}

fn or_limit<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Option::deserialize(from).map(|limit| limit.unwrap_or_else(default_limit))
}

impl Arguments {
    fn view(&self) -> Result<View, ViewError> {
        Ok(View {
            metrics: self.include_metrics,
            health: self.include_health,
            only: self.only.iter().map(|word| word.parse::<Filter>()).collect::<Result<_, _>>()?,
            limit: View::check_limit(self.limit)?,
            cursor: self.cursor.as_deref().map(str::parse).transpose()?,
        })
    }
}

pub(super) async fn call(server: &Server, arguments: Option<JsonObject>, context: &RequestContext<RoleServer>) -> Done {
    let arguments: Arguments = match parse(Tool::GetSessionStatus, arguments) {
        Ok(arguments) => arguments,
        Err(message) => return Done::failed(Outcome::Invalid, None, message),
    };
    let asked = Some(report::clean(&arguments.session_id));
    let view = match arguments.view() {
        Ok(view) => view,
        Err(error) => return Done::failed(Outcome::Invalid, asked, error.to_string()),
    };
    let mut progress = Progress::new(context, 4.0);
    progress.step(|| "collecting".into()).await;
    let tick = match server.tick_for(context).await {
        Ok(tick) => tick,
        Err(error) => return Done::failed(Outcome::Failed, asked, error.to_string()),
    };
    let seen = match query::find(&tick, &arguments.session_id) {
        Ok(seen) => seen,
        Err(error) => return Done::failed(error.outcome(), asked, error.to_string()),
    };
    progress.step(|| format!("{} agents observed", seen.facts.agents.len())).await;
    progress.step(|| "judged and summed up".into()).await;
    let started = server.service.steady();
    let form = if knows_structure(context) { Form::Structured } else { Form::Text };
    let (age_ms, rendered) = match server.page(&tick, seen, view, form).await {
        Ok(written) => written,
        Err(error) => return Done::failed(Outcome::Failed, asked, error.to_string()),
    };
    let report = server.service.steady().saturating_sub(started);
    progress.step(|| "done".into()).await;
    let session = Some(seen.facts.session.id.clone());
    let agents = rendered.agents;
    let outcome = if rendered.partial { Outcome::Partial } else { Outcome::Ok };
    let result = result(server, age_ms, rendered, form);
    Done { result, tick: Some(Arc::clone(&tick)), session, outcome, agents, report }
}

/// The report as structure, and in words. Clients from before there was structured content get the whole report as text.
fn result(server: &Server, age_ms: u64, report: Arc<Rendered>, form: Form) -> CallToolResult {
    let text = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
    match form {
        Form::Text => text(Rendered::head(age_ms) + report.tail()),
        Form::Structured => {
            let mut result = text(report.summary.clone());
            result.structured_content = Some(server.connection.splicer.stand_in(age_ms, report));
            result
        }
    }
}
