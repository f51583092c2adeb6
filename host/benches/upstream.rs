//! What a call through a persistent session costs beside a bare rmcp client, what keeping the connection saves, and what is
//! left after a thousand servers that died in mid-call: medians and ratios from one run in which all take turns.
//!
//! `cargo bench --bench upstream [ROUNDS]`; needs Linux, where what a process holds can be counted.

// The figures are this program's output.
#![allow(clippy::print_stdout)]

use headcount::clock::SystemClock;
use headcount::config::Handshake;
use headcount::upstream::{Door, JsonObject, Program, Server, Session};
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const SERVER: [&str; 2] = [env!("CARGO_BIN_EXE_headcount"), "stand-in-server"];
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Outcome {
    let rounds = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        overhead(rounds).await?;
        reuse(rounds.min(100)).await?;
        deaths(rounds).await
    })
}

fn session() -> Outcome<Session> {
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
    Ok(Session::open(server, &[], Arc::new(SystemClock::default()))?)
}

async fn bare() -> Outcome<RunningService<RoleClient, ()>> {
    let mut command = tokio::process::Command::new(SERVER[0]);
    command.arg(SERVER[1]);
    let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn()?;
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let lifecycle = ClientLifecycleMode::Auto { preferred_versions, legacy_version: None };
    Ok(serve_client_with_lifecycle((), transport, lifecycle).await?)
}

/// About a kilobyte, as a small report has.
fn arguments() -> JsonObject {
    [("text".to_owned(), "x".repeat(1000).into())].into_iter().collect()
}

/// One call, by a client of its own task, as callers have it.
async fn overhead(rounds: usize) -> Outcome {
    let (session, client) = (session()?, bare().await?);
    let mut times: [Vec<Duration>; 2] = Default::default();
    tokio::spawn(async move {
        for round in 0..rounds + 50 {
            let start = Instant::now();
            client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments())).await.map_err(text)?;
            let bare = start.elapsed();
            let start = Instant::now();
            session.call_tool("echo", Some(arguments())).await.map_err(text)?;
            if round >= 50 {
                times[0].push(bare);
                times[1].push(start.elapsed());
            }
        }
        session.close().await;
        client.cancel().await.map_err(text)?;
        let [bare, ours] = times.map(median);
        let percent = 100.0 * (ours.as_secs_f64() / bare.as_secs_f64() - 1.0);
        println!("a call by a bare client {bare:.1?}, through a session {ours:.1?}: {percent:+.1} %");
        Ok::<(), String>(())
    })
    .await??;
    Ok(())
}

async fn reuse(rounds: usize) -> Outcome {
    let kept = session()?;
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..rounds {
        let start = Instant::now();
        kept.call_tool("echo", Some(arguments())).await?;
        times[0].push(start.elapsed());
        let start = Instant::now();
        let new = session()?;
        new.call_tool("echo", Some(arguments())).await?;
        new.close().await;
        times[1].push(start.elapsed());
    }
    kept.close().await;
    let [kept, anew] = times.map(median);
    let ratio = anew.as_secs_f64() / kept.as_secs_f64();
    println!("a call over a kept connection {kept:.1?}, with one of its own {anew:.1?}: {ratio:.0} times as long");
    Ok(())
}

async fn deaths(rounds: usize) -> Outcome {
    let session = session()?;
    let round = async || -> Outcome {
        session.call_tool("echo", None).await?;
        let died = session.call_tool("die", None).await;
        died.err().map(drop).ok_or_else(|| "it lives".into())
    };
    for _ in 0..50 {
        round().await?;
    }
    let (before, start) = (held()?, Instant::now());
    for _ in 0..rounds {
        round().await?;
    }
    let (after, took) = (held()?, start.elapsed());
    session.close().await;
    println!(
        "{rounds} deaths and connections in {took:.1?}: {before:?} before, {after:?} after, {:?} at the end",
        held()?
    );
    Ok(())
}

/// What this process holds.
#[derive(Debug)]
#[expect(dead_code, reason = "to be printed")]
struct Held {
    kib: usize,
    descriptors: usize,
    threads: usize,
    tasks: usize,
    children: usize,
}

fn held() -> Outcome<Held> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = statm.split(' ').nth(1).unwrap_or_default().parse()?;
    let mut children = 0;
    let mut threads = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        threads += 1;
        children += std::fs::read_to_string(task?.path().join("children"))?.split_whitespace().count();
    }
    let descriptors = std::fs::read_dir("/proc/self/fd")?.count();
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    Ok(Held { kib: pages * 4, descriptors, threads, tasks, children })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
