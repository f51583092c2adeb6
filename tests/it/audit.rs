//! The audit log: who asked for what, and what became of it.

use crate::http_client::{Connection, Server, token};
use crate::world::{NO_PID, PATIENCE, World};
use serde_json::{Value, json};
use std::fs;

fn lines(world: &World) -> Vec<Value> {
    let log = fs::read_to_string(world.state().join("audit.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_question_leaves_one_line() {
    let world = World::new();
    let roster = world.roster("shop", &[("gone", NO_PID)]);
    let roster = roster.to_str().unwrap();
    world.run(&["status", "shop", "--roster", roster]);
    world.run(&["status", "nobody", "--roster", roster]);
    world.run(&["status", "a\u{1b}b", "--roster", roster]);
    let lines = lines(&world);
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "not_found", "invalid"]);
    let first = &lines[0];
    assert_eq!((&first["session"], &first["agents"]), (&"shop".into(), &1.into()));
    assert_eq!((&first["transport"], &first["client"]), (&"cli".into(), &"headcount status".into()));
    assert!(first["principal"].as_str().is_some_and(|p| !p.is_empty()), "{first}");
    assert!(first["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{first}");
    let micros = &first["micros"];
    assert!(micros["total"].as_u64().unwrap() > micros["observe"].as_u64().unwrap(), "{micros}");
}

#[test]
fn who_is_sent_away_is_noted_and_a_flood_of_it_is_counted() {
    let world = World::new();
    let (reads, measures) = (token(&world, "reads", &["status:read"]), token(&world, "measures", &["metrics:read"]));
    let server = Server::start(&world, &[]);
    let mut stranger = Connection::to(server.address, None);
    assert!((0..500).all(|_| stranger.get("/v1/sessions").status == 401));
    let mut reader = server.connect(&reads);
    assert_eq!(reader.request("GET", "/v1/grants", &[("user-agent", "curious/1")], b"").status, 403);
    assert_eq!(reader.ask("tools/call", json!({"name": "list_clients", "arguments": {}})).status, 403);
    assert_eq!(reader.request("GET", "/healthz", &[("origin", "https://evil.example")], b"").status, 403);
    assert_eq!(reader.request("GET", "/healthz", &[("host", "evil.example")], b"").status, 403);
    assert_eq!(server.connect(&measures).get("/metrics").status, 200);
    assert_eq!(server.terminate(PATIENCE).0, Some(0));
    let lines = lines(&world);
    let user = &lines.iter().find(|line| line["tool"] == "GET /metrics").expect("who measures is noted")["principal"];
    let refused = |reason: &str| lines.iter().filter(|line| line["refused"] == reason).collect::<Vec<_>>();
    let strangers = refused("no_token");
    assert_eq!(strangers.iter().map(|line| line["times"].as_u64().unwrap()).sum::<u64>(), 500);
    assert!((20..100).contains(&strangers.len()), "{} lines", strangers.len());
    assert_eq!(strangers[0]["route"], "/v1/sessions");
    let scope = refused("scope");
    let told: Vec<_> = scope.iter().map(|line| (&line["principal"], line["route"].as_str().unwrap())).collect();
    assert_eq!(told, [(user, "/v1/grants"), (user, "/mcp")]);
    assert_eq!((&scope[0]["client"], &scope[0]["status"]), (&json!("curious/1"), &json!(403)));
    assert_eq!([refused("origin").len(), refused("host").len()], [1, 1]);
}

#[test]
fn it_is_nobody_elses_business() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.run(&["status"]);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(world.state()), mode(world.state().join("audit.jsonl"))), (0o700, 0o600));
}

#[test]
fn it_can_be_switched_off() {
    let world = World::new();
    let mut command = world.command(&["status"]);
    command.env("HEADCOUNT_AUDIT_ENABLED", "false");
    assert!(crate::world::finish(command).code.is_some());
    assert!(!world.state().join("audit.jsonl").exists());
}

#[test]
fn where_it_cannot_be_written_the_question_is_answered_all_the_same() {
    let world = World::new();
    let roster = world.roster("shop", &[("gone", NO_PID)]);
    world.write(".local/state/headcount", "a file where a folder should be");
    let (code, report) = world.status("shop", &roster);
    assert_eq!((code, &report["agent_count"]), (Some(1), &1.into()));
}
