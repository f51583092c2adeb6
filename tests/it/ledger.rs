//! The rules of the ledger: what makes a client one, what keeps it, what ends it, and what it may call itself.

use crate::http_client::{Server, token};
use crate::mcp_client::{Client, LEGACY, MODERN};
use crate::world::{PATIENCE, World, until};
use headcount::auth::Token;
use rusqlite::Connection as Database;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ALL: [&str; 4] = ["status:read", "roster:write", "clients:read", "grants:revoke"];

/// The clients that are listed.
fn clients(world: &World, args: &[&str]) -> Vec<Value> {
    let ran = world.run(&[&["clients", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.json()["sessions"].as_array().unwrap().clone()
}

fn named(name: &str) -> Value {
    json!({"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}})
}

/// What is sent to wait for something that does not come.
fn waiting() -> Value {
    json!({"name": "wait_for_attention", "arguments": {"session_id": "shop", "timeout_s": 600}})
}

#[test]
fn each_sign_of_life_puts_the_end_off() {
    let idle = Duration::from_secs(3);
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let config = world.write("config.toml", "[clients]\nidle = \"3s\"\n");
    let server = Server::start_with(&world, &[], &[], &[("HEADCOUNT_CONFIG", config.to_str().unwrap())]);
    let (mut old, mut new) = (server.connect(&good), server.connect(&good));
    old.initialize(LEGACY[3]);
    let began = Instant::now();
    while began.elapsed() < idle * 2 {
        old.call("list_sessions", json!({}));
        new.call("list_sessions", json!({}));
        sleep(idle / 20);
    }
    assert_eq!((clients(&world, &[]).len(), clients(&world, &["--all"]).len()), (2, 2));
    until("both have ended", || clients(&world, &[]).is_empty());
    assert!(began.elapsed() >= idle * 3);
    // In the newer era whoever comes again after that is a new one.
    new.call("list_sessions", json!({}));
    until("it is there", || clients(&world, &[]).len() == 1);
    let all = clients(&world, &["--all"]);
    assert_eq!((all.len(), all.iter().filter(|row| row["ended_reason"] == "idle").count()), (3, 2), "{all:#?}");
}

#[test]
fn another_token_of_the_same_grant_is_the_same_client() {
    let world = World::new();
    let first = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let mut old = server.connect(&first);
    old.initialize(LEGACY[3]);
    server.connect(&first).call("list_sessions", json!({}));
    let second = Token::generate().unwrap();
    let database = Database::open(world.state().join("headcount.db")).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    let sql = "INSERT INTO token (digest, grant_id) SELECT ?1, id FROM grant";
    assert_eq!(database.execute(sql, [second.digest()]).unwrap(), 1);
    let sql = "DELETE FROM token WHERE digest != ?1";
    assert_eq!(database.execute(sql, [second.digest()]).unwrap(), 1);
    assert_eq!(server.connect(&first).get("/v1/sessions").status, 401, "the first one is used up");
    let mut on = server.connect(second.reveal());
    on.session.clone_from(&old.session);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(on.post(&[], &ping).status, 200, "the session goes on");
    server.connect(second.reveal()).call("list_sessions", json!({}));
    until("both calls are written down", || clients(&world, &[]).iter().any(|row| row["tool_calls"] == 2));
    assert_eq!(clients(&world, &["--all"]).len(), 2);
}

#[test]
fn a_call_that_is_withdrawn_has_come_to_nothing() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[&roster]);
    let mut over_stdio = Client::connect(&world, &[&roster], LEGACY[3]);
    let id = over_stdio.send("tools/call", waiting());
    let mut old = server.connect(&good);
    old.initialize(LEGACY[3]);
    let waits = old.send_message("tools/call", waiting());
    assert_eq!(old.head().status, 200);
    let mut new = server.connect(&good);
    new.send_message("tools/call", waiting());
    until("all are written down", || clients(&world, &[]).len() == 3);
    over_stdio.cancel(id);
    let mut beside = server.connect(&good);
    beside.session.clone_from(&old.session);
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waits}});
    assert_eq!(beside.post(&[], &cancelled.to_string()).status, 202);
    // In the newer era a call is withdrawn by hanging up.
    drop(new);
    let failed = |row: &Value| row["tool_calls"] == 1 && row["tool_failures"] == 1;
    until("each has failed", || clients(&world, &[]).iter().filter(|row| failed(row)).count() == 3);
    assert!(clients(&world, &[]).iter().all(|row| row["calls_by_tool"] == json!({"wait_for_attention": 1})));
}

#[test]
fn servers_share_one_ledger_and_each_ends_its_own() {
    let world = World::new();
    let good = token(&world, "all", &ALL);
    let lost = token(&world, "lost", &[]);
    let (one, other) = (Server::start(&world, &[]), Server::start(&world, &[]));
    for server in [&one, &other] {
        server.connect(&good).call("list_sessions", json!({}));
        server.connect(&lost).call("list_sessions", json!({}));
    }
    let mut own = Client::connect(&world, &[], MODERN);
    own.call("list_sessions", json!({}));
    until("all are there", || clients(&world, &[]).len() >= 5);
    let grants = one.connect(&good).get("/v1/grants").json()["grants"].take();
    let id = grants.as_array().unwrap().iter().find(|grant| grant["name"] == "lost").unwrap()["id"].clone();
    let mut waits = other.connect(&lost);
    waits.send("GET", "/v1/sessions", &[], b"");
    assert_eq!(waits.response().status, 200);
    let path = format!("/v1/grants/{}", id.as_str().unwrap());
    assert_eq!(one.connect(&good).request("DELETE", &path, &[], b"").status, 204);
    assert_eq!(waits.get("/v1/sessions").status, 401, "the other server knows at once");
    let ended = |reason| clients(&world, &["--all"]).iter().filter(|row| row["ended_reason"] == reason).count();
    assert_eq!((ended("grant_revoked"), ended("server_stopped")), (2, 0));
    // That it was so is on disk within a second, and stays so when the server is no more.
    let database = Database::open(world.state().join("headcount.db")).unwrap();
    let written = "SELECT count(*) = 2 FROM client WHERE ended_at_ms IS NOT NULL";
    until("it is written down", || database.query_row(written, [], |row| row.get(0)).unwrap());
    one.kill();
    assert_eq!((ended("grant_revoked"), ended("server_stopped"), clients(&world, &[]).len()), (2, 1, 2));
    own.close(PATIENCE);
    assert_eq!((ended("closed"), clients(&world, &[]).len()), (1, 1));
}

#[test]
fn a_client_may_call_itself_what_it_likes() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let large = "y".repeat(1 << 20);
    let names = ["\u{202e}live\u{2066}", "\u{1b}[2J\u{1b}]0;title\u{7}red\r\nline", large.as_str(), "", "\0"];
    for name in names {
        let asked = json!({"name": "list_sessions", "arguments": {}, "_meta": named(name)});
        assert_eq!(server.connect(&good).ask("tools/call", asked).status, 200);
        let mut over_stdio = Client::start(&world, &[], &[]);
        let client = json!({"name": name, "version": name});
        let hello = json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": client});
        let id = over_stdio.send("initialize", hello);
        assert!(over_stdio.answer(id)["result"].is_object());
        until("it is there", || clients(&world, &[]).iter().any(|row| row["transport"] == "stdio"));
        over_stdio.close(PATIENCE);
    }
    let rows = clients(&world, &["--all"]);
    assert_eq!(rows.len(), 2 * names.len());
    let words =
        rows.iter().flat_map(|row| [row["client_name"].as_str().unwrap(), row["client_version"].as_str().unwrap()]);
    for word in words {
        let acts = |c: char| {
            c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
        };
        assert!(word.chars().count() <= 128 && !word.chars().any(acts), "{word:?}");
    }
    for name in ["live", "red  line", &"y".repeat(128), ""] {
        assert!(rows.iter().any(|row| row["client_name"] == json!(name)), "{name:?}: {rows:#?}");
    }
    let table = world.run(&["clients", "--all"]).stdout;
    assert!(!table.contains('\u{1b}') && !table.contains('\u{202e}'), "{table:?}");
    // What would be kept for as long as a session lasts is not taken.
    let hello =
        json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": large, "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    assert_eq!(server.connect(&good).post(&[], &hello).status, 413);
    assert_eq!(clients(&world, &["--all"]).len(), 2 * names.len());
}

#[test]
fn all_surfaces_list_the_same_clients() {
    let world = World::new();
    let all = token(&world, "all", &ALL);
    let server = Server::start(&world, &[]);
    for name in ["a", "b", "c"] {
        let asked = json!({"name": "list_sessions", "arguments": {}, "_meta": named(name)});
        assert_eq!(server.connect(&all).ask("tools/call", asked).status, 200);
    }
    let mut closed = Client::connect(&world, &[], LEGACY[3]);
    closed.call("list_sessions", json!({}));
    closed.close(PATIENCE);
    let counted = |row: &Value| row["tool_calls"] == 1;
    until("all is written down", || clients(&world, &["--all"]).iter().filter(|row| counted(row)).count() == 4);
    for state in ["active", "ended", "all"] {
        let by_command = match state {
            "active" => clients(&world, &[]),
            "all" => clients(&world, &["--all"]),
            _ => clients(&world, &["--all"]).into_iter().filter(|row| row["ended"] == true).collect(),
        };
        let over_rest = server.connect(&all).get(&format!("/v1/mcp/sessions?state={state}")).json();
        assert_eq!(over_rest["sessions"], json!(by_command), "{state}");
        for row in &by_command {
            let path = format!("/v1/mcp/sessions/{}", row["id"].as_str().unwrap());
            assert_eq!(server.connect(&all).get(&path).json(), *row);
        }
        let asked = json!({"name": "list_clients", "arguments": {"state": state}, "_meta": named("asks")});
        let told = server.connect(&all).ask("tools/call", asked).message()["result"]["structuredContent"].take();
        let others = |rows: &Value| {
            let rows = rows.as_array().unwrap().iter().filter(|row| row["client_name"] != "asks");
            rows.cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(&told["sessions"]), others(&json!(by_command)), "{state}");
    }
}
