//! Who speaks on a connection, in the ledger of clients: one client that has introduced itself once and for all, or, in the
//! newer era, whoever each request says it is from.

use super::life::Held;
use super::rows::{Row, Rows};
use crate::store::clients::{Activity, Calls, EndReason};
use rmcp::RoleServer;
use rmcp::model::{Implementation, ProtocolVersion};
use rmcp::service::RequestContext;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The clients of one connection.
pub(super) struct Callers {
    rows: Arc<Rows>,
    /// What the one that has shaken hands said of itself then.
    hello: OnceLock<(Implementation, ProtocolVersion)>,
    /// Its row.
    introduced: Arc<Row>,
}

/// Whoever has sent a request; it is in use until this is dropped.
pub(super) struct Caller {
    row: Arc<Row>,
    _held: Held,
}

/// One call of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// Which tool.
    pub tool: &'static str,
    /// Whether it came to nothing.
    pub failed: bool,
    /// Whether it has registered an agent.
    pub registered: bool,
}

impl Callers {
    /// Nobody yet.
    pub fn new(rows: Arc<Rows>) -> Self {
        let introduced = rows.row();
        Self { rows, hello: OnceLock::new(), introduced }
    }

    /// A client shakes hands. Returns whether it is the first time.
    pub fn introduce(&self, client: &Implementation, version: &ProtocolVersion) -> bool {
        self.hello.set((client.clone(), version.clone())).is_ok()
    }

    /// Whoever has sent a request. It is written down then.
    pub async fn of(&self, context: &RequestContext<RoleServer>) -> Caller {
        match self.hello.get() {
            Some((client, version)) if context.meta.protocol_version().is_none() => {
                let caller = Caller { row: Arc::clone(&self.introduced), _held: self.introduced.hold() };
                self.rows.write_down(&self.introduced, Some(client), version).await;
                caller
            }
            _ => {
                let (row, held) = self.rows.named(context.meta.client_info().as_ref()).await;
                Caller { row, _held: held }
            }
        }
    }

    /// Notes that a client was heard, and what it has called.
    pub fn heard(&self, caller: &Caller, call: Option<Call>) {
        let one = |call: Call| {
            let calls = Calls { all: 1, failed: u64::from(call.failed) };
            let calls = BTreeMap::from([(call.tool.to_owned(), calls)]);
            Activity { calls, agents_registered: u64::from(call.registered), ..Activity::default() }
        };
        self.rows.heard(&caller.row, call.map(one).unwrap_or_default());
    }

    /// Ends the one that has shaken hands.
    pub fn end(&self, reason: EndReason) {
        self.rows.end(&self.introduced, reason);
    }
}
