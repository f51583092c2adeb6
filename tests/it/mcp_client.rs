//! A small MCP client over stdio, of either era of the protocol: lines of JSON and nothing else.

use crate::world::{PATIENCE, World, ended};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// The versions of the protocol that begin with a handshake.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version in which each request stands for itself.
pub const MODERN: &str = "2026-07-28";

/// One connection to `headcount serve`.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    version: String,
    next_id: u64,
    /// Messages that were no answers, in the order in which they came.
    pub notifications: Vec<Value>,
}

impl Client {
    /// A server that was just started, to which nothing has been said.
    pub fn start(world: &World, rosters: &[&Path], variables: &[(&str, &str)]) -> Self {
        let mut command = world.command(&["serve"]);
        for roster in rosters {
            command.arg("--roster").arg(roster);
        }
        command.env("HEADCOUNT_SAMPLING_TICK", "100ms").envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let input = child.stdin.take();
        Self { child, input, lines, version: MODERN.to_owned(), next_id: 0, notifications: Vec::new() }
    }

    /// A client that speaks this version, its handshake done where the version has one.
    pub fn connect(world: &World, rosters: &[&Path], version: &str) -> Self {
        let mut client = Self::start(world, rosters, &[]);
        client.greet(version);
        client
    }

    /// The handshake, where there is one: what the server says of itself.
    pub fn greet(&mut self, version: &str) -> Value {
        self.version = version.to_owned();
        if version == MODERN {
            return self.result("server/discover", json!({}));
        }
        let client = json!({"name": "test-client", "version": "1.2"});
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let said = self.result("initialize", hello);
        self.send_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        said
    }

    /// Sends a line as it is.
    pub fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").and_then(|()| input.flush()).unwrap();
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if self.version == MODERN {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test-client", "version": "1.2"});
        }
        let request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send_line(&request.to_string());
        self.next_id
    }

    /// The next message; `None` where the server has closed its end.
    pub fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no answer after {PATIENCE:?}"),
        }
    }

    /// The next message, if one comes in this time.
    pub fn within(&mut self, time: Duration) -> Option<Value> {
        self.lines.recv_timeout(time).ok().map(|line| serde_json::from_str(&line).unwrap())
    }

    /// Withdraws a request.
    pub fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        self.send_line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string());
    }

    /// The whole answer to a request. Answers to others, which nobody waits for, are kept with the notifications.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().expect("the server is there");
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The result of a request that succeeds.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer:#}");
        answer["result"].take()
    }

    /// The result of a call, whether the tool succeeded or not.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// What the tool answered, where it succeeded.
    pub fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result:#}");
        result["structuredContent"].take()
    }

    /// What the tool said of why it failed.
    pub fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the server's stdin and returns its exit code, and what it still had to say.
    pub fn close(mut self, patience: Duration) -> (Option<i32>, Vec<String>) {
        drop(self.input.take());
        let code = ended(&mut self.child, patience);
        (code, self.lines.iter().collect())
    }
}

impl Client {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server in the midst of what it does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
