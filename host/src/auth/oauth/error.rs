//! What goes wrong, as the standards name it.

use super::redirect::Redirect;
use crate::store::StoreError;
use std::borrow::Cow;

/// The error codes of RFC 6749 (sections 4.1.2.1 and 5.2), RFC 8707 and RFC 7591 that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// A parameter is missing, stands twice or cannot be.
    InvalidRequest,
    /// The client is not known, or wants to prove who it is in a way that is not offered.
    InvalidClient,
    /// The code or refresh token does not hold, or is another client's.
    InvalidGrant,
    /// No scope that was asked for is known, or more than was consented to.
    InvalidScope,
    /// The resource is not this server.
    InvalidTarget,
    /// The owner does not consent.
    AccessDenied,
    /// Anything but a code is wanted.
    UnsupportedResponseType,
    /// Anything but a code or a refresh token is shown.
    UnsupportedGrantType,
    /// A redirect URI that a client registers cannot be one.
    InvalidRedirectUri,
    /// Something else in a registration cannot be.
    InvalidClientMetadata,
    /// It cannot be told now.
    TemporarilyUnavailable,
    /// Something that should not fail has failed.
    ServerError,
}

impl ErrorCode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::AccessDenied => "access_denied",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::ServerError => "server_error",
        }
    }
}

/// An error of OAuth. Its text repeats nothing of what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {description}", code.as_str())]
pub struct OAuthError {
    /// Which one.
    pub code: ErrorCode,
    /// What is the matter, for people.
    pub description: Cow<'static, str>,
}

impl OAuthError {
    /// An error of this kind.
    pub fn new(code: ErrorCode, description: impl Into<Cow<'static, str>>) -> Self {
        Self { code, description: description.into() }
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!("the authorization server cannot use its database: {error}");
        Self::new(ErrorCode::TemporarilyUnavailable, "it cannot be told now; the server's log says why")
    }
}

impl From<getrandom::Error> for OAuthError {
    fn from(error: getrandom::Error) -> Self {
        tracing::error!("the system gives no random bytes: {error}");
        Self::new(ErrorCode::ServerError, "no secret can be made")
    }
}

/// Why a request for authorization goes no further, and who is told.
#[derive(Debug)]
pub enum Refused {
    /// The user alone: who asks, or where the answer should go, is not to be trusted.
    ToUser(OAuthError),
    /// The client, by sending the browser back to it.
    ToClient(OAuthError, Redirect),
}

impl<E: Into<OAuthError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::ToUser(error.into())
    }
}
