//! Who gives access to a server: found by rmcp, and refused where it would let pass what must not be trusted.

use super::Access;
use super::wire::Wire;
use crate::text::clean;
use rmcp::transport::auth::AuthorizationMetadata;
use rmcp::transport::{AuthError, AuthorizationManager};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::{Host, Url};

/// How long it may take to find out. Each step of it is bounded, too.
const TIME: Duration = Duration::from_secs(30);

/// Who gives access.
pub struct Discovered {
    /// rmcp's client.
    pub manager: AuthorizationManager,
    /// What its requests go through.
    pub wire: Arc<Wire>,
    /// What the authorization server says of itself.
    pub metadata: AuthorizationMetadata,
}

impl Access {
    /// Finds out who gives access to the server.
    ///
    /// # Errors
    /// In words, when nobody does, or nobody to be trusted.
    pub(super) async fn discover(&self) -> Result<Discovered, String> {
        let wire = Arc::new(Wire::to(&self.url, self.mask.clone()).await?);
        let manager = AuthorizationManager::new_with_oauth_http_client(self.url.clone(), Arc::clone(&wire) as _).await;
        let mut manager = manager.map_err(|error| in_words(&error))?;
        let found = timeout(TIME, manager.resolve_metadata()).await;
        let found = found.map_err(|_| "its authorization server is not found in time")?;
        let found = found.map_err(|error| match &error {
            AuthError::AuthorizationServersUnavailable { authorization_servers: named, .. } => {
                let out_of_reach =
                    named.iter().find_map(|named| wire.check(named).and_then(|url| check_host(&url)).err());
                out_of_reach.map_or_else(|| in_words(&error), |why| format!("its authorization server: {why}"))
            }
            _ => in_words(&error),
        })?;
        // rmcp would make up endpoints, as an old revision of MCP had it: nobody has said that they are any.
        if !found.source.is_discovered() {
            return Err("the server names no authorization server".into());
        }
        let metadata = found.metadata;
        if metadata.issuer.is_none() {
            return Err("its authorization server does not say who it is".into());
        }
        let others = ["revocation_endpoint"].map(|name| metadata.additional_fields.get(name)?.as_str());
        let endpoints = [metadata.token_endpoint.as_str()]
            .into_iter()
            .chain(metadata.registration_endpoint.as_deref())
            .chain(others.into_iter().flatten());
        for endpoint in endpoints {
            wire.check(endpoint)?;
        }
        manager.set_metadata(metadata.clone());
        Ok(Discovered { manager, wire, metadata })
    }
}

/// Whether rmcp would go there, which passes silently over addresses that are neither public nor this machine's.
fn check_host(url: &Url) -> Result<(), String> {
    let is_inside = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_private() || ip.is_link_local(),
        Some(Host::Ipv6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
        _ => false,
    };
    let host = url.host_str().unwrap_or_default();
    if is_inside { Err(format!("{host} is not gone to: it is a private or link-local address")) } else { Ok(()) }
}

/// What rmcp says, for a person. It holds addresses and what servers have written, and no secret of ours; but for what came of
/// requests for tokens, of which only [`Wire::said`] is told.
pub fn in_words(error: &AuthError) -> String {
    let words = match error {
        AuthError::DiscoveryRequestFailed { url, source } => format!("{url}: {source}"),
        error => error.to_string(),
    };
    clean(&words)
}
