//! Access to an upstream server by OAuth, with headcount's own server: consent, use, renewal, and every way to its end.

use crate::http_client::Server;
use crate::oauth_client::query;
use crate::upstream_login::{KEPT, Login, client, configure, consent, follow, log_in};
use crate::world::World;
use headcount::auth::Scope;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

const LOGGED_OUT: &str = "not logged in: headcount upstream login far";

/// A server that grants access, its owner, and who wants it.
fn worlds() -> (World, Server, World) {
    let owner = World::new();
    let server = Server::start(&owner, &[]);
    let world = client(&format!("http://{}/mcp", server.address), "oauth = true");
    (owner, server, world)
}

fn kept(world: &World) -> Value {
    serde_json::from_slice(&fs::read(world.path(KEPT)).unwrap()).unwrap()
}

/// Changes what is kept.
fn keep(world: &World, pointer: &str, value: Value) {
    let mut kept = kept(world);
    *kept.pointer_mut(pointer).unwrap() = value;
    fs::write(world.path(KEPT), kept.to_string()).unwrap();
}

/// As if the access token had come long ago.
fn age(world: &World) {
    keep(world, "/credentials/token_received_at", json!(1_700_000_000));
}

fn tokens(world: &World) -> [String; 2] {
    ["access_token", "refresh_token"]
        .map(|name| kept(world)["credentials"]["token_response"][name].as_str().unwrap().to_owned())
}

fn row(world: &World) -> Value {
    world.run(&["upstream", "list", "--json"]).json()["upstreams"][0].take()
}

fn call(world: &World) -> crate::world::Ran {
    world.run(&["upstream", "call", "far", "list_sessions", "--json"])
}

#[test]
fn who_has_consented_calls_and_the_token_is_renewed_until_the_grant_is_revoked() {
    let (owner, server, world) = worlds();
    let before = call(&world);
    assert_eq!(before.code, Some(2));
    assert!(before.stderr.trim().ends_with(&format!("cannot connect: {LOGGED_OUT}")), "{before:#?}");
    let seen = row(&world);
    assert_eq!((&seen["state"], &seen["login"]["state"]), (&json!("failed"), &json!("logged_out")));
    assert!(seen["last_error"].as_str().unwrap().contains(LOGGED_OUT), "{seen:#}");
    let doctor = world.run(&["doctor"]).stdout;
    assert!(doctor.contains(LOGGED_OUT), "{doctor}");

    let ran = log_in(&world, &owner, &server, &[], &[Scope::StatusRead, Scope::ClientsRead]);
    let last = ran.stdout.lines().last().unwrap();
    assert!(last.starts_with("Logged in to far: logged in, since 20") && last.contains("renewed then"), "{last}");
    let mode = |path: &str| fs::metadata(world.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(KEPT), mode(".local/state/headcount/upstream-logins")], [0o600, 0o700]);
    assert_eq!(call(&world).json()["result"]["structuredContent"]["schema"], "headcount.sessions/1");
    let seen = row(&world);
    assert_eq!((&seen["state"], &seen["login"]["state"]), (&json!("ready"), &json!("logged_in")), "{seen:#}");
    assert_eq!(seen["login"]["scopes"], json!(["status:read", "clients:read"]));
    assert_eq!(seen["login"]["issuer"], format!("http://{}", server.address));
    assert!(world.run(&["upstream", "list"]).stdout.contains("LOGIN"));

    let first = tokens(&world);
    age(&world);
    assert_eq!(call(&world).code, Some(0));
    let second = tokens(&world);
    assert!(first[0] != second[0] && first[1] != second[1], "it is not renewed");
    assert_eq!(call(&world).code, Some(0));
    assert_eq!(tokens(&world), second, "it is renewed without need");

    let grants = owner.run(&["grants", "list", "--json"]).json();
    assert_eq!(grants["grants"].as_array().unwrap().len(), 1);
    let id = grants["grants"][0]["id"].as_str().unwrap();
    assert_eq!(owner.run(&["grants", "revoke", id]).code, Some(0));
    for _ in 0..2 {
        let after = call(&world);
        assert!(after.code == Some(2) && after.stderr.contains(LOGGED_OUT), "{after:#?}");
        assert!(after.stderr.contains("renews it no more: invalid_grant"), "{after:#?}");
    }
    assert!(row(&world)["login"]["reason"].as_str().unwrap().contains("invalid_grant"));
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    assert_eq!(call(&world).code, Some(0));
}

#[test]
fn a_token_that_the_server_refuses_before_its_time_is_renewed_once() {
    let (owner, server, world) = worlds();
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    keep(&world, "/credentials/token_response/access_token", json!("hct_nobody_knows_this"));
    assert_eq!(call(&world).code, Some(0));
    assert_ne!(tokens(&world)[0], "hct_nobody_knows_this");
}

#[test]
fn of_many_processes_one_renews_and_none_is_logged_out() {
    let (owner, server, world) = worlds();
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    for _ in 0..3 {
        let before = tokens(&world);
        age(&world);
        thread::scope(|scope| {
            let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| call(&world))).collect();
            for ran in calls.into_iter().map(|call| call.join().unwrap()) {
                assert_eq!(ran.code, Some(0), "{ran:#?}");
            }
        });
        assert_ne!(tokens(&world), before);
    }
    // Who shows a used refresh token again loses the grant: nobody has.
    assert_eq!(owner.run(&["grants", "list", "--json"]).json()["grants"].as_array().unwrap().len(), 1);
    assert_eq!(call(&world).code, Some(0));
}

#[test]
fn a_server_that_is_down_has_logged_nobody_out() {
    let (owner, server, world) = worlds();
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    let before = kept(&world);
    server.kill();
    age(&world);
    let ran = call(&world);
    assert!(ran.code == Some(2) && ran.stderr.contains("the login cannot be used now"), "{ran:#?}");
    assert!(!ran.stderr.contains("not logged in"), "{ran:#?}");
    assert_eq!(kept(&world)["credentials"]["token_response"], before["credentials"]["token_response"]);
    let out = world.run(&["upstream", "logout", "far"]);
    assert!(out.code == Some(1) && out.stdout.contains("may still hold"), "{out:#?}");
    assert!(!world.path(KEPT).exists());
}

#[test]
fn what_a_login_does_not_reach_is_asked_for_by_name() {
    let (owner, server, world) = worlds();
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    let roster = r#"{"session": "s", "name": "a", "pid": 1}"#;
    let refused = world.run(&["upstream", "call", "far", "register_agent", roster]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let command = "headcount upstream login far --scope status:read --scope roster:write (403)";
    assert!(refused.stderr.contains(command), "{refused:#?}");
    let args = ["--scope", "roster:write"];
    let login = Login::start(&world, &args, &[]);
    assert_eq!(query(login.url.as_str())["scope"], "status:read roster:write");
    follow(&consent(&owner, &server, &login.url, &[Scope::StatusRead, Scope::RosterWrite]));
    assert_eq!(login.end().code, Some(0));
    let called = world.run(&["upstream", "call", "far", "register_agent", roster]);
    assert!(!called.stderr.contains("does not reach"), "{called:#?}");
}

#[test]
fn logging_out_ends_the_grant_there_and_here() {
    let (owner, server, world) = worlds();
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    let out = world.run(&["upstream", "logout", "far"]);
    assert_eq!((out.code, out.stdout.trim()), (Some(0), "Logged out of far."));
    assert_eq!(owner.run(&["grants", "list", "--json"]).json()["grants"], json!([]));
    assert!(!world.path(KEPT).exists() && call(&world).stderr.contains(LOGGED_OUT));
    let again = world.run(&["upstream", "logout", "far"]);
    assert_eq!((again.code, again.stdout.trim()), (Some(0), "Nobody was logged in to far."));
    drop(server);
}

#[test]
fn a_browser_elsewhere_is_enough_and_only_the_answer_to_this_request_counts() {
    let (owner, server, world) = worlds();
    let mut login = Login::start(&world, &["--no-browser"], &[]);
    let answer = consent(&owner, &server, &login.url, &[Scope::StatusRead]);
    login.paste(answer.as_str());
    let ran = login.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(call(&world).code, Some(0));
    for (change, told) in [
        ("state", "this is not the answer that is waited for"),
        ("iss", "does not come from the authorization server that was asked"),
        ("code", "gives no token: invalid_grant"),
    ] {
        let mut login = Login::start(&world, &["--no-browser"], &[]);
        let mut answer = consent(&owner, &server, &login.url, &[Scope::StatusRead]);
        let pairs: Vec<_> = answer.query_pairs().into_owned().collect();
        let changed =
            |(name, value): (String, String)| if name == change { (name, value + "x") } else { (name, value) };
        answer.query_pairs_mut().clear().extend_pairs(pairs.into_iter().map(changed));
        login.paste(answer.as_str());
        let ran = login.end();
        assert!(ran.code == Some(2) && ran.stderr.contains(told), "{change}: {ran:#?}");
    }
    let mut login = Login::start(&world, &["--no-browser"], &[]);
    login.paste("no address");
    assert!(login.end().stderr.contains("this is no address"));
    assert_eq!(call(&world).code, Some(0), "what there was is not lost by it");
}

#[test]
fn who_is_refused_or_not_answered_is_told_so() {
    let (_owner, _server, world) = worlds();
    let login = Login::start(&world, &[], &[]);
    let asked = query(login.url.as_str());
    let mut answer: url::Url = asked["redirect_uri"].parse().unwrap();
    answer.query_pairs_mut().append_pair("state", "other").append_pair("code", "x");
    assert!(follow(&answer).starts_with("HTTP/1.1 400"));
    answer.query_pairs_mut().clear().append_pair("state", &asked["state"]).append_pair("error", "access_denied");
    assert!(follow(&answer).starts_with("HTTP/1.1 200"));
    let ran = login.end();
    assert!(ran.code == Some(2) && ran.stderr.contains("the access was refused: access_denied"), "{ran:#?}");
    let ran = Login::start(&world, &["--timeout", "50ms"], &[]).end();
    assert!(ran.code == Some(2) && ran.stderr.contains("nobody has answered within 50 ms"), "{ran:#?}");
    assert!(!world.path(KEPT).exists());
    configure(&world, "http://127.0.0.1:9/mcp", "");
    let ran = world.run(&["upstream", "login", "far"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no `oauth` in the configuration"), "{ran:#?}");
}

#[test]
fn a_login_is_for_one_server_and_for_its_user_alone() {
    let (owner, server, world) = worlds();
    log_in(&world, &owner, &server, &[], &[Scope::StatusRead]);
    let url = format!("http://{}/mcp", server.address);
    let mode = |mode| fs::set_permissions(world.path(KEPT), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let ran = call(&world);
    assert!(ran.code == Some(2) && ran.stderr.contains("chmod o="), "{ran:#?}");
    assert_eq!(row(&world)["login"]["state"], "unknown");
    mode(0o600);
    configure(&world, &url.replace("/mcp", "/other"), "oauth = true");
    assert!(call(&world).stderr.contains(LOGGED_OUT), "it is sent elsewhere");
    configure(&world, &url, "oauth = true");
    assert_eq!(call(&world).code, Some(0));
    fs::write(world.path(KEPT), "{").unwrap();
    let ran = call(&world);
    assert!(ran.code == Some(2) && ran.stderr.contains("cannot be read"), "{ran:#?}");
}

#[test]
fn nothing_that_is_printed_or_logged_holds_a_secret() {
    let (owner, server, world) = worlds();
    let log = [("RUST_LOG", "trace,rmcp=trace,hyper=trace,reqwest=trace")];
    let login = Login::start(&world, &[], &log);
    let redirect = consent(&owner, &server, &login.url, &[Scope::StatusRead]);
    follow(&redirect);
    let mut said = vec![login.end()];
    let mut secrets = vec![query(redirect.as_str())["code"].clone()];
    secrets.extend(tokens(&world));
    let mut run = |args: &[&str]| {
        let mut command = world.command(args);
        said.push(crate::world::finish({
            command.envs(log);
            command
        }));
    };
    run(&["upstream", "call", "far", "list_sessions"]);
    age(&world);
    run(&["upstream", "list"]);
    secrets.extend(tokens(&world));
    for args in [&["upstream", "list", "--json"][..], &["doctor"], &["config", "print"], &["upstream", "logout", "far"]]
    {
        run(args);
    }
    assert!(said.iter().any(|ran| ran.stderr.contains("TRACE")), "nothing is logged");
    for ran in &said {
        for secret in &secrets {
            assert!(!format!("{ran:?}").contains(secret.as_str()), "{ran:#?}");
        }
    }
}
