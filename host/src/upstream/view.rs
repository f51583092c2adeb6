//! What is shown of servers: of those that are configured, by connecting to all of them at once, and of kept sessions.

use super::agents::Taker;
use super::connect::About;
use super::oauth::LoginRow;
use super::pool::Heard;
use super::status::{Reach, Status};
use super::{BadServer, Server, Session};
use crate::clock::Clock;
use crate::config::Upstream;
use crate::names::Instance;
use crate::report;
use crate::text::Wait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// What it has told of agents, if it is to be asked for them.
    pub agents: Option<Agents>,
    /// How many calls were made.
    pub calls: u64,
    /// How many of them came to nothing.
    pub failures: u64,
    /// How often it was connected anew.
    pub reconnects: u64,
    /// What last went wrong with the connection.
    pub last_error: Option<String>,
    /// How the login stands, where access is asked for by OAuth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginRow>,
}

/// What a server has told of agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    /// How many there were, the last time that it answered.
    pub count: Option<usize>,
    /// When that was.
    pub heard_at: Option<String>,
    /// Why there is no newer answer, or what was left out of it.
    pub error: Option<String>,
    /// What is to be known of the answer, although nothing is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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

/// Connects to all servers at once, waits so long for each, says what is seen, and leaves nothing behind. `me` is which headcount
/// this is.
pub async fn look(
    upstreams: &[Upstream],
    me: Instance,
    clock: &Arc<dyn Clock>,
    patience: Duration,
) -> Vec<UpstreamRow> {
    let mut looks = JoinSet::new();
    for (place, upstream) in upstreams.iter().cloned().enumerate() {
        let clock = Arc::clone(clock);
        looks.spawn(async move { (place, row(&upstream, me, &clock, patience).await) });
    }
    let mut rows = looks.join_all().await;
    rows.sort_unstable_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}

async fn row(upstream: &Upstream, me: Instance, clock: &Arc<dyn Clock>, patience: Duration) -> UpstreamRow {
    let session = match session(upstream, clock) {
        Ok(session) => session,
        Err(error) => return UpstreamRow::unusable(upstream, clock.now().unix_ms, &error.to_string()),
    };
    let start = clock.now().steady;
    let in_vain = || format!("no answer within {}", Wait(patience));
    let listed = timeout(patience, session.list_tools()).await;
    let agents = match Taker::new(upstream, me) {
        Some(taker) if matches!(listed, Ok(Ok(_))) => {
            let left = patience.saturating_sub(clock.now().steady.saturating_sub(start));
            let answer = timeout(left, taker.ask(&session)).await.unwrap_or_else(|_| Err(in_vain()));
            let (now, mut heard) = (clock.now(), Heard::default());
            heard.hear(answer, now);
            Some(heard.agents(now))
        }
        taker => taker.map(|_| Agents::default()),
    };
    let status = session.status();
    session.close().await;
    let (state, error) = match listed {
        Ok(Ok(_)) => (Reach::Ready, None),
        Ok(Err(error)) => (Reach::Failed, Some(error.failure.to_string())),
        Err(_) => (Reach::Unknown, Some(in_vain())),
    };
    let row = UpstreamRow::of(&upstream.name, &status, agents);
    let last_error = error.or_else(|| row.last_error.clone());
    UpstreamRow { state, last_error, login: LoginRow::of(upstream), ..row }
}

impl UpstreamRow {
    /// The session with the server of this name.
    pub fn of(name: &str, status: &Status, agents: Option<Agents>) -> Self {
        Self {
            name: name.to_owned(),
            state: status.reach,
            since: report::time(status.since),
            about: status.about.clone(),
            tools: status.tools,
            agents,
            calls: status.calls,
            failures: status.failures,
            reconnects: status.reconnects(),
            last_error: status.last_error.as_ref().map(|(why, _)| why.clone()),
            login: None,
        }
    }

    fn unusable(upstream: &Upstream, now: u64, why: &str) -> Self {
        let status = Status::unused(now);
        let login = LoginRow::of(upstream);
        Self {
            state: Reach::Failed,
            last_error: Some(why.to_owned()),
            login,
            ..Self::of(&upstream.name, &status, None)
        }
    }

    /// What is wrong with it now or was last, or else what is to be known of it, as far as a line has room for it.
    pub fn trouble(&self) -> Option<&str> {
        let of_agents = self.agents.as_ref().and_then(|agents| agents.error.as_deref());
        let of_connection = self.last_error.as_deref();
        let trouble =
            if self.state == Reach::Ready { of_agents.or(of_connection) } else { of_connection.or(of_agents) };
        trouble.or_else(|| self.agents.as_ref()?.note.as_deref())
    }

    /// Whether it can be used, for all that it is to be used for.
    pub fn is_well(&self) -> bool {
        self.state == Reach::Ready && self.agents.as_ref().is_none_or(|agents| agents.error.is_none())
    }
}
