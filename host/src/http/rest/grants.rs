//! Grants, and ending them: what goes on under one ends at once.

use super::super::app::App;
use super::sessions::Asking;
use super::{Answer, Asked, Named, Problem, flag, unavailable};
use crate::auth::{self, Admitted};
use crate::setup::Setup;
use crate::store::audit::Outcome;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
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
    headers: HeaderMap,
) -> Answer {
    let read = move |setup: &Setup, user: &str| auth::list(&setup.store, &*setup.clock, user, wanted.all);
    let of = |found: &Result<_, _>| if found.is_ok() { Outcome::Ok } else { Outcome::Failed };
    let found = Asking::begin(&app, &admitted, &headers, "list_grants").done(read, of).await?;
    found.map(|found| Json(found).into_response()).map_err(unavailable)
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Named(id): Named,
    headers: HeaderMap,
) -> Answer {
    let write = move |setup: &Setup, user: &str| auth::revoke(&setup.store, &*setup.clock, user, &id);
    let of = |revoked: &Result<Option<_>, _>| match revoked {
        Ok(Some(_)) => Outcome::Ok,
        Ok(None) => Outcome::NotFound,
        Err(_) => Outcome::Failed,
    };
    Asking::begin(&app, &admitted, &headers, "revoke_grant")
        .done(write, of)
        .await?
        .map_err(unavailable)?
        .map(|_| StatusCode::NO_CONTENT.into_response())
        .ok_or_else(|| Problem::not_found("grant"))
}
