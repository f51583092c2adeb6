//! A small HTTP client over a plain socket, and a server to talk to: nothing is done for the tests that they do not see.

use crate::mcp_client::MODERN;
use crate::world::{PATIENCE, World, ended};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// One server.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// What it has said on stderr, and who listens to it.
    log: Arc<Mutex<String>>,
    listens: Option<JoinHandle<()>>,
}

impl Server {
    /// A server at a port that was free.
    pub fn start(world: &World, rosters: &[&Path]) -> Self {
        Self::start_with(world, rosters, &[], &[])
    }

    pub fn start_with(world: &World, rosters: &[&Path], args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = world.command(&["serve", "--http", "127.0.0.1:0"]);
        for roster in rosters {
            command.arg("--roster").arg(roster);
        }
        command.args(args).envs(variables.iter().copied());
        Self::spawn(command)
    }

    /// What a command comes to that serves HTTP.
    pub fn spawn(mut command: Command) -> Self {
        command.env("HEADCOUNT_SAMPLING_TICK", "100ms");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let begin = said.len();
            // It may have to warn of something first.
            assert!(log.read_line(&mut said).unwrap() > 0, "no address in {said:?}");
            let address = said[begin..].split("://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
            if let Some(address) = address {
                break address;
            }
        };
        let said = Arc::new(Mutex::new(said));
        let more = Arc::clone(&said);
        let listens = thread::spawn(move || {
            let mut line = String::new();
            while log.read_line(&mut line).unwrap() > 0 {
                *more.lock().unwrap() += &std::mem::take(&mut line);
            }
        });
        Self { child, address, log: said, listens: Some(listens) }
    }

    /// What it has logged until now.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as service managers do, and returns its exit code and all that it has logged.
    pub fn terminate(self, patience: Duration) -> (Option<i32>, String) {
        self.ended_by(Signal::SIGTERM, patience)
    }

    /// The same by another signal.
    pub fn ended_by(mut self, signal: Signal, patience: Duration) -> (Option<i32>, String) {
        self.signal(signal);
        let code = ended(&mut self.child, patience);
        self.listens.take().unwrap().join().unwrap();
        (code, self.log())
    }

    /// Sends it a signal, and does not wait for what comes of it.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Ends it in the midst of what it does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A connection that sends this token.
    pub fn connect(&self, token: &str) -> Connection {
        Connection::to(self.address, Some(token))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A token with these scopes.
pub fn token(world: &World, name: &str, scopes: &[&str]) -> String {
    let mut args = vec!["token", "create", name];
    for scope in scopes {
        args.extend(["--scope", scope]);
    }
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.stdout.trim().to_owned()
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    /// By name in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}\n{}", self.text()))
    }

    /// The last message of an answer that is JSON or a stream of events.
    pub fn message(&self) -> Value {
        if self.header("content-type").starts_with("text/event-stream") {
            let text = self.text();
            let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
            let last = last.unwrap_or_else(|| panic!("no message: {text}"));
            return serde_json::from_str(last).unwrap();
        }
        self.json()
    }
}

/// What bytes go over.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A socket on which nothing is waited for too long.
pub fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// One connection; it is kept as long as the server keeps it.
pub struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    token: Option<String>,
    /// The session, where one was begun.
    pub session: Option<String>,
    version: String,
    next_id: u64,
}

impl Connection {
    pub fn to(address: SocketAddr, token: Option<&str>) -> Self {
        Self::over(socket(address), token)
    }

    /// One over what has been opened already.
    pub fn over(stream: impl Stream + 'static, token: Option<&str>) -> Self {
        let stream = BufReader::with_capacity(1 << 16, Box::new(stream) as Box<dyn Stream>);
        Self { stream, token: token.map(str::to_owned), session: None, version: MODERN.to_owned(), next_id: 0 }
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a request with these headers beside the usual ones; one that is given takes the place of a usual one.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        all.insert("host".into(), "localhost".into());
        all.insert("content-length".into(), body.len().to_string());
        if let Some(token) = &self.token {
            all.insert("authorization".into(), format!("Bearer {token}"));
        }
        all.extend(headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned())));
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in all.iter().filter(|(_, value)| !value.is_empty()) {
            request += &format!("{name}: {value}\r\n");
        }
        let bytes = [request.as_bytes(), b"\r\n", body].concat();
        // A server that refuses a large body may have closed its end before all of it was sent.
        let _ = self.raw(&bytes);
    }

    /// The head of the next answer.
    pub fn head(&mut self) -> Response {
        self.try_head().unwrap()
    }

    /// The same, where the server may be gone before it has come.
    fn try_head(&mut self) -> std::io::Result<Response> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no answer but {line:?}")))?;
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        Ok(Response { status, headers, body: Vec::new() })
    }

    /// The whole next answer, where the server may be gone before it has come.
    pub fn try_response(&mut self) -> std::io::Result<Response> {
        let mut response = self.try_head()?;
        if let Ok(length) = response.header("content-length").parse() {
            response.body = vec![0; length];
            self.stream.read_exact(&mut response.body)?;
        }
        Ok(response)
    }

    /// The next piece of a body that is sent in pieces; `None`: that was all.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim_end(), 16).ok()?;
        let mut piece = vec![0; length + 2];
        self.stream.read_exact(&mut piece).unwrap();
        piece.truncate(length);
        (length > 0).then_some(piece)
    }

    /// The whole next answer.
    pub fn response(&mut self) -> Response {
        let mut response = self.head();
        if response.header("transfer-encoding") == "chunked" {
            while let Some(piece) = self.piece() {
                response.body.extend(piece);
            }
        } else if let Ok(length) = response.header("content-length").parse() {
            response.body = vec![0; length];
            self.stream.read_exact(&mut response.body).unwrap();
        }
        response
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.send(method, path, headers, body);
        self.response()
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, &[], b"")
    }

    /// What the server still sends until it closes its end.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("{error}"),
            _ => String::from_utf8_lossy(&rest).into_owned(),
        }
    }
}

/// MCP.
impl Connection {
    /// Posts a body as MCP clients do, with these headers beside.
    pub fn post(&mut self, headers: &[(&str, &str)], body: &str) -> Response {
        self.send_post(headers, body);
        self.response()
    }

    pub fn send_post(&mut self, headers: &[(&str, &str)], body: &str) {
        let session = self.session.clone().unwrap_or_default();
        let mut all = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", session.as_str()),
        ];
        all.extend(headers);
        self.send("POST", "/mcp", &all, body.as_bytes());
    }

    /// The handshake of an older version: its answer.
    pub fn initialize(&mut self, version: &str) -> Response {
        self.version = version.to_owned();
        let client = json!({"name": "test-client", "version": "1.2"});
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let answer = self.post(&[], &request.to_string());
        if answer.status == 200 {
            self.session = Some(answer.header("mcp-session-id").to_owned());
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            assert_eq!(self.post(&[], &ready.to_string()).status, 202);
        }
        answer
    }

    /// Sends a request, and returns its id.
    pub fn send_message(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let version = self.version.clone();
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let mut headers = vec![("mcp-protocol-version", version.as_str())];
        if version == MODERN {
            headers.extend([("mcp-method", method), ("mcp-name", name.as_str())]);
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            if meta["io.modelcontextprotocol/clientInfo"].is_null() {
                meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test-client", "version": "1.2"});
            }
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_post(&headers, &request.to_string());
        id
    }

    /// The answer to a request, whatever it is.
    pub fn ask(&mut self, method: &str, params: Value) -> Response {
        self.send_message(method, params);
        self.response()
    }

    /// The result of a call, whether the tool succeeded or not.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.message()["result"].take()
    }

    /// What the tool answered, where it succeeded.
    pub fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result:#}");
        result["structuredContent"].take()
    }

    /// The next message of a stream of events.
    pub fn event(&mut self) -> Option<Value> {
        loop {
            let piece = String::from_utf8(self.piece()?).unwrap();
            let data = piece.lines().filter_map(|line| line.strip_prefix("data: ")).find(|data| !data.is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}
