//! MCP from the other side: persistent sessions with servers that we are a client of.
//!
//! A [`Session`] is a handle; behind it one task (`owner`) holds the connection and does what a state machine without time or
//! IO (`state`) decides. `connect` makes a connection over the pipes of a `child` or over `http`, watched by `transport`;
//! `calls` is what can be asked. A [`Pool`] keeps sessions in a running program, and asks
//! over them for agents, which [`agents`] takes out of the answers. Nothing of a server is trusted: neither its words, nor their
//! number, nor that it ends.

pub mod agents;
mod allow;
mod asking;
mod backoff;
mod calls;
#[cfg(unix)]
mod child;
mod connect;
#[cfg(unix)]
mod end;
mod error;
mod http;
mod mask;
mod oauth;
mod owner;
mod pool;
mod secret;
mod session;
mod state;
mod status;
#[cfg(unix)]
mod stderr;
mod transport;
mod view;

pub use crate::config::Handshake;
pub use allow::BadToolName;
pub use connect::About;
pub use error::{Failure, Outcome, UpstreamError};
pub use http::{Address, Header, TokenPlace};
pub use oauth::{Access, Asked, KeptError, LoginRow, LoginState, NEVER_LOGGED, NoToken, Revoked};
pub use pool::{Figures, Pool, PoolError, Tell};
pub use rmcp::model::{CallToolResult, JsonObject, ReadResourceResult, Resource, Tool};
pub use secret::SecretPlace;
pub use session::Session;
pub use state::Phase;
pub use status::{Reach, Status};
pub use view::{Agents, UpstreamRow, look, session};

use crate::config::{Upstream, header, header_name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A server, and how it is treated.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its name, as reports and errors have it.
    pub name: Arc<str>,
    /// How to get to it.
    pub door: Door,
    /// How the protocol is agreed on.
    pub handshake: Handshake,
    /// How long connecting may take, the list of tools included.
    pub connect: Duration,
    /// How long an answer is waited for, where a call does not say.
    pub timeout: Duration,
    /// How long a child is given to end by itself, and then after SIGTERM.
    pub grace: Duration,
    /// How many calls may be unanswered.
    pub queue: usize,
}

/// How to get to a server.
#[derive(Debug, Clone)]
pub enum Door {
    /// It is started, and spoken with over its stdin and stdout.
    Program(Program),
    /// It is there already, behind a URL.
    Http(Address),
}

/// How to start a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program; one without a slash is looked for in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What it has in its environment beside what this process has.
    pub env: BTreeMap<String, String>,
}

/// A setting that cannot be used, in words. What `config check` accepts never leads to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("upstream {upstream}: {why}")]
pub struct BadServer {
    upstream: String,
    why: String,
}

impl BadServer {
    fn new(upstream: &str, why: &impl ToString) -> Self {
        Self { upstream: upstream.to_owned(), why: why.to_string() }
    }
}

impl Server {
    /// The server that is configured so.
    ///
    /// # Errors
    /// When the settings contradict themselves.
    pub fn of(upstream: &Upstream) -> Result<Self, BadServer> {
        let door = Door::of(upstream).map_err(|why| BadServer::new(&upstream.name, &why))?;
        Ok(Self {
            name: upstream.name.as_str().into(),
            door,
            handshake: upstream.handshake,
            connect: upstream.connect_timeout.0,
            timeout: upstream.timeout.0,
            grace: upstream.close_grace.0,
            queue: upstream.queue as usize,
        })
    }
}

impl Door {
    fn of(upstream: &Upstream) -> Result<Self, String> {
        if let Some(command) = &upstream.command {
            let (args, env) = (upstream.args.clone(), upstream.env.clone());
            return Ok(Self::Program(Program { command: command.clone(), args, env }));
        }
        let url = upstream.url.as_deref().ok_or("neither `command` nor `url` is set")?;
        let url = url.parse().map_err(|error| format!("no URL: {error}"))?;
        let plain = upstream.headers.iter().map(|(name, value)| {
            let (name, value) = header(name, value)?;
            Ok((name, Header::Plain(value)))
        });
        let variables = upstream.headers_env.iter().map(|(name, place)| (name, SecretPlace::Variable(place.clone())));
        let files = upstream.headers_file.iter().map(|(name, place)| (name, SecretPlace::File(place.clone())));
        let secret = variables.chain(files).map(|(name, place)| Ok((header_name(name)?, Header::Secret(place))));
        let headers = plain.chain(secret).collect::<Result<_, String>>()?;
        let place = SecretPlace::of(upstream.token_env.as_ref(), upstream.token_file.as_ref());
        let token = match Access::of(upstream)? {
            Some(access) => TokenPlace::Granted(access.into()),
            None => place.map_or(TokenPlace::Nowhere, TokenPlace::In),
        };
        Ok(Self::Http(Address { url, headers, token }))
    }
}
