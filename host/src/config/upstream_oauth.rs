//! How access to an upstream server is asked for by OAuth, and what these settings may say together.

use super::upstreams::Upstream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use url::Url;

/// Whether OAuth is used, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OAuthSetting {
    /// It is, in this way.
    So(OAuth),
    /// `true`: it is, and the server says all that is needed.
    Whether(bool),
}

/// How access is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// Who consents.
    pub grant: Grant,
    /// The id of a client that is registered there already. Without one a client is registered when it is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub client_id: Option<String>,
    /// The variable of headcount's environment that holds that client's secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub client_secret_env: Option<String>,
    /// The file that holds it, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub client_secret_file: Option<PathBuf>,
    /// The address of a document that describes the client, for servers that take it as the client's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "https"))]
    pub client_metadata_url: Option<String>,
    /// What is asked for; empty = what the server says that it takes.
    #[schemars(extend("uniqueItems" = true))]
    pub scopes: Vec<String>,
    /// The port of this machine that the browser is sent back to; without one, any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub redirect_port: Option<u16>,
}

/// Who consents to the access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person, in a browser: `headcount upstream login`.
    #[default]
    AuthorizationCode,
    /// Nobody: the client is known there, and its secret is enough.
    ClientCredentials,
}

impl OAuthSetting {
    /// How access is asked for; `None`: not by OAuth.
    pub fn oauth(&self) -> Option<OAuth> {
        match self {
            Self::So(oauth) => Some(oauth.clone()),
            Self::Whether(is) => is.then(OAuth::default),
        }
    }

    pub(super) fn secret_file(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::So(oauth) => oauth.client_secret_file.as_mut(),
            Self::Whether(_) => None,
        }
    }
}

/// What is wrong with it: the key, empty for all of it, and why.
pub(super) fn faults(upstream: &Upstream) -> Vec<(&'static str, &'static str)> {
    let Some(oauth) = upstream.oauth.as_ref().and_then(OAuthSetting::oauth) else { return vec![] };
    let mut faults = Vec::new();
    let is_authorization = |name: &String| name.eq_ignore_ascii_case("authorization");
    if upstream.token_env.is_some()
        || upstream.token_file.is_some()
        || upstream.headers_env.keys().chain(upstream.headers_file.keys()).any(is_authorization)
    {
        faults.push(("", "wanted one place for the token, and there is another"));
    }
    let has_secret = oauth.client_secret_env.is_some() || oauth.client_secret_file.is_some();
    if oauth.client_secret_env.is_some() && oauth.client_secret_file.is_some() {
        faults.push(("client_secret_file", "wanted one place for the secret, and `client_secret_env` is another"));
    }
    if has_secret && oauth.client_id.is_none() {
        faults.push(("", "the secret of a client means nothing without `client_id`"));
    }
    if oauth.client_id.is_some() && oauth.client_metadata_url.is_some() {
        faults.push(("client_metadata_url", "wanted one id for the client, and `client_id` is another"));
    }
    if oauth.grant == Grant::ClientCredentials && (oauth.client_id.is_none() || !has_secret) {
        faults.push(("grant", "wanted `client_id` and its secret for client_credentials"));
    }
    // What may be the id of a client: an address with a path, as the drafts have it.
    let is_id = |text: &String| Url::parse(text).is_ok_and(|url| url.path() != "/" && url.fragment().is_none());
    if oauth.client_metadata_url.as_ref().is_some_and(|url| !is_id(url)) {
        faults.push(("client_metadata_url", "wanted an address with a path, and without a fragment"));
    }
    // RFC 6749, section 3.3.
    let is_scope =
        |scope: &String| !scope.is_empty() && scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
    if !oauth.scopes.iter().all(is_scope) {
        faults.push(("scopes", "wanted scopes of visible ASCII, without quotes and backslashes"));
    }
    faults
}
