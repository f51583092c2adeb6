//! `wait_for_attention`.

use super::arguments::parse;
use super::server::{Done, Progress, Server, knows_structure};
use super::tools::Tool;
use crate::report::{self, Mark};
use crate::store::audit::Outcome;
use crate::waiting::{DEFAULT_SECONDS, MAX_SECONDS, Waited};
use rmcp::model::{ContentBlock, JsonObject};
use rmcp::{RoleServer, service::RequestContext};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// How often those who want to know are told that the call still waits; clients give up on one that says nothing for long.
const PROGRESS: Duration = Duration::from_secs(10);

/// What `wait_for_attention` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The session's id as list_sessions gives it, or its name where that is unique.
    session_id: String,
    /// `mark` of an earlier answer: be told only of what has begun after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Wait this many seconds at the most.
    #[serde(default = "default_seconds", deserialize_with = "or_seconds")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    timeout_s: u64,
}

fn default_seconds() -> u64 {
    DEFAULT_SECONDS
}

fn or_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Option::deserialize(from).map(|seconds| seconds.unwrap_or(DEFAULT_SECONDS))
}

impl Arguments {
    fn check(&self) -> Result<Option<Mark>, String> {
        if !(1..=MAX_SECONDS).contains(&self.timeout_s) {
            return Err(format!("timeout_s is {}; it can be 1 to {MAX_SECONDS}", self.timeout_s));
        }
        let since = self.since.as_deref().map(str::parse).transpose();
        since.map_err(|error: report::BadMark| format!("argument `since`: {error}"))
    }
}

pub(super) async fn call(server: &Server, arguments: Option<JsonObject>, context: &RequestContext<RoleServer>) -> Done {
    let arguments: Arguments = match parse(Tool::WaitForAttention, arguments) {
        Ok(arguments) => arguments,
        Err(message) => return Done::failed(Outcome::Invalid, None, message),
    };
    let asked = Some(report::clean(&arguments.session_id));
    let since = match arguments.check() {
        Ok(since) => since,
        Err(message) => return Done::failed(Outcome::Invalid, asked, message),
    };
    let mut waiting = match server.service.wait(&server.connection.sight, &arguments.session_id, since).await {
        Ok(waiting) => waiting,
        Err(error) => return Done::failed(error.outcome(), asked, error.to_string()),
    };
    let began = server.service.steady();
    let mut progress = Progress::new(context, arguments.timeout_s as f64);
    let mut timeout = pin!(sleep(Duration::from_secs(arguments.timeout_s)));
    let mut every = interval(PROGRESS);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let waited = loop {
        tokio::select! {
            biased;
            waited = waiting.until_needed() => break waited,
            () = &mut timeout => break Ok(waiting.timed_out()),
            () = server.connection.gone.cancelled() => return Done::failed(Outcome::Cancelled, asked, "the connection ends"),
            _ = every.tick() => {
                let passed = server.service.steady().saturating_sub(began);
                progress.reach(passed.as_secs_f64(), || waiting.progress()).await;
            }
        }
    };
    match waited {
        Ok(waited) => answer(&waited, context),
        Err(error) => Done::failed(Outcome::Failed, asked, error.to_string()),
    }
}

/// In words beside the structure; clients from before there was structure get the structure as text.
fn answer(waited: &Waited, context: &RequestContext<RoleServer>) -> Done {
    let mut done = Done::structured(Some(waited.attention.session_id.clone()), waited);
    if !knows_structure(context) {
        done.result.structured_content = None;
    } else if done.outcome == Outcome::Ok {
        done.result.content = vec![ContentBlock::text(waited.summary("`since`"))];
    }
    done.agents = waited.attention.needs.len();
    done
}
