//! A stand-in MCP server over stdin and stdout, for tests of what headcount does as a client. It speaks JSON-RPC by hand,
//! because it has to do what no library would let it do: die, hang, flood, and pay no heed.

use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The revision in which each request stands for itself.
const MODERN: &str = "2026-07-28";
/// The last revision with a handshake.
const LEGACY: &str = "2025-11-25";

/// How long it goes on at most, lest it outlive a test that nobody finished.
const STAY: Duration = Duration::from_secs(300);

/// How it misbehaves, beside what its tools do.
#[derive(Debug, Clone, Default)]
pub struct Manners {
    /// It answers no handshake.
    pub hangs: bool,
    /// It goes on when its input ends, and at SIGTERM.
    pub stays: bool,
    /// It knows nothing of `server/discover`.
    pub legacy: bool,
    /// It starts a process that holds its output open.
    pub leaves_child: bool,
    /// It notes each call of a tool here, a line each, before it does anything else.
    pub journal: Option<PathBuf>,
}

struct Server {
    manners: Manners,
    out: Arc<Mutex<io::Stdout>>,
    /// Who has asked to be told of changes, in the revision where one has to.
    listener: Option<Value>,
    /// Whether there is one more tool than at first.
    grown: bool,
    /// Whether `echo` does not say any more that it only reads.
    reserved: bool,
    modern: bool,
}

/// Serves until its input ends.
///
/// # Errors
/// When the system refuses what it needs.
pub fn run(manners: Manners) -> anyhow::Result<ExitCode> {
    if manners.stays {
        ignore_sigterm()?;
    }
    if manners.leaves_child {
        Command::new("sleep").arg("300").stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    }
    let stays = manners.stays;
    let out = Arc::new(Mutex::new(io::stdout()));
    let mut server = Server { manners, out, listener: None, grown: false, reserved: false, modern: false };
    for line in io::stdin().lock().lines() {
        if let Ok(message) = serde_json::from_str(&line?) {
            server.hear(&message)?;
        }
    }
    if stays {
        thread::sleep(STAY);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(unix)]
fn ignore_sigterm() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?
    };
    thread::spawn(move || runtime.block_on(async { while signals.recv().await.is_some() {} }));
    Ok(())
}

#[cfg(not(unix))]
fn ignore_sigterm() -> anyhow::Result<()> {
    anyhow::bail!("there is no SIGTERM here")
}

impl Server {
    fn hear(&mut self, message: &Value) -> io::Result<()> {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" | "initialize" if self.manners.hangs => Ok(()),
            "server/discover" if !self.manners.legacy => {
                self.modern = true;
                let capabilities = json!({"tools": {"listChanged": true}, "resources": {}});
                self.answer(id, json!({"supportedVersions": [MODERN], "capabilities": capabilities}))
            }
            "initialize" => {
                let capabilities = json!({"tools": {"listChanged": true}, "resources": {}});
                let info = json!({"name": "stand-in", "version": "1"});
                self.answer(id, json!({"protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": info}))
            }
            "tools/list" => self.answer(id, json!({"tools": self.tools()})),
            "tools/call" => self.call(id, params["name"].as_str().unwrap_or_default(), &params["arguments"]),
            "resources/list" => self.answer(id, json!({"resources": [{"uri": "stand-in://pid", "name": "pid"}]})),
            "resources/read" if params["uri"] == "stand-in://pid" => {
                let pid = std::process::id().to_string();
                self.answer(id, json!({"contents": [{"uri": "stand-in://pid", "text": pid}]}))
            }
            "subscriptions/listen" => {
                self.listener = Some(id.clone());
                let params = json!({"notifications": {"toolsListChanged": true}});
                self.notify("notifications/subscriptions/acknowledged", params)
            }
            _ if id.is_null() => Ok(()),
            _ => self.write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})),
        }
    }

    fn tools(&self) -> Value {
        let names =
            ["echo", "fail", "pid", "silent", "slow", "die", "die_safely", "grow", "notify", "complain", "big", "ask"];
        let more = self.grown.then_some("grown");
        let tools = names.into_iter().chain(more).map(|name| {
            let safe = ["echo", "pid", "die_safely"].contains(&name) && !(self.reserved && name == "echo");
            json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": safe}})
        });
        tools.collect()
    }

    fn call(&mut self, id: &Value, tool: &str, arguments: &Value) -> io::Result<()> {
        if let Some(journal) = &self.manners.journal {
            writeln!(OpenOptions::new().create(true).append(true).open(journal)?, "{tool}")?;
        }
        let number = arguments["n"].as_u64().unwrap_or_default();
        match tool {
            "silent" => return Ok(()),
            "slow" => {
                let (out, id, modern) = (Arc::clone(&self.out), id.clone(), self.modern);
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(number));
                    write(&out, &answered(&id, content("late"), modern))
                });
                return Ok(());
            }
            // Once only, where a file is named that tells that it has happened.
            "die" | "die_safely" if first_time(arguments["once"].as_str())? => {
                std::process::exit(i32::try_from(number).unwrap_or(1))
            }
            "grow" if arguments["quietly"] == true => self.reserved = true,
            "grow" => {
                self.grown = true;
                self.notify("notifications/tools/list_changed", json!({}))?;
            }
            "notify" => {
                let params = json!({"level": "info", "data": "x".repeat(1000)});
                (0..number).try_for_each(|_| self.notify("notifications/message", params.clone()))?;
            }
            "complain" => {
                let line = "x".repeat(999);
                (0..number / 1000).try_for_each(|_| writeln!(io::stderr(), "{line}"))?;
            }
            "ask" => {
                let ping = |n| json!({"jsonrpc": "2.0", "id": format!("ping-{n}"), "method": "ping"});
                (0..number).try_for_each(|n| self.write(&ping(n)))?;
            }
            "big" => return self.answer(id, content(&"x".repeat(usize::try_from(number).unwrap_or_default()))),
            "echo" if let Some(file) = arguments["file"].as_str() => return self.echo_file(id, Path::new(file)),
            "pid" => return self.answer(id, content(&std::process::id().to_string())),
            "fail" => {
                return self.answer(id, json!({"content": [{"type": "text", "text": "failed"}], "isError": true}));
            }
            _ => {}
        }
        let mut result = content(&arguments.to_string());
        result["structuredContent"] = arguments.clone();
        self.answer(id, result)
    }

    /// Answers what a file holds, and nothing at all as long as it is not there.
    fn echo_file(&self, id: &Value, file: &Path) -> io::Result<()> {
        match fs::read_to_string(file) {
            Ok(text) => {
                let mut result = content(&text);
                result["structuredContent"] = serde_json::from_str(&text).unwrap_or_default();
                self.answer(id, result)
            }
            Err(_) => Ok(()),
        }
    }

    fn answer(&self, id: &Value, result: Value) -> io::Result<()> {
        write(&self.out, &answered(id, result, self.modern))
    }

    fn notify(&self, method: &str, mut params: Value) -> io::Result<()> {
        if let Some(listener) = &self.listener {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": listener});
        }
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn write(&self, message: &Value) -> io::Result<()> {
        write(&self.out, message)
    }
}

fn first_time(marker: Option<&str>) -> io::Result<bool> {
    match marker.map(File::create_new) {
        Some(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Ok(true),
    }
}

fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn answered(id: &Value, mut result: Value, modern: bool) -> Value {
    if modern {
        result["resultType"] = "complete".into();
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "stand-in", "version": "1"}});
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn write(out: &Mutex<io::Stdout>, message: &Value) -> io::Result<()> {
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner).lock();
    writeln!(out, "{message}")?;
    out.flush()
}
