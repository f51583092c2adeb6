//! The MCP clients: who is connected, and what each has called.

use super::super::app::App;
use super::sessions::Asking;
use super::{Answer, Asked, Named, Problem, unavailable};
use crate::auth::Admitted;
use crate::clients::{self, DEFAULT_LIMIT, ListError, MAX_LIMIT, State as Which};
use crate::setup::Setup;
use crate::store::audit::Outcome;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Which clients are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Those that are connected, those that have ended, or all.
    #[serde(default)]
    state: Which,
    /// List this many at the most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: usize,
    /// Where to go on: `next_cursor` of the answer before.
    cursor: Option<String>,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Asked(wanted): Asked<Wanted>,
    headers: HeaderMap,
) -> Answer {
    let asked = clients::Asked { state: wanted.state, limit: wanted.limit, cursor: wanted.cursor };
    let read =
        move |setup: &Setup, user: &str| clients::list(&setup.store, &setup.dirs.state, &*setup.clock, user, &asked);
    let of = |found: &Result<_, _>| found.as_ref().map_or_else(outcome, |_| Outcome::Ok);
    let found = Asking::begin(&app, &admitted, &headers, "list_clients").done(read, of).await?;
    found.map(|found| Json(found).into_response()).map_err(problem)
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Named(id): Named,
    headers: HeaderMap,
) -> Answer {
    let read = move |setup: &Setup, user: &str| clients::one(&setup.store, &setup.dirs.state, &*setup.clock, user, &id);
    let is_there = |found: &Option<_>| if found.is_some() { Outcome::Ok } else { Outcome::NotFound };
    let of = |found: &Result<_, _>| found.as_ref().map_or_else(outcome, is_there);
    let found = Asking::begin(&app, &admitted, &headers, "get_client").done(read, of).await?;
    found.map_err(problem)?.map(|client| Json(client).into_response()).ok_or_else(|| Problem::not_found("client"))
}

fn outcome(error: &ListError) -> Outcome {
    if matches!(error, ListError::Invalid(_)) { Outcome::Invalid } else { Outcome::Failed }
}

fn problem(error: ListError) -> Problem {
    match error {
        ListError::Invalid(why) => Problem::new(StatusCode::BAD_REQUEST, why),
        ListError::Leases(_) | ListError::Store(_) => unavailable(error),
    }
}
