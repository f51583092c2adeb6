//! The list of clients as every surface shows it.

use crate::report::time;
use crate::store::clients::{Client, Page};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A page of the clients, the newest first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Clients {
    /// MCP sessions, one for each client.
    pub sessions: Vec<ClientRow>,
    /// What to ask for the next page with; null: this is the last.
    pub next_cursor: Option<String>,
}

/// One client.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClientRow {
    /// Its id in the ledger.
    pub id: String,
    /// Whose client it is.
    pub user_id: String,
    /// The grant that it works under; null: it needs none, as over stdin.
    pub grant_id: Option<String>,
    /// Its OAuth client id, where it has one.
    pub client_id: Option<String>,
    /// What it calls itself; null: it has not said.
    pub client_name: Option<String>,
    /// Which version it says it is.
    pub client_version: Option<String>,
    /// The revision of the protocol that it speaks.
    pub protocol: String,
    /// `stdio` or `http`.
    pub transport: String,
    /// RFC 3339 in UTC.
    pub connected_at: String,
    /// RFC 3339 in UTC.
    pub last_activity_at: String,
    /// All calls of tools, failed ones among them.
    pub tool_calls: u64,
    /// Calls that came to nothing.
    pub tool_failures: u64,
    /// Calls by tool.
    pub calls_by_tool: BTreeMap<String, u64>,
    /// How many agents it has registered.
    pub agents_registered: u64,
    /// Whether it has ended.
    pub ended: bool,
    /// When, RFC 3339 in UTC.
    pub ended_at: Option<String>,
    /// `closed` by the client, `idle`, `server_stopped`, `grant_revoked` or `grant_expired`.
    pub ended_reason: Option<&'static str>,
}

/// A page of the ledger, as it is shown.
pub fn clients(page: &Page) -> Clients {
    Clients {
        sessions: page.clients.iter().map(row).collect(),
        next_cursor: page.next.as_ref().map(ToString::to_string),
    }
}

fn row(client: &Client) -> ClientRow {
    let who = &client.who;
    ClientRow {
        id: client.id.clone(),
        user_id: who.user_id.clone(),
        grant_id: who.grant_id.clone(),
        client_id: who.client_id.clone(),
        client_name: who.name.clone(),
        client_version: who.version.clone(),
        protocol: who.protocol.clone(),
        transport: who.transport.clone(),
        connected_at: time(client.connected_at_ms),
        last_activity_at: time(client.last_activity_at_ms),
        tool_calls: client.calls.values().map(|calls| calls.all).sum(),
        tool_failures: client.calls.values().map(|calls| calls.failed).sum(),
        calls_by_tool: client.calls.iter().map(|(tool, calls)| (tool.clone(), calls.all)).collect(),
        agents_registered: client.agents_registered,
        ended: client.ended.is_some(),
        ended_at: client.ended.map(|end| time(end.at_ms)),
        ended_reason: client.ended.map(|end| end.reason.as_str()),
    }
}
