//! How long a program waits that asks by a file and is answered by a file, beside a call over the session itself.
//!
//! `cargo bench --bench bridge [ROUNDS]`; needs Linux.

// The figures are this program's output.
#![allow(clippy::print_stdout)]

use headcount::clock::SystemClock;
use headcount::config::Handshake;
use headcount::upstream::{Door, JsonObject, Program, Server, Session};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const SERVER: [&str; 2] = [env!("CARGO_BIN_EXE_headcount"), "stand-in-server"];
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether the answer is there.
const LOOK: Duration = Duration::from_micros(50);

fn main() -> Outcome {
    let rounds = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1000);
    let home = tempfile::tempdir()?;
    let folder = home.path().join("session");
    let mut bridge = Command::new(SERVER[0])
        .arg("bridge")
        .arg("--session-dir")
        .arg(&folder)
        .arg("--")
        .args(SERVER)
        .env("HOME", home.path())
        .stderr(Stdio::null())
        .spawn()?;
    await_file(&folder.join("status.json"))?;
    let files = (0..rounds).map(|n| by_files(&folder, n)).collect::<Outcome<Vec<_>>>()?;
    by_files_request(&folder, "c105e", &json!({"tool": "close"}))?;
    bridge.wait()?;
    tell("by files", files);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tell("directly", runtime.block_on(directly(rounds))?);
    Ok(())
}

/// About a kilobyte.
fn arguments() -> JsonObject {
    [("text".to_owned(), "x".repeat(1000).into())].into_iter().collect()
}

fn by_files(folder: &Path, n: usize) -> Outcome<Duration> {
    let start = by_files_request(folder, &format!("{n:x}"), &json!({"tool": "echo", "arguments": arguments()}))?;
    let response = folder.join(format!("response-{n:x}.json"));
    await_file(&response)?;
    let took = start.elapsed();
    fs::remove_file(response)?;
    Ok(took)
}

/// Puts a request there, and says when.
fn by_files_request(folder: &Path, id: &str, request: &serde_json::Value) -> Outcome<Instant> {
    let new = folder.join("new");
    fs::write(&new, request.to_string())?;
    let start = Instant::now();
    fs::rename(new, folder.join(format!("request-{id}.json")))?;
    Ok(start)
}

fn await_file(path: &Path) -> Outcome {
    let start = Instant::now();
    while !path.exists() {
        if start.elapsed() > PATIENCE {
            return Err(format!("{} does not come", path.display()).into());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

async fn directly(rounds: usize) -> Outcome<Vec<Duration>> {
    let args = vec![SERVER[1].to_owned()];
    let server = Server {
        name: "stand-in".into(),
        door: Door::Program(Program { command: SERVER[0].into(), args, env: [].into() }),
        handshake: Handshake::Auto,
        connect: PATIENCE,
        timeout: PATIENCE,
        grace: Duration::from_secs(2),
        queue: 64,
    };
    let session = Session::open(server, &[], Arc::new(SystemClock::default()))?;
    session.list_tools().await?;
    let mut took = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        session.call_tool("echo", Some(arguments())).await?;
        took.push(start.elapsed());
    }
    session.close().await;
    Ok(took)
}

fn tell(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: usize| took[(took.len() * share / 100).min(took.len() - 1)];
    println!("{what}: median {:.2?}, p99 {:.2?}, of {}", at(50), at(99), took.len());
}
