//! Clients: what they say of themselves when they register (RFC 7591). All of them are public ones, which have no secret.

use super::error::{ErrorCode, OAuthError};
use super::{AuthorizationServer, document, redirect};
use crate::auth::grants::random_id;
use crate::store::oauth::Client;
use crate::text::clean;
use serde::Deserialize;

/// What the id of a client begins with.
const PREFIX: &str = "hci_";

/// So many clients that nobody has consented to are remembered.
const MOST_UNUSED: u32 = 200;

/// The most redirect URIs of a client.
const MOST_REDIRECTS: usize = 16;

/// The longest name of a client, in characters; the rest is cut off.
const NAME_MAX: usize = 64;

/// What a client says of itself: of RFC 7591, section 2, what matters here. What it would like beside that, such as a secret,
/// it is not given, and the answer says so.
#[derive(Debug, Clone, Deserialize)]
pub struct ClientMetadata {
    /// Where answers may be sent.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// What it calls itself.
    #[serde(default)]
    pub client_name: Option<String>,
    /// What it will show for tokens.
    #[serde(default)]
    pub grant_types: Option<Vec<String>>,
    /// What it will ask for.
    #[serde(default)]
    pub response_types: Option<Vec<String>>,
}

impl ClientMetadata {
    /// The client of this id that it describes.
    ///
    /// # Errors
    /// When answers could be sent nowhere or somewhere bad, or it wants to work in no way that there is here.
    pub(super) fn client(self, id: String, now_ms: u64) -> Result<Client, OAuthError> {
        let refused = |why| Err(OAuthError::new(ErrorCode::InvalidClientMetadata, why));
        if self.redirect_uris.is_empty() || self.redirect_uris.len() > MOST_REDIRECTS {
            return Err(OAuthError::new(
                ErrorCode::InvalidRedirectUri,
                format!("redirect_uris has to name between 1 and {MOST_REDIRECTS}"),
            ));
        }
        for uri in &self.redirect_uris {
            redirect::parse(uri)?;
        }
        let lacks =
            |list: &Option<Vec<String>>, word| list.as_ref().is_some_and(|list| !list.iter().any(|one| one == word));
        if lacks(&self.grant_types, "authorization_code") {
            return refused("grant_types has to name authorization_code");
        }
        if lacks(&self.response_types, "code") {
            return refused("response_types has to name code");
        }
        let name = self.client_name.map(|name| shown(&name)).filter(|name| !name.is_empty());
        Ok(Client { id, name, redirect_uris: self.redirect_uris, registered_at_ms: now_ms })
    }
}

/// A client's name as people may see it. Blanks that could make it look like several columns are one.
fn shown(name: &str) -> String {
    let words: Vec<_> = clean(name).split_whitespace().map(str::to_owned).collect();
    words.join(" ").chars().take(NAME_MAX).collect::<String>().trim_end().to_owned()
}

impl AuthorizationServer {
    /// Registers a client. It is on the disk then. Of those that the owner has never consented to the oldest make room.
    ///
    /// # Errors
    /// When what it says of itself cannot be, or nothing can be written.
    pub fn register(&self, metadata: ClientMetadata) -> Result<Client, OAuthError> {
        let client = metadata.client(random_id(PREFIX)?, self.now_ms())?;
        self.store.add_client(&client, MOST_UNUSED)?;
        Ok(client)
    }

    /// The client that has registered under this id.
    pub(super) fn registered(&self, id: &str) -> Result<Client, OAuthError> {
        self.store.client(id)?.ok_or_else(unknown)
    }

    /// Checks that a client may show what it was given: that it is one at all. What describes it is not fetched for that.
    pub(super) fn check_client(&self, id: &str) -> Result<(), OAuthError> {
        if document::address(id).is_some() { Ok(()) } else { self.registered(id).map(drop) }
    }
}

fn unknown() -> OAuthError {
    OAuthError::new(ErrorCode::InvalidClient, "there is no such client; it may have to register again")
}
