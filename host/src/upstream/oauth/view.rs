//! How a login stands, as far as it is known here: nobody is asked.

use super::{Access, now};
use crate::config::{Grant, Upstream};
use crate::report;
use crate::text::clean;
use serde::{Deserialize, Serialize};

/// Whether somebody is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// Somebody is.
    LoggedIn,
    /// Nobody is, or it has ended.
    LoggedOut,
    /// What is kept of it cannot be read.
    Unknown,
}

/// How a login stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginRow {
    /// Whether somebody is logged in.
    pub state: LoginState,
    /// Since when.
    pub since: Option<String>,
    /// Until when the access token holds, if its sender has said.
    pub until: Option<String>,
    /// Whether it is renewed by itself then.
    pub renews: bool,
    /// Who has granted it.
    pub issuer: Option<String>,
    /// What was granted.
    pub scopes: Vec<String>,
    /// Why nobody is logged in any more, or it cannot be told.
    pub reason: Option<String>,
}

impl LoginRow {
    /// How the login to a server stands; `None`: access to it is not asked for by OAuth.
    pub fn of(upstream: &Upstream) -> Option<Self> {
        // Where it has no place, the server cannot be used, and says why.
        Some(Access::of(upstream).ok()??.row())
    }
}

impl Access {
    /// How the login stands.
    pub fn row(&self) -> LoginRow {
        let without = |state, reason| LoginRow {
            state,
            since: None,
            until: None,
            renews: false,
            issuer: None,
            scopes: vec![],
            reason,
        };
        let kept = match self.read() {
            Ok(Some(kept)) => kept,
            Ok(None) => return without(LoginState::LoggedOut, None),
            Err(error) => return without(LoginState::Unknown, Some(error.to_string())),
        };
        let Some(tokens) = kept.tokens() else { return without(LoginState::LoggedOut, None) };
        let until = kept.until(&tokens);
        let renews =
            kept.ended.is_none() && (tokens.refresh_token.is_some() || self.settings.grant == Grant::ClientCredentials);
        let holds = renews || until.is_none_or(|until| now() < until);
        LoginRow {
            state: if holds { LoginState::LoggedIn } else { LoginState::LoggedOut },
            since: Some(report::time(kept.since)),
            until: until.map(report::time),
            renews,
            issuer: kept.metadata.issuer.as_deref().map(clean),
            scopes: kept.credentials.granted_scopes.iter().map(|scope| clean(scope)).collect(),
            reason: kept.ended.clone(),
        }
    }
}
