//! Asking for consent: the address that a person opens, and what becomes of the answer.

use super::discovery::{Discovered, in_words};
use super::kept::Kept;
use super::redirect::{Answer, Callback};
use super::{Access, now};
use crate::text::Wait;
use rmcp::transport::auth::OAuthClientConfig;
use rmcp::transport::{AuthorizationManager, CredentialStore as _, InMemoryCredentialStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// A consent that is asked for.
pub struct Asked {
    asking: Asking,
    callback: Callback,
    state: String,
}

/// What it takes to make tokens of an answer.
struct Asking {
    access: Arc<Access>,
    found: Discovered,
    store: InMemoryCredentialStore,
    client_secret: Option<String>,
    url: Url,
}

impl Access {
    /// Asks for consent, to these scopes beside those that are configured and those that were granted before.
    ///
    /// # Errors
    /// In words, when nobody can be asked.
    pub async fn ask(self: &Arc<Self>, scopes: &[String]) -> Result<Asked, String> {
        let mut found = self.discover().await?;
        let metadata = &found.metadata;
        found.wire.check(&metadata.authorization_endpoint)?;
        // MCP wants them to be left that do not say so; rmcp asks them all the same.
        let pkce = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !pkce.iter().any(|method| method == "S256") {
            return Err("its authorization server does not say that it protects codes (PKCE with S256)".into());
        }
        let store = InMemoryCredentialStore::new();
        found.manager.set_credential_store(store.clone());
        let callback = Callback::open(self.settings.redirect_port).await?;
        let scopes = self.scopes(&found.manager, scopes).await?;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client_secret = self.introduce(&mut found, callback.address.as_str(), &scopes).await?;
        let url = found.manager.get_authorization_url(&scopes).await.map_err(|error| in_words(&error))?;
        let url: Url = url.parse().map_err(|_| "its authorization server names no address to open")?;
        let state = parameter(&url, "state").ok_or("its authorization server is asked without a state")?;
        let asking = Asking { access: Arc::clone(self), found, store, client_secret, url };
        Ok(Asked { asking, callback, state })
    }

    /// What is asked for.
    async fn scopes(&self, manager: &AuthorizationManager, more: &[String]) -> Result<Vec<String>, String> {
        let mut scopes = match self.settings.scopes.is_empty() {
            // Who asks for one thing more wants to keep what there is, and not to have all that there could be.
            true if !more.is_empty() => self.read().ok().flatten().map(|kept| kept.credentials.granted_scopes),
            true => Some(manager.select_initial_scopes(&[]).await),
            false => Some(self.settings.scopes.clone()),
        }
        .unwrap_or_default();
        for scope in more {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Ok(scopes)
    }

    /// Tells the authorization server which client it is: one that it knows, one that describes itself, or a new one. The
    /// secret that a new one is given has to be kept.
    async fn introduce(
        &self,
        found: &mut Discovered,
        redirect: &str,
        scopes: &[&str],
    ) -> Result<Option<String>, String> {
        let describes = found.metadata.additional_fields.get("client_id_metadata_document_supported");
        let describes = describes.is_some_and(|supported| supported == true);
        let described = self.settings.client_metadata_url.as_ref().filter(|_| describes);
        let Some(id) = self.settings.client_id.as_ref().or(described) else {
            if found.metadata.registration_endpoint.is_none() {
                return Err(
                    "its authorization server registers no clients: client_id or client_metadata_url is wanted".into(),
                );
            }
            let registered = found.manager.register_client(env!("CARGO_PKG_NAME"), redirect, scopes).await;
            let said = || found.wire.said().map(|said| said.words);
            let registered = registered.map_err(|error| {
                let why = said().unwrap_or_else(|| in_words(&error));
                format!("its authorization server does not register the client: {why}")
            })?;
            return Ok(registered.client_secret);
        };
        let mut config = OAuthClientConfig::new(id, redirect);
        config.client_secret = self.secret()?;
        found.manager.configure_client(config).map_err(|error| in_words(&error))?;
        Ok(None)
    }
}

impl Asked {
    /// The address to open in a browser.
    pub fn url(&self) -> &Url {
        &self.asking.url
    }

    /// Where the browser is sent with the answer.
    pub fn redirect(&self) -> &Url {
        &self.callback.address
    }

    /// Waits so long for the answer, and keeps what comes of it.
    ///
    /// # Errors
    /// In words, when none comes, or nothing is granted.
    pub async fn answered(self, patience: Duration) -> Result<(), String> {
        let answer = timeout(patience, self.callback.answer(&self.state)).await;
        let answer = answer.map_err(|_| format!("nobody has answered within {}", Wait(patience)))?;
        self.asking.take(answer, &self.state).await
    }

    /// Takes the address that the browser was sent to, from whoever saw it, and keeps what comes of it.
    ///
    /// # Errors
    /// In words, when it is not the answer, or nothing is granted.
    pub async fn pasted(self, text: &str) -> Result<(), String> {
        let url = text.trim().parse().map_err(|_| "this is no address: paste all that the browser shows")?;
        self.asking.take(Answer::of(&url, &self.state)?, &self.state).await
    }
}

impl Asking {
    /// Makes tokens of the answer, and keeps them.
    async fn take(self, answer: Answer, state: &str) -> Result<(), String> {
        let (code, issuer) = match answer {
            Answer::Code { code, issuer } => (code, issuer),
            Answer::Refused(why) => return Err(format!("the access was refused: {why}")),
        };
        let Self { access, found, store, client_secret, url } = self;
        let is_other = issuer.is_some() && issuer != found.metadata.issuer;
        let says_who = found.metadata.additional_fields.get("authorization_response_iss_parameter_supported");
        if is_other || (issuer.is_none() && says_who.is_some_and(|says| says == true)) {
            return Err("the answer does not come from the authorization server that was asked".into());
        }
        let exchanged = found.manager.exchange_code_for_token_with_issuer(&code, state, issuer.as_deref()).await;
        if exchanged.is_err() {
            let said = found.wire.said().map_or("its answer holds no token".to_owned(), |said| said.words);
            return Err(format!("its authorization server gives no token: {said}"));
        }
        let credentials = store.load().await.map_err(|error| in_words(&error))?.ok_or("no token came")?;
        let kept = Kept {
            url: access.url.clone(),
            resource: parameter(&url, "resource").unwrap_or_else(|| access.url.to_string()),
            since: now(),
            client_secret,
            metadata: found.metadata,
            credentials,
            ended: None,
        };
        let kept = kept.checked()?;
        let lock = access.keep.lock().await.map_err(|error| error.to_string())?;
        access.keep.write(&kept, &lock).map_err(|error| error.to_string())
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
