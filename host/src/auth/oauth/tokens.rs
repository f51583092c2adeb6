//! Tokens: given for codes and refresh tokens (RFC 6749, sections 4.1.3 and 6), and taken back (RFC 7009).

use super::error::{ErrorCode, OAuthError};
use super::params::Params;
use super::{AuthorizationServer, Code, Issuer, RefreshToken, pkce};
use crate::auth::grants::new_id;
use crate::auth::{Scopes, Token};
use crate::store::grants::Grant;
use crate::store::oauth::{Consent, Pair, Redeemed};

const SECOND_MS: u64 = 1000;
const DAY_MS: u64 = 24 * 60 * 60 * SECOND_MS;

/// How long a code holds, seconds.
const CODE_LASTS: u64 = 60;

/// How long codes are remembered, so that one that is shown twice gives itself away.
const CODE_KEPT_MS: u64 = DAY_MS;

/// How long an access token holds, seconds.
const ACCESS_LASTS: u64 = 60 * 60;

/// How long a grant lives under which no token is asked for: a client that is used at all asks each hour.
const UNUSED_MS: u64 = 90 * DAY_MS;

/// So many tokens of each kind are remembered for a grant. A refresh token that is not is known by its family, as a used one.
const MOST_OF_A_GRANT: u32 = 4096;

/// How long a refresh token may be shown again: clients refresh in parallel, and ask again for an answer that was lost.
const GRACE_MS: u64 = 30 * SECOND_MS;

/// Tokens that are given out.
#[derive(Debug)]
pub struct Issued {
    /// Lets the client in.
    pub access: Token,
    /// Gets it the next ones.
    pub refresh: RefreshToken,
    /// How long the access token holds, seconds.
    pub expires_in: u64,
    /// What it permits.
    pub scopes: Scopes,
}

impl AuthorizationServer {
    /// Gives tokens for a code or a refresh token. They are on the disk then.
    ///
    /// # Errors
    /// When what is shown does not hold, or is not this client's or not for this resource.
    pub fn token(&self, params: &Params, issuer: &Issuer) -> Result<Issued, OAuthError> {
        let grant_type = params.need("grant_type")?;
        if params.get("client_secret").is_some() || params.get("client_assertion").is_some() {
            return Err(OAuthError::new(ErrorCode::InvalidClient, "clients have no secret here"));
        }
        let client_id = params.need("client_id")?;
        if params.get("resource").is_some_and(|resource| !issuer.is_meant_by(resource)) {
            return Err(wrong_target());
        }
        match grant_type {
            "authorization_code" => self.redeem_code(client_id, params, issuer),
            "refresh_token" => self.refresh(client_id, params, issuer),
            _ => Err(OAuthError::new(
                ErrorCode::UnsupportedGrantType,
                "grant_type has to be authorization_code or refresh_token",
            )),
        }
    }

    fn redeem_code(&self, client_id: &str, params: &Params, issuer: &Issuer) -> Result<Issued, OAuthError> {
        let (shown, verifier) = (params.need("code")?, params.need("code_verifier")?);
        let redirect_uri = params.need("redirect_uri")?;
        self.check_client(client_id)?;
        let code = Code::parse(shown).ok_or_else(|| invalid("the code is none"))?;
        let consent = self.store.consent_of(&code.digest())?.filter(|consent| consent.client_id == client_id);
        let consent = consent.ok_or_else(|| invalid("the code is none of this client's, or has expired"))?;
        let now_ms = self.now_ms();
        // One that was redeemed is looked at no further: whoever shows it, its grant ends.
        if consent.grant_id.is_none() {
            check(&consent, redirect_uri, verifier, issuer, now_ms)?;
        }
        let refresh = RefreshToken::generate()?;
        let (issued, pair) = pair(refresh, Scopes::of_text(&consent.scopes), None, consent.resource.clone(), now_ms)?;
        let grant = self.grant(consent, now_ms)?;
        let redeemed = self.store.redeem_code(&code.digest(), &grant, &pair, now_ms.saturating_sub(CODE_KEPT_MS))?;
        given(redeemed, client_id, "the code was redeemed before; what was given for it is revoked")?;
        tracing::info!(grant = grant.id, client = client_id, "a client was granted access");
        Ok(issued)
    }

    fn refresh(&self, client_id: &str, params: &Params, issuer: &Issuer) -> Result<Issued, OAuthError> {
        let shown = params.need("refresh_token")?;
        self.check_client(client_id)?;
        let token = RefreshToken::parse(shown).ok_or_else(|| invalid("the refresh token is none"))?;
        let found = self.store.refreshes(&token.digest(), &token.family())?;
        let found = found.filter(|(grant, _)| grant.client_id.as_deref() == Some(client_id));
        let (grant, resource) = found.ok_or_else(|| invalid("the refresh token is none of this client's"))?;
        // What is known by its family alone is looked at no further: whoever shows it, its grant ends.
        if resource.is_some_and(|resource| resource != issuer.resource()) {
            return Err(wrong_target());
        }
        let granted = Scopes::of_text(&grant.scopes);
        let narrowed = params.get("scope").map(|wanted| narrow(&granted, wanted)).transpose()?;
        let (issued, pair) = pair(token.sibling()?, granted, narrowed, issuer.resource(), self.now_ms())?;
        let redeemed = self.store.redeem_refresh(&token.digest(), &pair, GRACE_MS)?;
        given(redeemed, client_id, "the refresh token was used before; its grant is revoked")?;
        Ok(issued)
    }

    /// The grant that comes of a consent.
    fn grant(&self, consent: Consent, now_ms: u64) -> Result<Grant, OAuthError> {
        Ok(Grant {
            id: new_id()?,
            user_id: self.user_id.clone(),
            name: consent.client_name.unwrap_or_else(|| consent.client_id.clone()),
            client_id: Some(consent.client_id),
            scopes: consent.scopes,
            created_at_ms: now_ms,
            expires_at_ms: Some(now_ms.saturating_add(UNUSED_MS)),
            last_used_at_ms: Some(now_ms),
            revoked_at_ms: None,
        })
    }

    /// Revokes the grant of a token, and all of its tokens with it: who disconnects wants to be cut off at once. A token that is
    /// none, or whose grant has ended, is revoked already.
    ///
    /// # Errors
    /// When the token is another client's, or that cannot be told, or not written.
    pub fn revoke(&self, params: &Params) -> Result<(), OAuthError> {
        let shown = params.need("token")?;
        let grant = if let Some(token) = Token::parse(shown) {
            self.store.grant_of(&token.digest())?.map(|shown| shown.grant)
        } else if let Some(token) = RefreshToken::parse(shown) {
            self.store.refreshes(&token.digest(), &token.family())?.map(|(grant, _)| grant)
        } else {
            None
        };
        let Some(grant) = grant else { return Ok(()) };
        if params.get("client_id").is_some_and(|client| grant.client_id.as_deref() != Some(client)) {
            return Err(invalid("the token is another client's"));
        }
        self.store.revoke_grant(&grant.user_id, &grant.id, self.now_ms())?;
        Ok(())
    }
}

/// Whether a code that was not redeemed yet may be, by who shows it.
fn check(
    consent: &Consent,
    redirect_uri: &str,
    verifier: &str,
    issuer: &Issuer,
    now_ms: u64,
) -> Result<(), OAuthError> {
    if consent.issued_at_ms.saturating_add(CODE_LASTS * SECOND_MS) <= now_ms {
        return Err(invalid("the code has expired"));
    }
    if consent.redirect_uri != redirect_uri {
        return Err(invalid("redirect_uri is not the one that the code was sent to"));
    }
    if !pkce::answers(&consent.challenge, verifier) {
        return Err(invalid("code_verifier does not answer the challenge"));
    }
    if consent.resource == issuer.resource() { Ok(()) } else { Err(wrong_target()) }
}

/// A new pair, and what is kept of it.
fn pair(
    refresh: RefreshToken,
    granted: Scopes,
    narrowed: Option<Scopes>,
    resource: String,
    now_ms: u64,
) -> Result<(Issued, Pair), OAuthError> {
    let access = Token::generate()?;
    let kept = Pair {
        access: access.digest(),
        access_expires_at_ms: now_ms.saturating_add(ACCESS_LASTS * SECOND_MS),
        access_scopes: narrowed.as_ref().map(ToString::to_string),
        refresh: refresh.digest(),
        family: refresh.family(),
        resource,
        grant_expires_at_ms: now_ms.saturating_add(UNUSED_MS),
        most: MOST_OF_A_GRANT,
        now_ms,
    };
    Ok((Issued { access, refresh, expires_in: ACCESS_LASTS, scopes: narrowed.unwrap_or(granted) }, kept))
}

/// What a refresh asks for of what was granted.
fn narrow(granted: &Scopes, wanted: &str) -> Result<Scopes, OAuthError> {
    let is_granted = |name: &str| name.parse().is_ok_and(|scope| granted.permit(scope));
    if !wanted.split(' ').filter(|name| !name.is_empty()).all(is_granted) {
        return Err(OAuthError::new(ErrorCode::InvalidScope, "scope names more than was granted"));
    }
    Ok(Scopes::of_text(wanted))
}

fn given(redeemed: Redeemed, client_id: &str, reused: &'static str) -> Result<(), OAuthError> {
    match redeemed {
        Redeemed::Given(_) => Ok(()),
        Redeemed::Unknown => Err(invalid("it has expired")),
        Redeemed::Ended => Err(invalid("the grant has ended")),
        Redeemed::Reused(grant) => {
            tracing::warn!(grant, client = client_id, "{reused}");
            Err(invalid(reused))
        }
    }
}

fn invalid(why: &'static str) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidGrant, why)
}

fn wrong_target() -> OAuthError {
    OAuthError::new(ErrorCode::InvalidTarget, "resource is not what this was given for")
}
