//! Clients that do nothing but send a call and read the whole answer, and the server that they ask.

use crate::linux::Result;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command};

/// The executable.
const HEADCOUNT: &str = env!("CARGO_BIN_EXE_headcount");

/// The tool whose calls are measured.
const STATUS: &str = "get_session_status";

/// The two eras of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy,
}

impl Era {
    fn version(self) -> &'static str {
        match self {
            Self::Modern => "2026-07-28",
            Self::Legacy => "2025-11-25",
        }
    }

    /// A call, its revision and client said in it where there is no handshake.
    fn call(self, tool: &str) -> String {
        let mut params = json!({"name": tool, "arguments": {"session_id": "bench"}});
        if tool == STATUS {
            params["arguments"]["limit"] = 5000.into();
        }
        if self == Self::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.version(),
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            });
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    }

    fn hello(self) -> String {
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": self.version(), "capabilities": {}, "clientInfo": client});
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
    }
}

const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn serve(home: &Path, roster: &Path) -> Command {
    let mut command = Command::new(HEADCOUNT);
    command.env_clear().env("HOME", home).current_dir(home).arg("serve").arg("--roster").arg(roster);
    command
}

/// A process that ends when it is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // One that has ended already has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server over HTTP.
pub struct Server {
    address: SocketAddr,
    _child: Ends,
}

impl Server {
    pub fn start(home: &Path, roster: &Path) -> Result<Self> {
        let mut child =
            serve(home, roster).args(["--http", "127.0.0.1:0"]).stderr(std::process::Stdio::piped()).spawn()?;
        let stderr = child.stderr.take().ok_or("no stderr")?;
        let child = Ends(child);
        let (mut log, mut line) = (BufReader::new(stderr), String::new());
        log.read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.ok_or_else(|| format!("no address in {line:?}"))?.parse()?;
        // What it says later goes where this program's own errors go.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::stderr()));
        Ok(Self { address, _child: child })
    }
}

/// A client over stdio, with a server of its own.
pub struct Stdio {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    call: String,
    answer: Vec<u8>,
    _child: Ends,
}

impl Stdio {
    pub fn start(home: &Path, roster: &Path, era: Era) -> Result<Self> {
        let piped = std::process::Stdio::piped;
        let mut child = serve(home, roster).stdin(piped()).stdout(piped()).spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no stdout")?);
        let call = era.call(STATUS) + "\n";
        let mut client = Self { input, output, call, answer: Vec::new(), _child: Ends(child) };
        if era == Era::Legacy {
            writeln!(client.input, "{}", era.hello())?;
            client.line()?;
            writeln!(client.input, "{READY}")?;
        }
        Ok(client)
    }

    pub fn status(&mut self) -> Result {
        self.input.write_all(self.call.as_bytes())?;
        self.line()?;
        is_report(&self.answer)
    }

    fn line(&mut self) -> Result {
        self.answer.clear();
        self.output.read_until(b'\n', &mut self.answer)?;
        Ok(())
    }
}

/// A client over HTTP, on one connection.
pub struct Http {
    stream: BufReader<TcpStream>,
    /// The headers that each request has.
    common: String,
    call: Vec<u8>,
    rest: Vec<u8>,
    answer: Vec<u8>,
}

impl Http {
    /// A client of the newer era.
    pub fn connect(server: &Server, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        let common = format!(
            "Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        let call = modern(&common, STATUS);
        let rest = format!("GET /v1/sessions/bench/status?limit=5000 HTTP/1.1\r\n{common}\r\n").into_bytes();
        Ok(Self { stream: BufReader::with_capacity(1 << 20, stream), common, call, rest, answer: Vec::new() })
    }

    /// The handshake, where there is one.
    pub fn greet(&mut self, era: Era) -> Result {
        if era == Era::Modern {
            return Ok(());
        }
        self.stream.get_mut().write_all(&post(&self.common, "", &era.hello()))?;
        let session = self.response()?.ok_or("no session was begun")?;
        let headers = format!("MCP-Protocol-Version: {}\r\nMcp-Session-Id: {session}\r\n", era.version());
        self.stream.get_mut().write_all(&post(&self.common, &headers, READY))?;
        self.response()?;
        self.call = post(&self.common, &headers, &era.call(STATUS));
        Ok(())
    }

    pub fn status(&mut self) -> Result {
        self.stream.get_mut().write_all(&self.call)?;
        self.response()?;
        is_report(&self.answer)
    }

    /// Begins to wait for what does not come.
    pub fn wait(&mut self) -> Result {
        Ok(self.stream.get_mut().write_all(&modern(&self.common, "wait_for_attention"))?)
    }

    /// Waits until it is told that its token was revoked.
    pub fn is_cut(&mut self) -> Result {
        let status = self.line()?;
        if status.starts_with("HTTP/1.1 401") { Ok(()) } else { Err(format!("not cut: {status}").into()) }
    }

    pub fn rest(&mut self) -> Result {
        self.stream.get_mut().write_all(&self.rest)?;
        self.response()?;
        is_report(&self.answer)
    }

    /// Reads a whole answer, and returns the session that it names.
    fn response(&mut self) -> Result<Option<String>> {
        let (mut length, mut is_chunked, mut session) = (0, false, None);
        let status = self.line()?;
        if !status.starts_with("HTTP/1.1 20") {
            return Err(format!("not answered: {status}").into());
        }
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            match name {
                "content-length" => length = value.parse()?,
                "transfer-encoding" => is_chunked = true,
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        self.answer.clear();
        while is_chunked {
            let size = usize::from_str_radix(&self.line()?, 16)?;
            self.piece(size)?;
            self.line()?;
            is_chunked = size > 0;
        }
        self.piece(length)?;
        Ok(session)
    }

    fn piece(&mut self, length: usize) -> Result {
        let from = self.answer.len();
        self.answer.resize(from + length, 0);
        self.stream.read_exact(&mut self.answer[from..])?;
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

fn modern(common: &str, tool: &str) -> Vec<u8> {
    let version = Era::Modern.version();
    let headers = format!("MCP-Protocol-Version: {version}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
    post(common, &headers, &Era::Modern.call(tool))
}

fn post(common: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("POST /mcp HTTP/1.1\r\n{common}{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Whether an answer has a report in it. It is not read for that: that would be what is measured.
fn is_report(answer: &[u8]) -> Result {
    if memchr::memmem::find(answer, b"headcount.report/1").is_some() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&answer[..answer.len().min(1000)]).into())
}
