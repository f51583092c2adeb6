//! Persistent sessions over HTTP: with headcount's own server, and with servers that refuse, forget, cut and say nothing.

use crate::http_client::{self, token};
use crate::upstream::text;
use crate::world::{PATIENCE, World};
use headcount::clock::SystemClock;
use headcount::config::Handshake;
use headcount::upstream::{Address, Door, Failure, Header, Outcome, Phase, SecretPlace, Server, Session, TokenPlace};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn server(address: SocketAddr, handshake: Handshake, token: TokenPlace) -> Server {
    let url = format!("http://{address}/mcp").parse().unwrap();
    Server {
        name: "far".into(),
        door: Door::Http(Address { url, headers: vec![], token }),
        handshake,
        connect: PATIENCE,
        timeout: PATIENCE,
        grace: Duration::from_millis(300),
        queue: 64,
    }
}

fn open(server: Server) -> Session {
    Session::open(server, &[], Arc::new(SystemClock::default())).unwrap()
}

fn token_file(world: &World, name: &str, text: &str) -> (PathBuf, TokenPlace) {
    let file = world.write(name, format!("{text}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    (file.clone(), TokenPlace::In(SecretPlace::File(file)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_headcount_is_asked_in_both_eras_with_a_token_from_a_file() {
    let world = World::new();
    let there = http_client::Server::start(&world, &[]);
    let (file, place) = token_file(&world, "token", &token(&world, "far", &["status:read"]));
    for (handshake, protocol) in [(Handshake::Auto, "2026-07-28"), (Handshake::Initialize, "2025-11-25")] {
        let session = open(server(there.address, handshake, place.clone()));
        assert_eq!(session.list_tools().await.unwrap().len(), 6);
        let listed = session.call_tool("list_sessions", None).await.unwrap();
        assert_eq!(listed.structured_content.unwrap()["schema"], "headcount.sessions/1");
        assert_eq!(session.status().about.unwrap().protocol, protocol);
        session.close().await;
    }
    let session = open(server(there.address, Handshake::Auto, place));
    fs::write(&file, "hct_wrong").unwrap();
    let error = session.call_tool("list_sessions", None).await.unwrap_err();
    let why = "the server wants other authorization (401): the token is not valid; it asks for the scope status:read \
               roster:write clients:read";
    assert_eq!(error.failure, Failure::Connect(why.into()));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let error = session.call_tool("list_sessions", None).await.unwrap_err();
    assert!(error.to_string().contains("chmod o="), "{error}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!error.to_string().contains("hct_wrong"));
    // The right one is read when it is tried the next time.
    fs::write(&file, token(&world, "again", &["status:read"])).unwrap();
    session.call_tool("list_sessions", None).await.unwrap();
    there.kill();
    let error = session.call_tool("list_sessions", None).await.unwrap_err();
    assert_eq!(error.failure.outcome(), Outcome::NotDone, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    session.close().await;
}

/// What a server made for the test does with a request.
enum Reply {
    Json(Value),
    Status(u16, &'static str),
    /// It says nothing, and keeps the connection.
    Silence,
    /// It sends half of an answer, and cuts the connection.
    Half,
    /// It sends so many bytes as one answer.
    Flood(usize),
    /// It sends so many bytes as one event.
    Event(usize),
}

struct Fake {
    address: SocketAddr,
    /// The bodies and headers of the requests that came.
    heard: Arc<Mutex<Vec<(Value, String)>>>,
}

impl Fake {
    /// A server that answers calls of tools so, and everything else well.
    fn start(reply: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (reply, all) = (Arc::new(reply), Arc::clone(&heard));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (reply, all) = (Arc::clone(&reply), Arc::clone(&all));
                thread::spawn(move || serve(stream, &*reply, &all));
            }
        });
        Self { address, heard }
    }

    fn calls(&self) -> usize {
        self.heard.lock().unwrap().iter().filter(|(body, _)| body["method"] == "tools/call").count()
    }
}

/// The head and the body of a request.
pub fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn serve(stream: TcpStream, reply: &dyn Fn(&Value) -> Reply, heard: &Mutex<Vec<(Value, String)>>) -> Option<()> {
    let (head, body) = request(&stream)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    heard.lock().unwrap().push((body.clone(), head.clone()));
    let result = |result: Value| Reply::Json(json!({"jsonrpc": "2.0", "id": body["id"], "result": result}));
    let replied = match body["method"].as_str().unwrap_or_default() {
        "initialize" => result(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"}})),
        "tools/list" => result(json!({"tools": [
            {"name": "write", "inputSchema": {"type": "object"}},
            {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]})),
        "tools/call" => reply(&body),
        _ if head.starts_with("POST") => Reply::Status(202, ""),
        _ => Reply::Status(405, ""),
    };
    write(stream, replied)
}

fn write(mut stream: TcpStream, reply: Reply) -> Option<()> {
    let head = |status: u16, length: usize| {
        format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\nContent-Length: {length}\r\nConnection: close\r\n"
        )
    };
    match reply {
        Reply::Json(value) => {
            let text = value.to_string();
            write!(stream, "{}\r\n{text}", head(200, text.len())).ok()
        }
        Reply::Status(status, header) => write!(stream, "{}{header}\r\n", head(status, 0)).ok(),
        Reply::Silence => stream.read(&mut [0]).map(drop).ok(),
        Reply::Half => write!(stream, "{}\r\n{{\"jsonrpc\"", head(200, 1000)).ok(),
        Reply::Event(length) => {
            write!(stream, "HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: \"")
                .ok()?;
            (0..length >> 16).try_for_each(|_| stream.write_all(&[b'x'; 1 << 16])).ok()
        }
        Reply::Flood(length) => {
            write!(stream, "{}\r\n\"", head(200, length)).ok()?;
            (0..length >> 16).try_for_each(|_| stream.write_all(&[b'x'; 1 << 16])).ok()
        }
    }
}

fn called(body: &Value) -> Reply {
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    Reply::Json(json!({"jsonrpc": "2.0", "id": body["id"], "result": result}))
}

fn legacy(fake: &Fake) -> Session {
    open(server(fake.address, Handshake::Initialize, TokenPlace::Nowhere))
}

#[tokio::test]
async fn an_answer_that_is_cut_is_lost_and_only_what_changes_nothing_is_asked_again() {
    let count = AtomicUsize::new(0);
    let fake = Fake::start(move |body| match count.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Reply::Half,
        _ => called(body),
    });
    let session = legacy(&fake);
    let error = session.call_tool("write", None).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Lost(_)), "{error}");
    assert_eq!((fake.calls(), error.failure.outcome()), (1, Outcome::Unknown));
    assert_eq!(text(&session.call_tool("look", None).await.unwrap()), "done");
    assert_eq!(fake.calls(), 3);
    assert_eq!(session.status().connections, 1, "each request has a connection of its own");
    session.close().await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_waited_for_until_the_deadline() {
    let fake = Fake::start(|body| match body["params"]["name"] == "look" {
        true => called(body),
        false => Reply::Silence,
    });
    let session = legacy(&fake);
    session.list_tools().await.unwrap();
    let patience = Duration::from_millis(200);
    let error = session.call_tool_within("write", None, patience).await.unwrap_err();
    assert_eq!(error.failure, Failure::Timeout { after: patience, sent: true });
    session.call_tool("look", None).await.unwrap();
    session.close().await;
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_begun_anew_and_the_call_sent_once_more() {
    let count = AtomicUsize::new(0);
    let fake = Fake::start(move |body| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Status(404, ""),
        _ => called(body),
    });
    let session = legacy(&fake);
    assert_eq!(text(&session.call_tool("write", None).await.unwrap()), "done");
    assert_eq!((fake.calls(), session.status().reconnects()), (2, 1));
    session.close().await;
}

#[tokio::test]
async fn refusals_are_told_and_no_redirect_carries_the_token_away() {
    let elsewhere = Fake::start(called);
    let location: &'static str = format!("Location: http://{}/mcp\r\n", elsewhere.address).leak();
    let count = AtomicUsize::new(0);
    let fake = Fake::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Status(307, location),
        1 => Reply::Status(429, ""),
        2 => Reply::Status(503, ""),
        _ => Reply::Flood(100 << 20),
    });
    let world = World::new();
    let (_, place) = token_file(&world, "token", "s3cret");
    let session = open(server(fake.address, Handshake::Initialize, place));
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(session.call_tool("write", None).await.unwrap_err());
    }
    assert!(matches!(told[0].failure, Failure::Lost(_)), "{}", told[0]);
    assert!(matches!(told[1].failure, Failure::Refused { code: 429, .. }), "{}", told[1]);
    assert!(matches!(told[2].failure, Failure::Lost(_)), "{}", told[2]);
    assert!(matches!(told[3].failure, Failure::Lost(_)), "{}", told[3]);
    assert!(elsewhere.heard.lock().unwrap().is_empty(), "the redirect was followed");
    let heard = fake.heard.lock().unwrap().clone();
    assert!(heard.iter().all(|(_, head)| head.to_lowercase().contains("authorization: bearer s3cret")));
    assert!(told.iter().all(|error| !format!("{error:?}").contains("s3cret")));
    assert_eq!(session.status().phase, Phase::Ready);
    session.close().await;
}

#[tokio::test]
async fn an_event_that_is_too_long_is_told_as_that() {
    let fake = Fake::start(|_| Reply::Event(20 << 20));
    let session = legacy(&fake);
    let error = session.call_tool("write", None).await.unwrap_err();
    assert!(error.to_string().contains("a message of more than 16 MiB"), "{error}");
    assert_eq!(error.failure.outcome(), Outcome::Unknown);
    session.close().await;
}

#[tokio::test]
async fn headers_hold_secrets_that_are_read_for_each_connection_and_shown_to_nobody_else() {
    let fake = Fake::start(called);
    let world = World::new();
    let (file, _) = token_file(&world, "key", "s3cret-1");
    let mut server = server(fake.address, Handshake::Initialize, TokenPlace::Nowhere);
    let Door::Http(address) = &mut server.door else { unreachable!() };
    address.headers = vec![
        ("x-team".parse().unwrap(), Header::Plain("shop".parse().unwrap())),
        ("x-api-key".parse().unwrap(), Header::Secret(SecretPlace::File(file.clone()))),
    ];
    let shown = format!("{server:?}");
    let session = open(server);
    session.call_tool("write", None).await.unwrap();
    session.close().await;
    let heads = |from: usize| -> Vec<String> {
        fake.heard.lock().unwrap()[from..].iter().map(|(_, head)| head.to_lowercase()).collect()
    };
    let first = heads(0);
    assert!(
        first.iter().all(|head| head.contains("x-api-key: s3cret-1") && head.contains("x-team: shop")),
        "{first:?}"
    );
    assert!(!shown.contains("s3cret"));
    let world = crate::upstream_login::client(
        &format!("http://{}/mcp", fake.address),
        "headers_env = { X-Api-Key = \"KEY\" }\nheaders_file = { Cookie = \"cookie\" }\nhandshake = \"initialize\"",
    );
    let cookie = world.write(".config/headcount/cookie", "a=s3cret-3\n");
    fs::set_permissions(&cookie, fs::Permissions::from_mode(0o600)).unwrap();
    let run = |args: &[&str], key: &str| {
        let mut command = world.command(args);
        command.envs([("KEY", key), ("RUST_LOG", "trace,rmcp=trace")]);
        crate::world::finish(command)
    };
    let ran = run(&["upstream", "call", "far", "write"], "s3cret-2");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let second = heads(first.len());
    let both = |head: &String| head.contains("x-api-key: s3cret-2") && head.contains("cookie: a=s3cret-3");
    assert!(!second.is_empty() && second.iter().all(both), "{second:?}");
    assert!(ran.stderr.contains("TRACE") && !format!("{ran:?}").contains("s3cret"), "{ran:#?}");
    fs::set_permissions(&cookie, fs::Permissions::from_mode(0o604)).unwrap();
    let ran = run(&["upstream", "call", "far", "write"], "s3cret-2");
    assert!(ran.code == Some(2) && ran.stderr.contains("which holds the header cookie: chmod o="), "{ran:#?}");
    let ran = run(&["upstream", "call", "far", "write"], "");
    assert!(ran.stderr.contains("KEY, which is to hold the header x-api-key, is not set"), "{ran:#?}");
    assert!(!run(&["config", "print", "--json"], "s3cret-2").stdout.contains("s3cret"));
    assert_eq!(heads(first.len()).len(), second.len(), "nothing was sent without them");
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_says_nothing_has_a_deadline_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut silent = server(listener.local_addr().unwrap(), Handshake::Auto, TokenPlace::Nowhere);
    silent.connect = Duration::from_millis(300);
    let session = open(silent);
    let start = Instant::now();
    let error = session.list_tools().await.unwrap_err();
    assert_eq!(error.failure, Failure::Connect("no connection within 300 ms".into()));
    session.close().await;
    assert!(start.elapsed() < PATIENCE / 2);
}
