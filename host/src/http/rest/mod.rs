//! REST: the same answers as MCP's, for what is no MCP client.

mod clients;
mod grants;
mod health;
mod metrics;
mod openapi;
mod routes;
mod sessions;

pub(super) use routes::{ROUTES, router};

use super::problem::Problem;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};
use std::borrow::Cow;

/// What a handler comes to.
type Answer = Result<Response, Problem>;

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

/// A parameter that is true or false; its name alone says that it is true.
fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match &*Cow::<'de, str>::deserialize(deserializer)? {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(D::Error::custom("a flag is true or false")),
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
