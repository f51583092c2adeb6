//! Requests that somebody on the way may read as others than this server does: each means one thing, or is refused.

use crate::http_client::{Connection, Response, Server, token};
use crate::mcp_client::{LEGACY, MODERN};
use crate::world::World;
use serde_json::json;

/// A request for the list of sessions with these lines in its head.
fn get(target: &str, lines: &[&str]) -> String {
    format!("GET {target} HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"))
}

/// The answers to these bytes, up to the end of the connection.
fn answers(server: &Server, bytes: &str) -> String {
    let mut connection = Connection::to(server.address, None);
    // A server that refuses may not read the rest.
    let _ = connection.raw(bytes.as_bytes());
    connection.rest()
}

/// The status of the only answer, after which the connection ends.
fn refused(server: &Server, bytes: &str) -> u16 {
    let said = answers(server, bytes);
    assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{bytes:?}: {said}");
    said[9..12].parse().unwrap()
}

struct Place {
    _world: World,
    server: Server,
    token: String,
    authorization: String,
}

fn place() -> Place {
    let world = World::new();
    let token = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let authorization = format!("authorization: Bearer {token}");
    Place { _world: world, server, token, authorization }
}

#[test]
fn where_a_body_ends_is_told_once_or_the_request_is_refused() {
    let Place { server, authorization, token, .. } = &place();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let length = body.len();
    // What would be the next request, for whoever takes the body to end before it.
    let hidden = get("/v1/sessions", &["host: localhost", authorization]);
    let post = |lines: &[&str], body: &str| {
        let usual = ["host: localhost", authorization, "content-type: application/json"];
        format!("POST /mcp HTTP/1.1\r\n{}\r\n\r\n{body}{hidden}", [&usual, lines].concat().join("\r\n"))
    };
    let sized = format!("content-length: {length}");
    let other = format!("content-length: {}", length + 1);
    let chunked = "transfer-encoding: chunked";
    for lines in [
        &[&*sized, &*other][..],
        &["content-length: +5"],
        &["content-length: 5, 6"],
        &["content-length: 0x5"],
        &["content-length: -1"],
        &["content-length: 99999999999999999999"],
        &["content-length:"],
        &["transfer-encoding: identity"],
        &["transfer-encoding: chunked, identity"],
        &["transfer-encoding: xchunked"],
        &["transfer-encoding: \"chunked\""],
        &["transfer-encoding : chunked"],
        &[&sized, "transfer-encoding: gzip"],
        &["x-folded: a", " b", &sized],
        &["x-folded: a", "\tcontent-length: 3", &sized],
        &["x-bare: a\rb", &sized],
        &["x-null: a\0b", &sized],
        &[" host: localhost", &sized],
        &["no colon", &sized],
    ] {
        assert_eq!(refused(server, &post(lines, &body)), 400, "{lines:?}");
    }
    // Whoever speaks 1.0 knows no pieces.
    let old = post(&[chunked], &format!("{length:x}\r\n{body}\r\n0\r\n\r\n")).replacen("HTTP/1.1", "HTTP/1.0", 1);
    assert_eq!(refused(server, &old), 400);
    // Both: the pieces count, and nothing that comes after them is a request.
    for lines in [[chunked, &sized], [&sized, chunked]] {
        let said = answers(server, &post(&lines, &format!("{length:x}\r\n{body}\r\n0\r\n\r\n")));
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{said}");
    }
    // Pieces that are none.
    for pieces in ["x\r\n", "-1\r\n", "5\n", "ffffffffffffffff1\r\n", "5;a=\"\n\"\r\nabcde\r\n", "5\r\nabcdefg\r\n"] {
        assert_eq!(refused(server, &post(&[chunked], pieces)), 400, "{pieces:?}");
    }
    // A body that nobody reads, for it comes without a token, is not taken for requests.
    let without = post(&["content-length: 1000"], &hidden).replacen(&**authorization, "x-no: token", 1);
    assert_eq!(refused(server, &without), 401);
    assert_eq!(server.connect(token).get("/v1/sessions").status, 200);
}

#[test]
fn whom_a_request_is_meant_for_is_told_once_or_it_is_refused() {
    let Place { server, authorization, .. } = &place();
    let close = "connection: close";
    let status =
        |target: &str, lines: &[&str]| refused(server, &get(target, &[lines, &[authorization, close]].concat()));
    let localhost = "host: localhost";
    assert_eq!(status("/v1/sessions", &[localhost]), 200);
    assert_eq!(status("http://localhost/v1/sessions", &[localhost]), 200, "as proxies are asked");
    for (target, lines, expected) in [
        ("/v1/sessions", &[][..], 400),
        ("/v1/sessions", &["host:"], 400),
        ("/v1/sessions", &[localhost, localhost], 400),
        ("/v1/sessions", &[localhost, "host: evil.example"], 400),
        ("/v1/sessions", &["host: localhost, evil.example"], 400),
        ("/v1/sessions", &["host: localhost/@evil.example"], 400),
        ("/v1/sessions", &["host: evil.example", "x-forwarded-host: localhost"], 403),
        ("http://evil.example/v1/sessions", &[localhost], 403),
        ("http://localhost/v1/sessions", &["host: evil.example"], 403),
        ("http://evil@localhost/v1/sessions", &[localhost], 400),
        ("http:///v1/sessions", &[localhost], 400),
        ("//evil.example/v1/sessions", &[localhost], 404),
        ("v1/sessions", &[localhost], 400),
        ("*", &[localhost], 404),
        ("", &[localhost], 400),
    ] {
        assert_eq!(status(target, lines), expected, "{target} {lines:?}");
    }
    for connect in ["CONNECT localhost:80", "CONNECT evil.example:80"] {
        let request = get("", &[localhost, authorization, close]).replacen("GET ", connect, 1);
        assert!([400, 403, 404, 405].contains(&refused(server, &request)), "{connect}");
    }
}

#[test]
fn an_address_has_one_spelling() {
    let Place { server, token, .. } = &place();
    let twisted = [
        "//mcp",
        "/mcp/",
        "/MCP",
        "/%6dcp",
        "/mc%70",
        "/./mcp",
        "/v1/../mcp",
        "/mcp%2f",
        "/mcp;x",
        "/mcp%00",
        "/%2e%2e/mcp",
        "/healthz/../mcp",
        "/healthz/..%2fmcp",
        "//v1/sessions",
        "/V1/sessions",
        "/v1//sessions",
        "/v1/sessions/",
        "/v1/%73essions",
        "/v1/sessions%3f",
        "/healthz/",
        "//healthz",
        "/Healthz",
        "/healthz/../v1/sessions",
    ];
    for path in twisted {
        for method in ["GET", "POST"] {
            let status = |token| Connection::to(server.address, token).request(method, path, &[], b"").status;
            assert_eq!(status(None), 401, "{method} {path} gets past nobody");
            let found = status(Some(token.as_str()));
            assert!([404, 405].contains(&found), "{method} {path}: {found}");
        }
    }
    // A name in an address may be written in any way, and stays one name.
    for path in ["/v1/sessions/%2e%2e/status", "/v1/sessions/a%2fb/status", "/v1/sessions/%00/status"] {
        let answer = server.connect(token).get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
    }
    assert_eq!(server.connect(token).get("/v1/sessions/%ff/status").status, 400);
    assert_eq!(
        server.connect(token).request("POST", "/mcp?x=/healthz", &[], b"").status,
        400,
        "what follows is no address"
    );
    for method in ["get", "Post", "TRACE", "PATCH", "PROPFIND"] {
        let status = server.connect(token).request(method, "/mcp", &[], b"").status;
        assert_eq!(status, 405, "{method}");
    }
}

/// What is answered to a request of the newer era with these headers beside those it needs.
fn list_tools(place: &Place, lines: &[&str]) -> Response {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).to_string();
    let version = format!("mcp-protocol-version: {MODERN}");
    let length = format!("content-length: {}", body.len());
    let usual = ["host: localhost", &place.authorization, "content-type: application/json", &version, &length];
    let accept = ["accept: application/json, text/event-stream", "mcp-method: tools/list"];
    let head = [&usual[..], &accept, lines].concat().join("\r\n");
    let mut connection = Connection::to(place.server.address, None);
    connection.raw(format!("POST /mcp HTTP/1.1\r\n{head}\r\n\r\n{body}").as_bytes()).unwrap();
    connection.response()
}

#[test]
fn headers_by_which_others_route_stand_once() {
    let place = place();
    assert_eq!(list_tools(&place, &[]).status, 200);
    let legacy = format!("mcp-protocol-version: {}", LEGACY[3]);
    for twice in [
        &["mcp-method: tools/list"][..],
        &["mcp-method: tools/call"],
        &["Mcp-Method: tools/call"],
        &[&legacy],
        &["mcp-session-id: a", "mcp-session-id: b"],
    ] {
        assert_eq!(list_tools(&place, twice).status, 400, "{twice:?}");
    }
    let again = place.authorization.clone();
    assert_eq!(list_tools(&place, &[&again]).status, 401, "nor is there a choice of tokens");
    assert_eq!(list_tools(&place, &["authorization: Basic abc"]).status, 401);
}

#[test]
fn a_body_is_read_in_one_way_or_not_at_all() {
    let Place { server, token, .. } = &place();
    let mut connection = server.connect(token);
    let called = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":1,{text}}}"#);
    let nested = |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    let wide = "[".repeat(4 << 20);
    for body in [
        &*called(r#""method":"ping","method":"tools/list""#),
        &called(r#""method":"tools/call","params":{"name":"list_sessions","name":"list_clients"}"#),
        &called(r#""method":"tools/call","params":{},"params":{"name":"list_clients"}"#),
        &called(&format!(r#""method":"ping","params":{}"#, nested(r#"{"a":"#, "}", 100_000))),
        &called(&format!(r#""method":"ping","params":{{"a":{}}}"#, nested("[", "]", 100_000))),
        &wide,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\u{1}ng\"}",
        "{'method':'ping'}",
        "nul",
        r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        "{}",
    ] {
        let answer = connection.post(&[], body);
        assert_eq!(answer.status, 400, "{}: {}", &body[..body.len().min(80)], answer.text());
        assert!(answer.json()["error"]["code"].is_i64(), "{}", answer.text());
        assert!(answer.body.len() < 1000, "what was sent does not come back");
    }
    assert_eq!(connection.get("/v1/sessions").status, 200, "the connection is as good as before");
}

#[test]
fn what_is_refused_in_mcp_is_an_error_of_json_rpc() {
    let Place { server, token, .. } = &place();
    let (json, both) = (("content-type", "application/json"), ("accept", "application/json, text/event-stream"));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let mut session = server.connect(token);
    session.initialize(LEGACY[3]);
    let id = session.session.clone().unwrap();
    for (method, headers, status, says) in [
        ("POST", &[json, both][..], 400, "Session ID"),
        ("POST", &[json, ("accept", "application/json")], 406, "must accept both"),
        ("POST", &[both, ("content-type", "text/plain")], 415, "Content-Type"),
        ("POST", &[json, both, ("mcp-protocol-version", "1999-01-01")], 400, "1999-01-01"),
        ("GET", &[("mcp-session-id", &*id), ("accept", "text/html")], 406, "must accept"),
    ] {
        let answer = server.connect(token).request(method, "/mcp", headers, body.as_bytes());
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/json", "{}", answer.text());
        let error = answer.json();
        assert_eq!((&error["jsonrpc"], &error["id"]), (&json!("2.0"), &json!(null)), "{error}");
        assert_eq!(error["error"]["code"], -32600, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(says), "{error}");
    }
}
