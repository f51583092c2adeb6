//! OAuth with an upstream server, on top of rmcp's client: who consents, what is kept of it, and how it stays good.
//!
//! [`Access`] is the one handle. `login` asks for consent, with what comes back over `redirect`; `kept` is the file that holds
//! what came of it; `token` hands out tokens and renews them, once, however many processes want to; `client` sends them.
//! rmcp finds the authorization server, makes the requests and checks state, issuer and resource; all of them go through
//! `wire`, which bounds where to, how long and how much. What rmcp would let pass is refused in `discovery`.
//!
//! Whether somebody is logged in has three values: they are, they are not ([`NoToken::LoggedOut`]), or it cannot be told
//! ([`NoToken::Unknown`]): an authorization server that is down has revoked nothing.

mod client;
mod discovery;
mod kept;
mod login;
mod logout;
mod redirect;
mod token;
mod view;
mod wire;

pub use client::Authorized;
pub use kept::KeptError;
pub use login::Asked;
pub use logout::Revoked;
pub use token::NoToken;
pub use view::{LoginRow, LoginState};

use super::mask::Mask;
use super::secret::SecretPlace;
use crate::clock::{Clock, SystemClock};
use crate::config::{Dirs, Environment, Grant, OAuth, OAuthSetting, Upstream};
use kept::Keep;
use std::sync::Arc;
use url::Url;

/// What no log may hold: rmcp tells there which codes it exchanges, and what comes of it.
pub const NEVER_LOGGED: &str = "rmcp::transport::auth=off";

/// Access to one server by OAuth.
#[derive(Debug)]
pub struct Access {
    /// The server's name in the configuration.
    upstream: Arc<str>,
    /// Where it is. What was granted is sent nowhere else.
    url: Url,
    /// How it is asked for.
    settings: OAuth,
    keep: Keep,
    /// Hides what was sent for it in confidence.
    pub(super) mask: Mask,
}

impl Access {
    /// Access to the server that is configured so; `None`: it is not asked for by OAuth. What is granted is kept below the
    /// state directory.
    ///
    /// # Errors
    /// In words, when there is no place for it, or it leads nowhere.
    pub fn of(upstream: &Upstream) -> Result<Option<Self>, String> {
        let (Some(settings), Some(url)) = (upstream.oauth.as_ref().and_then(OAuthSetting::oauth), &upstream.url) else {
            return Ok(None);
        };
        let url = url.parse().map_err(|error| format!("no URL: {error}"))?;
        let dirs = Dirs::of(&Environment::of_process()).map_err(|error| error.to_string())?;
        let keep = Keep::of(&dirs.state, &upstream.name);
        Ok(Some(Self { upstream: upstream.name.as_str().into(), url, settings, keep, mask: Mask::default() }))
    }

    /// Whether a person has to consent.
    pub fn needs_consent(&self) -> bool {
        self.settings.grant == Grant::AuthorizationCode
    }

    /// The secret of a client that is configured.
    fn secret(&self) -> Result<Option<String>, String> {
        let OAuth { client_secret_env, client_secret_file, .. } = &self.settings;
        let place = SecretPlace::of(client_secret_env.as_ref(), client_secret_file.as_ref());
        place.map(|place| place.read("the client's secret")).transpose()
    }

    /// The command that asks for consent, for this server.
    fn command(&self) -> String {
        format!("headcount upstream login {}", self.upstream)
    }
}

/// The time, as logins have it: in Unix milliseconds.
fn now() -> u64 {
    SystemClock::default().now().unix_ms
}
