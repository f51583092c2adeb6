//! Ending a login: at the authorization server where it lets us (RFC 7009), and here.

use super::Access;
use super::kept::Kept;
use super::wire::Wire;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request};
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

/// What has become of the grant at the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// There was none.
    Nothing,
    /// It has ended.
    Yes,
    /// The server has no way to end it.
    NoWay,
    /// It cannot be told.
    Unknown(String),
}

impl Access {
    /// Ends the login. Here it has ended whatever the authorization server says.
    ///
    /// # Errors
    /// In words, when what is kept of it cannot be removed.
    pub async fn log_out(&self) -> Result<Revoked, String> {
        let lock = self.keep.lock().await.map_err(|error| error.to_string())?;
        let revoked = match self.keep.read() {
            Ok(Some(kept)) => self.revoke(&kept).await,
            Ok(None) => Revoked::Nothing,
            Err(error) => Revoked::Unknown(error.to_string()),
        };
        self.keep.remove(&lock).map_err(|error| error.to_string())?;
        Ok(revoked)
    }

    /// Ends the grant. The refresh token stands for all of it.
    async fn revoke(&self, kept: &Kept) -> Revoked {
        let (Some(endpoint), Some(tokens)) =
            (kept.metadata.additional_fields.get("revocation_endpoint").and_then(Value::as_str), kept.tokens())
        else {
            return Revoked::NoWay;
        };
        let token = tokens.refresh_token.as_ref().unwrap_or(&tokens.access_token);
        let request = match self.secret() {
            Ok(secret) => request(endpoint, token, kept, secret.or_else(|| kept.client_secret.clone())),
            Err(why) => return Revoked::Unknown(why),
        };
        let Ok(request) = request else { return Revoked::Unknown("its address is none".into()) };
        let sent = match Wire::to(&kept.url, self.mask.clone()).await {
            Ok(wire) => wire.send(request).await.map(|answer| (answer.status(), wire.said())),
            Err(why) => Err(why),
        };
        match sent {
            Ok((status, _)) if status.is_success() => Revoked::Yes,
            Ok((_, said)) => Revoked::Unknown(said.map(|said| said.words).unwrap_or_default()),
            Err(why) => Revoked::Unknown(why),
        }
    }
}

fn request(endpoint: &str, token: &str, kept: &Kept, secret: Option<String>) -> http::Result<Request<Vec<u8>>> {
    let id = &kept.credentials.client_id;
    let mut form = Serializer::new(String::new());
    form.append_pair("token", token);
    let methods = ["revocation_endpoint_auth_methods_supported", "token_endpoint_auth_methods_supported"];
    let methods = methods.iter().find_map(|name| kept.metadata.additional_fields.get(*name)?.as_array());
    let posts = methods.is_some_and(|methods| methods.iter().any(|method| method == "client_secret_post"));
    let mut request = Request::post(endpoint).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    match secret {
        Some(secret) if !posts => {
            // RFC 6749, section 2.3.1: both are encoded as in a form first.
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let both = STANDARD.encode(format!("{}:{}", encoded(id), encoded(&secret)));
            let mut value = HeaderValue::try_from(format!("Basic {both}"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        secret => {
            // An empty field counts as none (RFC 6749, section 3.1), but servers made with the Python SDK want it to be there.
            form.append_pair("client_id", id).append_pair("client_secret", secret.as_deref().unwrap_or_default());
        }
    }
    request.body(form.finish().into_bytes())
}
