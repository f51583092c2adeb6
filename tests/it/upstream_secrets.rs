//! Servers that repeat what they were sent in confidence: nobody who reads what is said of them learns it.

use crate::http_client::{Server, token};
use crate::oauth_client::query;
use crate::upstream_issuer::{Heard, Issuer, Reply};
use crate::upstream_login::{KEPT, Login, client, follow};
use crate::world::{Ran, World, finish, until};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use url::Url;

const AGENTS: &str = "agents_from = { tool = \"look\", every = \"100ms\" }\n";

/// The lines of a head that hold markers, in one line.
fn markers(heard: &Heard) -> String {
    let marked = heard.head.lines().filter(|line| line.contains("m4rk"));
    marked.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("; ")
}

/// What a server answers that repeats the request, one way and another.
fn echo(way: usize, heard: &Heard) -> Option<Reply> {
    let marked = markers(heard);
    let none = String::new;
    let asked: Value = serde_json::from_str(&heard.body).unwrap_or_default();
    let is_call = asked["method"] == "tools/call";
    let error = json!({"code": -32000, "message": marked});
    match way {
        0 => Some(Reply::Raw(401, none(), marked)),
        1 => Some(Reply::Raw(403, none(), STANDARD.encode(marked))),
        2 => Some(Reply::Raw(401, format!("WWW-Authenticate: Bearer error_description=\"{marked}\""), none())),
        3 => Some(Reply::Raw(
            403,
            format!("WWW-Authenticate: Bearer error_description=\"{marked}\", scope=\"{marked}\""),
            none(),
        )),
        4 => Some(Reply::Json(200, json!({"jsonrpc": marked, "id": marked, "result": marked}))),
        5 => Some(Reply::Raw(500, format!("Content-Type: {}", marked.replace(": ", "=")), marked)),
        6 => is_call.then(|| Reply::Json(200, json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}))),
        _ => is_call.then(|| {
            let result = json!({"content": [{"type": "text", "text": marked}], "isError": true});
            Reply::Json(200, json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
        }),
    }
}

#[test]
fn what_a_server_repeats_of_a_request_is_shown_to_nobody() {
    for way in 0..8 {
        let issuer = Issuer::start(move |heard, _| echo(way, heard).filter(|_| heard.path == "/mcp"));
        let settings = format!(
            "token_file = \"token\"\nheaders_env = {{ X-Api-Key = \"KEY\" }}\nhandshake = \"initialize\"\n{AGENTS}"
        );
        let world = client(&issuer.url(), &settings);
        let file = world.write(".config/headcount/token", "access-s3cret-m4rk-token/4\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let run = |args: &[&str]| {
            let mut command = world.command(args);
            command.env("KEY", "key+m4rk/value");
            finish(command)
        };
        let all = [
            run(&["status", "--json"]),
            run(&["upstream", "list", "--json"]),
            run(&["upstream", "call", "far", "look"]),
            run(&["doctor", "--json"]),
        ];
        assert!(issuer.heard("/mcp").iter().any(|heard| markers(heard).matches("m4rk").count() == 2));
        let said = format!("{all:?}");
        assert!(!said.contains("m4rk") && !said.contains(&STANDARD.encode("m4rk-tok")), "{way}: {all:#?}");
        assert!(said.contains("***") || way == 5, "{way}: it is shown that something was hidden: {all:#?}");
    }
}

#[test]
fn neither_a_token_that_may_see_the_status_nor_a_servers_own_file_has_it() {
    let issuer = Issuer::start(|heard, _| echo(0, heard).filter(|_| heard.path == "/mcp"));
    let world = client(&issuer.url(), &format!("token_file = \"token\"\n{AGENTS}"));
    let file = world.write(".config/headcount/token", "s3cret-m4rk-token\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start(&world, &[]);
    let guest = token(&world, "guest", &["status:read"]);
    let listed = || server.connect(&guest).get("/v1/sessions").json()["sources"].to_string();
    until("it is told that the server refuses", || listed().contains("401"));
    let listed = listed();
    assert!(listed.contains("***") && !listed.contains("m4rk"), "{listed}");
    let folder = world.path(".local/state/headcount/serving");
    let kept = || -> String {
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect()
    };
    until("its own file tells of it", || kept().contains("401"));
    assert!(!kept().contains("m4rk"), "{}", kept());
}

/// The browser of somebody who consents.
fn log_in(world: &World) -> Ran {
    let login = Login::start(world, &[], &[("PASS", "pass-m4rk-word")]);
    let asked = query(login.url.as_str());
    let mut answer: Url = asked["redirect_uri"].parse().unwrap();
    answer.query_pairs_mut().append_pair("code", "code-m4rk").append_pair("state", &asked["state"]);
    follow(&answer);
    login.end()
}

fn call(world: &World) -> Ran {
    let mut command = world.command(&["upstream", "call", "far", "look"]);
    command.env("PASS", "pass-m4rk-word");
    finish(command)
}

/// As if the access token had come long ago, and with secrets that can be told from others.
fn age(world: &World) {
    let mut kept: Value = serde_json::from_slice(&fs::read(world.path(KEPT)).unwrap()).unwrap();
    kept["credentials"]["token_received_at"] = json!(1_700_000_000);
    kept["credentials"]["token_response"]["refresh_token"] = json!("refresh-m4rk");
    fs::write(world.path(KEPT), kept.to_string()).unwrap();
}

#[test]
fn what_an_authorization_server_repeats_is_hidden_and_not_kept() {
    let refuses = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&refuses);
    let issuer = Issuer::start(move |heard, _| {
        (heard.path == "/token" && now.load(Ordering::Relaxed)).then(|| {
            let said = format!("{} {}", markers(heard), heard.body);
            Reply::Json(400, json!({"error": "invalid_grant", "error_description": said}))
        })
    });
    let world = client(&issuer.url(), "oauth = { client_id = \"me\", client_secret_env = \"PASS\" }");
    let ran = log_in(&world);
    let verifier = issuer.heard("/token")[0].field("code_verifier");
    assert!(ran.code == Some(2) && ran.stderr.contains("invalid_grant") && ran.stderr.contains("***"), "{ran:#?}");
    let hides = |ran: &Ran| !ran.stderr.contains("m4rk") && !ran.stderr.contains(&verifier[..12]);
    assert!(!verifier.is_empty() && hides(&ran), "{ran:#?}");
    refuses.store(false, Ordering::Relaxed);
    let ran = log_in(&world);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    age(&world);
    refuses.store(true, Ordering::Relaxed);
    let ran = call(&world);
    assert!(ran.stderr.contains("invalid_grant") && hides(&ran), "{ran:#?}");
    let kept: Value = serde_json::from_slice(&fs::read(world.path(KEPT)).unwrap()).unwrap();
    let ended = kept["ended"].as_str().unwrap();
    assert!(ended.contains("***") && !ended.contains("m4rk"), "{ended}");
}

#[test]
fn a_token_that_no_header_can_hold_is_refused_when_it_comes() {
    let breaks = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&breaks);
    let issuer = Issuer::start(move |heard, _| {
        let tokens = json!({"access_token": "s3cret\r\nX-Evil: 1", "refresh_token": "r", "token_type": "Bearer", "expires_in": 9});
        (heard.path == "/token" && now.load(Ordering::Relaxed)).then_some(Reply::Json(200, tokens))
    });
    let world = client(&issuer.url(), "oauth = { client_id = \"me\", client_secret_env = \"PASS\" }");
    let told = "gives no token that can be used: it holds other than visible ASCII";
    let ran = log_in(&world);
    assert!(ran.code == Some(2) && ran.stderr.contains(told) && !ran.stderr.contains("s3cret"), "{ran:#?}");
    assert!(!world.path(KEPT).exists());
    breaks.store(false, Ordering::Relaxed);
    assert_eq!(log_in(&world).code, Some(0));
    age(&world);
    breaks.store(true, Ordering::Relaxed);
    let ran = call(&world);
    assert!(ran.code == Some(2) && ran.stderr.contains(told) && !ran.stderr.contains("s3cret"), "{ran:#?}");
}
