//! Access that clients ask for over HTTP: how they find out, and what is given for what.

use crate::http_client::{Connection, Server, token};
use crate::oauth_client::{Client, REDIRECT, Tokens, encoded, error, post, query, register, with};
use crate::world::World;
use headcount::auth::Scope;
use serde_json::{Value, json};

/// Which one it is for, who holds it knows.
const ELSEWHERE: &str = "the token is for another address of this server";

fn grants(world: &World) -> Vec<Value> {
    world.run(&["grants", "list", "--all", "--json"]).json()["grants"].as_array().unwrap().clone()
}

#[test]
fn clients_find_out_by_themselves_who_gives_access() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let mut connection = Connection::to(server.address, None);
    let host = server.address.to_string();
    let mut get = |path: &str| connection.request("GET", path, &[("host", &host)], b"");
    let challenge = get("/mcp").header("www-authenticate").to_owned();
    let named = format!("resource_metadata=\"http://{host}/.well-known/oauth-protected-resource/mcp\"");
    assert!(
        challenge.contains(&named) && challenge.contains(", scope=\"status:read roster:write clients:read\""),
        "{challenge}"
    );
    for (path, needed) in [
        ("/v1/sessions/x/status", ", scope=\"status:read\""),
        ("/v1/mcp/sessions", ", scope=\"clients:read\""),
        ("/v1/grants", ", scope=\"grants:revoke\""),
        ("/metrics", ", scope=\"metrics:read\""),
    ] {
        let challenge = get(path).header("www-authenticate").to_owned();
        assert!(challenge.contains(needed), "{path}: {challenge}");
    }
    let nowhere = get("/nowhere");
    assert!(nowhere.status == 401 && !nowhere.header("www-authenticate").contains("scope="), "{nowhere:#?}");
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let found = get(path).json();
        assert_eq!(found["resource"], format!("http://{host}/mcp"));
        assert_eq!(found["authorization_servers"], json!([format!("http://{host}")]));
        assert_eq!(found["bearer_methods_supported"], json!(["header"]));
        assert_eq!(found["scopes_supported"], json!(Scope::ALL.map(Scope::as_str)));
    }
    let found = get("/.well-known/oauth-authorization-server").json();
    assert_eq!(found["issuer"], format!("http://{host}"));
    for (name, path) in
        [("authorization", "authorize"), ("token", "token"), ("revocation", "revoke"), ("registration", "register")]
    {
        assert_eq!(found[format!("{name}_endpoint")], format!("http://{host}/oauth/{path}"));
    }
    assert_eq!(found["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(found["token_endpoint_auth_methods_supported"], json!(["none"]));
    assert_eq!(found["grant_types_supported"], json!(["authorization_code", "refresh_token"]));
    for name in ["authorization_response_iss_parameter_supported", "client_id_metadata_document_supported"] {
        assert_eq!(found[name], true, "{name}");
    }
    for path in ["openid-configuration", "openid-configuration/mcp", "oauth-authorization-server/mcp", "jwks.json"] {
        assert_eq!(get(&format!("/.well-known/{path}")).status, 404, "{path}");
    }
}

#[test]
fn a_client_behind_a_proxy_sees_the_proxys_name() {
    let world = World::new();
    let server = Server::start_with(&world, &[], &["--behind-proxy", "--allow-host", "agents.example"], &[]);
    let get =
        |host: &str, path: &str| Connection::to(server.address, None).request("GET", path, &[("host", host)], b"");
    let path = "/.well-known/oauth-authorization-server";
    assert_eq!(get("agents.example", path).json()["issuer"], "https://agents.example");
    assert_eq!(get("localhost:7878", path).json()["issuer"], "http://localhost:7878");
    assert_eq!(get("evil.example", path).status, 403);
    let client = Client::register(&world, &server);
    let asks = encoded(&with(&client.asks("status:read"), "resource", "https://agents.example/mcp"));
    let cookie = get("agents.example", &format!("/oauth/authorize?{asks}")).header("set-cookie").to_owned();
    assert!(
        cookie.starts_with("__Host-") && cookie.contains("; Secure") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
}

#[test]
fn without_it_nothing_is_there() {
    let world = World::new();
    world.write(".config/headcount/config.toml", "[auth]\noauth = false\n");
    let server = Server::start(&world, &[]);
    let mut connection = Connection::to(server.address, None);
    for path in ["oauth-protected-resource/mcp", "oauth-authorization-server"] {
        assert_eq!(connection.get(&format!("/.well-known/{path}")).status, 404);
    }
    assert_eq!(connection.get("/oauth/authorize").status, 401, "as any other address");
    assert!(!connection.get("/mcp").header("www-authenticate").contains("resource_metadata"));
}

#[test]
fn other_authorization_servers_are_named_first() {
    let issuer = "[[auth.issuer]]\nissuer = \"https://id.example\"\naudience = [\"headcount\"]\nusers = {}\n";
    for (own, servers) in
        [(true, json!(["https://id.example", "http://localhost"])), (false, json!(["https://id.example"]))]
    {
        let world = World::new();
        world.write(".config/headcount/config.toml", format!("[auth]\noauth = {own}\n{issuer}"));
        let server = Server::start(&world, &[]);
        let mut connection = Connection::to(server.address, None);
        let metadata = connection.get("/.well-known/oauth-protected-resource/mcp");
        assert_eq!(metadata.json()["authorization_servers"], servers);
        assert!(connection.get("/mcp").header("www-authenticate").contains("resource_metadata="));
        assert_eq!(connection.get("/.well-known/oauth-authorization-server").status == 200, own);
    }
}

#[test]
fn who_is_given_access_has_as_much_as_was_consented_to() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let tokens = client.tokens("status:read clients:read");
    assert_eq!(tokens.scope, "status:read clients:read");
    let status = |token: &str, path: &str| server.connect(token).get(path).status;
    assert_eq!([status(&tokens.access, "/v1/sessions"), status(&tokens.access, "/v1/mcp/sessions")], [200, 200]);
    let refused = server.connect(&tokens.access).get("/v1/grants");
    assert_eq!(refused.status, 403);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.contains(r#"scope="status:read clients:read grants:revoke""#), "{challenge}");
    assert!(challenge.contains("resource_metadata=") && challenge.contains("insufficient_scope"), "{challenge}");
    server.connect(&tokens.access).structured("list_sessions", json!({}));
    let rows = world.run(&["clients", "--json"]).json()["sessions"].take();
    assert_eq!(rows[0]["client_id"], client.id, "{rows:#}");
    let [grant] = &grants(&world)[..] else { panic!("there is one grant") };
    assert_eq!((&grant["name"], &grant["client_id"]), (&json!("Agent"), &json!(client.id)));
    assert_eq!(grant["id"], rows[0]["grant_id"]);
    // A second time is a second grant; a name may stand twice.
    let other = client.tokens("status:read");
    assert_eq!(grants(&world).len(), 2);
    assert_eq!(status(&other.access, "/v1/mcp/sessions"), 403);
    assert_eq!(status(&tokens.refresh, "/v1/sessions"), 401, "a refresh token lets nobody in");
}

#[test]
fn a_token_is_for_the_server_that_it_was_asked_of() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let tokens = client.tokens("status:read");
    let status =
        |token: &str, host: &str| server.connect(token).request("GET", "/v1/sessions", &[("host", host)], b"").status;
    assert_eq!([status(&tokens.access, "localhost"), status(&tokens.access, "LOCALHOST:80")], [200, 200]);
    for other in ["localhost:7878", "127.0.0.1", "[::1]"] {
        let answer = server.connect(&tokens.access).request("GET", "/v1/sessions", &[("host", other)], b"");
        assert_eq!((answer.status, answer.json()["detail"].as_str()), (401, Some(ELSEWHERE)), "{other}");
        let told = format!("error=\"invalid_token\", error_description=\"{ELSEWHERE}\"");
        assert!(answer.header("www-authenticate").contains(&told), "{answer:#?}");
    }
    let own = token(&world, "laptop", &[]);
    assert_eq!(status(&own, "127.0.0.1"), 200, "a token of the user's own is for all of the user's servers");
    let elsewhere = client.token(&with(&client.refreshes(&tokens.refresh), "resource", "http://localhost:7878/mcp"));
    assert_eq!((elsewhere.status, error(&elsewhere).as_str()), (400, "invalid_target"));
    let asks = with(&client.asks("status:read"), "resource", "https://agents.example/mcp");
    let told = query(client.open(&asks).header("location"));
    assert_eq!((told["error"].as_str(), told["iss"].as_str()), ("invalid_target", "http://localhost"));
}

#[test]
fn what_is_not_as_it_should_be_gets_no_tokens() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let sent = client.redeems(&client.code("status:read"));
    for (name, value, named) in [
        ("code_verifier", "another-verifier-that-is-long-enough-for-it", "invalid_grant"),
        ("code_verifier", "", "invalid_request"),
        ("redirect_uri", "http://127.0.0.1:4712/callback", "invalid_grant"),
        ("client_id", "hci_0", "invalid_client"),
        ("client_secret", "secret", "invalid_client"),
        ("resource", "https://agents.example/mcp", "invalid_target"),
        ("grant_type", "password", "unsupported_grant_type"),
    ] {
        let answer = client.token(&with(&sent, name, value));
        assert_eq!((answer.status, error(&answer).as_str()), (400, named), "{name}={value}");
    }
    let body = encoded(&sent);
    let twice = [format!("{body}&code=x"), format!("{body}&resource=x"), format!("a=1&a=2&{body}")];
    for body in twice {
        assert_eq!(error(&post(&server, "/oauth/token", &[], &body)), "invalid_request", "{body}");
    }
    for (path, headers) in [
        (format!("/oauth/token?{body}"), &[][..]),
        ("/oauth/token?code=x".into(), &[]),
        ("/oauth/token".into(), &[("content-type", "application/json")]),
        ("/oauth/token".into(), &[("content-type", "text/plain")]),
        ("/oauth/token".into(), &[("content-type", "")]),
    ] {
        let answer = post(&server, &path, headers, &body);
        assert_eq!((answer.status, error(&answer).as_str()), (400, "invalid_request"), "{path} {headers:?}");
    }
    let known = post(&server, "/oauth/token", &[("authorization", "Basic aGNpOng=")], &body);
    assert_eq!((known.status, error(&known).as_str()), (401, "invalid_client"));
    assert!(known.header("www-authenticate").starts_with("Basic"));
    let get = Connection::to(server.address, None).get(&format!("/oauth/token?{body}"));
    assert_eq!((get.status, get.header("allow")), (405, "POST"));
    assert_eq!(post(&server, "/oauth/token", &[("host", "evil.example")], &body).status, 403);
    assert_eq!(post(&server, "/oauth/token", &[("origin", "http://localhost")], &body).status, 403, "no web page");
    let large = post(&server, "/oauth/token", &[], &format!("{body}&x={}", "x".repeat(64 << 10)));
    assert_eq!(error(&large), "invalid_request");
    Tokens::of(&client.token(&sent));
}

#[test]
fn a_code_or_a_refresh_token_that_two_have_is_worth_nothing() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let status = |tokens: &Tokens| server.connect(&tokens.access).get("/v1/sessions").status;
    let sent = client.redeems(&client.code("status:read"));
    let (tokens, kept) = (Tokens::of(&client.token(&sent)), client.tokens("status:read"));
    assert_eq!(status(&tokens), 200);
    assert_eq!(error(&client.token(&sent)), "invalid_grant");
    assert_eq!((status(&tokens), status(&kept)), (401, 200));
    assert_eq!(error(&client.refresh(&tokens)), "invalid_grant");
    // Refreshing at the same time is no theft.
    let pairs: Vec<Tokens> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..8).map(|_| scope.spawn(|| Tokens::of(&client.refresh(&kept)))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(pairs.iter().chain([&kept]).all(|tokens| status(tokens) == 200));
    let narrowed = client.token(&with(&client.refreshes(&pairs[0].refresh), "scope", "status:read"));
    assert_eq!(Tokens::of(&narrowed).scope, "status:read");
    let widened = client.token(&with(&client.refreshes(&pairs[1].refresh), "scope", "status:read roster:write"));
    assert_eq!(error(&widened), "invalid_scope");
    assert_eq!(grants(&world).len(), 2, "refreshing makes no grants");
}

#[test]
fn clients_register_within_limits() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let answer =
        register(&server, &json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post"}));
    assert_eq!((answer.status, answer.json()["token_endpoint_auth_method"].as_str()), (201, Some("none")));
    assert!(answer.json().get("client_secret").is_none());
    for (metadata, named) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["http://agents.example/"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": REDIRECT}), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
        (json!({"redirect_uris": [REDIRECT], "client_name": "x".repeat(64 << 10)}), "invalid_request"),
    ] {
        let answer = register(&server, &metadata);
        assert_eq!((answer.status, error(&answer).as_str()), (400, named));
    }
    let twice = r#"{"redirect_uris": ["http://127.0.0.1/"], "redirect_uris": ["https://evil.example/"]}"#;
    let kind = [("content-type", "application/json")];
    let answer = Connection::to(server.address, None).request("POST", "/oauth/register", &kind, twice.as_bytes());
    assert_eq!(error(&answer), "invalid_client_metadata");
    // A document on a private network is not fetched for anybody.
    let client = Client { id: "https://127.0.0.1:1/client.json".into(), ..Client::register(&world, &server) };
    let page = client.open(&client.asks("status:read"));
    assert_eq!((page.status, page.header("location")), (400, ""), "{}", page.text());
}
