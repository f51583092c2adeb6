//! Clients that nobody has registered: their id is the address of a document in which they describe themselves (OAuth Client ID
//! Metadata Documents, draft-ietf-oauth-client-id-metadata-document). Whose site it is vouches for what stands in it.

use super::AuthorizationServer;
use super::clients::ClientMetadata;
use super::error::{ErrorCode, OAuthError};
use crate::auth::RemoteError;
use crate::store::oauth::Client;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// Such a document.
#[derive(Debug, Deserialize)]
struct Document {
    client_id: String,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    #[serde(flatten)]
    metadata: ClientMetadata,
}

/// The address that a client's id is; `None`: it is none that a document can stand at.
pub(super) fn address(id: &str) -> Option<Url> {
    let url = Url::parse(id).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    // Two spellings of one address would be two clients.
    (url.scheme() == "https" && url.path() != "/" && is_plain && url.as_str() == id).then_some(url)
}

impl AuthorizationServer {
    /// The client of this id: one that has registered, or one that describes itself at an address.
    ///
    /// # Errors
    /// When there is none, or that cannot be told.
    pub async fn find_client(&self, id: &str) -> Result<Client, OAuthError> {
        let Some(url) = address(id) else { return self.registered(id) };
        match self.documents.json(&url).await {
            Ok(document) => described(&document.value, id, self.now_ms()),
            Err(error @ RemoteError::Busy) => {
                Err(OAuthError::new(ErrorCode::TemporarilyUnavailable, error.to_string()))
            }
            Err(error) => {
                let why = format!("the document that describes this client cannot be had: {error}");
                Err(OAuthError::new(ErrorCode::InvalidClient, why))
            }
        }
    }
}

/// The client that a document at its id's address describes.
fn described(document: &Value, id: &str, now_ms: u64) -> Result<Client, OAuthError> {
    let refused = |why| OAuthError::new(ErrorCode::InvalidClient, why);
    let document =
        Document::deserialize(document).map_err(|_| refused("what describes this client is no such document"))?;
    if document.client_id != id {
        return Err(refused("the document that describes this client is another client's"));
    }
    if document.token_endpoint_auth_method.is_some_and(|method| method != "none") {
        return Err(refused("this client wants to prove who it is, which is not done here"));
    }
    document.metadata.client(id.to_owned(), now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "https://agents.example/client.json";

    #[test]
    fn an_address_with_a_path_is_an_id_in_one_spelling() {
        assert!(address(ID).is_some() && address("https://agents.example:8443/a?b=c").is_some());
        for other in [
            "hci_00",
            "https://agents.example",
            "https://agents.example/",
            "http://agents.example/client.json",
            "https://Agents.example/client.json",
            "https://agents.example/a/../client.json",
            "https://agents.example:443/a",
            "https://ada@agents.example/client.json",
            "https://agents.example/client.json#a",
            " https://agents.example/a",
        ] {
            assert!(address(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_document_describes_the_client_at_its_own_address() {
        let good = json!({"client_id": ID, "client_name": "Agents", "redirect_uris": ["http://127.0.0.1/cb"],
            "token_endpoint_auth_method": "none", "logo_uri": "https://agents.example/logo"});
        let client = described(&good, ID, 7).unwrap();
        assert_eq!((client.id.as_str(), client.name.as_deref()), (ID, Some("Agents")));
        for (name, wrong) in [
            ("client_id", json!("https://agents.example/other.json")),
            ("client_id", json!(null)),
            ("token_endpoint_auth_method", json!("private_key_jwt")),
            ("redirect_uris", json!(["http://agents.example/cb"])),
            ("redirect_uris", json!([])),
            ("redirect_uris", json!("http://127.0.0.1/cb")),
            ("grant_types", json!(["client_credentials"])),
        ] {
            let mut bad = good.clone();
            bad[name] = wrong;
            assert!(described(&bad, ID, 7).is_err(), "{bad}");
        }
        assert!(described(&json!([]), ID, 7).is_err());
    }
}
