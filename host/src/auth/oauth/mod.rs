//! headcount's own authorization server, for use at home: clients that can send no header of the user's ask for access here,
//! and the owner consents by a code that stands in the owner's terminal alone. It knows no transport.
//!
//! A consent becomes a grant as soon as its code is redeemed; from there on it is as any other grant, and the
//! [`Gate`](super::Gate) is the one door. What there is of OAuth: the code flow with PKCE (RFC 6749, 7636, 8252), resource
//! indicators (RFC 8707), `iss` in answers (RFC 9207), rotating refresh tokens, revocation (RFC 7009), registration
//! (RFC 7591), and clients that describe themselves at their id's address. Clients are public ones: a secret that is on everybody's disk is none.

mod authorize;
mod clients;
mod consent;
mod document;
mod error;
mod issuer;
mod params;
pub mod pkce;
mod redirect;
mod tokens;
mod user_code;
mod view;

pub use authorize::Begun;
pub use clients::ClientMetadata;
pub use consent::{Answer, Answered, Flaw};
pub use error::{ErrorCode, OAuthError, Refused};
pub use issuer::Issuer;
pub use params::Params;
pub use redirect::Redirect;
pub use tokens::Issued;
pub use view::{RequestRow, Requests, deny, requests};

use super::remote::{Fetcher, Reach};
use super::token::{Kind, Secret};
use crate::clock::Clock;
use crate::store::Store;
use crate::store::oauth::Asked;
use std::sync::{Arc, Mutex};

/// How long a request waits for its owner, milliseconds.
const REQUEST_LASTS_MS: u64 = 10 * 60 * 1000;

/// Authorization codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {}

impl Kind for Authorization {
    const PREFIX: &'static str = "hcc_";
}

/// Refresh tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refresh {}

impl Kind for Refresh {
    const PREFIX: &'static str = "hcr_";
}

/// Requests that wait, as the browser that has brought them knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {}

impl Kind for Waiting {
    const PREFIX: &'static str = "hcq_";
}

/// An authorization code: it is redeemed for tokens, once.
pub type Code = Secret<Authorization>;

/// A refresh token: it is redeemed for a new pair, once.
pub type RefreshToken = Secret<Refresh>;

/// What a browser knows a request by.
pub type RequestId = Secret<Waiting>;

/// The authorization server of one user.
pub struct AuthorizationServer {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    user_id: String,
    documents: Fetcher,
    consented: Mutex<Vec<consent::Consented>>,
}

impl AuthorizationServer {
    /// The server that gives grants of this user's.
    pub fn new(store: Arc<Store>, clock: Arc<dyn Clock>, user_id: String) -> Self {
        let documents = Fetcher::new(Reach::Public, Arc::clone(&clock));
        Self { store, clock, user_id, documents, consented: Mutex::default() }
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().unix_ms
    }

    /// When requests were asked that wait still.
    fn waiting(&self) -> Asked {
        waiting(&*self.clock)
    }
}

fn waiting(clock: &dyn Clock) -> Asked {
    let now_ms = clock.now().unix_ms;
    now_ms.saturating_sub(REQUEST_LASTS_MS)..=now_ms.saturating_add(REQUEST_LASTS_MS)
}

#[cfg(test)]
mod tests;
