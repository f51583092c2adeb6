//! The requests that wait, as the owner sees them. The one-time codes are in it: it is for the owner's terminal alone.

use super::redirect::Redirect;
use super::{AuthorizationServer, REQUEST_LASTS_MS, document, waiting};
use crate::auth::Scopes;
use crate::auth::scope::Scope;
use crate::clock::Clock;
use crate::report::time;
use crate::store::oauth::Request;
use crate::store::{Store, StoreError};
use crate::text::clean;
use serde::Serialize;

/// Requests that wait for the owner's consent, the oldest first.
#[derive(Debug, Clone, Serialize)]
pub struct Requests {
    /// `headcount.grant_requests/1`.
    pub schema: &'static str,
    /// The requests.
    pub requests: Vec<RequestRow>,
}

/// One of them.
#[derive(Debug, Clone, Serialize)]
pub struct RequestRow {
    /// What the page calls it, so that nobody consents to another one by mistake.
    pub request: String,
    /// Who asks.
    pub client_id: String,
    /// What the client calls itself, in its own words; null: it does not say.
    pub client_name: Option<String>,
    /// The site that vouches for what the client says of itself; null: nobody does.
    pub client_host: Option<String>,
    /// Where the answer goes.
    pub redirect_host: String,
    /// Whether that is a program on this machine: then any other here can say that it is this client, whoever vouches for that.
    pub redirect_is_local: bool,
    /// What it wants.
    pub scopes: Vec<&'static str>,
    /// What it wants it for: the address of the MCP endpoint.
    pub resource: String,
    /// What has to be typed into the page to consent.
    pub code: String,
    /// RFC 3339 in UTC.
    pub asked_at: String,
    /// RFC 3339 in UTC.
    pub expires_at: String,
}

/// The requests that wait now.
///
/// # Errors
/// When the database cannot be read.
pub fn requests(store: &Store, clock: &dyn Clock) -> Result<Requests, StoreError> {
    let found = store.requests(&waiting(clock))?;
    Ok(Requests { schema: "headcount.grant_requests/1", requests: found.iter().map(row).collect() })
}

/// Denies those of the requests that are `meant`, whoever has opened their pages, and returns them. Their clients are told nothing.
///
/// # Errors
/// When the database cannot be used.
pub fn deny(
    store: &Store,
    clock: &dyn Clock,
    meant: impl Fn(&RequestRow) -> bool,
) -> Result<Vec<RequestRow>, StoreError> {
    let waiting = waiting(clock);
    let mut denied = Vec::new();
    for request in store.requests(&waiting)? {
        let row = row(&request);
        if meant(&row) && store.take_request(&request.id, &waiting)?.is_some() {
            denied.push(row);
        }
    }
    Ok(denied)
}

impl AuthorizationServer {
    /// A request as its owner sees it.
    pub fn shown(request: &Request) -> RequestRow {
        row(request)
    }
}

fn row(request: &Request) -> RequestRow {
    let redirect = Redirect::checked(&request.redirect_uri).ok();
    RequestRow {
        request: crate::names::short_hash(&request.id),
        client_id: clean(&request.client_id),
        client_name: request.client_name.as_deref().map(clean),
        client_host: document::address(&request.client_id).and_then(|url| Some(url.host_str()?.to_owned())),
        redirect_host: redirect.as_ref().map(Redirect::host).unwrap_or_default(),
        redirect_is_local: redirect.is_some_and(|to| to.is_on_this_machine()),
        scopes: Scopes::of_text(&request.scopes).iter().map(Scope::as_str).collect(),
        resource: request.resource.clone(),
        code: request.user_code.clone(),
        asked_at: time(request.asked_at_ms),
        expires_at: time(request.asked_at_ms.saturating_add(REQUEST_LASTS_MS)),
    }
}
