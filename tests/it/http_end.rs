//! Ending: of grants in the midst of what goes on under them, of the server, and of what is too much.

use crate::http_client::{Connection, Server, token};
use crate::mcp_client::LEGACY;
use crate::world::{HEADCOUNT, PATIENCE, World, memory, until};
use headcount::store::Store;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How soon what has ended is cut.
const AT_ONCE: Duration = Duration::from_secs(2);

fn rows(world: &World, args: &[&str]) -> Vec<Value> {
    let ran = world.run(&[&["clients", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.json()["sessions"].as_array().unwrap().clone()
}

fn grant(world: &World, name: &str) -> String {
    let grants = world.run(&["grants", "list", "--json"]).json()["grants"].take();
    let found = grants.as_array().unwrap().iter().find(|grant| grant["name"] == name).cloned();
    found.unwrap()["id"].as_str().unwrap().to_owned()
}

/// A session that nothing happens in, so that whoever waits there waits.
fn quiet() -> (World, std::path::PathBuf) {
    let world = World::new();
    let roster = world.roster("quiet-one", &[("one", std::process::id())]);
    (world, roster)
}

fn send_wait(connection: &mut Connection) {
    let arguments = json!({"session_id": "quiet-one", "timeout_s": 600});
    connection.send_message("tools/call", json!({"name": "wait_for_attention", "arguments": arguments}));
}

/// One who waits, in a session of the older era.
fn waits_in_a_session(server: &Server, token: &str) -> Connection {
    let mut waits = server.connect(token);
    waits.initialize(LEGACY[3]);
    send_wait(&mut waits);
    assert_eq!(waits.head().status, 200);
    waits
}

/// The stream of a session that was just begun; its connection knows that.
fn stream(server: &Server, token: &str) -> Connection {
    let mut begins = server.connect(token);
    begins.initialize(LEGACY[3]);
    let session = begins.session.unwrap();
    let mut stream = server.connect(token);
    stream.send("GET", "/mcp", &[("mcp-session-id", &session), ("accept", "text/event-stream")], b"");
    assert_eq!(stream.head().status, 200);
    stream.session = Some(session);
    stream
}

fn listens(server: &Server, token: &str) -> Connection {
    let mut listens = server.connect(token);
    let uri = "headcount://session/quiet-one";
    listens.send_message("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}}));
    assert_eq!(listens.head().status, 200);
    assert_eq!(listens.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    listens
}

#[test]
fn a_grant_that_is_revoked_is_cut_in_the_midst_of_everything() {
    for over_rest in [false, true] {
        let (world, roster) = quiet();
        let (lost, kept) = (token(&world, "lost", &[]), token(&world, "kept", &["status:read", "grants:revoke"]));
        let server = Server::start(&world, &[&roster]);
        let mut waits_on = server.connect(&kept);
        send_wait(&mut waits_on);
        let mut kept_stream = listens(&server, &kept);
        let mut waits = server.connect(&lost);
        send_wait(&mut waits);
        let mut in_session = waits_in_a_session(&server, &lost);
        let mut streams = [stream(&server, &lost), listens(&server, &lost)];
        until("all are written down", || rows(&world, &[]).len() >= 4);
        let id = grant(&world, "lost");
        if over_rest {
            let answer = server.connect(&kept).request("DELETE", &format!("/v1/grants/{id}"), &[], b"");
            assert_eq!(answer.status, 204);
        } else {
            assert_eq!(world.run(&["grants", "revoke", &id]).code, Some(0));
        }
        let began = Instant::now();
        let answer = server.connect(&lost).get("/v1/sessions");
        assert_eq!(answer.status, 401);
        assert!(answer.header("www-authenticate").contains("invalid_token"));
        assert_eq!(waits.response().status, 401, "a call is cut before it is answered");
        assert_eq!(in_session.event(), None);
        assert!(streams.iter_mut().all(|stream| stream.event().is_none()));
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        // Other grants have nothing to do with it.
        server.connect(&kept).get("/v1/sessions/quiet-one/status");
        let declared = world.run(&["register", "--session", "quiet-one", "--name", "two"]);
        assert_eq!(declared.code, Some(0), "{declared:#?}");
        assert_eq!(kept_stream.event().unwrap()["method"], "notifications/resources/updated");
        drop(waits_on);
        let ended = rows(&world, &["--all"]).into_iter().filter(|row| row["grant_id"] == json!(id));
        let reasons: Vec<String> = ended.map(|row| row["ended_reason"].to_string()).collect();
        assert!(reasons.len() >= 3 && reasons.iter().all(|reason| reason == "\"grant_revoked\""), "{reasons:?}");
    }
}

#[test]
fn a_server_that_is_to_end_ends_soon_and_loses_nothing() {
    let (world, roster) = quiet();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[&roster]);
    let mut calls = server.connect(&good);
    for _ in 0..20 {
        calls.structured("list_sessions", json!({}));
    }
    let mut waits = server.connect(&good);
    send_wait(&mut waits);
    let mut in_session = waits_in_a_session(&server, &good);
    let mut streams = [stream(&server, &good), listens(&server, &good)];
    let idle = server.connect(&good);
    until("all are written down", || rows(&world, &[]).len() == 3);
    let began = Instant::now();
    let (code, log) = server.terminate(PATIENCE);
    assert_eq!(code, Some(0), "{log}");
    assert!(began.elapsed() < Duration::from_secs(4), "nobody was waited for in vain: {:?}", began.elapsed());
    assert_eq!(waits.response().message()["result"]["isError"], true, "who waits is told that nothing will come");
    assert_eq!(in_session.event().unwrap()["result"]["isError"], true);
    assert!(streams.iter_mut().all(|stream| stream.event().is_none()));
    drop(idle);
    let all = rows(&world, &["--all"]);
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|row| row["ended_reason"] == "server_stopped"), "{all:#?}");
    let called: u64 = all.iter().map(|row| row["tool_calls"].as_u64().unwrap()).sum();
    assert_eq!(called, 22);
    assert!(!log.contains(&good), "{log}");
}

#[test]
fn a_server_whose_terminal_is_closed_ends_as_one_that_is_asked_to() {
    let (world, roster) = quiet();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[&roster]);
    let mut waits = server.connect(&good);
    send_wait(&mut waits);
    until("it is written down", || rows(&world, &[]).len() == 1);
    let (code, log) = server.ended_by(Signal::SIGHUP, PATIENCE);
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(waits.response().message()["result"]["isError"], true, "who waits is told that nothing will come");
}

/// As under `nohup`.
#[test]
fn a_server_that_is_to_outlive_its_terminal_does() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let serve = world.command(&["serve", "--http", "127.0.0.1:0"]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", HEADCOUNT]).args(serve.get_args());
    shell.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(world.path("")).stdin(Stdio::null()).stderr(Stdio::piped());
    let server = Server::spawn(shell);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let mask = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() & 1
    };
    assert_eq!((mask("SigIgn:"), mask("SigCgt:")), (1, 0), "{status}");
    server.signal(Signal::SIGHUP);
    assert_eq!(server.connect(&good).get("/v1/sessions").status, 200);
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
}

#[test]
fn a_server_that_was_killed_leaves_nothing_but_what_was_so() {
    let (world, roster) = quiet();
    let good = token(&world, "laptop", &[]);
    let socket = world.path("socket");
    let args = ["--unix", socket.to_str().unwrap()];
    let server = Server::start_with(&world, &[&roster], &args, &[]);
    let mut connection = server.connect(&good);
    connection.initialize(LEGACY[3]);
    let session = connection.session.clone().unwrap();
    let unmet = waits_in_a_session(&server, &good).session.unwrap();
    server.kill();
    assert_eq!(rows(&world, &[]), Vec::<Value>::new());
    assert!(rows(&world, &["--all"]).iter().all(|row| row["ended_reason"] == "server_stopped"));
    // The socket that was left is nobody's.
    let server = Server::start_with(&world, &[&roster], &args, &[]);
    let mut connection = server.connect(&good);
    connection.session = Some(session.clone());
    assert_eq!(connection.ask("tools/list", json!({})).status, 200, "the newer era knows no sessions");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(connection.post(&[], &ping).status, 200, "a session goes on with the new server");
    let found = rows(&world, &[]);
    assert!(found.iter().any(|row| row["protocol"] == LEGACY[3] && row["client_name"] == "test-client"), "{found:#?}");
    let other = token(&world, "other", &[]);
    let mut stranger = server.connect(&other);
    stranger.session = connection.session.clone();
    assert_eq!(stranger.post(&[], &ping).status, 404, "with its own grant alone");
    // One that is over does not come back, whether this server has met it or not.
    assert_eq!(connection.request("DELETE", "/mcp", &[("mcp-session-id", &session)], b"").status, 204);
    assert_eq!(server.connect(&good).request("DELETE", "/mcp", &[("mcp-session-id", &unmet)], b"").status, 204);
    for over in [&session, &unmet] {
        connection.session = Some(over.clone());
        assert_eq!(connection.post(&[], &ping).status, 404);
    }
    assert_eq!(connection.get("/v1/sessions/quiet-one/status").status, 200);
    let (code, _) = server.terminate(PATIENCE);
    assert_eq!((code, socket.exists()), (Some(0), false));
}

#[test]
fn silence_counts_over_a_new_start_of_the_server_and_so_does_use() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let config = world.write("config.toml", "[clients]\nidle = \"1s\"\n");
    let variables = [("HEADCOUNT_CONFIG", config.to_str().unwrap())];
    let server = Server::start_with(&world, &[], &[], &variables);
    let mut silent = server.connect(&good);
    silent.initialize(LEGACY[3]);
    let in_use = {
        let stream = stream(&server, &good);
        let session = stream.session.clone().unwrap();
        // It lasts longer than silence may.
        let store = Store::at(&world.state());
        let grant = grant(&world, "laptop");
        let now_ms = || u64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        let later = now_ms() + 1500;
        until("its use is noted", || store.kept_session(&session, &grant, later).unwrap().is_some());
        session
    };
    server.kill();
    let last = Instant::now();
    let server = Server::start(&world, &[]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let mut client = server.connect(&good);
    client.session = Some(in_use);
    assert_eq!(client.post(&[], &ping).status, 200, "half an hour has not passed");
    server.kill();
    until("a second has passed", || last.elapsed() > Duration::from_millis(1200));
    let server = Server::start_with(&world, &[], &[], &variables);
    let mut client = server.connect(&good);
    client.session = silent.session;
    assert_eq!(client.post(&[], &ping).status, 404, "but a second has");
}

#[test]
fn the_newest_stream_of_a_session_is_told_and_a_new_server_that_could_not_tell_it_has_it_begin_anew() {
    let (world, roster) = quiet();
    let good = token(&world, "laptop", &["status:read", "roster:write"]);
    let server = Server::start(&world, &[&roster]);
    let mut client = server.connect(&good);
    client.initialize(LEGACY[3]);
    let session = client.session.clone().unwrap();
    let open = || {
        let mut stream = server.connect(&good);
        stream.send("GET", "/mcp", &[("mcp-session-id", &session), ("accept", "text/event-stream")], b"");
        assert_eq!(stream.head().status, 200);
        stream
    };
    let mut older = open();
    let mut newer = open();
    assert_eq!(older.event(), None, "it ends");
    drop(older);
    let uri = "headcount://session/depot";
    assert_eq!(client.ask("resources/subscribe", json!({"uri": uri})).status, 200);
    client.structured("register_agent", json!({"session_id": "depot", "agent_name": "backend"}));
    assert_eq!(newer.event().unwrap()["params"]["uri"], uri);
    server.kill();
    let server = Server::start(&world, &[&roster]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let mut client = server.connect(&good);
    client.session = Some(session);
    assert_eq!(client.post(&[], &ping).status, 404);
}

#[test]
fn a_session_that_is_closed_while_a_new_server_takes_it_up_does_not_come_back() {
    let (world, roster) = quiet();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[&roster]);
    let begun = |_| {
        let mut client = server.connect(&good);
        client.initialize(LEGACY[3]);
        client.session.unwrap()
    };
    let sessions: Vec<String> = (0..60).map(begun).collect();
    server.kill();
    let server = Server::start(&world, &[&roster]);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let (mut calls, mut closes) = (server.connect(&good), server.connect(&good));
    for session in sessions {
        calls.session = Some(session.clone());
        calls.send_post(&[], &ping);
        assert_eq!(closes.request("DELETE", "/mcp", &[("mcp-session-id", &session)], b"").status, 204);
        let status = calls.response().status;
        assert!([200, 404].contains(&status), "{status}");
        assert_eq!(calls.post(&[], &ping).status, 404, "it is over");
    }
}

#[test]
fn a_flood_without_a_token_changes_nothing() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    assert_eq!(server.connect(&good).get("/v1/sessions").status, 200);
    let before = memory(server.pid());
    let mut flood = Connection::to(server.address, None);
    let hello = json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    for _ in 0..5000 {
        assert_eq!(flood.post(&[], &hello).status, 401);
    }
    let grown = memory(server.pid()) - before;
    assert!(grown < 20 << 10, "{grown} KiB more");
    assert_eq!(rows(&world, &["--all"]), Vec::<Value>::new());
    assert_eq!(server.connect(&good).get("/v1/sessions").status, 200);
}

#[test]
fn a_flood_with_a_token_runs_into_the_cap() {
    let world = World::new();
    let (greedy, modest) = (token(&world, "greedy", &[]), token(&world, "modest", &[]));
    let server = Server::start(&world, &[]);
    assert_eq!(server.connect(&greedy).get("/v1/sessions").status, 200);
    let before = memory(server.pid());
    let mut flood = server.connect(&greedy);
    let hello = json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    let answers: Vec<_> = (0..5000).map(|_| flood.post(&[], &hello)).collect();
    let (begun, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert!((100..1000).contains(&begun.len()), "{} were begun", begun.len());
    assert!(refused.iter().all(|answer| answer.status == 429 && !answer.header("retry-after").is_empty()));
    let grown = memory(server.pid()) - before;
    assert!(grown < 20 << 10, "{grown} KiB more");
    // Another grant is served as before, and so is this one where it needs no more sessions.
    assert_eq!(server.connect(&modest).initialize(LEGACY[3]).status, 200);
    assert_eq!(flood.ask("tools/list", json!({})).status, 200);
    assert_eq!(rows(&world, &["--limit", "5000"]).len(), begun.len() + 2);
}

#[test]
fn streams_have_an_end_to_their_number() {
    let (world, roster) = quiet();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[&roster]);
    let uri = "headcount://session/quiet-one";
    let open = |_| {
        let mut listens = server.connect(&good);
        listens.send_message("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}}));
        let status = listens.head().status;
        (status, listens)
    };
    let mut opened: Vec<_> = (0..260).map(open).collect();
    let statuses = |opened: &[(u16, Connection)], status| opened.iter().filter(|(s, _)| *s == status).count();
    assert_eq!((statuses(&opened, 200), statuses(&opened, 429)), (256, 4));
    assert_eq!(server.connect(&good).get("/v1/sessions").status, 200);
    // A place is free as soon as somebody goes.
    opened.truncate(200);
    until("there is room again", || open(0).0 == 200);
}
