//! REST: the same answers as MCP's, for what is no MCP client.

mod clients;
mod grants;
mod health;
mod sessions;

pub(super) use health::router as health;

use super::app::App;
use super::auth::not_permitted;
use super::problem::Problem;
use crate::auth::{Admitted, Scope};
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// All but those that need no token.
pub(super) fn router() -> Router<Arc<App>> {
    sessions::router().merge(clients::router()).merge(grants::router())
}

/// What a handler comes to.
type Answer = Result<Response, Problem>;

/// Lets through whose grant permits this.
fn check(admitted: &Admitted, scope: Scope) -> Result<(), Problem> {
    if admitted.principal.may(scope) { Ok(()) } else { Err(not_permitted(&admitted.principal, scope)) }
}

/// What stands behind the `?` of an address.
struct Asked<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let refused = |error: QueryRejection| {
            Problem::new(StatusCode::BAD_REQUEST, crate::text::clean(&error.body_text())).into_response()
        };
        query.map(|Query(query)| Self(query)).map_err(refused)
    }
}

/// What stands in the middle of an address.
struct Named(String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let refused = |_| Problem::new(StatusCode::BAD_REQUEST, "the address is no text").into_response();
        path.map(|Path(name)| Self(name)).map_err(refused)
    }
}

/// Something that should not fail has failed.
fn failed(error: impl std::fmt::Display) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// What cannot be read now, and may be later.
fn unavailable(error: impl std::fmt::Display) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}
