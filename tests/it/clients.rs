//! Who is connected: what a server writes down of its clients, and what other processes see of it.

use crate::mcp_client::{Client, LEGACY, MODERN};
use crate::world::{PATIENCE, World, until};
use serde_json::{Value, json};

/// The clients that are listed.
fn clients(world: &World, args: &[&str]) -> Vec<Value> {
    let ran = world.run(&[&["clients", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = ran.json();
    found["sessions"].as_array().unwrap().clone()
}

/// The only client that is listed.
fn client(world: &World, args: &[&str]) -> Value {
    let found = clients(world, args);
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

#[test]
fn a_client_is_seen_while_it_is_connected_with_what_it_has_called() {
    for version in [LEGACY[3], MODERN] {
        let world = World::new();
        assert_eq!(clients(&world, &["--all"]), Vec::<Value>::new());
        let mut connected = Client::connect(&world, &[], version);
        connected.result("tools/list", json!({}));
        until("it is listed", || clients(&world, &[]).len() == 1);
        let agent = json!({"session_id": "shop", "agent_name": "backend"});
        connected.call("list_sessions", json!({}));
        connected.call("register_agent", agent);
        connected.failure("get_session_status", json!({"session_id": "none"}));
        connected.ask("tools/call", json!({"name": "frobnicate", "arguments": {}}));
        until("its calls are written down", || client(&world, &[])["tool_calls"] == 4);
        let found = client(&world, &[]);
        assert_eq!((&found["client_name"], &found["client_version"]), (&json!("test-client"), &json!("1.2")));
        assert_eq!((&found["protocol"], &found["transport"]), (&json!(version), &json!("stdio")));
        assert_eq!((&found["tool_failures"], &found["agents_registered"]), (&json!(2), &json!(1)), "{found:#}");
        let by_tool = json!({"get_session_status": 1, "list_sessions": 1, "register_agent": 1, "unknown tool": 1});
        assert_eq!(found["calls_by_tool"], by_tool);
        assert_eq!(
            (&found["ended"], &found["ended_at"], &found["ended_reason"]),
            (&json!(false), &Value::Null, &Value::Null)
        );
        let mut own = connected.structured("list_clients", json!({}))["sessions"][0].take();
        own["last_activity_at"] = found["last_activity_at"].clone();
        assert_eq!(own, found, "it sees what others see");
        connected.close(PATIENCE);
        assert_eq!(clients(&world, &[]), Vec::<Value>::new());
        let ended = client(&world, &["--all"]);
        assert_eq!((&ended["ended"], &ended["ended_reason"]), (&json!(true), &json!("closed")));
        assert_eq!(ended["tool_calls"], 5, "list_clients is a call, too");
    }
}

#[test]
fn a_client_of_a_server_that_was_killed_has_ended_with_it() {
    let world = World::new();
    let mut connected = Client::connect(&world, &[], LEGACY[3]);
    connected.result("tools/list", json!({}));
    until("it is listed", || clients(&world, &[]).len() == 1);
    connected.kill();
    assert_eq!(clients(&world, &[]), Vec::<Value>::new());
    assert_eq!(client(&world, &["--all"])["ended_reason"], "server_stopped");
}

#[test]
fn what_a_client_says_of_itself_later_changes_nothing() {
    let world = World::new();
    let mut connected = Client::connect(&world, &[], LEGACY[3]);
    let hello =
        json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "another", "version": "9"}});
    connected.ask("initialize", hello);
    connected.call("list_sessions", json!({}));
    until("its call is written down", || clients(&world, &[]).iter().any(|client| client["tool_calls"] == 1));
    assert_eq!(client(&world, &[])["client_name"], "test-client");
}

#[test]
fn clients_that_cannot_be_written_down_are_answered_all_the_same() {
    let world = World::new();
    std::fs::create_dir_all(world.state().parent().unwrap()).unwrap();
    std::fs::write(world.state(), "a file where the state should be").unwrap();
    let mut connected = Client::connect(&world, &[], LEGACY[3]);
    let told = connected.call("list_sessions", json!({}));
    assert_eq!(told["structuredContent"]["schema"], "headcount.sessions/1");
    let told = connected.result("tools/call", json!({"name": "list_clients", "arguments": {}}));
    assert_eq!(told["isError"], true);
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    let world = World::new();
    for args in [&["--limit", "0"][..], &["--limit", "5001"], &["--cursor", "x"]] {
        let ran = world.run(&[&["clients"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:#?}");
    }
    let ran = world.run(&["clients"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "No MCP client is connected.\n"));
}
