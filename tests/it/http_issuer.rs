//! Tokens of another authorization server, shown to a server that trusts it.

use crate::http_client::{Server, token};
use crate::mcp_client::LEGACY;
use crate::world::{World, until};
use headcount::clock::{Clock as _, SystemClock};
use headcount_tests::issuer::{SigningKey, TokenIssuer};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

/// A configuration that trusts an issuer, and lets the user of this process in by it.
fn trusting(world: &World, issuer: &TokenIssuer) -> String {
    let me = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().map_or_else(String::new, |user| user.name);
    let text = format!(
        "[[auth.issuer]]\nissuer = \"{}\"\naudience = [\"headcount\"]\nusers = {{ alice = {me:?}, bob = \"somebody-else\" }}\n",
        issuer.url()
    );
    world.write("trusting.toml", text).display().to_string()
}

/// The claims of a good token.
fn claims(issuer: &TokenIssuer) -> Value {
    let now = SystemClock::default().now().unix_ms / 1000;
    json!({
        "iss": issuer.url(), "aud": "headcount", "sub": "alice", "client_id": "desk",
        "iat": now, "exp": now + 600, "scope": "status:read clients:read",
    })
}

fn with(mut claims: Value, name: &str, value: &str) -> Value {
    claims[name] = value.into();
    claims
}

#[test]
fn a_token_of_a_trusted_issuer_is_as_good_as_one_of_our_own_until_it_is_revoked_here() {
    let world = World::new();
    let key = SigningKey::new("one", Algorithm::ES256);
    let issuer = TokenIssuer::open(&[&key]);
    let (config, roster) = (trusting(&world, &issuer), world.roster("shop", &[("one", std::process::id())]));
    let server = Server::start_with(&world, &[&roster], &[], &[("HEADCOUNT_CONFIG", &config)]);
    let good = key.sign(&claims(&issuer));
    let mut client = server.connect(&good);
    assert_eq!(client.get("/v1/sessions/shop/status").json()["session_id"], "shop");
    assert_eq!(client.get("/v1/grants").status, 403, "what it does not permit");
    client.initialize(LEGACY[3]);
    client.structured("list_sessions", json!({}));
    let row = client.structured("list_clients", json!({}))["sessions"][0].take();
    assert_eq!((&row["client_id"], &row["ended"]), (&json!("desk"), &json!(false)), "{row:#}");

    for (claims, status, why) in [
        (with(claims(&issuer), "aud", "another"), 401, "it is not for this server"),
        (with(claims(&issuer), "iss", "https://evil.example"), 401, "its issuer is not one of ours"),
        (with(claims(&issuer), "sub", "mallory"), 403, "the token's user is not known here"),
    ] {
        let answer = server.connect(&key.sign(&claims)).get("/v1/sessions");
        assert_eq!(answer.status, status, "{claims}");
        assert!(answer.text().contains(why), "{claims}: {}", answer.text());
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge.contains(r#"error="invalid_token""#), status == 401, "{challenge}");
    }
    let mut strangers = server.connect(&key.sign(&with(claims(&issuer), "sub", "bob")));
    assert_eq!(strangers.get("/v1/sessions").json()["sessions"], json!([]), "another user sees what is that one's");

    let scopeless = server.connect(&key.sign(&with(with(claims(&issuer), "client_id", "idle"), "scope", "openid")));
    let answer = { scopeless }.get("/v1/sessions");
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.header("www-authenticate").contains(r#"error="insufficient_scope", scope="status:read""#));
    let grants = world.run(&["grants", "list", "--json"]).json()["grants"].take();
    let of = |user: &Value| grants.as_array().unwrap().iter().find(|grant| grant["user_id"] == *user).unwrap();
    let (own, others) = (of(&row["user_id"]), of(&json!("somebody-else")));
    assert_eq!((grants.as_array().unwrap().len(), &own["client_id"]), (2, &json!("desk")), "{grants:#}");
    assert_eq!(row["grant_id"], own["id"]);
    assert!(strangers.structured("list_clients", json!({})).to_string().contains("somebody-else"));
    let shown = world.run(&["clients", "--all"]).stdout;
    for word in ["USER", "GRANT", "somebody-else", own["name"].as_str().unwrap()] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let listed = world.run(&["grants", "list"]).stdout;
    assert!(listed.contains("USER") && listed.contains("status:read clients:read"), "{listed}");
    let no_token = world.run(&["token", "revoke", own["id"].as_str().unwrap()]);
    assert!(no_token.code == Some(2) && no_token.stderr.contains("headcount grants revoke grt_"), "{no_token:#?}");
    assert_eq!(world.run(&["grants", "revoke", others["id"].as_str().unwrap()]).code, Some(0));
    assert_eq!(strangers.get("/v1/sessions").status, 401, "who runs the server ends the grants of all");
    assert_eq!(world.run(&["token", "list", "--json"]).json()["grants"], json!([]), "it is no token of ours");
    assert_eq!(world.run(&["grants", "revoke", own["id"].as_str().unwrap()]).code, Some(0));
    for _ in 0..2 {
        let answer = client.get("/v1/sessions");
        assert_eq!((answer.status, answer.text().contains("revoked")), (401, true), "{}", answer.text());
    }
    assert_eq!(server.connect(&key.sign(&with(claims(&issuer), "jti", "2"))).get("/v1/sessions").status, 401);
    assert_eq!(server.connect(&token(&world, "own", &["status:read"])).get("/v1/sessions").status, 200);
    let (_, log) = server.terminate(crate::world::PATIENCE);
    assert!(!log.contains(&good[..40]), "{log}");
}

#[test]
fn an_issuer_that_is_away_is_waited_for() {
    let world = World::new();
    let key = SigningKey::new("one", Algorithm::RS256);
    let issuer = TokenIssuer::open(&[&key]);
    issuer.answers(false);
    let config = trusting(&world, &issuer);
    let server = Server::start_with(&world, &[], &[], &[("HEADCOUNT_CONFIG", &config)]);
    let token = key.sign(&claims(&issuer));
    let answer = server.connect(&token).get("/v1/sessions");
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{}", answer.text());
    assert!(!answer.text().contains("127.0.0.1"), "what is the matter stands in the log: {}", answer.text());
    issuer.answers(true);
    until("it is back", || server.connect(&token).get("/v1/sessions").status == 200);
    let (_, log) = server.terminate(crate::world::PATIENCE);
    assert!(log.contains("openid-configuration"), "{log}");
}
