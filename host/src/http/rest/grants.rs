//! Grants, and ending them: what goes on under one ends at once.

use super::super::app::App;
use super::{Answer, Asked, Named, Problem, failed, flag, unavailable};
use crate::auth::{self, Admitted};
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Which grants are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Those that have ended, too.
    #[serde(default, deserialize_with = "flag")]
    all: bool,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Asked(wanted): Asked<Wanted>,
) -> Answer {
    let read = move || {
        let setup = app.service.setup();
        auth::list(&setup.store, &*setup.clock, &admitted.principal.user_id, wanted.all)
    };
    let found = tokio::task::spawn_blocking(read).await.map_err(failed)?;
    found.map(|found| Json(found).into_response()).map_err(unavailable)
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Named(id): Named,
) -> Answer {
    let write = move || {
        let setup = app.service.setup();
        auth::revoke(&setup.store, &*setup.clock, &admitted.principal.user_id, &id)
    };
    let revoked = tokio::task::spawn_blocking(write).await.map_err(failed)?.map_err(unavailable)?;
    revoked.map(|_| StatusCode::NO_CONTENT.into_response()).ok_or_else(|| Problem::not_found("grant"))
}
