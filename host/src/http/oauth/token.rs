//! The token endpoint: codes and refresh tokens are redeemed here (RFC 6749, section 3.2).

use super::super::doors::Came;
use super::{Failure, OAuth, TOKEN, json_response, posted};
use crate::auth::oauth::Issuer;
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde_json::json;
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<OAuth>> {
    Router::new().route(TOKEN, post(token))
}

async fn token(
    State(oauth): State<Arc<OAuth>>,
    Extension(issuer): Extension<Issuer>,
    Extension(came): Extension<Came>,
    request: Request,
) -> Result<Response, Failure> {
    oauth.tokens.take(came.peer).map_err(Failure::TooMany)?;
    let params = posted(request).await?;
    let issued = oauth.run(move |server| server.token(&params, &issuer)).await??;
    let body = json!({
        "access_token": issued.access.reveal(),
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "refresh_token": issued.refresh.reveal(),
        "scope": issued.scopes.to_string(),
    });
    Ok(json_response(StatusCode::OK, &body))
}
