//! Who speaks on a connection, in the ledger of clients: one client that has introduced itself once and for all, or, in the
//! newer era, whoever each request says it is from.

use crate::clients::{Ledger, NewClient};
use crate::store::clients::{Activity, Calls, EndReason};
use rmcp::RoleServer;
use rmcp::model::{Implementation, ProtocolVersion};
use rmcp::service::RequestContext;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::OnceCell;

/// So many clients on one connection have rows of their own. What is one more is a client that has said nothing of itself.
const MOST: usize = 64;

/// A row in the ledger; `None`: it could not be written down.
type Caller = Option<String>;

/// What a request says of who sends it: name and version.
type Words = (Option<String>, Option<String>);

/// The clients of one connection.
pub(super) struct Callers {
    ledger: Arc<Ledger>,
    user_id: String,
    /// What the one that has shaken hands said of itself then.
    hello: OnceLock<(Implementation, ProtocolVersion)>,
    /// Its row.
    introduced: OnceCell<Caller>,
    /// Those of the newer era, by what their requests say.
    named: Mutex<HashMap<Words, Arc<OnceCell<Caller>>>>,
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
    /// Nobody yet, on a connection of this user's.
    pub fn new(ledger: Arc<Ledger>, user_id: String) -> Self {
        Self { ledger, user_id, hello: OnceLock::new(), introduced: OnceCell::new(), named: Mutex::default() }
    }

    /// A client shakes hands. Returns whether it is the first time.
    pub fn introduce(&self, client: &Implementation, version: &ProtocolVersion) -> bool {
        self.hello.set((client.clone(), version.clone())).is_ok()
    }

    /// The row of whoever has sent a request.
    pub async fn of(&self, context: &RequestContext<RoleServer>) -> Caller {
        match self.hello.get() {
            Some((client, version)) if context.meta.protocol_version().is_none() => {
                self.introduced.get_or_init(|| self.record(Some(client), version)).await.clone()
            }
            _ => self.named(context.meta.client_info().as_ref()).await,
        }
    }

    async fn named(&self, client: Option<&Implementation>) -> Caller {
        let mut said = client.map(|client| (client.name.clone(), client.version.clone())).unzip();
        let cell = {
            let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            if named.len() >= MOST && !named.contains_key(&said) {
                said = (None, None);
            }
            Arc::clone(named.entry(said.clone()).or_default())
        };
        let client = client.filter(|_| said.0.is_some());
        cell.get_or_init(|| self.record(client, &ProtocolVersion::V_2026_07_28)).await.clone()
    }

    /// Takes up a client. That it cannot be written down is no reason not to answer it.
    async fn record(&self, client: Option<&Implementation>, version: &ProtocolVersion) -> Caller {
        let new = NewClient {
            user_id: self.user_id.clone(),
            name: client.map(|client| client.name.clone()),
            version: client.map(|client| client.version.clone()),
            protocol: version.to_string(),
            transport: "stdio",
            ..NewClient::default()
        };
        let ledger = Arc::clone(&self.ledger);
        let recorded = tokio::task::spawn_blocking(move || ledger.record(new)).await;
        let recorded = recorded.map_err(|error| error.to_string()).and_then(|id| id.map_err(|error| error.to_string()));
        recorded.inspect_err(|error| tracing::warn!("a client is not in the ledger: {error}")).ok()
    }

    /// Notes that a client was heard, and what it has called.
    pub fn heard(&self, caller: &Caller, call: Option<Call>) {
        let Some(id) = caller else { return };
        let one = |call: Call| {
            let calls = Calls { all: 1, failed: u64::from(call.failed) };
            let calls = BTreeMap::from([(call.tool.to_owned(), calls)]);
            Activity { calls, agents_registered: u64::from(call.registered), ..Activity::default() }
        };
        self.ledger.touch(id, call.map(one).unwrap_or_default());
    }

    /// Ends all of them.
    pub fn end(&self, reason: EndReason) {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let cells = named.values().map(AsRef::as_ref).chain([&self.introduced]);
        for id in cells.filter_map(|cell| cell.get()?.as_ref()) {
            self.ledger.end(id, reason);
        }
    }
}
