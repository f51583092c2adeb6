//! Clients that take their time: none of them holds up the others, or takes much.

use crate::http_client::{Connection, Server, socket, token};
use crate::world::{PATIENCE, World, memory};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How many of them there are.
const MANY: usize = 50;

fn post(token: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n{{"
    )
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::new();
    let good = token(&world, "laptop", &[]);
    let server = Server::start(&world, &[]);
    let before = memory(server.pid());
    let begins = |token: &str| {
        let mut slow = socket(server.address);
        slow.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        slow.write_all(post(token, 4 << 20).as_bytes()).unwrap();
        slow
    };
    // More than there is room for, if all of them came: room is taken for what has come.
    let mut slow: Vec<TcpStream> = (0..MANY).map(|_| begins(&good)).collect();
    let asked = Instant::now();
    assert_eq!(server.connect(&good).get("/v1/sessions").status, 200, "others are served meanwhile");
    for who in [token(&world, "desktop", &[]), good.clone()] {
        assert_eq!(server.connect(&who).ask("tools/list", json!({})).status, 200, "in /mcp too");
    }
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let mut stranger = begins("nobody's");
    let mut said = [0; 12];
    stranger.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"HTTP/1.1 401", "no body is read of whoever has no token");
    for slow in &mut slow {
        slow.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 408");
    }
    let grown = memory(server.pid()) - before;
    assert!(grown < 40 << 10, "{grown} KiB more");
    assert_eq!(server.connect(&good).ask("tools/list", json!({})).status, 200, "there is room again");
}

#[test]
fn a_grant_takes_no_room_from_the_others_and_has_it_again_once_its_calls_are_read() {
    let world = World::new();
    let roster = world.roster("shop", &[("one", std::process::id())]);
    let (greedy, other) = (token(&world, "greedy", &["status:read"]), token(&world, "other", &[]));
    let server = Server::start(&world, &[&roster]);
    // All but the last byte of bodies that have its share together, and a little more.
    let almost = (4 << 20) - 1;
    let full: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut slow = socket(server.address);
            slow.write_all(post(&greedy, almost + 1).as_bytes()).unwrap();
            slow.write_all(&vec![b' '; almost - 1]).unwrap();
            slow
        })
        .collect();
    let asked = Instant::now();
    assert_eq!(server.connect(&other).ask("tools/list", json!({})).status, 200);
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}{}"#, " ".repeat(1 << 20));
    let mut waits = server.connect(&greedy);
    let answer = waits.post(&[], &large);
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"), "{}", answer.text());
    assert!(answer.text().contains("no room for the body"), "{}", answer.text());
    let without = server.connect(&greedy).request("DELETE", "/mcp", &[], b"").status;
    assert_eq!(without, 405, "no body needs no room");
    drop(full);

    // What waits for long keeps nothing large, and calls that are under way keep no room.
    let padded = |size: usize| json!({"session_id": "shop", "timeout_s": 3600, "pad": "x".repeat(size)});
    let mut padding = server.connect(&greedy);
    let refused = padding.ask("tools/call", json!({"name": "wait_for_attention", "arguments": padded(1 << 20)}));
    assert_eq!(refused.status, 413, "{}", refused.text());
}

#[test]
fn who_reads_no_answers_takes_no_memory_and_no_turn() {
    let world = World::new();
    let (good, other) = (token(&world, "laptop", &[]), token(&world, "other", &[]));
    let server = Server::start(&world, &[]);
    assert_eq!(server.connect(&other).get("/v1/sessions").status, 200);
    let before = memory(server.pid());
    let request = format!("GET /v1/sessions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {good}\r\n\r\n");
    let many = request.repeat(20_000);
    let deaf: Vec<TcpStream> = (0..MANY)
        .map(|_| {
            let stream = socket(server.address);
            stream.set_nonblocking(true).unwrap();
            // As much as goes away.
            let mut rest = many.as_bytes();
            while let Ok(sent @ 1..) = (&stream).write(rest) {
                rest = &rest[sent..];
            }
            stream
        })
        .collect();
    for _ in 0..20 {
        let asked = Instant::now();
        assert_eq!(server.connect(&other).get("/v1/sessions").status, 200);
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    }
    let grown = memory(server.pid()) - before;
    assert!(grown < 20 << 10, "{grown} KiB more");
    drop(deaf);
    let (code, log) = server.terminate(PATIENCE);
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn one_byte_at_a_time_is_a_request_if_it_comes_in_time() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let mut slow = Connection::to(server.address, None);
    for byte in b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" {
        slow.raw(&[*byte]).unwrap();
    }
    assert_eq!(slow.response().text(), "ok\n");
}
