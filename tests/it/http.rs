//! Who may come in over HTTP, and what is no request at all.

use crate::http_client::{Connection, Server, token};
use crate::mcp_client::{LEGACY, MODERN};
use crate::world::{PATIENCE, World};
use serde_json::{Value, json};
use std::io::Write as _;

/// A request for the list of tools, of the newer era.
fn list_tools(headers: &mut Vec<(&'static str, &'static str)>) -> String {
    headers.extend([("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).to_string()
}

#[test]
fn nobody_comes_in_without_a_token_that_holds() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let mistyped = format!("{}x", &good[..good.len() - 1]);
    for (credentials, error) in [
        ("", ""),
        ("Basic abc", ""),
        ("Bearer", ""),
        ("Bearer x", "invalid_token"),
        (&*format!("Bearer {mistyped}"), "invalid_token"),
    ] {
        for path in ["/mcp", "/v1/sessions", "/v1/sessions/x/status", "/v1/mcp/sessions", "/v1/grants", "/nowhere"] {
            for method in ["GET", "POST", "DELETE"] {
                let mut connection = Connection::to(server.address, None);
                let answer = connection.request(method, path, &[("authorization", credentials)], b"");
                assert_eq!(answer.status, 401, "{method} {path} with {credentials:?}");
                assert_eq!(answer.header("content-type"), "application/problem+json");
                let challenge = answer.header("www-authenticate");
                assert!(challenge.starts_with("Bearer realm="), "{challenge}");
                assert!(challenge.contains(error), "{challenge}");
                assert_eq!(challenge.contains("error="), !error.is_empty(), "{challenge}");
            }
        }
    }
    let mut allowed = server.connect(&good);
    assert_eq!(allowed.get("/v1/sessions").status, 200);
    assert_eq!(allowed.get("/nowhere").status, 404);
    let spelled = [("authorization", &*format!("bEARER   {good}"))];
    assert_eq!(Connection::to(server.address, None).request("GET", "/v1/sessions", &spelled, b"").status, 200);
    let (code, log) = server.terminate(PATIENCE);
    assert_eq!(code, Some(0));
    assert!(!log.contains(&good) && !log.contains(&mistyped), "{log}");
}

#[test]
fn whether_it_lives_is_told_to_everybody() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let mut connection = Connection::to(server.address, None);
    assert_eq!(connection.get("/healthz").text(), "ok\n");
    assert_eq!(connection.get("/readyz").text(), "ready\n");
    assert_eq!(connection.get("/healthz?").status, 200);
    for asked in ["/healthz?x=1", "/readyz?x", "/openapi.json?a=b"] {
        assert_eq!(connection.get(asked).status, 400, "{asked}");
    }
    assert_eq!(connection.request("GET", "/healthz", &[("host", "evil.example")], b"").status, 403);
}

#[test]
fn an_address_of_this_machine_is_a_host_where_the_connection_has_come_to_it() {
    let world = World::new();
    let mut command = world.command(&["serve", "--http", "0.0.0.0:0", "--behind-proxy"]);
    command.arg("--unix").arg(world.path("socket"));
    let server = Server::spawn(command);
    assert!(server.address.ip().is_loopback(), "what it says can be used: {}", server.log());
    assert!(server.log().contains("0.0.0.0: so it does at every address"), "{}", server.log());
    let status = |to: &str, host: &str| {
        let mut stream = std::net::TcpStream::connect((to, server.address.port())).unwrap();
        write!(stream, "GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!((status("127.0.0.2", "127.0.0.2:7"), status("127.0.0.1", "localhost")), ("200".into(), "200".into()));
    for host in ["127.0.0.3", "0.0.0.0", "2130706434", "evil.example"] {
        assert_eq!(status("127.0.0.2", host), "403", "{host}");
    }
    let file = world.write("file", "mine");
    let ran = world.run(&["serve", "--unix", file.to_str().unwrap()]);
    assert!(ran.code == Some(2) && ran.stderr.contains("a file already, which is no socket"), "{ran:#?}");
}

#[test]
fn web_pages_and_other_hosts_are_refused() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let args = ["--allow-host", "Agents.Example", "--allow-origin", "https://agents.example"];
    let server = Server::start_with(&world, &[], &args, &[]);
    let status = |headers: &[(&str, &str)]| server.connect(&good).request("GET", "/v1/sessions", headers, b"").status;
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:7878", "agents.example"] {
        assert_eq!(status(&[("host", host)]), 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7878", "0.0.0.0", "192.168.0.1"] {
        assert_eq!(status(&[("host", host)]), 403, "{host}");
    }
    assert_eq!([status(&[("host", "")]), status(&[("host", "a@localhost")]), status(&[("host", "a b")])], [400; 3]);
    assert_eq!(status(&[("origin", "https://agents.example")]), 200);
    // What stands in the first line counts more than the header.
    assert_eq!(server.connect(&good).request("GET", "http://evil.example/v1/sessions", &[], b"").status, 403);
    for origin in
        ["https://evil.example", "null", "http://localhost", "http://agents.example", "https://agents.example:8"]
    {
        assert_eq!(status(&[("origin", origin)]), 403, "{origin}");
    }
}

#[test]
fn it_listens_only_where_nobody_else_can_read_along() {
    let world = World::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = world.run(&["serve", "--http", address]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("--behind-proxy"), "{ran:#?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ran = world.run(&["serve", "--http", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("cannot listen on"), "{ran:#?}");
}

#[test]
fn what_is_no_message_is_an_error_of_json_rpc() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&good);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"name":{deep}}}}}"#);
    for (body, code) in
        [("", -32700), ("{", -32700), ("\u{0}", -32700), (&*deep, -32700), ("[]", -32600), ("7", -32600)]
    {
        let answer = connection.post(&[], body);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(code)), "{body}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/json");
    }
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]).to_string();
    assert_eq!(connection.post(&[], &batch).json()["error"]["code"], -32600);
    // Bytes that are no text, and a wrong kind of content.
    connection.send("POST", "/mcp", &[("accept", "application/json, text/event-stream")], b"{\"method\":\"\xff\"}");
    assert_eq!(connection.response().status, 400);
    assert_eq!(connection.post(&[("content-type", "text/plain")], "{}").status, 415);
    assert_eq!(connection.post(&[("accept", "application/json")], "{}").status, 406);
    assert_eq!(connection.get("/v1/sessions").status, 200, "the connection is as good as before");
}

#[test]
fn headers_must_say_what_the_body_says() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let mut connection = server.connect(&good);
    let mut headers = Vec::new();
    let body = list_tools(&mut headers);
    assert_eq!(connection.post(&headers, &body).status, 200);
    let mut mismatch = |headers: &[(&str, &str)]| {
        let answer = connection.post(headers, &body);
        (answer.status, answer.json()["error"]["code"].clone())
    };
    assert_eq!(mismatch(&[("mcp-protocol-version", MODERN), ("mcp-method", "tools/call")]), (400, json!(-32020)));
    assert_eq!(mismatch(&[("mcp-protocol-version", MODERN)]), (400, json!(-32020)));
    assert_eq!(mismatch(&[("mcp-protocol-version", LEGACY[3]), ("mcp-method", "tools/list")]), (400, json!(-32020)));
    assert_eq!(mismatch(&[("mcp-method", "tools/list")]), (400, json!(-32020)));
    // A proxy is told of a harmless tool, and the body names another.
    let mut connection = server.connect(&good);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"_meta": meta, "name": "list_clients", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let told = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "list_sessions")];
    assert_eq!(connection.post(&told, &call).status, 403, "the scope is that of the tool in the body");
    let allowed = token(&world, "other", &["clients:read"]);
    let answer = server.connect(&allowed).post(&told, &call);
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32020)));
}

#[test]
fn a_body_may_have_four_mebibytes() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let padded = |size: usize| {
        let mut headers = Vec::new();
        let body = list_tools(&mut headers);
        (headers, format!("{body}{}", " ".repeat(size - body.len())))
    };
    let (headers, body) = padded(4 << 20);
    assert_eq!(server.connect(&good).post(&headers, &body).status, 200);
    let (headers, body) = padded((4 << 20) + 1);
    assert_eq!(server.connect(&good).post(&headers, &body).status, 413);
    // One that does not say how much will come.
    let mut connection = server.connect(&good);
    connection.send_post(&[("transfer-encoding", "chunked"), ("content-length", "")], "");
    let piece = [b"100000\r\n".as_slice(), &[b' '; 1 << 20], b"\r\n"].concat();
    let refused = (0..5).any(|_| connection.raw(&piece).is_err());
    assert!(refused || connection.head().status == 413);
}

#[test]
fn one_that_sends_slowly_does_not_stay() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let mut slow: Vec<Connection> = (0..50).map(|_| Connection::to(server.address, None)).collect();
    for connection in &mut slow {
        connection.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ").unwrap();
    }
    assert_eq!(Connection::to(server.address, None).get("/healthz").status, 200, "others are served meanwhile");
    for connection in &mut slow {
        let rest = connection.rest();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let mut connection = Connection::to(server.address, None);
    let _ = connection.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: ");
    let _ = connection.raw(&[b'x'; 256 << 10]);
    assert_eq!(connection.head().status, 431);
}

#[cfg(target_os = "linux")]
#[test]
fn a_state_directory_that_cannot_be_made_is_no_answer_about_a_token() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start_with(&world, &[], &[], &[("HEADCOUNT_STATE_DIR", "/proc/none")]);
    for token in [&*good, "hct_x"] {
        let answer = server.connect(token).get("/v1/sessions");
        let expected = if token == good { 503 } else { 401 };
        assert_eq!(answer.status, expected, "{}", answer.text());
        assert!(!answer.text().contains("/proc"), "where it is concerns nobody outside");
    }
    let readiness = Connection::to(server.address, None).get("/readyz");
    assert_eq!((readiness.status, &readiness.json()["not_ready"][0]["part"]), (503, &json!("database")));
    let listed = world.command(&["grants", "list"]).env("HEADCOUNT_STATE_DIR", "/proc/none").output().unwrap();
    assert_eq!(listed.status.code(), Some(2), "it is not that there are none: {listed:?}");
}

#[test]
fn what_is_said_of_http_is_said_of_a_server_over_http() {
    let world = World::new();
    for args in [["--allow-host", "agents.example"], ["--allow-origin", "https://agents.example"]] {
        let ran = world.run(&[&["serve"], &args[..]].concat());
        assert_eq!(ran.code, Some(64), "{ran:#?}");
        assert!(ran.stderr.contains("--http"), "{ran:#?}");
    }
}

#[test]
fn a_database_that_cannot_be_read_is_no_answer_about_a_token() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    assert_eq!(server.connect(&good).get("/v1/sessions").status, 200);
    std::fs::write(world.state().join("headcount.db"), [b'x'; 8192]).unwrap();
    let answer = server.connect(&good).get("/v1/sessions");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.header("www-authenticate").is_empty() && !answer.header("retry-after").is_empty());
    assert!(!answer.text().contains("headcount.db"), "where it is concerns nobody outside");
    assert_eq!(Connection::to(server.address, None).get("/readyz").status, 503);
    let _: Value = answer.json();
}
