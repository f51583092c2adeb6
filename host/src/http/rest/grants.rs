//! Grants, and ending them: what goes on under one ends at once.

use super::super::app::App;
use super::{Answer, Asked, Named, Problem, check, failed, unavailable};
use crate::auth::{self, Admitted, Scope};
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::{delete, get};
use axum::{Json, Router};
use serde::Deserialize;
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/v1/grants", get(list)).route("/v1/grants/{id}", delete(revoke))
}

/// Which grants are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Those that have ended, too.
    #[serde(default)]
    all: bool,
}

async fn list(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Asked(wanted): Asked<Wanted>,
) -> Answer {
    check(&admitted, Scope::GrantsRevoke)?;
    let read = move || {
        let setup = app.service.setup();
        auth::list(&setup.store, &*setup.clock, &admitted.principal.user_id, wanted.all)
    };
    let found = tokio::task::spawn_blocking(read).await.map_err(failed)?;
    found.map(|found| Json(found).into_response()).map_err(unavailable)
}

async fn revoke(State(app): State<Arc<App>>, Extension(admitted): Extension<Admitted>, Named(id): Named) -> Answer {
    check(&admitted, Scope::GrantsRevoke)?;
    let write = move || {
        let setup = app.service.setup();
        auth::revoke(&setup.store, &*setup.clock, &admitted.principal.user_id, &id)
    };
    let revoked = tokio::task::spawn_blocking(write).await.map_err(failed)?.map_err(unavailable)?;
    revoked.map(|_| StatusCode::NO_CONTENT.into_response()).ok_or_else(|| Problem::not_found("grant"))
}
