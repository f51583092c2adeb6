//! Upstream servers and authorization servers that cheat, err and break down: nobody is sent elsewhere, and each is told.

use crate::oauth_client::query;
use crate::upstream_issuer::{Heard, Issuer, Reply, metadata, tokens};
use crate::upstream_login::{KEPT, Login, client, follow};
use crate::world::{Ran, World};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use url::Url;

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server";

/// What it says when somebody would log in.
fn refused(world: &World) -> String {
    let ran = world.run(&["upstream", "login", "far"]);
    assert!(ran.code == Some(2) && !world.path(KEPT).exists(), "{ran:#?}");
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains("s3cret"), "{ran:#?}");
    ran.stderr
}

/// The browser of somebody who consents: it goes straight back.
fn redirect(login: &Login, more: &[(&str, &str)]) -> Url {
    let asked = query(login.url.as_str());
    let mut answer: Url = asked["redirect_uri"].parse().unwrap();
    answer
        .query_pairs_mut()
        .append_pair("code", "code-s3cret")
        .append_pair("state", &asked["state"])
        .extend_pairs(more);
    answer
}

fn log_in(world: &World) -> Ran {
    let login = Login::start(world, &[], &[]);
    assert!(follow(&redirect(&login, &[])).starts_with("HTTP/1.1 200"));
    login.end()
}

fn call(world: &World) -> Ran {
    world.run(&["upstream", "call", "far", "look"])
}

fn on(path: &'static str, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Issuer {
    Issuer::start(move |heard, base| (heard.path == path).then(|| reply(base)))
}

/// What it says of itself, with one thing changed.
fn with(base: &str, name: &str, value: Value) -> Reply {
    let mut said = metadata(base);
    said[name] = value;
    Reply::Json(200, said)
}

/// A server that names this authorization server.
fn names(authorization_server: &'static str) -> Issuer {
    on(RESOURCE, move |base| {
        Reply::Json(200, json!({"resource": format!("{base}/mcp"), "authorization_servers": [authorization_server]}))
    })
}

#[test]
fn who_is_not_who_it_should_be_is_not_asked() {
    let elsewhere = Issuer::start(|_, _| None);
    let away = |path: &str| Reply::Raw(302, format!("Location: {}{path}", elsewhere.base), String::new());
    let (away_resource, away_server) = (away(RESOURCE), away(SERVER));
    let html = || Reply::Raw(200, "Content-Type: text/html".into(), "<html>\u{1b}[2J".into());
    let claims = elsewhere.base.clone();
    let resource = |base: &str| json!({"resource": "https://other.example/mcp", "authorization_servers": [base]});
    let cases: Vec<(Issuer, &str)> = vec![
        (on(SERVER, move |base| with(base, "issuer", json!(claims))), "issuer mismatch"),
        (on(SERVER, |base| with(base, "issuer", Value::Null)), "missing required issuer"),
        (on(RESOURCE, move |base| Reply::Json(200, resource(base))), "resource mismatch"),
        (
            on(RESOURCE, |base| {
                Reply::Json(200, json!({"resource": format!("{base}/other"), "authorization_servers": [base]}))
            }),
            "resource mismatch",
        ),
        (names("https://10.0.0.1/"), "10.0.0.1 is not gone to: it is a private or link-local address"),
        (names("http://169.254.169.254/"), "169.254.169.254 is not gone to: "),
        (on(SERVER, |base| with(base, "code_challenge_methods_supported", json!(["plain"]))), "PKCE"),
        (on(SERVER, |base| with(base, "code_challenge_methods_supported", Value::Null)), "PKCE"),
        (on(SERVER, |base| with(base, "token_endpoint", json!("http://far.example/token"))), "is not gone to"),
        (on(SERVER, |base| with(base, "authorization_endpoint", json!("file:///bin/sh"))), "is not gone to"),
        (on(SERVER, |base| with(base, "authorization_endpoint", json!("javascript:alert(1)"))), "is not gone to"),
        (on(SERVER, |base| with(base, "revocation_endpoint", json!("http://far.example/x"))), "is not gone to"),
        (on(SERVER, |base| with(base, "registration_endpoint", Value::Null)), "registers no clients"),
        (on(SERVER, move |_| html()), "none published usable metadata"),
        (on(SERVER, |_| Reply::Flood(1 << 20)), "larger than 262144 bytes"),
        (on(RESOURCE, |_| Reply::Flood(1 << 20)), "larger than 262144 bytes"),
        (on(RESOURCE, move |_| away_resource.clone()), "redirect to non-same-origin"),
        (on(SERVER, move |_| away_server.clone()), "redirect to non-same-origin"),
        (on(SERVER, |_| Reply::Raw(500, String::new(), String::new())), "unexpected HTTP status 500"),
        (
            on("/register", |_| {
                Reply::Json(400, json!({"error": "invalid_redirect_uri", "error_description": "\u{1b}[2Jno"}))
            }),
            "does not register the client: invalid_redirect_uri: no",
        ),
    ];
    for (issuer, told) in cases {
        let said = refused(&client(&issuer.url(), "oauth = true"));
        assert!(said.contains(told), "{told}: {said}");
        assert!(issuer.heard("/token").is_empty());
    }
    let nobody = Issuer::start(|heard, _| {
        heard.path.starts_with("/.well-known/").then(|| Reply::Raw(404, String::new(), String::new()))
    });
    let said = refused(&client(&nobody.url(), "oauth = true"));
    assert!(said.contains("the server names no authorization server"), "{said}");
    assert!(elsewhere.heard_nothing(), "a redirect was followed");
}

#[test]
fn an_authorization_server_that_says_nothing_is_not_waited_for_long() {
    let issuer = on(SERVER, |_| Reply::Silence);
    let said = refused(&client(&issuer.url(), "oauth = true"));
    assert!(said.contains("it does not answer in time"), "{said}");
}

#[test]
fn what_is_no_token_is_not_taken_for_one_and_the_code_goes_nowhere_else() {
    let elsewhere = Issuer::start(|_, _| None);
    let away = Reply::Raw(307, format!("Location: {}/token", elsewhere.base), String::new());
    for (reply, told) in [
        (away, "it answers with HTTP 307"),
        (Reply::Raw(200, "Content-Type: text/html".into(), "s3cret".into()), "its answer holds no token"),
        (Reply::Json(200, json!({"access_token": 53_u8, "token_type": "s3cret"})), "its answer holds no token"),
        (Reply::Json(400, json!({"error": "invalid_grant", "error_description": "no\u{1b}[2J"})), "invalid_grant: no"),
        (Reply::Flood(1 << 20), "larger than"),
    ] {
        let issuer = on("/token", move |_| reply.clone());
        let world = client(&issuer.url(), "oauth = true");
        let ran = log_in(&world);
        assert!(ran.code == Some(2) && ran.stderr.contains(told), "{told}: {ran:#?}");
        assert!(!ran.stderr.contains("s3cret") && !world.path(KEPT).exists(), "{ran:#?}");
    }
    assert!(elsewhere.heard_nothing(), "a redirect was followed");
}

#[test]
fn a_server_that_says_who_it_is_in_its_answers_has_to() {
    let issuer = on(SERVER, |base| with(base, "authorization_response_iss_parameter_supported", json!(true)));
    let world = client(&issuer.url(), "oauth = true");
    assert!(log_in(&world).stderr.contains("does not come from the authorization server that was asked"));
    assert!(issuer.heard("/token").is_empty());
    let login = Login::start(&world, &[], &[]);
    follow(&redirect(&login, &[("iss", &issuer.base)]));
    assert_eq!(login.end().code, Some(0));
}

/// As if the access token had come long ago.
fn age(world: &World) {
    let mut kept: Value = serde_json::from_slice(&fs::read(world.path(KEPT)).unwrap()).unwrap();
    kept["credentials"]["token_received_at"] = json!(1_700_000_000);
    fs::write(world.path(KEPT), kept.to_string()).unwrap();
}

fn refreshes(issuer: &Issuer) -> Vec<Heard> {
    issuer.heard("/token").into_iter().filter(|heard| heard.field("grant_type") == "refresh_token").collect()
}

#[test]
fn a_refresh_token_is_shown_once_however_many_processes_want_to_renew() {
    let issuer = Issuer::start(|_, _| None);
    let world = client(&issuer.url(), "oauth = true");
    assert_eq!(log_in(&world).code, Some(0));
    for round in 1..=3 {
        age(&world);
        thread::scope(|scope| {
            let calls: Vec<_> = (0..5).map(|_| scope.spawn(|| call(&world))).collect();
            for ran in calls.into_iter().map(|call| call.join().unwrap()) {
                assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "done"), "{ran:#?}");
            }
        });
        assert_eq!(refreshes(&issuer).len(), round);
    }
    let asked = &refreshes(&issuer)[0];
    assert_eq!([asked.field("resource"), asked.field("client_id")], [issuer.url(), "c1".into()]);
}

#[test]
fn a_full_disk_uses_no_refresh_token_up() {
    let issuer = Issuer::start(|_, _| None);
    let world = client(&issuer.url(), "oauth = true");
    assert_eq!(log_in(&world).code, Some(0));
    age(&world);
    let ran = crate::full_disk::run_full(&world, &["upstream", "call", "far", "look"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("the login cannot be kept in"), "{ran:#?}");
    assert!(refreshes(&issuer).is_empty());
    assert_eq!(call(&world).code, Some(0));
}

#[test]
fn tokens_that_end_at_once_are_renewed_within_a_session() {
    let given = AtomicU64::new(0);
    let issuer = Issuer::start(move |heard, _| {
        (heard.path == "/token").then(|| tokens(given.fetch_add(1, Ordering::Relaxed), 0))
    });
    let world = client(&issuer.url(), "oauth = true");
    assert_eq!(log_in(&world).code, Some(0));
    let ran = call(&world);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let shown: Vec<String> = refreshes(&issuer).iter().map(|heard| heard.field("refresh_token")).collect();
    assert!(shown.len() >= 3, "{shown:?}");
    assert_eq!(shown, (0..shown.len()).map(|n| format!("refresh-s3cret-{n}")).collect::<Vec<_>>());
}

#[test]
fn an_authorization_server_that_is_down_logs_nobody_out_and_one_that_knows_the_client_no_more_does() {
    let state = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&state);
    let issuer = Issuer::start(move |heard, _| match (heard.path.as_str(), now.load(Ordering::Relaxed)) {
        ("/token", 1) => Some(Reply::Raw(503, String::new(), String::new())),
        ("/token", 2) => Some(Reply::Json(400, json!({"error": "temporarily_unavailable"}))),
        ("/token", 3) => Some(Reply::Raw(200, String::new(), "<html>".into())),
        ("/token", 4) => Some(Reply::Json(401, json!({"error": "invalid_client"}))),
        _ => None,
    });
    let world = client(&issuer.url(), "oauth = true");
    assert_eq!(log_in(&world).code, Some(0));
    age(&world);
    for (now, told) in [(1, "not available now"), (2, "temporarily_unavailable"), (3, "holds no token")] {
        state.store(now, Ordering::Relaxed);
        let ran = call(&world);
        assert!(
            ran.code == Some(2) && ran.stderr.contains("cannot be used now") && ran.stderr.contains(told),
            "{ran:#?}"
        );
    }
    state.store(0, Ordering::Relaxed);
    assert_eq!(call(&world).code, Some(0), "it is back");
    age(&world);
    state.store(4, Ordering::Relaxed);
    for _ in 0..2 {
        let ran = call(&world);
        assert!(ran.stderr.contains("not logged in: headcount upstream login far"), "{ran:#?}");
        assert!(ran.stderr.contains("invalid_client"), "{ran:#?}");
    }
    let asked = refreshes(&issuer).len();
    call(&world);
    assert_eq!(refreshes(&issuer).len(), asked, "a login that has ended is not renewed");
}

#[test]
fn a_token_that_is_refused_again_is_not_tried_for_ever() {
    let issuer =
        Issuer::start(|heard, _| (heard.path == "/mcp").then(|| Reply::Raw(401, String::new(), String::new())));
    // With no challenge, the well-known place is looked at.
    let world = client(&issuer.url(), "oauth = true");
    assert_eq!(log_in(&world).code, Some(0));
    let ran = call(&world);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("refuses") && ran.stderr.contains("headcount upstream login far"), "{ran:#?}");
    assert!(refreshes(&issuer).len() <= 2, "{:?}", refreshes(&issuer));
}

#[test]
fn a_client_that_is_known_needs_nobody_to_consent() {
    let is_strict = Arc::new(AtomicBool::new(false));
    let strict = Arc::clone(&is_strict);
    let given = AtomicU64::new(0);
    let issuer = Issuer::start(move |heard, _| {
        (heard.path == "/token").then(|| {
            match strict.load(Ordering::Relaxed) || heard.field("client_secret") != "pass" {
                true => Reply::Json(401, json!({"error": "invalid_client"})),
                false => tokens(given.fetch_add(1, Ordering::Relaxed), 3600),
            }
        })
    });
    let settings = "oauth = { grant = \"client_credentials\", client_id = \"me\", client_secret_env = \"PASS\", scopes = [\"a\"] }";
    let world = client(&issuer.url(), settings);
    let called = |pass: &str| {
        let mut command = world.command(&["upstream", "call", "far", "look"]);
        command.env("PASS", pass);
        crate::world::finish(command)
    };
    let ran = called("wrong-s3cret");
    assert!(ran.code == Some(2) && ran.stderr.contains("invalid_client") && !ran.stderr.contains("s3cret"), "{ran:#?}");
    assert!(call(&world).stderr.contains("PASS, which is to hold the client's secret, is not set"));
    assert_eq!(called("pass").code, Some(0));
    let asked = issuer.heard("/token").last().unwrap().clone();
    let fields = ["grant_type", "scope", "resource"].map(|name| asked.field(name));
    assert_eq!(fields, ["client_credentials".to_owned(), "a".into(), issuer.url()]);
    let count = issuer.heard("/token").len();
    assert_eq!((called("pass").code, issuer.heard("/token").len()), (Some(0), count), "the token is kept");
    age(&world);
    assert_eq!((called("pass").code, issuer.heard("/token").len()), (Some(0), count + 1));
    assert!(issuer.heard("/authorize").is_empty() && issuer.heard("/register").is_empty());
}

#[test]
fn the_client_is_the_one_that_is_configured_or_the_one_that_was_registered() {
    let issuer = Issuer::start(|heard, base| match heard.path.as_str() {
        "/register" => {
            Some(Reply::Json(201, json!({"client_id": "c2", "client_secret": "own-s3cret", "redirect_uris": []})))
        }
        SERVER => Some(with(base, "client_id_metadata_document_supported", json!(true))),
        _ => None,
    });
    let document = "https://me.example/client.json";
    let described = format!("oauth = {{ client_metadata_url = \"{document}\" }}");
    for (settings, id) in
        [("oauth = { client_id = \"known\" }", "known"), (&*described, document), ("oauth = true", "c2")]
    {
        let world = client(&issuer.url(), settings);
        let login = Login::start(&world, &[], &[]);
        assert_eq!(query(login.url.as_str())["client_id"], id);
        follow(&redirect(&login, &[]));
        let ran = login.end();
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    assert_eq!(issuer.heard("/register").len(), 1);
    // The secret that a new client was given is shown when it renews, and when it logs out.
    let world = client(&issuer.url(), "oauth = true");
    assert_eq!(log_in(&world).code, Some(0));
    age(&world);
    assert_eq!(call(&world).code, Some(0));
    assert_eq!(world.run(&["upstream", "logout", "far"]).code, Some(0));
    let asked = [refreshes(&issuer).pop().unwrap(), issuer.heard("/revoke").pop().unwrap()];
    assert!(asked.iter().all(|heard| heard.head.to_lowercase().contains("authorization: basic ")), "{asked:?}");
    assert!(asked[1].field("token").starts_with("refresh-s3cret-"));
}
