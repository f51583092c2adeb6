//! What is seen of the configured servers by connecting to all of them at once.

use super::connect::About;
use super::{BadServer, LoginRow, Server, Session};
use crate::clock::Clock;
use crate::config::Upstream;
use crate::report;
use crate::text::Wait;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The servers that are configured, as `headcount upstream list --json` prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Upstreams {
    /// What this is.
    pub schema: &'static str,
    /// The servers, in the order of the configuration.
    pub upstreams: Vec<UpstreamRow>,
}

/// Whether a server can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// It is connected.
    Ready,
    /// It is not, and `last_error` says why.
    Failed,
    /// It has not answered in the time that there was.
    Unknown,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamRow {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it can be used.
    pub state: Reach,
    /// Since when it is as it is.
    pub since: String,
    /// What it says of itself.
    #[serde(flatten)]
    pub about: Option<About>,
    /// How many of its tools may be called.
    pub tools: Option<usize>,
    /// How many calls were made.
    pub calls: u64,
    /// How many of them came to nothing.
    pub failures: u64,
    /// How often it was connected anew.
    pub reconnects: u64,
    /// What last went wrong with the connection.
    pub last_error: Option<String>,
    /// How the login stands, where access is asked for by OAuth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginRow>,
}

/// A session with the server that is configured so.
///
/// # Errors
/// When the settings contradict themselves.
pub fn session(upstream: &Upstream, clock: &Arc<dyn Clock>) -> Result<Session, BadServer> {
    let server = Server::of(upstream)?;
    let opened = Session::open(server, &upstream.allow, Arc::clone(clock));
    opened.map_err(|bad| BadServer::new(&upstream.name, &bad))
}

/// Connects to all servers at once, waits so long for each, says what is seen, and leaves nothing behind.
pub async fn look(upstreams: &[Upstream], clock: &Arc<dyn Clock>, patience: Duration) -> Upstreams {
    let mut looks = JoinSet::new();
    for (place, upstream) in upstreams.iter().cloned().enumerate() {
        let clock = Arc::clone(clock);
        looks.spawn(async move { (place, row(&upstream, &clock, patience).await) });
    }
    let mut rows = looks.join_all().await;
    rows.sort_unstable_by_key(|(place, _)| *place);
    Upstreams { schema: "headcount.upstreams/1", upstreams: rows.into_iter().map(|(_, row)| row).collect() }
}

async fn row(upstream: &Upstream, clock: &Arc<dyn Clock>, patience: Duration) -> UpstreamRow {
    let session = match session(upstream, clock) {
        Ok(session) => session,
        Err(error) => return UpstreamRow::unusable(upstream, clock.now().unix_ms, &error.to_string()),
    };
    let listed = timeout(patience, session.list_tools()).await;
    let status = session.status();
    session.close().await;
    let (state, error) = match listed {
        Ok(Ok(_)) => (Reach::Ready, None),
        Ok(Err(error)) => (Reach::Failed, Some(error.failure.to_string())),
        Err(_) => (Reach::Unknown, Some(format!("no answer within {}", Wait(patience)))),
    };
    UpstreamRow {
        name: upstream.name.clone(),
        state,
        since: report::time(status.since),
        about: status.about.clone(),
        tools: status.tools,
        calls: status.calls,
        failures: status.failures,
        reconnects: status.reconnects(),
        last_error: error.or(status.last_error.map(|(why, _)| why)),
        login: LoginRow::of(upstream),
    }
}

impl UpstreamRow {
    fn unusable(upstream: &Upstream, now: u64, why: &str) -> Self {
        Self {
            name: upstream.name.clone(),
            state: Reach::Failed,
            since: report::time(now),
            about: None,
            tools: None,
            calls: 0,
            failures: 0,
            reconnects: 0,
            last_error: Some(why.to_owned()),
            login: LoginRow::of(upstream),
        }
    }
}
