//! Who may come in over HTTP beside those whom headcount itself has given a token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Who may come in over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// Whether clients can ask for access over HTTP (OAuth), which you consent to by a code in your terminal.
    pub oauth: bool,
    /// Authorization servers whose tokens let in.
    #[serde(rename = "issuer")]
    #[schemars(extend("x-unique" = "issuer"))]
    pub issuers: Vec<Issuer>,
}

impl Default for Auth {
    fn default() -> Self {
        Self { oauth: true, issuers: Vec::new() }
    }
}

/// An authorization server whose tokens let in: JWTs that it has signed (RFC 9068).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// Its name, an https URL, as its tokens say it in `iss`.
    #[schemars(extend("format" = "https"))]
    pub issuer: String,
    /// What its tokens for this server have in `aud`: one of these.
    #[schemars(length(min = 1))]
    pub audience: Vec<String>,
    /// Where its keys are, as a JWK Set (RFC 7517): an https URL or a file. Without it, the issuer's metadata says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "https-or-file"))]
    pub jwks: Option<PathBuf>,
    /// How its tokens may be signed.
    #[serde(default = "SigningAlgorithm::all")]
    #[schemars(length(min = 1))]
    pub algorithms: Vec<SigningAlgorithm>,
    /// The claim that names the grant, as `sid` names a login. Without it, all that one client does for one user is one grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub grant_claim: Option<String>,
    /// The claim that names the user.
    #[serde(default = "sub")]
    #[schemars(length(min = 1))]
    pub user_claim: String,
    /// Which user of this machine is meant by which value of that claim. Nobody else may come in.
    pub users: BTreeMap<String, String>,
}

/// How a token may be signed (RFC 7518): with a key of which the issuer alone has the secret half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the standard's own names")]
pub enum SigningAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl SigningAlgorithm {
    /// All there are.
    pub fn all() -> Vec<Self> {
        use SigningAlgorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        vec![RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA]
    }
}

fn sub() -> String {
    "sub".into()
}

impl Issuer {
    /// Where its keys are, if that is no file.
    pub fn jwks_url(&self) -> Option<&str> {
        self.jwks.as_deref().and_then(Path::to_str).filter(|place| is_url(place))
    }

    /// The file that its keys are in, if it is one.
    pub(super) fn jwks_file(&mut self) -> Option<&mut PathBuf> {
        self.jwks.as_mut().filter(|place| !place.to_str().is_some_and(is_url))
    }
}

/// Whether a text that may be an address or a file is an address.
pub(super) fn is_url(text: &str) -> bool {
    text.contains("://")
}
