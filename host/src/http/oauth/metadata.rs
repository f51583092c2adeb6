//! What clients find out by themselves: what is protected here (RFC 9728), and who gives access to it (RFC 8414).

use super::{AUTHORIZE, OAuth, REGISTER, REVOKE, TOKEN};
use crate::auth::Scope;
use crate::auth::oauth::{Issuer, pkce};
use axum::extract::{Extension, State};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;

/// Where the metadata of the protected resource stands: its own path is behind that of the document.
pub(in crate::http) const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Who gives access: this server, if it does, and others whose tokens it takes.
#[derive(Clone)]
pub(super) struct Givers {
    pub own: bool,
    pub others: Arc<[String]>,
}

/// The metadata of the protected resource.
pub(super) fn resource_router(givers: Givers) -> Router {
    Router::new()
        .route("/.well-known/oauth-protected-resource", get(resource))
        .route(METADATA, get(resource))
        .with_state(givers)
}

/// The metadata of the authorization server.
pub(super) fn router() -> Router<Arc<OAuth>> {
    Router::new().route("/.well-known/oauth-authorization-server", get(server))
}

async fn resource(State(givers): State<Givers>, Extension(issuer): Extension<Issuer>) -> Json<Value> {
    // Most clients take the first. Others are there only where the user has named them, so they come before this one.
    let others = givers.others.iter().map(String::as_str);
    let all: Vec<&str> = others.chain(givers.own.then_some(issuer.as_str())).collect();
    Json(json!({
        "resource": issuer.resource(),
        "authorization_servers": all,
        "scopes_supported": Scope::ALL.map(Scope::as_str),
        "bearer_methods_supported": ["header"],
        "resource_name": "headcount",
    }))
}

async fn server(Extension(issuer): Extension<Issuer>) -> Json<Value> {
    Json(json!({
        "issuer": issuer.as_str(),
        "authorization_endpoint": issuer.with(AUTHORIZE),
        "token_endpoint": issuer.with(TOKEN),
        "revocation_endpoint": issuer.with(REVOKE),
        "registration_endpoint": issuer.with(REGISTER),
        "scopes_supported": Scope::ALL.map(Scope::as_str),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": [pkce::METHOD],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    }))
}
