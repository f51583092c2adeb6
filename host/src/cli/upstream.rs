//! `headcount upstream`: MCP servers that headcount is a client of.

mod login;

use super::interrupt::{INTERRUPTED, uninterrupted};
use super::printer;
use super::table::{header, plain};
use crate::clock::Clock;
use crate::config::{Span, Upstream, nearest};
use crate::files::read_small;
use crate::report::{clean, word};
use crate::setup::Setup;
use crate::store::serving;
use crate::text::lines;
use crate::upstream::{
    CallToolResult, JsonObject, ReadResourceResult, Session, Tool, UpstreamError, UpstreamRow, look, session,
};
use comfy_table::Cell;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The largest file of arguments.
const MAX_ARGUMENTS: u64 = 4 << 20;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Connects to all servers at once, and says what is seen of each; and how the sessions stand that running servers of
    /// headcount keep with them
    List {
        /// Wait so long for those that do not answer
        #[arg(long, value_name = "TIME", default_value = "10s")]
        timeout: Span,
        /// Print JSON (schema headcount.upstreams/1)
        #[arg(long)]
        json: bool,
    },
    /// Lists the tools of a server that may be called; CHANGES is what each says of itself: `nothing`; `once`, as calling it
    /// again changes nothing more; else it `may`, each time
    Tools {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Calls a tool: exit 1 if it says that it has failed
    Call {
        #[command(flatten)]
        server: ServerArgs,
        /// The tool
        tool: String,
        /// What it is given: a JSON object, or @ and the file that holds one
        #[arg(value_name = "JSON|@FILE")]
        arguments: Option<String>,
        /// Wait so long for the answer [default: the server's `timeout`]
        #[arg(long, value_name = "TIME")]
        timeout: Option<Span>,
    },
    /// Reads a resource of a server
    Read {
        #[command(flatten)]
        server: ServerArgs,
        /// The resource
        uri: String,
    },
    #[command(flatten)]
    Login(login::Command),
}

#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// The server's name in the configuration
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The servers that are configured.
#[derive(Serialize)]
struct Upstreams {
    schema: &'static str,
    /// What was seen of them just now, in the order of the configuration.
    upstreams: Vec<UpstreamRow>,
    /// The sessions that running servers keep.
    servers: Vec<Server>,
}

#[derive(Serialize)]
struct Server {
    process_id: u32,
    upstreams: Vec<UpstreamRow>,
}

/// What was asked of a server, and what it answered.
#[derive(Serialize)]
struct Answered<'a, T> {
    schema: &'static str,
    upstream: &'a str,
    #[serde(flatten)]
    answer: T,
}

#[derive(Serialize)]
struct Tools<'a> {
    tools: &'a [Tool],
}

#[derive(Serialize)]
struct Called<'a> {
    tool: &'a str,
    result: &'a CallToolResult,
}

#[derive(Serialize)]
struct Read<'a> {
    uri: &'a str,
    result: &'a ReadResourceResult,
}

pub fn run(setup: &Setup, command: Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::List { timeout, json } => list(setup, timeout, json).await,
            Command::Tools { server } => tools(setup, &server).await,
            Command::Call { server, tool, arguments, timeout } => {
                let arguments = arguments.as_deref().map(read_arguments).transpose()?;
                call(setup, &server, &tool, arguments, timeout).await
            }
            Command::Read { server, uri } => read(setup, &server, &uri).await,
            Command::Login(command) => login::run(setup, command).await,
        }
    })
}

async fn list(setup: &Setup, timeout: Span, json: bool) -> anyhow::Result<ExitCode> {
    let configured = &setup.config().upstreams;
    let looking = look(configured, setup.me(), &setup.clock, timeout.0);
    let Some(upstreams) = uninterrupted(looking).await? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let said = serving::servers(&setup.dirs.state)?.into_iter();
    let servers =
        said.filter_map(|said| Some(Server { process_id: said.process_id, upstreams: said.of("upstreams")? }));
    let found = Upstreams { schema: "headcount.upstreams/1", upstreams, servers: servers.collect() };
    if json {
        printer::json(&found)?;
    } else if found.upstreams.is_empty() {
        printer::line("No upstream server is configured; [[upstream]] in the configuration names one.")?;
    } else {
        printer::line(&table(&found.upstreams))?;
    }
    for Server { process_id, upstreams } in found.servers.iter().filter(|_| !json) {
        printer::line(&format!("\nkept by server {process_id}\n{}", table(upstreams)))?;
    }
    Ok(ExitCode::from(u8::from(!found.upstreams.iter().all(UpstreamRow::is_well))))
}

async fn tools(setup: &Setup, server: &ServerArgs) -> anyhow::Result<ExitCode> {
    let session = open(setup, &server.name)?;
    let Some(tools) = ask(&session, session.list_tools()).await? else { return Ok(ExitCode::from(INTERRUPTED)) };
    if server.json {
        let answer = Tools { tools: &tools };
        printer::json(&Answered { schema: "headcount.upstream-tools/1", upstream: &server.name, answer })?;
    } else {
        printer::line(&tools_table(&tools))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn call(
    setup: &Setup,
    server: &ServerArgs,
    tool: &str,
    arguments: Option<JsonObject>,
    timeout: Option<Span>,
) -> anyhow::Result<ExitCode> {
    let session = open(setup, &server.name)?;
    let calling = async {
        match timeout {
            Some(timeout) => session.call_tool_within(tool, arguments, timeout.0).await,
            None => session.call_tool(tool, arguments).await,
        }
    };
    let Some(result) = ask(&session, calling).await? else { return Ok(ExitCode::from(INTERRUPTED)) };
    if server.json {
        let answer = Called { tool, result: &result };
        printer::json(&Answered { schema: "headcount.upstream-call/1", upstream: &server.name, answer })?;
    } else {
        printer::line(&said(&result)?)?;
    }
    Ok(ExitCode::from(u8::from(result.is_error == Some(true))))
}

async fn read(setup: &Setup, server: &ServerArgs, uri: &str) -> anyhow::Result<ExitCode> {
    let session = open(setup, &server.name)?;
    let Some(result) = ask(&session, session.read_resource(uri)).await? else { return Ok(ExitCode::from(INTERRUPTED)) };
    if server.json {
        let answer = Read { uri, result: &result };
        printer::json(&Answered { schema: "headcount.upstream-read/1", upstream: &server.name, answer })?;
        return Ok(ExitCode::SUCCESS);
    }
    for content in &result.contents {
        let content = serde_json::to_value(content)?;
        match content["text"].as_str() {
            Some(text) => printer::line(&lines(text))?,
            None => printer::line(&lines(&content.to_string()))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A session with the server of this name.
fn open(setup: &Setup, name: &str) -> anyhow::Result<Session> {
    let clock: Arc<dyn Clock> = Arc::clone(&setup.clock);
    Ok(session(configured(setup, name)?, &clock)?)
}

/// What is configured of the server of this name.
pub fn configured<'s>(setup: &'s Setup, name: &str) -> anyhow::Result<&'s Upstream> {
    let configured = &setup.config().upstreams;
    configured.iter().find(|upstream| upstream.name == name).ok_or_else(|| {
        let near = nearest(name, configured.iter().map(|upstream| upstream.name.as_str()));
        let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
        anyhow::anyhow!("no upstream server is called {}{hint}", clean(name))
    })
}

/// Asks a server, and leaves nothing of the session behind; `None`: somebody has interrupted it.
async fn ask<T>(session: &Session, asked: impl Future<Output = Result<T, UpstreamError>>) -> anyhow::Result<Option<T>> {
    let answer = uninterrupted(asked).await;
    session.close().await;
    Ok(answer?.transpose()?)
}

fn read_arguments(typed: &str) -> anyhow::Result<JsonObject> {
    let parsed = match typed.strip_prefix('@') {
        Some(file) => {
            let bytes = read_small(Path::new(file), MAX_ARGUMENTS);
            let bytes = bytes.map_err(|error| anyhow::anyhow!("{}: {error}", clean(file)))?;
            serde_json::from_slice(&bytes)
        }
        None => serde_json::from_str(typed),
    };
    parsed.map_err(|error| anyhow::anyhow!("the arguments are no JSON object: {error}"))
}

/// What a tool has returned, for a person: its texts, and what cannot be shown by its kind.
fn said(result: &CallToolResult) -> anyhow::Result<String> {
    let mut out = Vec::new();
    for content in &result.content {
        let content = serde_json::to_value(content)?;
        out.push(match content["text"].as_str() {
            Some(text) => lines(text),
            None => format!("({}: --json shows it)", clean(content["type"].as_str().unwrap_or("content"))),
        });
    }
    match &result.structured_content {
        Some(structured) if out.is_empty() => Ok(lines(&serde_json::to_string_pretty(structured)?)),
        _ => Ok(out.join("\n")),
    }
}

/// The servers, a line each.
fn table(upstreams: &[UpstreamRow]) -> String {
    let mut table = plain();
    let mut columns =
        vec!["NAME", "STATE", "SINCE", "SERVER", "PROTOCOL", "TOOLS", "AGENTS", "CALLS", "RECONNECTS", "LAST ERROR"];
    let has_logins = upstreams.iter().any(|upstream| upstream.login.is_some());
    columns.extend(has_logins.then_some("LOGIN"));
    table.set_header(header(&columns));
    for upstream in upstreams {
        let (about, agents) = (upstream.about.as_ref(), upstream.agents.as_ref());
        let login = has_logins.then(|| Cell::new(upstream.login.as_ref().map(login::in_words).unwrap_or_default()));
        let cells = [
            Cell::new(&upstream.name),
            Cell::new(word(&upstream.state)),
            Cell::new(&upstream.since),
            Cell::new(about.and_then(|about| about.server.as_deref()).unwrap_or("?")),
            Cell::new(about.map_or("?", |about| &about.protocol)),
            Cell::new(upstream.tools.map_or_else(|| "?".to_owned(), |tools| tools.to_string())),
            Cell::new(agents.map_or(String::new(), |agents| agents.count.map_or("?".into(), |n| n.to_string()))),
            Cell::new(upstream.calls),
            Cell::new(upstream.reconnects),
            Cell::new(upstream.trouble().unwrap_or_default()),
        ];
        table.add_row(cells.into_iter().chain(login).collect::<Vec<_>>());
    }
    table.to_string()
}

/// The tools, a line each.
fn tools_table(tools: &[Tool]) -> String {
    let mut table = plain();
    table.set_header(header(&["TOOL", "CHANGES", "WHAT IT SAYS OF ITSELF"]));
    for tool in tools {
        let hints = tool.annotations.as_ref();
        let changes = match hints.and_then(|hints| hints.read_only_hint) {
            Some(true) => "nothing",
            _ if hints.is_some_and(|hints| hints.idempotent_hint == Some(true)) => "once",
            _ => "may",
        };
        let description = tool.description.as_deref().map(clean).unwrap_or_default();
        table.add_row(vec![Cell::new(clean(&tool.name)), Cell::new(changes), Cell::new(description)]);
    }
    table.to_string()
}
