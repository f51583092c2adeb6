//! The registration endpoint (RFC 7591). Anybody may register: what that gives is the right to ask the owner.

use super::super::doors::Came;
use super::{Failure, OAuth, REGISTER, body, is_of_type, json_response};
use crate::auth::oauth::{ClientMetadata, ErrorCode, OAuthError};
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde_json::json;
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<OAuth>> {
    Router::new().route(REGISTER, post(register))
}

async fn register(
    State(oauth): State<Arc<OAuth>>,
    Extension(came): Extension<Came>,
    request: Request,
) -> Result<Response, Failure> {
    oauth.registrations.take(came.peer).map_err(Failure::TooMany)?;
    let metadata = metadata(request).await?;
    let client = oauth.run(move |server| server.register(metadata)).await??;
    let mut body = json!({
        "client_id": client.id,
        "client_id_issued_at": client.registered_at_ms / 1000,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    if let Some(name) = client.name {
        body["client_name"] = name.into();
    }
    Ok(json_response(StatusCode::CREATED, &body))
}

/// What a client says of itself.
async fn metadata(request: Request) -> Result<ClientMetadata, OAuthError> {
    let refused = |why: &'static str| OAuthError::new(ErrorCode::InvalidClientMetadata, why);
    if !is_of_type(&request, "application/json") {
        return Err(refused("the body has to be application/json"));
    }
    let body = body(request).await?;
    // A list of values would be read as if each had its name; and what the parser says may repeat what was sent.
    let metadata = body.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(&body));
    metadata.and_then(Result::ok).ok_or_else(|| refused("the body is no client metadata of RFC 7591"))
}
