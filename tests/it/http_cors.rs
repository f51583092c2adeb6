//! Web pages of an allowed origin, as their browsers ask for them.

use crate::http_client::{Connection, Response, Server, token};
use crate::mcp_client::LEGACY;
use crate::world::World;
use serde_json::json;

const PAGE: &str = "https://agents.example";

fn server(world: &World) -> Server {
    let args = ["--allow-origin", PAGE, "--allow-origin", "http://localhost:6274"];
    Server::start_with(world, &[], &args, &[])
}

/// Whether a page of this origin may read the answer, and it says so of no other.
fn is_readable(answer: &Response, origin: &str) -> bool {
    assert_eq!(answer.header("access-control-allow-credentials"), "", "no page sends what a browser knows");
    assert_eq!(answer.header("vary"), "origin", "{answer:?}");
    answer.header("access-control-allow-origin") == origin
}

#[test]
fn a_browser_asks_before_it_sends_and_needs_no_token_for_that() {
    let world = World::new();
    let server = server(&world);
    let mut browser = Connection::to(server.address, None);
    let names = "authorization,content-type,mcp-method,mcp-name,mcp-param-region,mcp-protocol-version,x-evil";
    for (path, method) in [("/mcp", "POST"), ("/mcp", "DELETE"), ("/v1/sessions", "GET"), ("/healthz", "GET")] {
        let asked =
            [("origin", PAGE), ("access-control-request-method", method), ("access-control-request-headers", names)];
        let answer = browser.request("OPTIONS", path, &asked, b"");
        assert!(answer.status == 204 && is_readable(&answer, PAGE), "{path}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-methods"), "GET, POST, DELETE");
        assert_eq!(answer.header("access-control-max-age"), "7200");
        let allowed: Vec<&str> = answer.header("access-control-allow-headers").split(", ").collect();
        let (evil, good): (Vec<&str>, Vec<&str>) = names.split(',').partition(|name| *name == "x-evil");
        assert!(good.iter().all(|name| allowed.contains(name)), "{allowed:?}");
        assert!(["mcp-session-id", "last-event-id"].iter().all(|name| allowed.contains(name)), "{allowed:?}");
        assert!(!allowed.contains(&evil[0]) && !allowed.contains(&"*"), "{allowed:?}");
    }
    for (origin, host) in [("https://evil.example", "localhost"), ("null", "localhost"), (PAGE, "evil.example")] {
        let asked = [("origin", origin), ("host", host), ("access-control-request-method", "POST")];
        let answer = browser.request("OPTIONS", "/mcp", &asked, b"");
        assert_eq!(answer.status, 403);
        assert!(is_readable(&answer, if origin == PAGE { PAGE } else { "" }), "{answer:?}");
        assert_eq!(answer.header("access-control-allow-methods"), "");
    }
    // What is no question of a browser needs a token, as all else does.
    assert_eq!(browser.request("OPTIONS", "/mcp", &[("origin", PAGE)], b"").status, 401);
    assert_eq!(browser.request("OPTIONS", "/mcp", &[("access-control-request-method", "POST")], b"").status, 401);
}

#[test]
fn every_answer_can_be_read_by_the_page_that_asked() {
    let world = World::new();
    let good = token(&world, "page", &["status:read"]);
    let server = server(&world);
    let mut page = server.connect(&good);
    let from_page = [("origin", PAGE)];
    for (method, path, status) in [
        ("GET", "/v1/sessions", 200),
        ("GET", "/healthz", 200),
        ("GET", "/v1/mcp/sessions", 403),
        ("GET", "/nowhere", 404),
        ("GET", "/mcp", 405),
        ("PUT", "/v1/sessions", 405),
        ("GET", "/v1/sessions/x/status?limit=x", 400),
    ] {
        let answer = page.request(method, path, &from_page, b"");
        assert!(answer.status == status && is_readable(&answer, PAGE), "{path}: {answer:?}");
        let exposed = answer.header("access-control-expose-headers");
        assert_eq!(exposed, "mcp-session-id, retry-after, www-authenticate");
    }
    let answer = Connection::to(server.address, None).request("GET", "/v1/sessions", &from_page, b"");
    assert!(answer.status == 401 && is_readable(&answer, PAGE) && !answer.header("www-authenticate").is_empty());
    let large = page.request("POST", "/mcp", &[("origin", PAGE), ("content-length", "4194305")], b"");
    assert!(large.status == 413 && is_readable(&large, PAGE), "{large:?}");
    // MCP, begun by a page of the other origin.
    let mut page = server.connect(&good);
    let hello = json!({"protocolVersion": LEGACY[3], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).to_string();
    let answer = page.post(&[("origin", "http://localhost:6274")], &hello);
    assert!(answer.status == 200 && is_readable(&answer, "http://localhost:6274"), "{answer:?}");
    assert!(!answer.header("mcp-session-id").is_empty());
    // Nobody else is told anything, but that it depends on who asks.
    let answer = page.get("/v1/sessions");
    assert!(answer.status == 200 && is_readable(&answer, ""), "{answer:?}");
    let twice = format!("GET /v1/sessions HTTP/1.1\r\nhost: localhost\r\norigin: {PAGE}\r\norigin: {PAGE}\r\n\r\n");
    page.raw(twice.as_bytes()).unwrap();
    let answer = page.response();
    assert!(answer.status == 403 && is_readable(&answer, ""), "{answer:?}");
}

#[test]
fn without_allowed_origins_nothing_is_said_of_them() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let asked = [("origin", PAGE), ("access-control-request-method", "POST")];
    let answer = Connection::to(server.address, None).request("OPTIONS", "/mcp", &asked, b"");
    assert_eq!(answer.status, 403);
    assert!(!answer.headers.keys().any(|name| name.starts_with("access-control") || name == "vary"), "{answer:?}");
}
