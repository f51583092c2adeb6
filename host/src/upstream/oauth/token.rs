//! The token that a request is sent with: the one that is kept, or what it is renewed by, which may be used once only.

use super::discovery::in_words;
use super::kept::{Kept, KeptError, Lock};
use super::wire::{Said, Wire};
use super::{Access, now};
use crate::config::Grant;
use rmcp::transport::auth::OAuthClientConfig;
use rmcp::transport::{
    AuthError, AuthorizationManager, ClientCredentialsConfig, CredentialStore as _, InMemoryCredentialStore,
};
use std::sync::Arc;

/// A token is renewed when it holds for less than this, or than half of its time.
const EARLY_MS: u64 = 30_000;

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// Nobody has consented, or it holds no longer.
    #[error("not logged in: {command}{}", .why.as_ref().map_or(String::new(), |why| format!(" ({why})")))]
    LoggedOut {
        /// What to do.
        command: String,
        /// Why, if somebody was logged in.
        why: Option<String>,
    },
    /// It cannot be told: who was logged in may be still.
    #[error("the login cannot be used now: {0}")]
    Unknown(String),
}

impl From<KeptError> for NoToken {
    fn from(error: KeptError) -> Self {
        Self::Unknown(error.to_string())
    }
}

impl Access {
    /// A token that holds, and that is not the one which the server has `refused`.
    ///
    /// # Errors
    /// When there is none.
    pub async fn token(self: &Arc<Self>, refused: Option<&str>) -> Result<String, NoToken> {
        if let Some(token) = self.read()?.and_then(|kept| usable(&kept, refused, now())) {
            return Ok(token);
        }
        let (access, refused) = (Arc::clone(self), refused.map(str::to_owned));
        // Who asks may be gone before the answer comes. What it holds must be kept all the same: the token that it was asked
        // for with is used up.
        let renewing = tokio::spawn(async move { access.renew(refused.as_deref()).await });
        renewing.await.unwrap_or_else(|error| Err(NoToken::Unknown(format!("renewing it was cut short: {error}"))))
    }

    /// The login, if it is one for this server.
    pub(super) fn read(&self) -> Result<Option<Kept>, KeptError> {
        Ok(self.keep.read()?.filter(|kept| kept.url == self.url))
    }

    /// Renews the token, unless somebody else has meanwhile.
    async fn renew(&self, refused: Option<&str>) -> Result<String, NoToken> {
        let lock = self.keep.lock().await?;
        let kept = self.read()?;
        if let Some(token) = kept.as_ref().and_then(|kept| usable(kept, refused, now())) {
            return Ok(token);
        }
        let renewed = match (self.settings.grant, &kept) {
            (Grant::ClientCredentials, _) => self.obtain().await,
            (Grant::AuthorizationCode, Some(kept)) => self.refresh(kept, &lock).await,
            (Grant::AuthorizationCode, None) => Err(self.logged_out(None)),
        };
        match (renewed, kept) {
            (Ok(renewed), _) => {
                self.keep.write(&renewed, &lock)?;
                usable(&renewed, refused, 0).ok_or_else(|| NoToken::Unknown("the same token came again".into()))
            }
            // It is not over yet, and who would renew it may be back until then.
            (Err(NoToken::Unknown(why)), Some(kept)) => {
                let tokens = kept.tokens().filter(|tokens| Some(tokens.access_token.as_str()) != refused);
                let holding = tokens.filter(|tokens| kept.until(tokens).is_some_and(|until| now() < until));
                holding.map(|tokens| tokens.access_token).ok_or(NoToken::Unknown(why))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Renews a login that somebody has consented to.
    async fn refresh(&self, kept: &Kept, lock: &Lock) -> Result<Kept, NoToken> {
        if let Some(why) = &kept.ended {
            return Err(self.logged_out(Some(why)));
        }
        if kept.tokens().is_none_or(|tokens| tokens.refresh_token.is_none()) {
            return Err(self.logged_out(Some("the login has ended, and cannot be renewed")));
        }
        // Where what comes could not be kept, what it is asked for with must not be used up.
        self.keep.write(kept, lock)?;
        let unknown = |error: AuthError| NoToken::Unknown(in_words(&error));
        let wire = Arc::new(Wire::to(&self.url, self.mask.clone()).await.map_err(NoToken::Unknown)?);
        let store = InMemoryCredentialStore::new();
        store.save(kept.credentials.clone()).await.map_err(unknown)?;
        let client: Arc<dyn rmcp::transport::OAuthHttpClient> = Arc::clone(&wire) as _;
        let manager = AuthorizationManager::new_with_oauth_http_client(kept.resource.as_str(), client).await;
        let mut manager = manager.map_err(unknown)?;
        manager.set_metadata(kept.metadata.clone());
        manager.set_credential_store(store.clone());
        let mut config = OAuthClientConfig::new(&kept.credentials.client_id, self.url.as_str());
        config.client_secret = self.secret().map_err(NoToken::Unknown)?.or_else(|| kept.client_secret.clone());
        manager.configure_client(config).map_err(unknown)?;
        if let Err(error) = manager.refresh_token().await {
            return Err(self.not_renewed(kept, lock, &error, wire.said())?);
        }
        let credentials = store.load().await.map_err(unknown)?.unwrap_or_else(|| kept.credentials.clone());
        Kept { credentials, ..kept.clone() }.checked().map_err(NoToken::Unknown)
    }

    /// What it means that a login was not renewed: whether it has ended, or nothing is known.
    fn not_renewed(&self, kept: &Kept, lock: &Lock, error: &AuthError, said: Option<Said>) -> Result<NoToken, NoToken> {
        let said = said.unwrap_or_else(|| Said { code: None, words: "its answer holds no token".into() });
        // A client that was registered for this login, and is known no more, does not come back. One that is configured may:
        // its secret may be wrong.
        let client_is_gone = self.settings.client_id.is_none()
            && said.code.as_deref().is_some_and(|code| ["invalid_client", "unauthorized_client"].contains(&code));
        if !matches!(error, AuthError::TokenRefreshRejected(_)) && !client_is_gone {
            return Ok(NoToken::Unknown(format!("its authorization server does not renew it: {}", said.words)));
        }
        let why = format!("its authorization server renews it no more: {}", said.words);
        self.keep.write(&Kept { ended: Some(why.clone()), ..kept.clone() }, lock)?;
        Ok(self.logged_out(Some(&why)))
    }

    /// Gets a token that nobody has to consent to.
    async fn obtain(&self) -> Result<Kept, NoToken> {
        let unknown = |error: AuthError| NoToken::Unknown(in_words(&error));
        let mut found = self.discover().await.map_err(NoToken::Unknown)?;
        let store = InMemoryCredentialStore::new();
        found.manager.set_credential_store(store.clone());
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: self.settings.client_id.clone().unwrap_or_default(),
            client_secret: self.secret().map_err(NoToken::Unknown)?.unwrap_or_default(),
            scopes: self.settings.scopes.clone(),
            resource: Some(self.url.to_string()),
        };
        found.manager.validate_client_credentials_metadata(&config).map_err(unknown)?;
        found.manager.configure_client_credentials(&config).map_err(unknown)?;
        if found.manager.exchange_client_credentials(&config).await.is_err() {
            let said = found.wire.said().map_or("its answer holds no token".to_owned(), |said| said.words);
            return Err(NoToken::Unknown(format!("its authorization server gives no token: {said}")));
        }
        let credentials = store.load().await.map_err(unknown)?;
        let credentials = credentials.ok_or_else(|| NoToken::Unknown("no token came".into()))?;
        let kept = Kept {
            url: self.url.clone(),
            resource: self.url.to_string(),
            since: now(),
            client_secret: None,
            metadata: found.metadata,
            credentials,
            ended: None,
        };
        kept.checked().map_err(NoToken::Unknown)
    }

    fn logged_out(&self, why: Option<&str>) -> NoToken {
        NoToken::LoggedOut { command: self.command(), why: why.map(str::to_owned) }
    }
}

/// The access token, if it holds for a while, and is not the one that was `refused`.
fn usable(kept: &Kept, refused: Option<&str>, now: u64) -> Option<String> {
    let tokens = kept.tokens()?;
    let early = EARLY_MS.min(tokens.expires_in.unwrap_or_default().saturating_mul(500));
    let holds = kept.until(&tokens).is_none_or(|until| now.saturating_add(early) < until);
    (holds && Some(tokens.access_token.as_str()) != refused).then_some(tokens.access_token)
}
