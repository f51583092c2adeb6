//! An MCP server with an authorization server that does as it is told: both behave well, unless a test says how not.

use crate::upstream_http::request;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use url::form_urlencoded;

/// A request.
#[derive(Debug, Clone)]
pub struct Heard {
    pub path: String,
    pub head: String,
    pub body: String,
}

impl Heard {
    /// A field of a form.
    pub fn field(&self, name: &str) -> String {
        let mut fields = form_urlencoded::parse(self.body.as_bytes());
        fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub enum Reply {
    Json(u16, Value),
    /// A status, a header line or none, and a body.
    Raw(u16, String, String),
    /// So many bytes.
    Flood(usize),
    /// Nothing, while the connection is kept.
    Silence,
}

type Script = dyn Fn(&Heard, &str) -> Option<Reply> + Send + Sync;

pub struct Issuer {
    pub base: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// The tokens that hold: those of the last answer, as they are used once.
#[derive(Default)]
struct State {
    given: u64,
    /// Whether a refresh token was shown twice.
    shown_twice: bool,
}

impl Issuer {
    /// One that does what `script` says where that says anything; it is told the request and the server's own address.
    pub fn start(script: impl Fn(&Heard, &str) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (base, heard) = (format!("http://{address}"), Arc::<Mutex<Vec<Heard>>>::default());
        let (script, all, own): (Arc<Script>, _, _) = (Arc::new(script), Arc::clone(&heard), base.clone());
        let state = Arc::<Mutex<State>>::default();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, all, own, state) =
                    (Arc::clone(&script), Arc::clone(&all), own.clone(), Arc::clone(&state));
                thread::spawn(move || {
                    let heard = hear(&stream)?;
                    all.lock().unwrap().push(heard.clone());
                    let reply = script(&heard, &own).unwrap_or_else(|| well(&heard, &own, &mut state.lock().unwrap()));
                    answer(stream, reply)
                });
            }
        });
        Self { base, heard }
    }

    pub fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// The requests to this path.
    pub fn heard(&self, path: &str) -> Vec<Heard> {
        self.heard.lock().unwrap().iter().filter(|heard| heard.path == path).cloned().collect()
    }

    pub fn heard_nothing(&self) -> bool {
        self.heard.lock().unwrap().is_empty()
    }
}

/// What an authorization server says of itself.
pub fn metadata(base: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "revocation_endpoint": format!("{base}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    })
}

/// Tokens, the n-th ones.
pub fn tokens(n: u64, expires_in: u64) -> Reply {
    let tokens = json!({"access_token": format!("access-s3cret-{n}"), "refresh_token": format!("refresh-s3cret-{n}"),
        "token_type": "Bearer", "expires_in": expires_in});
    Reply::Json(200, tokens)
}

fn well(heard: &Heard, base: &str, state: &mut State) -> Reply {
    match heard.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => {
            Reply::Json(200, json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
        }
        "/.well-known/oauth-authorization-server" => Reply::Json(200, metadata(base)),
        "/register" => Reply::Json(201, json!({"client_id": "c1", "redirect_uris": []})),
        "/revoke" => Reply::Json(200, json!({})),
        "/token" => {
            let shown = heard.field("refresh_token");
            if heard.field("grant_type") == "refresh_token" && shown != format!("refresh-s3cret-{}", state.given) {
                state.shown_twice = true;
            }
            if state.shown_twice {
                return Reply::Json(400, json!({"error": "invalid_grant"}));
            }
            state.given += 1;
            tokens(state.given, 3600)
        }
        "/mcp" if !heard.head.to_lowercase().contains("authorization: bearer access-s3cret-") => {
            let metadata = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
            Reply::Raw(401, format!("WWW-Authenticate: Bearer {metadata}"), String::new())
        }
        "/mcp" => mcp(heard),
        _ => Reply::Raw(404, String::new(), String::new()),
    }
}

fn mcp(heard: &Heard) -> Reply {
    let asked: Value = serde_json::from_str(&heard.body).unwrap_or_default();
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ if asked["id"].is_null() => return Reply::Raw(202, String::new(), String::new()),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return Reply::Json(200, json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
        }
    };
    Reply::Json(200, json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
}

fn hear(stream: &TcpStream) -> Option<Heard> {
    let (head, body) = request(stream)?;
    let mut words = head.split(' ');
    let path = words.nth(1)?.to_owned();
    Some(Heard { path, head, body: String::from_utf8(body).ok()? })
}

fn answer(mut stream: TcpStream, reply: Reply) -> Option<()> {
    let (status, header, body) = match reply {
        Reply::Json(status, value) => (status, "Content-Type: application/json".to_owned(), value.to_string()),
        Reply::Raw(status, header, body) => (status, header, body),
        Reply::Flood(length) => (200, "Content-Type: application/json".to_owned(), "[".repeat(length)),
        Reply::Silence => return stream.read(&mut [0]).map(drop).ok(),
    };
    let header = if header.is_empty() { header } else { header + "\r\n" };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} X\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}").ok()
}
