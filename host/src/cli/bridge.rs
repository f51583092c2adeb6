//! `headcount bridge`: one MCP session for programs that can only read and write files.

use crate::config::Span;
use crate::setup::Setup;
use std::path::PathBuf;
use std::process::ExitCode;

/// What a bridge logs: what it says itself, and at no level what others say. Servers put secrets into their messages, and
/// libraries log messages.
pub const LOG_FILTER: &str = "off,headcount::bridge=info";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session's folder, which it makes, for this user alone (0700)
    #[arg(long, value_name = "DIR")]
    session_dir: PathBuf,
    /// A tool that may be called though it does not say of itself that it only reads; repeatable
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,
    /// Wait so long for the answer to a call [default: 900s; with --server, its `timeout`]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    /// Go on in a folder that an earlier session has left: what that had accepted and not answered is answered with
    /// `unknown_outcome`
    #[arg(long)]
    resume: bool,
    /// A server that [[upstream]] in the configuration names, in the place of a command
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    server: Option<String>,
    /// The server, and its arguments
    #[arg(last = true, required_unless_present = "server", value_name = "SERVER")]
    command: Vec<String>,
}

#[cfg(not(target_os = "linux"))]
pub fn run(_: &Setup, _: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("a bridge needs Linux")
}

#[cfg(target_os = "linux")]
pub fn run(setup: &Setup, args: Args) -> anyhow::Result<ExitCode> {
    use crate::bridge::{Order, Patterns, Permit, run};
    use std::sync::Arc;

    let configured = &setup.config().bridge;
    let (mut server, only) = server(setup, &args)?;
    if let Some(Span(timeout)) = args.timeout {
        anyhow::ensure!(!timeout.is_zero(), "--timeout: nothing is answered in no time");
        server.timeout = timeout;
    }
    let timeout = server.timeout;
    let only = only.filter(|only| !only.is_empty()).map(|only| only.into_iter().collect());
    let order = Order {
        folder: args.session_dir,
        resume: args.resume,
        server,
        permit: Permit { allowed: args.allow.into_iter().collect(), only },
        timeout,
        keep: configured.keep.0,
        patterns: Patterns::new(&configured.errors)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(order, Arc::clone(&setup.clock)))?;
    Ok(ExitCode::SUCCESS)
}

/// The server that was meant, and of which tools alone the configuration lets it be asked.
#[cfg(target_os = "linux")]
fn server(setup: &Setup, args: &Args) -> anyhow::Result<(crate::upstream::Server, Option<Vec<String>>)> {
    use super::upstream::configured;
    use crate::upstream::{Door, Handshake, Program, Server};
    use std::time::Duration;

    if let Some(name) = &args.server {
        let found = configured(setup, name)?;
        return Ok((Server::of(found)?, Some(found.allow.clone())));
    }
    let (command, rest) = args.command.split_first().ok_or_else(|| anyhow::anyhow!("no server is named"))?;
    let program = Program { command: command.clone(), args: rest.to_vec(), env: [].into() };
    let server = Server {
        name: "bridge".into(),
        door: Door::Program(program),
        handshake: Handshake::Auto,
        connect: Duration::from_secs(30),
        timeout: Duration::from_secs(900),
        grace: Duration::from_secs(2),
        queue: 64,
    };
    Ok((server, None))
}
