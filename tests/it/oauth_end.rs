//! Ends of access that was given: revoked in the midst of things, servers that are killed, floods, and what is written down.

use crate::http_client::{Connection, Server};
use crate::mcp_client::LEGACY;
use crate::oauth_client::{Client, REDIRECT, Tokens, encoded, query, register};
use crate::world::{PATIENCE, World};
use serde_json::json;
use std::fs;
use std::os::unix::net::UnixStream;

#[test]
fn who_disconnects_is_cut_in_the_midst_of_everything() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let server = Server::start(&world, &[&roster]);
    let client = Client::register(&world, &server);
    for by_refresh in [true, false] {
        let (lost, kept) = (client.tokens("status:read"), client.tokens("status:read"));
        let mut waits = server.connect(&lost.access);
        let arguments = json!({"session_id": "shop", "timeout_s": 600});
        waits.send_message("tools/call", json!({"name": "wait_for_attention", "arguments": arguments}));
        let mut begins = server.connect(&lost.access);
        begins.initialize(LEGACY[3]);
        let session = begins.session.unwrap();
        // A refresh ends no session.
        let newer = Tokens::of(&client.refresh(&lost));
        let mut stream = server.connect(&newer.access);
        stream.send("GET", "/mcp", &[("mcp-session-id", &session), ("accept", "text/event-stream")], b"");
        assert_eq!(stream.head().status, 200);
        assert_eq!(client.revoke(if by_refresh { &newer.refresh } else { &lost.access }).status, 200);
        assert_eq!(waits.response().status, 401, "a call is cut before it is answered");
        assert_eq!(stream.event(), None);
        for tokens in [&lost, &newer] {
            assert_eq!(server.connect(&tokens.access).get("/v1/sessions").status, 401);
            assert_eq!(client.refresh(tokens).status, 400);
        }
        assert_eq!(server.connect(&kept.access).get("/v1/sessions").status, 200, "the client's other grant");
    }
    assert_eq!(client.revoke("hct_nothing").status, 200);
}

#[test]
fn a_server_that_is_killed_loses_nothing_that_it_has_answered() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let client = Client::register(&world, &server);
    let (id, code, tokens) = (client.id.clone(), client.code("status:read"), client.tokens("status:read"));
    let page = client.page("status:read");
    server.kill();
    let server = Server::start(&world, &[]);
    let client = Client { world: &world, server: &server, id };
    assert_eq!(server.connect(&tokens.access).get("/v1/sessions").status, 200);
    let newer = Tokens::of(&client.refresh(&tokens));
    let first = Tokens::of(&client.token(&client.redeems(&code)));
    let answer = client.answer(&page, &client.approves(&page));
    let second = Tokens::of(&client.token(&client.redeems(&query(answer.header("location"))["code"])));
    assert_eq!(client.revoke(&second.refresh).status, 200);
    let id = client.id.clone();
    server.kill();
    let server = Server::start(&world, &[]);
    let status = |tokens: &Tokens| server.connect(&tokens.access).get("/v1/sessions").status;
    assert_eq!([status(&newer), status(&first), status(&second)], [200, 200, 401]);
    let client = Client { world: &world, server: &server, id };
    let again = client.token(&client.redeems(&code));
    assert_eq!(again.status, 400, "a code is redeemed once, whoever has been killed since");
    assert_eq!(status(&first), 401);
}

#[test]
fn a_flood_of_strangers_stands_in_nobodys_way_for_long() {
    let world = World::new();
    let socket = world.path("socket");
    let server = Server::start_with(&world, &[], &["--unix", socket.to_str().unwrap()], &[]);
    let client = Client::register(&world, &server);
    let tokens = client.tokens("status:read");
    let page = client.page("status:read");
    let stranger = Client::register(&world, &server);
    let asks = format!("/oauth/authorize?{}", encoded(&stranger.asks("status:read")));
    let mut flood = Connection::to(server.address, None);
    let answers: Vec<_> = (0..300).map(|_| flood.get(&asks)).collect();
    let shown = answers.iter().filter(|answer| answer.status == 200).count();
    assert!((10..32).contains(&shown), "{shown} were shown: nobody drives out all others");
    assert!(answers.iter().all(|answer| [200, 503].contains(&answer.status)));
    let metadata = json!({"client_name": "flood", "redirect_uris": [REDIRECT]});
    let registered: Vec<_> = (0..300).map(|_| register(&server, &metadata)).collect();
    assert!(registered.iter().any(|answer| answer.status == 429 && !answer.header("retry-after").is_empty()));
    assert!(registered.iter().all(|answer| [201, 429].contains(&answer.status)));
    // Who comes another way is served as before.
    let mut other = Connection::over(UnixStream::connect(&socket).unwrap(), None);
    assert_eq!(other.get(&asks).status, 200);
    let kind = [("content-type", "application/json")];
    assert_eq!(other.request("POST", "/oauth/register", &kind, metadata.to_string().as_bytes()).status, 201);
    // Who has access keeps it, and who was shown a page can answer it.
    assert_eq!(server.connect(&tokens.access).get("/v1/sessions").status, 200);
    assert_eq!(client.answer(&page, &client.approves(&page)).status, 303);
    Tokens::of(&client.refresh(&tokens));
}

#[test]
fn no_secret_is_written_down_anywhere() {
    let world = World::new();
    let server = Server::start_with(&world, &[], &[], &[("RUST_LOG", "trace,rmcp=trace")]);
    let client = Client::register(&world, &server);
    let page = client.page("status:read");
    let sent = client.approves(&page);
    let wrong = client.answer(&page, &crate::oauth_client::with(&sent, "code", "WRNG-CODE"));
    assert_eq!(wrong.status, 403);
    let answer = client.answer(&page, &sent);
    let code = query(answer.header("location"))["code"].clone();
    let tokens = Tokens::of(&client.token(&client.redeems(&code)));
    let newer = Tokens::of(&client.refresh(&tokens));
    assert_eq!(server.connect(&newer.access).get("/v1/sessions").status, 200);
    server.connect(&newer.access).structured("list_sessions", json!({}));
    // A replay is noted, and so is what came of it.
    assert_eq!(client.token(&client.redeems(&code)).status, 400);
    let verifier = crate::oauth_client::VERIFIER;
    let mut secrets = vec![page.id.as_str(), &*sent["code"], &code, verifier];
    for tokens in [&tokens, &newer] {
        secrets.extend([tokens.access.as_str(), &tokens.refresh]);
    }
    let (exit, log) = server.terminate(PATIENCE);
    assert_eq!(exit, Some(0));
    assert!(log.contains("DEBUG") && log.contains("was granted access"), "it says much: {log}");
    for secret in &secrets {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    // Nor on the disk, but for the code that the owner was shown, while it could be typed.
    let mut files = vec![world.state()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for secret in secrets.iter().filter(|secret| **secret != sent["code"]) {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}
