//! The authorization server, step by step and out of step.

mod any_order;
mod asking;
mod described;
mod redeeming;

use super::redirect::Redirect;
use super::*;
use crate::auth::{Denied, Gate, Principal, Scope, Scopes};
use crate::clock::ManualClock;
use crate::store::oauth::Client;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

const NOON: u64 = 1_800_000_000_000;
const REDIRECT: &str = "http://127.0.0.1:1234/callback";
const VERIFIER: &str = "a-verifier-that-is-long-enough-for-anybody-1";

/// A server at home, with a client that has registered.
struct Home {
    _dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: Arc<Store>,
    server: AuthorizationServer,
    gate: Gate,
    issuer: Issuer,
    client: Client,
}

/// Parameters that can be changed one by one.
type Sent = BTreeMap<&'static str, String>;

fn params(sent: &Sent) -> Params {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    Params::parse(form.extend_pairs(sent).finish().as_bytes()).unwrap()
}

/// The same parameters with one more, or one changed; an empty one is as one that is missing.
fn with(sent: &Sent, name: &'static str, value: &str) -> Sent {
    let mut sent = sent.clone();
    sent.insert(name, value.to_owned());
    sent
}

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))
}

/// What an answer that was sent to a client says.
fn says(redirect: &Redirect) -> BTreeMap<String, String> {
    Url::parse(&redirect.to_string()).unwrap().query_pairs().into_owned().collect()
}

fn names(scopes: &Scopes) -> String {
    scopes.to_string()
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (clock, store) = (Arc::new(ManualClock::at(NOON)), Arc::new(Store::at(dir.path())));
        let now = || Arc::clone(&clock) as Arc<dyn Clock>;
        let server = AuthorizationServer::new(Arc::clone(&store), now(), "ada".into());
        let gate = Gate::open(Arc::new(store.another()), now());
        let client = server.register(metadata("Agent", &[REDIRECT])).unwrap();
        Self { _dir: dir, clock, store, server, gate, issuer: Issuer::at("http://localhost:7878"), client }
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A request for authorization that is as it should be.
    fn asks(&self) -> Sent {
        [
            ("client_id", self.client.id.clone()),
            ("redirect_uri", REDIRECT.into()),
            ("response_type", "code".into()),
            ("code_challenge", challenge()),
            ("code_challenge_method", "S256".into()),
            ("resource", self.issuer.resource()),
            ("scope", "status:read clients:read".into()),
            ("state", "its state".into()),
        ]
        .into()
    }

    fn begin(&self, sent: &Sent) -> Result<Begun, Refused> {
        self.server.begin(&self.client, &params(sent), &self.issuer)
    }

    fn answer(&self, id: &RequestId, code: &str, scopes: &str) -> Result<Answered, Refused> {
        self.server.consent(id, &Answer { code, scopes: Scopes::of_text(scopes) }, &self.issuer)
    }

    /// The code that comes of a request which the owner consents to.
    fn code(&self) -> String {
        let begun = self.begin(&self.asks()).unwrap();
        let Ok(Answered::Granted(redirect)) =
            self.answer(&begun.id, &begun.request.user_code, "status:read clients:read")
        else {
            panic!("the owner consents");
        };
        says(&redirect)["code"].clone()
    }

    /// A request for tokens that is as it should be.
    fn redeems(&self, code: &str) -> Sent {
        [
            ("grant_type", "authorization_code".into()),
            ("client_id", self.client.id.clone()),
            ("redirect_uri", REDIRECT.into()),
            ("code", code.into()),
            ("code_verifier", VERIFIER.into()),
            ("resource", self.issuer.resource()),
        ]
        .into()
    }

    fn refreshes(&self, token: &RefreshToken) -> Sent {
        [
            ("grant_type", "refresh_token".into()),
            ("client_id", self.client.id.clone()),
            ("refresh_token", token.reveal().into()),
        ]
        .into()
    }

    fn token(&self, sent: &Sent) -> Result<Issued, OAuthError> {
        self.server.token(&params(sent), &self.issuer)
    }

    fn refresh(&self, token: &RefreshToken) -> Result<Issued, OAuthError> {
        self.token(&self.refreshes(token))
    }

    fn tokens(&self) -> Issued {
        self.token(&self.redeems(&self.code())).unwrap()
    }

    async fn admit(&self, issued: &Issued) -> Result<Principal, Denied> {
        self.gate.admit(Some(issued.access.reveal())).await.map(|admitted| admitted.principal)
    }

    fn revoked(&self) -> Vec<bool> {
        self.store.grants("ada").unwrap().iter().map(|grant| grant.revoked_at_ms.is_some()).collect()
    }
}

fn metadata(name: &str, redirect_uris: &[&str]) -> ClientMetadata {
    serde_json::from_value(serde_json::json!({"client_name": name, "redirect_uris": redirect_uris})).unwrap()
}
