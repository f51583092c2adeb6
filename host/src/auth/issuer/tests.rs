//! An issuer on this machine, tokens of it and of others, and who is let in.

use crate::auth::{Admitted, Denied, Gate, Issuers, Scope, revoke};
use crate::clock::{Clock, ManualClock};
use crate::config;
use crate::store::Store;
use crate::store::grants::Grant;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use headcount_tests::issuer::{SigningKey, TokenIssuer};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const NOON: u64 = 1_800_000_000;

/// A gate to which the tokens of an issuer open.
struct Door {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    issuer: TokenIssuer,
    key: SigningKey,
    gate: Gate,
    office: Store,
}

impl Door {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(configure: impl Fn(&mut config::Issuer)) -> Self {
        let (dir, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::at(NOON * 1000)));
        let key = SigningKey::new("one", Algorithm::ES256);
        let issuer = TokenIssuer::open(&[&key]);
        let mut configured = config::Issuer {
            issuer: issuer.url(),
            audience: vec!["https://headcount.example".into(), "headcount".into()],
            jwks: None,
            algorithms: config::SigningAlgorithm::all(),
            grant_claim: None,
            user_claim: "sub".into(),
            users: BTreeMap::from([("alice@example.org", "ada"), ("bob", "bob")].map(|(a, b)| (a.into(), b.into()))),
        };
        configure(&mut configured);
        let clock_too = Arc::clone(&clock) as Arc<dyn Clock>;
        let issuers = Issuers::new(&[configured], Arc::clone(&clock_too));
        let gate = Gate::open(Arc::new(Store::at(dir.path())), clock_too).trusting(issuers);
        let office = Store::at(dir.path());
        Self { dir, clock, issuer, key, gate, office }
    }

    /// The claims of a good token.
    fn claims(&self) -> Value {
        json!({
            "iss": self.issuer.url(), "aud": "headcount", "sub": "alice@example.org", "client_id": "desk",
            "iat": NOON, "exp": NOON + 300, "scope": "openid status:read", "sid": "login-1",
        })
    }

    /// A good token, but for these claims. Those that are null are left out.
    fn token(&self, other: Value) -> String {
        let mut claims = self.claims();
        for (name, value) in other.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        self.key.sign(&claims)
    }

    async fn admit(&self, token: &str) -> Result<Admitted, Denied> {
        self.gate.admit(Some(token)).await
    }

    /// Why a token lets nobody in.
    async fn refusal(&self, token: &str) -> &'static str {
        match self.admit(token).await {
            Err(Denied::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn grants(&self) -> Vec<Grant> {
        self.office.grants("ada").unwrap()
    }
}

#[tokio::test]
async fn a_token_of_the_issuer_lets_its_user_in_under_a_grant_that_is_in_the_ledger() {
    let door = Door::new();
    let admitted = door.admit(&door.token(json!({}))).await.unwrap().principal;
    assert_eq!((admitted.user_id.as_str(), admitted.client_id.as_deref()), ("ada", Some("desk")));
    assert_eq!(admitted.scopes.iter().collect::<Vec<_>>(), [Scope::StatusRead], "openid permits nothing here");
    let grants = door.grants();
    let grant = &grants[0];
    assert_eq!((grants.len(), &grant.id, grant.scopes.as_str()), (1, &admitted.grant_id, "status:read"));
    assert_eq!(grant.expires_at_ms, Some((NOON + 360) * 1000), "with the minute that clocks may differ");
    assert!(grant.name.starts_with("alice@example.org at 127.0.0.1:"), "{}", grant.name);
    assert_eq!(door.gate.issuers().names().collect::<Vec<_>>(), [door.issuer.url()]);
}

#[tokio::test]
async fn every_algorithm_with_two_keys_opens() {
    let door = Door::new();
    for (n, algorithm) in [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA, Algorithm::RS256].iter().enumerate() {
        let key = SigningKey::new(&format!("key-{n}"), *algorithm);
        door.issuer.publish(&[&door.key, &key]);
        door.clock.advance(Duration::from_secs(60));
        door.admit(&key.sign(&door.claims())).await.unwrap_or_else(|denied| panic!("{algorithm:?}: {denied}"));
    }
}

#[tokio::test]
async fn what_a_token_says_has_to_be_right() {
    let door = Door::new();
    let url = door.issuer.url();
    for (claims, why) in [
        (json!({"iss": "https://evil.example"}), "its issuer is not one of ours"),
        (json!({"iss": format!("{url}/")}), "its issuer is not one of ours"),
        (json!({"iss": [url]}), "its issuer is not one of ours"),
        (json!({"iss": null}), "its issuer is not one of ours"),
        (json!({"aud": "another"}), "it is not for this server"),
        (json!({"aud": ["another", "HEADCOUNT"]}), "it is not for this server"),
        (json!({"aud": null}), "it does not say what it is for"),
        (json!({"aud": 7}), "it does not say what it is for"),
        (json!({"exp": null}), "it does not say when it expires"),
        (json!({"exp": "tomorrow"}), "its dates are none"),
        (json!({"exp": -1}), "its dates are none"),
        (json!({"nbf": NOON + 61}), "its time has not come"),
        (json!({"nbf": "soon"}), "its dates are none"),
        (json!({"iat": NOON + 61}), "its time has not come"),
        (json!({"sub": null}), "it does not name its user"),
        (json!({"sub": 7}), "it does not name its user"),
        (json!({"client_id": null}), "it does not name its client"),
        (json!({"client_id": "a\u{1b}[2Jb"}), "its client's id cannot be one"),
        (json!({"client_id": "x".repeat(300)}), "its client's id cannot be one"),
    ] {
        assert_eq!(door.refusal(&door.token(claims.clone())).await, why, "{claims}");
    }
    assert!(matches!(door.admit(&door.token(json!({"exp": NOON - 60}))).await, Err(Denied::Expired)));
    for user in ["mallory", "Alice@example.org", "ada", ""] {
        let denied = door.admit(&door.token(json!({"sub": user}))).await.unwrap_err();
        assert!(matches!(denied, Denied::Stranger | Denied::Refused("it does not name its user")), "{user}: {denied}");
    }
    assert_eq!(door.grants(), [], "and none of them was taken up");
    for (n, claims) in [
        json!({"aud": ["another", "https://headcount.example"]}),
        json!({"exp": NOON - 59}),
        json!({"nbf": NOON + 60, "iat": 1_800_000_059.5}),
        json!({"exp": u64::MAX}),
        json!({"scope": null, "scp": ["clients:read", 7, "status:read"]}),
        json!({"client_id": null, "azp": "desk"}),
    ]
    .iter()
    .enumerate()
    {
        let admitted =
            door.admit(&door.token(claims.clone())).await.unwrap_or_else(|denied| panic!("{claims}: {denied}"));
        let scopes = admitted.principal.scopes.iter().count();
        assert_eq!(scopes, if n == 4 { 2 } else { 1 }, "{claims}");
    }
    let before = door.grants();
    for nothing in [json!({"scope": null, "client_id": "idle"}), json!({"scope": "openid", "client_id": "idle"})] {
        let denied = door.admit(&door.token(nothing)).await.unwrap_err();
        assert!(matches!(denied, Denied::Scopeless), "{denied}");
    }
    assert_eq!(door.grants(), before, "what permits nothing is no grant");
}

#[tokio::test]
async fn only_a_signature_of_the_issuers_own_key_counts() {
    let door = Door::new();
    let (stranger, rsa) = (SigningKey::new("one", Algorithm::ES256), SigningKey::new("rsa", Algorithm::RS256));
    door.issuer.publish(&[&door.key, &rsa]);
    let claims = door.claims();
    assert_eq!(door.refusal(&stranger.sign(&claims)).await, "its signature is wrong");
    let text = |header: Value, rest: &str| format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()));
    let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
    for alg in ["none", "None", "NONE", ""] {
        let unsigned = text(json!({"alg": alg, "typ": "JWT", "kid": "one"}), &format!("{payload}."));
        assert_eq!(door.refusal(&unsigned).await, "it is none known here", "{alg}");
    }
    // The public half of a key, which everybody has, as if it were a secret of both.
    let published = rsa.public().to_string();
    for secret in [rsa.public_bytes(), published.as_bytes()] {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(rsa.id.clone());
        let forged = encode(&header, &claims, &EncodingKey::from_secret(secret).unwrap()).unwrap();
        assert_eq!(door.refusal(&forged).await, "its algorithm is not allowed");
    }
    // A key that the token brings along, or leads to.
    for (name, value) in [
        ("jwk", stranger.public()),
        ("jku", json!(format!("{}/keys", door.issuer.url()))),
        ("x5u", json!("https://evil.example/key.pem")),
        ("x5c", json!(["MIIB"])),
    ] {
        door.issuer.asked();
        let mut header = serde_json::to_value(stranger.header()).unwrap();
        header[name] = value;
        let header = serde_json::from_value(header).unwrap();
        assert_eq!(door.refusal(&stranger.sign_with(&header, &claims)).await, "its signature is wrong", "{name}");
        assert_eq!(door.issuer.asked(), Vec::<String>::new(), "{name}");
    }
    let good = door.key.sign(&claims);
    let (rest, signature) = good.rsplit_once('.').unwrap();
    let mine = door.key.sign(&json!({"sub": "x"}));
    for forged in [
        format!("{rest}."),
        format!("{rest}.{}", &signature[..signature.len() - 2]),
        format!("{rest}.{}", mine.rsplit_once('.').unwrap().1),
        format!("{}.{signature}", mine.rsplit_once('.').unwrap().0),
        text(json!({"alg": "ES384", "kid": "one"}), &format!("{payload}.{signature}")),
        text(json!({"alg": "RS256", "kid": "one"}), &format!("{payload}.{signature}")),
    ] {
        door.clock.advance(Duration::from_millis(1));
        let denied = door.admit(&forged).await.unwrap_err();
        assert!(matches!(denied, Denied::Refused(_)), "{forged}: {denied}");
    }
    assert_eq!(door.grants(), []);
    assert!(door.admit(&good).await.is_ok());
}

#[tokio::test]
async fn a_token_for_something_else_is_none_for_access() {
    let door = Door::new();
    for (kind, fits) in [
        (Some("at+jwt"), true),
        (Some("application/AT+JWT"), true),
        (Some("JWT"), true),
        (None, true),
        (Some("logout+jwt"), false),
        (Some("dpop+jwt"), false),
        (Some("secevent+jwt"), false),
        (Some(""), false),
    ] {
        let mut header = door.key.header();
        header.typ = kind.map(str::to_owned);
        let admitted = door.admit(&door.key.sign_with(&header, &door.claims())).await;
        assert_eq!(admitted.is_ok(), fits, "{kind:?}: {admitted:?}");
    }
    let mut header = door.key.header();
    header.crit = Some(vec!["exp".into()]);
    assert_eq!(door.refusal(&door.key.sign_with(&header, &door.claims())).await, "it is none known here");
}

#[tokio::test]
async fn an_algorithm_that_is_not_in_the_list_is_refused_whoever_has_signed() {
    let door = Door::with(|issuer| issuer.algorithms = vec![config::SigningAlgorithm::RS256]);
    assert_eq!(door.refusal(&door.token(json!({}))).await, "its algorithm is not allowed");
}

#[tokio::test]
async fn giants_and_garbage_are_refused_without_anybody_being_asked() {
    let door = Door::new();
    let giant = door.token(json!({"filler": "x".repeat(8 << 10)}));
    assert_eq!(door.refusal(&giant).await, "it is too long");
    for garbage in ["", ".", "..", "...", "a.b.c", "e30.e30.", "Bearer x", "hct_abc", "\u{0}", "a.b.c.d.e"] {
        assert_eq!(door.refusal(garbage).await, "it is none known here", "{garbage:?}");
    }
    assert_eq!(door.issuer.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn what_was_revoked_here_stays_out_for_good() {
    let door = Door::new();
    let token = door.token(json!({}));
    let inside = door.admit(&token).await.unwrap();
    let elsewhere = door.admit(&door.token(json!({"client_id": "phone"}))).await.unwrap();
    revoke(&door.office, &*door.clock, "ada", &inside.principal.grant_id).unwrap().unwrap();
    assert!(matches!(door.admit(&token).await, Err(Denied::Revoked)), "at once");
    tokio::time::timeout(Duration::from_secs(30), inside.ended.cancelled()).await.expect("who is inside is sent away");
    let renewed = door.token(json!({"exp": NOON + 9000, "scope": "status:read clients:read", "jti": "2"}));
    assert!(matches!(door.admit(&renewed).await, Err(Denied::Revoked)), "also with a new token");
    assert!(!elsewhere.ended.is_cancelled(), "another client of the same user's has another grant");
    // Also in a server that has never seen the token.
    let issuers = Issuers::new(&[], Arc::clone(&door.clock) as Arc<dyn Clock>);
    let other = Gate::open(Arc::new(Store::at(door.dir.path())), Arc::clone(&door.clock) as Arc<dyn Clock>);
    assert!(matches!(other.trusting(issuers).admit(Some(&token)).await, Err(Denied::Invalid)), "which trusts nobody");
    assert!(matches!(door.admit(&renewed).await, Err(Denied::Revoked)));
}

#[tokio::test]
async fn a_claim_may_name_the_grant_and_has_to_be_there_then() {
    let door = Door::with(|issuer| issuer.grant_claim = Some("sid".into()));
    let first = door.admit(&door.token(json!({}))).await.unwrap().principal.grant_id;
    let renewed = door.admit(&door.token(json!({"jti": "2"}))).await.unwrap().principal.grant_id;
    let second = door.admit(&door.token(json!({"sid": "login-2"}))).await.unwrap().principal.grant_id;
    assert!(first == renewed && first != second);
    for sid in [json!(null), json!(""), json!(7), json!(["login-1"])] {
        assert_eq!(door.refusal(&door.token(json!({"sid": sid}))).await, "it does not name its grant", "{sid}");
    }
    // Somebody else's login of the same name is not the same login.
    let bobs = door.admit(&door.token(json!({"sub": "bob"}))).await.unwrap().principal;
    assert!(bobs.user_id == "bob" && bobs.grant_id != first);
    revoke(&door.office, &*door.clock, "ada", &first).unwrap().unwrap();
    assert!(matches!(door.admit(&door.token(json!({}))).await, Err(Denied::Revoked)));
    assert!(door.admit(&door.token(json!({"sid": "login-2"}))).await.is_ok(), "whoever logs in again has a new grant");
}

#[tokio::test]
async fn a_new_token_keeps_the_grant_alive_and_permits_what_it_says_itself() {
    let door = Door::new();
    let first = door.token(json!({"exp": NOON + 100}));
    let inside = door.admit(&first).await.unwrap();
    door.clock.advance(Duration::from_secs(90));
    let second = door.token(json!({"exp": NOON + 400, "scope": "clients:read"}));
    let renewed = door.admit(&second).await.unwrap().principal;
    assert_eq!((renewed.may(Scope::ClientsRead), renewed.may(Scope::StatusRead)), (true, false));
    assert!(door.admit(&first).await.unwrap().principal.may(Scope::StatusRead), "each says for itself");
    assert_eq!(door.grants()[0].scopes, "clients:read status:read");
    door.clock.advance(Duration::from_secs(70));
    assert!(matches!(door.admit(&first).await, Err(Denied::Expired)), "its own time is over");
    assert!(door.admit(&second).await.is_ok());
    // As long as a few looks take.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!inside.ended.is_cancelled(), "what is open goes on while the grant is alive");
    door.clock.advance(Duration::from_secs(300));
    assert!(matches!(door.admit(&second).await, Err(Denied::Expired)));
    tokio::time::timeout(Duration::from_secs(30), inside.ended.cancelled()).await.expect("and ends with it");
}

#[tokio::test]
async fn a_key_that_is_not_known_is_looked_for_once_a_minute() {
    let door = Door::new();
    let (second, strange) = (SigningKey::new("two", Algorithm::ES256), SigningKey::new("strange", Algorithm::ES256));
    door.admit(&door.token(json!({}))).await.unwrap();
    assert_eq!(door.issuer.asked().len(), 3, "two places for metadata, and the keys");
    for _ in 0..10 {
        assert_eq!(door.refusal(&strange.sign(&door.claims())).await, "its key is none of its issuer's");
    }
    assert_eq!(door.issuer.asked(), Vec::<String>::new());
    // The issuer has a new key beside the old one, and then that alone.
    door.issuer.publish(&[&door.key, &second]);
    door.clock.advance(Duration::from_secs(60));
    door.admit(&second.sign(&door.claims())).await.unwrap();
    assert_eq!(door.issuer.asked().len(), 3);
    door.issuer.publish(&[&second]);
    door.clock.advance(Duration::from_secs(60 * 60));
    let late = json!({"iat": NOON + 3600, "exp": NOON + 9000, "client_id": "late"});
    assert_eq!(door.refusal(&door.token(late)).await, "its key is none of its issuer's", "a key that was withdrawn");
}

#[tokio::test]
async fn while_the_issuer_is_away_nobody_is_called_a_liar() {
    let door = Door::new();
    door.issuer.answers(false);
    let token = door.token(json!({"exp": NOON + 200_000}));
    let other = door.token(json!({"exp": NOON + 200_000, "jti": "2"}));
    for _ in 0..5 {
        let denied = door.admit(&token).await.unwrap_err();
        assert!(matches!(&denied, Denied::Unavailable(why) if why.contains("openid-configuration")), "{denied}");
    }
    assert_eq!(door.issuer.asked().len(), 2, "and it is not asked again and again");
    door.issuer.answers(true);
    door.clock.advance(Duration::from_secs(5));
    door.admit(&token).await.expect("it is back");
    door.issuer.answers(false);
    door.clock.advance(Duration::from_secs(23 * 60 * 60));
    door.admit(&other).await.expect("its keys are still good");
    let unknown = SigningKey::new("two", Algorithm::ES256).sign(&door.claims());
    assert!(matches!(door.admit(&unknown).await, Err(Denied::Unavailable(_))), "it might be a new key of its");
    door.clock.advance(Duration::from_secs(2 * 60 * 60));
    assert!(matches!(door.admit(&other).await, Err(Denied::Unavailable(_))), "but not forever");
    door.issuer.answers(true);
    door.clock.advance(Duration::from_secs(5));
    assert!(door.admit(&other).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_hangs_keeps_nobody_whose_key_is_known() {
    let door = Door::new();
    door.admit(&door.token(json!({}))).await.unwrap();
    door.clock.advance(Duration::from_secs(60 * 60));
    door.issuer.hangs(true);
    let late = |n: u64| door.token(json!({"iat": NOON + 3600, "exp": NOON + 9000, "jti": n.to_string()}));
    let began = std::time::Instant::now();
    door.admit(&late(0)).await.expect("its key is still good");
    let first = began.elapsed();
    assert!(first < Duration::from_secs(3), "{first:?}");
    // The others do not wait for what is late already.
    door.clock.advance(Duration::from_secs(1));
    for n in 1..20 {
        door.admit(&late(n)).await.unwrap();
    }
    assert!(began.elapsed() < first + Duration::from_secs(2), "{:?}", began.elapsed());
    // A key that is not known is waited for, and comes.
    let second = SigningKey::new("two", Algorithm::ES256);
    door.issuer.publish(&[&second]);
    let token = second.sign(&json!({
        "iss": door.issuer.url(), "aud": "headcount", "sub": "bob", "client_id": "desk", "iat": NOON + 3600,
        "exp": NOON + 9000, "scope": "status:read",
    }));
    let (admitted, ()) = tokio::join!(door.admit(&token), async { door.issuer.hangs(false) });
    admitted.expect("it was only slow");
}

#[tokio::test]
async fn a_token_that_names_no_key_may_be_signed_by_a_newer_one() {
    let door = Door::new();
    let second = SigningKey::new("two", Algorithm::ES256);
    door.admit(&door.token(json!({}))).await.unwrap();
    door.issuer.publish(&[&second]);
    let mut header = second.header();
    header.kid = None;
    let token = second.sign_with(&header, &door.claims());
    assert_eq!(door.refusal(&token).await, "its signature is wrong", "nobody looks again so soon");
    door.clock.advance(Duration::from_secs(60));
    door.admit(&token).await.expect("its issuer has a newer key");
    door.clock.advance(Duration::from_secs(60));
    door.issuer.answers(false);
    let stranger = SigningKey::new("three", Algorithm::ES256);
    let denied = door.admit(&stranger.sign_with(&header, &door.claims())).await.unwrap_err();
    assert!(matches!(denied, Denied::Unavailable(_)), "there might be a still newer one: {denied}");
}

#[tokio::test]
async fn metadata_and_keys_that_are_somebody_elses_are_none() {
    let door = Door::new();
    let (url, token) = (door.issuer.url(), door.token(json!({})));
    for (metadata, why) in [
        (json!({"issuer": "https://evil.example", "jwks_uri": format!("{url}/keys")}), "another issuer"),
        (json!({"jwks_uri": format!("{url}/keys")}), "another issuer"),
        (json!({"issuer": url}), "name no keys"),
        (json!({"issuer": url, "jwks_uri": "http://127.0.0.1:1/keys"}), "name no keys"),
        (json!({"issuer": url, "jwks_uri": "http://keys.example/"}), "name no keys"),
        (json!({"issuer": url, "jwks_uri": "file:///etc/keys"}), "name no keys"),
    ] {
        door.issuer.publish_metadata(metadata.clone());
        door.clock.advance(Duration::from_secs(5));
        let denied = door.admit(&token).await.unwrap_err();
        assert!(matches!(&denied, Denied::Unavailable(text) if text.contains(why)), "{metadata}: {denied}");
    }
    door.issuer.publish_metadata(json!({"issuer": url, "jwks_uri": format!("{url}/keys")}));
    let secret = json!({"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQ", "kid": "one"});
    let mut encrypts = door.key.public();
    encrypts["use"] = "enc".into();
    for set in [json!({}), json!([]), json!({"keys": [secret, encrypts, 7, {"kty": "new"}]})] {
        door.issuer.publish_set(set.clone());
        door.clock.advance(Duration::from_secs(5));
        let denied = door.admit(&token).await.unwrap_err();
        assert!(
            matches!(&denied, Denied::Unavailable(why) if why.contains("no key for signatures")),
            "{set}: {denied}"
        );
    }
}

#[tokio::test]
async fn keys_may_be_in_a_file_or_at_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let key = SigningKey::new("filed", Algorithm::EdDSA);
    std::fs::write(&file, json!({"keys": [key.public()]}).to_string()).unwrap();
    let door = Door::with(|issuer| issuer.jwks = Some(file.clone()));
    assert!(door.admit(&key.sign(&door.claims())).await.is_ok());
    assert_eq!(door.issuer.asked(), Vec::<String>::new());
    let door = Door::with(|issuer| issuer.jwks = Some(format!("{}/keys", issuer.issuer).into()));
    assert!(door.admit(&door.token(json!({}))).await.is_ok());
    assert_eq!(door.issuer.asked(), ["/keys"]);
    let door = Door::with(|issuer| issuer.jwks = Some(folder.path().join("none.json")));
    let denied = door.admit(&door.token(json!({}))).await.unwrap_err();
    assert!(matches!(&denied, Denied::Unavailable(why) if why.contains("none.json")), "{denied}");
}

#[tokio::test]
async fn a_ledger_that_cannot_be_written_lets_nobody_in_by_an_issuers_word_alone() {
    let door = Door::new();
    std::fs::create_dir(door.office.path()).unwrap();
    assert!(matches!(door.admit(&door.token(json!({}))).await, Err(Denied::Unavailable(_))));
}

#[tokio::test]
async fn so_many_tokens_are_remembered_and_no_more() {
    let door = Door::new();
    for n in 0..super::REMEMBERED + 10 {
        let token = door.token(json!({ "jti": n.to_string() }));
        door.gate.issuers().verify(&token).await.unwrap();
        door.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(door.gate.issuers().good().len(), super::REMEMBERED);
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_refused(parts in proptest::collection::vec("[A-Za-z0-9_-]{0,40}|e30|\\PC{0,9}", 0..6)) {
        let issuers = Issuers::new(&[], Arc::new(ManualClock::at(0)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert!(runtime.block_on(issuers.verify(&parts.join("."))).is_err());
    }
}
