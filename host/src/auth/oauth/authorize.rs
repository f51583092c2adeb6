//! Requests for authorization: what clients ask for before anybody has consented (RFC 6749, section 4.1.1).

use super::error::{ErrorCode, OAuthError, Refused};
use super::params::Params;
use super::redirect::{self, Redirect};
use super::user_code::UserCode;
use super::{AuthorizationServer, Issuer, RequestId, pkce};
use crate::auth::{Scope, Scopes};
use crate::store::oauth::{Client, Request};

/// The longest `state`, bytes.
const STATE_MAX: usize = 4096;

/// The most requests that wait at a time.
const MOST_WAITING: u32 = 32;

/// A request that waits for the owner.
#[derive(Debug)]
pub struct Begun {
    /// What the browser knows it by.
    pub id: RequestId,
    /// The request.
    pub request: Request,
}

impl AuthorizationServer {
    /// Takes up a client's request, for the owner to consent to.
    ///
    /// # Errors
    /// When it cannot be granted, whoever consents. Where answers may be sent is looked at first: until that is sure, nothing is
    /// sent anywhere.
    pub fn begin(&self, client: &Client, params: &Params, issuer: &Issuer) -> Result<Begun, Refused> {
        let asked = params.need("redirect_uri")?;
        let redirect = redirect::find(&client.redirect_uris, asked).ok_or_else(|| {
            OAuthError::new(ErrorCode::InvalidRequest, "redirect_uri is none that this client has registered")
        })?;
        let state = params.get("state");
        if state.is_some_and(|state| state.len() > STATE_MAX) {
            return Err(OAuthError::new(ErrorCode::InvalidRequest, "state is too long").into());
        }
        let refused = |error| refused(error, redirect.clone(), state, issuer);
        let wanted = Wanted::of(params, issuer).map_err(refused)?;
        let id = RequestId::generate()?;
        let request = Request {
            id: id.digest(),
            client_id: client.id.clone(),
            client_name: client.name.clone(),
            redirect_uri: asked.to_owned(),
            state: state.map(str::to_owned),
            scopes: wanted.scopes.to_string(),
            resource: issuer.resource(),
            challenge: wanted.challenge,
            user_code: UserCode::generate()?.to_string(),
            tries: 0,
            asked_at_ms: self.now_ms(),
        };
        self.store.add_request(&request, &self.waiting(), MOST_WAITING)?;
        Ok(Begun { id, request })
    }
}

/// What a request wants, once it is sure where the answer goes.
struct Wanted {
    scopes: Scopes,
    challenge: String,
}

impl Wanted {
    fn of(params: &Params, issuer: &Issuer) -> Result<Self, OAuthError> {
        let refused = |code, why: &'static str| Err(OAuthError::new(code, why));
        if params.need("response_type")? != "code" {
            return refused(ErrorCode::UnsupportedResponseType, "response_type has to be code");
        }
        if params.get("response_mode").is_some_and(|mode| mode != "query") {
            return refused(ErrorCode::InvalidRequest, "response_mode has to be query");
        }
        let challenge = pkce::challenge(params.get("code_challenge"), params.get("code_challenge_method"))?;
        if params.get("resource").is_some_and(|resource| !issuer.is_meant_by(resource)) {
            return refused(ErrorCode::InvalidTarget, "resource is not this server");
        }
        // Names that are not known are passed over, as RFC 6749 allows: what was granted is said with the token.
        let scopes = params.get("scope").map_or_else(|| [Scope::StatusRead].into_iter().collect(), Scopes::of_text);
        if scopes.is_empty() {
            return refused(ErrorCode::InvalidScope, "no scope that was asked for is known here");
        }
        Ok(Self { scopes, challenge })
    }
}

/// Says to a client that there will be no code.
pub(super) fn refused(error: OAuthError, redirect: Redirect, state: Option<&str>, issuer: &Issuer) -> Refused {
    let params = [
        ("error", Some(error.code.as_str())),
        ("error_description", Some(&*error.description)),
        ("state", state),
        ("iss", Some(issuer.as_str())),
    ];
    let redirect = redirect.with(&params);
    Refused::ToClient(error, redirect)
}
