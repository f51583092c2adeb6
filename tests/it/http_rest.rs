//! REST, and that nobody sees what belongs to somebody else, whichever way they ask.

use crate::http_client::{Connection, Server, token};
use crate::mcp_client::LEGACY;
use crate::tidy::sources;
use crate::world::{NO_PID, World, until};
use headcount::auth::{NewToken, Scope, create_token};
use headcount::clock::SystemClock;
use headcount::store::Store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// All scopes.
pub const ALL: [&str; 5] = ["status:read", "roster:write", "clients:read", "grants:revoke", "metrics:read"];

/// A token of another user's, who may do everything.
pub fn strangers(world: &World) -> String {
    let new = NewToken {
        user_id: "somebody-else".into(),
        name: "stranger".into(),
        scopes: Scope::ALL.into_iter().collect(),
        lifetime: Some(Duration::from_secs(3600)),
    };
    let (_, token) = create_token(&Store::at(&world.state()), &SystemClock::default(), new).unwrap();
    token.reveal().to_owned()
}

#[test]
fn what_belongs_to_somebody_else_is_not_there() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let (own, theirs) = (token(&world, "own", &ALL), strangers(&world));
    let server = Server::start(&world, &[&roster]);
    let mut owner = server.connect(&own);
    owner.initialize(LEGACY[3]);
    owner.structured("register_agent", json!({"session_id": "depot", "agent_name": "backend"}));
    let client = owner.get("/v1/mcp/sessions").json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    let grant = owner.get("/v1/grants").json()["grants"][0]["id"].as_str().unwrap().to_owned();
    for (path, found) in [
        ("/v1/sessions/shop/status".to_owned(), 200),
        (format!("/v1/mcp/sessions/{client}"), 200),
        ("/v1/sessions/none/status".to_owned(), 404),
    ] {
        assert_eq!(owner.get(&path).status, found, "{path}");
        let mut stranger = server.connect(&theirs);
        let answer = stranger.get(&path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(!answer.text().contains("depot"), "what there is else is not told either: {}", answer.text());
    }
    let mut stranger = server.connect(&theirs);
    assert_eq!(stranger.get("/v1/sessions").json()["sessions"], json!([]));
    assert_eq!(stranger.get("/v1/mcp/sessions?state=all").json()["sessions"], json!([]));
    let grants = stranger.get("/v1/grants?all=true").json()["grants"].take();
    assert_eq!((grants.as_array().unwrap().len(), &grants[0]["name"]), (1, &json!("stranger")));
    assert_eq!(stranger.request("DELETE", &format!("/v1/grants/{grant}"), &[], b"").status, 404);
    assert_eq!(owner.get("/v1/sessions").status, 200, "it is still alive");

    assert_eq!(stranger.structured("list_sessions", json!({}))["sessions"], json!([]));
    let listed = stranger.structured("list_clients", json!({"state": "all"}))["sessions"].take();
    assert!(listed.as_array().unwrap().iter().all(|row| row["user_id"] == "somebody-else"), "{listed:#}");
    for (tool, arguments) in [
        ("get_session_status", json!({"session_id": "shop"})),
        ("wait_for_attention", json!({"session_id": "shop", "timeout_s": 1})),
        ("register_agent", json!({"session_id": "shop", "agent_name": "spy"})),
        ("unregister_agent", json!({"session_id": "depot", "agent_name": "backend"})),
    ] {
        let result = stranger.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result:#}");
    }
    assert_eq!(stranger.ask("resources/list", json!({})).message()["result"]["resources"], json!([]));
    let read = stranger.ask("resources/read", json!({"uri": "headcount://session/shop"})).message();
    assert!(read["error"]["message"].as_str().unwrap().contains("no session `shop`"), "{read:#}");
    // Who listens to it hears nothing, as of one that is not there.
    let uri = "headcount://session/depot";
    let mut streams = [server.connect(&theirs), server.connect(&own)].map(|mut listens| {
        listens.send_message("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}}));
        assert_eq!(listens.head().status, 200);
        assert_eq!(listens.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
        listens
    });
    owner.structured("register_agent", json!({"session_id": "depot", "agent_name": "another"}));
    assert_eq!(streams[1].event().unwrap()["params"]["uri"], uri);
    server.terminate(crate::world::PATIENCE);
    assert_eq!(streams[0].event(), None);
}

/// Addresses that need no scope: no token at all, or one for what is asked there.
const FREE: [&str; 3] = ["/healthz", "/readyz", "/mcp"];

/// The addresses that the server knows, as its source has them.
fn routes() -> BTreeSet<String> {
    let route = regex::Regex::new(r#"\.route\(\s*"([^"]+)""#).unwrap();
    let mut found = BTreeSet::new();
    for source in sources() {
        found.extend(route.captures_iter(&source.text).map(|found| found[1].to_owned()));
    }
    assert!(found.len() > FREE.len());
    found
}

/// Whether an address is one of this route.
fn is_at(path: &str, route: &str) -> bool {
    let mut parts = path.split('/');
    route.split('/').all(|wanted| parts.next().is_some_and(|part| part == wanted || wanted.starts_with('{')))
        && parts.next().is_none()
}

#[test]
fn each_thing_needs_its_scope() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let server_tokens = ALL.map(|scope| (scope, token(&world, scope, &[scope])));
    let server = Server::start(&world, &[&roster]);
    let rest = [
        ("GET", "/v1/sessions", "status:read"),
        ("GET", "/v1/sessions/shop/status", "status:read"),
        ("GET", "/v1/mcp/sessions", "clients:read"),
        ("GET", "/v1/mcp/sessions/none", "clients:read"),
        ("GET", "/v1/grants", "grants:revoke"),
        ("DELETE", "/v1/grants/none", "grants:revoke"),
        ("GET", "/metrics", "metrics:read"),
    ];
    let tools = [
        ("list_sessions", json!({}), "status:read"),
        ("get_session_status", json!({"session_id": "shop"}), "status:read"),
        ("wait_for_attention", json!({"session_id": "none"}), "status:read"),
        ("list_clients", json!({}), "clients:read"),
        ("register_agent", json!({"session_id": "depot", "agent_name": "a"}), "roster:write"),
        ("unregister_agent", json!({"session_id": "depot", "agent_name": "a"}), "roster:write"),
    ];
    // Nothing is there that is not in these tables.
    let listed = server.connect(&server_tokens[0].1).ask("tools/list", json!({})).message()["result"]["tools"].take();
    let names: BTreeSet<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, tools.iter().map(|(tool, ..)| *tool).collect());
    // What says how to get a token needs none.
    let is_free = |route: &str| FREE.contains(&route) || route.starts_with("/.well-known/");
    let asked = |route: &String| rest.iter().any(|(_, path, _)| is_at(path, route)) || is_free(route);
    assert_eq!(routes().into_iter().filter(|route| !asked(route)).collect::<Vec<_>>(), Vec::<String>::new());
    for (has, token) in &server_tokens {
        let mut connection = server.connect(token);
        for (method, path, needs) in rest {
            let answer = connection.request(method, path, &[], b"");
            assert_eq!(answer.status == 403, needs != *has, "{method} {path} with {has}: {}", answer.text());
            if needs != *has {
                // What it has and what it needs beside that, in the order in which scopes are listed.
                let wanted: Vec<&str> = ALL.into_iter().filter(|scope| scope == has || *scope == needs).collect();
                let named = format!(r#"error="insufficient_scope", scope="{}""#, wanted.join(" "));
                assert!(answer.header("www-authenticate").contains(&named), "{answer:#?}");
            }
        }
        let mut old = server.connect(token);
        old.initialize(LEGACY[3]);
        for (tool, arguments, needs) in &tools {
            for connection in [&mut connection, &mut old] {
                let answer = connection.ask("tools/call", json!({"name": tool, "arguments": arguments}));
                assert_eq!(answer.status == 403, needs != has, "{tool} with {has}: {}", answer.text());
                assert!(answer.status == 200 || answer.header("www-authenticate").contains(needs), "{answer:#?}");
            }
        }
        let uri = json!({"uri": "headcount://session/shop"});
        for (method, params) in [("resources/list", json!({})), ("resources/read", uri.clone())] {
            assert_eq!(connection.ask(method, params).status == 403, *has != "status:read", "{method} with {has}");
        }
        assert_eq!(old.ask("resources/subscribe", uri).status == 403, *has != "status:read", "subscribe with {has}");
        let mut listens = server.connect(token);
        let filter = json!({"notifications": {"resourceSubscriptions": ["headcount://session/shop"]}});
        listens.send_message("subscriptions/listen", filter);
        assert_eq!(listens.head().status == 403, *has != "status:read", "listen with {has}");
        assert_eq!(connection.ask("tools/list", json!({})).status, 200, "what there is may be known");
    }
}

#[test]
fn reports_and_lists_are_those_of_mcp() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id()), ("two", NO_PID)]);
    let all = token(&world, "all", &ALL);
    let server = Server::start(&world, &[&roster]);
    let mut connection = server.connect(&all);
    assert_eq!(connection.get("/v1/sessions").json()["schema"], "headcount.sessions/1");
    let report = connection.get("/v1/sessions/shop/status?limit=1&include_metrics=false").json();
    assert_eq!((report["agents"].as_array().unwrap().len(), &report["agents"][0]["metrics"]), (1, &Value::Null));
    let cursor = report["next_cursor"].as_str().unwrap();
    let next = connection.get(&format!("/v1/sessions/shop/status?cursor={cursor}")).json();
    assert_eq!(next["agents"].as_array().unwrap().len(), 1);
    let only = connection.get("/v1/sessions/shop/status?only=OFFLINE,finished").json();
    assert_eq!(only["agents"], json!([]));
    for path in [
        "/v1/sessions/shop/status?limit=0",
        "/v1/sessions/shop/status?limit=x",
        "/v1/sessions/shop/status?only=nonsense",
        "/v1/sessions/shop/status?frobnicate=1",
        "/v1/sessions/%07/status",
        "/v1/sessions/%ff/status",
        "/v1/mcp/sessions?limit=0",
        "/v1/mcp/sessions?state=none",
        "/v1/mcp/sessions?cursor=x",
        "/v1/grants?all=maybe",
        "/v1/grants?frobnicate=1",
        "/v1/sessions?frobnicate=1",
        "/v1/mcp/sessions/x?frobnicate=1",
        "/v1/mcp/sessions?limit=5001",
        "/v1/sessions/shop/status?cursor=%00",
    ] {
        let answer = connection.get(path);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        let problem = answer.json();
        assert_eq!((&problem["status"], &problem["title"]), (&json!(400), &json!("Bad Request")), "{path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    assert_eq!(connection.request("POST", "/v1/sessions", &[], b"").status, 405);
    for _ in 0..3 {
        server.connect(&all).initialize(LEGACY[3]);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/mcp/sessions?limit=2".to_owned();
    loop {
        let page = connection.get(&path).json();
        seen.extend(page["sessions"].as_array().unwrap().iter().map(|row| row["id"].to_string()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/mcp/sessions?limit=2&cursor={cursor}");
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 3);
    let audit = || std::fs::read_to_string(world.state().join("audit.jsonl")).unwrap_or_default();
    until("it is noted", || audit().contains("GET /v1/sessions/{id}/status") && audit().contains("\"http\""));
    let grant = connection.get("/v1/grants").json()["grants"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(connection.request("DELETE", &format!("/v1/grants/{grant}"), &[], b"").status, 204, "it may end itself");
    assert_eq!(server.connect(&all).get("/v1/sessions").status, 401);
    until("who was asked for and ended is noted, too", || {
        ["list_clients", "list_grants", "revoke_grant"].iter().all(|tool| audit().contains(&format!("\"{tool}\"")))
    });
}

#[test]
fn a_grant_that_asks_too_often_is_sent_away_and_nobody_else_is() {
    let world = World::new();
    let (greedy, other) = (token(&world, "greedy", &[]), token(&world, "other", &[]));
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&greedy);
    let refused = (0..60_000).map(|_| connection.get("/v1/nothing")).find(|answer| answer.status != 404);
    let refused = refused.expect("500 requests a second");
    assert_eq!((refused.status, refused.header("retry-after").is_empty()), (429, false), "{refused:#?}");
    assert_eq!(server.connect(&other).get("/v1/sessions").status, 200);
    assert_eq!(Connection::to(server.address, None).get("/healthz").status, 200);
}
