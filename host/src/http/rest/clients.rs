//! The MCP clients: who is connected, and what each has called.

use super::super::app::App;
use super::{Answer, Asked, Named, Problem, check, failed, unavailable};
use crate::auth::{Admitted, Scope};
use crate::clients::{self, DEFAULT_LIMIT, ListError, State as Which};
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/v1/mcp/sessions", get(list)).route("/v1/mcp/sessions/{id}", get(one))
}

/// Which clients are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    state: Which,
    limit: Option<usize>,
    cursor: Option<String>,
}

async fn list(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Asked(wanted): Asked<Wanted>,
) -> Answer {
    check(&admitted, Scope::ClientsRead)?;
    let asked =
        clients::Asked { state: wanted.state, limit: wanted.limit.unwrap_or(DEFAULT_LIMIT), cursor: wanted.cursor };
    let read = move || {
        let setup = app.service.setup();
        clients::list(&setup.store, &setup.dirs.state, &*setup.clock, &admitted.principal.user_id, &asked)
    };
    let found = tokio::task::spawn_blocking(read).await.map_err(failed)?;
    found.map(|found| Json(found).into_response()).map_err(problem)
}

async fn one(State(app): State<Arc<App>>, Extension(admitted): Extension<Admitted>, Named(id): Named) -> Answer {
    check(&admitted, Scope::ClientsRead)?;
    let read = move || {
        let setup = app.service.setup();
        clients::one(&setup.store, &setup.dirs.state, &*setup.clock, &admitted.principal.user_id, &id)
    };
    let found = tokio::task::spawn_blocking(read).await.map_err(failed)?.map_err(problem)?;
    found.map(|client| Json(client).into_response()).ok_or_else(|| Problem::not_found("client"))
}

fn problem(error: ListError) -> Problem {
    match error {
        ListError::Invalid(why) => Problem::new(StatusCode::BAD_REQUEST, why),
        ListError::Leases(_) | ListError::Store(_) => unavailable(error),
    }
}
