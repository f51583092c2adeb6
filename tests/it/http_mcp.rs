//! MCP over HTTP, in both eras, and what the ledger says of who was there.

use crate::http_client::{Connection, Server, token};
use crate::mcp_client::{LEGACY, MODERN};
use crate::world::{PATIENCE, World, until};
use headcount::store::Store;
use headcount::store::clients::{Client, NewClient};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const ALL: [&str; 4] = ["status:read", "roster:write", "clients:read", "grants:revoke"];

/// The clients that are listed.
fn clients(world: &World, args: &[&str]) -> Vec<Value> {
    let ran = world.run(&[&["clients", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.json()["sessions"].as_array().unwrap().clone()
}

#[test]
fn both_eras_get_the_same_report() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let all = token(&world, "all", &ALL);
    let server = Server::start(&world, &[&roster]);
    let mut reports = Vec::new();
    for version in [LEGACY[2], LEGACY[3], MODERN] {
        let mut connection = server.connect(&all);
        if version != MODERN {
            let hello = connection.initialize(version);
            assert_eq!(hello.status, 200);
            assert_eq!(hello.message()["result"]["protocolVersion"], version);
        }
        let tools = connection.ask("tools/list", json!({})).message()["result"]["tools"].take();
        assert_eq!(tools.as_array().unwrap().len(), 6);
        let report = connection.structured("get_session_status", json!({"session_id": "shop"}));
        assert_eq!((&report["schema"], &report["agent_count"]), (&json!("headcount.report/1"), &json!(1)));
        assert!(report["age_ms"].is_u64());
        let uri = "headcount://session/shop";
        let read = connection.ask("resources/read", json!({"uri": uri})).message();
        let text = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["session_id"], "shop");
        reports.push(report["agents"][0]["agent_id"].clone());
        let unknown = connection.ask("tools/call", json!({"name": "frobnicate", "arguments": {}}));
        assert_eq!(unknown.message()["error"]["code"], -32602);
    }
    // The oldest have no structured content: the report is the text.
    let mut connection = server.connect(&all);
    connection.initialize(LEGACY[0]);
    let result = connection.call("get_session_status", json!({"session_id": "shop"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["agents"][0]["agent_id"], reports[0]);
    let mut connection = server.connect(&all);
    let over_rest = connection.get("/v1/sessions/shop/status").json();
    reports.push(over_rest["agents"][0]["agent_id"].clone());
    assert!(reports.iter().all(|agent| *agent == reports[0]), "{reports:?}");
}

/// As the clients in Python take one event of a stream.
const LARGEST: usize = 1 << 20;

#[test]
fn no_answer_is_larger_than_clients_take_and_the_rest_can_be_asked_for() {
    let world = World::new();
    let names: Vec<String> = (0..1500).map(|n| format!("agent-{n}")).collect();
    let agents: Vec<(&str, u32)> = names.iter().map(|name| (&**name, std::process::id())).collect();
    let roster = world.roster("crowd", &agents);
    let good = token(&world, "laptop", &["status:read"]);
    let server = Server::start(&world, &[&roster]);
    for version in [LEGACY[0], LEGACY[3], MODERN] {
        let mut connection = server.connect(&good);
        if version != MODERN {
            connection.initialize(version);
        }
        let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), Value::Null, 0);
        while pages == 0 || !cursor.is_null() {
            let arguments = json!({"session_id": "crowd", "limit": 5000, "cursor": cursor});
            let answer = connection.ask("tools/call", json!({"name": "get_session_status", "arguments": arguments}));
            assert!(answer.text().len() < LARGEST, "{version}: {} bytes", answer.text().len());
            let result = answer.message()["result"].take();
            let text = || serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            let report: Value = result.get("structuredContent").cloned().unwrap_or_else(text);
            let ids = report["agents"].as_array().unwrap().iter().map(|agent| agent["agent_id"].to_string());
            seen.extend(ids);
            cursor = report["next_cursor"].clone();
            pages += 1;
        }
        assert!(seen.len() == 1500 && pages > 1, "{version}: {} agents on {pages} pages", seen.len());
        let read = connection.ask("resources/read", json!({"uri": "headcount://session/crowd"}));
        assert!(read.text().len() < LARGEST, "{version}: {} bytes", read.text().len());
        let read = read.message()["result"]["contents"][0]["text"].take();
        let report: Value = serde_json::from_str(read.as_str().unwrap()).unwrap();
        assert_eq!((&report["truncated"], &report["agent_count"]), (&json!(true), &json!(1500)), "{version}");
    }
}

#[test]
fn so_it_is_with_the_list_of_clients() {
    let world = World::new();
    let good = token(&world, "laptop", &["clients:read"]);
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name;
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let store = Store::at(&world.state());
    for n in 0..2000 {
        let who = NewClient {
            user_id: user.clone(),
            name: Some(format!("client {n} of very many that were here")),
            protocol: MODERN.into(),
            transport: "http".into(),
            ..NewClient::default()
        };
        let (connected_at_ms, last_activity_at_ms) = (now_ms - n, now_ms);
        let (id, server, calls) = (format!("c{n}"), "gone".into(), BTreeMap::new());
        let client =
            Client { id, server, who, connected_at_ms, last_activity_at_ms, ended: None, calls, agents_registered: 0 };
        store.record_client(&client).unwrap();
    }
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&good);
    let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), Value::Null, 0);
    while pages == 0 || !cursor.is_null() {
        let arguments = json!({"state": "all", "limit": 5000, "cursor": cursor});
        let answer = connection.ask("tools/call", json!({"name": "list_clients", "arguments": arguments}));
        assert!(answer.text().len() < LARGEST, "{} bytes", answer.text().len());
        let listed = answer.message()["result"]["structuredContent"].take();
        seen.extend(listed["sessions"].as_array().unwrap().iter().map(|row| row["id"].to_string()));
        cursor = listed["next_cursor"].clone();
        pages += 1;
    }
    // It is listed itself.
    assert!(seen.len() == 2001 && pages > 1, "{} clients on {pages} pages", seen.len());
}

#[test]
fn a_session_is_known_to_its_own_grant_only() {
    let world = World::new();
    let (one, other) = (token(&world, "one", &[]), token(&world, "other", &[]));
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&one);
    connection.initialize(LEGACY[3]);
    let id = connection.session.clone().unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(connection.post(&[], &ping).status, 200);
    for session in [&*id, "00000000-0000-4000-8000-000000000000", "x", "\u{fc}"] {
        let mut stranger = server.connect(&other);
        let header = [("mcp-session-id", session), ("accept", "text/event-stream")];
        assert_eq!(stranger.request("GET", "/mcp", &header, b"").status, 404, "{session}");
        assert_eq!(stranger.request("DELETE", "/mcp", &header, b"").status, 404, "{session}");
        stranger.session = Some(session.to_owned());
        assert_eq!(stranger.post(&[], &ping).status, 404, "{session}");
        // A handshake does not get into it either.
        let hello =
            json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
        assert_eq!(stranger.post(&[], &hello).status, 404, "{session}");
    }
    // In the newer era there are no sessions, and what names one means nothing.
    let mut modern = server.connect(&other);
    modern.session = Some(id);
    assert_eq!(modern.ask("tools/list", json!({})).status, 200);
    assert_eq!(connection.post(&[], &ping).status, 200, "its own session is as it was");
}

#[test]
fn where_nothing_is_pushed_there_is_no_stream() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    for headers in [&[][..], &[("mcp-protocol-version", MODERN), ("accept", "text/event-stream")]] {
        let answer = server.connect(&good).request("GET", "/mcp", headers, b"");
        assert_eq!((answer.status, answer.header("allow")), (405, "POST"));
    }
    assert_eq!(server.connect(&good).request("DELETE", "/mcp", &[], b"").status, 405);
    assert_eq!(server.connect(&good).request("PUT", "/mcp", &[], b"").status, 405);
    let without_session = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(server.connect(&good).post(&[("mcp-protocol-version", LEGACY[3])], &without_session).status, 400);
}

#[test]
fn a_client_is_a_row_until_it_ends() {
    let world = World::new();
    let all = token(&world, "all", &ALL);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&all);
    connection.initialize(LEGACY[3]);
    let row = clients(&world, &[])[0].clone();
    assert_eq!((&row["client_name"], &row["client_version"]), (&json!("test-client"), &json!("1.2")));
    assert_eq!((&row["transport"], &row["protocol"]), (&json!("http"), &json!(LEGACY[3])));
    assert!(row["grant_id"].as_str().unwrap().starts_with("grt_"));
    assert!(!row.to_string().contains(connection.session.as_ref().unwrap()), "what opens a session is in no list");
    connection.call("list_sessions", json!({}));
    connection.call("register_agent", json!({"session_id": "shop", "agent_name": "backend"}));
    connection.call("get_session_status", json!({"session_id": "none"}));
    until("its calls are written down", || clients(&world, &[])[0]["tool_calls"] == 3);
    let row = clients(&world, &[])[0].clone();
    assert_eq!((&row["tool_failures"], &row["agents_registered"]), (&json!(1), &json!(1)));
    // Another handshake in the session changes nothing.
    let hello = json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "x", "version": "9"}});
    connection.ask("initialize", hello);
    assert_eq!(clients(&world, &[])[0]["client_name"], "test-client");
    let session = connection.session.clone().unwrap();
    let delete =
        |connection: &mut Connection| connection.request("DELETE", "/mcp", &[("mcp-session-id", &session)], b"");
    assert_eq!(delete(&mut connection).status, 204);
    assert_eq!(delete(&mut connection).status, 404, "it is over");
    assert_eq!(connection.ask("tools/list", json!({})).status, 404);
    until("it has ended", || clients(&world, &[]).is_empty());
    let row = clients(&world, &["--all"])[0].clone();
    assert_eq!((&row["ended_reason"], &row["tool_calls"]), (&json!("closed"), &json!(3)));
    assert_eq!(clients(&world, &["--all"]).len(), 1);
}

#[test]
fn in_the_newer_era_a_client_is_who_it_says_it_is() {
    let world = World::new();
    let (one, other) = (token(&world, "one", &[]), token(&world, "other", &[]));
    let server = Server::start(&world, &[]);
    let named = |name: &str| json!({"_meta": {"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}});
    for _ in 0..2 {
        server.connect(&one).ask("tools/list", named("a"));
        server.connect(&one).ask("tools/list", named("b"));
        server.connect(&other).ask("tools/list", named("a"));
    }
    // One that does not say who it is.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).to_string();
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    assert_eq!(server.connect(&one).post(&headers, &body).status, 200);
    until("all are written down", || clients(&world, &[]).len() == 4);
    let mut found: Vec<String> = clients(&world, &[]).iter().map(|row| row["client_name"].to_string()).collect();
    found.sort_unstable();
    assert_eq!(found, ["\"a\"", "\"a\"", "\"b\"", "null"]);
}

#[test]
fn who_is_silent_for_long_has_ended_and_who_waits_is_not_silent() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let good = token(&world, "laptop", &["status:read"]);
    let config = world.write("config.toml", "[clients]\nidle = \"1s\"\n");
    let variables = [("HEADCOUNT_CONFIG", config.to_str().unwrap())];
    let server = Server::start_with(&world, &[&roster], &[], &variables);
    let mut silent = server.connect(&good);
    silent.initialize(LEGACY[3]);
    let mut listens = server.connect(&good);
    listens.initialize(LEGACY[3]);
    let session = listens.session.clone().unwrap();
    listens.send("GET", "/mcp", &[("mcp-session-id", &session), ("accept", "text/event-stream")], b"");
    assert_eq!(listens.head().status, 200);
    let mut waits = server.connect(&good);
    waits.send_message(
        "tools/call",
        json!({"name": "wait_for_attention", "arguments": {"session_id": "shop", "timeout_s": 600}}),
    );
    until("the silent one has ended", || clients(&world, &["--all"]).iter().any(|row| row["ended_reason"] == "idle"));
    std::thread::sleep(Duration::from_secs(2));
    let all = clients(&world, &["--all"]);
    let ended: Vec<&Value> = all.iter().filter(|row| row["ended"] == true).collect();
    assert_eq!((all.len(), ended.len()), (3, 1), "{all:#?}");
    assert_eq!(silent.ask("tools/list", json!({})).status, 404, "its session is over, too");
    // One that goes in the midst of it ends once it was silent, too.
    drop((listens, waits));
    until("all have ended", || clients(&world, &[]).is_empty());
    assert!(clients(&world, &["--all"]).iter().all(|row| row["ended_reason"] == "idle"));
    assert_eq!(clients(&world, &["--all"]).len(), 3);
}

#[test]
fn subscribers_of_both_eras_hear_of_changes() {
    let world = World::new();
    let good = token(&world, "all", &ALL);
    let server = Server::start(&world, &[]);
    let uri = "headcount://session/watched";
    let mut old = server.connect(&good);
    old.initialize(LEGACY[3]);
    assert_eq!(old.ask("resources/subscribe", json!({"uri": uri})).status, 200);
    let session = old.session.clone().unwrap();
    let mut old_stream = server.connect(&good);
    old_stream.send("GET", "/mcp", &[("mcp-session-id", &session), ("accept", "text/event-stream")], b"");
    assert_eq!(old_stream.head().status, 200);
    let mut new = server.connect(&good);
    new.send_message("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}}));
    assert_eq!(new.head().status, 200);
    assert_eq!(new.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    server.connect(&good).structured("register_agent", json!({"session_id": "watched", "agent_name": "backend"}));
    for stream in [&mut old_stream, &mut new] {
        let told = stream.event().unwrap();
        assert_eq!((&told["method"], &told["params"]["uri"]), (&json!("notifications/resources/updated"), &json!(uri)));
    }
    let (code, _) = server.terminate(PATIENCE);
    assert_eq!((code, old_stream.event(), new.event()), (Some(0), None, None), "streams end with the server");
}
