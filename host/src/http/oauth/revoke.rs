//! The revocation endpoint: who disconnects says so here (RFC 7009).

use super::super::doors::Came;
use super::{Failure, OAuth, REVOKE, json_response, posted};
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde_json::json;
use std::sync::Arc;

pub(super) fn router() -> Router<Arc<OAuth>> {
    Router::new().route(REVOKE, post(revoke))
}

async fn revoke(
    State(oauth): State<Arc<OAuth>>,
    Extension(came): Extension<Came>,
    request: Request,
) -> Result<Response, Failure> {
    oauth.tokens.take(came.peer).map_err(Failure::TooMany)?;
    let params = posted(request).await?;
    oauth.run(move |server| server.revoke(&params)).await??;
    Ok(json_response(StatusCode::OK, &json!({})))
}
